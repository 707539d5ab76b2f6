"""Where descriptors are kept: what a strobe names is written, and all of it is read."""

import random

from tilewright.hw.tmau.descriptor.layouts import CheckedLayout
from tilewright.hw.tmau.descriptor.store import DescriptorStore
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 20261122
PARAMS = TMAU_PRESETS["default"]
LAYOUT = CheckedLayout(PARAMS)
#: For each strobe the lists whose elements it writes, and the bit of their first element.
LISTS = {
    "dimension_stb": {"sizes": 0, "strides": 0, "traversals": 0, "lows": 1, "highs": 1},
    "row_stb": {"counts": 0, "run_bytes": 0},
}
LISTED = {name for names in LISTS.values() for name in names}


def test_pieces():
    dut = elaborated(DescriptorStore, PARAMS)
    rng = random.Random(SEED)
    model = [LAYOUT.from_bits(0) for _ in range(PARAMS.cache_entries)]

    def written(kept, new, strobes):
        """``kept`` with what the strobes name taken from ``new``."""
        members = {}
        for name, shape in LAYOUT.members.items():
            members[name] = new[name] if name not in LISTED and strobes["rest_stb"] else kept[name]
            for strobe, firsts in LISTS.items():
                if name in firsts:
                    chosen = strobes[strobe] >> firsts[name]
                    members[name] = [(new if chosen >> n & 1 else kept)[name][n] for n in range(shape.length)]
        return LAYOUT.const(members)

    async def run(ctx):
        expected = None
        for _ in range(400):
            place, new = rng.randrange(len(model)), LAYOUT.from_bits(rng.getrandbits(LAYOUT.size))
            strobes = {name: rng.getrandbits(5) if rng.random() < 0.5 else 0 for name in LISTS}
            strobes["rest_stb"] = int(rng.random() < 0.3)
            read, read_place = int(rng.random() < 0.5), rng.randrange(len(model))
            ctx.set(dut.place, place)
            ctx.set(dut.read_place, read_place)
            ctx.set(dut.i, new)
            ctx.set(dut.read, read)
            for name, value in strobes.items():
                ctx.set(getattr(dut, name), value)
            await ctx.tick()
            expected = model[read_place] if read else expected
            model[place] = written(model[place], new, strobes)
            if expected is not None:
                assert ctx.get(dut.o) == expected, "it holds until the next read"

    print(f"seed {SEED}")
    simulate(dut, run)
