"""Lanes with several seats: who sits where, who learns, pools of opponents, ratings and tournaments."""
