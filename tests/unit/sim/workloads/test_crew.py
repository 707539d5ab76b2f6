"""The crew of a cluster on a session that the golden model plays; the same on the RTL is in test_workloads.py."""

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.golden import Cluster, Memory, command_word, delivery_bits
from tilewright.golden.spec import Error, Opcode
from tilewright.golden.tmau.calls import tensor_fields
from tilewright.golden.tmau.tile import tx_bytes
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.workloads import cluster
from tilewright.sim.workloads.crew import Crew
from tilewright.sim.workloads.photographs import load_photographs

CORES = 4


class Held:
    """A memory of the session."""

    def __init__(self, data):
        self.data = data

    def read(self, address, count):
        return self.data[address : address + count].copy()

    def write(self, address, contents):
        self.data[address : address + len(contents)] = contents


class Played:
    """As a ClusterSession, as far as a crew needs one; ``lie`` may change what it says of a run."""

    def __init__(self, lie=lambda run: None):
        self.params = ClusterParams(CORES, TMAU_PRESETS["unit"])
        self.memory_bytes = 1 << 20
        self.global_memory = Held(np.zeros(self.memory_bytes, np.uint8))
        self.shared_memories = [Held(np.zeros(self.params.smem.size_bytes, np.uint8)) for _ in range(CORES)]
        self._cluster = Cluster(Memory(self.global_memory.data), [held.data for held in self.shared_memories])
        self._lie, self._free = lie, 0

    def clear(self):
        self._free = 0

    def place(self, contents):
        address, self._free = self._free, self._free + -(-len(contents) // 128) * 128
        self.global_memory.write(address, contents)
        return address

    def command(self, tmap, coords, place, offsets, **fields):
        return {"tmap": tmap, "cores": fields.pop("cores", None)} | tensor_fields(tmap, coords, place, offsets) | fields

    def run(self, commands, barriers, shared):
        assert shared is True
        for core, listed in enumerate(barriers):
            for op, address, value, *_ in listed:
                self._cluster.barrier(core, op, address, value)
        cores, cycle, words = [], 0, 0
        for core, listed in enumerate(commands):
            stamps = []
            for fields in listed:
                tmap, receivers = fields.pop("tmap"), delivery_bits(fields.pop("cores"))
                word = command_word(**fields) | receivers
                done = self._cluster.execute_on(core, int.from_bytes(tmap.pack(), "little"), word)
                stamps.append(SimpleNamespace(accepted=cycle, done=cycle + 10, error=0 if done else Error.WINDOW))
                cycle, words = cycle + 1, words + tx_bytes(tmap) // 16 * (fields["opcode"] == Opcode.LOAD)
            cores.append(SimpleNamespace(commands=stamps, shared=None))
        run = SimpleNamespace(cores=cores, data_beats=words, violations=(), late=())
        self._lie(self)
        for core, held in zip(cores, self.shared_memories, strict=True):
            core.shared = held.data.copy()
        return run


@pytest.fixture(scope="module")
def photographs():
    return load_photographs((24, 64))


def test_a_bank_of_filters_on_four_cores(photographs):
    crew = Crew(Played())
    findings = cluster.play(crew, photographs)
    assert crew.totals.problems == []
    (sheet,) = findings.pictures.values()
    # The filter in the upper left corner weighs all pixels, so that its picture is much like the photograph.
    grey = photographs[0].mean(axis=2)
    assert np.corrcoef(sheet[1:23, 1:63, 0].reshape(-1), grey[1:23, 1:63].reshape(-1))[0, 1] > 0.9
    assert "64 x 24 pixels, 9 filters, 216 im2col loads of 64 pixels on 4 cores" in findings.facts[0]
    assert findings.facts[1] == (
        "the bank: 1,296 bytes, 81 bus words of 16 bytes read once, 5,184 bytes delivered to 4 cores"
    )
    rows = crew.activity().rows
    assert list(rows)[:2] == ["core 0, loads", "core 0, stores"]
    assert all(rows.values())
    assert len(rows["core 0, loads"]) == len(rows["core 1, loads"]) + 1  # the bank


def test_direct_sums_by_hand():
    photo = np.zeros((5, 5, 3), np.uint8)
    photo[2, 2] = (1, 2, 4)
    # A single pixel shows every filter upside down.
    assert (direct := cluster.direct(photo))[1:4, 1:4].tolist() == (7 * cluster.BANK[:, ::-1, ::-1]).transpose(
        1, 2, 0
    ).tolist()
    assert not direct[0].any()


@pytest.mark.parametrize(
    ("lie", "problem"),
    [
        (
            lambda played: played.shared_memories[2].data.__setitem__(500, 255),
            "shared memory of core 2 after 0 boxes: 1 of",
        ),
        (lambda played: played.shared_memories[3].data.fill(0), "shared memory of core 3 after 0 boxes:"),
    ],
)
def test_what_is_wrong_in_one_core_is_said(lie, problem):
    crew = Crew(Played(lie))
    crew.bring(crew.tiled(np.arange(1, 129, dtype=np.uint8).reshape(8, 16), box=(16, 8)))
    assert len(crew.totals.problems) == 1
    assert crew.totals.problems[0].startswith(problem)


def test_more_words_than_one_read_are_a_problem(photographs, monkeypatch):
    played = Played()
    run = played.run
    monkeypatch.setattr(played, "run", lambda *args, **options: twice(run(*args, **options)))
    crew = Crew(played)
    crew.bring(crew.tiled(np.zeros((8, 16), np.uint8), box=(16, 8)))
    assert crew.totals.problems == ["bus words that the multicast read: 1 of 1 values differ"]


def twice(run):
    run.data_beats *= 2
    return run
