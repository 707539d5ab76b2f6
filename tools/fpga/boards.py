"""A harness with three pins for a component with more ports than a package has pins."""

from dataclasses import dataclass

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from tilewright.board.top import Board, BoardParams
from tilewright.sim.hdl.verilog import conventional_ports

__all__ = ["BOARDS", "DUT", "BoardSpec", "Pads", "Scan", "constraints"]

#: Name of the component inside the harness.
DUT = "dut"
#: Outputs that go into one register of the second chain: with its neighbour they are the inputs of one table.
_FOLDED = 3


class Scan(wiring.Component):
    """Registers around a component, so that the paths in it count and those to the pins do not.

    A shift register drives the inputs and the reset. Every output goes to a register of its own, and the exclusive or
    of these into another shift register, so that nothing is constant and nothing is unused.

    Parameters
    ----------
    component : wiring.Component
        One clock domain, ``sync``.

    Members
    -------
    clock : In(1)
        Of the component and of all registers here.
    scan_in : In(1)
        First bit of the inputs.
    scan_out : Out(1)
        Last bit of the folded outputs.
    """

    clock: In(1)
    scan_in: In(1)
    scan_out: Out(1)

    def __init__(self, component):
        super().__init__()
        self._component = component

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.scan = ClockDomain(reset_less=True)
        m.submodules[DUT] = self._component
        values = [(value, direction.name) for value, direction in conventional_ports(self._component).values()
                  if not isinstance(value, Const)]  # fmt: skip
        inputs = Cat(value for value, direction in values if direction == "Input")
        outputs = Cat(value for value, direction in values if direction == "Output")
        # The last bit resets.
        chain = Signal(len(inputs) + 1)
        held = Signal(len(outputs))
        folded = Signal(-(-len(outputs) // _FOLDED))
        m.d.comb += [
            ClockSignal("sync").eq(self.clock),
            ClockSignal("scan").eq(self.clock),
            ResetSignal("sync").eq(chain[-1]),
            inputs.eq(chain),
            self.scan_out.eq(folded[-1]),
        ]
        # A block of their own, so that their cells have its name.
        m.submodules.registers = registers = Module()
        registers.d.scan += [chain.eq(Cat(self.scan_in, chain)), held.eq(outputs)]
        for i in range(len(folded)):
            before = folded[i - 1] if i else Const(0, 1)
            registers.d.scan += folded[i].eq(before ^ held[i * _FOLDED : (i + 1) * _FOLDED].xor())
        return m


_RESET_CYCLES = 16


class Pads(wiring.Component):
    """A board's design with its clock and its reset.

    It is in reset for 16 cycles after the configuration, and while the button is pressed.

    Parameters
    ----------
    params : BoardParams

    Members
    -------
    clock : In(1)
    button : In(1)
        High while pressed.
    receive : In(1)
    transmit : Out(1)
    lamps : Out(8)
    keep : Out(1)
        High: keeps another chip on the board from loading the FPGA anew.
    """

    clock: In(1)
    button: In(1)
    receive: In(1)
    transmit: Out(1)
    lamps: Out(8)
    keep: Out(1)

    def __init__(self, params):
        super().__init__()
        self._board = Board(params)

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.start = ClockDomain(reset_less=True)
        m.submodules[DUT] = board = self._board
        # A block of its own, so that its cells have its name.
        m.submodules.reset = reset = Module()
        pressed = Signal()
        reset.submodules.synchronizer = FFSynchronizer(self.button, pressed, o_domain="start")
        run = Signal(_RESET_CYCLES)
        with reset.If(pressed):
            reset.d.start += run.eq(0)
        with reset.Else():
            reset.d.start += run.eq(Cat(1, run))
        m.d.comb += [
            ClockSignal("sync").eq(self.clock),
            ClockSignal("start").eq(self.clock),
            ResetSignal("sync").eq(~run[-1]),
            board.receive.eq(self.receive),
            self.transmit.eq(board.transmit),
            self.lamps.eq(board.lamps),
            self.keep.eq(1),
        ]
        return m


@dataclass(frozen=True)
class BoardSpec:
    """A board.

    Attributes
    ----------
    device, package, speed
        Of the ECP5, as nextpnr calls them.
    mhz : int
        Of the oscillator.
    pins : dict of str to (tuple of str, str)
        Balls of each port of :class:`Pads`, bit 0 first, and further attributes of its buffers.
    params : BoardParams
    """

    device: str
    package: str
    speed: int
    mhz: int
    pins: dict
    params: BoardParams


#: Boards by the names that users give. Pins of the ULX3S: its constraint file ulx3s_v20.lpf, of versions 2 and 3.
BOARDS = {
    "ulx3s-85f": BoardSpec(
        device="85k",
        package="CABGA381",
        speed=6,
        mhz=25,
        pins={
            "clock": (("G2",), "PULLMODE=NONE"),
            "button": (("R1",), "PULLMODE=DOWN"),  # FIRE 1
            "receive": (("M1",), "PULLMODE=UP"),  # ftdi_txd
            "transmit": (("L4",), "PULLMODE=UP DRIVE=4"),  # ftdi_rxd
            "lamps": (("B2", "C2", "C1", "D2", "D1", "E2", "E1", "H3"), "PULLMODE=NONE DRIVE=4"),
            "keep": (("L2",), "PULLMODE=UP DRIVE=4"),  # wifi_gpio0
        },
        params=BoardParams(cycles_per_bit=25),
    ),
}


def constraints(board):
    """The text of the ``.lpf`` file of a :class:`BoardSpec`: where ports lie, at which voltage, and the clock."""
    lines = ["BLOCK RESETPATHS;", "BLOCK ASYNCPATHS;"]
    for port, (balls, attributes) in board.pins.items():
        for bit, ball in enumerate(balls):
            name = f"{port}[{bit}]" if len(balls) > 1 else port
            lines += [f'LOCATE COMP "{name}" SITE "{ball}";', f'IOBUF PORT "{name}" IO_TYPE=LVCMOS33 {attributes};']
    lines.append(f'FREQUENCY PORT "clock" {board.mhz} MHZ;')
    return "\n".join(lines) + "\n"
