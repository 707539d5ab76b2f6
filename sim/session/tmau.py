"""A TMAU that runs in a simulator: numpy arrays in, numpy arrays and cycles out."""

from functools import partial

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.subsystem import TmauSubsystem
from tilewright.spec.tmau_registers import TMAU_REGISTERS, processor_registers

from ..harness.harness import Harness
from ..harness.records import tmau_records
from .memory import MemorySession, Transfers, model_words
from .run import TmauRun
from .scripts import barrier_rows, chosen, command_rows, probability, read_rows, register_address, register_rows

__all__ = ["TmauSession"]


class TmauSession(Transfers, MemorySession):
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
        Leave a waveform there when closed, ``.vcd`` or ``.fst``, with save files beside it.
    coverage : path or None
        Leave there when closed how often Verilator ran each statement; see ``sim/hdl/cocotb_run.py``.
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
        self._registers = TMAU_REGISTERS + processor_registers(params.processors, params.has("windows"))
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

    def run(self, commands=(), *, reads=(), barriers=(), registers=(), after=None, limit=None, drain=0, shared=None,
            memory=None, trace=False):  # fmt: skip
        """Issues what is given, each port by itself and back to back, and returns when all of it is complete.

        Parameters
        ----------
        commands : sequence of dict or int
            Fields of any of the formats in ``spec.FORMATS``, as :meth:`command` makes those of a tensor; or
            packed words, which are issued as they are. Dictionaries without a tag get their index. Enumerations by
            name or member. What the hardware refuses is in the result, and no exception. Where several processors share
            the unit, ``processor`` is a number in the upper bits of the tag.
        reads : sequence of sequences
            Of the consumer: byte addresses, multiples of 16, one a lane; None for a lane that does not read.
        barriers : sequence of tuples
            Operation (``"init"``, ``"arrive"``, ``"expect_tx"``, ``"complete_tx"``, ``"try_wait"``), address, value;
            and True to repeat it until it is done.
        registers : sequence of tuples
            Name or byte address of a register to read; or that, and the word to write.
        after : dict of str to sequence of str
            Ports (``commands``, ``reads``, ``barriers``, ``registers``) that begin when others have finished.
        limit : int or None
            Stop after so many cycles, wherever things are; the next run then begins with a reset.
        drain : int
            Cycles to go on at the end.
        shared, memory : bool or (int, int) or None
            Return all of shared or global memory, or so many bytes from an address on: address, bytes.
        trace : bool
            Return all that passed on the bus; at most 16384 requests and 65536 beats of either direction.

        Returns
        -------
        TmauRun
            ``cycles`` and ``span``; of each command when it was accepted, when it was done, and its error; the
            answers of reads, barriers and registers; ``shared`` and ``memory`` as asked for; what was on the bus.

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        TypeError, ValueError, IndexError
            If an argument is wrong; then nothing was issued.
        """
        scripts = {
            "commands": command_rows(commands, self.params.processors),
            "reads": read_rows(reads, len(self.shared_memory)),
            "barriers": barrier_rows(barriers, len(self.shared_memory)),
            "registers": register_rows(registers, partial(register_address, self._registers), 2),
        }
        return self._collect(TmauRun, scripts, shared, memory, trace, after=after, limit=limit, drain=drain)

    def read_register(self, name):
        """Value of the register called ``name``, or at that byte address, as an int."""
        return self.run(registers=[(name,)]).registers[0].data

    def write_register(self, name, word):
        """Writes the register called ``name``, or at that byte address; returns nothing."""
        self.run(registers=[(name, word)])

    def registers(self):
        """Values of all registers that the hardware shows, by name: parameters, status, error record, counters."""
        return self._values(self._registers)
