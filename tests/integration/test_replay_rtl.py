"""``tilewright replay --on rtl``: cases that are small enough for the smallest configuration."""

import json
from pathlib import Path

import pytest

from support.selection import cases
from tilewright.spec.pe import MM_FAMILIES
from tilewright.tools.cli.main import main

FOLDER = Path(__file__).resolve().parent.parent / "vectors"
VECTORS = FOLDER / "tmau_seed.json"
SMEM_BYTES = 4096  # of preset unit


def _file(tmp_path, cases):
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"version": 1, "cases": cases}))
    return str(path)


@pytest.fixture(scope="module")
def small_cases():
    cases = json.loads(VECTORS.read_text())["cases"]
    return [case for case in cases if case["smem"]["bytes"] <= SMEM_BYTES]


def _replay(*arguments):
    return main(["replay", *map(str, arguments), "--on", "rtl", "--preset", "unit"])


@pytest.mark.parametrize("stall", [0, 0.4])
def test_small_vectors(tmp_path, small_cases, stall):
    out = tmp_path / "results.json"
    assert _replay(_file(tmp_path, small_cases), "--stall", stall, "--latency", 30, "--out", out) == 0
    records = json.loads(out.read_text())["results"]
    assert len(records) == len(small_cases) == 27
    for record, case in zip(records, small_cases, strict=True):
        assert record["read_words"] + record["write_words"] >= record["limit_words"] > 0
        assert (record["write_words"] > 0) == (case["commands"][0]["op"] in ("store", "reduce"))
        assert record["cycles"] > 30


@cases("preset", ["unit"], ["default"])
@pytest.mark.parametrize("name", ["bus_errors", "address_width"])
def test_what_presets_do_in_their_own_way(tmp_path, capsys, name, preset):
    """Failed transfers, whose destinations are open; addresses and features that not all presets have."""
    cases = [case for case in json.loads((FOLDER / f"{name}.json").read_text())["cases"] if case.get("cores", 1) == 1]
    path = _file(tmp_path, cases)
    assert main(["replay", path, "--on", "rtl", "--preset", preset, "--latency", "30", "--stall", "0.2"]) == 0
    skipped = sum(case["name"] == "open_descriptor" for case in cases)
    assert capsys.readouterr().out.endswith(f" 0 with a mismatch; {skipped} skipped\n")


def test_repeated_commands_follow_each_other(tmp_path, small_cases):
    case = next(case for case in small_cases if case["name"] == "tile_inside")
    command = case["commands"][0] | {"smem": 0, "repeat": 4, "smem_step": 256}
    out = tmp_path / "results.json"
    assert _replay(_file(tmp_path, [case | {"commands": [command], "expect": {}}]), "--out", out) == 0
    record = json.loads(out.read_text())["results"][0]
    assert len(record["tx_bytes"]) == 4


def test_errors_are_those_of_golden(tmp_path, small_cases):
    case = next(case for case in small_cases if case["name"] == "tile_inside")
    far = case | {"name": "range", "commands": [case["commands"][0] | {"smem": SMEM_BYTES}], "expect": {}}
    odd = case | {"name": "alignment", "commands": [case["commands"][0] | {"smem": 16}], "expect": {}}
    assert _replay(_file(tmp_path, [odd])) == 0
    out = tmp_path / "results.json"
    assert _replay(_file(tmp_path, [far | {"smem": {"bytes": SMEM_BYTES}}]), "--out", out) == 0
    assert json.loads(out.read_text())["results"][0]["error"] == "smem_range"


MAP = {"element": "u32", "address": 0, "size": [16, 4], "stride": [64], "box": [4, 2], "at": 2048}
LANES = {"element": "f16", "shape": [5, 3, 6, 2], "lanes": 4, "eu_bytes": 16}
IN_LANES = {"layout": "aligned", "address": 64, "lane": 3}
COMMANDS = {
    "groups": [
        {"op": "store", "map": "x", "coords": [0, 0], "smem": 0, "async": True},
        {"op": "commit", "async": True},
        {"op": "wait", "count": 0, "read": True, "async": True},
        {"op": "load", "map": "x", "coords": [4, 0], "smem": 0, "async": True},
        {"op": "wait_all", "async": True},
        {"op": "store", "map": "x", "coords": [8, 2], "smem": 0, "async": True},
    ],
    "replaced field": [
        {"op": "load", "map": "x", "coords": [0, 0], "smem": 0, "async": True},
        {"op": "replace", "map": "x", "field": "address", "value": 256, "async": True},
        {"op": "load", "map": "x", "coords": [0, 0], "smem": 128, "async": True},
    ],
    "blocks": [
        {"op": "copy_block", "src": ["global", 64], "dst": ["shared", 0], "size": 32},
        {"op": "copy_block", "src": ["shared", 0], "dst": ["shared", 1024], "size": 32},
        {"op": "copy_block", "src": ["global", 256], "dst": ["global", 1024], "size": 512},
        {"op": "copy_block", "src": ["shared", 0], "dst": ["global", 0], "size": 16, "reduce": "max", "element": "u32"},
        {"op": "prefetch_block", "src": 0, "size": 64},
        {"op": "prefetch", "map": "x", "coords": [0, 0]},
    ],
    "lanes": [
        {"op": "lanes", "src": {"layout": "global", "address": 2}, "dst": IN_LANES} | LANES,
        {"op": "lanes", "src": IN_LANES, "dst": {"layout": "global", "address": 1026}} | LANES,
    ],
    "fill": [{"op": "store", "map": "x", "coords": [0, 0], "fill": True}, {"op": "invalidate_all"}],
}
MEMORIES = {"gmem": {"bytes": 4096, "init": {"mix": 1}}, "smem": {"bytes": SMEM_BYTES, "init": {"mix": 2}}}


def _records(tmp_path, cases, *options):
    out = tmp_path / "results.json"
    assert _replay(_file(tmp_path, cases), *options, "--out", out) == 0
    return json.loads(out.read_text())["results"]


def test_every_operation(tmp_path):
    """Against golden, which replay does by itself; windows that hold everything change nothing."""
    cases = [
        {"name": f"{name}{number}", "kind": "tmau", "maps": {"x": MAP}, "commands": commands} | MEMORIES | windows
        for name, commands in COMMANDS.items()
        for number, windows in enumerate(({}, {"windows": {"global": [0, 4095], "shared": [0, SMEM_BYTES - 1]}}))
    ]
    records = _records(tmp_path, cases, "--stall", 0.2, "--latency", 20)
    assert [record["error"] for record in records] == [None] * len(cases)
    figures = {record["name"]: (record["read_words"], record["write_words"]) for record in records}
    assert figures["blocks0"] == (2 + 32 + 1, 32 + 1), "words of 16 bytes; the reduction reads one again"
    assert figures["fill0"] == (0, 2)


def test_windows_refuse(tmp_path):
    case = {"name": "outside", "kind": "tmau", "maps": {"x": MAP}, "commands": COMMANDS["blocks"][:1]} | MEMORIES
    (record,) = _records(tmp_path, [case | {"windows": {"shared": [128, SMEM_BYTES - 1]}}])
    assert (record["error"], record["read_words"]) == ("window", 0)


@pytest.mark.long
def test_windows_of_processors(tmp_path):
    """One that has no window, one that may not read all, one that may not write all."""
    copy = {"op": "copy_block", "src": ["global", 64], "dst": ["shared", 512], "size": 32}
    own = [{}, {"global": [4096, 8191]}, {"shared": [2048, SMEM_BYTES - 1]}]
    load = {"op": "load", "map": "x", "coords": [0, 0], "smem": 1024}
    case = {"name": "three", "kind": "tmau", "maps": {"x": MAP | {"at": 0}}, "processors": own} | MEMORIES
    tried = [copy, copy | {"processor": 1}, copy | {"processor": 2, "dst": ["shared", 2048], "async": True},
             copy | {"processor": 2}, load, load | {"processor": 1}]  # fmt: skip
    (record,) = _records(tmp_path, [case | {"commands": tried}])
    assert record["error"] == "window"
    assert [bool(count) for count in record["tx_bytes"]] == [True, False, True, False, True, False]


def test_layouts(tmp_path):
    sides = {"src": {"layout": "global", "address": 2}, "dst": IN_LANES}
    lanes = {"name": "lanes", "kind": "lanes"} | MEMORIES | LANES | sides | {"shape": [2, 6, 3, 5]}
    align = {"name": "align", "kind": "align", "shape": [3, 5, 3, 7], "element": "f16", "operator": "pool",
             "granularity": 4, "source": 2, "target": 2048} | MEMORIES  # fmt: skip
    first, second = _records(tmp_path, [lanes, align])
    assert first["strides"]["destination"] == {"row": 10, "channel": 32, "batch": 96, "bytes": 192}
    assert first["limit_words"] == 360 // 16 + 1 <= first["read_words"]
    assert (second["strides"], second["write_words"]) == ([16, 2], 45)


def test_mismatch_is_status_1(tmp_path, small_cases):
    case = next(case for case in small_cases if case["name"] == "tile_inside")
    assert _replay(_file(tmp_path, [case | {"expect": {"tx_bytes": [1]}}])) == 1


@pytest.mark.parametrize("option", [("--latency", "1"), ("--stall", "1"), ("--stall", "x"), ("--sim", "other")])
def test_wrong_options_are_status_2(capsys, option):
    with pytest.raises(SystemExit) as end:
        _replay("cases.json", *option)
    assert end.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_convolutions(tmp_path):
    """On the smallest engine; a type that it is built without is refused there as on golden.

    With all types it is the model of tests/integration/conv.
    """
    conv = {"preset": "unit"}
    case = {"name": "small", "kind": "conv", "type": "u8s8", "x": [1, 4, 5, 3], "k": [2, 3, 3], "conv": conv,
            "stride": [1, 2], "pad": [1, 0, 2, 1], "dilation": [1, 1], "x_init": {"mix": 1},
            "k_init": {"mix": 2}}  # fmt: skip
    wide = case | {"name": "wide", "type": "s16"}
    floats = case | {"name": "floats", "type": "f16"}
    built = case | {"name": "built", "conv": conv | {"types": ["i8", "bf16"]}}
    brain = case | {"name": "brain", "type": "bf16", "x_init": {"normal": 1}, "k_init": {"normal": 2}}
    brain |= {"x": [1, 20, 40, 4], "conv": conv | {"types": list(MM_FAMILIES)}}
    depthwise = case | {"name": "depthwise", "groups": 3, "k": [3, 3, 3]}
    records = _records(tmp_path, [case, wide, floats, built, depthwise, brain])
    assert [record["error"] for record in records] == [None, "unsupported", "unsupported", None, None, None]
    assert records[0]["cycles"] == records[3]["cycles"] > records[1]["cycles"] > 50
