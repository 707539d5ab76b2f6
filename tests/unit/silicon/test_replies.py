"""What is said of the GPU that gave answers."""

import re

import pytest

from tilewright.silicon.replies import provenance

#: CUDA 13.1, on a driver for CUDA 13.2.
GPU = ("Some GPU", 13020, 13010)


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """Puts an nvidia-smi in PATH that runs the given line, and nothing else."""

    def put(line):
        path = tmp_path / "nvidia-smi"
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return put


def test_the_driver_tells_its_version(smi):
    smi("echo 580.65.06; echo 1.2")
    found = provenance(*GPU)
    assert (found["gpu"], found["driver"], found["cuda"]) == ("Some GPU", "580.65.06", "13.1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])


@pytest.mark.parametrize("line", ["exit 1", ":"])
def test_a_driver_that_does_not_tell(smi, line):
    smi(line)
    assert provenance(*GPU)["driver"] == "for CUDA 13.2"


def test_no_tool_that_could_be_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance(*GPU)["driver"] == "for CUDA 13.2"
