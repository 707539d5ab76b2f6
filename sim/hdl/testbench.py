"""A design in its testbench: Verilog that is made once, what goes in and out, and save files for waveforms."""

import hashlib
import importlib.metadata
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from amaranth.lib.wiring import In

from tilewright.files import built_once
from tilewright.progress import report

from .build import CACHE
from .verilog import conventional_ports, hierarchical_name, to_verilog
from .word_array import WORD_ARRAY

__all__ = ["FLAGS", "HALF_PERIOD", "OWN_STATUSES", "RESET_CYCLES", "TOP", "Array", "Design", "cached_design",
           "gtkwave_file", "kept_text", "make_design", "surfer_file", "write_save_files"]  # fmt: skip

#: Formats of GTKWave, as bits of its flags: binary, hexadecimal and signed decimal numbers, at the right.
_BINARY, _HEXADECIMAL, _SIGNED = 0x28, 0x22, 0x424
_GROUP_BEGIN, _GROUP_END = 0x800200, 0x1000200


def gtkwave_file(waveform, groups):
    """The text of a save file of GTKWave (``.gtkw``).

    Parameters
    ----------
    waveform : Path
    groups : dict of str to dict of str to (int, bool)
        By the name of a group its signals: hierarchical name, bits, and whether it is signed.
    """
    lines = [f'[dumpfile] "{Path(waveform).resolve()}"', "[timestart] 0"]
    for group, signals in groups.items():
        lines += [f"@{_GROUP_BEGIN:x}", f"-{group}"]
        for name, (width, signed) in signals.items():
            form = _BINARY if width == 1 else _SIGNED if signed else _HEXADECIMAL
            lines += [f"@{form:x}", name if width == 1 else f"{name}[{width - 1}:0]"]
        lines += [f"@{_GROUP_END:x}", f"-{group}"]
    return "\n".join(lines) + "\n"


def surfer_file(groups):
    """The text of a command file of Surfer (``.sucl``); arguments are those of :func:`gtkwave_file`."""
    lines = []
    for group, signals in groups.items():
        lines += [f"divider_add {group}", *(f"variable_add {name}" for name in signals)]
    return "\n".join([*lines, "zoom_fit"]) + "\n"


def write_save_files(waveform, groups):
    """Writes both beside a waveform, with its name and their suffixes; nothing if there is no group."""
    if groups:
        path = Path(waveform)
        path.with_suffix(".gtkw").write_text(gtkwave_file(path, groups), encoding="utf-8")
        path.with_suffix(".sucl").write_text(surfer_file(groups), encoding="utf-8")


#: Name of the module.
TOP = "testbench"

#: Nanoseconds of half a clock cycle.
HALF_PERIOD = 5
#: Cycles for which a reset is held.
RESET_CYCLES = 4
#: Numbers that precede the controls on a line.
FLAGS = ("reset", "start", "limit", "drain")
#: Numbers that precede the statuses in an answer.
OWN_STATUSES = ("cycles", "finished")
#: Ports of the harness that the bench drives or reads itself.
_OWN = ("start", "finished")

_STDIN = "32'h8000_0000"


@dataclass(frozen=True)
class Array:
    """A memory of the harness that can be loaded and dumped.

    Attributes
    ----------
    path : str
        Its hierarchical name, seen from the harness.
    width : int
        Bits of a word, a multiple of 8.
    depth : int
        Words.
    """

    path: str
    width: int
    depth: int


@dataclass(frozen=True)
class Design:
    """A design that can be built, and what an exchange with it consists of, in the order of the line.

    Attributes
    ----------
    verilog : str
        All of it.
    controls, statuses : dict of str to int
        Inputs and outputs of the harness, with their widths.
    arrays : dict of str to Array
    signals : dict of str to dict of str to (int, bool)
        What a waveform is looked at for, in groups: names seen from the harness, bits, and whether it is signed.
    """

    verilog: str
    controls: dict[str, int]
    statuses: dict[str, int]
    arrays: dict[str, Array]
    signals: dict[str, dict[str, tuple[int, bool]]] = field(default_factory=dict)


def make_design(harness, arrays):
    """Makes a design that can be built and run.

    Parameters
    ----------
    harness : amaranth.lib.wiring.Component
        Its inputs become controls, its outputs statuses. Input ``start`` is high in the first cycle of an exchange that
        starts; output ``finished`` ends the exchange, from the cycle after that on.
    arrays : dict of str to Array

    Returns
    -------
    Design
    """
    directions = {"_".join(map(str, path)): member.flow for path, member, _ in harness.signature.flatten(harness)}
    widths = {name: len(value) for name, (value, _) in conventional_ports(harness).items() if name not in _OWN}
    controls = {name: width for name, width in widths.items() if directions[name] == In}
    statuses = {name: width for name, width in widths.items() if directions[name] != In}
    verilog = to_verilog(harness, "harness") + WORD_ARRAY
    arrays = {
        name: replace(array, path=hierarchical_name(verilog, "harness", array.path)) for name, array in arrays.items()
    }
    text = verilog + _module(controls, statuses, arrays)
    return Design(text, controls, statuses, arrays)


def _module(controls, statuses, arrays):
    declarations, ports, scans, loads, dumps = [], [], [], [], []
    for name, width in controls.items():
        declarations.append(f"reg [{width - 1}:0] {name} = 0;")
        ports.append(f".{name}({name})")
        scans.append(name)
    for name, width in statuses.items():
        declarations.append(f"wire [{width - 1}:0] {name};")
        ports.append(f".{name}({name})")
    for name, array in arrays.items():
        declarations.append(f"reg load_{name} = 0; reg [31:0] first_{name} = 0, after_{name} = 0;")
        scans += [f"load_{name}", f"first_{name}", f"after_{name}"]
        loads.append(f'if (load_{name}) $readmemh("{name}.load", dut.{array.path});')
        dumps.append(
            f"if (first_{name} != after_{name}) "
            f'$writememh("{name}.dump", dut.{array.path}, first_{name}, after_{name} - 1);'
        )
    return _TEMPLATE.format(
        declarations="\n  ".join(declarations),
        ports=", ".join([".clk(clk)", ".rst(reset_now)", ".start(start_now)", ".finished(finished)", *ports]),
        scans="\n      ".join(f'scanned = $fscanf({_STDIN}, "%h", {name});' for name in (*FLAGS[1:], *scans)),
        loads="\n      ".join(loads),
        dumps="\n      ".join(dumps),
        answer=f'$display("={" %h" * (len(OWN_STATUSES) + len(statuses))}", {", ".join([*OWN_STATUSES, *statuses])});',
        first=FLAGS[0],
        stdin=_STDIN,
        half=HALF_PERIOD,
        reset_cycles=RESET_CYCLES,
    )


_TEMPLATE = """
module testbench;
  reg clk = 0, reset_now = 0, start_now = 0;
  reg reset = 0, start = 0;
  reg [31:0] limit = 0, drain = 0, cycles = 0;
  wire finished;
  integer scanned;
  {declarations}

  harness dut ({ports});

  task tick;
    begin
      #{half} clk = 1;
      #{half} clk = 0;
    end
  endtask

  initial begin
`ifdef WAVES
    $dumpfile("waves.out");
    $dumpvars(0, testbench);
`endif
    scanned = $fscanf({stdin}, "%h", {first});
    while (scanned == 1) begin
      {scans}
      {loads}
      if (reset) begin
        reset_now = 1;
        repeat ({reset_cycles}) tick;
        reset_now = 0;
      end
      start_now = start;
      cycles = 0;
      while (cycles != limit && (cycles == 0 || !finished)) begin
        tick;
        start_now = 0;
        cycles = cycles + 1;
      end
      repeat (drain) tick;
      {dumps}
      {answer}
      $fflush;
      scanned = $fscanf({stdin}, "%h", {first});
    end
    $finish;
  end
endmodule
"""

#: Packages whose sources decide what a design is.
_PACKAGES = ("hw", "spec", "sim/harness", "sim/hdl", "board")
_TOOLS = ("amaranth", "pyosys")
_TEXT = "text"


def cached_design(make, *key):
    """The design that ``make()`` returns, or the same from an earlier call.

    Parameters
    ----------
    make : callable
        Returns a ``Design`` that depends on ``key``, the hardware and the harness alone.
    *key
        Values whose ``repr`` says all.

    Raises
    ------
    HostError
        If it cannot be kept; one sentence.
    """

    def text():
        report("elaboration")
        return json.dumps(asdict(make()))

    fields = json.loads(kept_text(text, "design", *key))
    fields["arrays"] = {name: Array(**array) for name, array in fields["arrays"].items()}
    return Design(**fields)


def kept_text(make, *key):
    """The text that ``make()`` returns, or has returned in an earlier call; who needs it at the same time waits.

    Parameters
    ----------
    make : callable
        Returns a text that depends on ``key``, the sources of the hardware and the tools that make Verilog alone.
    *key
        Values whose ``repr`` says all.

    Raises
    ------
    HostError
        If it cannot be kept; one sentence.
    """
    folder = CACHE.resolve() / "designs" / _content_key(*key)
    built_once(folder, lambda draft: (draft / _TEXT).write_text(make()))
    return (folder / _TEXT).read_text()


def _content_key(*key):
    """A word that is another one when ``key``, the sources of the hardware or a tool that makes Verilog is."""
    digest = hashlib.sha256(repr([*key, *map(importlib.metadata.version, _TOOLS)]).encode())
    for path in sorted(_sources()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _sources():
    root = Path(__file__).parents[2]
    return (path for package in _PACKAGES for path in (root / package).rglob("*.py"))
