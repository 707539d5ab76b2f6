"""``tilewright verilog``: writes the Verilog of the tops, and the files that an integrator's tools read."""

import importlib.metadata
import os
from concurrent.futures import ProcessPoolExecutor, as_completed

from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically
from tilewright.progress import report, working
from tilewright.sim.hdl.lint import waivers

from ..package.choice import Choice, choices, configure_choice
from ..package.fusesoc import core_file, described, listing
from ..package.header import header_text
from ..package.ipxact import component_file

__all__ = ["KINDS", "configure", "run"]

#: Files that are written for each top, by suffix.
KINDS = ("v", "vlt", "core", "xml", "h")


def configure(parser):
    """Adds the arguments of the subcommand."""
    configure_choice(parser)
    add_out(parser, "FOLDER", "output folder", BUILD / "verilog")


def run(args):
    """Runs the subcommand: writes ``tw_<preset>_<top>.v`` for each top, and one file of every other kind."""
    chosen = choices(args)
    for path in (args.out / f"{choice.name}.{kind}" for choice in chosen for kind in KINDS):
        if path.is_dir():
            raise UsageError(f"{path} cannot be written: it is a folder")
    # All texts are made before the first file is written.
    companions = [_companions(choice) for choice in chosen]
    texts = [listing(choice, verilog) for choice, verilog in zip(chosen, _verilog(chosen), strict=True)]
    for choice, text, others in zip(chosen, texts, companions, strict=True):
        for kind, contents in {"v": text, **others}.items():
            write_atomically(args.out / f"{choice.name}.{kind}", contents)
        others = ", ".join(f".{kind}" for kind in KINDS[1:])
        print(f"wrote {args.out / choice.name}.v: {len(text.splitlines())} lines, {choice.options}; {others}")
    return 0


def _companions(choice):
    """Texts of the other files, by kind of file."""
    version, description = importlib.metadata.version("tilewright"), described(choice)
    return {
        "vlt": waivers(choice.name),
        "core": core_file(choice.name, description, version),
        "xml": component_file(choice.component(), choice.name, version, description),
        "h": header_text(choice),
    }


def _verilog(chosen):
    """The Verilog of each choice; several are made in parallel."""
    if len(chosen) == 1:
        with working(f"{chosen[0].top}, {chosen[0].preset}"):
            return [chosen[0].verilog()]
    with ProcessPoolExecutor(min(len(chosen), os.cpu_count() or 1)) as pool:
        # The largest top is the last one in the table; it must not start last.
        made = {choice.top: pool.submit(Choice.verilog, choice) for choice in reversed(chosen)}
        with working(f"preset {chosen[0].preset}"):
            report(", ".join(reversed(made)), 0, len(made))
            for done, finished in enumerate(as_completed(made.values()), 1):
                finished.result()  # a failure ends the others
                report(", ".join(top for top in reversed(made) if not made[top].done()), done, len(made))
    return [made[choice.top].result() for choice in chosen]
