"""Kernels of the processing engine that make rows of a tensor (docs/network.md, "Kernels").

A kernel is data: its instructions, its constants, and what each of its arguments is. The texts are in ``sim/kernels``.
"""

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np

from tilewright.sim.kernels.text import kernel_text, kernel_words
from tilewright.spec.arithmetic import FUNCTIONS
from tilewright.spec.pe import INSTRUCTIONS, Operation

from ..arithmetic import limits
from .places import LINE

__all__ = [
    "Blocks", "Chunks", "Constant", "Kernel", "Operand", "Result", "Table", "UnfitError", "engine_of", "fitting",
    "float_bits", "normalisation_kernel", "softmax_kernel",
]  # fmt: skip


class Operand(NamedTuple):
    """An argument: rows of source ``source``, as a segment of ``element``."""

    source: int
    element: str


class Result(NamedTuple):
    """An argument: rows of the result, as a segment of ``element``, in the place of those of source 0."""

    element: str


class Constant(NamedTuple):
    """An argument: constant ``number`` of the kernel, as a segment of one dimension.

    ``by_column``: it has a number for each column, and those of the columns at hand are taken.
    """

    number: int
    by_column: bool = False


class Table(NamedTuple):
    """An argument: constant ``number`` of the kernel, as a segment of 256 × 256 bytes."""

    number: int


class Chunks(NamedTuple):
    """An argument: how many chunks of ``columns`` columns there are."""

    columns: int


class Blocks(NamedTuple):
    """An argument: how many blocks of ``rows`` rows there are."""

    rows: int


class UnfitError(ValueError):
    """The processing engine lacks what a kernel needs; one sentence."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel that computes rows of a tensor from the same rows of its sources, in the place of source 0.

    Attributes
    ----------
    name : str
        The file of its text.
    code : tuple of int
        Instructions.
    lookup : tuple of int
        Entries of the lookup memory, all of them; or none.
    constants : tuple of array
        Of 32-bit numbers.
    arguments : tuple
        What the uniform registers from 0 on hold: an :class:`Operand`, :class:`Result`, :class:`Constant`,
        :class:`Table`, :class:`Blocks` or an int.
    columns : int
        Elements of a row.
    elements : tuple of int
        Bytes of an element of each source, and of the result, which has no more than source 0.
    block_rows : int
        Rows that are computed at once.
    block_cycles : int
        Expected cycles of these rows of ``group`` columns.
    block_registers : int
        Registers that a thread loads and stores in these cycles.
    group : int
        Columns that are done at once; all if it is not given.
    rows : int
        Of the layer.
    origins : tuple of (int, int)
        The first row, and the first byte of a row, in each source and in the output.
    images : int
        Of a normalisation of channels: images of ``rows`` pixels.
    dtype : str
        Of kernels with steps of their own: the type of source 0.
    index : int
        Where its instructions begin in instruction memory.
    """

    name: str
    code: tuple
    lookup: tuple
    constants: tuple
    arguments: tuple
    columns: int
    elements: tuple
    block_rows: int
    block_cycles: int
    group: int = 0
    block_registers: int = 0
    rows: int = 0
    origins: tuple = ()
    images: int = 1
    dtype: str = ""
    index: int = 0

    def __post_init__(self):
        if not self.group:
            object.__setattr__(self, "group", self.columns)

    def cycles(self, rows):
        """Expected cycles of a call for some rows."""
        return _CALL_CYCLES + -(-rows // self.block_rows) * self.block_cycles

    def registers(self, rows):
        """Registers that a thread loads and stores in a call for some rows."""
        return -(-rows // self.block_rows) * self.block_registers


#: Cycles from the word of a call to the first instruction of a block, and from the last one to the end.
_CALL_CYCLES = 60
#: The fast kernels need at least this many columns, and this many registers in a thread.
_FAST_COLUMNS, _FAST_REGISTERS = 16, 97
#: Cycles of an element in a kernel that computes one at a time, for all threads.
_SLOW_SOFTMAX, _SLOW_NORMALISATION = 210, 240
#: Elements of a row whose squares, 255² at most, have a sum of 31 bits.
_LONGEST = (1 << 31) // 255**2
#: Numbers that a quotient of the short division has at most.
_QUOTIENTS = 1024


def softmax_kernel(node, width, x_dtype, y_dtype, pe):
    """The :class:`Kernel` of a ``Softmax`` of rows of ``width`` bytes on an engine; UnfitError if there is none."""
    threads = engine_of(pe).threads
    (x_least, _), (least, most) = limits(x_dtype), limits(y_dtype)
    if node.scale >= _QUOTIENTS:
        raise UnfitError(f"the scale of its result is below 1 / {_QUOTIENTS - 1}")
    # Entry k: a difference of k − 256 steps, and 0 of none.
    lookup = tuple(np.resize(np.roll(node.table, 1), pe.lookup_words).tolist())
    signed = {"u": "u" if x_dtype == "uint8" else ""}
    code, chunks = None, [-(-width // size) for size in (64, 32, 16)]
    if width >= _FAST_COLUMNS and pe.regs >= _FAST_REGISTERS and node.y_zero == least:
        code = _code("softmax_bytes", signed | {"signed": y_dtype == "int8", "share": str(node.scale)}, pe)
    if code:
        name, tail, registers = "softmax_bytes", chunks, 3 * 4 * chunks[2]
        cycles = 360 + 50 * chunks[0] + 102 * chunks[1] + 69 * chunks[2]
    else:
        name, tail, registers = "softmax_any", [], 4 * width
        numbers = {"share": node.scale, "zero": node.y_zero, "least": least, "most": most, "lowest": x_least}
        code = _code("softmax_any", {key: str(value) for key, value in numbers.items()}, pe)
        cycles = 100 + _SLOW_SOFTMAX * width
    arguments = (Operand(0, x_dtype), Result(x_dtype), Blocks(threads), threads, width, *tail)
    kernel = Kernel(name, code or (), lookup, (), arguments, width, (1, 1), threads, cycles, block_registers=registers)
    return fitting(kernel, pe)


def normalisation_kernel(node, width, x_dtype, y_dtype, pe):
    """The :class:`Kernel` of a ``Normalise`` of rows of ``width`` bytes on an engine; UnfitError if there is none."""
    threads = engine_of(pe).threads
    if width > _LONGEST:
        raise UnfitError(
            f"the sum of squares of {width} elements has more than 31 bits, as that of more than {_LONGEST}"
        )
    numbers = [-width * node.x_zero, -2 * node.x_zero, width * node.x_zero**2, float_bits(1 / np.float32(width)),
               float_bits(float(node.centred)), float_bits(node.epsilon), threads]  # fmt: skip
    words = np.array([number & 0xFFFFFFFF for number in numbers], np.uint32)
    constants = (node.gain.view(np.uint32), node.shift.view(np.uint32), words)
    common = (Operand(0, x_dtype), Result(x_dtype), Constant(0), Constant(1), Constant(2))
    lookup, code = (), None
    if pe.regs >= _FAST_REGISTERS and "lookup" in pe.units:
        variant = {"u": "u" if y_dtype == "uint8" else "", "x": "u" if x_dtype == "uint8" else "s"}
        code = _code("layer_norm", variant, pe)
    if code:
        name, arguments, rows = (
            "layer_norm",
            (*common, Blocks(2 * threads), -(-width // 32), -(-width // 16)),
            2 * threads,
        )
        table = np.arange(256, dtype=np.uint8).view(x_dtype).astype(np.float32) - np.float32(node.x_zero)
        lookup = tuple(np.resize(table.view(np.uint32), pe.lookup_words).tolist())
        cycles, registers = 455 + 58 * arguments[-2] + 200 * arguments[-1], 16 * arguments[-2] + 48 * arguments[-1]
    else:
        name, rows = "layer_norm_any", threads
        arguments = (*common, Blocks(rows), width)
        least, most = limits(y_dtype)
        variant = {"zero": str(node.x_zero), "least": str(least), "most": str(most)}
        code = _code("layer_norm_any", variant, pe)
        cycles, registers = 300 + _SLOW_NORMALISATION * width, 5 * width
    kernel = Kernel(name, code or (), lookup, constants, arguments, width, (1, 1), rows, cycles,
                    block_registers=registers)  # fmt: skip
    return fitting(kernel, pe)


def float_bits(number):
    """The 32 bits of the nearest binary32 number."""
    return int(np.float32(number).view(np.uint32))


def engine_of(pe):
    """The sizes of an engine that computes; UnfitError if there is none."""
    if pe is None or "alu" not in pe.units:
        raise UnfitError("it needs a processing engine with arithmetic")
    return pe


def _code(name, variant, pe):
    """The instructions of a kernel, a tuple; None if they do not fit instruction memory."""
    code = tuple(kernel_words(kernel_text(name), variant))
    return code if len(code) <= pe.kernel_words else None


def fitting(kernel, pe):
    """``kernel``; UnfitError if an engine cannot execute it."""
    if not 0 < len(kernel.code) <= pe.kernel_words:
        raise UnfitError(f"kernel {kernel.name} has more instructions than the {pe.kernel_words} of instruction memory")
    for word in kernel.code:
        fields = INSTRUCTIONS[Operation(word & 0xFF)].unpack(word)
        unit = FUNCTIONS[fields["function"]].unit if fields["opcode"] == Operation.ARITH else "alu"
        if unit not in pe.units:
            raise UnfitError(f"kernel {kernel.name} needs a processing engine with the unit {unit}")
    rows = {argument for argument in kernel.arguments if isinstance(argument, Operand | Result | Constant | Table)}
    if len(rows) > pe.segments:
        raise UnfitError(
            f"kernel {kernel.name} needs {len(rows)} segments, and the processing engine has {pe.segments}"
        )
    segments = kernel.elements[: -1 if kernel.elements[-1] == kernel.elements[0] else None]
    pages = sum(ceil(size * kernel.group / LINE) for size in segments)
    if pages > pe.pages:
        raise UnfitError(f"rows of {kernel.group} bytes are {pages} pages, and the processing engine has {pe.pages}")
    if kernel.lookup and "lookup" not in pe.units:
        raise UnfitError(f"kernel {kernel.name} needs a processing engine with the unit lookup")
    return kernel
