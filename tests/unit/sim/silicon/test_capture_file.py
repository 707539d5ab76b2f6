"""Parts of a capture: what changed in a memory, and which cases are chosen."""

from collections import Counter
from pathlib import Path

import numpy as np

from tilewright.sim.replay.cases import cases_of
from tilewright.sim.replay.golden import run_case
from tilewright.sim.silicon.capture_file import Chooser, spots
from tilewright.sim.silicon.case_features import case_features
from tilewright.sim.silicon.random_cases import random_cases


def test_spots_are_what_changed():
    before = np.zeros(256, np.uint8)
    after = before.copy()
    assert spots(before, after) == []
    after[[0, 5, 16, 40, 255]] = [1, 2, 3, 4, 255]
    assert spots(before, after) == [[0, "0100000000020000000000000000000003"], [40, "04"], [255, "ff"]]


def test_some_of_every_feature_are_chosen():
    cases = cases_of({"version": 1, "cases": list(random_cases(1, 300))}, "random", Path())
    moved = [sum(run_case(case).record["tx_bytes"]) for case in cases]

    def chosen():
        chooser = Chooser()
        return [case for case, count in zip(cases, moved, strict=True) if chooser.wants(case, count)]

    assert chosen() == chosen()
    counts = Counter(feature for case in chosen() for feature in case_features(case))
    for case, count in zip(cases, moved, strict=True):
        if 0 < count <= 2048:
            assert all(counts[feature] for feature in case_features(case))
    assert len(chosen()) < len(cases)
    large = [case for case, count in zip(cases, moved, strict=True) if count > 2048 or not count]
    assert large and not set(map(id, large)) & set(map(id, chosen()))
