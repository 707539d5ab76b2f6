"""Reductions of lines, against the golden model; everything else passes."""

import random

import numpy as np
import pytest

from tilewright.golden.spec import LINE_BYTES, Element, Reduction
from tilewright.golden.tmau.reduce import is_legal, reduce
from tilewright.hw.cluster.network.line_reducer import LineReducer
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261124
SMEM = SmemParams(1024)
LEGAL = [(op, element) for op in Reduction for element in Element if is_legal(op, element)]


def reducer():
    return LineReducer(SMEM, 2, floats=True)


def run(changes, mode="none"):
    """Sends changes of lines; the memory behind, and the cycles in which they left."""
    dut, stalls, result = elaborated(reducer), STALL_MODES[mode], {}
    memory = np.random.default_rng(SEED).integers(0, 256, (SMEM.rows, LINE_BYTES), np.uint8)

    async def source(ctx):
        arrivals = [{"packet": {"change": change}} for change in changes]
        await send(ctx, dut.i, arrivals, idle=stalls["idle"], seed=SEED)

    async def sink(ctx):
        cycles = []
        for number in range(len(changes)):
            (arrival,), (cycle,) = await receive(ctx, dut.o, 1, stall=stalls["stall"], seed=number)
            change = arrival["packet"]["change"]
            memory[change["row"]] = np.frombuffer(change["data"].to_bytes(LINE_BYTES, "little"), np.uint8)
            cycles.append(cycle)
        result["cycles"] = cycles

    async def shared_memory(ctx):
        rng = random.Random(SEED)
        ticks = ctx.tick().sample(dut.fetch.rows.valid & dut.fetch.rows.ready, dut.fetch.rows.p)
        ctx.set(dut.fetch.rows.ready, 1)
        async for _, _, fetches, row in ticks:
            line = memory[row].tobytes() if fetches else rng.randbytes(LINE_BYTES)
            ctx.set(dut.fetch.line, int.from_bytes(line, "little"))
            ctx.set(dut.fetch.rows.ready, rng.random() >= stalls["stall"])

    simulate(dut, source, sink, background=[shared_memory, watch_stream(dut.o)])
    return memory, result["cycles"]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_reduction(mode):
    """Few rows, so that most lines meet what was written just before."""
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    expected = np.random.default_rng(SEED).integers(0, 256, (SMEM.rows, LINE_BYTES), np.uint8)
    changes = []
    for op, element in [*LEGAL, (Reduction.NONE, Element.U8)] * (2 if mode == "both" else 1):
        row, data = rng.randrange(2), rng.randbytes(LINE_BYTES)
        changes.append({"row": row, "data": int.from_bytes(data, "little"), "reduction": op, "element": element})
        source = np.frombuffer(data, np.uint8)
        expected[row] = source if op == Reduction.NONE else reduce(op, element, expected[row], source)
    memory, _ = run(changes, mode)
    assert (memory == expected).all()


def test_cycles():
    """A line in 17 cycles with floats, one without a reduction in one."""
    add = {"reduction": Reduction.ADD, "element": Element.U32}
    _, cycles = run([{"row": 1}, {"row": 2}, {"row": 1} | add, {"row": 1} | add, {"row": 2}])
    assert np.cumsum(np.array(cycles) + 1).tolist() == [1, 2, 19, 36, 37]
