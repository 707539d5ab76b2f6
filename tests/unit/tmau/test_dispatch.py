"""Every command reaches its setup, in order, one setup at a time."""

import itertools
import random

import pytest

from tilewright.hw.lib.layouts import command_layout
from tilewright.hw.tmau.dispatch import Dispatch, GroupTracker, Router
from tilewright.hw.tmau.params import MAX_GROUPS, TMAU_PRESETS
from tilewright.spec import FORMATS, Error, Opcode
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
BLOCKS = ("COPY_BLOCK", "PREFETCH_BLOCK", "COMMIT", "WAIT", "WAIT_ALL", "REPLACE")


def room_of(opcode, code):
    if code != Error.NONE:
        return 0
    return 2 if opcode == Opcode.LANES else int(Opcode(opcode).name in BLOCKS)


class SetupModel:
    """Takes commands and works on each for some cycles."""

    def __init__(self, dut, number, port, log, stall):
        self.dut, self.number, self.port, self.log = dut, number, port, log
        self.stall = stall
        self.rng = random.Random(number)

    async def work(self, ctx):
        left = 0
        while True:
            ready = self.rng.random() >= self.stall
            ctx.set(self.port.ready, ready)
            ctx.set(self.dut.busy[self.number], left > 0)
            _, _, valid, payload, busy = await ctx.tick().sample(self.port.valid, self.port.payload, self.dut.busy)
            left = max(left - 1, 0)
            if valid:
                assert not busy & ~(1 << self.number), "another one is at work"
            if valid and ready:
                command = payload.command if self.number == 0 else payload
                self.log.append((self.number, command.tag))
                left = self.rng.randint(1, 5)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_order_and_setups(mode):
    dut = elaborated(Router, TMAU_PRESETS["unit"])
    rng = random.Random(SEED)
    stall = STALL_MODES[mode]
    log, items, expected = [], [], []
    for tag in range(300):
        code = rng.choice([Error.NONE] * 4 + [Error.WINDOW])
        opcode = rng.choice([rng.choice(list(Opcode)), Opcode.LOAD, Opcode.COPY_BLOCK])
        command = command_layout().from_bits(FORMATS[opcode].pack(opcode=opcode, tag=tag))
        items.append({"command": command, "fault": {"code": code}})
        expected.append((room_of(opcode, code), tag))

    async def source(ctx):
        await send(ctx, dut.i, items, idle=stall["idle"], seed=1)

    ports = (dut.tensors, dut.blocks, dut.lanes)
    setups = [SetupModel(dut, number, port, log, stall["stall"]).work for number, port in enumerate(ports)]
    print(f"seed {SEED}")
    simulate(dut, source, background=[*setups, *(watch_stream(port) for port in ports)])
    assert log == expected


@pytest.mark.parametrize("opcode", [Opcode.STORE, Opcode.COMMIT, Opcode.LANES])
def test_one_a_cycle_to_the_same_room(opcode):
    dut = elaborated(Router, TMAU_PRESETS["unit"])

    async def run(ctx):
        number = room_of(opcode, Error.NONE)
        ctx.set(dut.busy, 1 << number)
        ctx.set((dut.tensors, dut.blocks, dut.lanes)[number].ready, 1)
        cycles = await send(ctx, dut.i, [{"command": {"opcode": opcode}}] * 5)
        assert cycles == list(range(5))

    simulate(dut, run)


@pytest.mark.parametrize("preset", ["unit", "full"])
def test_counts(preset):
    """Counts are those of the model, at once or as soon as a group that just ended has been taken away."""
    dut = elaborated(GroupTracker, TMAU_PRESETS[preset])
    rng = random.Random(SEED)
    reached = {"full": False, "empty": False}

    async def run(ctx):
        issued, passed = 0, {"unread": 0, "unfinished": 0}
        groups = {"unread": [], "unfinished": []}  # the number that follows the last job of each
        for cycle in range(6000):
            slow = cycle // 500 % 2  # jobs pile up, then groups end as fast as they can
            issue = rng.random() < 0.4 and issued - passed["unfinished"] < 6
            commit = rng.random() < (0.5 if slow else 0.2) and not ctx.get(dut.full)
            read = passed["unread"] < issued and rng.random() < (0.05 if slow else 0.8)
            done = passed["unfinished"] < passed["unread"] and rng.random() < (0.05 if slow else 0.8)
            for name, strobe in (("issued", issue), ("commit", commit), ("read_stb", read), ("done_stb", done)):
                ctx.set(getattr(dut, name), strobe)
            if commit:
                for ends in groups.values():
                    ends.append(issued)
            await ctx.tick()
            issued += issue
            passed["unread"] += read
            passed["unfinished"] += done
            for name, ends in groups.items():
                shown = ctx.get(getattr(dut, name))
                # The tracker lets go of one group a cycle, in the cycle after it could: never too early.
                assert sum(end > passed[name] for end in ends) <= shown <= len(ends)
                groups[name] = ends[len(ends) - shown :]
            reached["full"] |= ctx.get(dut.full)
            reached["empty"] |= not groups["unfinished"]
        for name in ("issued", "commit", "read_stb", "done_stb"):
            ctx.set(getattr(dut, name), 0)
        for name, strobe in (("unread", "read_stb"), ("unfinished", "done_stb")):
            ctx.set(getattr(dut, strobe), 1)
            await ctx.tick().repeat(issued - passed[name])
            ctx.set(getattr(dut, strobe), 0)
        await ctx.tick().repeat(MAX_GROUPS + 2)
        assert ctx.get(dut.unfinished) == ctx.get(dut.unread) == 0 and not ctx.get(dut.full)

    print(f"seed {SEED}")
    simulate(dut, run)
    assert all(reached.values())


def test_latency():
    """A group is gone two cycles after the strobe that ends it; an empty one two cycles after its commit."""
    dut = elaborated(GroupTracker, TMAU_PRESETS["unit"])

    async def strobe(ctx, *signals):
        for signal in signals:
            ctx.set(signal, 1)
        await ctx.tick()
        for signal in signals:
            ctx.set(signal, 0)

    async def run(ctx):
        await strobe(ctx, dut.commit)
        assert ctx.get(dut.unfinished) == ctx.get(dut.unread) == 1
        await ctx.tick()
        assert ctx.get(dut.unfinished) == ctx.get(dut.unread) == 0
        await strobe(ctx, dut.issued)
        await strobe(ctx, dut.commit)
        await strobe(ctx, dut.read_stb)
        await ctx.tick()
        assert (ctx.get(dut.unread), ctx.get(dut.unfinished)) == (0, 1)
        await strobe(ctx, dut.done_stb)
        await ctx.tick()
        assert (ctx.get(dut.unread), ctx.get(dut.unfinished)) == (0, 0)

    simulate(dut, run)


def job(number, *, store=0, im2col=0, quiet=0):
    """A job whose parts can be told by their numbers."""
    return {
        "transfer": {"tag": number, "quiet": quiet},
        "store": store,
        "im2col": im2col,
        "walk": {"origin": number},
        "pixels": {"last": number},
    }


def block(tag, *, store=0, quiet=0):
    """The same of a block."""
    return {"tag": tag, "quiet": quiet, "store": store, "address": tag, "size": 1}


class Walker:
    """Takes a walk, and walks for some cycles; a walk can follow another without a gap, as in the real one."""

    def __init__(self, port, busy, other_busy, number_of, log, stall, seed):
        self.port, self.busy, self.other_busy, self.number_of, self.log = port, busy, other_busy, number_of, log
        self.stall, self.rng = stall, random.Random(seed)

    async def work(self, ctx):
        left = 0
        for cycle in itertools.count():
            ready = left <= 1 and self.rng.random() >= self.stall
            ctx.set(self.port.ready, ready)
            ctx.set(self.busy, left > 0)
            _, _, valid, payload, other = await ctx.tick().sample(self.port.valid, self.port.payload, self.other_busy)
            left = max(left - 1, 0) if left != 1 or ready else 0
            if valid and ready:
                assert not other, "runs of the other walker are still on their way"
                self.log.append(("walk", self.number_of(payload), cycle))
                left = self.rng.randint(1, 4)


def path(port, name, log, stall, seed):
    """Takes transfers."""
    rng = random.Random(seed)

    async def take(ctx):
        for cycle in itertools.count():
            ready = rng.random() >= stall
            ctx.set(port.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(port.valid, port.payload)
            if valid and ready:
                log.append((name, payload.tag, cycle))

    return take


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("spares", [False, True])
def test_every_part_arrives_once(spares, mode):
    dut = elaborated(Dispatch, TMAU_PRESETS["unit"].replace(spares_tables=spares))
    rng = random.Random(SEED)
    stall = STALL_MODES[mode]
    pause = stall["stall"]
    jobs = [
        job(number, store=rng.randrange(2), im2col=rng.random() < 0.3, quiet=rng.random() < 0.3)
        for number in range(1, 301)
    ]
    log = []

    async def source(ctx):
        # Two streams, each of which is offered jobs while the other has none.
        index = 0
        while index < len(jobs):
            count = rng.randint(1, 6)
            port, items = dut.jobs, jobs[index : index + count]
            if rng.randrange(2) and not any(item["im2col"] for item in items):
                port, items = dut.blocks, [block(store=item["store"], **item["transfer"]) for item in items]
            await send(ctx, port, items, idle=stall["idle"], seed=index)
            index += count
        await ctx.tick().repeat(10)

    strobes = []

    async def watch(ctx):
        async for _, _, strobe in ctx.tick().sample(dut.store_stb):
            strobes.append(strobe)

    tiles = Walker(dut.o.walks, dut.o.tile_busy, dut.o.pixel_busy, lambda p: p.origin, log, pause, 1)
    pixels = Walker(dut.o.pixel_walks, dut.o.pixel_busy, dut.o.tile_busy, lambda p: p.last, log, pause, 2)
    ports = (dut.o.walks, dut.o.pixel_walks, dut.o.load_transfers, dut.o.store_transfers)
    background = [
        tiles.work,
        pixels.work,
        path(dut.o.load_transfers, "load", log, pause, 3),
        path(dut.o.store_transfers, "store", log, pause, 4),
        watch,
        *(watch_stream(port) for port in ports),
    ]
    print(f"seed {SEED}")
    simulate(dut, source, background=background)
    for name in ("load", "store"):
        wanted = [j["transfer"]["tag"] for j in jobs if j["store"] == (name == "store")]
        assert [number for kind, number, _ in log if kind == name] == wanted
    assert [number for kind, number, _ in log if kind == "walk"] == list(range(1, 301)), "walks are in order of jobs"
    assert sum(strobes) == sum(j["store"] for j in jobs)
    walks = {number: cycle for kind, number, cycle in log if kind == "walk"}
    assert all(walks[number] >= cycle for _, number, cycle in log), "a walk before its transfer"


def test_parts_leave_at_once_and_a_job_every_second_cycle():
    dut = elaborated(Dispatch, TMAU_PRESETS["unit"])

    async def run(ctx):
        for port in (dut.o.load_transfers, dut.o.store_transfers):
            ctx.set(port.ready, 1)
        cycles = await send(ctx, dut.jobs, [job(n, store=n % 2) for n in range(8)])
        assert cycles == list(range(1, 16, 2))

    async def walks(ctx):
        _, cycles = await receive(ctx, dut.o.walks, 8)
        assert cycles == list(range(0, 16, 2))

    simulate(dut, run, walks)


def test_moving_counts_what_is_not_quiet():
    dut = elaborated(Dispatch, TMAU_PRESETS["unit"])

    async def run(ctx):
        for port in (dut.o.walks, dut.o.pixel_walks, dut.o.load_transfers, dut.o.store_transfers):
            ctx.set(port.ready, 1)
        await send(ctx, dut.jobs, [job(1, quiet=1), job(2, store=1), job(3), job(4, im2col=1)])
        assert ctx.get(dut.moving) == 3
        ctx.set(dut.o.load_completed, 1)
        ctx.set(dut.o.store_completed, 1)
        await ctx.tick()
        ctx.set(dut.o.store_completed, 0)
        assert ctx.get(dut.moving) == 1
        ctx.set(dut.jobs.payload, job(5))
        ctx.set(dut.jobs.valid, 1)
        await ctx.tick()
        ctx.set(dut.o.load_completed, 0)
        assert ctx.get(dut.moving) == 1, "one comes while another ends"
        await ctx.tick()
        assert ctx.get(dut.moving) == 1, "it is counted once"

    simulate(dut, run)


def test_ends_of_all_setups_pass():
    dut = elaborated(Dispatch, TMAU_PRESETS["unit"])

    async def run(ctx):
        for number in range(3):
            ctx.set(dut.refused[number].payload, {"tag": 7 + number, "code": 3})
            ctx.set(dut.refused[number].valid, 1)
            assert ctx.get(dut.o.finished.valid) and not ctx.get(dut.refused[number].ready)
            ctx.set(dut.o.finished.ready, 1)
            assert ctx.get(dut.refused[number].ready)
            assert ctx.get(dut.o.finished.payload.tag) == 7 + number
            await ctx.tick()
            ctx.set(dut.o.finished.ready, 0)
            ctx.set(dut.refused[number].valid, 0)

    simulate(dut, run)


def test_a_prefetch_is_a_walk_only():
    """No path gets a transfer, and none is counted as moving; walks stay in order."""
    dut = elaborated(Dispatch, TMAU_PRESETS["unit"].replace(prefetches=True))
    jobs = [job(number) | {"prefetch": number % 2} for number in range(8)]

    async def source(ctx):
        await send(ctx, dut.jobs, jobs)
        await send(ctx, dut.blocks, [block(8) | {"prefetch": 1}])
        await ctx.tick()
        assert ctx.get(dut.moving) == 4

    async def transfers(ctx):
        assert [item.tag for item in (await receive(ctx, dut.o.load_transfers, 4, stall=0.5))[0]] == [0, 2, 4, 6]

    async def walks(ctx):
        assert [item.origin for item in (await receive(ctx, dut.o.walks, 9))[0]] == list(range(9))

    simulate(dut, source, transfers, walks)
