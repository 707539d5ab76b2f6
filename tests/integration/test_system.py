"""The reference system: firmware on a simulated processor runs a network, and its mistakes end with a sentence."""

import importlib.util
from pathlib import Path

import pytest

from tilewright.results import record
from tilewright.tools.docs.figures import stale

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="needs pip install 'tilewright[soc]'"
)


@pytest.mark.long
def test_the_firmware_answers_as_golden():
    from tilewright.system.run import run_system

    outcome = run_system()
    assert outcome.problems == []
    assert "this is a 7\n" in outcome.text and outcome.subject == "a 7 was written"
    assert list(outcome.phases) == ["load", "input", "run", "output"]


def test_the_sizes_of_the_library(tmp_path):
    """What the page states, and that a program which runs a model has no more than 3 KiB of it."""
    from tilewright.system.build import library_sizes, segments_of
    from tilewright.tools.package.library import library_files

    sources = library_files()
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    sizes = library_sizes(tmp_path, sources)
    record("library-size", **sizes, everything=sizes["library"] + sizes["sentences"])
    assert 1000 < sizes["model"] <= 3 * 1024
    segments = segments_of((tmp_path / "model_only.elf").read_bytes())
    assert sum(len(segment.data) for segment in segments) >= sizes["model"]
    assert not stale("library-size", Path(__file__).parents[2])
