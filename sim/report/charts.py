"""Charts of the report, as SVG text for light and dark pages."""

from html import escape
from itertools import pairwise

import numpy as np

from tilewright.golden.smem import swizzle
from tilewright.spec import BANKS, CHUNK_BYTES, Swizzle

__all__ = ["SWIZZLE_LAYOUTS", "Picture", "activity", "bank_map", "bars", "cycle_bars", "svg", "timeline"]

#: Channels of a row, and swizzle. The row of a swizzled box is at most as long as the span, so that the 64 channels of
#: a patch are moved whole, as two halves, or as four quarters.
SWIZZLE_LAYOUTS = tuple(
    (s.span // 2, mode) for s in (Swizzle.B128, Swizzle.B64, Swizzle.B32) for mode in (Swizzle.NONE, s)
)

#: Lines and text have the colour of the page's text; the other colours are readable on white and on black.
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.rule{stroke:#888}.cell{stroke:#fff}"
    ".bar{fill:#3b78b8}.wide{fill:#9bbbdc}.mark,.on{fill:#e08a75}.off{fill:#9bbbdc}.in{fill:#111}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.in{fill:#111}}"
)


_LETTER = 7.5  # average width of a letter in pixels
_WIDEST = 1000  # width of a row of bank maps in pixels


class Picture(str):
    """SVG text that a notebook shows as a picture."""

    __slots__ = ()

    def _repr_svg_(self):
        return str(self)


def svg(width, height, parts, title):
    """A self-contained :class:`Picture` with its style; ``title`` is the text for screen readers."""
    body = "\n".join(parts)
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title, quote=True)}">\n<style>{_STYLE}</style>\n{body}\n</svg>\n'
    )


def _room(labels):
    """Width of the longest of some texts, in pixels."""
    return max((round(_LETTER * len(str(label))) for label in labels), default=0)


def _legend(x, y, entries):
    """The legend: for each kind of box a box and its meaning."""
    parts = []
    for kind, words in entries:
        parts += [_box(x, y - 11, 14, 12, kind), _text(x + 20, y, words)]
        x += _room([words]) + 44
    return parts


def _text(x, y, words, anchor="start", kind=""):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{_kind(kind)}>{escape(str(words))}</text>'


def _box(x, y, width, height, kind):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{_kind(kind)}/>'


def _kind(kind):
    return f' class="{kind}"' if kind else ""


def bank_map(layouts, cell=26):
    """A map of the banks of the chunks of eight rows for each layout; one column of chunks is marked.

    Parameters
    ----------
    layouts : sequence of (int, Swizzle)
        Bytes of a row, and swizzle. Cells are arranged by row (down) and logical chunk (across).
    """
    left, top, parts, widest = 46, 64, [], 0
    for row_bytes, mode in layouts:
        banks = [[_bank(row * row_bytes + c, mode) for c in range(0, row_bytes, CHUNK_BYTES)] for row in range(BANKS)]
        marked = len(banks[0]) // 4
        column = [row[marked] for row in banks]
        cycles = max(map(column.count, column))
        name = "no swizzle" if mode == Swizzle.NONE else f"swizzle {mode.span}B"
        titles = (f"rows of {row_bytes} bytes", name, f"{cycles} cycle{'s' * (cycles > 1)} a column")
        width = max(len(banks[0]) * cell, _room(titles))
        if left > 46 and left + width > _WIDEST:
            left, top = 46, top + BANKS * cell + 90
        parts += [_text(left, top - 48 + 18 * number, title) for number, title in enumerate(titles)]
        for number, row in enumerate(banks):
            y = top + number * cell
            parts.append(_text(left - 8, y + 18, f"row {number}", "end"))
            for chunk, bank in enumerate(row):
                x = left + chunk * cell
                parts.append(_box(x, y, cell, cell, "cell on" if chunk == marked else "cell off"))
                parts.append(_text(x + cell // 2, y + 18, bank, "middle", "in"))
        widest = max(widest, left + width + 8)
        left += width + 66
    bottom = top + BANKS * cell + 24
    parts += _legend(46, bottom, [("off", "a chunk, by the number of its bank"), ("on", "a column of chunks")])
    return svg(max(widest, 460), bottom + 8, parts, "Bank of each chunk in each swizzle")


def _bank(address, mode):
    return swizzle(address, mode) // CHUNK_BYTES % BANKS


def bars(rows):
    """Horizontal bars from 0 to 100 %.

    Parameters
    ----------
    rows : list of (str, float, float or None)
        Label; share with latency; share in steady state, drawn in the background.
    """
    left, wide, step = max(_room(label for label, *_ in rows) + 16, 90), 460, 34
    parts = []
    for number, (label, share, steady) in enumerate(rows):
        y = 8 + number * step
        parts.append(_text(left - 8, y + 16, label, "end"))
        if steady is not None:
            parts.append(_box(left, y, wide * steady, 22, "wide"))
        parts.append(_box(left, y + 5, wide * share, 12, "bar"))
        figures = f"{share:.1%}" + ("" if steady is None else f", steady {steady:.1%}")
        parts.append(_text(left + wide + 10, y + 16, figures))
    bottom = 8 + len(rows) * step
    for percent in range(0, 101, 25):
        x = left + wide * percent / 100
        parts.append(f'<line x1="{x:g}" y1="4" x2="{x:g}" y2="{bottom}" class="rule" opacity="0.5"/>')
        parts.append(_text(f"{x:g}", bottom + 16, f"{percent} %", "middle"))
    parts += _legend(
        left, bottom + 38, [("bar", "all cycles"), ("wide", "steady: without the start of each memory full")]
    )
    return svg(left + wide + 190, bottom + 48, parts, "Share of the limit that each workload reaches")


def cycle_bars(rows):
    """Horizontal bars of cycles, on one scale.

    Parameters
    ----------
    rows : list of (str, int, int)
        Label; cycles; limit, drawn inside.
    """
    left, wide, step = max(_room(label for label, *_ in rows) + 16, 90), 460, 30
    scale = wide / max(cycles for _, cycles, _ in rows)
    figures = [f"{cycles:,}: {limit / cycles:.1%} of the limit" for _, cycles, limit in rows]
    parts = []
    for number, (label, cycles, limit) in enumerate(rows):
        y = 8 + number * step
        parts.append(_text(left - 8, y + 15, label, "end"))
        parts.append(_box(left, y, cycles * scale, 20, "wide"))
        parts.append(_box(left, y + 5, limit * scale, 10, "bar"))
        parts.append(_text(f"{left + cycles * scale + 10:g}", y + 15, figures[number]))
    bottom = 8 + len(rows) * step
    parts += _legend(left, bottom + 14, [("wide", "all cycles"), ("bar", "the limit, as part of them")])
    return svg(left + wide + _room(figures) + 20, bottom + 24, parts, "Cycles of each case, and within them the limit")


def timeline(transfer):
    """Events over cycles: a row for each kind, a tick for each event, and the numbers of the first and last cycle."""
    left, wide, step = _room(transfer.events) + 20, 640, 30
    last = max((cycle for cycles in transfer.events.values() for cycle in cycles), default=0)
    scale = wide / (last + 1)
    parts = []
    for number, (label, cycles) in enumerate(transfer.events.items()):
        y = 8 + number * step
        parts.append(_text(left - 10, y + 15, label, "end"))
        parts.append(f'<line x1="{left}" y1="{y + 22}" x2="{left + wide}" y2="{y + 22}" class="rule" opacity="0.4"/>')
        parts += [_box(left + cycle * scale, y + 2, max(scale - 0.5, 1.5), 18, "mark") for cycle in cycles]
        if cycles:
            ends = f"{cycles[0]}" if len(cycles) == 1 else f"{cycles[0]}–{cycles[-1]}: {len(cycles)}"
            parts.append(_text(left + wide + 10, y + 15, ends))
    bottom = 8 + len(transfer.events) * step
    for cycle in range(0, last + 1, max(last // 8 // 10 * 10, 10)):
        parts.append(_text(f"{left + cycle * scale:g}", bottom + 14, cycle, "middle"))
    parts += _legend(left, bottom + 38, [("mark", "an event; on the right: first and last cycle, number of events")])
    return svg(left + wide + 140, bottom + 48, parts, "Events of one transfer over cycles")


def activity(shown):
    """An ``Activity``: a row for each engine, whose height is the share of the time in which the engine worked."""
    left, wide, high, step, top = 170, 840, 30, 40, 36
    cycles = max(shown.last - shown.first, 1)
    scale = wide / cycles
    bottom = top + step * len(shown.rows)
    parts = []
    for number, (first, last, name) in enumerate(shown.marks):
        first, last = (min(max(cycle, shown.first), shown.last) for cycle in (first, last))
        x, width = left + (first - shown.first) * scale, (last - first) * scale
        if width > 0:
            band = f'<rect x="{x:.1f}" y="{top - 6}" width="{width:.1f}" height="{bottom - top + 6}" class="bar"'
            parts.append(f'{band} opacity="{0.16 if number % 2 else 0.06}"><title>{escape(name)}</title></rect>')
        if width > 8 * len(name):
            parts.append(_text(f"{x + width / 2:.1f}", top - 14, name, "middle"))
    edges = np.linspace(shown.first, shown.last, min(wide, cycles) + 1)
    for number, (label, spans) in enumerate(shown.rows.items()):
        base = top + number * step + high
        shares = _shares(spans, edges)
        points = [f"{left + (edge - shown.first) * scale:.1f},{base - high * share:.1f}"
                  for share, pair in zip(shares, pairwise(edges), strict=True)
                  for edge in pair]  # fmt: skip
        parts.append(_text(left - 10, base - 10, label, "end"))
        parts.append(f'<polygon points="{left},{base} {" ".join(points)} {left + wide},{base}" class="bar"/>')
        parts.append(f'<line x1="{left}" y1="{base}" x2="{left + wide}" y2="{base}" class="rule" opacity="0.6"/>')
        parts.append(_text(left + wide + 8, base - 10, f"{shares.mean():.1%}"))
    tick = 10 ** (len(str(cycles)) - 1)
    tick = tick if cycles >= 3 * tick else max(tick // 5, 1)
    for cycle in range(-(-shown.first // tick) * tick, shown.last + 1, tick):
        parts.append(_text(f"{left + (cycle - shown.first) * scale:.1f}", bottom + 16, f"{cycle:,}", "middle"))
    bands = (
        [("wide", "layers in alternating shades; the name is above, or shown when pointed at")] if shown.marks else []
    )
    heights = [("bar", "height: share of time in which it works; right: share of all cycles shown")]
    parts += [*_legend(left, bottom + 40, heights), *_legend(left, bottom + 60, bands)]
    return svg(left + wide + 80, bottom + 50 + 20 * len(bands), parts, "When each engine worked, over cycles")


def _shares(spans, edges):
    """The share of the time that intervals, which may overlap, cover between each two of ``edges``."""
    times, busy, end = [0], [0], 0
    for first, last in sorted(spans):
        first = max(first, end)
        if last > first:
            times += [first, last]
            busy += [busy[-1], busy[-1] + last - first]
            end = last
    covered = np.interp(edges, times, busy)
    return np.diff(covered) / np.diff(edges)
