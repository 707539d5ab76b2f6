"""The report of ``tilewright sim``: one self-contained page, from the template ``page.html`` in this folder."""

import base64
import io
from importlib.metadata import version
from pathlib import Path

import numpy as np
from jinja2 import Template
from markupsafe import Markup
from PIL import Image

from tilewright.errors import UsageError
from tilewright.files import write_atomically
from tilewright.hw.cluster.params import ClusterParams
from tilewright.results import commit, today

from .charts import SWIZZLE_LAYOUTS, bank_map, bars, cycle_bars, timeline

__all__ = ["describe_machine", "report_page", "write_report"]

_HEAD = ("workload", "parts", "work", "cycles", "limit", "of limit", "steady", "against golden")
_MOST_PROBLEMS = 100  # that are listed


def write_report(folder, setting, machines, played, transfer):
    """Writes ``index.html`` in ``folder`` and returns its path.

    Parameters
    ----------
    folder : Path
    setting : str
        Sentences on the hardware, the simulator, and the part of the photographs.
    machines : list of TmauParams, PeParams, ConvUnitParams, ClusterParams and CoreParams
        The machines of the run; each is described once.
    played : list of Played
    transfer : Transfer or None
        None without a transfer.
    """
    path = folder / "index.html"
    try:
        made = f"Tilewright {version('tilewright')}, commit {commit()}, {today()}"
        write_atomically(path, report_page(setting, machines, played, transfer, made))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    return path


def report_page(setting, machines, played, transfer, made=""):
    """The page as text. Arguments as for :func:`write_report`; ``made`` is the sentence on version, commit and date.

    The same runs give the same page.
    """
    problems = [problem for each in played for problem in each.totals.problems]
    shares = bars([(each.name, each.totals.utilisation, each.totals.steady) for each in played])
    cases = [
        (cycle_bars([(name, totals.cycles, totals.limit) for name, totals in each.findings.cases.items()]), each.name)
        for each in played
        if each.findings.cases
    ]
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"), autoescape=True)
    return template.render(
        verdict=f"{len(problems)} problems" if problems else "everything equals the golden model",
        setting=[setting, *dict.fromkeys(map(describe_machine, machines))],
        made=made,
        head=_HEAD,
        rows=[row for each in played for row in _rows(each)],
        charts=[(Markup(shares), "Share of the limit"), *((Markup(svg), f"Cycles of {name}") for svg, name in cases)],
        facts=[f"{each.name}: {fact}" for each in played for fact in each.findings.facts],
        problems=problems[:_MOST_PROBLEMS],
        engines=[(Markup(svg), caption) for each in played for caption, svg in each.findings.charts.items()],
        tables=[(caption, *table) for each in played for caption, table in each.findings.tables.items()],
        pictures=[(_png(pixels), caption) for each in played for caption, pixels in each.findings.pictures.items()],
        transfer=transfer,
        banks=Markup(bank_map([(2 * channels, mode) for channels, mode in SWIZZLE_LAYOUTS])),
        timeline=Markup(timeline(transfer)) if transfer else None,
    )


def describe_machine(params):
    """A sentence that describes a core or a cluster, from its CoreParams or ClusterParams."""
    shared = f"{params.smem.size_bytes:,} bytes of shared memory"
    if isinstance(params, ClusterParams):
        return f"{params.cores} cores on one bus, each with {', '.join(_engines(params.core))}, {shared}."
    return f"A core with {', '.join(_engines(params))}, {shared}."


def _engines(core):
    """Phrases that describe the engines of a core."""
    if core.tmau:
        yield f"an access unit (bus of {core.tmau.bus_bytes} bytes, {core.tmau.max_outstanding} reads in flight)"
    if core.pe:
        yield f"a processing engine ({core.pe.threads} threads of {core.pe.unit_bytes} multipliers of 8 bits)"
    if core.conv:
        yield f"a convolution engine ({core.conv.conv.peak:,} multipliers of 8 bits)"
    if core.program:
        yield "a command processor"


def _rows(played):
    """Rows of the table: each workload, followed by its cases."""
    yield played.name, *played.totals.cells
    for name, totals in played.findings.cases.items():
        yield f"{played.name} {name}", *totals.cells


def _png(pixels):
    """A lossless picture, encoded for a page."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()
