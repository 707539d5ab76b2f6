"""Every page and section that the sources cite is there: ``docs/tmau.md, "Tile mode"``."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path for folder in ("hw", "golden", "sim", "tb", "tests") for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__).resolve()
)  # fmt: skip

#: A page, and the sections after it in quotation marks: ``"One"``, or ``"One", "Two"``, or ``"One" to "Two"``.
CITATION = re.compile(r'(?<![\w/])docs/(\w+)\.md((?:(?:,| to|,? and)\s+"[^"\n]+")*)')
#: A page without its folder in a sentence, which readers would have to search.
BARE = re.compile(r"(?<![\w/\"'`(\[.-])(?:tmau|pe|replay|layouts|commands|silicon|simulation)\.md")


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


def test_every_cited_page_and_section_exists():
    wrong = [f"{path.relative_to(ROOT)}: {text}" for path in SOURCES for text in complaints(path.read_text("utf-8"))]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("as docs/nowhere.md says", "there is no docs/nowhere.md"),
        ('as in docs/tmau.md, "Tile mode", "Nowhere"', 'docs/tmau.md has no section "Nowhere"'),
        ('as in docs/tmau.md,\n    "Nowhere"', 'docs/tmau.md has no section "Nowhere"'),
        ("the rule of tmau.md", "write docs/tmau.md"),
    ],
)
def test_a_wrong_citation_is_found(source, complaint):
    assert list(complaints(source)) == [complaint]
