"""Runs an exploration on Dask, and leaves its table, pictures and page."""

import time
from pathlib import Path

from jinja2 import Environment, PackageLoader

from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically
from tilewright.progress import report, working
from tilewright.results import record
from tilewright.workers import Records, connected, worked

from .pictures import write_pictures
from .point import Area, build, map_area, measure
from .space import read_space
from .table import answer, rows_of, write_table

__all__ = ["SPACES", "explore", "point_name", "run_space"]

#: Spaces that come with the package.
SPACES = Path(__file__).parent / "spaces"
_SHOWN = 10  # failures that are printed


def run_space(space, folder, scheduler=None, workers=None):
    """Works through a space.

    Parameters
    ----------
    space : Space
    folder : Path
        Where records are kept.
    scheduler, workers
        As of ``connected``.

    Returns
    -------
    list of dict, str
        Rows of the table, and how long it took and how busy the workers were.
    """
    hardware = {point: _hardware(point) for point in space.points}
    areas = {point: Area(made.params) for point, made in hardware.items() if made} if space.area else {}
    records, builds, found = Records(folder / "points"), {}, {}

    def submit(run, item):
        if isinstance(item, Area):
            return run(map_area, item)
        made = hardware[item]
        if made and made not in builds:
            builds[made] = run(build, made)
        return run(measure, item, builds.get(made))

    report("workers")
    items = [*space.points, *dict.fromkeys(areas.values())]
    known = {item for item in items if records.read(item.key)}
    with connected(scheduler, workers) as client:
        begin, count = time.monotonic(), len(client.nthreads())
        for item, one in worked(client, submit, items, records, "points"):
            found[item] = one
        seconds = time.monotonic() - begin
        busy = sum(future.result()["seconds"] for future in builds.values())
    busy += sum(one["seconds"] for item, one in found.items() if item not in known)
    spent = f"{seconds:,.0f} s on {count} workers, which worked {busy / count / seconds:.1%} of the time"
    return rows_of(space, areas, found), spent


def _hardware(point):
    """What a point's model is built for; None if there is none, or if it cannot be: the worker says why."""
    try:
        return point.hardware
    except (UsageError, ValueError):
        return None


def explore(path, folder, scheduler=None, workers=None):
    """Explores the space of a file, and prints what came out; returns the exit status."""
    space = read_space(path)
    folder = Path(folder or BUILD / "explore" / space.name)
    with working(space.name):
        rows, spent = run_space(space, folder, scheduler, workers)
    write_table(rows, folder / space.name)
    failed = [row for row in rows if row["failure"]]
    lines = [f"{len(rows)} points, {len(failed)} failed; {spent}"]
    if space.question:
        found = answer(space.question, rows)
        lines.append(f"{space.question}: {_told(found, space.question) if found else 'no point'}")
    pictures = write_pictures(rows, folder)
    page = Environment(loader=PackageLoader(__package__, "."), autoescape=True).get_template("page.html")
    write_atomically(folder / "index.html", page.render(title=space.name, lines=lines, pictures=pictures, rows=rows))
    for row in failed[:_SHOWN]:
        print(f"failed: {point_name(row)}: {row['failure']}")
    print("\n".join([*lines, str(folder / f"{space.name}.parquet"), str(folder / "index.html")]))
    if Path(path).parent == SPACES:
        _record(space.name, rows)
    return 1 if failed else 0


def _told(row, question):
    columns = dict.fromkeys((question.least, *(column for column, *_ in question.where), "cycles"))
    return f"{point_name(row)}: " + ", ".join(f"{column} {row[column]}" for column in columns)


def point_name(row):
    """What a row is of, in words."""
    columns = list(row)[: list(row).index("cycles")]
    return ", ".join(str(row[name]) if name in ("preset", "workload") else f"{name} {row[name]}" for name in columns)


def _record(name, rows):
    """Leaves the numbers for pages that cite them."""
    numbers = {}
    for row in rows:
        counted = {column: value for column, value in row.items() if type(value) in (int, float)}
        numbers[point_name(row)] = {column: value for column, value in counted.items() if column != "seconds"}
    record(f"explore-{name}", command=f"tilewright explore {name}", points=len(rows), rows=numbers)
