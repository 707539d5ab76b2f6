"""Random networks: every tensor is equal on ONNX Runtime."""

import numpy as np
import pytest

from tilewright.network.reader import read_model
from tilewright.network.witness import has_exact_kernels
from tilewright.results import record
from tilewright.verify.random.networks import OPERATORS, draw_network

NETWORKS = 200  # of each kind


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_random_networks(kind, agree):
    values, kinds = 0, set()
    for seed in range(NETWORKS):
        print(f"seed {seed}")
        model = draw_network(np.random.default_rng(seed), dtype=kind, small_weights=kind == "int8", large=True)
        graph, tensors = agree(model, seed=seed)
        values += sum(value.size for value in tensors.values())
        kinds |= {node.kind for node in graph.nodes}
    assert {"Normalise", "NormaliseChannels", "Recurrent"} <= kinds
    record(f"network-random-{kind}", networks=NETWORKS, values=values)


@pytest.mark.skipif(not has_exact_kernels(), reason="int8 by int8 of ONNX Runtime saturates on x86 without VNNI")
def test_large_weights_with_int8(agree):
    for seed in range(1000, 1040):
        print(f"seed {seed}")
        agree(draw_network(np.random.default_rng(seed), dtype="int8"), seed=seed)


def test_every_operator_is_drawn():
    nodes = [node for seed in range(NETWORKS) for node in read_model(drawn(seed)).nodes]
    assert {node.operator for node in nodes} >= set(OPERATORS)
    assert "MatMul" in {node.kind for node in nodes}  # of two computed matrices


def drawn(seed):
    return draw_network(np.random.default_rng(seed), dtype="uint8")
