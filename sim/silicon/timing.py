"""``tilewright silicon time``: how fast a GPU's tensor mover loads the tiles of ``make bench``, against its own copies.

Each tile is repeated over a tensor far larger than the L2 cache, boxes side by side: every byte is asked for once.
Speeds come out as ratios within one run: shapes are what compares between machines, not bytes a second.
"""

import json
import subprocess

import numpy as np

from ..arguments import output_file
from ..files import BUILD, write_atomically
from ..usage import UsageError
from .boxes import shapes
from .program import build
from .provenance import provenance

__all__ = ["configure", "measure", "measured", "report", "run", "table", "utilisations"]

#: Bytes that tensors spread over: many times an L2 cache.
BYTES = 2 << 30
ROUNDS = 9

_LIMIT = 300  # seconds
_LATENCY = 100  # cycles, of the line of the benchmark that stands beside

_TIMING = np.dtype([("shapes", "<u4"), ("rounds", "<u4"), ("bytes", "<u8")])


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--out", metavar="FILE.json", type=output_file,
                        default=str(BUILD / "silicon_time.json"),
                        help="where figures go (%(default)s)")  # fmt: skip


def run(args):
    """Runs the subcommand; returns 0 whatever is measured."""
    result = measured()
    write_atomically(args.out, json.dumps(result, indent=1) + "\n")
    print("\n".join(table(result)))
    print(args.out)
    return 0


def measured():
    """The :func:`report` of this machine's GPU, beside our own figures where the benchmark has left them."""
    timed = shapes(BYTES)
    return report(timed, measure([str(build("timing"))], timed, BYTES), BYTES, utilisations())


def measure(command, timed, size):
    """What the timing program, started by ``command``, says of the boxes."""
    header = np.array((len(timed), ROUNDS, size), _TIMING)
    data = header.tobytes() + b"".join(boxes.record() for boxes in timed)
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise UsageError(f"the timing program took more than {_LIMIT} seconds") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"it ended with status {done.returncode}"
        raise UsageError(f"nothing could be timed: {said}")
    return json.loads(done.stdout)


def report(timed, measured, size, utilisations):
    """The result as JSON has it: medians of the rounds as ratios, for each shape."""
    rounds, faults = np.array(measured.pop("rounds")), measured.pop("faults")
    copy, blocks, *times = np.median(rounds, axis=0) / 1000
    copy_rate, block_rate = 2 * size / copy, size / blocks  # a copy reads and writes
    lines = []
    for boxes, fault, seconds, column in zip(timed, faults, times, rounds.T[2:], strict=True):
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
        }
    )


def utilisations():
    """Our utilisation by shape, as the benchmark has left it; empty if it has not."""
    path = BUILD / "bench.json"
    if not path.exists():
        return {}
    lines = json.loads(path.read_text(encoding="utf-8"))["lines"]
    return {line["name"]: line["figure"] for line in lines
            if line["preset"] == "default" and line["latency"] == _LATENCY}  # fmt: skip


def table(result):
    """Lines of Markdown: what docs/silicon.md shows."""
    yield f"{result['gpu']}, {result['date']}: medians of {result['rounds']} rounds."
    yield f"Blocks without a tensor: {result['blocks_of_copy']:.2f} of the copy's bytes a second, read and written."
    yield ""
    yield "| tile | bytes, of the copy | bytes, of blocks | sectors, of blocks | Tilewright, of its limit |"
    yield "| --- | --- | --- | --- | --- |"
    for line in result["shapes"]:
        ratios = [f"{line[name]:.2f}" for name in ("of_copy", "of_blocks", "sectors_of_blocks") if not line["fault"]]
        yield f"| {' | '.join([line['name'], *(ratios or [line['fault'], '-', '-']), line['tilewright'] or '-'])} |"
    if not any(line["tilewright"] for line in result["shapes"]):
        yield ""
        yield "Run `make bench` first to have our own figures in the last column."
