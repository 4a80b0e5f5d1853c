"""A `gymnasium.Env` class, compiled as it is: watched, translated into a kernel, and proven equal before it is used.

    watch         which attributes change, and what they look like
    layouts       how values are stored in columns and variables; variants: attributes that change their type
    values        what is known of a value while translating
    code, storing, statements, loops, plain, classes, expressions, truths, displays, arrays, items, indexing, folding,
    calls, math_calls, python_calls, list_calls, numpy_*, array_methods, draws, legacy_draws, returned
                  the environment's functions, followed and written as kernel code: one object in chapters
    pcg, mt       NumPy's random numbers in every lane
    writer        the kernel's source; module: the file that holds it
    proof         the replay against the original
    again         the proof goes on while a batch is used
    ported        all of it, and what is kept for the next time

`shoal.make(MyEnv, 4096, compiled=True)` and `shoal port MyEnv` are the doors; docs/port.md is for users.
"""
