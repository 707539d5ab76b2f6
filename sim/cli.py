"""The command line ``tilewright``: finds the subcommand's module and runs it.

A subcommand is a module with ``configure(parser)``, which adds its arguments to an ``argparse`` parser, and
``run(args)``, which returns the exit status. It is imported only when it is asked for, so that a user of one needs
nothing of another.

Exit status: 0 all is well; 1 something did not come out as it should; 2 a wrong argument or input, a missing package or
tool, a file that cannot be used; 3 replay ran no case; 128 + n ended by signal n. All but 0 come with one sentence, or
say above what differs.
"""

import argparse
import os
import sys
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from .extras import require
from .processes import Interrupted, end_with_signals
from .usage import UsageError

__all__ = ["COMMANDS", "Command", "main"]


class Command(NamedTuple):
    """A subcommand: its module, one line of help, and what must be installed beside the plain package."""

    module: str
    help: str
    extra: str = ""


#: Subcommands by name.
COMMANDS = {
    "area": Command("tilewright.sim.dev.area", "count tables, flip-flops and levels of logic of every block"),
    "asm": Command("tilewright.sim.asm.command", "assemble commands or instructions, or write the text of words"),
    "bench": Command("tilewright.sim.bench.command", "measure latencies and utilisation against their targets", "sim"),
    "board": Command("tilewright.sim.board.command", "run a photograph on a board, or on its design simulated", "sim"),
    "compile": Command("tilewright.network.program.command", "compile a quantised model to a program", "network"),
    "docs": Command("tilewright.sim.dev.docs", "build the documentation", "docs"),
    "fpga": Command("tilewright.sim.fpga.command", "place and route a top on a Lattice ECP5: its clock", "fpga"),
    "header": Command("tilewright.sim.package.header", "write the C header of each top, for drivers"),
    "mutate": Command("tilewright.sim.dev.mutate", "count which small changes tests and proofs notice", "dev"),
    "verilog": Command("tilewright.sim.package.command", "write the Verilog of the tops, and files for other tools"),
    "parameters": Command("tilewright.sim.package.parameters", "list what --set changes, with the values of a preset"),
    "models": Command("tilewright.network.models.command", "write quantised models and inputs for them", "network"),
    "replay": Command("tilewright.sim.replay.command", "run the cases of a file and compare with what they expect"),
    "run": Command("tilewright.network.command", "run a quantised model on an input", "network"),
    "silicon": Command("tilewright.sim.silicon.command", "capture, ask and time a GPU's own tensor mover"),
    "sim": Command("tilewright.sim.workloads.command", "run the workloads on the RTL and compare every byte", "sim"),
    "stages": Command("tilewright.sim.dev.stages", "write STAGES.md from recorded figures"),
}


class _Once(argparse.Action):
    """Stores a value; a second one is refused, for it would hide the first."""

    def __call__(self, parser, namespace, values, option_string=None):
        given = namespace.__dict__.setdefault("given", set())
        if option_string and self.dest in given:
            raise argparse.ArgumentError(self, "is given twice")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """Answers a wrong argument with one sentence, and takes options by their full names."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)
        for name in (None, "store"):
            self.register("action", name, _Once)

    def error(self, message):
        self.exit(2, f"{self.prog}: {_one_line(message)}\n")


def main(argv=None):
    """Runs the command line ``argv`` (that of the process if None) and returns the exit status."""
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
    parser = _Parser(prog="tilewright", description="An open tensor engine: run, compare, measure.")
    parser.add_argument("--version", action="version", version=f"tilewright {version('tilewright')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        sentence = f"{command.help[0].upper()}{command.help[1:]}."
        subparser = subparsers.add_parser(name, help=command.help, description=sentence)
        if name in argv[:1]:
            if command.extra:
                require(command.extra)
            module = import_module(command.module)
            module.configure(subparser)
            subparser.set_defaults(run=module.run)
    args = parser.parse_args(argv)
    return args.run(args)


def _give_up(name, sentence, status):
    # Hardware that was made but not finished would add a line for each of its parts.
    warnings.simplefilter("ignore")
    _drop_output()
    print(f"{name}: {_one_line(sentence)}", file=sys.stderr)
    return status


def _one_line(sentence):
    """With escapes for what is in some file names, and would break the line or move the cursor."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in sentence)


def _drop_output():
    """Writes what is left of the standard output, or else has Python not complain at its end that it cannot."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
