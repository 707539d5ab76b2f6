"""A design for a development board: the access unit and its memories, commanded over a serial line."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..bus.address_map import address_map, map_addr_width
from ..bus.axi4_lite import AccessSplit
from ..lib.join import join
from ..tmau.command_window import COMMAND_WINDOW_ADDR_WIDTH, CommandWindow
from ..tmau.subsystem import TmauSubsystem
from ..tmau.top import REGISTER_ADDR_WIDTH
from .host import ByteHost
from .lite_manager import Axi4LiteManager
from .memory import BlockMemory
from .uart import UartReceiver, UartTransmitter

__all__ = ["Board", "board_regions"]


def board_regions(params):
    """What lies where: in the addresses of the engine's AXI4-Lite port, and in those of the computer.

    Returns
    -------
    engine, board : dict of str to Region
        Attributes ``regions`` of ``TmauSubsystem`` and of :class:`Board`.
    """
    engine = address_map(tmau=REGISTER_ADDR_WIDTH, smem=params.tmau.smem.addr_width)
    board = address_map(
        engine=map_addr_width(engine),
        commands=COMMAND_WINDOW_ADDR_WIDTH,
        memory=params.memory_bytes.bit_length() - 1,
    )
    return engine, board


class Board(wiring.Component):
    """Connections, and lamps.

    Members
    -------
    receive : In(1)
        The serial line from the computer.
    transmit : Out(1)
        The serial line to the computer.
    lamps : Out(8)
        Bit 0 blinks, bit 1 is ``irq``, bit 2 says that some access was refused; above, commands that ended are counted.

    Attributes
    ----------
    regions : dict of str to Region
        What lies where in the addresses of the computer: ``engine``, the AXI4-Lite port of the ``TmauSubsystem``;
        ``commands``, where commands are written; ``memory``, global memory.
    engine : TmauSubsystem
    """

    def __init__(self, params):
        self.params = params
        self.engine = TmauSubsystem(params.tmau)
        _, self.regions = board_regions(params)
        super().__init__({"receive": In(1, init=1), "transmit": Out(1, init=1), "lamps": Out(8)})

    def elaborate(self, platform):
        m = Module()
        params, regions = self.params, self.regions
        m.submodules.engine = engine = self.engine
        m.submodules.memory = memory = BlockMemory(
            addr_width=params.tmau.addr_width, data_width=params.tmau.bus_width, id_width=2,
            size_bytes=params.memory_bytes,
        )  # fmt: skip
        join(m, engine=engine.m_axi, memory=memory.axi)

        m.submodules.receiver = receiver = UartReceiver(params.cycles_per_bit)
        m.submodules.transmitter = transmitter = UartTransmitter(params.cycles_per_bit)
        m.submodules.host = host = ByteHost()
        m.d.comb += [receiver.line.eq(self.receive), self.transmit.eq(transmitter.line)]
        join(m, receiver=receiver.o, host=host.i)
        join(m, host=host.o, transmitter=transmitter.i)

        m.submodules.commands = commands = CommandWindow()
        m.submodules.manager = manager = Axi4LiteManager(engine.s_axil.signature.addr_width)
        m.submodules.memory_split = memory_split = AccessSplit(regions["memory"].bit)
        m.submodules.command_split = command_split = AccessSplit(regions["commands"].bit)
        join(m, host=host.accesses, split=memory_split.accesses)
        join(m, split=memory_split.high, memory=memory.accesses)
        join(m, split=memory_split.low, commands=command_split.accesses)
        join(m, split=command_split.high, commands=commands.accesses)
        join(m, split=command_split.low, manager=manager.accesses)
        join(m, manager=manager.axi, engine=engine.s_axil)
        join(m, commands=commands.commands, engine=engine.commands)
        join(m, engine=engine.done, commands=commands.done)

        alive, ended = Signal(24), Signal(5)
        m.d.sync += [alive.eq(alive + 1), ended.eq(ended + engine.done.valid)]
        m.d.comb += self.lamps.eq(Cat(alive[-1], engine.irq, host.failed, ended))
        return m
