"""Words of lines: reads find what entries before left, victims have the written bytes, errors stay with their lines."""

import random

import pytest

from support.streams import recording, transact
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.cluster.l2.line_stage import LineStage
from tilewright.hw.cluster.l2.params import Geometry, Kind
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, sender

SEED = 20261124
GEOMETRY = Geometry(addr_width=12, data_width=32, id_width=2, sets=4, ways=2, misses=4, line_bytes=16)
PLACES, WORDS = 8, 4


class Model:
    """Bytes of all places, which of them were written here, which words failed, and which lines are lost."""

    def __init__(self):
        self.data = [[[0] * 4 for _ in range(WORDS)] for _ in range(PLACES)]
        self.written = [[[0] * 4 for _ in range(WORDS)] for _ in range(PLACES)]
        self.failed = [[0] * WORDS for _ in range(PLACES)]
        self.lost = [0] * PLACES
        self.broken = 0

    def run(self, entry, fills, words, out):
        """Carries out an entry, with the words that it takes."""
        place, fresh = entry["place"], entry["fresh"]
        if entry["evicts"]:
            for word in range(WORDS):
                strobe = sum(bit << n for n, bit in enumerate(self.written[place][word]))
                out["victims"].append((number_of(self.data[place][word]), 0 if self.lost[place] else strobe))
        if fresh:
            self.failed[place], self.lost[place] = [failed for _, failed in fills] or [0] * WORDS, 0
        for word, (value, _) in enumerate(fills):
            self.data[place][word] = bytes_of(value)
            self.written[place][word] = [0] * 4
        for word in range(entry["first"], entry["last"] + 1):
            if entry["kind"] == Kind.READ:
                last = entry["end"] and word == entry["last"]
                out["reads"].append((number_of(self.data[place][word]), self.failed[place][word], last, entry["id"]))
            if entry["kind"] == Kind.WRITE:
                value, strobe = words.pop(0)
                for n in range(4):
                    if strobe >> n & 1:
                        self.data[place][word][n], self.written[place][word][n] = bytes_of(value)[n], 1
        fails = any(failed for _, failed in fills)
        if entry["kind"] == Kind.WRITE:
            self.broken |= fails or self.lost[place]
            if entry["end"]:
                out["answers"].append((entry["id"], self.broken))
                self.broken = 0
        if fails:
            self.lost[place] = 1
            out["forgets"].append((place, entry["number"]))


def bytes_of(word):
    return [word >> 8 * n & 0xFF for n in range(4)]


def number_of(listed):
    return sum(value << 8 * n for n, value in enumerate(listed))


def random_entry(rng, number):
    kind = rng.choice([Kind.READ] * 4 + [Kind.WRITE] * 4 + [Kind.PREFETCH, Kind.EXPEL])
    first = rng.randrange(WORDS)
    entry = {"kind": kind, "place": rng.randrange(PLACES), "id": rng.randrange(4), "first": first,
             "last": rng.randrange(first, WORDS), "end": rng.randrange(2), "number": number % 16,
             "fresh": 0, "fills": 0, "evicts": 0}  # fmt: skip
    if kind == Kind.EXPEL:
        return entry | {"evicts": 1}
    if kind == Kind.PREFETCH or rng.random() < 0.5:
        full = kind == Kind.WRITE and rng.random() < 0.4
        entry |= {"fresh": 1, "fills": int(not full), "evicts": rng.randrange(2)}
        entry |= {"first": 0, "last": WORDS - 1} if full else {}
    return entry


@pytest.mark.parametrize("mode", STALL_MODES)
def test_as_one_after_the_other(mode):
    dut, rng, model, victims = elaborated(LineStage, GEOMETRY), random.Random(SEED), Model(), []
    entries, fills, words = [], [], []
    out = {"reads": [], "answers": [], "victims": [], "forgets": []}
    for place in range(PLACES):  # each gets a line first
        entries.append(
            random_entry(rng, place) | {"kind": Kind.READ, "place": place, "fresh": 1, "fills": 1, "evicts": 0}
        )
    entries += [random_entry(rng, number) for number in range(PLACES, 150)]
    for entry in entries:
        brought = [(rng.getrandbits(32), int(rng.random() < 0.03)) for _ in range(WORDS * entry["fills"])]
        whole = entry["fresh"] and not entry["fills"]
        count = entry["last"] - entry["first"] + 1 if entry["kind"] == Kind.WRITE else 0
        given = [(rng.getrandbits(32), 15 if whole else rng.randrange(16)) for _ in range(count)]
        fills += brought
        words += given
        model.run(entry, brought, list(given), out)

    async def room(ctx):
        while True:
            ctx.set(dut.victim_room, rng.random() >= STALL_MODES[mode]["stall"])
            await ctx.tick()

    print(f"seed {SEED}")
    items = {"entries": entries, "fills": [{"data": value, "failed": failed} for value, failed in fills],
             "words": [{"data": value, "strb": strobe} for value, strobe in words]}  # fmt: skip
    counts = {name: len(out[name]) for name in ("reads", "answers", "forgets")}
    background = [room, recording(victims, dut.victims.valid, dut.victims.payload)]
    came, _ = transact(dut, items, counts, mode, pauses={"words": 0.0}, background=background)
    failed = Response.SLVERR
    assert [(b.data if b.resp != failed else None, b.resp == failed, b.last, b.id) for b in came["reads"]] == [
        (None if wrong else value, bool(wrong), last, ident) for value, wrong, last, ident in out["reads"]
    ]
    assert [(a.id, a.resp == failed) for a in came["answers"]] == [(ident, bool(bad)) for ident, bad in out["answers"]]
    assert [(v.data, v.strb) for _, v in victims] == out["victims"]
    assert [(f.place, f.born) for f in came["forgets"]] == out["forgets"]


FILL = {"kind": Kind.PREFETCH, "fresh": 1, "fills": 1}


def test_quick_reads_and_entries_take_turns():
    """Both could go on all the time: the entries of one ID, quick reads of another; each gets a line in turn."""
    dut, seen = elaborated(LineStage, GEOMETRY), []

    async def fill(ctx):
        await send(ctx, dut.entries, [FILL])
        await send(ctx, dut.entries, [{"kind": Kind.READ, "last": 3, "id": 1}] * 8)

    async def quick(ctx):
        await ctx.tick().repeat(5)
        await send(ctx, dut.quick, [{"last": 3, "id": 2}] * 8)

    async def take(ctx):
        beats, cycles = await receive(ctx, dut.reads, 64)
        for ident in (1, 2):
            assert [beat.data for beat in beats if beat.id == ident] == [0, 1, 2, 3] * 8
        assert cycles[-1] - cycles[0] == 63
        seen.extend(beat.id for beat in beats)

    simulate(dut, fill, sender(dut.fills, [{"data": number} for number in range(4)]), quick, take)

    assert all(seen[start : start + 8].count(1) == 4 for start in range(9, 48))


def test_quick_reads_go_on_while_an_entry_waits_for_memory():
    dut = elaborated(LineStage, GEOMETRY)
    waiting = sender(dut.entries, [FILL | {"kind": Kind.READ, "last": 3, "id": 1}])
    came, _ = transact(dut, {"quick": [{"last": 3, "id": 2, "place": 5}] * 6}, {"reads": 24}, background=[waiting])
    assert {beat.id for beat in came["reads"]} == {2}


def test_one_word_a_cycle_whatever_an_entry_does():
    """Lines that throw out others, and single words of lines that are here: a step each cycle."""
    entries = [FILL | {"kind": Kind.READ, "last": 3, "place": n, "evicts": 1} for n in range(4)]
    entries += [{"kind": Kind.READ, "first": n % 4, "last": n % 4, "place": n % 4} for n in range(8)]

    items = {"entries": entries, "fills": [{"data": number} for number in range(16)]}
    _, cycles = transact(elaborated(LineStage, GEOMETRY), items, {"reads": 24}, inputs={"victim_room": 1})
    assert cycles["reads"] == list(range(2, 26))


def test_prefetches_are_taken_beside_quick_reads():
    """Both get a word a cycle, as they concern different lines."""
    items = {"entries": [FILL | {"place": n % 4} for n in range(8)], "fills": [{"data": n} for n in range(32)],
             "quick": [{"last": 3, "id": 2, "place": 5}] * 8}  # fmt: skip
    _, cycles = transact(elaborated(LineStage, GEOMETRY), items, {"reads": 32})
    assert all(cycles[port][-1] - cycles[port][0] == 31 for port in ("fills", "reads"))
