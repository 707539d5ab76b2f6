"""``tilewright replay`` on the golden model: seed cases, verdicts, results, and refused files."""

import copy
import hashlib
import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from support.replay import refusal, write
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import run_case
from tilewright.sim.replay.outcome import Outcome
from tilewright.tools.cli import replay
from tilewright.tools.cli.main import main

SEED_CASES = Path(__file__).parents[2] / "vectors" / "tmau_seed.json"

CASE = {
    "name": "small",
    "kind": "tmau",
    "gmem": {"bytes": 256, "init": {"fill": 7}},
    "smem": {"bytes": 512},
    "maps": {"x": {"element": "u8", "address": 0, "size": [16, 4], "stride": [16], "box": [16, 2]}},
    "commands": [{"op": "load", "map": "x", "coords": [0, 0], "smem": 0}],
    "expect": {"error": None, "tx_bytes": [32]},
}


def changed(path, value, case=CASE):
    """A copy of ``case`` with the member at the dotted ``path`` replaced, or removed if ``value`` is ``...``."""
    case = copy.deepcopy(case)
    *outer, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place = case
    for step in outer:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return case


def run(folder, *cases, options=()):
    return main(["replay", str(write(folder, *cases)), "--on", "golden", *options])


def test_every_seed_case_meets_its_expectation(tmp_path, capsys):
    out = tmp_path / "results.json"
    assert main(["replay", str(SEED_CASES), "--on", "golden", "--out", str(out)]) == 0
    records = json.loads(out.read_text())["results"]
    cases = json.loads(SEED_CASES.read_text())["cases"]
    assert [record["name"] for record in records] == [case["name"] for case in cases]
    for case, record in zip(cases, records, strict=True):
        assert record["smem_sha256"] == [case["expect"]["smem"]["sha256"]]
        assert record["gmem_sha256"] == case["expect"]["gmem"]["sha256"]
        assert record["tx_bytes"] == case["expect"]["tx_bytes"]
    assert capsys.readouterr().out.endswith("47 cases ran on golden, 0 with a mismatch; 0 skipped\n")


def test_result_record_and_dump(tmp_path):
    out, dump = tmp_path / "results.json", tmp_path / "dump"
    case = changed("name", "../a b")
    assert run(tmp_path, case, options=["--out", str(out), "--dump", str(dump)]) == 0
    smem = bytes([7] * 32 + [205] * 480)
    assert json.loads(out.read_text()) == {
        "version": 1,
        "results": [
            {
                "name": "../a b",
                "error": None,
                "tx_bytes": [32],
                "smem_sha256": [hashlib.sha256(smem).hexdigest()],
                "gmem_sha256": hashlib.sha256(bytes([7] * 256)).hexdigest(),
            }
        ],
    }
    assert sorted(path.name for path in dump.iterdir()) == [".._a_b.gmem.bin", ".._a_b.smem.bin"]
    assert (dump / ".._a_b.smem.bin").read_bytes() == smem


def test_mismatch_ends_with_status_1_and_says_what_differs(tmp_path, capsys):
    assert run(tmp_path, changed("expect.tx_bytes", [16]), changed("name", "other")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "MISMATCH  small: tx_bytes is [32], not [16] as expected"
    assert lines[1] == "met       other"
    assert lines[2] == "2 cases ran on golden, 1 with a mismatch; 0 skipped"


def test_case_without_expectation_is_not_reported_as_met(tmp_path, capsys):
    assert run(tmp_path, changed("expect", ...)) == 0
    assert capsys.readouterr().out.startswith("ran       small\n")


def test_repeated_command_is_issued_step_by_step(tmp_path):
    case = changed("commands.0", {**CASE["commands"][0], "repeat": 3, "smem_step": 128})
    outcome = run_case(read_cases(write(tmp_path, changed("expect", ..., case)))[0])
    assert outcome.record["tx_bytes"] == [32, 32, 32]
    assert np.flatnonzero(outcome.memories["smem"] == 7).tolist() == [128 * i + b for i in range(3) for b in range(32)]


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("maps.x.address", 8, "address"),
        ("maps.x.size", [16, 0], "size"),
        ("maps.x.stride", [24], "stride"),
        ("maps.x.box", [16, 300], "box"),
        ("maps.x.traversal", [1, 9], "traversal"),
        ("maps.x.traversal", [1, 99], "traversal"),
        ("maps.x.fill", "nan", "fill"),
        ("commands.0.coords", [0, 0, 1], "coords"),
        ("commands.0.smem", 64, "smem_alignment"),
        ("commands.0.smem", 512, "smem_range"),
        ("gmem.bytes", 16, "read"),
    ],
)
def test_error_of_a_case_is_its_result(tmp_path, path, value, error):
    case = changed("expect", {"error": error, "tx_bytes": [0, 0]}, changed(path, value))
    case["commands"] *= 2
    assert run(tmp_path, case) == 0
    outcome = run_case(read_cases(tmp_path / "cases.json")[0])
    assert (outcome.memories["smem"] == 205).all()


@pytest.mark.parametrize(
    ("init", "contents"),
    [
        ({"mix": 0}, [0x9E, 0x3C, 0xDA, 0x78]),
        ({"hex": "0102"}, [1, 2, 0, 0]),
        ({"npy": "data.npy"}, [3, 0, 0, 0]),
        ({"set": [[1, "aa"], [3, "bb"]], "over": {"fill": 9}}, [9, 0xAA, 9, 0xBB]),
    ],
)
def test_initial_contents(tmp_path, init, contents):
    np.save(tmp_path / "data.npy", np.array([3], "<u2"))
    case = read_cases(write(tmp_path, changed("gmem.init", init)))[0]
    assert case.gmem.contents()[:4].tolist() == contents


CLUSTER = {
    **CASE,
    "cores": 3,
    "commands": [
        {"op": "load", "map": "x", "coords": [0, 0], "smem": 0, "core": 1, "multicast": 0b101},
        {"op": "copy_block", "src": ["global", 0], "dst": ["shared", 128], "size": 16, "multicast": 0b110},
        {"op": "copy_block", "src": ["shared", 0, 2], "dst": ["shared", 256, 1], "size": 16, "core": 0},
    ],
    "expect": {"error": None, "tx_bytes": [32, 16, 16]},
}


def test_a_case_of_several_cores(tmp_path):
    path, dump = write(tmp_path, CLUSTER), tmp_path / "dump"
    assert main(["replay", str(path), "--on", "golden", "--dump", str(dump)]) == 0
    record, memories = run_case(read_cases(path)[0])
    landed = {"smem0": [(0, 32)], "smem1": [(128, 16), (256, 16)], "smem2": [(0, 32), (128, 16)]}
    for memory, spots in landed.items():
        expected = np.full(512, 205, np.uint8)
        for start, count in spots:
            expected[start : start + count] = 7
        assert (memories[memory] == expected).all()
        assert (dump / f"small.{memory}.bin").read_bytes() == expected.tobytes()
    assert record["smem_sha256"] == [hashlib.sha256(memories[memory]).hexdigest() for memory in landed]
    hashes = [{"sha256": digest} for digest in record["smem_sha256"]]
    assert run(tmp_path, changed("expect", CLUSTER["expect"] | {"smem": hashes}, CLUSTER)) == 0
    first = [{"sha256": digest[:16]} for digest in record["smem_sha256"]]
    assert run(tmp_path, changed("expect", CLUSTER["expect"] | {"smem": first}, CLUSTER)) == 0
    for wrong in (hashes[::-1], first[::-1], first[:2]):
        assert run(tmp_path, changed("expect", CLUSTER["expect"] | {"smem": wrong}, CLUSTER)) == 1


ARRIVE = {"op": "arrive", "core": 2, "from": 0b011, "expected": 6, "value": 2}


@pytest.mark.parametrize(
    ("change", "counted", "error"),
    [
        ({}, 4, None),
        ({"from": 0b111}, 6, None),  # in the second phase
        ({"from": 0b111, "expected": 2}, 2, None),  # three phases
        ({"value": 0}, 0, "barrier_operation"),
        ({"value": 4}, 4, "barrier_operation"),
    ],
)
def test_arrivals_at_a_barrier(tmp_path, change, counted, error):
    (case,) = read_cases(write(tmp_path, CLUSTER | {"commands": [ARRIVE | change], "expect": {}}))
    record, memories = run_case(case)
    assert (record["error"], record["tx_bytes"]) == (error, [counted])
    assert (memories["smem2"] == 205).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"from": 8}, "commands[0].from must name some of the 3 cores, not 0x8"),
        ({"from": 0}, "commands[0].from must be an integer from 1 to 65535, not 0"),
        ({"expected": 0}, "commands[0].expected must be an integer from 1 to 1048575, not 0"),
        ({"multicast": 1}, "commands[0].multicast is not a known field"),
    ],
)
def test_arrivals_that_are_refused(tmp_path, change, sentence):
    assert refusal(tmp_path, CLUSTER | {"commands": [ARRIVE | change]}) == f"case 'small': {sentence}"


def test_arrivals_need_a_barrier_and_another_core(tmp_path):
    small = CLUSTER | {"commands": [ARRIVE], "smem": {"bytes": 7}}
    assert refusal(tmp_path, small) == "case 'small': smem.bytes must be at least 8 for a barrier, not 7"
    assert "lanes, not 'arrive'" in refusal(tmp_path, CASE | {"commands": [ARRIVE]})


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("commands.0.multicast", 0, "cores"),
        ("commands.0.multicast", 8, "cores"),
        ("commands.0.smem", 64, "smem_alignment"),
        ("commands.1.multicast", 1 << 15, "cores"),
    ],
)
def test_error_of_a_cluster(tmp_path, path, value, error):
    assert run(tmp_path, changed("expect", {"error": error}, changed(path, value, CLUSTER))) == 0


REFUSED = [
    ("kind", "tma",
     "kind must be one of tmau, lanes, align, program, kernel, gemm, conv, core, not 'tma'; did you mean 'tmau'?"),
    ("surprise", 1, "surprise is not a known field"),
    ("gmem", ..., "gmem is missing"),
    ("gmem.bytes", 0, "gmem.bytes must be an integer from 1 to 4294967296, not 0"),
    ("gmem.bytes", True, "gmem.bytes must be an integer from 1 to 4294967296, not True"),
    ("gmem.init", {"zero": 1}, "gmem.init must have one of fill, mix, hex, npy, set"),
    ("gmem.init", {"fill": 1, "mix": 1}, "gmem.init.fill is not a known field"),
    ("gmem.init", {"fill": 256}, "gmem.init.fill must be an integer from 0 to 255, not 256"),
    ("gmem.init", {"hex": "0g"}, "gmem.init.hex must be pairs of hex digits"),
    ("smem.init", {"hex": "00" * 513}, "smem.init.hex must be at most 512 bytes, not 513"),
    ("gmem.init", {"npy": "none.npy"}, "gmem.init.npy must name a readable array, not none.npy"),
    ("gmem.init", {"set": [[0, "00"]]}, "gmem.init.over is missing"),
    ("gmem.init", {"set": [[255, "0000"]], "over": {"fill": 0}}, "gmem.init.set[0][1] must be at most 1 bytes, not 2"),
    ("gmem.init", {"set": [7], "over": {"fill": 0}}, "gmem.init.set[0] must be a pair of an address and hex digits"),
    ("maps.x.element", "f15", "maps.x.element must be one of u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, f32, "
     "f64, tf32, f8e4m3, f8e5m2, not 'f15'"),
    ("maps.x.address", ..., "maps.x.address is missing"),
    ("maps.x.swizzle", "SWIZZLE_64B",
     "maps.x.swizzle must be one of none, 32B, 64B, 128B, not 'SWIZZLE_64B'; did you mean '64B'?"),
    ("maps.x.boxDim", [16, 2], "maps.x.boxDim is not a known field; did you mean 'box'?"),
    ("maps.x.swizzle", "16B", "maps.x.swizzle must be one of none, 32B, 64B, 128B, not '16B'"),
    ("maps.x.fill", {"constant": -1}, "maps.x.fill.constant must be an integer from 0 to 4294967295, not -1"),
    ("maps.x.stride", [], "maps.x.stride must have 1 entries for rank 2 in tile mode, not 0"),
    ("maps.x.size", [16.0, 4], "maps.x.size[0] must be an integer from -9223372036854775808 to 18446744073709551615, "
     "not 16.0"),
    ("maps.x.strides", [16], "maps.x.strides is not a known field; did you mean 'stride'?"),
    ("maps.x.mode", "im2col", "maps.x.channels is missing"),
    ("commands.0.op", "move", "commands[0].op must be one of load, store, reduce, prefetch, copy_block, "
     "prefetch_block, commit, "
     "wait, wait_all, invalidate_all, invalidate, replace, lanes, not 'move'"),
    ("commands.0.map", "y", "commands[0].map must be one of x, not 'y'"),
    ("commands.0.coords", [0], "commands[0].coords must have the 2 entries of the map, not 1"),
    ("commands.0.coords", [0, 1 << 31],
     "commands[0].coords[1] must be an integer from -2147483648 to 2147483647, not 2147483648"),
    ("commands.0.smem", ..., "commands[0].smem is missing"),
    ("commands.0.async", 1, "commands[0].async must be true or false, not 1"),
    ("commands.0.offsets", [0], "commands[0].offsets is not a known field"),
    ("commands", {}, "commands must be a list, not {}"),
    ("commands.0", {"op": "copy_block", "src": ["local", 0], "dst": ["shared", 0], "size": 16},
     'commands[0].src must be ["global", address] or ["shared", address] with or without a core'),
    ("commands.0.core", 1, "commands[0].core must be an integer from 0 to 0, not 1"),
    ("commands.0.multicast", -1, "commands[0].multicast must be an integer from 0 to 65535, not -1"),
    ("commands.0", {"op": "copy_block", "src": ["shared", 0, 1], "dst": ["shared", 64], "size": 16},
     "commands[0] must name one of the 1 cores, not 1"),
    ("commands.0", {"op": "copy_block", "src": ["shared", 0], "dst": ["shared", 64, 0], "size": 16, "multicast": 1},
     "commands[0].multicast must be omitted if dst names a core"),
    ("commands.0", {"op": "prefetch", "map": "x", "coords": [0, 0], "multicast": 1},
     "commands[0].multicast is not a known field"),
    ("expect.error", "oops", None),
    ("expect.tx_bytes", 32, "expect.tx_bytes must be a list, not 32"),
    ("expect.smem", {"sha256": "AB"}, "expect.smem.sha256 must be 16 to 64 lower-case hex digits, not 'AB'"),
    ("expect.memory", {}, "expect.memory is not a known field"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "sentence"), REFUSED, ids=[f"{path}={value}" for path, value, _ in REFUSED])
def test_invalid_case_is_named_and_nothing_runs(tmp_path, capsys, path, value, sentence):
    options = ["--out", str(tmp_path / "results.json"), "--dump", str(tmp_path / "dump")]
    assert run(tmp_path, changed("name", "first"), changed(path, value), options=options) == 2
    output = capsys.readouterr()
    assert output.out == ""
    if sentence is None:
        assert output.err.startswith(f"tilewright replay: case 'small': {path} must be one of None, opcode, ")
    else:
        assert output.err == f"tilewright replay: case 'small': {sentence}\n"
    assert [file.name for file in tmp_path.iterdir()] == ["cases.json"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "cases.json: it must be an object, not []"),
        ("{", "is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ('{"version": 2, "cases": []}', "cases.json: version must be an integer from 1 to 1, not 2"),
        ('{"version": 1, "version": 1, "cases": []}', "is not JSON: 'version' is given twice"),
        ('{"version": 1, "cases": [3]}', "case 0: it must be an object, not 3"),
        ('{"version": 1, "cases": [{}]}', "case 0: name is missing"),
        ('{"version": 1, "cases": [], "more": 1}', "cases.json: more is not a known field"),
    ],
)
def test_refused_files(tmp_path, capsys, text, sentence):
    path = tmp_path / "cases.json"
    path.write_text(text)
    assert main(["replay", str(path), "--on", "golden"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("tilewright replay: ")
    assert output.err.endswith(f"{sentence}\n")
    assert output.err.count("\n") == 1


def test_same_name_twice_is_refused(tmp_path, capsys):
    assert run(tmp_path, CASE, CASE) == 2
    assert capsys.readouterr().err == "tilewright replay: case 'small': name must be used once in a file\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "tilewright: the following arguments are required: COMMAND\n"),
        (["replay", "x.json"], "tilewright replay: the following arguments are required: --on\n"),
        (["fly"], "tilewright: there is no command 'fly'"),
        (
            ["replay", "x.json", "--on", "silicon"],
            "tilewright replay: argument --on: invalid choice: 'silicon' (choose from ",
        ),
    ],
)
def test_wrong_arguments_are_one_sentence(capsys, arguments, message):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_missing_file(tmp_path, capsys):
    assert main(["replay", str(tmp_path / "no.json"), "--on", "golden"]) == 2
    assert (
        capsys.readouterr().err == f"tilewright replay: {tmp_path}/no.json: cannot be read: No such file or directory\n"
    )


def test_another_backend_must_equal_golden(tmp_path, capsys, monkeypatch):
    def wrong(case):
        outcome = run_case(case)
        smem = outcome.memories["smem"].copy()
        smem[40] ^= 1
        return Outcome(outcome.record | {"tx_bytes": [16]}, outcome.memories | {"smem": smem})

    class Backend:
        configure = staticmethod(lambda parser: None)
        open_backend = staticmethod(lambda args: nullcontext(wrong))
        hardware = why_not = staticmethod(lambda case, args: None)

    monkeypatch.setitem(replay.BACKENDS, "rtl", "somewhere")
    monkeypatch.setattr(replay, "import_module", lambda name: Backend)
    assert main(["replay", str(write(tmp_path, changed("expect", ...))), "--on", "rtl"]) == 1
    assert capsys.readouterr().out.splitlines()[0] == (
        "MISMATCH  small: tx_bytes is [16], not [32] as on golden; smem differs from golden in 1 bytes, first at 0x28"
    )
