"""Terms of coordinates in page numbers and offsets; and the bases of every set, a read a cycle."""

import random

import pytest
from amaranth.hdl import Module, Signal

from support.pe_accesses import Segment
from support.pe_operands import lane_registers
from support.streams import pulse
from tilewright.hw.pe.address.bases import TERM_LATENCY, Bases, address_terms
from tilewright.hw.pe.layouts import BASES_SETS
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, set_together, watch_stream

SEED = 20261121
PARAMS = PE_PRESETS["default"]


def terms(coordinate, page_log2, pages_below, shift):
    page = (coordinate >> page_log2) % PARAMS.pages * pages_below
    return page % PARAMS.pages, (coordinate % (1 << page_log2) << shift) % (1 << 20)


def test_terms():
    m, coordinates = Module(), [Signal(16) for _ in range(LANES)]
    inputs = {"page_log2": Signal(4), "pages_below": Signal(PARAMS.page_width + 1), "shift": Signal(5)}
    enable, rng = Signal(), random.Random(SEED)
    pages, offsets = address_terms(m, PARAMS, coordinates, **inputs, enable=enable)

    async def run(ctx):
        wanted = []
        while len(wanted) < 300:
            values = [rng.getrandbits(16) for _ in range(LANES)]
            fields = {"page_log2": rng.randrange(16), "pages_below": rng.randint(0, PARAMS.pages)}
            fields["shift"] = rng.randrange(21)
            enabled = rng.random() < 0.7
            if enabled:
                wanted.append([terms(value, **fields) for value in values])
            set_together(ctx, (enable, enabled), *zip(coordinates, values, strict=True))
            set_together(ctx, *((inputs[name], value) for name, value in fields.items()))
            await ctx.tick()
            if len(wanted) >= TERM_LATENCY:
                assert [*zip(map(ctx.get, pages), map(ctx.get, offsets), strict=True)] == wanted[-TERM_LATENCY]

    simulate(m, run)


BASES_PARAMS = {groups: PE_PRESETS["unit"].replace(threads=8 * groups - 3) for groups in (1, 2)}
#: From ``start`` to ``busy`` low, besides a cycle for each read.
BUILD_CYCLES = 6
SEGMENTS = [
    Segment(0, 0, (100,), (5,), paged=True, first_entry=3),
    Segment(1, 1, (20, 13), (3, 2), paged=True),
    Segment(2, 0, (20, 13, 3), (5, 2, 1), paged=True, first_entry=7),
    Segment(3, 2, (4, 4, 3, 2), (2, 1, 0, 1), paged=True),
]


@pytest.mark.parametrize("groups", BASES_PARAMS)
@pytest.mark.parametrize("mode", STALL_MODES)
def test_builds(mode, groups):
    params = BASES_PARAMS[groups]
    dut = elaborated(Bases, params)
    rng = random.Random(f"{SEED} {mode}")
    stall = STALL_MODES[mode]["stall"]
    registers = {}
    stored = {}  # by set: segment, elements by group and lane, by_rows

    def words(register, group):
        return [registers[(register, group), lane] for lane in range(LANES)]

    async def run(ctx):
        for segment in SEGMENTS:
            for by_rows in range(2 if segment.rank > 1 else 1):
                await build(ctx, rng.randrange(BASES_SETS), segment, rng.randrange(params.regs - 4), by_rows)
                for number, contents in stored.items():  # the set that was built, and the others as they were
                    await check(ctx, number, *contents)

    async def build(ctx, number, segment, first, by_rows):
        elements = {}
        for group in range(groups):
            for lane in range(LANES):
                element = [rng.getrandbits(32), *(rng.randint(0, size) for size in segment.size[1:])]
                elements[group, lane] = element
                registers.update({((first + d, group), lane): value for d, value in enumerate(element)})
        ctx.set(dut.segment, segment.entry())
        ctx.set(dut.first, first)
        ctx.set(dut.by_rows, by_rows)
        ctx.set(dut.set, number)
        await pulse(ctx, dut.start)
        cycles = 1
        while ctx.get(dut.busy):
            await ctx.tick()
            cycles += 1
        reads = segment.rank * groups
        assert cycles == reads + BUILD_CYCLES if not stall else cycles > reads
        stored[number] = (segment, elements, by_rows)

    async def check(ctx, number, segment, elements, by_rows):
        ctx.set(dut.set, number)
        for group in range(groups):
            # Each lane may ask for another group.
            asked = [(group + (lane < 3)) % groups for lane in range(LANES)]
            for lane in range(LANES):
                ctx.set(dut.reads.groups[lane], asked[lane])
            await pulse(ctx, dut.reads.enable)
            await ctx.tick()
            for lane in range(LANES):
                element, basis = elements[asked[lane], lane], ctx.get(dut.reads.rows[lane])
                assert basis.inner == element[0]
                inside = all(c < size for c, size in zip(element[1:], segment.size[1:], strict=True))
                assert basis.inside == inside
                if inside:
                    outer = [0, *element[1:]]
                    assert basis.outer == (element[1] if segment.rank > 1 else 0)
                    if by_rows:
                        outer[1] = 0
                    page, offset = segment.place(outer)
                    assert (basis.page, basis.offset) == (page, offset)

    answer = lane_registers(dut.lane_reads, words, rng, busy=stall)
    simulate(dut, run, background=[answer, watch_stream(dut.lane_reads.requests)])
