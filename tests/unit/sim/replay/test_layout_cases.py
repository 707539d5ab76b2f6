"""Replay cases of the kinds lanes and align: what they come to, and which no file may hold."""

import json

import pytest

from tilewright.golden import Memory, align
from tilewright.golden.patterns import mix_pattern
from tilewright.golden.spec import Opcode
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import run_case
from tilewright.sim.usage import UsageError

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


def test_align_there_and_back(tmp_path):
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
def test_case_that_no_file_may_hold(tmp_path, case, sentence):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, case)
    assert str(caught.value) == f"case 'small': {sentence}"
