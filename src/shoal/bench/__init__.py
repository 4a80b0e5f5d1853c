"""Benchmarks: Shoal and its peers on the same work, interleaved in one run, as ratios with their spread.

`suites.py` names the suites; `contender.py` says what is measured; each contender lives in a process of its own
(`child.py`, driven by `process.py`), so that libraries do not disturb each other and rounds can interleave
(`rounds.py`); `report.py` prints and writes the rows.
"""
