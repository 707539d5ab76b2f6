"""The hardware around a TMAU in simulation: memory behind it, drivers before it, and logs of what happens."""

from amaranth.lib.wiring import In, Out, connect

from .memory_model import CHANNELS
from .ports import bus_members, memory_array, serve_bus, serve_commands, serve_processor, shared_memory_arrays
from .records import LOG_DEPTHS, PORTS, SCRIPT_DEPTH, log_entries, script_items
from .scripted import ScriptedHarness
from .stall import Stall

__all__ = ["TmauHarness"]

_FIRST_STALL = len(CHANNELS)  # numbers of stalls: the memory's first, then the drivers', then the consumer's


class TmauHarness(ScriptedHarness):
    """A ``TmauSubsystem`` with all of its ports served.

    Parameters
    ----------
    dut : TmauSubsystem
    params : TmauParams
        Its parameters.
    memory_words : int
        Bus words of global memory.

    Attributes
    ----------
    answer_stall : Signal, in
        Probability, in 256ths, of a pause before each answer of the consumer port.
    commands_done, … : Signal, out
        For commands, those that pulsed ``done_valid``.
    accepted_count, flips_count, requests_count, beats_count, write_requests_count, write_beats_count : Signal, out
        Entries of the other logs: commands accepted, barrier phases completed, AR, R, AW and W transfers.
    irq : Signal, out

    and those of ``ScriptedHarness`` and of
    ``bus_members``.
    """

    def __init__(self, dut, params, *, memory_words):
        self._dut = dut
        self._params = params
        self._memory_words = memory_words
        super().__init__(
            script_items(params),
            log_entries(params),
            LOG_DEPTHS,
            script_depth=SCRIPT_DEPTH,
            first_stall=_FIRST_STALL,
            members=bus_members(params) | {"answer_stall": In(8), "irq": Out(1)},
        )

    def arrays(self):
        """Every memory that a session loads or dumps, by name."""
        memory = memory_array(self._params, self._memory_words)
        return memory | shared_memory_arrays(self._params.smem) | self.script_arrays()

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.submodules.dut = dut = self._dut
        serve_bus(self, m, dut.m_axi, self._params, self._memory_words)
        serve_commands(self, m, dut)
        serve_processor(self, m, dut, self._params.smem)
        self._serve_reads(m)
        return m

    def _serve_reads(self, m):
        dut = self._dut
        m.submodules.answer_stall = stall = Stall(_FIRST_STALL + len(PORTS))
        connect(m, driver=self.drivers["reads"].o, dut=dut.reads)
        m.d.comb += [
            stall.probability.eq(self.answer_stall),
            stall.seed.eq(self.seed),
            stall.start.eq(self.start),
            dut.read_data.ready.eq(stall.go),
        ]
        self.log(m, "reads", dut.read_data.valid & dut.read_data.ready, dut.read_data.payload)
