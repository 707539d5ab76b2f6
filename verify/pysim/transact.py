"""Sends and receives on several ports of a design at once."""

from operator import attrgetter

from .simulate import simulate
from .streams import STALL_MODES, receive, send, watch_stream

__all__ = ["transact"]


def transact(
    dut, items=(), counts=(), mode="none", *, seed=0, inputs=(), steady=(), background=(), settle=0, deadline=10_000
):
    """Sends items into ports and receives payloads from others, until all are done. The stream rules are watched.

    Parameters
    ----------
    dut : Component
    items : dict of str to sequence
        Payloads to send, by port. Names may have dots.
    counts : dict of str to int
        Numbers of payloads to receive, by port.
    mode : str
        Key of ``STALL_MODES``: pauses of all ports.
    seed : int
        Of the pauses.
    inputs : dict of str to value
        Inputs to set before the first cycle.
    steady : sequence of str
        Ports that never pause.
    background : sequence
        As in :func:`simulate`.
    settle : int
        Cycles to wait after the last payload.

    Returns
    -------
    dict of str to list, dict of str to list of int
        The payloads that were received, and the cycles of all handshakes, by port.
    """
    items, counts, payloads, cycles = dict(items), dict(counts), {}, {}

    def chance(kind, name):
        return 0.0 if name in steady else STALL_MODES[mode][kind]

    async def prepare(ctx):
        for name, value in dict(inputs).items():
            ctx.set(attrgetter(name)(dut), value)

    def source(number, name):
        async def drive(ctx):
            port = attrgetter(name)(dut)
            cycles[name] = await send(ctx, port, items[name], idle=chance("idle", name), seed=seed + number)

        return drive

    def sink(number, name):
        async def take(ctx):
            port = attrgetter(name)(dut)
            payloads[name], cycles[name] = await receive(
                ctx, port, counts[name], stall=chance("stall", name), seed=seed + number
            )
            if settle:
                await ctx.tick().repeat(settle)

        return take

    testbenches = [
        prepare,
        *(source(n, name) for n, name in enumerate(items)),
        *(sink(n, name) for n, name in enumerate(counts)),
    ]
    rules = [watch_stream(attrgetter(name)(dut), name) for name in counts]
    simulate(dut, *testbenches, background=[*rules, *background], deadline=deadline)
    return payloads, cycles
