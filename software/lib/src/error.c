/* Error codes, their sentences, and each thread's last reason. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdarg.h>
#include <stdio.h>

#include "error.h"

static _Thread_local char last_reason[512];

void dib_keep_reason(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(last_reason, sizeof(last_reason), format, arguments);
	va_end(arguments);
}

const char *dib_last_reason(void)
{
	return last_reason;
}

const char *dib_strerror(int error)
{
	switch (error) {
	case 0:
		return "no error";
	case DIB_ERR_ARGUMENT:
		return "an argument makes no sense";
	case DIB_ERR_NOT_FOUND:
		return "no such card, socket or file";
	case DIB_ERR_IDENTITY:
		return "the device is not a Dibber card";
	case DIB_ERR_VERSION:
		return "the other side has another interface version";
	case DIB_ERR_PROTOCOL:
		return "the other side broke the protocol";
	case DIB_ERR_LOST:
		return "the card or simulator went away";
	case DIB_ERR_AGAIN:
		return "no free command slot: poll completions, then try again";
	case DIB_ERR_TIMEOUT:
		return "no answer in time";
	case DIB_ERR_NO_MEMORY:
		return "out of memory or descriptors";
	case DIB_ERR_FIRMWARE_FILE:
		return "not a control program image, or damaged";
	case DIB_ERR_FIRMWARE_CRC:
		return "the card does not hold what was written to it";
	case DIB_ERR_FIRMWARE_START:
		return "the control program did not start";
	case DIB_ERR_NO_FIRMWARE:
		return "no control program was loaded";
	case DIB_ERR_LIMIT:
		return "all of them are in use";
	case DIB_ERR_IN_USE:
		return "it is in use";
	case DIB_ERR_COMMAND:
		return "the control program refused";
	case DIB_ERR_CLOSED:
		return "it was closed";
	case DIB_ERR_CLOCK:
		return "the simulator's clock refused";
	case DIB_ERR_SYSTEM:
		return "a system call failed";
	case DIB_ERR_HALTED:
		return "the control program was halted or loaded anew";
	case DIB_ERR_FORKED:
		return "another process opened it";
	case DIB_ERR_DENIED:
		return "the other side does not accept the token";
	case DIB_ERR_FLASH:
		return "the flash did not do what it was told";
	}
	return "unknown error";
}

const char *dib_status_name(unsigned int status)
{
	static const char *const names[] = { DIBBER_STATUS_NAMES };

	return status < sizeof(names) / sizeof(names[0]) ? names[status] : "UNKNOWN";
}

const char *dib_status_string(unsigned int status)
{
	static const char *const texts[] = { DIBBER_STATUS_TEXTS };

	return status < sizeof(texts) / sizeof(texts[0])
		       ? texts[status]
		       : "a status that this library does not know";
}
