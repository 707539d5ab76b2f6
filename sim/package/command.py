"""``tilewright verilog``: writes the Verilog of the tops, and beside each what tools of integrators read."""

import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tilewright.hw.tmau.params import TMAU_PRESETS

from ..files import write_atomically
from ..hdl.export import TOPS, module_name, top_verilog
from ..usage import UsageError

__all__ = ["configure", "run"]


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="default", help="configuration of the hardware")
    parser.add_argument("--top", choices=list(TOPS), help="one top; all if left out")
    parser.add_argument("--name", metavar="PREFIX", help="what names of modules and files begin with (tw_<preset>)")
    parser.add_argument("--out", metavar="FOLDER", type=Path, default=Path("build/verilog"), help="where to write")


def run(args):
    """Runs the subcommand: ``tw_<preset>_<top>.v`` for each top, and the files beside it."""
    if any(path.exists() and not path.is_dir() for path in (args.out, *args.out.parents)):
        raise UsageError(f"--out must name a folder, not {args.out}")
    tops = [args.top] if args.top else list(TOPS)
    try:
        names = {top: module_name(top, args.preset, args.name) for top in tops}
    except ValueError as error:
        raise UsageError(f"--name: {error}") from None
    for name in names.values():
        path = args.out / f"{name}.v"
        if path.is_dir():
            raise UsageError(f"{path} cannot be written: it is a folder")
    # All are made before the first is written.
    for top, text in zip(tops, _texts(tops, args.preset, args.name), strict=True):
        path = args.out / f"{names[top]}.v"
        try:
            write_atomically(path, text)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None
        print(f"wrote {path}: {len(text.splitlines())} lines, preset {args.preset}")
    return 0


def _texts(tops, preset, prefix):
    """Verilog of each of ``tops``; several are made at the same time."""
    make = partial(top_verilog, preset=preset, prefix=prefix)
    if len(tops) == 1:
        return [make(tops[0])]
    # The largest one is the last in the table, and should not be the last to begin.
    with ProcessPoolExecutor(min(len(tops), os.cpu_count() or 1)) as pool:
        return list(pool.map(make, reversed(tops)))[::-1]
