"""``tilewright run``: runs a model file on an input."""

import io
import sys
import time
import zipfile
from pathlib import Path

import numpy as np

from tilewright.arguments import add_out, integer
from tilewright.errors import UsageError
from tilewright.files import REPORT, write_atomically
from tilewright.network.compiled import compile as compile_network
from tilewright.network.compiled import first_nodes
from tilewright.network.evaluation import check_inputs, evaluate
from tilewright.network.graph import ModelError
from tilewright.network.machine import MACHINES, machine_of
from tilewright.progress import Bars, Lines, shown
from tilewright.sim.hdl.settings import add_settings, changed

from .compile import add_cores

__all__ = ["BACKENDS", "array_bytes", "configure", "read_inputs", "run", "write_arrays"]

_LARGEST = 5  # number of elements that are printed


def _on_golden(args, model, graph, inputs, names):
    if args.preset:
        machine = machine_of(args.preset, args.settings, args.cores)
        return compile_network(graph, machine, every_tensor=args.every_tensor).run(inputs, names=names)
    values = evaluate(graph, inputs)
    return {name: values[name] for name in names}


def _on_rtl(args, model, graph, inputs, names):
    # What simulates hardware, and draws its report.
    from tilewright.hw.core.params import ENGINES, core_params
    from tilewright.network.rtl import measured, run_rtl
    from tilewright.sim.report.page import write_report
    from tilewright.sim.workloads.findings import Findings

    from ..network.workload import charts_of, table_of, totals_of
    from .sim import Played

    preset, name = args.preset or "default", args.model.name
    machine = machine_of(preset, args.settings, args.cores)
    compiled = compile_network(graph, machine, every_tensor=args.every_tensor)
    begin = time.perf_counter()
    data, run = run_rtl(compiled, compiled.memory(inputs), preset, args.settings)
    speed = run.cycles / (time.perf_counter() - begin)
    print(measured(compiled, run))
    values, expected, totals = compiled.tensors(data, names), evaluate(graph, inputs), totals_of(compiled, run)
    for tensor, value in values.items():
        totals.require(value, expected[tensor], f"tensor {tensor}")
    print("\n".join(f"DIFFERS {problem}" for problem in totals.problems) or f"{len(values)} tensors equal to golden")
    findings = Findings((), charts=charts_of(compiled, run), tables={f"Layers of {name}": table_of(compiled, run)})
    several = [f"{args.cores} cores"] if args.cores > 1 else []
    hardware = ", ".join([f"preset {preset}", *several, *map(str, args.settings)])
    setting = f"{name} and its input {args.input.name} on {hardware}, simulated on verilator."
    params = changed(core_params(preset, ENGINES), args.settings)
    print(write_report(REPORT, setting, [params], [Played(name, totals, findings, speed)], None))
    return values


def _on_ort(args, model, graph, inputs, names):
    from tilewright.network.witness import Witness  # imported here: it takes longer than the rest of this command

    witness = Witness(model, graph, names)
    if witness.reservation:
        print(witness.reservation)
    for name in witness.floats if args.every_tensor else ():
        print(f"{name}: computed in floats, {graph.tensors[name].dtype} {list(graph.tensors[name].shape)}")
    return witness.run(inputs)


#: Backends for networks: functions of the arguments, the ``ModelProto``, the ``Graph``, its inputs, and the names of
#: the results.
BACKENDS = {"golden": _on_golden, "rtl": _on_rtl, "ort": _on_ort}


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("model", metavar="MODEL.onnx", type=Path, help="quantised model")
    parser.add_argument("--check", action="store_true", help="say whether the model is supported, and all that is not")
    parser.add_argument("--input", metavar="X.npy", type=Path, help="input; .npz for several, by name")
    parser.add_argument("--on", choices=list(BACKENDS), help="backend that runs it; ort is ONNX Runtime")
    parser.add_argument("--preset", choices=list(MACHINES),
                        help="compile it for this core and run the program; golden runs none by default")  # fmt: skip
    add_settings(parser)
    add_cores(parser)
    parser.add_argument("--layers", metavar="N", type=integer(1, 1 << 20), help="only the first N layers")
    add_out(parser, "Y.npz", "write an array for each output of the model")
    parser.add_argument("--every-tensor", action="store_true", help="with --out: an array for every tensor")


def run(args):
    """Runs the subcommand."""
    if args.check:
        return _check(args)
    if args.input is None or args.on is None:
        raise UsageError("--input and --on are needed, or --check")
    if args.settings and args.on != "rtl" and not args.preset:
        raise UsageError("--set goes with --preset or --on rtl: otherwise no core runs the network")
    if args.cores > 1 and args.on != "rtl" and not args.preset:
        raise UsageError("--cores goes with --preset or --on rtl: otherwise no core runs the network")
    machine_of(args.preset or "default", args.settings)  # check the settings before the model is read
    if args.on == "ort" and (args.preset or args.layers):
        raise UsageError("--preset and --layers go with --on golden and --on rtl")
    if args.every_tensor and not args.out:
        raise UsageError("--every-tensor goes with --out")
    if args.out and any(
        path.exists() and args.out.exists() and args.out.samefile(path) for path in (args.model, args.input)
    ):
        raise UsageError(f"--out must not be a file that is read, {args.out}")
    from tilewright.network.reader import read_model  # needs the package onnx, which the help of the command does not
    from tilewright.network.reader.model import load

    model = load(args.model)
    graph = first_nodes(read_model(model), args.layers)
    inputs = check_inputs(graph, read_inputs(args.input, graph))
    macs = sum(map(graph.macs, graph.nodes))
    print(f"{args.model}: {len(graph.nodes)} layers, {macs:,} multiplications", flush=True)
    names = [node.output for node in graph.nodes] if args.every_tensor else list(dict.fromkeys(graph.outputs))
    begin = time.perf_counter()
    with shown(Bars() if sys.stderr.isatty() else Lines(sys.stderr)):
        values = BACKENDS[args.on](args, model, graph, inputs, names)
    print(f"{args.on}: {time.perf_counter() - begin:.1f} s")
    for name in dict.fromkeys(graph.outputs):
        print(_summary(name, values[name]))
    if args.out:
        write_arrays(args.out, values)
    return 0


def _check(args):
    """Prints every reason why the model is refused, or the layers and cycles of its program."""
    from tilewright.network.reader.model import load, read_model
    from tilewright.network.reader.refusals import refusals_of

    if args.input or args.on or args.out or args.every_tensor or args.layers:
        raise UsageError("--check goes with --preset, --cores and --set alone")
    model = load(args.model)
    reasons = refusals_of(model)
    if not reasons:
        try:
            machine = machine_of(args.preset or "default", args.settings, args.cores)
            compiled = compile_network(read_model(model), machine)
        except ModelError as error:
            reasons = [str(error)]
    for reason in reasons:
        print(reason)
    if reasons:
        print(f"{args.model} is not supported: {len(reasons)} reason{'s' if len(reasons) > 1 else ''}")
        return 1
    plan = compiled.plan
    print(f"{args.model} is supported: {len(plan.layers)} layers, {plan.macs:,} multiplications, about "
          f"{plan.cycles:,} cycles on {args.cores if args.cores > 1 else 'a'} core{'s' * (args.cores > 1)} of preset "
          f"{args.preset or 'default'}")  # fmt: skip
    graph = compiled.graph
    hosted = [*graph.head, *graph.tail]
    if hosted:
        kinds = ", ".join(dict.fromkeys(node.operator for node in hosted))
        print(f"the host computes {len(hosted)} of {len(graph.nodes)} nodes, at the ends: {kinds}")
    return 0


def _summary(name, value):
    """A line on an output, with its largest elements."""
    flat = value.reshape(-1)
    largest = np.argsort(-flat.astype(np.float64), kind="stable")[:_LARGEST]
    elements = ", ".join(f"{flat[i]:.5g} at {i}" for i in largest)
    return f"{name}: {value.dtype} {list(value.shape)}; largest: {elements}"


def read_inputs(path, graph):
    """The inputs of a network by name, from a ``.npz``, or a ``.npy`` for a single input.

    Raises
    ------
    ModelError
        If it is not such a file, as one sentence. A file that cannot be read raises an OSError.
    """
    data = Path(path).read_bytes()
    try:
        found = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(found, np.ndarray):
            found = {None: found}
        values = {name: found[name] for name in found}
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ModelError(f"{path} has no arrays of numbers: {' '.join(str(error).split())}") from None
    if None not in values:
        return values
    if len(graph.inputs) != 1:
        raise ModelError(f"the network has {len(graph.inputs)} inputs: {path} must be a .npz with an array for each")
    return {graph.inputs[0]: values[None]}


def write_arrays(path, values):
    """Writes arrays as a ``.npz``, by name; names may be any text."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, value in values.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(value), allow_pickle=False)
    write_atomically(path, buffer.getvalue())


def array_bytes(value):
    """An array as the contents of a ``.npy``."""
    buffer = io.BytesIO()
    np.save(buffer, value, allow_pickle=False)
    return buffer.getvalue()
