"""Response tracker: runs in absolute addresses, in every stall mode, at full rate and with latency 1."""

import random

import pytest

from tilewright.hw.tmau.load.steps import ResponseTracker, StepGenerator
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = TMAU_PRESETS["unit"].replace(bus_bytes=32, max_outstanding=64, commands_in_flight=16)
SEED = 11


def random_load(count, runs):
    """``count`` transfers of at most ``runs`` runs, their rows, and the runs that they mean."""
    rng = random.Random(SEED)
    transfers, rows, expected = [], [], []
    for tag in range(count):
        length = rng.choice([1, 2, 4, 16 * rng.randint(1, 12), rng.randint(1, 200)])
        gap = rng.choice([0, 0, 1, 16, 112, rng.randint(1, 127)])
        number = rng.randint(1, runs)
        start = rng.randint(0, PARAMS.smem.size_bytes - number * (length + gap))
        first, end = sorted(rng.sample(range(length + 1), 2))
        folds = rng.random() < 0.3
        first, gap = (0, 0) if folds else (first, gap)
        context = {
            "tag": tag,
            "quiet": tag % 2,
            "signal": 1,
            "barrier": 8,
            "bytes": number * length,
            "swizzle": tag % 4,
            "fill": tag << 26,
            "tf32": 1,
            "loop": tag // 2 % 2,
            "stage": tag // 4 % 2,
            "reduction": tag % 9,
            "element": tag % 15,
        }
        place = {"smem": start, "run_bytes": length, "gap": gap, "data_start": first, "data_end": end}
        transfers.append(context | place | {"fill": tag << 26 | 5 << 32})
        here = start
        for k in range(number):
            skip, last = rng.getrandbits(1), k == number - 1
            inside, offset, shared = rng.getrandbits(1), rng.randrange(PARAMS.bus_bytes), rng.getrandbits(1)
            row = {"inside": inside, "offset": offset, "shared": shared, "skip": skip, "last": last, "folded": folds}
            run_bytes = rng.randint(1, length) if folds else length  # of pixels that were taken together
            following = here + run_bytes + gap * skip
            rows.append(row | {"bytes": run_bytes if folds else rng.getrandbits(13)})
            expected.append(
                {
                    "start": here,
                    "end": here + run_bytes,
                    "inside": inside,
                    "data_start": here + first,
                    "data_end": here + (run_bytes if folds else end),
                    "word_end": here + first - offset + PARAMS.bus_bytes,
                    "shared": shared,
                    "close": last or following >> 7 != (here + run_bytes) >> 7,
                    "last": last,
                    "context": context,
                }
            )
            here = following
    return transfers, rows, expected


def run(transfers, rows, mode):
    dut = elaborated(ResponseTracker, PARAMS)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    result = {}

    async def send_transfers(ctx):
        result["transfers"] = await send(ctx, dut.transfers, transfers, idle=idle, seed=SEED)

    async def send_rows(ctx):
        result["rows"] = await send(ctx, dut.rows, rows, idle=idle, seed=SEED + 1)

    async def sink(ctx):
        result["runs"] = await receive(ctx, dut.runs, len(rows), stall=stall, seed=SEED)

    simulate(dut, send_transfers, send_rows, sink, background=[watch_stream(dut.runs)])
    return result


@pytest.mark.parametrize("mode", STALL_MODES)
def test_runs_are_where_transfers_and_rows_say(mode):
    transfers, rows, expected = random_load(60, 6)
    runs, _ = run(transfers, rows, mode)["runs"]
    for number, (came, wanted) in enumerate(zip(runs, expected, strict=True)):
        assert came == came.shape().const(wanted), f"run {number}"


@pytest.mark.parametrize("runs", [1, 2, 6])
def test_latency_one_and_a_run_a_cycle(runs):
    transfers, rows, _ = random_load(30, runs)
    result = run(transfers, rows, "none")
    assert result["runs"][1] == list(range(1, len(rows) + 1))


def test_rows_wait_for_their_transfer():
    transfers, rows, expected = random_load(1, 3)
    dut = elaborated(ResponseTracker, PARAMS)
    cycles = []

    async def send_late(ctx):
        await ctx.tick().repeat(10)
        await send(ctx, dut.transfers, transfers)

    async def send_rows(ctx):
        await send(ctx, dut.rows, rows)

    async def sink(ctx):
        cycles.extend((await receive(ctx, dut.runs, len(expected)))[1])

    simulate(dut, send_late, send_rows, sink)
    assert cycles == list(range(11, 11 + len(expected)))


STEPS_SEED = 12


def make_run(start, length, *, data=None, offset=0, shared=0, close=0, last=0, tag=0, bus_bytes=16):
    """A run; ``data`` is the part of it that is inside, relative to the start."""
    first, end = data or (0, 0)
    return {
        "start": start,
        "end": start + length,
        "inside": data is not None,
        "data_start": start + first,
        "data_end": start + end,
        "word_end": start + first - offset + bus_bytes,
        "shared": shared,
        "close": close or last,
        "last": last,
        "context": {"tag": tag},
    }


def random_runs(bus_bytes, count):
    """Runs one behind the other, with gaps; the first of a transfer never shares a word."""
    rng = random.Random(STEPS_SEED)
    runs, start, fresh, before = [], 0, True, 0
    for tag in range(count):
        grain = rng.choice([1, 2, 16])
        length = grain * rng.choice([1, 1, 2, 5, 8, 9, rng.randint(1, 40), rng.randint(1, 40 * 16 // grain)])
        pitch = length + grain * rng.choice([0, 0, 0, 1, 3, 7])
        if rng.random() < 0.3:  # up to a line, where runs of a word and less are frequent
            pitch += -(start + pitch) % 128
        if start % 128 == 0 and rng.random() < 0.5:
            length = min(pitch, rng.randint(2, bus_bytes))
        last = rng.random() < 0.2 or start + pitch > 3000
        data = tuple(sorted(rng.sample(range(length + 1), 2))) if rng.random() < 0.8 else None
        close = last or (start + pitch) >> 7 != (start + length) >> 7
        options = {"offset": rng.randrange(bus_bytes), "shared": rng.getrandbits(1) and not fresh and data is not None}
        if data and rng.random() < 0.5:  # as the word before
            options["offset"] = (start + data[0] - before) % bus_bytes
        before = start + data[0] - options["offset"] if data else before
        runs.append(make_run(start, length, data=data, close=close, last=last, tag=tag, bus_bytes=bus_bytes, **options))
        start = 128 * rng.randint(0, 8) + rng.choice([0, rng.randrange(128)]) if last else start + pitch
        fresh = last or (fresh and data is None)
    # However the last run was drawn: steps are counted by runs, and an open line would not matter.
    return runs


def run_steps(bus_bytes, runs, mode="none", spares=False):
    """The steps of each run, and the cycles of runs and steps; the test knows the end of a run by its tag."""
    dut = elaborated(StepGenerator, TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes, spares_tables=spares))
    steps, cycles, taken = [[] for _ in runs], [], []

    async def source(ctx):
        taken.extend(await send(ctx, dut.runs, runs, idle=STALL_MODES[mode]["idle"], seed=STEPS_SEED))

    async def sink(ctx):
        position = 0
        while position < len(runs):
            (step,), (cycle,) = await receive(
                ctx, dut.steps, 1, stall=STALL_MODES[mode]["stall"], seed=STEPS_SEED + len(cycles)
            )
            steps[position].append(step)
            cycles.append(cycles[-1] + cycle + 1 if cycles else cycle)
            end = 128 * step.piece.line + step.piece.end
            over = step.piece.end > 128 and runs[position]["close"]
            position += end == runs[position]["end"] and not over

    simulate(dut, source, sink, background=[watch_stream(dut.steps)], deadline=20_000)
    return steps, taken, cycles


def check_run(run, steps, bus_bytes, held):
    """Follows the bytes of a run; returns where the word that was used last ended."""
    position, words = run["start"], 0
    for step in steps:
        piece = step.piece
        base, end = 128 * piece.line, 128 * piece.line + piece.end
        assert position == base + piece.first
        assert step.context.tag == run["context"]["tag"]
        word_end = run["word_end"] + words * bus_bytes
        joins = piece.joint > 0
        for byte in range(position, end):
            is_data = base + piece.data_first <= byte < base + piece.data_end
            assert is_data == (run["inside"] and run["data_start"] <= byte < run["data_end"])
            assert not is_data or word_end - bus_bytes <= byte < word_end + bus_bytes * joins
        if joins:
            assert run["shared"] and words == 0 and step.pull and (word_end - held) % bus_bytes == 0
            assert (base + piece.joint, piece.data_end <= bus_bytes) == (word_end, True)
            word_end, words = word_end + bus_bytes, 1
        if piece.data_end:
            assert step.pull == (not run["shared"] or words > 0)
            held, words = word_end, words + 1
        assert step.pull <= (piece.data_end > 0)
        assert step.rotate == held % bus_bytes
        done = step is steps[-1]
        assert piece.last == (done and run["last"])
        position = end
    needed = -(-(run["data_end"] - run["word_end"]) // bus_bytes) + 1 if run["inside"] else 0
    assert (position, words) == (run["end"], needed)
    return held


@pytest.mark.parametrize(
    ("bus_bytes", "mode"),
    [
        pytest.param(bus_bytes, mode, marks=[] if bus_bytes == 16 or mode == "both" else pytest.mark.long)
        for bus_bytes in (16, 32, 64)
        for mode in STALL_MODES
    ],
)
@pytest.mark.parametrize("spares", [False, True])
def test_random_runs(bus_bytes, spares, mode):
    runs = random_runs(bus_bytes, 500)
    steps, _, _ = run_steps(bus_bytes, runs, mode, spares)
    held = 0
    for run, its_steps in zip(runs, steps, strict=True):
        held = check_run(run, its_steps, bus_bytes, held)
    assert any(step.piece.joint for its_steps in steps for step in its_steps)


@pytest.mark.parametrize(
    ("run", "spans"),
    [
        (make_run(0, 48, data=(0, 48), last=1), [(0, 16), (16, 32), (32, 48)]),
        (make_run(0, 32, data=(0, 32), offset=5, last=1), [(0, 11), (11, 27), (27, 32)]),
        (make_run(0, 512, last=1), [(0, 128), (0, 128), (0, 128), (0, 128)]),
        (make_run(0, 512, data=(200, 210), last=1), [(0, 128), (0, 128), (0, 128), (0, 128)]),
        # The word reaches over the line's end: what is behind it goes along, then the open line is completed.
        (make_run(112, 48, data=(10, 20), last=1), [(112, 160), (32, 32)]),
        # A run of one byte.
        (make_run(77, 1, data=(0, 1), offset=15, last=1), [(77, 78)]),
        # A run that ends with the line leaves nothing to be completed.
        (make_run(125, 3, data=(1, 3), offset=14, last=1), [(125, 128)]),
        # … but not a whole line of fill.
        (make_run(112, 272, data=(10, 20), last=1), [(112, 132), (4, 128), (0, 128)]),
    ],
    ids=["aligned", "misaligned", "fill", "fill around", "over the line", "byte", "end of line", "fill behind"],
)
def test_worked_examples(run, spans):
    steps, _, _ = run_steps(16, [run])
    assert [(step.piece.first, step.piece.end) for step in steps[0]] == spans


def bytes_of_a_word(k):
    """Single bytes at odd places, several in a line and fifteen in a bus word."""
    return make_run(9 * k, 1, data=(0, 1), offset=k % 15, shared=k % 15 > 0, close=9 * k // 128 != (9 * k + 9) // 128)


@pytest.mark.parametrize(
    "make",
    [
        lambda k: make_run(16 * k, 16, data=(0, 16), last=k % 3 == 2),
        bytes_of_a_word,
        # Seven bytes behind each other, wherever lines end.
        lambda k: make_run(7 * k, 7, data=(0, 7), offset=k % 8),
    ],
    ids=["chunks", "bytes", "sevens"],
)
@pytest.mark.parametrize("spares", [False, True])
def test_steps_latency_one_and_a_run_a_cycle(make, spares):
    runs = [make(k) for k in range(30)]
    _, taken, cycles = run_steps(16, runs, spares=spares)
    assert taken == list(range(30))
    assert cycles == list(range(1, 31))


def test_a_run_of_two_shared_words_is_one_step_if_they_are_rotated_alike():
    """Rows of a bus word that adjoin in the tensor, at the begin of lines; and what keeps two words apart."""
    joined = make_run(128, 16, data=(0, 16), offset=8, shared=1, close=1)
    for changes, expected in (
        ({}, 1),
        ({"offset": 9}, 2),
        ({"shared": 0}, 2),
        ({"start": 144}, 2),
        ({"length": 32, "data": (0, 17)}, 2),
        ({"length": 32, "data": (1, 16), "offset": 9}, 1),  # with fill on both sides
        ({"reduction": 1}, 2),
    ):
        options = {"start": 128, "length": 16, "data": (0, 16), "offset": 8, "shared": 1, "close": 1} | changes
        reduction = options.pop("reduction", 0)
        runs = [make_run(0, 8, data=(0, 8), offset=8, close=1), make_run(**options)]
        runs[1]["context"]["reduction"] = reduction
        steps, _, _ = run_steps(16, [*runs, joined])
        assert len(steps[1]) == expected, changes
    steps, taken, cycles = run_steps(16, [runs[0], *[joined | {"start": 128}] * 20])
    assert taken == list(range(21)) and cycles == list(range(1, 22))
