"""``docs/first-hour.md`` does what it says, block by block, on a copy of the tree; ``make sim`` is run elsewhere."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.fences import fences

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/first-hour.md"
BLOCKS = fences((ROOT / PAGE).read_text(encoding="utf-8"))
ROOMS = ("spec", "golden", "hw", "sim", "network", "verify", "tools", "board", "silicon", "tb")
FOLDERS = (*ROOMS, "tilewright", "tests", "docs")
CHECKER = doctest.OutputChecker()


@pytest.fixture
def tree(tmp_path):
    """A copy of the tree that is set up, and whose Python finds its own sources before the installed ones."""
    tree = tmp_path / "hour"
    tree.mkdir()
    for path in ROOT.iterdir():
        if path.name in FOLDERS:
            shutil.copytree(path, tree / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.is_file() and path.name != ".git":
            shutil.copy(path, tree)
    package = tree / "build" / "path" / "tilewright"
    package.mkdir(parents=True)
    for path in (*(tree / room for room in ROOMS), *(tree / "tilewright").glob("*.py")):
        (package / path.name).symlink_to(path)
    (tree / ".venv").mkdir()
    (tree / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    return tree


def run(tree, command, **options):
    """Runs a command line in the tree; returns its exit status and what it printed."""
    ours = {"PYTHONPATH": str(tree / "build" / "path"), "COLUMNS": "100"}
    kept = {name: value for name, value in os.environ.items() if not re.match("MAKE|MFLAGS|PYTEST|TILEWRIGHT", name)}
    done = subprocess.run(
        command, cwd=tree, env=kept | ours, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        **options,
    )  # fmt: skip
    return done.returncode, done.stdout


def shell(tree, text):
    for target in re.findall(r"^make (\w+)", text, re.MULTILINE):
        # What is set up counts as set up in this copy too.
        run(tree, ["make", "--touch", target])
    if text == "make sim\n":
        return run(tree, ["make", "-n", "sim"])
    return run(tree, ["bash", "-eo", "pipefail", "-c", text])


def apply(tree, text):
    return run(tree, ["git", "apply", "-"], input=text)


def python(tree, text):
    # -P: the folder tilewright of the tree is only a part of the package.
    return run(tree, [sys.executable, "-P", "-W", "error", "-c", text])


def seen(line, printed):
    """Whether a line of the page, in which ``...`` stands for anything, is one of those that were printed."""
    return any(CHECKER.check_output(f"{line}\n", f"{came}\n", doctest.ELLIPSIS) for came in printed.splitlines())


@pytest.mark.long
def test_every_step(tree):
    status, printed, steps = 0, "", {"sh": shell, "diff": apply, "python": python}
    for number, block in enumerate(BLOCKS):
        where = f"{PAGE}:{block.line}"
        if block.language == "output":
            missing = [line for line in block.text.splitlines() if not seen(line, printed)]
            assert not missing, f"{where}: {missing} in\n{printed}"
            continue
        status, printed = steps[block.language](tree, block.text)
        shown = BLOCKS[number + 1].text if BLOCKS[number + 1 : number + 2] else ""
        assert (status != 0) == ("FAILED" in shown), f"{where}: status {status}\n{printed}"

    waves = (tree / "build/waves/unit-pe-arithmetic-test_integers.py-test_any.vcd").read_text()
    sign = re.search(r"\$var wire 1 (\S+) common0 \$end", waves)[1]
    assert {f"0{sign}", f"1{sign}"} <= set(waves.splitlines())
    advice = re.search(
        r"^Open it in a viewer.*?\.$", (ROOT / PAGE).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    signals = re.findall(r"`([a-z_.]+[0-9a-z])`", advice[0].replace("top.dut", "dut"))
    assert len(signals) > 4
    for name in signals:
        assert re.search(rf"[ .\\]{re.escape(name)} ", waves), f"there is no signal {name}"


def test_changes_fit_the_sources(tree):
    """All of them, one after the other; pytest can still collect the changed tests."""
    wrong = "--- a/docs/pe.md\n+++ b/docs/pe.md\n@@ -1,1 +1,1 @@\n-# The coffee machine\n+# The engine\n"
    status, printed = apply(tree, wrong)
    assert status and "docs/pe.md" in printed
    changes = [block for block in BLOCKS if block.language == "diff"]
    for block in changes:
        status, printed = apply(tree, block.text)
        assert status == 0, f"{PAGE}:{block.line}: {printed}"
    files = sorted(
        {file for block in changes for file in re.findall(r"^\+\+\+ b/(tests/\S+)", block.text, re.MULTILINE)}
    )
    status, printed = run(tree, [".venv/bin/pytest", "-q", "--collect-only", *files])
    assert status == 0 and len(files) == 2, printed
