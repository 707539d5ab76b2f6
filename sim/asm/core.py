"""The text of programs of the command processor: each line is a word of 512 bits, or the words of a job or table entry.

::

    tmau COMMAND                        the text of a command
    conv JOB                            the text of a job: three words
    pe address count
    barrier.init|arrive|expect_tx|complete_tx|wait barrier value
    wait_all{.engine{,engine}}
    register.engine offset value
    loop count back | loop count label
    end{.interrupt}
    kernel index {urN {argument}}       a call; arguments go to uniform registers from urN on
    segment index word | page index word   the words that write an entry of the processing engine

A line ``name:`` is a label. ``engine`` is tmau, pe or conv. A line may end with ``tag=n``; commands and jobs have their
own tags. ``//`` begins a comment. ``word n`` is a raw word. Numbers are decimal, or hexadecimal with 0x.
"""

import re

from tilewright.errors import UsageError
from tilewright.golden import conv_words, page_words, segment_words, tmau_word
from tilewright.spec import BarrierOp
from tilewright.spec.core import JOB_WORDS, PROGRAM_WORDS, WORD_BITS, Engine, Kind
from tilewright.spec.fields import names

from .conv import assemble_jobs, disassemble_job
from .language import Flag, Language, Number, Part
from .tmau import AsmLine, assemble, disassemble

__all__ = ["BITS", "assemble_core", "disassemble_core"]

_ENGINES = {name: engine for name, engine in names(Engine).items() if engine}
_OPERATIONS = {name.replace("try_", ""): operation for name, operation in names(BarrierOp).items()}
_LABEL = re.compile(r"([A-Za-z_]\w*):")
_KIND = PROGRAM_WORDS[Kind.END]["kind"]
_TABLES = {"segment": segment_words, "page": page_words}


class _Engines:
    """Engines of a wait, with commas between them; all engines if there is none."""

    def read(self, line, fmt, fields):
        for name in line.parts.pop(0).split(",") if line.parts else ():
            if name not in _ENGINES:
                raise line.wrong(name, f"must be an engine: {', '.join(_ENGINES)}")
            fields["engines"] = fields.get("engines", 0) | 1 << _ENGINES[name] - 1

    def write(self, fields):
        named = [name for name, engine in _ENGINES.items() if fields["engines"] >> engine - 1 & 1]
        return f".{','.join(named)}" if named else ""


class _Arguments:
    """The first uniform register of a call, and the arguments; all may be omitted."""

    def read(self, line, fmt, fields):
        if not line.operands:
            return
        word = line.operand("a uniform register")
        digits = word.removeprefix("ur")
        if digits == word or not digits.isascii() or not digits.isdigit():
            raise line.wrong(word, "must be a uniform register, as ur0")
        fields["first"] = line.integer(word, fmt["first"].range, digits)
        if len(line.operands) > fmt["argument"].count:
            raise line.wrong(line.operands[fmt["argument"].count], "is more than the command takes")
        fields["argument"] = [line.integer(text, fmt["argument"].range) for text in line.operands]
        fields["count"] = len(line.operands)
        line.operands.clear()

    def write(self, fields):
        arguments = " ".join(map(str, fields["argument"][: fields["count"]]))
        return f"ur{fields['first']} {arguments}".rstrip() if fields["first"] or arguments else ""


_SYNTAXES = {
    "pe": (Kind.PE, Number("address", "the address of instructions"), Number("count", "their number", "d")),
    "barrier": (
        Kind.BARRIER,
        Part("operation", _OPERATIONS, "an operation"),
        Number("barrier", "the address of a barrier"),
        Number("value", "a number", "d"),
    ),
    "wait_all": (Kind.WAIT_ALL, _Engines()),
    "register": (
        Kind.REGISTER,
        Part("engine", _ENGINES, "an engine"),
        Number("offset", "the offset of a register"),
        Number("value", "a number"),
    ),
    "loop": (
        Kind.LOOP,
        Number("count", "a number of rounds", "d"),
        Number("back", "a number of words, or a label", "d"),
    ),
    "end": (Kind.END, Flag("interrupt")),
    "kernel": (Kind.KERNEL, Number("entry", "the index of a kernel"), _Arguments()),
}
_LANGUAGE = Language(AsmLine, PROGRAM_WORDS, _SYNTAXES, opcode="kind")

#: Bits of a word.
BITS = _LANGUAGE.bits


def assemble_core(text):
    """The list of words of a program; a UsageError names the wrong line and word."""
    words, labels = [], {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("//")[0].strip()
        label = _LABEL.fullmatch(line)
        if label and label[1] in labels:
            raise UsageError(f"line {number}: label {label[1]!r} is defined twice")
        if label:
            labels[label[1]] = len(words)
        elif line:
            words += _words(line, number, len(words), labels)
    return words


def _words(line, number, index, labels):
    """The words of a line; the first has the index ``index``."""
    name, *operands = line.split(None, 1)
    blank = "\n" * (number - 1)  # errors then name this line
    if name in ("tmau", "conv", *_TABLES) and not operands:
        raise UsageError(f"line {number}: {name!r} needs operands")
    if name == "tmau":
        return _packed(number, lambda: [tmau_word(word) for word in assemble(blank + operands[0])])
    if name == "conv":
        return [word for job in assemble_jobs(blank + operands[0]) for word in conv_words(job)]
    if name in _TABLES:
        return _packed(number, lambda: _TABLES[name](*_table_entry(line, number)))
    if name == "loop":
        first, *others = line.split()
        others[1:2] = [str(index - labels[label]) if label in labels else label for label in others[1:2]]
        line = " ".join([first, *others])
    return _LANGUAGE.assemble(blank + line)


def _packed(number, words):
    """The result of ``words``, whose ValueError becomes an error of the line."""
    try:
        return words()
    except ValueError as error:
        raise UsageError(f"line {number}: {error}") from None


def _table_entry(text, number):
    """Index and word of an entry, and the tag."""
    line = AsmLine(text, number)
    line.parts.pop(0)
    index = line.integer(line.operand("an index"), (0, 65535))
    word = line.integer(line.operand("a word"), (0, (1 << 256) - 1))
    line.end()
    return index, word, line.common.get("tag", 0)


def disassemble_core(words):
    """The list of lines of a program, with ``word n`` for words that no line stands for."""
    words, lines = list(words), []
    while words:
        word = words.pop(0)
        kind = word >> _KIND.lsb
        if kind == Kind.TMAU:
            lines.append(_checked(f"tmau {disassemble(word & (1 << _KIND.lsb) - 1)}", [word]))
        elif kind == Kind.CONV and len(words) >= JOB_WORDS:
            halves = words[:JOB_WORDS]
            job = sum(half << WORD_BITS * place for place, half in enumerate(halves))
            line = _checked(f"conv {disassemble_job(job)}", [word, *halves])
            lines.append(line)
            if line.startswith("conv"):
                del words[:JOB_WORDS]
        else:
            lines.append(_LANGUAGE.disassemble(word))
    return lines


def _checked(line, words):
    """``line`` if it stands for ``words``, otherwise the first of them as a raw word."""
    try:
        if assemble_core(line) == words:
            return line
    except UsageError:
        pass  # a tag out of range
    return f"word {words[0]:#x}"
