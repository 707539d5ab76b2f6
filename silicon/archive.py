"""``tilewright silicon pack``: packs everything that a machine with a GPU needs in addition to CUDA, Python and numpy.

The archive unpacks to a folder with the importable package, cases, questions, the test of the replay program, and
``run.py``, which calls ``tilewright silicon all``. The same sources give the same bytes.
"""

import gzip
import tarfile
from importlib.metadata import version
from io import BytesIO
from pathlib import Path

import tilewright
from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically

from .steps import GPU_TEST, QUESTIONS, WORKED

__all__ = ["FOLDER", "configure", "run"]

#: The folder to which the archive unpacks.
FOLDER = "tilewright-silicon"

_RUN = '''"""Runs all cases on a GPU, or continues an earlier run: python3 run.py [--out FOLDER] [STEP ...]"""

import sys

if sys.version_info < (3, 11):
    sys.exit("run.py needs Python 3.11 or newer, not " + sys.version.split()[0])
try:
    import numpy
except ImportError:
    sys.exit("run.py needs numpy")

from tilewright.tools.cli.main import main

sys.exit(main(["silicon", "all", *sys.argv[1:]]))
'''


def configure(parser):
    """Adds the arguments of the subcommand."""
    add_out(parser, "FILE.tar.gz", "path of the archive", BUILD / f"{FOLDER}.tar.gz")


def run(args):
    """Runs the subcommand, in the root of the repository; returns 0."""
    files = dict(sorted(_files()))
    packed = BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, data in files.items():
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
    write_atomically(args.out, packed.getvalue())
    print(f"{args.out}: {len(files)} files, {len(packed.getvalue())} bytes")
    return 0


def _files():
    """Yields the name of each file of the archive, and its contents."""
    yield "run.py", _RUN.encode()
    # The metadata that pip would write: the command line needs the version.
    ours = version("tilewright")
    metadata = f"Metadata-Version: 2.1\nName: tilewright\nVersion: {ours}\n"
    yield f"tilewright-{ours}.dist-info/METADATA", metadata.encode()
    # The other packages are next to this one, in a checkout and in an installed package.
    rooms = {name: Path(__file__).parents[1] / name for name in ("golden", "silicon", "sim", "spec", "tools", "verify")}
    for name, room in {"": Path(tilewright.__file__).parent, **rooms}.items():
        for pattern in ("*.py", "*.cu", "*.h"):
            for path in room.rglob(pattern) if name else room.glob(pattern):
                yield "/".join(filter(None, ("tilewright", name, path.relative_to(room).as_posix()))), path.read_bytes()
    cases = [*WORKED, QUESTIONS, GPU_TEST]
    for path in cases:
        if not path.exists():
            raise UsageError(f"{path} is not here: the archive is packed in the root of the repository")
        yield path.as_posix(), path.read_bytes()
