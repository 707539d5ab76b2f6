"""Copies of drivers with many ends: how many there are, which ends each has, and that each is what it was made of."""

from collections import Counter

from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.sim.fpga.mapping import map_flat


class Word(wiring.Component):
    """A word that a table enables, or a choice, and a bit beside it; a register chooses what the word becomes."""

    def __init__(self, width, chosen=False):
        self.chosen = chosen
        super().__init__({"clock": In(1), "i": In(7), "words": In(2 * width), "o": Out(width), "other": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain(reset_less=True)
        enable = Signal()
        choice = Signal()
        word = Signal(len(self.o))
        bit = Signal()
        m.d.comb += [ClockSignal("sync").eq(self.clock), self.o.eq(word), self.other.eq(bit)]
        m.d.comb += enable.eq(self.i[3:].bit_select(self.i[:2], 1) if self.chosen else self.i[0] & self.i[1])
        m.d.sync += choice.eq(self.i[2])
        with m.If(enable):
            first, second = self.words[: len(word)], self.words[len(word) :]
            m.d.sync += [word.eq((first & choice.replicate(len(word))) ^ second), bit.eq(~bit)]
        return m


def drivers(cells, kind, port):
    """Of each wire that enters cells by such a port: the cell that drives it, and the names of the others."""
    entered = {}
    for name, cell in cells.items():
        if cell["type"] == kind and port in cell["connections"]:
            entered.setdefault(cell["connections"][port][0], []).append(name)
    made = {bit: name for name, cell in cells.items() for port, bits in cell["connections"].items()
            if cell["port_directions"][port] == "output" for bit in bits}  # fmt: skip
    return {made[bit]: ends for bit, ends in entered.items() if bit in made}


def test_each_copy_has_few_ends_and_what_is_no_word_has_its_own(tmp_path):
    cells = map_flat(Word(72), "ecp5", tmp_path, copies=True).module["cells"]
    enables = drivers(cells, "TRELLIS_FF", "CE")
    assert sorted(map(len, enables.values())) == [1, 24, 24, 24]
    [own] = [ends for ends in enables.values() if len(ends) == 1]
    assert own[0].startswith("other")
    # Copies are alike but for what they drive.
    assert len({str(cells[name] | {"connections": cells[name]["connections"] | {"Z": []}}) for name in enables}) == 1
    # The word's bits follow one another.
    for ends in enables.values():
        numbers = sorted(int(name.rsplit("_", 1)[1]) if name[-1].isdigit() else 0 for name in ends)
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_a_register_is_copied_too(tmp_path):
    cells = map_flat(Word(72), "ecp5", tmp_path, copies=True).module["cells"]
    choices = [name for name in cells if name.startswith("choice") and cells[name]["type"] == "TRELLIS_FF"]
    wires = [cells[name]["connections"]["Q"][0] for name in choices]
    ends = Counter(bit for cell in cells.values() for port, bits in cell["connections"].items()
                   if cell["port_directions"][port] == "input" for bit in bits if bit in wires)  # fmt: skip
    assert sorted(ends.values()) == [24, 24, 24]
    assert len({cells[name]["connections"]["DI"][0] for name in choices}) == 1


def test_a_multiplexer_is_copied_with_its_tables(tmp_path):
    cells = map_flat(Word(72, chosen=True), "ecp5", tmp_path, copies=True).module["cells"]
    enables = drivers(cells, "TRELLIS_FF", "CE")
    assert sorted(map(len, enables.values())) == [1, 24, 24, 24]
    joined = [cells[name]["connections"][port][0] for name in enables for port in ("ALUT", "BLUT")]
    assert {cells[name]["type"] for name in enables} == {"PFUMX"} and len(set(joined)) == 8


def test_few_ends_stay_together(tmp_path):
    cells = map_flat(Word(30), "ecp5", tmp_path, copies=True).module["cells"]
    assert [len(ends) for ends in drivers(cells, "TRELLIS_FF", "CE").values()] == [31]
