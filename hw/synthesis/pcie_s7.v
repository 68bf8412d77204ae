/* The ports of Xilinx' PCIe block (PG054, "Core Interfaces"), as LitePCIe's Tcl configures it, for tools that do not have it.
 * LANES and WIDTH (bits of data) come from the command line.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

(* blackbox *)
module pcie_s7(
    // Link
    input                  sys_clk, sys_rst_n,
    input      [`LANES-1:0] pci_exp_rxp, pci_exp_rxn,
    output     [`LANES-1:0] pci_exp_txp, pci_exp_txn,

    // Clocks, which are made outside
    input                  pipe_pclk_in, pipe_rxusrclk_in, pipe_dclk_in, pipe_userclk1_in, pipe_userclk2_in,
    input                  pipe_oobclk_in, pipe_mmcm_lock_in, pipe_mmcm_rst_n,
    input      [`LANES-1:0] pipe_rxoutclk_in,
    output                 pipe_txoutclk_out, pipe_gen3_out,
    output     [`LANES-1:0] pipe_rxoutclk_out, pipe_pclk_sel_out,

    // PLLs, when they are outside
    input           [11:0] qpll_drp_crscode,
    input           [17:0] qpll_drp_fsm,
    input            [1:0] qpll_drp_done, qpll_drp_reset,
    input            [1:0] qpll_qplllock, qpll_qplloutclk, qpll_qplloutrefclk,
    output                 qpll_drp_clk, qpll_drp_rst_n, qpll_drp_ovrd, qpll_drp_gen3, qpll_drp_start, qpll_qplld,
    output           [1:0] qpll_qpllreset,

    // Streams
    output                 user_clk_out, user_reset_out, user_lnk_up, user_app_rdy,
    output           [5:0] tx_buf_av,
    output                 tx_err_drop, tx_cfg_req,
    input                  tx_cfg_gnt,
    input                  s_axis_tx_tvalid, s_axis_tx_tlast,
    output                 s_axis_tx_tready,
    input      [`WIDTH-1:0] s_axis_tx_tdata,
    input    [`WIDTH/8-1:0] s_axis_tx_tkeep,
    input            [3:0] s_axis_tx_tuser,
    input                  rx_np_ok, rx_np_req,
    output                 m_axis_rx_tvalid, m_axis_rx_tlast,
    input                  m_axis_rx_tready,
    output     [`WIDTH-1:0] m_axis_rx_tdata,
    output   [`WIDTH/8-1:0] m_axis_rx_tkeep,
    output          [21:0] m_axis_rx_tuser,
    output          [11:0] fc_cpld, fc_npd, fc_pd,
    output           [7:0] fc_cplh, fc_nph, fc_ph,
    input            [2:0] fc_sel,

    // Configuration space
    output          [31:0] cfg_mgmt_do,
    output                 cfg_mgmt_rd_wr_done,
    input           [31:0] cfg_mgmt_di,
    input            [3:0] cfg_mgmt_byte_en,
    input            [9:0] cfg_mgmt_dwaddr,
    input                  cfg_mgmt_wr_en, cfg_mgmt_rd_en, cfg_mgmt_wr_readonly, cfg_mgmt_wr_rw1c_as_rw,
    output          [15:0] cfg_status, cfg_command, cfg_dstatus, cfg_dcommand, cfg_lstatus, cfg_lcommand, cfg_dcommand2,
    output           [2:0] cfg_pcie_link_state,
    output                 cfg_pmcsr_pme_en, cfg_pmcsr_pme_status, cfg_received_func_lvl_rst,
    output           [1:0] cfg_pmcsr_powerstate,
    output           [7:0] cfg_bus_number,
    output           [4:0] cfg_device_number,
    output           [2:0] cfg_function_number,
    output           [6:0] cfg_vc_tcvc_map,
    output                 cfg_bridge_serr_en, cfg_slot_control_electromech_il_ctl_pulse,
    output                 cfg_root_control_syserr_corr_err_en, cfg_root_control_syserr_non_fatal_err_en,
    output                 cfg_root_control_syserr_fatal_err_en, cfg_root_control_pme_int_en,
    output                 cfg_aer_rooterr_corr_err_reporting_en, cfg_aer_rooterr_non_fatal_err_reporting_en,
    output                 cfg_aer_rooterr_fatal_err_reporting_en, cfg_aer_rooterr_corr_err_received,
    output                 cfg_aer_rooterr_non_fatal_err_received, cfg_aer_rooterr_fatal_err_received,
    input           [63:0] cfg_dsn,
    input            [7:0] cfg_ds_bus_number,
    input            [4:0] cfg_ds_device_number,
    input            [2:0] cfg_ds_function_number,
    input            [1:0] cfg_pm_force_state,
    input                  cfg_trn_pending, cfg_pm_halt_aspm_l0s, cfg_pm_halt_aspm_l1, cfg_pm_force_state_en,
    input                  cfg_pm_send_pme_to, cfg_pm_wake, cfg_turnoff_ok,
    output                 cfg_to_turnoff,

    // Errors
    input                  cfg_err_ecrc, cfg_err_ur, cfg_err_cpl_timeout, cfg_err_cpl_unexpect, cfg_err_cpl_abort,
    input                  cfg_err_posted, cfg_err_cor, cfg_err_atomic_egress_blocked, cfg_err_internal_cor,
    input                  cfg_err_malformed, cfg_err_mc_blocked, cfg_err_poisoned, cfg_err_norecovery, cfg_err_locked,
    input                  cfg_err_acs, cfg_err_internal_uncor,
    input           [47:0] cfg_err_tlp_cpl_header,
    output                 cfg_err_cpl_rdy,
    input          [127:0] cfg_err_aer_headerlog,
    input            [4:0] cfg_aer_interrupt_msgnum,
    output                 cfg_err_aer_headerlog_set, cfg_aer_ecrc_check_en, cfg_aer_ecrc_gen_en,

    // Interrupts and messages
    input                  cfg_interrupt, cfg_interrupt_assert, cfg_interrupt_stat,
    output                 cfg_interrupt_rdy, cfg_interrupt_msienable, cfg_interrupt_msixenable, cfg_interrupt_msixfm,
    input            [7:0] cfg_interrupt_di,
    output           [7:0] cfg_interrupt_do,
    output           [2:0] cfg_interrupt_mmenable,
    input            [4:0] cfg_pciecap_interrupt_msgnum,
    output                 cfg_msg_received,
    output          [15:0] cfg_msg_data,
    output                 cfg_msg_received_pm_as_nak, cfg_msg_received_setslotpowerlimit, cfg_msg_received_err_cor,
    output                 cfg_msg_received_err_non_fatal, cfg_msg_received_err_fatal, cfg_msg_received_pm_pme,
    output                 cfg_msg_received_pme_to_ack,
    output                 cfg_msg_received_assert_int_a, cfg_msg_received_assert_int_b,
    output                 cfg_msg_received_assert_int_c, cfg_msg_received_assert_int_d,
    output                 cfg_msg_received_deassert_int_a, cfg_msg_received_deassert_int_b,
    output                 cfg_msg_received_deassert_int_c, cfg_msg_received_deassert_int_d,

    // Physical layer
    input            [1:0] pl_directed_link_change, pl_directed_link_width,
    input                  pl_directed_link_speed, pl_directed_link_auton, pl_upstream_prefer_deemph,
    input                  pl_transmit_hot_rst, pl_downstream_deemph_source,
    output                 pl_sel_lnk_rate, pl_phy_lnk_up, pl_link_upcfg_cap, pl_link_gen2_cap,
    output                 pl_link_partner_gen2_supported, pl_directed_change_done, pl_received_hot_rst,
    output           [1:0] pl_sel_lnk_width, pl_lane_reversal_mode, pl_rx_pm_state,
    output           [5:0] pl_ltssm_state,
    output           [2:0] pl_tx_pm_state, pl_initial_link_width,

    // DRP
    input                  pcie_drp_clk, pcie_drp_en, pcie_drp_we,
    input            [8:0] pcie_drp_addr,
    input           [15:0] pcie_drp_di,
    output                 pcie_drp_rdy,
    output          [15:0] pcie_drp_do
);
endmodule
