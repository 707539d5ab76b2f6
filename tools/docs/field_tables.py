"""Pages of the documentation that are generated from field tables, enumerations and parameters."""

import dataclasses
import inspect
import re

from tilewright.spec.registers import Access

from ..package.ports import attribute_docs, member_docs, reset_values

__all__ = ["enum_sections", "enum_table", "errors_page", "fields_table", "format_page", "instructions_page",
           "parameters_page", "registers_page", "table"]  # fmt: skip

_CITATION = re.compile(r'docs/(\w+)\.md, "([^"]+)"')


def table(head, rows):
    """A Markdown table from a list of headings, and rows with a cell for each heading."""
    rule = ["---"] * len(head)
    lines = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in (head, rule, *rows)]
    return "\n".join(lines) + "\n"


def _code(text):
    """Text of a docstring as Markdown: ``x`` becomes `x`, and citations become links."""
    return _CITATION.sub(_link, text.replace("``", "`"))


def _link(match):
    page, section = match.groups()
    anchor = re.sub(r"[^\w\s-]", "", section).strip().lower().replace(" ", "-")
    return f"[{section}]({page}.md#{anchor})"


def enum_table(enumeration):
    """The members of an enumeration: number, name, meaning."""
    docs = member_docs(enumeration)
    rows = [(int(member), f"`{member.name}`", _code(docs.get(member.name, ""))) for member in enumeration]
    return table(["number", "name", "meaning"], rows)


def _bits(field):
    last = field.lsb + field.width - 1
    bits = str(field.lsb) if field.width == 1 else f"{field.lsb}–{last}"
    return f"{bits}, +{field.pitch} each" if field.count else bits


def _stored(field):
    """How a value is stored, in words."""
    words = []
    if field.signed:
        words.append("signed")
    if field.bias:
        words.append(f"value − {field.bias}")
    if field.enum:
        words.append(_enum_link(field))
    return ", ".join(words)


def _enum_link(field):
    """The link to the section on a field's enumeration."""
    return f"[{field.enum.__name__}](#{field.enum.__name__.lower()})"


def _meaning(field):
    """The meaning of a field of a register."""
    return f"{_code(field.doc)} {_enum_link(field)}" if field.enum else _code(field.doc)


def fields_table(fmt):
    """The fields of a format: number, name, bits, width, encoding, meaning."""
    rows = [
        (
            number,
            f"`{field.name}`" + (f" × {field.count}" if field.count else ""),
            _bits(field),
            field.width,
            _stored(field),
            _code(field.doc),
        )
        for number, field in enumerate(fmt.fields)
    ]
    return table(["number", "field", "bits", "width", "stored as", "meaning"], rows)


def enum_sections(fields, *enumerations):
    """A list of sections on the enumerations of ``fields``, then on further ``enumerations``, without duplicates."""
    parts = []
    for enumeration in dict.fromkeys([*(field.enum for field in fields if field.enum), *enumerations]):
        parts += [f"## {enumeration.__name__}\n", _code(inspect.getdoc(enumeration)) + "\n", enum_table(enumeration)]
    return parts


def format_page(fmt, *enumerations, recorded=True):
    """The page of one format: every field, then its enumerations and the further ``enumerations``.

    ``recorded``: error records name its fields.
    """
    stored = (
        f"{fmt.bytes} bytes, stored little-endian: bit 0 is the least significant bit of byte 0. Bits in no field are "
        "zero."
    )
    numbers = " The number of a field is what an error record names." if recorded else ""
    title = fmt.name.replace("_", " ").capitalize()
    parts = [f"# {title}\n", _code(fmt.doc) + "\n", stored + numbers + "\n", fields_table(fmt)]
    return "\n".join(parts + enum_sections(fmt.fields, *enumerations))


def instructions_page(title, introduction, instructions, number="Opcode"):
    """The page of the formats of ``instructions``, a dictionary by operation, and of their enumerations.

    ``number``: the name of the operation's number.
    """
    parts = [f"# {title}\n", introduction + "\n"]
    for operation, fmt in instructions.items():
        name = operation.name.lower().replace("_", ".")
        parts += [f"## {name}\n", f"{_code(fmt.doc)} {number} {int(operation)}.\n", fields_table(fmt)]
    fields = [field for fmt in instructions.values() for field in fmt.fields]
    return "\n".join(parts + enum_sections(fields))


def errors_page(title, errors, *paragraphs):
    """The page of the error codes of an enumeration."""
    return "\n".join([f"# {title}\n", *(f"{paragraph}\n" for paragraph in paragraphs), enum_table(errors)])


def registers_page(registers, name, presets, *, title="Registers"):
    """The page of the registers of a region: an overview, their bits, and enumerations of these.

    Parameters
    ----------
    registers : sequence of Register
    name : str
        Name of the region.
    presets : dict
        Parameters of the engine, which some registers show.
    """
    resets = {preset: reset_values(name, params) for preset, params in presets.items()}
    rows = []
    for register in registers:
        values = [f"0x{resets[preset][register.name]:X}" for preset in presets]
        reset = values[0] if len(set(values)) == 1 else "[by preset](#parameters)"
        offset = f"0x{register.offset:02X}"
        reset = "refused" if register.access is Access.WRITE else reset
        rows.append((offset, f"`{register.name}`", register.access.value, reset, _code(register.doc)))
    parts = [
        f"# {title}\n",
        "32-bit words at byte offsets, over AXI4-Lite. Other offsets, and writes to registers that cannot be written, "
        "are answered with SLVERR. Bits in no field read as zero. Offsets count from the first byte of the region in "
        "the [address map](address_map.md).\n",
        table(["offset", "register", "access", "reads after reset", "meaning"], rows),
        "## Access\n",
        table(["kind", "meaning"], [(a.value, member_docs(Access)[a.name]) for a in Access]),
    ]
    for register in registers:
        fields = [(_bits(field), f"`{field.name}`", _meaning(field)) for field in register.fields]
        parts += [f"## {register.name}\n", table(["bits", "field", "meaning"], fields)]
    shown = [register for register in registers if len({resets[preset][register.name] for preset in presets}) > 1]
    rows = [(f"`{r.name}`", *(f"0x{resets[preset][r.name]:X}" for preset in presets)) for r in shown]
    if shown:
        parts += [
            "## Parameters\n",
            "Values of the registers that show parameters of the hardware, by preset. In `Core` shared memory has the "
            "size of the processing engine's preset.\n",
            table(["register", *(f"`{preset}`" for preset in presets)], rows),
        ]
    fields = [field for register in registers for field in register.fields]
    return "\n".join(parts + enum_sections(fields))


def _flat(params, prefix=""):
    """Names and values of a parameter object; a nested object gives names such as ``smem.size_bytes``."""
    for field in dataclasses.fields(params):
        value = getattr(params, field.name)
        if dataclasses.is_dataclass(value):
            yield from _flat(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, ", ".join(value) if isinstance(value, tuple) else value


def parameters_page(presets, *classes, title="Parameters and presets"):
    """The page of the parameter ``classes``, and of the ``presets``, which are objects of the first class."""
    names = [name for name, _ in _flat(next(iter(presets.values())))]
    values = {preset: dict(_flat(params)) for preset, params in presets.items()}
    parts = [
        f"# {title}\n",
        "A preset is a named set of parameters; `PRESET=` and `--preset` select it. `--set` changes "
        "[single parameters](integration.md#parameters), for example `tmau.max_burst`.\n",
    ]
    rows = [(f"`{name}`", *(values[preset][name] for preset in presets)) for name in names]
    parts.append(table(["parameter", *(f"`{preset}`" for preset in presets)], rows))
    for cls in classes:
        rows = [(f"`{name}`", kind, _code(meaning)) for name, kind, meaning in attribute_docs(cls)]
        parts += [f"## {cls.__name__}\n", inspect.getdoc(cls).splitlines()[0] + "\n"]
        parts.append(table(["parameter", "type", "meaning"], rows))
    return "\n".join(parts)
