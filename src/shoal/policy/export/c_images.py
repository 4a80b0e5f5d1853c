"""What a C header has for images: convolutions over [height, width, channels], in memory that the caller brings."""

from __future__ import annotations

import math

import numpy as np

from shoal.agents.eyes import Eye
from shoal.agents.frozen import FrozenPolicy
from shoal.policy.export.c_lines import activation_line, as_array, as_number, layer_lines

_FUNCTIONS = """
static inline void NAME_conv(const float *in, int height, int width, int inputs, const float *weight, const float *bias,
    int outputs, int side, int stride, int padding, float *out) {
    const int rows = (height + 2 * padding - side) / stride + 1, columns = (width + 2 * padding - side) / stride + 1;
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++, out += outputs) {
            for (int o = 0; o < outputs; o++) out[o] = bias[o];
            for (int dy = 0; dy < side; dy++)
                for (int dx = 0; dx < side; dx++) {
                    const int v = y * stride + dy - padding, u = x * stride + dx - padding;
                    if (v < 0 || v >= height || u < 0 || u >= width) continue;
                    const float *pixel = in + (v * width + u) * inputs;
                    const float *row = weight + (dy * side + dx) * inputs * outputs;
                    for (int i = 0; i < inputs; i++, row += outputs)
                        for (int o = 0; o < outputs; o++) out[o] += pixel[i] * row[o];
                }
        }
}

static inline void NAME_pool(const float *in, int height, int width, int channels, float *out) {
    for (int y = 0; y < (height + 1) / 2; y++)
        for (int x = 0; x < (width + 1) / 2; x++, out += channels)
            for (int c = 0; c < channels; c++) {
                float best = -INFINITY;
                for (int v = 2 * y - 1; v <= 2 * y + 1; v++)
                    for (int u = 2 * x - 1; u <= 2 * x + 1; u++)
                        if (v >= 0 && v < height && u >= 0 && u < width) {
                            const float pixel = in[(v * width + u) * channels + c];
                            best = pixel > best ? pixel : best;
                        }
                out[c] = best;
            }
}
"""


class Looking:
    """The lines that make features of an observation with images; `p`, `q` and `kept` are parts of `work`."""

    def __init__(self, layers: FrozenPolicy, name: str) -> None:
        self.layers, self.name = layers, name
        self.functions = _FUNCTIONS.replace("NAME", name)
        beside = layers.num_features - sum(eye.pixels for eye in layers.eyes)
        sizes = [beside, *(bias.size for _, bias in layers.numbers)]
        self._room = max([*sizes, *(math.prod(shape) for eye in layers.eyes for shape in _shapes(eye))])

    @property
    def work(self) -> int:
        """Floats that the caller has to bring."""
        return self._room * (3 if any(["keep"] in eye.steps for eye in self.layers.eyes) else 2)

    def constants(self) -> str:
        arrays: dict[str, np.ndarray] = {}
        for i, eye in enumerate(self.layers.eyes):
            arrays |= {f"eye_{i}_{name}": array for name, array in eye.tensors().items()}
        for i, (weight, bias) in enumerate(self.layers.numbers):
            arrays |= {f"numbers_{i}_weight": weight, f"numbers_{i}_bias": bias}
        return "".join(as_array(f"{self.name}_{name}", "float", array) for name, array in arrays.items())

    def lines(self, features: str) -> list[str]:
        """From `obs` to the array `features`: images in order, then the other numbers."""
        lines = [f"float *p = work, *q = work + {self._room};"]
        if self.work > 2 * self._room:
            lines.append(f"float *kept = work + {2 * self._room};")
        first = 0
        for i, eye in enumerate(self.layers.eyes):
            lines += self._eye(i, eye, f"({features} + {first})")
            first += eye.size
        return [*lines, *self._numbers(f"({features} + {first})")]

    def _eye(self, number: int, eye: Eye, target: str) -> list[str]:
        name, x, y = f"eye_{number}", "p", "q"
        lines = self._pixels(eye)
        shapes, convs = iter(_shapes(eye)), iter(eye.convs)
        height, width, channels = next(shapes)
        conv = 0
        for step in eye.steps:
            size = height * width * channels
            if step[0] == "conv":
                weight, bias = next(convs)
                lines.append(
                    f"{self.name}_conv({x}, {height}, {width}, {channels}, {self.name}_{name}_conv_{conv}_weight, "
                    f"{self.name}_{name}_conv_{conv}_bias, {bias.size}, {len(weight)}, {step[1]}, {step[2]}, {y});"
                )
                conv += 1
            elif step[0] == "pool":
                lines.append(f"{self.name}_pool({x}, {height}, {width}, {channels}, {y});")
            elif step[0] == "relu":
                lines.append(activation_line(self.name, "relu", size, x))
            elif step[0] == "keep":
                lines.append(f"for (int i = 0; i < {size}; i++) kept[i] = {x}[i];")
            else:
                lines.append(f"for (int i = 0; i < {size}; i++) {x}[i] += kept[i];")
            if step[0] in ("conv", "pool"):
                x, y = y, x
            height, width, channels = next(shapes)
        inputs = height * width * channels
        lines += layer_lines(self.name, x, inputs, f"{name}_weight", f"{name}_bias", eye.size, target)
        return [*lines, activation_line(self.name, "relu", eye.size, target)]

    def _pixels(self, eye: Eye) -> list[str]:
        """The image as [height, width, channels], whatever the order of its axes in the observation."""
        _, width, channels = eye.sides
        strides = dict(zip(eye.order[-2:], (width * channels, channels), strict=True))
        planes = 1
        for axis in reversed(eye.order[:-2]):
            strides[axis] = planes
            planes *= eye.shape[axis]
        index, at, lines = str(eye.start), "0", []
        for axis, side in enumerate(eye.shape):
            lines.append(f"{'    ' * axis}for (int i{axis} = 0; i{axis} < {side}; i{axis}++)")
            index += f" + i{axis} * {math.prod(eye.shape[axis + 1 :])}"
            at += f" + i{axis} * {strides[axis]}"
        value = f"{self.name}_read(obs, {index})" + (f" - {as_number(eye.low)}" if eye.low else "")
        return [*lines, f"{'    ' * len(eye.shape)}p[{at}] = {value};"]

    def _numbers(self, target: str) -> list[str]:
        """Numbers beside the images through their layers."""
        lines, column, count = [], 0, 0
        layers = self.layers.numbers
        into = "p" if layers else target
        ranges = [(eye.start, eye.start + eye.pixels) for eye in self.layers.eyes]
        for begin, end in [*ranges, (self.layers.num_features, 0)]:
            if begin > column:
                value = f"{self.name}_read(obs, {column} + i)"
                lines.append(f"for (int i = 0; i < {begin - column}; i++) {into}[{count} + i] = {value};")
                count += begin - column
            column = end
        x, y = "p", "q"
        for i, (weight, _) in enumerate(layers):
            inputs, outputs = weight.shape
            y = target if i == len(layers) - 1 else y
            lines += layer_lines(self.name, x, inputs, f"numbers_{i}_weight", f"numbers_{i}_bias", outputs, y)
            lines.append(activation_line(self.name, self.layers.activation, outputs, y))
            x, y = y, x
        return lines


def _shapes(eye: Eye) -> list[tuple[int, int, int]]:
    """Height, width and channels of the image, and after every step."""
    return [eye.through(count) for count in range(len(eye.steps) + 1)]
