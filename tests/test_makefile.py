"""The Makefile: what each target sets up, and variables that it would ignore. Nothing is installed here."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()

#: Stands in for Python: makes an environment whose pip notes what it is asked for, and fails while a file says so.
PYTHON = """#!/bin/bash
if [ "$1" = -c ]; then exit 0; fi
echo "$@" >> log
rm -rf .venv
mkdir -p .venv/bin
touch .venv/bin/python
cat > .venv/bin/pip <<'END'
#!/bin/bash
echo "pip ${@: -1}" >> log
[[ " $* " == *" --quiet "* ]] || echo "Collecting what nobody reads"
[ ! -e broken ]
END
cat > .venv/bin/tilewright <<'END'
#!/bin/bash
printf '[%s]' "$@" >> log
echo >> log
END
chmod +x .venv/bin/*
"""


@pytest.fixture
def make(tmp_path):
    """Runs make in a checkout, in a path with a space, whose Python is not one; returns new lines of its log."""
    folder = tmp_path / "a checkout"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "python").write_text(PYTHON)
    (folder / "python").chmod(0o755)

    def run(*arguments, status=0):
        """What is printed is left in ``run.printed``."""
        folder = run.folder
        (folder / "log").write_text("")
        command = ["make", *arguments, "PYTHON=./python"]
        # A make above this one would have it name its folder.
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        run.printed = done.stdout.splitlines()
        return (folder / "log").read_text().splitlines()

    run.folder = folder
    return run


NEW = "-m venv --clear .venv"


@pytest.mark.parametrize(
    ("target", "package"),
    [("sim", ".[sim]"), ("bench", ".[sim]"), ("verilog", "."), ("stages", "."), ("docs", ".[docs]"),
     ("fpga", ".[fpga]"), ("mutate", ".[dev]")],
)  # fmt: skip
def test_a_target_sets_up_what_it_needs(make, target, package):
    assert make(target) == [NEW, f"pip {package}", f"[{target}]"]
    assert make(target) == [f"[{target}]"], "once"


def test_a_set_up_is_one_line_above_what_the_target_prints(make):
    make("sim")
    assert make.printed == ["Setting up .venv/ (sim), once: packages are downloaded, which takes minutes."]
    make("sim")
    assert make.printed == []


def test_more_is_added_and_less_is_there(make):
    make("sim")
    assert make("verilog") == ["[verilog]"]
    assert make("docs") == ["pip .[docs]", "[docs]"]
    assert make("sim") == ["[sim]"]
    assert make("mutate") == ["pip .[dev]", "[mutate]"]
    for target in ("docs", "sim", "fpga", "stages"):
        assert make(target) == [f"[{target}]"]


def test_another_list_of_packages_brings_up_to_date(make):
    make("mutate")
    with (make.folder / "pyproject.toml").open("a") as file:
        file.write("# another\n")
    assert make("sim") == ["pip .[sim]", "[sim]"]
    assert make("mutate") == ["pip .[dev]", "[mutate]"], "the old one does not count"


def test_a_network_needs_more_than_other_workloads(make):
    assert make("sim", "W=gemm") == [NEW, "pip .[sim]", "[sim][--workload][gemm]"]
    assert make("sim", "W=network") == ["pip .[network]", "[sim][--workload][network]"]
    assert make("sim", "W=all") == ["[sim][--workload][all]"]
    assert make("sim", "W=system") == ["pip .[soc]", "[sim][--workload][system]"]
    make("mutate")
    assert make("sim", "W=all") == ["[sim][--workload][all]"]


def test_figures_of_stages_are_measured_although_a_test_fails(make):
    """There is no pytest in this environment: what comes after it takes hours, and is done. The target fails."""
    lines = make("stages", "FRESH=1", status=2)
    assert lines[:2] == [NEW, "pip .[dev]"]
    assert [re.match(r"\[(\w+)\]", line)[1] for line in lines[2:]] == [*["campaign"] * 5, *["mutate"] * 2, "stages"]


@pytest.mark.parametrize("before", [[], ["sim"]])
def test_an_interrupted_set_up_starts_again(make, before):
    for target in before:
        make(target)
    (make.folder / "broken").touch()
    make("mutate", status=2)
    (make.folder / "broken").unlink()
    assert make("sim") == [NEW, "pip .[sim]", "[sim]"]


def test_an_environment_without_its_python_is_made_again(make):
    make("mutate")
    (make.folder / ".venv/bin/python").unlink()
    (make.folder / ".venv/bin/python").symlink_to("/nowhere/python3.11")
    assert make("sim") == [NEW, "pip .[sim]", "[sim]"]
    assert make("sim") == ["[sim]"]


def test_an_environment_of_another_folder_is_made_again(make):
    """Its programs would run the sources there, or would not be found."""
    make("mutate")
    make.folder = make.folder.rename(make.folder.with_name("another"))
    assert make("sim") == [NEW, "pip .[sim]", "[sim]"]
    assert make("sim") == ["[sim]"]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["sim", "PRESET=unit", "SIM=icarus", "W=gemm"], "[sim][--preset][unit][--sim][icarus][--workload][gemm]"),
        (["sim", "W=network", "LAYERS=3"], "[sim][--workload][network][--layers][3]"),
        (["verilog", "OUT=my folder"], "[verilog][--out][my folder]"),
        (["verilog", "TOP=core", "ENGINES=tmau,conv"], "[verilog][--engines][tmau,conv][--top][core]"),
        (["verilog", "TOP=cluster", "CORES=4"], "[verilog][--cores][4][--top][cluster]"),
        (["silicon", "OUT=x.tar.gz"], "[silicon][pack][--out][x.tar.gz]"),
        (["bench", "ENGINE=pe"], "[bench][--engine][pe]"),
        (["explore"], "[explore][mover]"),
        (["campaign"], "[campaign][--hours][1]"),
        (
            ["campaign", "CASES=9", "SEED=2", "SCHEDULER=tcp://h:1"],
            "[campaign][--cases][9][--seed][2][--scheduler][tcp://h:1]",
        ),
        (
            ["explore", "SPACE=mine.toml", "SCHEDULER=tcp://host:8786"],
            "[explore][mine.toml][--scheduler][tcp://host:8786]",
        ),
        (["mutate", "BLOCK=steps"], "[mutate][--block][steps]"),
        (["fpga", "TOP=pe", "DEVICE=45k"], "[fpga][--top][pe][--device][45k]"),
    ],
)
def test_variables_become_options(make, arguments, options):
    assert make(*arguments)[-1] == options


@pytest.mark.parametrize(
    "arguments", ["sim TOP=pe", "sim w=gemm", "verilog W=gemm", "stages OUT=x", "help PRESET=unit"]
)
def test_a_variable_that_has_no_effect_is_refused(arguments):
    command = ["make", "--no-print-directory", *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    target, name = arguments.partition("=")[0].split()
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"Makefile:\d+: \*\*\* {target} takes no {name}\.  Stop\.\n", done.stderr)


def test_help_names_every_variable():
    """What a recipe reads, its line in `make help` names; only then is it taken."""
    used = set(re.findall(r"\$\(([A-Z]+)\)", MAKEFILE))
    ours = {"PYTHON", "BIN", "TILEWRIGHT", "SUM", "PLACE", "COMPILED", "CURDIR"}
    ours |= {"PLAIN", "SIMULATION", "NETWORK", "EXPLORATION", "SOC", "DOCUMENTATION", "FPGA", "DEVELOPMENT"}
    named = set(re.findall(r"\b([A-Z]+)=", " ".join(re.findall(r"## .*\[(.*)\]", MAKEFILE))))
    assert {name for name in used if not name.startswith("MAKE")} - ours == named
