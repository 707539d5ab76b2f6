"""Where descriptors are kept: what a strobe names is written, and read at its place."""

import random

from tilewright.hw.tmau.descriptor.layouts import CheckedLayout, ListedLayout
from tilewright.hw.tmau.descriptor.store import DescriptorStore
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 20261122
PARAMS = TMAU_PRESETS["default"]
CHECKED, LISTED = CheckedLayout(PARAMS), ListedLayout(PARAMS)


def random_const(rng, layout):
    return layout.from_bits(rng.getrandbits(layout.size))


def test_pieces():
    dut = elaborated(DescriptorStore, PARAMS)
    rng = random.Random(SEED)
    places = range(PARAMS.cache_entries)
    model = [CHECKED.from_bits(0) for _ in places]
    lists = [[dict.fromkeys(LISTED.members, 0) for _ in range(5)] for _ in places]

    async def run(ctx):
        expected, dimension, shown = None, None, None
        for _ in range(600):
            # What is shown is not written.
            place = rng.choice([place for place in places if place != shown])
            new, listed = random_const(rng, CHECKED), random_const(rng, LISTED)
            axis, row, number = (rng.randrange(5) for _ in range(3))
            axis_stb, row_stb, look = (rng.random() < 0.5 for _ in range(3))
            write, read, read_place = rng.random() < 0.3, rng.random() < 0.3, rng.choice(places)
            ctx.set(dut.place, place)
            ctx.set(dut.i, new)
            ctx.set(dut.write, write)
            derived = {"listed": listed, "axis_stb": axis_stb, "axis": axis, "row_stb": row_stb, "row": row}
            ctx.set(dut.lists, derived)
            ctx.set(dut.read, read)
            ctx.set(dut.read_place, read_place)
            ctx.set(dut.dimensions.look, look)
            ctx.set(dut.dimensions.number, number)
            await ctx.tick()
            if read:
                shown, expected, dimension = read_place, model[read_place], dict(lists[read_place][0])
            elif look and shown is not None:
                dimension = dict(lists[shown][number])
            model[place] = new if write else model[place]
            for names, strobe, written in ((LISTED.AXIS, axis_stb, axis), (LISTED.ROW, row_stb, row)):
                lists[place][written].update({name: listed[name] for name in names if strobe})
            if expected is not None:
                assert ctx.get(dut.o) == expected, "it holds until the next read"
                assert ctx.get(dut.shown) == shown
                found = ctx.get(dut.dimensions.listed)
                assert {name: found[name] for name in dimension} == dimension

    print(f"seed {SEED}")
    simulate(dut, run)
