"""``tilewright compile``: compiles a model file to a program with its memory, or to a container for the C library."""

import json
import re
from pathlib import Path

from tilewright.arguments import integer, output_file, output_folder
from tilewright.errors import UsageError
from tilewright.files import write_atomically
from tilewright.network.compiled import compile as compile_network
from tilewright.network.container import c_array, container
from tilewright.network.machine import MACHINES, machine_of
from tilewright.network.plan.explanation import traffic
from tilewright.progress import report, working
from tilewright.sim.hdl.settings import add_settings
from tilewright.spec.cluster import MOST_CORES

__all__ = ["add_cores", "configure", "run"]

_CONTAINER = ".twm"


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("model", metavar="MODEL.onnx", type=Path, help="quantised model")
    parser.add_argument("--preset", choices=list(MACHINES), default="default", help="core (%(default)s)")
    add_settings(parser)
    add_cores(parser)
    parser.add_argument("--layers", metavar="N", type=integer(1, 1 << 20), help="only the first N layers")
    parser.add_argument("--every-tensor", action="store_true", help="keep every tensor in memory")
    parser.add_argument("--explain", action="store_true", help="print the plan, a line for each layer")
    parser.add_argument("--out", metavar="PATH", type=_out,
                        help=f"write a container to a file *{_CONTAINER}; otherwise write memory.bin with the program, "
                        "and plan.json with all addresses, to a folder")  # fmt: skip
    parser.add_argument("--c-array", action="store_true", help="beside the container, write it as an array in C")


def _out(text):
    return (output_file if text.endswith(_CONTAINER) else output_folder)(text)


def add_cores(parser):
    """Adds the option ``--cores``."""
    parser.add_argument("--cores", metavar="N", type=integer(1, MOST_CORES), default=1,
                        help="cores of a cluster that compute the network together, 1 to 16 (%(default)s)")  # fmt: skip


def run(args):
    """Runs the subcommand."""
    whole = args.out is not None and args.out.suffix == _CONTAINER
    if args.c_array and not whole:
        raise UsageError(f"--c-array goes with --out FILE{_CONTAINER}")
    if whole and args.cores > 1:
        raise UsageError(f"--cores goes with --out DIR: a file *{_CONTAINER} holds the program of one core")
    machine = machine_of(args.preset, args.settings, args.cores)
    with working(args.model.name):
        report("plan and program")
        compiled = compile_network(args.model, machine, every_tensor=args.every_tensor, layers=args.layers)
        report("explanation")
        explanation = compiled.explanation
    print(explanation if args.explain else explanation.splitlines()[-1])
    if whole:
        data = container(compiled)
        write_atomically(args.out, data)
        print(f"{args.out}: {len(data):,} bytes")
        if args.c_array:
            array = args.out.with_suffix(".c")
            write_atomically(array, c_array(data, re.sub(r"\W", "_", args.out.stem)))
            print(array)
    elif args.out:
        write_atomically(args.out / "memory.bin", compiled.image.tobytes())
        write_atomically(args.out / "plan.json", json.dumps(_plan(compiled), indent=1) + "\n")
        write_atomically(args.out / "plan.txt", explanation)
        print(f"{args.out}: memory.bin, plan.json, plan.txt")
    return 0


def _plan(compiled):
    """The addresses of everything, and the bytes that each layer moves, for readers without Python."""
    tensors = {
        name: {
            "address": compiled.plan.tensors[place.name], "shape": list(place.shape), "strides": list(place.strides),
            "type": place.dtype,
        }
        for name, place in compiled.places.items()
    }  # fmt: skip
    layers = [
        {"name": layer.name, "bytes_in": loaded, "bytes_out": stored, "bytes_alone": alone}
        for layer, (loaded, stored, alone) in zip(compiled.plan.layers, traffic(compiled.plan), strict=True)
    ]
    return {
        "programs": [{"address": address, "words": words} for address, words in compiled.starts],
        "inputs": list(compiled.graph.inputs), "outputs": list(compiled.graph.outputs), "tensors": tensors,
        "layers": layers,
    }  # fmt: skip
