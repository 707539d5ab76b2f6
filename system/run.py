"""Runs the firmware on the simulated system, and compares what it prints and all memory with the golden model."""

import re
import tempfile
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tilewright.hw.core.params import ENGINES
from tilewright.network.compiled import compile as compile_network
from tilewright.network.container import c_array, container, relocations
from tilewright.network.drawn import NetworkMaker
from tilewright.network.machine import machine_of_core
from tilewright.network.models.digit_reader import load_model, prepare_digits, written_digits
from tilewright.network.reader import read_model
from tilewright.progress import report, work
from tilewright.sim.hdl.settings import Setting
from tilewright.sim.hdl.simulation import Simulation
from tilewright.sim.hdl.testbench import cached_design, make_design
from tilewright.sim.report.charts import svg
from tilewright.spec import Error
from tilewright.spec.core import ProgramError
from tilewright.tools.package.choice import Choice
from tilewright.tools.package.header import header_text
from tilewright.tools.package.library import library_files
from tilewright.tools.package.ports import member_docs

from .bench import SystemBench
from .build import compile_firmware, library_sizes, segments_of
from .processor import processor_verilog
from .top import MEMORY_BASE, SystemParams

__all__ = ["Outcome", "firmware_sources", "picture", "run_system", "table"]

#: The digit that is read: its number among those of scikit-learn.
DIGIT = 1405
#: Where the linker puts the memory of the model.
WORK_BASE = MEMORY_BASE + (512 << 10)
_LIMIT, _STEPS = 8_000_000, {"verilator": 500_000, "icarus": 10_000}

#: What the firmware does wrong on purpose, and what stops it: a code, or a sentence of the library.
_MISTAKES = {
    "a box of 24 bytes": Error.BOX,
    "a descriptor of rank 7": Error.RANK,
    "a copy from nowhere": Error.READ,
    "a wait without end": ProgramError.WATCHDOG,
    "a hundred copies at once": "the command queue is full",
    "an arrival too many": "the barrier refused the operation",
    "a model cut short": "the container is cut short",
    "a model of another version": "the container has another version",
    "a damaged model": "the container is damaged: its checksum differs",
    "a model for another core": "the model was compiled for a core of other sizes",
}


class Outcome(NamedTuple):
    """A run of the firmware.

    Attributes
    ----------
    text : str
        What it printed.
    phases : dict of str to int
        Cycles of each phase, as the firmware counted them.
    cycles : int
        From the reset to the end.
    sizes : dict of str to int
        Of the C library: :func:`~tilewright.system.build.library_sizes`.
    subject : str
        What the network looked at.
    compared : int
        Bytes of memory that were compared.
    problems : list of str
        What differs from the golden model.
    """

    text: str
    phases: dict
    cycles: int
    sizes: dict
    subject: str
    compared: int
    problems: list


def table(outcome):
    """An :class:`Outcome` as text."""
    sizes, verdict = outcome.sizes, "differ from" if outcome.problems else "equal"
    return (
        f"{outcome.text}\n{outcome.cycles:,} cycles; {outcome.subject}; "
        f"answer and {outcome.compared:,} bytes of memory {verdict} golden's\n"
        f"library on RV32IM at -Os: {sizes['library']:,} bytes, {sizes['model']:,} linked to run a model; "
        f"{sizes['sentences']:,} bytes of sentences"
    )


def picture(phases):
    """The phases as a bar, an SVG; a scale of their cycles, with their names below."""
    wide, parts, x, total = 700, [], 10, sum(phases.values())
    for number, (name, cycles) in enumerate(phases.items()):
        width = wide * cycles / total
        parts.append(
            f'<rect x="{x:g}" y="8" width="{max(width, 1):g}" height="24" class="{"wide" if number % 2 else "bar"}"/>'
        )
        parts.append(f'<line x1="{x:g}" y1="32" x2="{x:g}" y2="{44 + 18 * number}" class="rule"/>')
        parts.append(f'<text x="{x + 4:g}" y="{50 + 18 * number}">{name}: {cycles / total:.1%}</text>')
        x += width
    return svg(wide + 120, 58 + 18 * len(phases), parts, "Share of the cycles that each phase of the firmware takes")


class _Network(NamedTuple):
    """A network that gives scores, with an input; ``stored`` is the name of the quantised input."""

    graph: object
    inputs: dict
    stored: str
    subject: str


def _digit_reader():
    graph = read_model(load_model(count=1))
    pixels, (digit,) = written_digits(DIGIT, 1)
    stored = next(node.output for node in graph.nodes if node.kind == "Quantize")
    return _Network(graph, {graph.inputs[0]: prepare_digits(pixels)}, stored, f"a {digit} was written")


def _small_network():
    """One convolution with random weights, for simulators that take a millisecond for a cycle."""
    maker = NetworkMaker(DIGIT)
    stored = maker.input((1, 8, 2, 2))
    graph = maker.graph(maker.conv(stored, 10, 2, pad=0))
    return _Network(graph, maker.draw(), stored, "a convolution with random weights")


def firmware_sources(compiled, stored, *, mistakes=True):
    """All files of the firmware, a dict of str to str.

    Parameters
    ----------
    compiled : Compiled
    stored : array
        The quantised input.
    mistakes : bool
        Whether it also makes mistakes, most of whose cycles go to the serial line.
    """
    settings = tuple(Setting("tmau", name, True) for name in ("command_window", "barrier_window"))
    choice = Choice("core", "unit", engines=ENGINES, settings=settings, prefix="soc")
    scores = compiled.places[_scores(compiled)]
    digit = (
        "#include <stddef.h>\n#include <stdint.h>\n"
        f"#define MISTAKES {int(mistakes)}\n"
        f"#define MODEL_MEMORY {len(compiled.image)}\n#define SCORES {int(np.prod(scores.shape))}\n"
        "extern const uint32_t digit_reader[];\nextern const size_t digit_reader_size;\n"
        f"static const uint8_t digit[] = {{{', '.join(map(str, stored.ravel()))}}};\n"
    )
    folder = files("tilewright.system").joinpath("firmware")
    own = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in ("start.S", "main.c", "link.ld")}
    model = c_array(container(compiled), "digit_reader")
    return library_files() | own | {"soc_core.h": header_text(choice), "digit.h": digit, "digit_reader.c": model}


def _scores(compiled):
    """Name of the tensor of the scores, as the core stores it."""
    tail = compiled.graph.tail
    return tail[0].inputs[0] if tail else compiled.graph.outputs[0]


def run_system(simulator="verilator"):
    """Compiles network and firmware, builds the simulator and runs it; an :class:`Outcome`.

    On Icarus Verilog, which is a hundred times slower, the network is one convolution, and the firmware makes no
    mistakes.
    """
    params, small = SystemParams(), simulator != "verilator"
    with work("system"):
        report("network")
        network = _small_network() if small else _digit_reader()
        compiled = compile_network(network.graph, machine_of_core(params.core))
        report("golden")
        before, after = compiled.memory(network.inputs), compiled.run_golden(network.inputs)
        stored = compiled.tensor(before, network.stored)
        report("firmware")
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            sources = firmware_sources(compiled, stored, mistakes=not small)
            elf = compile_firmware(Path(folder), sources).read_bytes()
            sizes = library_sizes(Path(folder), sources)
        report("simulator")
        text, memory, statuses = _simulate(params, segments_of(elf), len(after), simulator)
    (scores,) = compiled.tensors(after).values()
    problems = _differences(text, memory, _moved(compiled, after), int(scores.argmax()), statuses)
    problems += [] if small else _unanswered(text, statuses)
    phases = {name: int(count) for name, count in re.findall(r"^(\w+): (\d+) cycles$", text, re.MULTILINE)}
    return Outcome(text, phases, statuses["cycles"], sizes, network.subject, len(after), problems)


def _moved(compiled, image):
    """An image at ``WORK_BASE``."""
    image = image.copy()
    for place in relocations(compiled):
        image[place : place + 8].view("<u8")[0] += np.uint64(WORK_BASE)
    return image


def _design(params):
    bench = SystemBench(params)
    return make_design(bench, bench.arrays())


def _simulate(params, segments, count, simulator):
    """The text on the serial line, the model's memory, and the statuses at the end."""
    folder = files("tilewright.system")
    sources = [folder.joinpath(name).read_text(encoding="utf-8") for name in ("processor.py", "top.py", "bench.py")]
    design = cached_design(lambda: _design(params), "system", params, sources)
    design = replace(design, verilog=f"{design.verilog}\n{processor_verilog()}")
    with Simulation(design, simulator=simulator) as simulation:
        for address, data in segments:
            name = "memory" if address >= MEMORY_BASE else "firmware"
            width, first = design.arrays[name].width // 8, address % MEMORY_BASE
            if first % width:
                raise RuntimeError(
                    f"a segment of the firmware must begin at a multiple of {width}, not at {address:#x}"
                )
            simulation.load(
                name, first // width, np.frombuffer(data.ljust(-(-len(data) // width) * width, b"\0"), np.uint8)
            )
        width, total, reset = design.arrays["memory"].width // 8, 0, True
        while True:
            dump = {"received": (0, design.arrays["received"].depth),
                    "memory": ((WORK_BASE - MEMORY_BASE) // width, -(-count // width))}  # fmt: skip
            statuses, _ = simulation.exchange(reset=reset, limit=_STEPS[simulator])
            total, reset = total + statuses["cycles"], False
            report("cycles", total, _LIMIT)
            if statuses["finished"] or total >= _LIMIT:
                break
        statuses, arrays = simulation.exchange(limit=1, dump=dump)
    text = arrays["received"].ravel()[: statuses["received_count"]].tobytes().decode("latin-1")
    return text, arrays["memory"].ravel()[:count], statuses | {"cycles": total}


def _differences(text, memory, expected, answer, statuses):
    """Sentences on what is not as golden says."""
    problems = []
    if not statuses["finished"]:
        problems.append(f"the processor has not stopped after {statuses['cycles']:,} cycles")
    if statuses["failed"]:
        problems.append("an access of the processor was answered with an error")
    if f"this is a {answer}\n" not in text:
        problems.append(f"the firmware does not print the answer of golden, {answer}")
    wrong = np.flatnonzero(memory != expected)
    if len(wrong):
        problems.append(
            f"{len(wrong):,} of {len(expected):,} bytes of memory differ from golden, the first at {wrong[0]:#x}"
        )
    return problems


def _unanswered(text, statuses):
    """Sentences on mistakes of the firmware that nothing has stopped as it should."""
    problems = []
    docs = {code: member_docs(type(code))[code.name] for code in _MISTAKES.values() if not isinstance(code, str)}
    for tried, code in _MISTAKES.items():
        sentence = docs.get(code, code).split("; value is")[0]
        if f"{tried}: {sentence}" not in text:
            problems.append(f"{tried!r} is not answered with {sentence!r}")
    if statuses["interrupts"] < 4:  # the network, and three programs
        problems.append(f"there were {statuses['interrupts']} interrupts")
    return problems
