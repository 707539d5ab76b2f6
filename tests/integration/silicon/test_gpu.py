"""The replay program on a GPU: what it moves, what it counts and how it ends. Jobs are written here byte by byte.

It runs under pytest, and where there is none by ``python3 -m unittest``.
"""

import subprocess
from pathlib import Path
from unittest import TestCase, skipUnless

import numpy as np

from tilewright.sim.silicon.program import build
from tilewright.sim.silicon.records import MAGIC, RECORDS, Ending, Op, Status

GLOBAL_BYTES, SHARED_BYTES = 4096, 1024
#: Numbers of the types and reductions of a job.
U32, U64 = 1, 3
ADD, MIN = 1, 2
#: CUtensorMapDataType of 32 bits without a sign.
MAP_U32 = 2


def record(name, **values):
    made = np.zeros((), RECORDS[name])
    for field, value in values.items():
        made[field][...] = value if np.ndim(value) == 0 else np.resize(np.append(value, [0] * 8), made[field].shape)
    return made.tobytes()


def tile(**values):
    """A map of 16 × 8 words from address 256, and boxes of 8 × 2."""
    shape = {"address": 256, "rank": 2, "size": [16, 8], "stride": [64], "box": [8, 2], "step": [1, 1]}
    return record("MapRecord", **{"type": MAP_U32, **shape, **values})


def command(op, **values):
    return record("CommandRecord", op=op, **values)


@skipUnless(Path("/dev/nvidiactl").exists(), "there is no GPU")
class TestProgram(TestCase):
    """Without pytest an ``assert`` says what was there only if it is told to."""

    @classmethod
    def setUpClass(cls):
        """Builds the program, and fills global and shared memory of every job, words."""
        cls.program = build("replay")
        words = np.random.default_rng(20261121).integers(0, 1 << 32, (GLOBAL_BYTES + SHARED_BYTES) // 4, np.uint32)
        cls.gmem, cls.smem = np.split(words, [GLOBAL_BYTES // 4])

    def job(self, *commands, maps=()):
        header = {"magic": MAGIC["JobHeader"], "shared_bytes": SHARED_BYTES, "global_bytes": GLOBAL_BYTES}
        parts = record("JobHeader", maps=len(maps), commands=len(commands), **header), *maps, *commands
        return b"".join([*parts, self.gmem.tobytes(), self.smem.tobytes()])

    def run_jobs(self, data):
        """Exit status, and what comes after the Hello."""
        done = subprocess.run([self.program], input=data, capture_output=True, check=False)
        hello = np.frombuffer(done.stdout, RECORDS["Hello"], 1)[0]
        assert hello["status"] == Status.OK, hello["message"]
        return done.returncode, done.stdout[RECORDS["Hello"].itemsize :]

    def replies(self, *commands, maps=()):
        """Results of the maps, replies to the commands, and both memories of one job."""
        status, data = self.run_jobs(self.job(*commands, maps=maps))
        assert status == 0, status
        dtype = np.dtype([
            ("header", RECORDS["ReplyHeader"]), ("maps", "<i4", (len(maps),)),
            ("commands", RECORDS["CommandReply"], (len(commands),)),
            ("gmem", "<u4", GLOBAL_BYTES // 4), ("smem", "<u4", SHARED_BYTES // 4),
        ])  # fmt: skip
        (reply,) = np.frombuffer(data, dtype)
        assert reply["header"]["status"] == Status.OK, reply["header"]
        return reply["maps"].tolist(), reply["commands"].tolist(), reply["gmem"], reply["smem"]

    def test_counts_what_arrives_whatever_is_expected(self):
        for expected in (0, 16, 48, 64, 80, 4096, (1 << 20) - 1):
            with self.subTest(expected=expected):
                copy = command(Op.GLOBAL_TO_SHARED, source=512, destination=128, size=64, expected=expected)
                _, commands, gmem, smem = self.replies(copy)
                assert commands == [(Ending.DONE, 1, 64)], commands
                wanted = self.smem.copy()
                wanted[32:48] = self.gmem[128:144]
                np.testing.assert_array_equal(gmem, self.gmem)
                np.testing.assert_array_equal(smem, wanted)

    def test_counts_what_a_load_fills_in_too(self):
        for expected in (0, 16, 64, 80):
            with self.subTest(expected=expected):
                load = command(Op.LOAD, coords=[-4, 7], shared=256, expected=expected)
                _, commands, _, smem = self.replies(load, maps=[tile()])
                assert commands == [(Ending.DONE, 1, 64)], commands
                wanted = self.smem.copy()
                wanted[64:80] = [0] * 4 + [*self.gmem[64:192].reshape(8, 16)[7, :4]] + [0] * 8
                np.testing.assert_array_equal(smem, wanted)

    def test_stores_and_reduces_tensors(self):
        store = command(Op.STORE, coords=[12, 1], shared=128)
        reduce = command(Op.REDUCE, coords=[4, 6], shared=256, reduction=ADD)
        _, commands, gmem, smem = self.replies(store, reduce, maps=[tile()])
        assert commands == [(Ending.DONE, 0, 0)] * 2, commands
        wanted = self.gmem.copy()
        tensor = wanted[64:192].reshape(8, 16)
        tensor[1:3, 12:] = self.smem[32:48].reshape(2, 8)[:, :4]
        tensor[6:, 4:12] += self.smem[64:80].reshape(2, 8)
        np.testing.assert_array_equal(gmem, wanted)
        np.testing.assert_array_equal(smem, self.smem)

    def test_copies_and_reduces_blocks(self):
        words = {"reduction": ADD, "type": U32}
        block = {"size": 32, "expected": 32}
        _, commands, gmem, smem = self.replies(
            command(Op.SHARED_TO_GLOBAL, source=64, destination=1024, size=32),
            command(Op.REDUCE_TO_GLOBAL, source=128, destination=2048, size=32, **words),
            command(Op.SHARED_TO_SHARED, source=192, destination=512, **block),
            command(Op.REDUCE_TO_SHARED, source=256, destination=640, **block, **words),
            command(Op.PREFETCH_BLOCK, source=0, size=64),
            command(Op.NOTHING),
        )
        done = [(Ending.DONE, 0, 0)] * 2
        assert commands == done + [(Ending.DONE, 1, 32)] * 2 + done, commands
        wanted_gmem, wanted_smem = self.gmem.copy(), self.smem.copy()
        wanted_gmem[256:264] = self.smem[16:24]
        wanted_gmem[512:520] += self.smem[32:40]
        wanted_smem[128:136] = self.smem[48:56]
        wanted_smem[160:168] += self.smem[64:72]
        np.testing.assert_array_equal(gmem, wanted_gmem)
        np.testing.assert_array_equal(smem, wanted_smem)

    def test_goes_on_after_what_cannot_be(self):
        results, commands, gmem, smem = self.replies(
            command(Op.LOAD, map=0),
            command(Op.REDUCE_TO_SHARED, size=16, reduction=MIN, type=U64),
            command(Op.PREFETCH, map=1),
            maps=[tile(address=8), tile()],
        )
        assert results[0] != 0, results
        assert results[1] == 0, results
        outcomes = [outcome for outcome, _, _ in commands]
        assert outcomes == [Ending.REFUSED, Ending.NO_SUCH, Ending.DONE], outcomes
        np.testing.assert_array_equal(gmem, self.gmem)
        np.testing.assert_array_equal(smem, self.smem)

    def test_many_jobs_are_answered_in_order(self):
        jobs = [self.job(command(Op.SHARED_TO_GLOBAL, destination=16 * i, size=16)) for i in range(100)]
        status, data = self.run_jobs(b"".join(jobs))
        assert status == 0, status
        sizes = [RECORDS[name].itemsize for name in ("ReplyHeader", "CommandReply")]
        answers = np.frombuffer(data, np.uint8).reshape(100, sum(sizes) + GLOBAL_BYTES + SHARED_BYTES)
        for i, answer in enumerate(answers):
            wanted = self.gmem.copy()
            wanted[4 * i : 4 * i + 4] = self.smem[:4]
            assert answer[sum(sizes) : -SHARED_BYTES].tobytes() == wanted.tobytes()

    def test_says_which_command_broke_the_gpu_and_ends(self):
        broken = command(Op.SHARED_TO_GLOBAL, destination=1 << 46, size=16)
        status, data = self.run_jobs(self.job(command(Op.NOTHING), broken))
        header = np.frombuffer(data, RECORDS["ReplyHeader"], 1)[0]
        assert status == 3, status
        assert (header["status"], header["command"]) == (Status.FAILED, 1), header
        assert header["message"][:9] == b"cudaError", header

    def test_ends_at_a_malformed_job(self):
        data = self.job()
        for malformed in (b"none" + data[4:], data[:-1]):
            assert self.run_jobs(malformed) == (2, b"")
