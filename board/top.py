"""Parameters of a board."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from tilewright.hw.bus.axi4_lite import AccessSplit, address_map, map_addr_width
from tilewright.hw.core.params import CoreParams
from tilewright.hw.core.top import Core
from tilewright.hw.lib.parameters import check_sizes
from tilewright.hw.tmau.params import TMAU_PRESETS, TmauParams
from tilewright.hw.tmau.processors import COMMAND_WINDOW_ADDR_WIDTH, CommandWindow
from tilewright.hw.tmau.top import REGISTER_ADDR_WIDTH

from .lite_manager import Axi4LiteManager
from .memory import BlockMemory
from .serial import ByteHost, UartReceiver, UartTransmitter

__all__ = ["Board", "BoardParams", "board_regions"]

_RANGES = {"memory_bytes": (4096, 1 << 24), "cycles_per_bit": (4, 1 << 16)}


#: Tiles, swizzles and stores, at any alignment: the rest of an ECP5-85 is free for others.
_TMAU = TMAU_PRESETS["ecp5"].replace(
    max_outstanding=16, commands_in_flight=8, features=("unaligned", "swizzle", "stores")
)


@dataclass(frozen=True)
class BoardParams:
    """What is on the chip beside the pins.

    Attributes
    ----------
    tmau : TmauParams
        Of the access unit.
    memory_bytes : int
        Bytes of global memory, 4096 to 16 MiB, a power of two.
    cycles_per_bit : int
        Of the serial line, 4 to 65536.
    """

    tmau: TmauParams = _TMAU
    memory_bytes: int = 128 * 1024
    cycles_per_bit: int = 25

    def __post_init__(self):
        check_sizes(self, _RANGES, {"memory_bytes"})
        if not isinstance(self.tmau, TmauParams):
            raise TypeError(f"tmau must be TmauParams, not {self.tmau!r}")


def board_regions(params):
    """The address maps: of the engine's AXI4-Lite port, and of the computer.

    Returns
    -------
    engine, board : dict of str to Region
        Attributes ``regions`` of ``Core`` and of :class:`Board`.
    """
    engine = address_map(tmau=REGISTER_ADDR_WIDTH, smem=params.tmau.smem.addr_width)
    board = address_map(
        engine=map_addr_width(engine), commands=COMMAND_WINDOW_ADDR_WIDTH, memory=params.memory_bytes.bit_length() - 1
    )
    return engine, board


class Board(wiring.Component):
    """Connections, and lamps.

    Attributes
    ----------
    regions : dict of str to Region
        What lies where in the addresses of the computer: ``engine``, the AXI4-Lite port of the ``Core``;
        ``commands``, where commands are written; ``memory``, global memory.
    engine : Core
        With an access unit alone.
    """

    def __init__(self, params):
        self.params = params
        self.engine = Core(CoreParams(params.tmau))
        _, self.regions = board_regions(params)
        # Bit 0 blinks, bit 1 is ``irq``, bit 2 says that some access was refused; above, commands that ended are
        # counted.
        # The serial line to the computer.
        # The serial line from the computer.
        super().__init__({"receive": In(1, init=1), "transmit": Out(1, init=1), "lamps": Out(8)})

    def elaborate(self, platform):
        m = Module()
        params, regions = self.params, self.regions
        m.submodules.engine = engine = self.engine
        m.submodules.memory = memory = BlockMemory(
            addr_width=params.tmau.addr_width, data_width=params.tmau.bus_width, id_width=2,
            size_bytes=params.memory_bytes,
        )  # fmt: skip
        connect(m, engine=engine.m_axi, memory=memory.axi)

        m.submodules.receiver = receiver = UartReceiver(params.cycles_per_bit)
        m.submodules.transmitter = transmitter = UartTransmitter(params.cycles_per_bit)
        m.submodules.host = host = ByteHost()
        m.d.comb += [receiver.line.eq(self.receive), self.transmit.eq(transmitter.line)]
        connect(m, receiver=receiver.o, host=host.i)
        connect(m, host=host.o, transmitter=transmitter.i)

        m.submodules.commands = commands = CommandWindow()
        m.submodules.manager = manager = Axi4LiteManager(engine.s_axil.signature.addr_width)
        m.submodules.memory_split = memory_split = AccessSplit(regions["memory"].bit)
        m.submodules.command_split = command_split = AccessSplit(regions["commands"].bit)
        connect(m, host=host.accesses, split=memory_split.accesses)
        connect(m, split=memory_split.high, memory=memory.accesses)
        connect(m, split=memory_split.low, commands=command_split.accesses)
        connect(m, split=command_split.high, commands=commands.accesses)
        connect(m, split=command_split.low, manager=manager.accesses)
        connect(m, manager=manager.axi, engine=engine.s_axil)
        connect(m, commands=commands.commands, engine=engine.commands)
        connect(m, engine=engine.done, commands=commands.done)

        alive, ended = Signal(24), Signal(5)
        m.d.sync += [alive.eq(alive + 1), ended.eq(ended + engine.done.valid)]
        m.d.comb += self.lamps.eq(Cat(alive[-1], engine.irq, host.failed, ended))
        return m
