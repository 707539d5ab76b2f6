"""Tables in front of the carry chains of an ECP5, taken into the chains.

Each bit of a chain has a table of four inputs, of which a sum or a difference needs two. So what chooses, masks or
inverts an operand fits into that table, and needs none of its own. ABC does not look into chains.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import permutations

__all__ = ["absorb_operands"]

_PINS = "ABCD"
#: A bit of a table's number that is set while input D is.
_D = 8


@dataclass(frozen=True)
class _Bit:
    """What a bit of a chain does with its inputs.

    Attributes
    ----------
    inputs : tuple of int
        Wires.
    passes : list of int
        For all values of ``inputs``, the first one in the lowest bit: 1 if the carry out is the carry in, and the sum
        its inverse. Else the sum is the carry in,
    makes : list of int
        and the carry out is this.
    """

    inputs: tuple
    passes: list
    makes: list

    @classmethod
    def of(cls, cell, half):
        """The one that a half of a CCU2C is."""
        pins = [cell["connections"][pin + half][0] for pin in _PINS]
        table = int(cell["parameters"][f"INIT{half}"], 2)
        entry = _entries(pins)
        # With C and D low the table is the carry, too.
        return cls(*_tabulated(pins, lambda values: (table >> entry(values) & 1, table >> (entry(values) & 3) & 1)))

    def with_table(self, wire, lut):
        """The same with what ``lut`` reads in place of ``wire``, which it drives, without what does not count."""
        pins = [lut["connections"][pin][0] for pin in _PINS]
        table, entry = int(lut["parameters"]["INIT"], 2), _entries(pins)

        def behind(values):
            known = values | {wire: table >> entry(values) & 1}
            value = sum(known[read] << i for i, read in enumerate(self.inputs))
            return self.passes[value], self.makes[value]

        return _Bit(*_tabulated([*(read for read in self.inputs if read != wire), *pins], behind))._without_idle()

    def _without_idle(self):
        for i in range(len(self.inputs)):
            pairs = [(value, value | 1 << i) for value in range(len(self.passes)) if not value >> i & 1]
            if all(
                self.passes[low] == self.passes[high] and (self.passes[low] or self.makes[low] == self.makes[high])
                for low, high in pairs
            ):
                kept = [[values[low] for low, _ in pairs] for values in (self.passes, self.makes)]
                return _Bit(self.inputs[:i] + self.inputs[i + 1 :], *kept)._without_idle()
        return self

    def fitted(self):
        """What pins A to D read, and the table; None if there is none that does it."""
        for order in permutations(range(4), len(self.inputs)):
            # With D high all the time C and D are never both low: what is there for the carry is for it alone.
            always = 0 if 3 in order else _D
            table = {}
            for value, (passes, makes) in enumerate(zip(self.passes, self.makes, strict=True)):
                entry = always | sum((value >> i & 1) << pin for i, pin in enumerate(order))
                if table.setdefault(entry, passes) != passes:
                    break
                if not passes and table.setdefault(entry & 3, makes) != makes:
                    break
            else:
                pins = ["0", "0", "0", "1" if always else "0"]
                for wire, pin in zip(self.inputs, order, strict=True):
                    pins[pin] = wire
                return pins, sum(bit << entry for entry, bit in table.items())
        return None


def _entries(pins):
    """From values of wires to the number of a table's entry."""
    return lambda values: sum((values[pin] if isinstance(pin, int) else pin == "1") << i for i, pin in enumerate(pins))


def _tabulated(pins, function):
    """The wires among ``pins``, and for all values of them both bits of ``function``."""
    wires = tuple(dict.fromkeys(pin for pin in pins if isinstance(pin, int)))
    results = [function({wire: value >> i & 1 for i, wire in enumerate(wires)}) for value in range(1 << len(wires))]
    return wires, *(list(bits) for bits in zip(*results, strict=True))


def absorb_operands(module):
    """Takes tables into the chains that alone read them.

    Parameters
    ----------
    module : dict
        A mapped netlist, as Yosys writes it with ``write_json``, behind :func:`~.carries.cut_ends`; is changed.
    """
    cells = module["cells"]
    readers, drivers = defaultdict(set), {}
    for port in module["ports"].values():
        for wire in port["bits"]:
            readers[wire].add(("", ""))
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            for wire in bits:
                if cell["port_directions"][port] == "input":
                    readers[wire].add((name, port))
                elif cell["type"] == "LUT4":
                    drivers[wire] = name
    # Those of few inputs first: they leave room for others.
    waiting = sorted(drivers, key=lambda wire: -len(_wires(cells[drivers[wire]])))
    while waiting:
        wire = waiting.pop()
        if wire not in drivers:
            continue
        ends = {(name, port[-1:]) for name, port in readers[wire]}
        if not ends or not all(half in tuple("01") and cells[name]["type"] == "CCU2C" for name, half in ends):
            continue
        table = cells[drivers[wire]]
        fitted = {end: _Bit.of(cells[end[0]], end[1]).with_table(wire, table).fitted() for end in ends}
        if None in fitted.values():
            continue
        for (name, half), (pins, entries) in fitted.items():
            connections = cells[name]["connections"]
            for pin, read in zip(_PINS, pins, strict=True):
                readers[connections[pin + half][0]].discard((name, pin + half))
                readers[read].add((name, pin + half))
                connections[pin + half] = [read]
            cells[name]["parameters"][f"INIT{half}"] = f"{entries:016b}"
        for pin in _PINS:
            readers[table["connections"][pin][0]].discard((drivers[wire], pin))
        # What drove the table may have no other reader than chains now.
        waiting += _wires(table)
        del cells[drivers.pop(wire)]


def _wires(table):
    return [wire for pin in _PINS for wire in table["connections"][pin] if isinstance(wire, int)]
