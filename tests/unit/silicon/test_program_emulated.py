"""Kernels of clusters, rehearsed without a GPU: each block is a process, and barriers and loads are functions in C++.

The sources are those that nvcc builds. Only ``barriers.h`` and ``instructions.h``, whose functions are single
instructions, are replaced (``emulation/``). It shows that a kernel ends and computes what it should if the instructions
do what PTX says; it shows nothing of a GPU.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

import tilewright.silicon

SOURCES = Path(tilewright.silicon.__file__).with_name("cuda")
EMULATION = Path(__file__).with_name("emulation")
OPTIONS = ["-std=c++17", "-O1", "-Wall", "-Wno-unknown-pragmas", "-Werror", "-pthread", "-I."]


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """Builds a program of ``emulation/`` by its name; runs it with numbers, and returns the numbers that it prints."""
    folder = tmp_path_factory.mktemp("emulated")
    for name in ("carry_out.h", "share_all.h", "load_all.h", "job.h"):
        shutil.copy(SOURCES / name, folder)
    shutil.copytree(EMULATION, folder, dirs_exist_ok=True)
    (folder / "cuda.h").touch()

    def run(name, *numbers):
        if not (folder / name).exists():
            subprocess.run(["g++", *OPTIONS, "-o", name, f"{name}.cpp"], cwd=folder, check=True)
        command = [folder / name, *map(str, numbers)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return [[int(number) for number in line.split()] for line in done.stdout.splitlines()]

    return run


@pytest.mark.parametrize(
    ("cores", "owner", "mask", "expected", "value", "counted"),
    [
        (4, 1, 5, 6, 2, 4),
        (4, 0, 15, 6, 2, 8),  # 2 in the second phase
        (4, 1, 15, 2, 1, 0),  # two phases
        (2, 0, 1, 1, 1, 1),
        (8, 7, 255, 9000, 1000, 8000),
    ],
)
def test_arrivals_are_counted(emulated, cores, owner, mask, expected, value, counted):
    done_and_counted = [0, 1]
    wanted = [[*done_and_counted, counted if core == owner else 0] for core in range(cores)]
    assert emulated("arrive", cores, owner, mask, expected, value) == wanted


@pytest.mark.parametrize("multicast", [0, 1])
@pytest.mark.parametrize(("cores", "stages", "boxes"), [(2, 2, 40), (2, 6, 5), (4, 8, 100), (8, 8, 50)])
def test_every_block_gets_every_box(emulated, multicast, cores, stages, boxes):
    ((tensor, landed),) = emulated("share", cores, multicast, stages, boxes)
    assert landed == cores * tensor > 0
