"""Every figure that a page cites is that of docs/figures.json."""

import json
from pathlib import Path

import pytest

from tilewright.tools.docs.figures import HOME, disagreements

ROOT = Path(__file__).parents[2]


def test_pages_have_the_figures_of_their_home():
    assert not (found := disagreements(ROOT)), "\n".join(found)


def test_every_figure_says_where_it_is_from():
    for name, entry in json.loads((ROOT / HOME).read_text(encoding="utf-8")).items():
        assert set(entry) == {"command", "commit", "date", "figures"}, name
        assert all(entry.values()), name


@pytest.mark.parametrize("page", ["README.md", "docs/network.md", "docs/performance.md", "docs/cluster.md"])
def test_pages_of_figures_cite_them(page):
    assert "<!-- figure: " in (ROOT / page).read_text(encoding="utf-8")
