"""A plan as text: what each layer is cut to, what it is expected to take, and what limits it."""

from math import ceil

from ..lower.places import Cut, Held

__all__ = ["explain"]

_HEADINGS = ("layer", "operator", "output", "cut", "weights", "bands", "jobs", "cycles", "bytes in", "bytes out",
             "limit", "MACs busy")  # fmt: skip
_LEFT = {"layer", "operator", "output", "cut", "weights", "limit"}


def explain(plan, words, memory_bytes):
    """The table of a :class:`Plan` of so many words and bytes of global memory: a line for each layer, and the sum."""
    schedule, machine = plan.schedule, plan.machine
    lines, before = [], 0
    for number, (layer, tiles) in enumerate(zip(plan.layers, plan.tiles, strict=True)):
        spans = [span for span in schedule.spans if span.layer == number]
        busy = {engine: sum(span.end - span.start for span in spans if span.engine == engine)
                for engine in ("conv", "load", "store")}  # fmt: skip
        moved = [machine.bus_bytes * sum(span.words for span in spans if span.engine == way)
                 for way in ("load", "store")]  # fmt: skip
        end = max(span.end for span in spans)
        cycles = max(end - before, 1)
        bands = sum(len(split.bands(part)) for part, split in tiles) or sum(span.engine == "store" for span in spans)
        lines.append((
            layer.name, layer.operator, "x".join(map(str, layer.output.shape)), _cut(layer, tiles), _weights(tiles),
            bands, schedule.jobs[number], cycles, *moved, max(busy, key=busy.get), _share(layer.macs, cycles, machine),
        ))  # fmt: skip
        before = max(before, end)
    bands, jobs, _, bytes_in, bytes_out = (sum(line[column] for line in lines) for column in range(5, 10))
    limit = max(ceil(plan.macs / machine.conv.peak), bytes_in // machine.bus_bytes)
    lines.append(("all", *[""] * 4, bands, jobs, schedule.cycles, bytes_in, bytes_out, "",
                  _share(plan.macs, schedule.cycles, machine)))  # fmt: skip
    text = [_HEADINGS, *(tuple(f"{cell:,}" if isinstance(cell, int) else cell for cell in line) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*text, strict=True)]
    table = "\n".join(
        "  ".join(cell.ljust(width) if heading in _LEFT else cell.rjust(width)
                  for heading, cell, width in zip(_HEADINGS, line, widths, strict=True)).rstrip()
        for line in text
    )  # fmt: skip
    return (
        f"{table}\n\n{plan.macs:,} multiplications; at least {limit:,} cycles; program of {words:,} words; "
        f"{memory_bytes:,} bytes of global memory\n"
    )


def _cut(layer, tiles):
    """Ranges of channels and columns, rows of a band, and how the layer is joined with others."""
    if not tiles:
        return "moves"
    part, split = tiles[0]
    text = [f"{len(tiles)} ranges"] if len(tiles) > 1 else []
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
    if not tiles or not tiles[0][1].image.size:
        return ""
    split = tiles[0][1]
    units = f"{len(split.units)} units" if len(split.units) > 1 else "all"
    return units if split.resident else f"{units}, {split.slots} buffers"


def _share(macs, cycles, machine):
    """Multiplications by what the engine could do in so many cycles, as text."""
    return f"{100 * macs / cycles / machine.conv.peak:.1f} %" if macs else ""
