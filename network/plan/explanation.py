"""A plan as text, a line for each layer (docs/network.md, "The plan")."""

from math import ceil

from ..lower.places import Cut, Held

__all__ = ["explain", "traffic"]

_HEADINGS = ("layer", "operator", "output", "cut", "weights", "bands", "jobs", "cycles", "bytes in", "bytes out",
             "limit", "MACs busy")  # fmt: skip
#: With several cores: how they share a layer, and what they would load if each loaded all that it needs.
_OF_CORES = ("cores", "bytes alone")
_LEFT = {"layer", "operator", "output", "cut", "weights", "limit", "cores"}


def explain(plan, words, memory_bytes):
    """A :class:`Plan` as a table: a line for each layer, one for the sum, and the sizes of programs and memory."""
    machine, several = plan.machine, plan.machine.cores > 1
    peak = machine.peak
    lines, before = [], 0
    for number, (layer, tiles, moved) in enumerate(zip(plan.layers, plan.tiles, traffic(plan), strict=True)):
        spans = [span for span in plan.spans if span.layer == number]
        busy = {engine: sum(span.end - span.start for span in spans if span.engine == engine)
                for engine in ("conv", "pe", "load", "store")}  # fmt: skip
        end = max(span.end for span in spans)
        cycles = max(end - before, 1)
        # Layers that are joined take turns: each works from its first job to its last one.
        jobs = [span for span in spans if span.engine == "conv"]
        working = max(span.end for span in jobs) - min(span.start for span in jobs) if jobs else 0
        bands = sum(len(split.bands(part)) for share in tiles for part, split in share)
        bands = bands or sum(span.engine == "store" for span in spans)
        lines.append((
            layer.name, layer.operator, "x".join(map(str, layer.output.shape)), _cut(layer, tiles), _weights(tiles),
            bands, sum(schedule.jobs[number] for schedule in plan.schedules), cycles, *moved[:2],
            max(busy, key=busy.get), _share(layer.macs, working, peak), *((_way(tiles), moved[2]) if several else ()),
        ))  # fmt: skip
        before = max(before, end)
    bands, jobs, _, bytes_in, bytes_out = (sum(line[column] for line in lines) for column in range(5, 10))
    limit = max(ceil(plan.macs / peak), bytes_in // (machine.ports * machine.bus_bytes))
    ends = ("", sum(line[-1] for line in lines)) if several else ()
    lines.append(("all", *[""] * 4, bands, jobs, plan.cycles, bytes_in, bytes_out, "",
                  _share(plan.macs, plan.cycles, peak), *ends))  # fmt: skip
    headings = _HEADINGS + (_OF_CORES if several else ())
    text = [headings, *(tuple(f"{cell:,}" if isinstance(cell, int) else cell for cell in line) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*text, strict=True)]
    table = "\n".join(
        "  ".join(cell.ljust(width) if heading in _LEFT else cell.rjust(width)
                  for heading, cell, width in zip(headings, line, widths, strict=True)).rstrip()
        for line in text
    )  # fmt: skip
    programs = f"programs of {machine.cores} cores, {words:,} words" if several else f"program of {words:,} words"
    return (
        f"{table}\n\n{plan.macs:,} multiplications; at least {limit:,} cycles; {programs}; "
        f"{memory_bytes:,} bytes of global memory\n"
    )


def traffic(plan):
    """For each layer the bytes that all cores load and store, and those that they would load without multicasts."""
    bytes_of = [[0, 0, 0] for _ in plan.layers]
    for span in plan.spans:
        moved = plan.machine.bus_bytes * span.words
        if span.engine == "load":
            bytes_of[span.layer][0] += moved
            bytes_of[span.layer][2] += moved * span.receivers
        elif span.engine == "store":
            bytes_of[span.layer][1] += moved
    return [tuple(each) for each in bytes_of]


def _way(tiles):
    """How cores share a layer: those of kernels and moves share the rows, or bytes, of the output."""
    firsts = [share[0] for share in tiles if share]
    channels = any(part.output != firsts[0][0].output for part, _ in firsts)
    rows = not channels or any(split.span != firsts[0][1].span for _, split in firsts)
    return " and ".join(name for name, shared in (("rows", rows), ("channels", channels)) if shared)


def _cut(layer, tiles):
    """Ranges of channels and columns, rows of a band, and how the layer is joined with others; of the first core."""
    ranges = tiles[0]
    if not ranges:
        return f"kernel {layer.kernel.name}" if layer.kernel else "moves"
    part, split = ranges[0]
    text = [f"{len(ranges)} ranges"] if len(ranges) > 1 else []
    text.append(f"{split.rows} rows")
    if split.depth > 1:
        text.append(f"{split.depth} buffers")
    if any(isinstance(place, Cut) and place.gap for place in part.sources):
        text.append("gaps")
    if isinstance(layer.output, Held):
        text.append("stays")
    return ", ".join(text)


def _weights(tiles):
    """How weights are loaded: all at once, or in units through a number of buffers."""
    if not tiles[0] or not tiles[0][0][1].image.size:
        return ""
    split = tiles[0][0][1]
    units = f"{len(split.units)} units" if len(split.units) > 1 else "all"
    return units if split.resident else f"{units}, {split.slots} buffers"


def _share(macs, cycles, peak):
    """Multiplications as a share of what engines of ``peak`` can do in ``cycles``, as text."""
    return f"{100 * macs / cycles / peak:.1f} %" if macs else ""
