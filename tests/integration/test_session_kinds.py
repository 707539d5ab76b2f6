"""Every call of a session with arguments of wrong kinds: one sentence, before anything is issued."""

import numpy as np
import pytest

from support.wrong_kinds import wrong_answers
from tilewright.golden import TensorMap
from tilewright.sim.session import Session

_IMAGE = (np.arange(20 * 24 * 16) % 251).astype(np.uint8).reshape(20, 24, 16)
_TILE = TensorMap.tiled(_IMAGE, box=(16, 4, 4))
_A, _B = np.ones((4, 8), np.int8), np.ones((8, 4), np.int8)
_RUN = {"after": None, "limit": 20_000, "drain": 0, "barriers": (), "registers": ()}

#: By the engines of a core: each call of its session, and what makes right arguments for it.
CALLS = {
    "tmau": {
        "run": lambda: _RUN | {"commands": [], "reads": (), "shared": None, "memory": None,
                               "trace": False},
        "load": lambda: {"tmap": _TILE, "coords": (0, 0, 0), "address": 0, "offsets": (0, 0, 0)},
        "store": lambda: {"tmap": _TILE, "coords": (0, 0, 0), "address": 0, "reduction": "none", "fill": False},
        "prefetch": lambda: {"tmap": _TILE, "coords": (0, 0, 0), "offsets": (0, 0, 0)},
        "copy_block": lambda: {"source": 0, "destination": 0, "size": 16, "source_space": "global",
                               "destination_space": "shared", "reduction": "none", "element": "u8"},
        "prefetch_block": lambda: {"source": 0, "size": 16},
        "command": lambda: {"tmap": _TILE, "coords": (0, 0, 0)},
        "place": lambda: {"array": _IMAGE, "align": 128},
        "descriptor": lambda: {"tmap": _TILE},
        "clear": lambda: {"base": 0},
        "configure": lambda: {"latency": 20, "stall": 0.0, "issue_stall": 0.0, "seed": 1},
        "shared_memory.read": lambda: {"address": 0, "count": 4},
        "shared_memory.write": lambda: {"address": 0, "values": b"1234"},
        "global_memory.read": lambda: {"address": 0, "count": 4},
        "global_memory.write": lambda: {"address": 0, "values": b"1234"},
    },
    "pe": {
        "run": lambda: _RUN | {"program": [], "segments": None, "pages": None},
        "multiply": lambda: {"a": _A, "b": _B, "type": "s8s8", "c": None},
    },
    "conv": {"run": lambda: _RUN | {"jobs": [], "preload": None, "shared": None}},
    "tmau,pe,conv,program": {
        "run": lambda: _RUN | {"commands": [], "program": [], "segments": None, "pages": None, "jobs": (),
                               "shared": None, "memory": None, "trace": False},
        "run_program": lambda: {"address": 0, "words": 1, "window": None, "watchdog": 0, "registers": (),
                                "limit": 2000, "drain": 0, "shared": None, "memory": None, "trace": False},
    },
}  # fmt: skip


@pytest.mark.parametrize("engines", CALLS)
def test_an_argument_of_a_wrong_kind_is_one_sentence(engines):
    answers = {}
    with Session("unit", engines.split(",")) as session:
        for name, arguments in CALLS[engines].items():
            owner, _, method = name.rpartition(".")
            call = getattr(getattr(session, owner) if owner else session, method)
            answers[name] = wrong_answers(call, arguments)
    assert not any(answers.values()), answers


def test_an_array_that_is_read_only_is_copied():
    """Its bytes are placed and written; only what a memory is made of must be writable."""
    array = _IMAGE[:1].copy()
    array.flags.writeable = False
    with Session("unit", ["tmau"], latency=20, memory_bytes=1 << 16) as session:
        address = session.place(array)
        session.shared_memory.write(0, array)
        assert session.global_memory.read(address, array.size).tobytes() == array.tobytes()
        run = session.store(TensorMap.tiled(array, box=(16, 4, 1)), (0, 0, 0), 0)
        assert run.error is None
