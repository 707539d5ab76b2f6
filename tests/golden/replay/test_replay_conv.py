"""Replay cases of the convolution engine on the golden model, and refusals."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from support.replay import read, refusal
from tilewright.golden import convolve
from tilewright.golden.memory import mix_pattern
from tilewright.sim.replay.golden import run_case
from tilewright.tools.cli.main import main

CASES = Path(__file__).parents[2] / "vectors" / "conv_seed.json"

CASE = {
    "name": "small", "kind": "conv", "type": "u8s8", "x": [1, 4, 5, 3], "k": [2, 3, 3], "stride": [1, 2],
    "pad": [1, 0, 2, 1], "dilation": [1, 1], "x_init": {"mix": 1}, "k_init": {"mix": 2},
}  # fmt: skip
POST = {"type": "u8", "bias": [1, 2], "scale": [0.5, 0.25]}
ADD = {"init": {"mix": 3}, "ratio": [1, 0.5], "offset": 0}
X = mix_pattern(60, 1).reshape(1, 4, 5, 3)
K = mix_pattern(54, 2).view("i1").reshape(2, 3, 3, 3)


def test_every_seed_case_meets_its_expectation(capsys):
    assert main(["replay", str(CASES), "--on", "golden"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == "38 cases ran on golden, 0 with a mismatch; 0 skipped"
    assert all(line.startswith("met ") for line in lines)


@pytest.mark.parametrize("preset", ["unit", "ecp5", "default", "full"])
def test_seed_cases_of_integers_are_the_same_on_every_engine(tmp_path, preset):
    cases = json.loads(CASES.read_text())["cases"]
    read_again = read(tmp_path, *(case | {"conv": {"preset": preset, "types": ["i8", "i16"]}} for case in cases))
    for case in read_again:
        assert run_case(case).record["output_sha256"] == case.expect["output_sha256"], case.name


def test_result_record(tmp_path):
    (case,) = read(tmp_path, CASE)
    record, memories = run_case(case)
    acc = convolve(X, K, "u8s8", stride=(1, 2), padding=(1, 0, 2, 1))
    assert acc.shape == (1, 3, 3, 2)
    assert (memories["output"].view("<i4") == acc.ravel()).all()
    assert record == {
        "name": "small",
        "error": None,
        "smem_sha256": [hashlib.sha256(memories["smem"]).hexdigest()],
        "output_sha256": hashlib.sha256(acc.tobytes()).hexdigest(),
        "macs": 9 * 2 * 27,
    }


def test_post_processing(tmp_path):
    """Defaults: no bias, zero point 0, the ends of the type."""
    (case,) = read(tmp_path, CASE | {"post": {"type": "s8", "scale": [0.125, 0.0078125], "min": -100}})
    acc = convolve(X, K, "u8s8", stride=(1, 2), padding=(1, 0, 2, 1))
    expected = np.clip(np.rint(acc * [0.125, 0.0078125]), -100, 127).astype("i1")
    assert (run_case(case).memories["output"].view("i1") == expected.ravel()).all()
    (case,) = read(
        tmp_path, CASE | {"post": POST | {"scale": [0.125, 0.0078125], "bias": [0, 0], "zero": 7, "add": ADD}}
    )
    first = np.clip(np.rint(acc * [0.125, 0.0078125]) + 7, 0, 255)
    expected = np.clip(np.rint(first + mix_pattern(18, 3).reshape(first.shape) * 0.5), 0, 255)
    assert (run_case(case).memories["output"] == expected.ravel()).all()


def test_depthwise(tmp_path):
    (case,) = read(tmp_path, CASE | {"groups": 3, "k": [3, 3, 3]})
    kernel = mix_pattern(27, 2).view("i1").reshape(3, 3, 3)
    expected = convolve(X, kernel, "u8s8", operation="depthwise", stride=(1, 2), padding=(1, 0, 2, 1))
    assert (run_case(case).memories["output"].view("<i4") == expected.ravel()).all()


def test_normal_numbers(tmp_path):
    floats = {"type": "f16", "x_init": {"normal": 1}, "k_init": {"normal": 2}, "conv": {"preset": "full"}}
    (case,) = read(tmp_path, CASE | floats)
    x, k = (np.random.Generator(np.random.PCG64(seed)).standard_normal(size).astype(np.float16)
            for seed, size in ((1, (1, 4, 5, 3)), (2, (2, 3, 3, 3))))  # fmt: skip
    output = run_case(case).memories["output"].view("<f4").reshape(3, 3, 2)
    padded = np.pad(x[0].astype(float), ((1, 0), (2, 1), (0, 0)))
    assert np.isclose(output[1, 2, 1], (padded[1:4, 4:7] * k[1]).sum(), rtol=1e-5)


def test_a_type_that_is_not_built_is_the_result(tmp_path, capsys):
    case = CASE | {"type": "f16", "expect": {"error": "unsupported"}}
    read(tmp_path, case)
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "golden"]) == 0
    assert run_case(read(tmp_path, case)[0]).record["error"] == "unsupported"


NO_HARDWARE = [
    ({"conv": {"units": 1}}, "row_bytes must be at most 16 * units (16), not 32"),
    ({"conv": {"slaves": 32}}, "slaves must be at most 16 in hardware, not 32"),
    ({"x": [1, 1024, 1024, 3], "pad": [0, 0, 0, 0]},
     "size_bytes must be a power of two from 1024 to 1048576, not 8388608"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "sentence"), NO_HARDWARE, ids=[row[1][:60] for row in NO_HARDWARE])
def test_a_case_without_hardware_is_skipped(tmp_path, capsys, changes, sentence):
    read(tmp_path, CASE | changes)
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "rtl"]) == 3, "no case ran"
    out = capsys.readouterr().out
    assert out.startswith(f"skipped   small: there is no hardware for it: {sentence}\n")


REFUSED = [
    ({"type": "f32"}, "type must be one of s8, u8, s8u8, u8s8, s16, u16, s16u16, u16s16, f16, bf16, not 'f32'"),
    ({"x": [1, 4, 5]}, "x must have 4 entries, not 3"),
    ({"x": [1, 4, 5, 0]}, "x[3] must be an integer from 1 to 65536, not 0"),
    ({"x": [65536, 65536, 1, 3]}, "x must have at most 268435456 bytes"),
    ({"k": [2, 257, 3]}, "k[1] must be an integer from 1 to 256, not 257"),
    ({"k": [2, 9, 9]}, "a kernel of (9, 9) does not fit 4 x 5 with its padding"),
    ({"stride": [0, 1]}, "stride[0] must be an integer from 1 to 256, not 0"),
    ({"pad": [1, 0, 2]}, "pad must have 4 entries, not 3"),
    ({"groups": 2}, "groups must be one of 1, 3, not 2"),
    ({"groups": 3}, "k[0] must be 3 where there are as many groups, not 2"),
    ({"x_init": {"hex": "00" * 61}}, "x_init.hex must be at most 60 bytes, not 61"),
    ({"k_init": {"normal": 1}}, "k_init.normal needs elements that are floating-point numbers"),
    ({"x_zero": 256}, "x_zero must be an integer from 0 to 255, not 256"),
    ({"k_zero": 128}, "k_zero must be an integer from -128 to 127, not 128"),
    ({"type": "f16", "x_zero": 1}, "x_zero must be an integer from 0 to 0, not 1"),
    ({"type": "f16", "post": POST}, "post needs elements that are integers"),
    ({"post": POST | {"type": "u16"}}, "post.type must be one of u8, s8, not 'u16'"),
    ({"post": POST | {"scale": [0.5]}}, "post.scale must have 2 entries, one for each channel, not 1"),
    ({"post": POST | {"scale": [0.5, 0.1]}}, "post.scale[1] must be a number that binary32 holds, not 0.1"),
    ({"post": POST | {"scale": [0.5, 10**400]}},
     "post.scale[1] must be a number that binary32 holds, not 100000000000000000...0000000000000000000"),
    ({"post": POST | {"bias": [0, 1 << 31]}},
     "post.bias[1] must be an integer from -2147483648 to 2147483647, not 2147483648"),
    ({"post": POST | {"zero": -1}}, "post.zero must be an integer from 0 to 255, not -1"),
    ({"post": POST | {"add": {"init": {"fill": 0}, "ratio": [1], "offset": 0}}},
     "post.add.ratio must have 2 entries, not 1"),
    ({"post": POST | {"add": {"init": {"fill": 0}, "ratio": [1, 1], "offset": True}}},
     "post.add.offset must be a number that binary32 holds, not True"),
    ({"post": POST | {"relu": 1}}, "post.relu is not a known field"),
    ({"conv": {"preset": "large"}}, "conv.preset must be one of unit, ecp5, default, full, not 'large'"),
    ({"conv": {"slaves": 3}}, "conv cannot be: slaves must be a power of two, not 3"),
    ({"conv": {"lanes": 3}}, "conv.lanes is not a known field"),
    ({"gmem": {}}, "gmem is not a known field"),
    ({"expect": {"error": "stride"}},
     "expect.error must be one of None, version, reserved, operation, type, unsupported, output, zero, clamp, factor, "
     "merge, granularity, channels, alignment, pitch, range, overlap, barrier, stopped, not 'stride'"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "sentence"), REFUSED, ids=[row[1][:60] for row in REFUSED])
def test_refusals(tmp_path, changes, sentence):
    assert refusal(tmp_path, CASE | changes) == f"case 'small': {sentence}"
