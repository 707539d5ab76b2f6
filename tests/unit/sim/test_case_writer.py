"""Maps and loads as cases, read back."""

import json
import random
from dataclasses import replace

import pytest

from tilewright.golden import TensorMap
from tilewright.sim.case_writer import case_text, map_fields
from tilewright.sim.cases import read_cases
from tilewright.sim.cli import main
from tilewright.sim.stimulus import random_load

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
        assert command.coords == tuple(coords)
        assert command.addresses == (smem,)
        assert not command.wait
    assert main(["replay", str(path), "--on", "golden"]) == 0


@pytest.mark.parametrize("fields", [{"unaligned": True}, {"gather0": True}, {"interleave": "16B"}, {"address": 8}])
def test_what_is_refused_is_kept_as_it_is(fields, tmp_path):
    tmap = TensorMap(
        **{"element": "u8", "size": (64, 4, 4), "stride": (64, 256), "box": (16, 1, 1), "check": False} | fields
    )
    assert {name: map_fields(tmap)[name] for name in fields} == fields
    case = json.loads(case_text("refused", "", [(tmap, (0, 0, 0), 0)], **MEMORIES))["cases"][0]
    assert case["expect"]["error"] == ("address" if "address" in fields else "unsupported")
    assert case["expect"]["tx_bytes"] == [0]
