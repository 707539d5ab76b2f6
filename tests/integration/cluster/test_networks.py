"""Networks on two cores of the RTL: all of global memory is what golden leaves; what stops one core stops both.

The model is that of test_programs.py; four cores are simulated with LONG=1.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from support.clusters import PARAMS
from tilewright import network
from tilewright.network import ModelError
from tilewright.network.drawn import NetworkMaker
from tilewright.network.failures import ProgramStoppedError
from tilewright.network.machine import MACHINES
from tilewright.network.plan.instructions import Command
from tilewright.network.reader import read_model
from tilewright.network.rtl import measure_layers, measured, run_cores, run_on
from tilewright.sim.session.cluster import ClusterSession
from tilewright.spec.core import WORD_BITS, Kind, ProgramError
from tilewright.verify.random.networks import draw_inputs, draw_network

CORES, BYTES = PARAMS.cores, 1 << 20
MACHINE = replace(MACHINES["unit"], cores=CORES)


@pytest.fixture(scope="module")
def session():
    with ClusterSession(params=PARAMS, memory_bytes=BYTES, patience=300_000) as session:
        yield session


@pytest.mark.parametrize(
    ("seeds", "least"),
    [(range(3, 14), 10), pytest.param(range(14, 200), 150, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_random_networks(session, seeds, least):
    """Some with little shared memory; the seed of each is its number."""
    ran = 0
    for seed in seeds:
        rng = np.random.default_rng([29, seed])
        graph = read_model(draw_network(rng))
        inputs, every = draw_inputs(rng, graph), bool(seed & 1)
        try:
            machine = replace(MACHINE, smem_bytes=(16, 8, 4)[seed // 2 % 3] * 1024)
            compiled = network.compile(graph, machine, every_tensor=every)
        except ModelError:
            continue
        memory = compiled.memory(inputs)
        if len(memory) > BYTES:
            continue
        session.configure(latency=(2, 20, 100)[seed % 3], stall=0.3 if seed % 4 == 0 else 0.0, seed=seed)
        data, run = run_on(session, compiled, memory)
        assert (run.violations, run.late) == ((), ()), seed
        np.testing.assert_array_equal(data, compiled.run_golden(inputs), err_msg=str(seed))
        ran += 1
    assert ran >= least


@pytest.mark.long
def test_four_cores():
    """Multicasts to some of the cores, which several of them issue."""
    with ClusterSession(params=replace(PARAMS, cores=4), memory_bytes=BYTES, patience=300_000) as session:
        groups = set()
        for seed in range(300, 330):
            rng = np.random.default_rng([29, seed])
            graph = read_model(draw_network(rng))
            inputs = draw_inputs(rng, graph)
            with suppress(ModelError):
                machine = replace(MACHINE, cores=4, smem_bytes=(16, 8)[seed // 2 % 2] * 1024)
                compiled = network.compile(graph, machine)
                memory = compiled.memory(inputs)
                session.configure(latency=(2, 20, 100)[seed % 3], stall=0.3 if seed % 4 == 0 else 0.0, seed=seed)
                data, run = run_on(session, compiled, memory)
                assert (run.violations, run.late) == ((), ()), seed
                np.testing.assert_array_equal(data, compiled.run_golden(inputs), err_msg=str(seed))
                groups |= {each.cores for schedule in compiled.plan.schedules for each in schedule.instructions
                           if isinstance(each, Command)}  # fmt: skip
        assert {0b0011, 0b0101, 0b1010, 0b1100, 0b1111} < groups


def residual():
    maker = NetworkMaker(3)
    x = maker.conv(maker.input((1, 16, 12, 10)), 64, 3)
    maker.add(maker.conv(maker.conv(x, 48), 64, 3), x)
    return maker


def test_layers_are_measured(session):
    maker = residual()
    compiled = network.compile(maker.graph(), MACHINE)
    session.configure(latency=20, stall=0.0, seed=1)
    _, run = run_on(session, compiled, compiled.memory(maker.draw()))
    layers = measure_layers(compiled, run)
    assert len(measured(compiled, run).splitlines()) == len(compiled.plan.layers) + 2
    assert all(0 < layer.share(MACHINE.peak) <= 1 for layer in layers)
    assert sum(layer.cycles for layer in layers) <= run.cycles


@pytest.mark.parametrize("core", [pytest.param(0, marks=pytest.mark.long), 1])
def test_what_stops_one_core_stops_both(session, core):
    """A word that does not exist; without a reset the next run is right."""
    maker = residual()
    compiled, inputs = network.compile(maker.graph(), MACHINE), maker.draw()
    expected, memory = compiled.run_golden(inputs), compiled.memory(inputs)
    session.reset()
    session.configure(latency=20, stall=0.0, seed=1)
    (address, words), program = compiled.starts[core], compiled.programs[core]
    index = next(index for index in range(words // 2, words) if program[index] >> WORD_BITS - 4 == Kind.BARRIER)
    broken = memory.copy()
    broken[address + 64 * index : address + 64 * index + 64] = 0
    sentence = rf"^the program of core {core} stopped with .*KIND.*, in layer n\d"
    with pytest.raises(ProgramStoppedError, match=sentence) as error:
        run_cores(session, compiled, broken)
    codes = [record and record.code for record in error.value.records]
    assert codes[core] == ProgramError.KIND and codes[1 - core] == ProgramError.WATCHDOG
    data, _ = run_cores(session, compiled, memory)
    np.testing.assert_array_equal(data, expected)
