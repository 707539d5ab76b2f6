"""Registers in front of and behind the multipliers of an ECP5, taken into the multipliers.

A MULT18X18D has a register for each operand and one for the product. Yosys uses none of them.
"""

from collections import defaultdict

__all__ = ["absorb_registers"]

_OPERANDS = {name: tuple(f"{name}{i}" for i in range(18)) for name in "AB"}
_PRODUCT = tuple(f"P{i}" for i in range(36))
#: By the multiplier's register: its parameters, and which reset it has. None has an enable.
_REGISTERS = {"A": ("REG_INPUTA", 0), "B": ("REG_INPUTB", 1), "P": ("REG_OUTPUT", 2)}
#: Without an enable, reset to zero: what the registers of a multiplier do too, in whatever order they would look at an
#: enable and at the reset.
_PLAIN = {"CLKMUX": "CLK", "CEMUX": "1", "LSRMUX": "LSR", "SRMODE": "LSR_OVER_CE", "REGSET": "RESET", "GSR": "DISABLED"}


def absorb_registers(module):
    """Takes registers of operands and of products into multipliers, where nothing else reads what is between.

    Operands go together: of one alone nextpnr has no times. All bits of an operand, or of the product, must come from,
    or go to, registers with one clock and one reset, and without an enable. A register that several multipliers read
    becomes one in each.

    Parameters
    ----------
    module : dict
        A mapped netlist, as Yosys writes it with ``write_json``; is changed.
    """
    netlist = _Netlist(module)
    multipliers = {name: cell for name, cell in module["cells"].items() if cell["type"] == "MULT18X18D"}
    taken = {name: found for name, cell in multipliers.items() if (found := netlist.operands(cell))}
    while lost := [name for name, found in taken.items() if not netlist.read_by(found, taken)]:
        for name in lost:
            del taken[name]
    between = {register for found in taken.values() for names in found.values() for register in names.values()}
    for name, cell in multipliers.items():
        product = netlist.product(cell)
        if product and between.isdisjoint(product.values()) and netlist.alike({**taken.get(name, {}), "P": product}):
            taken.setdefault(name, {})["P"] = product
    for name, found in taken.items():
        for which, registers in found.items():
            _take(multipliers[name], which, {port: netlist.cells[register] for port, register in registers.items()})
    for name in {register for found in taken.values() for names in found.values() for register in names.values()}:
        del module["cells"][name]


class _Netlist:
    """Who drives a wire of a netlist, and who reads it: names of cells, and their ports."""

    def __init__(self, module):
        self.cells = module["cells"]
        self.drivers, self.readers = {}, defaultdict(list)
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                for bit in bits:
                    if cell["port_directions"][port] == "output":
                        self.drivers[bit] = name
                    else:
                        self.readers[bit].append((name, port))
        for port in module["ports"].values():
            for bit in port["bits"]:
                self.readers[bit].append((None, None))

    def operands(self, cell):
        """By operands: by ports the registers that they come from. None if one does not come from registers alone."""
        found = {}
        for operand, ports in _OPERANDS.items():
            wires = {port: cell["connections"][port][0] for port in ports}
            # A register is zero before its first clock, which a one is not.
            found[operand] = {port: self.drivers.get(wire) for port, wire in wires.items() if wire not in ("0", "x")}
        signs_stay = all(cell["connections"][f"SIGNED{operand}"][0] in ("0", "1") for operand in found)
        return found if signs_stay and self.alike(found) else None

    def read_by(self, found, multipliers):
        """Whether none but operands of ``multipliers`` read these registers."""
        names = {name for registers in found.values() for name in registers.values()}
        readers = [reader for name in names for reader in self.readers[self.cells[name]["connections"]["Q"][0]]]
        return all(reader in multipliers and port[0] in _OPERANDS for reader, port in readers)

    def product(self, cell):
        """By ports the registers that the product goes to. None if something else reads it."""
        found = {}
        for port in _PRODUCT:
            readers = self.readers[cell["connections"][port][0]]
            if readers:
                [(name, pin), *others] = readers
                if others or pin != "DI":
                    return None
                found[port] = name
        return found

    def alike(self, found):
        """Whether all of these are registers as a multiplier has them, with one clock, and a reset for each set."""
        clocks = set()
        for names in found.values():
            cells = [self.cells.get(name) for name in names.values()]
            if not cells or any(cell is None or cell["type"] != "TRELLIS_FF" for cell in cells):
                return False
            # What nothing resets has no mode.
            if any(
                cell["parameters"].get(name, value).strip() != value for cell in cells for name, value in _PLAIN.items()
            ):
                return False
            if len({_reset(cell) for cell in cells}) > 1:
                return False
            clocks.update(cell["connections"]["CLK"][0] for cell in cells)
        return len(clocks) == 1


def _reset(register):
    """The wire that resets it; "0" if nothing does."""
    return register["connections"].get("LSR", ["0"])[0]


def _take(multiplier, which, registers):
    """Has a multiplier use its register of an operand or of the product in place of ``registers``, cells by ports."""
    for port, register in registers.items():
        multiplier["connections"][port] = register["connections"]["Q" if which == "P" else "DI"]
    parameter, number = _REGISTERS[which]
    multiplier["parameters"] |= {
        f"{parameter}_CLK": "CLK0",
        f"{parameter}_CE": "CE0",
        f"{parameter}_RST": f"RST{number}",
        "GSR": "DISABLED",
        "RESETMODE": "SYNC",
    }
    # Of all of them the last one says it: they are alike.
    wires = {"CLK0": register["connections"]["CLK"][0], "CE0": "1", f"RST{number}": _reset(register)}
    for port, wire in wires.items():
        multiplier["connections"][port] = [wire]
        multiplier["port_directions"][port] = "input"
