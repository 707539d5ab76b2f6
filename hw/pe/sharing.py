"""Bits that depend on ka and kb alone: how many threads share a row of C, and how many a product (docs/pe.md, "mm")."""

from itertools import product

from amaranth import Cat

from ..lib.table import is_one_of

__all__ = ["SHARINGS", "of_sharing", "sharing_code"]

#: Every (ka, kb).
SHARINGS = tuple(product(range(1, 5), repeat=2))


def sharing_code(ka, kb):
    """Four bits that tell ``ka`` and ``kb``, as they are stored, as :func:`of_sharing` takes them."""
    return Cat(kb, ka)


def of_sharing(code, predicate):
    """Whether ``predicate(ka, kb)`` is true of the sharing with this code: a table of four inputs."""
    return is_one_of(code, (4 * (ka - 1) + kb - 1 for ka, kb in SHARINGS if predicate(ka, kb)))
