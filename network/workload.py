"""The workload ``network`` of ``tilewright sim``: photographs to the names of classes on the whole accelerator.

Every tensor stays in memory and is compared, with the evaluation and with ONNX Runtime.
"""

from dataclasses import replace

import numpy as np

from tilewright.sim.progress import report
from tilewright.sim.usage import HostError
from tilewright.sim.workloads.findings import Findings

from .evaluation import evaluate
from .models.classes import class_names
from .models.efficientnet import build_quantised
from .models.photographs import load_photograph, prepare
from .picture import charts_of, table_of, totals_of
from .program.compiled import compile as compile_network
from .program.compiled import first_nodes
from .program.machine import machine_of_core
from .program.rtl import run_on
from .reader import read_model
from .witness import Witness

__all__ = ["SUMMARY", "play", "play_model"]

SUMMARY = "photographs through EfficientNet-Lite0, from pixels to the name of a class, every tensor compared"

#: Photographs that are run.
_PHOTOGRAPHS = ("cat", "coffee")
_BEST = 3  # classes that are named


def play(accelerator, photographs):
    """Runs the network on its own photographs; those of the other workloads are not needed."""
    model = build_quantised()
    (name,) = (given.name for given in model.graph.input)
    pixels = {photograph: load_photograph(photograph) for photograph in _PHOTOGRAPHS}
    findings, answers = play_model(accelerator, model, {each: {name: prepare(pixels[each])} for each in pixels})
    pictures = {f"{each}: {_label(answers[each])}": pixels[each] for each in answers}
    return replace(findings, facts=(*pictures, *findings.facts), pictures=pictures)


def _label(answer):
    """The likeliest classes of an answer, and how likely."""
    scores = np.exp(answer[0] - answer.max())
    scores /= scores.sum()
    best = np.argsort(-scores, kind="stable")[:_BEST]
    return ", ".join(f"{class_names()[number].split(',')[0]} {scores[number]:.0%}" for number in best)


def play_model(accelerator, model, samples):
    """Runs a model on several inputs, and compares every tensor.

    Parameters
    ----------
    accelerator : Accelerator
    model : ModelProto
    samples : dict of str to dict
        By the name of each case: inputs by name.

    Returns
    -------
    Findings, dict of str to array
        And the first output of each case, if no layers are left out.
    """
    session, whole = accelerator.session, read_model(model)
    graph = first_nodes(whole, accelerator.layers)
    report("compilation of the network")
    compiled = compile_network(graph, machine_of_core(session.params), every_tensor=True)
    names = [node.output for node in graph.nodes]
    facts, answers, run = [], {}, None
    for case, inputs in samples.items():
        report(f"golden, {case}")
        expected = evaluate(graph, inputs)
        data, run = run_on(session, compiled, compiled.memory(inputs), case)
        seen = compiled.tensors(data, names)
        one = totals_of(compiled, run)
        for name in names:
            one.require(seen[name], expected[name], f"tensor {name} of {case}")
        verdict = "NOT equal to golden" if one.problems else "equal to golden"
        said, reservation = _witness(model, graph, inputs, one, seen, case)
        verdict += said
        accelerator.count(case, one)
        facts.append(
            f"{case}: {len(names)} tensors, {sum(value.size for value in seen.values()):,} values, {verdict}; "
            f"{run.cycles:,} cycles, {one.work / compiled.machine.conv.peak / run.cycles:.1%} of all MACs, "
            f"{run.cycles / one.limit:.2f} times the limit; "
            f"{run.data_beats * compiled.machine.bus_bytes:,} bytes read, "
            f"{run.write_beats * compiled.machine.bus_bytes:,} written"
        )
        facts += [f"{case}: {reservation}"] if reservation else []
        if graph is whole:
            answers[case] = seen[graph.outputs[0]]
    charts, tables = charts_of(compiled, run), {f"Layers of {case}": table_of(compiled, run)}
    return Findings(tuple(facts), {}, accelerator.cases, charts, tables), answers


def _witness(model, graph, inputs, one, seen, case):
    """Compares with ONNX Runtime; returns the rest of a sentence on it, and what it does not witness."""
    try:
        witness = Witness(model, graph, [node.output for node in graph.nodes])
    except HostError as error:
        return f" ({error})", ""
    before = len(one.problems)
    for name, value in witness.run(inputs).items():
        one.require(seen[name], value, f"tensor {name} of {case}, by ONNX Runtime,")
    verdict = " and to ONNX Runtime" if len(one.problems) == before else " and NOT equal to ONNX Runtime"
    return verdict, witness.reservation
