"""Products as programs: on one processing engine, on a core, and on the cores of a cluster."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tilewright.golden import TensorMap
from tilewright.golden.dot_product import values
from tilewright.golden.pe.program import gemm_program
from tilewright.hw.pe.params import PeParams
from tilewright.spec import Error, Opcode

__all__ = ["CoreProduct", "PageMove", "PeProgram", "ProductRun", "run_product"]


@dataclass(frozen=True, eq=False)
class PeProgram:
    """What a processor writes before it starts the engine; golden model and hardware run the same.

    Attributes
    ----------
    params : PeParams
    smem : uint8 array
        All of shared memory. A run works on a copy.
    segments, pages : dict of int to int
        Words of the tables, by their index; the others are not written.
    setup, body, ending : tuple of int
        Instructions: those that give registers and predicates known values, those that are the purpose, and those that
        store what has become of registers and predicates.
    late : dict of int to int
        Words of page entries that are valid but not loaded at the start, as they must be written for the program
        to go on.
    """

    params: PeParams
    smem: np.ndarray
    segments: dict
    pages: dict
    body: tuple
    setup: tuple = ()
    ending: tuple = ()
    late: dict | None = None

    @classmethod
    def of_product(cls, product):
        """A golden ``Program``, whose sizes are PeParams."""
        placement = product.placement
        return cls(
            params=product.sizes,
            smem=placement.smem,
            segments={index: segment.pack() for index, segment in enumerate(placement.segments)},
            pages=dict(enumerate(placement.entries)),
            body=tuple(product.words),
        )

    @property
    def words(self):
        """All instructions, in order."""
        return (*self.setup, *self.body, *self.ending)

    def with_body(self, body):
        """The same program with other instructions between its setup and its ending."""
        return replace(self, body=tuple(body))


_ROW_LOG2 = 7  # rows of pages have 128 bytes: all that a swizzle of 128 bytes spans
_UNSIGNED = {1: "u8", 2: "u16", 4: "u32"}
_C = 2  # segment of the result
_CHUNK_BYTES = 16  # of which rows of a box are made


class PageMove(NamedTuple):
    """A page of a segment and the box of a tensor that is the same."""

    number: int  # of the page in its segment
    tmap: TensorMap
    coords: tuple
    smem: int

    def command(self, descriptor, *, store=False, **fields):
        """Fields of the command that brings the page, or takes it away."""
        opcode = Opcode.STORE if store else Opcode.LOAD
        return {"opcode": opcode, "descriptor": descriptor, "coords": self.coords, "smem": self.smem} | fields


class CoreProduct:
    """C = A × B, with A, B, C and the table of offsets in global memory.

    Parameters
    ----------
    a, b : arrays of shape (m, k) and (k, n)
        Raw bits count. Rows as they are stored, of A, of B (or of its transpose) and of C, are multiples of 16 bytes.
    kind : MmType
    params : CoreParams
    place : callable
        Copies an array to global memory; returns its address, a multiple of 16.
    page_rows : tuple of int or None
        Log2 of the rows of a page of A, B and C; None: all.
    options
        Of ``gemm_program``.

    Attributes
    ----------
    program : golden Program
    moves : list of list of PageMove
        Of each segment: A, B, C, table.
    c_address : int
        Of C in global memory, which begins as zeros.
    """

    def __init__(self, a, b, kind, params, place, *, page_rows=(None, None, None), transpose=0, **options):
        rows = (len(a), len(b) if transpose else b.shape[1], len(a))
        element_log2 = (a.itemsize.bit_length() - 1, b.itemsize.bit_length() - 1, 2)
        page_log2 = [
            (_ROW_LOG2 - size_log2, (count - 1).bit_length() if log2 is None else log2)
            for size_log2, count, log2 in zip(element_log2, rows, page_rows, strict=True)
        ]
        self.program = gemm_program(
            a, b, kind, sizes=params.pe, size_bytes=params.smem.size_bytes, page_log2=page_log2, transpose=transpose,
            **options
        )  # fmt: skip
        placement = self.program.placement
        arrays = [np.ascontiguousarray(placement.get(number)) for number in range(len(placement.segments))]
        addresses = list(map(place, arrays))
        self.c_address = addresses[_C]
        self.moves = [
            list(self._moves(segment, address)) for segment, address in zip(placement.segments, addresses, strict=True)
        ]

    def entry(self, segment, move):
        """Index of the page's entry."""
        return self.program.placement.segments[segment].first_entry + move.number

    def _moves(self, segment, address):
        page = tuple(1 << log2 for log2 in segment.page_log2)
        # A tensor smaller than its page is followed by other data: the outermost dimension of the box ends with it.
        chunk = -(-_CHUNK_BYTES // segment.element.bytes) if segment.rank == 1 else 1
        box = (*page[:-1], min(page[-1], -(-segment.size[-1] // chunk) * chunk))
        row_bytes = segment.element.bytes * segment.size[0]
        tmap = TensorMap(
            element=_UNSIGNED[segment.element.bytes], size=segment.size, stride=(row_bytes,)[: segment.rank - 1],
            box=box, swizzle=segment.swizzle, address=address,
        )  # fmt: skip
        # Dimension 0 runs fastest.
        for number, place in enumerate(np.ndindex(*segment.pages[::-1])):
            coords = tuple(index * size for index, size in zip(place[::-1], page, strict=True))
            entries = self.program.placement.entries
            smem = entries[segment.first_entry + number] & 0xFFFFFFFF if segment.paged else segment.base
            yield PageMove(number, tmap, coords, smem)


_A, _B, _CLUSTER_PRODUCT_C, _TABLE = range(4)  # segments of a product


class ProductRun(NamedTuple):
    """What came of a product.

    ``cycles`` go from the first command to the last byte of C, ``words`` are bus words of global memory read, ``c`` is
    the product: int32, uint32 or float32.
    """

    cycles: int
    words: int
    c: np.ndarray


def run_product(session, a, b, kind, cores):
    """Runs C = A × B on the first ``cores`` cores of a ``ClusterSession`` of cores, from a reset on.

    Each has as many rows of A and C. Core 0 loads B once, for all of them. Loads, products and stores follow each other
    without overlap.

    Returns
    -------
    ProductRun

    Raises
    ------
    ValueError
        If the cores have no such share of the rows.
    RuntimeError
        If a command or an instruction ends with an error.
    """
    rows, rest = divmod(len(a), cores)
    if rest or not rows:
        raise ValueError(f"each of {cores} cores must have as many rows, not {len(a)} rows in all")
    session.clear()
    parts = [CoreProduct(part, b, kind, session.params.core, session.place) for part in np.split(a, cores)]
    loads, stores = [], []
    for core, part in enumerate(parts):
        own = [_move(session, move) for segment in (_A, _TABLE) for move in part.moves[segment]]
        # B lies at the same place in each shared memory, as the shapes of all parts are the same.
        common = [_move(session, move, cores=list(range(cores))) for move in part.moves[_B]]
        loads.append((common if core == 0 else []) + own)
        stores.append([_move(session, move, store=True) for move in part.moves[_CLUSTER_PRODUCT_C]])
    loaded = [f"commands{core}" for core in range(cores)]
    after = {f"instructions{core}": [f"segments{core}", f"pages{core}", *loaded] for core in range(cores)}
    runs = [session.run(loads, programs=[part.program for part in parts], after=after), session.run(stores)]
    for run in runs:
        if any(stamp.error != Error.NONE for core in run.cores for stamp in core.commands) or run.violations:
            raise RuntimeError(f"a command of the product ends with an error: {run!r}")
    if any(core.faults for core in runs[0].cores):
        raise RuntimeError(f"an instruction of the product ends with an error: {runs[0]!r}")
    element = parts[0].program.placement.segments[_CLUSTER_PRODUCT_C].element
    size = element.bytes * len(a) // cores * b.shape[1]
    found = [session.global_memory.read(part.c_address, size).view(np.uint32) for part in parts]
    c = values(np.concatenate(found).reshape(len(a), b.shape[1]), element)
    return ProductRun(sum(run.cycles for run in runs), runs[0].data_beats, c)


def _move(session, move, **fields):
    """The command of a page move."""
    return move.command(session.descriptor(move.tmap), **fields)
