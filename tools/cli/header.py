"""``tilewright header``: writes the C header of each top, and the C library."""

from tilewright.arguments import add_out
from tilewright.files import BUILD, write_atomically

from ..package.choice import choices, configure_choice
from ..package.header import header_text
from ..package.library import library_files

__all__ = ["configure", "run"]


def configure(parser):
    """Adds the arguments of the subcommand."""
    configure_choice(parser)
    parser.add_argument("--library", action="store_true", help="also write the C library for all tops")
    add_out(parser, "FOLDER", "output folder", BUILD / "include")


def run(args):
    """Writes the header of each given top, without making its Verilog."""
    texts = {f"{choice.name}.h": header_text(choice) for choice in choices(args)}
    if args.library:
        texts |= library_files()
    for name, text in texts.items():
        write_atomically(args.out / name, text)
        print(args.out / name)
    return 0
