"""Unit-test simulations in Amaranth's Python simulator."""

import os
import re
from contextlib import nullcontext

from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from ..files import BUILD

__all__ = ["WAVES_VARIABLE", "simulate"]

#: Environment variable: where it is set and not empty, every simulation leaves a waveform.
WAVES_VARIABLE = "TILEWRIGHT_WAVES"

_PERIOD = 1e-6  # seconds; only ratios matter


def simulate(dut, *testbenches, background=(), deadline=10_000, waves=None):
    """Runs ``dut`` on one clock until every testbench has returned.

    Parameters
    ----------
    dut : Elaboratable
        The design; it may be combinational.
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
    # The wrapper gives a combinational design a clock domain, so that testbenches can always count cycles.
    top = Module()
    top.domains.sync = ClockDomain("sync")
    top.submodules.dut = dut

    async def watchdog(ctx):
        # A delay and not ctx.tick().repeat(): that raises when the simulation ends first.
        await ctx.delay(deadline * _PERIOD)
        raise AssertionError(f"simulation of {type(dut).__name__} is not done after {deadline} cycles")

    simulator = Simulator(top)
    simulator.add_clock(_PERIOD)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    for testbench in (watchdog, *background):
        simulator.add_testbench(testbench, background=True)
    with _waves(simulator, dut) if _wanted(waves) else nullcontext():
        simulator.run()


def _wanted(waves):
    return bool(os.environ.get(WAVES_VARIABLE)) if waves is None else waves


def _waves(simulator, dut):
    # Under pytest the variable reads "tests/unit/lib/test_stream.py::test_order[both] (call)".
    test = os.environ.get("PYTEST_CURRENT_TEST", type(dut).__name__).removeprefix("tests/").removesuffix(" (call)")
    path = BUILD / "waves" / (re.sub(r"[^\w.-]+", "-", test).strip("-") + ".vcd")
    path.parent.mkdir(parents=True, exist_ok=True)
    return simulator.write_vcd(str(path))
