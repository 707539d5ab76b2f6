"""A photograph through the access unit of a board, beside the golden model."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tilewright.golden import Machine, Memory, TensorMap, command_word
from tilewright.golden.tmau.transfer import load_command, store_command
from tilewright.progress import report
from tilewright.sim.session.golden_options import machine_options
from tilewright.spec import DESCRIPTOR

__all__ = ["FRAME", "HEIGHT", "TILE", "WIDTH", "Moved", "move_photograph"]

#: Pixels of the photograph, three bytes each: a row is three tiles wide.
WIDTH, HEIGHT = 128, 96
#: Pixels to the left and right of it, and rows above and below it, that are loaded and stored too.
FRAME = (16, 8)
#: Bytes and rows of a tile. The last one of a row reaches over the edge of the picture, which the store cuts off.
TILE = (128, 16)
_COLOURS = 3
_ALIGN = 128


class Moved(NamedTuple):
    """What a board has done.

    Attributes
    ----------
    framed : uint8 array
        The photograph with a frame of zeros around it, height × width × 3, as the board has stored it.
    tiles : int
        Loaded, and stored again.
    compared : int
        Bytes of both memories, all of them equal to the golden model's.
    cycles : int
        In which a command was under way.
    """

    framed: np.ndarray
    tiles: int
    compared: int
    cycles: int


def move_photograph(host, params, photo):
    """Loads tiles of a photograph with a frame of zeros around it, swizzled, and stores them as one picture.

    Parameters
    ----------
    host : BoardHost
    params : BoardParams
    photo : uint8 array
        Height × width × 3, whose rows, with and without the frame, are multiples of 16 bytes.

    Returns
    -------
    Moved

    Raises
    ------
    RuntimeError
        If a byte differs from the golden model's, or the board gives up; one sentence.
    ValueError
        If the photograph and its frame do not fit the memory.
    """
    height, width, _ = photo.shape
    rows = photo.reshape(height, -1)
    framed = np.zeros((height + 2 * FRAME[1], (width + 2 * FRAME[0]) * _COLOURS), np.uint8)
    before = _COLOURS * FRAME[0], FRAME[1]
    gmem, maps, descriptors = _placed(params.memory_bytes, rows, framed)
    smem = np.zeros(params.tmau.smem.size_bytes, np.uint8)
    machine = Machine(Memory(gmem, "global memory"), smem, **machine_options(params.tmau))
    report("photograph to the board")
    host.write("memory", 0, gmem[: descriptors[-1] + DESCRIPTOR.bytes])

    tile_bytes = TILE[0] * TILE[1]
    tiles = [(x, y) for y in range(0, framed.shape[0], TILE[1]) for x in range(0, framed.shape[1], TILE[0])]
    batch, compared = len(smem) // tile_bytes, 0
    for first in range(0, len(tiles), batch):
        report("tiles", first, len(tiles))
        part = list(enumerate(tiles[first : first + batch]))
        loads = [load_command(maps[0], (x - before[0], y - before[1]), at * tile_bytes) for at, (x, y) in part]
        stores = [store_command(maps[1], start, at * tile_bytes) for at, start in part]
        for commands, descriptor in ((loads, descriptors[0]), (stores, descriptors[1])):
            for fields in commands:
                word = command_word(**fields, descriptor=descriptor)
                machine.execute(word)
                host.command(word)
            host.wait()
        compared += _compare(host, "shared", smem[: len(part) * tile_bytes])
    report("picture from the board")
    compared += _compare(host, "memory", gmem[: descriptors[-1] + DESCRIPTOR.bytes])
    found = gmem[maps[1].address :][: framed.size].reshape(framed.shape[0], -1, _COLOURS)
    return Moved(found, len(tiles), compared, host.register("busy_cycles"))


def _placed(memory_bytes, *arrays):
    """Global memory with arrays and the descriptors of their maps in it, the maps, and where the descriptors lie."""
    gmem, maps, free = np.zeros(memory_bytes, np.uint8), [], 0
    sizes = [-(-array.size // _ALIGN) * _ALIGN for array in arrays]
    if sum(sizes) + len(arrays) * DESCRIPTOR.bytes > memory_bytes:
        raise ValueError(f"photograph and picture are {sum(sizes)} bytes, too many for {memory_bytes} of memory")
    for array, size in zip(arrays, sizes, strict=True):
        gmem[free : free + array.size] = array.reshape(-1)
        tmap = TensorMap.tiled(array, box=TILE, swizzle="128B", fill="zero")
        maps.append(replace(tmap, address=free, array=None))
        free += size
    descriptors = [free + number * DESCRIPTOR.bytes for number in range(len(maps))]
    for tmap, address in zip(maps, descriptors, strict=True):
        gmem[address : address + DESCRIPTOR.bytes] = np.frombuffer(tmap.pack(), np.uint8)
    return gmem, maps, descriptors


def _compare(host, place, expected):
    """Reads a memory from its first byte on and compares; returns the bytes."""
    found = np.frombuffer(host.read(place, 0, len(expected)), np.uint8)
    wrong = np.flatnonzero(found != expected)
    if len(wrong):
        at = wrong[0]
        raise RuntimeError(
            f"{len(wrong)} bytes of {place} differ: the first, at {at:#x}, is {found[at]} and not {expected[at]}"
        )
    return len(expected)
