"""Every code block on every page runs, from top to bottom as for a reader, or is read by what would run it.

Python is executed, and the blocks of one page share their names. Commands of a shell are executed where they take
seconds; of the others their own parser, or ``make`` without doing it, reads every word, and ``LONG=1`` executes those
that write files. What is indented and not fenced is a formula. ``docs/first-hour.md`` has a test of its own.
"""

import contextlib
import doctest
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from support.fences import Fence, fences
from tilewright.sim.asm.conv import assemble_jobs
from tilewright.sim.asm.core import assemble_core
from tilewright.sim.asm.pe import assemble_program
from tilewright.sim.asm.tmau import assemble
from tilewright.sim.hdl.build import CACHE, verilator_root
from tilewright.sim.hdl.tops import TOPS
from tilewright.spec import COMMAND, Opcode
from tilewright.tools.cli.main import COMMANDS, main
from tilewright.tools.explore.space import read_space

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = "docs/first-hour.md"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))
PAGES.remove(ELSEWHERE)
#: Subcommands that take seconds, and those that write files in minutes.
QUICK, SLOW = {"asm", "header"}, {"area", "docs", "verilog"}
NAMED = re.compile(r"tests/[\w/.]+\.py(?:::\w+)?")
#: A top, and its engines, that a page makes.
ENGINES = re.compile(r"make verilog [^`]*TOP=(\w+) ENGINES=([\w,]+)")
PROGRAM = re.compile(r"    (?:\.venv/bin/)?(?:make|tilewright|python3?|pip|pytest|cd|git) ")


class Reader:
    """Does what the blocks of one page say.

    Attributes
    ----------
    names : dict
        What the Python blocks have bound.
    printed : str
        By the last block that printed anything.
    """

    def __init__(self, desk, patch, slow=False):
        self.desk, self.patch, self.slow = desk, patch, slow
        self.names, self.printed, self.engines = {}, "", {}

    def python(self, text):
        """Executes; a block of ``>>>`` lines is an answer for each."""
        with contextlib.redirect_stdout(io.StringIO()) as out, self.patch.context() as patch:
            patch.chdir(self.desk)  # pages write files
            exec(compile(text, "the block", "exec"), self.names)
        self.printed = out.getvalue()

    def output(self, text):
        """What the block before has printed; ``...`` stands for anything."""
        assert doctest.OutputChecker().check_output(text, self.printed, doctest.ELLIPSIS), self.printed

    def text(self, text):
        """A Python console, commands, instructions, jobs or a program."""
        examples = doctest.DocTestParser().get_examples(text.replace("\n>>>", "\n\n>>>"))
        for example in examples:
            try:
                came = repr(eval(example.source, self.names))
            except Exception as error:
                came = f"{type(error).__name__}: {error}"
            assert came == example.want.strip()
        if not examples:
            try:
                assert assemble(text)
            except Exception as no_commands:
                for others in (assemble_program, assemble_jobs, assemble_core):
                    with contextlib.suppress(Exception):
                        assert others(text)
                        return
                raise AssertionError(f"these are neither commands nor instructions: {no_commands}") from None

    def json(self, text):
        """A case file runs on the golden model, and comes out as it says."""
        value, self.printed = json.loads(text), ""
        if "cases" in value:
            path = self.desk / "cases.json"
            path.write_text(text, encoding="utf-8")
            assert self.tilewright(["replay", str(path), "--on", "golden"], quick=True) == 0, self.printed
            assert self.printed.count("met ") == len(value["cases"]), self.printed

    def toml(self, text):
        """A space of an exploration."""
        path = self.desk / "space.toml"
        path.write_text(text, encoding="utf-8")
        assert read_space(path).points

    def mermaid(self, text):
        """Every class and file that a diagram names is in the sources."""
        files = [path for folder in ("hw", "golden", "sim", "network", "board", "system") for path in code(folder)]
        sources = "".join(path.read_text(encoding="utf-8") for path in files)
        for name in re.findall(r"\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+\b", text):
            assert f"class {name}" in sources, f"there is no class {name}"
        for name in re.findall(r"\b[a-z_]+/[a-z_/]+\.py\b", text):
            assert (ROOT / name).is_file(), f"there is no file {name}"

    def c(self, text):
        """A file that is compiled with the generated headers that it includes; those of another name are the page's."""
        for preset, top in re.findall(r'"tw_([a-z0-9]+)_(\w+)\.h"', text):
            assert main(["header", "--preset", preset, "--top", top, "--out", str(self.desk)]) == 0
        (self.desk / "block.c").write_text(text, encoding="utf-8")
        options = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Iinclude"]
        self.program([shutil.which("gcc"), *options, "block.c"])

    def verilog(self, text):
        """Modules that Verilator takes, together with the tops that they instantiate, made as the page says."""
        (self.desk / "block.v").write_text(text, encoding="utf-8")
        for top, (_, presets) in TOPS.items():
            for instance in re.finditer(rf"\b(?:tw_({'|'.join(presets)})_)?{top}\s+(?:#|\w+\s*\()", text):
                preset = instance[1] or "unit"
                options = ["--engines", self.engines[top]] if top in self.engines else []
                out = ["--out", str(self.desk / "rtl")]
                assert main(["verilog", "--preset", preset, "--top", top, *options, *out]) == 0
        root = verilator_root()
        verilator = [root / "bin" / "verilator_bin", "--lint-only", "-Wno-fatal", "-Wno-lint", "-Wno-style"]
        self.program([*verilator, "block.v", *self.desk.glob("rtl/*.v")], VERILATOR_ROOT=str(root))

    def sh(self, text):
        """Commands, one a line."""
        self.printed = ""
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"\w+=.*", words[0]):
                words.pop(0)
            if words:
                self.command([words[0].removeprefix(".venv/bin/"), *words[1:]])

    def command(self, words):
        """One command."""
        match words:
            case ["make", target, *rest]:
                self.make(target, rest)
            case ["tilewright", "tool", "fusesoc", *rest]:
                self.command(["fusesoc", *rest])
            case ["tilewright", *rest]:
                quick = rest[0] in QUICK or (rest[0] == "replay" and "golden" in rest)
                assert self.tilewright(rest, quick or (self.slow and rest[0] in SLOW)) == 0, self.printed
            case ["pytest", *rest] | ["python" | "python3", "-m", "pytest", *rest]:
                there_are_tests(word for word in rest if word.startswith("tests"))
            case ["python" | "python3", "-m", module, *_]:
                assert importlib.util.find_spec(module), f"there is no module {module}"
            case ["pip", "install", *rest]:
                extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
                packages = [word for word in rest if not word.startswith("-")]
                for package in packages:
                    name, wanted = re.fullmatch(r"(\.|tilewright)(?:\[(.*)\])?", package).groups()
                    assert set(wanted.split(",") if wanted else ()) <= set(extras), f"{name} has no extra {wanted}"
            case ["fusesoc", *rest]:
                import_module("fusesoc.main").get_parser().parse_args(rest)
                core = f"tilewright:engines:tw_(?:{'|'.join(TOPS['tmau'].presets)})_(?:{'|'.join(TOPS)})"
                assert re.fullmatch(core, rest[-1]), f"there is no core {rest[-1]}"
            case ["dask", ("scheduler" | "worker") as what, *rest]:
                import_module(f"distributed.cli.dask_{what}").main.make_context(what, rest)
            case ["cd", folder]:
                assert (ROOT / folder).is_dir()
            case _:
                raise AssertionError(f"no test can tell whether this works: {shlex.join(words)}")

    def make(self, target, variables):
        """Looks up target and variables, and what ``make`` would do."""
        rule = re.search(rf"^{target}:.*## (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert rule, f"there is no target {target}"
        for variable in variables:
            name, _, value = variable.partition("=")
            assert f"{name}=" in rule[1], f"make {target} has no variable {name}"
            if name == "T":
                there_are_tests(value.split())
        out = self.program([shutil.which("make"), "-n", target, *variables], cwd=ROOT)
        for line in out.splitlines():
            words = shlex.split(line, comments=True) if line.startswith(".venv/bin/tilewright ") else []
            if words:
                self.command(["tilewright", *words[1:]])

    def tilewright(self, words, quick):
        """Runs a command line on a desk with links to the tree, or only has it parsed; returns the exit status."""
        printed = io.StringIO()
        with self.patch.context() as patch, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            patch.chdir(self.desk)
            if not quick and words[0] in COMMANDS:
                patch.setattr(import_module(COMMANDS[words[0]][0]), "run", lambda args: 0)
            try:
                status = main(words)
            except SystemExit as end:
                status = end.code or 0
        self.printed += printed.getvalue()
        return status

    def program(self, command, cwd=None, **environment):
        """Runs a program and returns what it printed."""
        kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        command = list(map(str, command))
        done = subprocess.run(
            command, cwd=cwd or self.desk, env=kept | environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def read(self, page, blocks):
        """Reads a page; a failure names the line."""
        if (ROOT / page).exists():
            self.engines = dict(ENGINES.findall((ROOT / page).read_text(encoding="utf-8")))
        for block in blocks:
            if block.reason:
                continue
            where = f"{page}:{block.line}"
            run = LANGUAGES.get(block.language)
            assert run, f"{where}: a block must be one of {', '.join(LANGUAGES)}, not {block.language!r}"
            try:
                run(self, block.text)
            except Exception as error:
                raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error


LANGUAGES = {
    name: getattr(Reader, name)
    for name in ("python", "output", "text", "json", "toml", "mermaid", "c", "verilog", "sh")
}


def code(folder):
    return (ROOT / folder).rglob("*.py")


def there_are_tests(names):
    for name in names:
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), f"there is no {path}"
        function = f"def {test.partition('[')[0]}("
        assert not test or function in (ROOT / path).read_text(encoding="utf-8"), f"{path} has no {test}"


@pytest.fixture
def desk(tmp_path):
    """A folder in which a reader may leave files, with links to the tree, and to simulators that are built already."""
    for path in ROOT.iterdir():
        if path.name != "build":
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / "build").mkdir()
    (tmp_path / "build/sim").symlink_to(CACHE.resolve())
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_page(page, desk, monkeypatch):
    Reader(desk, monkeypatch).read(page, fences((ROOT / page).read_text(encoding="utf-8")))


@pytest.mark.long
def test_commands_that_write_files(desk, monkeypatch):
    for page in PAGES:
        blocks = [block for block in fences((ROOT / page).read_text(encoding="utf-8")) if block.language == "sh"]
        Reader(desk, monkeypatch, slow=True).read(page, blocks)


@pytest.mark.parametrize("page", PAGES)
def test_named_tests_exist(page):
    there_are_tests(set(NAMED.findall((ROOT / page).read_text(encoding="utf-8"))))


def test_commands_are_fenced():
    indented = [
        f"{page}: {line.strip()}"
        for page in PAGES
        for line in (ROOT / page).read_text(encoding="utf-8").splitlines()
        if PROGRAM.match(line)
    ]
    assert not indented


def test_few_blocks_are_not_run():
    marked = [(page, b.reason) for page in PAGES for b in fences((ROOT / page).read_text(encoding="utf-8")) if b.reason]
    cocotb = [f"tests/cocotb/test_{name}.py does" for name in ("tops", "tops", "monitored")]
    soc = [("docs/in_your_soc.md", "tests/integration/test_litex.py does")]
    integration = [("docs/integration.md", "tests/integration/test_package.py does")] * 2  # a core file, and its use
    kernels = [("docs/kernels.md", "tests/unit/tools/docs/test_pipeline.py does")]
    network = [("docs/network.md", "tests/network/test_models.py does")]
    quantise = [("docs/quantise.md", "needs PyTorch, which is not among the dependencies"),
                ("docs/quantise.md", "tests/network/test_quantise.py does")]  # fmt: skip
    silicon = [("docs/silicon.md", "tests/integration/silicon/test_errand.py does")]
    abc = "tests/unit/tools/fpga/test_flow_mapping.py::test_a_netlist_that_abc_got_wrong_is_refused does"
    rest = [*soc, *integration, *kernels, *network, *quantise, *silicon, ("docs/upstream.md", abc)]
    assert marked == [("docs/cocotb.md", reason) for reason in cocotb] + rest


def test_every_command_has_its_text():
    text = next(b.text for b in fences((ROOT / "docs/commands.md").read_text(encoding="utf-8")) if b.language == "text")
    assert {COMMAND.unpack(word)["opcode"] for word in assemble(text)} == set(Opcode)


@pytest.mark.parametrize(
    ("language", "text", "complaint"),
    [
        ("", "make sim", "a block must be one of python, output, .*, not ''"),
        ("bash", "make sim", "a block must be one of .*, not 'bash'"),
        ("python", "assert 1 > 2", "AssertionError"),
        ("output", "2\n", "AssertionError"),
        ("text", ">>> 1 + 1\n3\n", "2.*3"),
        ("text", "move 1", "these are neither commands nor instructions: line 1"),
        ("json", '{"version": 1, "cases": [{}]}', "name is missing"),
        ("json", "{", "JSONDecodeError"),
        ("toml", 'workload = "tile: coffee"', "there is no tile 'coffee'"),
        ("mermaid", "Queue --> CoffeeMaker", "there is no class CoffeeMaker"),
        ("mermaid", "Queue --> sim/coffee.py", "there is no file sim/coffee.py"),
        ("sh", "make coffee", "there is no target coffee"),
        ("sh", "make sim CUP=1", "make sim has no variable CUP"),
        ("sh", "make sim PRESET=huge", "invalid choice: 'huge'"),
        ("sh", "make waves T=tests/unit/lib/test_stream.py::test_coffee", "has no test_coffee"),
        ("sh", "tilewright coffee", "there is no command 'coffee'"),
        ("sh", "tilewright sim --cup", "unrecognized arguments: --cup"),
        ("sh", "tilewright replay nowhere.json --on golden", "nowhere.json"),
        ("sh", "pip install '.[coffee]'", "has no extra coffee"),
        ("sh", "pip install tilewrong", "NoneType"),
        ("sh", "python -m coffee", "there is no module coffee"),
        ("sh", "coffee --black", "no test can tell whether this works: coffee --black"),
        ("c", '#include "tw_unit_core.h"\nint x = TW_COFFEE;\n', "TW_COFFEE"),
        ("verilog", "module m; coffee c(); endmodule\n", "coffee"),
    ],
)
def test_a_wrong_block_is_found(language, text, complaint, desk, monkeypatch):
    with pytest.raises(AssertionError, match=rf"(?s)^page:3: .*{complaint}"):
        Reader(desk, monkeypatch).read("page", [Fence(3, language, text)])
