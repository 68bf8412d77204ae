"""Ports and parameters of Corundum's application block, by groups.

This is the public interface of the block as Corundum's core instantiates it (December 2023): names,
directions, widths. Corundum gives every parameter by name, so the values here matter only for lint.
"""

# SPDX-License-Identifier: BSD-2-Clause

# Parameters ---------------------------------------------------------------------------------------

# Those that the application uses, and those that widths are made of.
PARAMETERS = {
    "IF_COUNT": "1",
    "PORTS_PER_IF": "1",
    "PORT_COUNT": "IF_COUNT*PORTS_PER_IF",
    "PTP_TS_WIDTH": "96",
    "PTP_PEROUT_COUNT": "1",
    "TX_TAG_WIDTH": "16",
    "APP_ID": "32'h00000000",
    "APP_GPIO_IN_WIDTH": "32",
    "APP_GPIO_OUT_WIDTH": "32",
    "DMA_ADDR_WIDTH": "64",
    "DMA_IMM_WIDTH": "32",
    "DMA_LEN_WIDTH": "16",
    "DMA_TAG_WIDTH": "16",
    "RAM_SEL_WIDTH": "4",
    "RAM_ADDR_WIDTH": "16",
    "RAM_SEG_COUNT": "2",
    "RAM_SEG_DATA_WIDTH": "256",
    "RAM_SEG_BE_WIDTH": "RAM_SEG_DATA_WIDTH/8",
    "RAM_SEG_ADDR_WIDTH": "RAM_ADDR_WIDTH - $clog2(RAM_SEG_COUNT*RAM_SEG_BE_WIDTH)",
    "AXIL_APP_CTRL_DATA_WIDTH": "32",
    "AXIL_APP_CTRL_ADDR_WIDTH": "24",
    "AXIL_APP_CTRL_STRB_WIDTH": "AXIL_APP_CTRL_DATA_WIDTH/8",
    "AXIL_CTRL_DATA_WIDTH": "32",
    "AXIL_CTRL_ADDR_WIDTH": "24",
    "AXIL_CTRL_STRB_WIDTH": "AXIL_CTRL_DATA_WIDTH/8",
    "AXIS_DATA_WIDTH": "128",
    "AXIS_KEEP_WIDTH": "AXIS_DATA_WIDTH/8",
    "AXIS_TX_USER_WIDTH": "TX_TAG_WIDTH + 1",
    "AXIS_RX_USER_WIDTH": "PTP_TS_WIDTH + 1",
    "AXIS_SYNC_DATA_WIDTH": "AXIS_DATA_WIDTH",
    "AXIS_SYNC_KEEP_WIDTH": "AXIS_SYNC_DATA_WIDTH/8",
    "AXIS_SYNC_TX_USER_WIDTH": "AXIS_TX_USER_WIDTH",
    "AXIS_SYNC_RX_USER_WIDTH": "AXIS_RX_USER_WIDTH",
    "AXIS_IF_DATA_WIDTH": "AXIS_SYNC_DATA_WIDTH",
    "AXIS_IF_KEEP_WIDTH": "AXIS_IF_DATA_WIDTH/8",
    "AXIS_IF_TX_ID_WIDTH": "12",
    "AXIS_IF_RX_ID_WIDTH": "1",
    "AXIS_IF_TX_DEST_WIDTH": "4",
    "AXIS_IF_RX_DEST_WIDTH": "8",
    "AXIS_IF_TX_USER_WIDTH": "AXIS_SYNC_TX_USER_WIDTH",
    "AXIS_IF_RX_USER_WIDTH": "AXIS_SYNC_RX_USER_WIDTH",
    "STAT_INC_WIDTH": "24",
    "STAT_ID_WIDTH": "12",
}

# Those that say how the NIC was built; the application does not look at them.
IGNORED = """SCHED_PER_IF CLK_PERIOD_NS_NUM CLK_PERIOD_NS_DENOM PTP_CLK_PERIOD_NS_NUM
    PTP_CLK_PERIOD_NS_DENOM PTP_PORT_CDC_PIPELINE PTP_PEROUT_ENABLE PTP_TS_ENABLE MAX_TX_SIZE
    MAX_RX_SIZE APP_CTRL_ENABLE APP_DMA_ENABLE APP_AXIS_DIRECT_ENABLE APP_AXIS_SYNC_ENABLE
    APP_AXIS_IF_ENABLE APP_STAT_ENABLE DMA_IMM_ENABLE RAM_PIPELINE AXIS_RX_USE_READY
    STAT_ENABLE""".split()

MEMORIES = ("DDR", "HBM")
MEMORY_WIDTHS = {"DATA": "256", "ADDR": "32", "STRB": "32", "ID": "8"}
MEMORY_USERS = ("AW", "W", "B", "AR", "R")


def parameters():
    """name -> value of each parameter of the block."""
    found = dict(PARAMETERS)
    for memory in MEMORIES:
        found[f"{memory}_CH"] = "1"
        found |= {f"{memory}_{name}": "0" for name in ("ENABLE", "GROUP_SIZE")}
        found |= {f"AXI_{memory}_{name}_WIDTH": value for name, value in MEMORY_WIDTHS.items()}
        for name in MEMORY_USERS:
            found[f"AXI_{memory}_{name}USER_ENABLE"] = "0"
            found[f"AXI_{memory}_{name}USER_WIDTH"] = "1"
        for name in ("MAX_BURST_LEN", "NARROW_BURST", "FIXED_BURST", "WRAP_BURST"):
            found[f"AXI_{memory}_{name}"] = "0"
    return found | dict.fromkeys(IGNORED, "0")


# Ports --------------------------------------------------------------------------------------------

# A port is (direction, width, name); a width of None is a single wire.
IN, OUT = "input", "output"


def turned(ports):
    """The same ports from the other side."""
    return [({IN: OUT, OUT: IN}[direction], width, name) for direction, width, name in ports]


def times(count, width):
    """Width of `count` fields side by side."""
    return count if width == "1" else f"{count}*{width}"


def axi_lite(prefix, bus):
    """An AXI-lite interface as its slave has it. `bus`: prefix of its parameters."""
    address, data, strobe = (f"{bus}_{name}_WIDTH" for name in ("ADDR", "DATA", "STRB"))
    fields = [
        *[(IN, address, "awaddr"), (IN, "3", "awprot"), (IN, None, "awvalid")],
        *[(OUT, None, "awready"), (IN, data, "wdata"), (IN, strobe, "wstrb")],
        *[(IN, None, "wvalid"), (OUT, None, "wready"), (OUT, "2", "bresp")],
        *[(OUT, None, "bvalid"), (IN, None, "bready"), (IN, address, "araddr")],
        *[(IN, "3", "arprot"), (IN, None, "arvalid"), (OUT, None, "arready")],
        *[(OUT, data, "rdata"), (OUT, "2", "rresp"), (OUT, None, "rvalid")],
        (IN, None, "rready"),
    ]
    return [(direction, width, f"{prefix}_{name}") for direction, width, name in fields]


def axi(prefix, memory):
    """An AXI interface to the board's memory, as its master has it, for all channels."""
    count = f"{memory}_CH"
    width = {name: f"AXI_{memory}_{name}_WIDTH" for name in MEMORY_WIDTHS}
    user = {name: f"AXI_{memory}_{name}USER_WIDTH" for name in MEMORY_USERS}
    ports = []
    for channel in ("AW", "AR"):
        fields = [("id", width["ID"]), ("addr", width["ADDR"]), ("len", "8"), ("size", "3")]
        fields += [("burst", "2"), ("lock", "1"), ("cache", "4"), ("prot", "3"), ("qos", "4")]
        fields += [("user", user[channel]), ("valid", "1")]
        ports += [(OUT, size, f"{channel.lower()}{name}") for name, size in fields]
        ports += [(IN, "1", f"{channel.lower()}ready")]
    fields = [("data", width["DATA"]), ("strb", width["STRB"]), ("last", "1")]
    ports += [(OUT, size, f"w{name}") for name, size in fields]
    ports += [(OUT, user["W"], "wuser"), (OUT, "1", "wvalid"), (IN, "1", "wready")]
    ports += [(IN, width["ID"], "bid"), (IN, "2", "bresp"), (IN, user["B"], "buser")]
    ports += [(IN, "1", "bvalid"), (OUT, "1", "bready")]
    ports += [(IN, width["ID"], "rid"), (IN, width["DATA"], "rdata"), (IN, "2", "rresp")]
    ports += [(IN, "1", "rlast"), (IN, user["R"], "ruser"), (IN, "1", "rvalid")]
    ports += [(OUT, "1", "rready")]
    return [(direction, times(count, size), f"{prefix}_{name}") for direction, size, name in ports]


def stream(name, count, bus, user, more=()):
    """An AXI-stream into the block, `s_axis_…`, and the same out of it, `m_axis_…`."""
    fields = [("tdata", f"{bus}_DATA_WIDTH"), ("tkeep", f"{bus}_KEEP_WIDTH"), ("tvalid", "1")]
    fields += [("tlast", "1"), *more, ("tuser", f"{bus}_{user}_USER_WIDTH")]
    into = [(IN, times(count, width), f"axis_{name}_{field}") for field, width in fields]
    into += [(OUT, count, f"axis_{name}_tready")]
    return both(into)


def completion(name, count):
    """Timestamps of sent frames, into the block and out of it."""
    fields = [("ts", "PTP_TS_WIDTH"), ("tag", "TX_TAG_WIDTH"), ("valid", "1")]
    into = [(IN, times(count, width), f"axis_{name}_tx_cpl_{field}") for field, width in fields]
    return both([*into, (OUT, count, f"axis_{name}_tx_cpl_ready")])


def both(into):
    name = lambda prefix, ports: [(kind, width, f"{prefix}_{port}") for kind, width, port in ports]
    return name("s", into) + name("m", turned(into))


def dma(channel):
    """Descriptors and statuses of the DMA stream `channel`."""
    ports = []
    for way in ("read", "write"):
        fields = [("dma_addr", "DMA_ADDR_WIDTH"), ("ram_sel", "RAM_SEL_WIDTH")]
        fields += [("ram_addr", "RAM_ADDR_WIDTH")]
        if way == "write":
            fields += [("imm", "DMA_IMM_WIDTH"), ("imm_en", None)]
        fields += [("len", "DMA_LEN_WIDTH"), ("tag", "DMA_TAG_WIDTH"), ("valid", None)]
        order = f"m_axis_{channel}_dma_{way}_desc"
        ports += [(OUT, width, f"{order}_{name}") for name, width in fields]
        ports += [(IN, None, f"{order}_ready")]
        fields = [("tag", "DMA_TAG_WIDTH"), ("error", "4"), ("valid", None)]
        ports += [
            (IN, width, f"s_axis_{channel}_dma_{way}_desc_status_{name}") for name, width in fields
        ]
    return ports


def dma_ram(channel):
    """The segmented RAM of the DMA stream `channel`; each field for all segments."""
    sel, address, data, be = (
        f"RAM_SEG_COUNT*RAM_{name}_WIDTH" for name in ("SEL", "SEG_ADDR", "SEG_DATA", "SEG_BE")
    )
    each = "RAM_SEG_COUNT"
    fields = [
        *[(IN, sel, "wr_cmd_sel"), (IN, be, "wr_cmd_be"), (IN, address, "wr_cmd_addr")],
        *[(IN, data, "wr_cmd_data"), (IN, each, "wr_cmd_valid"), (OUT, each, "wr_cmd_ready")],
        *[(OUT, each, "wr_done"), (IN, sel, "rd_cmd_sel"), (IN, address, "rd_cmd_addr")],
        *[(IN, each, "rd_cmd_valid"), (OUT, each, "rd_cmd_ready"), (OUT, data, "rd_resp_data")],
        *[(OUT, each, "rd_resp_valid"), (IN, each, "rd_resp_ready")],
    ]
    return [(direction, width, f"{channel}_dma_ram_{name}") for direction, width, name in fields]


def precision_time():
    fields = [(None, "clk rst sample_clk td_sd pps pps_str sync_locked sync_pps sync_pps_str")]
    fields += [("PTP_TS_WIDTH", "sync_ts_rel sync_ts_tod")]
    fields += [(None, "sync_ts_rel_step sync_ts_tod_step")]
    fields += [("PTP_PEROUT_COUNT", "perout_locked perout_error perout_pulse")]
    return [(IN, width, f"ptp_{name}") for width, names in fields for name in names.split()]


def groups():
    """[(what, ports)] of the block."""
    found = [
        ("Clock and reset of the core", [(IN, None, "clk"), (IN, None, "rst")]),
        ("BAR 0 of Dibber", axi_lite("s_axil_app_ctrl", "AXIL_APP_CTRL")),
        ("Registers of the NIC", turned(axi_lite("m_axil_ctrl", "AXIL_CTRL"))),
    ]
    for channel in ("ctrl", "data"):
        found += [(f"DMA stream {channel}", dma(channel) + dma_ram(channel))]
    found += [("Precision time", precision_time())]
    clocks = [(IN, "PORT_COUNT", f"direct_{name}") for name in ("tx_clk", "tx_rst")]
    clocks += [(IN, "PORT_COUNT", f"direct_{name}") for name in ("rx_clk", "rx_rst")]
    found += [("Clocks of the MACs", clocks)]
    for name, count, bus in (
        ("direct", "PORT_COUNT", "AXIS"),
        ("sync", "PORT_COUNT", "AXIS_SYNC"),
        ("if", "IF_COUNT", "AXIS_IF"),
    ):
        for way in ("tx", "rx"):
            more = ()
            if name == "if":
                more = [
                    (f"t{k}", f"AXIS_IF_{way.upper()}_{k.upper()}_WIDTH") for k in ("id", "dest")
                ]
            found += [
                (f"Frames, {name} {way}", stream(f"{name}_{way}", count, bus, way.upper(), more))
            ]
        found += [(f"Timestamps, {name}", completion(name, count))]
    for memory in MEMORIES:
        name = memory.lower()
        state = [(IN, f"{memory}_CH", f"{name}_{signal}") for signal in ("clk", "rst", "status")]
        found += [(f"{memory} memory", state + axi(f"m_axi_{name}", memory))]
    found += [
        (
            "Statistics",
            [
                (OUT, "STAT_INC_WIDTH", "m_axis_stat_tdata"),
                (OUT, "STAT_ID_WIDTH", "m_axis_stat_tid"),
                (OUT, None, "m_axis_stat_tvalid"),
                (IN, None, "m_axis_stat_tready"),
            ],
        ),
        (
            "Pins and JTAG",
            [
                (IN, "APP_GPIO_IN_WIDTH", "gpio_in"),
                (OUT, "APP_GPIO_OUT_WIDTH", "gpio_out"),
                *[(IN, None, f"jtag_{name}") for name in ("tdi", "tms", "tck")],
                (OUT, None, "jtag_tdo"),
            ],
        ),
    ]
    return found
