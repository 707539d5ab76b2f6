# PYTHON_ARGCOMPLETE_OK
"""The command line ``tilewright``: finds the subcommand's module and runs it.

A subcommand is a module with ``configure(parser)``, which adds its arguments to an ``argparse`` parser, and
``run(args)``, which returns the exit status. The module is imported only when its command is called, so that a command
does not need the packages of another one. The module itself imports nothing beyond the plain package: help, completion
and refusals of arguments always work. After that the extra of the command is looked for.

Exit status: 0 success; 1 a result is not as expected, or a tool failed; 2 a wrong argument or input, a missing package
or tool, a file that cannot be used; 3 replay ran no case; 128 + n ended by signal n. Every status except 0 comes with
one sentence, or with lines on the differences.
"""

import argparse
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
from tilewright.spec.names import suggestion

__all__ = ["COMMANDS", "Command", "Parser", "main", "one_line"]


class _Once(argparse.Action):
    """Stores a value; a second value is refused, because it would replace the first one."""

    def __call__(self, parser, namespace, values, option_string=None):
        given = namespace.__dict__.setdefault("given", set())
        if option_string and self.dest in given:
            raise argparse.ArgumentError(self, "is given twice")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """Answers a wrong argument with one sentence, and accepts only full names of options."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)
        for name in (None, "store"):
            self.register("action", name, _Once)

    def parse_known_args(self, args=None, namespace=None):
        """Like ``ArgumentParser``, but each command refuses unknown arguments itself, so that the sentence names it."""
        namespace, rest = super().parse_known_args(args, namespace)
        if rest:
            option = next((word.partition("=")[0] for word in rest if word.startswith("-")), "")
            self.error(f"unrecognized arguments: {' '.join(rest)}{suggestion(option, self._option_string_actions)}")
        return namespace, rest

    def error(self, message):
        """Ends with status 2 and the sentence."""
        self.exit(2, f"{self.prog}: {one_line(message)}\n")

    def _check_value(self, action, value):
        """Like ``ArgumentParser``, with a suggestion."""
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            meant = suggestion(value, action.choices) or f": `{self.prog} --help` lists them"
            raise argparse.ArgumentError(None, f"there is no command {value!r}{meant}")
        choices = ", ".join(map(repr, action.choices))
        raise argparse.ArgumentError(
            action, f"invalid choice: {value!r} (choose from {choices}){suggestion(value, action.choices)}"
        )


def one_line(sentence):
    """The text with escapes for control characters, which some file names have."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in sentence)


class Command(NamedTuple):
    """A subcommand: its module, one line of help, and the extra that it needs in addition to the plain package."""

    module: str
    help: str
    extra: str = ""


#: Subcommands by name.
COMMANDS = {
    "area": Command("tilewright.tools.fpga.area", "count LUTs, flip-flops and levels of logic of every block"),
    "asm": Command("tilewright.tools.cli.asm", "assemble commands, instructions and others, or disassemble"),
    "bench": Command("tilewright.tools.cli.bench", "measure latencies and utilisation, with their targets", "sim"),
    "board": Command("tilewright.tools.cli.board", "move a photograph on a board, or on its simulated design", "sim"),
    "campaign": Command("tilewright.tools.cli.campaign", "run random cases on golden and RTL, by Dask", "explore"),
    "compile": Command("tilewright.tools.cli.compile", "compile a quantised model to a program", "network"),
    "docs": Command("tilewright.tools.cli.docs", "build the documentation", "docs"),
    "explore": Command("tilewright.tools.cli.explore", "measure what parameters cost and bring, by Dask", "explore"),
    "figures": Command("tilewright.tools.docs.figures", "update the figures that pages cite, or --check them"),
    "fpga": Command("tilewright.tools.cli.fpga", "place and route a top on a Lattice ECP5: its clock", "fpga"),
    "header": Command("tilewright.tools.cli.header", "write C headers for drivers, and the C library"),
    "mutate": Command("tilewright.tools.mutation.run", "count which small changes tests and proofs detect", "dev"),
    "tool": Command("tilewright.tools.cli.tool", "run verilator, or fusesoc and others with it on their PATH"),
    "verilog": Command("tilewright.tools.cli.verilog", "write the Verilog of the tops, and files for other tools"),
    "parameters": Command("tilewright.tools.package.choice", "list parameters for --set, with the values of a preset"),
    "models": Command("tilewright.tools.cli.models", "write quantised models and inputs for them", "network"),
    "replay": Command("tilewright.tools.cli.replay", "run the cases of a file and compare with the expected results"),
    "run": Command("tilewright.tools.cli.run", "run a quantised model on an input", "network"),
    "silicon": Command("tilewright.tools.cli.silicon", "capture, query and time a GPU's own tensor mover"),
    "sim": Command("tilewright.tools.cli.sim", "run the workloads on the RTL and compare every byte", "sim"),
    "stages": Command("tilewright.tools.docs.stages", "write STAGES.md from recorded figures"),
}


def main(argv=None):
    """Runs the command line ``argv`` (the process's own if None) and returns the exit status."""
    if argv is None and "_ARGCOMPLETE" in os.environ:
        _complete()
    argv = sys.argv[1:] if argv is None else list(argv)
    name = " ".join(["tilewright", *(word for word in argv[:1] if word in COMMANDS)])
    if sys.stderr is None:  # closed, for example by 2>&-
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
    except BrokenPipeError:  # the reader has closed the output, for example `| head`
        _drop_output()
        return 141  # the status of a program that SIGPIPE ends
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
    """The parser of a command line that begins with these ``words``; only the command that they name has arguments."""
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
    """Prints the completions of the words that a shell has so far, and ends the process."""
    from argcomplete import autocomplete  # imported here: only the completion needs it

    autocomplete(_parser(os.environ["COMP_LINE"].split()[1:]))


def _give_up(name, sentence, status):
    # Amaranth would add a line for each component that was made but not elaborated.
    warnings.simplefilter("ignore")
    _drop_output()
    print(f"{name}: {one_line(sentence)}", file=sys.stderr)
    return status


def _drop_output():
    """Flushes the standard output; if that fails, keeps Python from reporting it at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
