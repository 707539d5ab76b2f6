"""Cases of a test: those that always run, and those that are marked ``long``."""

from itertools import product

import pytest

__all__ = ["cases", "grid"]


def cases(names, quick, long, **options):
    """Parametrizes a test with the cases of ``quick`` and ``long``: values, or tuples if there are several names."""
    several = "," in names
    marked = [pytest.param(*(case if several else [case]), marks=pytest.mark.long) for case in long]
    return pytest.mark.parametrize(names, [*quick, *marked], **options)


def grid(is_quick, **axes):
    """Parametrizes a test with all combinations of the axes; those for which ``is_quick`` is false are long."""
    params = [
        pytest.param(*case, marks=[] if is_quick(*case) else pytest.mark.long) for case in product(*axes.values())
    ]
    return pytest.mark.parametrize(tuple(axes), params)
