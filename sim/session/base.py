"""The life of a session, whatever its design: build, start, configure, run, reset, close."""

from dataclasses import replace

from amaranth._unused import MustUse

from tilewright.golden.arguments import integer
from tilewright.progress import work

from ..harness.drivers import ScriptRowLayout
from ..harness.records import TRACES
from ..hdl.build import SIMULATORS, require_tools
from ..hdl.packing import pack_rows
from ..hdl.simulation import Simulation, SimulationError, waveform_format
from ..hdl.testbench import cached_design, make_design
from .backdoor import SharedBackdoor
from .events import Logs
from .scripts import port_order, probability, run_cycles, session_options
from .stillness import Stillness, waits_of_ports

__all__ = ["BaseSession"]

#: Cycles after which a run says how far it is: some seconds of a large design.
_SLICE = 20_000


class BaseSession:
    """Owns a running simulation of a design in its harness; a context manager.

    Between runs the clock stands still, and all that a session writes is there when the next run begins.

    Parameters
    ----------
    make_harness : callable
        Returns the ``Harness``.
    records : Records
        Of the harness.
    smem : SmemParams
    key : tuple
        What the harness depends on; see ``cached_design``.
    patience : int
        Cycles after which a run without a limit is given up.
    change : callable or None
        Returns the ``Design`` to build instead of the one that it is given.
    **options
        Of ``Simulation``.

    Attributes
    ----------
    shared_memories : list of SharedBackdoor
        Of each core; ``shared_memory`` is the first one.
    simulation : Simulation
        With the number of ``cycles`` simulated, and the ``seconds`` that it took.
    """

    def __init__(self, make_harness, records, *, smem, key, patience, change=None, **options):
        session_options(SIMULATORS, patience=patience, **options)

        def make():
            try:
                harness = make_harness()
                verilog, signals = harness.name_streams() if waves else ("", {})
                made = make_design(harness, harness.arrays())
                return replace(made, verilog=made.verilog + verilog, signals=signals) if waves else made
            except BaseException:
                # The parts of a design that is not finished would each say so: Amaranth's own switch, for the same end.
                MustUse._MustUse__silence = True
                raise

        # Before elaboration, which takes seconds.
        waves = waveform_format(options.get("waves"))
        require_tools(options["simulator"], waves)
        with work(key[0]):
            design = cached_design(make, *key, *(["waves"] if waves else []))
            self.simulation = Simulation(change(design) if change else design, **options)
        # Before the first reset nothing has a value, and memories could not be read.
        self.simulation.exchange(reset=True)
        self.shared_memories = self._shared_memories(smem)
        self.shared_memory = self.shared_memories[0]
        self._records = records
        self._patience = patience
        self._must_reset = True
        self._name = f"{type(self).__name__} of {options['simulator']}"

    def _shared_memories(self, smem):
        """Of each core."""
        return [SharedBackdoor(self.simulation, smem.rows)]

    def __repr__(self):
        return f"{self._name}: {len(self.shared_memory)} bytes of shared memory, {self.simulation.cycles} cycles so far"

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Ends the simulator. May be called twice."""
        self.simulation.close()

    def configure(self, *, issue_stall=None, seed=None):
        """Changes how the surroundings behave from the next run on; what is left out stays.

        Parameters
        ----------
        issue_stall : float
            Probability of a pause before each item at each port, 0 to less than 1.
        seed : int
            Of all pauses.
        """
        if issue_stall is not None:
            self.simulation.controls["issue_stall"] = probability(issue_stall)
        if seed is not None:
            self.simulation.controls["seed"] = integer("seed", seed, 0) & 0xFFFF

    def reset(self):
        """Resets the hardware, whatever it was doing. Memories keep their contents.

        In the cycle of the reset what is under way may still be written: what a caller writes afterwards stays.
        """
        self.simulation.exchange(reset=True)
        self._must_reset = True

    def _run(self, scripts, *, after, limit, drain=0, trace=False, dump=None, smem=None, progress=None):
        """Issues scripts, and waits until all is complete.

        Parameters
        ----------
        scripts : dict of str to list
            Rows of ``ScriptRowLayout`` for each port.
        after, limit, drain
            See ``run`` of a session.
        trace : bool
            Read the logs of the bus too.
        dump : dict of str to (int, int)
            Further arrays to read.
        smem : uint8 array or None
            What shared memory begins with.
        progress : callable or None
            Called with the statuses now and then.

        Returns
        -------
        dict of str to int, Logs, dict of str to uint8 array
            Statuses, logs, and what was dumped.
        """
        limit, drain = run_cycles(limit, drain)
        after = port_order(tuple(self._records.items), {} if after is None else after)
        packed = self._packed(scripts)
        if smem is not None:
            if self._must_reset:
                self.reset()
            self.shared_memory.write(0, smem)
        self._load_scripts(packed, scripts, after)
        # After a run that does not finish the next one begins with a reset.
        reset, self._must_reset = self._must_reset, True
        cycles = self._patience if limit is None else limit
        statuses = self._advance(reset, cycles, drain, progress, limit is None)
        if not statuses["finished"] and limit is None:
            raise SimulationError(self._unfinished(scripts, statuses))
        self._must_reset = not statuses["finished"]
        _, arrays = self.simulation.exchange(dump=self._log_windows(statuses, trace) | (dump or {}))
        return statuses, Logs(self._records.entries, arrays), arrays

    def _advance(self, reset, cycles, drain, progress, must_finish):
        """Lets the simulation run to the end, or for ``cycles``, and returns the statuses.

        If it ``must_finish``, it is given up as soon as nothing can happen any more.
        """
        if progress is None and not must_finish:
            return self.simulation.exchange(reset=reset, start=True, limit=cycles, drain=drain)[0]
        statuses, done, stillness = {"finished": False}, 0, Stillness()
        while not statuses["finished"] and done < cycles:
            first = not done
            statuses, _ = self.simulation.exchange(reset=reset and first, start=first, limit=min(_SLICE, cycles - done))
            done += statuses["cycles"]
            if progress:
                progress(statuses)
            if must_finish and stillness.lasts(statuses, done):
                return statuses | {"cycles": done}
        if drain:
            statuses, _ = self.simulation.exchange(drain=drain)
        return statuses | {"cycles": done}

    def _unfinished(self, scripts, statuses):
        """Why a run is not finished, as a sentence."""
        waits = [*waits_of_ports(self, scripts, statuses), *self._waits_of_programs()]
        return f"the run is not complete after {statuses['cycles']:,} cycles: {'; '.join(waits)}"

    def _waits_of_programs(self):
        """What programs of command processors wait for, as sentences: a design may have none."""
        return ()

    def _peek(self, scripts, limit):
        """Logs of scripts that are run for ``limit`` cycles in the middle of a run that is given up."""
        self._must_reset = False
        return self._run(scripts, after={}, limit=limit)[1]

    def _packed(self, scripts):
        """The script of every port as bytes; nothing has changed if one is refused."""
        packed, depth = {}, self._records.depth
        for port, shape in self._records.items.items():
            rows = scripts.get(port, ())
            if len(rows) > depth:
                raise ValueError(f"a run must have at most {depth} {port}, not {len(rows)}")
            try:
                packed[port] = pack_rows(ScriptRowLayout(shape), rows)
            except ValueError as error:
                raise ValueError(f"an entry of {port} cannot be: {error}") from None
        return packed

    def _load_scripts(self, packed, scripts, after):
        ports = tuple(self._records.items)
        for port, rows in packed.items():
            self.simulation.load(f"{port}_script", 0, rows)
            self.simulation.controls[f"{port}_count"] = len(scripts.get(port, ()))
            self.simulation.controls[f"{port}_after"] = sum(1 << ports.index(other) for other in after.get(port, ()))

    def _log_windows(self, statuses, trace):
        """What to dump to have the logs, as far as they are filled."""
        records = self._records
        counts = {port: statuses[f"{port}_done"] for port in records.items}
        counts |= {name: statuses[f"{name}_count"] for name in records.others if trace or name not in TRACES}
        return {f"{name}_log": (0, min(count, records.log_depth(name))) for name, count in counts.items()}
