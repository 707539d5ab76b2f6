"""What silicon gave, as a case file (docs/replay.md): expectations, bytes of some cases, and a limit of its size."""

import json
import lzma
from collections import Counter

import numpy as np

from ..files import write_atomically
from .case_features import case_features

__all__ = ["MOST_BYTES", "Chooser", "TooLargeError", "expectation", "spots", "write_capture"]

#: Size of a capture in a repository.
MOST_BYTES = 1 << 20

_EACH = 4  # cases whose bytes are kept, for each feature
_LARGEST = 2048  # bytes moved by a case that may be kept
_ALL = 320 << 10  # bytes moved by all of them
_GAP = 16  # bytes that did not change between two that did, and are kept with them


class TooLargeError(Exception):
    """A capture would take more than ``MOST_BYTES``."""


class Chooser:
    """Chooses the cases whose bytes are kept: some of every feature, none large. The same for the same cases."""

    def __init__(self):
        self._counts = Counter()
        self._room = _ALL

    def wants(self, case, moved):
        """Whether to keep the bytes of the next case, which moves so many."""
        features = case_features(case)
        wanted = 0 < moved <= min(_LARGEST, self._room) and any(self._counts[name] < _EACH for name in features)
        if wanted:
            self._counts.update(features)
            self._room -= moved
        return wanted


def expectation(outcome):
    """The member ``expect`` of a case that must come out so; of one that failed, nothing else is known."""
    record = outcome.record
    if (record["error"] or "").startswith("failed"):
        return {"error": record["error"]}
    hashes = [{"sha256": smem} for smem in record["smem_sha256"]]
    strides = {"strides": record["strides"]} if "strides" in record else {}
    return {"error": record["error"], "tx_bytes": record["tx_bytes"], "smem": hashes if len(hashes) > 1 else hashes[0],
            "gmem": {"sha256": record["gmem_sha256"]}} | strides  # fmt: skip


def spots(before, after):
    """What changed in a memory, as pairs of an address and hex digits."""
    changed = np.flatnonzero(before != after)
    if not len(changed):
        return []
    parts = np.split(changed, np.flatnonzero(np.diff(changed) > _GAP) + 1)
    return [[int(part[0]), after[part[0] : part[-1] + 1].tobytes().hex()] for part in parts]


def write_capture(path, silicon, entries, kept):
    """Writes the file, whole or not at all.

    Parameters
    ----------
    path : Path
    silicon : dict
        Its member of this name.
    entries : list of dict
        Cases with ``expect``.
    kept : dict
        By the index of a case, spots of its memories. The last ones are left out if there is no room for them.

    Returns
    -------
    (int, int)
        Bytes of the file, and cases with single bytes.

    Raises
    ------
    TooLargeError
        If it would take more than ``MOST_BYTES`` without any single bytes: nothing has been written.
    """
    kept = dict(kept)
    while len(packed := _packed(silicon, entries, kept)) > MOST_BYTES and kept:
        kept = dict(list(kept.items())[: len(kept) // 2])
    if len(packed) > MOST_BYTES:
        raise TooLargeError(f"the capture takes {len(packed)} bytes, more than {MOST_BYTES}, and was not written")
    write_atomically(path, packed)
    return len(packed), len(kept)


def _packed(silicon, entries, kept):
    """The file, a case a line."""
    lines = [json.dumps(_with_bytes(entry, kept.get(index, {}))) for index, entry in enumerate(entries)]
    text = f'{{"version": 1, "silicon": {json.dumps(silicon)}, "cases": [\n' + ",\n".join(lines) + "\n]}\n"
    return lzma.compress(text.encode(), preset=9)


def _with_bytes(entry, kept):
    """A case whose memories also expect what is kept of them."""
    expect = entry["expect"]
    return entry | {"expect": expect | {memory: expect[memory] | {"bytes": found} for memory, found in kept.items()}}
