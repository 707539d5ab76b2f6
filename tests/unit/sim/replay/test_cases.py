"""Case files: xz, captures, kinds of engines, and cases of the kinds lanes and align."""

import json
import lzma

import pytest

from tilewright.errors import UsageError
from tilewright.golden import Memory, align
from tilewright.golden.memory import mix_pattern
from tilewright.sim.replay.cases import ENGINE_KINDS, read_cases
from tilewright.sim.replay.golden import run_case
from tilewright.sim.replay.pe_cases import PE_KINDS
from tilewright.spec import Opcode

CASE = {"name": "small", "kind": "tmau", "gmem": {"bytes": 256}, "smem": {"bytes": 512}, "maps": {}, "commands": []}
SILICON = {"gpu": "A GPU", "driver": "1.2", "cuda": "13.0", "date": "2026-01-02"}


def compressed(folder, document):
    path = folder / "cases.json.xz"
    path.write_bytes(lzma.compress(json.dumps(document).encode()))
    return path


def test_a_file_in_xz_is_read(tmp_path):
    (case,) = read_cases(compressed(tmp_path, {"version": 1, "silicon": SILICON, "cases": [CASE]}))
    assert case.name == "small"


@pytest.mark.parametrize(
    ("silicon", "sentence"),
    [
        ({}, "cases.json.xz: silicon.gpu is missing"),
        (SILICON | {"date": 2026}, "cases.json.xz: silicon.date must be a string, not 2026"),
        (SILICON | {"more": ""}, "cases.json.xz: silicon.more is not a known field"),
        ("A GPU", "cases.json.xz: silicon must be an object, not 'A GPU'"),
    ],
)
def test_silicon_is_read_strictly(tmp_path, silicon, sentence):
    path = compressed(tmp_path, {"version": 1, "silicon": silicon, "cases": []})
    with pytest.raises(UsageError) as caught:
        read_cases(path)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda raw: b"{}" + raw, "is not compressed by xz: "),
        (lambda raw: raw[:-20], "is not compressed by xz: "),
        (lambda raw: raw[:40] + bytes([raw[40] ^ 1]) + raw[41:], "is not compressed by xz: "),
        (lambda raw: lzma.compress(b"{"), "is not JSON: "),
        (lambda raw: lzma.compress(b"\xff"), "is not JSON: "),
    ],
    ids=["plain", "cut off", "damaged", "no JSON", "no text"],
)
def test_broken_files_in_xz(tmp_path, change, sentence):
    path = compressed(tmp_path, {"version": 1, "cases": []})
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UsageError) as caught:
        read_cases(path)
    assert str(caught.value).startswith(f"{path}: {sentence}")
    assert "\n" not in str(caught.value)


def test_kinds_of_the_processing_engine_are_those_of_its_module():
    assert (*PE_KINDS, "conv", "core") == ENGINE_KINDS


MEMORIES = {"gmem": {"bytes": 4096, "init": {"mix": 1}}, "smem": {"bytes": 4096, "init": {"fill": 205}}}
LANES = {"kind": "lanes", "shape": [2, 3, 4, 5], "element": "f16", "lanes": 4, "eu_bytes": 64,
         "src": {"layout": "global", "address": 0}, "dst": {"layout": "aligned", "address": 0, "lane": 2}}  # fmt: skip
ALIGN = {"kind": "align", "shape": [3, 5, 3, 7], "element": "f16", "operator": "pool", "granularity": 4,
         "source": 2, "target": 2048}  # fmt: skip


def read(folder, case):
    path = folder / "cases.json"
    path.write_text(json.dumps({"version": 1, "cases": [{"name": "small"} | MEMORIES | case]}))
    return read_cases(path)[0]


def test_lanes(tmp_path):
    """The page's example: N_stride is 64 elements from lane 2."""
    case = read(tmp_path, LANES)
    assert [command.opcode for command in case.commands] == [Opcode.LANES]
    record, memories = run_case(case)
    assert record["strides"] == {
        "source": {"row": 10, "channel": 40, "batch": 120, "bytes": 240},
        "destination": {"row": 10, "channel": 64, "batch": 128, "bytes": 256},
    }
    assert record["tx_bytes"] == [240]
    assert (memories["smem"][2048:2088] == memories["gmem"][:40]).all()


def test_align_in_both_directions(tmp_path):
    case = read(tmp_path, ALIGN)
    record, memories = run_case(case)
    golden = Memory(mix_pattern(4096, 1))
    align((3, 5, 3, 7), "f16", "pool", 4, source=2, target=2048).pad(golden)
    assert (memories["gmem"] == golden.data).all()
    assert record["strides"] == [16, 2]
    assert record["tx_bytes"] == [720, 720]

    back = read(tmp_path, ALIGN | {"back": True})
    assert [(command.opcode, command.map) for command in back.commands] == [
        (Opcode.LOAD, "target"),
        (Opcode.STORE, "source"),
    ]
    assert (run_case(back).memories["gmem"][2:16] == mix_pattern(4096, 1)[2048:2062]).all()


def test_a_box_fits_shared_memory(tmp_path):
    case = read(tmp_path, ALIGN | {"smem": {"bytes": 256}})
    assert len(case.commands) > 2
    assert run_case(case).record["error"] is None


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        (LANES | {"shape": [1, 2, 3]}, "shape must have 4 entries, N C H W, not 3"),
        (LANES | {"lanes": 3}, "lanes must be a power of two, not 3"),
        (LANES | {"maps": {}}, "maps is not a known field"),
        (ALIGN | {"operator": "conv"}, "operator must be one of elementwise, row, column, batch_norm_2d, pool, "
                                       "batch_norm_3d, not 'conv'"),
        (ALIGN | {"granularity": 6}, "granularity must be a power of two, not 6"),
        (ALIGN | {"target": 2}, "target must be a multiple of the granularity 4, not 0x2"),
        (ALIGN | {"padding": "minus_infinity", "element": "u8"},
         "padding minus_infinity needs a type that has infinity, not u8"),
    ],
)  # fmt: skip
def test_refusals_of_lanes_and_align(tmp_path, case, sentence):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, case)
    assert str(caught.value) == f"case 'small': {sentence}"
