"""The documentation: the pages of ``docs/``, and the pages made from the field tables, as one web site."""

import logging
import shutil
from pathlib import Path

from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import BUILD
from tilewright.progress import report, working

from ..docs.pages import generated_pages

__all__ = ["build_docs", "configure", "run"]


def configure(parser):
    """Arguments of ``tilewright docs``."""
    add_out(parser, "FOLDER", "folder to build in", BUILD / "docs")


def run(args):
    """Builds the site and prints its path."""
    with working("documentation"):
        site = build_docs(args.out)
    print(site / "index.html")
    return 0


def build_docs(out=BUILD / "docs", sources="docs"):
    """Builds the site from the pages in ``sources`` in ``out/site`` and returns that folder.

    Raises
    ------
    UsageError
        If the sources are missing, or MkDocs has a warning: a dead link, or a page that is not in the menu.
    """
    # The help of the command does not need these packages.
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    sources, pages = Path(sources), Path(out).resolve() / "pages"
    if not (sources / "mkdocs.yml").exists():
        raise UsageError(f"there is no {sources}/mkdocs.yml: run it in the root of the repository")
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(sources, pages, ignore=shutil.ignore_patterns("mkdocs.yml"))
    report("generated pages")
    for name, text in generated_pages().items():
        (pages / name).write_text(text, encoding="utf-8")

    logging.basicConfig(format="%(levelname)s: %(message)s")
    site = pages.with_name("site")
    config = load_config(str(sources / "mkdocs.yml"), docs_dir=str(pages), site_dir=str(site), strict=True)
    report("site")
    try:
        build(config)
    except Abort as error:
        raise UsageError(f"the documentation has mistakes: {error}") from None
    return site
