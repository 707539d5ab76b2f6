"""The documentation builds without a warning, and a mistake in it is found."""

import shutil

import pytest

from tilewright.errors import UsageError
from tilewright.tools.cli.docs import build_docs
from tilewright.tools.docs.pages import generated_pages


def test_site_has_written_and_generated_pages(tmp_path):
    site = build_docs(tmp_path)
    for page in ("index", "architecture", *(name[:-3] for name in generated_pages() if name.endswith(".md"))):
        assert (site / f"{page}.html").exists(), page
    assert (site / "tw_default_core.h").exists()


def test_dead_link_is_a_mistake(tmp_path):
    sources = tmp_path / "docs"
    shutil.copytree("docs", sources)
    index = sources / "index.md"
    index.write_text(index.read_text() + "\n[nowhere](nowhere.md)\n")
    with pytest.raises(UsageError, match=r"^the documentation has mistakes: .*strict mode"):
        build_docs(tmp_path / "out", sources=sources)


def test_there_must_be_a_documentation(tmp_path):
    with pytest.raises(UsageError, match=r"mkdocs\.yml: run it in the root of the repository$"):
        build_docs(tmp_path / "out", sources=tmp_path)
