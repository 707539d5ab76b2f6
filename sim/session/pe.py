"""A processing engine that runs in a simulator: programs and numpy arrays in, numpy arrays, errors and cycles out."""

import numpy as np

from tilewright.golden.spec.pe.registers import PE_REGISTERS
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.subsystem import PeSubsystem

from ..harness.harness import Harness
from ..harness.ports import register_arrays
from ..harness.records import pe_records
from .base import Session, chosen
from .run import PeRun
from .scripts import AFTER_TABLES, barrier_row, program_rows, register_row

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
        Leave a waveform (VCD) there when closed.
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
        """Sets all registers behind the hardware's back: uint32, threads × regs."""
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
        scripts = program_rows(program, segments, pages)
        scripts["barriers"] = [barrier_row(*operation) for operation in barriers]
        scripts["registers"] = [register_row(*access) for access in registers]
        statuses, logs, _ = self._run(scripts, after=AFTER_TABLES | (after or {}), limit=limit)
        return PeRun.collect(statuses, logs)

    def counters(self):
        """Values of all registers that the hardware shows, by name."""
        return self._values(PE_REGISTERS)
