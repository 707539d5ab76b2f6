"""``tilewright silicon``: work with and for a GPU, in addition to replay (docs/silicon.md)."""

from importlib import import_module

__all__ = ["COMMANDS", "configure", "run"]

#: Subcommands: their module, like a module of the command line, and one line of help.
COMMANDS = {
    "capture": ("tilewright.silicon.capture", "run thousands of cases and keep the results"),
    "ask": ("tilewright.silicon.ask", "ask the questions that documents leave open"),
    "time": ("tilewright.silicon.timing", "time loads of tiles against the GPU's own copies"),
    "pack": ("tilewright.silicon.archive", "pack everything for a machine with a GPU into one archive"),
    "all": ("tilewright.silicon.steps", "test, run, ask and time everything, or continue an earlier run"),
    "take": ("tilewright.silicon.take", "import the results from a machine with a GPU"),
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
    """Runs the given subcommand; returns the exit status."""
    return args.run_silicon(args)
