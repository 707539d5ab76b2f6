"""Products of long rows in several layers, whose sums a kernel adds and requantises (docs/network.md, "Kernels").

A job needs whole rows of both operands. If 16 rows of pixels and twice 16 rows of weights do not fit shared memory, the
array waits for data. Parts of the rows do not, and sums of 32 bits are exact in any order.
"""

from dataclasses import replace
from math import ceil

import numpy as np

from tilewright.sim.kernels.text import kernel_words

from ..arithmetic import limits
from .kernels import Blocks, Chunks, Constant, Kernel, Operand, Result, UnfitError, engine_of, fitting, float_bits
from .layers import Layer
from .operators import OPERATORS
from .places import BLOCK, cut_place

__all__ = ["parts_of_product"]

#: Rows of pixels, and of weights of each of two units, with which the array is busy.
_ROWS, _UNITS = 16, 2
#: Bytes of a part of a row: preferably at most, and a multiple of.
_LONGEST, _UNIT = 1024, 64
#: Output channels of a layer.
_CHANNELS = 384
_FEWEST_ROWS = 32
#: Sums of more parts need more arguments than a kernel has.
_MOST_PARTS = 3
#: A result times this is far from 2^31.
_LARGEST_SCALE = 0.5
_COLUMNS, _REGISTERS = 16, 128
#: Columns that the kernel does at once: buffers are small, and jobs run beside it.
_GROUP = 64


def parts_of_product(tensors, node, place, output, pe, room):
    """The layers of a product in parts, a list; none if it is better whole.

    Parameters
    ----------
    tensors : Tensors
    node : Node
        A Conv with ``matrix``.
    place, output : Place
        With a pixel for each row.
    pe : PeSizes or None
    room : int
        Bytes of shared memory.
    """
    at, depth = node.attributes, node.attributes.weight.shape[1]
    count = min(ceil(depth / _LONGEST), _MOST_PARTS)
    short = _ROWS * (1 + _UNITS) * depth <= room or place.width > 1 or place.height < _FEWEST_ROWS or depth % BLOCK
    if short or at.scale is None or at.groups > 1 or np.max(at.scale) > _LARGEST_SCALE:
        return []
    try:
        _kernel(at, count, output.dtype, pe)
    except UnfitError:
        return []
    size, layers = ceil(depth / count / _UNIT) * _UNIT, []
    for first in range(0, output.channels, _CHANNELS):
        some = _some_channels(at, first)
        products = [
            _part(tensors, replace(node, attributes=some), place, start, size) for start in range(0, depth, size)
        ]
        kernel = _kernel(some, count, output.dtype, pe)
        kernel = replace(kernel, rows=place.height, origins=(*((0, 0) for _ in products), (0, first)))
        sources = tuple(layer.output for layer in products)
        layers += [*products, Layer(node.name, node.operator or node.kind, output, sources, kernel=kernel)]
    return layers


def _some_channels(at, first):
    """A Conv of some output channels from ``first`` on."""
    some, count = slice(first, first + _CHANNELS), len(at.weight)
    arrays = {name: np.broadcast_to(getattr(at, name), count)[some] for name in ("w_zero", "bias", "scale")}
    return replace(at, weight=at.weight[some], **arrays)


def _part(tensors, node, place, first, size):
    """The layer of sums of the elements of each row from ``first`` on, ``size`` or fewer."""
    at = node.attributes
    weight = at.weight[:, first : first + size]
    sums = replace(tensors.between(node, "sums", (place.height, len(weight)), "int32"), batch=1, height=place.height)
    part = replace(at, weight=weight, scale=None, bias=0 * at.bias if first else at.bias)
    cut = cut_place(place, (first, weight.shape[1]), (0, 1))
    return OPERATORS["Conv"](replace(node, attributes=part), sums, (cut,))


def _kernel(at, count, dtype, pe):
    """The :class:`Kernel` that adds ``count`` tensors of sums and requantises them."""
    threads, columns = engine_of(pe).threads, len(at.weight)
    if pe.regs < _REGISTERS:
        raise UnfitError(f"the kernel needs {_REGISTERS} registers")
    scales = np.broadcast_to(at.scale, columns).astype(np.float32)
    uniform = bool((scales == scales[0]).all())
    group = min(columns, _GROUP)
    operands = (Operand(source, "int32") for source in range(count))
    scaled = () if uniform else (Constant(0, by_column=True),)
    for chunks in (2, 1):
        code = tuple(kernel_words(_text(at, count, dtype, uniform, chunks), {}))
        if len(code) <= pe.kernel_words:
            break
    arguments = (*operands, Result(dtype), Blocks(threads), threads, Chunks(chunks * _COLUMNS), *scaled)
    constants = () if uniform else (scales.view(np.uint32),)
    loaded, rounds = count + (not uniform), ceil(group / _COLUMNS)
    cycles, registers = 115 + (30 * loaded + 70) * rounds, (16 * loaded + 4) * rounds
    elements = (*(4 for _ in range(count)), 1)
    kernel = Kernel("requantise", code, (), constants, arguments, columns, elements, threads, cycles, group, registers)
    return fitting(kernel, pe)


def _text(at, count, dtype, uniform, chunks):
    """The text of the kernel: each thread takes 16 columns at a time, and loads the next ones meanwhile.

    A round is ``chunks`` times 16 columns, because their number is in a register: after it has changed, all threads'
    numbers are read again for each load and store.
    """
    result, blocks, threads, rounds, scales = (f"ur{count + number}" for number in range(5))
    columns, spots = range(_COLUMNS), [16, 32, 96][:count]
    scale = float_bits(np.float32(np.reshape(at.scale, -1)[0])) if uniform else None

    def loads(offset):
        """The next sums."""
        return [f"ld r{spot}, ur{source}:rf0:{offset}, {_COLUMNS}" for source, spot in enumerate(spots)]

    def of_scales(offset):
        return [] if uniform else [f"ld r64, {scales}:rf0:{offset}, {_COLUMNS}"]

    def all_columns(instruction):
        return [instruction(48 + n, n) for n in columns]

    u, (low, high) = "u" if dtype == "uint8" else "", limits(dtype)
    sums = [f"add r{48 + n}, r{spots[0] + n}, r{spots[1] + n}" for n in columns]
    for spot in spots[2:]:
        sums += [f"add r{48 + n}, r{48 + n}, r{spot + n}" for n in columns]
    steps = [
        all_columns(lambda r, n: f"fs r{r}, r{r}"),
        all_columns(lambda r, n: f"fmul r{r}, r{r}, {scale if uniform else f'r{64 + n}'}"),
        all_columns(lambda r, n: f"sf r{r}, r{r}"),
        all_columns(lambda r, n: f"add r{r}, r{r}, {at.y_zero}") if at.y_zero else [],
        all_columns(lambda r, n: f"max r{r}, r{r}, {at.minimum}") if at.minimum > low else [],
        all_columns(lambda r, n: f"min r{r}, r{r}, {at.maximum}") if at.maximum < high else [],
        [f"packb{u}.0 r{80 + n}, r{48 + 4 * n}, r{49 + 4 * n}, r2" for n in range(4)],
        [f"packb{u}.1 r{80 + n}, r{50 + 4 * n}, r{51 + 4 * n}, r{80 + n}" for n in range(4)],
    ]
    lines = ["mov r1, tid", "mov r2, 0", f"loop {blocks}", "mov r0, 0", *loads(0), *of_scales(0), f"loop {rounds}"]
    for first in range(0, chunks * _COLUMNS, _COLUMNS):
        # A load before each step: while it is issued, the step is executed. Scales are free after the second step.
        following = [*loads(first + _COLUMNS), *of_scales(first + _COLUMNS)]
        lines += sums
        for step in filter(None, steps):
            lines += [*following[:1], *step]
            following = following[1:]
        lines += [*following, f"st r80, {result}:rf0:{first}, 4"]
    return "\n".join([*lines, f"add r0, r0, {chunks * _COLUMNS}", "end", f"add r1, r1, {threads}", "end", "return"])
