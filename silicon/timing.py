"""``tilewright silicon time``: times loads of the benchmark's tiles, repeated over a large tensor, and multicasts of
one of them, on a GPU.
"""

import json
import math
import subprocess
from dataclasses import dataclass, replace

import numpy as np

from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically
from tilewright.golden import TensorMap, limits, tx_bytes
from tilewright.golden.tmau.tile import counts, extent, footprint, unit_bytes
from tilewright.sim.bench.tmau_cases import steady_cases
from tilewright.spec import Mode, Opcode

from .packing import RECORDS, fill_map
from .program import build
from .replies import provenance
from .sharing import SHARED, sharing, sharing_table

__all__ = ["SHAPE", "Boxes", "configure", "measure", "measured", "report", "run", "shapes", "table", "utilisations"]

#: The record of each in ``load_all.h``, which the program reads.
SHAPE = np.dtype([
    ("map", RECORDS["MapRecord"]), ("first", "<i4", 5), ("count", "<u4", 5), ("step", "<u4", 5), ("extent", "<u4", 5),
    ("unit_bytes", "<u4"), ("stage_bytes", "<u4"),
])  # fmt: skip

_SECTOR = 32  # bytes of a sector: the smallest access to the GPU's memory
_LINE = 128
_SAMPLE = 64  # number of boxes whose sectors are counted


@dataclass(frozen=True)
class Boxes:
    """The boxes of a tensor, side by side.

    Attributes
    ----------
    name : str
    tmap : TensorMap
    first, count, step : tuple of int
        Start of the first box, number of boxes, and distance between boxes, in each dimension.
    """

    name: str
    tmap: TensorMap
    first: tuple
    count: tuple
    step: tuple

    @property
    def bytes(self):
        """Bytes that land in shared memory."""
        return math.prod(self.count) * tx_bytes(self.tmap)

    @property
    def sector_bytes(self):
        """Bytes of the sectors of all boxes, counted box by box."""
        every = math.prod(self.count) // _SAMPLE or 1
        sampled = range(0, math.prod(self.count), every)
        sectors = [limits(self.tmap, self.coords(number), _SECTOR).words for number in sampled]
        return round(math.prod(self.count) * _SECTOR * sum(sectors) / len(sectors))

    def coords(self, number):
        """The start of box ``number``."""
        digits = np.unravel_index(number, self.count, order="F")
        return [int(first + step * digit) for first, step, digit in zip(self.first, self.step, digits, strict=True)]

    def record(self):
        """The record for the program."""
        record = np.zeros((), SHAPE)
        fill_map(record["map"], self.tmap)
        taken = counts(self.tmap)
        for name, values, rest in (("first", self.first, 0), ("count", self.count, 1), ("step", self.step, 0),
                                   ("extent", taken, 1)):  # fmt: skip
            record[name] = [*values, *[rest] * (5 - len(values))]
        record["unit_bytes"] = unit_bytes(self.tmap)
        record["stage_bytes"] = -(-footprint(self.tmap) // _LINE) * _LINE
        return record.tobytes()


def shapes(size):
    """:class:`Boxes` of every steady-state load of the benchmark that silicon can do too, in ``size`` bytes."""
    return [_spread(case, size) for case in steady_cases() if _suits(case)]


def _suits(case):
    """Whether a load is in tile mode, has no item that silicon does not have, and is inside the tensor.

    Figures must not depend on the question whether silicon accepts starts inside 16 bytes.
    """
    tmap = case.tmap
    if (
        case.fields.get("opcode", Opcode.LOAD) != Opcode.LOAD
        or tmap.mode != Mode.TILE
        or tmap.unaligned
        or tmap.gather0
    ):
        return False
    return all(coords[0] * unit_bytes(tmap) % 16 == 0 for coords in case.coords) and all(
        0 <= coord <= size - taken
        for coords in case.coords
        for coord, size, taken in zip(coords, tmap.size, counts(tmap), strict=True)
    )


def _spread(case, size):
    """The boxes of a case side by side in a tensor whose last dimension is as long as there is room."""
    tmap = case.tmap
    inner = extent(tmap) - (tmap.size[-1] - 1) * tmap.stride[-1]
    tmap = replace(tmap, size=(*tmap.size[:-1], (size - tmap.address - inner) // tmap.stride[-1] + 1))
    starts = list(zip(*case.coords, strict=True))
    first, taken = tuple(map(min, starts)), counts(tmap)
    # A dimension in which all boxes have the same start has one box, except the last dimension.
    varied = [*(len(set(start)) > 1 for start in starts[:-1]), True]
    count = tuple(
        (most - start) // step if several else 1
        for most, start, step, several in zip(tmap.size, first, taken, varied, strict=True)
    )
    return Boxes(case.name, tmap, first, count, taken)


#: Bytes of a tensor: many times an L2 cache.
BYTES = 2 << 30
ROUNDS = 9

_LIMIT = 300  # seconds
_LATENCY = 100  # cycles, of the benchmark's line for comparison

_TIMING = np.dtype([("shapes", "<u4"), ("rounds", "<u4"), ("bytes", "<u8")])


def configure(parser):
    """Adds the arguments of the subcommand."""
    add_out(parser, "FILE.json", "file for the figures", BUILD / "silicon_time.json")


def run(args):
    """Runs the subcommand; returns 0 for any result."""
    result = measured()
    write_atomically(args.out, json.dumps(result, indent=1) + "\n")
    print("\n".join(table(result)))
    print(args.out)
    return 0


def measured():
    """The :func:`report` of this machine's GPU, with our own figures if the benchmark has written them."""
    timed = shapes(BYTES)
    return report(timed, measure([str(build("timing"))], timed, BYTES), BYTES, utilisations())


def measure(command, timed, size):
    """The output of the timing program, started by ``command``, for the boxes."""
    header = np.array((len(timed), ROUNDS, size), _TIMING)
    data = header.tobytes() + b"".join(boxes.record() for boxes in [*timed, _shared(timed)])
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise UsageError(f"the timing program took more than {_LIMIT} seconds") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"it ended with status {done.returncode}"
        raise UsageError(f"nothing could be timed: {said}")
    return json.loads(done.stdout)


def _shared(timed):
    return next(boxes for boxes in timed if boxes.name == SHARED)


def report(timed, measured, size, utilisations):
    """The result as an object for JSON: medians of the rounds as ratios, for each shape."""
    rounds, faults = np.array(measured.pop("rounds")), measured.pop("faults")
    copy, blocks, *times = np.median(rounds, axis=0) / 1000
    copy_rate, block_rate = 2 * size / copy, size / blocks  # a copy reads and writes
    lines, shapes = [], len(timed)
    for boxes, fault, seconds, column in zip(timed, faults[:shapes], times[:shapes], rounds.T[2 : 2 + shapes],
                                             strict=True):  # fmt: skip
        line = {"name": boxes.name, "tilewright": utilisations.get(boxes.name), "fault": fault}
        if not fault:
            rate = boxes.bytes / seconds
            line |= {
                "bytes": boxes.bytes,
                "of_copy": rate / copy_rate,
                "of_blocks": rate / block_rate,
                "sectors_of_blocks": boxes.sector_bytes / seconds / block_rate,
                "spread": float((column.max() - column.min()) / np.median(column)),
            }
        lines.append(line)
    silicon = provenance(*(measured.pop(name) for name in ("gpu", "driver", "runtime")))
    return (
        silicon
        | measured
        | {
            "bytes": size,
            "rounds": len(rounds),
            "blocks_of_copy": block_rate / copy_rate,
            "gigabytes_a_second": {"copy": copy_rate / 1e9, "blocks": block_rate / 1e9},
            "shapes": lines,
            "clusters": list(sharing(_shared(timed), faults[shapes:], times[shapes:], copy_rate)),
        }
    )


def utilisations():
    """Our utilisation by shape, from the benchmark's result; empty without a result."""
    path = BUILD / "bench.json"
    if not path.exists():
        return {}
    lines = json.loads(path.read_text(encoding="utf-8"))["lines"]
    return {line["name"]: line["figure"] for line in lines
            if line["preset"] == "default" and line["latency"] == _LATENCY}  # fmt: skip


def table(result):
    """Lines of Markdown for docs/silicon.md."""
    yield f"{result['gpu']}, {result['date']}: medians of {result['rounds']} rounds."
    yield f"Blocks without a tensor: {result['blocks_of_copy']:.2f} of the copy's bytes a second, read and written."
    yield ""
    yield "| tile | bytes, of the copy | bytes, of blocks | sectors, of blocks | Tilewright, of its limit |"
    yield "| --- | --- | --- | --- | --- |"
    for line in result["shapes"]:
        ratios = [f"{line[name]:.2f}" for name in ("of_copy", "of_blocks", "sectors_of_blocks") if not line["fault"]]
        yield f"| {' | '.join([line['name'], *(ratios or [line['fault'], '-', '-']), line['tilewright'] or '-'])} |"
    yield ""
    yield from sharing_table(result["clusters"])
    if not any(line["tilewright"] for line in result["shapes"]):
        yield ""
        yield "Run `make bench` first to have our own figures in the last column."
