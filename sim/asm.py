"""``tilewright asm``: commands from their text to 512-bit words, and back."""

import sys
from pathlib import Path

from tilewright.golden.spec import COMMAND

from .assembler import assemble
from .disassembler import disassemble
from .usage import UsageError

__all__ = ["configure", "run"]

_DIGITS = COMMAND.bits // 4


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("file", metavar="FILE", type=Path, help="commands; with --back, words")
    parser.add_argument("--back", action="store_true", help="write the text of words, one hexadecimal number a line")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write there, not to the standard output")


def run(args):
    """Runs the subcommand; returns 0."""
    try:
        text = args.file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{args.file}: cannot be read: {getattr(error, 'strerror', 'it is no text')}") from None
    lines = map(disassemble, _words(text)) if args.back else (f"{word:0{_DIGITS}x}" for word in assemble(text))
    output = "".join(f"{line}\n" for line in lines)
    if args.out is None:
        sys.stdout.write(output)
        return 0
    try:
        args.out.write_text(output, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{args.out}: cannot be written: {error.strerror}") from None
    return 0


def _words(text):
    """The numbers of a file of words."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                word = int(line, 16)
            except ValueError:
                word = -1
            if not 0 <= word < 1 << COMMAND.bits:
                raise UsageError(f"line {number}: {line.strip()!r} must be a hexadecimal number of {COMMAND.bits} bits")
            yield word
