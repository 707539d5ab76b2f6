"""Users of one port: answers go to who asked, in order, and none is lost."""

import pytest
from amaranth.hdl import Assert, Cover, Elaboratable, Module, Signal

from tilewright.hw.lib.share import StreamShare
from tilewright.sim.formal import StreamRules, prove


class StreamShareSpec(Elaboratable):
    """Two users, and a port that answers whenever it likes; one read of the first user is followed.

    Of it one bit: all go the same way.
    """

    def __init__(self):
        self.share = share = StreamShare(2, 2, 2)
        self.track, self.answers = Signal(), Signal()
        self.inputs = [self.track, self.answers, share.merged.ready, share.answers.payload]
        for n in range(2):
            self.inputs += [share.requests[n].valid, share.requests[n].payload, share.results[n].ready]

    def elaborate(self, platform):
        m = Module()
        m.submodules.share = share = self.share
        for n in range(2):
            m.submodules[f"i{n}_rules"] = StreamRules(share.requests[n], assume=True)
        m.submodules.reads_rules = StreamRules(share.merged)

        # Requests in the port.
        asked, answered, waits, count = Signal(), Signal(), Signal(), Signal(5)
        m.d.comb += [
            share.answers.valid.eq((count != 0) & (self.answers | waits)),
            asked.eq(share.merged.valid & share.merged.ready),
            answered.eq(share.answers.valid & share.answers.ready),
        ]
        m.d.sync += [count.eq(count + asked - answered), waits.eq(share.answers.valid & ~share.answers.ready)]

        # Reads of each user that are not answered; of both, those before the one that is followed.
        taken, given = Signal(2), Signal(2)
        unanswered = [Signal(5, name=f"unanswered{n}") for n in range(2)]
        for n in range(2):
            m.d.comb += taken[n].eq(share.requests[n].valid & share.requests[n].ready)
            m.d.comb += given[n].eq(share.results[n].valid & share.results[n].ready)
            m.d.sync += unanswered[n].eq(unanswered[n] + taken[n] - given[n])
            m.d.comb += Assert(~share.results[n].valid | (unanswered[n] != 0))
        m.d.comb += Assert(~taken.all() & ~given.all())
        m.d.comb += Assert(answered == given.any())

        tracking, ahead, bit = Signal(), Signal(5), Signal()
        total = unanswered[0] + unanswered[1]
        with m.If(tracking):
            with m.If(given.any()):
                m.d.comb += Assert((ahead != 0) | given[0])
                m.d.sync += [tracking.eq(ahead != 0), ahead.eq(ahead - 1)]
        with m.Elif(taken[0] & self.track):
            m.d.sync += [tracking.eq(1), ahead.eq(total - given.any()), bit.eq(share.requests[0].payload[0])]
        # It is at the memory's port when as many have been asked as were before it.
        with m.If(tracking & asked & (ahead == count)):
            m.d.comb += Assert(share.merged.payload[0] == bit)

        # With nothing in the memory, a read is on its way to it.
        with m.If((total != 0) & (count == 0)):
            m.d.comb += Assert(share.merged.valid)
        m.d.comb += Cover(tracking & (ahead == 0) & given[0] & (unanswered[1] == 2))
        m.d.comb += Cover(count == 5)
        return m


@pytest.mark.parametrize("depth", [9, pytest.param(10, marks=pytest.mark.long)])
def test_answers(depth):
    spec = StreamShareSpec()
    prove(spec, spec.inputs, name="lib-share", mode="bmc", depth=depth)


@pytest.mark.long
def test_both_users_wait():
    spec = StreamShareSpec()
    prove(spec, spec.inputs, name="lib-share-cover", mode="cover", depth=9)
