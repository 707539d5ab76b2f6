"""Measures the processing engine on resident operands: the use of its multipliers, in exact cycles.

Specification: docs/pe.md, "Speed".
"""

from dataclasses import replace

from tilewright.hw.pe.compute.mac import MacArray
from tilewright.hw.pe.params import PE_PRESETS

from ..session import PeSession
from ..session.pe_program import PeProgram
from ..settings import changed
from .line import Line, share, timed
from .pe_cases import products, program_and_result

__all__ = ["measure"]

#: What a multiply waits for, and what reads and translations cost.
_CAUSES = ("steps", "stall_columns", "stall_factors", "stall_product", "bank_conflicts", "translation_misses")


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every ``Line`` of a preset with the simulation's cycles a second so far."""
    params = changed(PE_PRESETS[preset], settings)
    with PeSession(params=params, simulator=simulator) as session:
        yield from timed(session, _lines(session, preset))


def _lines(session, preset):
    params = session.params
    cycles = MacArray(params).LATENCY
    yield Line(preset, "MAC array: operands to results", None, cycles, cycles, f"{cycles} cycles", "none", True)
    for product in products(preset, params):
        span, counters = _run(session, product)
        causes = {name: counters[name] for name in _CAUSES}
        yield share(preset, product.name, None, product.limit(params), span, product.target, **causes)
        if product.target is None:
            continue
        yield _steady(session, preset, product, span, causes)
        yield _per_step(preset, product, span, counters["steps"])
        if product.transpose:
            yield _fills(preset, product, counters["line_fills"])
        yield _conflicts(preset, product, counters["bank_conflicts"])


def _run(session, product):
    """Cycles from the first instruction to the halt, and counters; the result must be what numpy says."""
    program, result = program_and_result(product, session.params)
    case = PeProgram.of_product(program)
    session.reset()
    session.shared_memory.write(0, case.smem)
    run = session.run(case.words, segments=case.segments, pages=case.pages)
    if run.faults:
        raise RuntimeError(f"{product.name} met {run.faults[0]}")
    wrong = (program.result(session.shared_memory.read(0, len(case.smem))) != result).sum()
    if wrong:
        raise RuntimeError(f"{wrong} elements of {product.name} are wrong")
    return run.span, session.registers()


def _steady(session, preset, product, span, counters):
    """What the last three quarters of K take: without the beginning and the end of the program."""
    quarter = replace(product, k=product.k // 4)
    first, counted = _run(session, quarter)
    limit = product.limit(session.params) - quarter.limit(session.params)
    causes = {name: count - counted[name] for name, count in counters.items()}
    return share(preset, f"{product.name}: steady state", None, limit, span - first, product.target, **causes)


def _per_step(preset, product, span, steps):
    """Cycles a step; the limit is one."""
    return Line(preset, f"{product.name}: cycles a step", None, steps, span, f"{span / steps:.3f}", "none", True)


def _fills(preset, product, fills):
    """Reads of rows of B; each line need come once."""
    times = fills / product.lines
    return Line(preset, f"{product.name}: line fills", None, product.lines, fills, f"{times:.3f} each", "1", times <= 1)


def _conflicts(preset, product, cycles):
    """Cycles lost to conflicts of banks, which the swizzle avoids."""
    return Line(preset, f"{product.name}: bank conflicts", None, 0, cycles, f"{cycles} cycles", "0", not cycles)
