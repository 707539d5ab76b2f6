"""A TMAU that runs in a simulator: numpy arrays in, numpy arrays and cycles out."""

from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.subsystem import TmauSubsystem

from ..harness.harness import Harness
from ..harness.records import tmau_records
from .base import chosen, probability
from .memory import MemorySession, model_words
from .run import TmauRun
from .scripts import barrier_row, command_rows, read_row, register_row

__all__ = ["TmauSession"]


class TmauSession(MemorySession):
    """Owns a running simulation of a ``TmauSubsystem``; a context manager.

    The first session of a configuration builds the simulator, which takes up to a minute; later ones start at once.

    Parameters
    ----------
    preset : str
        Name in ``TMAU_PRESETS``.
    params : TmauParams or None
        Instead of a preset.
    simulator : str
        ``"verilator"`` or ``"icarus"``.
    latency : int
        Cycles from a read address to its first data, and from the last written word to its response.
    stall : float
        Probability of a pause before each transfer of the bus, 0 to less than 1.
    seed : int
        Of all pauses.
    memory_bytes : int
        Bytes of global memory.
    waves : path or None
        Leave a waveform (VCD) there when closed.
    coverage : path or None
        Leave there when closed how often Verilator ran each statement; see ``sim/hdl/code_coverage.py``.
    patience : int
        Cycles after which a run without a limit is given up.
    change : callable or None
        Returns the ``Design`` to build instead of the one that it is given.

    Attributes
    ----------
    params : TmauParams

    and those of ``MemorySession``.
    """

    def __init__(self, preset="default", *, params=None, simulator="verilator", latency=100, stall=0.0, seed=1,
                 memory_bytes=16 << 20, waves=None, coverage=None, patience=4_000_000,
                 change=None):  # fmt: skip
        self.params = params = chosen(TMAU_PRESETS, preset, params)
        words = model_words(params, memory_bytes)
        records = tmau_records(params)

        def make_harness():
            return Harness(TmauSubsystem(params), records, smem=params.smem, bus=params, memory_words=words)

        super().__init__(
            make_harness, records, bus=params, memory_bytes=memory_bytes, key=("tmau", params, words), latency=latency,
            stall=stall, seed=seed, patience=patience, change=change, simulator=simulator, waves=waves,
            coverage=coverage,
        )  # fmt: skip

    def configure(self, *, answer_stall=None, **surroundings):
        """Changes how the surroundings behave from the next run on; what is left out stays.

        Parameters
        ----------
        answer_stall : float
            Probability of a pause before each answer that the consumer takes.
        **surroundings
            See ``MemorySession.configure``.
        """
        if answer_stall is not None:
            self.simulation.controls["answer_stall"] = probability(answer_stall)
        super().configure(**surroundings)

    def load(self, tmap, coords, smem=0, **options):
        """Loads one box. Options are those of :meth:`run`; ``shared`` of the result is all of shared memory."""
        return self.run([self.command(tmap, coords, smem)], **{"shared": True} | options)

    def run(self, commands=(), *, reads=(), barriers=(), registers=(), after=None, limit=None, drain=0, shared=None,
            memory=None, trace=False):  # fmt: skip
        """Issues what is given, each port by itself and back to back, and returns when all of it is complete.

        Parameters
        ----------
        commands : sequence of dict or int
            Fields of any of the formats in ``golden.spec.FORMATS``, as :meth:`command` makes those of a tensor; or
            packed words, which are issued as they are. Dictionaries without a tag get their index.
        reads : sequence of sequences
            Of the consumer: byte addresses, multiples of 16, one a lane; None for a lane that does not read.
        barriers : sequence of tuples
            ``BarrierOp``, address, value; and True to repeat it until it is done.
        registers : sequence of tuples
            Name or byte address of a register to read; or that, and the word to write.
        after : dict of str to sequence of str
            Ports (``commands``, ``reads``, ``barriers``, ``registers``) that begin when others have finished.
        limit : int or None
            Stop after so many cycles, wherever things are; the next run then begins with a reset.
        drain : int
            Cycles to go on at the end.
        shared : bool or (int, int) or None
            Return all of shared memory, or so many bytes from an address on.
        memory : (int, int) or None
            Return so many bytes of global memory from an address on.
        trace : bool
            Return all that passed on the bus; at most 16384 requests and 65536 beats of either direction.

        Returns
        -------
        TmauRun

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        """
        scripts = {
            "commands": command_rows(commands),
            "reads": [read_row(lanes) for lanes in reads],
            "barriers": [barrier_row(*operation) for operation in barriers],
            "registers": [register_row(_offset(name), *word) for name, *word in registers],
        }
        window = (0, len(self.shared_memory)) if shared is True else shared or (0, 0)
        dump = self.shared_memory.windows(*window) if window[1] else {}
        if memory:
            dump |= self.global_memory.windows(*memory)
        statuses, logs, arrays = self._run(scripts, after=after, limit=limit, drain=drain, trace=trace, dump=dump)
        return TmauRun.collect(
            statuses,
            logs,
            scripts["commands"],
            shared=self.shared_memory.assemble(arrays, *window) if window[1] else None,
            memory=self.global_memory.assemble(arrays, *memory) if memory else None,
            trace=trace,
        )

    def read_register(self, name):
        """Value of the register called ``name``, or at that byte address."""
        return self.run(registers=[(_offset(name),)]).registers[0].data

    def write_register(self, name, word):
        """Writes the register called ``name``, or at that byte address."""
        self.run(registers=[(_offset(name), word)])

    def registers(self):
        """Values of all registers that the hardware shows, by name: parameters, status, error record, counters."""
        return self._values(TMAU_REGISTERS)


def _offset(name):
    if isinstance(name, int):
        return name
    offsets = {register.name: register.offset for register in TMAU_REGISTERS}
    if name not in offsets:
        raise ValueError(f"there is no register {name!r}")
    return offsets[name]
