"""The command line ``tilewright``: finds the subcommand's module and runs it.

A subcommand is a module with ``configure(parser)``, which adds its arguments to an ``argparse`` parser, and
``run(args)``, which returns the exit status. It is imported only when it is asked for, so that a user of one needs
nothing of another.
"""

import argparse
import sys
from importlib import import_module

from .usage import UsageError

__all__ = ["COMMANDS", "main"]

#: Subcommands: module and one line of help.
COMMANDS = {
    "area": ("tilewright.sim.dev.area", "count tables, flip-flops and levels of logic of every block"),
    "asm": ("tilewright.sim.asm.command", "assemble commands or instructions from text, or write the text of words"),
    "bench": ("tilewright.sim.bench.command", "measure latencies and utilisation against their targets"),
    "docs": ("tilewright.sim.dev.docs", "build the documentation"),
    "header": ("tilewright.sim.dev.header", "write the C header for drivers"),
    "mutate": ("tilewright.sim.dev.mutate", "count which small changes of the hardware tests and proofs notice"),
    "verilog": ("tilewright.sim.package.command", "write the Verilog of the TMAU and of the processing engine"),
    "replay": ("tilewright.sim.replay.command", "run the cases of a file and compare with what they expect"),
    "silicon": ("tilewright.sim.silicon.command", "capture, ask and time a GPU's own tensor mover"),
    "sim": ("tilewright.sim.workloads.command", "run the workloads on the RTL and compare every byte"),
    "stages": ("tilewright.sim.dev.stages", "write STAGES.md from recorded figures"),
}


class _Parser(argparse.ArgumentParser):
    """Answers a wrong argument with one sentence."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv=None):
    """Runs the command line ``argv`` (that of the process if None) and returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = _Parser(prog="tilewright", description="An open tensor engine: run, compare, measure.")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module_name, help_line) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=help_line, description=help_line.capitalize() + ".")
        if name in argv[:1]:
            module = import_module(module_name)
            module.configure(subparser)
            subparser.set_defaults(run=module.run)
    args = parser.parse_args(argv)
    try:
        return args.run(args)
    except UsageError as error:
        print(f"tilewright {args.command}: {error}", file=sys.stderr)
        return 2
