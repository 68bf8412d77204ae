/* SPDX-License-Identifier: BSD-2-Clause */

#include "names.h"

#include "dibber_interface.h"

namespace dibber {

const char* call_name(uint32_t call)
{
    if (call == 0)
        return "instructions";
    switch (dibber_call(call)) {
    case DIBBER_CALL_PUT:
        return "dib_put";
    case DIBBER_CALL_PUT_STRIDED:
        return "dib_put_strided";
    case DIBBER_CALL_POLL_EMPTY:
        return "dib_poll, nothing there";
    case DIBBER_CALL_POLL_ENTRY:
        return "dib_poll";
    case DIBBER_CALL_MAILBOX_SEND:
        return "dib_mailbox_send";
    case DIBBER_CALL_MAILBOX_RECEIVE:
        return "dib_mailbox_receive";
    case DIBBER_CALL_MAILBOX_EMPTY:
        return "dib_mailbox_receive, nothing there";
    case DIBBER_CALL_COPY:
        return "copy by the CPU";
    }
    return "call";
}

const char* opcode_name(uint32_t opcode)
{
    switch (dibber_opcode(opcode)) {
    case DIBBER_OPCODE_NOP:
        return "NOP";
    case DIBBER_OPCODE_PUT:
        return "PUT";
    case DIBBER_OPCODE_PUT_INLINE:
        return "PUT_INLINE";
    case DIBBER_OPCODE_GET:
        return "GET";
    case DIBBER_OPCODE_SEND:
        return "SEND";
    case DIBBER_OPCODE_RECEIVE:
        return "RECEIVE";
    case DIBBER_OPCODE_FETCH_ADD:
        return "FETCH_ADD";
    case DIBBER_OPCODE_SWAP:
        return "SWAP";
    case DIBBER_OPCODE_COMPARE_SWAP:
        return "COMPARE_SWAP";
    case DIBBER_OPCODE_MASKED_SWAP:
        return "MASKED_SWAP";
    case DIBBER_OPCODE_ENDPOINT_OPEN:
        return "ENDPOINT_OPEN";
    case DIBBER_OPCODE_ENDPOINT_CLOSE:
        return "ENDPOINT_CLOSE";
    case DIBBER_OPCODE_REGION_ADD:
        return "REGION_ADD";
    case DIBBER_OPCODE_REGION_REMOVE:
        return "REGION_REMOVE";
    case DIBBER_OPCODE_SCOUT:
        return "SCOUT";
    case DIBBER_OPCODE_ROUTE_SET:
        return "ROUTE_SET";
    }
    return "unknown";
}

const char* trace_name(uint32_t event)
{
    switch (dibber_trace(event)) {
    case DIBBER_TRACE_BOOT:
        return "BOOT";
    case DIBBER_TRACE_COMMAND:
        return "COMMAND";
    case DIBBER_TRACE_COMPLETION:
        return "COMPLETION";
    case DIBBER_TRACE_JOB:
        return "JOB";
    case DIBBER_TRACE_JOB_ERROR:
        return "JOB_ERROR";
    case DIBBER_TRACE_JOB_UNKNOWN:
        return "JOB_UNKNOWN";
    case DIBBER_TRACE_REFUSED:
        return "REFUSED";
    case DIBBER_TRACE_ACK_UNKNOWN:
        return "ACK_UNKNOWN";
    case DIBBER_TRACE_TIMEOUT:
        return "TIMEOUT";
    case DIBBER_TRACE_INCARNATION:
        return "INCARNATION";
    case DIBBER_TRACE_ARRIVAL:
        return "ARRIVAL";
    case DIBBER_TRACE_OPEN:
        return "OPEN";
    case DIBBER_TRACE_CLOSE:
        return "CLOSE";
    case DIBBER_TRACE_REPLAY:
        return "REPLAY";
    case DIBBER_TRACE_LINK:
        return "LINK";
    case DIBBER_TRACE_STRAY:
        return "STRAY";
    case DIBBER_TRACE_ARM:
        return "ARM";
    case DIBBER_TRACE_CLAIM:
        return "CLAIM";
    case DIBBER_TRACE_ROUTE:
        return "ROUTE";
    case DIBBER_TRACE_RESTARTED:
        return "RESTARTED";
    }
    return "event";
}

} // namespace dibber
