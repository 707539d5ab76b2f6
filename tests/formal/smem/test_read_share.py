"""Users of one consumer port: answers go to who asked, in order, and none is lost."""

from amaranth.hdl import Assert, Cover, Elaboratable, Module, Signal

from tilewright.hw.smem.params import SmemParams
from tilewright.hw.smem.read_share import ReadShare
from tilewright.sim.formal import StreamRules, prove

PARAMS = SmemParams(1024)


class ReadShareSpec(Elaboratable):
    """Two users, and a memory that answers whenever it likes; one read of the first user is followed.

    Of it one bit: all go the same way.
    """

    def __init__(self):
        self.share = share = ReadShare(PARAMS, 2)
        self.track, self.answers = Signal(), Signal()
        self.inputs = [self.track, self.answers, share.reads.ready, share.read_data.payload]
        for n in range(2):
            self.inputs += [share.i[n].valid, share.i[n].payload, share.o[n].ready]

    def elaborate(self, platform):
        m = Module()
        m.submodules.share = share = self.share
        for n in range(2):
            m.submodules[f"i{n}_rules"] = StreamRules(share.i[n], assume=True)
        m.submodules.reads_rules = StreamRules(share.reads)

        # Reads in the memory.
        asked, answered, waits, count = Signal(), Signal(), Signal(), Signal(5)
        m.d.comb += [
            share.read_data.valid.eq((count != 0) & (self.answers | waits)),
            asked.eq(share.reads.valid & share.reads.ready),
            answered.eq(share.read_data.valid & share.read_data.ready),
        ]
        m.d.sync += [count.eq(count + asked - answered), waits.eq(share.read_data.valid & ~share.read_data.ready)]

        # Reads of each user that are not answered; of both, those before the one that is followed.
        taken, given = Signal(2), Signal(2)
        unanswered = [Signal(5, name=f"unanswered{n}") for n in range(2)]
        for n in range(2):
            m.d.comb += taken[n].eq(share.i[n].valid & share.i[n].ready)
            m.d.comb += given[n].eq(share.o[n].valid & share.o[n].ready)
            m.d.sync += unanswered[n].eq(unanswered[n] + taken[n] - given[n])
            m.d.comb += Assert(~share.o[n].valid | (unanswered[n] != 0))
        m.d.comb += Assert(~taken.all() & ~given.all())
        m.d.comb += Assert(answered == given.any())

        tracking, ahead, bit = Signal(), Signal(5), Signal()
        total = unanswered[0] + unanswered[1]
        with m.If(tracking):
            with m.If(given.any()):
                m.d.comb += Assert((ahead != 0) | given[0])
                m.d.sync += [tracking.eq(ahead != 0), ahead.eq(ahead - 1)]
        with m.Elif(taken[0] & self.track):
            m.d.sync += [tracking.eq(1), ahead.eq(total - given.any()), bit.eq(share.i[0].payload.lanes[0])]
        # It is at the memory's port when as many have been asked as were before it.
        with m.If(tracking & asked & (ahead == count)):
            m.d.comb += Assert(share.reads.payload.lanes[0] == bit)

        # With nothing in the memory, a read is on its way to it.
        with m.If((total != 0) & (count == 0)):
            m.d.comb += Assert(share.reads.valid)
        m.d.comb += Cover(tracking & (ahead == 0) & given[0] & (unanswered[1] == 2))
        m.d.comb += Cover(count == 5)
        return m


def test_answers():
    spec = ReadShareSpec()
    prove(spec, spec.inputs, name="smem-read-share", mode="bmc", depth=10)


def test_both_users_wait():
    spec = ReadShareSpec()
    prove(spec, spec.inputs, name="smem-read-share-cover", mode="cover", depth=9)
