"""Random mixes of every command, so drawn that the order in which hardware finishes them cannot be seen.

Commands between two WAIT_ALLs form an *epoch*: they read one half of either memory and write the other. Whatever is
written in an epoch is written by one half of the mover, in order, so that the last command wins as on golden. The roles
of the halves of memory change from epoch to epoch.
"""

import random
from dataclasses import dataclass, replace

from tilewright.golden import TensorMap
from tilewright.golden.spec import DESCRIPTOR, Element, LaneLayout, Opcode, Reduction, Space
from tilewright.golden.tmau.reduce import is_legal
from tilewright.golden.tmau.tile import footprint

from .random_maps import random_start

__all__ = ["BARRIERS", "DESCRIPTOR_SLOTS", "GLOBAL_BYTES", "MixedBatch", "Order", "random_mixes"]

#: Bytes of global memory in which tensors and blocks lie; descriptors follow.
GLOBAL_BYTES = 1 << 17
#: Descriptors of a batch.
DESCRIPTOR_SLOTS = 128
#: Barriers, side by side in the last line of shared memory.
BARRIERS = 16

_LINE = 128
_ODD = 0.08  # probability of a command that must be refused
_LEGAL = [(op, element) for op in Reduction if op for element in Element if is_legal(op, element)]


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
class MixedBatch:
    """Commands that are issued back to back, with everything that decides how they run.

    Attributes
    ----------
    name : str
    base : int
        Where global memory begins; orders count from 0.
    latency : int
    stall : float
    issue_stall, answer_stall : float
    seed : int
        Of the stalls.
    windows : bool
        Whether windows confine the commands, to all but the first page and line of what the batch uses.
    orders : tuple of Order
    wait : bool
        Each command waits until those before are complete.
    """

    name: str
    base: int
    latency: int
    stall: float
    issue_stall: float
    answer_stall: float
    seed: int
    windows: bool
    orders: tuple
    wait: bool = False


def random_mixes(seed, params, commands):
    """Yields batches until they hold so many commands; a function of its arguments alone."""
    rng = random.Random(seed)
    made = count = 0
    while made < commands:
        maker = _Maker(rng, params)
        batch = MixedBatch(
            name=f"seed {seed}, mix {count}",
            base=rng.choice([0, (1 << params.addr_width) - (32 << 20)]),
            latency=rng.choice([2, 3, 20, 100, rng.randint(2, 200)]),
            stall=rng.choice([0, 0, 0.3, 0.7]),
            issue_stall=rng.choice([0, 0, 0.8]),
            answer_stall=rng.choice([0, 0.5]),
            seed=rng.getrandbits(16),
            windows=rng.random() < 0.3,
            orders=tuple(maker.orders()),
        )
        made += len(batch.orders)
        count += 1
        yield batch


class _Maker:
    """Makes the commands of one batch."""

    def __init__(self, rng, params):
        self._rng = rng
        self._smem = params.smem.size_bytes
        self._slots = DESCRIPTOR_SLOTS

    def orders(self):
        rng = self._rng
        while self._slots > 16 and rng.random() < 0.9:
            yield from rng.choices([self._epoch, self._lanes, self._replace], [8, 1, 1])[0]()
            yield Order({"opcode": Opcode.WAIT_ALL})

    def _epoch(self):
        rng = self._rng
        half, room = GLOBAL_BYTES // 2, self._smem // 2
        swap = rng.random() < 0.5
        # First and end of what is read and what is written. The last line of shared memory is left to the barriers.
        self._global = {swap: (0, half), not swap: (half, GLOBAL_BYTES)}
        self._shared = {swap: (0, room), not swap: (room, self._smem - _LINE)}
        makers = [self._load, self._store, self._copy, self._other]
        for _ in range(rng.randint(1, 12)):
            order = rng.choices(makers, [5, 5, 4, 2])[0]()
            yield rng.choice(_ODD_ONES)(rng, order, self._smem) if rng.random() < _ODD else order

    def _line(self, written, size):
        """Address of a transfer of this footprint."""
        first, end = self._shared[written]
        return first + _LINE * self._rng.randint(0, (end - first - size) // _LINE)

    def _most(self, written):
        first, end = self._shared[written]
        return min(self._rng.choice([256, 1024, 4096, 8192]), end - first)

    def _signal(self):
        if self._rng.random() < 0.6:
            return {}
        return {"signal": 1, "barrier": self._smem - _LINE + 8 * self._rng.randrange(BARRIERS)}

    def _load(self):
        first, end = self._global[False]
        start = random_start(self._rng, first=first, end=end, most_bytes=self._most(True))
        self._slots -= 1
        fields = {"opcode": Opcode.LOAD, "smem": self._line(True, footprint(start.tmap))} | self._signal()
        return Order(fields | {"coords": start.coords, "offsets": start.offsets}, start.tmap)

    def _store(self):
        rng = self._rng
        first, end = self._global[True]
        opcode, reduction, elements = Opcode.STORE, Reduction.NONE, tuple(Element)
        if rng.random() < 0.5:
            opcode = Opcode.REDUCE
            reduction, element = rng.choice(_LEGAL)
            elements = (element,)
        start = random_start(rng, first=first, end=end, most_bytes=self._most(False), stores=True, elements=elements)
        self._slots -= 1
        fields = {"opcode": opcode, "reduction": reduction, "fill": rng.random() < 0.2,
                  "smem": self._line(False, footprint(start.tmap))}  # fmt: skip
        return Order(fields | {"coords": start.coords}, start.tmap)

    def _copy(self):
        rng = self._rng
        spaces = rng.choice(list(Space)), rng.choice(list(Space))
        size = 16 * rng.choice([0, 1, 2, rng.randint(0, 64), rng.randint(0, self._smem // 64)])
        places = []
        for written, space in enumerate(spaces):
            first, end = (self._shared if space else self._global)[bool(written)]
            places.append(first + 16 * rng.randint(0, (end - first - size) // 16))
        fields = {"opcode": Opcode.COPY_BLOCK, "source_space": spaces[0], "destination_space": spaces[1],
                  "source": places[0], "destination": places[1], "size": size}  # fmt: skip
        if rng.random() < 0.4:
            fields["reduction"], fields["element"] = rng.choice(_LEGAL)
        based = tuple(name for name, space in zip(("source", "destination"), spaces, strict=True) if not space)
        return Order(fields | self._signal(), based=based)

    def _other(self):
        rng = self._rng
        kind = rng.randrange(5)
        if kind == 0:
            return Order({"opcode": Opcode.COMMIT})
        if kind == 1:
            return Order({"opcode": Opcode.WAIT, "count": rng.choice([0, 0, 1, 2]), "read": rng.getrandbits(1)})
        if kind == 2:
            fields = {"source": 16 * rng.randrange(64), "size": 16 * rng.randrange(64)}
            return Order({"opcode": Opcode.PREFETCH_BLOCK} | fields, based=("source",))
        if kind == 3:
            return Order({"opcode": Opcode.INVALIDATE_ALL})
        order = self._load()
        return replace(order, fields=order.fields | {"opcode": Opcode.PREFETCH, "signal": 0})

    def _lanes(self):
        """One tensor to lanes, from them, or from one layout to another."""
        rng = self._rng
        element = rng.choice([Element.S8, Element.F16, Element.F32, Element.F64])
        lanes_log2 = rng.randint(0, min(4, (self._smem // 256).bit_length() - 1))
        eu_log2 = rng.randint(element.bytes.bit_length() - 1, 7)
        lane_bytes = self._smem >> lanes_log2
        shape = [rng.randint(1, 9), rng.randint(1, 6), rng.randint(1, 9), rng.randint(1, 3)]
        fields = {"opcode": Opcode.LANES, "element": element, "shape": shape, "lanes_log2": lanes_log2,
                  "eu_log2": eu_log2}  # fmt: skip
        based = []
        layouts = rng.choice([(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0), (1, 2), (3, 1), (2, 3)])
        for side, name, layout in zip((0, 1), ("source", "destination"), layouts, strict=True):
            fields[f"{name}_layout"] = LaneLayout(layout)
            if layout == LaneLayout.GLOBAL:
                fields[name] = element.bytes * rng.randint(0, 4096)
                based.append(name)
            else:
                fields[f"{name}_lane"] = rng.randrange(1 << lanes_log2)
                # Two places that hardly ever overlap, and now and then do not fit.
                place = rng.choice([0, lane_bytes // 2]) if side == 0 else lane_bytes // 4
                fields[name] = (place >> eu_log2) << eu_log2
        yield Order(fields, based=tuple(based))

    def _replace(self):
        """A descriptor, one of its fields replaced, and loads before and after."""
        rng = self._rng
        self._global, self._shared = {False: (0, GLOBAL_BYTES)}, {True: (0, self._smem - _LINE)}
        load = self._load()
        yield load
        field = rng.choice([f for f in DESCRIPTOR.fields if f.name in ("box", "fill_constant", "traversal", "size")])
        index = rng.randrange(field.count or 1)
        value = rng.getrandbits(field.width) if field.name == "fill_constant" else rng.choice([0, 1])
        fields = {"opcode": Opcode.REPLACE, "field": DESCRIPTOR.index(field.name), "index": index, "value": value}
        yield Order(fields, load.tmap)
        yield load


def _moved(order, name, change):
    return replace(order, fields=order.fields | {name: order.fields.get(name, 0) + change})


def _started(order, first):
    return replace(order, fields=order.fields | {"coords": (first, *order.fields["coords"][1:])})


def _remapped(order, **changes):
    return order if order.tmap is None else replace(order, tmap=replace(order.tmap, check=False, **changes))


#: Ways to make a legal command an illegal one, or another.
_ODD_ONES = (
    lambda rng, order, smem: _moved(order, "smem", 16 * rng.randint(1, 7)),
    lambda rng, order, smem: _moved(order, "smem", smem << rng.randint(0, 8)),
    lambda rng, order, smem: _moved(order, "size", rng.randint(1, 15)),
    lambda rng, order, smem: replace(order, fields=order.fields | {"signal": 1, "barrier": rng.randrange(smem) | 4}),
    lambda rng, order, smem: replace(order, fields=order.fields | {"reduction": rng.randrange(16)}),
    lambda rng, order, smem: replace(order, fields=order.fields | {"opcode": rng.choice([0, 14, 15])}),
    lambda rng, order, smem: replace(order, fields=order.fields | {"offsets": (1 << rng.randint(4, 15),)}),
    lambda rng, order, smem: order if order.tmap is None else _started(order, -1),
    lambda rng, order, smem: replace(order, skew=rng.randint(1, 63)),
    # Neither makes a footprint larger.
    lambda rng, order, smem: _remapped(order, **rng.choice([{"unaligned": False}, {"gather0": True}])),
)  # fmt: skip
