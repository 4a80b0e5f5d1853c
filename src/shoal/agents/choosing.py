"""Numbers that every way to draw one of several actions shares."""

FORBIDDEN = -1e9  # finite, so that a gradient through a forbidden logit is zero and not NaN
BELOW_ONE = 1 - 2**-22  # keeps a draw below the last step of a cumulative sum, whatever the rounding
