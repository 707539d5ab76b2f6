"""Which cases have a counterpart on silicon: every other one is named with its reason."""

import pytest

from support.cases import read_case
from tilewright.golden.tmau.reduce import is_legal
from tilewright.silicon.packing import SHARED_BYTES, pack
from tilewright.silicon.replay import no_counterpart, why_not
from tilewright.sim.replay.golden import run_case
from tilewright.spec import Element, Reduction

MAP = {"element": "u32", "address": 0, "size": [16, 8], "stride": [64], "box": [8, 4]}
LOAD = {"op": "load", "map": "x", "coords": [0, 0], "smem": 0}
STORE = LOAD | {"op": "store"}
COPY = {"op": "copy_block", "size": 16}
LANES = {"op": "lanes", "element": "f16", "shape": [1, 1, 1, 1], "lanes": 4, "eu_bytes": 16,
         "src": {"layout": "global", "address": 0}, "dst": {"layout": "compact", "address": 0}}  # fmt: skip
PLACED = MAP | {"at": 4096}
SLICES = {"size": [8, 2, 2], "stride": [128, 256], "interleave": "16B"}


def case_with(commands=(LOAD,), map_changes=None, **changes):
    case = {
        "name": "asked",
        "kind": "tmau",
        "gmem": {"bytes": 8192},
        "smem": {"bytes": 4096},
        "maps": {"x": MAP | (map_changes or {})},
        "commands": list(commands),
    }
    return read_case(case | changes)


def test_a_plain_case_runs():
    assert why_not(case_with()) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"map_changes": {"unaligned": True}}, "unaligned (map x)"),
        ({"map_changes": {"gather0": True}}, "gather0 (map x)"),
        ({"map_changes": {"fill": {"constant": 1}}}, "constant fill (map x)"),
        ({"commands": [STORE | {"fill": True}]}, "fill on store"),
        ({"commands": [STORE | {"op": "reduce", "reduce": "add", "fill": True}]}, "fill on store"),
        ({"windows": {"shared": [0, 1023]}}, "windows"),
        ({"windows": {"global": [0, 8191]}, "maps": {"x": PLACED}}, "windows"),
        ({"commands": [COPY | {"src": ["global", 0], "dst": ["global", 16]}]},
         "copies from global to global memory"),
        ({"commands": [{"op": "replace", "map": "x", "field": "address", "value": 64}], "maps": {"x": PLACED}},
         "replace"),
        ({"commands": [LANES]}, "lanes"),
        ({"commands": [LOAD | {"coords": [-1, 0]}]}, "starts inside 16 bytes (map x)"),
        ({"commands": [STORE | {"coords": [6, 0]}]}, "starts inside 16 bytes (map x)"),
        ({"commands": [STORE], "map_changes": {"size": [13, 8]}}, "writing up to an edge inside 16 bytes (map x)"),
        ({"map_changes": SLICES | {"box": [3, 1, 1]}, "commands": [LOAD | {"coords": [0, 0, 0]}]},
         "interleaved boxes whose elements are no multiple of 16 bytes (map x)"),
    ],
)  # fmt: skip
def test_items_beyond_silicon_are_named(changes, reason):
    """All that docs/tmau.md and docs/layouts.md mark so."""
    assert why_not(case_with(**changes)) == f"the TMAU goes beyond silicon with {reason}"


def test_a_case_of_kind_lanes_is_named():
    case = {key: value for key, value in LANES.items() if key != "op"} | {"name": "asked", "kind": "lanes"}
    assert (
        why_not(read_case(case | {"gmem": {"bytes": 64}, "smem": {"bytes": 4096}}))
        == "the TMAU goes beyond silicon with lanes"
    )


def test_a_case_of_kind_align_is_named():
    case = {"name": "asked", "kind": "align", "shape": [1, 1, 3, 3], "element": "u8", "operator": "pool"}
    case |= {"granularity": 4, "source": 0, "target": 64, "gmem": {"bytes": 256}, "smem": {"bytes": 4096}}
    assert why_not(read_case(case)) == "the TMAU goes beyond silicon with unaligned (map source)"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"maps": {"x": PLACED}}, "map x lies at an address, but silicon's is made by the driver"),
        ({"commands": [{"op": "invalidate", "map": "x"}]}, "silicon has another way to invalidate descriptors"),
        ({"commands": [{"op": "invalidate_all"}]}, "silicon has another way to invalidate descriptors"),
        ({"map_changes": {"element": "s8", "fill": "nan", "box": [16, 4]}},
         "the driver has no s8 to fill with NaN (map x)"),
        ({"map_changes": {"element": "f8e5m2", "fill": "nan", "box": [16, 4]}},
         "the driver has no f8e5m2 to fill with NaN (map x)"),
        ({"map_changes": {"size": [16, -1]}}, "the driver's arguments cannot hold -1 as size (map x)"),
        ({"map_changes": {"stride": [-64]}}, "the driver's arguments cannot hold -64 as stride (map x)"),
        ({"map_changes": {"box": [8, 1 << 32]}}, "the driver's arguments cannot hold 4294967296 as box (map x)"),
        ({"map_changes": {"traversal": [1, -1]}}, "the driver's arguments cannot hold -1 as traversal (map x)"),
        ({"map_changes": {"size": [8] * 6, "stride": [64] * 5, "box": [8] * 6}, "commands": []},
         "jobs have no room for rank 6 (map x)"),
        ({"commands": [COPY | {"src": ["global", 0], "dst": ["shared", 0], "reduce": "add", "element": "u32"}]},
         "silicon does not reduce from global into shared memory"),
        ({"smem": {"bytes": 1 << 18}, "commands": [LOAD | {"smem": (1 << 18) - 128}]},
         f"it uses 262144 bytes of shared memory, and a GPU has {SHARED_BYTES}"),
        ({"commands": [LOAD | {"smem": 64}]}, "silicon has no check for the error of command 0, smem_alignment"),
        ({"commands": [LOAD, STORE | {"coords": [-1, 0]}]},
         "silicon has no check for the error of command 1, coords"),
        ({"gmem": {"bytes": 64}}, "silicon has no check for the error of command 0, read"),
    ],
)  # fmt: skip
def test_other_reasons(changes, sentence):
    assert why_not(case_with(**changes)) == sentence


@pytest.mark.parametrize(
    ("cores", "command"),
    [
        (8, LOAD | {"core": 7, "multicast": 0xFF}),
        (2, LOAD | {"multicast": 2}),
        (2, LOAD | {"core": 1}),
        (4, STORE | {"core": 3}),
        (3, COPY | {"src": ["global", 0], "dst": ["shared", 0], "multicast": 5}),
        (3, COPY | {"src": ["global", 0], "dst": ["shared", 0, 2]}),
        (2, COPY | {"src": ["shared", 0], "dst": ["shared", 0, 1]}),
        (2, COPY | {"src": ["shared", 0, 1], "dst": ["shared", 16, 0], "core": 1}),
        (2, COPY | {"src": ["shared", 0], "dst": ["shared", 0, 1], "reduce": "add", "element": "u32"}),
        (2, COPY | {"src": ["shared", 0], "dst": ["global", 0], "multicast": 2}),
        (2, COPY | {"src": ["global", 0, 1], "dst": ["shared", 0]}),
    ],
)
def test_cases_of_several_cores_run(cores, command):
    case = case_with(commands=[command], cores=cores)
    assert why_not(case) is None
    pack(case)


@pytest.mark.parametrize(
    ("cores", "command", "sentence"),
    [
        (9, LOAD, "silicon has clusters of at most 8 cores, and the case has 9"),
        (2, COPY | {"src": ["shared", 0, 1], "dst": ["global", 0]},
         "silicon copies from a core's own shared memory only"),
        (2, COPY | {"src": ["shared", 0, 1], "dst": ["shared", 16]},
         "silicon copies from a core's own shared memory only"),
        (2, COPY | {"src": ["shared", 0], "dst": ["shared", 16], "multicast": 3},
         "silicon copies from shared memory to one core only"),
        (2, COPY | {"src": ["shared", 0], "dst": ["shared", 16], "multicast": 4},
         "a job copies to a core that there is"),
        (1, LOAD | {"multicast": 1}, "a core alone ignores which cores receive, and silicon does not"),
        (2, LOAD | {"multicast": 0}, "a job has no multicast to nobody"),
    ],
)  # fmt: skip
def test_what_a_cluster_of_silicon_has_not_is_named(cores, command, sentence):
    case = case_with(commands=[command], cores=cores)
    assert no_counterpart(case) == why_not(case) == sentence


def test_a_core_that_does_not_exist_is_a_question():
    case = case_with(commands=[LOAD | {"multicast": 6}], cores=2)
    assert no_counterpart(case) is None
    assert why_not(case) == "silicon has no check for the error of command 0, cores"


def test_kinds_of_the_processing_engine_have_no_counterpart():
    case = {"name": "asked", "kind": "gemm", "type": "s8", "m": 1, "n": 1, "k": 1, "a": {"fill": 1}, "b": {"fill": 1}}
    assert why_not(read_case(case)) == "silicon has no counterpart of kind gemm"


@pytest.mark.parametrize(
    "changes",
    [
        {"size": [0, 8]},
        {"size": [16, (1 << 32) + 1]},
        {"stride": [1 << 40]},
        {"box": [8, 257]},
        {"box": [8, 0]},
        {"traversal": [1, 9]},
        {"traversal": [0, 0]},
        {"address": 8},
        {"fill": "nan"},
        {"swizzle": "32B", "box": [16, 4]},
        {"interleave": "16B"},
        {"mode": "im2col", "box": [], "channels": 4, "pixels": 1},
    ],
)
def test_what_our_rules_refuse_is_a_question_to_the_driver(changes):
    case = case_with(map_changes=changes)
    assert case.maps["x"].refused
    assert run_case(case).record["error"]
    assert why_not(case) is None
    pack(case)


def test_large_shared_memory_runs_if_little_of_it_is_used():
    top = SHARED_BYTES // 128 * 128 - 128
    assert why_not(case_with(smem={"bytes": 1 << 18}, commands=[LOAD | {"smem": top}])) is None


def test_the_error_of_a_command_leaves_it_a_counterpart():
    case = case_with(commands=[LOAD | {"smem": 64}])
    assert no_counterpart(case) is None


#: Instructions as the assembler of CUDA 13.0 accepts them: reductions of blocks within shared memory.
INTO_SHARED = {
    "add": {"u32", "s32", "u64"}, "min": {"u32", "s32"}, "max": {"u32", "s32"}, "inc": {"u32"}, "dec": {"u32"},
    "and": {"u32", "s32"}, "or": {"u32", "s32"}, "xor": {"u32", "s32"},
}  # fmt: skip


@pytest.mark.parametrize("op", [op.name.lower() for op in Reduction if op])
@pytest.mark.parametrize("into", ["shared", "global"])
def test_reductions_of_blocks(op, into):
    for element in Element:
        name = element.name.lower()
        copy = COPY | {"src": ["shared", 0], "dst": [into, 64], "reduce": op, "element": name}
        case = case_with(commands=[copy])
        legal = is_legal(Reduction[op.upper()], element)
        runs = legal and (into == "global" or name in INTO_SHARED[op])
        if runs:
            assert no_counterpart(case) is None
            kept = (op, into, name) == ("add", "global", "f32")
            assert why_not(case) == (
                "silicon does not flush subnormal numbers when it adds blocks of f32" if kept else None
            )
            pack(case)
        elif legal:
            assert why_not(case) == f"a job has no {op} of {name} into shared memory"
        else:
            assert why_not(case)
