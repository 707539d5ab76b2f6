"""Memories of the golden model, initial contents, and open bytes."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.golden import GlobalMemory, Memory, TensorMap, load, store
from tilewright.golden.memory import OpenBytes, fill_pattern, hex_pattern, mix_pattern, whole_elements


def test_place_aligns_and_goes_up():
    gmem = GlobalMemory(1024)
    assert gmem.place(b"abc") == 0
    assert gmem.place(np.array([1, 2], np.uint16), align=16) == 16
    assert gmem.place(b"x") == 128
    assert gmem.read(16, 4).tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_elements_that_numpy_does_not_know(dtype):
    array = np.arange(64).reshape(2, 32).astype(dtype)
    tmap, before = TensorMap.tiled(array, box=(32, 2), swizzle="none"), array.tobytes()
    smem = load(tmap, (0, 0))
    assert smem.tobytes().startswith(before)
    array[...] = 0
    store(tmap, (0, 0), smem)
    assert array.tobytes() == before
    assert GlobalMemory(1024).place(array) == 0


def test_place_keeps_the_strides_of_a_view():
    whole = np.arange(96, dtype=np.uint8).reshape(6, 16)
    gmem = GlobalMemory(256)
    gmem.place(whole[1::2, :8])
    assert gmem.read(32, 8).tolist() == whole[3, :8].tolist()


def test_place_beyond_the_end():
    with pytest.raises(IndexError, match=r"^200 bytes at 0x0 leave the 100 bytes of global memory$"):
        GlobalMemory(100).place(bytes(200))


def test_place_refuses_negative_strides():
    with pytest.raises(ValueError, match=r"^strides must be positive multiples of the 1-byte element, not \(-1,\)$"):
        GlobalMemory(100).place(np.zeros(4, np.uint8)[::-1])


def test_write_takes_bytes_and_arrays():
    memory = Memory(8)
    memory.write(1, b"\x01\x02")
    memory.write(4, np.array([[0x0403]], "<u2"))
    assert memory.data.tolist() == [0, 1, 2, 0, 3, 4, 0, 0]


@pytest.mark.parametrize("address", [-1, 7, 100])
def test_access_outside_is_refused(address):
    memory = Memory(8, "shared memory")
    with pytest.raises(IndexError, match=r"^2 bytes at -?0x[0-9a-f]+ leave the 8 bytes of shared memory$"):
        memory.read(address, 2)
    with pytest.raises(IndexError, match=r"leave the 8 bytes of shared memory$"):
        memory.write(address, b"ab")


def test_base_is_the_address_of_the_first_byte():
    memory = Memory(b"abcd", base=0x1000)
    assert memory.read(0x1002, 2).tobytes() == b"cd"
    assert memory.holds([0xFFF, 0x1000, 0x1002, 0x1003, 0x2000], 2).tolist() == [False, True, True, False, False]
    assert memory.at([[0x1001, 0x1003], [0x1000, 0x1000]]).tolist() == [[98, 100], [97, 97]]


def test_bytes_at_any_addresses_are_read_and_written():
    memory = Memory(4, base=0x100)
    memory.put([0x103, 0x101, 0x103], np.array([1, 2, 3], np.uint8))
    assert memory.data.tolist() == [0, 2, 0, 3], "of equal addresses the last one stays"
    assert memory.at(np.zeros((0, 4), np.uint64)).shape == (0, 4)
    with pytest.raises(IndexError, match=r"^1 bytes at 0x104 leave the 4 bytes of memory$"):
        memory.put([0x100, 0x104], np.array([9, 9], np.uint8))
    with pytest.raises(IndexError, match=r"^1 bytes at 0xff leave the 4 bytes of memory$"):
        memory.at([0xFF])


def test_memories_need_flat_bytes():
    with pytest.raises(TypeError, match=r"^data of memory must be one-dimensional uint8, not 2-dimensional uint8$"):
        Memory(np.zeros((2, 2), np.uint8))


def test_mix_follows_its_formula():
    pattern = mix_pattern(1 << 12, 0xDEADBEEF)
    for a in (0, 1, 2, 255, 4095):
        assert pattern[a] == ((a + 1) * 0x9E3779B1 + 0xDEADBEEF * 0x85EBCA6B) % (1 << 32) >> 24
    assert mix_pattern(2, 0).tolist() == [0x9E, 0x3C]  # 0x9E3779B1, and twice that without its carry: 0x3C6EF362


def test_fill_and_hex():
    assert fill_pattern(3, 205).tolist() == [205, 205, 205]
    assert hex_pattern(4, "0a FF").tolist() == [10, 255, 0, 0]


@pytest.mark.parametrize(
    ("kind", "call", "sentence"),
    [
        (ValueError, lambda: GlobalMemory(-1), "bytes of global memory must be 0 or more, not -1"),
        (TypeError, lambda: GlobalMemory(1.5), "bytes of global memory must be an integer, not 1.5"),
        (ValueError, lambda: GlobalMemory(16).read(0, -10), "count must be 0 or more, not -10"),
        (TypeError, lambda: GlobalMemory(16).read("0", 1), "address must be an integer, not '0'"),
        (ValueError, lambda: Memory(16, base=-16), "base of memory must be 0 or more, not -16"),
        (TypeError, lambda: GlobalMemory(16).place([1, 2]),
         "data must be bytes or a numpy array of numbers, not [1, 2]"),
        (ValueError, lambda: GlobalMemory(16).place(b"", align=0), "align must be 1 or more, not 0"),
    ],
)  # fmt: skip
def test_refused_memories(kind, call, sentence):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence


def test_repr_of_a_memory():
    assert repr(Memory(16, "shared memory", base=128)) == "Memory(16 bytes of shared memory from 0x80 on)"


def marked(count=32):
    memory = np.arange(count, dtype=np.uint8)
    return memory, OpenBytes(memory)


def test_nothing_is_open_at_first():
    memory, bytes_ = marked()
    assert not bytes_ and not bytes_.at(np.arange(32)).any()
    assert bytes_.wrong(memory ^ 1).all() and not bytes_.wrong(memory).any()
    assert (bytes_.settled(memory ^ 1) == memory ^ 1).all()


def test_open_bytes_may_hold_anything_and_no_others():
    memory, bytes_ = marked()
    bytes_.spoil(np.arange(4, 9))
    assert bytes_ and np.flatnonzero(~bytes_.wrong(memory ^ 255)).tolist() == [4, 5, 6, 7, 8]
    assert np.flatnonzero(bytes_.settled(memory ^ 255) == memory).tolist() == [4, 5, 6, 7, 8]
    memory[6] = 99
    bytes_.write(np.array([6]))
    assert np.flatnonzero(~bytes_.wrong(memory ^ 255)).tolist() == [4, 5, 7, 8]
    assert len(bytes_.wrong(memory[:6])) == 6, "the beginning of a memory"


def test_copies_of_open_bytes_are_open():
    _, bytes_ = marked()
    bytes_.spoil(np.array([1]))
    bytes_.write(np.array([[16, 17, 18, 19]]), bytes_.at(np.array([[0, 1, 2, 3]])))
    assert bytes_.at(np.arange(16, 20)).tolist() == [False, True, False, False]
    bytes_.write(np.array([[20, 21, 22, 23]]), bytes_.at(np.array([[0, 1, 2, 3]])), 4)
    assert bytes_.at(np.arange(20, 24)).all(), "a sum is open as a whole"
    bytes_.write(np.array([[16, 17, 18, 19]]), None, 2)
    assert bytes_.at(np.arange(16, 20)).tolist() == [True, True, False, False], "so is one into an open byte"


def test_an_element_has_one_of_two_choices():
    memory, bytes_ = marked()
    before = memory.copy()
    memory[8:16] += 100
    bytes_.choose(np.arange(8, 16).reshape(2, 4), before[8:16].reshape(2, 4))
    for first, second in ((memory, before), (before, memory), (before, before), (memory, memory)):
        mixed = memory.copy()
        mixed[8:12], mixed[12:16] = first[8:12], second[12:16]
        assert not bytes_.wrong(mixed).any()
    torn = memory.copy()
    torn[9] = before[9]
    assert np.flatnonzero(bytes_.wrong(torn)).tolist() == [9]
    assert bytes_.wrong(memory ^ 255)[8:16].all(), "and nothing else"
    memory[8] = 3
    bytes_.write(np.array([8]))
    assert not bytes_.wrong(memory).any() and bytes_.wrong(before)[8]


def test_open_elements_have_no_choices():
    memory, bytes_ = marked()
    bytes_.spoil(np.array([8]))
    bytes_.choose(np.array([[8, 9]]), np.array([[0, 0]], np.uint8))
    assert not bytes_.at(np.array([9])).any() and not bytes_.wrong(memory).any()


def test_the_first_dependence_is_named():
    _, bytes_ = marked()
    bytes_.spoil(np.array([8]))
    bytes_.rely_on(slice(0, 8), "what is before")
    assert bytes_.undecided is None
    bytes_.rely_on(slice(8, 16), "the barrier at 0x8")
    bytes_.rely_on(slice(8, 9), "another one")
    assert bytes_.undecided == "the barrier at 0x8 depends on what is open"


def test_whole_elements():
    marks = np.array([[0, 1, 0, 0], [0, 0, 0, 0]], bool)
    assert whole_elements(marks, 2).tolist() == [[True, True, False, False], [False] * 4]
