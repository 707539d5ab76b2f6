"""Commands as test data: one of a mixed batch, a good one of each kind, and ones with a fault."""

from dataclasses import dataclass, replace

from tilewright.golden import TensorMap
from tilewright.spec import COMMAND, DESCRIPTOR, TENSOR_OPCODES, Element, LaneLayout, Opcode, Reduction, Space

__all__ = ["GOOD", "INNER", "PIXELS", "SPARE", "TILE", "WAITING", "Order", "Surroundings", "odd_order", "perhaps_odd",
           "pixel_map", "tile_map", "word_of"]  # fmt: skip


@dataclass(frozen=True)
class Order:
    """One command: fields of its format, and the map whose descriptor it uses, with addresses that count from 0.

    Attributes
    ----------
    fields : dict
    tmap : TensorMap or None
    skew : int
        Bytes by which the address of the descriptor is wrong.
    based : tuple of str
        Fields that are global addresses.
    raw : bytes or None
        The descriptor as it stands, instead of a map.
    """

    fields: dict
    tmap: TensorMap | None = None
    skew: int = 0
    based: tuple = ()
    raw: bytes | None = None

    def descriptor(self, base):
        """Bytes of the descriptor, moved by ``base``; None if there is none."""
        if self.tmap is None:
            return self.raw
        return replace(self.tmap, address=self.tmap.address + base, check=False).pack()


@dataclass(frozen=True)
class Surroundings:
    """Everything but its commands that decides how a batch runs.

    Attributes
    ----------
    name : str
    base : int
        Where global memory begins; addresses in the batch count from 0.
    latency : int
    stall : float or (float, float)
    issue_stall, answer_stall : float
    seed : int
        Of the stalls.
    """

    name: str
    base: int
    latency: int
    stall: float | tuple
    issue_stall: float
    answer_stall: float
    seed: int

    def configure(self, session):
        """Sets up a session."""
        names = ("latency", "stall", "issue_stall", "answer_stall", "seed")
        session.configure(**{name: getattr(self, name) for name in names})

    def __str__(self):
        return (
            f"{self.name}: base {self.base:#x}, latency {self.latency}, stall {self.stall}, "
            f"issue stall {self.issue_stall}, answer stall {self.answer_stall}, seed {self.seed}"
        )


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


def perhaps_odd(rng, order, smem_bytes, probability):
    """The order, or sometimes an odd one."""
    return odd_order(rng, order, smem_bytes) if rng.random() < probability else order


def odd_order(rng, order, smem_bytes):
    """The order with one fault, of those that its operation can have.

    None makes it write more bytes, or elsewhere, so that what did not conflict before does not then.
    """
    return rng.choice((*_ANY, *_FAULTS.get(order.fields["opcode"], ())))(rng, order, smem_bytes)


def _with(order, **fields):
    return replace(order, fields=order.fields | fields)


def _moved(order, name, change):
    return _with(order, **{name: order.fields.get(name, 0) + change})


def _coordinate(order, index, change):
    coords = [*order.fields["coords"], 0, 0, 0, 0][: COMMAND["coords"].count]
    coords[index] += change
    return _with(order, coords=tuple(coords))


def _remapped(order, **changes):
    return replace(order, tmap=replace(order.tmap, check=False, **changes))


def _onto_itself(order):
    """A block, copied to where it lies."""
    place, space = order.fields["destination"], order.fields["destination_space"]
    moved = _with(order, size=256, source=place, source_space=space)
    return replace(moved, based=() if space else ("source", "destination"))


_ANY = (
    lambda rng, order, smem: _with(order, opcode=rng.choice([0, 14, 15])),
    lambda rng, order, smem: order if order.tmap is None else replace(order, skew=rng.randint(1, 63)),
)
_BARRIER = (
    lambda rng, order, smem: _with(order, signal=1, barrier=rng.randrange(smem) | 4),
    lambda rng, order, smem: _with(order, signal=1, barrier=smem << rng.randint(0, 8)),
)
_START = (
    lambda rng, order, smem: _coordinate(order, 4, rng.choice([1, -1])),
    lambda rng, order, smem: _coordinate(order, 1, 1 << 16),
    lambda rng, order, smem: _with(order, offsets=(1 << rng.randint(4, 15),)),
    # Neither makes a footprint larger.
    lambda rng, order, smem: _remapped(order, **rng.choice([{"unaligned": False}, {"gather0": True}])),
)
_SHARED = (
    lambda rng, order, smem: _moved(order, "smem", 16 * rng.randint(1, 7)),
    lambda rng, order, smem: _moved(order, "smem", smem << rng.randint(0, 8)),
)
_WRITE = (
    lambda rng, order, smem: _coordinate(order, 0, -(1 << 8)),
    lambda rng, order, smem: _with(order, offsets=(0, 1)),
)
_REDUCTION = (lambda rng, order, smem: _with(order, reduction=rng.randrange(16)),)
_BLOCK = (
    lambda rng, order, smem: _moved(order, "size", rng.randint(1, 15)),
    lambda rng, order, smem: _moved(order, "source", rng.randint(1, 15)),
)
_COPY = (lambda rng, order, smem: _with(order, size=smem + 16), lambda rng, order, smem: _onto_itself(order))
_REPLACE = (
    lambda rng, order, smem: _with(order, field=rng.randint(len(DESCRIPTOR.fields), 255)),
    lambda rng, order, smem: _with(order, index=7),
    lambda rng, order, smem: _with(order, value=1 << 63),
)
_LANES = (
    lambda rng, order, smem: _with(order, element=15),
    lambda rng, order, smem: _with(order, lanes_log2=rng.randint(7, 15)),
    lambda rng, order, smem: _with(order, eu_log2=0, element=4),
    lambda rng, order, smem: _with(order, source_lane=200),
    lambda rng, order, smem: _with(order, source_layout=LaneLayout.GLOBAL, destination_layout=LaneLayout.GLOBAL),
    lambda rng, order, smem: _moved(order, "source" if order.fields["source_layout"] else "destination", smem),
    lambda rng, order, smem: _moved(order, "source", 1),
    lambda rng, order, smem: _with(
        order,
        source=order.fields["destination"],
        source_layout=LaneLayout.COMPACT,
        destination_layout=LaneLayout.COMPACT,
    ),
)
_FAULTS = {
    **dict.fromkeys(TENSOR_OPCODES, _START),
    Opcode.LOAD: _START + _SHARED + _BARRIER,
    Opcode.STORE: _START + _SHARED + _WRITE,
    Opcode.REDUCE: _START + _SHARED + _WRITE + _REDUCTION,
    Opcode.COPY_BLOCK: _BLOCK + _COPY + _REDUCTION + _BARRIER,
    Opcode.PREFETCH_BLOCK: _BLOCK,
    Opcode.REPLACE: _REPLACE,
    Opcode.LANES: _LANES + _BARRIER,
}
