"""What golden has to know of hardware, against what registers of the hardware say: every preset, every engine."""

import numpy as np
import pytest

from tilewright.golden import Cluster, Conv, Core, Machine, Memory, Pe
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv.control import ConvControl
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS, ProgramParams
from tilewright.hw.core.params import CoreParams
from tilewright.hw.core.program.control import ProgramControl
from tilewright.hw.pe.control import Control as PeControl
from tilewright.hw.tmau.control import Control as TmauControl
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.session.golden_options import core_options, machine_options
from tilewright.spec.conv import CONV_REGISTERS
from tilewright.spec.core import PROGRAM_REGISTERS
from tilewright.spec.pe import MM_FAMILIES, PE_REGISTERS
from tilewright.spec.tmau_registers import FEATURES, TMAU_REGISTERS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import receive, send

SHOWN = ("params0", "params1", "params2", "params3", "features")
presets = pytest.mark.parametrize("preset", TMAU_PRESETS)
#: The smallest, and the one with the fewest features; the others are parts of what each engine shows alone.
two_presets = pytest.mark.parametrize(
    "preset",
    [name if name in ("unit", "lean") else pytest.param(name, marks=pytest.mark.long) for name in TMAU_PRESETS],
)


def built_with(component, registers, params):
    """Fields of the registers that say what a component was built with, as the component answers."""
    dut, fields = elaborated(component, params), {}

    async def testbench(ctx):
        for register in registers:
            if register.name in SHOWN:
                await send(ctx, dut.accesses.requests, [{"address": register.offset}])
                (answer,), _ = await receive(ctx, dut.accesses.answers, 1)
                assert not answer.error
                fields.update(register.format.unpack(answer.data))

    simulate(dut, testbench)
    return fields


def types(bits):
    return tuple(family for number, family in enumerate(MM_FAMILIES) if bits >> number & 1)


def check_machine(machine, fields):
    assert machine.bus_bytes == fields["bus_bytes"]
    assert machine.addr_width == fields["addr_width"]
    assert len(machine.smem) == fields["smem_bytes"]
    assert set(machine.features) == {name for name in FEATURES if fields[name]}


def check_pe(engine, fields):
    for name in ("threads", "regs", "factor_regs", "uniform_regs", "segments", "pages"):
        assert getattr(engine.sizes, name) == fields[name], name
    assert engine.registers.shape == (fields["threads"], fields["regs"])
    assert engine.sizes.types == types(fields["types"])
    assert len(engine.smem) == fields["smem_bytes"]


def check_conv(engine, fields):
    sizes = ("row_bytes", "slaves", "units", "results", "feature_rows", "weight_rows", "weight_bytes")
    for name in (*sizes, "rotation", "function_table", "zero_first"):
        assert getattr(engine.params, name) == fields[name], name
    assert engine.params.types == types(fields["types"])


@presets
def test_an_access_unit(preset):
    params = TMAU_PRESETS[preset]
    smem = np.zeros(params.smem.size_bytes, np.uint8)
    check_machine(Machine(Memory(64), smem, **machine_options(params)), built_with(TmauControl, TMAU_REGISTERS, params))


@two_presets
def test_an_access_unit_in_a_cluster(preset):
    params = ClusterParams(2, CoreParams(TMAU_PRESETS[preset]))
    smems = [np.zeros(params.smem.size_bytes, np.uint8) for _ in range(2)]
    fields = built_with(TmauControl, TMAU_REGISTERS, params.tmau)
    for core in Cluster(Memory(64), smems, **machine_options(params)).cores:
        check_machine(core, fields)


@two_presets
def test_a_core(preset):
    """With the convolution engine, and the shared memory that this one needs."""
    params = CORE_PRESETS[preset].replace(program=ProgramParams()).with_conv(CONV_UNIT_PRESETS[preset])
    core = Core(Memory(64), np.zeros(params.smem.size_bytes, np.uint8), **core_options(params))
    check_machine(core.tmau, built_with(TmauControl, TMAU_REGISTERS, params.tmau))
    check_pe(core.pe, built_with(PeControl, PE_REGISTERS, params.pe))
    check_conv(core.conv, built_with(ConvControl, CONV_REGISTERS, params.conv))
    fields = built_with(ProgramControl, PROGRAM_REGISTERS, params)
    shown = core.tmau.bus_bytes, core.tmau.addr_width, core.conv is not None, len(core.smem)
    assert shown == tuple(fields[name] for name in ("bus_bytes", "addr_width", "conv", "smem_bytes"))


@presets
def test_engines_alone(preset):
    pe, conv = CORE_PRESETS[preset].pe, CONV_UNIT_PRESETS[preset]
    check_pe(Pe(np.zeros(pe.smem.size_bytes, np.uint8), pe), built_with(PeControl, PE_REGISTERS, pe))
    smem = np.zeros(conv.smem.size_bytes, np.uint8)
    check_conv(Conv(smem, conv.conv), built_with(ConvControl, CONV_REGISTERS, conv))


def test_a_core_without_a_convolution_engine():
    params = CORE_PRESETS["unit"].replace(program=ProgramParams())
    core = Core(Memory(64), np.zeros(params.smem.size_bytes, np.uint8), **core_options(params))
    assert core.conv is None
    assert built_with(ProgramControl, PROGRAM_REGISTERS, params)["conv"] == 0
