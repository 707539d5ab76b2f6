"""Case files: those in xz, captures, and kinds of the processing engine, whose module is imported late."""

import json
import lzma

import pytest

from tilewright.sim.replay.cases import ENGINE_KINDS, read_cases
from tilewright.sim.replay.pe.cases import PE_KINDS
from tilewright.sim.usage import UsageError

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
def test_a_broken_file_in_xz_is_one_sentence(tmp_path, change, sentence):
    path = compressed(tmp_path, {"version": 1, "cases": []})
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UsageError) as caught:
        read_cases(path)
    assert str(caught.value).startswith(f"{path}: {sentence}")
    assert "\n" not in str(caught.value)


def test_kinds_of_the_processing_engine_are_those_of_its_module():
    assert (*PE_KINDS, "conv", "core") == ENGINE_KINDS
