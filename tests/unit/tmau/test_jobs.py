"""Parameters that are refused; random commands of tests/integration/tmau show that a block is a job of one run."""

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS


@pytest.mark.parametrize("name", ["prefetches", "prefer_bram", "command_window", "barrier_window"])
def test_switches_are_bools(name):
    with pytest.raises(TypeError, match=f"^{name} must be True or False, not 1$"):
        TMAU_PRESETS["unit"].replace(**{name: 1})


def test_a_command_window_is_of_one_processor():
    with pytest.raises(ValueError, match=r"^command_window needs one processor, not 2$"):
        TMAU_PRESETS["unit"].replace(command_window=True, processors=2)
