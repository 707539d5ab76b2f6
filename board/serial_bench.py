"""A board's design with its serial line: bytes in, bytes out."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.sim.hdl.testbench import Array
from tilewright.sim.hdl.word_array import WordArray

from .serial import UartReceiver, UartTransmitter
from .top import Board

__all__ = ["SerialBench"]


class SerialBench(wiring.Component):
    """Sends bytes to a ``Board``, one after the other, and keeps what it sends, until both are done.

    Parameters
    ----------
    params : BoardParams
    depth : int
        Bytes of either direction that fit.
    """

    def __init__(self, params, *, depth):
        self._params = params
        self.sent, self.received = WordArray(width=8, depth=depth), WordArray(width=8, depth=depth)
        count = range(depth + 1)
        super().__init__(
            {
                # Forget what was received, and begin.
                "start": In(1),
                # Bytes to be sent.
                "send_count": In(count),
                # Bytes to be received.
                "wanted": In(count),
                # Bytes received.
                "received_count": Out(count),
                # Everything was sent, and what is wanted received.
                "finished": Out(1),
            }
        )

    def arrays(self):
        """What the simulation loads and dumps, by name."""
        arrays = {"sent": self.sent, "received": self.received}
        return {name: Array(f"{name}.array.words", array.width, array.depth) for name, array in arrays.items()}

    def elaborate(self, platform):
        m = Module()
        m.submodules.board = board = Board(self._params)
        m.submodules.transmitter = transmitter = UartTransmitter(self._params.cycles_per_bit)
        m.submodules.receiver = receiver = UartReceiver(self._params.cycles_per_bit)
        m.submodules.sent, m.submodules.received = sent, received = self.sent, self.received
        place = Signal.like(self.send_count)
        read = Signal()  # what lies at the place
        more, taken = Signal(), Signal()
        m.d.comb += [
            board.receive.eq(transmitter.line),
            receiver.line.eq(board.transmit),
            sent.read_enable.eq(1),
            sent.read_address.eq(place),
            more.eq(place != self.send_count),
            transmitter.i.payload.eq(sent.read_data),
            # What is to be sent changes with the start.
            transmitter.i.valid.eq(read & more & ~self.start),
            taken.eq(transmitter.i.valid & transmitter.i.ready),
            receiver.o.ready.eq(1),
            received.write_enable.eq(receiver.o.valid),
            received.write_address.eq(self.received_count),
            received.write_data.eq(receiver.o.payload),
            self.finished.eq(~more & transmitter.i.ready & (self.received_count >= self.wanted)),
        ]
        m.d.sync += [
            read.eq(~self.start & ~taken),
            place.eq(place + taken),
            self.received_count.eq(self.received_count + receiver.o.valid),
        ]
        with m.If(self.start):
            m.d.sync += [place.eq(0), self.received_count.eq(0)]
        return m
