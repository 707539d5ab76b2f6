"""What multicast saves: times of a tile for clusters of blocks, beside our own cycles for the same."""

import json

from tilewright.files import BUILD

__all__ = ["CLUSTERS", "OURS", "SHARED", "our_ratios", "sharing", "sharing_table"]

#: Blocks of a cluster that are timed, each with separate loads, then with multicasts: as ``timing.cu`` does.
CLUSTERS = (2, 4, 8)
#: The tile that all blocks of a cluster load.
SHARED = "2-D, rows of 256 bytes"
#: Names of the benchmark's lines for the same, by number of cores.
OURS = "multicast to {}: cycles", "separate loads by {}: cycles"


def sharing(boxes, faults, seconds, copy_rate):
    """A line, an object for JSON, for each of ``CLUSTERS``.

    Parameters
    ----------
    boxes : Boxes
        That all blocks of a cluster load.
    faults, seconds
        Two for each of ``CLUSTERS``, as the timing program reports them.
    copy_rate : float
        Bytes a second.
    """
    for number, cores in enumerate(CLUSTERS):
        separate, multicast = seconds[2 * number : 2 * number + 2]
        fault = next(filter(None, faults[2 * number : 2 * number + 2]), None)
        ratios = {} if fault else {
            "separate_of_copy": cores * boxes.bytes / separate / copy_rate,
            "multicast_of_copy": cores * boxes.bytes / multicast / copy_rate,
            "times_as_fast": float(separate / multicast),
        }  # fmt: skip
        yield {"cores": cores, "fault": fault} | ratios


def our_ratios():
    """How many times as fast our multicast is, by number of cores, from the benchmark's result; empty without one."""
    path = BUILD / "bench.json"
    if not path.exists():
        return {}
    lines = json.loads(path.read_text(encoding="utf-8"))["lines"]
    cycles = {line["name"]: line.get("measured") for line in lines if line["preset"] == "default"}
    pairs = {cores: [cycles.get(name.format(cores)) for name in OURS] for cores in CLUSTERS}
    return {cores: separate / multicast for cores, (multicast, separate) in pairs.items() if multicast and separate}


def sharing_table(lines):
    """Lines of Markdown for docs/silicon.md."""
    ours = our_ratios()
    yield "| blocks | separate loads, of the copy | multicasts, of the copy | multicast is faster by | by ours |"
    yield "| --- | --- | --- | --- | --- |"
    names = ("separate_of_copy", "multicast_of_copy", "times_as_fast")
    for line in lines:
        ratios = [line["fault"], "-", "-"] if line["fault"] else [f"{line[name]:.2f}" for name in names]
        own = f"{ours[line['cores']]:.2f}" if line["cores"] in ours else "-"
        yield f"| {' | '.join([str(line['cores']), *ratios, own])} |"
