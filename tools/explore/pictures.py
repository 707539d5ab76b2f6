"""Pictures of an exploration: a Pareto front of area and cycles, maps of utilisation, bars by parameter."""

import io
from math import ceil, exp, log

import matplotlib
from matplotlib.figure import Figure

from tilewright.files import write_atomically

__all__ = ["write_pictures"]

#: Columns that say what a point is come before this one.
_FIRST_FIGURE = "cycles"
_PANELS = 12  # designs of which a map is drawn
# Text stays text, and equal pictures are equal files.
matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "tilewright", "font.size": 8}


def write_pictures(rows, folder):
    """Draws what the rows show, as files ``.svg`` in a folder; returns their captions by name."""
    measured = [row for row in rows if row["cycles"]]
    captions = {}
    for name, (draw, caption) in _PICTURES.items():
        figure = draw(measured) if measured else None
        path = folder / f"{name}.svg"
        if figure is None:
            path.unlink(missing_ok=True)
            continue
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
        write_atomically(path, out.getvalue())
        captions[name] = caption
    return captions


def _varied(rows):
    """Values of each column that says what a point is, if there are several."""
    columns = list(rows[0])[: list(rows[0]).index(_FIRST_FIGURE)]
    values = {name: list(dict.fromkeys(row[name] for row in rows)) for name in columns}
    return {name: several for name, several in values.items() if len(several) > 1}


def _designs(rows):
    """Rows by what the hardware differs in, as a text."""
    names = [name for name in _varied(rows) if name not in ("latency", "workload")]
    designs = {}
    for row in rows:
        label = "\n".join(str(row[n]) if n == "preset" else f"{n.partition('.')[2]} {row[n]}" for n in names)
        designs.setdefault(label, []).append(row)
    return designs


def _mean(numbers):
    """Geometric."""
    return exp(sum(map(log, numbers)) / len(numbers))


def _pareto(rows):
    """For each latency, a dot for each design: its area, and the mean cycles of the workloads that all of them ran."""
    designs = {label: own for label, own in _designs(rows).items() if own[0].get("comb")}
    if len(designs) < 2:
        return None
    figure = Figure((7, 4.5), layout="constrained")
    axes = figure.subplots()
    for latency in dict.fromkeys(row["latency"] for row in rows):
        cycles = {label: {row["workload"]: row["cycles"] for row in own if row["latency"] == latency}
                  for label, own in designs.items()}  # fmt: skip
        common = set.intersection(*(set(each) for each in cycles.values()))
        if not common:
            continue
        dots = sorted((own[0]["comb"], _mean([cycles[label][name] for name in common]), label)
                      for label, own in designs.items())  # fmt: skip
        front, best = [], float("inf")
        for area, mean, _ in dots:
            if mean < best:
                front, best = [*front, (area, mean)], mean
        (line,) = axes.step(*zip(*front, strict=True), where="post", label=f"latency {latency}")
        axes.scatter([dot[0] for dot in dots], [dot[1] for dot in dots], color=line.get_color(), s=16)
    for area, mean, label in dots:
        axes.annotate(label, (area, mean), xytext=(3, 3), textcoords="offset points", fontsize=6)
    axes.set(xlabel="area: LUT4, carries and distributed memory (TRELLIS_COMB)", ylabel="cycles, geometric mean")
    axes.legend()
    return figure


def _maps(rows):
    """A panel for each design: utilisation by workload and latency."""
    workloads, latencies = (list(dict.fromkeys(row[name] for row in rows)) for name in ("workload", "latency"))
    if len(workloads) < 2 and len(latencies) < 2:
        return None
    designs = list(_designs(rows).items())[:_PANELS]
    columns = min(len(designs), 4)
    lines = ceil(len(designs) / columns)
    figure = Figure((3.0 + 1.6 * columns, lines * (0.9 + 0.22 * len(workloads))), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for panel in panels.flat[len(designs) :]:
        panel.set_axis_off()
    for panel, (label, own) in zip(panels.flat, designs, strict=False):
        found = {(row["workload"], row["latency"]): row["utilisation"] for row in own}
        shares = [[found.get((name, latency), float("nan")) for latency in latencies] for name in workloads]
        image = panel.imshow(shares, vmin=0, vmax=100, aspect="auto", cmap="viridis")
        for y, line in enumerate(shares):
            for x, share in enumerate(line):
                if share == share:
                    panel.text(x, y, f"{share:.0f}", ha="center", va="center", color="w" if share < 70 else "k")
        panel.set_title(label, fontsize=7)
        panel.set_xticks(range(len(latencies)), latencies)
        panel.set_yticks(range(len(workloads)), [name.partition(": ")[2] for name in workloads])
    figure.supxlabel("latency of the memory, cycles")
    figure.colorbar(image, ax=panels, label="utilisation, %")
    return figure


def _bars(rows):
    """A group of bars for each parameter that varies: mean utilisation and cycles of the points with each value."""
    varied = _varied(rows)
    if not varied:
        return None
    figure = Figure((8, 0.7 + sum(0.45 + 0.2 * len(values) for values in varied.values())), layout="constrained")
    heights = [1 + len(values) for values in varied.values()]
    panels = figure.subplots(len(varied), 2, squeeze=False, sharex="col", sharey="row", height_ratios=heights)
    for (shares, cycles), (name, values) in zip(panels, varied.items(), strict=True):
        own = [[row for row in rows if row[name] == value] for value in values]
        means = [sum(row["utilisation"] for row in each) / len(each) for each in own]
        for panel, lengths, form in (
            (shares, means, "%.1f"),
            (cycles, [_mean([row["cycles"] for row in each]) for each in own], "{:,.0f}"),
        ):
            panel.bar_label(panel.barh([str(value) for value in values], lengths), fmt=form, padding=2, fontsize=6)
        shares.invert_yaxis()
        shares.set_title(name, fontsize=8, loc="left")
    for column, label in zip(panels.T, ("utilisation, %, mean", "cycles, geometric mean"), strict=True):
        for panel in column:
            panel.margins(x=0.2)
        column[-1].set_xlabel(label)
        column[-1].locator_params(axis="x", nbins=5)
    return figure


_PICTURES = {
    "pareto": (_pareto, "Area and cycles of each design; the line joins designs that no other one beats in both."),
    "maps": (_maps, "Utilisation by workload and latency, a panel for each design."),
    "bars": (_bars, "Utilisation and cycles of all points with each value of a parameter."),
}
