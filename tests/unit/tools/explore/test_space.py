"""Spaces: the points that a file means, and what is refused before anything runs."""

import tomllib
from pathlib import Path

import pytest

from support.fences import fences
from tilewright.errors import UsageError
from tilewright.spec.tmau_registers import FEATURES
from tilewright.tools.explore.point import build, measure
from tilewright.tools.explore.run import SPACES
from tilewright.tools.explore.space import Question, read_space

ROOT = Path(__file__).parents[4]
ROWS = 'workload = "tile: 2-D, rows of 64 bytes"\n'


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "space.toml"
        path.write_text(text)
        return read_space(path)

    return read


def designs(space):
    return [(point.design, point.latency, point.workload) for point in space.points]


def test_a_grid(read):
    space = read("""
preset = ["unit", "default"]
set.tmau.max_burst = [2, 4]
set."smem.size_bytes" = 8192
latency = [10, 100]
workload = ["tile: 2-D, rows of 64 bytes", "product: mm8, ka1 kb1, t?"]
""")
    assert (space.name, space.area, space.question) == ("space", False, None)
    first = "unit, tmau.max_burst=2, smem.size_bytes=8192"
    names = ["tile: 2-D, rows of 64 bytes", "product: mm8, ka1 kb1, t0", "product: mm8, ka1 kb1, t1"]
    assert designs(space)[:3] == [(first, 10, name) for name in names]
    assert len(set(space.points)) == len(space.points) == 2 * 2 * 2 * 3
    assert space.points[0].hardware.params.tmau.max_burst == 2
    assert space.points[1].hardware.params.engines == ("pe",)
    assert len({point.key for point in space.points}) == len(space.points)


def test_settings_that_go_together_and_features(read):
    space = read(
        ROWS + 'set = ["", "tmau.max_outstanding=16,tmau.commands_in_flight=4"]\nwithout = ["", "im2col,lanes"]'
    )
    kept = ",".join(name for name in FEATURES if name not in ("im2col", "lanes"))
    both = "default, tmau.max_outstanding=16, tmau.commands_in_flight=4"
    assert [point.design for point in space.points] == [
        "default", f"default, tmau.features={kept}", both, f"{both}, tmau.features={kept}",
    ]  # fmt: skip


def test_a_sample_is_a_part_of_the_grid_in_its_order(read):
    text = 'latency = [10, 20, 30, 40, 50, 60]\nworkload = "tile: 2-D, rows of *"\n'
    whole, part, other = (read(text + more).points for more in ("", "sample = 9", "sample = 9\nseed = 2"))
    assert len(whole) == 30 and len(part) == 9
    assert [(point.latency, point.workload) for point in part] == [
        (point.latency, point.workload) for point in whole if point in part
    ]
    assert [point.latency for point in part] != [point.latency for point in other]


def test_a_question(read):
    space = read(ROWS + 'least = "comb"\nwhere = ["utilisation >= 95", "workload = tile: x"]\narea = true')
    assert space.area
    assert space.question == Question("comb", (("utilisation", ">=", "95"), ("workload", "=", "tile: x")))
    assert str(space.question) == "least comb, utilisation >= 95, workload = tile: x"


@pytest.mark.parametrize("name", [path.stem for path in SPACES.glob("*.toml")])
def test_spaces_that_come_with_us(name):
    assert read_space(SPACES / f"{name}.toml").points
    blocks = fences((ROOT / "docs/explore.md").read_text(encoding="utf-8"))
    shown = [tomllib.loads(block.text) for block in blocks if block.language == "toml"]
    assert tomllib.loads((SPACES / f"{name}.toml").read_text()) in shown


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "workload is missing"),
        (ROWS + "latencies = 3", "there is no latencies; did you mean 'latency'?"),
        (ROWS + "latency = 1.5", "latency must have values of int, not 1.5"),
        (ROWS + "latency = 0", "latency must be "),
        (ROWS + 'preset = "huge"', "preset must be of unit, ecp5, default, lean, full, not 'huge'"),
        (ROWS + 'set = ["tmau.max_burst"]', "must be NAME=VALUE, as tmau.max_outstanding=256, not 'tmau.max_burst'"),
        (ROWS + "set.tmau.bursts = 1", "there is no parameter 'tmau.bursts': did you mean tmau.max_burst?"),
        (ROWS + "set = 3", "set must have values of str, not 3"),
        (ROWS + "set.tmau.max_burst = []", "tmau.max_burst must have a value"),
        (ROWS + "set.pe.threads = 8", "--set pe.threads=8: what is built has no pe, only tmau, smem"),
        (ROWS + 'set = ["tmau.max_burst=2,tmau.max_burst=4"]', "tmau.max_burst is set twice"),
        (ROWS + 'without = "coffee"', "must be of im2col, "),
        (ROWS + "sample = 2", "sample must be 1 to 1, the points of the grid, not 2"),
        (ROWS + "area = 1", "area must be bool, not 1"),
        (ROWS + 'where = "x >= 1"', "least is missing"),
        (ROWS + 'least = "x"\nwhere = "x > 1"', "where must be a column, >=, <= or =, and a value, as "),
        ('workload = "rows"', "a workload must be KIND: NAME with a kind of tile, product, "),
        ('workload = "tile: 2-D, rows of 63 bytes"', "there is no tile '2-D, rows of 63 bytes'; did you mean "),
        ('workload = "replay: none.json"', "there is no file /"),
        ("workload =", "Invalid value (at end of document)"),
    ],
)
def test_what_is_refused(read, text, sentence):
    with pytest.raises(UsageError, match=r"^/.*/space\.toml: ") as raised:
        read(text)
    assert str(raised.value).partition("space.toml: ")[2].startswith(sentence)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match=r"none\.toml: cannot be read: No such file or directory$"):
        read_space(tmp_path / "none.toml")


def test_hardware_that_there_is_not_is_a_record(read):
    (point,) = read(ROWS + "set.tmau.max_burst = 3").points
    sentence = "--set tmau.max_burst=3: max_burst must be a power of two, not 3"
    assert measure(point) == {"failure": sentence}
    assert measure(point, {"failure": "the compiler stopped"}) == {"failure": "the compiler stopped"}
    (point,) = read(ROWS).points

    class Broken:
        def open(self, latency):
            raise RuntimeError("verilator could not build\nthe simulation")

    assert build(Broken()) == {"failure": "verilator could not build the simulation"}
