"""One small property per promise: a function of (subject, case) that returns, or raises `Broken` or `NotOffered`.

Its name is the promise's name, its docstring the promise.
"""
