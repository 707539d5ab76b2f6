"""Reads of the access unit and of the command processor over one port."""

from amaranth.hdl import Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...bus.axi4 import Axi4ReadSignature, Axi4Signature
from ...lib.arbiter import StreamArbiter
from ...lib.stream import SkidBuffer
from .lines import READER_ID

__all__ = ["BusShare"]

_BEAT = ("rid", "rdata", "rresp", "rlast")


class BusShare(wiring.Component):
    """Read requests take turns; beats find their way by their ID. Writes are the access unit's alone, and pass.

    Requests pass a register in both directions, so that nothing before depends on the bus; beats pass at once.

    Parameters
    ----------
    addr_width, data_width : int
        Bits of ARADDR and RDATA.

    Members
    -------
    unit : In(Axi4Signature(addr_width, data_width, 2))
        Read IDs other than ``READER_ID``.
    reader : In(Axi4ReadSignature(addr_width, data_width, 2))
        Its ARID is ``READER_ID``, and its RREADY is always high.
    axi : Out(Axi4Signature(addr_width, data_width, 2))
    """

    def __init__(self, addr_width, data_width):
        self._addr_width = addr_width
        super().__init__(
            {
                "unit": In(Axi4Signature(addr_width, data_width, 2)),
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
