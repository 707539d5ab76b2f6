"""Payloads that pass from one folder of the TMAU to another."""

from amaranth.hdl import unsigned
from amaranth.lib import data

from tilewright.spec.tmau_registers import own_tag_bits

__all__ = [
    "BoxRunLayout",
    "CompletionLayout",
    "DoneLayout",
    "ErrorLayout",
    "EventsLayout",
    "RowLayout",
    "StagedWordLayout",
    "StoreRunLayout",
    "TransferLayout",
    "WindowsLayout",
    "WordLayout",
    "all_windows",
    "always_zero",
    "delivery_members",
    "owner_members",
    "prefetch_members",
    "windows_of",
]


class TransferLayout(data.StructLayout):
    """What all runs of one transfer have in common, from setup to the path that makes it.

    The *load path* writes shared memory, the *store path* global memory. A *run* is what a path moves without a gap:
    one row of the box, several rows that adjoin both in global and in shared memory and that setup has folded into one,
    or, where dimension 0 is gathered, one element or slice. All runs of a transfer have the same length, and, as far as
    they are inside the tensor at all, the same part inside; only runs of folded pixels, and of rows folded because they
    lie outside, say themselves how long they are (``BoxRunLayout``). Runs begin at any byte.

    Copies within one memory take both paths, one after the other: with ``loop`` the store path hands its bus words to
    the load path (shared to shared), with ``stage`` the load path hands aligned words to the store path (global to
    global).
    """

    def __init__(self, params):
        length = params.smem.addr_width + 1
        super().__init__(
            {
                "tag": unsigned(16),  # of the command
                "quiet": unsigned(1),  # more transfers of the command follow: errors pass to them, nothing is signalled
                "signal": unsigned(1),  # load path: complete the barrier's transaction count
                "barrier": unsigned(params.smem.addr_width),  # byte address
                "smem": unsigned(params.smem.addr_width),  # byte address of the first run; 0 with ``stage``
                "run_bytes": unsigned(length),  # at least 1
                "data_start": unsigned(length),  # first byte of an inside run that lies in the tensor
                "data_end": unsigned(length),  # first byte after it that does not; data_start < data_end <= run_bytes
                "gap": unsigned(8),  # bytes of shared memory left alone after each run that ends a row
                "swizzle": unsigned(2),  # spec.Swizzle
                # Load path: bytes outside the tensor, by shared-memory address. Store path with ``immediate``: all
                # bytes, by global address. Little-endian at every multiple of 8.
                "fill": unsigned(64),
                "immediate": unsigned(1),  # store path: the source is ``fill``
                "tf32": unsigned(1),  # load path: round every 32-bit word that comes from the tensor
                "loop": unsigned(1),  # the words pass from the store path to the load path
                "stage": unsigned(1),  # aligned words pass from the load path to the store path
                "reduction": unsigned(4),  # spec.Reduction; NONE in the path that does not write memory
                "element": unsigned(4),  # spec.Element, for the reduction
                "bytes": unsigned(length),  # of the whole command, fill included, gaps not
                **delivery_members(params),
                **owner_members(params),
            }
        )


def owner_members(params):
    """Members of transfers of the store path in a cluster, by name; none otherwise."""
    return {"owner": unsigned(params.cores)} if params.cores > 1 else {}  # mask of the other core that it reads, or 0


def delivery_members(params):
    """Members of transfers and completions of the load path in a cluster, by name; none otherwise."""
    if params.cores == 1:
        return {}
    # Mask of the cores in whose shared memory the bytes land, 0: the issuer's alone; the command is a COPY_BLOCK.
    return {"receivers": unsigned(params.cores), "block": unsigned(1)}


def prefetch_members(params):
    """Members of what leads to walks and runs where a cache outside takes prefetches, by name; none otherwise."""
    return {"prefetch": unsigned(1)} if params.prefetches else {}  # its lines are named, and nothing is moved


def always_zero(params):
    """Names of members of ``TransferLayout`` that hardware without some features never sets.

    Said where transfers come out of memory, or what is made of them out of a ReadyBuffer or SkidBuffer, because
    synthesis does not look through any of these.
    """
    names = []
    if not params.has("swizzle"):
        names += ["swizzle"]
    if not params.has("tf32"):
        names += ["tf32"]
    if not params.has("local_copies"):
        names += ["loop", "stage"]
    if not params.has("reductions_global") and not params.has("reductions_shared"):
        names += ["reduction", "element"]
    return names


class BoxRunLayout(data.StructLayout):
    """One run on its way from a walker."""

    def __init__(self, params):
        super().__init__(
            {
                # The run is ``bytes`` long, inside as a whole or not at all, however long those of its transfer are.
                "folded": unsigned(1),
                "address": unsigned(params.addr_width),  # global address of its first byte inside
                "bytes": unsigned(params.smem.addr_width + 1),  # inside the tensor, at least 1
                # 0: nothing of the run is inside; the address means nothing, and, unless ``folded``, bytes.
                "inside": unsigned(1),
                "skip": unsigned(1),  # the run ends a row: the transfer's gap follows it
                "last": unsigned(1),  # of the transfer
                "store": unsigned(1),  # for the store path
                "loop": unsigned(1),  # for the load path: its words come from the store path
                **prefetch_members(params),
            }
        )


class RowLayout(data.StructLayout):
    """One run of the load path, in order; small, because as many wait as there are reads in flight."""

    def __init__(self, params):
        super().__init__(
            {
                # As in BoxRunLayout; ``bytes`` mean something with ``folded`` only.
                "folded": unsigned(1),
                "bytes": unsigned(params.smem.addr_width + 1),
                "inside": unsigned(1),  # 0: the whole run is fill, nothing was requested
                "offset": unsigned(params.bus_log2),  # of the run's first inside byte in its bus word
                "shared": unsigned(1),  # its first bus word is the last one of the inside run before: not read again
                "skip": unsigned(1),  # the transfer's gap follows it
                "last": unsigned(1),  # last run of the transfer
            }
        )


class StoreRunLayout(data.StructLayout):
    """One run of the store path, in order."""

    def __init__(self, params):
        super().__init__(
            {
                "address": unsigned(params.addr_width),  # global address of its first byte inside; 0 with ``loop``
                "inside": unsigned(1),  # 0: nothing of it is written
                "skip": unsigned(1),  # the transfer's gap follows it
                "last": unsigned(1),  # last run of the transfer
            }
        )


class WordLayout(data.StructLayout):
    """A bus word on its way to the load path, in the order of the requests."""

    def __init__(self, params):
        super().__init__(
            {
                "data": unsigned(params.bus_width),
                "error": unsigned(1),  # SLVERR or DECERR
                "address": unsigned(params.addr_width),  # byte address of the word; meaningful with error only
            }
        )


class StagedWordLayout(data.StructLayout):
    """``bus_bytes`` aligned bytes from the load path to the store path, in order from shared address 0 on."""

    def __init__(self, params):
        super().__init__(
            {
                "data": unsigned(params.bus_width),
                "error": unsigned(1),  # a word of the transfer so far came with an error: nothing more may be written
                "address": unsigned(params.addr_width),  # of the first such word
            }
        )


class CompletionLayout(data.StructLayout):
    """The end of a transfer that is not quiet.

    The load path presents it when the last byte has been written, so that the line can be read when the barrier flips;
    the store path when the bus has acknowledged the last burst.
    """

    def __init__(self, params):
        super().__init__(
            {
                "tag": unsigned(16),
                "signal": unsigned(1),
                "barrier": unsigned(params.smem.addr_width),
                "bytes": unsigned(params.smem.addr_width + 1),
                "error": unsigned(1),  # a word or burst of it came with an error: the barrier must not be completed
                "write": unsigned(1),  # that was a write burst
                "address": unsigned(params.addr_width),  # of the first word or burst with an error
                **delivery_members(params),
                **({"turn": unsigned(2)} if params.cores > 1 else {}),  # of the load path: as in LandedLayout
            }
        )


class ErrorLayout(data.StructLayout):
    """An error record (docs/tmau.md, "Errors")."""

    def __init__(self, params):
        super().__init__(
            {
                "code": unsigned(8),  # spec.Error
                "tag": unsigned(16),  # of the command
                "field": unsigned(8),  # number in DESCRIPTOR, or COMMAND_FIELD + number in the command's format
                # Of a bus error or a refused barrier operation; otherwise 0.
                "address": unsigned(max(params.addr_width, params.smem.addr_width)),
            }
        )


class WindowsLayout(data.StructLayout):
    """The windows that confine a command (docs/tmau.md, "Windows"); constant while it is under way."""

    def __init__(self, params):
        page, row = params.addr_width - 12, params.smem.row_width
        # Masks of cores: this one, and those that a command may name.
        cluster = {name: unsigned(params.cores) for name in ("own", "allowed")} if params.cores > 1 else {}
        super().__init__(
            {
                "confine_global": unsigned(1),  # the next two count
                "global_first": unsigned(page),  # first and last page of 4 KiB
                "global_last": unsigned(page),
                "confine_shared": unsigned(1),  # the next two count
                "shared_first": unsigned(row),  # first and last line of 128 bytes
                "shared_last": unsigned(row),
                **cluster,
            }
        )


def all_windows(params):
    """Shape of the windows of all commands: those of each processor, or of a unit that confines all alike."""
    one = WindowsLayout(params)
    return data.ArrayLayout(one, params.processors) if params.confines_apart else one


def windows_of(params, windows, tag):
    """Of ``windows``, an ``all_windows``, those that confine the command with a tag; combinational."""
    if not params.confines_apart:
        return windows
    return windows[tag[own_tag_bits(params.processors) :]]


class DoneLayout(data.StructLayout):
    """The event that ends a command."""

    def __init__(self, params):
        super().__init__(
            {
                "valid": unsigned(1),  # strobe
                "stored": unsigned(1),  # by the store path: the bytes went to global memory
                # Of the command, landed or not; 0 for those that end in setup.
                "bytes": unsigned(params.smem.addr_width + 1),
                "record": ErrorLayout(params),  # tag and code always; field and address with a code other than NONE
            }
        )


class EventsLayout(data.StructLayout):
    """What happened in a cycle, for the performance counters. All are strobes."""

    def __init__(self):
        super().__init__(
            {
                "command": unsigned(1),  # one was accepted
                "request": unsigned(1),  # a data burst was accepted by the bus
                "beat": unsigned(1),  # a data word came
                "write_request": unsigned(1),  # a write burst was accepted by the bus
                "write_beat": unsigned(1),  # a word was written
                "descriptor_hit": unsigned(1),
                "descriptor_miss": unsigned(1),
                "stall_credit": unsigned(1),  # a burst waited because max_outstanding were in flight
                "stall_ar": unsigned(1),  # a request waited for the bus
                "stall_data": unsigned(1),  # the load path waited for a word
                "stall_smem": unsigned(1),  # a line waited for shared memory
                "bank_conflict": unsigned(1),  # in shared memory
            }
        )
