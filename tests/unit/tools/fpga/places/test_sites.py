"""Which block memory and which multiplier goes where."""

from itertools import permutations

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.tools.fpga.boards import Scan
from tilewright.tools.fpga.mapping import map_flat
from tilewright.tools.fpga.nextpnr import run_nextpnr
from tilewright.tools.fpga.places import sites
from tilewright.tools.fpga.places.device import DEVICES
from tilewright.tools.fpga.places.objects import Objects
from tilewright.tools.fpga.places.sites import _Sites, give_places


def groups(add_cell, count, tables=40):
    """So many groups, each a memory with tables that read and address it, and read the memory of the group before."""
    cells, wire, before = {}, iter(range(100, 1 << 20)), ["0"] * 18
    for _ in range(count):
        addresses, outputs = [next(wire) for _ in range(13)], [next(wire) for _ in range(18)]
        for address, bit in zip(addresses, before, strict=False):
            add_cell(cells, "LUT4", {}, {"A": outputs[0], "B": bit}, {"Z": address})
        for number in range(tables - 13):
            pins = {"A": outputs[number % 18], "B": outputs[(number + 5) % 18]}
            add_cell(cells, "LUT4", {}, pins, {"Z": next(wire)})
        before = outputs
        inputs, values = ({f"{port}{i}": bit for i, bit in enumerate(bits)}
                          for port, bits in (("ADA", addresses), ("DOB", outputs)))  # fmt: skip
        add_cell(cells, "DP16KD", {}, inputs, values)
    for cell in cells.values():
        cell["attributes"] = {}
    return cells


def places(cells):
    return {name: cell["attributes"]["BEL"] for name, cell in cells.items() if "BEL" in cell["attributes"]}


def test_sites_are_chosen_at_the_least_length():
    rng = np.random.default_rng(5)
    pins = [0, 4, 5, 1, 6, 2, 7, 3, 4, 0, 7]
    objects = Objects(np.ones((2, 8)), np.array(pins), np.array([0, 3, 5, 7, 9]), {})
    for _ in range(10):
        at, found = rng.uniform(2, 40, (2, 8)), _Sites(objects, [0, 1, 2, 3], rng.uniform(2, 40, (2, 5)))

        def length(chosen, at=at, found=found):
            """Of all nets with a memory: none of them has two."""
            at = at.copy()
            at[:, :4] = found.places[:, list(chosen)]
            return sum(np.ptp(axis[net]) for axis in at for net in np.split(np.array(pins), [3, 5, 7, 9]))

        found.choose(at)
        assert length(found.chosen) == pytest.approx(min(map(length, permutations(range(5), 4))))


def test_memories_lie_beside_what_they_are_connected_to(add_cell, monkeypatch):
    """Groups in a row: their memories lie in that order, more or less, and nearer than in any order."""
    monkeypatch.setattr(sites, "_MANY", 10)
    cells = groups(add_cell, 40)
    give_places({"cells": cells}, "25k", 1)
    columns, names = DEVICES["25k"].sites("DP16KD")
    where = dict(zip(names, columns.T, strict=True))
    found = [where[site] for site in places(cells).values()]
    assert len(found) == len({tuple(place) for place in found}) == 40
    steps = np.abs(np.diff(found, axis=0)).sum(1).mean()
    shuffled = np.abs(np.diff(np.random.default_rng(1).permutation(found), axis=0)).sum(1).mean()
    print(f"from a group's memory to the next one's: {steps:.1f} columns and rows, in any order {shuffled:.1f}")
    assert steps < shuffled / 2


def test_few_or_too_many_get_no_places(add_cell, monkeypatch):
    cells = groups(add_cell, 20)
    give_places({"cells": cells}, "25k", 1)
    assert not places(cells)
    monkeypatch.setattr(sites, "_MANY", 10)
    cells = groups(add_cell, 57, tables=13)
    give_places({"cells": cells}, "25k", 1)
    assert not places(cells)
    cells = groups(add_cell, 20, tables=1500)
    give_places({"cells": cells}, "25k", 1)
    assert not places(cells)


class Products(wiring.Component):
    """Five products of what five memories hold."""

    i: In(18)
    o: Out(36)

    def elaborate(self, platform):
        m = Module()
        factor, total = self.i, 0
        for number in range(5):
            m.submodules[f"memory{number}"] = memory = Memory(shape=18, depth=1024, init=[])
            write, read = memory.write_port(), memory.read_port()
            product = Signal(36)
            m.d.comb += [write.addr.eq(self.i), write.data.eq(factor), write.en.eq(self.i[17]), read.en.eq(1)]
            m.d.comb += read.addr.eq(self.i[4:])
            m.d.sync += product.eq(read.data * self.i)
            factor, total = product[9:27], total ^ product
        m.d.sync += self.o.eq(total)
        return m


def test_nextpnr_knows_the_sites(monkeypatch, tmp_path):
    """It gives up where there is none of a name."""
    monkeypatch.setattr(sites, "_MANY", 10)
    mapped = map_flat(Scan(Products()), "ecp5", tmp_path)
    give_places(mapped.module, "25k", 1)
    assert len(places(mapped.module["cells"])) == 10
    mapped.write(tmp_path)
    used = run_nextpnr(tmp_path, device="25k", route=False).used
    assert (used["DP16KD"][0], used["MULT18X18D"][0]) == (5, 5)
    next(cell for cell in mapped.module["cells"].values() if cell["type"] == "DP16KD")["attributes"]["BEL"] = (
        "X5/Y25/EBR0"
    )
    mapped.write(tmp_path)
    with pytest.raises(RuntimeError, match="nextpnr gave up"):
        run_nextpnr(tmp_path, device="25k", route=False)
