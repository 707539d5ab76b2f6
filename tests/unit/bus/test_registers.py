"""Windows, counters, register files and error records. Proofs show the bits (tests/formal/bus/test_registers.py)."""

import random

import pytest
from amaranth.hdl import Const, Module, Value
from amaranth.lib import data

from support.streams import transact
from tilewright.hw.bus.registers import Counters, ErrorRecord, RegisterFile, widths_of, window_units
from tilewright.spec.fields import Field
from tilewright.spec.registers import Access, Register, counter
from tilewright.spec.tmau_registers import TMAU_ID_VALUE, TMAU_REGISTERS
from tilewright.verify.pysim.simulate import simulate


@pytest.mark.parametrize(
    ("base", "limit", "units"),
    [
        (0, 0xFFFF, (0, 15)),
        (0x1FFF, 0x3000, (1, 3)),
        (0x2000, 0x1_0000, (2, 15)),
        (0x1_0000, 0x2_0000, (15, 0)),
        (0x1_0000, 0x2000, (15, 0)),
    ],
)
def test_units_of_a_memory(base, limit, units):
    """Low bits are ignored; the window ends at the end of the memory, and is empty beyond it."""
    first, last = (Value.cast(unit) for unit in window_units(Const(base, 64), Const(limit, 64), 12, 16))

    async def bench(ctx):
        assert (ctx.get(first), ctx.get(last)) == units

    simulate(Module(), bench)


SEED = 20261128
WIDTHS = {"cycles": 1, "rows": 4, "bytes": 13}


def test_widths():
    dut = Counters(WIDTHS)
    assert widths_of({"one": ~dut.clear, "two": dut.value}) == {"one": 1, "two": 32}


def test_one_counter():
    with pytest.raises(ValueError, match=r"^there must be two counters at least, not 1$"):
        Counters({"cycles": 1})


def test_counts():
    """Sixteen counters, mostly at their largest increment, sometimes cleared; each read ends within a round."""
    widths = dict.fromkeys("abcdefghijklmnop", 1)
    dut, names, rng = Counters(widths), list(widths), random.Random(SEED)
    counts, answers = dict.fromkeys(names, 0), 0

    async def script(ctx):
        nonlocal answers
        last, before = dict.fromkeys(names, 0), dict(counts)
        waited = request = 0
        for _ in range(3000):
            increments = {name: rng.choice((0, (1 << width) - 1, (1 << width) - 1)) for name, width in widths.items()}
            clear = rng.random() < 0.01
            if not request and rng.random() < 0.3:
                request, waited = 1, 0
                ctx.set(dut.index, rng.randrange(len(names)))
            ctx.set(dut.request, request)
            ctx.set(dut.increments, increments)
            ctx.set(dut.clear, clear)
            if request and ctx.get(dut.done):
                assert ctx.get(dut.value) == before[names[ctx.get(dut.index)]]
                answers, request = answers + 1, 0
                ctx.set(dut.request, 0)
            waited += 1
            assert waited <= len(names) or not request
            await ctx.tick()
            # An increment counts a cycle later, unless all counters are cleared then.
            before.update(counts)
            counts.update({name: 0 if clear else counts[name] + last[name] for name in names})
            last = increments

    simulate(dut, script)
    assert answers > 200


BITS = (Field("low", 0, 8, "A byte."), Field("high", 16, 8, "Another one."))
TABLE = (
    Register("fixed", 0x00, Access.CONSTANT, "Never changes.", BITS, reset=0x0012_0034),
    Register("shown", 0x04, Access.RO, "From the hardware.", BITS),
    Register("kept", 0x10, Access.RW, "For the hardware.", BITS, reset=0x0001_0002),
    Register("sticky", 0x14, Access.W1C, "Set by the hardware.", BITS),
    Register("pulse", 0x18, Access.WO, "Strobes.", BITS),
)


def get(address):
    return {"address": address}


def put(address, data, strobe=0b1111):
    return {"address": address, "write": 1, "data": data, "strobe": strobe}


def access(dut, items, mode="none", *others, inputs=()):
    """Answers to ``items`` as (data, error), and the cycles of requests and answers."""
    payloads, cycles = transact(
        dut, {"accesses.requests": items}, {"accesses.answers": len(items)}, mode, inputs=inputs, testbenches=others
    )
    answers = [(answer.data, answer.error) for answer in payloads["accesses.answers"]]
    return answers, cycles["accesses.requests"], cycles["accesses.answers"]


def test_the_table_of_the_unit():
    """Values by hand: hardware and driver share the table, so that no comparison of both finds an error in it."""
    assert TMAU_ID_VALUE.to_bytes(4, "big") == b"TWRT"
    inputs = {
        "params0": {"bus_bytes": 64, "addr_width": 48, "queue_depth": 8, "cache_entries": 16},
        "error": {"code": 26, "field": 3, "tag": 0xABCD},
        "bank_conflicts.count": 77,
    }
    items = [get(0x00), get(0x04), get(0x08), get(0x30), get(0x6C), get(0xFC)]
    answers, *_ = access(RegisterFile(TMAU_REGISTERS), items, inputs=inputs)
    assert answers[:5] == [(0x54575254, 0), (1, 0), (0x10083040, 0), (0xABCD031A, 0), (77, 0)]
    assert answers[5][1] == 1


def test_refused_tables():
    with pytest.raises(ValueError, match=r"^two registers have the offset 4$"):
        RegisterFile([TABLE[1], Register("other", 4, Access.RO, "Twice.", BITS)])
    with pytest.raises(ValueError, match=r"^two registers have the name 'shown'$"):
        RegisterFile([TABLE[1], Register("shown", 8, Access.RO, "Twice.", BITS)])
    with pytest.raises(ValueError, match=r"^offset of odd must be a multiple of 4, not 6$"):
        Register("odd", 6, Access.RO, "Nowhere.", BITS)
    with pytest.raises(ValueError, match=r"^reset of gap sets bits of no field: 0x100$"):
        Register("gap", 8, Access.RW, "No field.", BITS, reset=0x100)


@pytest.mark.parametrize("mode", ["none", "both"])
def test_counters(mode):
    """A read waits for its counter's turn; counters are read-only, and a strobe clears all."""
    table = (TABLE[2], counter("some", 0x20, "Counted."), counter("others", 0x24, "Counted."), TABLE[4])
    dut = RegisterFile(table, {"some": 2, "others": 1})

    async def hardware(ctx):
        ctx.set(dut.increments, {"some": 3, "others": 1})
        await ctx.tick().repeat(5)
        ctx.set(dut.increments, {"some": 0, "others": 0})

    async def clear(ctx):
        for _ in range(300):
            await ctx.tick()
            ctx.set(dut.clear_counters, ctx.get(dut.pulse.low[0]))

    items = [*[put(0x10, 7)] * 8, get(0x20), get(0x24), put(0x24, 1), get(0x20), get(0x10), put(0x18, 1), get(0x10),
             get(0x10), get(0x10), get(0x20), get(0x24)]  # fmt: skip
    answers, *_ = access(dut, items, mode, hardware, clear)
    assert answers[8:13] == [(15, 0), (5, 0), (answers[10][0], 1), (15, 0), (7, 0)]
    assert answers[-2:] == [(0, 0), (0, 0)]


RECORD = data.StructLayout({"code": 8, "number": 8})


@pytest.mark.parametrize(
    ("cycles", "expected"),
    [
        pytest.param(
            [(0, 9, ""), (1, 3, ""), (1, 4, ""), (0, 5, "before")],
            [(0, 0), (3, 1), (3, 2), (3, 2)],
            id="the first error",
        ),
        pytest.param([(1, 3, ""), (1, 4, "before")], [(3, 1), (4, 2)], id="an earlier error"),
        pytest.param([(1, 3, ""), (0, 4, "clear")], [(3, 1), (0, 0)], id="clear without an error"),
        pytest.param([(1, 3, ""), (1, 4, "clear")], [(3, 1), (4, 1)], id="clear and one error"),
        pytest.param([(1, 3, ""), (2, 4, "clear")], [(3, 1), (4, 2)], id="clear and two errors"),
        pytest.param([(2, 1, "")] * 5, [(1, count) for count in (2, 4, 6, 7, 7)], id="the count saturates"),
    ],
)
def test_error_record(cycles, expected):
    """Each cycle: number of errors, code, and the other input that is high; code and count after it."""
    dut, records = ErrorRecord(RECORD, count_width=3), []

    async def script(ctx):
        for errors, code, high in cycles:
            ctx.set(dut.errors, errors)
            ctx.set(dut.record, {"code": code, "number": 7})
            for name in ("before", "clear"):
                ctx.set(getattr(dut, name), name == high)
            await ctx.tick()
            records.append((ctx.get(dut.first.code), ctx.get(dut.count)))

    simulate(dut, script)
    assert records == expected
