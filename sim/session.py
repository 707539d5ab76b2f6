"""A TMAU that runs in a simulator: numpy arrays in, numpy arrays and cycles out."""

from dataclasses import replace
from operator import index

from tilewright.golden import TensorMap
from tilewright.golden.memory import memory_bytes
from tilewright.golden.spec import COMMAND, DESCRIPTOR, Opcode
from tilewright.golden.spec.registers import REGISTERS
from tilewright.hw.tmau.params import PRESETS
from tilewright.hw.tmau.subsystem import TmauSubsystem

from .backdoor import GlobalBackdoor, SharedBackdoor, as_bytes
from .designs import cached_design
from .harness import Harness
from .memory_model import CHANNELS, MAX_LATENCY, MIN_LATENCY
from .records import LOG_DEPTHS, PORTS, SCRIPT_DEPTH, TRACES, log_entries, script_items
from .run import Logs, collect
from .script_run import log_windows, run_scripts
from .scripts import barrier_row, command_row, read_row, register_row
from .simulation import Simulation
from .testbench import make_design

__all__ = ["DESCRIPTORS", "Session"]

#: Descriptors that a session keeps in global memory at a time, behind the bytes of the user.
DESCRIPTORS = 4096

#: Whether reads and writes meet the errors of a session.
_ERRORS_ON = {"reads": (1, 0), "writes": (0, 1), "both": (1, 1)}

_GRAIN = 1 << 16  # bytes to which the size of global memory is rounded up, so that sessions can share a model


class Session:
    """Owns a running simulation of a :class:`~tilewright.hw.tmau.subsystem.TmauSubsystem`; a context manager.

    The first session of a configuration builds the simulator, which takes up to a minute; later ones start at once.
    Between runs the clock stands still, and all that a session writes is there when the next run begins.

    Parameters
    ----------
    preset : str
        Name in ``PRESETS``.
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
        Leave there when closed how often Verilator ran each statement; see ``sim/code_coverage.py``.
    patience : int
        Cycles after which a run without a limit is given up.
    change : callable or None
        Returns the :class:`~tilewright.sim.testbench.Design` to build instead of the one that it is given.

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
            if preset not in PRESETS:
                raise ValueError(f"the preset must be one of {', '.join(PRESETS)}, not {preset!r}")
            params = PRESETS[preset]
        self.params = params
        self.memory_bytes = -(-memory_bytes // _GRAIN) * _GRAIN
        words = (self.memory_bytes + DESCRIPTORS * DESCRIPTOR.bytes) // params.bus_bytes

        def make():
            harness = Harness(TmauSubsystem(params), params, memory_words=words)
            return make_design(harness, harness.arrays())

        design = cached_design(make, params, words)
        design = change(design) if change else design
        self.simulation = Simulation(design, simulator=simulator, waves=waves, coverage=coverage)
        # Before the first reset nothing has a value, and memories could not be read.
        self.simulation.exchange(reset=True)
        self._patience = patience
        self.global_memory = GlobalBackdoor(self.simulation, params.bus_bytes, words)
        self.shared_memory = SharedBackdoor(self.simulation, params.smem.rows)
        self._items = script_items(params)
        self._entries = log_entries(params)
        self._must_reset = True
        self.clear()
        self.configure(latency=latency, stall=stall, seed=seed, errors_on="both")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Ends the simulator. May be called twice."""
        self.simulation.close()

    def configure(self, *, latency=None, stall=None, issue_stall=None, answer_stall=None, seed=None, errors=None,
                  errors_on=None):  # fmt: skip
        """Changes how the surroundings behave from the next run on; what is left out stays.

        Parameters
        ----------
        latency : int
        stall : float, dict of str to float, or (float, float)
            Probability of a pause before each transfer of the bus: on all channels; on those named ``ar``, ``r``,
            ``aw``, ``w`` and ``b``, and 0 on others; or of requests and of what follows them.
        issue_stall, answer_stall : float
            The same before each command, read, … and before each answer that the consumer takes.
        seed : int
        errors : (int, int, int)
            First and last address of a window whose words the memory answers with this RRESP or BRESP; 0 for none. A
            word that is refused is not written.
        errors_on : str
            Whether it does so for ``"reads"``, ``"writes"``, or ``"both"``, as it does at first.
        """
        controls = self.simulation.controls
        if latency is not None:
            if not MIN_LATENCY <= latency <= MAX_LATENCY:
                raise ValueError(f"latency must be {MIN_LATENCY} to {MAX_LATENCY}, not {latency!r}")
            controls["latency"] = index(latency)
        if stall is not None:
            for channel, probability in _stalls(stall).items():
                controls[f"{channel}_stall"] = _probability(probability)
        if issue_stall is not None:
            controls["issue_stall"] = _probability(issue_stall)
        if answer_stall is not None:
            controls["answer_stall"] = _probability(answer_stall)
        if seed is not None:
            controls["seed"] = index(seed) & 0xFFFF
        if errors is not None:
            first, last, controls["error_response"] = errors
            controls["error_first"], controls["error_last"] = (a >> self.params.bus_log2 for a in (first, last))
        if errors_on is not None:
            if errors_on not in _ERRORS_ON:
                raise ValueError(f"errors_on must be one of {', '.join(_ERRORS_ON)}, not {errors_on!r}")
            controls["error_reads"], controls["error_writes"] = _ERRORS_ON[errors_on]

    def reset(self):
        """Resets the hardware before the next run, whatever it was doing. Memories keep their contents."""
        self._must_reset = True

    def clear(self, base=0):
        """Forgets what was placed, and resets. From now on global memory begins at address ``base``."""
        if base % self.params.bus_bytes:
            raise ValueError(f"base must be a multiple of the {self.params.bus_bytes}-byte bus word, not {base}")
        self.global_memory.base = base
        self.simulation.controls["base"] = base >> self.params.bus_log2
        self._free = base
        self._bound = {}
        self._descriptors = {}
        self._must_reset = True

    def place(self, array, align=128):
        """Copies an array (or bytes) to the next free multiple of ``align`` in global memory; returns the address."""
        values = as_bytes(array)
        address = -(-self._free // align) * align
        if address + len(values) > self.global_memory.base + self.memory_bytes:
            raise ValueError(f"global memory has no room for {len(values)} bytes more")
        self.global_memory.write(address, values)
        self._free = address + len(values)
        return address

    def bind(self, tmap):
        """The map with its array placed in global memory; the map itself if it was not made from an array.

        A map is bound once: a later change of the array's contents is not seen.
        """
        if tmap.array is None:
            return tmap
        if id(tmap) not in self._bound:
            # The map is kept, so that its identity is not given to another.
            self._bound[id(tmap)] = tmap, replace(tmap, address=self.place(memory_bytes(tmap.array)), array=None)
        return self._bound[id(tmap)][1]

    def descriptor(self, tmap):
        """Address in global memory of the descriptor of a map, or of 128 bytes or an int as they stand."""
        if isinstance(tmap, TensorMap):
            raw = self.bind(tmap).pack()
        else:
            raw = tmap.to_bytes(DESCRIPTOR.bytes, "little") if isinstance(tmap, int) else bytes(tmap)
        if len(raw) != DESCRIPTOR.bytes:
            raise ValueError(f"a descriptor must be {DESCRIPTOR.bytes} bytes, not {len(raw)}")
        if raw not in self._descriptors:
            if len(self._descriptors) == DESCRIPTORS:
                # The next one takes the place of the first, which the hardware may have kept.
                self._descriptors.clear()
                self._must_reset = True
            slot = len(self._descriptors) * DESCRIPTOR.bytes
            address = self.global_memory.base + self.memory_bytes + slot
            self.global_memory.write(address, raw)
            self._descriptors[raw] = address
        return self._descriptors[raw]

    def command(self, tmap, coords, smem=0, *, barrier=None, **fields):
        """A command on a tensor for :meth:`run`, as a dictionary of fields: a load, if no ``opcode`` is given.

        Parameters
        ----------
        tmap : TensorMap, bytes or int
            See :meth:`descriptor`.
        coords : sequence of int
        smem : int
            Destination, or source of a store.
        barrier : int or None
            Address of the barrier that the bytes complete.
        **fields
            Others, such as ``opcode``, ``reduction``, ``offsets`` and ``tag``; and ``wait=True`` to issue it only when
            all before it are complete.
        """
        signal = {} if barrier is None else {"signal": 1, "barrier": barrier}
        load = {"opcode": Opcode.LOAD, "descriptor": self.descriptor(tmap), "coords": tuple(coords), "smem": smem}
        return load | signal | fields

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
        reset, self._must_reset = self._must_reset, True
        statuses = run_scripts(
            self.simulation, self._items, scripts, after=after or {}, depth=SCRIPT_DEPTH, reset=reset, limit=limit,
            patience=self._patience, drain=drain,
        )  # fmt: skip
        finished = bool(statuses["finished"])
        self._must_reset = not finished
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
            finished=finished,
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
        answers = self.run(registers=[(register.offset,) for register in REGISTERS]).registers
        return {register.name: answer.data for register, answer in zip(REGISTERS, answers, strict=True)}


def _stalls(stall):
    """Probability of a pause on each channel."""
    if isinstance(stall, dict):
        unknown = set(stall) - set(CHANNELS)
        if unknown:
            raise ValueError(f"the channels are {', '.join(CHANNELS)}, and {sorted(unknown)[0]!r} is none of them")
        return dict.fromkeys(CHANNELS, 0.0) | stall
    first, then = stall if isinstance(stall, tuple) else (stall, stall)
    return {channel: first if channel in ("ar", "aw") else then for channel in CHANNELS}


def _probability(value):
    if not 0 <= value < 1:
        raise ValueError(f"the probability of a pause must be at least 0 and less than 1, not {value!r}")
    return min(round(256 * value), 255)


def _offset(name):
    if isinstance(name, int):
        return name
    offsets = {register.name: register.offset for register in REGISTERS}
    if name not in offsets:
        raise ValueError(f"there is no register {name!r}")
    return offsets[name]
