"""The replay program: nvcc accepts it, it has every instruction that a job can ask for, it says if there is no GPU."""

import re
import shutil
import subprocess
from collections import Counter
from io import BytesIO
from itertools import product
from pathlib import Path

import pytest

import tilewright.silicon
from tilewright.silicon.packing import RECORDS, Status
from tilewright.silicon.replies import read_hello

OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
#: Every form of the instructions on tensors: five dimensions of tiles, and three to five of im2col.
FORMS = [*product("12345", ["tile"]), *product("345", ["im2col"])]
#: Elements that PTX lets a block copy reduce, by the memory in which they are.
REDUCED = {
    "global": {
        "add": "u32 s32 u64 f32 noftz.f16 noftz.bf16",
        "min": "u32 s32 u64 s64 f16 bf16",
        "max": "u32 s32 u64 s64 f16 bf16",
        "inc": "u32",
        "dec": "u32",
        "and": "b32 b64",
        "or": "b32 b64",
        "xor": "b32 b64",
    },
    "shared::cluster": {
        "add": "u32 s32 u64",
        "min": "u32 s32",
        "max": "u32 s32",
        "inc": "u32",
        "dec": "u32",
        "and": "b32",
        "or": "b32",
        "xor": "b32",
    },
}
BARRIER = "mbarrier::complete_tx::bytes"
#: Later GPUs have a slower multicast; the program is for those too.
ADVICE = re.compile(r"Advisory: '\.multicast::cluster' modifier on instruction")
#: Unlike stores and reductions, loads and prefetches have offsets.
NO_OFFSETS = {"tile": "tile", "im2col": "im2col_no_offs"}


def ptx_instructions():
    """Name of every bulk instruction that the program should have."""
    for rank, mode in FORMS:
        load = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.{BARRIER}"
        yield from (load, f"{load}.multicast::cluster")
        yield f"cp.async.bulk.tensor.{rank}d.global.shared::cta.{NO_OFFSETS[mode]}.bulk_group"
        yield f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global.{mode}"
        for operation in OPERATIONS:
            reduction = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}"
            yield f"{reduction}.{NO_OFFSETS[mode]}.bulk_group"
    yield f"cp.async.bulk.shared::cluster.global.{BARRIER}"
    yield f"cp.async.bulk.shared::cluster.global.{BARRIER}.multicast::cluster"
    yield f"cp.async.bulk.shared::cluster.shared::cta.{BARRIER}"
    yield "cp.async.bulk.global.shared::cta.bulk_group"
    yield "cp.async.bulk.prefetch.L2.global"
    for memory, ending in (("global", "bulk_group"), ("shared::cluster", BARRIER)):
        for operation, types in REDUCED[memory].items():
            for element in types.split():
                yield f"cp.reduce.async.bulk.{memory}.shared::cta.{ending}.{operation}.{element}"


def machine_instructions():
    """The same as they are called in machine code; those of signed and unsigned bits alike have one name."""
    for rank, mode in FORMS:
        suffix = f"{rank}D.IM2COL" if mode == "im2col" else f"{rank}D"
        yield from (f"UTMALDG.{suffix}", f"UTMALDG.{suffix}.MULTICAST")
        yield f"UTMASTG.{suffix}"
        yield f"UTMAPF.L2.{suffix}"
        yield from (f"UTMAREDG.{suffix}.{operation.upper()}" for operation in OPERATIONS)
    yield from ("UBLKCP.S.G", "UBLKCP.S.G.MULTICAST", "UBLKCP.S.S", "UBLKCP.G.S", "UBLKPF.L2")
    names = {"u32": "", "b32": "", "s32": ".S32", "u64": ".U64", "b64": ".U64", "s64": ".S64"}
    for memory, letter in (("global", "G"), ("shared::cluster", "S")):
        for operation, types in REDUCED[memory].items():
            for element in types.split():
                kind = element.removeprefix("noftz.")
                yield f"UBLKRED.{letter}.S.{operation.upper()}{names.get(kind, f'.{kind.upper()}.RN')}"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """What the one run of nvcc gives: a folder with `replay` and `replay.ptx`, and what nvcc said."""
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("there is no nvcc in PATH")
    folder = tmp_path_factory.mktemp("silicon")
    source = Path(tilewright.silicon.__file__).with_name("cuda") / "replay.cu"
    options = ["-arch=sm_90", "-std=c++17", "-O2", "-Xcompiler", "-Wall", "--keep", "--keep-dir", str(folder)]
    done = subprocess.run(
        [nvcc, *options, "-o", str(folder / "replay"), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = (done.stdout + done.stderr).splitlines()
    return folder, [line for line in said if not ADVICE.search(line)]


def test_compiles_without_a_warning(built):
    _, said = built
    assert said == []


def test_every_instruction_is_there(built):
    folder, _ = built
    text = (folder / "replay.ptx").read_text()
    found = re.findall(r"^\s*(cp\.(?:reduce\.)?async\.bulk\.(?!wait_group)[\w.:]+) ", text, re.MULTILINE)
    assert Counter(found) == Counter(ptx_instructions())


def test_arrivals_are_remote(built):
    """The kernel maps the barrier of another block, and arrives at it in the window of the cluster."""
    folder, _ = built
    text = (folder / "replay.ptx").read_text()
    assert "mapa.shared::cluster.u32 " in text
    assert "mbarrier.arrive.release.cluster.shared::cluster.b64 _, " in text


def test_every_instruction_is_in_the_machine_code(built):
    folder, _ = built
    if not shutil.which("cuobjdump"):
        pytest.skip("there is no cuobjdump in PATH")
    done = subprocess.run(["cuobjdump", "-sass", str(folder / "replay")], capture_output=True, text=True, check=True)
    found = re.findall(r"\s((?:UTMA(?:LDG|STG|REDG|PF)|UBLK[A-Z]+)\.[\w.]+)", done.stdout)
    assert set(found) == set(machine_instructions())


def test_says_that_there_is_no_gpu(built):
    folder, _ = built
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    done = subprocess.run([folder / "replay"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stderr == b""
    assert len(done.stdout) == RECORDS["Hello"].itemsize
    hello = read_hello(BytesIO(done.stdout).read)
    assert hello.status == Status.FAILED
    assert re.fullmatch(r"[\w .:'-]+", hello.message)
