"""Parts of a capture: what changed in a memory, and which cases are chosen."""

import sys
from collections import Counter
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from support.cases import read_case, write_cases
from tilewright.silicon import capture as capture_file
from tilewright.silicon import capture as module
from tilewright.silicon.capture import Chooser, spots
from tilewright.silicon.cases import case_features, random_cases
from tilewright.silicon.program import open_program
from tilewright.sim.replay.cases import read_cases, read_document
from tilewright.sim.replay.golden import run_case
from tilewright.tools.cli.main import main


def test_spots_are_what_changed():
    before = np.zeros(256, np.uint8)
    after = before.copy()
    assert spots(before, after) == []
    after[[0, 5, 16, 40, 255]] = [1, 2, 3, 4, 255]
    assert spots(before, after) == [[0, "0100000000020000000000000000000003"], [40, "04"], [255, "ff"]]


def test_some_of_every_feature_are_chosen():
    cases = list(map(read_case, random_cases(1, 300)))
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


STAND_IN = [sys.executable, str(Path(__file__).with_name("stand_in.py"))]
WORKED = {
    "name": "worked",
    "why": "by hand",
    "kind": "tmau",
    "gmem": {"bytes": 256, "init": {"fill": 7}},
    "smem": {"bytes": 512},
    "maps": {"x": {"element": "u8", "address": 0, "size": [16, 4], "stride": [16], "box": [16, 2]}},
    "commands": [{"op": "load", "map": "x", "coords": [0, 0], "smem": 128}],
    "expect": {"error": "opcode"},
}
BEYOND = WORKED | {"name": "beyond", "commands": [{"op": "invalidate_all"}]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where captures go; the file of one worked case is in the folder above."""
    write_cases(tmp_path / "worked.json", WORKED)
    (tmp_path / "silicon").mkdir()
    return tmp_path / "silicon"


def run(monkeypatch, folder, *arguments, lies=()):
    """The command, with the cases of one more file."""
    monkeypatch.setattr(module, "open_program", lambda: open_program([*STAND_IN, *lies]))
    worked = folder.parent / "worked.json"
    return main(["silicon", "capture", "--out", str(folder), *map(str, arguments), str(worked)])


def test_what_equals_golden(monkeypatch, folder, capsys):
    further = write_cases(folder.parent / "further.jsn", BEYOND)
    assert run(monkeypatch, folder, "--cases", 12, further) == 0
    path = folder / "stand-in.json.xz"
    with_bytes = sum("bytes" in case.expect for case in read_cases(path))
    assert capsys.readouterr().out.splitlines() == [
        "14 cases ran on Stand-in: 14 equal to golden, 0 different; 1 skipped",
        "     1 skipped: silicon has another way to invalidate descriptors",
        f"{path}: {path.stat().st_size} bytes; single bytes of {with_bytes} cases",
    ]
    assert with_bytes > 6
    document = read_document(path)
    today = date.fromisoformat(document["silicon"].pop("date"))
    assert abs((date.today() - today).days) <= 1  # theirs is that of Greenwich
    assert document["silicon"].pop("driver")
    assert document["silicon"] == {"gpu": "Stand-in", "cuda": "13.0"}
    worked, *others = document["cases"]
    expect = worked.pop("expect")
    assert worked | {"expect": WORKED["expect"]} == WORKED
    assert (expect["error"], expect["tx_bytes"]) == (None, [32])
    assert expect["smem"]["bytes"] == [[128, "07" * 32]]
    assert "bytes" not in expect["gmem"]
    assert [case["name"] for case in others][:2] == ["load_1_0", "store_1_1"]
    assert (others[-1]["name"], len(others)) == ("load_cluster_1_0", 13), "a tenth as many of several cores"
    assert len(others[-1]["expect"]["smem"]) == others[-1]["cores"]
    assert main(["replay", str(path), "--on", "golden"]) == 0
    assert [file.name for file in folder.iterdir()] == ["stand-in.json.xz"]


def test_another_seed_has_other_cases(monkeypatch, folder):
    run(monkeypatch, folder, "--cases", 3, "--seed", 5)
    names = [case.name for case in read_cases(folder / "stand-in.json.xz")]
    assert names == ["worked", "load_5_0", "store_5_1", "load_5_2"]


def test_what_differs_is_named_and_kept_as_silicon_gave_it(monkeypatch, folder, capsys):
    assert run(monkeypatch, folder, "--cases", 0, lies=["--flip-shared", "130", "--miscount", "1"]) == 1
    assert capsys.readouterr().out.splitlines()[:2] == [
        "DIFFERENT worked: tx_bytes is [33], not [32] as on golden; smem differs from golden in 1 bytes, first at 0x82",
        "1 cases ran on Stand-in: 0 equal to golden, 1 different; 0 skipped",
    ]
    assert main(["replay", str(folder / "stand-in.json.xz"), "--on", "golden"]) == 1
    assert "smem at 0x82 is 0x07, not 0x06 as expected" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lies", "error"),
    [
        (["--refuse"], "refused by the driver"),
        (["--no-such", "0"], "no such instruction"),
        (["--unfinished", "0"], "unfinished"),
        (["--fail", "256"], "failed: command 0: cudaErrorIllegalAddress"),
        (["--die", "256"], "failed: the program ended with status 7"),
    ],
)
def test_every_error_of_silicon_can_be_read_again(monkeypatch, folder, lies, error):
    assert run(monkeypatch, folder, "--cases", 0, lies=lies) == 1
    (case,) = read_cases(folder / "stand-in.json.xz")
    assert case.expect["error"] == error
    assert ("smem_sha256" in case.expect) == ("failed" not in error)


def test_cores_that_count_differently_can_be_read_again(monkeypatch, folder):
    load = WORKED["commands"][0] | {"multicast": 3}
    write_cases(folder.parent / "worked.json", WORKED | {"cores": 2, "commands": [load]})
    assert run(monkeypatch, folder, "--cases", 0, lies=["--miscount", "16", "--miscount-core", "1"]) == 1
    (case,) = read_cases(folder / "stand-in.json.xz")
    assert case.expect["error"] == "counted unevenly"
    assert len(case.expect["smem_sha256"]) == 2


def test_given_up_when_nothing_works(monkeypatch, folder, capsys):
    monkeypatch.setattr(module, "_MOST_FAILED", 2)
    assert run(monkeypatch, folder, "--cases", 9, lies=["--unfinished", "0"]) == 2
    error = capsys.readouterr().err
    assert error == "tilewright silicon: given up after 3 cases that failed or were not finished, at 'store_1_1'\n"
    assert list(folder.iterdir()) == []


def test_single_bytes_go_first_when_there_is_no_room(monkeypatch, folder):
    assert run(monkeypatch, folder, "--cases", 40) == 0
    path = folder / "stand-in.json.xz"
    whole, cases = path.stat().st_size, read_cases(path)
    monkeypatch.setattr(capture_file, "MOST_BYTES", whole * 3 // 4)
    assert run(monkeypatch, folder, "--cases", 40) == 0
    assert path.stat().st_size <= whole * 3 // 4
    fewer = read_cases(path)
    assert [case.name for case in fewer] == [case.name for case in cases]
    assert 0 < sum("bytes" in case.expect for case in fewer) < sum("bytes" in case.expect for case in cases)


def test_too_large_is_not_written(monkeypatch, folder, capsys):
    monkeypatch.setattr(capture_file, "MOST_BYTES", 100)
    assert run(monkeypatch, folder, "--cases", 3) == 1
    error = capsys.readouterr().err
    assert error.startswith("tilewright silicon: the capture takes ")
    assert error.endswith(" bytes, more than 100, and was not written: take fewer cases\n")
    assert list(folder.iterdir()) == []


def test_wrong_arguments_are_one_sentence(monkeypatch, folder, capsys):
    linked = WORKED | {"name": "linked", "gmem": {"bytes": 256, "init": {"npy": "x.npy"}}}
    (folder / "x.npy").write_bytes((b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"
                                    ).ljust(127) + b"\n\0")  # fmt: skip
    file, twice = write_cases(folder / "linked.json", linked), write_cases(folder / "twice.json", WORKED)
    for arguments, sentence in (
        ([file], f"{file}: case 'linked' has contents in another file, which is not captured"),
        ([twice], "case 'worked': name must be used once in a file"),
        ([folder / "no.json"], f"{folder}/no.json: cannot be read: No such file or directory"),
    ):
        assert run(monkeypatch, folder, "--cases", 1, *arguments) == 2
        assert capsys.readouterr().err == f"tilewright silicon: {sentence}\n"
    assert run(monkeypatch, folder / "no") == 2
    assert capsys.readouterr().err == f"tilewright silicon: --out must name an existing folder, not {folder}/no\n"
    for option, limits in (("--cases", "0 to 1000000"), ("--seed", "0 to 9223372036854775808")):
        with pytest.raises(SystemExit):
            run(monkeypatch, folder, option, "-1")
        sentence = f"argument {option}: must be {limits}, not '-1'"
        assert capsys.readouterr().err == f"tilewright silicon capture: {sentence}\n"
