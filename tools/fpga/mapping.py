"""Maps a whole component, flattened, to the cells of an FPGA."""

import json
import resource
from dataclasses import dataclass
from pathlib import Path

from amaranth.hdl import Const

from tilewright.progress import report
from tilewright.sim.hdl.verilog import conventional_ports, run_yosys, to_rtlil

from .netlist import MARKS

__all__ = ["FAMILIES", "Mapped", "map_flat"]

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
    # A stream that is always ready has a constant for a port.
    ports = {name: port for name, port in conventional_ports(component).items() if not isinstance(port[0], Const)}
    report("elaboration")
    start = _seconds(resource.RUSAGE_SELF)
    (folder / "top.il").write_text(to_rtlil(component, "top", ports))
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
    module = json.loads((folder / "top.json").read_text())["modules"]["top"]
    return Mapped(module, elaborated - start, mapped - before)


def _seconds(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime
