"""Steps that tests of stream blocks share."""

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

    def run(dut, *, send, receive, mode="none", inputs=None, background=(), drain=0, deadline=10_000):
        result = SimpleNamespace(sent={}, payloads={}, cycles={})

        async def set_inputs(ctx):
            for name, value in (inputs or {}).items():
                ctx.set(getattr(dut, name), value)

        sources = [_source(dut, port, mode, seed, drain, result) for seed, port in enumerate(send.items())]
        sinks = [_sink(dut, port, mode, seed, result) for seed, port in enumerate(receive.items(), start=len(send))]
        watched = [watch_stream(getattr(dut, name), name) for name in receive]
        simulate(dut, set_inputs, *sources, *sinks, background=[*background, *watched], deadline=deadline)
        return result

    return run


def _source(dut, port, mode, seed, drain, result):
    async def source(ctx):
        name, items = port
        result.sent[name] = await send(ctx, getattr(dut, name), items, idle=STALL_MODES[mode]["idle"], seed=seed)
        for _ in range(drain):
            await ctx.tick()

    return source


def _sink(dut, port, mode, seed, result):
    async def sink(ctx):
        name, count = port
        received = await receive(ctx, getattr(dut, name), count, stall=STALL_MODES[mode]["stall"], seed=seed)
        result.payloads[name], result.cycles[name] = received

    return sink
