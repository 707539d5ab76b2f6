"""Lines of the benchmark as rows of a recorded result, which pages cite."""

from tilewright.sim.bench.line import Line, rows, share


def test_rows_are_called_as_lines():
    lines = [
        share("unit", "blocks", 100, 50, 100, 0.9),
        share("unit", "pixels", 100, 50, 100, None).noted("macs", 0.25),
        Line("unit", "product", None, 1, 0, "0 cycles", "none", True),
    ]
    assert rows(lines) == {
        "blocks": {"cycles": 100, "limit": 50, "share": 50.0},
        "pixels, no target": {"cycles": 100, "limit": 50, "share": 50.0, "macs": 25.0},
        "product, no target": {"cycles": 0, "limit": 1, "share": 100.0},
    }


def test_lines_of_one_name_are_told_apart():
    lines = [share("unit", "blocks", latency, 50, 100, 0.9) for latency in (10, 100)]
    lines.append(share("unit, 512 in flight", "blocks", 400, 50, 100, 0.9))
    assert list(rows(lines)) == ["blocks, latency 10", "blocks, latency 100", "blocks, latency 400, 512 in flight"]


def test_a_note_has_the_share_of_multiplications():
    assert share("unit", "pixels", 100, 50, 100, None).noted("macs", 0.25).note == "macs, 25.0% of MACs"
