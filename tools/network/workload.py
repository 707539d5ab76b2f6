"""Workloads of ``tilewright sim`` with networks: photographs to classes and boxes, digits to numbers, sounds to words.

Every tensor stays in memory and is compared, with the evaluation and with ONNX Runtime.
"""

from dataclasses import replace
from math import ceil

import numpy as np

from tilewright.errors import HostError
from tilewright.network.compiled import compile as compile_network
from tilewright.network.compiled import first_nodes
from tilewright.network.evaluation import evaluate
from tilewright.network.machine import machine_of_core
from tilewright.network.models.digit_reader import draw_digits, prepare_digits, written_digits
from tilewright.network.models.digit_reader import load_model as load_reader
from tilewright.network.models.efficientnet import build_quantised
from tilewright.network.models.face_detector import draw_faces, find_faces, load_model, prepare_grey
from tilewright.network.models.keyword_spotter import draw_words, prepare_words, spoken_words
from tilewright.network.models.keyword_spotter import load_model as load_spotter
from tilewright.network.models.photographs import class_names, load_photograph, prepare
from tilewright.network.models.speech import WORDS
from tilewright.network.reader import read_model
from tilewright.network.rtl import cores_of, measure_layers, run_on
from tilewright.network.witness import Witness
from tilewright.progress import report
from tilewright.sim.report.activity import activity
from tilewright.sim.workloads.findings import Findings, Totals

from ..campaign.networks import witness_differences

__all__ = ["charts_of", "play_classes", "play_digits", "play_faces", "play_model", "play_words", "table_of",
           "totals_of"]  # fmt: skip

_BEST = 3  # classes that are named
#: Kinds of nodes that ONNX Runtime computes in floats, so that what follows from them may differ more.
_IN_FLOATS = ("Normalise", "Recurrent")


def play_classes(accelerator, photographs):
    """Runs EfficientNet-Lite0 on its own photographs; the other workloads' are not needed."""
    return _play(accelerator, build_quantised(), ("cat", "coffee"), prepare,
                 lambda pixels, answer: (_label(answer), pixels))  # fmt: skip


def play_faces(accelerator, photographs):
    """Runs the detector of faces on a photograph that it was not trained on, and draws its boxes."""
    return _play(accelerator, load_model(), ("astronaut",), prepare_grey, _with_boxes)


def play_digits(accelerator, photographs):
    """Runs the reader of digits on some that it was not trained on."""
    pixels, targets = written_digits()
    return _play_several(accelerator, load_reader(), "digits", prepare_digits(pixels), range(10), targets,
                         draw_digits(pixels))  # fmt: skip


def play_words(accelerator, photographs):
    """Runs the spotter of keywords on some by speakers that it was not trained on."""
    sounds, targets = spoken_words()
    inputs = prepare_words(sounds)
    return _play_several(accelerator, load_spotter(), "words", inputs, WORDS, targets, draw_words(inputs))


def _play_several(accelerator, model, case, inputs, names, targets, picture):
    """Runs a model that reads several things at once; ``names`` are those of its classes, ``targets`` what is right."""
    findings, answers = play_model(accelerator, model, {case: {"x": inputs}})
    pictures = {}
    for answer in answers.values():
        read = answer.argmax(axis=1)
        right = f"{np.count_nonzero(read == targets)} of {len(read)} right"
        pictures[f"{case}: {' '.join(str(names[each]) for each in read)}, {right}"] = picture
    return replace(findings, facts=(*pictures, *findings.facts), pictures=pictures)


def _play(accelerator, model, names, prepared, shown):
    """Runs a model on named photographs; ``shown`` makes a label and a picture of pixels and an answer."""
    (name,) = (given.name for given in model.graph.input)
    pixels = {photograph: load_photograph(photograph) for photograph in names}
    findings, answers = play_model(accelerator, model, {each: {name: prepared(pixels[each])} for each in pixels})
    labelled = {each: shown(pixels[each], answers[each]) for each in answers}
    pictures = {f"{each}: {label}": picture for each, (label, picture) in labelled.items()}
    return replace(findings, facts=(*pictures, *findings.facts), pictures=pictures)


def _with_boxes(pixels, answer):
    """The boxes of an answer in words, and the photograph with them."""
    faces = find_faces(answer)
    boxes = (f"a face from row {face.top:.0f}, column {face.left:.0f} to row {face.bottom:.0f}, column "
             f"{face.right:.0f}, {face.score:.0%}" for face in faces)  # fmt: skip
    return "; ".join(boxes) or "no face", draw_faces(pixels, faces)


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
    accelerator : Worker
        Of a session of a core with all engines.
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
    params = session.params
    machine = machine_of_core(params)
    compiled = compile_network(graph, machine, every_tensor=True)
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
        accelerator.count(one, case)
        facts.append(
            f"{case}: {len(names)} tensors, {sum(value.size for value in seen.values()):,} values, {verdict}; "
            f"{run.cycles:,} cycles, {one.work / compiled.plan.machine.peak / run.cycles:.1%} of all MACs, "
            f"{run.cycles / one.limit:.2f} times the limit; "
            f"{run.data_beats * compiled.plan.machine.bus_bytes:,} bytes read, "
            f"{run.write_beats * compiled.plan.machine.bus_bytes:,} written"
        )
        facts += [f"{case}: {reservation}"] if reservation else []
        hosted = sorted({node.operator for node in graph.nodes if node.output in compiled.graph.hosted})
        if hosted:
            facts.append(f"{case}: the host computes {', '.join(hosted)} and what follows, as the engines cannot")
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
    values = witness.run(inputs)
    if any(node.kind in _IN_FLOATS for node in graph.nodes):
        return _by_node(model, graph, inputs, one, case)
    before = len(one.problems)
    for name, value in values.items():
        one.require(seen[name], value, f"tensor {name} of {case}, by ONNX Runtime,")
    verdict = " and to ONNX Runtime" if len(one.problems) == before else " and NOT equal to ONNX Runtime"
    return verdict, witness.reservation


def _by_node(model, graph, inputs, one, case):
    """The same for a network with nodes whose results may differ by one: each node from ONNX Runtime's inputs."""
    differences, _, floats = witness_differences(model, graph, inputs)
    one.problems += [f"{case}, by ONNX Runtime: {difference}" for difference in differences]
    if differences:
        return " and NOT equal to ONNX Runtime", ""
    counts = [f"{count:,} of {size:,} values of {operator}" for operator, (count, size) in floats.items()]
    but = f", but that {', '.join(counts)} differ by one" if counts else ""
    return f" and node by node to ONNX Runtime{but}", ""


_ZOOM = 3  # layers of the enlarged part
_CAPTION = "When each engine worked"
_HEAD = ("layer", "operator", "output", "cycles", "expected", "MACs", "of all MACs", "bytes in", "bytes out")


def totals_of(compiled, run):
    """The Totals of a run: its limit is the largest of multiplications, bytes read and bytes written."""
    macs = sum(layer.macs for layer in compiled.plan.layers)
    limit = max(ceil(macs / compiled.plan.machine.peak), run.data_beats, run.write_beats, 1)
    one = Totals("MACs", parts=1, work=macs, cycles=run.cycles, limit=limit)
    one.problems += [f"rule of AXI broken: {rule.name}" for rule in run.violations]
    one.problems += [f"wait that lasted too long: {wait.name}" for wait in run.late]
    return one


def charts_of(compiled, run):
    """When each engine worked, by caption: in all of a run and, if there are more layers, in three of its middle."""
    marks = [(one.start, one.end, one.layer.name) for one in measure_layers(compiled, run) if one.cycles]
    window = min(core.words[0].cycle for core in cores_of(run)), run.cycles
    charts = {}
    for number, (core, words) in enumerate(zip(cores_of(run), compiled.programs, strict=True)):
        of = f" of core {number}" if len(compiled.programs) > 1 else ""
        whole = activity(core, words, marks=marks, window=window)
        charts[f"{_CAPTION}{of}"] = whole.svg()
        if len(marks) > _ZOOM:  # otherwise it would be the same picture
            middle = (len(marks) - _ZOOM) // 2
            near = marks[middle : middle + _ZOOM]
            part = whole._replace(first=near[0][0], last=near[-1][1])
            charts[f"{_CAPTION}{of}, from {near[0][2]} to {near[-1][2]}"] = part.svg()
    return charts


def table_of(compiled, run):
    """Headings and rows, of text: a row for each layer."""
    return _HEAD, [_row(one, compiled.plan.machine.peak) for one in measure_layers(compiled, run)]


def _row(one, peak):
    """Cells of a layer."""
    share = f"{one.share(peak):.1%}" if one.layer.macs else ""
    shape = " x ".join(map(str, one.layer.output.shape))
    counts = (one.cycles, one.expected, one.layer.macs)
    return (one.layer.name, one.layer.operator, shape, *(f"{count:,}" for count in counts), share,
            f"{one.bytes_in:,}", f"{one.bytes_out:,}")  # fmt: skip
