"""Payloads of streams between the rooms of the TMAU, and the records that it reports."""

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
    """What all runs of one transfer have in common; setup sends it to one of the two paths.

    The *load path* writes shared memory, the *store path* global memory. A *run* is a contiguous range of bytes that a
    path moves: one row of the box, several rows that setup has folded because they are contiguous in both memories, or,
    if dimension 0 is gathered, one element or slice. All runs of a transfer have the same length and, unless they lie
    outside the tensor, the same part inside. Only runs of folded pixels, and of folded rows outside the tensor, carry
    their own length (``BoxRunLayout``). Runs begin at any byte.

    Copies within one memory use both paths: with ``loop`` the store path passes its bus words to the load path (shared
    to shared), with ``stage`` the load path passes aligned words to the store path (global to global).
    """

    def __init__(self, params):
        length = params.smem.addr_width + 1
        super().__init__(
            {
                "tag": unsigned(16),  # of the command
                # More transfers of the command follow: this one passes its errors to them and signals nothing.
                "quiet": unsigned(1),
                "signal": unsigned(1),  # load path: complete the barrier's transaction count
                "barrier": unsigned(params.smem.addr_width),  # byte address
                "smem": unsigned(params.smem.addr_width),  # byte address of the first run; 0 with ``stage``
                "run_bytes": unsigned(length),  # at least 1
                "data_start": unsigned(length),  # first byte of an inside run that lies in the tensor
                "data_end": unsigned(length),  # end of these bytes, exclusive; data_start < data_end <= run_bytes
                "gap": unsigned(8),  # bytes of shared memory to skip after each run that ends a row
                "swizzle": unsigned(2),  # spec.Swizzle
                # Load path: bytes outside the tensor, by shared-memory address. Store path with ``immediate``: all
                # bytes, by global address. Little-endian, repeated every 8 bytes.
                "fill": unsigned(64),
                "immediate": unsigned(1),  # store path: the source is ``fill``
                "tf32": unsigned(1),  # load path: round every 32-bit word that comes from the tensor
                "loop": unsigned(1),  # words pass from the store path to the load path
                "stage": unsigned(1),  # aligned words pass from the load path to the store path
                "reduction": unsigned(4),  # spec.Reduction; NONE in a path that does not write memory
                "element": unsigned(4),  # spec.Element, for the reduction
                "bytes": unsigned(length),  # of the whole command, with fill, without gaps
                **delivery_members(params),
                **owner_members(params),
            }
        )


def owner_members(params):
    """Members of transfers of the store path in a cluster; empty without one."""
    return {"owner": unsigned(params.cores)} if params.cores > 1 else {}  # mask of the other core it reads from, or 0


def delivery_members(params):
    """Members of transfers and completions of the load path in a cluster; empty without one."""
    if params.cores == 1:
        return {}
    # Mask of the cores whose shared memory receives the bytes, 0: only the issuing core; the command is a COPY_BLOCK.
    return {"receivers": unsigned(params.cores), "block": unsigned(1)}


def prefetch_members(params):
    """Members of walks and runs of a unit that reports prefetches; empty otherwise."""
    return {"prefetch": unsigned(1)} if params.prefetches else {}  # its lines are reported, and nothing is moved


def always_zero(params):
    """Names of members of ``TransferLayout`` that are constant zero because a feature is missing.

    Synthesis does not propagate constants through memories and stream stages, so the consumers of these tie the members
    to zero again.
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
    """One run from a walker."""

    def __init__(self, params):
        super().__init__(
            {
                # The run is ``bytes`` long, whatever its transfer says, and either all or none of it is inside.
                "folded": unsigned(1),
                "address": unsigned(params.addr_width),  # global address of its first byte inside
                "bytes": unsigned(params.smem.addr_width + 1),  # inside the tensor, at least 1
                # 0: nothing of the run is inside; the address is undefined, and so is ``bytes`` unless ``folded``.
                "inside": unsigned(1),
                "skip": unsigned(1),  # the run ends a row: the transfer's gap follows it
                "last": unsigned(1),  # of the transfer
                "store": unsigned(1),  # for the store path
                "loop": unsigned(1),  # for the load path: its words come from the store path
                **prefetch_members(params),
            }
        )


class RowLayout(data.StructLayout):
    """One run of the load path, in order. It is narrow, because the queue holds one per read in flight."""

    def __init__(self, params):
        super().__init__(
            {
                "folded": unsigned(1),  # as in BoxRunLayout
                "bytes": unsigned(params.smem.addr_width + 1),  # as in BoxRunLayout; defined only with ``folded``
                "inside": unsigned(1),  # 0: the whole run is fill, nothing was requested
                "offset": unsigned(params.bus_log2),  # of the run's first inside byte in its bus word
                "shared": unsigned(1),  # its first bus word is the last one of the previous inside run: not read again
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
                "inside": unsigned(1),  # 0: none of it is written
                "skip": unsigned(1),  # the transfer's gap follows it
                "last": unsigned(1),  # last run of the transfer
            }
        )


class WordLayout(data.StructLayout):
    """A bus word for the load path, in the order of the requests."""

    def __init__(self, params):
        super().__init__(
            {
                "data": unsigned(params.bus_width),
                "error": unsigned(1),  # SLVERR or DECERR
                "address": unsigned(params.addr_width),  # byte address of the word; defined only with ``error``
            }
        )


class StagedWordLayout(data.StructLayout):
    """``bus_bytes`` aligned bytes from the load path to the store path, in order from shared address 0."""

    def __init__(self, params):
        super().__init__(
            {
                "data": unsigned(params.bus_width),
                "error": unsigned(1),  # this or an earlier word of the transfer had an error: write nothing more
                "address": unsigned(params.addr_width),  # of the first such word
            }
        )


class CompletionLayout(data.StructLayout):
    """The end of a transfer that is not quiet.

    The load path sends it when the last byte has been written, so that a consumer can read the line when the barrier
    flips; the store path sends it when the bus has acknowledged the last burst.
    """

    def __init__(self, params):
        super().__init__(
            {
                "tag": unsigned(16),
                "signal": unsigned(1),
                "barrier": unsigned(params.smem.addr_width),
                "bytes": unsigned(params.smem.addr_width + 1),
                "error": unsigned(1),  # a word or burst of it had an error: do not complete the barrier
                "write": unsigned(1),  # it was a write burst
                "address": unsigned(params.addr_width),  # of the first word or burst with an error
                **delivery_members(params),
                **({"turn": unsigned(2)} if params.cores > 1 else {}),  # load path: as in LandedLayout
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
    """The windows that confine a command (docs/tmau.md, "Windows"); constant while the command is in progress."""

    def __init__(self, params):
        page, row = params.addr_width - 12, params.smem.row_width
        # Masks of cores: this one, and the ones that a command may name.
        cluster = {name: unsigned(params.cores) for name in ("own", "allowed")} if params.cores > 1 else {}
        super().__init__(
            {
                "confine_global": unsigned(1),  # the next two apply
                "global_first": unsigned(page),  # first and last page of 4 KiB
                "global_last": unsigned(page),
                "confine_shared": unsigned(1),  # the next two apply
                "shared_first": unsigned(row),  # first and last line of 128 bytes
                "shared_last": unsigned(row),
                **cluster,
            }
        )


def all_windows(params):
    """Shape of the windows of all commands: an array with one element per processor, or one for all of them."""
    layout = WindowsLayout(params)
    return data.ArrayLayout(layout, params.processors) if params.confines_apart else layout


def windows_of(params, windows, tag):
    """Selects the windows of the command with ``tag`` from ``windows``, an ``all_windows``. Combinational."""
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
                # Of the command, whether it succeeded or not; 0 if it ended in setup.
                "bytes": unsigned(params.smem.addr_width + 1),
                "record": ErrorLayout(params),  # tag and code always; field and address if the code is not NONE
            }
        )


class EventsLayout(data.StructLayout):
    """Strobes for the performance counters."""

    def __init__(self):
        super().__init__(
            {
                "command": unsigned(1),  # a command was accepted
                "request": unsigned(1),  # the bus accepted a data burst
                "beat": unsigned(1),  # a data word arrived
                "write_request": unsigned(1),  # the bus accepted a write burst
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
