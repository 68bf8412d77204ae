// SPDX-License-Identifier: BSD-2-Clause
//
// Words of 64 bits become beats of DATA_WIDTH bits. `s_bytes` are the bytes of the last word, 1 to
// 8. `s_error` in the last word is tuser's bit 0 in the last beat.
//
// Cycles: 1 from the last word of a beat to the beat, a word a cycle.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module dibber_frame_widen #(
    parameter DATA_WIDTH = 128,
    parameter KEEP_WIDTH = DATA_WIDTH/8
) (
    input  wire                  clk,
    input  wire                  rst,

    input  wire [63:0]           s_data,
    input  wire [3:0]            s_bytes,
    input  wire                  s_last,
    input  wire                  s_error,
    input  wire                  s_valid,
    output wire                  s_ready,

    output reg  [DATA_WIDTH-1:0] m_tdata,
    output reg  [KEEP_WIDTH-1:0] m_tkeep,
    output reg                   m_tlast,
    output reg                   m_terror,
    output reg                   m_tvalid,
    input  wire                  m_tready
);

localparam WORDS = DATA_WIDTH/64;
localparam BITS  = WORDS > 1 ? $clog2(WORDS) : 1;

reg  [BITS-1:0] word;  // place of the next word in its beat

wire       ends = s_last || {{32-BITS{1'b0}}, word} == WORDS - 1;
wire [7:0] keep = s_last ? 8'hff >> (4'd8 - s_bytes) : 8'hff;

assign s_ready = !m_tvalid || m_tready;

always @(posedge clk) begin
    if (s_ready) begin
        m_tvalid <= s_valid && ends;
        m_tlast  <= s_last;
        m_terror <= s_last && s_error;
        if (s_valid) begin
            if (word == 0) begin
                m_tkeep <= {{KEEP_WIDTH-8{1'b0}}, keep};
                m_tdata <= {{DATA_WIDTH-64{1'b0}}, s_data};
            end else begin
                m_tkeep[8*word +: 8]   <= keep;
                m_tdata[64*word +: 64] <= s_data;
            end
            word <= ends ? 0 : word + 1'b1;
        end
    end
    if (rst) begin
        word     <= 0;
        m_tvalid <= 1'b0;
    end
end

endmodule

`resetall
