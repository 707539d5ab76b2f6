"""The line network of a cluster; connections only (docs/cluster.md, "Network")."""

from amaranth import Module, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, flipped

from ...lib.arbiter import StreamArbiter
from ...lib.join import join
from ...smem.signatures import MoverSignature
from .inbox import Inbox
from .landing import Landing
from .line_reducer import LineReducer
from .outbox import Outbox

__all__ = ["LineNetwork"]


class LineNetwork(wiring.Component):
    """Lines from the access unit of each core to the shared memories that they name, its own among them.

    Each core has an outbox, which holds a packet until every receiver has it, and each shared memory an inbox, which
    takes the packets of all cores in turns. Nothing else is shared: a receiver that stalls holds up the cores that send
    to it, and no packet waits for one that waits for it, so that mutual multicasts cannot block each other.

    Latency: from a core's line to its write 3 cycles; from the end of a transfer, when ``landed`` is valid, to its
    acceptance 6, if memories and barriers are free. Throughput: one line a cycle for each core and for each memory; the
    end of a transfer takes the place of a line.

    Parameters
    ----------
    params : SmemParams
    cores : int
        2 to 16.
    reduces, floats : bool
        Reductions into shared memory are built; those of floats too.

    Members
    -------
    movers : In(array of cores MoverSignature(params, cores))
        From the access unit of each core.
    memories : Out(array of cores MoverSignature(params))
        To the shared memory of each core.
    """

    def __init__(self, params, cores, *, reduces=True, floats=True):
        self._params, self._cores = params, cores
        self._reduces, self._floats = reduces, floats
        super().__init__(
            {
                "movers": In(MoverSignature(params, cores)).array(cores),
                "memories": Out(MoverSignature(params)).array(cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        outboxes = [Outbox(self._params, self._cores, number) for number in range(self._cores)]
        for number, outbox in enumerate(outboxes):
            m.submodules[f"outbox{number}"] = outbox
            mover = self.movers[number]
            join(m, writes=flipped(mover.writes), outbox=outbox.writes)
            join(m, landed=flipped(mover.landed), outbox=outbox.landed)
            m.d.comb += [mover.refusing.eq(outbox.refusing), mover.number.eq(number)]
        for number in range(self._cores):
            landing = self._receive(m, number, [outbox.packets[number] for outbox in outboxes])
            for sender, outbox in enumerate(outboxes):
                m.d.comb += outbox.acks[number].eq(landing.acks[sender])
        return m

    def _receive(self, m, number, packets):
        """What one core has to receive with; returns its landing."""
        params, mover, memory = self._params, self.movers[number], self.memories[number]
        m.submodules[f"inbox{number}"] = inbox = Inbox(params, self._cores)
        m.submodules[f"landing{number}"] = landing = Landing(params, self._cores)
        for sender, port in enumerate(packets):
            join(m, packets=port, inbox=inbox.packets[sender])
        arrivals = inbox.arrivals
        if self._reduces:
            m.submodules[f"reducer{number}"] = reducer = LineReducer(params, self._cores, self._floats)
            m.submodules[f"fetch_arbiter{number}"] = arbiter = StreamArbiter(unsigned(params.row_width), 2)
            join(m, inbox=arrivals, reducer=reducer.i)
            arrivals = reducer.o
            join(m, mover=flipped(mover.fetch.rows), arbiter=arbiter.i[0])
            join(m, reducer=reducer.fetch.rows, arbiter=arbiter.i[1])
            join(m, arbiter=arbiter.o, memory=flipped(memory.fetch.rows))
            m.d.comb += [mover.fetch.line.eq(memory.fetch.line), reducer.fetch.line.eq(memory.fetch.line)]
        else:
            join(m, mover=flipped(mover.fetch), memory=flipped(memory.fetch))
        join(m, arrivals=arrivals, landing=landing.arrivals)
        join(m, landing=landing.writes, memory=flipped(memory.writes))
        join(m, landing=landing.landed, memory=flipped(memory.landed))
        join(m, memory=flipped(memory.refused), mover=flipped(mover.refused))
        m.d.comb += [
            inbox.acceptance.eq(mover.acceptance),
            mover.bank_conflict.eq(memory.bank_conflict),
            mover.refusal.eq(landing.refusal),
            mover.received.eq(landing.received),
        ]
        return landing
