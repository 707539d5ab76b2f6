"""Features of replay cases as text, to count coverage and choose examples; and random cases of one core for silicon."""

import random
from dataclasses import replace
from itertools import cycle

from tilewright.golden.tmau.reduce import is_legal
from tilewright.golden.tmau.tile import extent, footprint, pitch, row_bytes, walk
from tilewright.sim.replay.maps import map_fields
from tilewright.spec import TENSOR_OPCODES, Element, L2Promotion, Mode, Opcode, Reduction
from tilewright.spec.fields import spoken
from tilewright.verify.random.maps import random_start

from .packing import SHARED_REDUCTIONS

__all__ = ["BLOCK_REDUCTIONS", "TENSOR_REDUCTIONS", "Maker", "case_features", "random_cases", "special_values",
           "turns"]  # fmt: skip


def case_features(case):
    """The features of a case as a set of texts, such as ``load of f16`` and ``reduce add of s32``."""
    found = {"several commands"} if len(case.commands) > 1 else set()
    for command in case.commands:
        found.update(_of_receivers(command, case.maps.get(command.map)))
        if command.opcode in TENSOR_OPCODES:
            found.update(_of_tensor(command, case.maps[command.map].tmap))
        elif command.opcode == Opcode.COPY_BLOCK:
            found.add(_of_block(command.fields))
        else:
            found.add(spoken(command.opcode))
    return found


def _of_receivers(command, spec):
    """Features of commands whose data land in other cores than the issuer."""
    if command.receivers in (None, 1 << command.core):
        return
    what = f"load {spoken(spec.tmap.mode)}" if spec else _of_block(command.fields)
    if command.receivers.bit_count() > 1:
        yield f"{what} to several cores"
    if not command.receivers >> command.core & 1:
        yield f"{what} to other cores"


def _of_tensor(command, tmap):
    op = spoken(command.opcode)
    yield f"{op} {spoken(tmap.mode)} of rank {tmap.rank}"
    yield f"{op} {spoken(tmap.mode)} with interleave {spoken(tmap.interleave)}"
    yield f"{op} with swizzle {spoken(tmap.swizzle)}"
    yield f"{op} with L2 promotion {spoken(tmap.l2_promotion)}"
    if command.opcode == Opcode.REDUCE:
        yield f"{op} {spoken(command.fields['reduction'])} of {spoken(tmap.element)}"
    else:
        yield f"{op} of {spoken(tmap.element)}"
    if any(step > 1 for step in tmap.traversal[0 if tmap.interleave else 1 :]):
        yield f"{op} {spoken(tmap.mode)} with traversal"
    if pitch(tmap) > row_bytes(tmap):
        yield f"{op} with gaps between rows"
    yield from _of_bounds(op, command.fields, tmap)


def _of_bounds(op, fields, tmap):
    """Features of the position of a command: its start, and the part that is inside."""
    coords = fields["coords"][: tmap.rank]
    offsets = tuple(fields.get("offsets", ()))
    if any(offsets):
        yield f"{op} with offsets"
    if tmap.mode == Mode.TILE and min(coords) < 0:
        yield f"{op} from a negative coordinate"
    tile = walk(tmap, coords, offsets=(*offsets, 0, 0, 0)[:3])
    if tile.inside.all() and tile.stop - tile.start == tile.run_bytes:
        return
    place = "partly" if tile.inside.any() else "wholly"
    yield f"{op} {spoken(tmap.mode)} {place} outside"
    if op == "load":
        yield f"{op} {place} outside, fill {spoken(tmap.fill)} of {spoken(tmap.element)}"


def _of_block(fields):
    places = f"from {spoken(fields['source_space'])} to {spoken(fields['destination_space'])}"
    if fields.get("reduction", Reduction.NONE):
        return f"block {spoken(fields['reduction'])} of {spoken(fields['element'])} {places}"
    return f"block {places}"


_FLOATS = {Element.F16: (5, 10), Element.BF16: (8, 7), Element.F32: (8, 23)}  # bits of exponent and significand

#: Values of the 13 bits that tf32 drops: ties after an even and an odd last place, and their neighbours.
_TF32_TAILS = (0x1000, 0x3000, 0x0FFF, 0x1001)


def special_values(element):
    """Raw bits of some twenty numbers: zeros, subnormal numbers, ties, largest numbers, infinities, NaNs."""
    if element == Element.TF32:
        return [*_float_values(8, 23), *(base | tail for base in (0, 0x3F800000, 0x7F7FC000) for tail in _TF32_TAILS)]
    if element in _FLOATS:
        return _float_values(*_FLOATS[element])
    bits = 8 * element.bytes
    top, every = 1 << bits - 1, (1 << bits) - 1
    return [0, 1, 2, 3, top - 1, top, top + 1, every - 1, every, every // 3, every // 5]


def _float_values(exponent_bits, mantissa_bits):
    sign, last = 1 << exponent_bits + mantissa_bits, 1 << mantissa_bits
    infinity = sign - last
    one = infinity // 2 // last * last
    half_place = one - last * (mantissa_bits + 1)  # half of the last place of one
    even_place = one + last * mantissa_bits  # from this exponent on, a half is half of the last place
    positive = [0, 1, last - 1, last, last + 1, half_place, one - last, one, one + 1, one + 2, even_place,
                even_place + 1, infinity - last - 1, infinity - 1, infinity]  # fmt: skip
    quiet = infinity | last >> 1
    return [*positive, *(sign | value for value in positive), infinity | 1, quiet, quiet | 5, sign | quiet | 3]


_BITS = (Reduction.AND, Reduction.OR, Reduction.XOR)

_LEGAL = tuple((op, element) for op in Reduction if op for element in Element if is_legal(op, element))

#: Operation and element of every reduction of tensors in which silicon agrees with the TMAU.
TENSOR_REDUCTIONS = tuple((op, element) for op, element in _LEGAL if op not in _BITS or element != Element.S64)


def _blocks(op, element, memory):
    if memory == "global":
        return (op, element) != (Reduction.ADD, Element.F32)  # silicon does not flush subnormal numbers there
    return element in SHARED_REDUCTIONS[op]


#: The same for blocks, with the memory of the destination. Silicon has fewer such instructions for shared memory.
BLOCK_REDUCTIONS = tuple(
    (memory, op, element) for op, element in _LEGAL for memory in ("global", "shared") if _blocks(op, element, memory)
)

#: Topics of the cases, in turn.
_KINDS = ("load", "store", "load", "reduce", "load", "copy", "load", "reduce", "load", "copy_reduce",
          "load", "store", "load", "reduce", "copy_reduce", "copy", "load", "sequence",
          "load", "store", "load", "reduce", "load", "store", "load", "copy_reduce",
          "load", "store", "load", "reduce", "load", "copy", "load", "reduce",
          "load", "store", "reduce", "copy", "copy_reduce", "prefetch")  # fmt: skip

_LINE = 128  # bytes; alignment of tensors in shared memory
_SMALL = 4096  # bytes; range of tensors whose contents are listed


def random_cases(seed, count):
    """Yields ``count`` cases as a case file has them, but for ``expect``; equal arguments give equal cases."""
    rng, used = random.Random(seed), turns()
    for number, kind in zip(range(count), cycle(_KINDS), strict=False):
        yield Maker(rng, used).case(f"{kind}_{seed}_{number}", kind)


def turns():
    """What the cases of one run use in turn, for :class:`Maker`."""
    return {"element": cycle(Element), "tensor": cycle(TENSOR_REDUCTIONS), "block": cycle(BLOCK_REDUCTIONS)}


class Maker:
    """Makes one case. Memories have few sizes and patterns, so that the hash of an unwritten memory is known.

    Parameters
    ----------
    rng : random.Random
    turns : dict
        From :func:`turns`, one for all cases of a run.
    """

    def __init__(self, rng, turns):
        self._rng = rng
        self._turns = turns  # which are used in turn
        self._sizes = {"global": rng.choice([16 << 10, 32 << 10]), "shared": 16 << 10}
        self._init = {"global": {"mix": rng.choice([1, 2])}, "shared": rng.choice([{"fill": 205}, {"mix": 3}])}
        self._listed = {"global": [], "shared": []}
        self._maps, self._commands = {}, []
        self._shared = None  # common start of the commands of a sequence

    def case(self, name, kind):
        """The case, as an object for JSON."""
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
        """Commands that use the results of the previous commands."""
        self._shared = 0
        self._load()
        for _ in range(self._rng.randint(1, 3)):
            self._rng.choice([self._load, self._store, self._store, self._reduce, self._copy])()

    def _tensor(self, op, element, fields=None, *, special=False):
        """A command on a tensor; ``special``: both memories have special numbers."""
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
        """A copy of a block; ``special``: the type of the special numbers, or None."""
        rng = self._rng
        size = 16 * rng.choice([1, 2, rng.randint(1, 64), rng.randint(1, 256)])
        if special is not None:  # all pairs of them
            numbers = len(special_values(special))
            size = -(-numbers * (numbers + 1) * special.bytes // 16) * 16
        # Within one memory, source and destination are in different halves.
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
        """Lists special numbers periodically. Lists with and without ``more`` eventually combine all pairs."""
        rng = self._rng
        values = [*special_values(element), *(rng.getrandbits(8 * element.bytes) for _ in range(more))]
        first = rng.randrange(len(values))
        values = values[first:] + values[:first]
        data = b"".join(value.to_bytes(element.bytes, "little") for value in values)
        self._listed[memory].append([address, (data * (size // len(data) + 1))[:size].hex()])
