"""Plans of products of matrices for the processing engine: tiles, blocks, registers and a table of constants."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from tilewright.spec.names import suggestion
from tilewright.spec.pe import MmType

from ..arguments import integer, integers, member, shown, truth

__all__ = ["OUTSIDE", "Block", "Gemm", "Plan"]

#: A coordinate outside every segment, with any immediate added.
OUTSIDE = 0x80000000

#: Steps between two terms of an accumulator, at least, for the second one not to wait.
_DISTANCE = 16
#: Most blocks that take turns: hardware remembers four sets of offset registers at once, and one belongs to A.
_MOST_TURNS = 3
#: Blocks that take turns if they share offset registers, which are read once for each issue.
_SHARED_TURNS = 4

_ORDERS = ("k", "columns")
_MAX_RANK = 4


@dataclass(frozen=True)
class Gemm:
    """C = A × B, and choices of how to compute it.

    Attributes
    ----------
    rows, columns : tuple of int
        Dimensions of A and of B other than K, innermost first; matrices have one each.
    k : int
        Elements along K.
    type : MmType
    ka, kb : int
        Threads that share a row of C, and a product.
    transpose : int
        1: K is dimension 1 of B. 0: K is its dimension 0.
    order : "k" or "columns"
        "k": all blocks of columns get a part of K before the first gets the next. "columns": a block gets all of K
        before the next begins.
    depth : int
        Most issues of a part of K. With depth 1 and order "k", all elements of C get their first term before the
        first gets its second; larger parts need fewer loads of A and fewer reads of offset registers, as a few blocks
        take turns at a part. The plan lowers it if it would cost columns.
    accumulate : bool
        C = C + A × B, for products that are split along K.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    k: int
    type: MmType
    ka: int = 1
    kb: int = 1
    transpose: int = 0
    order: str = "k"
    depth: int = 8
    accumulate: bool = False

    def __post_init__(self):
        if not isinstance(self.order, str) or self.order not in _ORDERS:
            raise ValueError(
                f"order must be one of {_ORDERS}, not {shown(self.order)}{suggestion(self.order, _ORDERS)}"
            )
        for name, low, high in (("ka", 1, 4), ("kb", 1, 4), ("transpose", 0, 1), ("depth", 1, None), ("k", 1, None)):
            integer(name, getattr(self, name), low, high)
        for name in ("rows", "columns"):
            dimensions = integers(name, getattr(self, name))
            if not 1 <= len(dimensions) < _MAX_RANK or min(dimensions) < 1:
                raise ValueError(f"{name} must be 1 to {_MAX_RANK - 1} dimensions, none of them 0, not {dimensions!r}")
            object.__setattr__(self, name, dimensions)
        object.__setattr__(self, "type", member("type", MmType, self.type))
        truth("accumulate", self.accumulate)

    @property
    def m(self):
        """Rows of C."""
        return math.prod(self.rows)

    @property
    def n(self):
        """Columns of C."""
        return math.prod(self.columns)


@dataclass(frozen=True)
class Block:
    """Columns of C that one mm computes.

    Attributes
    ----------
    column, count : int
        The first column, and their number.
    inner : int
        Coordinate of the first column in dimension 0 of B, if B is transposed.
    outer : tuple of int
        Coordinates of the first column in the dimensions of B from 2 up, if B is transposed.
    """

    column: int
    count: int
    inner: int = 0
    outer: tuple[int, ...] = ()


class Plan:
    """A :class:`Gemm` on a machine of ``sizes``.

    Attributes
    ----------
    unit, step : int
        Elements of K that a thread multiplies at once, and that an mm covers.
    steps, depth : int
        Issues along K, and most issues of a part of K.
    groups, tiles : int
        Rows of C at once, and the number of such tiles.
    width, guarded : int, bool
        Columns of a block; whether threads from ``width`` must not load one.
    slots, per_slot : int
        Blocks with products in registers at once, and registers of each.
    factors, tid, group, a, b, c : int
        First registers of each kind; products begin at 0. Coordinates of the row follow ``a`` and ``c``; from ``b``,
        each slot or, if B is transposed, each issue of a part of K has ``b_registers``.
    """

    def __init__(self, gemm, sizes):
        self.gemm, self.sizes = gemm, sizes
        if gemm.type.family not in sizes.types:
            name = gemm.type.name.lower()
            raise ValueError(f"the machine does not have the type {name}: its types are {', '.join(sizes.types)}")
        if gemm.ka * gemm.kb > sizes.threads:
            raise ValueError(f"ka {gemm.ka} times kb {gemm.kb} is more than {sizes.threads} threads")
        self.unit = 4 * sizes.factor_regs // gemm.type.bytes
        self.step = gemm.kb * self.unit
        self.steps = -(-gemm.k // self.step)
        self.groups = sizes.threads // (gemm.ka * gemm.kb)
        self.tiles = -(-gemm.m // self.groups)
        self.b_registers = 1 + len(gemm.columns)
        self._cut_columns()
        self._name_registers()

    def _fixed(self, depth):
        """Registers that do not belong to a slot."""
        per_issue = 2 * self.sizes.factor_regs + (self.b_registers if self.gemm.transpose else 0)
        return 2 + (1 + len(self.gemm.rows)) + 2 + depth * per_issue

    def _cut_columns(self):
        gemm, sizes = self.gemm, self.sizes
        per_slot = 0 if gemm.transpose else self.b_registers
        inner = gemm.columns[0] if gemm.transpose else gemm.n
        room = sizes.regs - self._fixed(1) - per_slot
        if room < 1:
            raise ValueError(f"{sizes.regs} registers are too few for this product")
        self.width = min(sizes.threads, inner, gemm.ka * room)
        if self.width < inner:
            # A register holds columns of a single block.
            self.width -= self.width % gemm.ka
        self.guarded = self.width < min(sizes.threads, inner)
        self.products = -(-self.width // gemm.ka)
        self.per_slot = self.products + per_slot

        def slots(depth):
            return min(len(self.blocks), (sizes.regs - self._fixed(depth)) // self.per_slot)

        self.slots = slots(1)
        self.depth = max(d for d in range(1, min(gemm.depth, self.steps) + 1) if d == 1 or slots(d) == self.slots)

    def _name_registers(self):
        gemm = self.gemm
        factors = self.depth * self.sizes.factor_regs
        self.factors = (self.slots * self.products, self.slots * self.products + factors)
        self.tid = self.factors[1] + factors
        self.group = self.tid + 1
        self.a = self.group + 1
        self.c = self.a + 1 + len(gemm.rows)
        self.b = self.c + 2

    @cached_property
    def blocks(self):
        """The blocks of columns."""
        gemm = self.gemm
        if not gemm.transpose:
            return [Block(n, min(self.width, gemm.n - n)) for n in range(0, gemm.n, self.width)]
        inner, *outer = gemm.columns
        return [
            Block(row * inner + n, min(self.width, inner - n), n, coordinates[::-1])
            for row, coordinates in enumerate(product(*(range(size) for size in reversed(outer))))
            for n in range(0, inner, self.width)
        ]

    def take_turns(self, slots):
        """``slots`` in groups of neighbours that take turns, so that terms of a product are far enough apart.

        A group is as small as possible, and never so large that offset registers must be read at each turn. If B is
        transposed, it is just large enough for few reads.
        """
        if self.gemm.transpose:
            groups = max(1, len(slots) // _SHARED_TURNS)
        else:
            turns = min(-(-_DISTANCE // self.products), _MOST_TURNS)
            groups = max(-(-len(slots) // _MOST_TURNS), len(slots) // turns)
        cuts = [len(slots) * group // groups for group in range(groups + 1)]
        return [slots[begin:end] for begin, end in pairwise(cuts)]

    @cached_property
    def _arrays(self):
        """The parts of the table by name."""
        gemm, threads = self.gemm, np.arange(self.sizes.threads)
        members = gemm.ka * gemm.kb
        computing = threads < self.groups * members
        arrays = {
            "unit": np.where(computing, threads % gemm.kb * self.unit, OUTSIDE),
            "member": threads % members // gemm.kb,
            "group": np.where(computing, threads // members, 0),
            "row": _coordinates("", self.tiles * self.groups, (gemm.m,))["0"],
        }
        arrays |= _coordinates("row", self.tiles * self.groups, gemm.rows)
        if not gemm.transpose:
            arrays |= _coordinates("column", self.blocks[-1].column + self.sizes.threads, gemm.columns)
        return arrays

    @property
    def table(self):
        """Constants that the program reads by thread, by row and by column: uint32."""
        return np.concatenate(list(self._arrays.values())).astype(np.uint32)

    def place(self, name):
        """The beginning of the part ``name`` in the table."""
        names = list(self._arrays)
        return sum(len(self._arrays[other]) for other in names[: names.index(name)])


def _coordinates(name, count, size):
    """The coordinates of elements 0 to ``count`` - 1, an array for each dimension of ``size``, then OUTSIDE."""
    coordinates = np.unravel_index(np.minimum(np.arange(count), math.prod(size) - 1), size[::-1])[::-1]
    inside = np.arange(count) < math.prod(size)
    return {f"{name}{d}": np.where(inside, values, OUTSIDE) for d, values in enumerate(coordinates)}
