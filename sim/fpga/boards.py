"""Development boards: which pins there are, and the design between them."""

from dataclasses import dataclass

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from tilewright.hw.board.params import BoardParams
from tilewright.hw.board.top import Board

from .scan import DUT

__all__ = ["BOARDS", "BoardSpec", "Pads", "constraints"]

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
