"""Charts of the report: nothing is cut off at an edge, and each says what its colours mean."""

import re
from xml.etree import ElementTree

import pytest

from tilewright.sim.report.activity import Activity
from tilewright.sim.report.charts import SWIZZLE_LAYOUTS, activity, bank_map, bars, cycle_bars, timeline
from tilewright.sim.report.timeline import Transfer
from tilewright.spec import Swizzle

_LETTER = 7  # pixels of a letter at least
_ROWS = [("efficientnet-lite0 coffee", 2_692_000, 1_999_000), ("b", 1, 1)]
CHARTS = {
    "bank map": bank_map([(2 * channels, mode) for channels, mode in SWIZZLE_LAYOUTS]),
    "two banks": bank_map([(128, Swizzle.NONE), (128, Swizzle.B128)]),
    "bars": bars([("a workload of a long name", 1.0, 1.0), ("b", 0.5, None)]),
    "cycle bars": cycle_bars(_ROWS),
    "timeline": timeline(Transfer("one", {"descriptor address (AR) of a command": [3], "data": [100_000, 123_456]})),
    "activity": activity(Activity("all", 0, 123_456, {"access unit, in": [(0, 9)]}, [(0, 9, "a"), (9, 99, "b")])),
}
#: Classes of boxes that mean something.
MEANING = {"bar", "wide", "mark", "on", "off"}


@pytest.mark.parametrize("name", CHARTS)
def test_nothing_is_cut_off(name):
    root = ElementTree.fromstring(CHARTS[name])
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for element in root.iter("{http://www.w3.org/2000/svg}text"):
        x, y, wide = float(element.attrib["x"]), float(element.attrib["y"]), _LETTER * len(element.text)
        first = x - {"start": 0, "middle": wide / 2, "end": wide}[element.attrib["text-anchor"]]
        if element.attrib["text-anchor"] != "middle":  # figures of an axis are short
            assert first >= 0 and first + wide <= width, element.text
        assert 8 <= y <= height - 2, element.text
    for element in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, wide, high = (float(element.attrib[each]) for each in ("x", "y", "width", "height"))
        assert x >= 0 and x + wide <= width and y >= 0 and y + high <= height


@pytest.mark.parametrize("name", CHARTS)
def test_every_colour_is_explained(name):
    """The last box of each kind has words beside it."""
    boxes = re.findall(r'<rect [^>]*class="(?:cell )?(\w+)"/>(?:\n<text [^>]*>([^<]+)<)?', CHARTS[name])
    explained = {kind for kind, words in boxes if " " in words}
    used = {kind for kind, _ in boxes if kind in MEANING}
    assert used and used <= explained


def test_bank_maps_are_no_wider_than_a_page():
    width = float(re.search(r'width="(\d+)"', CHARTS["bank map"])[1])
    assert width <= 1100
