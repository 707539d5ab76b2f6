"""Moves: every byte gets to its place, however moves are cut, and whatever fits into shared memory."""

from itertools import product

import numpy as np
import pytest

from tilewright import network
from tilewright.golden import CONV_PRESETS
from tilewright.network import ModelError
from tilewright.network.drawn import NetworkMaker
from tilewright.network.lower.moves import Move
from tilewright.network.machine import Machine
from tilewright.spec.conv import ConvOperation


def places(moves):
    """Bytes of source and output of moves, as pairs."""
    return sorted(
        tuple(start + sum(i * loop[side] for i, loop in zip(index, move.loops, strict=True))
              for side, start in enumerate(move.start, start=1))
        for move in moves for index in product(*(range(size) for size, *_ in move.loops))
    )  # fmt: skip


def jobs_places(moves):
    """Bytes of source and output of the jobs of moves, as pairs."""
    return sorted(
        tuple(start + index[0] + sum(i * pitch for i, pitch in zip(index[1:], pitches, strict=True))
              for start, pitches in ((job.x, job.x_pitch), (job.y, job.y_pitch)))
        for move in moves for job in move.jobs for index in product(*map(range, job.sizes))
    )  # fmt: skip


def draw_move(rng):
    """A transpose of some dimensions, with room between rows of both sides."""
    sizes = [int(size) for size in rng.integers(1, 5, int(rng.integers(1, 6)))]
    order = rng.permutation(len(sizes))
    steps = []
    for dimensions in (order, range(len(sizes))):
        step, pitches = 1, [0] * len(sizes)
        for axis in dimensions:
            pitches[axis] = step
            step = step * sizes[axis] + int(rng.integers(0, 3))
        steps.append(pitches)
    loops = tuple(loop for loop in zip(sizes, *steps, strict=True) if loop[0] > 1)
    return Move(loops, tuple(int(start) for start in rng.integers(0, 9, 2)))


@pytest.mark.parametrize("side", [0, 1])
def test_cut_anywhere_nothing_is_lost(side):
    rng = np.random.default_rng(6)
    for _ in range(150):
        move = draw_move(rng)
        pairs = places([move])
        ends = [pair[side] for pair in pairs]
        assert move.span(side) == (min(ends), max(ends) + 1)
        assert jobs_places([move]) == pairs
        offset = int(rng.integers(min(ends) - 1, max(ends) + 3))
        before, after = move.split(side, offset)
        assert places(before) == [pair for pair in pairs if pair[side] < offset]
        assert jobs_places(before + after) == pairs
        assert places(after) == [pair for pair in pairs if pair[side] >= offset]


def transpose(maker):
    maker.conv(maker.transpose(maker.input((1, 40, 18, 20)), 0, 3, 2, 1), 8)


def shuffle(maker, batch=2):
    x = maker.reshape(maker.input((batch, 36, 13, 9)), batch, 3, 12, 13, 9)
    maker.conv(maker.reshape(maker.transpose(x, 0, 2, 1, 3, 4), batch, 36, 13, 9), 8)


def blocks_of_channels(maker):
    x = maker.reshape(maker.input((1, 48, 7, 5)), 1, 2, 24, 7, 5)
    x = maker.concat(1, *[maker.transpose(x, 0, 1, 2, 3, 4)] * 2)
    maker.conv(maker.reshape(x, 1, 96, 7, 5), 8)


def joined(maker):
    parts = [maker.reshape(maker.input((1, 3, 30, 20)), 3, 30, 20) for _ in range(3)]
    maker.concat(1, *parts)


def flattened(maker):
    x = maker.conv(maker.input((3, 12, 20, 17)), 24)
    maker.matrix(maker.reshape(maker.transpose(x, 0, 2, 3, 1), 3 * 20 * 17 * 2, 12), 5)


NETWORKS = [transpose, shuffle, blocks_of_channels, joined, flattened]
#: A whole tensor fits, a part of it, very little; on the last two a convolution is the slower way to reorder channels.
MACHINES = [Machine(), Machine(smem_bytes=8 * 1024), Machine(CONV_PRESETS["unit"], 16 * 1024, 16),
            Machine(CONV_PRESETS["unit"], 1024, 16)]  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES, ids=["all", "some", "small", "little"])
@pytest.mark.parametrize("build", NETWORKS, ids=lambda build: build.__name__)
def test_moves_of_tensors_that_do_not_fit(build, machine, check_program):
    maker = NetworkMaker(5)
    build(maker)
    compiled = check_program(maker, machine, races=True)
    assert build is not shuffle or any(layer.moves for layer in compiled.plan.layers) == (machine.conv.peak < 36)


@pytest.mark.parametrize("shape", [(1, 100, 96), (3, 70, 300), (2, 300, 120)])
@pytest.mark.parametrize("machine", [Machine(), Machine(smem_bytes=32 * 1024)], ids=["all", "some"])
def test_transposes_are_products(shape, machine, check_program):
    """The data that moves is the weights, in pieces that fit."""
    maker = NetworkMaker()
    maker.transpose(maker.input(shape), 0, 2, 1)
    compiled = check_program(maker, machine, races=True)
    assert compiled.plan.cycles < np.prod(shape)
    jobs = [job for job in compiled.plan.schedules[0].streams.jobs for job in job[0].jobs]
    assert any(job["operation"] == ConvOperation.CONVOLUTION for job in jobs)


@pytest.mark.parametrize("shape", [(1, 128, 768), (1, 300, 400), (3, 197, 304), (1, 33, 4096)])
def test_bands_of_a_transpose_load_only_their_bytes(shape, check_program):
    """If rows are whole blocks, boxes take parts of them: nothing is loaded twice."""
    maker = NetworkMaker()
    maker.transpose(maker.input(shape), 0, 2, 1)
    compiled = check_program(maker, races=True)
    streams = compiled.plan.schedules[0].streams
    loaded = sum(each.size for step, *_ in streams.loads for each in getattr(step, "transfers", ()))
    assert len(streams.stores) > 1 and loaded < np.prod(shape) + 6000


def test_channels_that_are_only_chosen_are_no_multiplications():
    maker = NetworkMaker(5)
    shuffle(maker)
    compiled = network.compile(maker.graph())
    assert [layer.macs for layer in compiled.plan.layers] == [0, 2 * 13 * 9 * 36 * 8]


@pytest.mark.parametrize("machine", [MACHINES[0], Machine(CONV_PRESETS["unit"], 4096, 16)], ids=["default", "small"])
@pytest.mark.parametrize("zeros", [3, "channels"])
@pytest.mark.parametrize(("groups", "kernel", "less"), [(1, 3, True), (4, 1, True), (4, 3, False)])
def test_the_convolution_before_a_shuffle_does_it(groups, kernel, less, zeros, machine, check_program):
    """If zeros between its groups are less work than a shuffle, and one zero point of weights fits all of them."""
    maker = NetworkMaker(3)
    x = maker.conv(maker.input((2, 24, 9, 7)), 40, kernel, groups=groups, weights="uint8", zeros=zeros)
    x = maker.transpose(maker.reshape(x, 2, 4, 10, 9, 7), 0, 2, 1, 3, 4)
    maker.conv(maker.reshape(x, 2, 40, 9, 7), 8)
    compiled = check_program(maker, machine)
    assert len(compiled.plan.layers) == (2 if less and zeros == 3 else 3)
    assert compiled.plan.macs == sum(map(compiled.graph.macs, compiled.graph.nodes))


@pytest.mark.parametrize("read", [False, True])
def test_a_tensor_with_other_readers_is_shuffled_afterwards(read, check_program):
    """Another node reads it, or it is an output."""
    maker = NetworkMaker(3)
    x = maker.conv(maker.input((1, 24, 9, 7)), 40)
    y = maker.transpose(maker.reshape(x, 1, 4, 10, 9, 7), 0, 2, 1, 3, 4)
    y = maker.reshape(y, 1, 40, 9, 7)
    y = maker.add(y, x) if read else maker.conv(y, 8)
    graph = maker.graph(*(() if read else (x, y)))
    assert len(check_program(graph, inputs=maker.draw()).plan.layers) == 3


def test_a_shared_memory_without_four_lines_is_refused():
    maker = NetworkMaker()
    maker.transpose(maker.input((1, 20, 18, 20)), 0, 3, 2, 1)
    with pytest.raises(
        ModelError, match=r"^node 'n0' \(Transpose\): 384 bytes of shared memory are less than 4 lines of 128$"
    ):
        network.compile(maker.graph(), Machine(smem_bytes=512))
