"""Random garbage: descriptors and commands that are mostly wrong, in windows that nothing may leave."""

import random

from tilewright.golden.spec import DESCRIPTOR, FORMATS, TENSOR_OPCODES, Opcode

from .maps import random_start
from .mixed import DESCRIPTOR_SLOTS, GLOBAL_BYTES, PAGE, MixedBatch
from .odd_orders import odd_order
from .order import Order

__all__ = ["garbage_mixes"]

_FIELD_BITS = [bit for bit in range(DESCRIPTOR.bits) if not DESCRIPTOR.reserved_mask >> bit & 1]


def garbage_mixes(seed, params, commands):
    """Yields batches of waiting commands until they hold so many; a function of its arguments alone."""
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
