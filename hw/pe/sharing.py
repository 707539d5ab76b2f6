"""Bits that depend on ka and kb alone: threads that share a row of C, or an accumulator (docs/pe.md, "mm")."""

from itertools import product

from amaranth import Cat

from ..lib.table import is_one_of
from .params import LANES

__all__ = ["SHARINGS", "SPLIT_COLUMNS", "columns_per_item", "is_split", "of_sharing", "sharing_code"]

#: Every (ka, kb).
SHARINGS = tuple(product(range(1, 5), repeat=2))
#: Columns in the first of the two items of a step that is split.
SPLIT_COLUMNS = 2


def is_split(ka, kb):
    """Whether a step of mm does not fit eight lanes: it has two items, and each of them a part of it."""
    return ka * kb > LANES


def columns_per_item(ka, kb):
    """Columns of an item of mm: whole steps of ka columns if they fit eight lanes, or else a part of one."""
    return SPLIT_COLUMNS if is_split(ka, kb) else LANES // kb // ka * ka


def sharing_code(ka, kb):
    """Four bits that tell ``ka`` and ``kb``, as they are stored, as :func:`of_sharing` takes them."""
    return Cat(kb, ka)


def of_sharing(code, predicate):
    """Whether ``predicate(ka, kb)`` is true of the sharing with this code: a table of four inputs."""
    return is_one_of(code, (4 * (ka - 1) + kb - 1 for ka, kb in SHARINGS if predicate(ka, kb)))
