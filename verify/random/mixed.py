"""Random mixes of every command, so drawn that the order in which hardware finishes them cannot be seen.

Commands between two WAIT_ALLs form an *epoch*: they read one half of either memory and write the other. Whatever is
written in an epoch is written by one path of the mover, in order, so that the last command wins as on golden. The roles
of the halves of memory change from epoch to epoch.
"""

import random
from dataclasses import dataclass, replace

from tilewright.golden.tmau.lanes import lane_strides
from tilewright.golden.tmau.machine import is_unsupported
from tilewright.golden.tmau.reduce import is_legal
from tilewright.golden.tmau.tile import footprint
from tilewright.spec import DESCRIPTOR, FORMATS, TENSOR_OPCODES, Element, LaneLayout, Opcode, Reduction, Space

from .commands import Order, Surroundings, odd_order, perhaps_odd
from .maps import random_start

__all__ = ["BARRIERS", "DESCRIPTOR_SLOTS", "GLOBAL_BYTES", "LAYOUT_PAIRS", "PAGE", "MixedBatch", "garbage_mixes",
           "random_mixes"]  # fmt: skip

#: Bytes of global memory in which tensors and blocks lie; descriptors follow.
GLOBAL_BYTES = 1 << 17
#: Descriptors of a batch.
DESCRIPTOR_SLOTS = 128
#: Barriers, side by side in the last line of shared memory.
BARRIERS = 16
#: Layouts of a source and a destination in LANES commands.
LAYOUT_PAIRS = ((0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0), (1, 2), (3, 1), (2, 3))
#: Bytes at the start of global memory that a window leaves out.
PAGE = 4096

_LINE = 128  # at the start of shared memory, likewise
_LEGAL = [(op, element) for op in Reduction if op for element in Element if is_legal(op, element)]


@dataclass(frozen=True)
class MixedBatch(Surroundings):
    """Commands that are issued back to back.

    Attributes
    ----------
    windows : (bool, bool)
        Whether a window confines the commands in global and in shared memory, to all but the first page or line.
    orders : tuple of Order
    wait : bool
        Each command waits until those before are complete.
    """

    windows: tuple
    orders: tuple
    wait: bool = False


def random_mixes(seed, params, commands):
    """Yields batches until they hold ``commands`` commands; a function of its arguments alone."""
    rng = random.Random(seed)
    made = count = 0
    while made < commands:
        windows = rng.choice([(False, False), (False, False), (True, False), (False, True), (True, True)])
        if not params.has("windows"):
            windows = (False, False)
        batch = MixedBatch(
            name=f"seed {seed}, mix {count}",
            base=rng.choice([0, (1 << params.addr_width) - min(32 << 20, 3 << params.addr_width - 2)]),
            latency=rng.choice([2, 3, rng.randint(4, 19), 20, 100, rng.randint(2, 200)]),
            stall=rng.choice([0, 0, 0.3, 0.7]),
            issue_stall=rng.choice([0, 0, 0.8]),
            answer_stall=rng.choice([0, 0.5]),
            seed=rng.getrandbits(16),
            windows=windows,
            orders=tuple(_Maker(rng, params, windows).orders()),
        )
        made += len(batch.orders)
        count += 1
        yield batch


class _Maker:
    """Makes the commands of one batch."""

    def __init__(self, rng, params, windows):
        self._rng = rng
        self._smem = params.smem.size_bytes
        self._windows = windows
        self._features = params.features
        self._slots = DESCRIPTOR_SLOTS

    def orders(self):
        rng = self._rng
        while self._slots > 16 and rng.random() < 0.9:
            # Lanes are all of shared memory, so that a window refuses them.
            lanes = 0.3 if self._windows[1] else 3
            for order in rng.choices([self._epoch, self._lanes, self._replace], [8, lanes, 1])[0]():
                # Commands that are refused for a missing feature would crowd out the rest.
                if not is_unsupported(order.fields, order.descriptor(0), self._features) or rng.random() < 0.1:
                    yield order
            yield Order({"opcode": Opcode.WAIT_ALL})

    def _epoch(self):
        rng = self._rng
        half, room = GLOBAL_BYTES // 2, self._smem // 2
        swap = rng.random() < 0.5
        # First and end of what is read and what is written. The last line of shared memory is left to the barriers.
        first, line = self._firsts()
        self._global = {swap: (first, half), not swap: (half, GLOBAL_BYTES)}
        self._shared = {swap: (line, room), not swap: (room, self._smem - _LINE)}
        makers = [self._load, self._store, self._copy, self._other]
        for _ in range(rng.randint(1, 12)):
            yield perhaps_odd(rng, rng.choices(makers, [5, 5, 4, 3])[0](), self._smem, 0.08)

    def _firsts(self):
        """Where tensors may begin in global and in shared memory: now and then outside the windows."""
        inside = self._rng.random() < 0.9
        return PAGE * (self._windows[0] and inside), _LINE * (self._windows[1] and inside)

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
        most = min(self._smem // 4, GLOBAL_BYTES // 2 - PAGE) // 16
        size = 16 * rng.choice([0, 1, 2, rng.randint(0, 64), rng.randint(0, most)])
        places = []
        for written, space in enumerate(spaces):
            first, end = (self._shared if space else self._global)[bool(written)]
            places.append(first + 16 * rng.randint(0, (end - first - size) // 16))
        fields = {"opcode": Opcode.COPY_BLOCK, "source_space": spaces[0], "destination_space": spaces[1],
                  "source": places[0], "destination": places[1], "size": size}  # fmt: skip
        if rng.random() < 0.65:
            fields["reduction"], fields["element"] = rng.choice(_LEGAL)
        based = tuple(name for name, space in zip(("source", "destination"), spaces, strict=True) if not space)
        return Order(fields | self._signal(), based=based)

    def _other(self):
        rng = self._rng
        kind = rng.randrange(6)
        if kind == 0:
            return Order({"opcode": Opcode.COMMIT})
        if kind == 1:
            return Order({"opcode": Opcode.WAIT, "count": rng.choice([0, 0, 1, 2]), "read": rng.getrandbits(1)})
        if kind == 2:
            first, end = self._global[False]
            fields = {"source": first + 16 * rng.randrange((end - first) // 16), "size": 16 * rng.randrange(64)}
            return Order({"opcode": Opcode.PREFETCH_BLOCK} | fields, based=("source",))
        if kind == 3:
            return Order({"opcode": Opcode.INVALIDATE_ALL})
        order = self._load()
        opcode = Opcode.PREFETCH if kind == 4 else Opcode.INVALIDATE
        return replace(order, fields=order.fields | {"opcode": opcode, "signal": 0})

    def _lanes(self):
        """Three tensors, each to lanes, from them, or from one layout to another, one after the other."""
        for _ in range(2):
            yield self._lanes_order()
            yield Order({"opcode": Opcode.WAIT_ALL})
        yield self._lanes_order()

    def _lanes_order(self):
        """One of them, that leaves the barriers alone."""
        rng = self._rng
        while True:
            order = self._any_lanes()
            if not self._reaches_barriers(order.fields):
                return perhaps_odd(rng, order, self._smem, 0.3)

    def _reaches_barriers(self, fields):
        if fields["destination_layout"] == LaneLayout.GLOBAL:
            return False
        strides = lane_strides(fields["shape"], fields["element"].bytes, fields["destination_lane"],
                               1 << fields["lanes_log2"], 1 << fields["eu_log2"],
                               fields["destination_layout"])  # fmt: skip
        return fields["destination"] + strides.bytes > (self._smem >> fields["lanes_log2"]) - _LINE

    def _any_lanes(self):
        rng = self._rng
        element = rng.choice([Element.S8, Element.F16, Element.F32, Element.F64])
        lanes_log2 = rng.randint(0, min(4, (self._smem // 256).bit_length() - 1))
        eu_log2 = rng.randint(element.bytes.bit_length() - 1, 7)
        lane_bytes = self._smem >> lanes_log2
        shape = [rng.randint(1, 9), rng.randint(1, 6), rng.randint(1, 9), rng.randint(1, 3)]
        fields = {"opcode": Opcode.LANES, "element": element, "shape": shape, "lanes_log2": lanes_log2,
                  "eu_log2": eu_log2}  # fmt: skip
        based = []
        layouts = rng.choice(LAYOUT_PAIRS)
        for side, name, layout in zip((0, 1), ("source", "destination"), layouts, strict=True):
            fields[f"{name}_layout"] = LaneLayout(layout)
            if layout == LaneLayout.GLOBAL:
                fields[name] = self._firsts()[0] + element.bytes * rng.randint(0, 4096)
                based.append(name)
            else:
                fields[f"{name}_lane"] = rng.randrange(1 << lanes_log2)
                # Two places that hardly ever overlap, and now and then do not fit.
                place = rng.choice([0, lane_bytes // 2]) if side == 0 else lane_bytes // 4
                fields[name] = (place >> eu_log2) << eu_log2
        return Order(fields | self._signal(), based=tuple(based))

    def _replace(self):
        """A descriptor, one of its fields replaced, and loads before and after."""
        rng = self._rng
        first, line = self._firsts()
        self._global, self._shared = {False: (first, GLOBAL_BYTES)}, {True: (line, self._smem - _LINE)}
        load = self._load()
        yield load
        field = rng.choice([f for f in DESCRIPTOR.fields if f.name in ("box", "fill_constant", "traversal", "size")])
        index = rng.randrange(field.count or 1)
        value = rng.getrandbits(field.width) if field.name == "fill_constant" else rng.choice([0, 1])
        fields = {"opcode": Opcode.REPLACE, "field": DESCRIPTOR.index(field.name), "index": index, "value": value}
        yield perhaps_odd(rng, Order(fields, load.tmap), self._smem, 0.3)
        yield load


_FIELD_BITS = [bit for bit in range(DESCRIPTOR.bits) if not DESCRIPTOR.reserved_mask >> bit & 1]


def garbage_mixes(seed, params, commands):
    """Yields batches of waiting commands until they hold ``commands`` of them; a function of its arguments alone."""
    rng = random.Random(seed)
    for count in range(-(-commands // DESCRIPTOR_SLOTS)):
        yield MixedBatch(
            name=f"seed {seed}, garbage {count}",
            base=0,
            latency=rng.choice([2, 3, 10]),
            stall=rng.choice([0, 0.3]),
            issue_stall=0,
            answer_stall=0,
            seed=rng.getrandbits(16),
            windows=(True, True),
            wait=True,
            orders=tuple(_order(rng, params) for _ in range(DESCRIPTOR_SLOTS)),
        )


def _order(rng, params):
    if rng.random() < 0.1:
        return _garbage_command(rng, params)
    stores = rng.random() < 0.5
    start = random_start(rng, first=PAGE, end=GLOBAL_BYTES, most_bytes=min(2048, params.smem.size_bytes // 2),
                         stores=stores)  # fmt: skip
    fields = {
        "opcode": rng.choice(TENSOR_OPCODES),
        "reduction": rng.randrange(10),
        "smem": 128 * rng.randrange(params.smem.rows - 16),
        "coords": start.coords,
        "offsets": start.offsets,
    }
    kind = rng.random()
    if kind < 0.2:
        return odd_order(rng, Order(fields, start.tmap), params.smem.size_bytes)
    if kind < 0.22:
        return Order(fields | {"opcode": Opcode.LOAD, "signal": 1, "barrier": 0}, start.tmap)  # outside the window
    word = _bent_word(rng, start.tmap) if kind < 0.75 else _garbage_word(rng, start.tmap)
    return Order(fields, raw=word.to_bytes(DESCRIPTOR.bytes, "little"))


def _bent_word(rng, tmap):
    """A descriptor with one number at the edge of what its field holds, or any other."""
    field = rng.choice(DESCRIPTOR.fields)
    lsb, most = rng.choice([field.lsb, rng.choice(field.lsbs)]), (1 << field.width) - 1
    value = rng.choice([0, 1, most, most, most >> 1, rng.randint(0, most)])
    return int.from_bytes(tmap.pack(), "little") & ~(most << lsb) | value << lsb


def _garbage_word(rng, tmap):
    """A descriptor with a few bits flipped, or random fields, or random bits."""
    kind = rng.random()
    if kind < 0.05:
        return rng.getrandbits(DESCRIPTOR.bits)
    if kind < 0.15:
        return rng.getrandbits(DESCRIPTOR.bits) & ~DESCRIPTOR.reserved_mask & ~0xFF | 1
    word = int.from_bytes(tmap.pack(), "little")
    for _ in range(rng.choice([1, 1, 2, 3])):
        word ^= 1 << (rng.choice(_FIELD_BITS) if rng.random() < 0.95 else rng.randrange(DESCRIPTOR.bits))
    return word


def _garbage_command(rng, params):
    """Random fields of an operation without a descriptor, small numbers more often than large ones."""
    if rng.random() < 0.1:
        # From outside the window.
        spaces = {"source_space": rng.getrandbits(1), "destination_space": rng.getrandbits(1)}
        return Order(spaces | {"opcode": Opcode.COPY_BLOCK, "source": 0, "destination": 2048, "size": 128})
    opcode = rng.choice([Opcode.COPY_BLOCK, Opcode.COPY_BLOCK, Opcode.PREFETCH_BLOCK, Opcode.LANES, Opcode.LANES])
    fields = {"opcode": opcode}
    for field in FORMATS[opcode].fields[1:]:
        low, high = field.range
        most = min(high, rng.choice([high, low + 15, params.smem.size_bytes, GLOBAL_BYTES]))
        values = tuple(rng.randint(low, most) for _ in range(field.count or 1))
        fields[field.name] = values if field.count else values[0]
    for name in ("source", "destination", "size"):
        if name in fields:
            fields[name] &= ~rng.choice([0, 1, 15, 15, 127])
    return Order(fields | {"signal": 0})
