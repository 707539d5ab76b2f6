"""One good command of each kind, for the memories of a ``Scoreboard``; tests change them into bad ones."""

from tilewright.golden import TensorMap
from tilewright.golden.spec import Element, LaneLayout, Opcode, Reduction, Space

__all__ = ["GOOD", "INNER", "PIXELS", "SPARE", "TILE", "WAITING", "pixel_map", "tile_map", "word_of"]

#: Address in shared memory of a barrier that waits.
WAITING = 0x78
#: Address in global memory of the descriptor that is changed.
SPARE = 0x3F80

G, S = Space.GLOBAL, Space.SHARED


def word_of(tmap):
    """The descriptor of a map, as an int."""
    return int.from_bytes(tmap.pack(), "little")


def tile_map(**fields):
    """Two pages from 0x1000 on, with boxes of 2 by 4 rows of 32 bytes; fields may be others, and wrong."""
    shape = {"element": "u32", "address": 0x1000, "size": (32, 16, 4), "stride": (128, 2048), "box": (8, 4, 4),
             "traversal": (1, 2, 1), "swizzle": "64B", "check": False}  # fmt: skip
    return TensorMap(**shape | fields)


def pixel_map(**fields):
    """Two images of 8 by 6 pixels of 32 bytes, 20 of them a command; fields may be others, and wrong."""
    shape = {"element": "f16", "address": 0x1000, "size": (16, 8, 6, 2), "stride": (32, 256, 1536), "channels": 16,
             "pixels": 20, "mode": "im2col", "lower": (-1, -1), "upper": (-1, -1), "check": False}  # fmt: skip
    return TensorMap(**shape | fields)


#: Their descriptors, and one of pixels that can be stored.
TILE, PIXELS, INNER = word_of(tile_map()), word_of(pixel_map()), word_of(pixel_map(lower=(0, 0)))


def _block(source, destination, **fields):
    """A copy of 256 bytes; copies to global memory ignore the barrier."""
    sources, destinations = {G: 0x3000, S: 0x800}, {G: 0x3800, S: 0xC00}
    return {"opcode": Opcode.COPY_BLOCK, "source_space": source, "destination_space": destination, "size": 256,
            "source": sources[source], "destination": destinations[destination], "signal": 1,
            "barrier": WAITING} | fields  # fmt: skip


def _lanes(source, destination, **fields):
    """A tensor of 90 elements of two bytes that moves into, out of, or within four lanes."""
    places = {LaneLayout.GLOBAL: 0x3000, LaneLayout.ALIGNED: 0x100, LaneLayout.COMPACT: 0x300}
    return {"opcode": Opcode.LANES, "element": Element.F16, "shape": (5, 3, 6, 1), "lanes_log2": 2, "eu_log2": 4,
            "source_layout": source, "destination_layout": destination, "source": places[source],
            "destination": places[destination], "signal": 1, "barrier": WAITING} | fields  # fmt: skip


def _tensor(opcode, word=TILE, coords=(4, 1, 1), **fields):
    """A command on a tensor; loads signal the barrier, others ignore it."""
    return {"opcode": opcode, "word": word, "coords": coords, "smem": 0x400, "signal": 1, "barrier": WAITING} | fields


#: A good command of each kind.
GOOD = {
    "load": _tensor(Opcode.LOAD),
    "im2col load": _tensor(Opcode.LOAD, PIXELS, (0, -1, 2), offsets=(1, 2)),
    "store": _tensor(Opcode.STORE),
    "im2col store": _tensor(Opcode.STORE, INNER, (0, 3, 2)),
    "reduce": _tensor(Opcode.REDUCE, reduction=Reduction.ADD),
    "im2col reduce": _tensor(Opcode.REDUCE, INNER, (0, 3, 2), reduction=Reduction.MAX),
    "prefetch": _tensor(Opcode.PREFETCH),
    "im2col prefetch": _tensor(Opcode.PREFETCH, PIXELS, (0, -1, 2), offsets=(1, 2)),
    "copy GG": _block(G, G),
    "copy GS": _block(G, S),
    "copy SG": _block(S, G),
    "copy SS": _block(S, S),
    "prefetch block": {"opcode": Opcode.PREFETCH_BLOCK, "source": 0x3000, "size": 256},
    "to lanes": _lanes(LaneLayout.GLOBAL, LaneLayout.ALIGNED),
    "from lanes": _lanes(LaneLayout.COMPACT, LaneLayout.GLOBAL),
    "lanes": _lanes(LaneLayout.ALIGNED, LaneLayout.COMPACT),
    "replace": {"opcode": Opcode.REPLACE, "descriptor": SPARE, "field": 10, "value": 0xA5A50FF0},
    "invalidate": {"opcode": Opcode.INVALIDATE, "word": TILE},
    "invalidate all": {"opcode": Opcode.INVALIDATE_ALL},
    "commit": {"opcode": Opcode.COMMIT},
    "wait": {"opcode": Opcode.WAIT, "count": 0},
    "wait all": {"opcode": Opcode.WAIT_ALL},
}
