"""What is said of the GPU that gave answers."""

import re

import pytest

from tilewright.sim.silicon.provenance import provenance
from tilewright.sim.silicon.replies import Hello


def hello():
    """Of CUDA 13.1, on a driver for CUDA 13.2."""
    fields = dict.fromkeys(Hello._fields, 0) | {"gpu": "Some GPU", "driver": 13020, "runtime": 13010}
    return Hello(**fields)


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
    found = provenance(hello())
    assert (found["gpu"], found["driver"], found["cuda"]) == ("Some GPU", "580.65.06", "13.1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])


@pytest.mark.parametrize("line", ["exit 1", ":"])
def test_a_driver_that_does_not_tell(smi, line):
    smi(line)
    assert provenance(hello())["driver"] == "for CUDA 13.2"


def test_no_tool_that_could_be_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance(hello())["driver"] == "for CUDA 13.2"
