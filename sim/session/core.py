"""A core that runs in a simulator: both engines, their memories, and what they report."""

from dataclasses import dataclass

from tilewright.golden.spec import COMMAND
from tilewright.golden.spec.pe.registers import DATA_WORDS, PE_REGISTERS, Put
from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS
from tilewright.hw.core import CORE_PRESETS, Core

from ..harness.axi_rules import Rule, Wait
from ..harness.core import CORE_LOG_DEPTHS, CORE_SCRIPT_DEPTH, CoreHarness, core_log_entries, core_script_items
from ..hdl.designs import cached_design
from ..hdl.simulation import Simulation
from ..hdl.testbench import make_design
from .memory import MemorySession, model_words
from .pe import faults, program_scripts
from .run import Logs, barrier_answers, command_stamps, flips, register_answers
from .script_run import log_windows
from .scripts import barrier_row, command_row, register_row

__all__ = ["CoreRun", "CoreSession"]


@dataclass(frozen=True)
class CoreRun:
    """What came out of one run.

    Attributes
    ----------
    finished : bool
        Everything was complete before the limit.
    cycles : int
        From the start until everything was complete.
    commands : list of CommandStamp
        In the order of issue; those of the pager are not among them.
    faults : list of Fault
        Of the instructions that had one, in program order; numbers count from the last reset.
    halts : list of int
        Cycles in which HALT instructions were performed.
    barriers : list of BarrierAnswer
    registers : list of RegisterAnswer
    flips : list of (int, int)
        Cycle and barrier address of every phase that completed.
    violations, late : tuple
        Rules of AXI that were broken, and waits that have lasted too long, so far in the session.
    irq : bool
        At the end.
    """

    finished: bool
    cycles: int
    commands: list
    faults: list
    halts: list
    barriers: list
    registers: list
    flips: list
    violations: tuple
    late: tuple
    irq: bool


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
        if params is None:
            if preset not in CORE_PRESETS:
                raise ValueError(f"the preset must be one of {', '.join(CORE_PRESETS)}, not {preset!r}")
            params = CORE_PRESETS[preset]
        self.params = params
        words = model_words(params.tmau, memory_bytes)
        core = Core(params)

        def make():
            harness = CoreHarness(core, params, memory_words=words)
            return make_design(harness, harness.arrays())

        simulation = Simulation(cached_design(make, "core", params, words), simulator=simulator, waves=waves)
        super().__init__(simulation, params.tmau, memory_bytes, core_script_items(params), CORE_SCRIPT_DEPTH, patience)
        self._entries = core_log_entries(params)
        self._addresses = {"tmau": {register.name: register.offset for register in TMAU_REGISTERS}}
        self._addresses["pe"] = {register.name: core.pe_address + register.offset for register in PE_REGISTERS}
        self.configure(latency=latency, stall=stall, seed=seed, errors_on="both")

    def run(self, commands=(), *, program=(), segments=None, pages=None, barriers=(), registers=(), after=None,
            limit=None):  # fmt: skip
        """Issues what is given, each port by itself and back to back, and returns when all of it is complete.

        Page moves of the pager may be under way at the end.

        Parameters
        ----------
        commands : sequence of dict or int
            As of ``TmauSession.run``.
        program, segments, pages
            As of ``PeSession.run``.
        barriers : sequence of tuples
            ``BarrierOp``, address, value; and True to repeat it until it is done.
        registers : sequence of tuples
            Engine (``"tmau"`` or ``"pe"``) and name of a register to read; or these, and the word to write.
        after : dict of str to sequence of str
            Ports that begin when others have finished; the program begins after segments and pages anyhow.
        limit : int or None
            Stop after so many cycles, wherever things are; the next run then begins with a reset.

        Returns
        -------
        CoreRun

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        """
        scripts = program_scripts(program, segments, pages)
        scripts["commands"] = [command_row(command, number) for number, command in enumerate(commands)]
        scripts["barriers"] = [barrier_row(*operation) for operation in barriers]
        scripts["registers"] = [register_row(self._addresses[engine][name], *word) for engine, name, *word in registers]
        statuses = self._issue(scripts, {"instructions": ("segments", "pages")} | (after or {}), limit)
        others = ("issued", "halts", "accepted", "flips")
        _, arrays = self.simulation.exchange(dump=log_windows(statuses, self._items, others, CORE_LOG_DEPTHS))
        logs = Logs(self._entries, arrays)
        return CoreRun(
            finished=bool(statuses["finished"]),
            cycles=statuses["cycles"],
            commands=command_stamps(logs, [COMMAND.unpack(row["item"])["tag"] for row in scripts["commands"]]),
            faults=faults(logs),
            halts=logs.cycles("halts").tolist(),
            barriers=barrier_answers(logs),
            registers=register_answers(logs),
            flips=flips(logs),
            violations=tuple(Rule.decode(statuses["violations"])),
            late=tuple(Wait.decode(statuses["late"])),
            irq=bool(statuses["irq"]),
        )

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
