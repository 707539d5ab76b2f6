"""Arbiters of the banks: one at a time, nothing lost, and none waits for ever."""

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Mux, Signal, Value

from support.formal import Spec, proved_and_covered
from tilewright.hw.smem.banks import PATIENCE, ReadArbiter, WriteArbiter
from tilewright.hw.smem.barrier import BarrierUnit
from tilewright.hw.smem.layouts import scattered_chunk, whole_line
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.formal import StreamRules, prove

PARAMS = SmemParams(1024)
QUARTER = SmemParams(1024, writes_a_cycle=2)


class ReadSpec(Spec):
    """One reader a cycle while one waits; bounded waits if the barrier unit reads in two of three cycles at most."""

    given = "host lines consumer"

    def specify(self, m, arbiter):
        barrier, host, lines, consumer = arbiter.barrier, arbiter.host, arbiter.lines, arbiter.consumer
        before, before_that = Signal(), Signal()
        m.d.sync += [before.eq(barrier.valid), before_that.eq(before)]
        m.d.comb += Assume(~(barrier.valid & before & before_that))

        host_goes, lines_go, consumer_goes = (reader.valid & reader.ready for reader in (host, lines, consumer))
        anyone = barrier.valid | host.valid | lines.valid | consumer.valid
        m.d.comb += Assert(barrier.valid + host_goes + lines_go + consumer_goes == anyone)
        banks = arbiter.banks
        for reader, goes in ((barrier, barrier.valid), (host, host_goes)):
            with m.If(goes):
                bank, row = reader.payload[:3], reader.payload[3:]
                m.d.comb += Assert(arbiter.single_bank == bank)
                m.d.comb += Assert((banks.enable == 1 << bank) & (banks.rows[bank] == row))
        with m.If(consumer_goes):
            m.d.comb += Assert(banks.as_value() == consumer.payload.as_value())
        with m.If(lines_go):
            m.d.comb += Assert(banks.enable == 0xFF)
            m.d.comb += [Assert(row == lines.payload) for row in banks.rows]
        with m.If(~anyone):
            m.d.comb += Assert(banks.enable == 0)

        # By turns: none is granted twice while the other waits.
        for name, goes, waiting, granted in (
            ("line_passed", lines_go, consumer.valid, consumer_goes),
            ("consumer_passed", consumer_goes, lines.valid, lines_go),
        ):
            was_passed = Signal(name=name)
            m.d.sync += was_passed.eq(waiting & ~granted & (goes | was_passed))
            m.d.comb += Assert(~(was_passed & goes))

        for name, reader, most in (("host", host, 5), ("lines", lines, 11), ("consumer", consumer, 11)):
            waits = Signal(4, name=f"{name}_waits")
            m.d.sync += waits.eq(Mux(reader.valid & ~reader.ready, waits + 1, 0))
            m.d.comb += Assert(waits <= most)
            m.d.comb += Cover(waits == most)


class WriteSpec(Spec):
    """Every accepted write reaches its bank whole; a line waits only in a cycle in which another write happens."""

    def __init__(self, *, params, stores, word_bytes):
        self.stores = stores
        self.dut = WriteArbiter(params, stores, word_bytes)

    def specify(self, m, arbiter):
        lines, host, back, banks = arbiter.lines, arbiter.host, arbiter.write_back, arbiter.banks
        line_goes, host_goes = lines.valid & lines.ready, host.valid & host.ready
        scattered = arbiter.scattered if self.stores else Const(0, 8)

        m.d.comb += Assert(~(host_goes & back.accepted))
        m.d.comb += Assert(~back.accepted | back.valid)
        m.d.comb += Assert(back.accepted | ~(back.valid & back.urgent))
        m.d.comb += Assert(arbiter.stall_stb == (lines.valid & ~lines.ready))
        m.d.comb += Assert(~arbiter.stall_stb | host_goes | back.accepted | scattered.any())

        # Any one byte: it is written if, and only if, a writer writes it.
        bank, byte = AnyConst(3), AnyConst(4)
        strobe = banks.strobes[bank].bit_select(byte, 1)
        value, row = banks.data[bank].word_select(byte, 8), banks.rows[bank]
        by_line, by_scatter = Signal(), Signal()
        small_writes = []
        m.d.comb += by_line.eq(line_goes & lines.payload.strobe.bit_select(Cat(byte, bank), 1))
        if not isinstance(lines.payload.data, Value):
            words = lines.payload.data
            m.d.comb += Assume(words.fills | ((lines.payload.strobe & words.filled) == 0))
        with m.If(by_line):
            m.d.comb += Assert(strobe & (row == lines.payload.row))
            m.d.comb += Assert(value == whole_line(lines.payload.data).word_select(Cat(byte, bank), 8))
        if self.stores:
            wide = arbiter.scatter
            m.d.comb += Assert((scattered & ~wide.banks) == 0)
            m.d.comb += Assert(arbiter.emptied == ((wide.banks & ~scattered) == 0))
            m.d.comb += by_scatter.eq(scattered.bit_select(bank, 1) & wide.strobes[bank].bit_select(byte, 1))
            with m.If(by_scatter):
                m.d.comb += Assert(strobe & (row == wide.rows[bank]))
                m.d.comb += Assert(value == scattered_chunk(wide, bank).word_select(byte, 8))
            self._turns(m, lines, line_goes, bank, host_goes | back.accepted)
            m.d.comb += Cover(line_goes & lines.payload.strobe.any() & scattered.any())
        for small, goes in ((host.payload, host_goes), (back.payload, back.accepted)):
            writes = goes & (small.chunk[:3] == bank) & small.strobe.bit_select(byte, 1)
            small_writes.append(writes)
            with m.If(writes):
                m.d.comb += Assert(strobe & (row == small.chunk[3:]) & (value == small.data.word_select(byte, 8)))
        m.d.comb += Assert(strobe == by_line + by_scatter + small_writes[0] + small_writes[1])
        m.d.comb += Cover(by_line & host_goes)
        m.d.comb += Cover(arbiter.stall_stb & back.accepted & ~back.urgent)

    def _turns(self, m, lines, line_goes, bank, small):
        """Neither a line nor what waits in a bank is passed twice, unless a small writer goes."""
        scatter, scattered, passed = self.dut.scatter, self.dut.scattered, self.dut.passed
        m.submodules.lines_rules = StreamRules(lines, assume=True)
        waits, goes = scatter.banks.bit_select(bank, 1), scattered.bit_select(bank, 1)
        remaining, line_passed, bank_passed = Signal(8), Signal(), Signal()
        m.d.sync += [
            remaining.eq(scatter.banks & ~scattered),
            line_passed.eq(lines.valid & ~line_goes & (line_passed | ~small)),
            bank_passed.eq(waits & ~goes & (bank_passed | ~small)),
        ]
        m.d.comb += [
            Assume((remaining & ~scatter.banks) == 0),
            Assert((passed & ~remaining) == 0),
            Assert(~line_passed | (passed == 0)),
            Assert(~bank_passed | passed.bit_select(bank, 1)),
            Assert(~(line_passed & lines.valid & ~line_goes) | small),
            Assert(~(bank_passed & waits & ~goes) | small),
            Cover(line_passed & line_goes),
            Cover(bank_passed & goes),
        ]


class WriteWaitSpec(Spec):
    """How long the barrier unit, the host and a line wait for the write side, whatever the traffic."""

    given = "lines host"

    def __init__(self):
        self.dut, self.unit = WriteArbiter(PARAMS), BarrierUnit(PARAMS)

    def specify(self, m, arbiter):
        m.submodules.unit = unit = self.unit
        host, back = arbiter.host, arbiter.write_back
        m.d.comb += [
            back.payload.eq(unit.write_back.payload),
            back.valid.eq(unit.write_back.valid),
            back.urgent.eq(unit.write_back.urgent),
            unit.write_back.accepted.eq(back.accepted),
        ]

        waits = {}
        for name, waiting in (
            ("back", back.valid & ~back.accepted),
            ("host", host.valid & ~host.ready),
            ("line", arbiter.stall_stb),
        ):
            waits[name] = Signal(5, name=f"{name}_waits")
            m.d.sync += waits[name].eq(Mux(waiting, waits[name] + 1, 0))
        # For the induction: patience counts at least as long as anyone waits.
        for name in ("back", "host"):
            m.d.comb += Assert((arbiter.waited == PATIENCE) | (waits[name] <= arbiter.waited))
        m.d.comb += Assert(waits["back"] <= PATIENCE)
        m.d.comb += Assert(waits["host"] <= PATIENCE + 4)
        m.d.comb += Assert(waits["line"] <= 5)


#: What there is beside lines, and the words that those come as; of 64 bytes a line has two, of 16 a bank has one.
WRITERS = pytest.mark.parametrize(
    ("params", "stores", "word_bytes"),
    [
        pytest.param(PARAMS, False, None, marks=pytest.mark.long, id="lines"),
        pytest.param(PARAMS, False, 16, marks=pytest.mark.long, id="words"),
        pytest.param(PARAMS, True, None, id="lines-and-scatter"),
        pytest.param(PARAMS, True, 16, id="words-and-scatter"),
        pytest.param(PARAMS, True, 64, marks=pytest.mark.long, id="wide-words-and-scatter"),
        pytest.param(QUARTER, True, None, marks=pytest.mark.long, id="lines-and-two-chunks"),
        pytest.param(QUARTER, True, 16, id="words-and-two-chunks"),
    ],
)


def _name(name, params, stores, word_bytes):
    return f"{name}{f'-stores{params.writes_a_cycle}' * stores}{f'-words{word_bytes}' if word_bytes else ''}"


@proved_and_covered(16, 16)
def test_reads(mode, depth):
    prove(ReadSpec(ReadArbiter(PARAMS)), name=f"smem-read-arbiter-{mode}", mode=mode, depth=depth, proves="F2")


@WRITERS
def test_writes(params, stores, word_bytes):
    prove(
        WriteSpec(params=params, stores=stores, word_bytes=word_bytes),
        name=_name("smem-write-arbiter", params, stores, word_bytes),
        depth=2,
        proves="F2",
    )


@pytest.mark.long
@WRITERS
def test_writes_do_meet(params, stores, word_bytes):
    prove(
        WriteSpec(params=params, stores=stores, word_bytes=word_bytes),
        name=_name("smem-write-arbiter-cover", params, stores, word_bytes),
        mode="cover",
        depth=11,
    )


def test_waits_for_the_write_side_are_bounded():
    prove(WriteWaitSpec(), name="smem-write-waits", depth=9, proves="F11")
