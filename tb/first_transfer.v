// The first transfer of docs/integration.md around tw_unit_core.v, with a memory of a few lines. To run it:
//   iverilog -g2005 -o first first_transfer.v tw_unit_core.v && vvp first
`timescale 1ns/1ps
module first_transfer;
  reg clk = 0, rst = 1;
  always #5 clk = ~clk;

  reg [511:0] command;
  reg command_valid = 0;
  wire command_ready, done_valid, flip_valid;
  wire [15:0] done_tag;
  wire [7:0] done_error;
  wire [11:0] flip_address;
  wire [1:0] arid;
  wire [31:0] araddr;
  wire [7:0] arlen;
  wire arvalid, rready;
  reg arready = 0, rlast = 0, rvalid = 0;
  reg [1:0] rid;
  reg [127:0] rdata;
  reg [35:0] operation;
  reg operation_valid = 0;
  wire operation_ready, answer_valid;
  wire [1:0] answer;
  reg [12:0] s_araddr;
  reg s_arvalid = 0;
  wire s_arready, s_rvalid;
  wire [31:0] s_rdata;
  wire [1:0] s_rresp;

  tw_unit_core dut (
    .clk(clk), .rst(rst), .irq(),
    .commands_payload(command), .commands_valid(command_valid), .commands_ready(command_ready),
    .done_valid(done_valid), .done_tag(done_tag), .done_error(done_error),
    .m_axi_arid(arid), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arvalid(arvalid), .m_axi_arready(arready),
    .m_axi_arsize(), .m_axi_arburst(), .m_axi_arprot(), .m_axi_arcache(),
    .m_axi_rid(rid), .m_axi_rdata(rdata), .m_axi_rresp(2'b00), .m_axi_rlast(rlast), .m_axi_rvalid(rvalid),
    .m_axi_rready(rready),
    // A load writes no global memory.
    .m_axi_awid(), .m_axi_awaddr(), .m_axi_awlen(), .m_axi_awsize(), .m_axi_awburst(), .m_axi_awprot(),
    .m_axi_awcache(), .m_axi_awvalid(), .m_axi_awready(1'b0),
    .m_axi_wdata(), .m_axi_wstrb(), .m_axi_wlast(), .m_axi_wvalid(), .m_axi_wready(1'b0),
    .m_axi_bid(2'b00), .m_axi_bresp(2'b00), .m_axi_bvalid(1'b0), .m_axi_bready(),
    .barriers_payload(operation), .barriers_valid(operation_valid), .barriers_ready(operation_ready),
    .barrier_results_payload(answer), .barrier_results_valid(answer_valid), .barrier_results_ready(1'b1),
    .flip_valid(flip_valid), .flip_address(flip_address),
    .s_axil_awaddr(13'd0), .s_axil_awprot(3'd0), .s_axil_awvalid(1'b0), .s_axil_awready(),
    .s_axil_wdata(32'd0), .s_axil_wstrb(4'd0), .s_axil_wvalid(1'b0), .s_axil_wready(),
    .s_axil_bresp(), .s_axil_bvalid(), .s_axil_bready(1'b1),
    .s_axil_araddr(s_araddr), .s_axil_arprot(3'd0), .s_axil_arvalid(s_arvalid), .s_axil_arready(s_arready),
    .s_axil_rdata(s_rdata), .s_axil_rresp(s_rresp), .s_axil_rvalid(s_rvalid), .s_axil_rready(1'b1),
    // Nothing reads shared memory but the processor, over AXI4-Lite.
    .reads_payload(72'd0), .reads_valid(1'b0), .reads_ready(),
    .read_data_payload(), .read_data_valid(), .read_data_ready(1'b1)
  );

  // Global memory answers one burst after the other.
  reg [7:0] memory [0:16383];
  reg [31:0] address;
  integer beat, lane;
  initial forever begin
    arready <= 1;
    @(posedge clk) while (!arvalid) @(posedge clk);
    arready <= 0;
    $display("read id %0d address %h beats %0d", arid, araddr, arlen + 1);
    address = araddr;
    rid <= arid;
    for (beat = arlen; beat >= 0; beat = beat - 1) begin
      for (lane = 0; lane < 16; lane = lane + 1) rdata[8 * lane +: 8] <= memory[address + lane];
      address = address + 16;
      rlast <= beat == 0;
      rvalid <= 1;
      @(posedge clk) while (!rready) @(posedge clk);
      rvalid <= 0;
    end
  end

  task write_word(input [31:0] to, input [63:0] word);
    integer i;
    for (i = 0; i < 8; i = i + 1) memory[to + i] = word[8 * i +: 8];
  endtask

  task operate(input [35:0] item, input [1:0] expected);
    begin
      operation <= item;
      operation_valid <= 1;
      @(posedge clk) while (!operation_ready) @(posedge clk);
      operation_valid <= 0;
      while (!answer_valid) @(posedge clk);
      $display("barrier %h answer %0d", item, answer);
      if (answer !== expected) wrong = wrong + 1;
      @(posedge clk);
    end
  endtask

  task read_word(input [12:0] from, output [31:0] word);
    begin
      s_araddr <= from;
      s_arvalid <= 1;
      @(posedge clk) while (!s_arready) @(posedge clk);
      s_arvalid <= 0;
      while (!s_rvalid) @(posedge clk);
      word = s_rdata;
      if (s_rresp !== 0) wrong = wrong + 1;
      @(posedge clk);
    end
  endtask

  reg flipped = 0;
  always @(posedge clk) begin
    if (done_valid) $display("done tag %0d error %0d", done_tag, done_error);
    if (flip_valid) $display("flip %h", flip_address);
    if (flip_valid && flip_address == 12'h040) flipped <= 1;
  end

  integer i, wrong;
  reg [31:0] word;
  initial begin
    wrong = 0;
    for (i = 0; i < 16384; i = i + 1) memory[i] = i ^ i >> 8;
    for (i = 0; i < 16; i = i + 1) write_word('h1000 + 8 * i, 0);
    write_word('h1000, 64'h0000000000000201);
    write_word('h1008, 64'h0000000000002000);
    write_word('h1010, 64'h0000000F0000003F);
    write_word('h1020, 64'h0000031F00000000);
    write_word('h1040, 64'h0000000000000040);
    repeat (2) @(posedge clk);
    rst <= 0;
    operate(36'h000008200, 0);
    operate(36'h000400202, 0);
    operate(36'h000008201, 0);
    operate(36'h000000204, 0);
    command <= {256'd0, 64'h0000000E00000028, 64'h0000000000001000, 64'h0000000000000040, 64'h0000010000070011};
    command_valid <= 1;
    @(posedge clk) while (!command_ready) @(posedge clk);
    command_valid <= 0;
    while (!flipped) @(posedge clk);
    operate(36'h000000204, 1);
    for (i = 0; i < 128; i = i + 4) begin
      read_word('h1100 + i, word);
      $display("smem %h: %h", 12'h100 + i[11:0], word);
      for (lane = 0; lane < 4; lane = lane + 1) check(i / 32, i % 32 + lane, word[8 * lane +: 8]);
    end
    if (wrong == 0) $display("PASS");
    else $display("FAIL: %0d wrong", wrong);
    $finish;
  end

  // Columns 40 to 71 of rows 14 to 17, of a tensor with 64 columns and 16 rows; zero outside.
  task check(input integer row, input integer column, input [7:0] value);
    reg [7:0] expected;
    begin
      expected = row + 14 < 16 && column + 40 < 64 ? memory['h2000 + 64 * (row + 14) + column + 40] : 0;
      if (value !== expected) wrong = wrong + 1;
    end
  endtask

  initial begin
    repeat (2000) @(posedge clk);
    $display("FAIL: no answer in 2000 cycles");
    $finish;
  end
endmodule
