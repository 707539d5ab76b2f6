"""The line network of a cluster; connections only (docs/cluster.md, "Network")."""

from amaranth.hdl import Module, Mux, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.routing import StreamArbiter
from ...lib.stream import SkidBuffer
from ...smem.layouts import LoanRequestLayout
from ...smem.signatures import BarrierEventSignature, MoverSignature
from .inbox import Inbox, Landing, LineReducer
from .outbox import Lender, Outbox

__all__ = ["LineNetwork"]


class LineNetwork(wiring.Component):
    """Lines from the access unit of each core to the shared memories that they name, its own among them.

    Each core has an outbox, which holds a packet until every receiver has it, and each shared memory an inbox, which
    takes the packets of all cores in turns. Nothing else is shared: a receiver that stalls holds up the cores that send
    to it, and no packet waits for one that waits for it, so that mutual multicasts cannot block each other. Each memory
    also has a lender, which reads it for other cores and waits for nothing else.

    Latency: from a core's line to its write 3 cycles; from the end of a transfer, when ``landed`` is valid, to its
    acceptance 6; from a request for another core's line to the line 4; if memories and barriers are free. Throughput:
    one line a cycle for each core and for each memory, each way; the end of a transfer takes the place of a line.

    Parameters
    ----------
    params : SmemParams
    cores : int
        2 to 16.
    reduces, floats : bool
        Reductions into shared memory are built; reductions of floats too.
    """

    def __init__(self, params, cores, *, reduces=True, floats=True):
        self._params, self._cores = params, cores
        self._reduces, self._floats = reduces, floats
        super().__init__(
            {
                # From the access unit of each core.
                "movers": In(MoverSignature(params, cores)).array(cores),
                # To the shared memory of each core.
                "memories": Out(MoverSignature(params)).array(cores),
                # For the error record of each core, beside what its own barriers refuse; stays until it is recorded.
                "refused": In(BarrierEventSignature(params)).array(cores),
                "recorded": Out(1).array(cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        outboxes = [Outbox(self._params, self._cores, number) for number in range(self._cores)]
        for number, outbox in enumerate(outboxes):
            m.submodules[f"outbox{number}"] = outbox
            mover = self.movers[number]
            connect(m, writes=flipped(mover.writes), outbox=outbox.writes)
            connect(m, landed=flipped(mover.landed), outbox=outbox.landed)
            m.d.comb += [mover.refusing.eq(outbox.refusing), mover.number.eq(number)]
        lenders = [Lender(self._params, self._cores) for _ in range(self._cores)]
        for number, lender in enumerate(lenders):
            m.submodules[f"lender{number}"] = lender
            self._request(m, number, lenders)
        for number in range(self._cores):
            landing = self._receive(m, number, [outbox.packets[number] for outbox in outboxes], lenders[number])
            for sender, outbox in enumerate(outboxes):
                m.d.comb += outbox.acks[number].eq(landing.acks[sender])
        return m

    def _request(self, m, number, lenders):
        """What one core wants of others: to the lender of each, and their answers, of which one of a kind comes."""
        loans = self.movers[number].loans
        m.submodules[f"loan_buffer{number}"] = buffer = SkidBuffer(LoanRequestLayout(self._params, self._cores))
        connect(m, requests=flipped(loans.requests), buffer=buffer.i)
        request, answer, ready = buffer.o, 0, 0
        for owner, lender in enumerate(lenders):
            port, given = lender.requests[number], lender.answers[number]
            m.d.comb += [port.valid.eq(request.valid & request.payload.owner[owner]), port.payload.eq(request.payload)]
            ready |= port.ready & request.payload.owner[owner]
            shown = {"answers": given.answers, "granted": given.answers & given.granted, "lends": given.lends,
                     "line": Mux(given.lends, given.line, 0)}  # fmt: skip
            answer = shown if not answer else {name: answer[name] | value for name, value in shown.items()}
        m.d.comb += [request.ready.eq(ready), *(loans.answer[name].eq(value) for name, value in answer.items())]

    def _receive(self, m, number, packets, lender):
        """What one core has to receive with; returns its landing."""
        params, mover, memory = self._params, self.movers[number], self.memories[number]
        m.submodules[f"inbox{number}"] = inbox = Inbox(params, self._cores)
        m.submodules[f"landing{number}"] = landing = Landing(params, self._cores)
        for sender, port in enumerate(packets):
            connect(m, packets=port, inbox=inbox.packets[sender])
        arrivals, readers = inbox.arrivals, [flipped(mover.fetch), lender.fetch]
        if self._reduces:
            m.submodules[f"reducer{number}"] = reducer = LineReducer(params, self._cores, self._floats)
            connect(m, inbox=arrivals, reducer=reducer.i)
            arrivals = reducer.o
            readers.append(reducer.fetch)
        m.submodules[f"fetch_arbiter{number}"] = arbiter = StreamArbiter(unsigned(params.row_width), len(readers))
        for reader, rows in zip(readers, arbiter.i, strict=True):
            connect(m, reader=reader.rows, arbiter=rows)
            m.d.comb += reader.line.eq(memory.fetch.line)
        connect(m, arbiter=arbiter.o, memory=flipped(memory.fetch.rows))
        connect(m, arrivals=arrivals, landing=landing.arrivals)
        connect(m, landing=landing.writes, memory=flipped(memory.writes))
        connect(m, landing=landing.landed, memory=flipped(memory.landed))
        m.d.comb += [
            inbox.acceptance.eq(mover.acceptance),
            lender.acceptance.eq(mover.acceptance),
            mover.bank_conflict.eq(memory.bank_conflict),
            mover.refusal.eq(Mux(landing.refusal.valid, landing.refusal, lender.refusal)),
            lender.recorded.eq(~landing.refusal.valid),
            mover.refused.valid.eq(memory.refused.valid | self.refused[number].valid),
            mover.refused.address.eq(Mux(memory.refused.valid, memory.refused.address, self.refused[number].address)),
            self.recorded[number].eq(~memory.refused.valid),
            mover.received.eq(landing.received),
        ]
        return landing
