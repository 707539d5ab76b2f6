"""The command line: its version, wrong arguments of every command, and how it gives up."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.tools.cli import main as cli
from tilewright.tools.cli.main import COMMANDS, Parser, main

PROGRAM = str(Path(sys.executable).with_name("tilewright"))

#: Arguments of each command that must be refused as they are parsed, and the end of the sentence; ``{}`` is a folder.
WRONG = [
    ("area --preset huge",
     "argument --preset: invalid choice: 'huge' (choose from 'unit', 'ecp5', 'default', 'lean', 'full')"),
    ("area --engine gpu",
     "argument --engine: invalid choice: 'gpu' (choose from 'tmau', 'pe', 'conv', 'program', 'cluster')"),
    ("area --jobs 0", "argument --jobs: must be 1 to 256, not '0'"),
    ("area --jobs -1", "argument --jobs: must be 1 to 256, not '-1'"),
    ("area --jobs 1e3", "argument --jobs: must be 1 to 256, not '1e3'"),
    ("area --out {}", "argument --out: must name a file, not the folder {}"),
    ("area --flat --family virtex", "argument --family: invalid choice: 'virtex' (choose from 'ecp5', 'xc7')"),
    ("area --room nope", "unrecognized arguments: --room nope"),
    ("area --pre unit", "unrecognized arguments: --pre unit; did you mean '--preset'?"),
    ("silicon pakc", "there is no command 'pakc'; did you mean 'pack'?"),
    ("silicon pack --nope", "unrecognized arguments: --nope"),
    ("sim --workload gem", "argument --workload: invalid choice: 'gem' (choose from 'photo', 'swizzle', 'video', "
     "'borders', 'convolution', 'roundtrip', 'dct', 'gemm', 'threads', 'stem', 'cluster', 'network', 'detector', "
     "'transformer', 'spotter', 'system', 'all'); did you mean 'gemm'?"),
    ("verilog --top tmua", "argument --top: invalid choice: 'tmua' (choose from 'tmau', 'pe', 'conv', "
     "'core', 'cluster'); did you mean 'tmau'?"),
    ("verilog --without swizle", "argument --without: must be of im2col, interleave, unaligned, gather, swizzle, "
     "stores, reductions_global, reductions_shared, reductions_float, lanes, local_copies, windows, tf32, not "
     "'swizle'; did you mean 'swizzle'?"),
    ("area --preset unit --preset full", "argument --preset: is given twice"),
    ("area Setup", "unrecognized arguments: Setup"),
    ("asm", "the following arguments are required: FILE"),
    ("asm x --out {}", "argument --out: must name a file, not the folder {}"),
    ("asm x --out", "argument --out: expected one argument"),
    ("bench --preset huge",
     "argument --preset: invalid choice: 'huge' (choose from 'default', 'ecp5', 'full', 'lean', 'unit')"),
    ("bench --sim vcs", "argument --sim: invalid choice: 'vcs' (choose from 'verilator', 'icarus')"),
    (
        "bench --engine x",
        "argument --engine: invalid choice: 'x' (choose from 'tmau', 'pe', 'kernels', 'conv', 'core', 'cluster', "
        "'network', 'cores')",
    ),
    ("bench --out {}/file/x", "argument --out: {}/file/x cannot be made: {}/file is no folder"),
    ("board", "one of the arguments --port --simulated is required"),
    ("board --port x --simulated", "argument --simulated: not allowed with argument --port"),
    ("board --simulated --board x", "argument --board: invalid choice: 'x' (choose from 'ulx3s-85f')"),
    ("docs --out {}/file", "argument --out: {}/file cannot be made: {}/file is no folder"),
    ("fpga --board icebreaker", "argument --board: invalid choice: 'icebreaker' (choose from 'ulx3s-85f')"),
    ("fpga --device 100k", "argument --device: invalid choice: '100k' (choose from '12k', '25k', '45k', '85k')"),
    ("fpga --speed 9", "argument --speed: must be 6 to 8, not '9'"),
    ("fpga --seed x", "argument --seed: must be 0 to 2147483647, not 'x'"),
    ("fpga --freq 0", "argument --freq: must be 1 to 1000, not '0'"),
    ("fpga --out {}/file", "argument --out: {}/file cannot be made: {}/file is no folder"),
    ("header --out {}/file", "argument --out: {}/file cannot be made: {}/file is no folder"),
    ("header --out {}/file/x", "argument --out: {}/file/x cannot be made: {}/file is no folder"),
    ("campaign --hours 0", "argument --hours: must be 0.001 to 10000, not '0'"),
    ("campaign --kind nope", "argument --kind: invalid choice: 'nope' (choose from 'loads', 'mixed', 'garbage', "
     "'programs', 'jobs', 'clusters', 'networks', 'networks-rtl')"),
    ("explore mover --workers 0", "argument --workers: must be 1 to 1024, not '0'"),
    ("mutate --judge nobody", "argument --judge: invalid choice: 'nobody' (choose from 'tests', 'proofs')"),
    ("mutate --count 0", "argument --count: must be 1 to 1000, not '0'"),
    ("mutate --seed -1", "argument --seed: must be 0 to 2147483647, not '-1'"),
    ("replay x --on rtl --latency 5000", "argument --latency: must be 2 to 1023, not '5000'"),
    ("replay x --on rtl --stall -0.1", "argument --stall: must be 0.0 to 0.99, not '-0.1'"),
    ("replay x --on rtl --stall nan", "argument --stall: must be 0.0 to 0.99, not 'nan'"),
    ("replay --on golden", "the following arguments are required: CASES.json"),
    ("sim --workload nope",
     "argument --workload: invalid choice: 'nope' (choose from 'photo', 'swizzle', 'video', 'borders', 'convolution', "
     "'roundtrip', 'dct', 'gemm', 'threads', 'stem', 'cluster', 'network', 'detector', 'transformer', 'spotter', "
     "'system', 'all')"),
    ("sim --workload", "argument --workload: expected one argument"),
    ("stages --out {}", "argument --out: must name a file, not the folder {}"),
    ("stages --out {}/file/x", "argument --out: {}/file/x cannot be made: {}/file is no folder"),
    ("verilog --preset huge",
     "argument --preset: invalid choice: 'huge' (choose from 'unit', 'ecp5', 'default', 'lean', 'full')"),
    ("verilog --top nope",
     "argument --top: invalid choice: 'nope' "
     "(choose from 'tmau', 'pe', 'conv', 'core', 'cluster')"),
    ("verilog --out {}/file", "argument --out: {}/file cannot be made: {}/file is no folder"),
    ("verilog --out {}/file/x", "argument --out: {}/file/x cannot be made: {}/file is no folder"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "sentence"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_argument_is_one_sentence(line, sentence, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main([word.replace("{}", str(tmp_path)) for word in line.split()])
    assert end.value.code == 2
    command = "silicon pack" if line.startswith("silicon pack ") else line.split()[0]
    assert capsys.readouterr() == ("", f"tilewright {command}: {sentence}\n".replace("{}", str(tmp_path)))
    assert [path.name for path in tmp_path.iterdir()] == ["file"], "nothing is written"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("area --preset unit --set tmau.max_outstanding=3",
         "--set tmau.max_outstanding=3: max_outstanding must be 4 to 1024, not 3"),
        ("area --engine pe --set tmau.max_outstanding=64",
         "--set tmau.max_outstanding=64: what is built has no tmau, only pe, smem"),
        ("area --engine program --set pe.threads=8",
         "--set pe.threads=8: what is built has no pe, only tmau, program, smem"),
        ("area --flat --top conv --set tmau.max_outstanding=64",
         "--set tmau.max_outstanding=64: what is built has no tmau, only conv, smem"),
        ("fpga --top tmau --set smem.size_bytes=48",
         "--set smem.size_bytes=48: size_bytes must be a power of two from 1024 to 1048576, not 48"),
        ("fpga --board ulx3s-85f --set tmau.max_burst=4", "--set must be left out with --board, which decides it"),
        ("verilog --set l2.bytes=4096", "--set l2.bytes=4096: what is built has no l2, only tmau, smem, pe, conv"),
        ("header --top core --set conv.units=4",
         "--set conv.units=4: what is built has no conv, only tmau, pe, smem"),
        ("area --top pe", "--top goes with --flat"),
        ("area --flat --engine pe", "--engine goes without --flat"),
        ("area --flat --block Setup", "--block goes without --flat"),
        ("asm file --out file", "--out must not be the file that is read, file"),
        ("asm .", ".: cannot be read: Is a directory"),
        ("docs", "there is no docs/mkdocs.yml: run it in the root of the repository"),
        ("mutate --block pe/none", "there is no folder or file pe/none with hardware in hw/"),
        ("explore nowhere.toml", "nowhere.toml: cannot be read: No such file or directory"),
        ("replay . --on golden", ".: cannot be read: Is a directory"),
    ],
)  # fmt: skip
def test_what_only_the_command_can_judge(line, sentence, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    assert capsys.readouterr() == ("", f"tilewright {line.split()[0]}: {sentence}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_page_names_what_each_command_needs():
    page = (Path(__file__).parents[4] / "docs/command_line.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (?:`tilewright\[(\w+)\]` )?\|", page, re.MULTILINE))
    assert rows == {name: command.extra for name, command in COMMANDS.items()}


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == "tilewright 0.1.0\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: tilewright {name} ")
    # Verilog and RTL keep their capitals.
    assert COMMANDS[name].help[1:] in " ".join(out.split())


def test_a_command_that_is_not_there(capsys):
    for word, meant in (("verlog", "; did you mean 'verilog'?"), ("nothing", ": `tilewright --help` lists them")):
        with pytest.raises(SystemExit) as end:
            main([word])
        assert end.value.code == 2
        sentence = f"tilewright: there is no command {word!r}{meant}\n"
        assert capsys.readouterr() == ("", sentence)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("tilewright ver", "verilog"),
        ("tilewright verilog --pre", "--preset"),
        ("tilewright verilog --preset ec", "ecp5"),
        ("tilewright sim --workload ge", "gemm"),
        ("tilewright silicon pa", "pack"),
    ],
)
def test_completion(line, word, tmp_path):
    """As a shell asks for it: words that fit are written to file descriptor 8."""
    answer = tmp_path / "answer"
    variables = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n",
                 "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}  # fmt: skip
    done = subprocess.run([PROGRAM], env=os.environ | variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert answer.read_text().split() == [word]


@pytest.fixture
def command(monkeypatch):
    """Makes ``tilewright stages`` raise what it is given."""

    def raises(error):
        def run(args):
            raise error

        module = SimpleNamespace(configure=lambda parser: None, run=run)
        monkeypatch.setattr(cli, "import_module", lambda name: module)
        return ["stages"]

    return raises


@pytest.mark.parametrize(
    ("error", "sentence", "status"),
    [
        (OSError(28, "No space left on device", "build/x"), "build/x: No space left on device", 2),
        (PermissionError(13, "Permission denied", "x.lock"), "x.lock: Permission denied", 2),
        (OSError(30, "Read-only file system", "STAGES.md"), "STAGES.md: Read-only file system", 2),
        (OSError("odd"), "odd", 2),
        (MemoryError(), "there is not enough memory", 2),
        (MemoryError("Unable to allocate 4.00 GiB"), "there is not enough memory: Unable to allocate 4.00 GiB", 2),
        (RuntimeError("verilator could not\nbuild it"), "verilator could not build it", 1),
    ],
)
def test_a_failure_is_one_sentence(command, capsys, error, sentence, status):
    assert main(command(error)) == status
    assert capsys.readouterr() == ("", f"tilewright stages: {sentence}\n")


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("sim --workload gemm", ""),
        pytest.param("bench --engine pe --out x.json", "/sim/designs", marks=pytest.mark.long),
        pytest.param("sim", "", marks=pytest.mark.long),
    ],
)
def test_what_the_machine_lacks_is_one_sentence(line, place, tmp_path):
    """A tool, or a place for what is built; whether this process finds it out, or those that build side by side."""
    for simulator, variables, sentence in (
        ("icarus", {"PATH": "/nowhere"}, "the simulator icarus needs iverilog, which is not installed"),
        ("verilator", {"TILEWRIGHT_BUILD": "/proc/x"}, f"nothing can be built in /proc/x{place}: No such file or "
                                                       "directory; TILEWRIGHT_BUILD names another build folder"),
    ):  # fmt: skip
        words = [*line.split(), "--preset", "unit", "--sim", simulator]
        done = subprocess.run(
            [PROGRAM, *words], cwd=tmp_path, env=os.environ | variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1] == f"tilewright {words[0]}: {sentence}"


@pytest.mark.parametrize(
    ("line", "end"),
    [
        (["asm", "a\nb\x1b[1m"], "tilewright asm: a\\nb\\x1b[1m: cannot be read: No such file or directory\n"),
        (["asm", "c", "a\nb"], "tilewright asm: unrecognized arguments: a\\nb\n"),
        (["asm", "c", "--out", "file\nx/y"],
         "tilewright asm: argument --out: file\\nx/y cannot be made: file\\nx is no folder\n"),
    ],
    ids=["file", "argument", "folder"],
)  # fmt: skip
def test_a_name_of_several_lines_is_one(line, end, tmp_path):
    (tmp_path / "file\nx").touch()
    done = subprocess.run([PROGRAM, *line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, end)


@pytest.mark.parametrize("error", [NotImplementedError("x"), RecursionError("x"), ValueError("x"), KeyError("x")])
def test_a_bug_is_not_hidden(command, error):
    with pytest.raises(type(error)):
        main(command(error))


@pytest.fixture
def words(tmp_path):
    """A command line that prints a word."""
    path = tmp_path / "commands.txt"
    path.write_text("commit\n")
    return [PROGRAM, "asm", str(path)]


def test_a_reader_that_stops_reading(words):
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as output:
        done = subprocess.run(words, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")


def test_output_that_cannot_be_written(words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "tilewright asm: No space left on device\n")


@pytest.mark.parametrize(
    ("closed", "status", "said"),
    [(">&-", 2, "tilewright asm: the standard output is closed\n"), ("2>&-", 0, ""), (">&- 2>&-", 2, "")],
)
def test_closed_streams(words, closed, status, said):
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, said)
    assert bool(done.stdout) == (status == 0)


def test_a_mistake_is_a_status_where_the_error_output_is_closed(words):
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *words, "--pe", "--nope"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


@pytest.mark.parametrize("name", ["header", "asm"])
def test_a_file_system_that_takes_no_files(name, tmp_path, capsys):
    """Not even from the superuser."""
    (tmp_path / "commands.txt").write_text("commit\n")
    options = {"asm": [str(tmp_path / "commands.txt")], "header": ["--top", "pe"]}[name]
    assert main([name, *options, "--out", "/proc/tilewright"]) == 2
    out, sentence = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"tilewright {name}: /proc/tilewright[/a-z_.]*: [A-Z][a-z ]+\n", sentence)


def test_options_are_given_once_at_every_depth(capsys):
    parser = Parser(prog="p")
    inner = parser.add_subparsers().add_parser("q")
    inner.add_argument("--many", action="append")
    inner.add_argument("--one", type=int, default=1)
    inner.add_argument("rest", nargs="*")
    given = parser.parse_args(["q", "a", "b", "--many", "1", "--many", "2"])
    assert (given.many, given.one, given.rest) == (["1", "2"], 1, ["a", "b"])
    with pytest.raises(SystemExit):
        parser.parse_args(["q", "--one", "1", "--one", "1"])
    assert capsys.readouterr().err == "p q: argument --one: is given twice\n"
