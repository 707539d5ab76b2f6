"""Drivers and rules of streams for the Python simulator, and payloads as Python values."""

import operator
import random
from enum import Enum
from functools import cache, partial

from amaranth.hdl import Cat, Shape, ShapeCastable, Value
from amaranth.lib import data

from .simulate import simulate

__all__ = ["STALL_MODES", "packed", "receive", "run_pipeline", "send", "sender", "set_together", "unpacked", "unpacker",
           "watch_stream"]  # fmt: skip


def unpacked(shape, bits):
    """The value of ``bits`` in ``shape``: the inverse of ``packed``.

    Returns
    -------
    data.Const for a layout; what its ``from_bits`` returns for another shape-castable, as an enumeration; else int

    Raises
    ------
    ValueError
        If the bits do not fit the shape, or are not a member of an enumeration.
    """
    width = Shape.cast(shape).width
    if bits >> width:
        raise ValueError(f"{bits:#x} does not fit the {width} bits of {shape!r}")
    return unpacker(shape)(bits)


@cache
def unpacker(shape):
    """The function from bits, which must fit, to values: for loops that unpack many payloads."""
    if isinstance(shape, type) and issubclass(shape, data.Struct | data.Union):
        shape = data.Layout.cast(shape)
    if isinstance(shape, data.Layout):
        fields = {name: (field.offset, (1 << field.width) - 1, unpacker(field.shape)) for name, field in shape}
        return lambda bits: _Constant(shape, fields, bits)
    if isinstance(shape, ShapeCastable):
        return shape.from_bits
    shape = Shape.cast(shape)
    if shape.signed:
        mask, sign = (1 << shape.width) - 1, 1 << shape.width >> 1
        return lambda bits: (bits & mask ^ sign) - sign
    return lambda bits: bits


class _Constant(data.Const):
    """A constant that finds its members in a dictionary, one for all constants of a layout.

    ``data.Const`` computes the size of its layout and the place of a member at each access.
    """

    def __init__(self, layout, fields, bits):
        # The constructor of the base class is what takes its time; everything that it sets up is overridden.
        self._layout, self._fields, self._bits = layout, fields, bits

    def shape(self):
        return self._layout

    def as_bits(self):
        return self._bits

    def as_value(self):
        return _plain(self).as_value()

    def __getitem__(self, key):
        try:
            offset, mask, unpack = self._fields[key]
        except (KeyError, TypeError):
            return _plain(self)[key]  # a slice, an index from the end, or an error
        return unpack(self._bits >> offset & mask)

    def __getattr__(self, name):
        if name.startswith("_"):
            return self.__getattribute__(name)  # an error: such members are for indexing
        if name not in self._fields:
            return getattr(_plain(self), name)  # an error that lists the members
        value = self.__dict__[name] = self[name]
        return value

    def __len__(self):
        return len(self._fields) if isinstance(self._layout, data.ArrayLayout) else len(_plain(self))

    def __iter__(self):
        return map(self.__getitem__, range(len(self)))

    def __hash__(self):
        return hash(_plain(self))

    def __eq__(self, other):
        if isinstance(other, _Constant) and other._fields is self._fields:
            return self._bits == other._bits
        return _plain(self) == _plain(other)

    def __ne__(self, other):
        return _plain(self) != _plain(other)

    def __repr__(self):
        return f"Const({{{', '.join(f'{name!r}: {self._shown(name)}' for name in self._fields)}}})"

    def _shown(self, name):
        try:
            return repr(self[name])
        except ValueError:  # anything may be in a member that is not used
            offset, mask, _ = self._fields[name]
            return f"{self._bits >> offset & mask:#x}"


def _plain(value):
    return data.Const(value._layout, value._bits) if isinstance(value, _Constant) else value


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
    """A function from a value to its bits; a layout computes its size at each access."""
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


def sender(stream, items, **options):
    """A testbench that does nothing but :func:`send`."""

    async def testbench(ctx):
        await send(ctx, stream, items, **options)

    return testbench


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
    is_ready = False  # the design settles at every ``set``, even of the same value
    for _ in range(count):
        pauses = 0
        while rng.random() < stall:
            pauses += 1
        waits = stall and rng.random() < 0.5
        if pauses or waits:
            ctx.set(ready, 0)
            is_ready = False
        for _ in range(pauses):
            await anext(ticks)
            cycle += 1
        while waits:
            _, _, valid, _ = await anext(ticks)
            cycle += 1
            waits = not valid
        if not is_ready:
            ctx.set(ready, 1)
            is_ready = True
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


def set_together(ctx, *inputs):
    """Sets inputs as ``ctx.set`` does one by one, but the design settles once and not after each.

    Parameters
    ----------
    *inputs : (value-like, value)
        Signals or their parts, and what :func:`packed` takes for each.

    Raises
    ------
    TypeError, ValueError
        See :func:`packed`; then nothing is set.
    """
    signals, bits, offset = [], 0, 0
    for signal, value in inputs:
        bits |= packed(signal.shape(), value) << offset
        signals.append(Value.cast(signal))
        offset += len(signals[-1])
    ctx.set(Cat(signals), bits)


def run_pipeline(dut, rows, behind=None, **latencies):
    """Feeds a pipeline one row a cycle, without a pause.

    Parameters
    ----------
    dut : Component
    rows : sequence of dict
        Values of the members that are inputs, by name; those left out keep their values.
    behind : dict, optional
        Inputs that come later than their rows: cycles by name.
    **latencies
        Outputs by name, with the cycles after which they belong to a row; ``o=dut.LATENCY`` if there is none.

    Returns
    -------
    list of dict
        Values of the outputs, a dictionary for each row.
    """
    latencies, behind = latencies or {"o": dut.LATENCY}, behind or {}
    results = [{} for _ in rows]
    outputs = [(name, late, getattr(dut, name)) for name, late in latencies.items()]
    outputs = [(name, late, Value.cast(port), unpacker(port.shape())) for name, late, port in outputs]

    async def testbench(ctx):
        for cycle in range(len(rows) + max(latencies.values())):
            come = [
                (getattr(dut, name), rows[cycle - late][name])
                for late in {0, *behind.values()}
                if 0 <= cycle - late < len(rows)
                for name in rows[cycle - late]
                if behind.get(name, 0) == late
            ]
            set_together(ctx, *come)
            for name, latency, bits, unpack in outputs:
                if 0 <= cycle - latency < len(rows):
                    results[cycle - latency][name] = unpack(ctx.get(bits))
            await ctx.tick()

    simulate(dut, testbench, deadline=len(rows) + 100)
    return results
