"""``tilewright models``: writes example models and inputs for them, or prints the cycles of known networks."""

from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically
from tilewright.network.machine import MACHINES
from tilewright.network.models.small import SMALL, build_small, small_input
from tilewright.network.models.zoo import NETWORKS, build
from tilewright.progress import working
from tilewright.results import record
from tilewright.spec.names import suggestion

from .run import array_bytes

__all__ = ["MODELS", "configure", "run"]

_PHOTOGRAPHS = "efficientnet-lite0"
#: The models that are written without a name; the first one has weights that were trained.
MODELS = (_PHOTOGRAPHS, *SMALL)


def configure(parser):
    """Adds the arguments of the subcommand."""
    names = f"of {', '.join(MODELS)}, which are written if no name is given; or of --table: {', '.join(NETWORKS)}"
    parser.add_argument("names", metavar="NAME", nargs="*", help=names)
    table = "write nothing; print the cycles that networks with random weights are expected to take"
    parser.add_argument("--table", action="store_true", help=table)
    parser.add_argument("--preset", choices=list(MACHINES), help="with --table: the core, instead of default")
    add_out(parser, "DIR", "", BUILD / "models")


def run(args):
    """Runs the subcommand."""
    known = tuple(NETWORKS) if args.table else tuple(dict.fromkeys((*MODELS, *NETWORKS)))
    for name in args.names:
        if name not in known:
            meant = suggestion(name, known) or ": `tilewright models --help` lists them"
            raise UsageError(f"there is no model {name!r}{meant}")
    if args.table:
        return _table(args)
    if args.preset:
        raise UsageError("--preset goes with --table: a model does not depend on a core")
    for name in dict.fromkeys(args.names or MODELS):
        model, inputs = _made(name)
        write_atomically(args.out / f"{name}.onnx", model.SerializeToString())
        for stem, value in inputs.items():
            write_atomically(args.out / f"{stem}.npy", array_bytes(value))
        print(f"{args.out / name}.onnx, for {', '.join(f'{stem}.npy' for stem in inputs)}")
    return 0


def _table(args):
    """Prints a line for each network after compiling it, and records the table if it is complete."""
    from ..network.table import HEAD, figures, rows

    preset, table = args.preset or "default", []
    print(HEAD)
    with working("models"):
        for row in rows(list(dict.fromkeys(args.names or NETWORKS)), preset):
            table.append(row)
            print(row, flush=True)
    if not args.names:
        command = f"tilewright models --table{f' --preset {args.preset}' if args.preset else ''}"
        record(f"models-{preset}", command=command, networks=len(table), rows=figures(table))
    return 0


def _made(name):
    """A model, and inputs by the stems of their files."""
    if name in SMALL:
        return build_small(name, reduced=name == "signed"), {name: small_input(name, 0)["x"]}
    if name != _PHOTOGRAPHS:
        model, inputs = build(name)
        return model, {name: inputs["x"]}
    from tilewright.network.models.efficientnet import build_quantised  # the help of the command does not need ONNX
    from tilewright.network.models.photographs import PHOTOGRAPHS, load_photograph, prepare

    return build_quantised(), {stem: prepare(load_photograph(stem)) for stem in PHOTOGRAPHS}
