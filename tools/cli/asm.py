"""``tilewright asm``: commands, instructions, jobs or programs as text."""

import sys
from pathlib import Path

from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import write_atomically
from tilewright.sim.asm import conv, core, pe, tmau

__all__ = ["configure", "run"]


def _each(write):
    """Writes the words of a file one by one."""
    return lambda words: map(write, words)


_STANDARD_INPUT = Path("-")

#: Readers, writers and widths of all kinds of word.
_TMAU = tmau.assemble, _each(tmau.disassemble), tmau.BITS
_PE = pe.assemble_program, _each(pe.disassemble_instruction), pe.BITS
_CONV = conv.assemble_jobs, _each(conv.disassemble_job), conv.BITS
_CORE = core.assemble_core, core.disassemble_core, core.BITS


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("file", metavar="FILE", type=Path,
                        help="text, or with --back words; - is the standard input")  # fmt: skip
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--pe", action="store_true", help="instructions of the processing engine, not commands")
    kinds.add_argument("--conv", action="store_true", help="jobs of the convolution engine, not commands")
    kinds.add_argument("--core", action="store_true", help="programs of the command processor, not commands")
    parser.add_argument("--back", action="store_true", help="disassemble words, one hexadecimal number a line")
    add_out(parser, "FILE", "write to this file, not to standard output")


def run(args):
    """Runs the subcommand; returns 0."""
    piped = args.file == _STANDARD_INPUT
    if args.out and args.out.exists() and not piped and args.file.exists() and args.out.samefile(args.file):
        raise UsageError(f"--out must not be the file that is read, {args.file}")
    try:
        text = _standard_input() if piped else args.file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        name = "the standard input" if piped else args.file
        raise UsageError(f"{name}: cannot be read: {getattr(error, 'strerror', 'it is not text')}") from None
    read, write, bits = _PE if args.pe else _CONV if args.conv else _CORE if args.core else _TMAU
    lines = write(_words(text, bits)) if args.back else (f"{word:0{bits // 4}x}" for word in read(text))
    output = "".join(f"{line}\n" for line in lines)
    if args.out is None:
        sys.stdout.write(output)
    else:
        write_atomically(args.out, output)
    return 0


def _standard_input():
    if sys.stdin is None:
        raise UsageError("the standard input is closed")
    return sys.stdin.buffer.read().decode("utf-8")


def _words(text, bits):
    """The numbers of a file of words of ``bits`` bits."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                word = int(line, 16)
            except ValueError:
                word = -1
            if not 0 <= word < 1 << bits:
                raise UsageError(f"line {number}: {line.strip()!r} must be a hexadecimal number of {bits} bits")
            yield word
