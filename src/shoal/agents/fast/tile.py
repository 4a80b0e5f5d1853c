"""The standard actor-critic over a tile of rows: forward, and backward by hand.

A tile is TILE rows that stay in cache from the first layer to the last gradient. Activations are row-major; actor and
critic lie side by side in one row of `2 * width` floats, the critic from column `width`. Outputs of the policy are
[outputs, TILE], so that losses run over rows in vectors. Matrices are handed around as addresses (see `simd`); all
scratch space of a thread is one array, `work`, in which `Tile` says what lies where.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.jit import LEAN, inner
from shoal.jit.simd import COLUMNS, FAST, ROWS, dot_block, product_block

TILE = 128
FEW_OUTPUTS = 8  # up to this many, dot products beat a padded matrix product

_tanh_block = product_block(ROWS, "bias", "tanh")
_relu_block = product_block(ROWS, "bias", "relu")
_tanh_slope_block = product_block(ROWS, "zero", "times tanh'")
_relu_slope_block = product_block(ROWS, "zero", "times relu'")
_bias_block = product_block(ROWS, "bias", "as it is")
_adding_block = product_block(ROWS, "C", "as it is")
_adding_row = product_block(1, "C", "as it is")

FLOAT = 4  # bytes
# strides of matrices; a function that is called with a plain 1 would be compiled by itself for it
_NONE, _ONE, _TILE = np.int64(0), np.int64(1), np.int64(TILE)
INPUTS, OUTPUTS, WEIGHT_AT, BIAS_AT = range(4)  # columns of `Layout.layers`


class Layout(NamedTuple):
    """Where the numbers of a network lie in its flat parameter vector."""

    inputs: int  # D
    input_row: int  # D and a column of ones, in whole blocks
    outputs: int  # P, of the policy's last layer
    output_row: int  # P in whole blocks
    width: int  # of the widest hidden layer
    relu: bool  # instead of tanh
    layers: np.ndarray  # [2, L + 1, 4] of actor and critic: inputs, outputs, offsets of weight [out, in] and bias


class Tile(NamedTuple):
    """Offsets in `work`, and its size."""

    inputs: int  # [TILE, input_row]: the rows, then a column of ones, then zeros
    hidden: int  # [L, TILE, 2 width]
    slope: int  # [2, TILE, 2 width] gradients of two successive layers
    row_outputs: int  # [TILE, output_row] of the policy, where P is large
    first_grad: int  # [input_row, 2 width] gradient of the first layer, transposed
    one: int  # [1] a one
    outputs: int  # [P, TILE] of the policy
    output_slope: int  # [P, TILE] gradient of the loss by them
    value: int  # [TILE]
    value_slope: int  # [TILE]
    spare: int  # [9, TILE]
    size: int


def in_blocks(count: int, block: int) -> int:
    """`count` rounded up to whole blocks."""
    return -(-count // block) * block


def plan_tile(layout: Layout) -> Tile:
    """What scratch space `layout` needs, and in which order it lies."""
    wide, num_hidden = 2 * layout.width, layout.layers.shape[1] - 1
    sizes = (
        TILE * layout.input_row,
        num_hidden * TILE * wide,
        2 * TILE * wide,
        TILE * layout.output_row,
        layout.input_row * wide,
        COLUMNS,
        layout.outputs * TILE,
        layout.outputs * TILE,
        TILE,
        TILE,
        9 * TILE,
    )
    return Tile(*np.cumsum([0, *sizes]).tolist())


def packed_size(layout: Layout) -> int:
    """Floats that `pack` writes."""
    hidden = layout.layers[0, :-1]
    return int((hidden[:, INPUTS] + 1).sum()) * 2 * layout.width + int(hidden[-1, OUTPUTS] + 1) * layout.output_row


@inner(**LEAN)
def address_of(array):
    """Where it begins, as a number that may be added to: Numba makes floats of unsigned and signed ones."""
    return np.int64(array.ctypes.data)


@inner(**LEAN)
def pack(flat, layout, packed):
    """Copy the weights into the order in which the forward pass reads them: layer by layer [in, 2 width], then a row of
    biases; last the policy's output layer [in, output_row] and its biases."""
    at, last = 0, layout.layers.shape[1] - 1
    for layer in range(last + 1):
        row = layout.output_row if layer == last else 2 * layout.width
        for net in range(1 if layer == last else 2):
            inputs, outputs, weight, bias = layout.layers[net, layer]
            left = at + net * layout.width
            for o in range(outputs):
                for i in range(inputs):
                    packed[left + i * row + o] = flat[weight + o * inputs + i]
                packed[left + inputs * row + o] = flat[bias + o]
        at += (layout.layers[0, layer, INPUTS] + 1) * row


@inner(**LEAN)
def _activate(relu, c, c_row, a, a_row, b, b_row, bias, rows, columns, inner):
    """C = activation(A B + bias), C [rows, columns]."""
    for column in range(0, columns, COLUMNS):
        for row in range(0, rows, ROWS):
            c_here, a_here = c + FLOAT * (row * c_row + column), a + FLOAT * row * a_row
            b_here, bias_here = b + FLOAT * column, bias + FLOAT * column
            if relu:
                _relu_block(c_here, c_row, a_here, a_row, 1, b_here, b_row, inner, bias_here)
            else:
                _tanh_block(c_here, c_row, a_here, a_row, 1, b_here, b_row, inner, bias_here)


@inner(**LEAN)
def _descend(relu, c, c_row, a, a_row, a_col, b, b_row, h, rows, columns, inner):
    """C = (A B) * activation'(H), all [rows, columns]; H is laid out like C."""
    for column in range(0, columns, COLUMNS):
        for row in range(0, rows, ROWS):
            here = FLOAT * (row * c_row + column)
            a_here, b_here = a + FLOAT * row * a_row, b + FLOAT * column
            if relu:
                _relu_slope_block(c + here, c_row, a_here, a_row, a_col, b_here, b_row, inner, h + here)
            else:
                _tanh_slope_block(c + here, c_row, a_here, a_row, a_col, b_here, b_row, inner, h + here)


@inner(**LEAN)
def _add_product(c, c_row, a, a_row, a_col, b, b_row, rows, columns, inner):
    """C += A B, C [rows, columns]."""
    whole = rows // ROWS * ROWS
    for column in range(0, columns, COLUMNS):
        b_here = b + FLOAT * column
        for row in range(0, whole, ROWS):
            c_here, a_here = c + FLOAT * (row * c_row + column), a + FLOAT * row * a_row
            _adding_block(c_here, c_row, a_here, a_row, a_col, b_here, b_row, inner, b)
        for row in range(whole, rows):
            c_here, a_here = c + FLOAT * (row * c_row + column), a + FLOAT * row * a_row
            _adding_row(c_here, c_row, a_here, a_row, a_col, b_here, b_row, inner, b)


@inner(**LEAN)
def forward(flat, packed, layout, work, tile, count):
    """Outputs and values of the first `count` rows of the inputs; keeps the activations for `backward`."""
    rows, wide, num_hidden = (count + ROWS - 1) // ROWS * ROWS, 2 * layout.width, layout.layers.shape[1] - 1
    base, weights = address_of(work), address_of(packed)
    hidden = base + FLOAT * tile.hidden
    for layer in range(num_hidden):
        for net in range(2):
            inputs, outputs, _, _ = layout.layers[net, layer]
            left = FLOAT * net * layout.width
            source = base + FLOAT * tile.inputs if layer == 0 else hidden - FLOAT * TILE * wide + left
            source_row = layout.input_row if layer == 0 else wide
            bias = weights + FLOAT * inputs * wide + left
            _activate(
                layout.relu, hidden + left, wide, source, source_row, weights + left, wide, bias, rows, outputs, inputs
            )
        weights += FLOAT * (layout.layers[0, layer, INPUTS] + 1) * wide
        hidden += FLOAT * TILE * wide
    _apply_heads(flat, weights, layout, work, tile, rows)


@inner(**LEAN)
def _apply_heads(flat, weights, layout, work, tile, rows):
    """Policy outputs [P, TILE] and values [TILE] from the last hidden layer; `weights` is the packed output layer."""
    wide, num_hidden = 2 * layout.width, layout.layers.shape[1] - 1
    base, parameters = address_of(work), address_of(flat)
    hidden = base + FLOAT * (tile.hidden + (num_hidden - 1) * TILE * wide)
    inner, _, weight, bias = layout.layers[1, -1]
    weight, bias = parameters + FLOAT * weight, parameters + FLOAT * bias
    _dot_rows(base + FLOAT * tile.value, hidden + FLOAT * layout.width, wide, weight, bias, rows, inner)
    inner, outputs, weight, bias = layout.layers[0, -1]
    if outputs <= FEW_OUTPUTS:
        for o in range(outputs):
            out = base + FLOAT * (tile.outputs + o * TILE)
            weight_here, bias_here = parameters + FLOAT * (weight + o * inner), parameters + FLOAT * (bias + o)
            _dot_rows(out, hidden, wide, weight_here, bias_here, rows, inner)
        return
    out_row = layout.output_row
    for column in range(0, out_row, COLUMNS):
        b, bias = weights + FLOAT * column, weights + FLOAT * (inner * out_row + column)
        for row in range(0, rows, ROWS):
            c = base + FLOAT * (tile.row_outputs + row * out_row + column)
            _bias_block(c, out_row, hidden + FLOAT * row * wide, wide, 1, b, out_row, inner, bias)
    for o in range(outputs):
        for row in range(rows):
            work[tile.outputs + o * TILE + row] = work[tile.row_outputs + row * out_row + o]


@inner(**LEAN)
def _dot_rows(out, hidden, hidden_row, weight, bias, rows, inner):
    """out[row] = hidden[row] . weight + bias, for [rows, inner] features."""
    for row in range(0, rows, ROWS):
        dot_block(out + FLOAT * row, hidden + FLOAT * row * hidden_row, hidden_row, weight, inner, bias)


@inner(**LEAN, fastmath=FAST)
def sum_of(numbers):
    """Their sum, in any order."""
    total = np.float32(0.0)
    for i in range(len(numbers)):
        total += numbers[i]
    return total


@inner(**LEAN)
def backward(flat, layout, work, tile, count, grad):
    """Add the gradient by all parameters to `grad`, given the slopes of outputs and value of `count` rows.

    Rows from `count` up to whole blocks must have slopes of zero. The first layer's gradient stays in the tile.
    """
    rows, wide, last = (count + ROWS - 1) // ROWS * ROWS, 2 * layout.width, layout.layers.shape[1] - 1
    base, parameters, gradient = address_of(work), address_of(flat), address_of(grad)
    plane = FLOAT * TILE * wide
    for net in range(2):
        left = FLOAT * net * layout.width
        # the slope of the layer at hand, first that of the head, which is [outputs, TILE]
        slope = base + FLOAT * (tile.output_slope if net == 0 else tile.value_slope)
        slope_row, slope_col = _ONE, _TILE
        for layer in range(last, 0, -1):
            inputs, outputs, weight_at, bias_at = layout.layers[net, layer]
            weight, below = parameters + FLOAT * weight_at, base + FLOAT * tile.hidden + (layer - 1) * plane + left
            _add_product(
                gradient + FLOAT * weight_at, inputs, slope, slope_col, slope_row, below, wide, outputs, inputs, rows
            )
            if layer == last:
                first = tile.output_slope if net == 0 else tile.value_slope
                for o in range(outputs):
                    grad[bias_at + o] += sum_of(work[first + o * TILE : first + o * TILE + rows])
            else:
                ones = base + FLOAT * tile.one
                _add_product(gradient + FLOAT * bias_at, _NONE, ones, _NONE, _NONE, slope, wide, _ONE, outputs, rows)
            target = base + FLOAT * tile.slope + (layer % 2) * plane + left
            _descend(
                layout.relu, target, wide, slope, slope_row, slope_col, weight, inputs, below, rows, inputs, outputs
            )
            slope, slope_row, slope_col = target, wide, _ONE
        # [in, out], since the inputs do not fill vectors; the column of ones makes the bias
        _add_product(
            base + FLOAT * tile.first_grad + left, wide, base + FLOAT * tile.inputs, _ONE, layout.input_row, slope,
            wide, layout.input_row, layout.layers[net, 0, OUTPUTS], rows,
        )  # fmt: skip


@inner(**LEAN)
def add_first_grad(layout, work, tile, grad):
    """Move what `backward` gathered for the first layer into `grad`, and clear it."""
    wide = 2 * layout.width
    for net in range(2):
        inputs, outputs, weight_at, bias_at = layout.layers[net, 0]
        left = tile.first_grad + net * layout.width
        for o in range(outputs):
            for i in range(inputs):
                grad[weight_at + o * inputs + i] += work[left + i * wide + o]
            grad[bias_at + o] += work[left + inputs * wide + o]
    work[tile.first_grad : tile.first_grad + layout.input_row * wide] = 0


@inner(**LEAN)
def load_inputs(layout, work, tile, features, index, start, count):
    """Rows `index[start : start + count]` of features [N, D] into the tile, with the column of ones."""
    work[tile.one] = 1
    for row in range(count):
        source, here = index[start + row], tile.inputs + row * layout.input_row
        for i in range(layout.inputs):
            work[here + i] = features[source, i]
        work[here + layout.inputs] = 1
    filled = (count + ROWS - 1) // ROWS * ROWS
    work[tile.inputs + count * layout.input_row : tile.inputs + filled * layout.input_row] = 0
