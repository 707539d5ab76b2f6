"""Text of programs in replay cases."""

from ..usage import UsageError

__all__ = ["read_text"]


def read_text(fields, name, assemble):
    """Takes text, one string or a list of lines; returns what ``assemble`` makes of it, as a tuple."""
    text = fields.raw(name)
    lines = text if isinstance(text, list) else [text]
    if not all(isinstance(line, str) for line in lines):
        raise fields.wrong(name, "must be a string, or a list of strings")
    try:
        return tuple(assemble("\n".join(lines)))
    except UsageError as error:
        raise fields.wrong(name, str(error)) from None
