"""``tilewright verilog``: arguments, and what it writes of a short Verilog; ``tests/integration/`` has real ones."""

import re
from importlib.metadata import version
from itertools import groupby

import pytest

from tilewright.sim.hdl.tops import TOPS, top_component
from tilewright.tools.cli.main import main
from tilewright.tools.cli.verilog import KINDS
from tilewright.tools.package.choice import Choice
from tilewright.tools.package.fusesoc import listing
from tilewright.tools.package.ports import interface_docs, ports_of


def test_a_folder_in_the_way(tmp_path, capsys):
    """Nothing is written, and nothing is made before that is known."""
    (tmp_path / "tw_unit_core.v").mkdir()
    assert main(["verilog", "--preset", "unit", "--out", str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err
        == f"tilewright verilog: {tmp_path / 'tw_unit_core.v'} cannot be written: it is a folder\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["tw_unit_core.v"]


@pytest.mark.parametrize("prefix", ["2fast", "my-chip", "", "a b", "é"])
def test_a_prefix_that_is_no_identifier(tmp_path, capsys, prefix):
    assert main(["verilog", "--preset", "unit", "--name", prefix, "--out", str(tmp_path / "new")]) == 2
    message = f"--name: a name must be letters, digits and underscores, with no digit first, not {prefix!r}"
    assert capsys.readouterr().err == f"tilewright verilog: {message}\n"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--engines", "conv"], "--engines goes with --top core or --top cluster"),
        (["--engines", "conv", "--top", "pe"], "--engines goes with --top core or --top cluster"),
        (
            ["--engines", "pe,program", "--top", "core"],
            "--engines pe,program: a command processor needs both tmau and pe",
        ),
        (["--l2", "--top", "core"], "--l2 goes with --top cluster"),
        (["--cores", "4", "--top", "core"], "--cores 4 goes with --top cluster"),
        (["--cores", "4"], "--cores 4 goes with --top cluster"),
        (["--processors", "4"], "--processors 4 goes with a --top"),
        (
            ["--processors", "4", "--top", "core"],
            "4 processors cannot share core: it has more than an access unit, or none",
        ),
        (
            ["--processors", "4", "--top", "cluster", "--engines", "tmau,pe"],
            "4 processors cannot share cluster: it has more than an access unit, or none",
        ),
    ],
)
def test_what_goes_with_some_tops_only(tmp_path, capsys, options, sentence):
    assert main(["verilog", *options, "--out", str(tmp_path / "new")]) == 2
    assert capsys.readouterr().err == f"tilewright verilog: {sentence}\n"
    assert not (tmp_path / "new").exists()


def ports_alone(choice):
    """Stands for the Verilog of a choice, and has nothing but its ports, in another order."""
    ports = ports_of(choice.component())
    declared = [(port, f"[{port.width - 1}:0] " if port.width > 1 else "") for port in reversed(ports)]
    lines = [
        f"  {'input' if port.is_input else 'output'} {span}{port.name};\n  wire {span}{port.name};\n"
        for port, span in declared
    ]
    names = ", ".join(port.name for port, _ in declared)
    return f"`timescale 1ns/1ps\nmodule {choice.name}({names});\n{''.join(lines)}endmodule\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes the files of one top, whose Verilog has its ports alone; returns their texts by kind."""
    monkeypatch.setattr(Choice, "verilog", ports_alone)

    def write(*options):
        assert main(["verilog", *options, "--out", str(tmp_path)]) == 0
        return {path.suffix[1:]: path.read_text() for path in tmp_path.iterdir()} | {
            "stems": {path.stem for path in tmp_path.iterdir()}
        }

    return write


@pytest.mark.parametrize(
    ("options", "names", "defined"),
    [
        (
            "--preset unit --top core --engines tmau,pe,program,conv",
            ["jobs_payload", "watchdog", "program_hi"],
            ["CONV_BASE 0x", "PROGRAM_BASE 0x"],
        ),
        ("--preset unit --top cluster --cores 3", ["s_axil_2", "commands_2_payload", "isolation"], ["CORES 3"]),
        (
            "--preset unit --top cluster --processors 3",
            ["commands_1_2_payload", "done_0_1_tag", "processors", "global_limit_hi_2"],
            ["PROCESSORS 3"],
        ),
        (
            "--preset unit --top cluster --engines tmau,pe --l2 --without lanes --set l2.ways=4,pe.threads=8",
            ["l2_axil"],
            ["L2_BASE 0x0", "L2_WAYS 4", "PE_THREADS 8"],
        ),
    ],
)
def test_options_reach_every_file(written, options, names, defined):
    files, top = written(*options.split()), options.split()[3]
    for name in names:
        assert f"<ipxact:name>{name}</ipxact:name>" in files["xml"]
    for text in defined:
        assert f"#define TW_UNIT_{top.upper()}_{text}" in files["h"]
    assert f"\n// Options: {options}\n" in files["v"]
    assert f"\n * Options: {options}\n" in files["h"]
    assert f"made with {options}</ipxact:description>" in files["xml"]
    assert re.search(f'^description: "[^"]* made with {options}"$', files["core"], re.MULTILINE)


def test_another_prefix(written):
    files = written("--preset", "unit", "--top", "pe", "--name", "chip")
    assert files["stems"] == {"chip_pe"}
    assert set(files) == {*KINDS, "stems"}
    assert "\nmodule chip_pe(\n" in files["v"]
    assert "#define CHIP_PE_PE_BASE 0x0 " in files["h"]


def test_the_verilog_says_what_it_is(written):
    """Nothing but the same options changes it."""
    options = ("--preset", "unit", "--top", "conv", "--set", "conv.results=2")
    text = written(*options)["v"]
    first, *lines = text.splitlines()
    assert first.startswith("// tw_unit_conv: ")
    assert lines[:4] == [
        f"// Made by Tilewright {version('tilewright')}; do not edit.",
        "// Options: --preset unit --top conv --set conv.results=2",
        "// SPDX-License-Identifier: Apache-2.0",
        "`timescale 1ns/1ps",
    ]
    assert written(*options)["v"] == text


@pytest.mark.parametrize("top", TOPS)
def test_ports_are_listed_by_interface(written, top):
    """In the order of the signature, each interface with what it is; inputs and outputs have their widths."""
    listed = written("--preset", "unit", "--top", top)["v"].partition("(\n")[2].partition("\n);\n")[0]
    component = top_component(top, "unit")
    groups = {name: list(group) for name, group in groupby(ports_of(component), key=lambda port: port.bundle)}
    assert list(groups)[:2] == ["clk", "rst"]
    assert list(interface_docs(component)) == list(groups)
    for text, (name, ports) in zip(listed.split("\n\n"), groups.items(), strict=True):
        comment = [line for line in text.splitlines() if line.startswith("  // ")]
        assert comment[0].startswith(f"  // {name}: ") and len(" ".join(comment)) > len(name) + 10
        spans = (f"[{port.width - 1}:0] " if port.width > 1 else "" for port in ports)
        assert [line.rstrip(",") for line in text.splitlines()[len(comment) :]] == [
            f"  {'input ' if port.is_input else 'output'} wire {span}{port.name}"
            for port, span in zip(ports, spans, strict=True)
        ]


def test_initial_values_stay():
    choice = Choice("pe", "unit")
    ports = [port.name for port in ports_of(choice.component())]
    declared = "".join(f"  output {name};\n  reg {name} = 1'h0;\n" for name in ports)
    text = listing(choice, f"module tw_unit_pe({', '.join(ports)});\n{declared}  assign a = b;\nendmodule\n")
    assert text.count("  output reg ") == len(ports) == text.count(" = 1'h0")
    assert text.endswith(" = 1'h0\n);\n  assign a = b;\nendmodule\n")


def test_all_tops_say_which_are_still_being_made(tmp_path, monkeypatch, capsys):
    """Several processes work; the command itself says what is left."""
    monkeypatch.setattr(Choice, "verilog", ports_alone)
    assert main(["verilog", "--preset", "unit", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"preset unit: {', '.join(TOPS)}, 0 of {len(TOPS)}"
    assert said[-1].startswith("preset unit: ")
