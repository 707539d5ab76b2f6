"""Pages on ports and addresses."""

from tilewright.sim.hdl.tops import TOPS, top_component
from tilewright.tools.docs.interfaces import _SECTIONS, address_map_page, ports_page
from tilewright.tools.package.ports import ports_of


def test_every_port_has_a_row_with_a_meaning():
    sections = ports_page().split("\n## ")[1:]
    for section, (heading, (top, engines)) in zip(sections, _SECTIONS.items(), strict=True):
        assert section.startswith(f"{heading}\n{TOPS[top].component.__doc__.splitlines()[0]}".replace("\n", "\n\n"))
        for port in ports_of(top_component(top, "unit", engines=engines)):
            (row,) = (line for line in section.splitlines() if line.startswith(f"| `{port.name}` |"))
            assert not row.endswith("|  |")
            for field in port.fields:
                assert f"\n| `{field.name}`" in section


def test_rows_by_hand():
    page = ports_page()
    assert "| `flip_valid` | output | 1 | A barrier's phase is complete. Strobe. |" in page
    assert (
        "| `barriers_payload` | input | 36 / 39 / 41 / 41 / 42 | Barrier operations of processors. "
        "[Fields](#core-of-tmau-barriers_payload). |" in page
    )
    assert "| `value` | 15–35 / 18–38 / 20–40 / 20–40 / 21–41 | 21 | Arrivals, bytes or parity" in page
    assert "| `op` | 0–2 | 3 | Operation: [BarrierOp](barrier.md#barrierop). |" in page
    assert "| `chunks` × 8 | 8–15, +8 each / 8–18, +11 each" in page


def test_addresses_by_hand():
    core = address_map_page().split("\n## Core\n")[1]
    assert "| `tmau` | 0x0–0xFFF | 0x0–0xFFF |" in core
    assert "| `pe` | 0x1000–0x11FF |" in core
    places = "0x4000–0x7FFF | 0x8000–0xFFFF | 0x20000–0x3FFFF | 0x20000–0x3FFFF | 0x40000–0x7FFFF"
    assert f"| `smem` | {places} | Shared memory" in core
