"""A second model of arithmetic and kernels: one thread at a time, on Python's integers, from docs/pe.md alone."""

from fractions import Fraction

from support.pe_floats import exact
from tilewright.spec.arithmetic import FUNCTIONS, Function, Operand
from tilewright.spec.pe import INSTRUCTIONS, Operation, PeError, Target

__all__ = ["ScalarPe", "scalar"]

_WORD = 1 << 32


def _s(x, bits=32):
    x %= 1 << bits
    return x - (1 << bits) if x >= 1 << bits - 1 else x


def _clip(x, low, high):
    return max(low, min(high, x))


def _bytes(x):
    return [x >> 8 * n & 255 for n in range(4)]


def _joined(parts, bits=8):
    return sum((part % (1 << bits)) << bits * n for n, part in enumerate(parts))


def _packed(a, b, low, high, bits):
    return _joined([_clip(_s(a), low, high), _clip(_s(b), low, high)], bits)


def _truncated(a, b):
    quotient = Fraction(a, b)
    return -(-quotient).__floor__() if quotient < 0 else quotient.__floor__()


def scalar(function, a=0, b=0, c=0, part=0):
    """The word, or the bool, that a function of integers or floats gives; ``b`` of a lookup is the entry."""
    name, n = function.name, part
    if FUNCTIONS[function].unit == "f32":
        return exact(function, a, b, c, part)
    match name:
        case "MOV":
            return b
        case "ADD":
            return (a + b) % _WORD
        case "SUB":
            return (a - b) % _WORD
        case "MUL":
            return a * b % _WORD
        case "MAD":
            return (a * b + c) % _WORD
        case "MULH":
            return (_s(a) * _s(b) >> 32) % _WORD
        case "MULHU":
            return a * b >> 32
        case "MIN" | "MAX":
            return {"MIN": min, "MAX": max}[name](_s(a), _s(b)) % _WORD
        case "MINU" | "MAXU":
            return {"MINU": min, "MAXU": max}[name](a, b)
        case "AND":
            return a & b
        case "OR":
            return a | b
        case "XOR":
            return a ^ b
        case "SHL":
            return a * 2 ** (b % 32) % _WORD
        case "SHR":
            return a // 2 ** (b % 32)
        case "SAR":
            return _s(a) // 2 ** (b % 32) % _WORD
        case "XB":
            return (_s(_bytes(a)[n], 8) + b) % _WORD
        case "XBU":
            return (_bytes(a)[n] + b) % _WORD
        case "XH":
            return (_s(a >> 16 * n, 16) + b) % _WORD
        case "XHU":
            return ((a >> 16 * n) % 65536 + b) % _WORD
        case "PACKB" | "PACKBU":
            limits = (-128, 127) if name == "PACKB" else (0, 255)
            half = _packed(a, b, *limits, 8)
            return half * 65536 + c % 65536 if n else half
        case "PACKH":
            return _packed(a, b, -32768, 32767, 16)
        case "PACKHU":
            return _packed(a, b, 0, 65535, 16)
        case "ADD4":
            return _joined([x + y for x, y in zip(_bytes(a), _bytes(b), strict=True)])
        case "SUB4":
            return _joined([x - y for x, y in zip(_bytes(a), _bytes(b), strict=True)])
        case "MIN4" | "MAX4":
            pick = min if name == "MIN4" else max
            return _joined([pick(_s(x, 8), _s(y, 8)) for x, y in zip(_bytes(a), _bytes(b), strict=True)])
        case "MINU4" | "MAXU4":
            pick = min if name == "MINU4" else max
            return _joined([pick(x, y) for x, y in zip(_bytes(a), _bytes(b), strict=True)])
        case "DP4":
            left = [x if n >= 2 else _s(x, 8) for x in _bytes(a)]
            right = [y if n % 2 else _s(y, 8) for y in _bytes(b)]
            return (c + sum(x * y for x, y in zip(left, right, strict=True))) % _WORD
        case "EQ" | "NE":
            return (a == b) == (name == "EQ")
        case "LT" | "LE" | "GT" | "GE" | "LTU" | "LEU" | "GTU" | "GEU":
            x, y = (a, b) if name.endswith("U") else (_s(a), _s(b))
            return {"LT": x < y, "LE": x <= y, "GT": x > y, "GE": x >= y}[name[:2]]
        case "PAND":
            return a and b
        case "POR":
            return a or b
        case "PXOR":
            return a != b
        case "PANDN":
            return a and not b
        case "LOOKUP":
            return b
        case "LOOKB":
            parts = _bytes(c)
            parts[n] = b % 256
            return _joined(parts)
        case "DIV":
            return (_truncated(_s(a), _s(b)) if b else -1) % _WORD
        case "REM":
            return (_s(a) - _s(b) * _truncated(_s(a), _s(b)) if b else a) % _WORD
        case "DIVU":
            return a // b if b else _WORD - 1
        case "REMU":
            return a % b if b else a
        case "QDIV":
            return min(1023, (a * (c % 1024) + b // 2) // b) if b else 1023
    raise ValueError(f"there is no {function!r}")


_CONTROLS = (Operation.CALL, Operation.RETURN, Operation.LOOP, Operation.END)


class ScalarPe:
    """Executes arithmetic, movu, fence, calls, loops and loads; any other instruction must have the error OPCODE."""

    def __init__(self, pe):
        self.sizes = pe.sizes
        self.registers = [[int(word) for word in row] for row in pe.registers]
        self.predicates = [[bool(each) for each in row] for row in pe.predicates.T]
        self.uniform = list(pe.uniform)
        self.code, self.lookup = [None] * self.sizes.kernel_words, [0] * self.sizes.lookup_words
        self.faults, self.number = [], 0

    def run(self, words):
        words = iter(words)
        for word in words:
            fields, error = self._begin(word, None, [])
            if fields and fields["opcode"] == Operation.LOAD and "alu" in self.sizes.units:
                data = [next(words) for _ in range(fields["n"])]
                if not error:
                    self._load(fields, data)
            elif not error and fields["opcode"] == Operation.CALL:
                self._kernel(fields["imm"])
            elif not error:
                self._plain(fields)

    def _begin(self, word, index, loops):
        """Fields of an instruction (None with OPCODE), and whether it has an error, which is recorded."""
        fields, missing = self._decoded(word), "alu" not in self.sizes.units
        code, register = self._error(fields, index, loops) if fields else (PeError.OPCODE, 0)
        if missing and word & 0xFF in (Operation.ARITH, Operation.LOAD, *_CONTROLS):
            code, register = PeError.UNSUPPORTED, 0
        if code:
            self.faults.append((code, self.number, 0, self.sizes.threads - 1, register))
        self.number += 1
        return fields, bool(code)

    def _kernel(self, index):
        loops = []
        while True:
            if index == self.sizes.kernel_words:
                self.faults.append((PeError.CONTROL, self.number, 0, self.sizes.threads - 1, index))
                self.number += 1
                return
            word = self.code[index]
            operation = word % 256
            fields, error = self._begin(word, index, loops)
            index += 1
            if operation in _CONTROLS and (error or operation == Operation.RETURN):
                return
            if error:
                continue
            if operation == Operation.LOOP:
                loops.append([index, self._rounds(fields)])
            elif operation == Operation.END:
                loops[-1][1] -= 1
                if loops[-1][1]:
                    index = loops[-1][0]
                else:
                    loops.pop()
            else:
                self._plain(fields)

    def _rounds(self, fields):
        return self.uniform[fields["rb"]] if fields["b"] == Operand.UNIFORM else fields["imm"]

    @staticmethod
    def _decoded(word):
        fmt = INSTRUCTIONS.get(word % 256)
        if fmt is None or word & fmt.reserved_mask:
            return None
        fields = fmt.unpack(word)
        wrong = fields.get("n") == 0
        if fields["opcode"] == Operation.LOOP:
            unused = fields["rb"] if fields["b"] == Operand.IMMEDIATE else fields["imm"]
            wrong = fields["b"] in (Operand.REGISTER, 3) or unused
            wrong = wrong or (fields["b"] == Operand.IMMEDIATE and not fields["imm"])
        if fields["opcode"] == Operation.ARITH:
            if fields["function"] not in list(Function) or fields["b"] == 3:
                return None
            info = FUNCTIONS[Function(fields["function"])]
            wrong = fields["part"] >= info.parts or (info.predicate and fields["rd"] > 7)
            wrong = wrong or (fields["ps"] and not info.selects)
            wrong = wrong or any(fields["r" + name] for name in "ac" if name not in info.operands)
            if "b" not in info.operands:
                wrong = wrong or fields["b"] or fields["rb"] or fields["imm"]
            else:
                wrong = wrong or fields["rb" if fields["b"] == Operand.IMMEDIATE else "imm"]
        return None if wrong else fields

    def _error(self, fields, index, loops):
        operation, sizes, none = fields["opcode"], self.sizes, (PeError.NONE, 0)
        at = (PeError.CONTROL, index or 0)
        uniform = fields.get("rb") if fields.get("b") == Operand.UNIFORM else None
        if operation == Operation.ARITH and FUNCTIONS[Function(fields["function"])].unit not in sizes.units:
            return PeError.UNSUPPORTED, fields["function"]
        lookup = operation == Operation.LOAD and fields["target"] == Target.LOOKUP
        if lookup and "lookup" not in sizes.units:
            return PeError.UNSUPPORTED, 0
        if operation == Operation.MOVU and fields["ud"] >= sizes.uniform_regs:
            return PeError.UNIFORM, fields["ud"]
        if uniform is not None and (uniform >= sizes.uniform_regs or self.uniform[uniform] is None):
            return PeError.UNIFORM, uniform
        if operation == Operation.ARITH:
            info = FUNCTIONS[Function(fields["function"])]
            used = ([] if info.predicate else ["rd"]) + ["r" + name for name in info.operands]
            used = [name for name in used if name != "rb" or fields["b"] == Operand.REGISTER]
            over = [fields[name] for name in used if fields[name] >= sizes.regs]
            return (PeError.REGISTER, over[0]) if over else none
        if operation == Operation.CALL:
            if index is not None:
                return at
            return (PeError.CONTROL, fields["imm"] % 65536) if fields["imm"] >= sizes.kernel_words else none
        if operation == Operation.RETURN:
            return at if index is None else none
        if operation == Operation.END:
            return none if loops else at
        if operation == Operation.LOOP:
            return at if index is None or len(loops) == 2 or self._rounds(fields) == 0 else none
        if operation == Operation.LOAD:
            first, entries = fields["imm"], fields["n"] * (4 if lookup else 1)
            room = sizes.lookup_words if lookup else sizes.kernel_words
            return at if index is not None or first + entries > room or (lookup and first % 4) else none
        return none

    def _load(self, fields, data):
        if fields["target"] == Target.CODE:
            self.code[fields["imm"] : fields["imm"] + len(data)] = data
            return
        for place, word in enumerate(data):
            for entry in range(4):
                self.lookup[fields["imm"] + 4 * place + entry] = word >> 32 * entry & _WORD - 1

    def _plain(self, fields):
        if fields["opcode"] == Operation.MOVU:
            self.uniform[fields["ud"]] = fields["imm"]
        elif fields["opcode"] == Operation.ARITH:
            results = [self._result(thread, fields) for thread in range(self.sizes.threads)]
            targets = self.predicates if FUNCTIONS[Function(fields["function"])].predicate else self.registers
            before = [row.copy() for row in self.predicates]
            for thread, result in enumerate(results):
                if not fields["guard"] or before[thread][fields["predicate"]]:
                    targets[thread][fields["rd"]] = result

    def _result(self, thread, fields):
        function, row, predicates = Function(fields["function"]), self.registers[thread], self.predicates[thread]
        info, part = FUNCTIONS[function], fields["part"]
        if info.selects and info.predicate:
            return scalar(function, predicates[fields["ps"]], predicates[part])
        a, c = (row[fields[name]] if name[1] in info.operands else 0 for name in ("ra", "rc"))
        if fields["b"] == Operand.REGISTER:
            b = row[fields["rb"]]
        else:
            b = fields["imm"] if fields["b"] == Operand.IMMEDIATE else self.uniform[fields["rb"]]
        if function == Function.SHFL:
            other = thread ^ 1 << part
            return self.registers[other if other < self.sizes.threads else thread][fields["ra"]]
        if function == Function.SEL:
            return a if predicates[fields["ps"]] else b
        if info.unit == "lookup":
            b = self.lookup[(_bytes(a)[part] + b) % self.sizes.lookup_words]
        return scalar(function, a, b, c, part)
