"""Arguments of replay on the RTL: what they may be, and that nothing else imports the hardware for them."""

import argparse
import json
import subprocess
import sys

import pytest

from support.cases import write_cases
from tilewright.sim.hdl.simulation import SimulationError
from tilewright.sim.replay import rtl
from tilewright.sim.replay.rtl_options import configure_rtl, preset_name
from tilewright.tools.cli.main import main


def parse(*arguments):
    parser = argparse.ArgumentParser(prog="replay")
    parser.add_argument("--preset", type=preset_name)
    configure_rtl(parser)
    return parser.parse_args(arguments)


def test_values_and_defaults():
    assert vars(parse()) == {"preset": None, "latency": 100, "stall": 0.0, "sim": "verilator"}
    given = parse("--preset", "unit", "--latency", "30", "--stall", "0.4", "--sim", "icarus")
    assert vars(given) == {"preset": "unit", "latency": 30, "stall": 0.4, "sim": "icarus"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--preset", "huge"], "argument --preset: must be one of unit, ecp5, default, lean, full, not 'huge'"),
        (["--latency", "1"], "argument --latency: must be 2 to 1023, not '1'"),
        (["--latency", "long"], "argument --latency: must be 2 to 1023, not 'long'"),
        (["--stall", "1"], "argument --stall: must be 0.0 to 0.99, not '1'"),
    ],
)
def test_wrong_values_are_refused(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(*arguments)
    assert caught.value.code == 2
    assert sentence in capsys.readouterr().err


def test_the_hardware_is_asked_only_when_one_is_given():
    code = "import argparse, sys; from tilewright.sim.replay.rtl_options import configure_rtl as c, preset_name"
    code += "; p = argparse.ArgumentParser()"
    code += "; c(p); p.add_argument('--preset', type=preset_name); p.parse_args([]); print('amaranth' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


CASE = {"name": "a/b", "kind": "tmau", "gmem": {"bytes": 256}, "smem": {"bytes": 512}, "maps": {}, "commands": []}
PROGRAM = {"name": "waits", "kind": "program", "pe": {"preset": "unit"}, "smem": {"bytes": 4096, "init": {"fill": 0}}}


def replay(folder, *cases, options=(), on="golden"):
    path = write_cases(folder / "cases.json", *cases)
    return main(["replay", str(path), "--on", on, *map(str, options)])


def test_folders_are_made(tmp_path):
    options = ["--out", tmp_path / "new" / "results.json", "--dump", tmp_path / "new" / "dump"]
    assert replay(tmp_path, CASE, options=options) == 0
    written = sorted(path.name for path in (tmp_path / "new").rglob("*.*"))
    assert written == ["a_b.gmem.bin", "a_b.smem.bin", "results.json"]
    assert (tmp_path / "new/dump/a_b.gmem.bin").stat().st_size == 256


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--out", "{}", "must name a file, not the folder {}"),
        ("--out", "{}/cases.json/x", "{}/cases.json/x cannot be made: {}/cases.json is no folder"),
        ("--out", "", "must name a file, not be empty"),
        ("--dump", "{}/cases.json", "{}/cases.json cannot be made: {}/cases.json is no folder"),
        ("--dump", "{}/cases.json/x/y", "{}/cases.json/x/y cannot be made: {}/cases.json is no folder"),
        ("--dump", "{}/" + 300 * "x", "cannot be: File name too long"),
        ("--dump", "", "must name a folder, not be empty"),
    ],
)
def test_places_that_cannot_be_written(tmp_path, capsys, option, value, sentence):
    with pytest.raises(SystemExit) as end:
        replay(tmp_path, CASE, options=[option, value.replace("{}", str(tmp_path))])
    assert end.value.code == 2
    sentence = f"tilewright replay: argument {option}: {sentence}\n".replace("{}", str(tmp_path))
    assert capsys.readouterr() == ("", sentence)


@pytest.mark.parametrize(
    ("cases", "sentence"),
    [
        ([CASE | {"name": 5000 * "n"}], f"case '{20 * 'n'}'… has a name of 5000 bytes: with --dump at most 200"),
        ([CASE, CASE | {"name": "a_b"}], "cases 'a/b' and 'a_b' would have the same files in --dump"),
    ],
)
def test_names_that_make_no_files(tmp_path, capsys, cases, sentence):
    assert replay(tmp_path, *cases, options=["--dump", tmp_path / "dump"]) == 2
    assert capsys.readouterr() == ("", f"tilewright replay: {sentence}\n")
    assert not (tmp_path / "dump").exists()
    assert replay(tmp_path, *cases) == 0, "without --dump the name makes no file"


@pytest.mark.parametrize("name", ["a\nb", "\ud800", "\0"])
def test_a_name_that_cannot_be_printed(tmp_path, capsys, name):
    assert replay(tmp_path, CASE | {"name": name}) == 2
    sentence = f"case 0: name must be text without control characters, not {name!r}"
    assert capsys.readouterr().err == f"tilewright replay: {sentence}\n"


def test_results_do_not_replace_the_cases(tmp_path, capsys):
    assert replay(tmp_path, CASE, options=["--out", tmp_path / "cases.json"]) == 2
    sentence = f"--out must not be the file of cases, {tmp_path}/cases.json"
    assert capsys.readouterr().err == f"tilewright replay: {sentence}\n"
    assert json.loads((tmp_path / "cases.json").read_text())["cases"] == [CASE]


def test_more_memory_than_there_is(tmp_path):
    path = write_cases(tmp_path / "cases.json", CASE | {"name": "huge", "gmem": {"bytes": 1 << 32}})
    program = (
        "import resource, sys; from tilewright.tools.cli.main import main;"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)); sys.exit(main())"
    )
    command = [sys.executable, "-c", program, "replay", str(path), "--on", "golden"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tilewright replay: there is not enough memory: case 'huge': Unable to allocate ")
    assert done.stderr.count("\n") == 1


def test_more_memory_than_a_simulator_hands_over(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(rtl, "_MOST_MEMORY", 255)
    assert replay(tmp_path, CASE, on="rtl") == 2
    sentence = "case 'a/b': gmem.bytes must be at most 255 on rtl, not 256"
    assert capsys.readouterr().err == f"tilewright replay: {sentence}\n"


def test_a_barrier_that_never_completes_is_not_simulated(tmp_path, capsys, monkeypatch):
    def refuse(**options):
        raise AssertionError("nothing should have been simulated")

    monkeypatch.setattr(rtl, "Session", refuse)
    assert replay(tmp_path, PROGRAM | {"program": "bar.wait 0x0, 0"}, on="rtl") == 2
    sentence = "case 'waits': the phase of parity 0 of the barrier at 0x0 is not complete"
    assert capsys.readouterr().err == f"tilewright replay: {sentence}\n"


def test_hardware_that_never_ends(tmp_path, capsys, monkeypatch):
    class Session:
        def __init__(self, params, simulator):
            self.params, self.shared_memory, self.write = params, self, lambda address, values: None
            self.reset = self.close = lambda: None

        def run(self, *words, **options):
            raise SimulationError("program is not complete after 4000000 cycles")

    monkeypatch.setattr(rtl, "Session", Session)
    assert replay(tmp_path, PROGRAM | {"program": "halt"}, on="rtl") == 1
    sentence = "case 'waits': program is not complete after 4000000 cycles"
    assert capsys.readouterr().err == f"tilewright replay: {sentence}\n"
