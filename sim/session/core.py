"""A core that runs in a simulator: programs, jobs and numpy arrays in; numpy arrays, errors and cycles out."""

from dataclasses import replace

import numpy as np

from tilewright.golden import gemm_program
from tilewright.golden.arguments import listed, truth
from tilewright.hw.core.params import CORE_PRESETS, ENGINES, core_params
from tilewright.hw.core.top import Core
from tilewright.spec.pe import DATA_WORDS, Put

from ..harness.harness import Harness
from ..harness.records import core_records
from ..hdl.settings import changed, groups_of, require_groups
from .events import Trace
from .memory import MemorySession, Transfers, model_words
from .run import RECORD_ACCESSES, Run, bus_fields, program_record, start_accesses
from .scripts import (
    RegisterMap,
    barrier_rows,
    chosen,
    command_rows,
    job_rows,
    probability,
    program_parts,
    program_rows,
    read_rows,
    shown_values,
    table_order,
    window,
)
from .stillness import waits_of_program

__all__ = ["LARGE", "NETWORK_BYTES", "Session", "accelerator_params", "open_accelerator"]

#: Bytes of memory for ResNet-50 with all of its tensors, and for smaller networks that share a simulator with it.
NETWORK_BYTES = 48 << 20
#: Presets for which ``open_accelerator`` takes that much, unless it is given another size.
LARGE = ("default", "full")

_BANKS = ("even_registers", "odd_registers")
_NAMES = {
    "tmau": "access unit",
    "pe": "processing engine",
    "conv": "convolution engine",
    "program": "command processor",
}


class Session(Transfers, MemorySession):
    """Owns a running simulation of a ``Core``, with whichever engines it has; a context manager.

    The first session of a configuration builds the simulator, which takes up to minutes; later ones start at once.
    Between runs registers, tables and memories keep what they hold.

    Parameters
    ----------
    preset : str
        Name in ``CORE_PRESETS``.
    engines : sequence of str
        What the core has: ``"tmau"``, the access unit; ``"pe"``, the processing engine; ``"conv"``, the convolution
        engine; ``"program"``, the command processor.
    params : CoreParams or None
        Instead of a preset and its engines.
    simulator : str
        ``"verilator"`` or ``"icarus"``.
    latency : int
        Cycles from a read address to its first data, and from the last written word to its response.
    stall : float
        Probability of a pause before each transfer of the bus, 0 to less than 1.
    seed : int
        Seed of all pauses.
    memory_bytes : int
        Bytes of global memory. It, ``latency`` and ``stall`` mean nothing without an access unit.
    waves : path or None
        Leave a waveform there when closed, ``.vcd`` or ``.fst``, with save files beside it.
    coverage : path or None
        Leave there when closed how often Verilator ran each statement; see ``code_coverage.py``.
    patience : int
        Cycles after which a run without a limit is given up.
    change : callable or None
        Returns the ``Design`` to build instead of the one that it is given.

    Attributes
    ----------
    params : CoreParams

    and those of ``MemorySession``.
    """

    def __init__(self, preset="default", engines=("tmau", "pe"), *, params=None, simulator="verilator", latency=100,
                 stall=0.0, seed=1, memory_bytes=16 << 20, waves=None, coverage=None, patience=4_000_000,
                 change=None):  # fmt: skip
        if chosen(CORE_PRESETS, preset, params) is not params:
            params = core_params(preset, listed("engines", engines))
        self.params = params
        self._registers = RegisterMap(params)
        words = model_words(params.tmau, memory_bytes) if params.tmau else 0
        records = core_records(params)

        def make_harness():
            return Harness(Core(params), records, memory_words=words)

        super().__init__(
            make_harness, records, smem=params.smem, bus=params.tmau, memory_bytes=memory_bytes,
            key=("core", params, words), latency=latency, stall=stall, seed=seed, patience=patience, change=change,
            simulator=simulator, waves=waves, coverage=coverage,
        )  # fmt: skip

    def configure(self, *, answer_stall=None, **surroundings):
        """Changes how the surroundings behave from the next run on; what is left out stays.

        Parameters
        ----------
        answer_stall : float
            Probability of a pause before each answer that the consumer takes; of a core without an engine that
            computes.
        **surroundings
            See ``MemorySession.configure``.
        """
        if answer_stall is not None:
            self.simulation.controls["answer_stall"] = probability(answer_stall)
        super().configure(**surroundings)

    def run(self, commands=(), *, program=(), segments=None, pages=None, jobs=(), reads=(), barriers=(), registers=(),
            after=None, limit=None, drain=0, preload=None, shared=None, memory=None, trace=False):  # fmt: skip
        """Issues what is given, each port by itself and back to back, and returns when all of it is complete.

        Page moves of the pager may be under way at the end.

        Parameters
        ----------
        commands : sequence of dict or int
            Fields of any of the formats in ``spec.FORMATS``, as :meth:`command` makes those of a tensor; or packed
            words, which are issued as they are. Dictionaries without a tag get their index. Enumerations by name or
            member. What the hardware refuses is in the result, and not an exception. Where several processors share the
            access unit, ``processor`` is a number in the upper bits of the tag.
        program : Program or sequence of int
            Instructions of the processing engine. A HALT at the end, as ``golden.gemm_program`` has it, makes sure that
            everything has been performed at the end. What ``golden.gemm_program`` returns brings its segments, pages
            and shared memory.
        segments, pages : dict of int to int
            Words of segments and page entries to be written first, by number.
        jobs : sequence of int
            Packed jobs of the convolution engine; ``golden.job_word`` and ``golden.ConvLayer`` make them.
        reads : sequence of sequences
            Reads of the consumer: byte addresses, multiples of 16, one a lane; None for a lane that does not read.
        barriers : sequence of tuples
            Operation (``"init"``, ``"arrive"``, ``"expect_tx"``, ``"complete_tx"``, ``"try_wait"``), address, value;
            and True to repeat it until it is done.
        registers : sequence of tuples
            A register to read: engine (``"tmau"``, ``"pe"``, ``"conv"`` or ``"program"``) and name, or only the name
            of a register of the first engine that there is, or a byte address; and behind it the word to write.
        after : dict of str to sequence of str
            Ports (``commands``, ``instructions``, ``segments``, ``pages``, ``jobs``, ``reads``, ``barriers``,
            ``registers``) that begin when others have finished. Instructions begin after segments and pages unless it
            says otherwise.
        limit : int or None
            Stop after this number of cycles, wherever things are; the next run then begins with a reset.
        drain : int
            Cycles to go on at the end.
        preload : uint8 array or None
            What shared memory begins with, from its first byte on; None leaves it as it is.
        shared, memory : bool or (int, int) or None
            Return all of shared or global memory, or a part: address, bytes.
        trace : bool
            Return all that passed on the bus; at most 16384 requests and 65536 beats of either direction.

        Returns
        -------
        Run
            ``cycles`` and ``span``; of each command, instruction and job when it was accepted, how and when it ended;
            the answers of reads, barriers and registers; ``shared`` and ``memory`` as asked for; ``product`` of a
            golden ``Program``.

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        TypeError, ValueError, IndexError
            If an argument is wrong; then nothing was issued.
        """
        size = len(self.shared_memory)
        scripts = {
            "commands": command_rows(commands, self.params.tmau.processors if self.params.tmau else 1),
            "jobs": job_rows(jobs),
            "reads": read_rows(reads, size),
            "barriers": barrier_rows(barriers, size),
            "registers": self._registers.rows(registers),
        }
        if self.params.pe:
            words, segments, pages, operands = program_parts(program, segments, pages, self.params.pe)
            scripts |= program_rows(words, segments, pages, self.params.pe)
            after = table_order(after)
            preload = operands if preload is None else preload
        elif program not in ((), []) or segments or pages:
            raise ValueError("program, segments and pages must be left out: the core has no processing engine")
        for port, engine in (("commands", "tmau"), ("jobs", "conv")):
            if scripts[port] and not getattr(self.params, engine):
                raise ValueError(f"{port} must be left out: the core has no {_NAMES[engine]}")
        if scripts["reads"] and "reads" not in self._records.items:
            raise ValueError("reads must be left out: shared memory is read by the engines of the core")
        scripts = {port: rows for port, rows in scripts.items() if port in self._records.items}
        run = self._collect(scripts, shared, memory, trace, after=after, limit=limit, drain=drain, smem=preload)
        if self.params.pe and operands is not None and run.finished:
            return replace(run, product=program.product(self.shared_memory.read(0, len(operands))))
        return run

    def multiply(self, a, b, type, c=None, **options):  # noqa: A002 - what the instruction calls it
        """Computes A × B, or C + A × B, on the processing engine, and returns the run; its ``product`` is the result.

        Arguments and errors are those of ``golden.multiply``, without the sizes, which are those of the hardware.

        Returns
        -------
        Run
            ``product``, an array of int32, uint32 or float32; ``span``, the cycles it took; ``faults``.
        """
        for name in ("sizes", "size_bytes"):
            if name in options:
                raise TypeError(f"{name} must be left out: the hardware has its own")
        self._require("pe")
        size_bytes = len(self.shared_memory)
        return self.run(program=gemm_program(a, b, type, c=c, sizes=self.params.pe, size_bytes=size_bytes, **options))

    def run_program(self, address, words, *, window=None, watchdog=0, registers=(), limit=None, drain=0, shared=None,
                    memory=None, trace=False, progress=None):  # fmt: skip
        """Runs a program that lies in global memory on the command processor, and returns when it is over.

        Parameters
        ----------
        address, words : int
            Where it lies, and how many words it has.
        window : (int, int) or None
            First and last byte that programs and instructions are confined to; None: they are not.
        watchdog : int
            Cycles that a word may take; 0: no limit.
        registers : sequence of tuples
            Accesses that follow the start: see :meth:`run`.
        limit, drain, shared, memory, trace
            See :meth:`run`.
        progress : callable or None
            Called every 20,000 cycles with the number of words that have been carried out.

        Returns
        -------
        Run
            With ``words``, ``ends`` and ``performed``, and if it is finished ``record`` and ``interrupt``.

        Raises
        ------
        SimulationError
            If there is no limit, and the program is not over in time.
        TypeError, ValueError, IndexError
            If an argument is wrong, or the core has no command processor; then nothing was run.
        """
        self._require("program")
        rows = self._registers.rows(
            [*start_accesses(address, words, window, watchdog), *listed("registers", registers)]
        )
        scripts = {port: [] for port in self._records.items} | {"registers": rows}
        count = progress and (lambda statuses: progress(statuses["words_count"]))
        run = self._collect(scripts, shared, memory, trace, after=table_order(None), limit=limit, drain=drain,
                            progress=count)  # fmt: skip
        if not run.finished:
            return run
        record, interrupt = program_record(self.run(registers=RECORD_ACCESSES).registers)
        return replace(run, record=record, interrupt=interrupt)

    def _collect(self, scripts, shared, memory, trace, **options):
        """The :class:`Run` of scripts, with the windows of both memories, and the trace, that are wanted."""
        trace = truth("trace", trace)
        if trace or (memory is not None and memory is not False):
            self._require("tmau")
        wanted = {"shared": (self.shared_memory, window("shared", shared, self.shared_memory))}
        if self.params.tmau:
            wanted["memory"] = self.global_memory, window("memory", memory, self.global_memory)
        dump = {}
        for backdoor, place in wanted.values():
            dump |= backdoor.windows(*place) if place else {}
        statuses, logs, arrays = self._run(scripts, trace=trace, dump=dump, **options)
        parts = {name: backdoor.assemble(arrays, *place) if place else None
                 for name, (backdoor, place) in wanted.items()}  # fmt: skip
        return Run.collect(
            logs,
            scripts.get("commands", ()),
            **bus_fields(statuses),
            **parts,
            trace=Trace.collect(logs) if trace else None,
        )

    def _require(self, engine):
        """ValueError if the core has no such engine."""
        if engine not in self.params.engines:
            raise ValueError(f"the core has no {_NAMES[engine]}")

    def _waits_of_programs(self):
        if self.params.program:
            yield from filter(None, [waits_of_program(self, self._peek, self._registers)])

    def read_register(self, *register):
        """Value of a register, named as for :meth:`run`, as an int."""
        return self.run(registers=[register]).registers[0].data

    def write_register(self, *register):
        """Writes a register, named as for :meth:`run`; the last argument is the word."""
        self.run(registers=[register])

    def registers(self, engine=None):
        """Values of all registers of an engine, or of the first one, that the hardware shows, by name."""
        engine = self.params.engines[0] if engine is None else engine
        table = self._registers.table(engine)
        answers = self.run(registers=[(engine, register.name) for register in table]).registers
        return shown_values(table, answers)

    @staticmethod
    def put(kind, index, word=0, *, address=0):
        """Accesses for ``registers`` of :meth:`run` that give ``word`` to the processing engine, or move a page.

        Refused while what was put before has not been accepted.

        Parameters
        ----------
        kind : Put
        index : int
            Index of the segment or the page entry.
        word : int
            The instruction, segment or page entry, or the packed command that moves the page.
        address : int
            Where PAGE_IN brings the page.
        """
        count = 0 if kind == Put.PAGE_DROP else DATA_WORDS
        words = [("pe", f"data{number}", word >> 32 * number & 0xFFFFFFFF) for number in range(count)]
        place = [("pe", "page_address", address)] if kind == Put.PAGE_IN else []
        return [*words, *place, ("pe", "put", kind | index << 16)]

    def write_registers(self, values):
        """Sets all registers of the threads behind the hardware's back: uint32, threads × regs."""
        self._require("pe")
        values = np.ascontiguousarray(values, np.uint32)
        shape = (self.params.pe.threads, self.params.pe.regs)
        if values.shape != shape:
            raise ValueError(f"the registers must have the shape {shape}, not {values.shape}")
        for parity, bank in enumerate(_BANKS):
            self.simulation.load(bank, 0, np.ascontiguousarray(values[:, parity::2].T).view(np.uint8))

    def read_registers(self):
        """All registers of the threads: uint32, threads × regs."""
        self._require("pe")
        _, arrays = self.simulation.exchange(dump=dict.fromkeys(_BANKS, (0, self.params.pe.regs // 2)))
        values = np.empty((self.params.pe.threads, self.params.pe.regs), np.uint32)
        for parity, bank in enumerate(_BANKS):
            values[:, parity::2] = np.ascontiguousarray(arrays[bank]).view(np.uint32).T
        return values


def accelerator_params(preset, settings=()):
    """The CoreParams of a preset with all engines and a command processor, with some parameters changed.

    UsageError if a setting is of none of them.
    """
    params = core_params(preset, ENGINES)
    require_groups(settings, groups_of(params))
    return changed(params, settings)


def open_accelerator(preset="default", settings=(), **options):
    """A ``Session`` of a core with all engines and a command processor, with memory for large networks if it is large.

    Parameters
    ----------
    preset : str
    settings : sequence of Setting
        Parameters that differ from the preset.
    **options
        See ``Session``.
    """
    if preset in LARGE:
        options = {"memory_bytes": NETWORK_BYTES} | options
    return Session(params=accelerator_params(preset, settings), **options)
