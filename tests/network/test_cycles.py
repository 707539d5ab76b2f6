"""Expected cycles beside those of the hardware: within a tenth, on a mover that has few bursts in flight too."""

from dataclasses import replace

import pytest

from tilewright import network
from tilewright.hw.core import CORE_PRESETS
from tilewright.network.drawn import NetworkMaker
from tilewright.network.machine import MACHINES
from tilewright.network.models.small import build_small, small_input
from tilewright.network.reader import read_model
from tilewright.network.rtl import run_on
from tilewright.network.tiling.costs import moved, transfer_cycles
from tilewright.progress import shown, work
from tilewright.sim.session.core import open_accelerator


def drawn(make):
    maker = NetworkMaker(seed=1)
    make(maker)
    return maker.graph(), maker.draw()


def residual(maker):
    x = maker.conv(maker.input((1, 3, 32, 32)), 16, 3, stride=2)
    maker.add(maker.conv(x, 16, 3, groups=16), x)


def chain(maker):
    x = maker.input((1, 16, 16, 16))
    for _ in range(4):
        x = maker.conv(x, 16, 1)


def deep(maker):
    x = maker.input((1, 8, 8, 8))
    for _ in range(8):
        x = maker.conv(x, 8, 3)


def joined(maker):
    """Two matrices one after the other: moves of long runs of bytes."""
    maker.concat(1, maker.input((1, 160, 16)), maker.input((1, 96, 16)))


def attention(maker):
    """Two heads of 32 channels, with a function where attention has its Softmax."""
    x = maker.input((1, 32, 64))

    def head(*order):
        return maker.transpose(maker.reshape(maker.matrix(x, 64), 1, 32, 2, 32), *order)

    scores = maker.function(maker.product(head(0, 2, 1, 3), head(0, 2, 3, 1)))
    maker.reshape(maker.transpose(maker.product(scores, head(0, 2, 1, 3)), 0, 2, 1, 3), 1, 32, 64)


def small(name):
    return read_model(build_small(name)), small_input(name, seed=0)


NETWORKS = {
    "residual": lambda: drawn(residual),
    "chain": lambda: drawn(chain),
    "deep": lambda: drawn(deep),
    "wide kernel": lambda: drawn(lambda maker: maker.conv(maker.input((1, 16, 16, 16)), 16, 3)),
    "depthwise": lambda: drawn(lambda maker: maker.conv(maker.input((1, 32, 24, 24)), 32, 3, groups=32)),
    "joined": lambda: drawn(joined),
    "attention": lambda: drawn(attention),
    "signed": lambda: small("signed"),
    "mixed": lambda: small("mixed"),
}
LONG = {"pointwise": lambda: drawn(lambda maker: maker.conv(maker.input((1, 64, 28, 28)), 64, 1))}


@pytest.fixture(scope="module")
def session():
    with open_accelerator("unit") as session:
        yield session


@pytest.mark.parametrize(
    ("name", "latency"),
    [*((name, 100) for name in NETWORKS), ("signed", 20), ("mixed", 20), ("depthwise", 20),
     *(pytest.param(name, 100, marks=pytest.mark.long) for name in LONG)],
)  # fmt: skip
def test_expected_cycles_are_those_of_the_hardware(session, name, latency):
    graph, inputs = (NETWORKS | LONG)[name]()
    compiled = network.compile(graph, replace(MACHINES["unit"], latency=latency))
    session.configure(latency=latency)
    _, run = run_on(session, compiled, compiled.memory(inputs))
    print(f"{name}: {compiled.plan.cycles:,} cycles expected, {run.cycles:,} on the hardware")
    assert 0.9 <= compiled.plan.cycles / run.cycles <= 1.1


def test_progress_counts_the_words_of_the_program(session):
    """Those that compile prints; of a job's three words one is logged."""
    graph, inputs = small("signed")
    compiled = network.compile(graph, "unit")
    session.configure(latency=100)
    seen = []

    class Display:
        def update(self, name, stage, done, total):
            seen.append((stage, done, total))

        def end(self, name):
            pass

        def close(self):
            pass

    with shown(Display()), work("hardware"):
        run_on(session, compiled, compiled.memory(inputs))
    words = [(done, total) for stage, done, total in seen if stage == "words"]
    assert words and words[-1] == (len(compiled.words), len(compiled.words))


@pytest.mark.parametrize("preset", MACHINES)
def test_a_machine_is_what_the_preset_has(preset):
    tmau, machine = CORE_PRESETS[preset].tmau, MACHINES[preset]
    assert (machine.bus_bytes, machine.outstanding, machine.burst) == (
        tmau.bus_bytes, tmau.max_outstanding, tmau.max_burst,
    )  # fmt: skip
    assert machine.smem_bytes == CORE_PRESETS[preset].smem.size_bytes


def test_few_bursts_in_flight_take_the_time_of_memory():
    """152 words in bursts of 4, of which 4 are in flight, are 38 bursts: a quarter of 38 times the memory's latency."""
    unit, default = MACHINES["unit"], replace(MACHINES["default"], bus_bytes=16)
    assert moved(None, 2432, unit.bus_bytes) == 152
    assert 900 < transfer_cycles(None, 2432, unit) < 1100
    assert transfer_cycles(None, 2432, default) == 152
