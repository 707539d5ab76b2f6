"""Every attribute of every operator that is read, in every version that changed it: used, without meaning, or refused.

Each value that is tried gives what ONNX Runtime gives, or a sentence; which values are taken is what docs/models.md,
"Attributes" says. Operators and attributes are those that ONNX and ONNX Runtime themselves list.
"""

import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from support.operators import CASES, VALUES
from tilewright.network import ModelError
from tilewright.network.evaluation import evaluate
from tilewright.network.reader import read_model
from tilewright.network.reader.constants import FOR_CONSTANTS
from tilewright.network.reader.model import READERS
from tilewright.network.reader.resize import COORDINATES
from tilewright.verify.random.networks import draw_inputs

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: Versions of ONNX's operators that ONNX Runtime knows.
FIRST, LAST = 7, 27
OPERATORS = set(READERS) | {("", kind) for kind in FOR_CONSTANTS}
SCHEMAS = {operator: [] for operator in OPERATORS}
for each in (*onnx.defs.get_all_schemas_with_history(), *get_all_operator_schema()):
    if (each.domain, each.name) in SCHEMAS and (each.domain or isinstance(each, onnx.defs.OpSchema)):
        SCHEMAS[each.domain, each.name].append(each)


def schema_of(domain, kind, opset):
    return SCHEMAS[domain, kind][0] if domain else onnx.defs.get_schema(kind, opset)


def opsets_of(domain, kind):
    """Versions with different attributes, each in its last form; all operators of ONNX Runtime are of one."""
    if domain:
        return [21]
    found = {}
    for schema in sorted(SCHEMAS["", kind], key=lambda schema: schema.since_version):
        opset = max(schema.since_version, FIRST)
        if opset <= LAST:
            now = schema_of("", kind, opset)
            defaults = {name: each.default_value.SerializeToString() for name, each in now.attributes.items()}
            found[now.min_input, now.max_input, str(sorted(defaults.items()))] = opset
    return sorted(found.values())


def values_of(domain, kind, name, attributes):
    values = VALUES.get((domain, kind, name)) or VALUES[name]
    default = attributes[name].default_value if not domain else None
    if default is None or not default.name:
        return values
    given = onnx.helper.get_attribute_value(default)
    given = given.decode() if isinstance(given, bytes) else given
    return [given, *(value for value in values if value != given)]


def section(title, page="models"):
    """Text below a title of a page of docs/, and the rows of its tables without the first two of each."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8").partition(f"# {title}\n")[2]
    text = re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0]
    rows = [line[2:-2].split(" | ") for line in re.findall(r"^\|.*\|$", text, re.MULTILINE)]
    return text, rows[2:]


def documented():
    """By operator and attribute: the values that docs/models.md, "Attributes" names, or "any"."""
    found = {}
    for names, kinds, values in section("Attributes")[1]:
        taken = "any" if values.startswith("any") else re.findall(r"`(.*?)`", values)
        pairs = {(kind, name): taken for name in names.split(", ") for kind in kinds.split(", ")}
        assert not pairs.keys() & found.keys(), names
        found |= pairs
    return found


def test_every_operator_has_a_case():
    assert set(CASES) == OPERATORS


def test_operators_of_the_page_are_those_that_are_read():
    named = {name for row in section("Operators")[1] for name in re.findall(r"\b[A-Z]\w+", " ".join(row[:2]))}
    assert named == {kind for _, kind in READERS}


def test_operators_on_constants():
    text = section("Between DequantizeLinear and QuantizeLinear")[0]
    (named,) = re.findall(r"Constant nodes, and what (.*?)\s+work\s+out from them", text, re.DOTALL)
    assert set(re.findall(r"\b[A-Z]\w+", named)) | {"Constant"} == FOR_CONSTANTS


def test_positions_of_the_page():
    assert {row[0] for row in section("The nearest element", "network")[1]} == set(COORDINATES)


def test_every_attribute_is_documented():
    attributes = {(kind, name) for (domain, kind) in SCHEMAS for opset in opsets_of(domain, kind)
                  for name in schema_of(domain, kind, opset).attributes}  # fmt: skip
    assert set(documented()) == attributes


#: What ONNX Runtime has no kernel for, though ONNX defines it.
NO_KERNEL = {("DepthToSpace", 7)}


def compare(agree, case, model, witness=True):
    """Against ONNX Runtime, if it is a ``witness``; otherwise against what it computes in floats, as it stands."""
    if witness:
        agree(model, case.inputs)
        return
    graph = read_model(model)
    inputs = draw_inputs(np.random.default_rng(0), graph)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    (name,), values = graph.outputs, evaluate(graph, inputs)
    differences = np.abs(session.run([name], inputs)[0].astype(int) - values[name])
    assert differences.max() <= 1
    assert (differences > 0).mean() < 0.05


def is_taken(model):
    try:
        read_model(model)
    except ModelError as error:
        return re.match(r"node '[^']+' \(\w+\): ", str(error)) is None
    return True


def witness_takes(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        session.run(None, {each.name: np.ones(each.shape, np.uint8 if "uint8" in each.type else np.float32)
                           for each in session.get_inputs()})  # fmt: skip
    except Exception:  # whatever it finds wrong
        return False
    return True


@pytest.mark.parametrize(("domain", "kind"), sorted(OPERATORS), ids=lambda part: part or "onnx")
def test_attributes(domain, kind, agree):
    """What is taken gives what ONNX Runtime gives, and is what the page says; what is of other versions is refused."""
    says, taken = documented(), {}
    for number, case in enumerate(CASES[domain, kind]):
        for opset in opsets_of(domain, kind):
            attributes = schema_of(domain, kind, opset).attributes
            witness = (kind, opset) not in NO_KERNEL
            if witness:
                compare(agree, case, case.model(kind, opset))
            for name in attributes:
                for value in values_of(domain, kind, name, attributes):
                    model, what = case.model(kind, opset, **{name: value}), (kind, opset, name, value)
                    if is_taken(model):
                        taken.setdefault(name, set()).add(str(value))
                        assert number or says[kind, name] == "any" or str(value) in says[kind, name], what
                        if witness:
                            compare(agree, case, model, (kind, name) != ("AveragePool", "dilations"))
                    elif number == 0 and says[kind, name] == "any":
                        assert not witness_takes(model), what
            for name in {name for each in SCHEMAS[domain, kind] for name in each.attributes} - set(attributes):
                assert not is_taken(case.model(kind, opset, **{name: VALUES.get(name, [[1]])[0]})), (kind, opset, name)
        for name, values in taken.items() if number == 0 else ():
            assert says[kind, name] == "any" or values == set(says[kind, name]), (kind, name)


@pytest.mark.long
@pytest.mark.parametrize(("domain", "kind"), sorted(OPERATORS), ids=lambda part: part or "onnx")
def test_pairs_of_attributes(domain, kind, agree):
    """Two attributes at once, in the newest version."""
    opset = opsets_of(domain, kind)[-1]
    attributes = schema_of(domain, kind, opset).attributes
    for case, pair in product(CASES[domain, kind], combinations(sorted(attributes), 2)):
        for values in product(*(values_of(domain, kind, name, attributes) for name in pair)):
            model = case.model(kind, opset, **dict(zip(pair, values, strict=True)))
            if values[1] == [0] * 4 and kind in ("Conv", "QLinearConv"):
                continue  # ONNX Runtime refuses auto_pad with any pads, even if there are none
            if is_taken(model):
                compare(agree, case, model, (kind, "dilations" in pair) != ("AveragePool", True))
