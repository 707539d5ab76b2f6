"""Yosys, in a process of its own: it prints every command, and ends the process on an error."""

import gc
import os
import re
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Const, Elaboratable, Instance, ResetSignal, Value, ValueCastable
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import In

from tilewright.processes import run_process
from tilewright.progress import report

__all__ = ["VerilogPlatform", "conventional_ports", "hierarchical_name", "run_yosys", "share_modules", "to_rtlil",
           "to_verilog", "yosys"]  # fmt: skip

_DIFFERS = "ABC: Networks are NOT EQUIVALENT"
_PROGRAM = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1])"


def yosys(folder, script):
    """Runs the lines of ``script`` in ``folder``; returns the ``CompletedProcess`` with all that was printed."""
    (Path(folder) / "make.ys").write_text(script + "\n")
    command = [sys.executable, "-c", _PROGRAM, "make.ys"]
    # Python finds another place where TMPDIR names none, and Yosys would not.
    return run_process(command, cwd=folder, env=os.environ | {"TMPDIR": tempfile.gettempdir()})


def run_yosys(folder, script, purpose):
    """Runs the lines of ``script`` in ``folder``.

    Raises
    ------
    RuntimeError
        If Yosys refuses, with its last words: "Yosys could not <purpose>: …". If ABC, which compares what it has made
        with what it was given, finds a difference: Yosys only prints that, and goes on.
    """
    done = yosys(folder, script)
    if done.returncode:
        raise RuntimeError(f"Yosys could not {purpose}: {(done.stderr.strip() or done.stdout.strip())[-500:]}")
    if _DIFFERS in done.stdout:
        raise RuntimeError(f"Yosys could not {purpose}: what ABC has made of it does something else")


_MODULE = re.compile(r"^module (?P<name>\\\S+|\w+)(?P<space> ?)(?P<body>\(.*?^endmodule\n)", re.MULTILINE | re.DOTALL)
#: An instance as Yosys writes it: module and instance on one line that ends with the parenthesis of the connections.
_INSTANCE = re.compile(r"^(?P<indent>  )(?P<module>\\\S+|\w+)(?P<rest> +(?:\\\S+|\w+) +\($)", re.MULTILINE)


def share_modules(verilog):
    """``verilog`` without modules that say the same as an earlier one; their instances become instances of that one.

    Modules say the same if their texts do, but for their own names and those of modules that say the same.
    """
    modules = {match["name"]: match["body"] for match in _MODULE.finditer(verilog)}
    kept = {name: name for name in modules}  # the module that stands for it

    def renamed(body):
        def instance(match):
            name = kept.get(match["module"], match["module"])
            return f"{match['indent']}{name}{match['rest']}"

        return _INSTANCE.sub(instance, body)

    while True:
        first = {}
        chosen = {name: first.setdefault(renamed(body), name) for name, body in modules.items()}
        if chosen == kept:
            break
        kept = chosen

    def rewritten(match):
        name = match["name"]
        return f"module {name}{match['space']}{renamed(match['body'])}" if kept[name] == name else ""

    # What separates modules goes with those that are dropped.
    return re.sub(r"\n{3,}", "\n\n", _MODULE.sub(rewritten, verilog))


_TIMESCALE = "`timescale 1ns/1ps\n"
# A plain ``write_verilog`` of Amaranth's RTLIL contains ``always @*``, with which Icarus Verilog may leave an output X
# as long as its inputs never change; ``proc`` turns them all into assignments. The passes after it more than halve the
# text, and nearly halve what Verilator makes of it: without ``pmuxtree`` each choice among several would be a function
# with a case. ``splitnets`` parts a vector where its bits come from different places, which would look like loops to
# Verilator; ``autoname`` calls what has no name after what it is connected to.
_SCRIPT = """read_rtlil {source}; proc
opt_expr; opt_merge; opt_muxtree; opt_reduce; opt_clean -purge
opt_dff -simple-dffe; opt_clean -purge; pmuxtree; opt_expr; splitnets -driver; opt_clean -purge; autoname
write_verilog -noattr {target}"""

#: The clock among the ports of a module of RTLIL.
_CLOCK = re.compile(r"^  wire width 1 input \d+ +\\clk$", re.MULTILINE)

# An ``initial`` block of assignments of zero to the words of one memory, from word 0 on.
_ZEROS = re.compile(
    r"  initial begin\n"
    r"(?:    (?P<name>\\\S+ |\w+)\[0\] = (?P<zero>\d+'[dh]0+);\n)"
    r"(?:    (?P=name)\[(?P<last>\d+)\] = (?P=zero);\n)+"
    r"  end\n"
)

# A member of a concatenation, three times or more; a name that is not plain ends with a space.
_REPEATS = re.compile(
    r"(?<=[{,] )(?P<member>(?:\\\S+ |[A-Za-z_]\w*)(?:\[\d+\])?|\d+'h\w+)(?:, (?P=member)(?=[,} ])){2,}"
)


def conventional_ports(component):
    """Ports of ``component`` by the names they get in Verilog: members joined by one underscore (``m_axi_araddr``).

    Returns
    -------
    dict of str to (Value, PortDirection)
        In the order of the signature.

    Raises
    ------
    ValueError
        If two members would get the same name.
    """
    ports = {}
    for path, member, value in component.signature.flatten(component):
        name = "_".join(map(str, path))
        if name in ports:
            raise ValueError(f"two ports of {type(component).__name__} would be called {name!r}")
        value = Value.cast(value) if isinstance(value, ValueCastable) else value
        ports[name] = (value, PortDirection.Input if member.flow == In else PortDirection.Output)
    return ports


class VerilogPlatform:
    """What components are elaborated for: they may use what only Verilog can express.

    Parameters
    ----------
    name : str
        Of the top module.

    Attributes
    ----------
    modules : list of str
        RTLIL of the modules that stand for components which are alike (``hw/lib/component.py``).
    """

    def __init__(self, name):
        self._name = name
        self._known = {}  # module and whether it has a clock, by class and parameters
        self.modules = []

    def instance(self, component, parameters):
        """An instance of the module of components of this class with these parameters, at the ports of this one."""
        # A stream that is always ready has a constant for a port.
        ports = {name: port for name, port in conventional_ports(component).items() if not isinstance(port[0], Const)}
        key = type(component), parameters
        if key not in self._known:
            # No submodule begins with a capital letter.
            name = f"{self._name}.{type(component).__name__}"
            name += str(sum(kind is type(component) for kind, _ in self._known) or "")
            text = rtlil.convert(component, name=name, platform=self, ports=ports, emit_src=False)
            self._known[key] = name, bool(_CLOCK.search(text))
            self.modules.append(text.replace("attribute \\top 1\n", "", 1))
        _note_used(component)  # or Amaranth complains of all but the first
        name, clocked = self._known[key]
        clocks = {"i_clk": ClockSignal(), "i_rst": ResetSignal()} if clocked else {}
        directions = {PortDirection.Input: "i", PortDirection.Output: "o"}
        return Instance(name, **clocks, **{f"{directions[way]}_{port}": value for port, (value, way) in ports.items()})


def _note_used(thing):
    """Tells Amaranth that it is meant if ``thing``, or a part that it made with itself, is never elaborated."""
    if isinstance(thing, list | tuple):
        for part in thing:
            _note_used(part)
    elif isinstance(thing, Elaboratable) and not thing._MustUse__used:
        thing._MustUse__used = True
        _note_used(list(vars(thing).values()))


def to_rtlil(component, name, ports, platform=None):
    """What Yosys reads: ``component`` elaborated, with these ports of :func:`conventional_ports`.

    With a ``VerilogPlatform`` its ``modules`` belong to it.
    """
    gc.disable()  # Elaboration makes millions of objects, and keeps them: searching for garbage takes 40 % of the time.
    try:
        return rtlil.convert(component, name=name, platform=platform, ports=ports, emit_src=False)
    finally:
        gc.enable()


def to_verilog(component, name):
    """Verilog text of ``component``, with a time scale; of modules that are alike the first stands for all.

    Parameters
    ----------
    component : amaranth.lib.wiring.Component
        One clock domain, ``sync``, whose clock and reset become the ports ``clk`` and ``rst``.
    name : str
        Name of the top module; the modules below are called ``name.…``.

    Raises
    ------
    RuntimeError
        If Yosys fails.
    """
    platform = VerilogPlatform(name)
    report("elaboration")
    text = to_rtlil(component, name, conventional_ports(component), platform)
    text = "".join([text, *platform.modules])
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        source, target = (Path(folder) / file for file in ("top.il", "top.v"))
        source.write_text(text)
        report("Verilog")
        run_yosys(folder, _SCRIPT.format(source=source.name, target=target.name), f"write Verilog of {name}")
        # The first line names the build of Yosys, which would make the same hardware look different elsewhere.
        text = _fold_repeats(_fold_zeros(target.read_text().partition("\n")[2].lstrip("\n")))
    return _TIMESCALE + share_modules(text)


def _fold_zeros(verilog):
    """Makes loops of the initial values of memories that are all zero; Yosys spells out every word."""

    def fold(match):
        name, last, zero = match["name"], match["last"], match["zero"]
        # A block with a name may have a variable of its own.
        return (
            f"  initial begin : zeros_{match.start()}\n    integer word;\n"
            f"    for (word = 0; word <= {last}; word = word + 1) {name}[word] = {zero};\n  end\n"
        )

    return _ZEROS.sub(fold, verilog)


def _fold_repeats(verilog):
    """Makes replications of what Yosys spells out, as the sign of an extended number; so Verilator makes one mask."""

    def fold(match):
        member = match["member"]
        return f"{{{(len(match[0]) + 2) // (len(member) + 2)}{{{member}}}}}"

    return _REPEATS.sub(fold, verilog)


# As Yosys lays its output out: a module, an instance, a memory each begin a line.
_IDENTIFIER = r"(\\\S+ |[A-Za-z_]\w*)"
_HIERARCHY_MODULE = re.compile(rf"^module {_IDENTIFIER} ?\(", re.MULTILINE)
_HIERARCHY_INSTANCE = re.compile(rf"^  {_IDENTIFIER} (?:#\([^;]*?\n  \) )?{_IDENTIFIER} ?\(\n", re.MULTILINE)
_MEMORY = re.compile(rf"^  reg \[[^]]+\] {_IDENTIFIER} ?\[[^]]+\];", re.MULTILINE)


def hierarchical_name(verilog, top, path):
    """The name, seen from inside the module ``top``, of what the source calls ``path``.

    A name that was already taken in its module has got a suffix: ``banks`` has become ``banks$102``.

    Parameters
    ----------
    verilog : str
        As ``to_verilog`` gives it; a memory may also lie in a handwritten module.
    path : str
        Names of submodules and then of a memory, joined by dots.

    Raises
    ------
    ValueError
        If there is no such thing.
    """
    *instances, memory = path.split(".")
    module, names = top, []
    for instance in instances:
        body = _body(verilog, module)
        candidates = {_bare(name): (_bare(kind), name) for kind, name in _HIERARCHY_INSTANCE.findall(body)}
        module, name = candidates[_find(instance, candidates, module)]
        names.append(name)
    memories = {_bare(name): name for name in _MEMORY.findall(_body(verilog, module))}
    return ".".join([*names, memories[_find(memory, memories, module)]])


def _body(verilog, module):
    begins = _begins(verilog)
    if module not in begins:
        raise ValueError(f"there is no module {module!r} in the Verilog")
    return verilog[begins[module] : verilog.index("\nendmodule", begins[module])]


# A bench looks for a dozen memories in the same text, which is long.
@lru_cache(maxsize=1)
def _begins(verilog):
    """Where the body of each module begins; the first one of a name counts."""
    matches = reversed(list(_HIERARCHY_MODULE.finditer(verilog)))
    return {_bare(match[1]): match.end() for match in matches}


def _bare(identifier):
    return identifier.removeprefix("\\").rstrip()


def _find(wanted, candidates, module):
    for name in candidates:
        if re.sub(r"\$\d+$", "", name) == wanted:
            return name
    raise ValueError(f"module {module!r} has no {wanted!r}, only {', '.join(sorted(candidates)) or 'nothing'}")
