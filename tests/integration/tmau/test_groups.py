"""Groups and waits through the RTL, in cycles: what a wait waits for, what it does not, and what it holds up."""

import itertools

import numpy as np
import pytest

from support.sessions import session_fixture
from support.tmau import compare_with_golden
from tilewright.golden import TensorMap
from tilewright.golden.memory import mix_pattern
from tilewright.results import record
from tilewright.sim.harness.records import READ_IDS
from tilewright.spec import DESCRIPTOR, Opcode, Space

SEED = 20261121
GLOBAL_BYTES = 1 << 14
DESCRIPTORS = 1 << 13  # address of the first one
LATENCY = 200
#: Cycles from what a wait waits for to its end: the count follows two cycles later, the end passes on.
PROMPT = 8

COMMIT, WAIT_ALL = {"opcode": Opcode.COMMIT}, {"opcode": Opcode.WAIT_ALL}


session = session_fixture("unit", engines=["tmau"], seed=SEED)


@pytest.fixture(autouse=True)
def surroundings(session):
    session.configure(latency=LATENCY, stall=0.0)


def store(number, size=512, **fields):
    """To a place of its own in global memory."""
    places = {"source": 512 * (number % 8), "source_space": Space.SHARED, "destination": 1024 * number}
    return {"opcode": Opcode.COPY_BLOCK, "size": size} | places | fields


def load(number, size=512, **fields):
    """From a place of its own in global memory, which no store of another number changes."""
    places = {"source": 1024 * number, "destination": 512 * (number % 8), "destination_space": Space.SHARED}
    return {"opcode": Opcode.COPY_BLOCK, "size": size} | places | fields


def wait(count, read=0):
    return {"opcode": Opcode.WAIT, "count": count, "read": read}


def compare(session, commands, descriptors=(), after=0):
    """Runs commands back to back, so long after a reset; golden must agree, one after another. Returns the run."""
    contents, smem = mix_pattern(GLOBAL_BYTES, 1), mix_pattern(session.params.smem.size_bytes, 2)
    for number, tmap in enumerate(descriptors):
        place = descriptor(number)
        contents[place : place + DESCRIPTOR.bytes] = np.frombuffer(tmap.pack(), np.uint8)
    session.reset()
    if after:
        session.run(drain=after)
    run = compare_with_golden(session, commands, contents, smem, trace=True)
    assert run.error is None
    return run


def done(run, *indices):
    """When the last of these commands was complete."""
    return max(run.commands[index].done for index in indices)


def first_data_request(run, address=0):
    """When the first data at ``address`` or behind were asked for."""
    trace = run.trace
    return trace.request_cycle[(trace.request_id == READ_IDS["data"]) & (trace.request_address >= address)].min()


@pytest.mark.parametrize("stall", [{}, {"b": 0.95}, {"w": 0.8, "b": 0.8}, {"aw": 0.9}], ids=str)
def test_a_full_wait_ends_with_the_last_response(session, stall):
    session.configure(stall=stall)
    run = compare(session, [store(0), store(1), COMMIT, wait(0)])
    last_response = done(run, 0, 1)
    assert last_response >= run.trace.write_beat_cycle[-1] + LATENCY
    assert last_response <= done(run, 3) <= last_response + PROMPT
    assert done(run, 2) < last_response, "a commit waits for nothing"


def test_a_wait_for_the_sources_ends_before(session):
    run = compare(session, [store(0), store(1), COMMIT, wait(0, read=1), wait(0)])
    assert done(run, 3) <= run.trace.write_beat_cycle[-1] + PROMPT
    assert done(run, 4) >= done(run, 3) + LATENCY - PROMPT
    assert done(run, 4) >= done(run, 0, 1)


def test_a_source_may_be_overwritten_once_it_has_been_read(session):
    """The load goes to where the store's data were. Golden runs them one after the other."""
    for latency, stall in ((8, {}), (8, {"w": 0.9}), (8, {"aw": 0.9}), (LATENCY, {})):
        session.configure(latency=latency, stall=stall)
        run = compare(session, [store(0), COMMIT, wait(0, read=1), load(9, destination=0)])
        assert first_data_request(run) >= done(run, 2)


@pytest.mark.parametrize("allowed", range(3))
def test_a_wait_lets_so_many_groups_be_unfinished(session, allowed):
    """Four groups of two stores each, long enough that they end one after the other."""
    stores = [(store(2 * n, 256), store(2 * n + 1, 256), COMMIT) for n in range(4)]
    run = compare(session, [*itertools.chain(*stores), wait(allowed)])
    ends = [done(run, 3 * n, 3 * n + 1) for n in range(4)]
    reached = max(ends[3 - allowed], done(run, 11))
    assert reached <= done(run, 12) <= reached + PROMPT
    assert sum(end > done(run, 12) for end in ends) == allowed


@pytest.mark.parametrize(
    ("space", "end"),
    [(Space.GLOBAL, (COMMIT, wait(0))), (Space.GLOBAL, (WAIT_ALL,)), (Space.SHARED, (WAIT_ALL,))],
    ids=["global, group", "global, all", "shared, all"],
)
def test_a_copy_within_one_memory_is_waited_for(session, space, end):
    """It goes in pieces, most of which are still to be issued when the commit or the wait comes."""
    copy = {"opcode": Opcode.COPY_BLOCK, "size": 8 * session.params.tmau.exchange_bytes, "source_space": space,
            "destination_space": space, "source": 0, "destination": 8 * session.params.tmau.exchange_bytes}  # fmt: skip
    session.configure(latency=20)
    run = compare(session, [copy, *end])
    assert done(run, len(end)) >= done(run, 0)


def test_what_is_not_committed_is_in_no_group(session):
    run = compare(session, [store(0, 256), COMMIT, store(1, 1024), wait(0)])
    assert done(run, 0) <= done(run, 3) < done(run, 2)


def test_empty_groups_and_waits_without_any(session):
    run = compare(session, [wait(0), COMMIT, wait(0), COMMIT, COMMIT, wait(1)])
    assert done(run, *range(6)) < LATENCY


def test_more_groups_than_are_counted(session):
    """Commits wait for room; nothing is lost."""
    session.configure(latency=20)
    commands = [command for n in range(24) for command in (store(n % 8, 16, destination=64 * n), COMMIT)]
    run = compare(session, [*commands, wait(0)])
    assert done(run, 48) >= done(run, *range(0, 48, 2))


def test_loads_are_in_no_group(session):
    run = compare(session, [load(9), COMMIT, wait(0)])
    assert done(run, 2) < done(run, 0)


def test_wait_all_waits_for_everything_before_and_holds_up_everything_behind(session):
    session.configure(stall={"b": 0.9, "r": 0.5})
    before = [load(8), store(1), load(10), store(3, reduction=1, element=4)]
    run = compare(session, [*before, WAIT_ALL, load(12), store(5)])
    last = done(run, 0, 1, 2, 3)
    assert last <= done(run, 4) <= last + PROMPT
    assert first_data_request(run, 1024 * 12) >= done(run, 4)
    assert run.trace.write_request_cycle[run.trace.write_request_address >= 1024 * 5].min() >= done(run, 4)


def test_a_load_does_not_wait_for_the_store_before_it(session):
    session.configure(stall={"w": 0.9})
    run = compare(session, [store(0), load(9)])
    assert done(run, 1) < done(run, 0)


def test_wait_holds_up_the_load_behind_it(session):
    run = compare(session, [store(0), COMMIT, wait(0), load(0, destination=2048)])
    assert first_data_request(run) >= done(run, 2)


def descriptor(number):
    return DESCRIPTORS + DESCRIPTOR.bytes * number


X, Y, Z = (TensorMap(element="u32", address=2048 * n, size=(64, 8), stride=(256,), box=(16, 4), fill={"constant": n})
           for n in range(3))  # fmt: skip


def tensor(number, slot, coords=(8, 6), opcode=Opcode.LOAD):
    """A box that reaches over the tensor's end."""
    return {"opcode": opcode, "descriptor": descriptor(number), "coords": (*coords, 0, 0, 0), "smem": 512 * slot}


def replace(number, name, value, index=0):
    field = DESCRIPTOR.index(name)
    return {"opcode": Opcode.REPLACE, "descriptor": descriptor(number), "field": field, "index": index, "value": value}


SEQUENCES = {
    "not cached": [replace(1, "address", 0), tensor(1, 0)],
    "cached": [tensor(1, 0), replace(1, "address", 0), tensor(1, 1)],
    "used until now": [*(tensor(1, slot) for slot in range(3)), replace(1, "address", 64), tensor(1, 3)],
    "fetched ahead": [tensor(0, 0), replace(1, "size", 8, index=1), tensor(1, 1), tensor(0, 2), tensor(1, 3)],
    "another one is kept": [tensor(0, 0), tensor(1, 1), replace(1, "fill_constant", 7), tensor(0, 2), tensor(1, 3)],
    "twice": [tensor(1, 0), replace(1, "address", 0), replace(1, "fill_constant", 5), tensor(1, 1)],
    "one after the other": [
        tensor(1, 0), replace(1, "address", 0), tensor(1, 1), replace(1, "address", 4096), tensor(1, 2)],
    "as a store": [tensor(1, 0), WAIT_ALL, replace(1, "address", 4096), tensor(1, 0, opcode=Opcode.STORE)],
    "evicted": [tensor(1, 0), tensor(0, 1), tensor(2, 2), replace(1, "address", 16), tensor(1, 3)],
    "becomes illegal and legal again": [
        tensor(1, 0), replace(1, "address", 16), replace(1, "address", 32), tensor(1, 1)],
}  # fmt: skip


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_the_load_behind_a_replace_sees_the_new_field(session, sequence):
    for latency, stall in ((2, 0.0), (40, 0.0), (LATENCY, {"w": 0.8, "b": 0.9}), (20, 0.5)):
        session.configure(latency=latency, stall=stall)
        compare(session, sequence, [X, Y, Z])


def test_cycles_of_a_replace(session):
    """Two reductions of one word, the second after the first, each a read and a write; two reads for the load."""
    # Behind a reset the reducer's gate clears its memory first.
    cleared = 8 * session.params.tmau.max_outstanding
    run = compare(session, [replace(1, "address", 0), tensor(1, 0)], [X, Y, Z], after=cleared)
    print(f"REPLACE: {done(run, 0)} cycles, the load behind it: {done(run, 1) - done(run, 0)}; latency {LATENCY}")
    assert done(run, 0) <= 4 * LATENCY + 40
    # The descriptor is checked one dimension a cycle once it has come.
    assert done(run, 1) - done(run, 0) <= 2 * LATENCY + 60
    fetch = run.trace.request_cycle[run.trace.request_id == READ_IDS["descriptor"]]
    assert (fetch >= done(run, 0)).all()
    record("groups", replace=done(run, 0), replaced_load=done(run, 1) - done(run, 0), latency=LATENCY)
