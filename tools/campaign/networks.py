"""Random networks of a campaign: the evaluation, ONNX Runtime, the golden core and the RTL agree on every tensor."""

from dataclasses import replace

import numpy as np

from tilewright import network
from tilewright.network import ModelError
from tilewright.network.evaluation import compute
from tilewright.network.graph import MOVES
from tilewright.network.machine import MACHINES
from tilewright.network.reader import read_model
from tilewright.network.rtl import run_on
from tilewright.network.witness import has_exact_kernels, run_witness
from tilewright.sim.session.core import open_accelerator
from tilewright.verify.random.networks import draw_inputs, draw_network

__all__ = ["IN_FLOATS", "try_networks", "try_networks_on_rtl", "witness_differences"]

#: Operators that ONNX Runtime computes in floats, and the share of their results that may differ by one.
IN_FLOATS = dict.fromkeys(
    ("BatchNormalization", "ConvTranspose", "GRU", "LSTM", "PRelu", "RNN", "ReduceMean", "ReduceSum", "Sub", "Sum"),
    0.005,
)
IN_FLOATS["Resize"] = 0.15  # every sixteenth sum may be halfway between two integers
# Rows without a deviation magnify errors of floats.
IN_FLOATS |= dict.fromkeys(("GroupNormalization", "InstanceNormalization", "LayerNormalization"), 0.02)


def witness_differences(model, graph, inputs):
    """One sentence for each node that ONNX Runtime computes otherwise, all tensors as it has them, and what differs.

    The last is a dict by operator, of those that ONNX Runtime computes in floats: values that differ by one, and all.
    Each node is computed from what ONNX Runtime has for its inputs. Averages of windows may differ by one where they
    are halves, as ONNX Runtime adds floats there (docs/network.md, "Averages"), and so may a few results of other
    operators that it computes in floats.
    """
    values = graph.constants | inputs | run_witness(model, graph, inputs, [node.output for node in graph.nodes])
    sentences, floats = [], {}
    unseen = {}  # operators of results that ONNX Runtime does not show; it does what they are moved to
    for node in graph.nodes:
        golden = compute(graph, node, values)
        operator = unseen.get(node.inputs[0], node.operator) if node.kind in MOVES else node.operator
        if node.output not in values:
            values[node.output], unseen[node.output] = golden, operator
            continue
        theirs = values[node.output]
        if (theirs.shape, theirs.dtype) != (golden.shape, golden.dtype):
            sentences.append(f"{node}: {golden.shape} of {golden.dtype}, not {theirs.shape} of {theirs.dtype}")
            continue
        wrong = golden != theirs
        if wrong.any():
            one_off = np.abs(golden.astype(np.int32) - theirs.astype(np.int32)) == 1
            wrong = wrong & ~(one_off & _near_half(graph, node, values))
            few = operator in IN_FLOATS and wrong.sum() <= max(3, IN_FLOATS[operator] * wrong.size)
            wrong = wrong & ~(one_off & few) & ~_has_no_deviation(node, values)
        if wrong.any():
            sentences.append(f"{node}: {wrong.sum()} of {wrong.size} differ, first at {np.argwhere(wrong)[0]}")
        if operator in IN_FLOATS:
            other, size = floats.get(operator, (0, 0))
            floats[operator] = other + np.count_nonzero(golden != theirs), size + golden.size
    return sentences, values, floats


def _has_no_deviation(node, values):
    """Where ONNX Runtime's variance of equal numbers is an error of rounding, which may be negative."""
    if node.operator != "GroupNormalization":
        return False
    x = values[node.inputs[0]]
    rows = x.reshape(x.shape[0], x.shape[1] // node.attributes.members, -1)
    equal = rows.max(axis=2, keepdims=True) == rows.min(axis=2, keepdims=True)
    return np.broadcast_to(equal, rows.shape).reshape(x.shape)


def _near_half(graph, node, values):
    """Where a result lies so near the middle between two integers that ONNX Runtime's floats may fall on either side.

    These are averages of windows, products of a PRelu, and shares of a Softmax, unless their scale is a power of two.
    """
    pool, x = node.attributes, values[node.inputs[0]]
    if node.operator == "PRelu" and node.kind == "Add":
        halves = [other for other in graph.nodes if other.output in node.inputs]
        return np.logical_or(*(_is_half(_scaled(half, values[half.inputs[0]])) for half in halves))
    if node.kind == "Softmax" and pool.scale & (pool.scale - 1):
        terms = pool.table[255 + x.astype(np.int64) - x.max(axis=pool.axes, keepdims=True)]
        exact = terms * float(pool.scale) / terms.sum(axis=pool.axes, keepdims=True)
        return _is_half(exact)
    if node.operator not in ("AveragePool", "QLinearAveragePool"):
        return False
    top, left, bottom, right = pool.pad
    padded = np.pad(x.astype(np.int64) - pool.x_zero, ((0, 0), (0, 0), (top, bottom), (left, right)))
    views = np.lib.stride_tricks.sliding_window_view(padded, pool.kernel, axis=(2, 3))
    return _is_half(
        views[:, :, :: pool.stride[0], :: pool.stride[1]].sum(axis=(-2, -1)) * pool.scale.astype(np.float64)
    )


def _scaled(node, x):
    """What a convolution that multiplies each channel by a number has before it rounds."""
    factors = (node.attributes.weight.ravel() * node.attributes.scale.astype(np.float64)).reshape(-1, 1, 1)
    return (x.astype(np.int64) - node.attributes.x_zero) * factors


def _is_half(exact):
    return np.abs(exact - np.floor(exact) - 0.5) < 1e-4


def try_networks(preset, seed, count, coverage):
    """Yields how networks fare on ONNX Runtime, and as programs on the golden core of a preset."""
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        kind = ("uint8", "int8")[number % 2]
        # int8 by int8 of ONNX Runtime saturates on x86 without VNNI.
        model = draw_network(rng, dtype=kind, small_weights=kind == "int8" and not has_exact_kernels(), large=True)
        graph = read_model(model)
        inputs = draw_inputs(rng, graph)
        wrong, _, _ = witness_differences(model, graph, inputs)
        try:
            compiled = network.compile(graph, MACHINES[preset])
        except ModelError:
            pass  # too large for the shared memory
        else:
            wrong += _differences(compiled, compiled.run_golden(inputs), inputs)
        yield _tried(wrong, model)


def try_networks_on_rtl(preset, seed, count, coverage):
    """Yields how networks fare as programs on the RTL of a preset, some with little shared memory."""
    made = number = 0
    with open_accelerator(preset, latency=20) as session:
        while made < count:
            rng = np.random.default_rng([seed, number])
            model = draw_network(rng, channels=(8, 20)[number // 2 % 2])
            graph = read_model(model)
            inputs, every = draw_inputs(rng, graph), bool(number & 1)
            size = session.params.smem.size_bytes // (1, 8, 4)[number // 2 % 3]
            machine = replace(MACHINES[preset], smem_bytes=size)
            latency, stall = (2, 20, 100)[number % 3], 0.3 if number % 4 == 0 else 0.0
            number += 1
            try:
                compiled = network.compile(graph, machine, every_tensor=every)
            except ModelError:
                continue
            made += 1
            session.configure(latency=latency, stall=stall, seed=number)
            # Golden has zeros there, and bytes between rows come from there.
            session.shared_memory.write(0, np.zeros(len(session.shared_memory), np.uint8))
            data, run = run_on(session, compiled, compiled.memory(inputs))
            wrong = _differences(compiled, data, inputs, [node.output for node in graph.nodes] if every else None)
            if (data != compiled.run_golden(inputs)).any():
                wrong.append("memory is not what the golden core leaves")
            if not run.interrupt or run.violations or run.late:
                wrong.append(f"interrupt {run.interrupt}, rules broken {run.violations}, waits {run.late}")
            yield _tried(wrong, model)


def _differences(compiled, data, inputs, names=None):
    """Tensors in memory that are not as the evaluation has them."""
    expected = network.evaluate(compiled.graph, inputs)
    return [f"{name} differs from the evaluation in {(value != expected[name]).sum()} values"
            for name, value in compiled.tensors(data, names).items() if (value != expected[name]).any()]  # fmt: skip


def _tried(wrong, model):
    from .kinds import Tried

    return Tried(1, "\n".join(wrong), model.SerializeToString() if wrong else b"")
