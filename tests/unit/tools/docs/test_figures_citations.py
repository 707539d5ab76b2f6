"""Figures that pages cite: how they are found, and what they should say."""

import pytest

from tilewright.tools.docs.figures import find_citations, measured_values, text_of

RESULT = {
    "cycles": 1_234_567,
    "lut4": 7,
    "rows": {
        "conv 1x1": {"cycles": 900, "share": 99.04},
        "conv 3x3": {"cycles": 1100, "share": 97.96},
        "pool": {"cycles": 5, "share": 12.5},
    },
}


def said(text):
    """What the only citation of a text should say."""
    (citation,) = find_citations(text)
    return text_of(citation, measured_values(RESULT, citation.what))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("takes 7<!-- figure: a.cycles -->", "1,234,567"),
        ("takes 7 thousand<!-- figure: a.cycles --> cycles", "1235"),
        ("**7.0 million**<!-- figure: a.cycles -->", "1.2"),
        ("7 cycles<!-- figure: a.cycles[pool] -->", "5"),
        ("| 7000 | 1,100<!-- figure: a.cycles[*3x3] --> |", "1,100"),
        ("| 7 | 1100<!-- figure: a.cycles[*3x3] --> |", "1100"),
        ("1.0 to 2.0 %<!-- figure: a.share[conv*] -->", "98.0 to 99.0"),
        ("1, 2, 3<!-- figure: a.cycles[pool; conv*] -->", "5, 900, 1100"),
        ("1 and 2<!-- figure: a.cycles[conv*] -->", "900 and 1100"),
        ("of Lite0, 7<!-- figure: a.cycles[pool] -->", "5"),
        ("1 and 2<!-- figure: a.cycles[*; !*1x1] -->", "1100 and 5"),
        ("| 1<!-- figure: a.lut4 --> |", "7"),
    ],
)
def test_a_figure_keeps_its_form(text, wanted):
    assert said(text) == wanted


def test_where_a_citation_stands():
    page = "one\n| 5 | 12.5 %<!-- figure: a-b.share[pool] --> |\n"
    (citation,) = find_citations(page)
    assert (citation.line, page[citation.start : citation.end]) == (2, "12.5")
    assert (citation.name, citation.what, citation.unit) == ("a-b", "share[pool]", "%")


def test_what_was_not_measured():
    assert measured_values(RESULT, "jobs") == measured_values(RESULT, "cycles[gather*]") == []
    assert measured_values(RESULT, "jobs[pool]") == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("7<!-- figure: a.cycles[conv*] -->", "one number for several: 900 to 1100"),
        ("1, 2<!-- figure: a.cycles[*] -->", "2 numbers for 3 values"),
    ],
)
def test_a_form_that_says_too_little(text, complaint):
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        said(text)


@pytest.mark.parametrize(
    "text", ["seven<!-- figure: a.cycles -->", "7 <!-- figure: a.cycles -->", "7<!-- figure a.cycles -->",
             "7<!-- figure: A -->", "7<!--figure: a.cycles -->"],
)  # fmt: skip
def test_what_is_no_citation_is_refused(text):
    with pytest.raises(ValueError, match=r"^line 2: this is no citation of a figure: <!-- ?figure"):
        find_citations(f"\n{text}")
