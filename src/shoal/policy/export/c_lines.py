"""Lines of C: constants, layers and activations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.jit.simd import TANH_BOTTOM, TANH_LIMIT, TANH_TOP


def layer_lines(name: str, source: str, inputs: int, weight: str, bias: str, outputs: int, target: str) -> list[str]:
    """A layer from `source` to `target`, written out with its sizes, so that compilers make vectors of it."""
    return [
        f"for (int j = 0; j < {outputs}; j++) {target}[j] = {name}_{bias}[j];",
        f"for (int i = 0; i < {inputs}; i++)",
        f"    for (int j = 0; j < {outputs}; j++) {target}[j] += {source}[i] * {name}_{weight}[i * {outputs} + j];",
    ]


def activation_line(name: str, activation: str, count: int, x: str) -> str:
    """The activation of `count` numbers in place."""
    value = f"{name}_tanh({x}[i])" if activation == "tanh" else f"{x}[i] > 0 ? {x}[i] : 0"
    return f"for (int i = 0; i < {count}; i++) {x}[i] = {value};"


def tanh_function(name: str) -> str:
    """The function with which the agent learned: a ratio of polynomials, of which compilers make vectors."""

    def polynomial(coefficients: Sequence[float]) -> str:
        text = as_number(coefficients[0])
        for coefficient in coefficients[1:]:
            text = f"({text} * s + {as_number(coefficient)})"
        return text

    limit = as_number(TANH_LIMIT)
    return f"""static inline float {name}_tanh(float x) {{
    x = x < -{limit} ? -{limit} : x > {limit} ? {limit} : x;
    const float s = x * x;
    return x * {polynomial(TANH_TOP)}
        / {polynomial(TANH_BOTTOM)};
}}
"""


def as_array(name: str, kind: str, values: np.ndarray) -> str:
    flat = [as_number(value, kind) for value in np.asarray(values).ravel()]
    rows = ",\n    ".join(", ".join(flat[i : i + 10]) for i in range(0, len(flat), 10))
    return f"static const {kind} {name}[{len(flat)}] = {{\n    {rows}}};\n"


def as_number(value: float, kind: str = "float") -> str:
    """A literal that reads back as the same number."""
    if not np.isfinite(value):
        return f"{'-' if value < 0 else ''}INFINITY"
    text = f"{value:.9g}" if kind == "float" else f"{value:.17g}"
    text = text if "." in text or "e" in text else f"{text}.0"
    return f"{text}f" if kind == "float" else text
