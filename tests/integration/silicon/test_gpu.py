"""The replay program on a GPU: what it moves, what it counts and how it ends. Jobs are written here byte by byte."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tilewright.sim.silicon.program import build
from tilewright.sim.silicon.records import MAGIC, RECORDS, Ending, Op, Status

pytestmark = pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="there is no GPU")

GLOBAL_BYTES, SHARED_BYTES = 4096, 1024
#: Numbers of the types and reductions of a job.
U32, U64 = 1, 3
ADD, MIN = 1, 2
#: CUtensorMapDataType of 32 bits without a sign.
MAP_U32 = 2


@pytest.fixture(scope="module")
def program():
    return build("replay")


@pytest.fixture(scope="module")
def memories():
    """Global and shared memory of every job, as words."""
    words = np.random.default_rng(20261121).integers(0, 1 << 32, (GLOBAL_BYTES + SHARED_BYTES) // 4, np.uint32)
    return np.split(words, [GLOBAL_BYTES // 4])


def record(name, **values):
    made = np.zeros((), RECORDS[name])
    for field, value in values.items():
        made[field][...] = value if np.ndim(value) == 0 else np.resize(np.append(value, [0] * 8), made[field].shape)
    return made.tobytes()


def tile(**values):
    """A map of 16 × 8 words from address 256, and boxes of 4 × 2."""
    shape = {"address": 256, "rank": 2, "size": [16, 8], "stride": [64], "box": [4, 2], "step": [1, 1]}
    return record("MapRecord", **{"type": MAP_U32, **shape, **values})


def command(op, **values):
    return record("CommandRecord", op=op, **values)


def job(memories, *commands, maps=()):
    header = {"magic": MAGIC["JobHeader"], "shared_bytes": SHARED_BYTES, "global_bytes": GLOBAL_BYTES}
    parts = record("JobHeader", maps=len(maps), commands=len(commands), **header), *maps, *commands
    return b"".join(parts) + b"".join(memory.tobytes() for memory in memories)


def run(program, data):
    """Exit status, and what comes after the Hello."""
    done = subprocess.run([program], input=data, capture_output=True, check=False)
    hello = np.frombuffer(done.stdout, RECORDS["Hello"], 1)[0]
    assert hello["status"] == Status.OK, hello["message"]
    return done.returncode, done.stdout[RECORDS["Hello"].itemsize :]


def replies(program, memories, *commands, maps=()):
    """Results of the maps, replies to the commands, and both memories of one job."""
    status, data = run(program, job(memories, *commands, maps=maps))
    assert status == 0
    dtype = np.dtype([
        ("header", RECORDS["ReplyHeader"]), ("maps", "<i4", (len(maps),)),
        ("commands", RECORDS["CommandReply"], (len(commands),)),
        ("gmem", "<u4", GLOBAL_BYTES // 4), ("smem", "<u4", SHARED_BYTES // 4),
    ])  # fmt: skip
    (reply,) = np.frombuffer(data, dtype)
    assert reply["header"]["status"] == Status.OK
    return reply["maps"].tolist(), reply["commands"].tolist(), reply["gmem"], reply["smem"]


@pytest.mark.parametrize("expected", [0, 16, 48, 64, 80, 4096, (1 << 20) - 1])
def test_counts_what_arrives_whatever_is_expected(program, memories, expected):
    gmem, smem = memories
    copy = command(Op.GLOBAL_TO_SHARED, source=512, destination=128, size=64, expected=expected)
    _, commands, gmem_after, smem_after = replies(program, memories, copy)
    assert commands == [(Ending.DONE, 1, 64)]
    smem = smem.copy()
    smem[32:48] = gmem[128:144]
    assert np.array_equal(gmem_after, gmem)
    assert np.array_equal(smem_after, smem)


@pytest.mark.parametrize("expected", [0, 16, 32, 48])
def test_counts_what_a_load_fills_in_too(program, memories, expected):
    gmem, smem = memories
    load = command(Op.LOAD, coords=[-1, 7], shared=256, expected=expected)
    _, commands, _, smem_after = replies(program, memories, load, maps=[tile()])
    assert commands == [(Ending.DONE, 1, 32)]
    smem = smem.copy()
    smem[64:72] = [0, *gmem[64:192].reshape(8, 16)[7, :3], 0, 0, 0, 0]
    assert np.array_equal(smem_after, smem)


def test_stores_and_reduces_tensors(program, memories):
    gmem, smem = memories
    store = command(Op.STORE, coords=[14, 1], shared=128)
    reduce = command(Op.REDUCE, coords=[4, 6], shared=256, reduction=ADD)
    _, commands, gmem_after, smem_after = replies(program, memories, store, reduce, maps=[tile()])
    assert commands == [(Ending.DONE, 0, 0)] * 2
    gmem = gmem.copy()
    tensor = gmem[64:192].reshape(8, 16)
    tensor[1:3, 14:] = smem[32:40].reshape(2, 4)[:, :2]
    tensor[6:, 4:8] += smem[64:72].reshape(2, 4)
    assert np.array_equal(gmem_after, gmem)
    assert np.array_equal(smem_after, smem)


def test_copies_and_reduces_blocks(program, memories):
    gmem, smem = memories
    words = {"reduction": ADD, "type": U32}
    block = {"size": 32, "expected": 32}
    _, commands, gmem_after, smem_after = replies(
        program, memories,
        command(Op.SHARED_TO_GLOBAL, source=64, destination=1024, size=32),
        command(Op.REDUCE_TO_GLOBAL, source=128, destination=2048, size=32, **words),
        command(Op.SHARED_TO_SHARED, source=192, destination=512, **block),
        command(Op.REDUCE_TO_SHARED, source=256, destination=640, **block, **words),
        command(Op.PREFETCH_BLOCK, source=0, size=64),
        command(Op.NOTHING),
    )  # fmt: skip
    assert commands == [(Ending.DONE, 0, 0)] * 2 + [(Ending.DONE, 1, 32)] * 2 + [(Ending.DONE, 0, 0)] * 2
    gmem, before, smem = gmem.copy(), smem, smem.copy()
    gmem[256:264] = before[16:24]
    gmem[512:520] += before[32:40]
    smem[128:136] = before[48:56]
    smem[160:168] += before[64:72]
    assert np.array_equal(gmem_after, gmem)
    assert np.array_equal(smem_after, smem)


def test_goes_on_after_what_cannot_be(program, memories):
    maps = [tile(address=8), tile()]
    results, commands, gmem, smem = replies(
        program, memories,
        command(Op.LOAD, map=0),
        command(Op.REDUCE_TO_SHARED, size=16, reduction=MIN, type=U64),
        command(Op.PREFETCH, map=1),
        maps=maps,
    )  # fmt: skip
    assert results[0] != 0
    assert results[1] == 0
    assert [outcome for outcome, _, _ in commands] == [Ending.REFUSED, Ending.NO_SUCH, Ending.DONE]
    assert np.array_equal(gmem, memories[0])
    assert np.array_equal(smem, memories[1])


def test_many_jobs_are_answered_in_order(program, memories):
    jobs = [job(memories, command(Op.SHARED_TO_GLOBAL, destination=16 * i, size=16)) for i in range(100)]
    status, data = run(program, b"".join(jobs))
    assert status == 0
    sizes = [RECORDS[name].itemsize for name in ("ReplyHeader", "CommandReply")]
    answers = np.frombuffer(data, np.uint8).reshape(100, sum(sizes) + GLOBAL_BYTES + SHARED_BYTES)
    for i, answer in enumerate(answers):
        gmem = memories[0].copy()
        gmem[4 * i : 4 * i + 4] = memories[1][:4]
        assert answer[sum(sizes) : -SHARED_BYTES].tobytes() == gmem.tobytes()


def test_says_which_command_broke_the_gpu_and_ends(program, memories):
    broken = command(Op.SHARED_TO_GLOBAL, destination=1 << 46, size=16)
    status, data = run(program, job(memories, command(Op.NOTHING), broken))
    header = np.frombuffer(data, RECORDS["ReplyHeader"], 1)[0]
    assert status == 3
    assert (header["status"], header["command"]) == (Status.FAILED, 1)
    assert header["message"].startswith(b"cudaError")


@pytest.mark.parametrize("damage", [lambda data: b"none" + data[4:], lambda data: data[:-1]])
def test_ends_at_a_malformed_job(program, memories, damage):
    assert run(program, damage(job(memories))) == (2, b"")
