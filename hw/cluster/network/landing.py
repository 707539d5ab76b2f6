"""Landing: lines to a shared memory, bytes to its barriers, and acknowledgements to those that sent them."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BLOCK, COMMAND, COMMAND_FIELD

from ...smem.layouts import LandedLayout, LineLayout, RefusalLayout
from .layouts import AckLayout, ArrivalLayout

__all__ = ["Landing"]


class Landing(wiring.Component):
    """Writes lines; at the end of a transfer counts its bytes or reports a refusal, and then acknowledges it.

    The barrier counts the bytes if all lines of the transfer were taken, the window holds the barrier, and the bus made
    no error. The sender is told when the barrier has taken them, so that whoever sees its command complete finds bytes
    and barrier there. Lines behind an end go on meanwhile; the next end waits.

    Members
    -------
    arrivals : In(stream of ArrivalLayout)
        ``ready`` depends combinationally on ``writes.ready``.
    writes : Out(stream of LineLayout(params))
        Combinational from ``arrivals``.
    landed : Out(stream of LandedLayout(params))
        Registered.
    acks : Out(array of cores AckLayout)
        To each core, in the cycle after ``landed`` was accepted; with nothing to count two cycles after the end came.
    refusal : Out(RefusalLayout())
        Strobe, with the acknowledgement.
    received : Out(params.addr_width + 1)
        With the acknowledgement of a transfer that was taken: its bytes. 0 in other cycles.
    """

    def __init__(self, params, cores):
        self.ending = Signal()  # there is an end, which is
        self.end = Signal(ArrivalLayout(params, cores)["packet"].shape["end"].shape)
        self.sender = Signal(cores)
        self.dropped, self.astray = Signal(), Signal()
        super().__init__(
            {
                "arrivals": In(stream.Signature(ArrivalLayout(params, cores))),
                "writes": Out(stream.Signature(LineLayout(params))),
                "landed": Out(stream.Signature(LandedLayout(params))),
                "acks": Out(AckLayout()).array(cores),
                "refusal": Out(RefusalLayout()),
                "received": Out(params.addr_width + 1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        arrival, packet = self.arrivals.p, self.arrivals.p.packet
        m.d.comb += [
            self.writes.valid.eq(self.arrivals.valid & ~packet.ends),
            *(self.writes.p[name].eq(packet.change[name]) for name, _ in self.writes.p.shape()),
            self.arrivals.ready.eq(Mux(packet.ends, ~self.ending, self.writes.ready)),
        ]
        end, over, refused = self.end, Signal(), Signal()
        with m.If(~self.ending):
            m.d.sync += [
                self.ending.eq(self.arrivals.valid & packet.ends),
                self.landed.valid.eq(
                    self.arrivals.valid & packet.ends & packet.end.signal & ~packet.end.failed
                    & ~arrival.dropped & ~arrival.astray
                ),
                end.eq(packet.end),
                self.sender.eq(arrival.sender),
                self.dropped.eq(arrival.dropped),
                self.astray.eq(arrival.astray),
            ]  # fmt: skip
        with m.Elif(over):
            m.d.sync += [self.ending.eq(0), self.landed.valid.eq(0)]
        field = Mux(
            self.dropped,
            Mux(end.block, _field(BLOCK, "destination"), _field(COMMAND, "smem")),
            Mux(end.block, _field(BLOCK, "barrier"), _field(COMMAND, "barrier")),
        )
        m.d.comb += [
            self.landed.p.barrier.eq(end.barrier),
            self.landed.p.bytes.eq(end.bytes),
            over.eq(self.ending & (~self.landed.valid | self.landed.ready)),
            refused.eq((self.dropped | self.astray) & ~end.failed),
        ]
        for number, ack in enumerate(self.acks):
            m.d.sync += [ack.valid.eq(over & self.sender[number]), ack.refused.eq(refused)]
        m.d.sync += [
            self.refusal.valid.eq(over & refused),
            self.refusal.tag.eq(end.tag),
            self.refusal.field.eq(field),
            self.received.eq(Mux(over & ~refused & ~end.failed, end.bytes, 0)),
        ]
        return m


def _field(fmt, name):
    return COMMAND_FIELD + fmt.index(name)
