"""Comparisons skip exactly the bytes that the specification leaves open."""

import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from support.replay import write
from tilewright.sim.replay import rtl
from tilewright.sim.replay.cases import cases_of, read_cases
from tilewright.sim.replay.golden import judge, run_case, transfer_outcome
from tilewright.sim.replay.outcome import Outcome, differences, settled
from tilewright.tools.cli.main import main

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "bus_errors.json"
CASES = {case.name: case for case in read_cases(VECTORS)}


def span(*ranges):
    return [byte for first, end in ranges for byte in range(first, end)]


def rows(first, count, pitch, size):
    return span(*((first + pitch * row, first + pitch * row + size) for row in range(count)))


#: Which bytes the specification leaves open, by memory; of cases that are not here none.
OPEN = {
    "load": {"smem": span((0, 512))},
    "load_unaligned": {"smem": span((0, 512))},
    "load_swizzled": {"smem": [128 * row + (byte ^ 16 * row) for row in range(8) for byte in range(16)]},
    "load_fill": {"smem": span((1024, 1536))},
    "load_second": {"smem": span((0, 512))},
    "copy_in": {"smem": span((0, 512))},
    "copy_in_reduce": {"smem": span((0, 512))},
    "copy_global_read": {"gmem": span((0, 512))},
    "lanes_in": {"smem": rows(0, 4, 1024, 128)},
    # Channels 0 to 5 lie in lanes 3, 0, 1, 2, 3, 0: six rows of three times five elements, two of a batch.
    "lanes_aligned": None,
    "overwritten": {"smem": span((0, 128), (192, 512))},
    "copied_on": {"smem": span((0, 512)), "gmem": span((1024, 1280))},
    "stored_on": {"smem": span((1024, 1536)), "gmem": span((0, 256))},
    "reduced_on": {"smem": span((0, 512)), "gmem": span((1024, 1040))},
    "reduced_into": {"gmem": span((256, 768))},
    "lanes_on": {"smem": span((0, 512), (512, 640))},
    "reduce_overlapping": {"gmem": span((3520, 3584))},
    "reduced_twice_inside_a_page": {"gmem": span((3328, 3584))},
    "multicast": {"smem0": span((0, 512)), "smem1": span((0, 512), (1024, 1280))},
    "lent": {"smem1": span((0, 512)), "smem0": span((1024, 1280)), "gmem": span((0, 64))},
}
#: Elements that are as before or as after.
CHOICES = {"reduce_inside_a_page": span((3328, 3584)), "reduce_f32_inside_a_page": span((3072, 3584)),
           "copy_out_reduce_inside_a_page": span((3328, 3584))}  # fmt: skip


def changed(outcome, memory, places, mask=255):
    data = outcome.memories[memory].copy()
    data[places] ^= mask
    return Outcome(outcome.record, outcome.memories | {memory: data})


@pytest.mark.parametrize(
    "name", [name for name in CASES if name != "open_descriptor" and OPEN.get(name, {}) is not None]
)
def test_only_open_bytes_are_skipped(name):
    judged = judge(CASES[name])
    for memory, data in judged.outcome.memories.items():
        within = OPEN.get(name, {}).get(memory, [])
        beside = np.setdiff1d(np.arange(len(data)), within)
        sentence = f"{memory} differs from golden in {len(beside)} bytes, first at {beside[0]:#x}"
        wrong = changed(judged.outcome, memory, slice(None))
        assert differences(wrong, judged.outcome, judged.open_bytes) == [sentence]
        if within:
            for places in (within, within[:1], within[-1:]):
                other = changed(judged.outcome, memory, places)
                assert differences(other, judged.outcome, judged.open_bytes) == []
                assert settled(other, judged.open_bytes).memories[memory].tolist() == data.tolist()
            for place in {max(within[0] - 1, 0), within[-1] + 1} - set(within):
                if place < len(data):
                    other = changed(judged.outcome, memory, [place], 1)
                    assert len(differences(other, judged.outcome, judged.open_bytes)) == 1


@pytest.mark.parametrize("name", CHOICES)
def test_elements_of_a_failed_reduction_have_old_or_new_values(name):
    case, places = CASES[name], CHOICES[name]
    judged = judge(case)
    before = case.global_contents()
    unchanged = Outcome(judged.outcome.record, judged.outcome.memories | {"gmem": before})
    assert (before != judged.outcome.memories["gmem"]).any()
    assert differences(unchanged, judged.outcome, judged.open_bytes) == []
    half = judged.outcome.memories["gmem"].copy()
    half[places[-32:]] = before[places[-32:]]
    assert (
        differences(unchanged._replace(memories=unchanged.memories | {"gmem": half}), judged.outcome, judged.open_bytes)
        == []
    )
    assert len(differences(changed(judged.outcome, "gmem", places[-1:]), judged.outcome, judged.open_bytes)) == 1
    assert len(differences(changed(unchanged, "gmem", places[:1]), judged.outcome, judged.open_bytes)) == 1


def test_failed_lanes_open_their_elements_but_not_padding():
    """Exactly the bytes are open that a load of existing memory writes."""
    judged = judge(CASES["lanes_aligned"])
    (entry,) = [case for case in json.loads(VECTORS.read_text())["cases"] if case["name"] == "lanes_aligned"]
    whole = json.loads(json.dumps(entry)) | {
        "gmem": {"bytes": 4096, "init": {"fill": 255}},
        "smem": {"bytes": 4096, "init": {"fill": 0}},
    }
    whole["commands"][0]["src"]["address"] = 0
    written = (
        run_case(cases_of({"version": 1, "cases": [whole | {"expect": {}}]}, "x", Path())[0]).memories["smem"] == 255
    )
    assert written.sum() == 2 * 5 * 3 * 6 * 2
    wrong = judged.open_bytes["smem"].wrong(judged.outcome.memories["smem"] ^ 255)
    assert (wrong == ~written).all()


def replay(tmp_path, monkeypatch, cases, backend, *options):
    """The status of a replay on hardware that is a function."""
    path = write(tmp_path, *cases)
    monkeypatch.setattr(rtl, "open_backend", lambda args: nullcontext(backend))
    return main(["replay", str(path), "--on", "rtl", "--preset", "unit", *map(str, options)])


def entries(*names):
    return [case for case in json.loads(VECTORS.read_text())["cases"] if case["name"] in names]


@pytest.mark.parametrize(("place", "status"), [(0, 0), (511, 0), (512, 1), (4095, 1)])
def test_replay_skips_them(tmp_path, capsys, monkeypatch, place, status):
    def backend(case):
        return changed(run_case(case), "smem", [place])

    assert replay(tmp_path, monkeypatch, entries("load"), backend) == status
    expected = (
        "met       load" if status == 0 else f"MISMATCH  load: smem differs from golden in 1 bytes, first at {place:#x}"
    )
    assert capsys.readouterr().out.splitlines()[0] == expected


def test_results_and_expectations_have_them_as_golden_has(tmp_path, monkeypatch):
    """So a hash that golden made is met by hardware."""
    (case,) = entries("copied_on")
    golden = run_case(CASES["copied_on"])
    expect = {"smem": {"sha256": golden.record["smem_sha256"][0]}, "gmem": {"sha256": golden.record["gmem_sha256"]}}

    def backend(case):
        other = changed(changed(golden, "smem", range(512)), "gmem", range(1024, 1280))
        record, _ = transfer_outcome(case, None, [0, 0], other.memories["gmem"], [other.memories["smem"]])
        return other._replace(record=golden.record | {name: record[name] for name in ("smem_sha256", "gmem_sha256")})

    out = tmp_path / "out.json"
    assert replay(tmp_path, monkeypatch, [case | {"expect": expect}], backend, "--out", out) == 0
    (record,) = json.loads(out.read_text())["results"]
    assert (
        record["smem_sha256"] == golden.record["smem_sha256"] and record["gmem_sha256"] == golden.record["gmem_sha256"]
    )


def test_what_is_not_decided_is_not_run(tmp_path, capsys, monkeypatch):
    def backend(case):
        raise AssertionError("nothing should have run")

    assert replay(tmp_path, monkeypatch, entries("open_descriptor"), backend) == 3
    sentence = "skipped   open_descriptor: its result is left open: the descriptor at 0x100 depends on what is open"
    assert capsys.readouterr().out.splitlines()[0] == sentence


@pytest.mark.parametrize("on", ["golden", "rtl", "gpu"])
def test_where_nothing_ran_the_status_says_so(tmp_path, capsys, on):
    for cases in ([], entries("open_descriptor")):
        assert main(["replay", str(write(tmp_path, *cases)), "--on", on]) == 3
        assert capsys.readouterr().out.splitlines()[-1].startswith(f"0 cases ran on {on}, 0 with a mismatch; ")
    if on == "golden":
        assert main(["replay", str(write(tmp_path, *entries("open_descriptor", "load"))), "--on", on]) == 0


PE_CASE = {
    "name": "p", "kind": "program", "pe": {"preset": "unit"}, "smem": {"bytes": 1024},
    "segments": [{"element": "u32", "size": [4, 16], "base": 0}], "registers": {"r0": "tid", "r1": 0},
}  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "places"),
    [
        (["st r5, ur0:rf0:0x0, 1"], range(16)),  # a register that nothing has written
        (["mov r5, 0x1", "st r5, ur0:rf0:0x0, 1"], []),
        (["mov r2, 0x0", "mov r3, 0x0", "st r0, ur0:rf2:0x0, 1"], [0]),  # all threads write one word
        # Of four registers two lie outside, and one of the others has not been written.
        (["mov r2, 0x2", "mov r3, 0x0", "mov r5, 0x9", "st r5, ur0:rf2:0x0, 4"], range(12, 16)),
    ],
)
def test_programs(lines, places):
    (case,) = cases_of({"version": 1, "cases": [PE_CASE | {"program": ["movu ur0, 0", *lines]}]}, "x", Path())
    judged = judge(case)
    assert judged.undecided is None
    wrong = judged.open_bytes["smem"].wrong(judged.outcome.memories["smem"] ^ 255)
    assert np.flatnonzero(~wrong).tolist() == list(places)


def test_a_program_whose_addresses_are_open_is_not_decided():
    (case,) = cases_of(
        {"version": 1, "cases": [PE_CASE | {"program": ["movu ur0, 0", "st r0, ur0:rf8:0x0, 1"]}]}, "x", Path()
    )
    assert judge(case).undecided == "what instruction 3 accesses depends on what is open"
