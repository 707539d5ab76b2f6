"""Steps that tests of stream blocks share."""

from operator import attrgetter
from types import SimpleNamespace

import pytest

from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream


@pytest.fixture
def transact():
    """Function that sends items to ports of a block, receives from others, and watches the rules of the latter.

    ``send`` has items and ``receive`` counts, by the name of the port; both pause as ``mode`` says. ``inputs`` has
    values of other ports; ``drain`` are cycles after the last item that was sent. The result has, by the name of the
    port, ``sent``, the cycles in which items were accepted, ``payloads``, what was received, and ``cycles``, when.
    """

    def run(dut, *, send=None, receive, mode="none", inputs=None, testbenches=(), background=(), drain=0):
        sends = send or {}
        result = SimpleNamespace(sent={}, payloads={}, cycles={})

        async def set_inputs(ctx):
            for name, value in (inputs or {}).items():
                ctx.set(attrgetter(name)(dut), value)

        sources = [_source(dut, port, mode, seed, drain, result) for seed, port in enumerate(sends.items())]
        sinks = [_sink(dut, port, mode, seed, result) for seed, port in enumerate(receive.items(), start=len(sends))]
        watched = [watch_stream(attrgetter(name)(dut), name) for name in receive]
        simulate(dut, set_inputs, *testbenches, *sources, *sinks, background=[*background, *watched])
        return result

    return run


def _source(dut, port, mode, seed, drain, result):
    async def source(ctx):
        name, items = port
        result.sent[name] = await send(ctx, attrgetter(name)(dut), items, idle=STALL_MODES[mode]["idle"], seed=seed)
        for _ in range(drain):
            await ctx.tick()

    return source


def _sink(dut, port, mode, seed, result):
    async def sink(ctx):
        name, count = port
        received = await receive(ctx, attrgetter(name)(dut), count, stall=STALL_MODES[mode]["stall"], seed=seed)
        result.payloads[name], result.cycles[name] = received

    return sink
