"""Copies between memory and lanes: every byte, and refusals, as golden has them; rate and latency."""

import random

import numpy as np
import pytest

from support.selection import grid
from support.streams import transact
from tilewright.golden.memory import Memory
from tilewright.golden.tmau.checks import Windows
from tilewright.golden.tmau.lanes import check_lanes, copy_lanes
from tilewright.hw.lib.layouts import command_layout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.lanes import LaneSetup
from tilewright.spec import LANES, Element, Error, LaneLayout, Opcode
from tilewright.spec.tmau_registers import FEATURES
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = TMAU_PRESETS["unit"]
SMEM = PARAMS.smem.size_bytes


SEED = 20261121
GMEM = 1 << 16
LATENCY = 15


def packed(**fields):
    return command_layout().from_bits(LANES.pack(opcode=Opcode.LANES, **fields))


def random_fields(rng):
    """A command that mostly is sound."""
    lanes_log2 = rng.choice([0, 1, 1, 2, 2, 3, 4])
    element = rng.choice(list(Element))
    lane_bytes = SMEM >> lanes_log2
    eu_log2 = rng.randint(element.bytes.bit_length() - 1, 5)
    layouts = rng.choice([(0, rng.randint(1, 3)), (rng.randint(1, 3), 0), (rng.randint(1, 3), rng.randint(1, 3))])
    sides = {}
    for name, layout in zip(("source", "destination"), layouts, strict=True):
        granule = 1 << eu_log2 if layout in (LaneLayout.ALIGNED, LaneLayout.ROW_ALIGNED) else element.bytes
        top = lane_bytes // 2 if layout else GMEM - 8192
        sides[name] = granule * rng.randrange(top // granule) if rng.random() < 0.95 else rng.randrange(top)
        sides[f"{name}_lane"] = rng.randrange(1 << lanes_log2) if layout else 0
        sides[f"{name}_layout"] = layout
    if all(layouts):
        # One in each half of a lane, so that they seldom overlap.
        sides["destination"] = (sides["destination"] + lane_bytes // 2) % lane_bytes
    shape = [rng.randint(1, 7), rng.randint(1, 4), rng.randint(1, 9), rng.randint(1, 3)]
    fields = {"tag": rng.getrandbits(16), "element": element, "shape": shape, "lanes_log2": lanes_log2}
    fields |= {"eu_log2": eu_log2, "signal": rng.randrange(2), "barrier": 8 * rng.randrange(SMEM // 8), **sides}
    if rng.random() < 0.2:
        fields |= rng.choice(
            [
                {"element": 15},
                {"barrier": rng.getrandbits(13)},
                {"lanes_log2": rng.randint(5, 15)},
                {"eu_log2": rng.randint(0, 15)},
                {"source_lane": rng.randrange(256)},
                {"destination_lane": rng.randrange(256)},
                {"source_layout": 0, "destination_layout": 0},
                {"shape": [rng.randint(1, 65536), *shape[1:]]},
                {"source": rng.getrandbits(64)},
                {"destination": fields["source"]},
            ]
        )
    return fields


def apply(job, gmem, smem):
    """What a job does: moves bytes between memories."""
    count, place, address = job.size, job.smem, job.address
    assert place + count <= len(smem)
    if job.loop:
        assert job.target + count <= len(smem)
        smem[job.target : job.target + count] = smem[place : place + count]
    elif job.store:
        gmem.write(address, smem[place : place + count])
    else:
        smem[place : place + count] = gmem.read(address, count)


#: Features that hardware lacks.
MISSING = [(), ("local_copies",), ("stores", "reductions_global", "local_copies")]


@grid(lambda confined, mode, missing: not missing if confined else mode == "both",
      confined=[False, True], mode=STALL_MODES, missing=MISSING)  # fmt: skip
def test_bytes_and_refusals(mode, confined, missing):
    params = PARAMS.replace(features=[name for name in FEATURES if name not in missing])
    dut = elaborated(LaneSetup, params)
    rng = random.Random(f"{SEED}{mode}{confined}")
    stall = STALL_MODES[mode]
    pages = (1 if confined else 0, 14 if confined else 15)
    windows = Windows(global_=(pages[0] * 4096, pages[1] * 4096 + 4095) if confined else None)
    codes = set()

    async def run(ctx):
        ctx.set(dut.windows, {"confine_global": confined, "global_first": pages[0], "global_last": pages[1]})
        for trial in range(30):
            word = packed(**random_fields(rng))
            fields = LANES.unpack(word.as_bits())
            contents = np.random.default_rng(trial)
            gmem, smem = Memory(contents.bytes(GMEM)), np.frombuffer(contents.bytes(SMEM), np.uint8).copy()
            wanted_gmem, wanted_smem = Memory(gmem.data.copy()), smem.copy()
            refusal = check_lanes(fields, SMEM, windows, PARAMS.addr_width, params.features)
            await send(ctx, dut.i, [word], idle=stall["idle"], seed=trial)
            assert ctx.get(dut.busy) and not ctx.get(dut.i.ready)
            if refusal:
                (record,), _ = await receive(ctx, dut.finished, 1)
                assert (record.code, record.field, record.address) == (refusal.code, refusal.field, 0), fields
                assert record.tag == fields["tag"]
                codes.add(refusal.code)
                continue
            total = copy_lanes(fields, wanted_gmem, wanted_smem, PARAMS.addr_width)
            quiet = True
            while quiet:
                (job,), _ = await receive(ctx, dut.jobs, 1, stall=stall["stall"], seed=trial)
                apply(job, gmem, smem)
                quiet = job.quiet
            to_lanes = fields["destination_layout"] != LaneLayout.GLOBAL
            from_lanes = fields["source_layout"] != LaneLayout.GLOBAL
            assert (job.tag, job.bytes, job.store) == (fields["tag"], total, from_lanes)
            assert (job.signal, job.barrier) == (fields["signal"] and to_lanes, fields["barrier"] % SMEM)
            assert (smem == wanted_smem).all() and (gmem.data == wanted_gmem.data).all(), fields
            await ctx.tick()  # the last job left in the cycle before
            assert not ctx.get(dut.busy)
            codes.add(Error.NONE)

    print(f"seed {SEED}")
    simulate(dut, run, background=[watch_stream(dut.jobs), watch_stream(dut.finished)], deadline=40_000)
    assert Error.NONE in codes and len(codes) > 3 and (Error.UNSUPPORTED in codes) == bool(missing)


@pytest.mark.parametrize(("layout", "count"), [(LaneLayout.ALIGNED, 6), (LaneLayout.ROW_ALIGNED, 24)])
def test_a_job_every_other_cycle(layout, count):
    """One for each channel, or for each row; the first after 15 cycles."""
    fields = {"element": Element.F16, "shape": [5, 4, 3, 2], "lanes_log2": 2, "eu_log2": 4}
    command = packed(destination_layout=layout, **fields)
    came, cycles = transact(elaborated(LaneSetup, PARAMS), {"i": [command]}, {"jobs": count})
    assert cycles["jobs"] == list(range(LATENCY, LATENCY + 2 * count, 2))
    assert [job.quiet for job in came["jobs"]] == [1] * (count - 1) + [0]
