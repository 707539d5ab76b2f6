"""Kinds of a campaign: each runs, equals golden, and finds what is wrong; on models that other tests build too."""

import numpy as np

from support.selection import cases
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.session import Session
from tilewright.tools.campaign import kinds, networks
from tilewright.tools.campaign.kinds import KINDS
from tilewright.tools.campaign.run import Chunk, run_chunk
from tilewright.verify.random.batches import TENSOR_BYTES

LONG = {"mixed": 40, "garbage": 64, "programs": 3, "jobs": 5, "clusters": 80, "networks-rtl": 3}


@cases("kind, count", [("loads", 20), ("networks", 4)], LONG.items())
def test_cases_equal_golden(kind, count):
    record = run_chunk(Chunk(kind, "unit", 1, 0, count))
    assert record["failure"] == "" and record["cases"] >= count
    assert ("bins" in record) == (KINDS[kind].coverage is not None)
    assert len(record.get("empty", ())) < record.get("bins", 1)


def test_a_wrong_byte_becomes_a_replay_case(monkeypatch, tmp_path):
    class Broken(Session):
        """Whose tensors are not golden's."""

        def run(self, *args, **options):
            self.global_memory.write(0, np.full(TENSOR_BYTES, 0x5A, np.uint8))
            return super().run(*args, **options)

    monkeypatch.setattr(kinds, "Session", Broken)
    record = run_chunk(Chunk("loads", "unit", 1, 0, 20))
    assert "shared memory differs" in record["failure"]
    path = tmp_path / "case.json"
    path.write_text(record["failure"].splitlines()[-1])
    assert read_cases(path)


def test_a_wrong_tensor_keeps_its_network(monkeypatch):
    monkeypatch.setattr(networks, "compute", lambda graph, node, values: 1 - networks.network.evaluation.compute(
        graph, node, values))  # fmt: skip
    record = run_chunk(Chunk("networks", "unit", 1, 0, 4))
    assert "differ, first at" in record["failure"] and record["model"]
    assert record["cases"] == 1
