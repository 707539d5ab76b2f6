"""The harness around the pins: everything that goes in comes out, through registers."""

from dataclasses import replace

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from tilewright.tools.cli import fpga as command
from tilewright.tools.cli.main import main
from tilewright.tools.fpga import boards
from tilewright.tools.fpga.boards import BOARDS, Pads, Scan, constraints


class Invert(wiring.Component):
    """Two ports a side, one of which is registered."""

    a: In(2)
    b: In(1)
    not_a: Out(2)
    not_b: Out(1, init=1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.not_a.eq(~self.a)
        m.d.sync += self.not_b.eq(~self.b)
        return m


def outputs(bits):
    """What comes out while ``bits`` go in, a bit a cycle, and zeros after them."""
    dut, seen = Scan(Invert()), []

    async def process(ctx):
        for bit in (*bits, *[0] * 8):
            ctx.set(dut.scan_in, bit)
            await ctx.delay(1e-6)
            seen.append(ctx.get(dut.scan_out))
            ctx.set(dut.clock, 1)
            await ctx.delay(1e-6)
            ctx.set(dut.clock, 0)
        return seen

    simulator = Simulator(dut)
    simulator.add_testbench(process)
    simulator.run()
    return seen


def model(bits):
    """The same from the outside: chain of three inputs and the reset, one register a port, one folded bit."""
    chain, held, folded, not_b, seen = [0] * 4, [0] * 3, 0, 1, []
    for bit in (*bits, *[0] * 8):
        seen.append(folded)
        a0, a1, b, reset = chain
        folded, held, not_b = held[0] ^ held[1] ^ held[2], [1 - a0, 1 - a1, not_b], 1 if reset else 1 - b
        chain = [bit, *chain[:-1]]
    return seen


def test_every_input_reaches_the_output():
    for bits in ([], [1], [1, 1], [1, 0, 1], [1, 1, 1, 1], [0, 1, 0, 0, 1, 1, 1]):
        assert outputs(bits) == model(bits)


class Counts(wiring.Component):
    """In place of ``Board``: counts cycles."""

    receive: In(1)
    transmit: Out(1)
    lamps: Out(8)

    def __init__(self, params):
        super().__init__()
        self.params = params

    def elaborate(self, platform):
        m = Module()
        count = Signal(8)
        m.d.sync += count.eq(count + 1)
        m.d.comb += [self.lamps.eq(count), self.transmit.eq(self.receive)]
        return m


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(boards, "Board", Counts)


def test_reset(small):
    """The design starts 16 cycles after the clock, and again after the button."""
    dut, seen = Pads(None), []

    async def process(ctx):
        for cycle in range(80):
            ctx.set(dut.button, 30 <= cycle < 40)
            await ctx.delay(1e-6)
            seen.append(ctx.get(dut.lamps))
            ctx.set(dut.clock, 1)
            await ctx.delay(1e-6)
            ctx.set(dut.clock, 0)
        assert ctx.get(dut.keep)

    simulator = Simulator(dut)
    simulator.add_testbench(process)
    simulator.run()
    # The reset comes three cycles after the button, and goes 16 cycles after that is seen to be released.
    assert seen == [0] * 16 + list(range(18)) + [0] * (80 - 34 - 22) + list(range(22))


@pytest.mark.parametrize("name", BOARDS)
def test_constraints(name):
    """Every bit of every port has a ball of its own, which no other has."""
    board = BOARDS[name]
    text = constraints(board)
    ports = {port: len(value) for (port,), _, value in Pads(board.params).signature.flatten(Pads(board.params))}
    assert {port: len(balls) for port, (balls, _) in board.pins.items()} == ports
    balls = [ball for balls, _ in board.pins.values() for ball in balls]
    assert len(set(balls)) == len(balls)
    assert all(text.count(f'SITE "{ball}";') == 1 for ball in balls)
    assert f'FREQUENCY PORT "clock" {board.mhz} MHZ;' in text


def test_the_speed_of_the_line():
    board = BOARDS["ulx3s-85f"]
    assert board.mhz * 1_000_000 / board.params.cycles_per_bit == 1_000_000


def place(tmp_path, monkeypatch, *options, **changes):
    """Runs the command for a board with the small design, on the smallest device in that package."""
    monkeypatch.setitem(BOARDS, "ulx3s-85f", replace(BOARDS["ulx3s-85f"], device="25k", **changes))
    monkeypatch.setattr(command, "record", lambda name, **figures: None)
    return main(["fpga", "--board", "ulx3s-85f", "--out", str(tmp_path), *options])


def test_the_bitstream(small, tmp_path, monkeypatch, capsys):
    assert place(tmp_path, monkeypatch) == 0
    bitstream = tmp_path / "ulx3s-85f" / "ulx3s-85f.bit"
    out = capsys.readouterr().out
    assert out.startswith("ulx3s-85f: ECP5 25k, speed 6, seed 1\n")
    assert out.splitlines()[-1] == str(bitstream)
    content = bitstream.read_bytes()
    # A comment first, then the preamble of Lattice.
    assert content.startswith(b"\xff\x00")
    assert b"\xff\xff\xbd\xb3" in content
    assert {"ulx3s_85f.h", "tilewright.h"} <= {path.name for path in (bitstream.parent / "include").iterdir()}


def test_a_clock_that_is_not_reached(small, tmp_path, monkeypatch, capsys):
    assert place(tmp_path, monkeypatch, mhz=5000) == 1
    sentence = "there is no bitstream: the board's clock is 5000 MHz: another --seed may reach it"
    assert capsys.readouterr().err.splitlines()[-1] == f"tilewright fpga: {sentence}"
    assert not (tmp_path / "ulx3s-85f" / "ulx3s-85f.bit").exists()
    assert (tmp_path / "ulx3s-85f" / "result.json").exists()


def test_what_the_board_says(tmp_path, monkeypatch, capsys):
    assert place(tmp_path, monkeypatch, "--device", "45k", "--top", "pe", "--placed") == 2
    sentence = "--top, --device, --placed must be left out with --board, which decides it"
    assert capsys.readouterr().err.splitlines()[-1] == f"tilewright fpga: {sentence}"
