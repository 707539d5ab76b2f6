"""Measures whole convolutions, global memory to global memory, as programs of both engines in exact cycles.

Specification: docs/core.md, "Convolutions as products".
"""

import numpy as np

from tilewright.golden import ConvLayer, ImplicitGemm, LayerProgram, convolve
from tilewright.hw.core.params import ENGINES, core_params

from ..hdl.settings import changed
from ..session import Session
from .line import share, timed

__all__ = ["FEATURES", "lines", "measure", "run"]

_LATENCY = 100
#: Features of the access unit that convolutions as products need; without them jobs alone are measured.
FEATURES = ("im2col", "stores", "swizzle")
#: N, H, W, C; Co, Kh, Kw, C; padding on all sides. Measured if shared memory can hold them with all their sums.
_LAYERS = {
    "3x3 on 8x8, 16 to 16": ((1, 8, 8, 16), (16, 3, 3, 16), 1),
    "1x1 on 8x8, 32 to 32": ((1, 8, 8, 32), (32, 1, 1, 32), 0),
    "3x3 on 14x14, 64 to 64": ((1, 14, 14, 64), (64, 3, 3, 64), 1),
    "1x1 on 14x14, 256 to 64": ((1, 14, 14, 256), (64, 1, 1, 256), 0),
    "3x3 on 7x7, 96 to 96": ((1, 7, 7, 96), (96, 3, 3, 96), 1),
}


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every ``Line`` of a preset with the simulation's cycles a second so far."""
    params = changed(core_params(preset, ENGINES), settings)
    with Session(params=params, simulator=simulator, latency=_LATENCY) as session:
        yield from timed(session, lines(session, preset))


def run(session, program):
    """Global memory after an ``ImplicitGemm`` or a ``LayerProgram``, and cycles from its first word to its end."""
    session.clear()
    session.place(program.memory)
    ended = session.run_program(program.address, len(program.words))
    if ended.record:
        raise RuntimeError(f"the program stopped: {ended.record}")
    return session.global_memory.read(0, len(program.memory)), ended.words[-1].cycle - ended.words[0].cycle


def lines(session, preset):
    """Yields every ``Line`` of a preset, measured on a session with its core."""
    size, pe, conv = session.params.smem.size_bytes, session.params.pe, session.params.conv.conv
    for name, (x_shape, k_shape, pad) in _LAYERS.items():
        rng = np.random.default_rng(1)
        x, k = (rng.integers(-128, 128, shape, np.int8) for shape in (x_shape, k_shape))
        padding = (pad,) * 4
        layer = ConvLayer(x, k, "s8s8", padding=padding, params=conv)
        if len(layer.smem) > size:
            continue
        ways = {"convolution engine": (LayerProgram(layer, size), layer, conv.slaves * conv.units * conv.row_bytes)}
        if set(FEATURES) <= set(session.params.tmau.features):
            products = ImplicitGemm(x, k, "s8s8", padding=padding, sizes=pe, smem_bytes=size)
            ways["implicit GEMM"] = (products, products, pe.threads * pe.unit_bytes)
        expected = convolve(x, k, "s8s8", padding=padding)
        for way, (program, results, macs_a_cycle) in reversed(ways.items()):
            memory, cycles = run(session, program)
            if (results.result(memory) != expected).any():
                raise RuntimeError(f"{name}, {way}: the sums are wrong")
            yield share(preset, f"{name}, {way}", _LATENCY, layer.shape.macs // macs_a_cycle, cycles, None)
