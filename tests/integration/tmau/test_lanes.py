"""Tensors in lanes through the RTL: against golden, against the page's formulas, barriers, errors, and cycles."""

import itertools
import random
from pathlib import Path

import pytest

from support.sessions import session_fixture
from support.tmau import compare_with_golden
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.golden.tmau.lanes import lane_strides
from tilewright.results import record
from tilewright.sim.session import Session
from tilewright.spec import Element, Error, LaneLayout, Opcode
from tilewright.tools.docs.figures import stale

ROOT = Path(__file__).parents[3]
SEED = 20261121
GLOBAL_BYTES = 8192
ELEMENTS = {"u8": 1, "f16": 2, "f32": 4, "u64": 8}
IN_LANES = (LaneLayout.ALIGNED, LaneLayout.COMPACT, LaneLayout.ROW_ALIGNED)
#: W H C N; channels fewer than, as many as, and two more than four lanes; single elements; long rows.
SHAPES = [(1, 1, 1, 1), (5, 3, 6, 2), (5, 4, 3, 2), (16, 1, 4, 3), (1, 7, 9, 1), (33, 2, 2, 1)]


session = session_fixture("unit", engines=["tmau"], latency=12, stall=0.2, seed=SEED)


def lanes(shape, element, source, destination, *, count=4, eu_bytes=16, **fields):
    """A LANES command. Each side is layout, address, and start lane."""
    command = {"opcode": Opcode.LANES, "shape": shape, "element": Element[element.upper()]}
    command |= {"lanes_log2": count.bit_length() - 1, "eu_log2": eu_bytes.bit_length() - 1}
    for name, (layout, address, lane) in (("source", source), ("destination", destination)):
        command |= {name: address, f"{name}_layout": layout, f"{name}_lane": lane}
    return command | fields


def compare(session, *commands, smem=None):
    """Runs commands, each after the one before; golden must agree. Returns the run, and both memories before it."""
    contents = mix_pattern(GLOBAL_BYTES, 1)
    smem = mix_pattern(session.params.smem.size_bytes, 2) if smem is None else smem
    commands = [command | {"wait": True} for command in commands]
    return compare_with_golden(session, commands, contents, smem, drain=32), (contents, smem)


def place(side, index, shape, size, count, eu_bytes, lane_bytes):
    """Byte address of an element as docs/layouts.md has it: everything in elements."""
    layout, base, start = side
    width, height, channels, _ = shape
    w, h, c, n = index
    if layout == LaneLayout.GLOBAL:
        return base + (((n * channels + c) * height + h) * width + w) * size
    eu = eu_bytes // size
    row = -(-width // eu) * eu if layout == LaneLayout.ROW_ALIGNED else width
    channel = -(-height * width // eu) * eu if layout == LaneLayout.ALIGNED else height * row
    batch = -(-(start + channels) // count) * channel
    offset = n * batch + (start + c) // count * channel + h * row + w
    return (start + c) % count * lane_bytes + base + offset * size


def moved_by_the_page(memories, shape, element, source, destination, count, eu_bytes):
    """Both memories afterwards, element by element."""
    contents, smem = (memory.copy() for memory in memories)
    size, lane_bytes = ELEMENTS[element], len(smem) // count
    before = contents.copy(), smem.copy()
    for index in itertools.product(*map(range, shape)):
        at, to = (place(side, index, shape, size, count, eu_bytes, lane_bytes) for side in (source, destination))
        origin = before[source[0] != LaneLayout.GLOBAL][at : at + size]
        (smem if destination[0] != LaneLayout.GLOBAL else contents)[to : to + size] = origin
    return contents, smem


def drawn(rng, shape, kind, smem_bytes):
    """Element type, both sides, lanes and EU bytes of a legal command, in the middle of its lanes."""
    element = rng.choice(list(ELEMENTS))
    size, count = ELEMENTS[element], rng.choice([1, 2, 4, 8, 16])
    eu_bytes = rng.choice([eu for eu in (1, 8, 16, 64) if eu >= size])
    lane_bytes, used, sides = smem_bytes // count, 0, []
    for where in kind:
        if where == LaneLayout.GLOBAL:
            sides.append((where, size * rng.randint(0, 64), 0))
            continue
        start = rng.randrange(count)
        bytes_ = lane_strides(shape, size, start, count, eu_bytes, where).bytes
        granule = max(size, eu_bytes)
        first = -(-used // granule) * granule
        if first + bytes_ > lane_bytes:
            return None
        room = (lane_bytes - first - bytes_) // granule
        # The first of two tensors leaves room for the other.
        first += granule * rng.randint(0, room if used or kind[1] == LaneLayout.GLOBAL else room // 4)
        sides.append((where, first, start))
        used = first + bytes_
    return element, *sides, count, eu_bytes


KINDS = {
    "load": [(LaneLayout.GLOBAL, layout) for layout in IN_LANES],
    "store": [(layout, LaneLayout.GLOBAL) for layout in IN_LANES],
    "change of layout": list(itertools.product(IN_LANES, IN_LANES)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_element_goes_where_the_page_says(session, kind):
    rng = random.Random(SEED)
    compared = 0
    for shape, pair, _ in itertools.product(SHAPES, KINDS[kind], range(3)):
        choice = drawn(rng, shape, pair, session.params.smem.size_bytes)
        if choice is None:  # it does not fit
            continue
        element, source, destination, count, eu_bytes = choice
        run, memories = compare(session, lanes(shape, element, source, destination, count=count, eu_bytes=eu_bytes))
        assert run.error is None, choice
        wanted = moved_by_the_page(memories, shape, *choice)
        assert (run.memory == wanted[0]).all() and (run.shared == wanted[1]).all(), (shape, choice)
        compared += 1
    print(f"{compared} commands")
    assert compared > 2 * len(SHAPES)


def test_strides_of_the_page(session):
    """fp16 (2,3,4,5), 64 bytes, four lanes: N_stride 32 from lane 0, and 64 from lane 2 (in elements)."""
    for start, batch in ((0, 32), (2, 64)):
        run, (contents, _) = compare(
            session, lanes((5, 4, 3, 2), "f16", (LaneLayout.GLOBAL, 0, 0), (LaneLayout.ALIGNED, 0, start), eu_bytes=64)
        )
        lane = run.shared[start * 1024 :]
        assert (lane[:40] == contents[:40]).all()
        assert (lane[2 * batch : 2 * batch + 40] == contents[120:160]).all()


def test_there_and_back_and_between_layouts(session):
    shape, element = (5, 3, 6, 2), "f16"
    whole = (LaneLayout.GLOBAL, 64, 0)
    sides = [(LaneLayout.ALIGNED, 0, 3), (LaneLayout.COMPACT, 272, 1), (LaneLayout.ROW_ALIGNED, 512, 2)]
    path = [whole, *sides, (LaneLayout.GLOBAL, 4098, 0)]
    steps = [lanes(shape, element, source, destination) for source, destination in itertools.pairwise(path)]
    run, (contents, _) = compare(session, *steps)
    assert [stamp.error for stamp in run.commands] == [Error.NONE] * 4
    assert (run.memory[4098 : 4098 + 360] == contents[64 : 64 + 360]).all()


@pytest.mark.parametrize("source", [(LaneLayout.GLOBAL, 2, 0), (LaneLayout.COMPACT, 512, 1)], ids=["load", "change"])
def test_a_barrier_counts_the_bytes_of_the_tensor(session, source):
    shape, barrier = (5, 3, 6, 2), 4088
    count = 2 * 5 * 3 * 6 * 2
    smem = mix_pattern(session.params.smem.size_bytes, 2)
    Barrier(pending=0, expected=1, transactions=count).write(smem, barrier)
    command = lanes(shape, "f16", source, (LaneLayout.ALIGNED, 0, 2), signal=1, barrier=barrier)
    run, _ = compare(session, command, smem=smem)
    assert [address for _, address in run.flips] == [barrier]
    assert Barrier.read(run.shared, barrier) == Barrier(1, 1, 0, 1)


WHOLE = (LaneLayout.GLOBAL, 0, 0)


#: Cycles that a job of a change within shared memory is under way.
WITHIN = 66
#: Shape and lanes of tensors whose channels have 16, 64 and 256 bytes; both sides of a change fit.
CHANNELS = [(16, 1024), (64, 256), (256, 64)]
MOVES = {
    "load": (WHOLE, (LaneLayout.COMPACT, 0, 0)),
    "store": ((LaneLayout.COMPACT, 0, 0), WHOLE),
    "change": ((LaneLayout.COMPACT, 0, 0), (LaneLayout.ALIGNED, 2048, 0)),
}


@pytest.mark.long
def test_cycles_for_each_channel():
    """A job every second cycle, two jobs a channel within shared memory; and as many in flight as there is room for."""
    rows = {}
    with Session("default", ["tmau"]) as fast:
        for latency, (size, channels), (kind, sides) in itertools.product((8, 100), CHANNELS, MOVES.items()):
            fast.configure(latency=latency)
            run = fast.run([lanes((size, 1, channels, 1), "u8", *sides, count=8)])
            assert run.error is None
            ratio = run.span / channels
            print(f"latency {latency:3}, {kind:6}, {channels:4} channels of {size:3} bytes: {ratio:5.2f} cycles each")
            rows[f"{kind} {size}, latency {latency}"] = {"cycles": ratio}
            jobs, under_way = (2, WITHIN) if kind == "change" else (1, latency + 15)
            in_flight = under_way / fast.params.tmau.commands_in_flight
            limit = max(jobs * max(2, in_flight), size / fast.params.tmau.bus_bytes)
            start = latency + 40
            assert run.span <= 1.02 * limit * channels + start, (latency, kind, size)
    record("lanes", rows=rows)
    assert not stale("lanes", ROOT)
