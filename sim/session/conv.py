"""A convolution engine that runs in a simulator: jobs and shared memory in, results, errors and cycles out."""

from functools import partial

from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.conv.subsystem import ConvSubsystem
from tilewright.spec.conv import CONV_REGISTERS

from ..harness.harness import Harness
from ..harness.records import conv_records
from .base import Session
from .run import ConvRun
from .scripts import barrier_rows, chosen, job_rows, register_address, register_rows

__all__ = ["ConvSession"]


class ConvSession(Session):
    """Owns a running simulation of a ``ConvSubsystem``; a context manager.

    The first session of a configuration builds the simulator; later ones start at once. Between runs shared memory
    keeps what it holds.

    Parameters
    ----------
    preset : str
        Name in ``CONV_UNIT_PRESETS``.
    params : ConvUnitParams or None
        Instead of a preset.
    simulator : str
        ``"verilator"`` or ``"icarus"``.
    waves : path or None
        Leave a waveform there when closed, ``.vcd`` or ``.fst``, with save files beside it.
    patience : int
        Cycles after which a run without a limit is given up.

    Attributes
    ----------
    params : ConvUnitParams

    and those of ``Session``.
    """

    def __init__(self, preset="default", *, params=None, simulator="verilator", waves=None, patience=4_000_000):
        self.params = params = chosen(CONV_UNIT_PRESETS, preset, params)
        records = conv_records(params)

        def make_harness():
            return Harness(ConvSubsystem(params), records, smem=params.smem)

        super().__init__(
            make_harness, records, smem=params.smem, key=("conv", params), patience=patience, simulator=simulator,
            waves=waves,
        )  # fmt: skip
        self.configure(issue_stall=0.0, seed=1)

    def run(self, jobs=(), *, barriers=(), registers=(), after=None, limit=None, drain=0, shared=None):
        """Issues what is given, each port by itself and back to back, and returns when all of it is complete.

        Parameters
        ----------
        jobs : sequence of int
            Packed jobs; ``golden.job_word`` and ``golden.ConvLayer`` make them.
        barriers, registers, after, limit, drain
            As of ``PeSession.run``.
        shared : uint8 array or None
            What shared memory begins with, from its first byte on; None leaves it as it is.

        Returns
        -------
        ConvRun
            ``cycles``, how each of the ``jobs`` ended, the answers of barriers and registers. Shared memory is read
            by itself.

        Raises
        ------
        SimulationError
            If there is no limit, and something is not complete in time.
        TypeError, ValueError
            If an argument is wrong; then nothing was issued.
        """
        scripts = {"jobs": job_rows(jobs)}
        scripts["barriers"] = barrier_rows(barriers, len(self.shared_memory))
        scripts["registers"] = register_rows(registers, partial(register_address, CONV_REGISTERS), 2)
        statuses, logs, _ = self._run(scripts, after=after, limit=limit, drain=drain, smem=shared)
        return ConvRun.collect(statuses, logs)

    def read_register(self, name):
        """Value of the register called ``name``, or at that byte address, as an int."""
        return self.run(registers=[(name,)]).registers[0].data

    def write_register(self, name, word):
        """Writes the register called ``name``, or at that byte address; returns nothing."""
        self.run(registers=[(name, word)])

    def registers(self):
        """Values of all registers that the hardware shows, by name."""
        return self._values(CONV_REGISTERS)
