"""What a core sends: lines to the memories that a command names, and lines that other cores read."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import BLOCK, COMMAND_FIELD

from ...lib.routing import StreamArbiter
from ...lib.stream import SkidBuffer
from ...smem.layouts import AcceptanceLayout, LandedLayout, LineLayout, LoanLayout, LoanRequestLayout, RefusalLayout
from ...smem.signatures import LineReadSignature
from .layouts import AckLayout, EndLayout, LoanArrivalLayout, PacketLayout, SentLayout

__all__ = ["Lender", "Outbox"]


class Outbox(wiring.Component):
    """One packet at a time, offered to all of its receivers at once; each takes it when it can.

    The next packet follows in the cycle after the last receiver has taken its own, so that k free receivers cost the
    cycles of one. The end of a transfer is a packet after its last line. ``landed`` is accepted in the cycle in which
    the last of its receivers has acknowledged, so one end is under way at a time, and lines of later transfers may
    pass meanwhile.

    Latency: one cycle. Throughput: one packet a cycle.

    Parameters
    ----------
    params : SmemParams
    cores : int
    own : int
        Number of the core, which is the receiver where ``receivers`` are 0.
    """

    def __init__(self, params, cores, own):
        self._smem, self._cores, self._own = params, cores, own
        self.buffer = SkidBuffer(SentLayout(params, cores))
        self.taken = Signal(cores)  # receivers that have the packet
        self.sent = Signal()  # the end of the transfer at ``landed`` is on its way
        self.answered = Signal(cores)  # receivers that have acknowledged it
        self.refused = Signal(cores)  # receivers among them that refused something
        super().__init__(
            {
                "writes": In(stream.Signature(LineLayout(params, cores))),
                # Valid from when the last line of its transfer has been accepted.
                "landed": In(stream.Signature(LandedLayout(params, cores))),
                # As ``landed`` is accepted: mask of the receivers that refused something.
                "refusing": Out(cores),
                # One stream a receiver.
                "packets": Out(stream.Signature(PacketLayout(params))).array(cores),
                # From each receiver: one for each end that it has taken.
                "acks": In(AckLayout()).array(cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = self.buffer
        ends, sent = self._merge(m, buffer.i), self.sent
        receivers, waits = buffer.o.payload.receivers, Signal(self._cores)
        for number, port in enumerate(self.packets):
            m.d.comb += [
                port.valid.eq(buffer.o.valid & receivers[number] & ~self.taken[number]),
                port.payload.eq(buffer.o.payload.packet),
                waits[number].eq(port.valid & ~port.ready),
            ]
        m.d.comb += buffer.o.ready.eq(~waits.any())
        with m.If(buffer.o.valid):
            m.d.sync += self.taken.eq(Mux(buffer.o.ready, 0, receivers & ~waits))

        m.d.comb += [
            self.landed.ready.eq(sent & (self.answered == self._named(self.landed.payload.receivers))),
            self.refusing.eq(self.refused),
        ]
        with m.If(self.landed.ready):
            m.d.sync += [sent.eq(0), self.answered.eq(0), self.refused.eq(0)]
        with m.Else():
            m.d.sync += sent.eq(sent | (ends & buffer.i.ready))
            for number, ack in enumerate(self.acks):
                with m.If(ack.valid):
                    m.d.sync += [self.answered[number].eq(1), self.refused[number].eq(ack.refused)]
        return m

    def _merge(self, m, i):
        """Lines, and ends between them, to the buffer; whether it is an end."""
        line, landed, packet = self.writes.payload, self.landed.payload, i.payload.packet
        ends = Signal()
        m.d.comb += [
            ends.eq(self.landed.valid & ~self.sent),
            i.valid.eq(self.writes.valid | ends),
            self.writes.ready.eq(i.ready & ~ends),
            i.payload.receivers.eq(self._named(Mux(ends, landed.receivers, line.receivers))),
            packet.ends.eq(ends),
            packet.turn.eq(Mux(ends, landed.turn, line.turn)),
            *(packet.change[name].eq(line[name]) for name in packet.change.shape().members),
            *(packet.end[name].eq(landed[name]) for name, _ in EndLayout(self._smem)),
        ]
        return ends

    def _named(self, receivers):
        return Mux(receivers == 0, 1 << self._own, receivers)


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
    """

    def __init__(self, params, cores):
        self._params, self._cores = params, cores
        self.buffer = SkidBuffer(LoanArrivalLayout(params, cores))
        super().__init__(
            {
                # From each core; ``owner`` does not count.
                "requests": In(stream.Signature(LoanRequestLayout(params, cores))).array(cores),
                "acceptance": In(AcceptanceLayout(params, cores)),
                "fetch": Out(LineReadSignature(params)),
                # To each core. Registered.
                "answers": Out(LoanLayout()).array(cores),
                # Stays until it is recorded.
                "refusal": Out(RefusalLayout()),
                # ``refusal`` is recorded in this cycle; means nothing without one.
                "recorded": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = StreamArbiter(LoanRequestLayout(self._params, self._cores), self._cores)
        m.submodules.buffer = buffer = self.buffer
        for number, port in enumerate(self.requests):
            connect(m, requests=flipped(port), arbiter=arbiter.i[number])
        m.d.comb += [
            buffer.i.valid.eq(arbiter.o.valid),
            buffer.i.payload.request.eq(arbiter.o.payload),
            buffer.i.payload.sender.eq(arbiter.winner),
            arbiter.o.ready.eq(buffer.i.ready),
        ]
        request, sender, acceptance, refusal = (
            buffer.o.payload.request,
            buffer.o.payload.sender,
            self.acceptance,
            self.refusal,
        )
        inside, granted, reads, taken = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            inside.eq(~acceptance.confine | ((acceptance.first <= request.row) & (request.last <= acceptance.last))),
            granted.eq(inside & (acceptance.cores & sender).any()),
            reads.eq(~request.asks & granted),
            self.fetch.rows.valid.eq(buffer.o.valid & reads),
            self.fetch.rows.payload.eq(request.row),
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
