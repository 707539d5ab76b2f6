"""A core that runs in a simulator: its engines, their memories, and what they report."""

from tilewright.hw.core import CORE_PRESETS, Core, core_regions
from tilewright.spec.conv import CONV_REGISTERS
from tilewright.spec.core import PROGRAM_REGISTERS
from tilewright.spec.names import suggestion
from tilewright.spec.pe import DATA_WORDS, PE_REGISTERS, Put
from tilewright.spec.tmau_registers import TMAU_REGISTERS

from ..harness.harness import Harness
from ..harness.records import core_records
from .memory import MemorySession, Transfers, model_words
from .run import CoreRun, ProgramRun, read_record
from .run import program_rows as start_rows
from .scripts import (
    barrier_rows,
    chosen,
    command_rows,
    job_rows,
    program_parts,
    program_rows,
    register_address,
    register_rows,
    table_order,
)
from .stillness import waits_of_program

__all__ = ["CoreSession"]

#: Registers of each engine.
_ENGINES = {"tmau": TMAU_REGISTERS, "pe": PE_REGISTERS, "conv": CONV_REGISTERS, "program": PROGRAM_REGISTERS}


class CoreSession(Transfers, MemorySession):
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

        def make_harness():
            tmau, program = params.tmau, params.program
            reads = program.bursts(tmau.bus_bytes, tmau.max_burst) if program else 0
            return Harness(Core(params), records, smem=params.smem, bus=tmau, bus_reads=reads, memory_words=words)

        super().__init__(
            make_harness, records, bus=params.tmau, memory_bytes=memory_bytes, key=("core", params, words),
            latency=latency, stall=stall, seed=seed, patience=patience, simulator=simulator, waves=waves,
        )  # fmt: skip

    def run(self, commands=(), *, program=(), segments=None, pages=None, jobs=(), barriers=(), registers=(),
            after=None, limit=None, drain=0, shared=None, memory=None, trace=False):  # fmt: skip
        """Issues what is given, each port by itself and back to back, and returns when all of it is complete.

        Page moves of the pager may be under way at the end.

        Parameters
        ----------
        commands, barriers, drain, shared, memory, trace
            As of ``TmauSession.run``.
        program, segments, pages, after, limit
            As of ``PeSession.run``.
        jobs : sequence of int
            As of ``ConvSession.run``; none if there is no convolution engine.
        registers : sequence of tuples
            Engine (``"tmau"``, ``"pe"``, ``"conv"`` or ``"program"``) and name of a register to read; or these, and
            the word to write.

        Returns
        -------
        CoreRun
            ``cycles``; of each command, instruction and job what a ``TmauRun``, a ``PeRun`` and a ``ConvRun`` have.

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        TypeError, ValueError, IndexError
            If an argument is wrong; then nothing was issued.
        """
        words, segments, pages, smem = program_parts(program, segments, pages, self.params.pe)
        scripts = program_rows(words, segments, pages, self.params.pe)
        scripts["commands"] = command_rows(commands)
        scripts["barriers"] = barrier_rows(barriers, len(self.shared_memory))
        scripts["registers"] = register_rows(registers, self._address, 3)
        rows = job_rows(jobs)
        if self.params.conv:
            scripts["jobs"] = rows
        elif rows:
            raise ValueError("jobs must be left out: the core has no convolution engine")
        options = {"after": table_order(after), "limit": limit, "drain": drain, "smem": smem}
        return self._collect(CoreRun, scripts, shared, memory, trace, **options)

    def run_program(self, address, words, *, window=None, watchdog=0, registers=(), limit=None, drain=0, shared=None,
                    memory=None, trace=False, progress=None):  # fmt: skip
        """Runs a program that lies in global memory, and returns when it is over.

        Parameters
        ----------
        address, words : int
            Where it lies, and how many words it has.
        window : (int, int) or None
            First and last byte that programs and instructions are confined to; None: they are not.
        watchdog : int
            Cycles that a word may take; 0: for ever.
        registers : sequence of tuples
            As of :meth:`run`: accesses that follow the start.
        limit, drain, shared, memory, trace
            As of :meth:`run`.
        progress : callable or None
            Called every 20,000 cycles with the number of words that have been carried out.

        Returns
        -------
        ProgramRun

        Raises
        ------
        SimulationError
            If there is no limit, and the program is not over in time.
        TypeError, ValueError, IndexError
            If an argument is wrong, or the core has no command processor; then nothing was run.
        """
        if not self.params.program:
            raise ValueError("the core has no command processor")
        rows = start_rows(address, words, window, watchdog, registers)
        scripts = {port: [] for port in self._records.items} | {"registers": register_rows(rows, self._address, 3)}
        told = progress and (lambda statuses: progress(statuses["words_count"]))
        options = {"after": table_order(None), "limit": limit, "drain": drain, "progress": told}
        return read_record(self, self._collect(ProgramRun, scripts, shared, memory, trace, **options))

    def _waits_of_programs(self):
        if self.params.program:
            base = core_regions(self.params)["program"].base
            yield from filter(None, [waits_of_program(self, self._peek, base)])

    def read_register(self, engine, name):
        """Value of a register, as an int."""
        return self.run(registers=[(engine, name)]).registers[0].data

    def write_register(self, engine, name, word):
        """Writes a register; returns nothing."""
        self.run(registers=[(engine, name, word)])

    def registers(self, engine):
        """Values of all registers of an engine that the hardware shows, by name."""
        return self._values(self._table(engine), engine)

    def _address(self, engine, name):
        offset = register_address(self._table(engine), name)
        return core_regions(self.params)[engine].base + offset

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

    def _table(self, engine):
        """Registers of an engine that is there."""
        there = [name for name in _ENGINES if name in core_regions(self.params)]
        if engine not in there:
            raise ValueError(f"the engine must be one of {', '.join(there)}, not {engine!r}{suggestion(engine, there)}")
        return _ENGINES[engine]
