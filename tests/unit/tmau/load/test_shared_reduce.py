"""Reductions into shared memory: random transfers against the golden model in every stall mode; latency, rate."""

import random
from itertools import pairwise

import numpy as np
import pytest
from amaranth.hdl import Value

from support.selection import grid
from tilewright.golden.tmau.reduce import is_legal, reduce
from tilewright.hw.reduce.floats import FloatSums
from tilewright.hw.reduce.integer import IntegerReducer
from tilewright.hw.tmau.load.layouts import BOUNDS, AlignedLayout
from tilewright.hw.tmau.load.shared_reduce import SharedReducer
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Element, Reduction
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, set_together, unpacker, watch_stream

SEED = 29
ROWS = 3  # few, so that reductions meet what was written just before

LEGAL = [(op, element) for op in Reduction for element in Element if is_legal(op, element)]
PLAIN = (Reduction.NONE, Element.U8)
ADD = (Reduction.ADD, Element.U32)
#: Cycles that a write takes behind the reducer.
WRITE = 2


def make_transfer(rng, bus_bytes, op, element, *, start=None, length=None, stage=False, first=None):
    """The pieces of a block: words that begin and end at chunks, each at its place modulo the bus.

    Of the first word ``first`` bytes are needed.
    """
    length = length or 16 * rng.randint(1, 12)
    start = 16 * rng.randint(0, (128 * ROWS - length) // 16) if start is None else start
    context = {"reduction": op, "element": element, "stage": stage, "tag": rng.getrandbits(16), "fill": 7}
    ends = {"error": rng.random() < 0.5, "address": rng.getrandbits(32)}
    pieces, cursor, over = [], start, False
    word_end = start + (first or 16 * rng.randint(1, bus_bytes // 16))
    while cursor < start + length:
        end = min(word_end, start + length)
        line = cursor // 128
        first, stop = cursor - 128 * line, end - 128 * line
        over = stop > 128 and end == start + length
        piece = {"line": line, "first": first, "end": stop, "data_first": first, "data_end": stop,
                 "last": end == start + length and not over}  # fmt: skip
        pieces.append({"piece": piece, "word": rng.getrandbits(8 * bus_bytes), "context": context} | ends)
        cursor, word_end = end, word_end + bus_bytes
    if over:
        piece = {"line": cursor // 128, "first": cursor % 128, "end": cursor % 128, "last": 1}
        pieces.append(pieces[-1] | {"piece": piece})
    return pieces


def bytes_of(payload, bus_bytes):
    """Address and value of each byte of a piece."""
    piece, word = payload["piece"], payload["word"].to_bytes(bus_bytes, "little")
    return {128 * piece["line"] + k: word[k % bus_bytes] for k in range(piece["first"], piece["end"])}


def run(bus_bytes, transfers, mode="none", rows=ROWS, floats=True):
    """Sends the pieces; what memory holds in the end, and what left, with the cycles."""
    features = [name for name in TMAU_PRESETS["unit"].features if floats or name != "reductions_float"]
    dut = elaborated(SharedReducer, TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes, features=features))
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    pieces = [piece for transfer in transfers for piece in transfer]
    memory = np.zeros(128 * rows, np.uint8)
    result = {"memory": memory, "left": []}
    lasts = len(transfers)

    async def source(ctx):
        result["sent"] = await send(ctx, dut.i, pieces, idle=idle, seed=SEED)

    async def end(ctx):
        while sum(payload.piece.last for _, payload in result["left"]) < lasts:
            await ctx.tick()
        await ctx.tick().repeat(WRITE + 1)

    async def shared_memory(ctx):
        """What leaves is written some cycles later; between reads the line shows anything."""
        rng, cycle, waiting = random.Random(SEED), 0, []
        fetch, o = dut.fetch.rows, dut.o
        ctx.set(fetch.ready, 1)
        ctx.set(o.ready, 1)
        ctx.set(dut.written, 1)
        unpack = unpacker(o.payload.shape())
        async for _, _, fetching, row, leaving, bits in ctx.tick().sample(
            fetch.valid & fetch.ready, fetch.payload, o.valid & o.ready, Value.cast(o.payload)
        ):
            while waiting and waiting[0][0] <= cycle:
                for address, byte in waiting.pop(0)[1].items():
                    memory[address] = byte
            line = memory[128 * row :][:128].tobytes() if fetching and row < rows else rng.randbytes(128)
            if leaving:
                payload = unpack(bits)
                result["left"].append((cycle, payload))
                piece = {name: payload.piece[name] for name in ("line", "first", "end")}
                if not payload.context.stage:
                    waiting.append((cycle + WRITE, bytes_of({"piece": piece, "word": payload.word}, bus_bytes)))
            shown = (dut.fetch.line, int.from_bytes(line, "little")), (dut.written, not waiting)
            paces = ((stream.ready, rng.random() >= stall) for stream in (fetch, o))
            set_together(ctx, *shown, *paces)
            cycle += 1

    rules = [watch_stream(port) for port in (dut.o, dut.fetch.rows)]
    simulate(dut, source, end, background=[shared_memory, *rules], deadline=200 * len(pieces))
    return result


def expected_memory(bus_bytes, transfers):
    memory = np.zeros(128 * ROWS, np.uint8)
    for transfer in transfers:
        context, new = transfer[0]["context"], {}
        for payload in transfer:
            new |= bytes_of(payload, bus_bytes)
        if context["stage"]:
            continue
        place = list(new)
        source = np.array(list(new.values()), np.uint8)
        plain = context["reduction"] == Reduction.NONE
        memory[place] = source if plain else reduce(context["reduction"], context["element"], memory[place], source)
    return memory


@grid(lambda *case: case[0] == 16 or case == (64, "both"), bus_bytes=[16, 32, 64], mode=STALL_MODES)
def test_transfers_of_all_kinds(bus_bytes, mode):
    rng = random.Random(SEED)
    transfers = [
        make_transfer(rng, bus_bytes, *(rng.choice(LEGAL) if rng.random() < 0.6 else PLAIN), stage=rng.random() < 0.2)
        for _ in range(20)
    ]
    result = run(bus_bytes, transfers, mode)
    assert (result["memory"] == expected_memory(bus_bytes, transfers)).all()
    left = iter(payload for _, payload in result["left"])
    for transfer in transfers:
        context = transfer[0]["context"]
        if context["reduction"] == Reduction.NONE or context["stage"]:
            assert [next(left) for _ in transfer] == [payload_of(payload, bus_bytes) for payload in transfer]
            continue
        for part in parts(transfer):
            came = next(left)
            assert (came.piece.line, came.piece.first, came.piece.end, came.piece.last) == part
            assert came.piece.first == came.piece.end or (came.piece.data_first, came.piece.data_end) == part[1:3]
            for name in BOUNDS:
                assert came.chunks[name].whole == (1 << came.piece[name] // 16) - 1
        assert came.context.tag == context["tag"]
        assert (came.error, came.address) == (transfer[-1]["error"], transfer[-1]["address"])


def parts(transfer):
    """What becomes of a reduction: line, first and end byte in it, last."""
    made = []
    for payload in transfer:
        piece = payload["piece"]
        starts = [piece["first"]]
        if payload["context"]["element"].is_float:
            starts = [*range(piece["first"], piece["end"], 16)] or starts
        elif piece["first"] < 128 < piece["end"]:
            starts.append(128)
        for first, end in pairwise([*starts, piece["end"]]):
            line = piece["line"] + first // 128
            made.append((line, first % 128, end - (first - first % 128), 0))
    return [*made[:-1], (*made[-1][:3], 1)]


def payload_of(payload, bus_bytes):
    return AlignedLayout(TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes)).const(payload)


@pytest.mark.parametrize("bus_bytes", [16, 64])
def test_without_floats(bus_bytes):
    rng = random.Random(SEED)
    kinds = [PLAIN, *((op, element) for op, element in LEGAL if not element.is_float)]
    transfers = [make_transfer(rng, bus_bytes, *rng.choice(kinds)) for _ in range(20)]
    result = run(bus_bytes, transfers, "both", floats=False)
    assert (result["memory"] == expected_memory(bus_bytes, transfers)).all()


def test_plain_pieces_pass_at_once():
    rng = random.Random(SEED)
    result = run(16, [make_transfer(rng, 16, *PLAIN, start=0, length=384)])
    assert result["sent"] == [cycle for cycle, _ in result["left"]] == list(range(24))


@pytest.mark.parametrize(
    ("bus_bytes", "element", "part", "latency"),
    [(16, Element.U32, 16, 6), (64, Element.U32, 64, 6), (64, Element.U64, 64, 6), (64, Element.F16, 16, 10)],
)
def test_latency_and_a_part_a_cycle(bus_bytes, element, part, latency):
    rng = random.Random(SEED)
    result = run(
        bus_bytes, [make_transfer(rng, bus_bytes, Reduction.ADD, element, start=0, length=384, first=bus_bytes)]
    )
    cycles = [cycle for cycle, _ in result["left"]]
    assert latency - 4 == (FloatSums if element.is_float else IntegerReducer).LATENCY
    # The first part is fetched in the cycle after its piece came.
    assert cycles == list(range(1 + latency, 1 + latency + 384 // part))


def test_next_transfer_waits_until_this_one_is_written():
    rng = random.Random(SEED)
    result = run(16, [make_transfer(rng, 16, *ADD, start=0, length=16) for _ in range(3)])
    ends = [cycle for cycle, payload in result["left"] if payload.piece.last]
    # What is still to be written, a cycle each until that is seen and until the part is fetched, the part.
    assert {after - before for before, after in pairwise(ends)} == {WRITE + 2 + 6}


def test_transfer_to_other_rows_follows_at_once():
    rng = random.Random(SEED)
    transfers = [make_transfer(rng, 64, *ADD, start=start, length=1024, first=64) for start in (0, 2048, 1024, 3072)]
    cycles = [cycle for cycle, _ in run(64, transfers, rows=32)["left"]]
    assert cycles == list(range(7, 7 + 64))


def test_transfer_with_another_operation_waits():
    rng = random.Random(SEED)
    operations = [ADD, (Reduction.MAX, Element.U32), (Reduction.MAX, Element.S32)]
    transfers = [
        make_transfer(rng, 64, *what, start=128 * n, length=128, first=64) for n, what in enumerate(operations)
    ]
    ends = [cycle for cycle, payload in run(64, transfers)["left"] if payload.piece.last]
    assert {after - before for before, after in pairwise(ends)} == {WRITE + 2 + 6 + 1}, "the same, of two parts"
