"""A TMAU that runs in a simulator: numpy arrays in, numpy arrays and cycles out."""

from tilewright.golden.spec import COMMAND
from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.subsystem import TmauSubsystem

from ..harness.records import LOG_DEPTHS, PORTS, SCRIPT_DEPTH, TRACES, log_entries, script_items
from ..harness.tmau import TmauHarness
from ..hdl.designs import cached_design
from ..hdl.simulation import Simulation
from ..hdl.testbench import make_design
from .memory import MemorySession, model_words, probability
from .run import Logs, collect
from .script_run import log_windows
from .scripts import barrier_row, command_row, read_row, register_row

__all__ = ["TmauSession"]


class TmauSession(MemorySession):
    """Owns a running simulation of a ``TmauSubsystem``; a context manager.

    The first session of a configuration builds the simulator, which takes up to a minute; later ones start at once.
    Between runs the clock stands still, and all that a session writes is there when the next run begins.

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
    global_memory : GlobalBackdoor
    shared_memory : SharedBackdoor
    simulation : Simulation
        With the number of ``cycles`` simulated, and the ``seconds`` that it took.
    """

    def __init__(self, preset="default", *, params=None, simulator="verilator", latency=100, stall=0.0, seed=1,
                 memory_bytes=16 << 20, waves=None, coverage=None, patience=4_000_000,
                 change=None):  # fmt: skip
        if params is None:
            if preset not in TMAU_PRESETS:
                raise ValueError(f"the preset must be one of {', '.join(TMAU_PRESETS)}, not {preset!r}")
            params = TMAU_PRESETS[preset]
        self.params = params
        words = model_words(params, memory_bytes)

        def make():
            harness = TmauHarness(TmauSubsystem(params), params, memory_words=words)
            return make_design(harness, harness.arrays())

        design = cached_design(make, params, words)
        design = change(design) if change else design
        simulation = Simulation(design, simulator=simulator, waves=waves, coverage=coverage)
        super().__init__(simulation, params, memory_bytes, script_items(params), SCRIPT_DEPTH, patience)
        self._entries = log_entries(params)
        self.configure(latency=latency, stall=stall, seed=seed, errors_on="both")

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
        Run

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        """
        scripts = {
            "commands": [command_row(command, number) for number, command in enumerate(commands)],
            "reads": [read_row(lanes) for lanes in reads],
            "barriers": [barrier_row(*operation) for operation in barriers],
            "registers": [register_row(_offset(name), *word) for name, *word in registers],
        }
        statuses = self._issue(scripts, after, limit, drain)
        window = (0, len(self.shared_memory)) if shared is True else shared or (0, 0)
        others = ("accepted", "flips", *(TRACES if trace else ()))
        dump = log_windows(statuses, PORTS, others, LOG_DEPTHS)
        if window[1]:
            dump |= self.shared_memory.windows(*window)
        if memory:
            dump |= self.global_memory.windows(*memory)
        _, arrays = self.simulation.exchange(dump=dump)
        return collect(
            statuses,
            Logs(self._entries, arrays),
            [COMMAND.unpack(row["item"])["tag"] for row in scripts["commands"]],
            finished=bool(statuses["finished"]),
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
        answers = self.run(registers=[(register.offset,) for register in TMAU_REGISTERS]).registers
        return {register.name: answer.data for register, answer in zip(TMAU_REGISTERS, answers, strict=True)}


def _offset(name):
    if isinstance(name, int):
        return name
    offsets = {register.name: register.offset for register in TMAU_REGISTERS}
    if name not in offsets:
        raise ValueError(f"there is no register {name!r}")
    return offsets[name]
