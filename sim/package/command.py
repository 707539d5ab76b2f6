"""``tilewright verilog``: writes the Verilog of the tops, and beside each what tools of integrators read."""

import importlib.metadata
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tilewright.golden.spec.cluster.delivery import MOST_CORES
from tilewright.golden.spec.tmau.processors import MOST_PROCESSORS
from tilewright.hw.tmau.params import TMAU_PRESETS

from ..arguments import integer, output_folder
from ..files import BUILD, write_atomically
from ..hdl.export import TOPS, engine_list, feature_list, module_name, top_component, top_verilog
from ..usage import UsageError
from .fusesoc import core_file
from .ipxact import component_file
from .waivers import waivers

__all__ = ["configure", "run"]


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="default", help="configuration of the hardware")
    parser.add_argument("--top", choices=list(TOPS), help="one top; all if left out")
    parser.add_argument("--without", metavar="FEATURE,...", type=feature_list, default=(),
                        help="features of the access unit that are not built")  # fmt: skip
    parser.add_argument("--with", dest="more", metavar="conv,program", type=engine_list, default=(),
                        help="what a core has beside its two engines, with --top core; or beside its access unit, "
                             "also pe, with --top cluster, which may have l2")  # fmt: skip
    parser.add_argument("--cores", type=integer(1, MOST_CORES), help="with --top cluster (2)")
    parser.add_argument("--processors", type=integer(1, MOST_PROCESSORS), default=1,
                        help="which share an access unit (1), with --top tmau, tmau_subsystem, or cluster without "
                             "engines")  # fmt: skip
    parser.add_argument("--name", metavar="PREFIX", help="what names of modules and files begin with (tw_<preset>)")
    parser.add_argument("--out", metavar="FOLDER", type=output_folder, default=str(BUILD / "verilog"),
                        help="where to write (%(default)s)")  # fmt: skip


def run(args):
    """Runs the subcommand: ``tw_<preset>_<top>.v`` for each top, and beside it ``.vlt``, ``.core`` and ``.xml``."""
    if args.more and args.top not in ("core", "cluster"):
        raise UsageError("--with goes with --top core or --top cluster")
    if "pe" in args.more and args.top == "core":
        raise UsageError("--with pe goes with --top cluster: a core has its processing engine anyhow")
    if "l2" in args.more and args.top == "core":
        raise UsageError("--with l2 goes with --top cluster")
    if args.cores and args.top != "cluster":
        raise UsageError(f"--cores {args.cores} goes with --top cluster")
    if args.processors > 1 and args.top is None:
        raise UsageError(f"--processors {args.processors} goes with a --top")
    tops = [args.top] if args.top else list(TOPS)
    try:
        names = {top: module_name(top, args.preset, args.name) for top in tops}
    except ValueError as error:
        raise UsageError(f"--name: {error}") from None
    for path in (args.out / f"{name}.{kind}" for name in names.values() for kind in ("v", "vlt", "core", "xml")):
        if path.is_dir():
            raise UsageError(f"{path} cannot be written: it is a folder")
    # All are made before the first is written.
    texts = _texts(tops, args)
    for top, text in zip(tops, texts, strict=True):
        name = names[top]
        for kind, contents in {"v": text, **_companions(top, args, name)}.items():
            write_atomically(args.out / f"{name}.{kind}", contents)
        print(f"wrote {args.out / name}.v: {len(text.splitlines())} lines, preset {args.preset}; .vlt, .core, .xml")
    return 0


def _companions(top, args, name):
    """What lies beside the Verilog, by the kind of file."""
    component = top_component(top, args.preset, args.without, args.more, args.cores, args.processors)
    version = importlib.metadata.version("tilewright")
    description = f"Tilewright's {type(component).__name__}, preset {args.preset}"
    return {
        "vlt": waivers(name),
        "core": core_file(name, description, version),
        "xml": component_file(component, name, version),
    }


def _texts(tops, args):
    """Verilog of each of ``tops``; several are made at the same time."""
    options = {"without": args.without, "more": args.more, "cores": args.cores, "processors": args.processors}
    make = partial(top_verilog, preset=args.preset, prefix=args.name, **options)
    if len(tops) == 1:
        return [make(tops[0])]
    # The largest one is the last in the table, and should not be the last to begin.
    with ProcessPoolExecutor(min(len(tops), os.cpu_count() or 1)) as pool:
        return list(pool.map(make, reversed(tops)))[::-1]
