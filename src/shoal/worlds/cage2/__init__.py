"""CAGE Challenge 2: defend a small network against a red agent that works its way to the operational server."""
