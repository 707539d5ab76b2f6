"""What Yosys makes of components whose cells are known."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CORE_PRESETS, CoreParams, ProgramParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.tools.cli.main import main
from tilewright.tools.fpga import area
from tilewright.tools.fpga.area import Cost, cost
from tilewright.tools.fpga.blocks import (
    EACH_CORE,
    REDUCTIONS,
    cluster_blocks,
    conv_blocks,
    pe_blocks,
    program_blocks,
    tmau_blocks,
)


class Unanimity(wiring.Component):
    """Four inputs in one table, and a register of four bits.

    Arrays for ports have fields with the names that mappers give to bits, ``i[0]`` and ``o[0]``.
    """

    i: In(data.ArrayLayout(2, 4))
    o: Out(data.ArrayLayout(2, 2))
    all: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.all.eq(self.i.as_value()[:4].all())
        m.d.sync += [self.o[0].eq(self.i[1]), self.o[1].eq(self.i[2])]
        return m


def test_tables_flip_flops_and_levels():
    found = cost(Unanimity())
    assert found.luts == 1
    assert found.flip_flops == 4
    assert (found.memories, found.multipliers) == (0, 0)
    assert found.levels == 1


def test_costs_of_several():
    each = Cost(luts=10, flip_flops=4, memories=0, multipliers=3, levels=7)
    assert each.times(1.5) == Cost(luts=15, flip_flops=6, memories=0, multipliers=4, levels=7)


@pytest.mark.parametrize(
    ("blocks", "params", "named"),
    [
        (tmau_blocks, TMAU_PRESETS["unit"], REDUCTIONS),
        (pe_blocks, PE_PRESETS["default"], ["MacArray"]),
        (conv_blocks, CONV_UNIT_PRESETS["default"], ["Slave", "SumsReader"]),
        (cluster_blocks, ClusterParams(4, CoreParams(TMAU_PRESETS["default"]), L2Params()), [*EACH_CORE, "Lookup"]),
        (program_blocks, CORE_PRESETS["default"].replace(program=ProgramParams()), ["Dispatcher", "LineReader"]),
    ],
    ids=["tmau", "pe", "conv", "cluster", "program"],
)
def test_every_block_can_be_made(blocks, params, named):
    made = {name: make() for name, make in blocks(params).items()}
    assert set(named) <= set(made)
    kinds = {"MacArray": "DotRow"}  # the multipliers are a row of the dot product
    assert {name: type(block).__name__ for name, block in made.items()} == {
        name: kinds.get(name, name) for name in made
    }


def test_blocks_are_of_the_parameters_that_were_set(capsys, monkeypatch, tmp_path):
    """Without anything being mapped."""
    made = []
    monkeypatch.setattr(area, "cost", lambda component: made.append(component) or Cost(1, 1, 0, 0, 1))
    monkeypatch.setattr(area, "record", lambda *_, **__: pytest.fail("recorded"))
    options = ["--set", "pe.threads=8,smem.size_bytes=32768", "--engine", "pe", "--out", str(tmp_path / "area.json")]
    assert main(["area", "--preset", "unit", *options]) == 0
    out = capsys.readouterr().out
    assert out.startswith("pe, preset unit, pe.threads=8, smem.size_bytes=32768\n")
    assert "MacArray is 2 times what was mapped\n" in out
    params = PE_PRESETS["unit"].replace(threads=8, smem=SmemParams(32768))
    expected = {name: make() for name, make in pe_blocks(params).items()}
    assert {type(each).__name__: each.signature for each in made} == {
        type(each).__name__: each.signature for each in expected.values()
    }


def test_a_block_that_is_not_there(capsys):
    assert main(["area", "--preset", "unit", "--engine", "pe", "--block", "Setup"]) == 2
    assert capsys.readouterr().err.startswith("tilewright area: there is no block Setup: Decoder, Issue, ")
