"""Files and folders that are there whole or not at all."""

import subprocess
import sys

import pytest

from tilewright.sim.files import built_once, write_atomically


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


@pytest.mark.parametrize(("first", "second"), [("one", "zwölf"), (b"one", b"\xff")])
def test_file_is_written_whole_or_not_at_all(tmp_path, first, second):
    path = tmp_path / "new" / "x.v"
    write_atomically(path, first)
    write_atomically(path, second)
    with pytest.raises(TypeError):
        write_atomically(path, 2)
    assert path.read_bytes() == (second.encode() if isinstance(second, str) else second)
    assert list(path.parent.iterdir()) == [path]


def test_neither_amaranth_nor_numpy_is_needed():
    program = "import sys, tilewright.sim.files; sys.exit(bool({'amaranth', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
