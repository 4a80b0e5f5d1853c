"""The step suite: how many environment steps per second, at which number of lanes, against whom."""
