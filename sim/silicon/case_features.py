"""What a replay case has in it, in words: to count what random cases reach, and to choose some of each."""

from tilewright.golden.spec import TENSOR_OPCODES, Mode, Opcode, Reduction
from tilewright.golden.spec.fields import spoken
from tilewright.golden.tmau.tile import pitch, row_bytes, walk

__all__ = ["case_features"]


def case_features(case):
    """A set of texts, such as ``load of f16`` and ``reduce add of s32``; a function of the case alone."""
    found = {"several commands"} if len(case.commands) > 1 else set()
    for command in case.commands:
        found.update(_of_receivers(command, case.maps.get(command.map)))
        if command.opcode in TENSOR_OPCODES:
            found.update(_of_tensor(command, case.maps[command.map].tmap))
        elif command.opcode == Opcode.COPY_BLOCK:
            found.add(_of_block(command.fields))
        else:
            found.add(spoken(command.opcode))
    return found


def _of_receivers(command, spec):
    """Where data land that do not land with the issuer alone."""
    if command.receivers in (None, 1 << command.core):
        return
    what = f"load {spoken(spec.tmap.mode)}" if spec else _of_block(command.fields)
    if command.receivers.bit_count() > 1:
        yield f"{what} to several cores"
    if not command.receivers >> command.core & 1:
        yield f"{what} to other cores"


def _of_tensor(command, tmap):
    op = spoken(command.opcode)
    yield f"{op} {spoken(tmap.mode)} of rank {tmap.rank}"
    yield f"{op} {spoken(tmap.mode)} with interleave {spoken(tmap.interleave)}"
    yield f"{op} with swizzle {spoken(tmap.swizzle)}"
    yield f"{op} with L2 promotion {spoken(tmap.l2_promotion)}"
    if command.opcode == Opcode.REDUCE:
        yield f"{op} {spoken(command.fields['reduction'])} of {spoken(tmap.element)}"
    else:
        yield f"{op} of {spoken(tmap.element)}"
    if any(step > 1 for step in tmap.traversal[0 if tmap.interleave else 1 :]):
        yield f"{op} {spoken(tmap.mode)} with traversal"
    if pitch(tmap) > row_bytes(tmap):
        yield f"{op} with gaps between rows"
    yield from _of_bounds(op, command.fields, tmap)


def _of_bounds(op, fields, tmap):
    """Where a command begins, and how much of it is inside."""
    coords = fields["coords"][: tmap.rank]
    offsets = tuple(fields.get("offsets", ()))
    if any(offsets):
        yield f"{op} with offsets"
    if tmap.mode == Mode.TILE and min(coords) < 0:
        yield f"{op} from a negative coordinate"
    tile = walk(tmap, coords, offsets=(*offsets, 0, 0, 0)[:3])
    if tile.inside.all() and tile.stop - tile.start == tile.run_bytes:
        return
    place = "partly" if tile.inside.any() else "wholly"
    yield f"{op} {spoken(tmap.mode)} {place} outside"
    if op == "load":
        yield f"{op} {place} outside, fill {spoken(tmap.fill)} of {spoken(tmap.element)}"


def _of_block(fields):
    places = f"from {spoken(fields['source_space'])} to {spoken(fields['destination_space'])}"
    if fields.get("reduction", Reduction.NONE):
        return f"block {spoken(fields['reduction'])} of {spoken(fields['element'])} {places}"
    return f"block {places}"
