// SPDX-License-Identifier: BSD-2-Clause
//
// Dibber inside Corundum's application block: the generated core, and its frames on one port.
//
//   AXI-lite ──▶ core ◀──▶ DMA descriptors, RAM
//                  ▲
//                  ▼
//   NIC ◀──▶ dibber_frame_path ◀──▶ MAC     of port PORT; the frames of other ports pass
//
// The names of ports are Corundum's. The block mqnic_app_block, which hw/corundum/generate.py
// writes, passes on what does not come here.
//
//   PORT          port of the NIC that Dibber shares
//   ETHERTYPE, TAGGED : see dibber_frame_path

`resetall
`timescale 1ns / 1ps
`default_nettype none

module dibber_app #(
    parameter PORT = 0,
    parameter [15:0] ETHERTYPE = 16'h88b5,
    parameter TAGGED = 0,
    parameter PORT_COUNT = 1,
    parameter PTP_TS_WIDTH = 96,
    parameter TX_TAG_WIDTH = 16,
    parameter DMA_ADDR_WIDTH = 64,
    parameter DMA_LEN_WIDTH = 16,
    parameter DMA_TAG_WIDTH = 16,
    parameter RAM_ADDR_WIDTH = 16,
    parameter RAM_SEG_COUNT = 2,
    parameter RAM_SEG_DATA_WIDTH = 256,
    parameter RAM_SEG_BE_WIDTH = RAM_SEG_DATA_WIDTH/8,
    parameter RAM_SEG_ADDR_WIDTH = 10,
    parameter AXIL_APP_CTRL_ADDR_WIDTH = 24,
    parameter AXIS_SYNC_DATA_WIDTH = 128,
    parameter AXIS_SYNC_KEEP_WIDTH = AXIS_SYNC_DATA_WIDTH/8,
    parameter AXIS_SYNC_TX_USER_WIDTH = TX_TAG_WIDTH + 1,
    parameter AXIS_SYNC_RX_USER_WIDTH = PTP_TS_WIDTH + 1,
    parameter STAT_INC_WIDTH = 24,
    parameter STAT_ID_WIDTH = 12
) (
    input  wire                                          clk,
    input  wire                                          rst,

    // BAR 0.
    input  wire [AXIL_APP_CTRL_ADDR_WIDTH-1:0]           s_axil_app_ctrl_awaddr,
    input  wire                                          s_axil_app_ctrl_awvalid,
    output wire                                          s_axil_app_ctrl_awready,
    input  wire [31:0]                                   s_axil_app_ctrl_wdata,
    input  wire [3:0]                                    s_axil_app_ctrl_wstrb,
    input  wire                                          s_axil_app_ctrl_wvalid,
    output wire                                          s_axil_app_ctrl_wready,
    output wire [1:0]                                    s_axil_app_ctrl_bresp,
    output wire                                          s_axil_app_ctrl_bvalid,
    input  wire                                          s_axil_app_ctrl_bready,
    input  wire [AXIL_APP_CTRL_ADDR_WIDTH-1:0]           s_axil_app_ctrl_araddr,
    input  wire                                          s_axil_app_ctrl_arvalid,
    output wire                                          s_axil_app_ctrl_arready,
    output wire [31:0]                                   s_axil_app_ctrl_rdata,
    output wire [1:0]                                    s_axil_app_ctrl_rresp,
    output wire                                          s_axil_app_ctrl_rvalid,
    input  wire                                          s_axil_app_ctrl_rready,

    // Descriptors of the DMA stream `data`.
    output wire [DMA_ADDR_WIDTH-1:0]                     m_axis_data_dma_read_desc_dma_addr,
    output wire [RAM_ADDR_WIDTH-1:0]                     m_axis_data_dma_read_desc_ram_addr,
    output wire [DMA_LEN_WIDTH-1:0]                      m_axis_data_dma_read_desc_len,
    output wire [DMA_TAG_WIDTH-1:0]                      m_axis_data_dma_read_desc_tag,
    output wire                                          m_axis_data_dma_read_desc_valid,
    input  wire                                          m_axis_data_dma_read_desc_ready,
    input  wire [DMA_TAG_WIDTH-1:0]                      s_axis_data_dma_read_desc_status_tag,
    input  wire [3:0]                                    s_axis_data_dma_read_desc_status_error,
    input  wire                                          s_axis_data_dma_read_desc_status_valid,
    output wire [DMA_ADDR_WIDTH-1:0]                     m_axis_data_dma_write_desc_dma_addr,
    output wire [RAM_ADDR_WIDTH-1:0]                     m_axis_data_dma_write_desc_ram_addr,
    output wire [DMA_LEN_WIDTH-1:0]                      m_axis_data_dma_write_desc_len,
    output wire [DMA_TAG_WIDTH-1:0]                      m_axis_data_dma_write_desc_tag,
    output wire                                          m_axis_data_dma_write_desc_valid,
    input  wire                                          m_axis_data_dma_write_desc_ready,
    input  wire [DMA_TAG_WIDTH-1:0]                      s_axis_data_dma_write_desc_status_tag,
    input  wire [3:0]                                    s_axis_data_dma_write_desc_status_error,
    input  wire                                          s_axis_data_dma_write_desc_status_valid,

    // Its RAM.
    input  wire [RAM_SEG_COUNT*RAM_SEG_BE_WIDTH-1:0]     data_dma_ram_wr_cmd_be,
    input  wire [RAM_SEG_COUNT*RAM_SEG_ADDR_WIDTH-1:0]   data_dma_ram_wr_cmd_addr,
    input  wire [RAM_SEG_COUNT*RAM_SEG_DATA_WIDTH-1:0]   data_dma_ram_wr_cmd_data,
    input  wire [RAM_SEG_COUNT-1:0]                      data_dma_ram_wr_cmd_valid,
    output wire [RAM_SEG_COUNT-1:0]                      data_dma_ram_wr_cmd_ready,
    output wire [RAM_SEG_COUNT-1:0]                      data_dma_ram_wr_done,
    input  wire [RAM_SEG_COUNT*RAM_SEG_ADDR_WIDTH-1:0]   data_dma_ram_rd_cmd_addr,
    input  wire [RAM_SEG_COUNT-1:0]                      data_dma_ram_rd_cmd_valid,
    output wire [RAM_SEG_COUNT-1:0]                      data_dma_ram_rd_cmd_ready,
    output wire [RAM_SEG_COUNT*RAM_SEG_DATA_WIDTH-1:0]   data_dma_ram_rd_resp_data,
    output wire [RAM_SEG_COUNT-1:0]                      data_dma_ram_rd_resp_valid,
    input  wire [RAM_SEG_COUNT-1:0]                      data_dma_ram_rd_resp_ready,

    // Frames of all ports, in the clock `clk`.
    input  wire [PORT_COUNT*AXIS_SYNC_DATA_WIDTH-1:0]    s_axis_sync_tx_tdata,
    input  wire [PORT_COUNT*AXIS_SYNC_KEEP_WIDTH-1:0]    s_axis_sync_tx_tkeep,
    input  wire [PORT_COUNT-1:0]                         s_axis_sync_tx_tvalid,
    output wire [PORT_COUNT-1:0]                         s_axis_sync_tx_tready,
    input  wire [PORT_COUNT-1:0]                         s_axis_sync_tx_tlast,
    input  wire [PORT_COUNT*AXIS_SYNC_TX_USER_WIDTH-1:0] s_axis_sync_tx_tuser,
    output wire [PORT_COUNT*AXIS_SYNC_DATA_WIDTH-1:0]    m_axis_sync_tx_tdata,
    output wire [PORT_COUNT*AXIS_SYNC_KEEP_WIDTH-1:0]    m_axis_sync_tx_tkeep,
    output wire [PORT_COUNT-1:0]                         m_axis_sync_tx_tvalid,
    input  wire [PORT_COUNT-1:0]                         m_axis_sync_tx_tready,
    output wire [PORT_COUNT-1:0]                         m_axis_sync_tx_tlast,
    output wire [PORT_COUNT*AXIS_SYNC_TX_USER_WIDTH-1:0] m_axis_sync_tx_tuser,
    input  wire [PORT_COUNT*PTP_TS_WIDTH-1:0]            s_axis_sync_tx_cpl_ts,
    input  wire [PORT_COUNT*TX_TAG_WIDTH-1:0]            s_axis_sync_tx_cpl_tag,
    input  wire [PORT_COUNT-1:0]                         s_axis_sync_tx_cpl_valid,
    output wire [PORT_COUNT-1:0]                         s_axis_sync_tx_cpl_ready,
    output wire [PORT_COUNT*PTP_TS_WIDTH-1:0]            m_axis_sync_tx_cpl_ts,
    output wire [PORT_COUNT*TX_TAG_WIDTH-1:0]            m_axis_sync_tx_cpl_tag,
    output wire [PORT_COUNT-1:0]                         m_axis_sync_tx_cpl_valid,
    input  wire [PORT_COUNT-1:0]                         m_axis_sync_tx_cpl_ready,
    input  wire [PORT_COUNT*AXIS_SYNC_DATA_WIDTH-1:0]    s_axis_sync_rx_tdata,
    input  wire [PORT_COUNT*AXIS_SYNC_KEEP_WIDTH-1:0]    s_axis_sync_rx_tkeep,
    input  wire [PORT_COUNT-1:0]                         s_axis_sync_rx_tvalid,
    output wire [PORT_COUNT-1:0]                         s_axis_sync_rx_tready,
    input  wire [PORT_COUNT-1:0]                         s_axis_sync_rx_tlast,
    input  wire [PORT_COUNT*AXIS_SYNC_RX_USER_WIDTH-1:0] s_axis_sync_rx_tuser,
    output wire [PORT_COUNT*AXIS_SYNC_DATA_WIDTH-1:0]    m_axis_sync_rx_tdata,
    output wire [PORT_COUNT*AXIS_SYNC_KEEP_WIDTH-1:0]    m_axis_sync_rx_tkeep,
    output wire [PORT_COUNT-1:0]                         m_axis_sync_rx_tvalid,
    input  wire [PORT_COUNT-1:0]                         m_axis_sync_rx_tready,
    output wire [PORT_COUNT-1:0]                         m_axis_sync_rx_tlast,
    output wire [PORT_COUNT*AXIS_SYNC_RX_USER_WIDTH-1:0] m_axis_sync_rx_tuser,

    // Statistics: 0 counts frames of the NIC that were dropped, 1 those of Dibber.
    output wire [STAT_INC_WIDTH-1:0]                     m_axis_stat_tdata,
    output wire [STAT_ID_WIDTH-1:0]                      m_axis_stat_tid,
    output wire                                          m_axis_stat_tvalid,
    input  wire                                          m_axis_stat_tready
);

// Core --------------------------------------------------------------------------------------------

// The core's own widths. Fields of other widths are filled up with zeros, or cut where the core has
// no higher bits: its tags have 7 bits, its RAM 32 KiB.
localparam CORE_SEG_ADDR = 16;

wire [63:0] read_dma_addr, write_dma_addr, core_tx_data, core_rx_data;
wire [15:0] read_ram_addr, write_ram_addr, read_len, write_len, read_tag, write_tag;
wire [3:0]  core_tx_bytes, core_rx_bytes;
wire        core_tx_last, core_tx_valid, core_tx_ready;
wire        core_rx_last, core_rx_error, core_rx_valid;

wire [RAM_SEG_COUNT*CORE_SEG_ADDR-1:0] wr_cmd_addr, rd_cmd_addr;

genvar n;

generate
    for (n = 0; n < RAM_SEG_COUNT; n = n + 1) begin : segments
        dibber_resize #(.FROM(RAM_SEG_ADDR_WIDTH), .TO(CORE_SEG_ADDR)) write_address (
            .from(data_dma_ram_wr_cmd_addr[n*RAM_SEG_ADDR_WIDTH +: RAM_SEG_ADDR_WIDTH]),
            .to(wr_cmd_addr[n*CORE_SEG_ADDR +: CORE_SEG_ADDR])
        );
        dibber_resize #(.FROM(RAM_SEG_ADDR_WIDTH), .TO(CORE_SEG_ADDR)) read_address (
            .from(data_dma_ram_rd_cmd_addr[n*RAM_SEG_ADDR_WIDTH +: RAM_SEG_ADDR_WIDTH]),
            .to(rd_cmd_addr[n*CORE_SEG_ADDR +: CORE_SEG_ADDR])
        );
    end
endgenerate

wire [23:0] awaddr, araddr;
wire [15:0] read_status_tag, write_status_tag;

dibber_resize #(.FROM(AXIL_APP_CTRL_ADDR_WIDTH), .TO(24)) resize_aw (.from(s_axil_app_ctrl_awaddr), .to(awaddr));
dibber_resize #(.FROM(AXIL_APP_CTRL_ADDR_WIDTH), .TO(24)) resize_ar (.from(s_axil_app_ctrl_araddr), .to(araddr));
dibber_resize #(.FROM(64), .TO(DMA_ADDR_WIDTH)) resize_rd (.from(read_dma_addr), .to(m_axis_data_dma_read_desc_dma_addr));
dibber_resize #(.FROM(64), .TO(DMA_ADDR_WIDTH)) resize_wd (.from(write_dma_addr), .to(m_axis_data_dma_write_desc_dma_addr));
dibber_resize #(.FROM(16), .TO(RAM_ADDR_WIDTH)) resize_rr (.from(read_ram_addr), .to(m_axis_data_dma_read_desc_ram_addr));
dibber_resize #(.FROM(16), .TO(RAM_ADDR_WIDTH)) resize_wr (.from(write_ram_addr), .to(m_axis_data_dma_write_desc_ram_addr));
dibber_resize #(.FROM(16), .TO(DMA_LEN_WIDTH)) resize_rl (.from(read_len), .to(m_axis_data_dma_read_desc_len));
dibber_resize #(.FROM(16), .TO(DMA_LEN_WIDTH)) resize_wl (.from(write_len), .to(m_axis_data_dma_write_desc_len));
dibber_resize #(.FROM(16), .TO(DMA_TAG_WIDTH)) resize_rt (.from(read_tag), .to(m_axis_data_dma_read_desc_tag));
dibber_resize #(.FROM(16), .TO(DMA_TAG_WIDTH)) resize_wt (.from(write_tag), .to(m_axis_data_dma_write_desc_tag));
dibber_resize #(.FROM(DMA_TAG_WIDTH), .TO(16)) resize_rs (.from(s_axis_data_dma_read_desc_status_tag), .to(read_status_tag));
dibber_resize #(.FROM(DMA_TAG_WIDTH), .TO(16)) resize_ws (.from(s_axis_data_dma_write_desc_status_tag), .to(write_status_tag));

dibber_corundum_core core (
    .sys_clk(clk),
    .sys_rst(rst),
    .axil_awaddr(awaddr),
    .axil_awvalid(s_axil_app_ctrl_awvalid),
    .axil_awready(s_axil_app_ctrl_awready),
    .axil_wdata(s_axil_app_ctrl_wdata),
    .axil_wstrb(s_axil_app_ctrl_wstrb),
    .axil_wvalid(s_axil_app_ctrl_wvalid),
    .axil_wready(s_axil_app_ctrl_wready),
    .axil_bresp(s_axil_app_ctrl_bresp),
    .axil_bvalid(s_axil_app_ctrl_bvalid),
    .axil_bready(s_axil_app_ctrl_bready),
    .axil_araddr(araddr),
    .axil_arvalid(s_axil_app_ctrl_arvalid),
    .axil_arready(s_axil_app_ctrl_arready),
    .axil_rdata(s_axil_app_ctrl_rdata),
    .axil_rresp(s_axil_app_ctrl_rresp),
    .axil_rvalid(s_axil_app_ctrl_rvalid),
    .axil_rready(s_axil_app_ctrl_rready),
    .read_desc_dma_addr(read_dma_addr),
    .read_desc_ram_addr(read_ram_addr),
    .read_desc_len(read_len),
    .read_desc_tag(read_tag),
    .read_desc_valid(m_axis_data_dma_read_desc_valid),
    .read_desc_ready(m_axis_data_dma_read_desc_ready),
    .read_status_tag(read_status_tag),
    .read_status_error(s_axis_data_dma_read_desc_status_error),
    .read_status_valid(s_axis_data_dma_read_desc_status_valid),
    .write_desc_dma_addr(write_dma_addr),
    .write_desc_ram_addr(write_ram_addr),
    .write_desc_len(write_len),
    .write_desc_tag(write_tag),
    .write_desc_valid(m_axis_data_dma_write_desc_valid),
    .write_desc_ready(m_axis_data_dma_write_desc_ready),
    .write_status_tag(write_status_tag),
    .write_status_error(s_axis_data_dma_write_desc_status_error),
    .write_status_valid(s_axis_data_dma_write_desc_status_valid),
    .ram_wr_cmd_be(data_dma_ram_wr_cmd_be),
    .ram_wr_cmd_addr(wr_cmd_addr),
    .ram_wr_cmd_data(data_dma_ram_wr_cmd_data),
    .ram_wr_cmd_valid(data_dma_ram_wr_cmd_valid),
    .ram_wr_cmd_ready(data_dma_ram_wr_cmd_ready),
    .ram_wr_done(data_dma_ram_wr_done),
    .ram_rd_cmd_addr(rd_cmd_addr),
    .ram_rd_cmd_valid(data_dma_ram_rd_cmd_valid),
    .ram_rd_cmd_ready(data_dma_ram_rd_cmd_ready),
    .ram_rd_resp_data(data_dma_ram_rd_resp_data),
    .ram_rd_resp_valid(data_dma_ram_rd_resp_valid),
    .ram_rd_resp_ready(data_dma_ram_rd_resp_ready),
    .frame_tx_data(core_tx_data),
    .frame_tx_bytes(core_tx_bytes),
    .frame_tx_last(core_tx_last),
    .frame_tx_valid(core_tx_valid),
    .frame_tx_ready(core_tx_ready),
    .frame_rx_data(core_rx_data),
    .frame_rx_bytes(core_rx_bytes),
    .frame_rx_last(core_rx_last),
    .frame_rx_error(core_rx_error),
    .frame_rx_valid(core_rx_valid)
);

// Frames ------------------------------------------------------------------------------------------

wire [PORT_COUNT-1:0] nic_dropped, core_dropped;

generate
    for (n = 0; n < PORT_COUNT; n = n + 1) begin : ports
        assign m_axis_sync_tx_cpl_ts[n*PTP_TS_WIDTH +: PTP_TS_WIDTH]  = s_axis_sync_tx_cpl_ts[n*PTP_TS_WIDTH +: PTP_TS_WIDTH];
        assign m_axis_sync_tx_cpl_tag[n*TX_TAG_WIDTH +: TX_TAG_WIDTH] = s_axis_sync_tx_cpl_tag[n*TX_TAG_WIDTH +: TX_TAG_WIDTH];

        if (n == PORT) begin : shared
            // A tag with its top bit clear is the application's. Dibber needs no timestamps.
            wire own_tag = !s_axis_sync_tx_cpl_tag[n*TX_TAG_WIDTH + TX_TAG_WIDTH - 1];

            assign m_axis_sync_tx_cpl_valid[n] = s_axis_sync_tx_cpl_valid[n] && !own_tag;
            assign s_axis_sync_tx_cpl_ready[n] = m_axis_sync_tx_cpl_ready[n] || own_tag;

            dibber_frame_path #(
                .DATA_WIDTH(AXIS_SYNC_DATA_WIDTH),
                .TX_USER_WIDTH(AXIS_SYNC_TX_USER_WIDTH),
                .RX_USER_WIDTH(AXIS_SYNC_RX_USER_WIDTH),
                .ETHERTYPE(ETHERTYPE),
                .TAGGED(TAGGED)
            ) path (
                .clk(clk), .rst(rst),
                .s_tx_tdata(s_axis_sync_tx_tdata[n*AXIS_SYNC_DATA_WIDTH +: AXIS_SYNC_DATA_WIDTH]),
                .s_tx_tkeep(s_axis_sync_tx_tkeep[n*AXIS_SYNC_KEEP_WIDTH +: AXIS_SYNC_KEEP_WIDTH]),
                .s_tx_tlast(s_axis_sync_tx_tlast[n]),
                .s_tx_tuser(s_axis_sync_tx_tuser[n*AXIS_SYNC_TX_USER_WIDTH +: AXIS_SYNC_TX_USER_WIDTH]),
                .s_tx_tvalid(s_axis_sync_tx_tvalid[n]), .s_tx_tready(s_axis_sync_tx_tready[n]),
                .m_tx_tdata(m_axis_sync_tx_tdata[n*AXIS_SYNC_DATA_WIDTH +: AXIS_SYNC_DATA_WIDTH]),
                .m_tx_tkeep(m_axis_sync_tx_tkeep[n*AXIS_SYNC_KEEP_WIDTH +: AXIS_SYNC_KEEP_WIDTH]),
                .m_tx_tlast(m_axis_sync_tx_tlast[n]),
                .m_tx_tuser(m_axis_sync_tx_tuser[n*AXIS_SYNC_TX_USER_WIDTH +: AXIS_SYNC_TX_USER_WIDTH]),
                .m_tx_tvalid(m_axis_sync_tx_tvalid[n]), .m_tx_tready(m_axis_sync_tx_tready[n]),
                .s_rx_tdata(s_axis_sync_rx_tdata[n*AXIS_SYNC_DATA_WIDTH +: AXIS_SYNC_DATA_WIDTH]),
                .s_rx_tkeep(s_axis_sync_rx_tkeep[n*AXIS_SYNC_KEEP_WIDTH +: AXIS_SYNC_KEEP_WIDTH]),
                .s_rx_tlast(s_axis_sync_rx_tlast[n]),
                .s_rx_tuser(s_axis_sync_rx_tuser[n*AXIS_SYNC_RX_USER_WIDTH +: AXIS_SYNC_RX_USER_WIDTH]),
                .s_rx_tvalid(s_axis_sync_rx_tvalid[n]), .s_rx_tready(s_axis_sync_rx_tready[n]),
                .m_rx_tdata(m_axis_sync_rx_tdata[n*AXIS_SYNC_DATA_WIDTH +: AXIS_SYNC_DATA_WIDTH]),
                .m_rx_tkeep(m_axis_sync_rx_tkeep[n*AXIS_SYNC_KEEP_WIDTH +: AXIS_SYNC_KEEP_WIDTH]),
                .m_rx_tlast(m_axis_sync_rx_tlast[n]),
                .m_rx_tuser(m_axis_sync_rx_tuser[n*AXIS_SYNC_RX_USER_WIDTH +: AXIS_SYNC_RX_USER_WIDTH]),
                .m_rx_tvalid(m_axis_sync_rx_tvalid[n]), .m_rx_tready(m_axis_sync_rx_tready[n]),
                .core_tx_data(core_tx_data), .core_tx_bytes(core_tx_bytes),
                .core_tx_last(core_tx_last), .core_tx_error(1'b0),
                .core_tx_valid(core_tx_valid), .core_tx_ready(core_tx_ready),
                .core_rx_data(core_rx_data), .core_rx_bytes(core_rx_bytes),
                .core_rx_last(core_rx_last), .core_rx_error(core_rx_error),
                .core_rx_valid(core_rx_valid),
                .nic_dropped(nic_dropped[n]), .core_dropped(core_dropped[n])
            );
        end else begin : passed
            assign m_axis_sync_tx_cpl_valid[n] = s_axis_sync_tx_cpl_valid[n];
            assign s_axis_sync_tx_cpl_ready[n] = m_axis_sync_tx_cpl_ready[n];
            assign m_axis_sync_tx_tdata[n*AXIS_SYNC_DATA_WIDTH +: AXIS_SYNC_DATA_WIDTH] = s_axis_sync_tx_tdata[n*AXIS_SYNC_DATA_WIDTH +: AXIS_SYNC_DATA_WIDTH];
            assign m_axis_sync_tx_tkeep[n*AXIS_SYNC_KEEP_WIDTH +: AXIS_SYNC_KEEP_WIDTH] = s_axis_sync_tx_tkeep[n*AXIS_SYNC_KEEP_WIDTH +: AXIS_SYNC_KEEP_WIDTH];
            assign m_axis_sync_tx_tuser[n*AXIS_SYNC_TX_USER_WIDTH +: AXIS_SYNC_TX_USER_WIDTH] = s_axis_sync_tx_tuser[n*AXIS_SYNC_TX_USER_WIDTH +: AXIS_SYNC_TX_USER_WIDTH];
            assign m_axis_sync_tx_tlast[n]  = s_axis_sync_tx_tlast[n];
            assign m_axis_sync_tx_tvalid[n] = s_axis_sync_tx_tvalid[n];
            assign s_axis_sync_tx_tready[n] = m_axis_sync_tx_tready[n];
            assign m_axis_sync_rx_tdata[n*AXIS_SYNC_DATA_WIDTH +: AXIS_SYNC_DATA_WIDTH] = s_axis_sync_rx_tdata[n*AXIS_SYNC_DATA_WIDTH +: AXIS_SYNC_DATA_WIDTH];
            assign m_axis_sync_rx_tkeep[n*AXIS_SYNC_KEEP_WIDTH +: AXIS_SYNC_KEEP_WIDTH] = s_axis_sync_rx_tkeep[n*AXIS_SYNC_KEEP_WIDTH +: AXIS_SYNC_KEEP_WIDTH];
            assign m_axis_sync_rx_tuser[n*AXIS_SYNC_RX_USER_WIDTH +: AXIS_SYNC_RX_USER_WIDTH] = s_axis_sync_rx_tuser[n*AXIS_SYNC_RX_USER_WIDTH +: AXIS_SYNC_RX_USER_WIDTH];
            assign m_axis_sync_rx_tlast[n]  = s_axis_sync_rx_tlast[n];
            assign m_axis_sync_rx_tvalid[n] = s_axis_sync_rx_tvalid[n];
            assign s_axis_sync_rx_tready[n] = m_axis_sync_rx_tready[n];
            assign nic_dropped[n]  = 1'b0;
            assign core_dropped[n] = 1'b0;
        end
    end
endgenerate

// Statistics --------------------------------------------------------------------------------------

reg [15:0] nic_due, core_due;  // dropped frames that were not reported
reg        of_core;            // the statistic that is offered

wire       taken = m_axis_stat_tvalid && m_axis_stat_tready;

assign m_axis_stat_tvalid = of_core ? core_due != 0 : nic_due != 0;
assign m_axis_stat_tdata  = {{STAT_INC_WIDTH-1{1'b0}}, 1'b1};
assign m_axis_stat_tid    = {{STAT_ID_WIDTH-1{1'b0}}, of_core};

always @(posedge clk) begin
    nic_due  <= nic_due  + {15'd0, |nic_dropped}  - {15'd0, taken && !of_core};
    core_due <= core_due + {15'd0, |core_dropped} - {15'd0, taken && of_core};
    if (taken || !m_axis_stat_tvalid)
        of_core <= !of_core;
    if (rst) begin
        nic_due  <= 16'd0;
        core_due <= 16'd0;
        of_core  <= 1'b0;
    end
end

endmodule

`resetall
