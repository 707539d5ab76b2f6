"""Kinds of arguments: what is refused, and with which words."""

from argparse import ArgumentTypeError

import pytest

from tilewright import arguments
from tilewright.arguments import integer, output_file, output_folder


def refusal(kind, text):
    with pytest.raises(ArgumentTypeError) as caught:
        kind(str(text))
    return str(caught.value)


def test_numbers():
    assert [integer(-1, 3)(text) for text in ("-1", "3", " 2 ")] == [-1, 3, 2]
    for text in ("", "-2", "4", "1.5", "x", "0x1"):
        assert refusal(integer(-1, 3), text) == f"must be -1 to 3, not {text!r}"


def test_files(tmp_path):
    (tmp_path / "old").touch()
    for name in ("old", "new", "a/b/new"):
        assert output_file(str(tmp_path / name)) == tmp_path / name
    assert refusal(output_file, "") == "must name a file, not be empty"
    assert refusal(output_file, tmp_path) == f"must name a file, not the folder {tmp_path}"
    below = tmp_path / "old" / "x" / "y"
    assert refusal(output_file, below) == f"{below} cannot be made: {tmp_path}/old is no folder"
    assert refusal(output_file, tmp_path / (300 * "n")) == "cannot be: File name too long"
    assert not (tmp_path / "a").exists(), "nothing is made"


def test_folders(tmp_path):
    (tmp_path / "file").touch()
    for name in (".", "new", "a/b"):
        assert output_folder(str(tmp_path / name)) == tmp_path / name
    assert refusal(output_folder, "") == "must name a folder, not be empty"
    assert refusal(output_folder, tmp_path / "file") == (
        f"{tmp_path}/file cannot be made: {tmp_path}/file is no folder"
    )


def test_places_without_permission(tmp_path, monkeypatch):
    """Nothing is forbidden to the superuser, who may run the tests: the answer of the system is given here."""
    (tmp_path / "old").touch()
    monkeypatch.setattr(arguments.os, "access", lambda path, mode: False)
    new = tmp_path / "new" / "x"
    assert refusal(output_file, new) == f"{new} cannot be made: {tmp_path} may not be written to"
    assert refusal(output_folder, new) == f"{new} cannot be made: {tmp_path} may not be written to"
    monkeypatch.setattr(arguments.os, "access", lambda path, mode: path == tmp_path)
    assert refusal(output_file, tmp_path / "old") == f"{tmp_path}/old may not be written"
