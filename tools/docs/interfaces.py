"""Pages on the interface of a top: its ports, and the address map of its AXI4-Lite port."""

import re

from tilewright.hw.core import ENGINES, Core, core_params
from tilewright.hw.tmau.top import window_regions
from tilewright.sim.hdl.tops import TOPS, top_component

from ..package.ports import ports_of, regions_of
from .field_tables import table

__all__ = ["address_map_page", "ports_page"]

#: Links for terms in meanings.
_LINKS = {
    "BarrierOp": "barrier.md#barrierop",
    "BARRIER_OPERATION": "errors.md",
    "ConvError": "conv_errors.md",
    "Error": "errors.md",
    "PAGE_ENTRY": "page_entry.md",
    "PeError": "pe_errors.md",
    "SEGMENT": "segment.md",
}
#: Ports whose words have one of several formats, and the pages on these formats.
_FORMATS = {
    "commands_payload": "[Commands](commands.md)",
    "page_moves_payload": "[Commands](commands.md)",
    "instructions_payload": "[Instructions](instructions.md)",
    "jobs_payload": "[Jobs](convolution.md)",
}
_WINDOWS = (
    "With `command_window` and `barrier_window` of a `TmauParams` the map has these regions at its end; the other "
    "regions do not move. [From a processor](from_a_processor.md) says how to use them.\n"
)
#: Sections of both pages, by heading: a top, and the engines of its cores.
_SECTIONS = {
    "Tmau": ("tmau", ()),
    "Pe": ("pe", ()),
    "Conv": ("conv", ()),
    "Core": ("core", ()),
    "Core of tmau": ("core", ("tmau",)),
    "Core of pe": ("core", ("pe",)),
    "Core of conv": ("core", ("conv",)),
    "Core of tmau, pe, conv, program": ("core", ENGINES),
    "Cluster": ("cluster", ()),
}
#: The number of the core in the names of a cluster's ports.
_NUMBER = re.compile(r"_\d+_")
_NAME = re.compile(rf"\b({'|'.join(_LINKS)})\b")


def _linked(text):
    return _NAME.sub(lambda match: f"[{match[1]}]({_LINKS[match[1]]})", text.replace("``", "`"))


def _each(values):
    """One cell: the value, or the values of all presets if they differ."""
    values = [str(value) for value in values]
    return values[0] if len(set(values)) == 1 else " / ".join(values)


def _bits(field):
    bits = str(field.lsb) if field.width == 1 else f"{field.lsb}–{field.lsb + field.width - 1}"
    return f"{bits}, +{field.width} each" if field.count else bits


def ports_page():
    """The ports of every top in every preset, and the fields of ports that have fields."""
    presets = list(next(iter(TOPS.values())).presets)
    parts = [
        "# Ports\n",
        f"If presets differ, numbers are for {', '.join(f'`{name}`' for name in presets)}, in this order. The "
        "[C header](integration.md#c-header) of a top has the same as `TW_<PRESET>_<TOP>_<PORT>_<FIELD>_LSB` and "
        "`…_WIDTH`. [Streams](integration.md#streams) says how streams work.\n",
    ]
    for heading, (top, engines) in _SECTIONS.items():
        parts += [f"## {heading}\n", TOPS[top].component.__doc__.splitlines()[0] + "\n"]
        option = f", with `--engines {','.join(engines)}`" if engines else ""
        parts.append(f"Module `tw_<preset>_{top}`, unless `--name` gives another prefix{option}.\n")
        components = [top_component(top, preset, engines=engines) for preset in presets]
        ports = list(zip(*map(ports_of, components), strict=True))
        anchor = re.sub(r"\W+", "-", heading.lower())
        rows = []
        for same in ports:
            port = same[0]
            fields = f" [Fields](#{anchor}-{port.name})." if port.fields else ""
            found = _FORMATS.get(_NUMBER.sub("_", port.name))
            formats = f" {found}." if found else ""
            direction = "input" if port.is_input else "output"
            width = _each(each.width for each in same)
            rows.append((f"`{port.name}`", direction, width, _linked(port.meaning) + fields + formats))
        parts.append(table(["port", "direction", "width", "meaning"], rows))
        for same in ports:
            if same[0].fields:
                # The name of the section makes the anchor unique.
                parts += [f"### {heading.lower()} {same[0].name}\n", _fields_table(same)]
    return "\n".join(parts)


def _fields_table(ports):
    """The fields of one port; ``ports`` are this port in every preset."""
    rows = []
    for same in zip(*(port.fields for port in ports), strict=True):
        field = same[0]
        name = f"`{field.name}`" + (f" × {field.count}" if field.count else "")
        rows.append((name, _each(map(_bits, same)), _each(each.width for each in same), _linked(field.meaning)))
    return table(["field", "bits", "width", "meaning"], rows)


def address_map_page():
    """First and last byte address of every region of every top in every preset."""
    presets = list(next(iter(TOPS.values())).presets)
    parts = [
        "# Address map\n",
        "Regions of `s_axil`, the AXI4-Lite port, by first and last byte address. The "
        "[C header](integration.md#c-header) of a top, which also has regions of options, gives the first address as "
        "`TW_<PRESET>_<TOP>_<REGION>_BASE`. Registers are at the offsets of [Registers](registers.md), "
        "[Registers of the processing engine](pe_registers.md) and [Registers of the "
        "convolution engine](conv_registers.md); other offsets, up to the next region, are answered with SLVERR.\n",
    ]
    for heading, (top, engines) in _SECTIONS.items():
        rows = []
        components = [top_component(top, preset, engines=engines) for preset in presets]
        for same in zip(*map(regions_of, components), strict=True):
            spans = [f"0x{each.base:X}–0x{each.base + each.size - 1:X}" for each in same]
            rows.append((f"`{same[0].name}`", *spans, same[0].meaning))
        parts += [f"## {heading}\n", table(["region", *(f"`{name}`" for name in presets), "holds"], rows)]
    parts += ["## Windows of a processor\n", _WINDOWS, _window_table(presets)]
    return "\n".join(parts)


def _window_table(presets):
    """The addresses of the windows in tops that are built with both."""
    rows = []
    for heading in ("Core", "Core of tmau"):
        params = [core_params(preset, _SECTIONS[heading][1] or ("tmau", "pe")) for preset in presets]
        windows = {"command_window": True, "barrier_window": True}
        params = [each.replace(tmau=each.tmau.replace(**windows)) for each in params]
        for same in zip(*(regions_of(Core(each)) for each in params), strict=True):
            if same[0].name in window_regions(params[0].tmau):
                spans = [f"0x{each.base:X}–0x{each.base + each.size - 1:X}" for each in same]
                rows.append((heading, f"`{same[0].name}`", *spans, same[0].meaning))
    return table(["top", "region", *(f"`{name}`" for name in presets), "holds"], rows)
