"""Every run reaches its path, in order, whichever walker it comes from."""

import random

import pytest

from tilewright.hw.tmau.layouts import BoxRunLayout, StoreRunLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.run_router import RunRouter
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]


def random_runs(rng, count):
    layout = BoxRunLayout(PARAMS)
    return [layout.from_bits(rng.getrandbits(layout.as_shape().width)) for _ in range(count)]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_run_reaches_its_path(mode):
    dut = elaborated(RunRouter, PARAMS)
    rng = random.Random(SEED)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    # Walks: one walker after the other, each with some runs.
    walks = [(rng.choice([dut.tiles, dut.pixels]), random_runs(rng, rng.randint(1, 12))) for _ in range(30)]
    runs = [run for _, part in walks for run in part]
    loads, stores = ([run for run in runs if run.store == store] for store in (0, 1))
    came = {}

    async def source(ctx):
        for number, (port, part) in enumerate(walks):
            await send(ctx, port, part, idle=idle, seed=number)

    def sink(port, name, count):
        async def take(ctx):
            came[name], _ = await receive(ctx, port, count, stall=stall, seed=len(name))

        return take

    sinks = sink(dut.loads, "loads", len(loads)), sink(dut.stores, "stores", len(stores))
    print(f"seed {SEED}")
    simulate(dut, source, *sinks, background=[watch_stream(dut.loads, "loads"), watch_stream(dut.stores, "stores")])
    assert came["loads"] == loads
    kept = [name for name, _ in StoreRunLayout(PARAMS)]
    assert [{name: run[name] for name in kept} for run in came["stores"]] == [
        {name: run[name] for name in kept} for run in stores
    ]


def test_one_a_cycle_one_cycle_later():
    dut = elaborated(RunRouter, PARAMS)

    async def run(ctx):
        for port in (dut.tiles, dut.pixels):
            assert await send(ctx, port, [{"store": 1, "skip": number % 2} for number in range(6)]) == list(range(6))

    async def take(ctx):
        _, cycles = await receive(ctx, dut.stores, 12)
        assert cycles == list(range(1, 13))

    simulate(dut, run, take)


def test_ready_does_not_wait_for_what_follows():
    dut = elaborated(RunRouter, PARAMS)

    async def run(ctx):
        assert await send(ctx, dut.tiles, [{"store": 0}] * 2) == [0, 1], "neither path is ready"
        ctx.set(dut.loads.ready, 1)
        assert not ctx.get(dut.tiles.ready)

    simulate(dut, run)


def test_runs_of_prefetches_have_a_port_of_their_own():
    dut, came = elaborated(RunRouter, PARAMS.replace(prefetches=True)), {}
    runs = [{"address": number, "prefetch": number % 3 == 0, "store": number % 3 == 1} for number in range(30)]

    async def source(ctx):
        await send(ctx, dut.tiles, runs)

    def sink(name):
        async def take(ctx):
            port = getattr(dut, name)
            came[name] = [item.address for item in (await receive(ctx, port, 10, stall=0.5, seed=len(name)))[0]]
            await ctx.tick().repeat(30)
            assert not ctx.get(port.valid)

        return take

    simulate(dut, source, *(sink(name) for name in ("prefetches", "stores", "loads")))
    assert came == {name: list(range(first, 30, 3)) for first, name in enumerate(("prefetches", "stores", "loads"))}
