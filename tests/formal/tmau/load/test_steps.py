"""F6: runs obey the stream rules, and take one row each, and with the last one the transfer; F8: and lie end to end."""

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Mux, Signal, Value

from support.formal import Spec
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.load.layouts import RunLayout
from tilewright.hw.tmau.load.steps import ResponseTracker, StepGenerator
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Reduction
from tilewright.verify.formal import prove, queue_invariants


class TrackerSpec(Spec):
    """Counts rows and runs on both sides of the queue, and remembers where the run before ended."""

    made = "runs"

    def __init__(self, bus_bytes):
        self.params = TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes)
        self.dut = ResponseTracker(self.params)

    def specify(self, m, dut):
        taken = dut.runs.valid & dut.runs.ready
        pushed = dut.rows.valid & dut.rows.ready
        transfer_pushed = dut.transfers.valid & dut.transfers.ready

        rows, transfers = Signal(8), Signal(8)
        m.d.sync += rows.eq(rows + pushed - taken)
        m.d.sync += transfers.eq(transfers + transfer_pushed - (taken & dut.runs.payload.last))
        m.d.comb += [
            *queue_invariants(dut.row_queue),
            *queue_invariants(dut.transfer_queue),
            Assert(rows == dut.row_queue.level),
            Assert(transfers == dut.transfer_queue.level),
            Assert(~dut.runs.valid | ((rows != 0) & (transfers != 0))),
        ]
        self.judge_place(m, taken)
        m.d.comb += Cover(taken & dut.runs.payload.last & (transfers == 2))

    def judge_place(self, m, taken):
        """Runs lie end to end, with the gap where a row ends; a run closes the line that no other goes on with."""
        dut, run = self.dut, self.dut.runs.payload
        transfer, row = dut.transfer_queue.o.payload, dut.row_queue.o.payload
        begun, following = Signal(), Signal.like(dut.following)
        behind = Signal(len(following) + 1)  # a bit more: the last run may end at the end of the memory
        m.d.comb += behind.eq(run.end + Mux(row.skip, transfer.gap, 0))
        with m.If(taken):
            m.d.sync += [begun.eq(~run.last), following.eq(behind)]
        m.d.comb += [Assert(dut.first == ~begun), Assert(~begun | (dut.following == following))]
        length = Mux(row.folded, row.bytes, transfer.run_bytes)
        with m.If(dut.runs.valid):
            m.d.comb += [
                Assert(run.start == Mux(begun, following, transfer.smem)),
                Assert(run.end == (run.start + length)[: len(run.end)]),
                Assert(run.data_end == Mux(row.folded, run.end, run.start + transfer.data_end)[: len(run.end)]),
                Assert(run.close == (run.last | (behind[7:] != run.end[7:]))),
            ]


@pytest.mark.parametrize("bus_bytes", [16, 32])
def test_one_row_a_run(bus_bytes):
    prove(TrackerSpec(bus_bytes), name=f"tracker_{bus_bytes}", depth=2, proves="F6 F8")


@pytest.mark.long
def test_tracker_spec_reaches_two_transfers():
    prove(TrackerSpec(16), name="tracker_cover", mode="cover", depth=8)


class StepsSpec(Spec):
    """Follows the run that is being cut, and judges each step by it."""

    given, made = "runs", "steps"

    def __init__(self, bus_bytes):
        self.params = TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes, smem=SmemParams(1024))
        self.dut = StepGenerator(self.params)
        self.byte = AnyConst(self.params.smem.addr_width + 1)  # any byte address: what holds for it holds for all

    def specify(self, m, dut):
        m.d.comb += Assume(well_formed(dut.runs.payload, self.params) | ~dut.runs.valid)

        # The run that steps are cut from, and whether there is one; where the next step starts; the bytes in the words
        # that the run has used before; where the word before ended.
        run, busy = Signal(RunLayout(self.params)), Signal()
        start, words = Signal.like(dut.cursor), Signal.like(dut.cursor)
        previous = Signal.like(dut.last_word_end)
        joined = Signal()  # a step before took two words

        step, piece = dut.steps.payload, dut.steps.payload.piece
        uses = piece.data_end != 0
        base = Cat(Const(0, 7), piece.line)
        end = Signal.like(dut.cursor)
        m.d.comb += [end.eq(base + piece.end), Assert(dut.steps.valid == busy), Assert(busy | dut.runs.ready)]

        leaves = dut.steps.valid & dut.steps.ready
        with m.If(leaves):
            self.judge(m, step, run, start, end, dut.runs.ready)
            self.judge_word(m, step, run, base, start, end, words, previous)
            m.d.sync += [start.eq(end), joined.eq(joined | (piece.joint != 0))]
            with m.If(uses):
                m.d.sync += [words.eq(words + self.params.bus_bytes), previous.eq(run.word_end + words)]
        with m.If(dut.runs.ready):
            m.d.sync += [busy.eq(dut.runs.valid), run.eq(dut.runs.payload)]
            m.d.sync += [start.eq(dut.runs.payload.start), words.eq(0), joined.eq(0)]
        self.tie(m, run, busy, start, words, previous, joined)

        covered = Signal(5)
        with m.If(leaves):
            m.d.sync += covered.eq(
                covered
                | Cat(uses & (end > base + 128), piece.first == piece.end, uses & ~step.pull, ~uses, piece.joint != 0)
            )
        m.d.comb += Cover(covered.all())

    def judge(self, m, step, run, start, end, final):
        """The steps of a run lie end to end from its start to its end; an empty one may follow."""
        piece = step.piece
        line_end = Cat(Const(0, 7), piece.line) + 128
        empty = run.close & (start == run.end) & (start[:7] != 0)
        m.d.comb += [
            Assert(Cat(piece.first, piece.line) == start[: len(start)]),
            Assert((end > start) | (final & empty)),
            Assert(end <= run.end),
            Assert(~final | (end == run.end)),
            Assert(final | (end < run.end) | (run.close & (end > line_end))),
            Assert(piece.last == (final & run.last)),
            Assert(Value.cast(step.context) == Value.cast(run.context)),
        ]

    def judge_word(self, m, step, run, base, start, end, words, previous):
        """Any byte of the step is data exactly if it lies in the tensor, and then the word holds it."""
        piece, byte, bus_bytes = step.piece, self.byte, self.params.bus_bytes
        word_end = run.word_end + words
        is_data = (byte >= base + piece.data_first) & (byte < base + piece.data_end)
        uses, joins = piece.data_end != 0, piece.joint != 0
        with m.If((byte >= start) & (byte < end)):
            m.d.comb += Assert(is_data == (run.inside & (byte >= run.data_start) & (byte < run.data_end)))
            with m.If(is_data):
                in_word = (byte < word_end) & (byte + bus_bytes >= word_end)
                in_next = (byte >= word_end) & (byte < word_end + bus_bytes) & joins
                m.d.comb += Assert(uses & (in_word | in_next))
        with m.If(joins):
            # The word before is there as it is rotated, and both lie in the line's first segment.
            m.d.comb += [
                Assert(step.pull & run.shared & (words == 0) & (previous == word_end[: len(previous)])),
                Assert((base + piece.joint == word_end) & (piece.data_end <= bus_bytes)),
                Assert((piece.data_first < piece.joint) & (piece.joint < piece.data_end)),
                Assert(run.context.reduction == 0),
                Assert(run.data_end <= word_end + bus_bytes),
            ]
        # A run of two words: the first is there, rotated as the second will be, and all data lie in one line's segment.
        segment = (run.data_start >= base) & (run.data_start < base + bus_bytes) & (run.data_end <= base + bus_bytes)
        there = run.shared & (words == 0) & (run.data_end > run.word_end) & (previous == run.word_end[: len(previous)])
        with m.If(run.inside & there & segment & (run.context.reduction == Reduction.NONE)):
            m.d.comb += Assert(joins)
        m.d.comb += [
            Assert(step.pull == (uses & ~(run.shared & (words == 0) & ~joins))),
            Assert(step.rotate == Mux(uses, word_end, previous)[: len(step.rotate)]),
        ]
        with m.If(uses):
            m.d.comb += [
                # A word that has none of the run's data would be one that was never asked for.
                Assert((word_end > run.data_start) & (word_end < run.data_end + bus_bytes))
            ]

    def tie(self, m, run, busy, start, words, previous, joined):
        """What the registers of the device hold in terms of the steps so far: makes the induction close."""
        dut, bus_bytes = self.dut, self.params.bus_bytes
        m.d.comb += [Assert(busy == dut.busy), Assert(dut.last_word_end == previous)]
        with m.If(busy):
            m.d.comb += [
                *(Assert(Value.cast(run[name]) == Value.cast(dut.run[name])) for name, _ in dut.run.shape()),
                Assert(well_formed(run, self.params)),
                Assert(dut.cursor == start),
                Assert((start < run.end) | (run.close & (start == run.end) & (start[:7] != 0))),
                Assert(dut.started == (words != 0)),
                Assert(words[: len(dut.last_word_end)] == 0),
            ]
            with m.If(run.inside):
                m.d.comb += [
                    Assert(dut.word_end == run.word_end + words),
                    Assert(dut.drained == (joined | (dut.started & (dut.word_end >= run.data_end + bus_bytes)))),
                    Assert(~dut.drained | (dut.cursor >= run.data_end)),
                    Assert(dut.drained | ~dut.started | (dut.cursor == (dut.word_end - bus_bytes)[: len(start)])),
                    Assert(dut.started | (dut.cursor <= run.data_start)),
                ]
            with m.Else():
                m.d.comb += Assert(dut.drained & ~dut.started)


def well_formed(run, params):
    """What RunLayout promises."""
    inside = (
        (run.start <= run.data_start)
        & (run.data_start < run.data_end)
        & (run.data_end <= run.end)
        & (run.data_start < run.word_end)
        & (run.word_end <= run.data_start + params.bus_bytes)
    )
    return (
        (run.start < run.end) & (run.end <= params.smem.size_bytes) & (inside | ~run.inside) & (run.close | ~run.last)
    )


def steps_ports(spec):
    runs, steps = spec.dut.runs, spec.dut.steps
    return [runs.valid, runs.payload, steps.ready]


@pytest.mark.parametrize("bus_bytes", [16, *(pytest.param(width, marks=pytest.mark.long) for width in (32, 64))])
def test_steps_cover_the_run(bus_bytes):
    spec = StepsSpec(bus_bytes)
    prove(spec, steps_ports(spec), name=f"steps_{bus_bytes}", depth=2, proves="F8")


@pytest.mark.long
def test_steps_spec_reaches_every_kind_of_step():
    spec = StepsSpec(16)
    prove(spec, steps_ports(spec), name="steps_cover", mode="cover", depth=12)
