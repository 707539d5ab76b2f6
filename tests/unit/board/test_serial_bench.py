"""The bench around a board's serial line; what is behind it is simulated in tests/integration."""

from tilewright.board.serial_bench import SerialBench
from tilewright.board.top import BoardParams


def test_arrays():
    arrays = SerialBench(BoardParams(), depth=64).arrays()
    assert {name: (array.path, array.width, array.depth) for name, array in arrays.items()} == {
        "sent": ("sent.array.words", 8, 64),
        "received": ("received.array.words", 8, 64),
    }
