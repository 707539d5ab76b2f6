"""Maps and loads as cases, read back."""

import json
import random
from dataclasses import replace

import pytest

from tilewright.golden import TensorMap
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import case_text
from tilewright.sim.replay.maps import map_fields
from tilewright.tools.cli.main import main
from tilewright.verify.random.maps import random_load

SEED = 6
MEMORIES = {"gmem": {"bytes": 1 << 16, "init": {"mix": 1}}, "smem": {"bytes": 4096}}


def test_random_loads_come_back(tmp_path):
    rng = random.Random(SEED)
    loads = [random_load(rng, gmem_bytes=1 << 16, smem_bytes=4096) for _ in range(30)]
    path = tmp_path / "case.json"
    path.write_text(case_text("random", f"seed {SEED}", [*loads, loads[0]], **MEMORIES))
    (case,) = read_cases(path)
    assert len(case.maps) <= 30
    read = [(case.maps[command.map].tmap, command) for command in case.commands]
    for (tmap, coords, smem), (again, command) in zip([*loads, loads[0]], read, strict=True):
        # Only the pattern of a constant fill is kept.
        assert again == (tmap if tmap.fill.name == "CONSTANT" else replace(tmap, fill_constant=0))
        assert command.issues == [{"coords": list(coords), "smem": smem}]
        assert not command.wait
    assert main(["replay", str(path), "--on", "golden"]) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"unaligned": True},
        {"gather0": True},
        {"interleave": "16B"},
        {"mode": "im2col", "box": (), "lower": (-1,), "upper": (0,), "channels": 16, "pixels": 9},
    ],
)
def test_every_kind_of_map_comes_back(fields, tmp_path):
    tmap = TensorMap(**{"element": "u8", "size": (64, 4, 4), "stride": (64, 256), "box": (16, 1, 1)} | fields)
    path = tmp_path / "case.json"
    more = {"offsets": [2]} if tmap.mode else {"op": "store"}
    commands = [(tmap, (0, 0, 0), 0), (tmap, (0, 1, 0), 128, more)]
    path.write_text(case_text("kinds", "", commands, **MEMORIES))
    (case,) = read_cases(path)
    assert case.maps["m0"].tmap == tmap
    assert case.commands[-1].issues[0].get("offsets", []) == ([2] if tmap.mode else [])
    assert main(["replay", str(path), "--on", "golden"]) == 0


def test_refused_maps_are_written():
    tmap = TensorMap(element="u8", size=(64, 4), stride=(64,), box=(16, 1), address=8, check=False)
    assert map_fields(tmap)["address"] == 8
    case = json.loads(case_text("refused", "", [(tmap, (0, 0), 0)], **MEMORIES))["cases"][0]
    assert case["expect"]["error"] == "address"
    assert case["expect"]["tx_bytes"] == [0]
