"""Kinds of arguments of the command line: each is judged before any work is done.

Each is made for the ``type`` of an ``argparse`` argument, and raises ``ArgumentTypeError`` with the rest of a sentence.
"""

import os
from argparse import ArgumentTypeError
from pathlib import Path

__all__ = ["add_out", "between", "integer", "output_file", "output_folder"]


def integer(low, high):
    """An integer from ``low`` to ``high``."""
    return lambda text: between(text, int, low, high)


def between(text, kind, low, high):
    """The number of ``kind``, ``int`` or ``float``, that ``text`` says, if it is ``low`` to ``high``."""
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        raise ArgumentTypeError(f"must be {low} to {high}, not {text!r}")
    return value


def add_out(parser, metavar, meaning, default=None):
    """Adds ``--out``: a folder if it is called ``FOLDER`` or ``DIR``, else a file. The help ends with the default."""
    kind = output_folder if metavar in ("FOLDER", "DIR") else output_file
    given = {} if default is None else {"default": str(default)}
    shown = " (%(default)s)" if given else ""
    parser.add_argument("--out", metavar=metavar, type=kind, help=f"{meaning}{shown}", **given)


def output_file(text):
    """The path of a file that can be written, with its folder if need be."""
    path = _path(text, "file")
    if path.is_dir():
        raise ArgumentTypeError(f"must name a file, not the folder {text}")
    _check_folder(path.parent, text)
    if path.exists() and not os.access(path, os.W_OK):
        raise ArgumentTypeError(f"{text} may not be written")
    return path


def output_folder(text):
    """The path of a folder that can be written to, or made."""
    path = _path(text, "folder")
    _check_folder(path, text)
    return path


def _path(text, what):
    if not text:
        raise ArgumentTypeError(f"must name a {what}, not be empty")
    try:
        Path(text).exists()
    except OSError as error:  # a name that is too long
        raise ArgumentTypeError(f"cannot be: {error.strerror}") from None
    return Path(text)


def _check_folder(folder, text):
    """Whether a folder is there and may be written to, or else the one in which it would be made."""
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise ArgumentTypeError(f"{text} cannot be made: {folder} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ArgumentTypeError(f"{text} cannot be made: {folder} may not be written to")
