"""The smallest part of something that fails."""

__all__ = ["smallest"]


def smallest(items, fails):
    """The smallest part of a tuple that still fails, or None if the whole does not: one item alone if any fails alone.

    Parameters
    ----------
    items : tuple
    fails : callable
        Whether a tuple of some of the items, in their order, fails.
    """
    for item in items:
        if fails((item,)):
            return (item,)
    if not fails(items):
        return None
    size = len(items) // 2
    while size:
        for first in range(0, len(items), size):
            fewer = items[:first] + items[first + size :]
            if fewer and fails(fewer):
                items = fewer
                break
        else:
            size //= 2
    return items
