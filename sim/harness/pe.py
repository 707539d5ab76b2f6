"""The hardware around a processing engine in simulation: drivers before its ports, and logs of what it answers."""

from amaranth import unsigned
from amaranth.lib.wiring import Out

from tilewright.hw.bus.axi4_lite import AccessLayout
from tilewright.hw.pe.layouts import INSTRUCTION_BITS, FaultLayout, PageWriteLayout, SegmentWriteLayout
from tilewright.hw.smem.layouts import BarrierResultLayout

from ..hdl.testbench import Array
from .drivers import BarrierItemLayout, RegisterAnswerLayout
from .ports import serve_instructions, serve_processor, shared_memory_arrays
from .scripted import ScriptedHarness

__all__ = ["PE_LOG_DEPTHS", "PE_SCRIPT_DEPTH", "PeHarness", "pe_log_entries", "pe_script_items"]

#: Items of each driver's script.
PE_SCRIPT_DEPTH = 1 << 14
PE_LOG_DEPTHS = dict.fromkeys(
    ("instructions", "segments", "pages", "barriers", "registers", "issued", "halts"), PE_SCRIPT_DEPTH
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
        "issued": unsigned(1),
        "halts": unsigned(1),
    }


class PeHarness(ScriptedHarness):
    """A ``PeSubsystem`` with all of its ports served.

    Parameters
    ----------
    dut : PeSubsystem
    params : PeParams
        Its parameters.

    Attributes
    ----------
    irq : Signal, out

    and those of ``ScriptedHarness``.
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
        arrays = shared_memory_arrays(self._params.smem)
        for bank, parity in enumerate(("even", "odd")):
            path = f"dut.pe.core.registers.bank{bank}"
            arrays[f"{parity}_registers"] = Array(path, 32 * self._params.threads, self._params.regs // 2)
        return arrays | self.script_arrays()

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.submodules.dut = self._dut
        serve_instructions(self, m, self._dut)
        serve_processor(self, m, self._dut, self._params.smem)
        return m
