"""Stream drivers for the Python simulator: sources and sinks that pause, and a checker of the stream rules."""

import operator
import random
from enum import Enum
from functools import cache, partial

from amaranth.hdl import Cat, Shape, Value
from amaranth.lib import data

from .unpacked import unpacker

__all__ = ["STALL_MODES", "packed", "receive", "send", "watch_stream"]

#: Mode of a test -> probabilities of a pause: ``idle`` for the source, ``stall`` for the sink. The keys are what tests
#: are parametrized with: ``receive(ctx, dut.o, n, stall=STALL_MODES[mode]["stall"])``.
STALL_MODES = {
    "none": {"idle": 0.0, "stall": 0.0},
    "idle": {"idle": 0.5, "stall": 0.0},
    "stall": {"idle": 0.0, "stall": 0.5},
    "both": {"idle": 0.4, "stall": 0.4},
}


def packed(shape, value):
    """The bits of ``value`` in ``shape``: what ``ctx.set`` takes for a payload as a ``Value``.

    Dictionaries and sequences are packed member by member; members left out are zero. Numpy integers are integers.

    Returns
    -------
    int

    Raises
    ------
    TypeError, ValueError
        If the value is not a number, dictionary or sequence as the shape asks for, or if it does not fit, where
        Amaranth would cut it off silently.
    """
    return _packer(shape)(value)


@cache
def _packer(shape):
    """A function from a value to its bits; a layout computes its size anew each time that it is asked."""
    if isinstance(shape, type) and issubclass(shape, data.Struct | data.Union):
        shape = data.Layout.cast(shape)
    if not isinstance(shape, data.Layout):
        return partial(_fitting, Shape.cast(shape))
    whole = Shape.cast(shape)
    fields = {name: (_packer(field.shape), field.offset, (1 << field.width) - 1) for name, field in shape}

    def pack(value):
        if isinstance(value, data.Const):
            value = value.as_bits()
        if isinstance(value, list | tuple):
            if len(value) != len(fields):
                raise ValueError(f"{shape!r} has {len(fields)} elements, not {len(value)}")
            value = dict(zip(fields, value, strict=True))
        if not isinstance(value, dict):
            return _fitting(whole, value)
        bits = 0
        for name, member in value.items():
            member_bits, offset, mask = fields[name]
            bits = bits & ~(mask << offset) | member_bits(member) << offset
        return bits

    return pack


def _fitting(shape, value):
    value = operator.index(value.value if isinstance(value, Enum) else value)
    low, high = (-(1 << shape.width - 1), (1 << shape.width - 1) - 1) if shape.signed else (0, (1 << shape.width) - 1)
    if not low <= value <= high:
        raise ValueError(f"{value} does not fit {shape!r}")
    return value & (1 << shape.width) - 1


async def send(ctx, stream, items, *, idle=0.0, seed=0):
    """Drives ``items`` into ``stream``, one a cycle while the sink is ready.

    While the source pauses, ``valid`` is low and the payload is random.

    Parameters
    ----------
    idle : float
        Probability of a pause before an item, in each cycle; less than 1.
    seed : int
        Of the pauses.

    Returns
    -------
    list of int
        The cycle in which each item was accepted, counted from the call.
    """
    rng, pack = random.Random(seed), _packer(stream.payload.shape())
    bits = Value.cast(stream.payload)
    # Set together: the design settles once and not twice.
    offer, width = Cat(stream.valid, bits), len(bits)
    cycles, cycle = [], 0

    def pause():
        ctx.set(offer, rng.getrandbits(width) << 1)

    # One trigger for all cycles is cheaper than one for each.
    ticks = aiter(ctx.tick().sample(stream.ready))
    for item in items:
        while rng.random() < idle:
            pause()
            await anext(ticks)
            cycle += 1
        ctx.set(offer, pack(item) << 1 | 1)
        accepted = False
        while not accepted:
            _, _, accepted = await anext(ticks)
            cycle += 1
        cycles.append(cycle - 1)
    pause()
    return cycles


async def receive(ctx, stream, count, *, stall=0.0, seed=0):
    """Takes ``count`` items from ``stream``, one a cycle while the source is valid.

    After a pause the sink is ready either at once or only when it has seen ``valid``, so that a source that waits for
    ``ready`` does not get through.

    Parameters
    ----------
    stall : float
        Probability of a pause before an item, in each cycle; less than 1.
    seed : int
        Of the pauses.

    Returns
    -------
    list, list of int
        The payloads, and the cycle in which each was taken, counted from the call.
    """
    rng, unpack = random.Random(~seed), unpacker(stream.payload.shape())
    ready = stream.ready
    payloads, cycles, cycle = [], [], 0
    ticks = aiter(ctx.tick().sample(stream.valid, Value.cast(stream.payload)))
    for _ in range(count):
        pauses = 0
        while rng.random() < stall:
            pauses += 1
        waits = stall and rng.random() < 0.5
        if pauses or waits:
            ctx.set(ready, 0)
        for _ in range(pauses):
            await anext(ticks)
            cycle += 1
        while waits:
            _, _, valid, _ = await anext(ticks)
            cycle += 1
            waits = not valid
        ctx.set(ready, 1)
        valid = False
        while not valid:
            _, _, valid, bits = await anext(ticks)
            cycle += 1
        payloads.append(unpack(bits))
        cycles.append(cycle - 1)
    ctx.set(ready, 0)
    return payloads, cycles


def watch_stream(stream, name="stream"):
    """A background testbench that asserts the stream rules: once valid, valid and payload hold until accepted."""

    async def watch(ctx):
        waiting = None
        async for _, reset, valid, ready, bits in ctx.tick().sample(
            stream.valid, stream.ready, Value.cast(stream.payload)
        ):
            if waiting is not None and not reset:
                assert valid, f"{name}: valid was taken back before ready"
                assert bits == waiting, f"{name}: payload changed from {waiting:#x} to {bits:#x} before ready"
            waiting = bits if valid and not ready and not reset else None

    return watch
