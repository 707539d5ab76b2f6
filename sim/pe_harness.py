"""The hardware around a processing engine in simulation: players before its ports, and logs of what it answers."""

from amaranth import unsigned
from amaranth.hdl import Cat
from amaranth.lib.wiring import Out, connect

from tilewright.hw.bus.axi4_lite import AccessLayout
from tilewright.hw.pe.layouts import (
    INSTRUCTION_BITS,
    FaultLayout,
    PageWriteLayout,
    SegmentWriteLayout,
)
from tilewright.hw.smem.layouts import BarrierResultLayout
from tilewright.hw.smem.params import BANKS, CHUNK_BYTES

from .drivers import BarrierDriver, BarrierItemLayout, RegisterAnswerLayout, RegisterDriver
from .scripted import ScriptedHarness
from .testbench import Array

__all__ = ["PE_LOG_DEPTHS", "PE_SCRIPT_DEPTH", "PeHarness", "pe_log_entries", "pe_script_items"]

#: Items of each player's script.
PE_SCRIPT_DEPTH = 1 << 14
PE_LOG_DEPTHS = dict.fromkeys(
    ("instructions", "segments", "pages", "barriers", "registers", "accepted", "halts"), PE_SCRIPT_DEPTH
)


def pe_script_items(params):
    """Shape of an item of each port's script."""
    return {
        "instructions": unsigned(INSTRUCTION_BITS),
        "segments": SegmentWriteLayout(params),
        "pages": PageWriteLayout(params),
        "barriers": BarrierItemLayout(params.smem),
        "registers": AccessLayout(),
    }


def pe_log_entries(params):
    """Shape of an entry of each log, without its cycle. An instruction is complete when it has reported."""
    return {
        "instructions": FaultLayout(params),
        "segments": unsigned(1),
        "pages": unsigned(1),
        "barriers": BarrierResultLayout(),
        "registers": RegisterAnswerLayout(),
        "accepted": unsigned(1),
        "halts": unsigned(1),
    }


class PeHarness(ScriptedHarness):
    """A :class:`~tilewright.hw.pe.subsystem.PeSubsystem` with all of its ports served.

    Parameters
    ----------
    dut : PeSubsystem
    params : PeParams
        Its parameters.

    Attributes
    ----------
    irq : Signal, out

    and those of :class:`~tilewright.sim.scripted.ScriptedHarness`.
    """

    def __init__(self, dut, params):
        self._dut = dut
        self._params = params
        super().__init__(
            pe_script_items(params),
            pe_log_entries(params),
            PE_LOG_DEPTHS,
            script_depth=PE_SCRIPT_DEPTH,
            first_stall=0,
            members={"irq": Out(1)},
        )

    def arrays(self):
        """Every memory that a session loads or dumps, by name."""
        arrays = {}
        for bank in range(BANKS):
            arrays[f"bank{bank}"] = Array(f"dut.smem.banks.bank{bank}", 8 * CHUNK_BYTES, self._params.smem.rows)
        for bank, parity in enumerate(("even", "odd")):
            path = f"dut.pe.core.registers.bank{bank}"
            arrays[f"{parity}_registers"] = Array(path, 32 * self._params.threads, self._params.regs // 2)
        return arrays | self.script_arrays()

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.submodules.dut = dut = self._dut
        for port in ("instructions", "segments", "pages"):
            stream = getattr(dut, port)
            connect(m, player=self.players[port].o, dut=stream)
            if port == "instructions":
                self.log(m, "accepted", stream.valid & stream.ready, 0)
            else:
                self.log(m, port, stream.valid & stream.ready, 0)
        m.submodules.barrier_driver = barriers = BarrierDriver(self._params.smem)
        m.submodules.register_driver = registers = RegisterDriver(dut.s_axil.signature.addr_width)
        connect(m, player=self.players["barriers"].o, driver=barriers.i)
        connect(m, driver=barriers.requests, dut=dut.barriers)
        connect(m, dut=dut.barrier_results, driver=barriers.results)
        connect(m, player=self.players["registers"].o, driver=registers.i)
        connect(m, driver=registers.axi, dut=dut.s_axil)
        self.log(m, "barriers", barriers.answer_valid, barriers.answer)
        self.log(m, "registers", registers.answer_valid, registers.answer)
        self.log(m, "instructions", dut.fault_valid, Cat(dut.fault.as_value()))
        self.log(m, "halts", dut.halted, 0)
        m.d.comb += self.irq.eq(dut.irq)
        return m
