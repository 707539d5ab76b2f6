"""Unpacked payloads are the constants that Amaranth would make of the same bits."""

import random
from itertools import product

import numpy as np
import pytest
from amaranth.hdl import Module, Shape, Signal, signed, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, packed, receive, send, set_together, unpacked, watch_stream


class Kind(enum.Enum, shape=2):
    NONE = 0
    ONE = 1
    TWO = 2
    LAST = 3


class Way(enum.IntEnum, shape=signed(2)):
    BACK = -1
    STAY = 0
    ON = 1


class Pair(data.Struct):
    kind: Kind
    count: signed(3)


class Either(data.Union):
    number: unsigned(6)
    pair: Pair


STRUCT = data.StructLayout({"x": signed(4), "nothing": 0, "kind": Kind, "pair": Pair, "z": data.ArrayLayout(Pair, 3)})
LAYOUTS = {
    "struct": STRUCT,
    "struct class": Pair,
    "union": data.UnionLayout({"whole": 9, "signed": signed(5), "pairs": data.ArrayLayout(Kind, 2)}),
    "union class": Either,
    "array": data.ArrayLayout(signed(3), 5),
    "array of arrays": data.ArrayLayout(data.ArrayLayout(STRUCT, 2), 2),
    "with gaps": data.FlexibleLayout(20, {"first": data.Field(signed(3), 11), 7: data.Field(STRUCT["z"].shape, 1)}),
    "empty": data.StructLayout({}),
}


def assert_same(value, constant):
    """``value`` is what ``constant`` is, down to the last member."""
    if not isinstance(constant, data.Const):
        assert (value, type(value)) == (constant, type(constant))
        return
    layout = data.Layout.cast(constant.shape())
    assert data.Layout.cast(value.shape()) == layout
    assert value.as_bits() == constant.as_bits()
    for name, _ in layout:
        assert_same(value[name], constant[name])
        if isinstance(name, str):
            assert_same(getattr(value, name), constant[name])
            assert_same(getattr(value, name), constant[name])  # the second time


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_members_are_those_of_a_constant(layout):
    rng = random.Random(1)
    width = Shape.cast(layout).width
    for bits in [0, (1 << width) - 1, *(rng.getrandbits(width) for _ in range(50))]:
        value, constant = unpacked(layout, bits), layout.from_bits(bits)
        assert_same(value, constant)
        assert value == constant
        assert constant == value
        assert hash(value) == hash(constant)
        assert value.as_value().value == bits
        assert packed(layout, value) == bits


@pytest.mark.parametrize("key", [0, 4, -1, -5, np.int64(2), slice(1, 4), slice(None, None, -2), slice(3, 3)], ids=repr)
def test_an_array_takes_indices_and_slices(key):
    layout = LAYOUTS["array"]
    value, constant = unpacked(layout, 0o76543), layout.from_bits(0o76543)
    assert_same(value[key], constant[key if isinstance(key, slice) else int(key)])
    assert (len(value), list(value)) == (5, list(constant))


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("kinds", [*product(["unpacked", "constant"], repeat=2)], ids="-".join)
def test_equal_are_equal_bits(kinds, same):
    make = {"unpacked": unpacked, "constant": lambda layout, bits: layout.from_bits(bits)}
    left, right = make[kinds[0]](STRUCT, 5), make[kinds[1]](STRUCT, 5 if same else 6)
    assert (left == right) is same
    assert (left != right) is not same


def test_equals_a_dictionary_and_never_another_layout():
    value = unpacked(Pair, 0b11101)
    assert value == {"kind": Kind.ONE, "count": -1}
    assert value != {"kind": Kind.ONE, "count": 1}
    for other in (unpacked(LAYOUTS["array"], 5), 5):
        with pytest.raises(TypeError, match="can only be compared to"):
            value == other  # noqa: B015
        with pytest.raises(TypeError, match="can only be compared to"):
            value != other  # noqa: B015


def test_plain_shapes_and_enumerations():
    assert [unpacked(signed(3), bits) for bits in range(8)] == [0, 1, 2, 3, -4, -3, -2, -1]
    assert [unpacked(2, bits) for bits in range(4)] == [unpacked(range(4), bits) for bits in range(4)] == [0, 1, 2, 3]
    assert unpacked(Kind, 3) is Kind.LAST


def test_shown_by_members():
    value = unpacked(STRUCT["z"].shape, 0b00000_00111_11101)
    members = [
        f"Const({{'kind': {kind!r}, 'count': {n}}})" for kind, n in ((Kind.ONE, -1), (Kind.LAST, 1), (Kind(0), 0))
    ]
    assert repr(value) == f"Const({{0: {members[0]}, 1: {members[1]}, 2: {members[2]}}})"


def test_bits_that_are_no_member_of_an_enumeration():
    value = unpacked(data.StructLayout({"ways": data.ArrayLayout(Way, 2)}), 0b1011)
    with pytest.raises(ValueError, match="2 is not a valid Way"):
        _ = value.ways[1]
    assert repr(value) == "Const({'ways': Const({0: 0x3, 1: 0x2})})"


def test_errors_name_what_is_wrong():
    value = unpacked(Pair, 0)
    with pytest.raises(ValueError, match=r"^0x20 does not fit the 5 bits of"):
        unpacked(Pair, 32)
    with pytest.raises(ValueError, match=r"^-0x1 does not fit the 5 bits of"):
        unpacked(Pair, -1)
    with pytest.raises(AttributeError, match="does not have a field 'king'; did you mean one of: 'kind', 'count'"):
        _ = value.king
    with pytest.raises(AttributeError, match="_kind"):
        _ = value._kind
    with pytest.raises(KeyError, match="king"):
        _ = value["king"]
    with pytest.raises(IndexError, match="Index 5 is out of range for array layout of length 5"):
        _ = unpacked(LAYOUTS["array"], 0)[5]
    with pytest.raises(TypeError, match="cannot be indexed with a slice"):
        _ = value[0:1]


PIXEL = data.StructLayout({"x": signed(4), "y": unsigned(4), "z": data.ArrayLayout(2, 2)})


class StreamsKind(enum.Enum, shape=2):
    LAST = 3


class Wire(wiring.Component):
    """A stream from here to there, for the drivers to meet."""

    i: In(stream.Signature(PIXEL))
    o: Out(stream.Signature(PIXEL))

    def elaborate(self, platform):
        m = Module()
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m


@pytest.mark.parametrize("mode", STALL_MODES)
def test_items_arrive_in_order(mode):
    dut = Wire()
    items = [{"x": n % 16 - 8, "y": n % 16, "z": [n % 4, 1]} for n in range(60)]
    results = {}

    async def source(ctx):
        results["sent"] = await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=1)

    async def sink(ctx):
        results["got"], results["taken"] = await receive(
            ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=1
        )

    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    assert [PIXEL.const(item) for item in items] == results["got"]
    assert results["sent"] == results["taken"]
    if mode == "none":
        assert results["taken"] == list(range(60))
    else:
        assert results["taken"][-1] > 80


@pytest.mark.parametrize(
    ("after", "message"), [((0, 5), "valid was taken back"), ((1, 6), "payload changed from 0x5 to 0x6")]
)
def test_watcher_sees_a_broken_rule(after, message):
    port = stream.Signature(4).create()
    idle = Module()
    idle.d.sync += Signal().eq(port.valid)

    async def rude(ctx):
        ctx.set(port.payload, 5)
        ctx.set(port.valid, 1)
        await ctx.tick()
        ctx.set(port.valid, after[0])
        ctx.set(port.payload, after[1])
        await ctx.tick()
        await ctx.tick()

    with pytest.raises(AssertionError, match=f"^output: {message}"):
        simulate(idle, rude, background=[watch_stream(port, "output")])


def test_source_that_waits_for_ready_is_found():
    port = stream.Signature(4).create()
    m = Module()
    m.d.comb += port.valid.eq(port.ready)

    async def sink(ctx):
        await receive(ctx, port, 50, stall=0.5)

    with pytest.raises(AssertionError, match="not done after 1000 cycles"):
        simulate(m, sink, deadline=1000)


@pytest.mark.parametrize(
    "value",
    [
        {"x": np.int8(-8), "y": np.uint64(15), "z": (np.int32(3), 0)},
        (-8, 15, PIXEL["z"].shape.const([3, 0])),
        PIXEL.const({"x": -8, "y": 15, "z": [3, 0]}),
        0x3F8,
    ],
    ids=["by name", "in order", "constant", "bits"],
)
def test_packed_takes_every_form(value):
    assert packed(PIXEL, value) == 0x3F8


def test_packed_members_left_out_are_zero():
    assert packed(PIXEL, {"y": 1}) == 0x10
    assert packed(StreamsKind, StreamsKind.LAST) == packed(StreamsKind, 3) == 3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"x": 8}, r"8 does not fit signed\(4\)"),
        ({"y": -1}, r"-1 does not fit unsigned\(4\)"),
        ({"z": [0, 4]}, r"4 does not fit unsigned\(2\)"),
        ({"z": [0]}, "has 2 elements, not 1"),
    ],
)
def test_packed_refuses_what_does_not_fit(value, message):
    with pytest.raises(ValueError, match=message):
        packed(PIXEL, value)
    with pytest.raises(TypeError):
        packed(4, 1.0)


PAIR = data.StructLayout({"x": signed(3), "y": 2})


def test_all_kinds_of_inputs_at_once():
    """The inputs of an exclusive-or are never seen to differ, as they change together."""
    narrow, number, pair, left, right = Signal(2), Signal(signed(4)), Signal(PAIR), Signal(), Signal()
    differ, seen = Signal(), []
    m = Module()
    m.d.sync += Signal(12).eq(narrow + number + pair.x + pair.y)
    m.d.comb += differ.eq(left ^ right)

    async def testbench(ctx):
        set_together(ctx, (narrow, 2), (number, -5), (pair, {"x": -1, "y": 3}), (left, 1), (right, True))
        await ctx.tick()
        assert [ctx.get(port) for port in (narrow, number, pair.x, pair.y)] == [2, -5, -1, 3]
        set_together(ctx, (pair.y, 1), (left, 0), (right, 0))
        assert [ctx.get(port) for port in (narrow, number, pair.x, pair.y)] == [2, -5, -1, 1]
        with pytest.raises(ValueError, match=r"^4 does not fit unsigned\(2\)$"):
            set_together(ctx, (number, 3), (narrow, 4))
        assert ctx.get(number) == -5

    async def watch(ctx):
        await ctx.changed(differ)
        seen.append(True)

    simulate(m, testbench, background=[watch])
    assert not seen
