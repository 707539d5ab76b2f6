"""Measures kernels of the processing engine: cycles of a call and its instructions, with operands in shared memory."""

from dataclasses import replace

import numpy as np

from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.params import PE_PRESETS

from .. import kernels
from ..hdl.settings import changed
from ..session import Session
from .line import Line, timed

__all__ = ["cases", "measure"]

_SEED = 56
#: Threads for which there are targets.
_THREADS = 16
_LEAST = {"regs": 128, "kernel_words": 256}
#: Counters of the cycles in which instructions wait.
_CAUSES = ("stall_operand", "stall_port", "bank_conflicts", "translation_misses")


def cases(params):
    """The kernels that an engine can run: name, most cycles an element, and ``KernelProgram``.

    There are as many rows as keep 64 threads busy at most; results of engines with fewer threads have other sizes.
    None of the kernels runs on an engine with fewer registers or instructions than ``_LEAST``.
    """
    if not params.units or params.regs < _LEAST["regs"] or params.kernel_words < _LEAST["kernel_words"]:
        return
    rng = np.random.default_rng(_SEED)
    rows = 4 * min(params.threads, _THREADS)
    options = {"sizes": params, "smem_bytes": params.smem.size_bytes}

    def some(*shape, dtype=np.uint8):
        return rng.integers(0, 256, shape, np.uint8).view(dtype)

    matrix, wide, square = some(rows, 128), some(rows // 2, 768), some(4 * rows, 2 * rows)
    gain, shift = rng.standard_normal((2, 768)).astype(np.float32)
    floats = rng.standard_normal((rows // 4, 128)).astype(np.float32)
    gates, state = [some(8, 72, dtype=np.int8) for _ in range(4)], rng.standard_normal((8, 72)).astype(np.float32)
    numbers = {"a_zero": 3, "b_zero": 5, "scale": 0.01, "y_zero": 9}
    ratios = {"ratio": (0.4, 0.7), "offset": -30}
    makers = [
        ("softmax, bytes, rows of 128", 0.8, lambda: kernels.softmax_bytes(matrix, 0.05, **options)),
        ("softmax, binary32, rows of 128", 2, lambda: kernels.softmax_floats(floats, **options)),
        ("layer normalisation, rows of 768", 0.6,
         lambda: kernels.layer_norm(wide, gain, shift, x_quant=(0.02, 128), y_quant=(0.03, 120), **options)),
        ("product", 0.6, lambda: kernels.product_bytes(matrix, matrix[::-1], **numbers, **options)),
        ("product with a column", 0.6, lambda: kernels.product_bytes(matrix, matrix[:, :1], **numbers, **options)),
        ("sum", 0.6, lambda: kernels.sum_bytes(matrix, matrix[::-1], **ratios, **options)),
        ("sum with a row", 0.6, lambda: kernels.sum_bytes(matrix, matrix[0], **ratios, **options)),
        ("function", 0.25, lambda: kernels.function_bytes(matrix, some(256), **options)),
        ("sum of rows of 768", 0.1, lambda: kernels.sum_rows(wide, 3, **options)),
        ("mean of rows of 768", 0.1, lambda: kernels.mean_rows(wide, 0.001, **options)),
        ("largest of rows of 768", 0.1, lambda: kernels.max_rows(wide, **options)),
        ("arg max of rows of 768", 0.1, lambda: kernels.arg_max(wide, **options)),
        (f"transpose of {4 * rows} × {2 * rows}", 0.25, lambda: kernels.transpose_bytes(square, **options)),
        (f"transpose of {2 * rows} × {rows}", 0.25,
         lambda: kernels.transpose_bytes(square[: 2 * rows, :rows].copy(), **options)),
        ("gather of rows of 128", 0.25,
         lambda: kernels.gather_rows(matrix, rng.integers(0, rows, rows).astype(np.int32), **options)),
        ("gates of an LSTM", None,
         lambda: kernels.lstm_gates(gates, state, gate_quant=(0.05, 3), h_quant=(1 / 127, 0), **options)),
        ("gates of a GRU", None,
         lambda: kernels.gru_gates(gates, state, gate_quant=(0.05, 3), y_quant=(1 / 50, 0), **options)),
    ]  # fmt: skip
    for name, target, make in makers:
        if (program := make()).units <= set(params.units):
            yield name, target if params.threads == _THREADS else None, program


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every ``Line`` of a preset with the simulation's cycles a second so far."""
    params = changed(PE_PRESETS[preset], settings)
    if not list(cases(params)):
        return
    with Session(params=CoreParams(pe=params), simulator=simulator) as session:
        yield from timed(session, _lines(session, preset))


def _lines(session, preset):
    for name, target, program in cases(session.params.pe):
        cycles, counters = _cycles(session, name, program)
        instructions = sum(program.instructions().values())
        each = cycles / program.elements
        yield Line(
            preset, name, None, instructions, cycles, f"{each:.3f}", f"<= {target}" if target else "none",
            target is None or each <= target, counters,
            f"{cycles} cycles, {instructions} instructions, {program.elements} elements", each=each,
        )  # fmt: skip


def _cycles(session, name, program):
    """Cycles of a second call of a kernel after the first, and their causes; the result of one must be golden's."""
    once, counted = _run(session, name, program, calls=1)
    twice, counters = _run(session, name, program, calls=2)
    return twice - once, {cause: counters[cause] - counted[cause] for cause in _CAUSES}


def _run(session, name, program, calls):
    case = program.program
    case = replace(case, body=case.body * calls)
    session.reset()
    session.shared_memory.write(0, case.smem)
    run = session.run(program=case.words, segments=case.segments, pages=case.pages)
    if run.faults:
        raise RuntimeError(f"{name} met {run.faults[0]}")
    if calls == 1 and (program.read(session.shared_memory.read(0, len(case.smem))) != program.run()).any():
        raise RuntimeError(f"the result of {name} is wrong")
    return run.span, session.registers()
