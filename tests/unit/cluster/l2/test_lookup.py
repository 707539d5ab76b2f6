"""The tags: the tree that selects a victim, and every access against a model of the cache."""

import random
from collections import Counter, deque

import pytest
from amaranth.hdl import Module, Signal

from tilewright.hw.cluster.l2.lookup import Lookup, least_used, used
from tilewright.hw.cluster.l2.params import Geometry, Kind
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, sender, watch_stream


class Model:
    """Halves of halves, by recursion."""

    def __init__(self, ways):
        self.halves = (Model(ways // 2), Model(ways // 2)) if ways > 1 else None
        self.next, self.ways = 0, ways

    def victim(self):
        if not self.halves:
            return 0
        return self.next * self.ways // 2 + self.halves[self.next].victim()

    def use(self, way):
        if self.halves:
            half, rest = divmod(way, self.ways // 2)
            self.halves[half].use(rest)
            self.next = 1 - half


@pytest.mark.parametrize("ways", [1, 2, 4, 8])
def test_as_halves_of_halves(ways):
    m, tree, way = Module(), Signal(max(ways - 1, 1)), Signal(ways)
    victim = Signal(ways)
    m.d.comb += victim.eq(least_used(tree, ways))
    m.d.sync += tree.eq(used(tree, way, ways))
    model, rng = Model(ways), random.Random(ways)

    async def run(ctx):
        for _ in range(100):
            assert ctx.get(victim) == 1 << model.victim()
            number = rng.choice([model.victim(), rng.randrange(ways)])
            ctx.set(way, 1 << number)
            model.use(number)
            await ctx.tick()

    simulate(m, run)


SEED = 20261124
GEOMETRY = Geometry(addr_width=12, data_width=32, id_width=2, sets=4, ways=2, misses=4, line_bytes=16)


class LookupModel:
    """Two ways: the one that was used longest ago leaves."""

    def __init__(self):
        self.lines = [[None, None] for _ in range(4)]  # of each set: (line, dirty, number of the entry that brought it)
        self.oldest = [0] * 4
        self.number = 0

    def access(self, access):
        """What becomes of it: None, or kind, fresh, fills, evicts, victim, way."""
        kind, line = access["kind"], access["part"]["line"]
        number, ways = line % 4, self.lines[line % 4]
        if kind == Kind.FORGET:
            held = ways[access["way"]]
            if held and held[2] == access["born"]:
                ways[access["way"]] = None
            return None
        if kind == Kind.EXPEL:
            if not access.get("keep"):
                ways[:] = [None, None]
                return None
            held, ways[access["way"]] = ways[access["way"]], None
            return (kind, 0, 0, 1, held[0], access["way"]) if held and held[1] else None
        way = next((way for way in (0, 1) if ways[way] and ways[way][0] == line), None)
        if kind == Kind.DISCARD:
            if way is None:
                return None
            held, ways[way] = ways[way], None
            return (kind, 0, 0, 1, line, way) if held[1] and access["keep"] else None
        writes = kind == Kind.WRITE
        if way is not None:
            self.oldest[number] = 1 - way
            ways[way] = (line, ways[way][1] or writes, ways[way][2])
            return (kind, 0, 0, 0, None, way) if kind != Kind.PREFETCH else None
        way = self.oldest[number]
        held, ways[way] = ways[way], (line, writes, None)
        self.oldest[number] = 1 - way
        evicts = bool(held and held[1])
        return kind, 1, int(not access.get("full")), int(evicts), held[0] if evicts else None, way


def random_access(rng):
    kind = rng.choice([Kind.READ] * 5 + [Kind.WRITE] * 4 + [Kind.PREFETCH, Kind.EXPEL, Kind.DISCARD])
    access = {"kind": kind, "part": {"line": rng.randrange(16), "id": rng.randrange(4), "last": 3}}
    if kind == Kind.WRITE:
        access["full"] = rng.randrange(2)
    if kind in (Kind.EXPEL, Kind.DISCARD):
        access |= {"way": rng.randrange(2), "keep": int(rng.random() < 0.8)}
    return access


@pytest.mark.parametrize("mode", STALL_MODES)
def test_as_one_after_the_other(mode):
    dut, rng, stalls, model = elaborated(Lookup, GEOMETRY), random.Random(SEED), STALL_MODES[mode], LookupModel()
    accesses = [{"kind": Kind.EXPEL, "part": {"line": number}} for number in range(4)]
    accesses += [random_access(rng) for _ in range(300)]
    expected = deque(outcome for access in accesses if (outcome := model.access(access)))
    seen = {"entries": [], "quick": [], "fills": []}
    strobes, back = Counter(), deque()

    async def ask(ctx):
        await send(ctx, dut.accesses, accesses, idle=stalls["idle"])
        await ctx.tick().repeat(5)
        while not ctx.get(dut.quiet):
            await ctx.tick()
        await ctx.tick()  # strobes come a cycle later

    async def carry_out(ctx):
        """Takes entries and fills, carries entries out in order after some time; what is written back arrives later."""
        cycle = 0
        ports = (dut.entries, dut.quick, dut.fills)
        taken = [signal for port in ports for signal in (port.valid, port.ready, port.payload)]
        ticks = aiter(ctx.tick().sample(dut.hit, dut.miss, dut.eviction, dut.prefetch, *taken))
        busy = None
        while True:
            done = bool(busy) and busy[0] <= cycle
            if done:
                _, entry = busy
                busy = None
                if entry.evicts:
                    back.append(cycle + rng.randrange(20))
            arrived = bool(back) and back[0] <= cycle
            if arrived:
                back.popleft()
            takes = busy is None and rng.random() >= stalls["stall"]
            ctx.set(dut.done, done)
            ctx.set(dut.filled, bool(done and entry.fills))
            ctx.set(dut.arrived, arrived)
            ctx.set(dut.entries.ready, takes)
            ctx.set(dut.quick.ready, rng.random() >= stalls["stall"])
            ctx.set(dut.fills.ready, rng.random() >= stalls["stall"])
            _, _, hit, miss, eviction, prefetch, *values = await anext(ticks)
            strobes.update(hits=hit, misses=miss, evictions=eviction, prefetches=prefetch)
            for number, (name, items) in enumerate(seen.items()):
                valid, ready, payload = values[3 * number : 3 * number + 3]
                if valid and ready:
                    items.append((cycle, payload))
                    if name == "entries":
                        busy = (cycle + rng.randrange(8), payload)
            cycle += 1

    print(f"seed {SEED}")
    simulate(
        dut, ask, background=[carry_out, watch_stream(dut.entries), watch_stream(dut.fills), watch_stream(dut.quick)]
    )
    _compare(expected, seen)
    assert len(seen["quick"]) > 5 and len(seen["fills"]) > 40
    assert all(0 <= payload < 16 for _, payload in seen["fills"])
    entries = [entry for _, entry in seen["entries"]]
    assert [entry.number for entry in entries] == [n % (1 << GEOMETRY.number_width) for n in range(len(entries))]
    prefetches = [entry.kind == Kind.PREFETCH for entry in entries if entry.fresh]
    hits = sum(not entry.fresh and entry.kind in (Kind.READ, Kind.WRITE) for entry in entries) + len(seen["quick"])
    evictions = sum(entry.evicts for entry in entries)
    counts = {"hits": hits, "misses": prefetches.count(False), "evictions": evictions, "prefetches": sum(prefetches)}
    assert strobes == counts and all(counts.values())


def _compare(expected, seen):
    """Entries and quick reads together are what was expected, in order each."""
    entries, quick, fills = (deque(payload for _, payload in seen[name]) for name in ("entries", "quick", "fills"))
    for kind, fresh, fill, evicts, victim, way in expected:
        entry = entries[0] if entries else None
        here = entry is not None and (entry.kind, entry.fresh, entry.fills, entry.evicts, entry.place >> 2) == (
            kind, fresh, fill, evicts, way)  # fmt: skip
        if here and not (evicts and entry.victim != victim):
            entries.popleft()
            if fill:
                fills.popleft()
            continue
        assert kind == Kind.READ and not fresh, f"{kind} is missing"
        assert quick.popleft().place >> 2 == way
    assert not entries and not quick and not fills


def look_up(dut, *scripts):
    """Runs testbenches behind a sweep of all sets."""

    simulate(
        dut, sender(dut.accesses, [{"kind": Kind.EXPEL, "part": {"line": number}} for number in range(4)]), *scripts
    )


def read(line, ident=0):
    return {"kind": Kind.READ, "part": {"line": line, "id": ident}}


def test_a_line_that_was_brought_by_another_entry_is_not_forgotten():
    dut, fills = elaborated(Lookup, GEOMETRY), []

    def forget(born):
        return {"kind": Kind.FORGET, "part": {"line": 0}, "way": 0, "born": born}

    async def ask(ctx):
        await ctx.tick().repeat(10)
        await send(ctx, dut.accesses, [read(0), forget(1), read(0), forget(0), read(0)])
        await ctx.tick().repeat(10)

    async def take(ctx):
        ctx.set(dut.fills.ready, 1)
        async for _, _, valid in ctx.tick().sample(dut.fills.valid):
            fills.append(valid)
            if len(fills) > 60:
                break

    look_up(dut, ask, take)
    assert sum(fills) == 2


def test_one_access_a_cycle_of_different_sets():
    dut, cycles = elaborated(Lookup, GEOMETRY), []

    async def ask(ctx):
        await ctx.tick().repeat(10)
        cycles.extend(await send(ctx, dut.accesses, [read(n % 4) for n in range(4)]))

    look_up(dut, ask)
    assert cycles[-1] - cycles[0] == 3
