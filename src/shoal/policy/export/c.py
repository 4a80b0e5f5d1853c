"""A policy as one C header: constants, and a function from an observation to an action. Needs nothing but math.h."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from shoal.agents.frozen import FrozenPolicy
from shoal.jit.simd import TANH_BOTTOM, TANH_LIMIT, TANH_TOP
from shoal.policy.export.opened import Exportable

_GRU = """
for (int i = 0; i < SIZE; i++) {
    const float r = 1.0f / (1.0f + expf(-(in[i] + old[i])));
    const float z = 1.0f / (1.0f + expf(-(in[SIZE + i] + old[SIZE + i])));
    TARGET[i] = (1.0f - z) * NAME_tanh(in[2 * SIZE + i] + r * old[2 * SIZE + i]) + z * state[i];
}
for (int i = 0; i < SIZE; i++) state[i] = TARGET[i];
"""
_LSTM = """
for (int i = 0; i < SIZE; i++) {
    const float enter = 1.0f / (1.0f + expf(-(in[i] + old[i])));
    const float forget = 1.0f / (1.0f + expf(-(in[SIZE + i] + old[SIZE + i])));
    const float leave = 1.0f / (1.0f + expf(-(in[3 * SIZE + i] + old[3 * SIZE + i])));
    state[SIZE + i] = forget * state[SIZE + i] + enter * NAME_tanh(in[2 * SIZE + i] + old[2 * SIZE + i]);
    TARGET[i] = leave * NAME_tanh(state[SIZE + i]);
}
for (int i = 0; i < SIZE; i++) state[i] = TARGET[i];
"""


def write(opened: Exportable, path: Path) -> list[Path]:
    """Write the header; its names begin with that of the file."""
    path.write_text(header(opened.layers("c"), opened.about, re.sub(r"\W", "_", path.stem)))
    return [path]


def header(layers: FrozenPolicy, about: str, name: str) -> str:
    """The text of the header. obs is the flattened observation: Dicts in order of their keys, choices one-hot."""
    body = _Body(layers, name)
    number = "double" if np.asarray(layers.mean).dtype == np.float64 else "float"
    kind, width = body.action
    sizes = {"OBS": layers.num_features, "ACTION": width, "STATE": layers.state_size, "CHOICES": body.num_outputs}
    defines = "\n".join(f"#define {name.upper()}_{what} {size}" for what, size in sizes.items())
    return f"""/* A policy written by `shoal export`: {about}.

   {name}_act(obs, mask, state, action): obs [{name.upper()}_OBS] flat (dicts in order of their keys, choices one-hot),
   mask [{name.upper()}_CHOICES] with 0 where a choice is forbidden, or NULL; state [{name.upper()}_STATE], zeros at the
   beginning of an episode, or NULL without memory; action [{name.upper()}_ACTION]. */
#ifndef {name.upper()}_H
#define {name.upper()}_H
#include <math.h>
#include <stddef.h>

{defines}

{body.constants(number)}
{_tanh(name)}
static inline void {name}_act(const float *obs, const unsigned char *mask, float *state, {kind} *action) {{
{body.text(number)}
}}
#endif
"""


class _Body:
    """The lines of the function. Buffers `a` and `b` change places after every layer."""

    def __init__(self, layers: FrozenPolicy, name: str) -> None:
        self.layers, self.name = layers, name
        self.num_outputs = layers.num_actions or layers.layers[-1][0].shape[1]
        choice = layers.head in ("choice", "choices") and layers.table is None
        self.action = ("int" if choice else "float", 1 if layers.head == "choice" and choice else layers.action_width)

    def constants(self, number: str) -> str:
        layers, name = self.layers, self.name
        arrays: dict[str, tuple[str, np.ndarray]] = {}
        if self._normalises:
            for which in ("mean", "scale"):
                arrays[which] = number, np.broadcast_to(getattr(layers, which), (layers.num_features,))
        for i, (weight, bias) in enumerate(layers.layers):
            arrays |= {f"weight_{i}": ("float", weight), f"bias_{i}": ("float", bias)}
        if layers.cell is not None:
            for part, (weight, bias) in zip(("cell", "cell_state"), layers.cell, strict=True):
                arrays |= {f"{part}_weight": ("float", weight), f"{part}_bias": ("float", bias)}
        if layers.table is not None:
            arrays["table"] = "float", layers.table
        elif self.action[0] == "float":
            for which in ("low", "high"):
                arrays[which] = "float", np.broadcast_to(getattr(layers, which), (self.action[1],))
        return "".join(_array(f"{name}_{what}", *array) for what, array in arrays.items())

    @property
    def _normalises(self) -> bool:
        return bool(np.any(self.layers.mean != 0.0) or np.any(self.layers.scale != 1.0))

    def text(self, number: str) -> str:
        layers = self.layers
        widest = max(max(weight.shape) for weight, _ in layers.layers)
        lines = [f"float a[{widest}], b[{widest}];", *(["(void)state;"] if layers.cell is None else self._gates())]
        lines += self._read(number)
        source, target = "a", "b"
        for i, (weight, _) in enumerate(layers.layers):
            last = i == len(layers.layers) - 1
            if last and layers.cell is not None:
                lines += self._cell(source, target)
                source, target = target, source
            inputs, outputs = weight.shape
            lines += self._layer(source, inputs, f"weight_{i}", f"bias_{i}", outputs, target)
            if not last:
                value = f"{self.name}_tanh({{0}}[i])" if layers.activation == "tanh" else "{0}[i] > 0 ? {0}[i] : 0"
                lines.append(f"for (int i = 0; i < {outputs}; i++) {target}[i] = {value.format(target)};")
            source, target = target, source
        return "\n".join(f"    {line}" for line in [*lines, *self._head(source)])

    def _layer(self, source: str, inputs: int, weight: str, bias: str, outputs: int, target: str) -> list[str]:
        """Written out with its sizes, so that compilers make vectors of it."""
        name = self.name
        return [
            f"for (int j = 0; j < {outputs}; j++) {target}[j] = {name}_{bias}[j];",
            f"for (int i = 0; i < {inputs}; i++)",
            f"    for (int j = 0; j < {outputs}; j++) {target}[j] += {source}[i] * {name}_{weight}[i * {outputs} + j];",
        ]

    def _read(self, number: str) -> list[str]:
        name, width = self.name, self.layers.num_features
        value = "obs[i]"
        if self._normalises:
            value = f"(float)((obs[i] - ({number}){name}_mean[i]) * {name}_scale[i])"
        lines = [f"for (int i = 0; i < {width}; i++) a[i] = {value};"]
        if self.layers.clip is not None:
            clip = _number(self.layers.clip)
            lines.append(f"for (int i = 0; i < {width}; i++) a[i] = fminf(fmaxf(a[i], -{clip}), {clip});")
        return lines

    def _gates(self) -> list[str]:
        assert self.layers.cell is not None
        gates = self.layers.cell[0][0].shape[1]
        return [f"float in[{gates}], old[{gates}];"]

    def _cell(self, source: str, target: str) -> list[str]:
        """From `source` to `target`; the state is moved on."""
        assert self.layers.cell is not None
        (weight, _), (state_weight, _) = self.layers.cell
        size, gates = state_weight.shape
        template = _GRU if self.layers.memory == "gru" else _LSTM
        return [
            *self._layer(source, weight.shape[0], "cell_weight", "cell_bias", gates, "in"),
            *self._layer("state", size, "cell_state_weight", "cell_state_bias", gates, "old"),
            *template.replace("SIZE", str(size))
            .replace("TARGET", target)
            .replace("NAME", self.name)
            .strip()
            .splitlines(),
        ]

    def _head(self, x: str) -> list[str]:
        layers, name, width = self.layers, self.name, self.action[1]
        if layers.head in ("choice", "choices"):
            sizes = list(layers.nvec) or [self.num_outputs]
            starts = np.broadcast_to(np.asarray(layers.start), (len(sizes),)).tolist()
            lines, first = [], 0
            for group, (size, start) in enumerate(zip(sizes, starts, strict=True)):
                lines += [
                    f"int best{group} = -1;",
                    f"for (int i = {first}; i < {first + size}; i++)",
                    f"    if ((!mask || mask[i]) && (best{group} < 0 || {x}[i] > {x}[best{group}])) best{group} = i;",
                    f"if (best{group} < 0) best{group} = {first};",
                ]
                if layers.table is None:
                    lines.append(f"action[{group}] = best{group} - {first} + {start};")
                first += size
            if layers.table is not None:
                lines.append(
                    f"for (int i = 0; i < {width}; i++) action[i] = {name}_table[(size_t)best0 * {width} + i];"
                )
            return lines
        value = f"{x}[i]"
        if layers.head == "tanh":
            value = f"({name}_high[i] + {name}_low[i]) / 2 + ({name}_high[i] - {name}_low[i]) / 2 * {name}_tanh({x}[i])"
        return [
            "(void)mask;",
            f"for (int i = 0; i < {width}; i++) {{",
            f"    const float value = {value};",
            f"    action[i] = fminf(fmaxf(value, {name}_low[i]), {name}_high[i]);",
            "}",
        ]


def _tanh(name: str) -> str:
    """The function with which the agent learned: a ratio of polynomials, of which compilers make vectors."""

    def polynomial(coefficients: Sequence[float]) -> str:
        text = _number(coefficients[0])
        for coefficient in coefficients[1:]:
            text = f"({text} * s + {_number(coefficient)})"
        return text

    limit = _number(TANH_LIMIT)
    return f"""static inline float {name}_tanh(float x) {{
    x = x < -{limit} ? -{limit} : x > {limit} ? {limit} : x;
    const float s = x * x;
    return x * {polynomial(TANH_TOP)}
        / {polynomial(TANH_BOTTOM)};
}}
"""


def _array(name: str, kind: str, values: np.ndarray) -> str:
    flat = [_number(value, kind) for value in np.asarray(values).ravel()]
    rows = ",\n    ".join(", ".join(flat[i : i + 10]) for i in range(0, len(flat), 10))
    return f"static const {kind} {name}[{len(flat)}] = {{\n    {rows}}};\n"


def _number(value: float, kind: str = "float") -> str:
    """A literal that reads back as the same number."""
    if not np.isfinite(value):
        return f"{'-' if value < 0 else ''}INFINITY"
    text = f"{value:.9g}" if kind == "float" else f"{value:.17g}"
    text = text if "." in text or "e" in text else f"{text}.0"
    return f"{text}f" if kind == "float" else text
