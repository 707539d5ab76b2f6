"""Floating point of several threads: one function, operands of their own."""

import numpy as np

from support.pe_floats import COMPARISONS, PIPELINED, golden, operands
from tilewright.hw.pe.arithmetic.floats import FloatRow
from tilewright.verify.pysim.streams import run_pipeline

SEED = 61


def test_threads_compute_the_same_function():
    """Each with operands of its own; functions follow each other without a gap."""
    rng = np.random.default_rng(SEED)
    threads, rows, expected = 3, [], []
    for _ in range(60):
        function = PIPELINED[rng.integers(len(PIPELINED))]
        a, b, c, part = (column[-threads:] for column in operands(rng, function, threads))
        row = {"a": a.tolist(), "b": b.tolist(), "c": c.tolist(), "part": int(part[0]), "function": function}
        rows.append(row)
        expected.append(golden(function, a, b, c, part[0]).tolist())
    latency = FloatRow.LATENCY
    results = run_pipeline(FloatRow(threads), rows, o=latency, holds=latency)
    for row, result, words in zip(rows, results, expected, strict=True):
        holds = [bool(result["holds"] >> thread & 1) for thread in range(threads)]
        assert (holds if row["function"] in COMPARISONS else list(result["o"])) == words, row
