"""Workloads with networks: small models, or some layers, on the accelerator of preset unit, and their reports."""

import re
from functools import partial

import numpy as np
import pytest

from tilewright import extras
from tilewright.errors import HostError
from tilewright.network.models.face_detector import load_model
from tilewright.network.models.keyword_spotter import load_model as load_spotter
from tilewright.network.models.keyword_spotter import spoken_words
from tilewright.network.models.photographs import load_photograph
from tilewright.network.models.small import build_small, small_input
from tilewright.network.models.speech import WORDS
from tilewright.sim.report.page import report_page
from tilewright.sim.session.core import open_accelerator
from tilewright.sim.workloads import WORKLOADS, machines
from tilewright.sim.workloads.findings import Worker
from tilewright.tools.cli import sim as command
from tilewright.tools.cli.main import main
from tilewright.tools.cli.sim import Played
from tilewright.tools.network import workload
from tilewright.tools.network.workload import play_classes, play_digits, play_faces, play_model, play_words

NETWORKS = ("network", "detector", "transformer", "spotter")


@pytest.fixture(scope="module")
def session():
    with open_accelerator("unit") as session:
        yield session


@pytest.fixture
def model():
    return build_small("signed", reduced=True)


SAMPLES = {name: small_input("signed", seed) for seed, name in enumerate(("one", "other"))}


def test_every_tensor_is_compared(session, model):
    accelerator = Worker(session)
    findings, answers = play_model(accelerator, model, SAMPLES)
    totals = accelerator.totals
    assert totals.problems == [] and totals.parts == 2
    assert 0 < totals.utilisation <= 1
    assert findings.cases == accelerator.cases and set(findings.cases) == set(answers) == set(SAMPLES)
    fact = r"one: 14 tensors, 13,012 values, equal to golden and to ONNX Runtime; [\d,]+ cycles, .* of all MACs, .*"
    assert re.fullmatch(fact, findings.facts[0])
    ((head, rows),) = findings.tables.values()
    cycles = [int(row[head.index("cycles")].replace(",", "")) for row in rows]
    assert 0.95 < sum(cycles) / findings.cases["other"].cycles <= 1, "layers follow each other without a gap"
    assert [name for name, *_ in rows][:2] == ["conv0_quant", "maxpool2"]
    whole, part = findings.charts.values()
    assert all(f">{engine}<" in svg for svg in (whole, part) for engine in ("convolution engine", "access unit, in"))
    page = report_page("unit", [session.params], [Played("network", totals, findings, 1.0)], None)
    assert "Layers of other" in page and "<svg" in page and "a command processor" in page


def test_a_wrong_byte_is_found(session, model, monkeypatch):
    def wrong(session, compiled, memory, stage):
        data, run = workload_run(session, compiled, memory, stage)
        address = compiled.plan.tensors[compiled.plan.layers[2].output.name]
        data[address] ^= 1
        return data, run

    workload_run = workload.run_on
    monkeypatch.setattr(workload, "run_on", wrong)
    accelerator = Worker(session)
    findings, _ = play_model(accelerator, model, {"one": SAMPLES["one"]})
    names = [problem.split(",")[0].split(":")[0] for problem in accelerator.totals.problems]
    assert len(names) == 2 and names[0] == names[1] and names[0].endswith("of one")
    assert all(problem.endswith("1 of 1024 values differ") for problem in accelerator.totals.problems)
    assert "NOT equal to golden and NOT equal to ONNX Runtime" in findings.facts[0]


def test_a_processor_without_exact_kernels_is_said(session, model, monkeypatch):
    def none(*args):
        raise HostError("ONNX Runtime is not exact")

    monkeypatch.setattr(workload, "Witness", none)
    findings, _ = play_model(Worker(session, layers=2), model, {"one": SAMPLES["one"]})
    assert "equal to golden (ONNX Runtime is not exact); " in findings.facts[0]


class Opened:
    """Stands for the simulators of a run: there is one, which a fixture has built."""

    def __init__(self, session, *arguments):
        self.session_of_all = session

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def prepare(self, names, display):
        assert len(names) == 1

    def session(self, name):
        return self.session_of_all


def test_command_shows_photographs_and_answers(session, model, monkeypatch, tmp_path, capsys):
    """Of a small model, for which photographs are drawn numbers; the whole network has the test that is long."""
    monkeypatch.setattr(machines, "Machines", partial(Opened, session))
    monkeypatch.setattr(command, "REPORT", tmp_path)
    monkeypatch.setattr(workload, "build_quantised", lambda: model)
    monkeypatch.setattr(workload, "prepare", lambda pixels: SAMPLES["one"]["x"])
    assert main(["sim", "--workload", "network", "--preset", "unit"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^network +2 +1,156,992 MACs .* equal +[\d,]+$", out, re.MULTILINE)
    (label,) = re.findall(r"^network: cat: (.* \d+%, .* \d+%, .* \d+%)$", out, re.MULTILINE)
    page = (tmp_path / "index.html").read_text()
    assert f"cat: {label}" in page and "Layers of coffee" in page and page.count("data:image/png") == 2


def test_command_shows_faces(session, monkeypatch, tmp_path, capsys):
    """All layers of the detector, on part of a face: the whole photograph has the test that is long."""
    monkeypatch.setattr(machines, "Machines", partial(Opened, session))
    monkeypatch.setattr(command, "REPORT", tmp_path)
    monkeypatch.setattr(workload, "load_model", lambda: load_model(32, 32))
    monkeypatch.setattr(workload, "load_photograph", lambda name: load_photograph(name)[26:58, 82:114])
    assert main(["sim", "--workload", "detector", "--preset", "unit"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^detector +1 .* equal +[\d,]+$", out, re.MULTILINE) and "equal to golden and to ONNX" in out
    (label,) = re.findall(r"^detector: astronaut: (no face|a face from row .*%)$", out, re.MULTILINE)
    page = (tmp_path / "index.html").read_text()
    assert f"astronaut: {label}" in page and "Layers of astronaut" in page and page.count("data:image/png") == 1


def test_command_reads_digits(session, monkeypatch, tmp_path, capsys):
    """The first layers of the reader of digits: all layers have the test that is long."""
    monkeypatch.setattr(machines, "Machines", partial(Opened, session))
    monkeypatch.setattr(command, "REPORT", tmp_path)
    assert main(["sim", "--workload", "transformer", "--preset", "unit", "--layers", "6"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^transformer +1 .* equal +[\d,]+$", out, re.MULTILINE)
    assert re.search(r"digits: 6 tensors, .* equal to golden and node by node to ONNX Runtime, but that \d+ of", out)


def test_command_hears_words(session, monkeypatch, tmp_path, capsys):
    """All layers for two words; the preset unit leaves the GRU to the host, and has jobs for the convolution."""
    monkeypatch.setattr(machines, "Machines", partial(Opened, session))
    monkeypatch.setattr(command, "REPORT", tmp_path)
    monkeypatch.setattr(workload, "load_spotter", lambda: load_spotter(2))
    monkeypatch.setattr(workload, "spoken_words", lambda: spoken_words(count=2))
    assert main(["sim", "--workload", "spotter", "--preset", "unit"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^spotter +1 .* equal +[\d,]+$", out, re.MULTILINE)
    assert re.search(r"words: 12 tensors, .* and node by node to ONNX Runtime, but that \d+ of 64 values of GRU", out)
    assert "words: the host computes GRU and what follows, as the engines cannot" in out
    heard = " ".join(WORDS[each] for each in spoken_words(count=2)[1])
    page = (tmp_path / "index.html").read_text()
    assert f"spotter: words: {heard}, 2 of 2 right" in out and page.count("data:image/png") == 1


def test_layers_can_be_left_out(session, model):
    for layers, tensors in ((1, 1), (3, 3), (100, 14)):
        findings, answers = play_model(Worker(session, layers=layers), model, {"one": SAMPLES["one"]})
        assert f"one: {tensors} tensors, " in findings.facts[0] and bool(answers) == (layers == 100)


@pytest.mark.long
def test_photographs_have_their_classes():
    with open_accelerator("default") as session:
        accelerator = Worker(session)
        findings = play_classes(accelerator, None)
    assert accelerator.totals.problems == []
    (cat, coffee) = findings.pictures
    assert re.match(r"cat: tiger cat \d+%, Egyptian cat \d+%", cat) and coffee.startswith("coffee: espresso 95%")
    assert all(pixels.shape == (224, 224, 3) for pixels in findings.pictures.values())


@pytest.mark.long
def test_a_face_is_found():
    with open_accelerator("default") as session:
        accelerator = Worker(session)
        findings = play_faces(accelerator, None)
    assert accelerator.totals.problems == []
    ((caption, picture),) = findings.pictures.items()
    assert re.fullmatch(r"astronaut: a face from row \d+, column \d+ to row \d+, column \d+, \d+%", caption)
    assert (picture != load_photograph("astronaut")).any()


@pytest.mark.long
def test_digits_are_read():
    with open_accelerator("default") as session:
        accelerator = Worker(session)
        findings = play_digits(accelerator, None)
    assert accelerator.totals.problems == []
    ((caption, _),) = findings.pictures.items()
    assert caption == "digits: 2 8 2 2 5 7 9 5 6 8 8 4 3 0 8 0, 14 of 16 right"


@pytest.mark.long
def test_words_are_heard():
    """The GRU on the processing engine."""
    with open_accelerator("default") as session:
        accelerator = Worker(session)
        findings = play_words(accelerator, None)
    assert accelerator.totals.problems == []
    ((caption, _),) = findings.pictures.items()
    assert sorted(caption.split(", ")[0].removeprefix("words: ").split()) == sorted(WORDS)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--workload", "network", "--sim", "icarus"],
         "workload network needs --layers N on icarus and with --waves: all layers would take days"),
        (["--workload", "network", "--waves"],
         "workload network needs --layers N on icarus and with --waves: all layers would take days"),
        (["--workload", "gemm", "--layers", "2"], f"--layers goes with a workload among {', '.join(NETWORKS)}"),
        (["--layers", "2"], f"--layers goes with a workload among {', '.join(NETWORKS)}"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(options, sentence, capsys):
    assert main(["sim", *options]) == 2
    assert capsys.readouterr().err == f"tilewright sim: {sentence}\n"


def test_a_missing_extra_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(extras, "missing", lambda extra: ["onnx"] if extra == "network" else [])
    assert main(["sim", "--workload", "network"]) == 2
    assert capsys.readouterr().err == ("tilewright sim: onnx must be installed: pip install 'tilewright[network]'\n")


def test_it_is_left_out_where_it_would_take_days():
    class Args:
        workload, preset, sim, waves, layers, settings = "all", "default", "icarus", False, None, ()

    assert command._names(Args) == [name for name in WORKLOADS if name not in NETWORKS]
    Args.layers = 1
    assert command._names(Args) == list(WORKLOADS)


def test_a_label_names_the_likeliest():
    answer = np.zeros((1, 1000), np.float32)
    answer[0, [967, 281, 5]] = 12, 10, 9
    assert workload._label(answer) == "espresso 84%, tabby 11%, electric ray 4%"
