"""``tilewright verilog``: writes the Verilog of the tops."""

from pathlib import Path

from tilewright.hw.core.params import CORE_PRESETS
from tilewright.hw.core.top import Core
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.subsystem import PeSubsystem
from tilewright.hw.pe.top import Pe
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.subsystem import TmauSubsystem
from tilewright.hw.tmau.top import Tmau

from ..files import write_atomically
from ..usage import UsageError
from .verilog import to_verilog

__all__ = ["TOPS", "configure", "run"]

#: Tops by name: component, name of the module and of its file, and presets, which have the same names for all.
TOPS = {
    "tmau": (Tmau, "tmau", TMAU_PRESETS),
    "subsystem": (TmauSubsystem, "tmau_subsystem", TMAU_PRESETS),
    "pe": (Pe, "pe", PE_PRESETS),
    "pe_subsystem": (PeSubsystem, "pe_subsystem", PE_PRESETS),
    "core": (Core, "core", CORE_PRESETS),
}


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="default", help="configuration of the hardware")
    parser.add_argument("--top", choices=list(TOPS), help="one top; all if left out")
    parser.add_argument("--out", metavar="FOLDER", type=Path, default=Path("build/verilog"), help="where to write")


def run(args):
    """Runs the subcommand: one file for each top, ``tmau.v``, ``pe.v`` and so on."""
    if any(path.exists() and not path.is_dir() for path in (args.out, *args.out.parents)):
        raise UsageError(f"--out must name a folder, not {args.out}")
    tops = {args.out / f"{TOPS[top][1]}.v": TOPS[top] for top in ([args.top] if args.top else TOPS)}
    for path in tops:
        if path.is_dir():
            raise UsageError(f"{path} cannot be written: it is a folder")
    # All are made before the first is written.
    texts = {
        path: to_verilog(component(presets[args.preset]), name) for path, (component, name, presets) in tops.items()
    }
    for path, text in texts.items():
        try:
            write_atomically(path, text)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None
        print(f"wrote {path}: {len(text.splitlines())} lines, preset {args.preset}")
    return 0
