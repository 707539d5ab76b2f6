"""Random replay cases without anything that docs/tmau.md marks **beyond**: silicon and golden must agree on them.

What the documents leave open is not drawn but asked: strides of zero, blocks of no bytes, negative starts of stores.
"""

import random
from dataclasses import replace
from itertools import cycle

from tilewright.golden.spec import Element, L2Promotion, Mode, Reduction
from tilewright.golden.spec.fields import spoken
from tilewright.golden.tmau.reduce import is_legal
from tilewright.golden.tmau.tile import extent, footprint, walk

from ..random.maps import random_start
from ..replay.writer import map_fields
from .special_values import special_values

__all__ = ["BLOCK_REDUCTIONS", "TENSOR_REDUCTIONS", "random_cases"]

_SHARED_ADDS = (Element.U32, Element.S32, Element.U64)
_SHARED_WORDS = (Element.U32, Element.S32)
_BITS = (Reduction.AND, Reduction.OR, Reduction.XOR)

_LEGAL = tuple((op, element) for op in Reduction if op for element in Element if is_legal(op, element))

#: Operation and element of every reduction of tensors that silicon has and makes as we do.
TENSOR_REDUCTIONS = tuple((op, element) for op, element in _LEGAL if op not in _BITS or element != Element.S64)


def _blocks(op, element, memory):
    if memory == "global":
        return (op, element) != (Reduction.ADD, Element.F32)  # silicon keeps subnormal numbers there
    return element in (_SHARED_ADDS if op == Reduction.ADD else _SHARED_WORDS)


#: The same of blocks, with the memory of the destination. In shared memory there are fewer instructions.
BLOCK_REDUCTIONS = tuple(
    (memory, op, element) for op, element in _LEGAL for memory in ("global", "shared") if _blocks(op, element, memory)
)

#: What cases are about, one after the other.
_KINDS = ("load", "store", "load", "reduce", "load", "copy", "load", "reduce", "load", "copy_reduce",
          "load", "store", "load", "reduce", "copy_reduce", "copy", "load", "sequence",
          "load", "store", "load", "reduce", "load", "store", "load", "copy_reduce",
          "load", "store", "load", "reduce", "load", "copy", "load", "reduce",
          "load", "store", "reduce", "copy", "copy_reduce", "prefetch")  # fmt: skip

_LINE = 128  # bytes; where transfers of tensors begin in shared memory
_SMALL = 4096  # bytes; where tensors lie whose contents are listed


def random_cases(seed, count):
    """Yields so many cases as a case file has them, but for ``expect``; a function of its arguments alone."""
    rng = random.Random(seed)
    turns = {"element": cycle(Element), "tensor": cycle(TENSOR_REDUCTIONS), "block": cycle(BLOCK_REDUCTIONS)}
    for number, kind in zip(range(count), cycle(_KINDS), strict=False):
        yield _Maker(rng, turns).case(f"{kind}_{seed}_{number}", kind)


class _Maker:
    """Makes one case. Memories are of few sizes and patterns, so that the hash of one that is not written is known."""

    def __init__(self, rng, turns):
        self._rng = rng
        self._turns = turns  # of which each has its turn
        self._sizes = {"global": rng.choice([16 << 10, 32 << 10]), "shared": 16 << 10}
        self._init = {"global": {"mix": rng.choice([1, 2])}, "shared": rng.choice([{"fill": 205}, {"mix": 3}])}
        self._listed = {"global": [], "shared": []}
        self._maps, self._commands = {}, []
        self._shared = None  # where every command of a sequence begins

    def case(self, name, kind):
        """The case, as a dictionary of what JSON knows."""
        if kind in ("store", "reduce", "copy_reduce"):
            self._init["shared"] = {"mix": 3}
        getattr(self, f"_{kind}")()
        memories = {}
        for member, memory in (("gmem", "global"), ("smem", "shared")):
            listed, init = self._listed[memory], self._init[memory]
            memories[member] = {"bytes": self._sizes[memory], "init": {"set": listed, "over": init} if listed else init}
        return {"name": name, "kind": "tmau", **memories, "maps": self._maps, "commands": self._commands}

    def _load(self):
        element = next(self._turns["element"])
        special = element == Element.TF32 and self._rng.random() < 0.6
        self._tensor("load", element, special=special)

    def _store(self):
        self._tensor("store", next(self._turns["element"]))

    def _reduce(self):
        op, element = next(self._turns["tensor"])
        special = not self._commands and self._rng.random() < 0.6
        self._tensor("reduce", element, {"reduce": spoken(op)}, special=special)

    def _prefetch(self):
        rng = self._rng
        if rng.random() < 0.5:
            self._tensor("prefetch", next(self._turns["element"]))
        else:
            size = 16 * rng.randint(1, 64)
            self._commands.append({"op": "prefetch_block", "src": self._block("global", size), "size": size})

    def _copy(self):
        source, destination = self._rng.choice([("global", "shared"), ("shared", "global"), ("shared", "shared")])
        self._blocks_of(source, destination)

    def _copy_reduce(self):
        memory, op, element = next(self._turns["block"])
        fields = {"reduce": spoken(op), "element": spoken(element)}
        self._blocks_of("shared", memory, fields, element if self._rng.random() < 0.6 else None)

    def _sequence(self):
        """Commands of which each finds what those before have left."""
        self._shared = 0
        self._load()
        for _ in range(self._rng.randint(1, 3)):
            self._rng.choice([self._load, self._store, self._store, self._reduce, self._copy])()

    def _tensor(self, op, element, fields=None, *, special=False):
        """A command on a tensor; ``special``: of numbers that matter, in both memories."""
        rng = self._rng
        writes = op in ("store", "reduce")
        end = _SMALL if special else self._sizes["global"]
        most = rng.choice([1024, 2048] if special else [256, 1024, 4096, 8192])
        least = rng.choice([0, 1, 1, 128 if special else 1])  # bytes inside the tensor
        while True:
            start = random_start(
                rng, first=0, end=end, most_bytes=most, stores=writes, elements=(element,), beyond=False
            )
            tile = walk(start.tmap, start.coords, offsets=(*start.offsets, 0, 0, 0)[:3])
            if tile.inside.sum() * (tile.stop - tile.start) >= least:
                break
        tmap = replace(start.tmap, l2_promotion=rng.choice(list(L2Promotion)))
        entry = {"op": op, "map": f"m{len(self._maps)}", "coords": list(start.coords)} | (fields or {})
        self._maps[entry["map"]] = map_fields(tmap)
        if tmap.mode == Mode.IM2COL and not writes:
            entry["offsets"] = list(start.offsets)
        if op != "prefetch":
            last = (self._sizes["shared"] - footprint(tmap)) // _LINE
            entry["smem"] = _LINE * rng.randint(0, last) if self._shared is None else self._shared
        self._commands.append(entry)
        if special:
            self._list("global", tmap.address, extent(tmap), tmap.element)
            if writes:
                self._list("shared", entry["smem"], footprint(tmap), tmap.element, 1)

    def _blocks_of(self, source, destination, fields=None, special=None):
        """A copy of a block; ``special``: the type of the numbers that matter, or None."""
        rng = self._rng
        size = 16 * rng.choice([1, 2, rng.randint(1, 64), rng.randint(1, 256)])
        if special is not None:  # all pairs of them
            numbers = len(special_values(special))
            size = -(-numbers * (numbers + 1) * special.bytes // 16) * 16
        # In one memory the two places are in halves of their own.
        halves = rng.choice([(0, 1), (1, 0)]) if source == destination else (None, None)
        places = [self._block(memory, size, half) for memory, half in zip((source, destination), halves, strict=True)]
        entry = {"op": "copy_block", "src": [source, places[0]], "dst": [destination, places[1]], "size": size}
        self._commands.append(entry | (fields or {}))
        if special is not None:
            self._list(source, places[0], size, special, 1)
            self._list(destination, places[1], size, special)

    def _block(self, memory, size, half=None):
        """Address of a block in a memory, or in one of its halves."""
        whole = self._sizes[memory]
        first, room = (0, whole) if half is None else (half * whole // 2, whole // 2)
        return first + 16 * self._rng.randint(0, (room - size) // 16)

    def _list(self, memory, address, size, element, more=0):
        """Lists numbers that matter, again and again. With and without ``more`` they meet in all pairs, in time."""
        rng = self._rng
        values = [*special_values(element), *(rng.getrandbits(8 * element.bytes) for _ in range(more))]
        first = rng.randrange(len(values))
        values = values[first:] + values[:first]
        data = b"".join(value.to_bytes(element.bytes, "little") for value in values)
        self._listed[memory].append([address, (data * (size // len(data) + 1))[:size].hex()])
