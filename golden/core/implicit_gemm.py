"""Convolutions as products of matrices: one program of im2col loads, instructions and stores (docs/core.md)."""

from itertools import pairwise

import numpy as np

from tilewright.spec import CHUNK_BYTES
from tilewright.spec.core import PROGRAM_ALIGNMENT
from tilewright.spec.pe import Operation

from ..arguments import array, integers, room
from ..conv.shape import ConvShape
from ..dot_product import mm_type, operand, segment_elements
from ..memory import GlobalMemory
from ..pe.checks import instruction_word
from ..pe.gemm import lower_gemm
from ..pe.gemm_plan import Plan
from ..pe.sizes import sizes_or_default
from ..tmau.machine import command_word
from ..tmau.tensor_map import TensorMap
from .implicit_plan import plan_implicit
from .machine import Core
from .processor import INSTRUCTION_BYTES
from .program import page_words, program_bytes, program_word, segment_words, tmau_word

__all__ = ["ImplicitGemm"]

#: The least instructions between two commands.
_PIECE = 4 * PROGRAM_ALIGNMENT // INSTRUCTION_BYTES
_RESULT_BYTES = 4
_STORE_TAG = 1


class ImplicitGemm:
    """A layer, given as arrays, as a program of the command processor with the global memory that it needs.

    The product of a tile runs while the TMAU stores the results of the previous tile and loads pixels for the next one.
    Sums of integers equal those of :func:`golden.convolve` without zero points; sums of floats are rounded once for
    each ``mm``, along rows, columns and channels of the kernel.

    Parameters
    ----------
    x : array of shape (N, H, W, C)
        Elements of the type, or raw bits. A pixel must have a multiple of 16 bytes.
    k : array of shape (Co, Kh, Kw, C)
    type : MmType or str
        As for a product.
    stride, dilation : tuple of int
        For rows, for columns.
    padding : tuple of int
        Top, bottom, left, right.
    sizes : PeSizes, or anything with its attributes
        Of the processing engine.
    smem_bytes : int
        Bytes of shared memory, all of which the program may use.

    Attributes
    ----------
    shape : ConvShape
    plan : ImplicitPlan
    memory : uint8 array
        Global memory from address 0.
    words : list of int
        The program, packed.
    address : int
        Of the program in ``memory``.

    Raises
    ------
    TypeError, ValueError
        If operands do not have the type or do not match, a tensor map cannot have a size (docs/tmau.md, "Tensor
        descriptor"), or shared memory is too small.
    """

    def __init__(self, x, k, type, *, stride=(1, 1), dilation=(1, 1), padding=(0, 0, 0, 0), sizes=None,  # noqa: A002
                 smem_bytes=128 * 1024):  # fmt: skip
        self.kind, self.sizes = mm_type(type), sizes_or_default(sizes)
        self._smem_bytes = room("smem_bytes", smem_bytes)
        x, k = self._operands(x, k)
        self.shape = ConvShape.of(
            x.shape, k.shape[0], k.shape[1:3], stride, padding, dilation, element_bytes=self.kind.bytes,
            result_bytes=_RESULT_BYTES,
        )  # fmt: skip
        self.plan = self._planned()
        self._image = bytearray()
        self._place_tensors(x, k, integers("padding", padding))
        self._place_instructions()
        self._place_programs()
        self.memory = np.frombuffer(bytes(self._image), np.uint8)

    def result(self, memory):
        """The sums in ``memory``, int32 or float32 of shape (N, Ho, Wo, Co)."""
        shape = self.shape
        sums = memory[self._y :][: shape.bytes_written].view("<f4" if self.kind.is_float else "<i4")
        return sums.reshape(shape.batch, shape.out_height, shape.out_width, shape.out_channels)

    def run(self):
        """The sums as the golden core computes them; RuntimeError on an error."""
        core = Core(GlobalMemory(self.memory.copy()), np.zeros(self._smem_bytes, np.uint8), pe=self.sizes)
        if core.run(self.address, len(self.words)):
            raise RuntimeError(f"the program stopped: {core.record}")
        return self.result(core.gmem.data)

    def _planned(self):
        """The plan."""
        return plan_implicit(self.shape, self.kind, self.sizes, self._smem_bytes)

    def _operands(self, x, k):
        """X and K as raw bits."""
        for name, tensor, element in zip("xk", (x, k), segment_elements(self.kind)[:2], strict=True):
            if array(name, tensor).ndim != 4:
                raise ValueError(f"{name} must have 4 dimensions, not shape {tensor.shape}")
            operand(name, tensor, self.kind, element)
        if k.shape[3] != x.shape[3]:
            raise ValueError(f"k must have the {x.shape[3]} channels of x, not {k.shape[3]}")
        if x.shape[3] * self.kind.bytes % CHUNK_BYTES:
            pixel = x.shape[3] * self.kind.bytes
            raise ValueError(f"the channels of a pixel must be a multiple of {CHUNK_BYTES} bytes, not {pixel}")
        raw = f"<u{self.kind.bytes}"
        return (np.ascontiguousarray(tensor).astype(tensor.dtype.newbyteorder("<")).view(raw) for tensor in (x, k))

    def _place(self, data, align=128):
        """Appends ``data`` to global memory; returns its address."""
        address = -(-len(self._image) // align) * align
        self._image += bytes(address - len(self._image)) + bytes(data)
        return address

    def _place_map(self, tensor, kind, **options):
        """Appends the descriptor ``kind(tensor, **options)`` to global memory; returns its address."""
        return self._place(kind(tensor, **options).pack())

    def _place_tensors(self, x, k, padding):
        """Puts tensors, their descriptors and the table of constants into global memory."""
        plan, shape = self.plan, self.shape
        channels = plan.row_bytes // self.kind.bytes
        rows, columns = plan.gemm.m, plan.gemm.n
        corners = ((padding[3], padding[1]), shape.kernel, shape.dilation)
        upper = tuple(pad - (taps - 1) * distance for pad, taps, distance in zip(*corners, strict=True))
        swizzle = [self._segment(number).swizzle for number in (plan.a[0], plan.b, plan.c[0])]
        kernel = np.zeros((len(k), shape.taps, plan.blocks * channels), k.dtype)
        kernel[..., : shape.channels] = k.reshape(len(k), shape.taps, shape.channels)
        kernel = kernel.reshape(len(k), -1)
        y = np.zeros((shape.points, shape.out_channels), np.uint32)
        self._y = self._place(y.tobytes())
        table = Plan(plan.gemm, self.sizes).table.astype("<u4").tobytes()
        self._table_bytes = -(-len(table) // CHUNK_BYTES) * CHUNK_BYTES
        self._table = self._place(table.ljust(self._table_bytes, b"\0"))
        self._x_map = self._place_map(
            x, TensorMap.im2col, address=self._place(x.tobytes()), pixels=rows, channels=channels, swizzle=swizzle[0],
            lower=tuple(-pad for pad in shape.padding), upper=upper, traversal=(1, *shape.stride, 1),
        )  # fmt: skip
        self._k_map = self._place_map(
            kernel, TensorMap.tiled, address=self._place(kernel.tobytes()), swizzle=swizzle[1],
            box=(self._page_columns(plan.b), columns),
        )  # fmt: skip
        self._y_map = self._place_map(
            y, TensorMap.tiled, address=self._y, swizzle=swizzle[2], box=(self._page_columns(plan.c[0]), rows),
            unaligned=y.strides[0] % CHUNK_BYTES != 0,
        )  # fmt: skip

    def _place_instructions(self):
        """Puts the instructions for each of the two pairs of segments of A and C into global memory."""
        plan = self.plan
        self._products = []
        for a, c in zip(plan.a, plan.c, strict=True):
            words = lower_gemm(plan.gemm, self.sizes, a, plan.b, c, plan.table)
            words[-1] = instruction_word(Operation.FENCE)  # instead of a halt, for which no program waits
            raw = b"".join(word.to_bytes(INSTRUCTION_BYTES, "little") for word in words)
            self._products.append((self._place(raw), len(words)))

    def _segment(self, number):
        return self.plan.placement.segments[number]

    def _page_columns(self, number):
        """Elements of dimension 0 in a page of a segment."""
        return 1 << self._segment(number).page_log2[0]

    def _place_programs(self):
        """Puts the program into global memory."""
        self.words = self._program(range(self.plan.tiles), self._kernel_loads(0))
        self.address = self._place(program_bytes(self.words))

    def _program(self, tiles, kernel, awaited=()):
        """Words for ``tiles``; ``kernel`` loads its first part, and ``awaited`` waits for loads of other cores."""
        wait = program_word("wait_all")
        turns = [(part, tile) for part in range(self.plan.parts) for tile in tiles]
        first = [self._table_copy(), *kernel, *self._loads(0, tiles[0])]
        words = [wait, tmau_word(command_word("invalidate_all")), *_woven(self._tables(), first), *awaited]
        for index, (part, tile) in enumerate(turns):
            if index and tile == tiles[0]:
                words += [wait, *self._kernel_loads(part)]
            commands = self._stores(index - 1, *turns[index - 1]) if index else []
            if index + 1 < len(turns):
                commands += self._loads(index + 1, turns[index + 1][1])
            words += [wait, *self._product(index, commands)]
        return [*words, wait, *self._stores(len(turns) - 1, *turns[-1]), program_word("end", interrupt=1)]

    def _tables(self):
        """Words that write segments and page entries, in a list for each."""
        placement = self.plan.placement
        segments = [segment_words(index, segment.pack()) for index, segment in enumerate(placement.segments)]
        return segments + [page_words(index, entry) for index, entry in enumerate(placement.entries)]

    def _table_copy(self):
        """The word that loads the table of constants."""
        copy = {"source": self._table, "destination": self._segment(self.plan.table).base, "size": self._table_bytes}
        return tmau_word(command_word("copy_block", **copy, destination_space="shared"))

    def _loads(self, index, tile):
        """Words that load the pixels of a tile: for each kernel position its blocks of channels."""
        plan, shape = self.plan, self.shape
        first = tile * plan.gemm.m
        image, row, column = np.unravel_index(first, (shape.batch, shape.out_height, shape.out_width))
        places = zip((column, row), shape.stride, shape.padding, strict=True)
        corner = [int(place) * step - pad for place, step, pad in places]
        pages = iter(plan.pages(plan.a[index % 2]))
        return [
            self._move(
                "load", self._x_map, next(pages), (block * plan.row_bytes // self.kind.bytes, *corner, int(image)), tap
            )
            for tap in self._taps()
            for block in range(plan.blocks)
        ]

    def _taps(self):
        """Offsets of the positions of the kernel, in columns and in rows."""
        (width, height), (across, down) = self.shape.kernel, self.shape.dilation
        return [(column * across, row * down) for row in range(height) for column in range(width)]

    def _kernel_loads(self, part, **fields):
        plan = self.plan
        step = self._page_columns(plan.b)
        return [
            self._move("load", self._k_map, page, (number * step, part * plan.gemm.n), **fields)
            for number, page in enumerate(plan.pages(plan.b))
        ]

    def _stores(self, index, part, tile):
        plan = self.plan
        number = plan.c[index % 2]
        step = self._page_columns(number)
        return [
            self._move(
                "store", self._y_map, page, (part * plan.gemm.n + column * step, tile * plan.gemm.m), tag=_STORE_TAG
            )
            for column, page in enumerate(plan.pages(number))
        ]

    @staticmethod
    def _move(opcode, descriptor, smem, coords, offsets=(), **fields):
        """The word of a load or a store."""
        fields |= {"coords": (*coords, 0, 0, 0)[:5], "offsets": (*offsets, 0, 0, 0)[:3]}
        return tmau_word(command_word(opcode, descriptor=descriptor, smem=smem, **fields))

    def _product(self, index, commands):
        """Words of a product with ``commands`` in its first half, to keep the queues of both engines filled."""
        address, count = self._products[index % 2]
        pieces = max(1, min(len(commands), count // 2 // _PIECE))
        step = max(1, count // 2 // pieces // _PIECE) * _PIECE
        cuts = [*range(0, pieces * step, step), min(pieces * step, count), count]
        runs = [
            program_word("pe", address=address + begin * INSTRUCTION_BYTES, count=end - begin)
            for begin, end in pairwise(cuts)
            if begin < end
        ]
        return [*_woven([[run] for run in runs[:pieces]], commands), *runs[pieces:]]


def _woven(pieces, commands):
    """Words of all ``pieces``, each followed by its share of ``commands``."""
    words = []
    for index, piece in enumerate(pieces):
        words += piece
        words += commands[len(commands) * index // len(pieces) : len(commands) * (index + 1) // len(pieces)]
    return words
