"""Measures products on the processing engine: shapes, types and sharing of threads; large operands are periodic."""

from dataclasses import dataclass, field, replace

import numpy as np
from ml_dtypes import bfloat16

from tilewright.golden.pe.program import gemm_program
from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.compute import mac_array
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.memory import Swizzle
from tilewright.spec.pe import MmType

from ..hdl.settings import changed
from ..session import Session
from ..session.products import PeProgram
from .line import Line, share, timed

__all__ = ["Product", "measure", "products", "program_and_result", "run_product"]

#: Bytes of a row of a page, as the TMAU loads tiles; also the elements of K in a page if rows are along N.
_PAGE_BYTES = 128
_TARGET = 0.99
#: Columns of large products, and bytes of K; A, a page of B, and C fit shared memory.
_LARGE = {"unit": (16, 512), "ecp5": (64, 2048), "default": (256, 4096), "lean": (256, 4096), "full": (64, 512)}
#: Threads that share a row, and threads that share a product, for the lines with a target.
_SHARED = ((1, 1), (2, 1), (1, 2), (2, 2))


@dataclass(frozen=True)
class Product:
    """C = A × B, with all of A and C in shared memory, and one page that is used as every page of B.

    Attributes
    ----------
    name : str
    m, n, k : int
        Rows, columns, and elements of K.
    kind : MmType
    transpose : int
        Order of B in memory: 0 by columns, 1 by rows.
    target : float or None
        Share of the multipliers' cycles that must be used; None if docs/pe.md has no target.
    swizzle : Swizzle
        Swizzle of all operands.
    options : dict
        Further attributes of ``Gemm``.
    """

    name: str
    m: int
    n: int
    k: int
    kind: MmType
    transpose: int
    target: float | None = None
    swizzle: Swizzle = Swizzle.B128
    options: dict = field(default_factory=dict)

    def limit(self, params):
        """Cycles of the product if all multipliers of the engine are busy."""
        units = params.threads * params.unit_bytes // self.kind.bytes
        return -(-self.m * self.n * self.k // units)

    @property
    def lines(self):
        """Chunks of 16 bytes in B, row by row."""
        return self.k * -(-self.n * self.kind.bytes // 16)


def products(preset, params):
    """All products that are measured on a preset, with the types that ``params`` have."""
    every = [*_shared(preset, params), *_types(preset, params), *_small(params)]
    return [product for product in every if product.kind.family in params.types]


def _large(preset, params, kind, transpose, ka=1, kb=1):
    """The number of rows that the threads hold."""
    n, k_bytes = _LARGE[preset]
    shape = {"m": params.threads // (ka * kb), "n": n, "k": k_bytes // kind.bytes}
    return shape | {"kind": kind, "transpose": transpose, "options": {"ka": ka, "kb": kb}}


def _shared(preset, params):
    for ka, kb in _SHARED:
        for transpose in (0, 1):
            name = f"mm8, ka{ka} kb{kb}, t{transpose}"
            yield Product(name, **_large(preset, params, MmType.S8S8, transpose, ka, kb), target=_TARGET)
    for transpose in (0, 1):
        name = f"mm8, ka1 kb1, t{transpose}, not swizzled"
        yield Product(name, **_large(preset, params, MmType.S8S8, transpose), swizzle=Swizzle.NONE)


def _types(preset, params):
    for kind in (MmType.S16S16, MmType.F16, MmType.BF16):
        for transpose in (0, 1):
            name = f"mm16 {kind.name.lower()}, ka1 kb1, t{transpose}"
            yield Product(name, **_large(preset, params, kind, transpose), target=_TARGET)


def _small(params):
    """Short products, in which loads of A at the beginning and stores of C at the end count."""
    for m, n, k in ((1, 1, 1), (4, 4, 32), (16, 16, 64), (64, 16, 64)):
        yield Product(f"mm8, {m} x {n} x {k}, t0", m, n, k, MmType.S8S8, 0)
    yield Product("mm16 f16, 16 x 16 x 64, t1", 16, 16, 64, MmType.F16, 1)


def program_and_result(product, params):
    """The ``Program`` of a product with random operands, and C as numpy computes it.

    Floats are small multiples of a half, whose sums are exact in every order.
    """
    generator = np.random.default_rng(3)
    a, b = (_elements(generator, product, shape) for shape in ((product.m, product.k), (product.k, product.n)))
    elements = _PAGE_BYTES // product.kind.bytes
    b = b[np.arange(product.k) % elements]
    page_log2 = None
    if product.transpose:
        # Dimension 0 is N; a page has the same number of rows.
        b = b[:, np.arange(product.n) % elements]
        least = 16 // product.kind.bytes
        page_log2 = [(count - 1).bit_length() for count in (min(max(product.n, least), elements), elements)]
    program = gemm_program(
        _raw(a), _raw(b), product.kind, sizes=params, size_bytes=params.smem.size_bytes, swizzle=product.swizzle,
        transpose=product.transpose, page_log2=(None, page_log2, None), repeated=True, **product.options,
    )  # fmt: skip
    if product.kind.is_float:
        result = (a.astype(np.float32) @ b.astype(np.float32)).view(np.uint32)
    else:
        result = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.uint32)
    return program, result


def _elements(generator, product, shape):
    kind = product.kind
    if kind.is_float:
        element = np.float16 if kind == MmType.F16 else bfloat16
        return (generator.integers(-4, 5, shape) / 2).astype(element)
    half = 1 << (8 * kind.bytes - 1)
    return generator.integers(-half, half, shape, np.int8 if kind.bytes == 1 else np.int16)


def _raw(elements):
    return elements.view(np.uint8 if elements.itemsize == 1 else np.uint16)


#: Counters of the cycles in which a multiply waits, and of the cost of reads and translations.
_CAUSES = ("steps", "stall_columns", "stall_factors", "stall_product", "bank_conflicts", "translation_misses")


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every ``Line`` of a preset with the simulation's cycles a second so far."""
    params = changed(PE_PRESETS[preset], settings)
    with Session(params=CoreParams(pe=params), simulator=simulator) as session:
        yield from timed(session, _lines(session, preset))


def _lines(session, preset):
    params = session.params.pe
    cycles = mac_array(params).LATENCY
    yield Line(preset, "MAC array: operands to results", None, cycles, cycles, f"{cycles} cycles", "none", True)
    for product in products(preset, params):
        span, counters = run_product(session, product)
        causes = {name: counters[name] for name in _CAUSES}
        yield share(preset, product.name, None, product.limit(params), span, product.target, **causes)
        if product.target is None:
            continue
        yield _steady(session, preset, product, span, causes)
        yield _per_step(preset, product, span, counters["steps"])
        if product.transpose:
            yield _fills(preset, product, counters["line_fills"])
        yield _conflicts(preset, product, counters["bank_conflicts"])


def run_product(session, product):
    """Cycles from the first instruction to the halt, and counters; the result must equal numpy's."""
    program, result = program_and_result(product, session.params.pe)
    case = PeProgram.of_product(program)
    session.reset()
    session.shared_memory.write(0, case.smem)
    run = session.run(program=case.words, segments=case.segments, pages=case.pages)
    if run.faults:
        raise RuntimeError(f"{product.name} met {run.faults[0]}")
    wrong = (program.result(session.shared_memory.read(0, len(case.smem))) != result).sum()
    if wrong:
        raise RuntimeError(f"{wrong} elements of {product.name} are wrong")
    return run.span, session.registers()


def _steady(session, preset, product, span, counters):
    """The line of the last three quarters of K, without the beginning and the end of the program."""
    quarter = replace(product, k=product.k // 4)
    first, counted = run_product(session, quarter)
    limit = product.limit(session.params.pe) - quarter.limit(session.params.pe)
    causes = {name: count - counted[name] for name, count in counters.items()}
    return share(preset, f"{product.name}: steady state", None, limit, span - first, product.target, **causes)


def _per_step(preset, product, span, steps):
    """Cycles a step; the limit is one."""
    return Line(preset, f"{product.name}: cycles a step", None, steps, span, f"{span / steps:.3f}", "none", True)


def _fills(preset, product, fills):
    """Reads of rows of B; each line need be read only once."""
    times = fills / product.lines
    return Line(preset, f"{product.name}: line fills", None, product.lines, fills, f"{times:.3f} each", "1", times <= 1)


def _conflicts(preset, product, cycles):
    """Cycles lost to bank conflicts, which the swizzle avoids."""
    return Line(preset, f"{product.name}: bank conflicts", None, 0, cycles, f"{cycles} cycles", "0", not cycles)
