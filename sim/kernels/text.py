"""Texts of kernels: the files in this folder, and their variants."""

from importlib.resources import files

from tilewright.spec.names import suggestion

from ..asm.pe import assemble_program

__all__ = ["KERNELS", "kernel_text", "kernel_words"]

_FOLDER = files(__package__)
#: Names of the kernels: the files in this folder.
KERNELS = tuple(sorted(entry.name.removesuffix(".pe") for entry in _FOLDER.iterdir() if entry.name.endswith(".pe")))


def kernel_text(name):
    """The text of a kernel of ``KERNELS``; ValueError if there is none of this name."""
    if name not in KERNELS:
        raise ValueError(f"there is no kernel {name!r}: there are {', '.join(KERNELS)}{suggestion(str(name), KERNELS)}")
    return (_FOLDER / f"{name}.pe").read_text(encoding="utf-8")


def kernel_words(text, options):
    """The instructions of a kernel's ``text``.

    ``options`` are the variants by name: a string replaces ``{name}``; a line that begins with ``{name}`` is left out
    if the value is False.
    """
    lines = []
    for line in text.splitlines():
        code = line.split("//")[0]
        for name, value in options.items():
            if isinstance(value, str):
                code = code.replace(f"{{{name}}}", value)
            elif code.lstrip().startswith(f"{{{name}}}"):
                code = code.replace(f"{{{name}}}", "", 1) if value else ""
        lines.append(code)
    return assemble_program("\n".join(lines))
