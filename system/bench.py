"""The reference system with the other end of its serial line."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.board.serial import UartReceiver
from tilewright.sim.hdl.testbench import Array
from tilewright.sim.hdl.word_array import WordArray

from .top import System

__all__ = ["SystemBench"]


class SystemBench(wiring.Component):
    """Runs a ``System`` until its processor stops, and keeps the bytes of the serial line.

    Parameters
    ----------
    params : SystemParams
    depth : int
        Bytes that are kept.
    """

    def __init__(self, params, *, depth=1 << 14):
        self.params = params
        self.received = WordArray(width=8, depth=depth)
        super().__init__(
            {
                "start": In(1),  # Not used: the processor begins after the reset.
                "received_count": Out(range(depth + 1)),  # Bytes received.
                "failed": Out(1),  # Some access of the processor was answered with an error.
                "interrupts": Out(16),  # How often the core's interrupt has risen.
                "finished": Out(1),  # The processor has stopped, and the line is idle.
            }
        )

    def arrays(self):
        """What the simulation loads and dumps, by name."""
        params = self.params
        return {
            "received": Array("received.array.words", 8, self.received.depth),
            "firmware": Array("system.firmware.memory", 32, params.firmware_bytes // 4),
            "memory": Array("system.memory.memory.array.words", params.core.tmau.bus_width,
                            8 * params.memory_bytes // params.core.tmau.bus_width),
        }  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.submodules.system = system = System(self.params)
        m.submodules.receiver = receiver = UartReceiver(self.params.cycles_per_bit)
        m.submodules.received = received = self.received
        irq = Signal()
        # Frames of the byte that is on the line when the processor stops, and of the one that waits.
        left = Signal(range(20 * self.params.cycles_per_bit + 1), init=20 * self.params.cycles_per_bit)
        m.d.comb += [
            receiver.line.eq(system.transmit),
            receiver.o.ready.eq(1),
            received.write_enable.eq(receiver.o.valid),
            received.write_address.eq(self.received_count),
            received.write_data.eq(receiver.o.payload),
            self.failed.eq(system.failed),
            self.finished.eq(left == 0),
        ]
        m.d.sync += [
            irq.eq(system.irq),
            self.interrupts.eq(self.interrupts + (system.irq & ~irq)),
            self.received_count.eq(self.received_count + receiver.o.valid),
        ]
        with m.If(system.trap & (left != 0)):
            m.d.sync += left.eq(left - 1)
        return m
