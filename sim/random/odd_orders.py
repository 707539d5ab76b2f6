"""Legal commands, made such that most of them must be refused."""

from dataclasses import replace

from tilewright.golden.spec import COMMAND, DESCRIPTOR, TENSOR_OPCODES, LaneLayout, Opcode

__all__ = ["odd_order", "perhaps_odd"]


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
_COPY = (
    lambda rng, order, smem: _with(order, size=smem + 16),
    lambda rng, order, smem: _onto_itself(order),
)
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
