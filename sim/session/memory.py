"""The part that all sessions share: global memory, tensors in it, and how the surroundings behave."""

from dataclasses import replace

import numpy as np

from tilewright.golden import TensorMap
from tilewright.golden.arguments import integer, integers, shown
from tilewright.golden.memory import as_bytes, memory_bytes
from tilewright.golden.tmau.block import block_command, prefetch_block_command, refuse_block
from tilewright.golden.tmau.tile import extent
from tilewright.golden.tmau.transfer import load_command, prefetch_command, refuse_tensor, store_command, tensor_fields
from tilewright.spec import DESCRIPTOR, Opcode, Space
from tilewright.spec.names import suggestion

from ..harness.memory_model import CHANNELS, MAX_LATENCY, MIN_LATENCY
from .backdoor import GlobalBackdoor
from .base import BaseSession
from .scripts import probability

__all__ = ["DESCRIPTORS", "MemorySession", "Transfers", "model_words"]

#: Descriptors that a session keeps in global memory at a time, after the bytes of the user.
DESCRIPTORS = 4096

#: Whether reads and writes meet the errors of a session.
_ERRORS_ON = {"reads": (1, 0), "writes": (0, 1), "both": (1, 1)}

_ERROR_ENTRIES = 3  # of an ``errors`` window

_GRAIN = 16 << 20  # bytes to which a model's memory is rounded up, so that sessions of many sizes share the model
_BYTES_MAX = 1 << 30  # the most bytes of a model: the simulator holds all of them


def model_words(params, memory_bytes):
    """Bus words of a model's memory for at least ``memory_bytes`` of the user, and the descriptors; TmauParams."""
    most = min(_BYTES_MAX, (1 << params.addr_width) - DESCRIPTORS * DESCRIPTOR.bytes)
    integer("memory_bytes", memory_bytes, 1, most)
    return _memory_words(params, -(-memory_bytes // _GRAIN) * _GRAIN)


def _memory_words(params, memory_bytes):
    return -(-memory_bytes // params.bus_bytes) + DESCRIPTORS * DESCRIPTOR.bytes // params.bus_bytes


class MemorySession(BaseSession):
    """A session of a design that may have access units: global memory, tensors in it, errors and pauses of its bus.

    Without an access unit there is no global memory, and what needs it is a ValueError.

    Parameters
    ----------
    make_harness, records, smem
        See ``BaseSession``.
    bus : TmauParams or None
    memory_bytes : int
        Bytes of global memory for the user; rounded up to bus words.
    latency, stall, seed
        See :meth:`configure`.
    **options
        Options of a ``BaseSession``.

    Attributes
    ----------
    memory_bytes : int
        Bytes of global memory for the user.
    global_memory : GlobalBackdoor

    and those of ``BaseSession``.
    """

    def __init__(self, make_harness, records, *, smem, bus, memory_bytes, latency, stall, seed, **options):
        _surroundings(latency, stall)  # before anything is built
        integer("seed", seed, 0)
        super().__init__(make_harness, records, smem=smem, **options)
        self._bus, self._global_memory = bus, None
        self._free, self._bound, self._descriptors = 0, {}, {}
        if bus is None:
            self.configure(seed=seed)
            return
        words = _memory_words(bus, memory_bytes)
        self.memory_bytes = words * bus.bus_bytes - DESCRIPTORS * DESCRIPTOR.bytes
        self._global_memory = GlobalBackdoor(self.simulation, bus.bus_bytes, words)
        self.simulation.controls["words"] = words
        self.clear()
        self.configure(latency=latency, stall=stall, seed=seed, errors_on="both")

    @property
    def global_memory(self):
        if self._global_memory is None:
            raise ValueError("the core has no access unit, and so no global memory")
        return self._global_memory

    def configure(self, *, latency=None, stall=None, errors=None, errors_on=None, **others):
        """Changes how the surroundings behave from the next run on; what is left out stays.

        Parameters
        ----------
        latency : int
            Cycles from a read address to its first data, and from the last written word to its response.
        stall : float, dict of str to float, or (float, float)
            Probability of a pause before each transfer of the bus: on all channels; on those named ``ar``, ``r``,
            ``aw``, ``w`` and ``b``, and 0 on others; or of requests and of what follows them.
        errors : (int, int, int)
            First and last address of a window whose words the memory answers with this RRESP or BRESP; 0 for none. A
            word that is refused is not written.
        errors_on : str
            Whether it does so for ``"reads"``, ``"writes"``, or ``"both"``, as it does at first.
        **others
            See ``BaseSession.configure``.
        """
        controls = self.simulation.controls
        if any(value is not None for value in (latency, stall, errors, errors_on)):
            self.global_memory  # noqa: B018 - that there is one
        controls.update(_surroundings(latency, stall))
        if errors is not None:
            controls.update(self._errors(errors))
        if errors_on is not None:
            if not isinstance(errors_on, str) or errors_on not in _ERRORS_ON:
                wrong = f"{shown(errors_on)}{suggestion(errors_on, _ERRORS_ON)}"
                raise ValueError(f"errors_on must be one of {', '.join(_ERRORS_ON)}, not {wrong}")
            controls["error_reads"], controls["error_writes"] = _ERRORS_ON[errors_on]
        super().configure(**others)

    def _errors(self, errors):
        """Controls of a window of errors."""
        if len(integers("errors", errors)) != _ERROR_ENTRIES:
            raise ValueError(f"errors must be a first and a last address and a response, not {shown(errors)}")
        most = (1 << self._bus.addr_width) - 1
        first, last = (integer("errors", address, 0, most) for address in errors[:2])
        response = integer("the response of errors", errors[2], 0, 3)
        log2 = self._bus.bus_log2
        return {"error_first": first >> log2, "error_last": last >> log2, "error_response": response}

    def clear(self, base=0):
        """Forgets what was placed, and resets. From now on global memory begins at address ``base``."""
        size = len(self.global_memory)
        integer("base", base, 0, (1 << self._bus.addr_width) - size)
        if base % self._bus.bus_bytes:
            raise ValueError(f"base must be a multiple of the {self._bus.bus_bytes}-byte bus word, not {base}")
        self.reset()
        self.global_memory.base = base
        self.simulation.controls["base"] = base >> self._bus.bus_log2
        self._free = base
        self._bound = {}
        self._descriptors = {}

    def place(self, array, align=128):
        """Copies an array (or bytes) to the next free multiple of ``align`` in global memory; returns the address."""
        memory, values = self.global_memory, as_bytes(array)
        align = integer("align", align, 1)
        address = -(-self._free // align) * align
        if address + len(values) > memory.base + self.memory_bytes:
            raise ValueError(f"global memory has no space for {len(values)} bytes more")
        memory.write(address, values)
        self._free = address + len(values)
        return address

    def bind(self, tmap):
        """The map with its array placed in global memory; the map itself if it was not made from an array.

        A map is bound once: a later change of the array's contents is not seen.
        """
        if tmap.array is None:
            return tmap
        if id(tmap) not in self._bound:
            # The map is kept, so that its identity is not given to another.
            self._bound[id(tmap)] = tmap, replace(tmap, address=self.place(memory_bytes(tmap.array)), array=None)
        return self._bound[id(tmap)][1]

    def descriptor(self, tmap):
        """Address in global memory of the descriptor of a map, or of 128 bytes or an int as they stand."""
        if isinstance(tmap, TensorMap):
            raw = self.bind(tmap).pack()
        elif isinstance(tmap, bytes | bytearray | np.ndarray):
            raw = bytes(tmap)
        else:
            word = integer("a map that is no TensorMap", tmap, 0, (1 << DESCRIPTOR.bits) - 1)
            raw = word.to_bytes(DESCRIPTOR.bytes, "little")
        if len(raw) != DESCRIPTOR.bytes:
            raise ValueError(f"a descriptor must be {DESCRIPTOR.bytes} bytes, not {len(raw)}")
        if raw not in self._descriptors:
            if len(self._descriptors) == DESCRIPTORS:
                # The next one takes the place of the first, which the hardware may have kept.
                self._descriptors.clear()
                self._must_reset = True
            slot = len(self._descriptors) * DESCRIPTOR.bytes
            address = self.global_memory.base + self.memory_bytes + slot
            self.global_memory.write(address, raw)
            self._descriptors[raw] = address
        return self._descriptors[raw]

    def command(self, tmap, coords, address=0, offsets=(0, 0, 0), *, barrier=None, **fields):
        """A command on a tensor for ``run``, as a dictionary of fields: a load, if no ``opcode`` is given.

        It may be one that the hardware refuses; what no command could hold is a TypeError or ValueError.

        Parameters
        ----------
        tmap : TensorMap, bytes or int
            See :meth:`descriptor`.
        coords : sequence of int
            One for each dimension of a map, innermost first.
        address : int
            Destination in shared memory, or source of a store.
        offsets : sequence of int
            Of the filter tap, W H D; im2col loads only.
        barrier : int or None
            Address of the barrier that the bytes complete.
        **fields
            Others, such as ``opcode="store"``, ``reduction="add"`` and ``tag``; and ``wait=True`` to issue it only when
            all before it are complete.
        """
        load = {"opcode": Opcode.LOAD}
        if isinstance(tmap, TensorMap):
            load |= tensor_fields(tmap, coords, address, offsets)
        else:
            load |= {"coords": integers("coords", coords), "smem": integer("address", address, 0), "offsets": offsets}
        signal = {} if barrier is None else {"signal": 1, "barrier": barrier}
        return load | {"descriptor": self.descriptor(tmap)} | signal | fields


def _surroundings(latency, stall):
    """Controls of a latency and of pauses; of None there are none."""
    controls = {} if latency is None else {"latency": integer("latency", latency, MIN_LATENCY, MAX_LATENCY)}
    stalls = {} if stall is None else _stalls(stall)
    return controls | {f"{channel}_stall": probability(value) for channel, value in stalls.items()}


def _stalls(stall):
    """Probability of a pause on each channel."""
    if isinstance(stall, dict):
        for channel in stall:
            if channel not in CHANNELS:
                raise ValueError(f"the channels are {', '.join(CHANNELS)}, and {channel!r} is none of them")
        return dict.fromkeys(CHANNELS, 0.0) | stall
    if isinstance(stall, tuple) and len(stall) != 2:
        raise ValueError(f"stall must be one probability, two, or a dictionary, not {shown(stall)}")
    first, then = stall if isinstance(stall, tuple) else (stall, stall)
    return {channel: first if channel in ("ar", "aw") else then for channel in CHANNELS}


class Transfers:
    """Part of a session with a TMAU: ``load``, ``store`` and the others of the golden model, on the hardware.

    Each takes the arguments of the golden function of its name, less ``gmem`` and ``smem``, which the session has, and
    then options of ``run``. It refuses what that refuses, before anything is issued, with the same sentence; returns
    what ``run`` returns. For a command that the hardware shall refuse, see ``command``.
    """

    def load(self, tmap, coords, address=0, offsets=(0, 0, 0), **options):
        """Loads one box or the pixels of a convolution; ``shared`` of the result is all of shared memory."""
        command = load_command(tmap, coords, address, offsets)
        return self._transfer(command, tmap, {"shared": True} | options)

    def store(self, tmap, coords, address=0, reduction="none", fill=False, **options):
        """Stores or reduces one box; ``memory`` of the result is what the tensor spans in global memory.

        The array that the map was made from does not change.
        """
        command = store_command(tmap, coords, address, reduction, fill)
        refuse_tensor(command, tmap, len(self.shared_memory))
        span = self.bind(tmap).address, extent(tmap)
        return self._transfer(command, tmap, ({"memory": span} if self._holds(*span) else {}) | options)

    def prefetch(self, tmap, coords, offsets=(0, 0, 0), **options):
        """Has a load checked and dropped."""
        return self._transfer(prefetch_command(tmap, coords, offsets), tmap, options)

    def copy_block(self, source, destination, size, source_space="global", destination_space="shared",
                   reduction="none", element="u8", **options):  # fmt: skip
        """Copies a block; ``shared`` of the result is all of shared memory, or ``memory`` the destination."""
        command = block_command(source, destination, size, source_space, destination_space, reduction, element)
        refuse_block(command, len(self.shared_memory))
        if command["destination_space"] == Space.SHARED:
            back = {"shared": True}
        else:
            back = {"memory": (destination, size)} if self._holds(destination, size) else {}
        return self.run([command], **back | options)

    def prefetch_block(self, source, size, **options):
        """Has a block in global memory checked and dropped."""
        command = prefetch_block_command(source, size)
        refuse_block(command, len(self.shared_memory))
        return self.run([command], **options)

    def _transfer(self, command, tmap, options):
        refuse_tensor(command, tmap, len(self.shared_memory))
        return self.run([command | {"descriptor": self.descriptor(tmap)}], **options)

    def _holds(self, address, count):
        """Whether global memory has these bytes."""
        first = self.global_memory.base
        return first <= address and address + count <= first + len(self.global_memory)
