"""What names mean, read from where they are declared: members of enumerations, fields of layouts, ports."""

import inspect
import re
import sys
from functools import cache

__all__ = ["attribute_docs", "field_docs", "member_docs", "port_docs"]

_DECLARATION = re.compile(r"^(?P<names>\w[\w, ]*) : (?:In|Out)\(.*\n(?P<text>(?:    .*\n|\n(?=    ))*)", re.MULTILINE)
_TAKEN_OVER = re.compile(r"^\*\*(\w+)", re.MULTILINE)


def member_docs(enumeration):
    """The ``#:`` comment behind each member of an enumeration, by the member's name, where there is one."""
    return dict(re.findall(r"^    (\w+) = .*?#: (.*)$", inspect.getsource(enumeration), re.MULTILINE))


def attribute_docs(cls):
    """Name, type and meaning of each entry in the ``Attributes`` section of a docstring, as a list of tuples."""
    section = inspect.getdoc(cls).split("Attributes\n----------\n")[1]
    entries = re.findall(r"^(\w[\w, ]*) : (.*)\n((?:    .*\n?)+)", section + "\n", re.MULTILINE)
    return [(name, kind, " ".join(text.split())) for names, kind, text in entries for name in names.split(", ")]


@cache
def field_docs(layout):
    """The comment behind each field of a layout, by the field's name, where there is one.

    Parameters
    ----------
    layout : type
        A class of layouts that lists its fields one a line.
    """
    source = inspect.getsource(layout)
    return {name: _sentence(text) for name, text in re.findall(r'^ +"(\w+)": .*?  # (.*)$', source, re.MULTILINE)}


@cache
def port_docs(declared):
    """What the docstring of a component, a signature or a function that makes members says of each member, by name.

    Members that are taken over from elsewhere (``**OtherSignature.members``) are looked up there.
    """
    text = inspect.getdoc(declared) + "\n"
    section = re.search(r"^Members\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    section = section[1] if section else text
    docs = {}
    for name in _TAKEN_OVER.findall(section):
        docs |= port_docs(vars(sys.modules[declared.__module__])[name])
    for match in _DECLARATION.finditer(section):
        docs |= dict.fromkeys(match["names"].split(", "), _sentence(" ".join(match["text"].split())))
    return docs


def _sentence(text):
    """``text`` as a sentence."""
    text = text[:1].upper() + text[1:]
    return text if not text or text.endswith(".") else f"{text}."
