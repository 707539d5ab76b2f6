"""Features of cases: what is said of one load, one reduction and one block."""

from pathlib import Path

from tilewright.sim.replay.cases import cases_of
from tilewright.sim.silicon.case_features import case_features

MAP = {"element": "f16", "address": 0, "size": [16, 8], "stride": [32], "box": [8, 4], "traversal": [1, 2],
       "swizzle": "32B", "fill": "nan"}  # fmt: skip


def features(*commands, **changes):
    case = {"name": "x", "kind": "tmau", "gmem": {"bytes": 4096}, "smem": {"bytes": 4096}, "maps": {"m": MAP | changes}}
    (read,) = cases_of({"version": 1, "cases": [case | {"commands": list(commands)}]}, "x", Path())
    return case_features(read)


def test_a_load():
    load = {"op": "load", "map": "m", "coords": [-4, 0], "smem": 0}
    assert features(load) == {
        "load tile of rank 2", "load tile with interleave none", "load with swizzle 32B", "load of f16",
        "load with L2 promotion none", "load tile with traversal", "load with gaps between rows",
        "load from a negative coordinate", "load tile partly outside", "load partly outside, fill nan of f16",
    }  # fmt: skip
    assert "load wholly outside, fill nan of f16" in features(load | {"coords": [0, 8]})
    inside = features(load | {"coords": [0, 0]}, traversal=[8, 1], box=[16, 1])
    assert not any("outside" in feature or "traversal" in feature or "gaps" in feature for feature in inside)


def test_an_im2col_load():
    shape = {"mode": "im2col", "size": [16, 4, 4], "stride": [32, 128], "traversal": [1, 1, 1], "swizzle": "none",
             "box": [], "lower": [-1], "upper": [0], "channels": 16, "pixels": 2}  # fmt: skip
    load = {"op": "load", "map": "m", "coords": [0, -1, 0], "offsets": [1], "smem": 0}
    found = features(load, **shape)
    assert {"load im2col of rank 3", "load with offsets"} <= found
    assert not any("outside" in feature or "negative" in feature for feature in found)


def test_a_reduction_and_blocks():
    reduction = {"op": "reduce", "reduce": "add", "map": "m", "coords": [0, 0], "smem": 0}
    block = {"op": "copy_block", "src": ["shared", 0], "dst": ["global", 0], "size": 16}
    found = features(reduction, block, block | {"reduce": "max", "element": "u32"},
                     {"op": "prefetch_block", "src": 0, "size": 16})  # fmt: skip
    assert {"several commands", "reduce add of f16", "block from shared to global",
            "block max of u32 from shared to global", "prefetch_block"} <= found  # fmt: skip
    assert "reduce of f16" not in found
