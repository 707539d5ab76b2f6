"""The documentation: the pages of ``docs/``, and those made from the field tables, as one web site."""

import logging
import shutil
from pathlib import Path

from tilewright.golden import spec
from tilewright.golden.spec.pe.registers import PE_REGISTERS
from tilewright.golden.spec.pe.segment import PAGE_ENTRY, SEGMENT
from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS
from tilewright.hw.pe.params import PE_PRESETS, PeParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS, TmauParams

from ..hdl.export import TOPS
from ..usage import UsageError
from .header import header_text
from .pe_tables import instructions_page, pe_errors_page
from .stages import stages_text
from .tables import errors_page, format_page, parameters_page, ports_table, registers_page

__all__ = ["build_docs", "configure", "generated_pages", "run"]


def configure(parser):
    """Arguments of ``tilewright docs``."""
    parser.add_argument("--preset", default="default", choices=TMAU_PRESETS, help="of the port lists (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("build/docs"), help="folder to build in (%(default)s)")


def run(args):
    """Builds the site and says where it is."""
    print(build_docs(args.out, args.preset) / "index.html")
    return 0


def generated_pages(preset="default"):
    """Pages that are made and not written, as a dictionary of file name to text; port lists are those of ``preset``."""
    return {
        "descriptor.md": format_page(spec.DESCRIPTOR),
        **{f"{fmt.name}.md": format_page(fmt) for fmt in spec.FORMATS.values()},
        "barrier.md": format_page(spec.BARRIER, spec.BarrierOp),
        "registers.md": registers_page(TMAU_REGISTERS),
        "errors.md": errors_page(),
        "parameters.md": parameters_page(TMAU_PRESETS, TmauParams, SmemParams),
        "instructions.md": instructions_page(),
        "segment.md": format_page(SEGMENT, recorded=False),
        "page_entry.md": format_page(PAGE_ENTRY, recorded=False),
        "pe_errors.md": pe_errors_page(),
        "pe_registers.md": registers_page(PE_REGISTERS, title="Registers of the processing engine"),
        "pe_parameters.md": parameters_page(PE_PRESETS, PeParams, title="Parameters of the processing engine"),
        "ports.md": _ports_page(preset),
        "stages.md": stages_text(),
        "tilewright.h": header_text(),
    }


def _ports_page(preset):
    parts = ["# Ports\n", f"Widths are those of the preset `{preset}`. `clk` and `rst` are common to all.\n"]
    for cls, _, presets in TOPS.values():
        parts += [f"## {cls.__name__}\n", cls.__doc__.splitlines()[0] + "\n", ports_table(cls(presets[preset]))]
    return "\n".join(parts)


def build_docs(out="build/docs", preset="default", sources="docs"):
    """Builds the site from the pages in ``sources`` in ``out/site`` and returns that folder.

    Raises
    ------
    UsageError
        If there is no documentation here, or MkDocs warns of anything: a dead link, a page that no menu names.
    """
    sources, pages = Path(sources), Path(out).resolve() / "pages"
    if not (sources / "mkdocs.yml").exists():
        raise UsageError(f"there is no {sources}/mkdocs.yml: run it in the root of the repository")
    # Late, because a user who installed Tilewright without the `dev` packages has other subcommands that work.
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(sources, pages, ignore=shutil.ignore_patterns("mkdocs.yml"))
    for name, text in generated_pages(preset).items():
        (pages / name).write_text(text, encoding="utf-8")

    logging.basicConfig(format="%(levelname)s: %(message)s")
    site = pages.with_name("site")
    config = load_config(str(sources / "mkdocs.yml"), docs_dir=str(pages), site_dir=str(site), strict=True)
    try:
        build(config)
    except Abort as error:
        raise UsageError(f"the documentation has mistakes: {error}") from None
    return site
