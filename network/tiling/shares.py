"""What each core of a cluster does of a layer (docs/many_cores.md, "How cores share a layer")."""

from itertools import pairwise

__all__ = ["chunk", "row_spans"]


def row_spans(height, cores):
    """Rows of each core, the first one and the end: as many for each as possible, the larger shares first."""
    least, more = divmod(height, cores)
    ends = [least * number + min(number, more) for number in range(cores + 1)]
    return tuple(pairwise(ends))


def chunk(items, share):
    """The items of one core: ``share`` is its number, and the number of cores."""
    core, cores = share
    first, end = row_spans(len(items), cores)[core]
    return items[first:end]
