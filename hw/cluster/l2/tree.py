"""Which line of a set leaves: a binary tree of bits, each of which points to the half that was not used last."""

from amaranth.hdl import Cat, Const, Mux

__all__ = ["least_used", "used"]


def least_used(tree, ways):
    """The way that the tree points to, as a one-hot Value.

    Parameters
    ----------
    tree : Value
        ``ways - 1`` bits: bit n has its halves at 2 n + 1 and 2 n + 2; a one points to the upper ways.
    ways : int
        A power of two.
    """
    return Cat(
        Const(1, 1) if ways == 1 else Cat(tree[node] == up for node, up in _path(way, ways)).all()
        for way in range(ways)
    )


def used(tree, way, ways):
    """The tree after a use of a way, which it then points away from.

    Parameters
    ----------
    tree, ways
        As of :func:`least_used`.
    way : Value
        One-hot.
    """
    bits = []
    for node in range(ways - 1):
        halves = [[], []]
        for number in range(ways):
            up = dict(_path(number, ways)).get(node)
            if up is not None:
                halves[up].append(way[number])
        lower, upper = (Cat(half).any() for half in halves)
        bits.append(Mux(lower, 1, Mux(upper, 0, tree[node])))
    return Cat(bits)


def _path(way, ways):
    """The nodes that lead to a way, and whether it is in the upper half of each."""
    node, size, path = 0, ways, []
    while size > 1:
        size //= 2
        up = way // size % 2
        path.append((node, up))
        node = 2 * node + 1 + up
    return path
