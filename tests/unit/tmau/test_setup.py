"""Setup against the golden walk: after folding, every byte of shared memory still comes from the same place."""

import itertools
import random

import numpy as np
import pytest

from tilewright.golden import TensorMap
from tilewright.golden.spec import COMMAND, COMMAND_FIELD, Error, Opcode
from tilewright.golden.tmau.tile import walk
from tilewright.hw.tmau.params import PRESETS
from tilewright.hw.tmau.setup import Setup
from tilewright.sim.payloads import checked_payload
from tilewright.sim.pysim import simulate
from tilewright.sim.stimulus import random_load
from tilewright.sim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
PARAMS = PRESETS["unit"]


def sources(runs, length):
    """For each byte of the footprint the global address that it comes from; -1 for fill, -2 for bytes not written."""
    out = np.full(length, -2, np.int64)
    for place, run_bytes, start, stop, address in runs:
        out[place : place + run_bytes] = -1
        out[place + start : place + stop] = (address + np.arange(stop - start)) % (1 << PARAMS.addr_width)
    return out


def golden_sources(tmap, coords, length):
    tile = walk(tmap, coords, PARAMS.addr_width)
    rows = zip(tile.inside, tile.addresses, strict=True)
    runs = [
        (i * tile.pitch, tile.row_bytes, tile.start if inside else 0, tile.stop if inside else 0, int(address))
        for i, (inside, address) in enumerate(rows)
    ]
    return sources(runs, length)


def walked_sources(walk, transfer, length):
    """The same from what setup says."""
    runs = []
    indices = itertools.product(*(range(walk.lasts[d] + 1) for d in reversed(range(4))))
    for i, reversed_index in enumerate(indices):
        index = reversed_index[::-1]
        inside = not walk.outside and all(walk.intervals[d].first <= index[d] < walk.intervals[d].end for d in range(4))
        address = walk.origin + walk.data_start + sum(n * walk.strides[d] for d, n in enumerate(index))
        part = (transfer.data_start, transfer.data_end) if inside else (0, 0)
        if inside:
            assert walk.data_bytes == transfer.data_end - transfer.data_start > 0
            assert walk.data_start == transfer.data_start and transfer.data_end <= transfer.run_bytes
        runs.append((i * transfer.pitch, transfer.run_bytes, *part, address))
    return sources(runs, length), len(runs)


def lookup(tmap, coords, **command):
    fields = {"opcode": Opcode.LOAD, "coords": [*coords, *[0] * (5 - len(coords))], **command}
    return {"command": fields, "checked": checked_payload(tmap, PARAMS), "fault": {}}


@pytest.mark.parametrize("mode", STALL_MODES)
def test_walks_and_transfers(mode):
    dut = Setup(PARAMS)
    rng = random.Random(SEED)
    loads = [random_load(rng, gmem_bytes=1 << 20, smem_bytes=4096) for _ in range(250)]
    stall = STALL_MODES[mode]

    async def source(ctx):
        items = [
            lookup(tmap, coords, smem=smem, tag=i, signal=i % 2, barrier=8 * (i % 512))
            for i, (tmap, coords, smem) in enumerate(loads)
        ]
        await send(ctx, dut.i, items, idle=stall["idle"], seed=1)

    results = {}

    async def walks(ctx):
        results["walks"], results["cycles"] = await receive(ctx, dut.walks, len(loads), stall=stall["stall"], seed=2)

    async def transfers(ctx):
        results["transfers"], _ = await receive(ctx, dut.transfers, len(loads), stall=stall["stall"], seed=3)

    print(f"seed {SEED}")
    watchers = [watch_stream(dut.walks, "walks"), watch_stream(dut.transfers, "transfers")]
    simulate(dut, source, walks, transfers, background=watchers)

    for i, (tmap, coords, smem) in enumerate(loads):
        walk_out, transfer = results["walks"][i], results["transfers"][i]
        payload = checked_payload(tmap, PARAMS)
        got, runs = walked_sources(walk_out, transfer, payload["footprint"])
        assert (got == golden_sources(tmap, coords, payload["footprint"])).all(), (tmap, coords)
        assert transfer.line == smem >> 7 and transfer.tag == i and transfer.signal == i % 2
        assert transfer.barrier == 8 * (i % 512) and transfer.bytes == payload["run_bytes"][4]
        assert transfer.fill == payload["fill"] and transfer.tf32 == payload["tf32"]
        if payload["gapless"] and (got == -1).all():
            assert runs == 1, "a box of fill alone is one run"
    if mode == "none":
        assert results["cycles"][0] == 2, "latency"
        assert results["cycles"][-1] - results["cycles"][0] == len(loads) - 1, "one command a cycle"


def tile(**changes):
    fields = {"element": "u8", "size": (64, 8), "stride": (64,), "box": (16, 4)}
    return TensorMap(**(fields | changes))


REFUSALS = {
    "third coordinate of a 2-D tensor": ({"coords": [0, 0, -1, 0, 0]}, Error.COORDS, "coords", 0xFFFFFFFF),
    "destination off the line": ({"smem": 64}, Error.SMEM_ALIGNMENT, "smem", 64),
    "last byte past shared memory": ({"smem": 4096 - 128, "box": (128, 4)}, Error.SMEM_RANGE, "smem", 4096 - 128),
    "destination far outside": ({"smem": 1 << 31}, Error.SMEM_RANGE, "smem", 1 << 31),
    "barrier off its eight bytes": ({"signal": 1, "barrier": 12}, Error.BARRIER_ALIGNMENT, "barrier", 12),
    "barrier outside": ({"signal": 1, "barrier": 4096}, Error.BARRIER_RANGE, "barrier", 4096),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case):
    changes, code, field, value = REFUSALS[case]
    changes = dict(changes)
    tmap = tile(box=changes.pop("box"), size=(128, 8), stride=(128,)) if "box" in changes else tile()
    dut = Setup(PARAMS)
    item = lookup(tmap, (0, 0), tag=77)
    item["command"] |= changes

    async def run(ctx):
        await send(ctx, dut.i, [item])
        (record,), _ = await receive(ctx, dut.finished, 1)
        assert (record.code, record.tag, record.value) == (code, 77, value)
        assert record.field == COMMAND_FIELD + COMMAND.index(field)
        assert not ctx.get(dut.walks.valid) and not ctx.get(dut.transfers.valid)

    simulate(dut, run)


def test_unsignalled_load_ignores_the_barrier():
    dut = Setup(PARAMS)

    async def run(ctx):
        await send(ctx, dut.i, [lookup(tile(), (0, 0), barrier=13)])
        _, cycles = await receive(ctx, dut.transfers, 1)
        assert len(cycles) == 1

    simulate(dut, run)


def test_known_fault_passes_before_the_command_is_looked_at():
    dut = Setup(PARAMS)
    item = lookup(tile(), (0, 0), smem=1)
    item["fault"] = {"code": Error.RANK, "field": 1, "value": 7}

    async def run(ctx):
        await send(ctx, dut.i, [item])
        (record,), _ = await receive(ctx, dut.finished, 1)
        assert (record.code, record.field, record.value) == (Error.RANK, 1, 7)

    simulate(dut, run)


def test_invalidation_finishes_without_error():
    dut = Setup(PARAMS)
    item = lookup(tile(), (0, 0), smem=1, tag=5)
    item["command"]["opcode"] = Opcode.INVALIDATE

    async def run(ctx):
        await send(ctx, dut.i, [item])
        (record,), _ = await receive(ctx, dut.finished, 1)
        assert (record.code, record.tag) == (Error.NONE, 5)

    simulate(dut, run)
