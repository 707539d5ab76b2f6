"""Rows that slaves of the convolution engine read of their memories."""

import numpy as np

__all__ = ["rows_read"]


def rows_read(memories, words, turn):
    """What slaves get: an array of shape (slaves, elements of a row).

    Parameters
    ----------
    memories : array of shape (slaves, words, elements of a row)
    words : sequence of int
        As of ``LaneReadLayout``: of each half of a row of each slave, or one for all.
    turn : int
        Part p comes from part p + ``turn``.
    """
    slaves, _, elements = memories.shape
    if len(words) == 1:
        return memories[:, words[0]]
    halves = memories.reshape(slaves, -1, 2, elements // 2)
    read = np.stack([halves[part // 2, word, part % 2] for part, word in enumerate(words)])
    return np.roll(read, -turn, axis=0).reshape(slaves, elements)
