"""Setup against the golden walk: after folding, every byte of shared memory still belongs to the same place."""

import itertools
import random

import numpy as np
import pytest

from support.streams import transact
from support.tmau_neighbours import checked_payload, listed_payload, show_dimensions
from tilewright.golden import TensorMap
from tilewright.golden.tmau.tile import footprint, pitch, row_bytes, tx_bytes, walk
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.tensor import Setup
from tilewright.spec import COMMAND, COMMAND_FIELD, Element, Error, Mode, Opcode, Reduction
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES
from tilewright.verify.random.maps import Start, random_start

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]
WIDE = PARAMS.replace(bus_bytes=64)
SPACE = 1 << PARAMS.addr_width


def places(runs, length):
    """For each byte of the footprint its global address; -1 outside the tensor, -2 for gaps."""
    out = np.full(length, -2, np.int64)
    for place, run_bytes, start, stop, address in runs:
        out[place : place + run_bytes] = -1
        out[place + start : place + stop] = (address + np.arange(stop - start)) % SPACE
    return out


def golden_places(start):
    tile = walk(start.tmap, start.coords, PARAMS.addr_width, start.offsets or (0, 0, 0))
    parts = [(tile.start, tile.stop) if inside else (0, 0) for inside in tile.inside]
    runs = [
        (int(place), tile.run_bytes, *part, int(address))
        for place, part, address in zip(tile.places, parts, tile.addresses, strict=True)
    ]
    return places(runs, footprint(start.tmap))


def boxed(walked):
    """Runs of a WalkLayout: whether inside, address, whether it ends a row, bytes if it says them itself."""
    assert not (walked.folds and walked.outside)
    for outer in itertools.product(*(range(walked.lasts[d] + 1) for d in reversed(range(5)))):
        index = list(outer[::-1])
        within = [walked.intervals[d].first <= index[d] < walked.intervals[d].end for d in range(5)]
        inside, length = all(within) and not walked.outside, 0
        if walked.folds and not inside:
            assert walked.lasts[0] == 0
            length = walked.behind if index[1] else walked.before
            if not all(within[2:]):
                if index[1]:
                    continue
                length = walked.level_bytes
        if walked.folds:
            index[1] -= walked.intervals[1].first
        address = walked.origin + sum(n * walked.strides[d] for d, n in enumerate(index))
        yield inside, address, index[0] == walked.lasts[0], length


def pixelwise(walked):
    """The same of a PixelWalkLayout; rounds are walked with the origins alone, as the hardware does."""
    position, rounds = list(walked.starts), list(walked.origins)
    for _ in range(walked.last + 1):
        inside = all(0 <= x <= walked.sizes[k] for k, x in enumerate(position))
        yield inside and not walked.outside, rounds[0], True, 0
        turning = [position[k] >= walked.turns[k] for k in range(3)]
        moving = next((k for k in range(3) if not turning[k]), 3)
        position[moving] += walked.steps[moving] + 1
        position[:moving] = walked.lows[:moving] if moving else []
        rounds[: moving + 1] = [rounds[moving] + walked.strides[moving]] * (moving + 1)


def job_places(job, length):
    """What a job says, in the form of :func:`places`, and the number of its runs."""
    transfer, runs, place = job.transfer, [], 0
    walked = job.pixels if job.im2col else job.walk
    assert walked.store == job.store
    for inside, address, ends_row, own in (pixelwise if job.im2col else boxed)(walked):
        part = (transfer.data_start, transfer.data_end) if inside else (0, 0)
        if inside:
            assert transfer.data_end <= transfer.run_bytes
            assert walked.data_bytes == transfer.data_end - transfer.data_start > 0
        run_bytes = own or transfer.run_bytes
        runs.append((place, run_bytes, *part, address))
        place += run_bytes + (transfer.gap if ends_row else 0)
    return places(runs, length), len(runs)


class Lookup(dict):
    """What the descriptor cache offers; ``lists`` are the dimensions that it shows with it."""


def lookup(start, **command):
    fields = {"opcode": Opcode.LOAD, **command}
    fields["coords"] = [*start.coords, *[0] * (5 - len(start.coords))]
    fields["offsets"] = [*start.offsets, *[0] * (3 - len(start.offsets))]
    item = Lookup(command=fields, checked=checked_payload(start.tmap, PARAMS), fault={})
    item.lists = listed_payload(start.tmap, PARAMS)
    return item


def shown(dut, items):
    """The part of the descriptor cache that shows dimensions."""

    async def show(ctx):
        await show_dimensions(ctx, dut, [item.lists for item in items])

    return show


def schedule(items):
    """The cycle of each job, where nothing pauses."""
    begins, before = 0, -1
    for item in items:
        checked = item["checked"]
        dimensions = 2 * checked["rank"] - 2 if checked["im2col"] else checked["rank"]
        first = max(begins + 2, before)  # in the third stage, as the job before leaves
        begins = first + max(dimensions, 3) - 2
        before = first + dimensions
        yield before


def starts(count, stores):
    rng = random.Random(SEED + stores)
    return [random_start(rng, first=0, end=1 << 20, most_bytes=4096, stores=stores) for _ in range(count)]


def run(items, mode, params=PARAMS):
    """The jobs of ``items``, which all move, and the cycles in which they came."""
    dut = elaborated(Setup, params)
    came, cycles = transact(dut, {"i": items}, {"jobs": len(items)}, mode, seed=1, background=[shown(dut, items)])
    return came["jobs"], cycles["jobs"]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_loads(mode):
    drawn = starts(120, stores=False)
    items = [lookup(start, smem=128 * (i % 2), tag=i, signal=i % 2, fill=1) for i, start in enumerate(drawn)]
    for item in items:  # the footprint may be all of shared memory
        item["command"]["smem"] *= item["checked"]["footprint"] <= 4096 - 128
        item["command"]["barrier"] = 8 * (item["command"]["tag"] % 512)
    jobs, cycles = run(items, mode)
    for i, (start, item, job) in enumerate(zip(drawn, items, jobs, strict=True)):
        tmap, transfer = start.tmap, job.transfer
        got, runs = job_places(job, footprint(tmap))
        assert (got == golden_places(start)).all(), start
        assert not job.store and not transfer.immediate and transfer.reduction == Reduction.NONE
        assert (transfer.tag, transfer.signal, transfer.barrier) == (i, i % 2, 8 * (i % 512))
        assert transfer.smem == item["command"]["smem"] and transfer.bytes == tx_bytes(tmap)
        assert transfer.fill == item["checked"]["fill"] * 0x1_00000001
        assert transfer.tf32 == (tmap.element == Element.TF32) and not transfer.quiet
        if tmap.mode == Mode.TILE and pitch(tmap) == row_bytes(tmap) and (got == -1).all():
            assert runs == 1, "a box of fill alone is one run"
    if mode == "none":
        assert cycles == list(schedule(items)), "latency, and what overlaps"


def test_stores_and_reductions():
    drawn = starts(120, stores=True)
    items = []
    for i, start in enumerate(drawn):
        adds = start.tmap.element in (Element.U32, Element.F16, Element.F32)
        opcode = Opcode.REDUCE if adds and i % 2 else Opcode.STORE
        items.append(lookup(start, opcode=opcode, tag=i, reduction=Reduction.ADD, fill=i % 3 == 0, signal=1, barrier=1))
    jobs, _ = run(items, "both")
    for start, item, job in zip(drawn, items, jobs, strict=True):
        transfer, command = job.transfer, item["command"]
        got, runs = job_places(job, footprint(start.tmap))
        expected = golden_places(start)
        assert ((got == expected) | ((got < 0) & (expected < 0))).all(), start
        assert job.store and not transfer.signal and not transfer.tf32
        assert transfer.immediate == command["fill"] and transfer.element == start.tmap.element
        assert transfer.reduction == (Reduction.ADD if command["opcode"] == Opcode.REDUCE else Reduction.NONE)
        if start.tmap.mode == Mode.TILE and (expected < 0).all():
            assert runs == 1, "a box wholly outside is one run"


def test_boxes_of_two_and_three_dimensions_follow_each_other_in_three_cycles():
    tile = TensorMap(element="u8", size=(64, 8), stride=(64,), box=(64, 4), address=0)
    cube = TensorMap(element="u8", size=(64, 8, 8), stride=(64, 512), box=(64, 2, 2), address=0)
    for tmap, expected in ((tile, [4, 7, 10, 13, 16, 19]), (cube, [5, 8, 11, 14, 17, 20])):
        _, cycles = run([lookup(Start(tmap, (0,) * tmap.rank))] * 6, "none")
        assert cycles == expected


ROWS = {"element": "u8", "size": (64, 64), "stride": (256,), "box": (16, 32), "address": 4096}
PLANES = ROWS | {"size": (64, 64, 64), "stride": (256, 16384), "box": (16, 4, 4)}
COLUMN = PLANES | {"box": (64, 1, 8), "size": (64, 1, 64), "stride": (64, 256)}


@pytest.mark.parametrize(
    ("runs", "fields", "coords"),
    [
        (32, ROWS, (0, 0)),
        (17, ROWS, (0, -16)),
        (17, ROWS, (0, 48)),
        (3, ROWS | {"size": (64, 1)}, (0, -16)),
        (17, ROWS, (-8, -16)),
        (32, ROWS | {"swizzle": "32B"}, (0, -16)),
        (16, ROWS | {"traversal": (1, 2)}, (0, -16)),
        (10, PLANES, (0, 0, -2)),
        (7, PLANES, (0, -3, -1)),
        (8, COLUMN, (0, 0, -1)),
        (5, COLUMN, (0, 0, -4)),
        (64, ROWS | {"gather0": True, "traversal": (8, 1)}, (0, -16)),
    ],
    ids=["inside", "above", "below", "on both sides", "a corner", "gaps", "steps", "planes before",
         "a corner of planes", "a row of a folded dimension", "rows of a folded dimension", "elements"],
)  # fmt: skip
def test_rows_outside_are_one_run(runs, fields, coords):
    start = Start(TensorMap(**fields, check=False), coords)
    ((job,), _) = run([lookup(start)], "none")
    got, count = job_places(job, footprint(start.tmap))
    assert (got == golden_places(start)).all() and count == runs


IMAGE = {"element": "u8", "size": (16, 8, 8, 2), "stride": (16, 128, 1024), "mode": "im2col", "channels": 16,
         "pixels": 20, "lower": (-1, 0), "upper": (0, 0), "address": 0}  # fmt: skip
SLICES = IMAGE | {"size": (8, 8, 2, 2), "stride": (128, 1024, 2048), "interleave": "16B"}


@pytest.mark.parametrize(
    ("folds", "changes"),
    [
        (1, {}),
        (1, {"traversal": (1, 1, 2, 1)}),
        (1, SLICES),
        (1, {"size": (48, 5, 8, 2), "stride": (48, 240, 2048), "channels": 48}),
        (0, {"stride": (32, 256, 2048)}),
        (0, {"traversal": (1, 2, 1, 1)}),
        (0, SLICES | {"traversal": (2, 1, 1, 1)}),
        (0, {"swizzle": "32B"}),
        (0, {"coords": (-1, 0, 0, 0)}),
        (0, {"coords": (1, 0, 0, 0)}),
        (0, {"size": (64, 8, 8, 2), "stride": (64, 512, 4096), "channels": 64}),
        (0, {"size": (16, 4, 8, 2)}),
        (0, {"pixels": 16}),
        (0, {"opcode": Opcode.STORE, "lower": (0, 0)}),
    ],
    ids=["chunks", "a step of H", "slices", "three chunks", "apart", "a step of W", "a step of slices", "gaps",
         "a channel before", "a channel behind", "a bus word", "short lines", "a short walk", "a store"],
)  # fmt: skip
def test_pixels_fold_where_they_adjoin(folds, changes):
    fields = IMAGE | changes
    coords, opcode = fields.pop("coords", (0, 0, 0, 0)), fields.pop("opcode", Opcode.LOAD)
    jobs, _ = run([lookup(Start(TensorMap(**fields, check=False), coords), opcode=opcode)], "none", WIDE)
    assert jobs[0].im2col and jobs[0].pixels.folds == folds


def finished(item, inputs=()):
    """The record of a command that ends in setup."""
    dut = elaborated(Setup, PARAMS)
    came, _ = transact(dut, {"i": [item]}, {"finished": 1}, inputs=inputs, background=[shown(dut, [item])])
    (record,) = came["finished"]
    return record.code, record.tag, record.field, record.address


def small_start(**command):
    (start,) = starts(1, stores=True)
    return lookup(start, tag=77, **command)


def test_broken_rule_ends_the_command():
    item = small_start(smem=64)
    assert finished(item) == (Error.SMEM_ALIGNMENT, 77, COMMAND_FIELD + COMMAND.index("smem"), 0)


@pytest.mark.parametrize("opcode", [Opcode.PREFETCH, Opcode.INVALIDATE, Opcode.INVALIDATE_ALL])
def test_command_that_moves_nothing_ends_without_error(opcode):
    assert finished(small_start(opcode=opcode, smem=1, signal=1, barrier=1)) == (Error.NONE, 77, 0, 0)


def test_known_fault_ends_any_command():
    item = small_start(opcode=Opcode.COPY_BLOCK)
    item["fault"] = {"code": Error.WINDOW, "field": 136}
    assert finished(item) == (Error.WINDOW, 77, 136, 0)


def test_tensor_beyond_the_window_is_refused():
    tmap = TensorMap(element="u8", size=(64,), box=(16,), address=(1 << 40) + 16)
    window = {"windows": {"confine_global": 1, "global_last": (1 << 20) - 1}}
    code, _, _, address = finished(lookup(Start(tmap, (0,))), window)
    assert (code, address) == (Error.WINDOW, 0)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_prefetches_leave_as_jobs_and_end_here(mode):
    """Where a cache outside takes them, and the box fits shared memory; then the next command follows."""
    opcodes = [Opcode.PREFETCH, Opcode.LOAD, Opcode.PREFETCH, Opcode.PREFETCH, Opcode.LOAD]
    items = [
        lookup(start, opcode=opcode, tag=tag)
        for tag, (start, opcode) in enumerate(zip(starts(5, stores=True), opcodes, strict=True))
    ]
    items[3]["checked"]["too_large"] = 1
    dut = elaborated(Setup, PARAMS.replace(prefetches=True))
    came, _ = transact(dut, {"i": items}, {"jobs": 4, "finished": 3}, mode, background=[shown(dut, items)])
    jobs = [(job.transfer.tag, job.prefetch, job.walk.prefetch, job.pixels.prefetch) for job in came["jobs"]]
    assert jobs == [(0, 1, 1, 1), (1, 0, 0, 0), (2, 1, 1, 1), (4, 0, 0, 0)]
    assert [(end.tag, end.code) for end in came["finished"]] == [(tag, Error.NONE) for tag in (0, 2, 3)]
