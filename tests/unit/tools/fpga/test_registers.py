"""Registers around multipliers of an ECP5 become the multipliers' own: which do, and that results stay as they were."""

import random
from copy import deepcopy

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.tools.fpga.mapping import map_flat
from tilewright.tools.fpga.registers import absorb_registers

SEED = 20261129
USED = {"A": "REG_INPUTA_CLK", "B": "REG_INPUTB_CLK", "P": "REG_OUTPUT_CLK"}


class Product(wiring.Component):
    """Two products with a factor in common, with registers in front of them and behind."""

    def __init__(self, *, enabled=False, cleared=False, shown=False, summed=False):
        self.enabled, self.cleared, self.shown, self.summed = enabled, cleared, shown, summed
        super().__init__({"a": In(signed(8)), "b": In(signed(8)), "c": In(signed(8)), "go": In(1), "o": Out(48)})

    def elaborate(self, platform):
        m = Module()
        a, b, c = (Signal(signed(8), name=name, reset_less=True) for name in "abc")
        products = [Signal(signed(16), name=f"product{n}", reset_less=True) for n in range(2)]
        with m.If(self.go if self.enabled else 1):
            m.d.sync += [products[0].eq(a * c), products[1].eq(b * c)]
        m.d.sync += [a.eq(self.a), b.eq(self.b), c.eq(self.c)]
        if self.cleared:
            with m.If(self.go):
                m.d.sync += a.eq(0)
        m.d.comb += self.o.eq(products[0])
        m.d.comb += self.o[16:32].eq(products[1])
        if self.shown:
            m.d.comb += self.o[32:40].eq(c)
        if self.summed:
            m.d.comb += self.o[32:].eq(a * c + 1)
        return m


@pytest.mark.parametrize(
    ("options", "left", "used"),
    [
        ({}, 0, ["ABP", "ABP"]),
        ({"cleared": True}, 0, ["ABP", "ABP"]),  # by a reset of its own
        ({"enabled": True}, 32, ["AB", "AB"]),
        ({"shown": True}, 24, ["P", "P"]),
        ({"summed": True}, 16, ["AB", "ABP"]),
    ],
)
def test_what_goes_into_multipliers(tmp_path, options, left, used):
    """A factor that two of them read becomes a register in each; what something else reads, or an enable, stays."""
    cells = map_flat(Product(**options), "ecp5", tmp_path).module["cells"].values()
    multipliers = [cell for cell in cells if cell["type"] == "MULT18X18D"]
    assert (
        sorted("".join(side for side, name in USED.items() if name in cell["parameters"]) for cell in multipliers)
        == used
    )
    assert sum(cell["type"] == "TRELLIS_FF" for cell in cells) == left


def netlist(add_cell, rng):
    """Three multipliers with registers around them that are alike more often than not, some of them read elsewhere."""
    cells, wires = {}, iter(range(100, 10_000))
    clocks, controls, results = [2, 3], [4, 5], []
    given = list(range(6, 40))

    def plan():
        """A kind of register, the same one for all bits of an operand or a product, but for one bit at times."""
        parameters = {"CLKMUX": "CLK", "CEMUX": "1 ", "GSR": "DISABLED", "LSRMUX": "LSR", "REGSET": "RESET"}
        pins = {"CLK": rng.choice(clocks) if rng.random() < 0.2 else 2}
        if rng.random() < 0.4:
            pins["LSR"] = rng.choice([*controls, "0"])
        if rng.random() < 0.15:
            parameters["CEMUX"], pins["CE"] = "CE", rng.choice(controls)
        if rng.random() < 0.1:
            parameters["REGSET"] = "SET"
        if "LSR" in pins:
            parameters["SRMODE"] = rng.choice(["LSR_OVER_CE"] * 9 + ["ASYNC"])
            parameters["LSRMUX"] = rng.choice(["LSR"] * 9 + ["INV"])
        return parameters, pins

    def register(source, kind):
        parameters, pins = kind
        wire = next(wires)
        add_cell(cells, "TRELLIS_FF", dict(parameters), pins | {"DI": source}, {"Q": wire})
        if rng.random() < 0.004:
            results.append(wire)
        return wire

    shared = [register(rng.choice(given), kind) for kind in [plan()] for _ in range(18)]
    unread = []
    for _ in range(3):
        pins = {"SIGNEDA": rng.choice("01"), "SIGNEDB": rng.choice("01")}
        for side in "AB":
            kind = plan()
            alike = [kind] * 17 + [kind if rng.random() < 0.9 else plan()]
            own = [rng.choice("0000001") if rng.random() < 0.02 else register(rng.choice(given), k) for k in alike]
            if unread and rng.random() < 0.3:  # from product to operand
                own = [register(unread.pop(), kind) for _ in range(min(len(unread), 18))]
                own += [own[-1]] * (18 - len(own))
            pins |= {f"{side}{i}": bit for i, bit in enumerate(shared if rng.random() < 0.3 else own)}
        product = {f"P{i}": next(wires) for i in range(rng.choice([8, 36]))}
        add_cell(cells, "MULT18X18D", {}, pins, product | {f"P{i}": next(wires) for i in range(len(product), 36)})
        kind = plan()
        if rng.random() < 0.3:
            unread += product.values()
        else:
            results += [register(wire, kind) if rng.random() < 0.997 else wire for wire in product.values()]
    results += unread
    ports = {"i": {"direction": "input", "bits": [2, 3, 4, 5, *given]}, "o": {"direction": "output", "bits": results}}
    return {"ports": ports, "cells": cells}


def run(module, steps):
    """What a netlist of registers and multipliers gives for values of its inputs: a clock beats where it is 1."""
    outputs, state = [], {}
    cells = module["cells"].items()
    for step in steps:
        known = {"0": 0, "1": 1, "x": 0} | step

        def read(cell, port, known=known):
            return known[cell["connections"].get(port, ["0"])[0]]

        def resets(cell, read=read):
            return read(cell, "LSR") ^ (cell["parameters"]["LSRMUX"] == "INV")

        for name, cell in cells:
            if cell["type"] == "TRELLIS_FF":
                at_once = cell["parameters"].get("SRMODE") == "ASYNC" and resets(cell)
                value = int(cell["parameters"]["REGSET"] == "SET") if at_once else state.get(name, 0)
                known[cell["connections"]["Q"][0]] = value
        then = {}
        for name, cell in cells:
            if cell["type"] == "MULT18X18D":
                factors, own = [], cell["parameters"]
                for side in "AB":
                    factor = sum(read(cell, f"{side}{i}") << i for i in range(18))
                    if USED[side] in own:
                        then[name, side] = clocked(cell, side, factor, state.get((name, side), 0), read)
                        factor = state.get((name, side), 0)
                    factors.append(factor - (factor >> 17 << 18) * read(cell, f"SIGNED{side}"))
                product = factors[0] * factors[1]
                if USED["P"] in own:
                    then[name, "P"] = clocked(cell, "P", product, state.get((name, "P"), 0), read)
                    product = state.get((name, "P"), 0)
                known |= {cell["connections"][f"P{i}"][0]: product >> i & 1 for i in range(36)}
        for name, cell in cells:
            if cell["type"] == "TRELLIS_FF":
                then[name] = state.get(name, 0)
                if (read(cell, "CLK") or cell["parameters"].get("SRMODE") == "ASYNC") and resets(cell):
                    then[name] = int(cell["parameters"]["REGSET"] == "SET")
                elif read(cell, "CLK") and (cell["parameters"]["CEMUX"] == "1 " or read(cell, "CE")):
                    then[name] = read(cell, "DI")
        outputs.append([known[bit] for bit in module["ports"]["o"]["bits"]])
        state = then
    return outputs


def clocked(cell, side, value, before, read):
    """What a register of a multiplier has after a step."""
    prefix, own = USED[side].removesuffix("_CLK"), cell["parameters"]
    if not read(cell, own[USED[side]]) or not read(cell, own[f"{prefix}_CE"]):
        return before
    return 0 if read(cell, own[f"{prefix}_RST"]) else value


def test_any_registers(add_cell):
    """Whatever is around multipliers, outputs are the same in each cycle from the first one on."""
    rng, used = random.Random(SEED), []
    for _ in range(60):
        module = netlist(add_cell, rng)
        made = deepcopy(module)
        absorb_registers(made)
        steps = [{bit: rng.getrandbits(1) for bit in module["ports"]["i"]["bits"]} for _ in range(12)]
        assert run(made, steps) == run(module, steps)
        for cell in made["cells"].values():
            if cell["type"] == "MULT18X18D":
                used.append("".join(side for side, name in USED.items() if name in cell["parameters"]))
    assert set(used) == {"", "AB", "P", "ABP"}
