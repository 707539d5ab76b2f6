"""The calls that golden model and sessions share have one signature, but for the memories that a session has itself."""

import inspect

import pytest

from tilewright import golden
from tilewright.sim.session import CoreSession, PeSession, TmauSession

MEMORIES = {"gmem", "smem"}
TRANSFERS = ("load", "store", "prefetch", "copy_block", "prefetch_block")


def words(function):
    """Names, defaults and kinds of the parameters of a call, in order; less memories, ``self`` and further options."""
    parameters = inspect.signature(function).parameters.values()
    return [
        (parameter.name, parameter.default, parameter.kind)
        for parameter in parameters
        if parameter.name not in MEMORIES | {"self"} and parameter.kind != parameter.VAR_KEYWORD
    ]


@pytest.mark.parametrize("name", TRANSFERS)
@pytest.mark.parametrize("session", [TmauSession, CoreSession])
def test_transfers_take_the_same_words(session, name):
    assert words(getattr(session, name)) == words(getattr(golden, name))


def test_products_take_the_same_words():
    assert words(PeSession.multiply) == words(golden.multiply)


@pytest.mark.parametrize("session", [TmauSession, CoreSession])
def test_a_session_has_every_call_of_the_golden_model_that_moves_something(session):
    """A call with ``gmem`` or ``smem``, or a prefetch: none is left out above, and none is missing in a session."""
    moving = {
        name
        for name in golden.__all__
        if inspect.isfunction(value := getattr(golden, name))
        and (MEMORIES & set(inspect.signature(value).parameters) or name.startswith("prefetch"))
    }
    assert moving == set(TRANSFERS)
    assert all(hasattr(session, name) for name in moving)
