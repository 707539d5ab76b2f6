"""The report of ``tilewright sim``: one page with everything in it."""

import base64
import io
from html import escape

import numpy as np
from PIL import Image

from tilewright.hw.pe.params import PeParams

from ..files import write_atomically
from ..usage import UsageError
from .charts import SWIZZLE_LAYOUTS, bank_map, bars, cycle_bars, timeline

__all__ = ["report_page", "write_report"]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .8rem; border-bottom: 1px solid #8886; text-align: right; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; }
figure { margin: 1.5rem 0; overflow-x: auto; } img { max-width: 100%; } .wrong { color: #c8553d; font-weight: 600; }
"""
_LIMIT = (
    "The limit is, for each shared memory full of boxes, the larger of two counts: bus words that hold a needed byte "
    "(each crosses the bus once for each box), and 128-byte lines that are written. Wide bars leave out the latency "
    "of the memory at the start of each shared memory full. Of programs of the processing engine it is the cycles in "
    "which all multipliers of all threads could do the multiply-accumulates (MACs)."
)
_BANKS = (
    "The bank of each chunk of eight rows, for the layouts of the workload swizzle. A column (marked) whose eight "
    "chunks lie in eight banks is read in one cycle."
)


def write_report(folder, setting, machines, played, transfer):
    """Writes ``index.html`` in ``folder`` and returns its path.

    Parameters
    ----------
    folder : Path
    setting : str
        What was run, on what, and how much of the photographs.
    machines : list of TmauParams and PeParams
        What it ran on; each is described once.
    played : list of Played
    transfer : Transfer or None
        None if nothing was moved.
    """
    path = folder / "index.html"
    try:
        write_atomically(path, report_page(setting, machines, played, transfer))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    return path


def report_page(setting, machines, played, transfer):
    """The page as text; the arguments are those of :func:`write_report`. The same runs give the same page."""
    problems = [problem for each in played for problem in each.totals.problems]
    verdict = "everything equals the golden model" if not problems else f"{len(problems)} problems"
    parts = [
        f"<h1>Tilewright: {escape(verdict)}</h1>",
        *(f"<p>{escape(sentence)}</p>" for sentence in (setting, *dict.fromkeys(map(_described, machines)))),
        _table(played),
        f"<p>{_LIMIT}</p>",
        _figure(
            bars([(each.name, each.totals.utilisation, each.totals.steady) for each in played]), "Share of the limit"
        ),
        *(_figure(_case_bars(each), f"Cycles of {each.name}") for each in played if each.findings.cases),
        _list([f"{each.name}: {fact}" for each in played for fact in each.findings.facts]),
        _list(problems[:100], "wrong"),
        *_titled(
            "What came out",
            [_figure(_image(pixels), caption) for each in played for caption, pixels in each.findings.pictures.items()],
        ),
        *(_transfer_parts(transfer) if transfer else ()),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Tilewright: simulation</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _described(params):
    """A sentence on a machine."""
    shared = f"{params.smem.size_bytes:,} bytes of shared memory"
    if isinstance(params, PeParams):
        return f"Processing engine: {params.threads} threads of {params.unit_bytes} multipliers of 8 bits, {shared}."
    return f"Mover: bus of {params.bus_bytes} bytes, {params.max_outstanding} reads in flight, {shared}."


def _transfer_parts(transfer):
    """What explains the movement of boxes."""
    return (
        "<h2>Banks</h2>",
        _figure(bank_map([(2 * channels, mode) for channels, mode in SWIZZLE_LAYOUTS]), _BANKS),
        "<h2>One transfer</h2>",
        _figure(timeline(transfer), f"{transfer.title}. Cycles count from the acceptance of the command."),
    )


def _case_bars(played):
    return cycle_bars([(name, each.cycles, each.limit) for name, each in played.findings.cases.items()])


def _titled(title, parts):
    return [f"<h2>{title}</h2>", *parts] if parts else []


def _table(played):
    head = ("workload", "parts", "work", "cycles", "limit", "of limit", "steady", "against golden")
    rows = ["".join(f"<th>{name}</th>" for name in head)]
    for each in played:
        cases = [(f"{each.name} {name}", totals) for name, totals in each.findings.cases.items()]
        for name, totals in [(each.name, each.totals), *cases]:
            rows.append("".join(f"<td>{escape(cell)}</td>" for cell in (name, *totals.cells)))
    return "<table>\n" + "\n".join(f"<tr>{row}</tr>" for row in rows) + "\n</table>"


def _list(sentences, kind=""):
    items = "\n".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<ul class="{kind}">\n{items}\n</ul>' if items else ""


def _figure(content, caption):
    return f"<figure>\n{content}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"


def _image(pixels):
    """A lossless picture inside the page."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG", optimize=True)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
