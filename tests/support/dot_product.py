"""Rows of dot products in groups of units."""

from support.pe_operands import dot_rows, join_elements
from tilewright.golden.dot_product import dot

__all__ = ["grouped_rows"]


def grouped_rows(rng, kinds, sizes, number, *, count, unit_bytes):
    """So many rows of ``count`` units, each of a random type and size of groups; and of each the sums of its groups.

    Units of incomplete groups, and accumulators of units that do not lead a group, are random.
    """
    for _ in range(number):
        kind, select = kinds[rng.integers(len(kinds))], int(rng.integers(len(sizes)))
        size, groups = sizes[select], count // sizes[select]
        accumulators, *factors = dot_rows(rng, kind, groups, size * unit_bytes // kind.bytes)
        words = rng.integers(0, 1 << 32, count)
        words[: groups * size : size] = accumulators
        row = {"type": kind, "select": select, "accumulators": words.tolist()}
        for name, elements in zip("ab", factors, strict=True):
            values = rng.integers(0, 1 << 8 * unit_bytes, count)
            values[: groups * size] = join_elements(elements).reshape(-1).view(f"<u{unit_bytes}")
            row[name] = values.tolist()
        yield row, dot(accumulators, *factors, kind).tolist()
