// SPDX-License-Identifier: BSD-2-Clause
//
// A field of another width: filled up with zeros, or without its high bits.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module dibber_resize #(
    parameter FROM = 16,
    parameter TO = 16
) (
    input  wire [FROM-1:0] from,
    output wire [TO-1:0]   to
);

generate
    if (TO > FROM) begin : fill
        assign to = {{TO-FROM{1'b0}}, from};
    end else begin : cut
        assign to = from[TO-1:0];
    end
endgenerate

endmodule

`resetall
