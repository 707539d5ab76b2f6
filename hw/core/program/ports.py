"""How the command processor reaches the barriers, the registers and the bus of its core."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BarrierOp

from ...bus.axi4 import Axi4ReadSignature, Axi4Signature
from ...bus.axi4_lite import AccessSignature
from ...lib.routing import StreamArbiter
from ...lib.stream import SkidBuffer
from ...smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ...smem.signatures import BarrierEventSignature
from .fetch import READER_ID

__all__ = ["PATIENCE", "AccessShare", "BarrierCaller", "BusShare"]

#: Cycles after which a barrier is asked again without a flip: a write to shared memory may complete a phase silently.
PATIENCE = 64


class BarrierCaller(wiring.Component):
    """Does an operation, and ends when it is answered; a wait, when the answer is that the phase is complete.

    A barrier whose phase is not complete is asked again when it flips, so that a wait takes nothing from others.

    Parameters
    ----------
    params : SmemParams
    """

    def __init__(self, params):
        super().__init__(
            {
                # Accepted when the operation has ended.
                "i": In(stream.Signature(BarrierRequestLayout(params))),
                # A wait ends now, or at its answer.
                "give_up": In(1),
                # As ``i`` is accepted: the barrier refused.
                "failed": Out(1),
                # As ``i`` is accepted: the operation is done, the wait is over.
                "passed": Out(1),
                "flip": In(BarrierEventSignature(params)),
                "requests": Out(stream.Signature(BarrierRequestLayout(params))),
                "results": In(stream.Signature(BarrierResultLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        call, answer = self.i.payload, self.results.payload
        waits = call.op == BarrierOp.TRY_WAIT
        pause = Signal(range(PATIENCE))
        # Registered: what comes from the barriers goes no further in its cycle.
        flipped = Signal()
        m.d.sync += flipped.eq(self.flip.valid & (self.flip.address == call.address))
        m.d.comb += [self.requests.payload.eq(call), self.i.ready.eq(self.failed | self.passed)]
        with m.FSM():
            with m.State("ASK"):
                m.d.comb += self.requests.valid.eq(self.i.valid)
                with m.If(self.i.valid & self.requests.ready):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.results.ready.eq(1)
                m.d.sync += pause.eq(0)
                with m.If(self.results.valid):
                    m.d.comb += [self.failed.eq(answer.error), self.passed.eq(~answer.error & (answer.done | ~waits))]
                    m.next = "ASK"
                    with m.If(~self.failed & ~self.passed):
                        m.next = "PAUSE"
            with m.State("PAUSE"):
                m.d.sync += pause.eq(pause + 1)
                with m.If(self.give_up):
                    m.d.comb += self.i.ready.eq(1)
                    m.next = "ASK"
                with m.Elif(flipped | (pause == PATIENCE - 1)):
                    m.next = "ASK"
        return m


class AccessShare(wiring.Component):
    """Gives registers to two sources in turns, an access at a time: the next one begins when the answer is taken.

    Who begins is decided in a cycle of its own; from then on both directions are combinational until the answer.

    Attributes
    ----------
    busy : Signal
        An access is under way; for proofs.
    owner : Signal
        Whose it is.
    """

    def __init__(self):
        self.busy, self.owner = Signal(), Signal()
        # Each waits for its answer before the next access.
        super().__init__({"sources": In(AccessSignature()).array(2), "accesses": Out(AccessSignature())})

    def elaborate(self, platform):
        m = Module()
        first, second = (source.requests for source in self.sources)
        requests, answers = self.accesses.requests, self.accesses.answers
        sent = Signal()  # the request is taken
        m.d.comb += requests.payload.eq(Mux(self.owner, second.payload, first.payload))
        for number, source in enumerate(self.sources):
            mine = self.busy & (self.owner == number)
            with m.If(mine):
                m.d.comb += [requests.valid.eq(source.requests.valid & ~sent), answers.ready.eq(source.answers.ready)]
            m.d.comb += [
                source.requests.ready.eq(mine & ~sent & requests.ready),
                source.answers.valid.eq(mine & answers.valid),
                source.answers.payload.eq(answers.payload),
            ]
        with m.If(~self.busy):
            # After one source it is the turn of the other.
            m.d.sync += [
                self.busy.eq(first.valid | second.valid),
                self.owner.eq(Mux(self.owner, ~first.valid, second.valid)),
                sent.eq(0),
            ]
        with m.Elif(answers.valid & answers.ready):
            m.d.sync += self.busy.eq(0)
        with m.Elif(requests.valid & requests.ready):
            m.d.sync += sent.eq(1)
        return m


_BEAT = ("rid", "rdata", "rresp", "rlast")


class BusShare(wiring.Component):
    """Read requests take turns; beats find their way by their ID. Writes are the access unit's alone, and pass.

    Requests pass a register in both directions, so that nothing before depends on the bus; beats pass at once.

    Parameters
    ----------
    addr_width, data_width : int
        Bits of ARADDR and RDATA.
    """

    def __init__(self, addr_width, data_width):
        self._addr_width = addr_width
        super().__init__(
            {
                # Read IDs other than ``READER_ID``.
                "unit": In(Axi4Signature(addr_width, data_width, 2)),
                # Its ARID is ``READER_ID``, and its RREADY is always high.
                "reader": In(Axi4ReadSignature(addr_width, data_width, 2)),
                "axi": Out(Axi4Signature(addr_width, data_width, 2)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        axi, unit, reader = self.axi, self.unit, self.reader
        names = [name for name in reader.signature.members if name.startswith("ar")]
        names = [name for name in names if name not in ("arvalid", "arready")]
        request = data.StructLayout({name: len(Value.cast(getattr(axi, name))) for name in names})
        m.submodules.arbiter = arbiter = StreamArbiter(request, 2)
        m.submodules.buffer = buffer = SkidBuffer(request)
        wiring.connect(m, arbiter=arbiter.o, buffer=buffer.i)
        for port, i in zip((unit, reader), arbiter.i, strict=True):
            m.d.comb += [i.payload[name].eq(getattr(port, name)) for name in names]
            m.d.comb += [i.valid.eq(port.arvalid), port.arready.eq(i.ready)]
        m.d.comb += [Value.cast(getattr(axi, name)).eq(buffer.o.payload[name]) for name in names]
        m.d.comb += [axi.arvalid.eq(buffer.o.valid), buffer.o.ready.eq(axi.arready)]

        to_reader = axi.rid == READER_ID
        m.d.comb += [
            unit.rvalid.eq(axi.rvalid & ~to_reader),
            reader.rvalid.eq(axi.rvalid & to_reader),
            # An idle RID means nothing, and is X before the first beat: without RVALID neither port is chosen.
            axi.rready.eq(reader.rvalid | (unit.rvalid & unit.rready)),
        ]
        for port in (unit, reader):
            m.d.comb += [getattr(port, name).eq(getattr(axi, name)) for name in _BEAT]
        for name, member in axi.signature.members.items():
            if name[0] in "awb" and not name.startswith("ar"):
                source, sink = (unit, axi) if member.flow == Out else (axi, unit)
                m.d.comb += getattr(sink, name).eq(getattr(source, name))
        return m
