"""Transfers on all streams of a design at once; a neighbour that answers; counts and logs of strobes."""

from itertools import count

from amaranth.hdl import Value

from tilewright.verify.pysim import streams
from tilewright.verify.pysim.axi import axi_channel
from tilewright.verify.pysim.simulate import simulate

__all__ = ["counting", "member", "pulse", "recording", "responder", "transact"]


def member(dut, path):
    """A port of a design, or a member of one, by its path: ``"o"``, ``"accesses.requests"``, ``"i.0"``.

    The last name may be a channel of AXI: ``"axi.ar"``.
    """
    for name in path.split("."):
        if name in ("ar", "r", "aw", "w", "b") and hasattr(dut, f"{name}valid"):
            return axi_channel(dut, name)
        dut = dut[int(name)] if name.isdigit() else getattr(dut, name)
    return dut


def counting(counts, **signals):
    """A background testbench that adds the value of each signal to ``counts[name]`` in every cycle."""

    async def testbench(ctx):
        async for _, _, *values in ctx.tick().sample(*signals.values()):
            for name, value in zip(signals, values, strict=True):
                counts[name] = counts.get(name, 0) + value

    return testbench


async def pulse(ctx, signal):
    """Sets a signal to 1 for one cycle, and then to 0."""
    ctx.set(signal, 1)
    await ctx.tick()
    ctx.set(signal, 0)


def recording(log, valid, *signals):
    """A background testbench that appends ``(cycle, *values)`` to ``log`` in every cycle with a high ``valid``."""

    unpackers = [streams.unpacker(signal.shape()) for signal in signals]

    async def testbench(ctx):
        cycle = 0
        async for _, _, is_valid, *values in ctx.tick().sample(valid, *map(Value.cast, signals)):
            if is_valid:
                log.append((cycle, *(unpack(bits) for unpack, bits in zip(unpackers, values, strict=True))))
            cycle += 1

    return testbench


def responder(requests, answers, reply, mode="none", *, seed=0):
    """A background testbench that receives requests one at a time, and sends what ``reply(request)`` returns for each:
    an answer, or a list of them.

    It pauses by ``mode``, before a request and before its answers.
    """
    stalls = streams.STALL_MODES[mode]

    async def testbench(ctx):
        for number in count(seed):
            (request,), _ = await streams.receive(ctx, requests, 1, stall=stalls["stall"], seed=number)
            items = reply(request)
            items = items if isinstance(items, list) else [items]
            await streams.send(ctx, answers, items, idle=stalls["idle"], seed=number)

    return testbench


def transact(
    dut,
    send=(),
    receive=(),
    mode="none",
    *,
    seed=0,
    inputs=(),
    starts=(),
    pauses=(),
    watch=(),
    testbenches=(),
    background=(),
    settle=0,
    then=None,
    deadline=10_000,
):
    """Sends items to some ports of a design and receives payloads from others, until all of them are done.

    The stream rules of the ports that are received from are watched.

    Parameters
    ----------
    dut : Component
    send : dict of str to iterable
        Items for each port. Ports are named as in :func:`member`.
    receive : dict of str to int
        Number of payloads to receive from each port.
    mode : str
        Key of ``STALL_MODES``: pauses of all ports.
    seed : int
        Seed of the pauses of the first port. The next port has ``seed + 1``, and so on.
    inputs : dict of str to value
        Inputs to set before the first cycle.
    starts : dict of str to int
        First cycle in which a port is driven, where it is not 0.
    pauses : dict of str to float
        Probability of a pause in each cycle, of ports that do not follow ``mode``.
    watch : iterable of str
        Other ports whose stream rules are watched.
    testbenches, background, deadline
        See :func:`simulate`. The testbenches run beside the ports, after ``inputs`` are set.
    settle : int
        Cycles to simulate after the last transfer.
    then : async callable, optional
        Testbench that runs after these cycles.

    Returns
    -------
    payloads : dict of str to list
        What each port of ``receive`` gave.
    cycles : dict of str to list of int
        Cycles of the transfers of every port.
    """
    send, receive, inputs, starts, pauses = map(dict, (send, receive, inputs, starts, pauses))
    payloads, cycles, remaining = {}, {}, len(send) + len(receive)
    stalls = streams.STALL_MODES[mode]

    async def prepare(ctx):
        for path, value in inputs.items():
            ctx.set(member(dut, path), value)

    async def source(ctx, path, seed):
        idle = pauses.get(path, stalls["idle"])
        cycles[path] = await streams.send(ctx, member(dut, path), send[path], idle=idle, seed=seed)

    async def sink(ctx, path, seed):
        stall = pauses.get(path, stalls["stall"])
        received = await streams.receive(ctx, member(dut, path), receive[path], stall=stall, seed=seed)
        payloads[path], cycles[path] = received

    def play(side, path, seed):
        async def testbench(ctx):
            nonlocal remaining
            start = starts.get(path, 0)
            for _ in range(start):
                await ctx.tick()
            await side(ctx, path, seed)
            cycles[path] = [start + cycle for cycle in cycles[path]]
            remaining -= 1
            if not remaining:
                for _ in range(settle):
                    await ctx.tick()
                if then:
                    await then(ctx)

        return testbench

    ports = [*((source, path) for path in send), *((sink, path) for path in receive)]
    played = [play(side, path, number) for number, (side, path) in enumerate(ports, start=seed)]
    rules = [streams.watch_stream(member(dut, path), path) for path in (*receive, *watch)]
    simulate(dut, prepare, *testbenches, *played, background=[*rules, *background], deadline=deadline)
    return payloads, cycles
