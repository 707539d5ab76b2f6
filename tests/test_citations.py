"""Every page and section that sources, pages and the C header cite is there: ``docs/tmau.md, "Tile mode"``."""

import re
from pathlib import Path

import pytest

from tilewright.tools.docs.pages import generated_pages

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path for folder in ("hw", "golden", "sim", "network", "tb", "tests") for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__).resolve()
)  # fmt: skip

#: A page, and the sections after it in quotation marks: ``"One"``, or ``"One", "Two"``, or ``"One" to "Two"``.
CITATION = re.compile(r'(?<![\w/])docs/(\w+)\.md((?:(?:,| to|,? and)\s+"[^"\n]+")*)')
#: A page without its folder in a sentence, which readers would have to search.
BARE = re.compile(r"(?<![\w/\"'`(\[.-])(?:tmau|pe|replay|layouts|commands|silicon|simulation)\.md")
#: References that no reader can follow: numbers of sections, documents that are not here, files by their number.
NOWHERE = re.compile(r"\b[Ss]ections? \d[\d.]*|\b[Ss]ource documents?\b|\bseeds? 0\d\d\b")
TEXTS = sorted(path for pattern in ("docs/*.md", "*.md", "sim/**/*.h", "sim/**/*.cu") for path in ROOT.glob(pattern))


def headings(page):
    text = page.read_text(encoding="utf-8")
    return set(re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE))


def complaints(text):
    """Yields what is wrong with the citations of a source."""
    text = re.sub(r"\n\s*", " ", text)
    for page, sections in CITATION.findall(text):
        file = ROOT / "docs" / f"{page}.md"
        if not file.exists():
            yield f"there is no docs/{page}.md"
            continue
        for section in re.findall('"([^"]+)"', sections):
            if section not in headings(file):
                yield f'docs/{page}.md has no section "{section}"'
    for page in BARE.findall(text):
        yield f"write docs/{page}"
    yield from nowhere(text)


def nowhere(text):
    """Yields the references in ``text`` that no reader can follow."""
    for reference in NOWHERE.findall(re.sub(r"\n\s*", " ", text)):
        yield f"write page and section for {reference!r}"


def test_every_cited_page_and_section_exists():
    wrong = [f"{path.relative_to(ROOT)}: {text}" for path in SOURCES for text in complaints(path.read_text("utf-8"))]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_no_text_cites_what_is_not_here():
    pages = generated_pages()
    texts = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in TEXTS} | pages
    wrong = [f"{name}: {text}" for name, contents in texts.items() for text in nowhere(contents)]
    # The header is read apart from the documentation: there too a page has its folder.
    (header,) = (name for name in pages if name.endswith(".h"))
    wrong += [f"{header}: {text}" for text in complaints(pages[header].replace("\n *", ""))]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_pages_link_what_they_cite():
    page = generated_pages()["descriptor.md"]
    assert "| a box of elements ([Tile mode](tmau.md#tile-mode)) |" in page
    assert "docs/" not in page


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("as docs/nowhere.md says", "there is no docs/nowhere.md"),
        ('as in docs/tmau.md, "Tile mode", "Nowhere"', 'docs/tmau.md has no section "Nowhere"'),
        ('as in docs/tmau.md,\n    "Nowhere"', 'docs/tmau.md has no section "Nowhere"'),
        ("the rule of tmau.md", "write docs/tmau.md"),
        ("see section 7", "write page and section for 'section 7'"),
        ("the sizes of the source\n    documents", "write page and section for 'source documents'"),
        ("as in seed 001", "write page and section for 'seed 001'"),
    ],
)
def test_a_wrong_citation_is_found(source, complaint):
    assert list(complaints(source)) == [complaint]
