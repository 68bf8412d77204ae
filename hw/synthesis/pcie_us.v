/* The ports of Xilinx' PCIe block for UltraScale (PG156, "Port Descriptions") that the card uses, as phy/ultrascale/pcie.py configures it,
 * for tools that do not have it. LANES and WIDTH (bits of data) come from the command line.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

(* blackbox *)
module pcie_us(
    // Link
    input                  sys_clk, sys_clk_gt, sys_reset,
    input      [`LANES-1:0] pci_exp_rxp, pci_exp_rxn,
    output     [`LANES-1:0] pci_exp_txp, pci_exp_txn,
    output                 user_clk, user_reset, user_lnk_up,
    input                  pcie_perstn1_in,

    // Streams
    input     [`WIDTH-1:0] s_axis_rq_tdata, s_axis_cc_tdata,
    input  [`WIDTH/32-1:0] s_axis_rq_tkeep, s_axis_cc_tkeep,
    input           [59:0] s_axis_rq_tuser,
    input           [32:0] s_axis_cc_tuser,
    input                  s_axis_rq_tlast, s_axis_rq_tvalid, s_axis_cc_tlast, s_axis_cc_tvalid,
    output           [3:0] s_axis_rq_tready, s_axis_cc_tready,
    output    [`WIDTH-1:0] m_axis_cq_tdata, m_axis_rc_tdata,
    output [`WIDTH/32-1:0] m_axis_cq_tkeep, m_axis_rc_tkeep,
    output          [84:0] m_axis_cq_tuser,
    output          [74:0] m_axis_rc_tuser,
    output                 m_axis_cq_tlast, m_axis_cq_tvalid, m_axis_rc_tlast, m_axis_rc_tvalid,
    input                  m_axis_cq_tready, m_axis_rc_tready,
    output           [3:0] pcie_rq_seq_num,
    output                 pcie_rq_seq_num_vld,
    input                  pcie_cq_np_req,

    // Configuration space
    output           [2:0] cfg_max_payload, cfg_max_read_req,
    output          [15:0] cfg_function_status,
    output          [11:0] cfg_function_power_state,
    input           [18:0] cfg_mgmt_addr,
    input                  cfg_mgmt_write, cfg_mgmt_read, cfg_mgmt_type1_cfg_reg_access,
    input           [31:0] cfg_mgmt_write_data,
    input            [3:0] cfg_mgmt_byte_enable,
    input                  cfg_msg_transmit,
    input            [2:0] cfg_msg_transmit_type,
    input           [31:0] cfg_msg_transmit_data,
    input            [2:0] cfg_fc_sel, cfg_per_func_status_control,
    input            [3:0] cfg_per_function_number,
    input                  cfg_per_function_output_request,
    input           [63:0] cfg_dsn,
    output                 cfg_power_state_change_interrupt,
    input                  cfg_power_state_change_ack, cfg_err_cor_in, cfg_err_uncor_in,
    output           [3:0] cfg_flr_in_process,
    input            [3:0] cfg_flr_done,
    input            [7:0] cfg_vf_flr_done,
    input                  cfg_link_training_enable, cfg_config_space_enable, cfg_req_pm_transition_l23_ready, cfg_hot_reset_in,
    input            [7:0] cfg_ds_port_number, cfg_ds_bus_number,
    input            [4:0] cfg_ds_device_number,
    input            [2:0] cfg_ds_function_number,
    input           [15:0] cfg_subsys_vend_id,

    // Interrupts
    input            [3:0] cfg_interrupt_int, cfg_interrupt_pending,
    output           [3:0] cfg_interrupt_msix_enable,
    input           [63:0] cfg_interrupt_msix_address,
    input           [31:0] cfg_interrupt_msix_data,
    input                  cfg_interrupt_msix_int,
    input            [3:0] cfg_interrupt_msi_function_number
);
endmodule
