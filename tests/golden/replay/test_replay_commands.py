"""Replay of every operation on the golden model, windows, descriptors in memory, and commands that are refused."""

import numpy as np
import pytest

from support.replay import read, refusal
from tilewright.golden.memory import mix_pattern
from tilewright.sim.replay.golden import run_case

MAPS = {
    "x": {"element": "u32", "address": 0, "size": [16, 4], "stride": [64], "box": [4, 2]},
    "pixels": {"element": "u32", "address": 0, "size": [4, 4, 4], "stride": [16, 64], "mode": "im2col", "channels": 4,
               "pixels": 4, "lower": [0], "upper": [-1]},
    "placed": {"element": "u32", "address": 0, "size": [16, 4], "stride": [64], "box": [4, 2], "at": 2048},
}  # fmt: skip


def case_of(*commands, **more):
    """The case of these commands; ``more`` are further fields of it."""
    return {"name": "small", "kind": "tmau", "gmem": {"bytes": 4096, "init": {"mix": 1}}, "maps": MAPS,
            "smem": {"bytes": 2048, "init": {"mix": 2}}, "commands": list(commands)} | more  # fmt: skip


def replayed(folder, *commands, **more):
    """Its result record, and global and shared memory as 32-bit words."""
    record, memories = run_case(read(folder, case_of(*commands, **more))[0])
    return record, memories["gmem"].view("<u4"), memories["smem"].view("<u4")


@pytest.fixture
def words():
    """Global and shared memory at the start, as 32-bit words."""
    return mix_pattern(4096, 1).view("<u4"), mix_pattern(2048, 2).view("<u4")


def test_store_reduction_and_fill(tmp_path, words):
    record, gmem, _ = replayed(
        tmp_path,
        {"op": "store", "map": "x", "coords": [0, 0], "smem": 0},
        {"op": "reduce", "map": "x", "coords": [8, 0], "smem": 128, "reduce": "xor", "async": True},
        {"op": "store", "map": "x", "coords": [4, 2], "fill": True},
        {"op": "prefetch", "map": "x", "coords": [-1, 0]},
    )
    assert (record["error"], record["tx_bytes"]) == (None, [32, 32, 32, 0])
    assert (gmem[:4] == words[1][:4]).all()
    assert (gmem[8:12] == words[0][8:12] ^ words[1][32:36]).all()
    assert not gmem[36:40].any()


def test_offsets_and_repeated_issue(tmp_path, words):
    load = {"op": "load", "map": "pixels", "coords": [0, 0, 1], "offsets": [1], "smem": 0}
    record, _, smem = replayed(tmp_path, load | {"repeat": 2, "smem_step": 128})
    assert record["tx_bytes"] == [64, 64]
    pixels = words[0][20:32]
    assert (smem[:12] == pixels).all()
    assert (smem[32:44] == pixels).all()


def test_blocks(tmp_path, words):
    record, gmem, smem = replayed(
        tmp_path,
        {"op": "copy_block", "src": ["global", 64], "dst": ["shared", 0], "size": 32},
        {"op": "copy_block", "src": ["shared", 64, 0], "dst": ["shared", 128], "size": 16},
        {
            "op": "copy_block",
            "src": ["shared", 64],
            "dst": ["global", 0],
            "size": 16,
            "reduce": "max",
            "element": "u32",
        },
        {"op": "copy_block", "src": ["global", 256], "dst": ["global", 1024], "size": 512},
        {"op": "prefetch_block", "src": 0, "size": 1 << 20},
    )
    assert (record["error"], record["tx_bytes"]) == (None, [32, 16, 16, 512, 0])
    assert (smem[:8] == words[0][16:24]).all()
    assert (smem[32:36] == words[1][16:20]).all()
    assert (gmem[:4] == np.maximum(words[0][:4], words[1][16:20])).all()
    assert (gmem[256:384] == words[0][64:192]).all()


def test_groups_and_maintenance_transfer_nothing(tmp_path):
    operations = ["commit", "wait_all", "invalidate_all"]
    record, _, _ = replayed(
        tmp_path,
        *({"op": op} for op in operations),
        {"op": "wait", "count": 1, "read": True},
        {"op": "invalidate", "map": "x"},
        {"op": "invalidate", "map": "placed"},
    )
    assert (record["error"], record["tx_bytes"]) == (None, [0] * 6)


def test_replaced_field_counts_from_then_on(tmp_path, words):
    load = {"op": "load", "map": "placed", "coords": [0, 0], "smem": 0}
    change = {"op": "replace", "map": "placed", "field": "address", "value": 256}
    record, gmem, smem = replayed(tmp_path, load, change, load | {"smem": 128})
    assert record["tx_bytes"] == [32, 0, 32]
    assert (smem[:4] == words[0][:4]).all()
    assert (smem[32:36] == words[0][64:68]).all()
    assert gmem[2048 // 4 + 2] == 256


def test_lanes_in_both_directions(tmp_path):
    common = {"op": "lanes", "element": "f16", "shape": [5, 4, 3, 2], "lanes": 4, "eu_bytes": 16}
    to_lanes = {"src": {"layout": "global", "address": 0}, "dst": {"layout": "aligned", "address": 64, "lane": 3}}
    from_lanes = {"src": to_lanes["dst"], "dst": {"layout": "global", "address": 1024}}
    record, gmem, _ = replayed(tmp_path, common | to_lanes, common | from_lanes)
    assert (record["error"], record["tx_bytes"]) == (None, [240, 240])
    assert (gmem[256:316] == gmem[:60]).all()


def test_windows_of_a_case(tmp_path):
    load = {"op": "load", "map": "placed", "coords": [0, 0], "smem": 128}
    maps = {"placed": MAPS["placed"]}
    confined = {"global": [0, 4095], "shared": [128, 255]}
    assert replayed(tmp_path, load, maps=maps, windows=confined)[0]["tx_bytes"] == [32]
    for windows in ({"global": [4096, 8191]}, {"shared": [256, 511]}):
        record, _, _ = replayed(tmp_path, load, maps=maps, windows=windows)
        assert (record["error"], record["tx_bytes"]) == ("window", [0])


def test_windows_of_processors(tmp_path):
    """The unit's, and its own."""
    load = {"op": "load", "map": "placed", "coords": [0, 0], "smem": 128}
    confined = {"windows": {"shared": [0, 255]}, "processors": [{}, {"shared": [128, 511]}, {"global": [4096, 8191]}]}
    loads = [load, load | {"processor": 1}, load | {"processor": 1, "smem": 0}, load | {"processor": 1, "smem": 256},
             load | {"smem": 0}, load | {"processor": 2}]  # fmt: skip
    record, _, _ = replayed(tmp_path, *loads, maps={"placed": MAPS["placed"]}, **confined)
    assert (record["error"], record["tx_bytes"]) == ("window", [32, 32, 0, 0, 32, 0])


COPY = {"op": "copy_block", "src": ["global", 0], "dst": ["shared", 0], "size": 16}
LANES = {"op": "lanes", "element": "u8", "shape": [1, 1, 1, 1], "lanes": 4, "eu_bytes": 4,
         "src": {"layout": "global", "address": 0}, "dst": {"layout": "compact", "address": 0}}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "more", "sentence"),
    [
        ({"op": "store", "map": "x", "coords": [0, 0]}, {}, "commands[0].smem is missing"),
        ({"op": "load", "map": "x", "coords": [0, 0], "fill": True}, {}, "commands[0].smem is missing"),
        ({"op": "reduce", "map": "x", "coords": [0, 0], "smem": 0}, {}, "commands[0].reduce is missing"),
        ({"op": "load", "map": "pixels", "coords": [0] * 3, "offsets": [0] * 4, "smem": 0}, {},
         "commands[0].offsets must have at most 3 entries, not 4"),
        (COPY | {"reduce": "add"}, {}, "commands[0].element is missing"),
        (COPY | {"element": "u32"}, {}, "commands[0].element is not a known field"),
        (COPY | {"dst": ["shared", 0, 1]}, {}, "commands[0] must name one of the 1 cores, not 1"),
        ({"op": "wait"}, {}, "commands[0].count is missing"),
        ({"op": "replace", "map": "x", "field": "address", "value": 0}, {},
         "commands[0].map must have a descriptor in gmem (at): x has none"),
        ({"op": "replace", "map": "placed", "field": "size", "index": 8, "value": 0}, {},
         "commands[0].index must be an integer from 0 to 7, not 8"),
        (LANES | {"shape": [1, 2, 3]}, {}, "commands[0].shape must have 4 entries, W H C N, not 3"),
        (LANES | {"lanes": 3}, {}, "commands[0].lanes must be a power of two, not 3"),
        (COPY, {"windows": {"global": [0]}}, "windows.global must be first and last byte, not 1 numbers"),
        (COPY, {"windows": {"global": [0, 4095]}}, "maps.x.at must be given in a case with a global window"),
        (COPY, {"processors": [{}]}, "processors must have 2 to 16 entries, not 1"),
        (COPY, {"processors": [{}, {"shared": 5}]}, "processors[1].shared must be a list, not 5"),
        (COPY, {"processors": [{}, {"global": [0, 4095]}]}, "maps.x.at must be given in a case with a global window"),
        (COPY | {"processor": 3}, {"processors": [{}] * 3},
         "commands[0].processor must be an integer from 0 to 2, not 3"),
        (COPY | {"processor": 0}, {}, "commands[0].processor is not a known field"),
        (COPY, {"maps": {"x": MAPS["x"] | {"at": 4032}}},
         "maps.x.at must keep the descriptor in the 4096 bytes of gmem, not 4032"),
        (COPY, {"maps": {"x": MAPS["x"] | {"at": 0, "box": [4, 0]}}},
         "maps.x.at must be omitted for a map that cannot be encoded"),
    ],
)  # fmt: skip
def test_refused_commands(tmp_path, command, more, sentence):
    assert refusal(tmp_path, case_of(command, **more)) == f"case 'small': {sentence}"
