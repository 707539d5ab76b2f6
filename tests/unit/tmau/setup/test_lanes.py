"""Rules of copies between memory and lanes, one by one, in the order of reports; sizes of elements."""

import random

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from support.cases import grid
from support.streams import transact
from tilewright.golden.memory import Memory
from tilewright.golden.tmau.checks import Windows
from tilewright.golden.tmau.lanes import check_lanes, copy_lanes
from tilewright.hw.lib.layouts import command_layout
from tilewright.hw.tmau.layouts import WindowsLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.lanes import LaneSetup, SidesLayout, element_log2, lane_rules
from tilewright.spec import LANES, Element, Error, LaneLayout, Opcode
from tilewright.spec.tmau_registers import FEATURES
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = TMAU_PRESETS["unit"]
SMEM = PARAMS.smem.size_bytes
WINDOWS = {"confine_global": 1, "global_first": 1, "global_last": 2}


class Rules(wiring.Component):
    """The conditions as one number."""

    sides: In(SidesLayout(PARAMS))
    windows: In(WindowsLayout(PARAMS))

    def __init__(self, params=PARAMS):
        super().__init__()
        self.rules = lane_rules(params, self.windows, self.sides)
        self.broken = Signal(len(self.rules))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.broken.eq(Cat(condition for _, _, condition in self.rules))
        return m


def broken_rules(windows=WINDOWS, params=PARAMS, **changes):
    fields = {"element": Element.F16, "lanes_log2": 2, "eu_log2": 5, "signal": 1, "source": 4096, "bytes": 64}
    fields |= {"destination": 32, "destination_layout": LaneLayout.ALIGNED, **changes}
    count = fields.pop("bytes")
    dut, found = elaborated(Rules, params), []

    async def run(ctx):
        ctx.set(dut.windows, windows)
        ctx.set(
            dut.sides,
            {
                "command": command_layout().from_bits(LANES.pack(opcode=Opcode.LANES, **fields)),
                "source_end": fields["source"] % (1 << 32) + count,
                "destination_end": fields["destination"] % (1 << 32) + count,
            },
        )
        bits = ctx.get(dut.broken)
        found.extend((code, field) for k, (code, field, _) in enumerate(dut.rules) if bits >> k & 1)

    simulate(dut, run)
    return found


def test_sound_command():
    assert broken_rules() == []


@pytest.mark.parametrize(
    ("missing", "layouts", "field"),
    [
        (("local_copies",), (LaneLayout.COMPACT, LaneLayout.ALIGNED), "destination_layout"),
        (("local_copies",), (LaneLayout.COMPACT, LaneLayout.GLOBAL), None),
        (
            ("stores", "reductions_global", "local_copies"),
            (LaneLayout.COMPACT, LaneLayout.GLOBAL),
            "destination_layout",
        ),
        (("stores", "reductions_global", "local_copies"), (LaneLayout.GLOBAL, LaneLayout.ALIGNED), None),
    ],
)
def test_missing_features(missing, layouts, field):
    params = PARAMS.replace(features=[name for name in FEATURES if name not in missing])
    changes = {"source_layout": layouts[0], "destination_layout": layouts[1], "source": 512, "destination": 32}
    expected = [(Error.UNSUPPORTED, field)] if field else []
    assert broken_rules({}, params, **changes) == expected
    assert broken_rules({}, **changes) == []


def test_lanes_need_all_of_shared_memory():
    window = {"confine_shared": 1, "shared_first": 0, "shared_last": 30}
    assert broken_rules(window) == [(Error.WINDOW, "destination")]
    assert broken_rules(window | {"shared_last": 31}) == []


def test_rules_are_in_the_order_of_reports():
    order = [(code, LANES.index(field)) for code, field, _ in Rules().rules]
    assert order == sorted(order)


def test_bytes_of_elements():
    element, log2 = Signal(4), Signal(2)
    m = Module()
    m.d.comb += log2.eq(element_log2(element))

    async def run(ctx):
        for member in Element:
            ctx.set(element, member)
            assert 1 << ctx.get(log2) == member.bytes

    simulate(m, run)


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


@grid(lambda confined, mode: confined or mode == "both", confined=[False, True], mode=STALL_MODES)
def test_bytes_and_refusals(mode, confined):
    dut = elaborated(LaneSetup, PARAMS)
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
            refusal = check_lanes(fields, SMEM, windows, PARAMS.addr_width)
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
    assert Error.NONE in codes and len(codes) > 3


@pytest.mark.parametrize(("layout", "count"), [(LaneLayout.ALIGNED, 6), (LaneLayout.ROW_ALIGNED, 24)])
def test_a_job_every_other_cycle(layout, count):
    """One for each channel, or for each row; the first after 15 cycles."""
    fields = {"element": Element.F16, "shape": [5, 4, 3, 2], "lanes_log2": 2, "eu_log2": 4}
    command = packed(destination_layout=layout, **fields)
    came, cycles = transact(elaborated(LaneSetup, PARAMS), {"i": [command]}, {"jobs": count})
    assert cycles["jobs"] == list(range(LATENCY, LATENCY + 2 * count, 2))
    assert [job.quiet for job in came["jobs"]] == [1] * (count - 1) + [0]
