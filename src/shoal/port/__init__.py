"""A `gymnasium.Env` class, compiled as it is: watched, translated into a kernel, and proven equal before it is used.

    watch         which attributes change, and what they look like
    layouts       how values are stored in columns and variables; variants: attributes that change their type
    values        what is known of a value while translating
    code, statements, expressions, arrays, calls, numpy_calls, draws
                  the environment's functions, followed and written as kernel code
    pcg           NumPy's random numbers in every lane
    writer        the kernel's source; module: the file that holds it
    proof         the replay against the original
    ported        all of it, and what is kept for the next time

`shoal.make(MyEnv, 4096, compiled=True)` and `shoal port MyEnv` are the doors; docs/port.md is for users.
"""
