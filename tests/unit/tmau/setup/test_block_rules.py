"""Every element of every field of a descriptor, and what is none."""

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from tilewright.hw.lib.layouts import command_layout
from tilewright.hw.tmau.layouts import WindowsLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.block_rules import FieldLocator, MeasuredLayout, block_rules
from tilewright.spec import BLOCK, DESCRIPTOR, Element, Error, Opcode, Reduction, Space
from tilewright.spec.tmau_registers import FEATURES
from tilewright.verify.pysim.simulate import elaborated, simulate


def test_all_fields_and_indices():
    dut = FieldLocator()

    async def run(ctx):
        for number in range(256):
            field = DESCRIPTOR.fields[number] if number < len(DESCRIPTOR.fields) else None
            for index in range(8):
                ctx.set(dut.field, number)
                ctx.set(dut.index, index)
                place = ctx.get(dut.place)
                assert place.no_field == (field is None)
                if field:
                    assert place.no_index == (index >= max(field.count, 1))
                    if not place.no_index:
                        assert 64 * place.word + place.lsb == field.lsbs[index]
                        assert place.ones == (1 << field.width) - 1
                        assert place.lsb + field.width <= 64, "an element lies in one word"
        await ctx.tick()

    simulate(dut, run)


PARAMS = TMAU_PRESETS["unit"]
SMEM = PARAMS.smem.size_bytes
WINDOWS = {
    "confine_global": 1,
    "global_first": 1,
    "global_last": 2,
    "confine_shared": 1,
    "shared_first": 2,
    "shared_last": 29,
}
SHARED = {"source_space": Space.SHARED, "destination_space": Space.SHARED}


class Rules(wiring.Component):
    """The conditions as one number."""

    measured: In(MeasuredLayout(PARAMS))
    windows: In(WindowsLayout(PARAMS))

    def __init__(self, params=PARAMS):
        # Conditions are built here so that the testbench knows their names and number.
        super().__init__()
        self.rules = block_rules(params, self.windows, self.measured)
        self.broken = Signal(len(self.rules))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.broken.eq(Cat(condition for _, _, _, condition in self.rules))
        return m


def measured(**changes):
    fields = {"size": 64, "source": 4096, "destination": 512, "barrier": 256, "signal": 1}
    fields |= {"opcode": Opcode.COPY_BLOCK, "destination_space": Space.SHARED, **changes}
    return {
        "command": command_layout().from_bits(BLOCK.pack(**fields)),
        "source_last": fields["source"] % (1 << 32) + fields["size"] - 1,
        "destination_last": fields["destination"] % (1 << 32) + fields["size"] - 1,
        "forward": (fields["destination"] - fields["source"]) % (1 << PARAMS.addr_width) >> 4,
        "backward": (fields["source"] - fields["destination"]) % (1 << PARAMS.addr_width) >> 4,
    }


def broken_rules(payload, windows=WINDOWS, params=PARAMS):
    dut = elaborated(Rules, params)
    found = []

    async def run(ctx):
        ctx.set(dut.measured, payload)
        ctx.set(dut.windows, windows)
        bits = ctx.get(dut.broken)
        found.extend((code, field) for k, (code, _, field, _) in enumerate(dut.rules) if bits >> k & 1)

    simulate(dut, run)
    return found


def test_sound_commands():
    assert broken_rules(measured()) == []
    assert broken_rules(measured(size=0, source=0, destination=SMEM)) == [], "nothing is nowhere"


GLOBAL, ADD = {"destination_space": Space.GLOBAL, "destination": 8192}, {"reduction": Reduction.ADD}
#: Features that are missing, a copy, and the field that asks for them, or None.
FEATURE_CASES = {
    "copy within global memory": (("local_copies",), GLOBAL, "destination_space"),
    "copy within shared memory": (("local_copies",), {**SHARED, "source": 1024}, "destination_space"),
    "copy to global memory": (
        ("stores", "reductions_global", "local_copies"),
        {**GLOBAL, "source_space": Space.SHARED, "source": 1024},
        "destination_space",
    ),
    "sum in shared memory": (("reductions_shared",), {**ADD, "element": Element.U32}, "reduction"),
    "sum in global memory": (
        ("reductions_global",),
        {**GLOBAL, **ADD, "source_space": Space.SHARED, "source": 1024, "element": Element.U32},
        "reduction",
    ),
    "sum of floats": (("reductions_float",), {**ADD, "element": Element.F32}, "element"),
    "sum of integers": (("reductions_float",), {**ADD, "element": Element.U32}, None),
    "a copy of floats": (("reductions_float",), {"element": Element.F32}, None),
    "sum in the other memory": (("reductions_global",), {**ADD, "element": Element.F16}, None),
}


@pytest.mark.parametrize("case", FEATURE_CASES)
def test_missing_features(case):
    missing, changes, field = FEATURE_CASES[case]
    params = PARAMS.replace(features=[name for name in FEATURES if name not in missing])
    expected = [(Error.UNSUPPORTED, field)] if field else []
    assert broken_rules(measured(**changes), {}, params) == expected
    assert broken_rules(measured(**changes), {}) == []


def test_size_larger_than_shared_memory():
    """Even between global blocks; no window, which it would leave."""
    payload = measured(size=SMEM + 16, destination_space=Space.GLOBAL, destination=1 << 20)
    assert broken_rules(payload, {}) == [(Error.BLOCK_RANGE, "size")]


def test_rules_are_in_the_order_of_reports():
    rules = Rules().rules
    order = [(code, fmt.index(field)) for code, fmt, field, _ in rules]
    assert order == sorted(order)
