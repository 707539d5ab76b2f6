"""What stands between a design and the pins: a harness for any component, and development boards."""

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
#: Outputs that are folded into one register of the second chain: with its neighbour they are the inputs of one LUT4.
_FOLDED = 3


class Scan(wiring.Component):
    """A harness with three pins for a component with more ports than a package has pins.

    A shift register drives the inputs and the reset. Every output goes to a register, and the exclusive or of these
    registers into another shift register. So nothing is constant or unused, and paths to pins do not count.

    Parameters
    ----------
    component : wiring.Component
        One clock domain, ``sync``.
    """

    clock: In(1)  # of the component and of all registers here
    scan_in: In(1)  # first bit of the inputs
    scan_out: Out(1)  # last bit of the folded outputs

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
        chain = Signal(len(inputs) + 1)  # the last bit is the reset
        last_outputs = Signal(len(outputs))
        folded = Signal(-(-len(outputs) // _FOLDED))
        m.d.comb += [
            ClockSignal("sync").eq(self.clock),
            ClockSignal("scan").eq(self.clock),
            ResetSignal("sync").eq(chain[-1]),
            inputs.eq(chain),
            self.scan_out.eq(folded[-1]),
        ]
        # A block of its own, so that its cells have its name.
        m.submodules.registers = registers = Module()
        registers.d.scan += [chain.eq(Cat(self.scan_in, chain)), last_outputs.eq(outputs)]
        for i in range(len(folded)):
            before = folded[i - 1] if i else Const(0, 1)
            registers.d.scan += folded[i].eq(before ^ last_outputs[i * _FOLDED : (i + 1) * _FOLDED].xor())
        return m


_RESET_CYCLES = 16


class Pads(wiring.Component):
    """A board's design with its clock and its reset.

    It is in reset for 16 cycles after the configuration, and while the button is pressed.

    Parameters
    ----------
    params : BoardParams
    """

    clock: In(1)
    button: In(1)  # high while pressed
    receive: In(1)
    transmit: Out(1)
    lamps: Out(8)
    keep: Out(1)  # high: another chip on the board does not configure the FPGA again

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
        The ECP5, by nextpnr's names.
    mhz : int
        Frequency of the oscillator.
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


#: Boards by the names of ``--board``. Pins of the ULX3S are from its constraint file ulx3s_v20.lpf, versions 2 and 3.
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
    )
}


def constraints(board):
    """Text of the ``.lpf`` file of a :class:`BoardSpec`: pins, their voltage, and the clock."""
    lines = ["BLOCK RESETPATHS;", "BLOCK ASYNCPATHS;"]
    for port, (balls, attributes) in board.pins.items():
        for bit, ball in enumerate(balls):
            name = f"{port}[{bit}]" if len(balls) > 1 else port
            lines += [f'LOCATE COMP "{name}" SITE "{ball}";', f'IOBUF PORT "{name}" IO_TYPE=LVCMOS33 {attributes};']
    lines.append(f'FREQUENCY PORT "clock" {board.mhz} MHZ;')
    return "\n".join(lines) + "\n"
