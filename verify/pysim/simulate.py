"""Unit-test simulations in Amaranth's Python simulator."""

import os
import re
from contextlib import nullcontext
from functools import lru_cache
from weakref import WeakValueDictionary

from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from tilewright.files import BUILD

__all__ = ["WAVES_VARIABLE", "elaborated", "reset_of", "simulate"]

#: Environment variable: where it is set and not empty, every simulation leaves a waveform.
WAVES_VARIABLE = "TILEWRIGHT_WAVES"

_PERIOD = 1e-6  # seconds; only ratios matter


def elaborated(make, *args, **options):
    """``make(*args, **options)``, the same object at each call, elaborated once for all simulations.

    A test file whose tests simulate equal designs takes them from here: elaboration takes longer than a short run.

    Parameters
    ----------
    make : callable
        Returns the design.
    *args, **options
        Hashable.
    """
    return _kept_bench(make, *args, **options).dut


def reset_of(dut):
    """The reset of a design from :func:`elaborated`, which testbenches set as they set an input."""
    return _BENCHES[id(dut)].domain.rst


def simulate(dut, *testbenches, background=(), deadline=10_000, waves=None):
    """Runs ``dut`` on one clock, from its initial values, until every testbench has returned.

    Parameters
    ----------
    dut : Elaboratable
        The design; it may be combinational, and from :func:`elaborated`.
    *testbenches : async callables
        Each is called with the simulator context. The clock's first rising edge is cycle 0.
    background : sequence of async callables
        Run beside the testbenches, and not waited for: rule checkers, models of neighbours. They loop over
        ``ctx.tick()``: its ``repeat`` and ``until`` complain when the simulation ends before they do.
    deadline : int
        Cycles after which the simulation is given up.
    waves : bool or None
        Leave ``build/waves/<test>.vcd``. None: only if the environment variable ``TILEWRIGHT_WAVES`` is set.

    Raises
    ------
    AssertionError
        If a testbench is still running at the deadline, or as the testbenches raise it.
    """
    bench = _BENCHES.get(id(dut)) or _Bench(dut)
    bench.run(testbenches, background, deadline, _wanted(waves))


class _Bench:
    """A design in a simulator that runs again and again, with other testbenches each time."""

    def __init__(self, dut):
        self.dut = dut
        # The wrapper gives a combinational design a clock domain, so that testbenches can always count cycles.
        self.domain = ClockDomain("sync")
        self._simulator = None

    def run(self, testbenches, background, deadline, waves):
        async def watchdog(ctx):
            # A delay and not ctx.tick().repeat(): that raises when the simulation ends first.
            await ctx.delay(deadline * _PERIOD)
            raise AssertionError(f"simulation of {type(self.dut).__name__} is not done after {deadline} cycles")

        self._waited_for = len(testbenches)
        self._now = [*testbenches, watchdog, *background]
        simulator = self._fresh()
        with _waves(simulator, self.dut) if waves else nullcontext():
            simulator.run()

    def _fresh(self):
        """The simulator, at the beginning, with a slot for each testbench: it cannot forget one once added."""
        if self._simulator is None:
            top = Module()
            top.domains.sync = self.domain
            top.submodules.dut = self.dut
            self._simulator = Simulator(top)
            self._simulator.add_clock(_PERIOD)
            self._slots = 0
        else:
            self._simulator.reset()
        while self._slots < len(self._now):
            self._simulator.add_testbench(self._slot(self._slots), background=True)
            self._slots += 1
        return self._simulator

    def _slot(self, number):
        async def play(ctx):
            if number < self._waited_for:
                with ctx.critical():
                    await self._now[number](ctx)
            elif number < len(self._now):
                await self._now[number](ctx)

        return play


#: The benches of designs from :func:`elaborated`, by the ``id`` of the design.
_BENCHES = WeakValueDictionary()


@lru_cache(maxsize=8)
def _kept_bench(make, *args, **options):
    bench = _Bench(make(*args, **options))
    _BENCHES[id(bench.dut)] = bench
    return bench


def _wanted(waves):
    return bool(os.environ.get(WAVES_VARIABLE)) if waves is None else waves


def _waves(simulator, dut):
    # Under pytest the variable reads "tests/unit/lib/test_stream.py::test_order[both] (call)".
    test = os.environ.get("PYTEST_CURRENT_TEST", type(dut).__name__).removeprefix("tests/").removesuffix(" (call)")
    path = BUILD / "waves" / (re.sub(r"[^\w.-]+", "-", test).strip("-") + ".vcd")
    path.parent.mkdir(parents=True, exist_ok=True)
    return simulator.write_vcd(str(path))
