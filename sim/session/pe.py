"""A processing engine that runs in a simulator: programs and numpy arrays in, numpy arrays, errors and cycles out."""

from dataclasses import replace
from functools import partial

import numpy as np

from tilewright.golden import gemm_program
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.subsystem import PeSubsystem
from tilewright.spec.pe import PE_REGISTERS

from ..harness.harness import Harness
from ..harness.ports import register_arrays
from ..harness.records import pe_records
from .base import Session
from .run import PeRun
from .scripts import barrier_rows, chosen, program_parts, program_rows, register_address, register_rows, table_order

__all__ = ["PeSession"]

_BANKS = ("even_registers", "odd_registers")


class PeSession(Session):
    """Owns a running simulation of a ``PeSubsystem``; a context manager.

    The first session of a configuration builds the simulator; later ones start at once. Between runs registers,
    segments, pages and shared memory keep what they hold.

    Parameters
    ----------
    preset : str
        Name in ``PE_PRESETS``.
    params : PeParams or None
        Instead of a preset.
    simulator : str
        ``"verilator"`` or ``"icarus"``.
    waves : path or None
        Leave a waveform there when closed, ``.vcd`` or ``.fst``, with save files beside it.
    patience : int
        Cycles after which a run without a limit is given up.

    Attributes
    ----------
    params : PeParams

    and those of ``Session``.
    """

    def __init__(self, preset="default", *, params=None, simulator="verilator", waves=None, patience=4_000_000):
        self.params = params = chosen(PE_PRESETS, preset, params)
        records = pe_records(params)

        def make_harness():
            return Harness(PeSubsystem(params), records, smem=params.smem, arrays=register_arrays(params))

        super().__init__(
            make_harness, records, smem=params.smem, key=("pe", params), patience=patience, simulator=simulator,
            waves=waves,
        )  # fmt: skip
        self.configure(issue_stall=0.0, seed=1)

    def write_registers(self, values):
        """Sets all registers of the threads behind the hardware's back: uint32, threads × regs."""
        values = np.ascontiguousarray(values, np.uint32)
        shape = (self.params.threads, self.params.regs)
        if values.shape != shape:
            raise ValueError(f"the registers must have the shape {shape}, not {values.shape}")
        for parity, bank in enumerate(_BANKS):
            self.simulation.load(bank, 0, np.ascontiguousarray(values[:, parity::2].T).view(np.uint8))

    def read_registers(self):
        """All registers as they are: uint32, threads × regs."""
        _, arrays = self.simulation.exchange(dump=dict.fromkeys(_BANKS, (0, self.params.regs // 2)))
        values = np.empty((self.params.threads, self.params.regs), np.uint32)
        for parity, bank in enumerate(_BANKS):
            values[:, parity::2] = np.ascontiguousarray(arrays[bank]).view(np.uint32).T
        return values

    def multiply(self, a, b, type, c=None, **options):  # noqa: A002 - what the instruction calls it
        """Computes A × B, or C + A × B, and returns the run; the result is its ``product``.

        Arguments and errors are those of ``golden.multiply``, less the sizes, which are those of the hardware.

        Returns
        -------
        PeRun
            ``product``, an array of int32, uint32 or float32; ``span``, the cycles it took; ``faults``.
        """
        for name in ("sizes", "size_bytes"):
            if name in options:
                raise TypeError(f"{name} must be left out: the hardware has its own")
        size = len(self.shared_memory)
        return self.run(gemm_program(a, b, type, c=c, sizes=self.params, size_bytes=size, **options))

    def run(self, program=(), *, segments=None, pages=None, barriers=(), registers=(), after=None, limit=None,
            drain=0):  # fmt: skip
        """Issues what is given, each port by itself and back to back, and returns when all of it is complete.

        Parameters
        ----------
        program : sequence of int, or Program
            Instructions; the last one should be HALT, so that everything has been performed at the end. What
            ``golden.gemm_program`` returns brings its segments, pages and shared memory.
        segments, pages : dict of int to int
            Words of segments and page entries to be written first, by number.
        barriers : sequence of tuples
            Operation (``"init"``, ``"arrive"``, ``"expect_tx"``, ``"complete_tx"``, ``"try_wait"``), address, value;
            and True to repeat it until it is done.
        registers : sequence of tuples
            Name or byte address of a register to read; or that, and the word to write.
        after : dict of str to sequence of str
            Ports that begin when others have finished; the program begins after segments and pages anyhow.
        limit : int or None
            Stop after so many cycles, wherever things are; the next run then begins with a reset.
        drain : int
            Cycles to go on at the end.

        Returns
        -------
        PeRun
            ``cycles`` and ``span``, ``faults`` and ``halts``, the answers of barriers and registers, and of a
            ``Program`` its ``product``. Threads' registers and shared memory are read by themselves.

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        TypeError, ValueError
            If an argument is wrong; then nothing was issued.
        """
        words, segments, pages, smem = program_parts(program, segments, pages, self.params)
        scripts = program_rows(words, segments, pages, self.params)
        scripts["barriers"] = barrier_rows(barriers, len(self.shared_memory))
        scripts["registers"] = register_rows(registers, partial(register_address, PE_REGISTERS), 2)
        statuses, logs, _ = self._run(scripts, after=table_order(after), limit=limit, drain=drain, smem=smem)
        run = PeRun.collect(statuses, logs)
        if smem is None or not run.finished:
            return run
        return replace(run, product=program.product(self.shared_memory.read(0, len(smem))))

    def read_register(self, name):
        """Value of the register called ``name``, or at that byte address, as an int."""
        return self.run(registers=[(name,)]).registers[0].data

    def write_register(self, name, word):
        """Writes the register called ``name``, or at that byte address; returns nothing."""
        self.run(registers=[(name, word)])

    def registers(self):
        """Values of all registers that the hardware shows, by name: parameters, status, error record, counters."""
        return self._values(PE_REGISTERS)
