"""The reference system: a processor, a core, memory that both see, and a serial port."""

from dataclasses import dataclass, field

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect

from tilewright.board.lite_manager import Axi4LiteManager
from tilewright.board.memory import BlockMemory
from tilewright.hw.bus.axi4_lite import AccessSplit
from tilewright.hw.core.params import ENGINES, CoreParams, core_params
from tilewright.hw.core.top import Core

from .processor import FirmwareMemory, Processor, SerialPort

__all__ = ["CORE_BASE", "MEMORY_BASE", "SERIAL_BASE", "System", "SystemParams"]

#: Where the processor sees what: its own memory from 0 on. The core sees global memory at the same address.
SERIAL_BASE, CORE_BASE, MEMORY_BASE = 1 << 29, 1 << 30, 1 << 31


def _core():
    core = core_params("unit", ENGINES)
    return core.replace(tmau=core.tmau.replace(command_window=True, barrier_window=True))


@dataclass(frozen=True)
class SystemParams:
    """What is on the chip.

    Attributes
    ----------
    core : CoreParams
        With all engines and both windows.
    firmware_bytes : int
        Memory of the processor alone, a power of two.
    memory_bytes : int
        Global memory, a power of two.
    cycles_per_bit : int
        Of the serial line.
    """

    core: CoreParams = field(default_factory=_core)
    firmware_bytes: int = 64 * 1024
    memory_bytes: int = 1 << 20
    cycles_per_bit: int = 4


class System(wiring.Component):
    """Connections only."""

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "transmit": Out(1, init=1),  # The serial line.
                "irq": Out(1),  # The core's interrupt.
                "trap": Out(1),  # The processor has stopped.
                "failed": Out(1),  # Some access of the processor was answered with an error.
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        m.submodules.core = core = Core(params.core)
        tmau = params.core.tmau
        m.submodules.memory = memory = BlockMemory(
            addr_width=tmau.addr_width,
            data_width=tmau.bus_width,
            id_width=2,
            size_bytes=params.memory_bytes,
            simulated=True,
        )
        m.submodules.firmware = firmware = FirmwareMemory(params.firmware_bytes)
        m.submodules.serial = serial = SerialPort(params.cycles_per_bit)
        m.submodules.processor = processor = Processor()
        m.submodules.manager = manager = Axi4LiteManager(core.s_axil.signature.addr_width)
        splits = {base: AccessSplit(base.bit_length() - 1) for base in (MEMORY_BASE, CORE_BASE, SERIAL_BASE)}
        accesses = processor.accesses
        for (base, split), target in zip(splits.items(), (memory, manager, serial), strict=True):
            m.submodules[f"split_{base:x}"] = split
            connect(m, accesses, split.accesses)
            connect(m, split.high, target.accesses)
            accesses = split.low
        connect(m, accesses, firmware.accesses)
        connect(m, manager.axi, core.s_axil)
        self._connect_memory(m, core.m_axi, memory.axi)
        m.d.comb += [
            processor.irq.eq(core.irq),
            self.irq.eq(core.irq),
            self.transmit.eq(serial.line),
            self.trap.eq(processor.trap),
            self.failed.eq(processor.failed),
        ]
        return m

    def _connect_memory(self, m, manager, subordinate):
        """Connects two AXI ports; the memory counts its addresses from 0 on, and answers DECERR to all others."""
        for path, member, signal in manager.signature.flatten(manager):
            (name,) = path
            other = getattr(subordinate, name)
            value = signal ^ MEMORY_BASE if name in ("araddr", "awaddr") else signal
            m.d.comb += other.eq(value) if member.flow == Out else signal.eq(other)
