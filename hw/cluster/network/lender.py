"""Lender: hands lines of a shared memory to the other cores of a cluster that may have them."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec import BLOCK, COMMAND_FIELD

from ...lib.arbiter import StreamArbiter
from ...lib.join import join
from ...lib.stream import SkidBuffer
from ...smem.layouts import AcceptanceLayout, LoanLayout, LoanRequestLayout, RefusalLayout
from ...smem.signatures import LineReadSignature
from .layouts import LoanArrivalLayout

__all__ = ["Lender"]


class Lender(wiring.Component):
    """Answers the requests of all cores in turns: asked, whether lines may be read; otherwise with a line.

    A core may have lines if this one accepts it and its shared window holds them. One that asks and may not is recorded
    here. One that wants a line that it may not have gets zeros, so that nothing leaves that was not opened.

    Latency: from a request to its answer three cycles, if the memory is free. Throughput: one a cycle. Answers never
    wait, so no request waits for what another core does. ``ready`` of a request depends on registers and on the
    ``valid`` of others.

    Specification: docs/cluster.md, "Isolation".

    Parameters
    ----------
    params : SmemParams
    cores : int

    Members
    -------
    requests : In(array of cores stream of LoanRequestLayout(params, cores))
        From each core; ``owner`` does not count.
    acceptance : In(AcceptanceLayout)
    fetch : Out(LineReadSignature(params))
    answers : Out(array of cores LoanLayout)
        To each core. Registered.
    refusal : Out(RefusalLayout())
        Stays until it is recorded.
    recorded : In(1)
        ``refusal`` is recorded in this cycle; means nothing without one.
    """

    def __init__(self, params, cores):
        self._params, self._cores = params, cores
        self.buffer = SkidBuffer(LoanArrivalLayout(params, cores))
        super().__init__(
            {
                "requests": In(stream.Signature(LoanRequestLayout(params, cores))).array(cores),
                "acceptance": In(AcceptanceLayout(params, cores)),
                "fetch": Out(LineReadSignature(params)),
                "answers": Out(LoanLayout()).array(cores),
                "refusal": Out(RefusalLayout()),
                "recorded": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = StreamArbiter(LoanRequestLayout(self._params, self._cores), self._cores)
        m.submodules.buffer = buffer = self.buffer
        for number, port in enumerate(self.requests):
            join(m, requests=flipped(port), arbiter=arbiter.i[number])
        m.d.comb += [
            buffer.i.valid.eq(arbiter.o.valid),
            buffer.i.p.request.eq(arbiter.o.p),
            buffer.i.p.sender.eq(arbiter.winner),
            arbiter.o.ready.eq(buffer.i.ready),
        ]
        request, sender, acceptance, refusal = buffer.o.p.request, buffer.o.p.sender, self.acceptance, self.refusal
        inside, granted, reads, taken = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            inside.eq(~acceptance.confine | ((acceptance.first <= request.row) & (request.last <= acceptance.last))),
            granted.eq(inside & (acceptance.cores & sender).any()),
            reads.eq(~request.asks & granted),
            self.fetch.rows.valid.eq(buffer.o.valid & reads),
            self.fetch.rows.p.eq(request.row),
            buffer.o.ready.eq(Mux(reads, self.fetch.rows.ready, ~refusal.valid | self.recorded)),
            taken.eq(buffer.o.valid & buffer.o.ready),
        ]
        with m.If(taken & request.asks & ~granted):
            m.d.sync += [
                refusal.valid.eq(1),
                refusal.tag.eq(request.tag),
                refusal.field.eq(COMMAND_FIELD + BLOCK.index("source")),
            ]
        with m.Elif(self.recorded):
            m.d.sync += refusal.valid.eq(0)

        # The line comes in the next cycle, and goes into the registers of the answers.
        answered, asked, lent = Signal(self._cores), Signal(), Signal()
        line = Signal(len(self.fetch.line))
        m.d.sync += [
            answered.eq(Mux(taken, sender, 0)),
            asked.eq(request.asks),
            lent.eq(granted),
            line.eq(Mux(lent & ~asked, self.fetch.line, 0)),
        ]
        for number, answer in enumerate(self.answers):
            m.d.sync += [
                answer.answers.eq(answered[number] & asked),
                answer.granted.eq(lent),
                answer.lends.eq(answered[number] & ~asked),
            ]
            m.d.comb += answer.line.eq(line)
        return m
