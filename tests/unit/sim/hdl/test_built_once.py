"""Folders that are built once."""

from subprocess import CompletedProcess

import pytest

from tilewright.sim.hdl.built_once import built_once, complaint


def test_made_once_and_whole(tmp_path):
    folder, made = tmp_path / "cache" / "key", []

    def make(draft):
        assert draft.parent == folder.parent and not folder.exists()
        (draft / "file").write_text("x")
        made.append(draft)

    built_once(folder, make)
    built_once(folder, make)
    assert len(made) == 1
    assert (folder / "file").read_text() == "x"


def test_nothing_is_left_of_what_fails(tmp_path):
    def fails(draft):
        (draft / "file").touch()
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        built_once(tmp_path / "key", fails)
    assert [path.name for path in tmp_path.iterdir()] == ["key.lock"]


@pytest.mark.parametrize(
    ("stderr", "stdout", "line"),
    [("a\n Error: b \n", "error: c", "Error: b"), ("", "a\nb", "a"), ("", "", "no message")],
)
def test_complaint(stderr, stdout, line):
    assert complaint(CompletedProcess([], 1, stdout, stderr)) == line
