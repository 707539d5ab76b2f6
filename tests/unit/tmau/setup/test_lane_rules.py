"""Rules of copies between memory and lanes, one by one, in the order of reports; sizes of elements."""

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from tilewright.golden.spec import LANES, Element, Error, LaneLayout, Opcode
from tilewright.golden.spec.tmau.features import FEATURES
from tilewright.hw.bus.commands import command_layout
from tilewright.hw.tmau.layouts import WindowsLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.lane_rules import element_log2, lane_rules
from tilewright.hw.tmau.setup.layouts import SidesLayout
from tilewright.sim.pysim.simulate import elaborated, simulate

PARAMS = TMAU_PRESETS["unit"]
SMEM = PARAMS.smem.size_bytes
WINDOWS = {"confine_global": 1, "global_first": 1, "global_last": 2}
#: A name -> what is wrong with a sound copy from global memory to four aligned lanes, and the rule that says so.
CASES = {
    "unknown element": ({"element": 15}, "ELEMENT", "element"),
    "barrier off its eight bytes": ({"barrier": 4}, "BARRIER_ALIGNMENT", "barrier"),
    "barrier outside": ({"barrier": SMEM}, "BARRIER_RANGE", "barrier"),
    "source off its element": ({"source": 4097}, "BLOCK_ALIGNMENT", "source"),
    "base off eu_bytes": ({"destination": 16}, "BLOCK_ALIGNMENT", "destination"),
    "past the lane": ({"destination": 1024 - 32}, "BLOCK_RANGE", "destination"),
    "base far past the lane": ({"destination": 4 * SMEM}, "BLOCK_RANGE", "destination"),
    "base above the address space": ({"destination": (1 << 32) + 32}, "BLOCK_RANGE", "destination"),
    "more than 64 lanes": ({"lanes_log2": 7, "destination": 0, "bytes": 32}, "LANES", "lanes_log2"),
    "eu_bytes of 256": ({"eu_log2": 8, "destination": 256}, "LANES", "eu_log2"),
    "eu_bytes below an element": ({"eu_log2": 0}, "LANES", "eu_log2"),
    "global to global": ({"destination_layout": 0, "destination": 8192}, "LANES", "destination_layout"),
    "lane of global memory": ({"source_lane": 1}, "LANES", "source_lane"),
    "lane that does not exist": ({"destination_lane": 4}, "LANES", "destination_lane"),
    "before the window": ({"source": 4094}, "WINDOW", "source"),
    "past the window": ({"source": 3 * 4096 - 62}, "WINDOW", "source"),
    "source above the address space": ({"source": (1 << 32) + 4096}, "WINDOW", "source"),
    "source that ends above the address space": ({"source": (1 << 32) - 62}, "WINDOW", "source"),
}


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


@pytest.mark.parametrize("case", CASES)
def test_one_rule(case):
    changes, code, field = CASES[case]
    assert broken_rules(**changes) == [(Error[code], field)]


def test_overlap_of_lanes():
    both = {"source_layout": LaneLayout.COMPACT, "destination": 512}
    assert broken_rules(**both, source=512 - 64) == broken_rules(**both, source=512 + 64) == []
    assert broken_rules(**both, source=512 - 62) == [(Error.OVERLAP, "destination")]
    assert broken_rules(**both, source=512 + 62) == [(Error.OVERLAP, "destination")]


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
