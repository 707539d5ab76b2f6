"""The testbenches of the tops that users integrate, each in both simulators.

By default some of their tests run in Icarus Verilog, where they are over before Verilator has built its model.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import cocotb_tools
import pytest

from tilewright.sim.hdl.build import build
from tilewright.sim.hdl.cocotb_run import run_cocotb
from tilewright.sim.hdl.tops import module_name, top_component, top_verilog
from tilewright.sim.hdl.unknowns import top_without_power_on_values, with_idle_payloads

SEED = 2026
PAGE = Path(__file__).parents[2] / "docs" / "cocotb.md"

#: A wrapper as docs/cocotb.md describes it: other names, a reset that is active low, and ports left out.
WRAPPER = """
module wrapper (
  input aclk, input aresetn,
  input [14:0] cfg_awaddr, input [2:0] cfg_awprot, input cfg_awvalid, output cfg_awready,
  input [31:0] cfg_wdata, input [3:0] cfg_wstrb, input cfg_wvalid, output cfg_wready,
  output [1:0] cfg_bresp, output cfg_bvalid, input cfg_bready,
  input [14:0] cfg_araddr, input [2:0] cfg_arprot, input cfg_arvalid, output cfg_arready,
  output [31:0] cfg_rdata, output [1:0] cfg_rresp, output cfg_rvalid, input cfg_rready,
  input [127:0] program_payload, input program_valid, output program_ready,
  input [258:0] segments_payload, input segments_valid, output segments_ready,
  input [68:0] pages_payload, input pages_valid, output pages_ready,
  input [37:0] barriers_payload, input barriers_valid, output barriers_ready,
  output [1:0] barrier_results_payload, output barrier_results_valid, input barrier_results_ready,
  output fault_valid, output [55:0] fault, output halted
);
  tw_unit_core engine (
    .clk(aclk), .rst(!aresetn), .irq(), .flip_valid(), .flip_address(),
    .s_axil_awaddr(cfg_awaddr), .s_axil_awprot(cfg_awprot), .s_axil_awvalid(cfg_awvalid), .s_axil_awready(cfg_awready),
    .s_axil_wdata(cfg_wdata), .s_axil_wstrb(cfg_wstrb STROBE), .s_axil_wvalid(cfg_wvalid), .s_axil_wready(cfg_wready),
    .s_axil_bresp(cfg_bresp), .s_axil_bvalid(cfg_bvalid), .s_axil_bready(cfg_bready),
    .s_axil_araddr(cfg_araddr), .s_axil_arprot(cfg_arprot), .s_axil_arvalid(cfg_arvalid), .s_axil_arready(cfg_arready),
    .s_axil_rdata(cfg_rdata), .s_axil_rresp(cfg_rresp), .s_axil_rvalid(cfg_rvalid), .s_axil_rready(cfg_rready),
    .instructions_payload(program_payload), .instructions_valid(program_valid), .instructions_ready(program_ready),
    .segments_payload(segments_payload), .segments_valid(segments_valid), .segments_ready(segments_ready),
    .pages_payload(pages_payload), .pages_valid(pages_valid), .pages_ready(pages_ready),
    .barriers_payload(barriers_payload), .barriers_valid(barriers_valid), .barriers_ready(barriers_ready),
    .barrier_results_payload(barrier_results_payload), .barrier_results_valid(barrier_results_valid),
    .barrier_results_ready(barrier_results_ready),
    .fault_valid(fault_valid), .fault(fault), .halted(halted)
  );
endmodule
"""
NAMES = "clk=aclk rst=!aresetn s_axil=cfg instructions=program"


def run(text, name, testbench, simulator, *, tests=None, **environment):
    """Runs the testbench of a top on Verilog with the module ``name``; names of the tests that passed."""
    if simulator == "icarus" and shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog is not installed")
    program = build(text, name, simulator=simulator, cocotb=True)
    folder = f"{name}-{testbench}-{simulator}"
    module = f"tilewright.tb.tb_{testbench}"
    return run_cocotb(program, module, name=folder, seed=SEED, tests=tests, environment=environment)


def run_top(top, simulator, engines=(), **options):
    """As :func:`run`, of the top itself, to which idle payloads are garbage."""
    inner, name = module_name(top, "unit"), "_".join(["idle", top, *engines])
    text, component = top_verilog(top, "unit", engines=engines), top_component(top, "unit", engines=engines)
    if simulator == "icarus":
        text = top_without_power_on_values(text)
    text = with_idle_payloads(text, component, inner, name, simulator)
    module = top if top == "cluster" else "engine" if {top, *engines} & {"pe", "conv"} else "core"
    return run(text, name, module, simulator, **options)


def long(*values):
    return pytest.param(*values, marks=pytest.mark.long)


#: Each top, cores of one engine among them, and how many tests its testbench has.
BENCHES = [
    ("tmau", (), 10),
    ("pe", (), 16),
    ("conv", (), 11),
    ("core", ("tmau",), 15),
    ("core", ("pe",), 15),
    ("core", ("conv",), 11),
    ("core", (), 7),
    ("cluster", (), 11),
]


@pytest.mark.parametrize(("top", "engines", "count"), [long(*bench) for bench in BENCHES])
def test_verilator(top, engines, count):
    """Every test of the testbench."""
    assert len(run_top(top, "verilator", engines)) == count


@pytest.mark.parametrize(
    ("top", "engines", "tests"),
    [
        ("tmau", (), "refused_command"),
        long("tmau", (), "refused|unit_registers"),
        ("conv", (), "refused_job|registers"),
        *(long(top, engines, None) for top, engines, _ in BENCHES),
    ],
)
def test_icarus(top, engines, tests):
    """A second simulator agrees, where it is installed. What no reset sets is X there, and every idle payload."""
    assert run_top(top, "icarus", engines, tests=tests, TILEWRIGHT_COUNT="1")


def wrapped(strobe):
    return top_verilog("core", "unit", engines=["pe"]) + WRAPPER.replace(" STROBE", strobe)


def block(language, begin):
    """A block of the documentation, by its language and its first words."""
    found = re.findall(rf"^```{language}\n({begin}.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("command", "file", "language", "begin"),
    [long(["make"], "Makefile", "make", "SIM"), ([sys.executable, "run.py"], "run.py", "python", "from cocotb_tools")],
    ids=["make", "python"],
)
def test_wrapper(tmp_path, command, file, language, begin):
    """A testbench runs on a wrapper with other names, without a change, by each of the files of the documentation."""
    if shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog is not installed")
    if command == ["make"] and " " in cocotb_tools.__file__:
        pytest.skip("GNU make includes no file from a path with a space")
    text = block(language, begin)
    assert NAMES in text
    (tmp_path / file).write_text(text)
    (tmp_path / "wrapper.v").write_text(WRAPPER.replace(" STROBE", ""))
    (tmp_path / "tw_unit_core.v").write_text(top_verilog("core", "unit", engines=["pe"]))
    chosen = {
        "COCOTB_TEST_FILTER": "work.*pauses=bus",
        "TILEWRIGHT_COUNT": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | chosen | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "TESTS=1 PASS=1 FAIL=0" in done.stdout, done.stdout + done.stderr


def test_a_wrapper_that_loses_bytes_fails():
    """The lowest byte of every word is not written."""
    environment = {"TILEWRIGHT_PORTS": NAMES, "TILEWRIGHT_COUNT": "1"}
    with pytest.raises(AssertionError, match=r"bytes of shared memory after Gemm.* differ"):
        run(wrapped(" & 4'b1110"), "wrapper", "engine", "icarus", tests="work.*pauses=none", **environment)
