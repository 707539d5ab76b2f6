"""Choices of four and of eight with the multiplexers that the slices of an ECP5 have behind their tables.

``synth_ecp5`` makes three and seven tables of such a choice, because it uses those multiplexers for functions of five
to seven inputs alone. Two and four tables do, each of which chooses between two values.
"""

__all__ = ["COVER", "UNCOVER", "write_multiplexers"]

_BOXES, _TO_BOXES, _FROM_BOXES = "multiplexers.v", "to_multiplexers.v", "from_multiplexers.v"
#: Yosys commands for what is mapped to gates: wholly used choices become boxes, which ``abc9`` leaves alone.
COVER = [
    f"read_verilog -lib -specify {_BOXES}",
    "muxcover -mux4=200 -mux8=400 -nodecode -nopartial",
    f"techmap -map {_TO_BOXES}",
    "opt_clean",
]
#: Yosys commands behind ``abc9``: boxes become cells.
UNCOVER = [f"techmap -map {_FROM_BOXES}", "clean"]

# Picoseconds as of a table of five or six inputs, which has the same multiplexers.
_MODELS = """
(* abc9_box, lib_whitebox *)
module CHOICE4 (input A, B, C, D, S, T, output Y);
    assign Y = T ? (S ? D : C) : (S ? B : A);
    specify
        (A => Y) = 477; (B => Y) = 477; (C => Y) = 477; (D => Y) = 477; (S => Y) = 477; (T => Y) = 151;
    endspecify
endmodule

(* abc9_box, lib_whitebox *)
module CHOICE8 (input A, B, C, D, E, F, G, H, S, T, U, output Y);
    assign Y = U ? (T ? (S ? H : G) : (S ? F : E)) : (T ? (S ? D : C) : (S ? B : A));
    specify
        (A => Y) = 618; (B => Y) = 618; (C => Y) = 618; (D => Y) = 618;
        (E => Y) = 618; (F => Y) = 618; (G => Y) = 618; (H => Y) = 618;
        (S => Y) = 618; (T => Y) = 292; (U => Y) = 148;
    endspecify
endmodule
"""
_MAKE = r"""
module \$_MUX4_ (input A, B, C, D, S, T, output Y);
    CHOICE4 _TECHMAP_REPLACE_ (.A(A), .B(B), .C(C), .D(D), .S(S), .T(T), .Y(Y));
endmodule

module \$_MUX8_ (input A, B, C, D, E, F, G, H, S, T, U, output Y);
    CHOICE8 _TECHMAP_REPLACE_ (
        .A(A), .B(B), .C(C), .D(D), .E(E), .F(F), .G(G), .H(H), .S(S), .T(T), .U(U), .Y(Y)
    );
endmodule
"""
# The table of S ? B : A is 0xCACA, with S at its input C.
_TAKE_APART = """
module CHOICE4 (input A, B, C, D, S, T, output Y);
    wire low, high;
    LUT4 #(.INIT(16'hCACA)) table0 (.A(A), .B(B), .C(S), .D(1'b0), .Z(low));
    LUT4 #(.INIT(16'hCACA)) table1 (.A(C), .B(D), .C(S), .D(1'b0), .Z(high));
    PFUMX _TECHMAP_REPLACE_ (.BLUT(low), .ALUT(high), .C0(T), .Z(Y));
endmodule

module CHOICE8 (input A, B, C, D, E, F, G, H, S, T, U, output Y);
    wire low, high;
    CHOICE4 half0 (.A(A), .B(B), .C(C), .D(D), .S(S), .T(T), .Y(low));
    CHOICE4 half1 (.A(E), .B(F), .C(G), .D(H), .S(S), .T(T), .Y(high));
    L6MUX21 _TECHMAP_REPLACE_ (.D0(low), .D1(high), .SD(U), .Z(Y));
endmodule
"""


def write_multiplexers(folder):
    """Writes the files that :data:`COVER` and :data:`UNCOVER` read.

    Parameters
    ----------
    folder : Path
    """
    for name, text in ((_BOXES, _MODELS), (_TO_BOXES, _MAKE), (_FROM_BOXES, _TAKE_APART)):
        (folder / name).write_text(text)
