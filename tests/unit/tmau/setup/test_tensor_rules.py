"""Every rule of a command on a tensor, in Setup, which looks at `START` itself; random commands against golden."""

import random

import pytest

from tilewright.golden import TensorMap
from tilewright.golden.spec import COMMAND, COMMAND_FIELD, DESCRIPTOR, TENSOR_OPCODES, Error, Opcode, Reduction
from tilewright.golden.tmau.setup import check_command
from tilewright.golden.tmau.windows import Windows
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.tensor import Setup
from tilewright.sim.pysim.payloads import checked_payload, listed_payload, show_dimensions
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import send
from tilewright.sim.random.maps import random_start

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]
SMEM_BYTES = PARAMS.smem.size_bytes

TILE = TensorMap(element="u8", size=(128, 8), stride=(128,), box=(128, 4), address=1 << 16)
CONV = TensorMap(element="f16", mode="im2col", size=(8, 9, 9, 2), stride=(16, 144, 1296), lower=(-1, -1), upper=(1, 2),
                 channels=8, pixels=64)  # fmt: skip
SLICED = TensorMap(element="u8", mode="im2col", interleave="16B", size=(9, 4, 2), stride=(144, 576), lower=(2,),
                   upper=(0,), channels=16, pixels=5)  # fmt: skip
INSIDE = [0, 2, 2, 0, 0]
STORE, REDUCE, PREFETCH = Opcode.STORE, Opcode.REDUCE, Opcode.PREFETCH

#: Map, command, windows, and what is wrong: code, field, value.
BROKEN = {
    "third coordinate of two": (TILE, {"coords": [0, 0, -1, 0, 0]}, Error.COORDS, "coords", 0xFFFFFFFF),
    "negative store": (TILE, {"opcode": STORE, "coords": [0, -2, 0, 0, 0]}, Error.COORDS, "coords", 0xFFFFFFFE),
    "store below the corner": (CONV, {"opcode": STORE, "coords": INSIDE}, Error.CORNER, "lower", 0xFFFF),
    "start before the box": (CONV, {"coords": [0, -2, 2, 0, 0]}, Error.START, "coords", 0xFFFFFFFE),
    "start behind the box": (CONV, {"coords": [0, 2, 11, 0, 0]}, Error.START, "coords", 11),
    "start behind the slices": (SLICED, {"coords": [9, 0, 0, 0, 0]}, Error.START, "coords", 9),
    "destination off the line": (TILE, {"smem": 64}, Error.SMEM_ALIGNMENT, "smem", 64),
    "last byte past shared memory": (TILE, {"smem": 4096 - 384}, Error.SMEM_RANGE, "smem", 4096 - 384),
    "destination far outside": (TILE, {"smem": 1 << 31}, Error.SMEM_RANGE, "smem", 1 << 31),
    "barrier off its eight bytes": (TILE, {"signal": 1, "barrier": 12}, Error.BARRIER_ALIGNMENT, "barrier", 12),
    "barrier outside": (TILE, {"signal": 1, "barrier": 4096}, Error.BARRIER_RANGE, "barrier", 4096),
    "offset of a tile": (TILE, {"offsets": [0, 1, 0]}, Error.OFFSETS, "offsets", 1),
    "offset of nine bits": (CONV, {"coords": INSIDE, "offsets": [0, 256, 0]}, Error.OFFSETS, "offsets", 256),
    "offset in a third dimension": (CONV, {"coords": INSIDE, "offsets": [1, 1, 1]}, Error.OFFSETS, "offsets", 1),
    "offset of a store": (
        SLICED,
        {"opcode": STORE, "coords": [2, 0, 0, 0, 0], "offsets": [7, 0, 0]},
        Error.OFFSETS,
        "offsets",
        7,
    ),
    "reduction without operation": (TILE, {"opcode": REDUCE}, Error.REDUCTION, "reduction", 0),
    "sum of bytes": (TILE, {"opcode": REDUCE, "reduction": Reduction.ADD}, Error.REDUCTION, "reduction", 1),
    "fill larger than shared memory": (
        TensorMap(element="u8", size=(128, 64), stride=(128,), box=(128, 33)),
        {"opcode": STORE, "fill": 1},
        Error.SMEM_RANGE,
        "smem",
        0,
    ),
}
LEGAL = {
    "barrier that is not signalled": (TILE, {"barrier": 13}),
    "barrier of a store": (TILE, {"opcode": STORE, "signal": 1, "barrier": 13}),
    "place of a fill": (TILE, {"opcode": STORE, "fill": 1, "smem": 13}),
    "prefetch without a place": (TILE, {"opcode": PREFETCH, "smem": 1 << 31, "signal": 1, "barrier": 13}),
    "reduction of a load": (TILE, {"reduction": 15}),
    "largest offset": (CONV, {"coords": INSIDE, "offsets": [255, 255, 0]}),
    "offset of sixteen bits": (SLICED, {"coords": [2, 0, 0, 0, 0], "offsets": [0xFFFF, 0, 0]}),
    "last place": (TILE, {"smem": 4096 - 512}),
    "invalidation": (TILE, {"opcode": Opcode.INVALIDATE, "coords": [9] * 5, "smem": 13}),
}


def simulated(cases):
    """The faults of ``cases``, command, map and Windows each, as Setup reports them."""
    dut = elaborated(Setup, PARAMS)
    faults = []

    async def source(ctx):
        for command, tmap, windows in cases:
            ctx.set(dut.windows, window_registers(windows))
            await send(ctx, dut.i, [{"command": command, "checked": checked_payload(tmap, PARAMS), "fault": {}}])
            ends, job, fault = dut.finished.valid, dut.jobs.valid, dut.finished.p
            ctx.set(dut.finished.ready, 1)
            ctx.set(dut.jobs.ready, 1)
            *_, refused, moves, record = await ctx.tick().sample(ends, job, fault).until(ends | job)
            assert refused != moves
            faults.append((Error(record.code), record.field) if refused else (Error.NONE, 0))

    async def lists(ctx):
        await show_dimensions(ctx, dut, [listed_payload(tmap, PARAMS) for _, tmap, _ in cases])

    simulate(dut, source, background=[lists], deadline=100_000)
    return faults


def window_registers(windows):
    registers = {"confine_global": windows.global_ is not None, "confine_shared": windows.shared is not None}
    for name, window, bits in (("global", windows.global_, 12), ("shared", windows.shared, 7)):
        if window:
            registers |= {f"{name}_first": window[0] >> bits, f"{name}_last": window[1] >> bits}
    return registers


def golden(command, tmap, windows):
    fields = COMMAND.unpack(COMMAND.pack(**command))
    return check_command(fields, tmap, SMEM_BYTES, windows, PARAMS.addr_width) or (Error.NONE, 0, 0)


@pytest.mark.parametrize("case", BROKEN)
def test_broken_rule(case):
    tmap, changes, code, name, value = BROKEN[case]
    field = DESCRIPTOR.index(name) if name == "lower" else COMMAND_FIELD + COMMAND.index(name)
    command = {"opcode": Opcode.LOAD} | changes
    assert simulated([(command, tmap, Windows())]) == [(code, field)]
    assert golden(command, tmap, Windows()) == (code, field, value)


def test_legal_commands():
    cases = [({"opcode": Opcode.LOAD} | changes, tmap, Windows()) for tmap, changes in LEGAL.values()]
    found = dict(zip(LEGAL, simulated(cases), strict=True))
    assert found == dict.fromkeys(LEGAL, (Error.NONE, 0))


#: A tensor of 1 KiB at 64 KiB, its transfer in lines 2 to 5, its barrier in line 8.
WINDOWED = {"opcode": Opcode.LOAD, "smem": 256, "signal": 1, "barrier": 1024}
WINDOWS = {
    "all inside": (Windows((0x10000, 0x10FFF), (256, 1151)), None, 0),
    "tensor before": (Windows((0x11000, 0x1FFFF)), "address", 1 << 16),
    "tensor behind": (Windows((0, 0xFFFF)), "address", 1 << 16),
    "transfer before": (Windows(None, (384, 4095)), "smem", 256),
    "transfer behind": (Windows(None, (0, 767 - 128)), "smem", 256),
    "barrier behind": (Windows(None, (256, 1023)), "barrier", 1024),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_windows(case):
    windows, name, value = WINDOWS[case]
    expected = (Error.NONE, 0, 0)
    if name:
        expected = (Error.WINDOW, DESCRIPTOR.index(name) if name == "address" else COMMAND_FIELD + COMMAND.index(name))
        expected = (*expected, value)
    assert golden(WINDOWED, TILE, windows) == expected
    assert simulated([(WINDOWED, TILE, windows)]) == [expected[:2]]


def test_tensor_that_wraps_is_outside():
    tmap = TensorMap(element="u8", size=(64, 2), stride=((1 << 32) - 16,), box=(16, 1), address=1 << 16)
    windows = Windows((0, (1 << 32) - 1))
    command = {"opcode": Opcode.LOAD}
    assert simulated([(command, tmap, windows)]) == [golden(command, tmap, windows)[:2]]
    assert golden(command, tmap, windows)[0] == Error.WINDOW


def random_case(rng):
    stores = rng.random() < 0.5
    start = random_start(rng, first=0, end=1 << 20, most_bytes=SMEM_BYTES, stores=stores)
    command = {
        "opcode": rng.choice(TENSOR_OPCODES),
        "signal": rng.getrandbits(1),
        "fill": rng.random() < 0.1,
        "reduction": rng.choice([1, 1, rng.randrange(16)]),
        "smem": rng.choice([0, 128 * rng.randrange(32), 64]) if rng.random() < 0.5 else 0,
        "barrier": rng.choice([8 * rng.randrange(512), rng.randrange(1 << 13)]),
        "coords": [*start.coords, *[0] * (5 - len(start.coords))],
        "offsets": [*start.offsets, *[0] * (3 - len(start.offsets))],
    }
    if rng.random() < 0.3:
        command["coords"][rng.randrange(5)] = rng.choice([-1, rng.randint(-40, 40), -(1 << 31), (1 << 31) - 1])
    if rng.random() < 0.3:
        command["offsets"][rng.randrange(3)] = rng.choice([rng.getrandbits(6), rng.getrandbits(16), 32, 256])
    shared = sorted(rng.randrange(SMEM_BYTES) for _ in range(2)) if rng.random() < 0.2 else None
    global_ = sorted(rng.randrange(1 << 20) for _ in range(2)) if rng.random() < 0.2 else None
    return command, start.tmap, Windows(global_ and tuple(global_), shared and tuple(shared))


def test_random_commands_equal_golden():
    rng = random.Random(SEED)
    cases = [random_case(rng) for _ in range(500)]
    print(f"seed {SEED}")
    found = simulated(cases)
    for case, fault in zip(cases, found, strict=True):
        assert fault == golden(*case)[:2], case
    assert len({fault[0] for fault in found}) >= 9, "all kinds of refusals"
