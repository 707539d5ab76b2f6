"""Sessions that the tests of a module share."""

import pytest

from tilewright.sim.session import Session

__all__ = ["session_fixture"]


def session_fixture(*presets, engines=None, long=(), prepare=lambda session: session, **options):
    """A fixture that gives all tests of a module one session, or one of each preset; those of ``long`` are long.

    What ``prepare(session)`` returns is what tests get. Without a preset the options name the parameters.
    """
    several = [*presets, *(pytest.param(preset, marks=pytest.mark.long) for preset in long)]

    @pytest.fixture(scope="module", params=several if len(several) > 1 else None)
    def fixture(request):
        preset = getattr(request, "param", *presets[:1]) if presets else None
        with Session(*([preset, engines] if preset else []), **options) as session:
            yield prepare(session)

    return fixture
