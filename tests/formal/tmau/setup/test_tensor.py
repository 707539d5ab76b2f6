"""F6: a command is finished, or becomes a job, once. F11: it is offered two cycles after its last dimension."""

from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal, Value

from support.formal import Spec, proved_and_covered
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.tensor import Setup
from tilewright.spec import TENSOR_OPCODES, Error
from tilewright.verify.formal import prove


class SetupSpec(Spec):
    """Counts the dimensions of a command through two places to the output. Products do not matter here."""

    made = "jobs finished"
    constant = "dut.dimensions.listed"

    def specify(self, m, dut):
        jobs, finished = dut.jobs, dut.finished
        leaves = (jobs.valid & jobs.ready) | (finished.valid & finished.ready)

        # What comes is constant until it is taken, and a descriptor has a rank.
        command, checked = dut.i.payload.command, dut.i.payload.checked
        count, kept = Signal(range(16)), Signal.like(Value.cast(dut.i.payload))
        slot = Signal(range(16))  # cycles that the command at the input has been here
        needed = Cat(command.opcode == member for member in TENSOR_OPCODES).any() & (
            dut.i.payload.fault.code == Error.NONE
        )
        rank = checked.rank
        m.d.comb += [
            count.eq(Mux(needed, Mux(checked.im2col, 2 * rank - 2, rank), 1)),
            Assume(~needed | ((rank >= Mux(checked.im2col, 3, 1)) & (rank <= 5))),
            Assume((slot == 0) | (dut.i.valid & (Value.cast(dut.i.payload) == kept))),
        ]
        m.d.sync += kept.eq(dut.i.payload)

        places = [(Signal(), Signal(), Signal()) for _ in range(2)]  # whether there is a dimension, first, last
        offered, step, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            step.eq(~(places[1][0] & places[1][1] & offered) | (jobs.valid & jobs.ready)),
            ends.eq(slot >= Mux(count > 3, count, 3) - 1),
        ]
        with m.If(step):
            arriving = (dut.i.valid & (slot < count), slot == 0, slot == count - 1)
            for before, place in zip((arriving, places[0]), places, strict=True):
                m.d.sync += [flag.eq(new) for flag, new in zip(place, before, strict=True)]
        with m.If(step & dut.i.valid):
            m.d.sync += slot.eq(Mux(ends, 0, slot + 1))
        with m.If(step & places[1][0] & places[1][2]):
            m.d.sync += offered.eq(1)
        with m.Elif(leaves):
            m.d.sync += offered.eq(0)

        m.d.comb += [
            Assert(dut.i.ready == (step & ends)),
            Assert(dut.busy == (places[0][0] | places[1][0] | offered)),
            Assert((jobs.valid | finished.valid) == offered),
            Assert(~(jobs.valid & finished.valid)),
            Cover(jobs.valid & jobs.ready & places[1][0]),
            Cover(finished.valid & finished.ready & places[0][0]),
        ]
        self.tie(m, slot, count, places)
        self.follow(m, slot, count, places, offered)

    def tie(self, m, slot, count, places):
        """What the registers of the device hold: makes the induction close."""
        picker, measured, checked = self.dut.picker, self.dut.measured, self.dut.i.payload.checked
        spatial = checked.rank - 2
        number = Signal(range(16))
        with m.If(~checked.im2col | (slot == 0) | (slot <= spatial)):
            m.d.comb += number.eq(slot)
        with m.Elif(slot == spatial + 1):
            m.d.comb += number.eq(4)
        with m.Else():
            m.d.comb += number.eq(slot - (spatial + 1))
        m.d.comb += [
            Assert(picker.age == Mux(slot < 2, slot, 2)),
            Assert(picker.picked == (slot >= count)),
            Assert(picker.begun == (slot != 0)),
            Assert((slot < count) | (slot < 3)),
            Assert((slot >= count) | (picker.number == number)),
            Assert(picker.spatial == Mux(picker.number < 4, picker.number, 0)),
            Assert((slot >= count) | (picker.again == (checked.im2col & (slot != 0) & (slot > spatial + 1)))),
            Assert(picker.valid == places[0][0]),
            Assert(self.dut.placing == places[1][0]),
            Assert(self.dut.starting == (places[1][0] & places[1][1])),
        ]
        m.d.comb += Assert(~measured.first | ~measured.rows)
        for (valid, first, last), stage in zip(places, (picker.o, measured), strict=True):
            m.d.comb += Assert(~valid | ((stage.first == first) & (stage.last == last)))

    def follow(self, m, slot, count, places, offered):
        """Dimensions of a command follow each other without a gap, and what is offered is before all of them."""
        (near, near_first, near_last), (far, far_first, far_last) = places
        between = (slot > 0) & (slot < count)  # more of the command that was picked last are to come
        m.d.comb += [
            Assert(~near | (near_first == (slot == 1))),
            Assert(~far | (far_first == (slot == 2))),
            Assert(~near | (near_last == ~between)),
            Assert(near | ~between),
            Assert(~far | far_last | (near & ~near_first)),
            Assert(~far | ~far_last | ~near | near_first),
            Assert(~offered | ~far | far_first),
            Assert(~offered | far | ~near | near_first),
        ]


@proved_and_covered(3, 9)
def test_every_command_leaves_once(mode, depth):
    prove(
        SetupSpec(Setup(TMAU_PRESETS["unit"].replace(addr_width=16))),
        name=f"setup-{mode}",
        mode=mode,
        depth=depth,
        proves="F6 F11",
    )
