"""``tilewright verilog``: where it cannot write. What it writes is in ``tests/integration/test_verilog.py``."""

import pytest

from tilewright.sim.cli import main
from tilewright.sim.package import command


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
        (["--with", "conv,program"], "--with goes with --top core or --top cluster"),
        (["--with", "conv,program", "--top", "pe"], "--with goes with --top core or --top cluster"),
        (
            ["--with", "pe", "--top", "core"],
            "--with pe goes with --top cluster: a core has its processing engine anyhow",
        ),
        (["--with", "l2", "--top", "core"], "--with l2 goes with --top cluster"),
        (["--cores", "4", "--top", "core"], "--cores 4 goes with --top cluster"),
        (["--cores", "4"], "--cores 4 goes with --top cluster"),
        (["--processors", "4"], "--processors 4 goes with a --top"),
        (
            ["--processors", "4", "--top", "core"],
            "4 processors cannot share core: it has more than an access unit, or none",
        ),
        (
            ["--processors", "4", "--top", "cluster", "--with", "pe"],
            "4 processors cannot share cluster: it has more than an access unit, or none",
        ),
    ],
)
def test_what_goes_with_some_tops_only(tmp_path, capsys, options, sentence):
    assert main(["verilog", *options, "--out", str(tmp_path / "new")]) == 2
    assert capsys.readouterr().err == f"tilewright verilog: {sentence}\n"
    assert not (tmp_path / "new").exists()


def test_more_is_handed_on(tmp_path, monkeypatch):
    """To the Verilog, and to what lies beside it."""
    monkeypatch.setattr(
        command,
        "top_verilog",
        lambda top, preset, prefix, without, more, cores, processors: f"// {more} {cores} {processors}",
    )
    options = ["--preset", "unit", "--top", "core", "--with", "program,conv", "--out", str(tmp_path)]
    assert main(["verilog", *options]) == 0
    assert (tmp_path / "tw_unit_core.v").read_text() == "// ('program', 'conv') None 1"
    described = (tmp_path / "tw_unit_core.xml").read_text()
    for name in ("jobs_payload", "watchdog", "PROGRAM_HI"):
        assert name.lower() in described.lower()
    options = ["--preset", "unit", "--top", "cluster", "--cores", "3", "--out", str(tmp_path)]
    assert main(["verilog", *options]) == 0
    assert (tmp_path / "tw_unit_cluster.v").read_text() == "// () 3 1"
    described = (tmp_path / "tw_unit_cluster.xml").read_text()
    for name in ("s_axil_2", "commands_2_payload", "isolation"):
        assert f"<ipxact:name>{name}</ipxact:name>" in described
    options = ["--preset", "unit", "--top", "cluster", "--processors", "3", "--out", str(tmp_path)]
    assert main(["verilog", *options]) == 0
    assert (tmp_path / "tw_unit_cluster.v").read_text() == "// () None 3"
    described = (tmp_path / "tw_unit_cluster.xml").read_text()
    for name in ("commands_1_2_payload", "done_0_1_tag", "processors", "global_limit_hi_2"):
        assert f"<ipxact:name>{name}</ipxact:name>" in described


def test_another_prefix(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "top_verilog", lambda top, prefix, **_: f"module {prefix}_{top};")
    assert main(["verilog", "--preset", "unit", "--top", "pe", "--name", "chip", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"chip_pe.v", "chip_pe.vlt", "chip_pe.core", "chip_pe.xml"}
    assert (tmp_path / "chip_pe.v").read_text() == "module chip_pe;"
