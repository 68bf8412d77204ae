// SPDX-License-Identifier: BSD-2-Clause
//
// FIFO of whole frames: a frame comes out when all of it is here, so it has no holes.
//
// `s_keep` is read in the last beat of a frame: 0 forgets the frame. A frame that finds no room is
// forgotten as a whole, and `dropped` pulses, if DROP is 1. Then `s_tready` is constant 1. If DROP
// is 0, the frame waits for room; only one that can never fit is forgotten.
//
//   DATA_WIDTH  bits of a beat
//   USER_WIDTH  bits of tuser
//   DEPTH       beats, a power of two
//
// Cycles: 2 from the last beat of a frame to its first one, a beat a cycle.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module dibber_frame_fifo #(
    parameter DATA_WIDTH = 128,
    parameter USER_WIDTH = 1,
    parameter DEPTH = 1024,
    parameter DROP = 1,
    parameter KEEP_WIDTH = DATA_WIDTH/8
) (
    input  wire                  clk,
    input  wire                  rst,

    input  wire [DATA_WIDTH-1:0] s_tdata,
    input  wire [KEEP_WIDTH-1:0] s_tkeep,
    input  wire                  s_tlast,
    input  wire [USER_WIDTH-1:0] s_tuser,
    input  wire                  s_tvalid,
    output wire                  s_tready,
    input  wire                  s_keep,

    output reg  [DATA_WIDTH-1:0] m_tdata,
    output reg  [KEEP_WIDTH-1:0] m_tkeep,
    output reg                   m_tlast,
    output reg  [USER_WIDTH-1:0] m_tuser,
    output reg                   m_tvalid,
    input  wire                  m_tready,

    output reg                   dropped
);

localparam BITS = $clog2(DEPTH);
localparam WORD = DATA_WIDTH + KEEP_WIDTH + 1 + USER_WIDTH;

reg [WORD-1:0] memory [0:DEPTH-1];

// One bit more than an address tells a full FIFO from an empty one.
reg [BITS:0] produce;    // the next beat's place
reg [BITS:0] committed;  // end of the last whole frame
reg [BITS:0] consume;
reg          lost;       // the frame at `s` found no room

wire full     = produce == (consume ^ {1'b1, {BITS{1'b0}}});
wire hopeless = full && committed == consume && !m_tvalid;  // nothing will make room
wire loses    = full && (DROP != 0 || hopeless);
wire readable = consume != committed;
wire step     = !m_tvalid || m_tready;

assign s_tready = DROP != 0 || !full || lost || hopeless;

always @(posedge clk) begin
    if (s_tvalid && s_tready && !full && !lost)
        memory[produce[BITS-1:0]] <= {s_tuser, s_tlast, s_tkeep, s_tdata};
    if (step)
        {m_tuser, m_tlast, m_tkeep, m_tdata} <= memory[consume[BITS-1:0]];
end

always @(posedge clk) begin
    dropped <= 1'b0;
    if (s_tvalid && s_tready) begin
        if (lost || loses) begin
            lost <= !s_tlast;
            if (s_tlast) begin
                produce <= committed;
                dropped <= s_keep;
            end
        end else if (s_tlast && !s_keep) begin
            produce <= committed;
        end else begin
            produce <= produce + 1'b1;
            if (s_tlast)
                committed <= produce + 1'b1;
        end
    end
    if (step) begin
        m_tvalid <= readable;
        if (readable)
            consume <= consume + 1'b1;
    end
    if (rst) begin
        produce   <= 0;
        committed <= 0;
        consume   <= 0;
        lost      <= 1'b0;
        m_tvalid  <= 1'b0;
        dropped   <= 1'b0;
    end
end

endmodule

`resetall
