"""The replay program on a GPU: what it moves, what it counts and how it ends. Jobs are written here byte by byte.

It runs under pytest, and where there is none by ``python3 -m unittest``.
"""

import subprocess
from pathlib import Path
from unittest import TestCase, skipUnless

import numpy as np

from tilewright.silicon.packing import MAGIC, RECORDS, Ending, Op, Status
from tilewright.silicon.program import build

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

    def job(self, *commands, maps=(), cores=1):
        header = {"magic": MAGIC["JobHeader"], "shared_bytes": SHARED_BYTES, "global_bytes": GLOBAL_BYTES}
        header |= {"maps": len(maps), "commands": len(commands), "more_cores": cores - 1}
        parts = record("JobHeader", **header), *maps, *commands
        return b"".join([*parts, self.gmem.tobytes(), self.smem.tobytes()])

    def run_jobs(self, data):
        """Exit status, and what comes after the Hello."""
        done = subprocess.run([self.program], input=data, capture_output=True, check=False)
        hello = np.frombuffer(done.stdout, RECORDS["Hello"], 1)[0]
        assert hello["status"] == Status.OK, hello["message"]
        return done.returncode, done.stdout[RECORDS["Hello"].itemsize :]

    def replies(self, *commands, maps=(), cores=1):
        """Results of the maps, replies to the commands, and both memories of one job; of several cores one each."""
        status, data = self.run_jobs(self.job(*commands, maps=maps, cores=cores))
        each = (cores,) if cores > 1 else ()
        assert status == 0, status
        dtype = np.dtype([
            ("header", RECORDS["ReplyHeader"]), ("maps", "<i4", (len(maps),)),
            ("commands", RECORDS["CommandReply"], (len(commands), *each)),
            ("gmem", "<u4", GLOBAL_BYTES // 4), ("smem", "<u4", (*each, SHARED_BYTES // 4)),
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

    def test_multicasts_to_the_cores_of_the_mask_alone(self):
        for expected in (0, 16, 64, 80, 4096):
            with self.subTest(expected=expected):
                block = {"source": 512, "destination": 128, "size": 64}
                _, commands, gmem, smems = self.replies(
                    command(Op.LOAD, coords=[-4, 7], shared=256, expected=expected, multicast=2),
                    command(Op.GLOBAL_TO_SHARED, expected=expected, core=1, multicast=5, **block),
                    maps=[tile()],
                    cores=4,
                )
                nothing, all_of_it = (Ending.DONE, 1, 0), (Ending.DONE, 1, 64)
                assert commands == [[nothing, all_of_it, nothing, nothing], [all_of_it, nothing] * 2], commands
                wanted = np.stack([self.smem] * 4)
                wanted[1, 64:80] = [0] * 4 + [*self.gmem[64:192].reshape(8, 16)[7, :4]] + [0] * 8
                wanted[::2, 32:48] = self.gmem[128:144]
                np.testing.assert_array_equal(gmem, self.gmem)
                np.testing.assert_array_equal(smems, wanted)

    def test_two_cores_move_their_own_and_each_others_memory(self):
        words = {"reduction": ADD, "type": U32}
        block = {"size": 32, "expected": 32}
        _, commands, gmem, smems = self.replies(
            command(Op.LOAD, coords=[0, 2], shared=256, expected=64, core=1),
            command(Op.SHARED_TO_SHARED, source=256, destination=512, core=1, receiver=0, **block),
            command(Op.REDUCE_TO_SHARED, source=512, destination=640, core=0, receiver=1, **block, **words),
            command(Op.REDUCE_TO_SHARED, source=512, destination=640, core=0, receiver=0, **block, **words),
            command(Op.SHARED_TO_GLOBAL, source=640, destination=2048, size=32, core=1),
            command(Op.STORE, coords=[8, 6], shared=256, core=1),
            maps=[tile()],
            cores=2,
        )
        nothing, done = (Ending.DONE, 1, 0), (Ending.DONE, 0, 0)
        loaded, moved = (Ending.DONE, 1, 64), (Ending.DONE, 1, 32)
        wanted = [[nothing, loaded], [moved, nothing], [nothing, moved], [moved, nothing], [done] * 2, [done] * 2]
        assert commands == wanted, commands
        gmem_wanted, smems_wanted = self.gmem.copy(), np.stack([self.smem] * 2)
        tensor = gmem_wanted[64:192].reshape(8, 16)
        smems_wanted[1, 64:80] = tensor[2:4, :8].reshape(-1)
        smems_wanted[0, 128:136] = smems_wanted[1, 64:72]
        smems_wanted[:, 160:168] += smems_wanted[0, 128:136]
        gmem_wanted[512:520] = smems_wanted[1, 160:168]
        tensor[6:, 8:] = smems_wanted[1, 64:80].reshape(2, 8)
        np.testing.assert_array_equal(gmem, gmem_wanted)
        np.testing.assert_array_equal(smems, smems_wanted)

    def test_counts_arrivals_at_one_barrier_in_phases(self):
        #           core mask expected value counted: modulo two phases
        arrivals = [(1, 5, 6, 2, 4), (0, 15, 6, 2, 8), (3, 8, 1, 1, 1), (2, 3, (1 << 20) - 1, 1000, 2000),
                    (1, 15, 2, 1, 0)]  # fmt: skip
        counted = [
            [(Ending.DONE, 1, count if core == owner else 0) for core in range(4)] for owner, _, _, _, count in arrivals
        ]
        listed = [
            command(Op.ARRIVE, core=owner, multicast=mask, expected=expected, size=value)
            for owner, mask, expected, value, _ in arrivals
        ]
        _, commands, gmem, smems = self.replies(*listed, cores=4)
        assert commands == counted, commands
        np.testing.assert_array_equal(gmem, self.gmem)
        np.testing.assert_array_equal(smems, np.stack([self.smem] * 4))

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
        others = [self.job(command(Op.NOTHING, core=2), cores=2), self.job(command(Op.NOTHING, receiver=1))]
        for malformed in (b"none" + data[4:], data[:-1], self.job(cores=9), *others):
            assert self.run_jobs(malformed) == (2, b"")
