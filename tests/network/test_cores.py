"""A network on several cores: results are those of one core, and no core meets another one at a byte.

The RTL is in tests/integration/cluster/test_networks.py.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tilewright import network
from tilewright.network import ModelError
from tilewright.network.barriers import MEETINGS, TURNS
from tilewright.network.drawn import NetworkMaker
from tilewright.network.failures import ProgramStoppedError
from tilewright.network.machine import MACHINES
from tilewright.network.plan.instructions import Command, Hold, Signal
from tilewright.network.reader import read_model
from tilewright.network.tiling.shares import chunk, row_spans
from tilewright.spec import BarrierOp
from tilewright.spec.core import PROGRAM_WORDS, WORD_BITS, Kind
from tilewright.verify.core_races import find_core_races
from tilewright.verify.random.networks import draw_inputs, draw_network


def check(graph, inputs, machine, *, every_tensor=False):
    """Compiles a network for several cores, runs it on golden, and compares with the evaluation."""
    compiled = network.compile(graph, machine, every_tensor=every_tensor)
    names = [node.output for node in graph.nodes] if every_tensor else None
    expected = network.evaluate(graph, inputs)
    for name, value in compiled.tensors(compiled.run_golden(inputs), names).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name, strict=True)
    return compiled


def residual(channels=64):
    """Convolutions that cores share by rows and by channels, and a sum."""
    maker = NetworkMaker(3)
    x = maker.conv(maker.input((1, 16, 24, 20)), channels, 3, stride=2)
    y = maker.conv(maker.conv(x, 2 * channels), channels, 3)
    x = maker.add(y, x)
    maker.matrix(maker.reshape(maker.pool(x, "sum", maker.tensors[x].shape[2:]), 1, channels), 70)
    return maker


def test_shares():
    assert row_spans(14, 4) == ((0, 4), (4, 8), (8, 11), (11, 14))
    assert row_spans(2, 3) == ((0, 1), (1, 2), (2, 2))
    assert [chunk(range(7), (core, 3)) for core in range(3)] == [range(3), range(3, 5), range(5, 7)]


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_networks(first):
    """Two, three and four cores in turn, of ``unit`` and ``default``; the seed of each is its number."""
    for seed in range(first, first + 20):
        rng = np.random.default_rng([23, seed])
        graph = read_model(draw_network(rng))
        machine = replace(MACHINES["default" if seed % 5 == 4 else "unit"], cores=2 + seed % 3)
        compiled = check(graph, draw_inputs(rng, graph), machine, every_tensor=bool(seed & 4))
        if seed % 4 == 1:
            assert find_core_races(compiled.programs, compiled.image, machine.smem_bytes) == [], seed


@pytest.mark.parametrize("cores", [2, 3, 4, 7, 16])
def test_any_number_of_cores(cores):
    maker = residual()
    compiled = check(maker.graph(), maker.draw(), replace(MACHINES["unit"], cores=cores))
    assert len(compiled.programs) == cores and compiled.plan.machine.peak == cores * MACHINES["unit"].conv.peak
    assert find_core_races(compiled.programs, compiled.image, compiled.plan.machine.smem_bytes) == []


def test_cores_are_faster_and_share_what_all_read():
    maker = residual(128)
    one = network.compile(maker.graph(), "default")
    four = network.compile(maker.graph(), "default", cores=4)
    assert four.plan.cycles < 0.6 * one.plan.cycles
    text = four.explanation.splitlines()
    assert text[0].split()[-3:] == ["cores", "bytes", "alone"]
    place = text[0].index("cores")
    assert {line[place : text[0].rindex("bytes alone")].rstrip() for line in text[1:-4]} == {
        "rows", "channels", "rows and channels"}  # fmt: skip
    loaded = sum(span.words for span in four.plan.spans if span.engine == "load")
    alone = sum(span.words * span.receivers for span in four.plan.spans if span.engine == "load")
    assert loaded < 0.6 * alone


def test_two_ports():
    """An estimate: no cycle is lost to the second one, and the program is as right."""
    maker, machine = residual(128), replace(MACHINES["unit"], cores=4)
    one, two = (check(maker.graph(), maker.draw(), replace(machine, ports=ports)).plan for ports in (1, 2))
    assert two.cycles < one.cycles
    with pytest.raises(ValueError, match=r"^ports must be 1 or more, not 0$"):
        replace(machine, ports=0)


def test_jobs_run_beside_kernels():
    """The products of the values do not wait for the softmax, though cores meet before it, and share their weights."""
    maker = NetworkMaker(10)
    x = maker.input((256, 64))
    q, k, v = maker.matrix(x, 64), maker.matrix(x, 64), maker.matrix(maker.matrix(x, 256), 64)
    maker.product(maker.softmax(maker.product(q, maker.transpose(k, 1, 0))), v)
    compiled = check(maker.graph(), maker.draw(), replace(MACHINES["default"], cores=4))
    assert find_core_races(compiled.programs, compiled.image, compiled.plan.machine.smem_bytes) == []
    kernels = [number for number, layer in enumerate(compiled.plan.layers) if layer.kernel]
    for schedule in compiled.plan.schedules:
        called = [span for span in schedule.spans if span.layer in kernels and span.engine == "pe"]
        first, last = called[0].start, called[-1].start
        assert any(first < span.start < last for span in schedule.spans if span.engine == "conv")


def test_one_core_signals_to_nobody():
    alone = network.compile(residual().graph(), "unit")
    commands = [each for each in alone.plan.schedules[0].instructions if isinstance(each, Command)]
    assert not any(isinstance(each, Signal) for each in alone.plan.schedules[0].instructions)
    assert commands and not any(each.cores for each in commands) and "cores" not in alone.explanation
    assert not waits_for(alone.words, range(MEETINGS.start, 1 << 16))


@pytest.mark.parametrize("cores", [1, 3])
def test_inputs_of_its_own_for_each_core(cores):
    maker = residual()
    graph, inputs = maker.graph(), [maker.draw() for _ in range(cores)]
    compiled = network.compile(graph, "unit", cores=cores, separate=True)
    for answer, given in zip(compiled.run(inputs), inputs, strict=True):
        expected = network.evaluate(graph, given)
        for name, value in answer.items():
            np.testing.assert_array_equal(value, expected[name], err_msg=name, strict=True)
    assert cores == 1 or find_core_races(compiled.programs, compiled.image, compiled.plan.machine.smem_bytes) == []
    with pytest.raises(ModelError, match=f"^inputs must be a list of those of {cores} cores, not "):
        compiled.run(inputs[0])
    with pytest.raises(TypeError, match=r"^separate must be True or False, not 'yes'$"):
        network.compile(graph, "unit", separate="yes")


@pytest.mark.parametrize("cores", [0, 17])
def test_wrong_numbers_of_cores(cores):
    with pytest.raises(ValueError, match=f"^cores must be 1 to 16, not {cores}$"):
        network.compile(residual().graph(), "unit", cores=cores)
    with pytest.raises(TypeError, match=r"^cores must be an integer, not 'two'$"):
        network.compile(residual().graph(), "unit", cores="two")


def test_an_access_unit_that_cannot_signal():
    with pytest.raises(ModelError, match=r"^2 cores signal to each other .* the access unit has no local_copies$"):
        network.compile(residual().graph(), "lean", cores=2)


def is_barrier(word):
    return word >> WORD_BITS - 4 == Kind.BARRIER


def waits_for(words, barriers):
    """Numbers of the words that wait for one of these barriers."""
    fields = {index: PROGRAM_WORDS[Kind.BARRIER].unpack(word) for index, word in enumerate(words) if is_barrier(word)}
    return [index for index, each in fields.items()
            if each["barrier"] in barriers and each["operation"] == BarrierOp.TRY_WAIT]  # fmt: skip


@pytest.mark.parametrize("barriers", [MEETINGS, range(MEETINGS.stop, MEETINGS.stop + 8 * TURNS)])
def test_races_between_cores_are_found(barriers):
    """Without one wait for other cores there is a race, or a wait for the wrong number."""
    compiled = network.compile(residual().graph(), "unit", cores=2)
    smem_bytes = compiled.plan.machine.smem_bytes
    waits = waits_for(compiled.words, barriers)
    assert len(waits) >= 2
    for index in waits:
        programs = [compiled.words[:index] + compiled.words[index + 1 :], compiled.programs[1]]
        assert find_core_races(programs, compiled.image, smem_bytes), index


def test_a_meeting_that_comes_too_early_is_found():
    """A core that comes to a meeting before its stores are written: the wait of the access unit is left out."""
    compiled = network.compile(residual().graph(), "unit", cores=2)
    found = index = 0
    for one, following in pairwise(compiled.plan.schedules[1].instructions):
        if isinstance(one, Hold) and not one.read and getattr(following, "barrier", 0) in MEETINGS:
            words = compiled.programs[1]
            programs = [compiled.words, words[:index] + words[index + 1 :]]
            found += bool(find_core_races(programs, compiled.image, compiled.plan.machine.smem_bytes))
        index += one.words
    assert found


def test_a_core_that_stops_stops_all():
    maker = residual()
    compiled = network.compile(maker.graph(), "unit", cores=3)
    inputs = maker.draw()
    memory, (address, words) = compiled.memory(inputs), compiled.starts[1]
    index = next(index for index in range(words // 2, words) if is_barrier(compiled.programs[1][index]))
    memory[address + 64 * index : address + 64 * index + 64] = 0
    broken = replace(compiled, image=memory)
    sentence = rf"^the program of core 1 stopped with ProgramRecord\(code=.*KIND.*word={index}\), in layer n\d"
    with pytest.raises(ProgramStoppedError, match=sentence) as error:
        broken.run_golden(inputs)
    assert [record is None for record in error.value.records] == [False] * 3
    check(maker.graph(), inputs, compiled.plan.machine)  # the next run works


def test_signals_say_to_whom():
    compiled = network.compile(residual().graph(), "unit", cores=4)
    signals = [[each.cores for each in schedule.instructions if isinstance(each, Signal)]
               for schedule in compiled.plan.schedules]  # fmt: skip
    assert set(signals[0]) == {15}  # the first core issues the multicasts of all its groups
    # The others are ready for multicasts of cores before them.
    assert all(15 in sent and {1} < set(sent) and max(set(sent) - {15}) < 1 << core
               for core, sent in enumerate(signals) if core)  # fmt: skip
