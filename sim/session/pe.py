"""A processing engine that runs in a simulator: programs and numpy arrays in, numpy arrays, errors and cycles out."""

from dataclasses import dataclass

import numpy as np

from tilewright.golden.pe.machine import Fault
from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.registers import PE_REGISTERS
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.subsystem import PeSubsystem

from ..harness.pe import PE_LOG_DEPTHS, PE_SCRIPT_DEPTH, PeHarness, pe_log_entries, pe_script_items
from ..hdl.designs import cached_design
from ..hdl.simulation import Simulation
from ..hdl.testbench import make_design
from .backdoor import SharedBackdoor
from .memory import probability
from .run import Logs, barrier_answers, register_answers
from .script_run import log_windows, run_scripts
from .scripts import barrier_row, register_row

__all__ = ["PeRun", "PeSession", "faults", "program_scripts"]


@dataclass(frozen=True)
class PeRun:
    """What came out of one run.

    Attributes
    ----------
    finished : bool
        Everything was complete before the limit.
    cycles : int
        From the start until everything was complete.
    span : int
        From the first instruction accepted to the last halt; 0 without one.
    faults : list of Fault
        Of the instructions that had one, in program order; numbers count from the last reset.
    halts : int
        HALT instructions that were performed.
    barriers, registers : list
        Answers at these ports.
    irq : bool
        At the end.
    """

    finished: bool
    cycles: int
    span: int
    faults: list
    halts: int
    barriers: list
    registers: list
    irq: bool


class PeSession:
    """Owns a running simulation of a ``PeSubsystem``; a context manager.

    The first session of a configuration builds the simulator; later ones start at once. Between runs the clock stands
    still, and registers, segments, pages and shared memory keep what they hold.

    Parameters
    ----------
    preset : str
        Name in ``PE_PRESETS``.
    params : PeParams or None
        Instead of a preset.
    simulator : str
        ``"verilator"`` or ``"icarus"``.
    waves : path or None
        Leave a waveform (VCD) there when closed.
    patience : int
        Cycles after which a run without a limit is given up.

    Attributes
    ----------
    params : PeParams
    shared_memory : SharedBackdoor
    simulation : Simulation
    """

    def __init__(self, preset="default", *, params=None, simulator="verilator", waves=None, patience=4_000_000):
        if params is None:
            if preset not in PE_PRESETS:
                raise ValueError(f"the preset must be one of {', '.join(PE_PRESETS)}, not {preset!r}")
            params = PE_PRESETS[preset]
        self.params = params

        def make():
            harness = PeHarness(PeSubsystem(params), params)
            return make_design(harness, harness.arrays())

        self.simulation = Simulation(cached_design(make, "pe", params), simulator=simulator, waves=waves)
        self.simulation.exchange(reset=True)
        self.shared_memory = SharedBackdoor(self.simulation, params.smem.rows)
        self._items = pe_script_items(params)
        self._patience = patience
        self._must_reset = True
        self.configure(issue_stall=0.0, seed=1)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Ends the simulator. May be called twice."""
        self.simulation.close()

    def configure(self, *, issue_stall=None, seed=None):
        """Probability of a pause before each item at each port, 0 to less than 1, and the seed of the pauses."""
        if issue_stall is not None:
            self.simulation.controls["issue_stall"] = probability(issue_stall)
        if seed is not None:
            self.simulation.controls["seed"] = seed & 0xFFFF

    def reset(self):
        """Resets the hardware before the next run. Registers and shared memory keep their contents."""
        self._must_reset = True

    def write_registers(self, values):
        """Sets all registers behind the hardware's back: uint32, threads × regs."""
        values = np.ascontiguousarray(values, np.uint32)
        shape = (self.params.threads, self.params.regs)
        if values.shape != shape:
            raise ValueError(f"the registers must have the shape {shape}, not {values.shape}")
        for parity, bank in enumerate(("even", "odd")):
            rows = np.ascontiguousarray(values[:, parity::2].T)
            self.simulation.load(f"{bank}_registers", 0, rows.view(np.uint8))

    def read_registers(self):
        """All registers as they are: uint32, threads × regs."""
        half = self.params.regs // 2
        _, arrays = self.simulation.exchange(dump={f"{bank}_registers": (0, half) for bank in ("even", "odd")})
        values = np.empty((self.params.threads, self.params.regs), np.uint32)
        for parity, bank in enumerate(("even", "odd")):
            values[:, parity::2] = np.ascontiguousarray(arrays[f"{bank}_registers"]).view(np.uint32).T
        return values

    def run(self, program=(), *, segments=None, pages=None, barriers=(), registers=(), after=None, limit=None):
        """Issues what is given, each port by itself and back to back, and returns when all of it is complete.

        Parameters
        ----------
        program : sequence of int
            Instructions; the last one should be HALT, so that everything has been performed at the end.
        segments, pages : dict of int to int
            Words of segments and page entries to be written first, by number.
        barriers : sequence of tuples
            ``BarrierOp``, address, value; and True to repeat it until it is done.
        registers : sequence of tuples
            Byte address to read; or that, and the word to write.
        after : dict of str to sequence of str
            Ports that begin when others have finished; the program begins after segments and pages anyhow.
        limit : int or None
            Stop after so many cycles, wherever things are; the next run then begins with a reset.

        Returns
        -------
        PeRun

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        """
        scripts = program_scripts(program, segments, pages)
        scripts["barriers"] = [barrier_row(*operation) for operation in barriers]
        scripts["registers"] = [register_row(*access) for access in registers]
        reset, self._must_reset = self._must_reset, True
        statuses = run_scripts(
            self.simulation, self._items, scripts, after={"instructions": ("segments", "pages")} | (after or {}),
            depth=PE_SCRIPT_DEPTH, reset=reset, limit=limit, patience=self._patience,
        )  # fmt: skip
        finished = bool(statuses["finished"])
        self._must_reset = not finished
        dump = log_windows(statuses, self._items, ("issued", "halts"), PE_LOG_DEPTHS)
        _, arrays = self.simulation.exchange(dump=dump)
        return _collect(statuses, Logs(pe_log_entries(self.params), arrays), finished)

    def counters(self):
        """Values of all registers that the hardware shows, by name."""
        answers = self.run(registers=[(register.offset,) for register in PE_REGISTERS]).registers
        return {register.name: answer.data for register, answer in zip(PE_REGISTERS, answers, strict=True)}


def program_scripts(program, segments, pages):
    """Rows of the scripts of a program's ports; see :meth:`PeSession.run`."""
    return {
        "instructions": [{"item": word} for word in program],
        "segments": [{"item": {"index": index, "word": word}} for index, word in (segments or {}).items()],
        "pages": [{"item": {"index": index, "word": word}} for index, word in (pages or {}).items()],
    }


def faults(logs):
    """Every :class:`Fault` that instructions have reported, in program order."""
    fields = logs.stamped("instructions", *Fault._fields)
    return sorted((Fault(PeError(code), *rest) for _, code, *rest in fields if code), key=lambda fault: fault.number)


def _collect(statuses, logs, finished):
    issued, halted = logs.cycles("issued"), logs.cycles("halts")
    return PeRun(
        finished=finished,
        cycles=statuses["cycles"],
        span=int(halted[-1] - issued[0]) if len(halted) else 0,
        faults=faults(logs),
        halts=len(halted),
        barriers=barrier_answers(logs),
        registers=register_answers(logs),
        irq=bool(statuses["irq"]),
    )
