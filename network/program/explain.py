"""The plan of a program as text: what each layer is cut to, what it is expected to take, and what limits it."""

from math import ceil

__all__ = ["explain"]

_HEADINGS = ("layer", "operator", "output", "bands", "jobs", "cycles", "bytes in", "bytes out", "limit", "MACs busy")


def explain(compiled):
    """The table of a :class:`Compiled`: a line for each layer, and one for all of it."""
    schedule, machine = compiled.schedule, compiled.machine
    rows, before = [], 0
    for number, (layer, tiles) in enumerate(zip(compiled.layers, compiled.tiles, strict=True)):
        spans = [span for span in schedule.spans if span.layer == number]
        end = max(span.end for span in spans)
        busy = {engine: sum(span.end - span.start for span in spans if span.engine == engine)
                for engine in ("conv", "load", "store")}  # fmt: skip
        words = {way: sum(span.words for span in spans if span.engine == way) for way in ("load", "store")}
        bands = sum(len(one.bands(part)) for part, one in tiles) or sum(span.engine == "store" for span in spans)
        cycles = max(end - before, 1)
        rows.append((
            layer.name, layer.operator, "x".join(map(str, layer.output.shape)), bands,
            schedule.jobs[number], cycles, words["load"] * machine.bus_bytes, words["store"] * machine.bus_bytes,
            max(busy, key=busy.get), _share(layer.macs, cycles, machine),
        ))  # fmt: skip
        before = max(before, end)
    macs = sum(layer.macs for layer in compiled.layers)
    rows.append((
        "all", "", "", sum(row[3] for row in rows), sum(row[4] for row in rows), schedule.cycles,
        sum(row[6] for row in rows), sum(row[7] for row in rows), "", _share(macs, schedule.cycles, machine),
    ))  # fmt: skip
    text = [_HEADINGS, *(tuple(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in text) for column in range(len(_HEADINGS))]
    left = {0, 1, 2, 8}
    lines = [
        "  ".join(cell.ljust(width) if column in left else cell.rjust(width)
                  for column, (cell, width) in enumerate(zip(line, widths, strict=True))).rstrip()
        for line in text
    ]  # fmt: skip
    limit = max(ceil(macs / machine.conv.peak), sum(row[6] for row in rows[:-1]) // machine.bus_bytes)
    lines += [
        "",
        f"{macs:,} multiplications; at least {limit:,} cycles; program of {compiled.words:,} words; "
        f"{len(compiled.image):,} bytes of global memory",
    ]
    return "\n".join(lines) + "\n"


def _share(macs, cycles, machine):
    """Multiplications by what the engine could do in so many cycles, as text."""
    return f"{100 * macs / cycles / machine.conv.peak:.1f} %" if macs else ""
