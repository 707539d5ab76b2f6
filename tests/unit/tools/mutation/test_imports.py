"""Files that a file needs, and the tests of a file of hardware."""

from pathlib import Path

from tilewright.tools.mutation.imports import closure, module_name, proofs_of, unit_tests_of


def names(paths):
    return [path.as_posix() for path in paths]


def test_what_a_file_needs():
    needed = names(closure(Path("tests/unit/bus/test_registers.py")))
    assert {"hw/bus/registers.py", "hw/bus/__init__.py", "tests/support/streams.py", "spec/__init__.py"} <= set(needed)
    assert "hw/pe/top.py" not in needed


def test_names_of_modules():
    assert module_name("hw/bus/registers.py") == "tilewright.hw.bus.registers"
    assert module_name("hw/bus/__init__.py") == "tilewright.hw.bus"
    assert module_name("tests/support/streams.py") == "support.streams"
    assert module_name("tilewright/files.py") == "tilewright.files"


def test_what_judges_a_file():
    requests = Path("hw/tmau/walk/requests.py")
    assert names(unit_tests_of(requests)) == ["tests/unit/tmau/walk/test_requests.py"]
    assert names(proofs_of(requests)) == ["tests/formal/tmau/walk/test_requests.py"]
    assert names(unit_tests_of(Path("hw/bus/axi4.py"))) == ["tests/unit/bus/test_axi4.py"], "not test_axi4_lite.py"
    # Ports of the cluster's memory have no test of their own.
    assert "tests/unit/cluster/memory/test_top.py" in names(unit_tests_of(Path("hw/cluster/memory/reads.py")))
