"""A small harness on both simulators: controls, arrays, limits, resets, and what happens when things go wrong."""

import re
import shutil

import numpy as np
import pytest
from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.sim.harness.drivers import Log, ScriptDriver
from tilewright.sim.hdl.build import SIMULATORS, build
from tilewright.sim.hdl.simulation import Simulation, SimulationError, waveform_format
from tilewright.sim.hdl.testbench import Array, make_design

ARRAYS = {"script": Array("driver.script.array.words", 24, 64), "log": Array("log.memory.array.words", 56, 64)}


class _Loop(wiring.Component):
    """A driver into a log, the items plus an offset; and a counter that only a reset clears."""

    start: In(1)
    finished: Out(1)
    count: In(7)
    offset: In(20)
    total: Out(32)

    def elaborate(self, platform):
        m = Module()
        m.submodules.driver = driver = ScriptDriver(unsigned(20), depth=64, number=0)
        m.submodules.log = log = Log(unsigned(20), depth=64)
        cycle = Signal(32)
        m.d.sync += [cycle.eq(Mux(self.start, 0, cycle + 1)), self.total.eq(self.total + log.valid)]
        m.d.comb += [
            driver.start.eq(self.start),
            driver.count.eq(self.count),
            driver.enable.eq(1),
            driver.idle.eq(1),
            driver.o.ready.eq(1),
            log.start.eq(self.start),
            log.cycle.eq(cycle),
            log.valid.eq(driver.o.valid),
            log.entry.eq(driver.o.payload + self.offset),
            self.finished.eq(driver.finished),
        ]
        return m


@pytest.fixture(scope="module", params=SIMULATORS)
def simulation(request):
    if request.param == "icarus" and shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog is not installed")
    with Simulation(make_design(_Loop(), ARRAYS), simulator=request.param) as simulation:
        yield simulation


def _words(values):
    return np.array(values, "<u4").view(np.uint8).reshape(-1, 4)[:, :3]


def test_arrays_and_controls_go_in_and_out(simulation):
    items = np.arange(50) * 3
    simulation.load("script", 0, _words(items))
    simulation.controls.update(count=50, offset=0x1000)
    statuses, arrays = simulation.exchange(reset=True, start=True, limit=1000, dump={"log": (2, 48)})
    assert statuses == {"cycles": 51, "finished": 1, "total": 50}
    log = arrays["log"]
    assert (log[:, 0] == np.arange(2, 50)).all()
    assert (log[:, 4].astype(int) + 256 * log[:, 5].astype(int) == (items + 0x1000)[2:]).all()


def test_part_of_an_array_is_loaded(simulation):
    simulation.load("script", 0, _words(range(20)))
    simulation.load("script", 5, _words([99]))
    _, arrays = simulation.exchange(dump={"script": (4, 3)})
    assert arrays["script"][:, 0].tolist() == [4, 99, 6]


def test_limit_stops_and_the_next_exchange_goes_on(simulation):
    simulation.controls.update(count=40, offset=0)
    statuses, _ = simulation.exchange(reset=True, start=True, limit=11)
    assert statuses == {"cycles": 11, "finished": 0, "total": 10}
    statuses, _ = simulation.exchange(limit=1000)
    assert statuses["total"] == 40
    statuses, _ = simulation.exchange(reset=True)
    assert statuses["total"] == 0


def test_wrong_words(simulation):
    with pytest.raises(ValueError, match=r"^script has words 0 to 63, not 63 to 64$"):
        simulation.load("script", 63, _words([1, 2]))
    with pytest.raises(ValueError, match=r"^log has words 0 to 63, not 60 to 64$"):
        simulation.exchange(dump={"log": (60, 5)})


def test_end_of_the_process_is_an_error():
    simulator = "icarus" if shutil.which("iverilog") else "verilator"
    with Simulation(make_design(_Loop(), ARRAYS), simulator=simulator) as simulation:
        simulation.exchange()
        simulation._process.kill()
        with pytest.raises(SimulationError, match=r"^the simulation ended by itself: it said nothing$"):
            simulation.exchange()
        simulation.close()
        with pytest.raises(SimulationError, match=r"^the simulation has been closed$"):
            simulation.exchange()


@pytest.mark.parametrize(("suffix", "begins"), [("vcd", (b"$date", b"$version")), ("fst", bytes(7) + b"\x01\x49")])
def test_waveform_is_left_in_the_format_of_its_suffix(tmp_path, suffix, begins):
    # Icarus Verilog writes the date first, Verilator its version; FST begins with a block of kind 0, of 329 bytes.
    simulator = "icarus" if shutil.which("iverilog") else "verilator"
    path = tmp_path / "waves" / f"loop.{suffix}"
    try:
        with Simulation(make_design(_Loop(), ARRAYS), simulator=simulator, waves=path) as simulation:
            simulation.controls.update(count=5)
            simulation.exchange(reset=True, start=True, limit=100)
    except RuntimeError as error:
        pytest.skip(str(error))
    assert path.read_bytes().startswith(begins)


@pytest.mark.parametrize("name", ["loop.lxt", "loop", "loop.VCD", "loop.vcd.gz"])
def test_other_suffixes_are_refused(name):
    sentence = rf"^a waveform is a file \.vcd or \.fst, not 'waves/{re.escape(name)}'$"
    with pytest.raises(ValueError, match=sentence):
        waveform_format(f"waves/{name}")


def test_refused_designs():
    with pytest.raises(ValueError, match=r"^the simulator must be one of verilator, icarus, not 'other'$"):
        build("", "top", simulator="other")
    with pytest.raises(RuntimeError, match=r"^verilator could not build the simulation: %Error: .*"):
        build("module top; nonsense endmodule", "top")


def test_same_text_is_built_once():
    text = "module top; initial $finish; endmodule"
    first = build(text, "top")
    stamp = (first.folder / "top").stat().st_mtime_ns
    assert build(text, "top") == first
    assert (first.folder / "top").stat().st_mtime_ns == stamp
