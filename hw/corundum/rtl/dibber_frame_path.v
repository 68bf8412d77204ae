// SPDX-License-Identifier: BSD-2-Clause
//
// Frames of a NIC and of Dibber on one MAC.
//
//   NIC ── s_tx ──▶┐ turns  ┌──▶ m_tx ──▶ MAC      MAC ── s_rx ──▶ EtherType ──▶ m_rx ──▶ NIC
//   core ─ widen ──▶┘                                                  └──▶ narrow ──▶ core
//
// Sending, the two take turns, frame by frame, so neither starves. A frame of the core begins when
// it is here as a whole, so it holds the MAC no longer than the NIC's own frame would.
//
// Receiving, `s_rx_tready` is constant 1: neither side can hold up the other. Each side has a FIFO
// of whole frames. A frame that finds its side's FIFO full is dropped and counted there.
//
//   DATA_WIDTH     bits of a beat: 64, 128, 256 or 512
//   ETHERTYPE      of Dibber's frames
//   TAGGED         Dibber's frames have a VLAN tag (IEEE 802.1Q) before the EtherType
//   TX_DEPTH       beats of the core's FIFO towards the MAC; at least a frame of 9,216 bytes
//   RX_NIC_DEPTH   beats of the NIC's FIFO
//   RX_CORE_DEPTH  beats of the core's FIFO
//
// Bit 0 of tuser says in a frame's last beat that the frame is bad. The core's frames have
// CORE_TX_USER as tuser; of bad frames only those of the NIC are sent.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module dibber_frame_path #(
    parameter DATA_WIDTH = 128,
    parameter TX_USER_WIDTH = 17,
    parameter RX_USER_WIDTH = 97,
    parameter [15:0] ETHERTYPE = 16'h88b5,
    parameter TAGGED = 0,
    parameter TX_DEPTH = 2*16384/(DATA_WIDTH/8),
    parameter RX_NIC_DEPTH = 32768/(DATA_WIDTH/8),
    parameter RX_CORE_DEPTH = 32768/(DATA_WIDTH/8),
    parameter [TX_USER_WIDTH-1:0] CORE_TX_USER = 0,
    parameter KEEP_WIDTH = DATA_WIDTH/8
) (
    input  wire                     clk,
    input  wire                     rst,

    // From the NIC, to the MAC.
    input  wire [DATA_WIDTH-1:0]    s_tx_tdata,
    input  wire [KEEP_WIDTH-1:0]    s_tx_tkeep,
    input  wire                     s_tx_tlast,
    input  wire [TX_USER_WIDTH-1:0] s_tx_tuser,
    input  wire                     s_tx_tvalid,
    output wire                     s_tx_tready,
    output wire [DATA_WIDTH-1:0]    m_tx_tdata,
    output wire [KEEP_WIDTH-1:0]    m_tx_tkeep,
    output wire                     m_tx_tlast,
    output wire [TX_USER_WIDTH-1:0] m_tx_tuser,
    output wire                     m_tx_tvalid,
    input  wire                     m_tx_tready,

    // From the MAC, to the NIC.
    input  wire [DATA_WIDTH-1:0]    s_rx_tdata,
    input  wire [KEEP_WIDTH-1:0]    s_rx_tkeep,
    input  wire                     s_rx_tlast,
    input  wire [RX_USER_WIDTH-1:0] s_rx_tuser,
    input  wire                     s_rx_tvalid,
    output wire                     s_rx_tready,
    output wire [DATA_WIDTH-1:0]    m_rx_tdata,
    output wire [KEEP_WIDTH-1:0]    m_rx_tkeep,
    output wire                     m_rx_tlast,
    output wire [RX_USER_WIDTH-1:0] m_rx_tuser,
    output wire                     m_rx_tvalid,
    input  wire                     m_rx_tready,

    // From the core.
    input  wire [63:0]              core_tx_data,
    input  wire [3:0]               core_tx_bytes,
    input  wire                     core_tx_last,
    input  wire                     core_tx_error,
    input  wire                     core_tx_valid,
    output wire                     core_tx_ready,

    // To the core, which takes every word.
    output wire [63:0]              core_rx_data,
    output wire [3:0]               core_rx_bytes,
    output wire                     core_rx_last,
    output wire                     core_rx_error,
    output wire                     core_rx_valid,

    // Pulses: a frame was dropped.
    output wire                     nic_dropped,
    output wire                     core_dropped
);

// Sending -----------------------------------------------------------------------------------------

wire [DATA_WIDTH-1:0] wide_tdata;
wire [KEEP_WIDTH-1:0] wide_tkeep;
wire                  wide_tlast, wide_terror, wide_tvalid, wide_tready;

dibber_frame_widen #(.DATA_WIDTH(DATA_WIDTH)) widen (
    .clk(clk), .rst(rst),
    .s_data(core_tx_data), .s_bytes(core_tx_bytes), .s_last(core_tx_last),
    .s_error(core_tx_error), .s_valid(core_tx_valid), .s_ready(core_tx_ready),
    .m_tdata(wide_tdata), .m_tkeep(wide_tkeep), .m_tlast(wide_tlast), .m_terror(wide_terror),
    .m_tvalid(wide_tvalid), .m_tready(wide_tready)
);

wire [DATA_WIDTH-1:0] own_tdata;
wire [KEEP_WIDTH-1:0] own_tkeep;
wire                  own_tlast, own_tvalid, own_tready;
wire                  unused_tx_user, unused_tx_dropped;

dibber_frame_fifo #(.DATA_WIDTH(DATA_WIDTH), .DEPTH(TX_DEPTH), .DROP(0)) tx_fifo (
    .clk(clk), .rst(rst),
    .s_tdata(wide_tdata), .s_tkeep(wide_tkeep), .s_tlast(wide_tlast), .s_tuser(1'b0),
    .s_tvalid(wide_tvalid), .s_tready(wide_tready), .s_keep(!wide_terror),
    .m_tdata(own_tdata), .m_tkeep(own_tkeep), .m_tlast(own_tlast), .m_tuser(unused_tx_user),
    .m_tvalid(own_tvalid), .m_tready(own_tready), .dropped(unused_tx_dropped)
);

reg  begun;    // a frame has begun
reg  from_own;  // it is the core's
reg  own_turn;  // if both offer a frame, the core's goes first

wire own = begun ? from_own : own_tvalid && (own_turn || !s_tx_tvalid);

assign m_tx_tdata  = own ? own_tdata    : s_tx_tdata;
assign m_tx_tkeep  = own ? own_tkeep    : s_tx_tkeep;
assign m_tx_tlast  = own ? own_tlast    : s_tx_tlast;
assign m_tx_tuser  = own ? CORE_TX_USER : s_tx_tuser;
assign m_tx_tvalid = own ? own_tvalid   : s_tx_tvalid;
assign s_tx_tready = !own && m_tx_tready;
assign own_tready  = own && m_tx_tready;

always @(posedge clk) begin
    // AXI-stream: what was offered must stand, so the choice stands from the first offer on.
    if (m_tx_tvalid) begin
        begun   <= !(m_tx_tready && m_tx_tlast);
        from_own <= own;
        own_turn <= !own;
    end
    if (rst) begin
        begun   <= 1'b0;
        own_turn <= 1'b0;
    end
end

// Receiving ---------------------------------------------------------------------------------------

// Bytes 12 and 13, and 16 and 17 if there is a tag. They are in this beat, or were seen before.
localparam [15:0] TAG = 16'h8100;
localparam [31:0] FIRST_BEAT  = 12/KEEP_WIDTH;
localparam [31:0] SECOND_BEAT = 16/KEEP_WIDTH;

reg  [1:0] beat;      // number of the beat, up to 3
reg        was_tag;   // bytes 12 and 13 are TAG
reg        was_type;  // the EtherType is ours

wire [15:0] first_type  = s_rx_tdata[8*(12%KEEP_WIDTH) +: 16];
wire [15:0] second_type = s_rx_tdata[8*(16%KEEP_WIDTH) +: 16];
// Network order: the higher byte comes first.
wire first_is_type  = first_type  == {ETHERTYPE[7:0], ETHERTYPE[15:8]} && s_rx_tkeep[13%KEEP_WIDTH];
wire first_is_tag   = first_type  == {TAG[7:0], TAG[15:8]};
wire second_is_type = second_type == {ETHERTYPE[7:0], ETHERTYPE[15:8]} && s_rx_tkeep[17%KEEP_WIDTH];
wire at_first  = {30'd0, beat} == FIRST_BEAT;
wire at_second = {30'd0, beat} == SECOND_BEAT;
wire is_tag  = at_first ? first_is_tag : was_tag && beat != 0;
wire is_type = TAGGED != 0
    ? (at_second ? second_is_type && is_tag : was_type && beat != 0)
    : (at_first  ? first_is_type            : was_type && beat != 0);

assign s_rx_tready = 1'b1;

always @(posedge clk) begin
    if (s_rx_tvalid) begin
        was_tag  <= is_tag;
        was_type <= is_type;
        beat     <= s_rx_tlast ? 2'd0 : beat == 2'd3 ? 2'd3 : beat + 2'd1;
    end
    if (rst)
        beat <= 2'd0;
end

wire unused_nic_ready, unused_core_ready;

dibber_frame_fifo #(
    .DATA_WIDTH(DATA_WIDTH), .USER_WIDTH(RX_USER_WIDTH), .DEPTH(RX_NIC_DEPTH)
) nic_fifo (
    .clk(clk), .rst(rst),
    .s_tdata(s_rx_tdata), .s_tkeep(s_rx_tkeep), .s_tlast(s_rx_tlast), .s_tuser(s_rx_tuser),
    .s_tvalid(s_rx_tvalid), .s_tready(unused_nic_ready), .s_keep(!is_type),
    .m_tdata(m_rx_tdata), .m_tkeep(m_rx_tkeep), .m_tlast(m_rx_tlast), .m_tuser(m_rx_tuser),
    .m_tvalid(m_rx_tvalid), .m_tready(m_rx_tready), .dropped(nic_dropped)
);

wire [DATA_WIDTH-1:0] ours_tdata;
wire [KEEP_WIDTH-1:0] ours_tkeep;
wire                  ours_tlast, ours_terror, ours_tvalid, ours_tready;

dibber_frame_fifo #(.DATA_WIDTH(DATA_WIDTH), .DEPTH(RX_CORE_DEPTH)) core_fifo (
    .clk(clk), .rst(rst),
    .s_tdata(s_rx_tdata), .s_tkeep(s_rx_tkeep), .s_tlast(s_rx_tlast), .s_tuser(s_rx_tuser[0]),
    .s_tvalid(s_rx_tvalid), .s_tready(unused_core_ready), .s_keep(is_type),
    .m_tdata(ours_tdata), .m_tkeep(ours_tkeep), .m_tlast(ours_tlast), .m_tuser(ours_terror),
    .m_tvalid(ours_tvalid), .m_tready(ours_tready), .dropped(core_dropped)
);

dibber_frame_narrow #(.DATA_WIDTH(DATA_WIDTH)) narrow (
    .clk(clk), .rst(rst),
    .s_tdata(ours_tdata), .s_tkeep(ours_tkeep), .s_tlast(ours_tlast), .s_terror(ours_terror),
    .s_tvalid(ours_tvalid), .s_tready(ours_tready),
    .m_data(core_rx_data), .m_bytes(core_rx_bytes), .m_last(core_rx_last),
    .m_error(core_rx_error), .m_valid(core_rx_valid), .m_ready(1'b1)
);

endmodule

`resetall
