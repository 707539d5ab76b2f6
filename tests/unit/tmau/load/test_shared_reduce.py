"""Reductions into shared memory: random lines against the golden model in every stall mode; order, strobes, rate."""

import random

import numpy as np
import pytest

from tilewright.golden.spec import Element, Reduction
from tilewright.golden.tmau.reduce import is_legal, reduce
from tilewright.hw.reduce.lane import ReduceLane
from tilewright.hw.tmau.load.shared_reduce import SharedReducer
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = TMAU_PRESETS["unit"]
SEED = 29
ROWS = 3  # few, so that reductions meet what was written just before
LEGAL = [(op, element) for op in Reduction for element in Element if is_legal(op, element)]
PLAIN = (Reduction.NONE, Element.U8)


def random_lines(count):
    rng = random.Random(SEED)
    return [
        make_line(rng, *(rng.choice(LEGAL) if rng.random() < 0.5 else PLAIN), rng.random() < 0.2) for _ in range(count)
    ]


def make_line(rng, op, element, stage=False):
    return {
        "line": {
            "row": rng.randrange(ROWS),
            "data": rng.getrandbits(1024),
            "strobe": rng.choice([rng.getrandbits(128), (1 << 128) - 1]),
        },
        "stage": stage,
        "reduction": op,
        "element": element,
        "error": stage and rng.random() < 0.5,
        "address": rng.getrandbits(PARAMS.addr_width),
    }


def run(lines, mode="none"):
    """Sends ``lines``; returns what memory holds in the end, and what was written and staged, with the cycles."""
    dut = elaborated(SharedReducer, PARAMS)
    stall = STALL_MODES[mode]["stall"]
    memory = np.zeros((ROWS, 128), np.uint8)
    staged = sum(line["stage"] for line in lines)
    result = {"memory": memory}

    async def source(ctx):
        result["sent"] = await send(ctx, dut.i, lines, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def writes(ctx):
        result["writes"] = await receive(ctx, dut.writes, len(lines) - staged, stall=stall, seed=SEED)

    async def stages(ctx):
        result["staged"] = await receive(ctx, dut.staged, staged, stall=stall, seed=SEED + 1)

    async def shared_memory(ctx):
        """Reads and writes at the edge of the handshake; between reads the line shows anything."""
        rng = random.Random(SEED)
        fetch, write = dut.fetch.rows, dut.writes
        ctx.set(fetch.ready, 1)
        async for _, _, fetching, row, writing, line in ctx.tick().sample(
            fetch.valid & fetch.ready, fetch.payload, write.valid & write.ready, write.payload
        ):
            shown = int.from_bytes(memory[row].tobytes(), "little") if fetching else rng.getrandbits(1024)
            ctx.set(dut.fetch.line, shown)
            ctx.set(fetch.ready, rng.random() >= stall)
            if writing:
                strobes = np.array([line.strobe >> byte & 1 for byte in range(128)], bool)
                data = np.frombuffer(line.data.to_bytes(128, "little"), np.uint8)
                memory[line.row][strobes] = data[strobes]

    rules = [watch_stream(port) for port in (dut.writes, dut.staged, dut.fetch.rows)]
    simulate(dut, source, writes, stages, background=[shared_memory, *rules], deadline=100 * len(lines))
    return result


def expected_memory(lines):
    memory = np.zeros((ROWS, 128), np.uint8)
    for each in lines:
        if each["stage"]:
            continue
        row = memory[each["line"]["row"]]
        data = np.frombuffer(each["line"]["data"].to_bytes(128, "little"), np.uint8)
        new = data if each["reduction"] == Reduction.NONE else reduce(each["reduction"], each["element"], row, data)
        strobes = np.array([each["line"]["strobe"] >> byte & 1 for byte in range(128)], bool)
        row[strobes] = new[strobes]
    return memory


@pytest.mark.parametrize("mode", STALL_MODES)
def test_lines_of_all_kinds(mode):
    lines = random_lines(120)
    result = run(lines, mode)
    assert (result["memory"] == expected_memory(lines)).all()
    written = [each for each in lines if not each["stage"]]
    for came, each in zip(result["writes"][0], written, strict=True):
        assert (came.row, came.strobe) == (each["line"]["row"], each["line"]["strobe"])
    for came, each in zip(result["staged"][0], [each for each in lines if each["stage"]], strict=True):
        assert (came.data, came.error, came.address) == (each["line"]["data"], each["error"], each["address"])
    # A line is accepted in the very cycle in which it is written: completions count on that.
    assert result["writes"][1] == [
        cycle for cycle, each in zip(result["sent"], lines, strict=True) if not each["stage"]
    ]


def test_plain_lines_pass_at_once_and_reductions_take_their_time():
    rng = random.Random(SEED)
    kinds = [PLAIN, PLAIN, (Reduction.ADD, Element.F32), (Reduction.OR, Element.U32), PLAIN]
    cycles = run([make_line(rng, *kind) for kind in kinds])["writes"][1]
    cost = 11 + ReduceLane.LATENCY
    assert cycles == [0, 1, 1 + cost, 1 + 2 * cost, 2 + 2 * cost]
