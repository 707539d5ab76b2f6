"""``tilewright silicon``: what can be done with a GPU beside replaying cases on it, and for it (docs/silicon.md)."""

from importlib import import_module

__all__ = ["COMMANDS", "configure", "run"]

#: Subcommands: module, as those of the command line itself, and one line of help.
COMMANDS = {
    "capture": ("tilewright.silicon.capture", "run thousands of cases and keep what came out"),
    "ask": ("tilewright.silicon.ask", "put the questions that documents leave open"),
    "time": ("tilewright.silicon.timing", "time loads of tiles against the GPU's own copies"),
    "pack": ("tilewright.silicon.archive", "pack all that a machine with a GPU needs into one archive"),
    "all": ("tilewright.silicon.steps", "test, run, ask and time everything, or go on with it"),
    "take": ("tilewright.silicon.take", "take in what came back from a machine with a GPU"),
}


def configure(parser):
    """Adds the subcommands with their arguments."""
    subparsers = parser.add_subparsers(dest="silicon_command", metavar="COMMAND", required=True)
    for name, (module_name, help_line) in COMMANDS.items():
        module = import_module(module_name)
        subparser = subparsers.add_parser(name, help=help_line, description=help_line.capitalize() + ".")
        module.configure(subparser)
        subparser.set_defaults(run_silicon=module.run)


def run(args):
    """Runs the subcommand that was asked for; returns the exit status."""
    return args.run_silicon(args)
