"""Parameters of the access unit: what they refuse."""

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS


@pytest.mark.parametrize("name", ["prefetches", "spares_tables"])
def test_switches_are_bools(name):
    with pytest.raises(TypeError, match=f"^{name} must be True or False, not 1$"):
        TMAU_PRESETS["unit"].replace(**{name: 1})
