"""The hardware around a core in simulation: memory behind it, drivers before it, and logs of what happens."""

from amaranth.lib.wiring import Out

from .memory_model import CHANNELS
from .pe import PE_LOG_DEPTHS, PE_SCRIPT_DEPTH, pe_log_entries, pe_script_items
from .ports import (
    bus_members,
    memory_array,
    serve_bus,
    serve_commands,
    serve_instructions,
    serve_processor,
    shared_memory_arrays,
)
from .records import TRACES, log_entries, script_items
from .scripted import ScriptedHarness

__all__ = ["CORE_LOG_DEPTHS", "CORE_SCRIPT_DEPTH", "CoreHarness", "core_log_entries", "core_script_items"]

#: Items of each driver's script.
CORE_SCRIPT_DEPTH = PE_SCRIPT_DEPTH
CORE_LOG_DEPTHS = PE_LOG_DEPTHS | dict.fromkeys(("commands", "accepted", "flips"), CORE_SCRIPT_DEPTH) | TRACES


def core_script_items(params):
    """Shape of an item of each port's script."""
    return {"commands": script_items(params.tmau)["commands"]} | pe_script_items(params.pe)


def core_log_entries(params):
    """Shape of an entry of each log, without its cycle."""
    tmau = log_entries(params.tmau)
    del tmau["reads"]
    return tmau | pe_log_entries(params.pe)


class CoreHarness(ScriptedHarness):
    """A ``Core`` with all of its ports served.

    Parameters
    ----------
    dut : Core
    params : CoreParams
        Its parameters.
    memory_words : int
        Bus words of global memory.

    Attributes
    ----------
    irq : Signal, out

    and those of ``ScriptedHarness`` and of
    ``bus_members``.
    """

    def __init__(self, dut, params, *, memory_words):
        self._dut = dut
        self._params = params
        self._memory_words = memory_words
        super().__init__(
            core_script_items(params),
            core_log_entries(params),
            CORE_LOG_DEPTHS,
            script_depth=CORE_SCRIPT_DEPTH,
            first_stall=len(CHANNELS),
            members=bus_members(params.tmau) | {"irq": Out(1)},
        )

    def arrays(self):
        """Every memory that a session loads or dumps, by name."""
        memory = memory_array(self._params.tmau, self._memory_words)
        return memory | shared_memory_arrays(self._params.smem) | self.script_arrays()

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.submodules.dut = dut = self._dut
        serve_bus(self, m, dut.m_axi, self._params.tmau, self._memory_words)
        serve_commands(self, m, dut)
        serve_instructions(self, m, dut)
        serve_processor(self, m, dut, self._params.smem)
        return m
