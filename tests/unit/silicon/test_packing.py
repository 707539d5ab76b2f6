"""Jobs as bytes: the same records as a C++ program that includes ``job.h`` has, and what they say about a case."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tilewright.silicon
from support.replay import read_case
from tilewright.golden import tx_bytes
from tilewright.silicon.packing import (
    MAGIC,
    RECORDS,
    SHARED_BYTES,
    Ending,
    Op,
    Status,
    counted_bytes,
    issues,
    job_shared_bytes,
    pack,
)

SOURCES = Path(tilewright.silicon.__file__).parent / "cuda"
#: Enumerations of ``job.h``, and what of them Python has.
ENUMS = {"Op": Op, "Outcome": Ending, "Status": Status}

TILE = {"element": "f16", "address": 64, "size": [40, 9], "stride": [96], "box": [16, 4], "traversal": [1, 2],
        "swizzle": "32B", "l2_promotion": 128, "fill": "nan"}  # fmt: skip
IM2COL = {"mode": "im2col", "element": "bf16", "address": 32, "size": [32, 9, 7, 3], "stride": [64, 640, 5120],
          "lower": [-1, -2], "upper": [1, -128], "channels": 8, "pixels": 33, "interleave": "none"}  # fmt: skip
#: Every field of a map of rank 5 is another number.
FULL = {"element": "u8", "address": (1 << 64) - 32, "size": [1 << 32, 2, 3, 4, 5],
        "stride": [32, 64, 96, (1 << 40) - 32], "box": [256, 7, 8, 9, 10],
        "traversal": [2, 3, 4, 5, 6], "interleave": "32B", "swizzle": "32B"}  # fmt: skip
COMMANDS = [
    {"op": "load", "map": "x", "coords": [-3, 5], "smem": 128, "repeat": 2, "smem_step": 256},
    {"op": "store", "map": "x", "coords": [0, 1], "smem": 384, "async": True},
    {"op": "reduce", "map": "x", "coords": [8, 1], "smem": 384, "reduce": "max"},
    {"op": "prefetch", "map": "x", "coords": [8, 1]},
    {"op": "load", "map": "y", "coords": [0, -1, 2, 1], "offsets": [200, 3], "smem": 1024},
    {"op": "copy_block", "src": ["global", 16], "dst": ["shared", 32], "size": 48},
    {"op": "copy_block", "src": ["shared", 64], "dst": ["global", 80], "size": 96},
    {"op": "copy_block", "src": ["shared", 0], "dst": ["shared", 16], "size": 16},
    {"op": "copy_block", "src": ["shared", 0], "dst": ["global", 16], "size": 16, "reduce": "add", "element": "bf16"},
    {"op": "copy_block", "src": ["shared", 0], "dst": ["shared", 16], "size": 16, "reduce": "xor", "element": "s32"},
    {"op": "prefetch_block", "src": 1 << 40, "size": 4096},
    {"op": "commit"},
    {"op": "wait", "count": 1},
    {"op": "wait_all"},
]
OPS = [Op.LOAD, Op.LOAD, Op.STORE, Op.REDUCE, Op.PREFETCH, Op.LOAD, Op.GLOBAL_TO_SHARED, Op.SHARED_TO_GLOBAL,
       Op.SHARED_TO_SHARED, Op.REDUCE_TO_GLOBAL, Op.REDUCE_TO_SHARED, Op.PREFETCH_BLOCK, *[Op.NOTHING] * 3]  # fmt: skip


def case_with(**changes):
    case = {
        "name": "packed",
        "kind": "tmau",
        "gmem": {"bytes": 8192, "init": {"mix": 3}},
        "smem": {"bytes": 4088, "init": {"mix": 4}},
        "maps": {"x": TILE, "y": IM2COL, "z": FULL},
        "commands": COMMANDS,
    }
    return read_case(case | changes)


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """Compiles the body of a C++ program that includes ``job.h``; returns the lines that it prints for an input."""
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("host")

    def run(body, data=b""):
        source = folder / "host.cc"
        source.write_text(
            '#include "job.h"\n#include <cstddef>\n#include <cstdio>\n#include <iostream>\n#include <vector>\n'
            f"using namespace tilewright;\nint main() {{\n{body}\n}}\n"
        )
        command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}", "-o", "host", "host.cc"]
        subprocess.run(command, cwd=folder, check=True)
        return (
            subprocess.run([folder / "host"], input=data, check=True, capture_output=True).stdout.decode().split("\n")
        )

    return run


def test_records_are_those_of_the_header(host):
    lines, expected = [], []
    for name, dtype in RECORDS.items():
        lines.append(f'std::cout << "{name} " << sizeof({name}) << "\\n";')
        expected.append(f"{name} {dtype.itemsize}")
        for field in dtype.names:
            member = f"{name}::{field}"
            lines.append(f'printf("{member} %zu %zu\\n", offsetof({name}, {field}), sizeof({member}));')
            kind, offset = dtype.fields[field][:2]
            expected.append(f"{member} {offset} {kind.itemsize}")
    printed = host("std::ios::sync_with_stdio(true);\n" + "\n".join(lines))
    assert printed == [*expected, ""]


def test_no_field_of_a_record_is_left_out():
    for name, dtype in RECORDS.items():
        ends = [dtype.fields[field][1] + dtype.fields[field][0].itemsize for field in dtype.names]
        assert [0, *ends] == [*(dtype.fields[field][1] for field in dtype.names), dtype.itemsize], name


def test_numbers_are_those_of_the_header(host):
    lines = [
        f'printf("{name}::{member.name} %u\\n", static_cast<uint32_t>({name}::{member.name}));'
        for name, enum in ENUMS.items()
        for member in enum
    ]
    lines.append(r'printf("%u %u %u\n", HELLO, JOB, REPLY);')
    expected = [f"{name}::{member.name} {member:d}" for name, enum in ENUMS.items() for member in enum]
    assert host("\n".join(lines)) == [*expected, " ".join(str(number) for number in MAGIC.values()), ""]


#: Prints a job: every number of every record, in order, then both memories as sums.
PRINTER = r"""
    auto take = [](auto &record) { return fread(&record, sizeof record, 1, stdin) == 1; };
    JobHeader h;
    if (!take(h)) return 1;
    printf("%u %u %u %u %u %lu\n", h.magic, h.maps, h.more_cores, h.commands, h.shared_bytes, h.global_bytes);
    for (uint32_t i = 0; i < h.maps; ++i) {
        MapRecord m;
        if (!take(m)) return 1;
        printf("%lu", m.address);
        for (auto v : m.size) printf(" %lu", v);
        for (auto v : m.stride) printf(" %lu", v);
        for (auto v : m.box) printf(" %u", v);
        for (auto v : m.step) printf(" %u", v);
        for (auto v : m.lower) printf(" %d", v);
        for (auto v : m.upper) printf(" %d", v);
        printf(" %u %u %u %u %u %u %u %u %u %u\n", m.channels, m.pixels, m.im2col, m.type, m.rank, m.interleave,
               m.swizzle, m.promotion, m.fill, m.reserved);
    }
    for (uint32_t i = 0; i < h.commands; ++i) {
        CommandRecord c;
        if (!take(c)) return 1;
        printf("%lu %lu %u %u %u", c.source, c.destination, c.size, c.op, c.map);
        for (auto v : c.coords) printf(" %d", v);
        for (auto v : c.offsets) printf(" %u", v);
        printf(" %u %u %u %u %u %u %u\n", c.shared, c.reduction, c.type, c.expected, c.core, c.receiver, c.multicast);
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; i < h.global_bytes; ++i) sum += (i + 1) * getchar();
    printf("%lu\n", sum);
    sum = 0;
    for (uint64_t i = 0; i < h.shared_bytes; ++i) sum += (i + 1) * getchar();
    printf("%lu\n%d\n", sum, getchar());
    return 0;
"""


def numbers(text):
    return [int(word) for word in text.split()]


def test_a_program_in_c_reads_what_python_packed(host):
    case = case_with()
    header, *rest = (numbers(line) for line in host(PRINTER, pack(case)) if line)
    assert header == [MAGIC["JobHeader"], 3, 0, 15, 4096, 8192]
    tile, im2col, full = rest[:3]
    assert tile == [64, 40, 9, 0, 0, 0, 96, 0, 0, 0, 16, 4, 0, 0, 0, 1, 2, 0, 0, 0, *[0] * 6,
                    0, 0, 0, 6, 2, 0, 1, 2, 1, 0]  # fmt: skip
    assert im2col == [32, 32, 9, 7, 3, 0, 64, 640, 5120, 0, *[0] * 5, 1, 1, 1, 1, 0, -1, -2, 0, 1, -128, 0,
                      8, 33, 1, 9, 4, 0, 0, 0, 0, 0]  # fmt: skip
    assert full == [(1 << 64) - 32, 1 << 32, 2, 3, 4, 5, 32, 64, 96, (1 << 40) - 32, 256, 7, 8, 9, 10, 2, 3, 4, 5, 6,
                    *[0] * 6, 0, 0, 0, 0, 5, 2, 1, 0, 0, 0]  # fmt: skip
    commands = rest[3:-3]
    assert [command[3] for command in commands] == OPS
    assert {tuple(command[-3:]) for command in commands} == {(0, 0, 0)}, "one core is alone"
    commands = [command[:-3] for command in commands]
    #                     source dest size op map coords offsets            smem reduction type expected
    assert commands[0] == [0, 0, 0, Op.LOAD, 0, -3, 5, 0, 0, 0, 0, 0, 0, 128, 0, 0, 64]
    assert commands[1] == [0, 0, 0, Op.LOAD, 0, -3, 5, 0, 0, 0, 0, 0, 0, 384, 0, 0, 64]
    assert commands[2] == [0, 0, 0, Op.STORE, 0, 0, 1, 0, 0, 0, 0, 0, 0, 384, 0, 0, 0]
    assert commands[3] == [0, 0, 0, Op.REDUCE, 0, 8, 1, 0, 0, 0, 0, 0, 0, 384, 3, 0, 0]
    assert commands[4] == [0, 0, 0, Op.PREFETCH, 0, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert commands[5] == [0, 0, 0, Op.LOAD, 1, 0, -1, 2, 1, 0, 200, 3, 0, 1024, 0, 0, 33 * 16]
    nowhere = [0] * 10
    assert commands[6] == [16, 32, 48, Op.GLOBAL_TO_SHARED, *nowhere, 0, 0, 48]
    assert commands[7] == [64, 80, 96, Op.SHARED_TO_GLOBAL, *nowhere, 0, 0, 0]
    assert commands[8] == [0, 16, 16, Op.SHARED_TO_SHARED, *nowhere, 0, 0, 16]
    assert commands[9] == [0, 16, 16, Op.REDUCE_TO_GLOBAL, *nowhere, 1, 6, 0]
    assert commands[10] == [0, 16, 16, Op.REDUCE_TO_SHARED, *nowhere, 8, 2, 16]
    assert commands[11] == [1 << 40, 0, 4096, Op.PREFETCH_BLOCK, *nowhere, 0, 0, 0]
    gmem, smem = case.global_contents(), case.smem.contents()
    weights = np.arange(1, 8193, dtype=np.uint64)
    assert rest[-3:] == [[int((gmem * weights).sum())], [int((smem * weights[:4088]).sum())], [-1]]


CLUSTER = [
    {"op": "load", "map": "x", "coords": [0, 0], "smem": 128, "core": 3, "multicast": 0x15},
    {"op": "load", "map": "x", "coords": [0, 0], "smem": 128, "core": 3},
    {"op": "copy_block", "src": ["global", 0], "dst": ["shared", 0], "size": 16, "multicast": 0x2},
    {"op": "copy_block", "src": ["global", 0], "dst": ["shared", 0, 4], "size": 16, "core": 1},
    {"op": "copy_block", "src": ["shared", 0], "dst": ["shared", 16, 4], "size": 16, "core": 2},
    {"op": "copy_block", "src": ["shared", 0], "dst": ["shared", 16], "size": 16, "core": 2},
    {"op": "copy_block", "src": ["shared", 0], "dst": ["shared", 16], "size": 16, "core": 2, "multicast": 0x8,
     "reduce": "add", "element": "u32"},
    {"op": "copy_block", "src": ["shared", 0], "dst": ["global", 16], "size": 16, "core": 2, "multicast": 0x8},
    {"op": "store", "map": "x", "coords": [0, 0], "smem": 128, "core": 4},
    {"op": "load", "map": "x", "coords": [0, 0], "smem": 128, "multicast": 0x8002},
    {"op": "arrive", "core": 3, "from": 0x15, "expected": 700, "value": 70},
]  # fmt: skip
#: Issuer, core of the destination within shared memories, mask; and the cores in which something lands.
DELIVERIES = [
    (3, 0, 0x15, {0, 2, 4}), (3, 0, 0, {3}), (0, 0, 2, {1}), (1, 0, 16, {4}), (2, 4, 0, {4}), (2, 2, 0, {2}),
    (2, 3, 0, {3}), (2, 0, 0, set()), (4, 0, 0, set()), (0, 0, 0x8002, {1}),
    (3, 0, 0x15, {3}),
]  # fmt: skip


def test_cores_of_a_cluster(host):
    case = case_with(commands=CLUSTER, maps={"x": TILE}, cores=5)
    header, _, *rest = (numbers(line) for line in host(PRINTER, pack(case)) if line)
    assert header == [MAGIC["JobHeader"], 1, 4, len(CLUSTER), 4096, 8192]
    assert [tuple(command[-3:]) for command in rest[:-3]] == [delivery[:3] for delivery in DELIVERIES]
    #                           source dest size op map coords offsets smem reduction type expected
    assert rest[-4][:-3] == [0, 0, 70, Op.ARRIVE, *[0] * 12, 700]
    assert rest[-1] == [-1], "one shared memory for all"
    lands = [{core for core in range(5) if issue.lands_in(core)} for issue in issues(case)]
    assert lands == [delivery[3] for delivery in DELIVERIES]


@pytest.mark.parametrize(
    ("element", "number"),
    [
        ("u8", 0), ("s8", 0), ("f8e4m3", 0), ("f8e5m2", 0), ("u16", 1), ("s16", 1), ("u32", 2), ("s32", 3), ("u64", 4),
        ("s64", 5), ("f16", 6), ("f32", 10), ("f64", 8), ("bf16", 9), ("tf32", 11),
    ],
)  # fmt: skip
def test_every_element_has_the_type_of_the_driver(element, number):
    case = case_with(maps={"x": TILE | {"element": element, "fill": "zero"}}, commands=[])
    (record,) = np.frombuffer(pack(case), RECORDS["MapRecord"], 1, RECORDS["JobHeader"].itemsize)
    assert record["type"] == number


def test_values_that_our_descriptor_cannot_hold_go_to_the_driver():
    case = case_with(maps={"x": TILE | {"size": [0, 1 << 33], "traversal": [1, 0]}}, commands=COMMANDS[:1])
    assert case.maps["x"].word is None
    job = pack(case)
    (record,) = np.frombuffer(job, RECORDS["MapRecord"], 1, RECORDS["JobHeader"].itemsize)
    assert record["size"].tolist() == [0, 1 << 33, 0, 0, 0]
    assert record["step"].tolist() == [1, 0, 0, 0, 0]


def test_bytes_are_counted_as_golden_does():
    case = case_with()
    tile = tx_bytes(case.maps["x"].tmap)
    assert [counted_bytes(issue) for issue in issues(case)] == [
        tile, tile, tile, tile, 0, 33 * 16, 48, 96, 16, 16, 16, 0, 0, 0, 0
    ]  # fmt: skip


@pytest.mark.parametrize(("size", "limit", "job"), [(1, 64, 16), (48, 64, 48), (1 << 20, SHARED_BYTES, SHARED_BYTES),
                                                    (1 << 20, 100, 96)])  # fmt: skip
def test_shared_memory_of_a_job(size, limit, job):
    case = case_with(smem={"bytes": size}, commands=[])
    assert job_shared_bytes(case, limit) == job
    assert len(pack(case, limit)) == 24 + 3 * 184 + 8192 + job
