"""The report of a program on the hardware: when each engine worked, and a table of layers."""

from math import ceil

from tilewright.sim.report.activity import activity
from tilewright.sim.workloads.findings import Totals

from .program.rtl import measure_layers

__all__ = ["charts_of", "table_of", "totals_of"]

_ZOOM = 3  # layers of the enlarged part
_CAPTION = "When each engine worked"
_HEAD = ("layer", "operator", "output", "cycles", "expected", "MACs", "of all MACs", "bytes in", "bytes out")


def totals_of(compiled, run):
    """The Totals of a run: its limit is the largest of multiplications, bytes read and bytes written."""
    macs = sum(layer.macs for layer in compiled.layers)
    limit = max(ceil(macs / compiled.machine.conv.peak), run.data_beats, run.write_beats, 1)
    one = Totals("MACs", parts=1, work=macs, cycles=run.cycles, limit=limit)
    one.problems += [f"rule of AXI broken: {rule.name}" for rule in run.violations]
    one.problems += [f"wait that lasted too long: {wait.name}" for wait in run.late]
    return one


def charts_of(compiled, run):
    """When each engine worked, by caption: in all of a run and, if there are more layers, in three of its middle."""
    marks = [(one.start, one.end, one.layer.name) for one in measure_layers(compiled, run) if one.cycles]
    whole = activity(run, compiled.schedule.words, marks=marks)
    charts = {_CAPTION: whole.svg()}
    if len(marks) > _ZOOM:  # otherwise it would be the same picture
        middle = (len(marks) - _ZOOM) // 2
        near = marks[middle : middle + _ZOOM]
        part = whole._replace(first=near[0][0], last=near[-1][1])
        charts[f"{_CAPTION}, from {near[0][2]} to {near[-1][2]}"] = part.svg()
    return charts


def table_of(compiled, run):
    """Headings and rows, of text: a row for each layer."""
    return _HEAD, [_row(one, compiled.machine.conv.peak) for one in measure_layers(compiled, run)]


def _row(one, peak):
    """Cells of a layer."""
    share = f"{one.layer.macs / one.cycles / peak:.1%}" if one.layer.macs and one.cycles else ""
    shape = " x ".join(map(str, one.layer.output.shape))
    counts = (one.cycles, one.expected, one.layer.macs)
    return (one.layer.name, one.layer.operator, shape, *(f"{count:,}" for count in counts), share,
            f"{one.bytes_in:,}", f"{one.bytes_out:,}")  # fmt: skip
