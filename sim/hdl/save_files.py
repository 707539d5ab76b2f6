"""Save files for viewers of waveforms: what to show of a file, in groups, so that nobody has to look for it."""

from pathlib import Path

__all__ = ["gtkwave_file", "surfer_file", "write_save_files"]

#: Formats of GTKWave, as bits of its flags: binary, hexadecimal and signed decimal numbers, at the right.
_BINARY, _HEXADECIMAL, _SIGNED = 0x28, 0x22, 0x424
_GROUP_BEGIN, _GROUP_END = 0x800200, 0x1000200


def gtkwave_file(waveform, groups):
    """The text of a save file of GTKWave (``.gtkw``).

    Parameters
    ----------
    waveform : Path
    groups : dict of str to dict of str to (int, bool)
        By the name of a group its signals: hierarchical name, bits, and whether it is signed.
    """
    lines = [f'[dumpfile] "{Path(waveform).resolve()}"', "[timestart] 0"]
    for group, signals in groups.items():
        lines += [f"@{_GROUP_BEGIN:x}", f"-{group}"]
        for name, (width, signed) in signals.items():
            form = _BINARY if width == 1 else _SIGNED if signed else _HEXADECIMAL
            lines += [f"@{form:x}", name if width == 1 else f"{name}[{width - 1}:0]"]
        lines += [f"@{_GROUP_END:x}", f"-{group}"]
    return "\n".join(lines) + "\n"


def surfer_file(groups):
    """The text of a command file of Surfer (``.sucl``); arguments are those of :func:`gtkwave_file`."""
    lines = []
    for group, signals in groups.items():
        lines += [f"divider_add {group}", *(f"variable_add {name}" for name in signals)]
    return "\n".join([*lines, "zoom_fit"]) + "\n"


def write_save_files(waveform, groups):
    """Writes both beside a waveform, with its name and their suffixes; nothing if there is no group."""
    if groups:
        path = Path(waveform)
        path.with_suffix(".gtkw").write_text(gtkwave_file(path, groups), encoding="utf-8")
        path.with_suffix(".sucl").write_text(surfer_file(groups), encoding="utf-8")
