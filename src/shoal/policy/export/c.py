"""A policy as one C header: constants, and a function from an observation to an action. Needs nothing but math.h."""

from __future__ import annotations

import re
from pathlib import Path

import gymnasium as gym
import numpy as np

from shoal.agents.frozen import FrozenPolicy
from shoal.policy.export.c_images import Looking
from shoal.policy.export.c_lines import activation_line, as_array, as_number, layer_lines, tanh_function
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
    of_bytes = gym.spaces.flatten_space(opened.observation_space).dtype == np.uint8
    path.write_text(header(opened.layers("c"), opened.about, re.sub(r"\W|^(?=\d)", "_", path.stem), of_bytes))
    return [path]


def header(layers: FrozenPolicy, about: str, name: str, of_bytes: bool) -> str:
    """The text of the header. obs is the flattened observation, `of_bytes` if all of it is."""
    body = _Body(layers, name)
    obs = "unsigned char" if of_bytes else "float"
    kind, width = body.action
    sizes = {"OBS": layers.num_features, "ACTION": width, "STATE": layers.state_size, "CHOICES": body.num_outputs}
    looking = Looking(layers, name) if layers.eyes else None
    if looking is not None:
        sizes["WORK"] = looking.work
    work = "" if looking is None else ", float *work"
    work_note = work and f"\n   work [{name.upper()}_WORK]: room to calculate in"
    defines = "\n".join(f"#define {name.upper()}_{what} {size}" for what, size in sizes.items())
    return f"""/* A policy written by `shoal export`: {about}.

   {name}_act(obs, mask, state, action{work and ", work"})
   obs [{name.upper()}_OBS]: one flat row, dicts in order of their keys, choices one-hot, images as they are
   mask [{name.upper()}_CHOICES]: 0 where a choice is forbidden, or NULL
   state [{name.upper()}_STATE]: zeros at the beginning of an episode, or NULL without memory
   action [{name.upper()}_ACTION]{work_note} */
#ifndef {name.upper()}_H
#define {name.upper()}_H
#include <math.h>
#include <stddef.h>

{defines}

{body.constants()}{"" if looking is None else looking.constants()}
{tanh_function(name)}
{body.reader(obs)}
{"" if looking is None else looking.functions}
static inline void {name}_act(
    const {obs} *obs, const unsigned char *mask, float *state, {kind} *action{work}) {{
{body.text(looking)}
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

    def constants(self) -> str:
        layers, name, number = self.layers, self.name, self._number
        arrays: dict[str, tuple[str, np.ndarray]] = {}
        if self._normalises:
            for which in ("mean", "scale"):
                arrays[which] = number, np.broadcast_to(getattr(layers, which), (layers.num_features,))
        if isinstance(layers.clip, np.ndarray):
            arrays["clip"] = "float", layers.clip
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
        return "".join(as_array(f"{name}_{what}", *array) for what, array in arrays.items())

    @property
    def _number(self) -> str:
        """Statistics may need all their digits."""
        return "double" if np.asarray(self.layers.mean).dtype == np.float64 else "float"

    @property
    def _normalises(self) -> bool:
        return bool(np.any(self.layers.mean != 0.0) or np.any(self.layers.scale != 1.0))

    def text(self, looking: Looking | None) -> str:
        layers, name = self.layers, self.name
        widest = max(max(weight.shape) for weight, _ in (*layers.layers, *(layers.cell or ())))
        lines = [f"float a[{widest}], b[{widest}];", *(["(void)state;"] if layers.cell is None else self._gates())]
        if looking is None:
            lines.append(f"for (int i = 0; i < {layers.num_features}; i++) a[i] = {name}_read(obs, i);")
        else:
            lines += looking.lines("a")
        source, target = "a", "b"
        for i, (weight, _) in enumerate(layers.layers):
            last = i == len(layers.layers) - 1
            if last and layers.cell is not None:
                lines += self._cell(source, target)
                source, target = target, source
            inputs, outputs = weight.shape
            lines += layer_lines(name, source, inputs, f"weight_{i}", f"bias_{i}", outputs, target)
            if not last:
                lines.append(activation_line(name, layers.activation, outputs, target))
            source, target = target, source
        return "\n".join(f"    {line}" for line in [*lines, *self._head(source)])

    def reader(self, obs: str) -> str:
        """The function that reads one number of the observation."""
        name, value = self.name, "x"
        if self._normalises:
            value = f"(float)((x - ({self._number}){name}_mean[i]) * {name}_scale[i])"
        if self.layers.clip is not None:
            clip = f"{name}_clip[i]" if isinstance(self.layers.clip, np.ndarray) else as_number(self.layers.clip)
            value = f"fminf(fmaxf({value}, -{clip}), {clip})"
        return f"""static inline float {name}_read(const {obs} *obs, int i) {{
    const float x = obs[i];
    return {value};
}}
"""

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
            *layer_lines(self.name, source, weight.shape[0], "cell_weight", "cell_bias", gates, "in"),
            *layer_lines(self.name, "state", size, "cell_state_weight", "cell_state_bias", gates, "old"),
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
