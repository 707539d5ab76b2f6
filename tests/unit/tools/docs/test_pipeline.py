"""The picture of a kernel's pipeline is what the simulator shows."""

from pathlib import Path

import pytest

from tilewright.tools.docs.pipeline import KERNEL, WORKS, observed

PICTURE = Path(__file__).parents[4] / "docs" / "kernel_pipeline.svg"


@pytest.mark.long
def test_the_picture_is_that_of_these_sources():
    """Computing, loading and multiplying overlap in it; each instruction is counted once."""
    rounds = 3
    shown = observed(rounds)
    assert PICTURE.read_text(encoding="utf-8") == shown.svg(), "python -m tilewright.tools.docs.pipeline writes it"
    works = {label: {cycle for cycle, _ in spans} for label, spans in shown.rows.items()}
    assert list(works) == list(WORKS)
    computes = [line for line in KERNEL.splitlines() if "mad" in line]
    inside = [line for line in computes if line.startswith(" ")]
    first = shown.first
    started = [cycle for cycle in works["arithmetic starts"] if cycle >= first]
    # The last two mov before the fence start after the kernel has begun to send instructions.
    assert len(started) == 2 + rounds * len(inside) + len(computes) - len(inside)
    assert len(works["steps of mm"]) == rounds * 2 * 8
    assert works["arithmetic starts"] & works["steps of mm"]
    assert works["arithmetic starts"] & works["shared memory is read"]
