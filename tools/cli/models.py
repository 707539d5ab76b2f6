"""``tilewright models``: writes example models, and inputs for them."""

from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically
from tilewright.network.models.small import SMALL, build_small, small_input
from tilewright.spec.names import suggestion

from .run import array_bytes

__all__ = ["MODELS", "configure", "run"]

#: The models.
MODELS = ("efficientnet-lite0", *SMALL)


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of {', '.join(MODELS)}; all if left out")
    add_out(parser, "DIR", "", BUILD / "models")


def run(args):
    """Runs the subcommand."""
    for name in args.names:
        if name not in MODELS:
            raise UsageError(f"there is no model {name!r}, but {', '.join(MODELS)}{suggestion(name, MODELS)}")
    for name in dict.fromkeys(args.names or MODELS):
        model, inputs = _made(name)
        write_atomically(args.out / f"{name}.onnx", model.SerializeToString())
        for stem, value in inputs.items():
            write_atomically(args.out / f"{stem}.npy", array_bytes(value))
        print(f"{args.out / name}.onnx, for {', '.join(f'{stem}.npy' for stem in inputs)}")
    return 0


def _made(name):
    """A model, and inputs by the stems of their files."""
    if name in SMALL:
        return build_small(name, reduced=name == "signed"), {name: small_input(name, 0)["x"]}
    from tilewright.network.models.efficientnet import build_quantised  # the help of the command does not need ONNX
    from tilewright.network.models.photographs import PHOTOGRAPHS, load_photograph, prepare

    return build_quantised(), {stem: prepare(load_photograph(stem)) for stem in PHOTOGRAPHS}
