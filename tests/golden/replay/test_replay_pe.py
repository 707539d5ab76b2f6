"""Replay cases of the processing engine on the golden model: programs, products, and refusals."""

import hashlib
import json
import re
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from support.replay import read, refusal
from tilewright.golden.memory import mix_pattern
from tilewright.sim.replay import rtl as replay_rtl
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import run_case
from tilewright.sim.replay.pe_cases import ProgramResult, golden_engine, pe_outcome, run_on_golden
from tilewright.sim.session.products import PeProgram
from tilewright.spec.pe import PeError
from tilewright.tools.cli.main import main

CASES = Path(__file__).parents[2] / "vectors" / "pe.json"
PAGE = (Path(__file__).parents[3] / "docs" / "simulation.md").read_text(encoding="utf-8")

#: Each thread stores two of its registers in a row of its own.
PROGRAM = {
    "name": "small",
    "kind": "program",
    "pe": {"preset": "unit"},
    "smem": {"bytes": 4096, "init": {"fill": 7}},
    "segments": [None, {"element": "u32", "size": [4, 4], "base": 256}],
    "registers": {"r0": 1, "r1": "tid", "r2": [9, 8, 7, 6], "r3": 5},
    "program": ["movu ur0, 1", "st r2, ur0:rf0:0x0, 2 // behind the first element", "halt"],
}
GEMM = {"name": "small", "kind": "gemm", "type": "s8", "m": 5, "n": 3, "k": 9, "a": {"mix": 1}, "b": {"mix": 2}}


def test_program_and_its_memory(tmp_path):
    (case,) = read(tmp_path, PROGRAM)
    record, memories = run_case(case)
    expected = np.full(4096, 7, np.uint8)
    rows = expected[256:320].view("<u4").reshape(4, 4)
    rows[:, 1], rows[:, 2] = [9, 8, 7, 6], 5
    assert (memories["smem"] == expected).all()
    assert record == {
        "name": "small", "error": None, "record": None, "smem_sha256": [hashlib.sha256(expected).hexdigest()],
    }  # fmt: skip


#: A kernel that adds its third argument, looked up, to a row.
KERNEL = {
    "name": "kernel",
    "kind": "kernel",
    "pe": {"preset": "unit"},
    "smem": {"bytes": 4096, "init": {"fill": 7}},
    "segments": [None, {"element": "u32", "size": [4, 4], "base": 256}],
    "registers": {"r1": "tid"},
    "lookup": [5, 6, -7, 8, 9],
    "kernel": ["mov r0, ur0", "mov r2, ur2", "lookup.0 r2, r2, 0", "add r2, r2, r1", "st r2, ur1:rf0:0, 1", "return"],
    "calls": [[0, 1, 2], [3, 1, 4]],
    "expect": {"error": None, "record": None},
}


def test_kernel_and_its_calls(tmp_path):
    (case,) = read(tmp_path, KERNEL)
    _, memories = run_case(case)
    expected = np.full(4096, 7, np.uint8)
    rows = expected[256:320].view("<u4").reshape(4, 4)
    rows[:, 0], rows[:, 3] = np.arange(4) - 7 & 0xFFFFFFFF, np.arange(4) + 9
    assert (memories["smem"] == expected).all()


def test_record_counts_the_instructions_of_a_kernel(tmp_path):
    """Two loads, two arguments, the call, and then those of the kernel; segment 5 is wrong."""
    (case,) = read(tmp_path, KERNEL | {"calls": [[0, 5]], "kernel": ["mov r0, 0", "st r0, ur1:rf0:0, 1", "return"]})
    record = run_case(case).record
    assert record["error"] == "segment"
    assert record["record"] == {"instruction": 6, "first": 0, "last": 3, "register": 1}


def test_record_counts_the_program_alone(tmp_path):
    """Instructions that give registers their values are not counted."""
    (case,) = read(tmp_path, PROGRAM | {"program": "mov r4, 0\nst r2, ur5:rf0:0x0, 1"})
    record = run_case(case).record
    assert record["error"] == "uniform"
    assert record["record"] == {"instruction": 1, "first": 0, "last": 3, "register": 5}
    assert len(case.program.setup) > 8


def test_pages_and_sizes(tmp_path):
    segment = {"element": "u8", "size": [40], "page": [16], "first_entry": 1, "swizzle": "32B"}
    pages = [None, {"address": 512}, {"address": 128}, {"address": 0, "on_chip": False}]
    (case,) = read(tmp_path, PROGRAM | {"segments": [segment], "pages": pages, "registers": {"r0": [0, 16, 32, 64]},
                                        "pe": {"threads": 4, "regs": 16},
                                        "program": "mov r2, 0x01020304\nmovu ur0, 0\nst r2, ur0:rf0:4, 1"})  # fmt: skip
    assert (case.program.params.threads, case.program.params.regs, case.program.params.smem.size_bytes) == (4, 16, 4096)
    record, memories = run_case(case)
    assert memories["smem"].view("<u4")[[129, 37]].tolist() == [0x01020304] * 2  # the second with bit 4 flipped
    assert record["error"] == "off_chip"
    assert record["record"] == {"instruction": 2, "first": 2, "last": 2, "register": 2}


def test_a_word_of_a_segment(tmp_path):
    (case,) = read(tmp_path, PROGRAM | {"segments": [{"word": "ff"}], "program": "movu ur0, 0\nst r2, ur0:rf0:0, 1"})
    assert case.program.segments == {0: 0xFF}
    assert run_case(case).record["error"] == "segment"


def matrix(seed, shape, dtype):
    return mix_pattern(shape[0] * shape[1] * np.dtype(dtype).itemsize, seed).view(dtype).reshape(shape)


@pytest.mark.parametrize(("kind", "first", "second"), [
    ("s8", "i1", "i1"), ("u8", "u1", "u1"), ("s8u8", "i1", "u1"), ("u8s8", "u1", "i1"),
    ("s16", "<i2", "<i2"), ("u16", "<u2", "<u2"), ("s16u16", "<i2", "<u2"), ("u16s16", "<u2", "<i2"),
])  # fmt: skip
@pytest.mark.parametrize("transpose", [0, 1])
def test_products_of_integers(tmp_path, kind, first, second, transpose):
    (case,) = read(tmp_path, GEMM | {"type": kind, "t": transpose, "ka": 2, "kb": 2, "order": "columns"})
    a = matrix(1, (5, 9), first).astype(np.int64)
    b = matrix(2, (9, 3) if transpose else (3, 9), second).astype(np.int64)
    expected = (a @ (b if transpose else b.T) & 0xFFFFFFFF).astype("<u4")
    record, memories = run_case(case)
    assert (memories["output"].view("<u4").reshape(5, 3) == expected).all()
    assert record["output_sha256"] == hashlib.sha256(expected).hexdigest()
    assert (record["macs"], record["error"]) == (135, None)


@pytest.mark.parametrize(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_products_of_normal_numbers(tmp_path, kind, dtype):
    (case,) = read(tmp_path, GEMM | {"type": kind, "a": {"normal": 3}, "b": {"normal": 4}})
    a, b = (np.random.Generator(np.random.PCG64(seed)).standard_normal(size) for seed, size in ((3, 45), (4, 27)))
    a, b = (numbers.astype(dtype).astype(np.float64) for numbers in (a, b))
    output = run_case(case).memories["output"].view("<f4").reshape(5, 3)
    assert np.allclose(output, a.reshape(5, 9) @ b.reshape(3, 9).T, rtol=1e-6, atol=1e-6)


def test_normal_numbers_are_rounded_once(tmp_path, monkeypatch):
    """Just above the middle of two bfloat16, nearer to it than float32 can say."""

    class Generator:
        def __init__(self, bits):
            pass

        def standard_normal(self, count):
            return np.full(count, 1 + 2.0**-8 + 2.0**-40)

    monkeypatch.setattr(np.random, "Generator", Generator)
    (case,) = read(tmp_path, GEMM | {"type": "bf16", "k": 1, "a": {"normal": 0}, "b": {"normal": 0}})
    assert (run_case(case).memories["output"].view("<f4") == (1 + 2.0**-7) ** 2).all()


def test_expectations(tmp_path, capsys):
    digest = hashlib.sha256(matrix(1, (5, 9), "i1").astype("<i4") @ matrix(2, (3, 9), "i1").T.astype("<i4"))
    cases = [
        GEMM | {"expect": {"error": None, "output": {"sha256": digest.hexdigest()}}},
        PROGRAM | {"name": "missed", "expect": {"error": "opcode"}},
    ]
    read(tmp_path, *cases)
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "golden"]) == 1
    assert capsys.readouterr().out.splitlines()[:2] == [
        "met       small",
        "MISMATCH  missed: error is None, not opcode as expected",
    ]


def test_single_bytes_are_expected_of_both_kinds(tmp_path, capsys):
    product = matrix(1, (5, 9), "i1").astype("<i4") @ matrix(2, (3, 9), "i1").T.astype("<i4")
    second = product.tobytes()[4:8].hex()
    cases = [
        GEMM | {"expect": {"output": {"bytes": [[4, second]]}}},
        GEMM | {"name": "wrong", "expect": {"output": {"bytes": [[4, second], [59, "55"]]}}},
        PROGRAM | {"name": "memory", "expect": {"smem": {"bytes": [[0, "00"]]}}},
        GEMM | {"name": "beyond", "expect": {"output": {"bytes": [[60, "00"]]}}},
    ]
    read(tmp_path, *cases[:3])
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "golden"]) == 1
    byte = product.tobytes()[59]
    assert capsys.readouterr().out.splitlines()[:2] == [
        "met       small",
        f"MISMATCH  wrong: output at 0x3b is {byte:#04x}, not 0x55 as expected",
    ]
    (tmp_path / "cases.json").write_text(json.dumps({"version": 1, "cases": cases}))
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "golden"]) == 2
    sentence = "case 'beyond': expect.output.bytes[0][1] must be at most 0 bytes, not 1"
    assert capsys.readouterr().err == f"tilewright replay: {sentence}\n"


def test_outcomes_differ_for_wrong_runs(tmp_path):
    """Results of other runners are compared field by field."""
    (case,) = read(tmp_path, GEMM)
    run = run_on_golden(case.program)
    wrong = run.smem.copy()
    wrong[case.program.smem != run.smem] ^= 1
    record = run_case(case).record
    assert pe_outcome(case, run).record == record
    assert pe_outcome(case, ProgramResult(wrong, [])).record["output_sha256"] != record["output_sha256"]


def test_cases_of_one_engine_share_a_session(tmp_path, capsys, monkeypatch):
    """With golden in the place of the simulator, from which one error record is missing."""

    class Session:
        opened = 0

        def __init__(self, params, simulator):
            self.params, self.shared_memory = params, self
            Session.opened += 1

        def reset(self):
            pass

        def close(self):
            pass

        def write(self, address, values):
            self.smem = values

        def read(self, address, count):
            return self.smem

        def run(self, program, segments, pages, **_):
            engine = golden_engine(PeProgram(self.params.pe, self.smem, segments, pages, tuple(program)))
            engine.run(program)
            self.smem = engine.smem
            return SimpleNamespace(faults=[])

    monkeypatch.setattr(replay_rtl, "Session", Session)
    read(tmp_path, PROGRAM, GEMM | {"name": "product"}, PROGRAM | {"name": "wrong", "program": ["mov r40, 0"]})
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "rtl"]) == 1
    assert capsys.readouterr().out.splitlines()[:3] == [
        "ran       small",
        "ran       product",
        "MISMATCH  wrong: error is None, not register as on golden; record is None, not {'instruction': 0, 'first': 0, "
        "'last': 3, 'register': 40} as on golden",
    ]
    assert Session.opened == 2


REFUSED = [
    (PROGRAM, {"program": "mov r0"},
     "program line 1: 'r0' must be followed by a number, tid, core, a register or a uniform register"),
    (PROGRAM, {"program": ["halt", "halt 3"]}, "program line 2: '3' is more than the command takes"),
    (KERNEL, {"kernel": []}, "kernel must have 1 to 64 instructions, not 0"),
    (KERNEL, {"kernel": ["halt"] * 65}, "kernel must have 1 to 64 instructions, not 65"),
    (KERNEL, {"lookup": [0] * 257}, "lookup must have at most 256 entries, not 257"),
    (KERNEL, {"lookup": [1 << 32]}, "lookup[0] must be an integer from -2147483648 to 4294967295, not 4294967296"),
    (KERNEL, {"calls": [3]}, "calls[0] must be a list of at most 8 arguments"),
    (KERNEL, {"calls": [[0] * 9]}, "calls[0] must be a list of at most 8 arguments"),
    (KERNEL, {"calls": [[0, 1.5]]}, "calls[0][1] must be an integer from -2147483648 to 4294967295, not 1.5"),
    (PROGRAM, {"program": 3}, "program must be a string, or a list of strings"),
    (PROGRAM, {"pe": {"preset": "large"}}, "pe.preset must be one of unit, ecp5, default, lean, full, not 'large'"),
    (PROGRAM, {"pe": {"threads": 3}}, "pe cannot be: threads must be 4 to 256, not 3"),
    (PROGRAM, {"pe": {"smem": 3}}, "pe.smem is not a known field"),
    (PROGRAM, {"pe": {"types": "f16"}}, "pe cannot be: types must be a list or tuple, not 'f16'"),
    (PROGRAM, {"smem": {"bytes": 4095}},
     "pe cannot be: size_bytes must be a power of two from 1024 to 1048576, not 4095"),
    (PROGRAM, {"gmem": {"bytes": 16}}, "gmem is not a known field"),
    (PROGRAM, {"segments": [None] * 9}, "segments[8] must be one of 8"),
    (PROGRAM, {"segments": [{"element": "u64", "size": [4]}]},
     "segments[0].element must be one of s8, s16, s32, u8, u16, u32, f16, f32, bf16, not 'u64'"),
    (PROGRAM, {"segments": [{"element": "u8", "size": []}]}, "segments[0].size must have 1 to 4 entries, not 0"),
    (PROGRAM, {"segments": [{"element": "u8", "size": [4], "page": [3]}]}, "segments[0].page must be 1 powers of two"),
    (PROGRAM, {"segments": [{"element": "u8", "size": [4], "first_entry": 0, "base": 0}]},
     "segments[0].base is not a known field"),
    (PROGRAM, {"segments": [{"word": "x"}]}, "segments[0].word must be a hexadecimal number of 256 bits, not 'x'"),
    (PROGRAM, {"pages": [None] * 33}, "pages[32] must be one of 32"),
    (PROGRAM, {"pages": [{"address": 0, "loaded": False}]}, "pages[0].loaded is not a known field"),
    (PROGRAM, {"registers": {"r32": 0}}, "registers.r32 must be a register, r0 to r31"),
    (PROGRAM, {"registers": {"x": 0}}, "registers.x must be a register, r0 to r31"),
    (PROGRAM, {"registers": {"r1": [0, 1]}}, "registers.r1 must have 4 entries, one for each thread, not 2"),
    (PROGRAM, {"registers": {"r1": -1}}, "registers.r1 must be an integer from 0 to 4294967295, not -1"),
    (PROGRAM, {"expect": {"record": {"instruction": 0}}}, "expect.record.first is missing"),
    (PROGRAM, {"expect": {"error": "stride"}},
     "expect.error must be one of None, opcode, unsupported, merge, uniform, segment, register, barrier, product, "
     "alignment, unmapped, off_chip, memory, stopped, control, not 'stride'"),
    (GEMM, {"type": "f32"}, "type must be one of s8, u8, s8u8, u8s8, s16, u16, s16u16, u16s16, f16, bf16, not 'f32'"),
    (GEMM, {"m": 0}, "m must be an integer from 1 to 65535, not 0"),
    (GEMM, {"ka": 5}, "ka must be an integer from 1 to 4, not 5"),
    (GEMM, {"a": {"normal": 1}}, "a.normal needs elements that are floating-point numbers"),
    (GEMM, {"a": {"hex": "00" * 46}}, "a.hex must be at most 45 bytes, not 46"),
    (GEMM, {"order": "rows"}, "order must be one of k, columns, not 'rows'"),
    (GEMM, {"ka": 4, "kb": 4, "pe": {"threads": 8}}, "ka 4 times kb 4 is more than 8 threads"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "changes", "sentence"), REFUSED, ids=[row[2] for row in REFUSED])
def test_refusals(tmp_path, case, changes, sentence):
    assert refusal(tmp_path, case | changes) == f"case {case['name']!r}: {sentence}"


def test_a_barrier_that_is_never_complete(tmp_path, capsys):
    read(tmp_path, PROGRAM | {"program": "bar.wait 0x0, 0", "smem": {"bytes": 4096, "init": {"fill": 0}}})
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "golden"]) == 2
    assert capsys.readouterr().err == (
        "tilewright replay: case 'small': the phase of parity 0 of the barrier at 0x0 is not complete\n"
    )


def test_example_of_the_documentation(tmp_path):
    (block,) = (text for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL) if "rows_times_columns" in text)
    (tmp_path / "cases.json").write_text(block, encoding="utf-8")
    (case,) = read_cases(tmp_path / "cases.json")
    record, memories = run_case(case)
    assert record["error"] is None
    # Rows of two in each of two pages; bit 4 of the address flips where bit 7 is one, and it is zero in both.
    rows = memories["smem"].view("<u4")
    assert [rows[start : start + 4].tolist() for start in (512, 516, 256, 260)] == [[2 * i] * 4 for i in (1, 2, 3, 4)]


def test_a_kept_case_by_hand():
    """The first of the kept cases: four rows of A, which are in registers, times four columns."""
    case = read_cases(CASES)[0]
    assert case.name == "mm8_one_issue"
    registers = json.loads(CASES.read_text())["cases"][0]["registers"]
    a = np.array([registers["r16"], registers["r17"]], "<u4").T.copy().view("i1").astype("<i4")
    b = mix_pattern(4096, 3)[1024 : 1024 + 4 * 64].view("i1").reshape(4, 64)[:, :8].astype("<i4")
    rows = run_case(case).memories["smem"][2048 : 2048 + 4 * 64].view("<i4").reshape(4, 16)
    assert (rows[:, :4] == a @ b.T).all()
    assert (rows[:, 4:8] == 0).all()


def test_kept_cases_show_every_error():
    errors = {case.expect["error"] for case in read_cases(CASES)}
    assert errors == {None, *(code.name.lower() for code in PeError if code and code != PeError.STOPPED)}


def test_kept_cases_meet_their_expectations(capsys):
    assert main(["replay", str(CASES), "--on", "golden"]) == 0
    assert " 0 with a mismatch; 0 skipped" in capsys.readouterr().out
