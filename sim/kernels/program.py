"""Programs that run one kernel: its text, its operands in shared memory, and the call."""

import numpy as np

from tilewright.golden.arguments import array, integer, listed, shown
from tilewright.golden.pe.checks import instruction_word
from tilewright.golden.pe.machine import Pe
from tilewright.golden.pe.placement import Placement
from tilewright.golden.pe.sizes import sizes_or_default
from tilewright.spec import Swizzle
from tilewright.spec.arithmetic import FUNCTIONS
from tilewright.spec.pe import INSTRUCTIONS, Operation, SegmentElement, Target

from ..session.products import PeProgram
from .text import kernel_text, kernel_words

__all__ = ["Flat", "KernelProgram", "Space", "float_bits", "threads_of", "two_dimensions"]

_ELEMENTS = {
    "int8": SegmentElement.S8, "uint8": SegmentElement.U8, "int16": SegmentElement.S16, "uint16": SegmentElement.U16,
    "int32": SegmentElement.S32, "uint32": SegmentElement.U32, "float16": SegmentElement.F16,
    "float32": SegmentElement.F32,
}  # fmt: skip
_ENTRIES = 4  # of the lookup memory in a word
_ENTRY_BITS = 32
_LINE = 128
_LONGEST_PAGE = 1 << 15


def float_bits(value):
    """The 32 bits of the nearest binary32 number."""
    return int(np.float32(value).view(np.uint32))


class KernelProgram:
    """A kernel with its operands in shared memory, its lookup memory, and one call.

    Parameters
    ----------
    name : str
        Of ``KERNELS``, or any with ``text``.
    arguments : list
        Values of the uniform registers from 0 on: integers, or operands: arrays with their contents, or
        :class:`Space` for results, or :class:`Flat`. An operand's argument is the number of its segment.
    result : int
        Which argument is the result.
    text : str, optional
        Of the kernel; by default that of the file of this name.
    lookup : array of 32-bit numbers, optional
        Entries of the lookup memory from 0 on; they are repeated up to the memory's size.
    variant : dict
        Variants of the kernel's text, as in :func:`kernel_words`.
    elements : int
        Elements of the result, for rates.
    sizes : PeParams or PeSizes, optional
    smem_bytes : int
        Bytes of shared memory.

    Raises
    ------
    ValueError
        If operands do not fit shared memory, or the engine lacks what the kernel needs.
    """

    def __init__(self, name, arguments, *, result, text=None, lookup=None, variant=None, elements=None, sizes=None,
                 smem_bytes=128 * 1024):  # fmt: skip
        self.name = name
        self.sizes = sizes_or_default(sizes)
        self.kernel = tuple(kernel_words(kernel_text(name) if text is None else text, variant or {}))
        if len(self.kernel) > self.sizes.kernel_words:
            raise ValueError(
                f"kernel {name} has {len(self.kernel)} instructions, and instruction memory {self.sizes.kernel_words}"
            )
        if len(listed("arguments", arguments)) > self.sizes.uniform_regs:
            raise ValueError(
                f"kernel {name} has {len(arguments)} arguments, and the engine {self.sizes.uniform_regs} registers"
            )
        self._placement = Placement(smem_bytes, self.sizes)
        self.arguments = [self._argument(value) for value in arguments]
        self._result_argument, self._shape, self._part = result, arguments[result].shape, ()
        self._dtypes = [getattr(value, "dtype", None) for value in arguments]
        self.lookup = None if lookup is None else np.asarray(lookup).astype("<u4", casting="same_kind")
        self.elements = int(np.prod(self._shape)) if elements is None else elements

    def shaped(self, shape, part=()):
        """This program, with results of another ``shape``, or a ``part`` of them."""
        self._shape, self._part = shape, part
        return self

    def _argument(self, value):
        if isinstance(value, Space):
            return self._place(value.shape, value.dtype)
        if isinstance(value, Flat):
            return self._filled(value.contents.reshape(-1), _LONGEST_PAGE)
        if isinstance(value, np.ndarray):
            return self._filled(array("an operand", value))
        return integer("an argument", value, -(1 << 31), (1 << 32) - 1) & 0xFFFFFFFF

    def _filled(self, contents, most=None):
        """Places an array, with pages of ``most`` elements at most if it is given."""
        number = self._place(contents.shape, contents.dtype, most)
        self._placement.put(number, contents)
        return number

    def _place(self, shape, dtype, most=None):
        if dtype.name not in _ELEMENTS:
            raise TypeError(f"operands must have elements of {', '.join(_ELEMENTS)}, not {dtype}")
        size = shape[::-1]
        page_log2 = None if most is None else ((min(max(size[0], _LINE), most) - 1).bit_length(),)
        return self._placement.add(size, _ELEMENTS[dtype.name], page_log2=page_log2, swizzle=Swizzle.B128)

    @property
    def loads(self):
        """The words that load the kernel, and the lookup memory if it has one."""
        words = [instruction_word(Operation.LOAD, target=Target.CODE, n=len(self.kernel)), *self.kernel]
        if self.lookup is not None:
            entries = np.resize(self.lookup, self.sizes.lookup_words).reshape(-1, _ENTRIES).tolist()
            words.append(instruction_word(Operation.LOAD, target=Target.LOOKUP, n=len(entries)))
            words += [sum(entry << _ENTRY_BITS * place for place, entry in enumerate(word)) for word in entries]
        return words

    @property
    def call(self):
        """The instructions that set the arguments and call the kernel."""
        setters = [instruction_word(Operation.MOVU, ud=ur, imm=value) for ur, value in enumerate(self.arguments)]
        return [*setters, instruction_word(Operation.CALL)]

    @property
    def program(self):
        """The :class:`PeProgram`, for a session: it loads the kernel, calls it, and ends with a halt."""
        return PeProgram(
            params=self.sizes,
            smem=self._placement.smem,
            segments={index: segment.pack() for index, segment in enumerate(self._placement.segments)},
            pages=dict(enumerate(self._placement.entries)),
            setup=tuple(self.loads),
            body=tuple(self.call),
            ending=(instruction_word(Operation.HALT),),
        )

    def read(self, smem):
        """The result in ``smem``, the shared memory after the program."""
        return self.read_argument(self._result_argument, smem).reshape(self._shape)[self._part]

    def read_argument(self, number, smem):
        """The contents of the operand with this number among the arguments."""
        return self._placement.get(self.arguments[number], smem).view(self._dtypes[number])

    def run(self):
        """The result on the golden model; RuntimeError if an instruction is refused."""
        return self.read(self.final_memory())

    def final_memory(self):
        """Shared memory after the program on the golden model; RuntimeError if an instruction is refused."""
        pe = self._machine()
        pe.run([*self.loads, *self.call])
        if pe.faults:
            raise RuntimeError(f"kernel {self.name} met {pe.faults[0]}")
        if pe.open.memory.undecided:
            raise RuntimeError(f"kernel {self.name}: {pe.open.memory.undecided}")
        return pe.smem

    @property
    def units(self):
        """The set of units of the arithmetic that the kernel needs, and ``alu``, which all kernels need."""
        fields = (INSTRUCTIONS[word & 0xFF].unpack(word) for word in self.kernel)
        used = {FUNCTIONS[field["function"]].unit for field in fields if field["opcode"] == Operation.ARITH}
        return used | {"alu"}

    def instructions(self):
        """Executed instructions of the kernel, by the name of their operation."""
        pe = self._machine(_Counting)
        pe.run(self.loads)
        pe.counts = {}
        pe.run(self.call)
        return {name: count for name, count in pe.counts.items() if name not in ("movu", "call")}

    def _machine(self, kind=Pe):
        pe = kind(self._placement.smem.copy(), self.sizes)
        self._placement.load(pe)
        return pe


class Space:
    """Room for a result.

    Parameters
    ----------
    shape : tuple of int
    dtype : type of its elements
    """

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)


class Flat:
    """An operand of bytes whose segment has one dimension, with all rows one after the other, and long pages."""

    def __init__(self, contents):
        self.contents, self.shape, self.dtype = contents, contents.shape, contents.dtype


def threads_of(options):
    """Threads of the engine that ``options`` of a :class:`KernelProgram` name."""
    return sizes_or_default(options.get("sizes")).threads


class _Counting(Pe):
    """A golden machine that counts instructions."""

    counts = None

    def step(self, word):
        if self.counts is not None:
            name = Operation(word & 0xFF).name.lower()
            self.counts[name] = self.counts.get(name, 0) + 1
        return super().step(word)


def two_dimensions(name, value, dtypes, least=1):
    """``value``, an array of rows with one of ``dtypes`` and ``least`` columns or more, as an array of rank 2.

    All dimensions but the last are rows. TypeError or ValueError otherwise.
    """
    if array(name, value).dtype.name not in dtypes:
        raise TypeError(f"{name} must have elements of {' or '.join(dtypes)}, not {value.dtype}")
    if not value.ndim:
        raise ValueError(f"{name} must have one dimension or more, not {shown(value)}")
    if value.shape[-1] < least:
        raise ValueError(f"{name} must have {least} columns or more, not {value.shape[-1]}")
    return np.ascontiguousarray(value.reshape(-1, value.shape[-1]))
