"""Maps a whole component, flattened, to the cells of an FPGA."""

import json
import resource
from dataclasses import dataclass
from pathlib import Path

from amaranth.hdl import Const

from tilewright.progress import report
from tilewright.sim.hdl.verilog import conventional_ports, run_yosys, to_rtlil

from .carries import CHAINS, cut_ends, write_carries
from .multiplexers import COVER, UNCOVER, write_multiplexers
from .netlist import MARKS
from .operands import absorb_operands
from .registers import absorb_registers
from .resets import buffer_reset

__all__ = ["FAMILIES", "FREQUENCY", "Mapped", "map_flat"]

#: How Yosys maps, by families of devices. ``-noabc9`` of ``synth_ecp5`` has no effect any more.
FAMILIES = {
    "ecp5": "synth_ecp5 -top top",
    "xc7": "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf -top top",
}
#: Picoseconds of a wire between two tables: about what nextpnr finds on an ECP5. ``synth_ecp5`` has 300 for it. Then a
#: block memory is worth eight levels and not four, and what is not behind one is mapped for few tables, not few levels.
_WIRE = 900
#: MHz that are aimed at, unless others are asked for.
FREQUENCY = 100
#: Picoseconds of a cycle that registers and wires with many ends take. Yosys aims at the rest, and spends no tables on
#: what is faster.
_OVERHEAD = 3000
#: What ABC does: as by Yosys' own script, but with choices from all networks of ``&dch``, none of which ``&dc2`` has
#: changed before, and with two more rounds that look for less area: 6 % fewer tables.
_ABC = f"+&scorr;&sweep;&dch,-x;&if,-W,{_WIRE},-D,{{delay}},-F,2,-A,4;&mfs"
#: How gates are made: the command of the family, for an ECP5 with chains of our own.
_GATES = {
    "ecp5": [f"{FAMILIES['ecp5']} -run begin:map_gates", *CHAINS, f"{FAMILIES['ecp5']} -run map_gates:map_luts"],
    "xc7": [f"{FAMILIES['xc7']} -run begin:map_luts"],
}
#: How tables are made, where not as the command of the family does it: the same steps with another wire, and with
#: choices of four and eight beside them, for paths of so many picoseconds.
_TABLES = {
    "ecp5": [
        "techmap -map +/lattice/latches_map.v",
        *COVER,
        f"abc9 -W {_WIRE} -D {{delay}} -script {_ABC}",
        "clean",
        *UNCOVER,
    ],
    "xc7": [],
}
#: What names cells after wires, as ``tools/fpga/netlist.py`` needs it; ``synth_ecp5`` does it by itself.
_NAMES = {"ecp5": [], "xc7": ["autoname"]}


@dataclass(frozen=True)
class Mapped:
    """A component in cells.

    Attributes
    ----------
    netlist : dict
        As Yosys writes it with ``write_json``.
    elaboration, mapping : float
        Seconds of processor time.
    """

    netlist: dict
    elaboration: float
    mapping: float

    @property
    def module(self):
        """The component in the netlist."""
        return self.netlist["modules"]["top"]

    def write(self, folder):
        """Writes the netlist, ``top.json`` in ``folder``."""
        (Path(folder) / "top.json").write_text(json.dumps(self.netlist))


def map_flat(component, family, folder, target=FREQUENCY):
    """Elaborates and maps a component; leaves ``top.il`` and ``top.json``, the netlist, among others in ``folder``.

    Parameters
    ----------
    component : wiring.Component
    family : str
        Of :data:`FAMILIES`.
    folder : Path
        Is made.
    target : int
        MHz for which it is mapped, for an ECP5.

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
    # A stream that is always ready has a constant for a port.
    ports = {name: port for name, port in conventional_ports(component).items() if not isinstance(port[0], Const)}
    report("elaboration")
    start = _seconds(resource.RUSAGE_SELF)
    (folder / "top.il").write_text(to_rtlil(component, "top", ports))
    write_multiplexers(folder)
    write_carries(folder)
    report(f"Yosys, {family}")
    elaborated, before = _seconds(resource.RUSAGE_SELF), _seconds(resource.RUSAGE_CHILDREN)
    # Amaranth names wires after the fields of a port, as ``o[0]``: what the mappers call bit 0 of ``o`` too. Such wires
    # are names of what is there anyhow, and go first. The others go before tables are made: then the marks count.
    script = "\n".join([
        "read_rtlil top.il", "proc", "opt_clean -purge", MARKS,
        *_GATES[family],
        "setattr -set keep 1 t:$scopeinfo", "opt_clean -purge",
        *(step.format(delay=max(1_000_000 // target - _OVERHEAD, 1)) for step in _TABLES[family]),
        f"{FAMILIES[family]} -run {'map_cells' if _TABLES[family] else 'map_luts'}:",
        *_NAMES[family],
        "write_json top.json",
    ])  # fmt: skip
    run_yosys(folder, script, f"map it for {family}")
    mapped = _seconds(resource.RUSAGE_CHILDREN)
    found = Mapped(json.loads((folder / "top.json").read_text()), elaborated - start, mapped - before)
    if family == "ecp5":
        for change in (cut_ends, absorb_operands, absorb_registers, buffer_reset):
            change(found.module)
        found.write(folder)
    return found


def _seconds(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime
