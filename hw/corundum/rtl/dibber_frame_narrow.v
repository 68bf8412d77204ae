// SPDX-License-Identifier: BSD-2-Clause
//
// Beats of DATA_WIDTH bits become words of 64 bits. `m_bytes` are the bytes of the word, 8 except
// in the last one. `s_terror` of the last beat is `m_error` in the last word.
//
// Cycles: 1 from a beat to its first word, a word a cycle.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module dibber_frame_narrow #(
    parameter DATA_WIDTH = 128,
    parameter KEEP_WIDTH = DATA_WIDTH/8
) (
    input  wire                  clk,
    input  wire                  rst,

    input  wire [DATA_WIDTH-1:0] s_tdata,
    input  wire [KEEP_WIDTH-1:0] s_tkeep,
    input  wire                  s_tlast,
    input  wire                  s_terror,
    input  wire                  s_tvalid,
    output wire                  s_tready,

    output wire [63:0]           m_data,
    output reg  [3:0]            m_bytes,
    output wire                  m_last,
    output wire                  m_error,
    output wire                  m_valid,
    input  wire                  m_ready
);

reg  [DATA_WIDTH-1:0] data;
reg  [KEEP_WIDTH-1:0] keep;
reg                   last;
reg                   error;

// The bytes of a beat are contiguous from byte 0, so a word of a beat is the last one if the next
// word has no byte.
wire [KEEP_WIDTH-1:0] beyond = keep >> 8;
wire                  ends   = !beyond[0];

assign m_valid  = keep[0];
assign m_data   = data[63:0];
assign m_last   = last && ends;
assign m_error  = error && m_last;
assign s_tready = !m_valid || (m_ready && ends);

integer n;

always @* begin
    m_bytes = 4'd0;
    for (n = 0; n < 8; n = n + 1)
        if (keep[n])
            m_bytes = n[3:0] + 4'd1;
end

always @(posedge clk) begin
    if (s_tready) begin
        data  <= s_tdata;
        keep  <= s_tvalid ? s_tkeep : {KEEP_WIDTH{1'b0}};
        last  <= s_tlast;
        error <= s_terror;
    end else if (m_ready) begin
        data <= data >> 64;
        keep <= beyond;
    end
    if (rst)
        keep <= {KEEP_WIDTH{1'b0}};
end

endmodule

`resetall
