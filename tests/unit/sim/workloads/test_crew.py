"""The crew of a cluster on a session that the golden model plays; the same on the RTL is in test_workloads.py."""

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.golden import Cluster, Cores, GlobalMemory, ProgramRecord
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core import CORE_PRESETS
from tilewright.sim.session.events import CommandEnd, WordStamp
from tilewright.sim.workloads.crew import BANK, Crew, direct, play_filters
from tilewright.sim.workloads.photographs import load_photographs
from tilewright.spec.core import PROGRAM_WORDS, Engine, Kind, ProgramError
from tilewright.spec.tmau import COMMAND

CORES = 4
HEIGHT, WIDTH = 8, 24
PIXELS = HEIGHT * WIDTH


class Held:
    """A memory of the session."""

    def __init__(self, data):
        self.data = data

    def read(self, address, count):
        return self.data[address : address + count].copy()

    def write(self, address, contents):
        self.data[address : address + len(contents)] = contents


class Played:
    """As a ClusterSession, as far as a crew needs one; ``lie`` may change what is there after the programs."""

    def __init__(self, lie=lambda played: None):
        self.params = ClusterParams(CORES, CORE_PRESETS["unit"])
        self.global_memory = Held(np.zeros(1 << 18, np.uint8))
        self.shared_memories = [Held(np.zeros(self.params.smem.size_bytes, np.uint8)) for _ in range(CORES)]
        self.records, self.landed = [None] * CORES, np.zeros((CORES, 2), int)
        self._cluster = Cluster(GlobalMemory(self.global_memory.data), [held.data for held in self.shared_memories])
        self._lie = lie

    def clear(self):
        pass

    def place(self, contents):
        self.global_memory.write(0, contents)

    def run(self, barriers=(), registers=()):
        for core, listed in enumerate(barriers):
            for op, address, value in listed:
                self._cluster.barrier(core, op, address, value)
        answers = self.landed if registers else []
        cores = [SimpleNamespace(registers=[SimpleNamespace(data=value) for value in pair]) for pair in answers]
        return SimpleNamespace(cores=cores)

    def run_programs(self, starts, shared):
        assert shared is True
        Cores(self._cluster, pe=self.params.core.pe).run(starts)
        kernel = 2 * 9 * 128
        self.landed[:] = [[5000, 5000]] + [[3000, 3000 + kernel]] * (CORES - 1)
        self._lie(self)
        cores = [stamped(self.global_memory, *start) for start in starts]
        for core, held in zip(cores, self.shared_memories, strict=True):
            core.shared = held.data.copy()
        return SimpleNamespace(cores=cores, records=self.records, data_beats=700, write_beats=600, violations=(),
                               late=(), cycles=5000)  # fmt: skip


def stamped(memory, address, count):
    """A core whose program took a cycle for each word, and two more for what it handed out."""
    core = SimpleNamespace(words=[], ends=[], performed=[], jobs=[])
    for index, raw in enumerate(memory.read(address, 64 * count).reshape(-1, 64)):
        word = int.from_bytes(raw.tobytes(), "little")
        kind = Kind(word >> PROGRAM_WORDS[Kind.END]["kind"].lsb)
        core.words.append(WordStamp(index, kind, index))
        if kind == Kind.TMAU:
            core.ends.append(CommandEnd(index + 2, COMMAND.unpack(word)["tag"], 0))
        elif kind == Kind.PE:
            core.performed += [index + 2] * PROGRAM_WORDS[Kind.PE].unpack(word)["count"]
    return core


@pytest.fixture(scope="module")
def photographs():
    return load_photographs((HEIGHT, WIDTH))


def test_nine_filters_on_four_cores(photographs):
    crew = Crew(Played())
    findings = play_filters(crew, photographs)
    assert crew.totals.problems == []
    assert (crew.totals.parts, crew.totals.work) == (CORES, PIXELS * 9 * 27)
    assert crew.totals.limit == max(-(-crew.totals.work // (CORES * 4 * 8)), 700)
    (sheet,) = findings.pictures.values()
    # The filter in the upper left corner weighs all pixels, so that its picture is much like the photograph.
    grey = photographs[0].mean(axis=2)
    assert np.corrcoef(sheet[1:7, 1:23, 0].reshape(-1), grey[1:7, 1:23].reshape(-1))[0, 1] > 0.9
    assert findings.facts[0].startswith(f"{WIDTH} x {HEIGHT} pixels, 9 filters, ")
    assert findings.facts[1:] == (
        "the kernel: 2,304 bytes, read by core 0, landed in 4 cores",
        "bus words of 16 bytes: 700 read, 600 written",
    )
    rows = crew.activity().rows
    assert list(rows)[:3] == ["core 0, in", "core 0, out", "core 0, engine"]
    assert len(rows) == 3 * CORES and all(rows.values())
    # Core 0 alone loads the kernel, by two commands.
    assert len(rows["core 0, in"]) == len(rows["core 1, in"]) + 2


def test_direct_sums_by_hand():
    photo = np.zeros((5, 5, 3), np.uint8)
    photo[2, 2] = (1, 2, 4)
    # A single pixel shows every filter upside down.
    sums = direct(photo)
    assert sums[1:4, 1:4].tolist() == (7 * BANK[:, ::-1, ::-1]).transpose(1, 2, 0).tolist()
    assert not sums[0].any()


def test_what_is_wrong_is_said(photographs):
    def lie(played):
        played.shared_memories[2].data[500] ^= 1
        played.global_memory.data[0] ^= 1
        played.records[1] = ProgramRecord(ProgramError.BUS, Engine.NONE, 0, 7)
        played.landed[3] = 5000

    crew = Crew(Played(lie))
    play_filters(crew, photographs)
    problems = [
        "global memory: 1 of ",
        "shared memory of core 2: 1 of 16384 values differ",
        "the program of core 1 stopped: ProgramRecord(code=<ProgramError.BUS",
        "bytes that landed in each core and that it did not read: 1 of 4 values differ",
        f"the filtered photograph in global memory: 1 of {PIXELS * 9} values differ",
    ]
    assert len(crew.totals.problems) == len(problems)
    for said, begin in zip(crew.totals.problems, problems, strict=True):
        assert said.startswith(begin)
