"""Runs a campaign on Dask: chunks of random cases, their failures as files, coverage merged, and bounds."""

import base64
import hashlib
import time
from collections import Counter
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tilewright.errors import HostError
from tilewright.files import BUILD, write_atomically
from tilewright.progress import report, working
from tilewright.results import record
from tilewright.workers import Records, connected, key_of, worked

from .kinds import KINDS

__all__ = ["Chunk", "bound", "campaign", "run_chunk"]

_ROUND = 4  # chunks of a kind for each worker, after which the time is looked at


@dataclass(frozen=True)
class Chunk:
    """Cases that a worker runs in one go.

    Attributes
    ----------
    kind, preset : str
    seed, number : int
        Of the campaign, and of the chunk: cases depend on both.
    cases : int
    """

    kind: str
    preset: str
    seed: int
    number: int
    cases: int

    @property
    def key(self):
        """A word for the chunk and the sources."""
        return key_of("chunk", self)

    @property
    def own_seed(self):
        """Of the chunk's cases; another one for each kind, preset, seed and number."""
        text = f"{self.kind} {self.preset} {self.seed} {self.number}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def run_chunk(chunk):
    """The record of a chunk, which ends with the first case that differs: cases, failure, and bins left empty."""
    kind = KINDS[chunk.kind]
    coverage = kind.coverage(chunk.preset) if kind.coverage else None
    cases, failure, model = 0, "", b""
    try:
        for tried in kind.run(chunk.preset, chunk.own_seed, chunk.cases, coverage):
            cases += tried.cases
            if tried.failure:
                failure, model = tried.failure, tried.model
                break
    except HostError:
        raise
    except RuntimeError as error:  # a simulation that hangs, or ends by itself
        failure = f"after {cases} cases: {error}"
    found = {"cases": cases, "failure": failure, "model": base64.b64encode(model).decode()}
    return found | ({"bins": coverage.bins, "empty": coverage.empty} if coverage else {})


def campaign(kinds, preset, seed, cases, hours, folder, scheduler=None, workers=None):
    """Runs a campaign, and prints what came out; returns the exit status.

    Parameters
    ----------
    kinds : sequence of str
    preset : str
    seed : int
    cases : int or None
        Of each kind.
    hours : float or None
        Chunks are begun for so long, if ``cases`` is None.
    folder : Path or None
    scheduler, workers
        As of ``connected``.
    """
    folder = Path(folder or BUILD / "campaign")
    records, found = Records(folder / "chunks"), {}
    end, busy, known = time.monotonic() + 3600 * (hours or 0), 0.0, 0
    print(f"{', '.join(kinds)} on preset {preset}, seed {seed}", flush=True)
    with working("campaign"):
        report("workers")
        with connected(scheduler, workers) as client:
            begin, slots = time.monotonic(), sum(client.nthreads().values())
            for chunks in _rounds(kinds, preset, seed, cases, slots):
                if cases is None and time.monotonic() > end:
                    break
                before = {chunk for chunk in chunks if records.read(chunk.key)}
                stage = "chunks" if cases else f"chunks from {chunks[0].number} on"
                for chunk, one in worked(client, lambda run, chunk: run(run_chunk, chunk), chunks, records, stage):
                    # A chunk that has killed its workers has no more than that as a failure.
                    found[chunk] = one = {"cases": 0, "model": ""} | one
                    busy += 0 if chunk in before else one["seconds"]
                    if one["failure"]:
                        print(f"{chunk.kind}: {_keep(chunk, one, folder / 'failures')}", flush=True)
                known += len(before)
            seconds = time.monotonic() - begin
    failed = sum(_tell(kind, preset, seed, {chunk: one for chunk, one in found.items() if chunk.kind == kind})
                 for kind in kinds)  # fmt: skip
    print(f"{len(found):,} chunks, {known:,} of them known; {seconds:,.0f} s on {slots} workers, which worked "
          f"{busy / slots / seconds:.1%} of the time")  # fmt: skip
    return 1 if failed else 0


def _rounds(kinds, preset, seed, cases, slots):
    """Lists of chunks: one list of all cases, or lists without end."""
    if cases is not None:
        yield [Chunk(kind, preset, seed, number, min(KINDS[kind].chunk, cases - first)) for kind in kinds
               for number, first in enumerate(range(0, cases, KINDS[kind].chunk))]  # fmt: skip
        return
    for turn in count():
        yield [Chunk(kind, preset, seed, turn * _ROUND * slots + number, KINDS[kind].chunk)
               for kind in kinds for number in range(_ROUND * slots)]  # fmt: skip


def _keep(chunk, one, folder):
    """Writes a failure, with its replay case or network as a file of its own; returns what it is, and where."""
    stem = f"{chunk.kind}-{chunk.preset}-{chunk.seed}-{chunk.number}"
    lines = one["failure"].splitlines() or [""]
    if lines[-1].startswith("{"):
        write_atomically(folder / f"{stem}.json", lines[-1])
    if one["model"]:
        write_atomically(folder / f"{stem}.onnx", base64.b64decode(one["model"]))
    write_atomically(folder / f"{stem}.txt", f"{chunk}, seed {chunk.own_seed}\n{one['failure']}\n")
    return f"{lines[0][:200]}; {folder / stem}.txt"


def _tell(kind, preset, seed, chunks):
    """Prints and records what came out of a kind; returns the number of failures."""
    cases, failures = (sum(values) for values in zip(*((one["cases"], bool(one["failure"])) for one in chunks.values()),
                                                     strict=True)) if chunks else (0, 0)  # fmt: skip
    figures = {
        "kind": kind,
        "preset": preset,
        "cases": cases,
        "mismatches": failures,
        "seed": seed,
        "chunks": len(chunks),
    }
    print(f"{kind} on {preset}: {cases:,} {KINDS[kind].noun}, {failures} failures{bound(cases, failures)}")
    if cases:
        # Campaigns with other seeds have other cases: their figures add up.
        record(f"campaign-{kind}-{preset}-{seed}", command="tilewright campaign", **figures)
    covered = [one for one in chunks.values() if "bins" in one]
    if covered:
        times = Counter(name for one in covered for name in one["empty"])
        empty = [name for name, number in times.items() if number == len(covered)]
        print(f"  {covered[0]['bins'] - len(empty)} of {covered[0]['bins']} bins of coverage hit")
        write_name = KINDS[kind].suite.format(preset=preset)
        record(f"campaign-coverage-{write_name}", bins=covered[0]["bins"], empty=empty, kind=kind, preset=preset)
    return failures


def bound(cases, failures):
    """The rest of a sentence: how seldom a case may fail if none of so many did, by the rule of three."""
    if failures or not cases:
        return ""
    return f"; with 95 % confidence fewer than one case in {cases // 3:,} fails (3 / {cases:,})"
