"""Carry chains of an ECP5 that begin and end inside themselves.

``synth_ecp5`` gives a chain its first carry by a wire, and lets the last one out, used or not. nextpnr then puts two
tables in front of the chain for the one, and two behind it for the other. Here the first table of a chain makes the
first carry, or that of the lowest bit; and if the last one is used, one more table of the chain turns it into a sum, or
one outside finds it from the highest sum.
"""

__all__ = ["CHAINS", "cut_ends", "write_carries"]

_FILE = "carries.v"
#: Yosys commands in front of ``map_gates``.
CHAINS = [
    "maccmap",  # sums of three numbers become adders, as they would later
    "select -set adders t:$alu",
    # Those of which a carry is read.
    "select -set carries @adders %co1:+$alu[CO] @adders %d",
    "select -set readers @carries %co1 @carries %d",
    "select -set read @readers %ci1 @carries %i",
    "select -set carrying @read %ci1:+$alu[CO] @adders %i",
    f"techmap -D CARRY -map {_FILE} @carrying",
    f"techmap -map {_FILE} t:$alu",
]

# With D high a table of 0x96AA is A ^ B ^ C; where A ^ B ^ C is 0 the carry out is A, else the carry in. So with B = A
# and C = 0 the carry is A, whatever comes in; and with all of them low the sum is the carry that comes in. A table of
# 0x000n is 0 with D high, and its carry is bit {B, A} of n: that of the lowest bit of a sum or a difference, A & B or
# A | ~B. Its sum is no part of the chain then. The last carry is A where the highest A ^ B ^ C is 0, and else the sum
# there, inverted. Both are done where they save a pair of tables.
#
# No table is 0 for all inputs: a sum that is the carry in itself, for all that ABC knows, makes its ``&mfs`` go wrong.
_MODEL = r"""
(* techmap_celltype = "$alu" *)
module _tilewright_chain (A, B, CI, BI, X, Y, CO);
    parameter A_SIGNED = 0;
    parameter B_SIGNED = 0;
    parameter A_WIDTH = 1;
    parameter B_WIDTH = 1;
    parameter Y_WIDTH = 1;
    (* force_downto *) input [A_WIDTH-1:0] A;
    (* force_downto *) input [B_WIDTH-1:0] B;
    input CI, BI;
    (* force_downto *) output [Y_WIDTH-1:0] X, Y, CO;

    wire _TECHMAP_FAIL_ = Y_WIDTH <= 4;

    (* force_downto *) wire [Y_WIDTH-1:0] a, b;
    \$pos #(.A_SIGNED(A_SIGNED), .A_WIDTH(A_WIDTH), .Y_WIDTH(Y_WIDTH)) extend_a (.A(A), .Y(a));
    \$pos #(.A_SIGNED(B_SIGNED), .A_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH)) extend_b (.A(B), .Y(b));

    parameter _TECHMAP_CONSTMSK_CI_ = 0;
    parameter _TECHMAP_CONSTVAL_CI_ = 0;
    parameter _TECHMAP_CONSTMSK_BI_ = 0;
    parameter _TECHMAP_CONSTVAL_BI_ = 0;
    localparam PLAIN = _TECHMAP_CONSTMSK_CI_ && _TECHMAP_CONSTMSK_BI_ && // a sum or a difference
                       _TECHMAP_CONSTVAL_CI_ == _TECHMAP_CONSTVAL_BI_;
`ifdef CARRY
    localparam BEHIND = PLAIN ? Y_WIDTH % 2 : 1; // a table that turns the last carry into a sum
`else
    localparam BEHIND = 0;
`endif
    localparam JOINED = PLAIN && (Y_WIDTH + BEHIND) % 2 == 0;
    localparam FIRST = JOINED ? 0 : 1; // table of the lowest bit
    localparam LOWEST = JOINED ? (_TECHMAP_CONSTVAL_BI_ ? 16'h000B : 16'h0008) : 16'h96AA;
    localparam PAIRS = (FIRST + Y_WIDTH + BEHIND + 1) / 2;
    wire [2*PAIRS-1:0] of_a, of_b, inverts, sums;
    generate if (JOINED) begin
        assign of_a = a, of_b = b, inverts = {{Y_WIDTH-1{BI}}, 1'b1};
    end else begin
        assign of_a = {a, CI}, of_b = {b, CI}, inverts = {{Y_WIDTH{BI}}, 1'b0};
    end endgenerate
    wire [PAIRS:0] carries;
    assign carries[0] = 1'b0;

    genvar i;
    generate for (i = 0; i < PAIRS; i = i + 1) begin: pair
        CCU2C #(
            .INIT0(i == 0 ? LOWEST : 16'h96AA), .INIT1(16'h96AA), .INJECT1_0("NO"), .INJECT1_1("NO")
        ) tables (
            .CIN(carries[i]), .COUT(carries[i+1]), .S0(sums[2*i]), .S1(sums[2*i+1]),
            .A0(of_a[2*i]), .B0(of_b[2*i]), .C0(inverts[2*i]), .D0(1'b1),
            .A1(of_a[2*i+1]), .B1(of_b[2*i+1]), .C1(inverts[2*i+1]), .D1(1'b1)
        );
    end endgenerate
    assign Y[Y_WIDTH-1:1] = sums[FIRST+1 +: Y_WIDTH-1];
    assign Y[0] = JOINED ? a[0] ^ b[0] : sums[1];
    assign X = a ^ b ^ {Y_WIDTH{BI}};
`ifdef CARRY
    generate for (i = 0; i < Y_WIDTH; i = i + 1) begin: carry
        if (i == Y_WIDTH - 1)
            assign CO[i] = BEHIND ? sums[FIRST+Y_WIDTH] : X[i] ? ~Y[i] : a[i];
        else if ((FIRST + i) % 2)
            assign CO[i] = carries[(FIRST+i+1)/2];
        else if (i == 0)
            assign CO[i] = X[i] ? CI : a[i];
        else
            assign CO[i] = X[i] ? CO[i-1] : a[i];
    end endgenerate
`endif
endmodule
"""


def write_carries(folder):
    """Writes the file that :data:`CHAINS` read.

    Parameters
    ----------
    folder : Path
    """
    (folder / _FILE).write_text(_MODEL)


def cut_ends(module):
    """Takes away the wires at both ends of chains, for which nextpnr would make room. Yosys always has some there.

    Chains of another making, as those of adders that come of other cells later, keep the carry that comes in.

    Parameters
    ----------
    module : dict
        A mapped netlist, as Yosys writes it with ``write_json``; is changed.
    """
    read = set()
    for cell in module["cells"].values():
        directions = cell["port_directions"]
        read.update(*(bits for port, bits in cell["connections"].items() if directions[port] == "input"))
    for cell in module["cells"].values():
        if cell["type"] == "CCU2C":
            ends = cell["connections"]
            table = int(cell["parameters"]["INIT0"], 2)
            copies = table == 0x96AA and ends["A0"] == ends["B0"] and ends["C0"] == ["0"] and ends["D0"] == ["1"]
            makes = table < 16 and ends["D0"] == ["1"]
            if (copies or makes) and ends["CIN"] == ["0"]:
                ends["CIN"] = ["x"]
            if ends["COUT"][0] not in read:
                ends["COUT"] = ["x"]
