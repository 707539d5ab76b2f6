"""Which addresses the record of a bus error may hold (docs/tmau.md, "Bus errors"), byte by byte."""

import numpy as np
import pytest

from tilewright.golden import Memory
from tilewright.golden.spec import Error
from tilewright.golden.tmau.bus_errors import failed_read, failed_write

BUS_BYTES = 64
END = 8192 + 1024  # of the memory: in the middle of a page


def rows(length, *starts):
    """Addresses of the bytes of rows."""
    return (np.array(starts, np.uint64)[:, None] + np.arange(length, dtype=np.uint64)).ravel()


#: Bytes in the order in which they are written, and first and last address of the record.
WRITES = {
    "one stretch": (rows(400, END - 300), END - 320, END),
    "from the page's edge on": (rows(2000, 8100), 8192, END),
    "the first byte": (rows(16, END + 80), END + 64, END + 64),
    "apart": (rows(64, END - 256, END - 128, END), END, END),
    "adjoining": (rows(64, END - 128, END - 64, END), END - 128, END),
    "in descending order": (rows(64, END - 64, END - 128, END), END, END),
    "over and over": (rows(32, END - 32, END - 32, END), END - 64, END),
    "the second stretch": (rows(200, 512, END - 100), END - 128, END),
    "the end of all addresses": (rows(32, (1 << 64) - 16), (1 << 64) - 64, (1 << 64) - 64),
}


@pytest.mark.parametrize("name", WRITES)
def test_write_error(name):
    written, first, last = WRITES[name]
    code, address, others = failed_write(Memory(END), written, BUS_BYTES)
    assert (code, address) == (Error.WRITE, last)
    assert [*others, address] == list(range(first, last + 1, BUS_BYTES))


@pytest.mark.parametrize("name", WRITES)
def test_read_error_is_exact(name):
    read, _, last = WRITES[name]
    assert failed_read(Memory(END), read, BUS_BYTES) == (Error.READ, last, range(0))


@pytest.mark.parametrize("failed", [failed_read, failed_write])
@pytest.mark.parametrize("held", [rows(32, END - 32), rows(0), rows(16, 4096, 64)], ids=["end", "none", "two"])
def test_no_error(failed, held):
    assert failed(Memory(END), held, BUS_BYTES) is None
