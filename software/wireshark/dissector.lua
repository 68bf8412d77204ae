-- Wireshark's dissector of Dibber's frames over Ethernet (docs/design/ethernet.md).
--
-- `make docs` puts the tables `constants`, `enums` and `structs` of the interface description in
-- front of this text, and writes build/wireshark/dibber.lua.
--
-- SPDX-License-Identifier: BSD-2-Clause

local dibber = Proto("dibber", "Dibber link over Ethernet")

-- Fields ------------------------------------------------------------------------------------------

local integer = {
	[1] = ProtoField.uint8, [2] = ProtoField.uint16, [4] = ProtoField.uint32, [8] = ProtoField.uint64,
}
local fields = {}

-- A field for each member of a structure: dibber.GROUP.NAME.
local function of_struct(group, struct, names)
	for _, member in ipairs(structs[struct]) do
		local name = group .. "." .. member.name
		fields[name] = integer[member.size]("dibber." .. name, member.name, base.DEC_HEX,
			names and names[member.name], nil, member.doc)
	end
end

local function part(name, size, mask, values)
	fields[name] = integer[size]("dibber." .. name, name, base.DEC, values, mask)
end

local function flag(name, bits, mask)
	fields[name] = ProtoField.bool("dibber." .. name, name, bits, nil, mask)
end

local control, length = enums.ethernet_control, enums.ethernet_length
of_struct("frame", "ethernet_header")
of_struct("status", "ethernet_status")
of_struct("packet", "packet_header", { kind = enums.packet.names })
part("channel", 1, 0x03, enums.channel.names)
part("kind", 1, 0xe0, enums.ethernet_kind.names)
flag("first", 8, control.values.FIRST)
flag("last", 8, control.values.LAST)
flag("bad", 8, control.values.BAD)
part("units", 2, length.values.UNITS)
flag("half", 16, length.values.HALF)
part("credit_channel", 2, length.values.CREDIT, enums.channel.names)
flag("heard", 8, enums.ethernet_state.values.HEARD)
fields.payload = ProtoField.bytes("dibber.payload", "payload")

local list = {}
for _, field in pairs(fields) do
	list[#list + 1] = field
end
dibber.fields = list

-- Dissection --------------------------------------------------------------------------------------

local function add_struct(tree, group, struct, bytes)
	for _, member in ipairs(structs[struct]) do
		tree:add_le(fields[group .. "." .. member.name], bytes(member.offset, member.size))
	end
end

local function name_of(enum, value)
	return enums[enum].names[value] or string.format("0x%x", value)
end

local function size_of(struct)
	local last = structs[struct][#structs[struct]]
	return last.offset + last.size
end

function dibber.dissector(buffer, pinfo, tree)
	local head = size_of("ethernet_header")
	if buffer:len() < head then
		return 0
	end
	pinfo.cols.protocol = "Dibber"
	local header = buffer(0, head)
	local bits, size = header(0, 1):le_uint(), header(2, 2):le_uint()
	local kind, channel = bit.rshift(bits, 5), bit.band(bits, 3)
	local units = bit.band(size, length.values.UNITS)
	local bytes = math.min(units * constants.ETHERNET_UNIT_BYTES, buffer:len() - head)
	local shown = tree:add(dibber, buffer(0, head + bytes))

	local controls = shown:add_le(fields["frame.control"], header(0, 1))
	for _, name in ipairs({ "kind", "channel", "first", "last", "bad" }) do
		controls:add_le(fields[name], header(0, 1))
	end
	shown:add_le(fields["frame.session"], header(1, 1))
	local lengths = shown:add_le(fields["frame.length"], header(2, 2))
	for _, name in ipairs({ "units", "half", "credit_channel" }) do
		lengths:add_le(fields[name], header(2, 2))
	end
	shown:add_le(fields["frame.position"], header(4, 2))
	shown:add_le(fields["frame.credit"], header(6, 2))

	local info = name_of("ethernet_kind", kind)
	local payload = bytes > 0 and buffer(head, bytes)
	if kind == enums.ethernet_kind.values.STATUS and bytes >= size_of("ethernet_status") then
		local status = shown:add(payload, "status")
		add_struct(status, "status", "ethernet_status", payload)
		status:add_le(fields.heard, payload(3, 1))
		info = string.format("%s nonce %d session %d", info, payload(0, 2):le_uint(), payload(2, 1):le_uint())
	elseif kind == enums.ethernet_kind.values.DATA then
		info = string.format("%s %s at %d, %d units", info, name_of("channel", channel),
			header(4, 2):le_uint(), units)
		if bit.band(bits, control.values.FIRST) ~= 0 and bytes >= size_of("packet_header") then
			local packet = payload(0, size_of("packet_header"))
			add_struct(shown:add(packet, "packet header"), "packet", "packet_header", packet)
			info = string.format("%s: %s psn %d, node %d to %d", info,
				name_of("packet", packet(4, 1):le_uint()), packet(8, 2):le_uint(),
				packet(2, 2):le_uint(), packet(0, 2):le_uint())
		end
		if payload then
			shown:add(fields.payload, payload)
		end
	end
	pinfo.cols.info = info
	return head + bytes
end

DissectorTable.get("ethertype"):add(constants.ETHERNET_TYPE, dibber)
