"""Bytes that the specification leaves open: what memories may hold, and what depends on them."""

import numpy as np

from tilewright.golden.open_bytes import OpenBytes, whole_elements


def held(count=32):
    memory = np.arange(count, dtype=np.uint8)
    return memory, OpenBytes(memory)


def test_nothing_is_open_at_first():
    memory, bytes_ = held()
    assert not bytes_ and not bytes_.at(np.arange(32)).any()
    assert bytes_.wrong(memory ^ 1).all() and not bytes_.wrong(memory).any()
    assert (bytes_.settled(memory ^ 1) == memory ^ 1).all()


def test_open_bytes_may_hold_anything_and_no_others():
    memory, bytes_ = held()
    bytes_.spoil(np.arange(4, 9))
    assert bytes_ and np.flatnonzero(~bytes_.wrong(memory ^ 255)).tolist() == [4, 5, 6, 7, 8]
    assert np.flatnonzero(bytes_.settled(memory ^ 255) == memory).tolist() == [4, 5, 6, 7, 8]
    memory[6] = 99
    bytes_.write(np.array([6]))
    assert np.flatnonzero(~bytes_.wrong(memory ^ 255)).tolist() == [4, 5, 7, 8]
    assert len(bytes_.wrong(memory[:6])) == 6, "the beginning of a memory"


def test_open_bytes_are_carried_on():
    _, bytes_ = held()
    bytes_.spoil(np.array([1]))
    bytes_.write(np.array([[16, 17, 18, 19]]), bytes_.at(np.array([[0, 1, 2, 3]])))
    assert bytes_.at(np.arange(16, 20)).tolist() == [False, True, False, False]
    bytes_.write(np.array([[20, 21, 22, 23]]), bytes_.at(np.array([[0, 1, 2, 3]])), 4)
    assert bytes_.at(np.arange(20, 24)).all(), "a sum is open as a whole"
    bytes_.write(np.array([[16, 17, 18, 19]]), None, 2)
    assert bytes_.at(np.arange(16, 20)).tolist() == [True, True, False, False], "so is one into an open byte"


def test_an_element_of_two_choices_is_one_of_both():
    memory, bytes_ = held()
    kept = memory.copy()
    memory[8:16] += 100
    bytes_.choose(np.arange(8, 16).reshape(2, 4), kept[8:16].reshape(2, 4))
    for first, second in ((memory, kept), (kept, memory), (kept, kept), (memory, memory)):
        seen = memory.copy()
        seen[8:12], seen[12:16] = first[8:12], second[12:16]
        assert not bytes_.wrong(seen).any()
    torn = memory.copy()
    torn[9] = kept[9]
    assert np.flatnonzero(bytes_.wrong(torn)).tolist() == [9]
    assert bytes_.wrong(memory ^ 255)[8:16].all(), "and nothing else"
    memory[8] = 3
    bytes_.write(np.array([8]))
    assert not bytes_.wrong(memory).any() and bytes_.wrong(kept)[8]


def test_of_what_is_open_there_is_no_choice():
    memory, bytes_ = held()
    bytes_.spoil(np.array([8]))
    bytes_.choose(np.array([[8, 9]]), np.array([[0, 0]], np.uint8))
    assert not bytes_.at(np.array([9])).any() and not bytes_.wrong(memory).any()


def test_the_first_that_depends_is_named():
    _, bytes_ = held()
    bytes_.spoil(np.array([8]))
    bytes_.rely_on(slice(0, 8), "what is before")
    assert bytes_.undecided is None
    bytes_.rely_on(slice(8, 16), "the barrier at 0x8")
    bytes_.rely_on(slice(8, 9), "another one")
    assert bytes_.undecided == "the barrier at 0x8 depends on what is open"


def test_whole_elements():
    marks = np.array([[0, 1, 0, 0], [0, 0, 0, 0]], bool)
    assert whole_elements(marks, 2).tolist() == [[True, True, False, False], [False] * 4]
