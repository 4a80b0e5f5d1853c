"""From a run to a result: many seeds as one experiment, comparisons with honest intervals, tuning.

`train` is `shoal.train`; `statistics` is where every interval on a page or in a sentence comes from.
"""
