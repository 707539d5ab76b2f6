"""Inbox: takes what the cores of a cluster send to one of them, and drops what may not be written there."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ...lib.arbiter import StreamArbiter
from ...lib.join import join
from ...lib.stream import SkidBuffer
from ...smem.layouts import AcceptanceLayout
from .layouts import ArrivalLayout, PacketLayout

__all__ = ["Inbox"]


class Inbox(wiring.Component):
    """Takes packets of all cores in turns, and passes on those that are accepted.

    A line is dropped if the core does not accept its sender, or if it lies outside the shared window. The end behind it
    says so. Addresses are compared in front of the register at the output.

    Latency: two cycles. Throughput: one packet a cycle. ``ready`` of a packet depends on registers and on the other
    senders' ``valid``.

    Specification: docs/cluster.md, "Isolation".

    Parameters
    ----------
    params : SmemParams
    cores : int

    Members
    -------
    packets : In(array of cores stream of PacketLayout)
        From each core.
    acceptance : In(AcceptanceLayout)
    arrivals : Out(stream of ArrivalLayout)
        Registered.
    """

    def __init__(self, params, cores):
        self._params, self._cores = params, cores
        self.buffer = SkidBuffer(ArrivalLayout(params, cores))
        # For each turn, senders of whose transfer a line was dropped: an end may come behind lines of later transfers.
        self.dropped = Signal(data.ArrayLayout(cores, 4))
        super().__init__(
            {
                "packets": In(stream.Signature(PacketLayout(params))).array(cores),
                "acceptance": In(AcceptanceLayout(params, cores)),
                "arrivals": Out(stream.Signature(ArrivalLayout(params, cores))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = StreamArbiter(PacketLayout(self._params), self._cores)
        m.submodules.buffer = buffer = self.buffer
        for number, port in enumerate(self.packets):
            join(m, packets=flipped(port), arbiter=arbiter.i[number])
        m.d.comb += [
            buffer.i.valid.eq(arbiter.o.valid),
            buffer.i.p.packet.eq(arbiter.o.p),
            buffer.i.p.sender.eq(arbiter.winner),
            arbiter.o.ready.eq(buffer.i.ready),
        ]
        head, packet, acceptance = buffer.o.p, buffer.o.p.packet, self.acceptance
        row = Mux(packet.ends, packet.end.barrier[7:], packet.change.row)
        inside, refused, taken = Signal(), Signal(), Signal()
        m.d.comb += [
            inside.eq(~acceptance.confine | ((acceptance.first <= row) & (row <= acceptance.last))),
            refused.eq(~packet.ends & ~((acceptance.cores & head.sender).any() & inside)),
            buffer.o.ready.eq(~self.arrivals.valid | self.arrivals.ready),
            taken.eq(buffer.o.valid & buffer.o.ready),
        ]
        with m.If(buffer.o.ready):
            m.d.sync += [
                self.arrivals.valid.eq(buffer.o.valid & ~refused),
                self.arrivals.p.packet.eq(packet),
                self.arrivals.p.sender.eq(head.sender),
                self.arrivals.p.dropped.eq((head.sender & (self.dropped[packet.turn] | ~acceptance.cores)).any()),
                self.arrivals.p.astray.eq(packet.end.signal & ~inside),
            ]
        with m.If(taken):
            for turn, dropped in enumerate(self.dropped):
                with m.If(packet.turn == turn):
                    m.d.sync += dropped.eq(
                        Mux(packet.ends, dropped & ~head.sender, dropped | Mux(refused, head.sender, 0))
                    )
        return m
