"""The reference system: firmware on a simulated processor runs a network, and its mistakes end with a sentence."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from tilewright.extras import missing
from tilewright.results import record
from tilewright.sim.hdl.simulation import Simulation
from tilewright.sim.hdl.testbench import Array, make_design
from tilewright.system.processor import FirmwareMemory, Processor, processor_verilog
from tilewright.tools.docs.figures import stale

BYTES = 256

pytestmark = pytest.mark.skipif(bool(missing("soc")), reason="needs pip install 'tilewright[soc]'")


class Alone(wiring.Component):
    """The processor with its own memory, until it stops."""

    start: In(1)
    finished: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.processor = processor = Processor()
        m.submodules.firmware = firmware = FirmwareMemory(BYTES)
        connect(m, processor.accesses, firmware.accesses)
        m.d.comb += self.finished.eq(processor.trap)
        return m


def test_accesses_to_its_own_memory_do_not_delay_the_processor():
    """A loop takes what PicoRV32 takes with an ideal memory: 3 cycles to count, 5 each to load, store and branch."""
    program = (
        0x06400093,  # addi x1, x0, 100
        0xFFF08093,  # addi x1, x1, -1
        0x04002103,  # lw x2, 64(x0)
        0x04202223,  # sw x2, 68(x0)
        0xFE009AE3,  # bne x1, x0, -12
        0x00100073,  # ebreak
    )
    words = np.zeros(BYTES // 4, "<u4")
    words[: len(program)], words[16] = program, 0xDEADBEEF
    design = make_design(Alone(), {"firmware": Array("firmware.memory", 32, BYTES // 4)})
    design = replace(design, verilog=f"{design.verilog}\n{processor_verilog()}")
    with Simulation(design) as simulation:
        simulation.load("firmware", 0, words.view(np.uint8))
        statuses, _ = simulation.exchange(reset=True, limit=10_000)
        _, arrays = simulation.exchange(limit=1, dump={"firmware": (17, 1)})
    assert arrays["firmware"].tobytes() == words[16].tobytes()
    assert statuses["cycles"] == 1807


@pytest.mark.long
def test_the_firmware_answers_as_golden():
    from tilewright.system.run import run_system

    outcome = run_system()
    assert outcome.problems == []
    assert "this is a 7\n" in outcome.text and outcome.subject == "a 7 was written"
    assert list(outcome.phases) == ["load", "input", "run", "output"]


def test_the_sizes_of_the_library(tmp_path):
    """What the page states, and that a program which runs a model has no more than 3 KiB of it."""
    from tilewright.system.build import library_sizes, segments_of
    from tilewright.tools.package.library import library_files

    sources = library_files()
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    sizes = library_sizes(tmp_path, sources)
    record("library-size", **sizes, everything=sizes["library"] + sizes["sentences"])
    assert 1000 < sizes["model"] <= 3 * 1024
    segments = segments_of((tmp_path / "model_only.elf").read_bytes())
    assert sum(len(segment.data) for segment in segments) >= sizes["model"]
    assert not stale("library-size", Path(__file__).parents[2])
