"""The receiver of a shared memory: inbox, reducer of lines, and landing."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import BANKS, BLOCK, COMMAND, COMMAND_FIELD, Reduction

from ...lib.routing import StreamArbiter
from ...lib.stream import SkidBuffer
from ...reduce.integer import decode_operation
from ...reduce.lane import ReduceLane
from ...smem.layouts import CHUNK_BITS, AcceptanceLayout, LandedLayout, LineLayout, RefusalLayout
from ...smem.signatures import LineReadSignature
from .layouts import AckLayout, ArrivalLayout, PacketLayout

__all__ = ["Inbox", "Landing", "LineReducer"]


class Inbox(wiring.Component):
    """Takes packets of all cores in turns, and passes on those that are accepted.

    A line is dropped if the core does not accept its sender, or if it lies outside the shared window. The end of its
    transfer says so. Addresses are compared before the register at the output.

    Latency: two cycles. Throughput: one packet a cycle. ``ready`` of a packet depends on registers and on the other
    senders' ``valid``.

    Specification: docs/cluster.md, "Isolation".

    Parameters
    ----------
    params : SmemParams
    cores : int
    """

    def __init__(self, params, cores):
        self._params, self._cores = params, cores
        self.buffer = SkidBuffer(ArrivalLayout(params, cores))
        # For each turn, senders of whose transfer a line was dropped: an end may come after lines of later transfers.
        self.dropped = Signal(data.ArrayLayout(cores, 4))
        super().__init__(
            {
                # From each core.
                "packets": In(stream.Signature(PacketLayout(params))).array(cores),
                "acceptance": In(AcceptanceLayout(params, cores)),
                # Registered.
                "arrivals": Out(stream.Signature(ArrivalLayout(params, cores))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = StreamArbiter(PacketLayout(self._params), self._cores)
        m.submodules.buffer = buffer = self.buffer
        for number, port in enumerate(self.packets):
            connect(m, packets=flipped(port), arbiter=arbiter.i[number])
        m.d.comb += [
            buffer.i.valid.eq(arbiter.o.valid),
            buffer.i.payload.packet.eq(arbiter.o.payload),
            buffer.i.payload.sender.eq(arbiter.winner),
            arbiter.o.ready.eq(buffer.i.ready),
        ]
        head, packet, acceptance = buffer.o.payload, buffer.o.payload.packet, self.acceptance
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
                self.arrivals.payload.packet.eq(packet),
                self.arrivals.payload.sender.eq(head.sender),
                self.arrivals.payload.dropped.eq((head.sender & (self.dropped[packet.turn] | ~acceptance.cores)).any()),
                self.arrivals.payload.astray.eq(packet.end.signal & ~inside),
            ]
        with m.If(taken):
            for turn, dropped in enumerate(self.dropped):
                with m.If(packet.turn == turn):
                    m.d.sync += dropped.eq(
                        Mux(packet.ends, dropped & ~head.sender, dropped | Mux(refused, head.sender, 0))
                    )
        return m


class LineReducer(wiring.Component):
    """Combines the lines of reductions with what lies in shared memory, one after the other; passes all else.

    All that is written to a shared memory by access units passes here in order, so a reduction never misses another
    one, nor a line that was written before. The old line goes through one lane, sixteen bytes a cycle.

    Latency: none but for reductions, which take ``11 + latency`` cycles of the ReduceLane: 13, or 17 with floats.

    Parameters
    ----------
    params : SmemParams
    cores : int
    floats : bool
        Elements of floats come.
    """

    def __init__(self, params, cores, floats):
        self._floats, self.lane = floats, ReduceLane(floats)
        self.line = Signal(BANKS * CHUNK_BITS)  # old chunks leave at the bottom, new ones come in at the top
        self.fetched = Signal()  # the old line comes in this cycle
        self.step = Signal(range(BANKS + self.lane.latency + 1))  # chunks that have gone into the lane, and its latency
        self.working = Signal()
        self.reduced = Signal()  # the line is complete
        super().__init__(
            {
                # ``ready`` depends combinationally on ``o.ready``.
                "i": In(stream.Signature(ArrivalLayout(params, cores))),
                # Combinational from ``i``.
                "o": Out(stream.Signature(ArrivalLayout(params, cores))),
                # The old line, read in the cycle of the handshake.
                "fetch": Out(LineReadSignature(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.lane = lane = self.lane
        packet, change = self.i.payload.packet, self.i.payload.packet.change
        reduces, left = Signal(), Signal()
        m.d.comb += [
            reduces.eq(self.i.valid & ~packet.ends & (change.reduction != Reduction.NONE)),
            self.o.valid.eq(self.i.valid & (~reduces | self.reduced)),
            self.o.payload.eq(self.i.payload),
            self.i.ready.eq(self.o.ready & (~reduces | self.reduced)),
            left.eq(self.o.valid & self.o.ready),
            self.fetch.rows.valid.eq(reduces & ~self.fetched & ~self.working & ~self.reduced),
            self.fetch.rows.payload.eq(change.row),
        ]
        with m.If(self.reduced):
            m.d.comb += self.o.payload.packet.change.data.eq(self.line)

        m.d.comb += [
            lane.old.eq(self.line[:CHUNK_BITS]),
            lane.source.eq(change.data.word_select(self.step, CHUNK_BITS)),
            lane.reduction.eq(change.reduction),
            lane.element.eq(change.element),
            lane.operation.eq(decode_operation(m, change.reduction, change.element, self._floats, "operation")),
            lane.enable.eq(1),
        ]
        m.d.sync += self.fetched.eq(self.fetch.rows.valid & self.fetch.rows.ready)
        with m.If(self.fetched):
            m.d.sync += [self.line.eq(self.fetch.line), self.working.eq(1), self.step.eq(0)]
        with m.If(self.working):
            last = self.step == BANKS + lane.latency - 1
            m.d.sync += [
                self.line.eq(self.line >> CHUNK_BITS | lane.o << (BANKS - 1) * CHUNK_BITS),
                self.step.eq(self.step + 1),
                self.working.eq(~last),
                self.reduced.eq(last),
            ]
        with m.If(left):
            m.d.sync += self.reduced.eq(0)
        return m


class Landing(wiring.Component):
    """Writes lines; at the end of a transfer counts its bytes or reports a refusal, and then acknowledges it.

    The barrier counts the bytes if all lines of the transfer were taken, the window holds the barrier, and the bus made
    no error. The acknowledgement follows when the barrier has counted them, so that bytes and barrier are
    there when the command is complete. Lines after an end go on meanwhile; the next end waits.
    """

    def __init__(self, params, cores):
        self.ending = Signal()  # there is an end, which is
        self.end = Signal(ArrivalLayout(params, cores)["packet"].shape["end"].shape)
        self.sender = Signal(cores)
        self.dropped, self.astray = Signal(), Signal()
        super().__init__(
            {
                # ``ready`` depends combinationally on ``writes.ready``.
                "arrivals": In(stream.Signature(ArrivalLayout(params, cores))),
                # Combinational from ``arrivals``.
                "writes": Out(stream.Signature(LineLayout(params))),
                # Registered.
                "landed": Out(stream.Signature(LandedLayout(params))),
                # To each core, in the cycle after ``landed`` was accepted; with nothing to count two cycles after the
                # end came.
                "acks": Out(AckLayout()).array(cores),
                # Strobe, with the acknowledgement.
                "refusal": Out(RefusalLayout()),
                # With the acknowledgement of a transfer that was taken: its bytes. 0 in other cycles.
                "received": Out(params.addr_width + 1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        arrival, packet = self.arrivals.payload, self.arrivals.payload.packet
        m.d.comb += [
            self.writes.valid.eq(self.arrivals.valid & ~packet.ends),
            *(self.writes.payload[name].eq(packet.change[name]) for name, _ in self.writes.payload.shape()),
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
            self.landed.payload.barrier.eq(end.barrier),
            self.landed.payload.bytes.eq(end.bytes),
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
