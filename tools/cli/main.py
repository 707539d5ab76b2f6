# PYTHON_ARGCOMPLETE_OK
"""The command line ``tilewright``: finds the subcommand's module and runs it.

A subcommand is a module with ``configure(parser)``, which adds its arguments to an ``argparse`` parser, and
``run(args)``, which returns the exit status. It is imported only when it is asked for, so that a user of one needs
nothing of another. The module itself imports nothing beyond the plain package: help, completion and refusals of
arguments work everywhere, and only then is it found out whether the extra of the command is installed.

Exit status: 0 all is well; 1 something did not come out as it should; 2 a wrong argument or input, a missing package or
tool, a file that cannot be used; 3 replay ran no case; 128 + n ended by signal n. All but 0 come with one sentence, or
say above what differs.
"""

import os
import sys
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tilewright.errors import UsageError
from tilewright.extras import require
from tilewright.processes import Interrupted, end_with_signals

from .parser import Parser, one_line

__all__ = ["COMMANDS", "Command", "main"]


class Command(NamedTuple):
    """A subcommand: its module, one line of help, and the extra that must be installed beside the plain package."""

    module: str
    help: str
    extra: str = ""


#: Subcommands by name.
COMMANDS = {
    "area": Command("tilewright.tools.area.area", "count tables, flip-flops and levels of logic of every block"),
    "asm": Command("tilewright.tools.cli.asm", "assemble commands or instructions, or write the text of words"),
    "bench": Command("tilewright.tools.cli.bench", "measure latencies and utilisation against their targets", "sim"),
    "board": Command("tilewright.tools.cli.board", "run a photograph on a board, or on its design simulated", "sim"),
    "compile": Command("tilewright.tools.cli.compile", "compile a quantised model to a program", "network"),
    "docs": Command("tilewright.tools.cli.docs", "build the documentation", "docs"),
    "figures": Command(
        "tilewright.tools.docs.figures", "bring the figures that pages cite up to date, or --check them"
    ),
    "fpga": Command("tilewright.tools.cli.fpga", "place and route a top on a Lattice ECP5: its clock", "fpga"),
    "header": Command("tilewright.tools.package.header", "write the C header of each top, for drivers"),
    "mutate": Command("tilewright.verify.mutation", "count which small changes tests and proofs notice", "dev"),
    "tool": Command("tilewright.tools.cli.tool", "run verilator, or fusesoc and others with it on their PATH"),
    "verilog": Command("tilewright.tools.cli.verilog", "write the Verilog of the tops, and files for other tools"),
    "parameters": Command("tilewright.tools.cli.parameters", "list what --set changes, with the values of a preset"),
    "models": Command("tilewright.tools.cli.models", "write quantised models and inputs for them", "network"),
    "replay": Command("tilewright.tools.cli.replay", "run the cases of a file and compare with what they expect"),
    "run": Command("tilewright.tools.cli.run", "run a quantised model on an input", "network"),
    "silicon": Command("tilewright.tools.cli.silicon", "capture, ask and time a GPU's own tensor mover"),
    "sim": Command("tilewright.tools.cli.sim", "run the workloads on the RTL and compare every byte", "sim"),
    "stages": Command("tilewright.tools.docs.stages", "write STAGES.md from recorded figures"),
}


def main(argv=None):
    """Runs the command line ``argv`` (that of the process if None) and returns the exit status."""
    if argv is None and "_ARGCOMPLETE" in os.environ:
        _complete()
    argv = sys.argv[1:] if argv is None else list(argv)
    name = " ".join(["tilewright", *(word for word in argv[:1] if word in COMMANDS)])
    if sys.stderr is None:  # closed, as by 2>&-
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process
    if sys.stdout is None:
        print(f"{name}: the standard output is closed", file=sys.stderr)
        return 2
    try:
        with end_with_signals():
            status = _run(argv)
            sys.stdout.flush()
            return status
    except UsageError as error:
        return _give_up(name, str(error), 2)
    except BrokenPipeError:  # as of `| head`: nobody reads on
        _drop_output()
        return 141  # that of a program which SIGPIPE ends
    except OSError as error:
        return _give_up(name, ": ".join(str(part) for part in (error.filename, error.strerror or error) if part), 2)
    except MemoryError as error:
        return _give_up(name, ": ".join(filter(None, ["there is not enough memory", str(error)])), 2)
    except RuntimeError as error:
        if isinstance(error, NotImplementedError | RecursionError):
            raise
        return _give_up(name, " ".join(str(error).split()), 1)  # a tool failed, or a simulation
    except Interrupted as error:
        return _give_up(name, "interrupted", error.status)


def _run(argv):
    args = _parser(argv).parse_args(argv)
    if extra := COMMANDS[args.command].extra:
        require(extra)
    return args.run(args)


def _parser(words):
    """The parser of a command line that begins with these ``words``: of the command that they name, all arguments."""
    parser = Parser(prog="tilewright", description="An open tensor engine: run, compare, measure.")
    parser.add_argument("--version", action="version", version=f"tilewright {version('tilewright')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        sentence = f"{command.help[0].upper()}{command.help[1:]}."
        needs = f" Needs pip install 'tilewright[{command.extra}]'." if command.extra else ""
        subparser = subparsers.add_parser(name, help=command.help, description=sentence + needs)
        if name in words[:1]:
            module = import_module(command.module)
            module.configure(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def _complete():
    """Prints what may follow the words that a shell has so far, and ends the process."""
    from argcomplete import autocomplete  # only the shell's completion needs it

    autocomplete(_parser(os.environ["COMP_LINE"].split()[1:]))


def _give_up(name, sentence, status):
    # Hardware that was made but not finished would add a line for each of its parts.
    warnings.simplefilter("ignore")
    _drop_output()
    print(f"{name}: {one_line(sentence)}", file=sys.stderr)
    return status


def _drop_output():
    """Writes what is left of the standard output, or else has Python not complain at its end that it cannot."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
