"""Files and folders that are there whole or not at all."""

import errno
import os
import re
import subprocess
import sys

import pytest

from tilewright.errors import HostError
from tilewright.files import built_once, write_atomically


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
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_used_without_a_lock(tmp_path):
    (tmp_path / "key").mkdir()
    (tmp_path / "other.unfinished").mkdir()
    before = tmp_path.stat().st_mtime_ns
    built_once(tmp_path / "key", lambda draft: pytest.fail("it is there"))
    assert tmp_path.stat().st_mtime_ns == before


def test_what_a_killed_process_left_goes_and_what_a_living_one_makes_stays(tmp_path):
    program = (
        "import os, sys, time; from pathlib import Path; from tilewright.files import built_once\n"
        "def make(draft):\n"
        "    (draft / 'half').touch(); print('begun', flush=True); sys.stdin.read()\n"
        "built_once(Path(sys.argv[1]), make)"
    )
    processes = {}
    for name in ("killed", "living"):
        command = [sys.executable, "-c", program, str(tmp_path / name)]
        processes[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert processes[name].stdout.readline() == "begun\n"
    processes["killed"].kill()
    processes["killed"].communicate()
    assert {path.name for path in tmp_path.iterdir()} == {"killed.unfinished", "living.unfinished"}

    built_once(tmp_path / "third", lambda draft: None)
    assert {path.name for path in tmp_path.iterdir()} == {"third", "living.unfinished"}
    processes["living"].communicate()
    assert {path.name for path in tmp_path.iterdir()} == {"third", "living"}


def test_who_comes_later_begins_anew_after_a_killed_one(tmp_path):
    (tmp_path / "key.unfinished").mkdir()
    (tmp_path / "key.unfinished" / "half").touch()
    built_once(tmp_path / "key", lambda draft: (draft / "whole").touch())
    assert [path.name for path in (tmp_path / "key").iterdir()] == ["whole"]
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_folder_that_takes_nothing_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    parent = tmp_path / "file" / "sim"
    sentence = f"nothing can be built in {parent}: Not a directory; TILEWRIGHT_BUILD names another build folder"
    with pytest.raises(HostError, match=f"^{re.escape(sentence)}$"):
        built_once(parent / "key", lambda draft: pytest.fail("nothing may be begun"))


def test_full_disk_is_one_sentence(tmp_path):
    def fills(draft):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sentence = f"nothing can be built in {tmp_path}: No space left on device; TILEWRIGHT_BUILD names another"
    with pytest.raises(HostError, match=f"^{re.escape(sentence)} build folder$"):
        built_once(tmp_path / "key", fills)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("value", "folder"), [(None, "build"), ("", "build"), ("/x y", "/x y")])
def test_build_folder_is_that_of_the_environment(value, folder):
    program = "from tilewright.files import BUILD; print(BUILD)"
    environment = {name: text for name, text in os.environ.items() if name != "TILEWRIGHT_BUILD"}
    environment |= {} if value is None else {"TILEWRIGHT_BUILD": value}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == f"{folder}\n"


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
    program = "import sys, tilewright.files; sys.exit(bool({'amaranth', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
