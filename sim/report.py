"""The report of ``tilewright sim``: one page with everything in it."""

import base64
import io
from html import escape

import numpy as np
from PIL import Image

from .report_charts import bank_map, bars, timeline
from .usage import UsageError
from .verilog import write_atomically
from .workloads.swizzle import LAYOUTS

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
    "of the memory at the start of each shared memory full."
)
_BANKS = (
    "The bank of each chunk of eight rows, for the layouts of the workload swizzle. A column (marked) whose eight "
    "chunks lie in eight banks is read in one cycle."
)


def write_report(folder, preset, simulator, extent, params, played, transfer):
    """Writes ``index.html`` in ``folder`` and returns its path.

    Parameters
    ----------
    folder : Path
    preset, simulator, extent : str
        What was run, on what, and how much of the photographs.
    params : TmauParams
    played : list of Played
    transfer : Transfer
    """
    path = folder / "index.html"
    try:
        write_atomically(path, report_page(preset, simulator, extent, params, played, transfer))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    return path


def report_page(preset, simulator, extent, params, played, transfer):
    """The page as text; the arguments are those of :func:`write_report`. The same runs give the same page."""
    problems = [problem for each in played for problem in each.totals.problems]
    verdict = "every byte equals the golden model" if not problems else f"{len(problems)} problems"
    setting = (
        f"Preset {preset}: bus of {params.bus_bytes} bytes, {params.max_outstanding} reads in flight, "
        f"{params.smem.size_bytes:,} bytes of shared memory. Simulated on {simulator}: {extent}."
    )
    parts = [
        f"<h1>Tilewright: {escape(verdict)}</h1>",
        f"<p>{escape(setting)}</p>",
        _table(played),
        f"<p>{_LIMIT}</p>",
        _figure(
            bars([(each.name, each.totals.utilisation, each.totals.steady) for each in played]), "Share of the limit"
        ),
        _list([f"{each.name}: {fact}" for each in played for fact in each.findings.facts]),
        _list(problems[:100], "wrong"),
        "<h2>What landed</h2>",
        *(_figure(_image(pixels), caption) for each in played for caption, pixels in each.findings.pictures.items()),
        "<h2>Banks</h2>",
        _figure(bank_map([(2 * channels, mode) for channels, mode in LAYOUTS]), _BANKS),
        "<h2>One transfer</h2>",
        _figure(timeline(transfer), f"{transfer.title}. Cycles count from the acceptance of the command."),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Tilewright: simulation</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _table(played):
    head = ("workload", "boxes", "bytes", "cycles", "limit", "of limit", "steady", "against golden")
    rows = ["".join(f"<th>{name}</th>" for name in head)]
    for each in played:
        totals = each.totals
        steady = "–" if totals.steady is None else f"{totals.steady:.1%}"
        cells = (each.name, f"{totals.boxes:,}", f"{totals.bytes:,}", f"{totals.cycles:,}", f"{totals.limit:,}",
                 f"{totals.utilisation:.1%}", steady, totals.verdict)  # fmt: skip
        rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
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
