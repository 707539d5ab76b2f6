"""How far the commands of a case reach into shared memory."""

import json
from math import inf

import pytest

from tilewright.golden.spec import DESCRIPTOR
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.shared_reach import hardware_bytes, shared_reach

MAPS = {
    "x": {"element": "u8", "address": 0, "size": [64, 8], "stride": [64], "box": [32, 4], "swizzle": "64B"},
    "refused": {"element": "u8", "address": 8, "size": [64], "box": [32]},
}
MAPS["placed"] = MAPS["x"] | {"at": 2048}
#: The second entry of the box.
REPLACE = {"op": "replace", "map": "placed", "field": "box", "index": 1, "value": DESCRIPTOR["box"].encode(8)}
LOAD = {"op": "load", "map": "x", "coords": [0, 0], "smem": 128}
COPY = {"op": "copy_block", "size": 64}
LANES = {"op": "lanes", "element": "f16", "shape": [1, 1, 1, 1], "lanes": 4, "eu_bytes": 16,
         "src": {"layout": "global", "address": 0}, "dst": {"layout": "compact", "address": 0}}  # fmt: skip


@pytest.mark.parametrize(
    ("commands", "reach"),
    [
        ([], 0),
        ([LOAD], 128 + 4 * 64),
        ([LOAD | {"op": "store"}, LOAD | {"smem": 0}], 128 + 4 * 64),
        ([LOAD | {"repeat": 3, "smem_step": 512}], 128 + 2 * 512 + 4 * 64),
        ([{"op": "prefetch", "map": "x", "coords": [0, 0]}], 0),
        ([LOAD | {"map": "refused", "coords": [0]}], 0),
        ([COPY | {"src": ["global", 1024], "dst": ["shared", 32]}], 96),
        ([COPY | {"src": ["shared", 512], "dst": ["shared", 32]}], 576),
        ([LANES], inf),
        ([REPLACE, LOAD | {"map": "placed"}], 128 + 8 * 64),
        ([LOAD | {"map": "placed"}, REPLACE], 128 + 4 * 64),
        ([REPLACE | {"field": "version", "index": 0, "value": 7}, LOAD | {"map": "placed"}], 0),
        ([REPLACE | {"index": 7}, LOAD | {"map": "placed"}], 128 + 4 * 64),
    ],
)
def test_reach(tmp_path, commands, reach):
    assert shared_reach(read(tmp_path, 4096, commands)) == reach


@pytest.mark.parametrize(
    ("size", "commands", "hardware"),
    [
        (4096, [LOAD], 4096),
        (3000, [LOAD], 4096),
        (384, [LOAD], 1024),
        (383, [LOAD], 383),  # a command can tell: such a case is refused
        (3000, [LANES], 3000),
    ],
)
def test_hardware(tmp_path, size, commands, hardware):
    assert hardware_bytes(read(tmp_path, size, commands)) == hardware


def read(tmp_path, size, commands):
    """A case of ``size`` bytes of shared memory."""
    case = {"name": "asked", "kind": "tmau", "gmem": {"bytes": 4096}, "smem": {"bytes": size}, "maps": MAPS}
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"version": 1, "cases": [case | {"commands": commands}]}))
    return read_cases(path)[0]
