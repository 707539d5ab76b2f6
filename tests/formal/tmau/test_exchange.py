"""Copies within one memory: no job of a piece leaves before all of its words, or all of their space, are there."""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.exchange import Exchange
from tilewright.hw.tmau.jobs import BlockJobLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.formal import prove

#: A piece is two words, so that few cycles fill and empty both queues.
PARAMS = TMAU_PRESETS["unit"].replace(addr_width=16, bus_bytes=64, exchange_bytes=128, smem=SmemParams(1024))
DEPTHS = dict.fromkeys(("loop", "stage"), PARAMS.exchange_words)
#: What the two jobs of a piece have in common.
SHARED = ("loop", "stage", "size", "tag", "element", "bytes")
CYCLES = 10


class ExchangeSpec(Spec):
    """Plays both queues, words of which come and go at any time, and counts what jobs bring and take."""

    given, made = "i", "o"

    def __init__(self):
        self.dut = Exchange(PARAMS)
        self.comes = {name: Signal(name=f"{name}_comes") for name in DEPTHS}
        self.watch = Signal()

    def specify(self, m, dut):
        for port in dut.i:
            self.sound_job(m, port.payload)
        m.d.comb += Assume(~(dut.i[0].valid & dut.i[1].valid))

        job = dut.o.payload
        leaves = dut.o.valid & dut.o.ready
        copies = job.loop | job.stage
        first, second = Signal(), Signal()
        words = (job.size + PARAMS.bus_bytes - 1) >> PARAMS.bus_log2
        m.d.comb += [
            first.eq(leaves & copies & (job.store == job.loop)),
            second.eq(leaves & copies & (job.store != job.loop)),
            Assert(~leaves | ~copies | ((job.size != 0) & (job.size <= PARAMS.exchange_bytes))),
        ]
        for name, depth in DEPTHS.items():
            self.play_queue(m, name, depth, first & job[name], second & job[name], words)

        pending = Signal(4)  # first jobs that have left, and whose second ones have not
        m.d.sync += pending.eq(pending + first - second)
        m.d.comb += [
            Assert(~second | (pending != 0)),
            Assert(dut.busy | (pending == 0)),
            Assert(~leaves | copies | (pending == 0)),
            Assert(~first | (pending < 8)),
            # A first job is none that anybody waits for, and changes nothing.
            Assert(~first | (job.quiet & ~job.signal & (job.reduction == 0))),
        ]
        self.follow(m, job, first, second, pending)
        m.d.comb += [Cover(second & (pending == 2)), Cover(first & job.stage & (pending == 3)), Cover(leaves & ~copies)]

    @staticmethod
    def sound_job(m, job):
        """Of a job: what block setup makes."""
        copies = job.loop | job.stage
        m.d.comb += [
            Assume(~(job.loop & job.stage)),
            Assume(~copies | (job.store == job.loop)),
            Assume((job.size != 0) & (job.size[:4] == 0)),
        ]

    def play_queue(self, m, name, depth, first, second, words):
        """A queue: first jobs bring words, second ones take words, and neither waits for the other."""
        port = getattr(self.dut, name)
        due, level, owed = (Signal(range(2 * depth), name=f"{name}_{what}") for what in ("due", "level", "owed"))
        comes = self.comes[name]
        m.d.sync += [
            due.eq(due + Mux(first, words, 0) - comes),
            level.eq(level + comes - port.popped),
            owed.eq(owed + Mux(second, words, 0) - port.popped),
        ]
        m.d.comb += [
            Assume(~comes | (due != 0)),
            Assume(~port.popped | (owed != 0)),
            Assume(port.level == level),
            # There is space for all that first jobs still bring, and for this one's.
            Assert(~first | (due + level + words <= depth)),
            # All that second jobs still take is there, and what this one takes.
            Assert(~second | (owed + words <= level)),
            Assert((due + level <= depth) & (owed <= level)),
        ]

    def follow(self, m, job, first, second, pending):
        """Any one piece: its second job comes as many seconds after its first as there are pieces between them."""
        followed, ahead, kept = Signal(), Signal.like(pending), Signal(BlockJobLayout(PARAMS))
        with m.If(first & self.watch & ~followed):
            m.d.sync += [followed.eq(1), ahead.eq(pending - second), kept.eq(job)]
        with m.Elif(second & followed):
            m.d.sync += ahead.eq(ahead - 1)
            with m.If(ahead == 0):
                m.d.sync += followed.eq(0)
                m.d.comb += [Assert(job[name] == kept[name]) for name in SHARED]
        m.d.comb += [Assert(~followed | (ahead < pending)), Cover(second & followed & (ahead == 0))]


@pytest.mark.parametrize("cycles", [6, pytest.param(CYCLES, marks=pytest.mark.long)])
def test_no_path_waits_for_the_other(cycles):
    """From the start on: what is reserved is not seen at the ports, so induction has nothing to begin with."""
    prove(ExchangeSpec(), name="exchange", mode="bmc", depth=cycles)


@pytest.mark.long
def test_pieces_are_reached():
    prove(ExchangeSpec(), name="exchange-cover", mode="cover", depth=CYCLES)
