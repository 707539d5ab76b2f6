"""A cluster that runs in a simulator: work for each core in, memories and cycles out."""

from dataclasses import replace
from itertools import zip_longest

from tilewright.golden import delivery_bits
from tilewright.golden.arguments import integer
from tilewright.hw.cluster.params import CLUSTER_PRESETS, ClusterParams
from tilewright.hw.cluster.top import Cluster
from tilewright.hw.core.params import ENGINES
from tilewright.spec.cluster import L2_REGISTERS

from ..harness.harness import ClusterHarness
from ..harness.records import cluster_records
from .backdoor import SharedBackdoor
from .core import accelerator_params
from .events import register_answers
from .memory import MemorySession, model_words
from .run import RECORD_ACCESSES, ClusterRun, CoreRun, bus_fields, program_record, start_accesses
from .scripts import (
    RegisterMap,
    barrier_rows,
    chosen,
    command_rows,
    program_parts,
    program_rows,
    register_rows,
    shown_values,
    table_order,
    window,
)
from .stillness import waits_of_program

__all__ = ["ClusterSession", "open_cluster"]

#: The order in which engines of a stopped core are looked at: each passes work only to those after it.
_STOPPING = ("program", "pe", "conv", "tmau")


class ClusterSession(MemorySession):
    """Owns a running simulation of a ``Cluster``; a context manager.

    Parameters
    ----------
    preset : str
        Name in ``CLUSTER_PRESETS``.
    params : ClusterParams or None
        Instead of a preset.
    simulator, latency, stall, seed, memory_bytes, waves, patience
        See ``Session``.

    Attributes
    ----------
    params : ClusterParams
    shared_memories : list of SharedBackdoor
        One a core; ``shared_memory`` is that of core 0.

    and those of ``MemorySession``.
    """

    def __init__(self, preset="pair", *, params=None, simulator="verilator", latency=100, stall=0.0, seed=1,
                 memory_bytes=16 << 20, waves=None, patience=4_000_000):  # fmt: skip
        self.params = params = chosen(CLUSTER_PRESETS, preset, params)
        self._registers = RegisterMap(params.core)
        words = model_words(params.tmau, memory_bytes)
        records = cluster_records(params)

        def make_harness():
            return ClusterHarness(Cluster(params), records, memory_words=words)

        super().__init__(
            make_harness, records, smem=params.smem, bus=params.tmau, memory_bytes=memory_bytes,
            key=("cluster", params, words), latency=latency, stall=stall, seed=seed, patience=patience,
            simulator=simulator, waves=waves,
        )  # fmt: skip

    def _shared_memories(self, smem):
        return [SharedBackdoor(self.simulation, smem.rows, f"core{core}_") for core in range(self.params.cores)]

    def run(self, commands=(), *, programs=(), barriers=(), registers=(), cache=(), after=None, limit=None, drain=0,
            shared=None, memory=None):  # fmt: skip
        """Issues what is given, each port of each core by itself, and returns when all of it is complete.

        Parameters
        ----------
        commands, barriers, registers : sequence of lists
            For each core what ``Session.run`` takes; cores left out have nothing to do. Dictionaries of commands may
            have ``cores``: a mask or numbers of the cores in which their bytes land; and ``source_core``: number of the
            core whose shared memory is read. Operations on barriers may have a fifth entry, the number of the core in
            whose shared memory the barrier lies.
        programs : sequence of (Program or sequence of int)
            For each core its ``program``. Shared memory stays as it is: commands bring a Program's operands.
        cache : sequence
            Accesses to registers of the second-level cache: a name, and the word to write.
        after : dict of str to sequence of str
            See ``Session.run``; the name of a port ends with the number of its core, as in ``commands0``.
        limit, drain, shared, memory
            See ``Session.run``; ``shared`` of each core.

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
        if programs and not self.params.core.pe:
            raise ValueError("programs must be left out: the cores have no processing engine")
        ports = {
            "commands": (commands, self._command_rows),
            "barriers": (barriers, lambda listed: barrier_rows(listed, len(self.shared_memory), most=5)),
            "registers": (registers, self._registers.rows),
            "programs": (programs, None),
        }
        scripts, order = {}, {}
        for port, (work, rows) in ports.items():
            if len(work) > self.params.cores:
                raise ValueError(f"{port} must be lists for {self.params.cores} cores, not {len(work)}")
            if rows:
                scripts |= {f"{port}{core}": rows(listed) for core, listed in enumerate(work)}
        for core, program in enumerate(programs):
            rows = program_rows(*program_parts(program, None, None, self.params.core.pe)[:3], self.params.core.pe)
            scripts |= {f"{port}{core}": listed for port, listed in rows.items()}
            order |= {f"{port}{core}": [f"{first}{core}" for first in firsts]
                      for port, firsts in table_order(None).items()}  # fmt: skip
        if self.params.l2:
            scripts["cache"] = register_rows(cache, L2_REGISTERS)
        elif cache:
            raise ValueError("the cluster has no second-level cache")
        at, place = window("memory", memory, self.global_memory), window("shared", shared, self.shared_memory)
        dump = self.global_memory.windows(*at) if at else {}
        for backdoor in self.shared_memories if place else ():
            dump |= backdoor.windows(*place)
        after = order if after is None else order | after if isinstance(after, dict) else after
        statuses, logs, arrays = self._run(scripts, dump=dump, after=after, limit=limit, drain=drain)
        cores = [
            CoreRun.collect(logs, scripts.get(f"commands{core}", ()), core,
                            shared=backdoor.assemble(arrays, *place) if place else None)
            for core, backdoor in enumerate(self.shared_memories)
        ]  # fmt: skip
        return ClusterRun(
            **bus_fields(statuses),
            cores=cores,
            cache=register_answers(logs, "cache"),
            memory=self.global_memory.assemble(arrays, *at) if at else None,
        )

    def _command_rows(self, commands):
        """Rows of commands; dictionaries may name receivers of the data, and the core whose memory is read."""
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

    def run_programs(self, programs, *, window=None, watchdog=0, limit=None, drain=0, shared=None, memory=None):
        """Runs programs that lie in global memory on the command processors, and returns when all of them are over.

        Parameters
        ----------
        programs : sequence of (int, int) or None
            For each core the address of its program and the number of words; None, or left out: it runs none.
        window, watchdog
            See ``Session.run_program``.
        limit, drain, shared, memory
            See :meth:`run`.

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
        if not self.params.core.program:
            raise ValueError("the cores have no command processor")
        starts = [start_accesses(*program, window, watchdog) if program else () for program in programs]
        run = self.run(registers=starts, limit=limit, drain=drain, shared=shared, memory=memory)
        if not run.finished:
            return run
        answers = self.run(registers=[RECORD_ACCESSES if program else () for program in programs]).cores
        return replace(run, records=[program_record(core.registers)[0] if program else None
                                     for core, program in zip_longest(answers, programs)])  # fmt: skip

    def _waits_of_programs(self):
        if self.params.core.program:
            for core in range(self.params.cores):
                yield from filter(None, [waits_of_program(self, self._peek, self._registers, str(core))])

    def flush(self, first=None, last=None):
        """Writes what cores have written to global memory, if there is a second-level cache, which is empty then.

        With the addresses of a first and a last byte only lines that hold one of these leave it.
        """
        if self.params.l2:
            ends = {} if first is None else {"first": first, "last": last}
            halves = [(f"range_{name}_{half}", integer(name, at, 0) >> shift & 0xFFFF_FFFF)
                      for name, at in ends.items() for half, shift in (("lo", 0), ("hi", 32))]  # fmt: skip
            self.run(cache=[*halves, ("control", 2 | 8 * bool(ends))])
            while self.run(cache=[("status",)]).cache[0].data:
                pass

    def cache_registers(self):
        """Values of all registers of the second-level cache, by name."""
        return shown_values(L2_REGISTERS, self.run(cache=[(register.name,) for register in L2_REGISTERS]).cache)

    def write_register(self, core, *register):
        """Writes a register of a core, named as for ``Session.run``; the last argument is the word."""
        self._access(core, [register])

    def registers(self, core, engine=None):
        """Values of all registers of an engine of a core, or of its access unit, by name."""
        engine = engine or ENGINES[0]
        table = self._registers.table(engine)
        return shown_values(table, self._access(core, [(engine, register.name) for register in table]))

    def stop(self, core):
        """Stops a core: what it has begun comes to its end, and what waits is refused."""
        self.write_register(core, "stop", 1)
        places = self._registers.addresses("status")
        for place in (places[engine] for engine in _STOPPING if engine in places):
            while not self._access(core, [(place,)])[0].data & 1:
                pass

    def start(self, core):
        """Lets a core that was stopped take work again, as after a reset but for what the specification names."""
        clear = {"control": 3, "irq_status": 3, "irq_enable": 0}
        places = {name: self._registers.addresses(name) for name in clear}
        again = [(places[name][engine], word) for name, word in clear.items()
                 for engine in _STOPPING if engine in places[name]]  # fmt: skip
        self._access(core, [*again, ("control", 4), ("stop", 0)])

    def _access(self, core, accesses):
        """Answers of accesses to registers of one core."""
        return self.run(registers=[[]] * core + [accesses]).cores[core].registers


def open_cluster(preset="default", cores=2, settings=(), **options):
    """A :class:`ClusterSession` of cores of a preset with all engines and a command processor.

    Parameters
    ----------
    preset : str
    cores : int
    settings : sequence of Setting
        Parameters of each core that differ from the preset.
    **options
        See :class:`ClusterSession`.
    """
    return ClusterSession(params=ClusterParams(cores, accelerator_params(preset, settings)), **options)
