"""A core that runs in a simulator: both engines, their memories, and what they report."""

from tilewright.golden.spec.pe.registers import DATA_WORDS, PE_REGISTERS, Put
from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS
from tilewright.hw.core import CORE_PRESETS, Core

from ..harness.harness import Harness
from ..harness.records import core_records
from .base import chosen
from .memory import MemorySession, model_words
from .run import CoreRun
from .scripts import AFTER_TABLES, barrier_row, command_rows, program_rows, register_row

__all__ = ["CoreSession"]


class CoreSession(MemorySession):
    """Owns a running simulation of a ``Core``; a context manager.

    The first session of a configuration builds the simulator, which takes minutes; later ones start at once.

    Parameters
    ----------
    preset : str
        Name in ``CORE_PRESETS``.
    params : CoreParams or None
        Instead of a preset.
    simulator : str
        ``"verilator"`` or ``"icarus"``.
    latency, stall, seed, memory_bytes, waves, patience
        As of a ``TmauSession``.

    Attributes
    ----------
    params : CoreParams

    and those of ``MemorySession``.
    """

    def __init__(self, preset="default", *, params=None, simulator="verilator", latency=100, stall=0.0, seed=1,
                 memory_bytes=16 << 20, waves=None, patience=4_000_000):  # fmt: skip
        self.params = params = chosen(CORE_PRESETS, preset, params)
        words = model_words(params.tmau, memory_bytes)
        records = core_records(params)
        core = Core(params)

        def make_harness():
            return Harness(core, records, smem=params.smem, bus=params.tmau, memory_words=words)

        super().__init__(
            make_harness, records, bus=params.tmau, memory_bytes=memory_bytes, key=("core", params, words),
            latency=latency, stall=stall, seed=seed, patience=patience, simulator=simulator, waves=waves,
        )  # fmt: skip
        self._addresses = {
            "tmau": {register.name: register.offset for register in TMAU_REGISTERS},
            "pe": {register.name: core.regions["pe"].base + register.offset for register in PE_REGISTERS},
        }

    def run(self, commands=(), *, program=(), segments=None, pages=None, barriers=(), registers=(), after=None,
            limit=None):  # fmt: skip
        """Issues what is given, each port by itself and back to back, and returns when all of it is complete.

        Page moves of the pager may be under way at the end.

        Parameters
        ----------
        commands : sequence of dict or int
            As of ``TmauSession.run``.
        program, segments, pages, barriers, after, limit
            As of ``PeSession.run``.
        registers : sequence of tuples
            Engine (``"tmau"`` or ``"pe"``) and name of a register to read; or these, and the word to write.

        Returns
        -------
        CoreRun

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        """
        scripts = program_rows(program, segments, pages)
        scripts["commands"] = command_rows(commands)
        scripts["barriers"] = [barrier_row(*operation) for operation in barriers]
        scripts["registers"] = [register_row(self._addresses[engine][name], *word) for engine, name, *word in registers]
        statuses, logs, _ = self._run(scripts, after=AFTER_TABLES | (after or {}), limit=limit)
        return CoreRun.collect(statuses, logs, scripts["commands"])

    def read_register(self, engine, name):
        """Value of a register."""
        return self.run(registers=[(engine, name)]).registers[0].data

    def put(self, kind, index, word=0, *, address=0):
        """Accesses for ``registers`` of :meth:`run` that hand ``word`` to the processing engine, or move a page.

        Refused while what was put before has not been taken.

        Parameters
        ----------
        kind : Put
        index : int
            Of the segment or the page entry.
        word : int
            The instruction, segment or page entry, or the packed command that moves the page.
        address : int
            Where PAGE_IN brings the page.
        """
        count = 0 if kind == Put.PAGE_DROP else DATA_WORDS
        words = [("pe", f"data{number}", word >> 32 * number & 0xFFFFFFFF) for number in range(count)]
        place = [("pe", "page_address", address)] if kind == Put.PAGE_IN else []
        return [*words, *place, ("pe", "put", kind | index << 16)]
