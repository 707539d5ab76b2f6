"""A cluster that runs in a simulator: commands for each core in, memories and cycles out."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tilewright.golden import delivery_bits
from tilewright.golden.arguments import integer
from tilewright.hw.cluster.params import CLUSTER_PRESETS
from tilewright.hw.cluster.top import Cluster
from tilewright.hw.core import core_regions
from tilewright.hw.core.params import CoreParams
from tilewright.spec.cluster import CLUSTER_REGISTERS, L2_REGISTERS
from tilewright.spec.core import PROGRAM_REGISTERS
from tilewright.spec.tmau_registers import TMAU_REGISTERS, processor_registers

from ..harness.axi_channels import Rule, Wait
from ..harness.harness import ClusterHarness
from ..harness.records import READ_IDS, cluster_records
from .backdoor import SharedBackdoor
from .memory import MemorySession, model_words
from .run import (
    RECORD_REGISTERS,
    BarrierAnswer,
    CommandStamp,
    Fault,
    JobEnd,
    RegisterAnswer,
    carried_out,
    command_stamps,
    job_ends,
    pe_faults,
    program_record,
)
from .run import program_rows as start_rows
from .scripts import (
    barrier_rows,
    chosen,
    command_rows,
    program_parts,
    program_rows,
    register_address,
    register_rows,
    table_order,
    window,
)
from .stillness import waits_of_program

__all__ = ["ClusterRun", "ClusterSession", "CoreOfRun"]

_PORTS = ("commands", "barriers", "registers")
#: In the order in which they are looked at when a core is stopped: each hands something only to those behind it.
_ENGINES = ("program", "pe", "conv", "tmau")


@dataclass(frozen=True, kw_only=True)
class CoreOfRun:
    """What came out of one run of one core.

    Attributes
    ----------
    commands : list of CommandStamp
        In the order of issue.
    flips : list of (int, int)
        Cycle and barrier address of every phase that completed.
    barriers : list of BarrierAnswer
    registers : list of RegisterAnswer
    faults : list of Fault
        Of its instructions, in program order.
    halts : list of int
        Cycles in which its processing engine halted.
    jobs : list of JobEnd
        Of its convolution engine, in order.
    shared : ndarray or None
        The part of its shared memory that was asked for, at the end: uint8.
    words, ends, performed
        Of its program, as of a ``ProgramRun``.
    """

    commands: list[CommandStamp]
    flips: list[tuple[int, int]]
    barriers: list[BarrierAnswer]
    registers: list[RegisterAnswer]
    faults: list[Fault]
    halts: list[int]
    jobs: list[JobEnd]
    shared: np.ndarray | None
    words: list = ()
    ends: list = ()
    performed: list = ()


@dataclass(frozen=True, kw_only=True)
class ClusterRun:
    """What came out of one run of a ``ClusterSession``.

    Attributes
    ----------
    finished, cycles, irq
        As of every run.
    cores : list of CoreOfRun
    cache : list of RegisterAnswer
        Of registers of the second-level cache.
    data_beats, descriptor_beats, reducer_beats, write_beats : int
        Bus words read and written, by all cores. Reads of a second-level cache are data.
    violations : tuple of Rule
    late : tuple of Wait
        As of a ``TmauRun``.
    memory : ndarray or None
        The part of global memory that was asked for, at the end: uint8.
    records : list of ProgramRecord or None
        Of the program of each core: why it stopped; None if it came to its end, or there was none.
    """

    finished: bool
    cycles: int
    irq: bool
    cores: list[CoreOfRun]
    cache: list[RegisterAnswer]
    data_beats: int
    descriptor_beats: int
    reducer_beats: int
    write_beats: int
    violations: tuple
    late: tuple
    memory: np.ndarray | None
    records: list = ()

    def __repr__(self):
        issued = sum(len(core.commands) for core in self.cores)
        end = "finished" if self.finished else "stopped"
        return f"ClusterRun: {end} after {self.cycles} cycles; {issued} commands on {len(self.cores)} cores"


class ClusterSession(MemorySession):
    """Owns a running simulation of a ``Cluster``; a context manager.

    Parameters
    ----------
    preset : str
        Name in ``CLUSTER_PRESETS``.
    params : ClusterParams or None
        Instead of a preset.
    simulator, latency, stall, seed, memory_bytes, waves, patience
        As of a ``TmauSession``.

    Attributes
    ----------
    params : ClusterParams
    shared_memories : list of SharedBackdoor
        Of each core; ``shared_memory`` is that of core 0.

    and those of ``MemorySession``.
    """

    def __init__(self, preset="pair", *, params=None, simulator="verilator", latency=100, stall=0.0, seed=1,
                 memory_bytes=16 << 20, waves=None, patience=4_000_000):  # fmt: skip
        self.params = params = chosen(CLUSTER_PRESETS, preset, params)
        tmau = params.tmau
        self._registers = TMAU_REGISTERS + CLUSTER_REGISTERS + processor_registers(tmau.processors, tmau.has("windows"))
        words = model_words(tmau, memory_bytes)
        records = cluster_records(params)
        self._program = params.core.program if isinstance(params.core, CoreParams) else None

        def make_harness():
            reads = self._program.bursts(tmau.bus_bytes, tmau.max_burst) if self._program else 0
            return ClusterHarness(Cluster(params), records, memory_words=words, bus_reads=reads)

        super().__init__(
            make_harness, records, bus=params.tmau, memory_bytes=memory_bytes, key=("cluster", params, words),
            latency=latency, stall=stall, seed=seed, patience=patience, simulator=simulator, waves=waves,
        )  # fmt: skip

    def _shared_memories(self, smem):
        return [SharedBackdoor(self.simulation, smem.rows, f"core{core}_") for core in range(self.params.cores)]

    def run(self, commands=(), *, programs=(), barriers=(), registers=(), cache=(), after=None, limit=None, drain=0,
            shared=None, memory=None):  # fmt: skip
        """Issues what is given, each port of each core by itself, and returns when all of it is complete.

        Parameters
        ----------
        commands, barriers, registers : sequence of lists
            For each core what ``TmauSession.run`` takes; cores left out have nothing to do. Dictionaries of commands
            may have ``cores``: a mask or numbers of the cores in which their bytes land; and ``source_core``: number of
            the core whose shared memory is read. Operations on barriers may have a fifth entry, the number of the core
            that the barrier lies in.
        programs : sequence of (Program or sequence of int)
            For each core what ``PeSession.run`` takes, where it has a processing engine. Shared memory stays as it is:
            commands bring a Program's operands.
        cache : sequence
            Accesses to registers of the second-level cache, as of ``registers``.
        after : dict of str to sequence of str
            As there; the name of a port ends with the number of its core, as in ``commands0``.
        limit, drain, shared, memory
            As there; ``shared`` of each core.

        Returns
        -------
        ClusterRun

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        TypeError, ValueError, IndexError
            If an argument is wrong; then nothing was issued.
        """
        rows = {
            "commands": self._command_rows,
            "barriers": partial(barrier_rows, smem_bytes=len(self.shared_memory), most=5),
            "registers": self._register_rows,
        }
        given = {"commands": commands, "barriers": barriers, "registers": registers}
        scripts = {}
        for port in _PORTS:
            if len(given[port]) > self.params.cores:
                raise ValueError(f"{port} must be lists for {self.params.cores} cores, not {len(given[port])}")
            scripts |= {f"{port}{core}": rows[port](listed) for core, listed in enumerate(given[port])}
        if self.params.l2:
            scripts["cache"] = register_rows(cache, partial(register_address, L2_REGISTERS), 2)
        elif cache:
            raise ValueError("the cluster has no second-level cache")
        scripts |= self._program_rows(programs)
        order = {f"{port}{core}": tuple(f"{first}{core}" for first in firsts)
                 for core in range(len(programs)) for port, firsts in table_order(None).items()}  # fmt: skip
        at = window("memory", memory, self.global_memory)
        dump = self.global_memory.windows(*at) if at else {}
        place = window("shared", shared, self.shared_memory)
        for held in self.shared_memories if place else ():
            dump |= held.windows(*place)
        after = order if after is None else order | after if isinstance(after, dict) else after
        statuses, logs, arrays = self._run(scripts, dump=dump, after=after, limit=limit, drain=drain)
        return ClusterRun(
            finished=bool(statuses["finished"]),
            cycles=statuses["cycles"],
            irq=bool(statuses["irq"]),
            cores=[
                _core_of_run(logs, core, scripts, held.assemble(arrays, *place) if place else None)
                for core, held in enumerate(self.shared_memories)
            ],
            cache=[_register_answer(*stamped) for stamped in logs.stamped("cache", "data", "response")]
            if cache
            else [],
            **{f"{kind}_beats": statuses[f"{kind}_beats"] for kind in READ_IDS},
            write_beats=statuses["write_beats_count"],
            violations=tuple(Rule.decode(statuses["violations"])),
            late=tuple(Wait.decode(statuses["late"])),
            memory=self.global_memory.assemble(arrays, *at) if at else None,
        )

    def run_programs(self, programs, *, window=None, watchdog=0, limit=None, drain=0, shared=None, memory=None):
        """Runs programs that lie in global memory on the command processors, and returns when all of them are over.

        Parameters
        ----------
        programs : sequence of (int, int) or None
            For each core the address of its program and the number of words; None, or left out: it runs none.
        window : (int, int) or None
            First and last byte that programs and instructions are confined to; None: they are not.
        watchdog : int
            Cycles that a word may take; 0: for ever.
        limit, drain, shared, memory
            As of :meth:`run`.

        Returns
        -------
        ClusterRun
            With ``records``, if it is finished.

        Raises
        ------
        SimulationError
            If there is no limit, and a program is not over in time.
        TypeError, ValueError, IndexError
            If an argument is wrong, or cores have no command processor; then nothing was run.
        """
        if not self._program:
            raise ValueError("the cores have no command processor")
        base = core_regions(self.params.core)["program"].base
        place = {register.name: base + register.offset for register in PROGRAM_REGISTERS}
        starts = [start_rows(*program, window, watchdog, ()) if program else () for program in programs]
        writes = [[(place[name], word) for _, name, word in rows] for rows in starts]
        run = self.run(registers=writes, limit=limit, drain=drain, shared=shared, memory=memory)
        if not run.finished:
            return run
        reads = [[(place[name],) for name in RECORD_REGISTERS] if program else [] for program in programs]
        answers = [core.registers for core in self.run(registers=reads).cores]
        records = [program_record(answer.data for answer in each)[0] if each else None for each in answers]
        return replace(run, records=records)

    def _waits_of_programs(self):
        if self._program:
            base = core_regions(self.params.core)["program"].base
            for core in range(self.params.cores):
                yield from filter(None, [waits_of_program(self, self._peek, base, str(core))])

    def flush(self, first=None, last=None):
        """Brings what cores have written to global memory, if there is a second-level cache; that is empty then.

        With the addresses of a first and a last byte only lines that hold one of these leave it.
        """
        if self.params.l2:
            ends = {} if first is None else {"first": first, "last": last}
            halves = [(name, half, integer(name, at, 0) >> shift & 0xFFFF_FFFF)
                      for name, at in ends.items() for half, shift in (("lo", 0), ("hi", 32))]  # fmt: skip
            which = [(f"range_{name}_{half}", word) for name, half, word in halves]
            self.run(cache=[*which, ("control", 2 | 8 * bool(ends))])
            while self.run(cache=[("status",)]).cache[0].data:
                pass

    def cache_registers(self):
        """Values of all registers of the second-level cache, by name."""
        run = self.run(cache=[(register.name,) for register in L2_REGISTERS])
        return {register.name: answer.data for register, answer in zip(L2_REGISTERS, run.cache, strict=True)
                if not answer.response}  # fmt: skip

    def write_register(self, core, name, word):
        """Writes a register of a core's TMAU; returns nothing."""
        self.run(registers=[[]] * core + [[(name, word)]])

    def registers(self, core):
        """Values of all registers of a core's TMAU, by name."""
        table = self._registers
        run = self.run(registers=[[]] * core + [[(register.name,) for register in table]])
        pairs = zip(table, run.cores[core].registers, strict=True)
        return {register.name: answer.data for register, answer in pairs if not answer.response}

    def stop(self, core):
        """Stops a core: what it has begun comes to its end, and what waits is refused."""
        self.write_register(core, "stop", 1)
        for place in self._places("status"):
            while not self.run(registers=[[]] * core + [[(place,)]]).cores[core].registers[0].data & 1:
                pass

    def start(self, core):
        """Lets a core that was stopped take work again, as after a reset but for what the specification names."""
        clear = {"control": 3, "irq_status": 3, "irq_enable": 0}
        again = [(place, word) for name, word in clear.items() for place in self._places(name)]
        self.run(registers=[[]] * core + [[*again, ("control", 4), ("stop", 0)]])

    def _places(self, name):
        """Addresses of a register that all engines of a core have at one offset."""
        whole = isinstance(self.params.core, CoreParams)
        bases = (
            {engine: region.base for engine, region in core_regions(self.params.core).items()} if whole else {"tmau": 0}
        )
        return [bases[engine] + register_address(TMAU_REGISTERS, name) for engine in _ENGINES if engine in bases]

    def _program_rows(self, programs):
        """Rows of the processing engine of each core."""
        if programs and not isinstance(self.params.core, CoreParams):
            raise ValueError("programs must be left out: the cores have no processing engine")
        if len(programs) > self.params.cores:
            raise ValueError(f"programs must be lists for {self.params.cores} cores, not {len(programs)}")
        scripts = {}
        for core, program in enumerate(programs):
            rows = program_rows(*program_parts(program, None, None, self.params.core.pe)[:3], self.params.core.pe)
            scripts |= {f"{port}{core}": listed for port, listed in rows.items()}
        return scripts

    def _command_rows(self, commands):
        """Rows of commands, of which dictionaries may say who receives what they bring, and whose memory they read."""
        plain, delivery = [], []
        for command in commands:
            fields = dict(command) if isinstance(command, dict) else command
            named = [fields.pop(name, None) for name in ("cores", "source_core")] if isinstance(fields, dict) else ()
            delivery.append(delivery_bits(*named))
            plain.append(fields)
        rows = command_rows(plain, self.params.tmau.processors)
        for row, bits in zip(rows, delivery, strict=True):
            row["item"] |= bits
        return rows

    def _register_rows(self, registers):
        return register_rows(registers, partial(register_address, self._registers), 2)


def _core_of_run(logs, core, scripts, shared):
    return CoreOfRun(
        commands=command_stamps(logs, scripts.get(f"commands{core}", ()), core),
        flips=list(zip(logs.cycles(f"flips{core}").tolist(), logs.field(f"flips{core}").tolist(), strict=True)),
        barriers=[
            BarrierAnswer(bool(done), bool(error), cycle)
            for cycle, done, error in logs.stamped(f"barriers{core}", "done", "error")
        ],
        registers=[_register_answer(*stamped) for stamped in logs.stamped(f"registers{core}", "data", "response")],
        faults=pe_faults(logs, core) if f"halts{core}" in logs else [],
        halts=logs.cycles(f"halts{core}").tolist() if f"halts{core}" in logs else [],
        jobs=job_ends(logs, core) if f"jobs{core}" in logs else [],
        **(carried_out(logs, core) if f"words{core}" in logs else {}),
        shared=shared,
    )


def _register_answer(cycle, word, response):
    return RegisterAnswer(word, response, cycle)
