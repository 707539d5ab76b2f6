"""Programs on the hardware: memory is what the golden core leaves, and every tensor what the evaluation gives.

The simulator of preset unit is that of tests/integration/core/test_program.py.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tilewright import network
from tilewright.network import ModelError
from tilewright.network.architectures import resnet50
from tilewright.network.drawn import NetworkMaker
from tilewright.network.machine import MACHINES, Machine, machine_of
from tilewright.network.models.efficientnet import build_quantised
from tilewright.network.models.photographs import load_photograph, prepare
from tilewright.network.reader import read_model
from tilewright.network.rtl import measure_layers, measured, run_on, run_rtl
from tilewright.results import record
from tilewright.sim.hdl.settings import Setting
from tilewright.sim.session.core import open_accelerator
from tilewright.tools.docs.figures import stale
from tilewright.verify.random.networks import OPERATORS, draw_inputs, draw_network

ROOT = Path(__file__).parents[2]


def small():
    maker = NetworkMaker(4)
    x = maker.conv(maker.input((1, 3, 16, 15)), 20, 3)
    x = maker.add(maker.conv(maker.conv(x, 20, 3, groups=20), 20), x)
    # Tables that are no product: jobs add to what jobs before them made.
    x = maker.concat(1, x, maker.pool(x, "max", 3, pad=1), scales=[(0.05, 3), (0.06, 128), (0.1, 100)])
    # Some channels, columns and every other row; then each row and column twice.
    x = maker.take(x, [0], range(2, 34), range(1, 16, 2), range(3, 15))
    x = maker.take(x, [0], range(32), np.arange(16) // 2, np.arange(24) // 2)
    x = maker.reshape(maker.pool(x, "sum", maker.tensors[x].shape[2:]), 1, 32)
    # A curve, and results without any order: what is added is of either sign, and larger than the type at once.
    bow = np.rint(127 * np.sin(np.arange(256) / 40)).astype(np.int8)
    x = maker.through(maker.through(x, bow), maker.random.integers(0, 256, 256).astype(np.uint8))
    maker.floats(maker.through(maker.through(x, bow.view(np.uint8)), bow), 12)
    return maker


@pytest.mark.parametrize("options", [{"latency": 10}, {"latency": 150, "stall": 0.3}])
def test_memory_is_what_golden_leaves(options):
    maker = small()
    compiled = network.compile(maker.graph(), "unit")
    inputs = maker.draw()
    data, run = compiled.run_rtl(inputs, **options)
    np.testing.assert_array_equal(data, compiled.run_golden(inputs))
    assert run.interrupt
    lines = measured(compiled, run).splitlines()
    assert len(lines) == len(compiled.plan.layers) + 2
    peak = compiled.plan.machine.conv.peak
    shares = [layer.share(peak) for layer in measure_layers(compiled, run)]
    assert [share > 0 for share in shares] == [layer.macs > 0 for layer in compiled.plan.layers]
    assert max(shares) <= 1


@pytest.fixture(scope="module")
def session():
    with open_accelerator("unit", latency=20) as session:
        yield session


def fresh(session):
    """Shared memory as golden has it: bytes between rows come from there."""
    session.shared_memory.write(0, np.zeros(len(session.shared_memory), np.uint8))


@pytest.mark.parametrize(
    # The last of the few has the operator that the others lack.
    "seeds",
    [[*range(25), 68], pytest.param(range(25, 400), marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_random_networks(session, seeds):
    """Of two to eight layers, with ragged shapes, some with little shared memory; the seed of each is its number."""
    ran, operators, kinds = 0, set(), set()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        graph = read_model(draw_network(rng, channels=(8, 20)[seed // 2 % 2]))
        inputs, every = draw_inputs(rng, graph), bool(seed & 1)
        try:
            machine = replace(MACHINES["unit"], smem_bytes=(16, 2, 4)[seed // 2 % 3] * 1024)
            compiled = network.compile(graph, machine, every_tensor=every)
        except ModelError:
            continue
        session.configure(latency=(2, 20, 100)[seed % 3], stall=0.3 if seed % 4 == 0 else 0.0, seed=seed)
        fresh(session)
        data, run = run_on(session, compiled, compiled.memory(inputs))
        assert (run.interrupt, run.violations, run.late) == (True, (), ()), seed
        np.testing.assert_array_equal(data, compiled.run_golden(inputs), err_msg=str(seed))
        expected = network.evaluate(graph, inputs)
        for name, value in compiled.tensors(data, [node.output for node in graph.nodes] if every else None).items():
            np.testing.assert_array_equal(value, expected[name], err_msg=f"{seed} {name}")
        ran += 1
        operators |= {node.operator for node in graph.nodes}
        kinds |= {node.kind for node in graph.nodes}
    assert ran >= 20 and operators >= set(OPERATORS) and "MatMul" in kinds


def test_a_program_that_does_not_end_as_it_should(session):
    maker = small()
    compiled = network.compile(maker.graph(), "unit")
    memory = compiled.memory(maker.draw())
    broken = memory.copy()
    broken[compiled.plan.start : compiled.plan.start + 64] = 0
    with pytest.raises(RuntimeError, match=r"^the program stopped with ProgramRecord\(code=.*KIND"):
        run_on(session, compiled, broken)

    def answer(**changes):
        run = {"finished": True, "record": None, "words": []} | changes
        return SimpleNamespace(reset=lambda: None, global_memory=session.global_memory,
                               run_program=lambda *args, **options: SimpleNamespace(**run))  # fmt: skip

    with pytest.raises(RuntimeError, match=r"^the program is not over after [\d,]+ cycles$"):
        run_on(answer(finished=False), compiled, memory)
    with pytest.raises(RuntimeError, match=r"^the program has [\d,]+ words, of which the log holds 0$"):
        run_on(answer(), compiled, memory)


def whole(name, graph, inputs, session):
    """A whole network on a session: every tensor is compared; returns what the evaluation gives."""
    compiled = network.compile(graph, "default", every_tensor=True)
    data, run = run_on(session, compiled, compiled.memory(inputs))
    print(measured(compiled, run))
    expected = network.evaluate(graph, inputs)
    names = [node.output for node in graph.nodes]
    for tensor, value in compiled.tensors(data, names).items():
        np.testing.assert_array_equal(value, expected[tensor], err_msg=tensor)
    macs = sum(one.layer.macs for one in measure_layers(compiled, run))
    record(
        f"rtl-{name}", cycles=run.cycles, macs=macs, share=round(macs / compiled.plan.machine.conv.peak / run.cycles, 4)
    )
    return expected


@pytest.fixture(scope="module")
def large_session():
    with open_accelerator("default") as session:
        yield session


@pytest.mark.long
def test_every_tensor_of_a_photograph_through_a_whole_network(large_session):
    """EfficientNet-Lite0 on preset default: what ONNX Runtime computes for the same tensors is in test_models.py."""
    graph = read_model(build_quantised())
    expected = whole("efficientnet-lite0", graph, {graph.inputs[0]: prepare(load_photograph("coffee"))}, large_session)
    assert expected[graph.outputs[0]].argmax() == 967  # espresso


@pytest.mark.long
@pytest.mark.parametrize("shape", [(1, 100, 96), (3, 70, 300), (1, 512, 196), (1, 196, 512)])
def test_transposes(large_session, shape):
    """As products: engines that make a result or two in a cycle take bytes one by one."""
    maker = NetworkMaker()
    maker.transpose(maker.input(shape), 0, 2, 1)
    fresh(large_session)
    name = "-".join(map(str, ("transpose", *shape)))
    whole(name, maker.graph(), maker.draw(), large_session)
    if shape[0] == 1 and 512 in shape:  # docs/network.md, "Moves"
        assert not stale(f"rtl-{name}", ROOT)


@pytest.mark.long
def test_every_tensor_of_all_shapes_of_resnet50(large_session):
    """Random weights and pixels, from global memory to global memory."""
    maker = resnet50()
    whole("resnet50", maker.graph(), maker.draw(), large_session)


def test_only_presets_are_simulated():
    compiled = network.compile(small().graph(), Machine(smem_bytes=64 * 1024))
    with pytest.raises(network.ModelError, match="only cores of presets"):
        run_rtl(compiled, compiled.image)


@pytest.mark.long
def test_a_core_with_other_parameters():
    """Hardware with the parameters that the program was made for leaves what golden leaves."""
    settings = [Setting("smem", "size_bytes", 8192), Setting("tmau", "max_burst", 2)]
    maker = small()
    compiled = network.compile(maker.graph(), machine_of("unit", settings))
    inputs = maker.draw()
    data, _ = run_rtl(compiled, compiled.memory(inputs), "unit", settings)
    np.testing.assert_array_equal(data, compiled.run_golden(inputs))


@pytest.mark.long
def test_recurrent_layers():
    """On an engine with just enough registers and threads; weights stay, or are loaded in each step again."""
    sizes = {"threads": 8, "regs": 256, "kernel_words": 512}
    settings = [Setting("smem", "size_bytes", 64 << 10), *(Setting("pe", name, size) for name, size in sizes.items())]
    machine = machine_of("unit", settings)
    with open_accelerator("unit", settings, latency=60, stall=0.1, seed=3) as session:
        for cells, after in (("LSTM", False), ("GRU", False), ("GRU", True), ("RNN", False)):
            maker = NetworkMaker(5)
            states = maker.recurrent(maker.input((4, 20)), cells, 24, batch=2, after=after, reverse=after)
            maker.matrix(states, 12)
            graph, inputs = maker.graph(), maker.draw()
            for smem_bytes in (machine.smem_bytes, 24 << 10):
                compiled = network.compile(graph, replace(machine, smem_bytes=smem_bytes))
                fresh(session)
                data, run = run_on(session, compiled, compiled.memory(inputs))
                np.testing.assert_array_equal(data, compiled.run_golden(inputs), err_msg=cells)
                for name, value in compiled.tensors(data).items():
                    np.testing.assert_array_equal(value, network.evaluate(graph, inputs)[name], err_msg=cells)
                print(f"{cells}: {compiled.plan.cycles:,} cycles expected, {run.cycles:,} on the hardware")


@pytest.mark.long
@pytest.mark.parametrize("stall", [0.0, 0.2])
def test_kernels_of_all_kinds(stall):
    """On preset default, whose kernels are the fast ones; memory is what the golden core leaves."""
    maker = NetworkMaker(13)
    x = maker.conv(maker.input((1, 3, 8, 8)), 48)
    rows = maker.reshape(maker.transpose(maker.normalise_channels(x), 0, 2, 3, 1), 64, 48)
    q, k, v = (maker.matrix(maker.normalise(rows), 32) for _ in range(3))
    y = maker.product(maker.softmax(maker.product(q, maker.transpose(k, 1, 0))), v)
    y = maker.matrix(maker.arithmetic("Div", y, q), 3072)
    maker.add(maker.matrix(y, 48), rows)
    graph, inputs = maker.graph(), maker.draw()
    compiled = network.compile(graph, "default")
    kinds = {layer.kernel.name for layer in compiled.plan.layers if layer.kernel}
    assert kinds == {"arithmetic", "channel_norm", "layer_norm", "requantise", "softmax_bytes"}
    with open_accelerator("default", latency=60, stall=stall, seed=3) as session:
        # Golden has zeros there, and bytes between rows come from there.
        session.shared_memory.write(0, np.zeros(len(session.shared_memory), np.uint8))
        data, run = run_on(session, compiled, compiled.memory(inputs))
    assert (data == compiled.run_golden(inputs)).all()
    print(f"{compiled.plan.cycles:,} cycles expected, {run.cycles:,} on the hardware")
