/* What the library needs of the way to a card. `transport_vfio_user.c` leads to a simulated one,
 * `transport_vfio.c` to one in a PCIe slot, `transport_uart.c` to one behind a serial port. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_TRANSPORT_H
#define DIBBER_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dibber_interface.h>

struct dib_transport;

#define DIB_ENDS 2u /* descriptors that tell of a card's end */

/* Memory of this process that the card reaches at a bus address. */
struct dib_mapping {
	uint64_t iova;	      /* page-aligned */
	uint64_t size;	      /* whole pages */
	uint8_t *memory;      /* what lies at `iova`: page-aligned */
	uint64_t first, last; /* offsets of the bytes that may be written: [first, last) */
	uint64_t end;	      /* [first, end) may be read */
	bool queues;	      /* entries of queues, which announce what is elsewhere */
	int fd;		      /* shares the memory, or -1 */
	uint64_t fd_offset;
};

/* A command on its way to the card. */
struct dib_submission {
	const struct dibber_command *command; /* the DIBBER_SLOT_BYTES of any kind of command */
	uint32_t slot;			      /* where it goes, offset in BAR 0 */
	uint32_t doorbell;     /* the register that is written then, offset in BAR 0 … */
	uint32_t producer;     /* … and its value */
	uint32_t participant;  /* for the clock: who called … */
	enum dibber_call call; /* … what */
};

/* Every function may be called by several threads at once, and returns 0 or a negative enum
 * dib_error with its reason kept. */
struct dib_transport_ops {
	const char *scheme; /* of the URI, without its colon */

	int (*open)(const char *path, struct dib_transport **transport);
	/* NULL where a card has room for one user. Else beside another, who drives it: bar_read()
	 * and bar_write() alone. */
	int (*observe)(const char *path, struct dib_transport **transport);
	/* No other thread may be in a call. */
	void (*close)(struct dib_transport *transport);

	int (*config_read)(struct dib_transport *transport, uint64_t offset, void *data,
			   size_t length);
	int (*config_write)(struct dib_transport *transport, uint64_t offset, const void *data,
			    size_t length);
	/* Up to DIB_BAR_READ bytes. */
	int (*bar_read)(struct dib_transport *transport, uint64_t offset, void *data,
			size_t length);
	/* Posted: returns before the card has it; later writes and reads do not pass it. */
	int (*bar_write)(struct dib_transport *transport, uint64_t offset, const void *data,
			 size_t length);

	/* Tell the clock of the call, write the slot, ring the doorbell. Posted and ordered as
	 * bar_write(). */
	int (*submit)(struct dib_transport *transport, const struct dib_submission *submission);

	int (*map)(struct dib_transport *transport, const struct dib_mapping *mapping);
	int (*unmap)(struct dib_transport *transport, const struct dib_mapping *mapping);

	/* Have `fd` (an eventfd) signalled by MSI-X vector `vector`. */
	int (*set_vector)(struct dib_transport *transport, unsigned int vector, int fd);

	/* What to wait at (epoll) for the end of the card: up to DIB_ENDS descriptors with their
	 * events; returns how many. NULL where there are no vectors either. */
	unsigned int (*ends)(struct dib_transport *transport, int fds[DIB_ENDS],
			     uint32_t events[DIB_ENDS]);
	/* Behind such an event, and each 100 ms: whether the card has ended. Its calls return LOST
	 * from then on. */
	bool (*has_ended)(struct dib_transport *transport);

	/* Do what the card asks of this process, waiting at most `timeout_ms` for it to ask. Needed
	 * where the card has no way to memory of its own. */
	int (*serve)(struct dib_transport *transport, int timeout_ms);

	/* NULL, or false: time is nobody's to keep. */
	bool (*has_clock)(struct dib_transport *transport);
	/* `reply` NULL: posted. */
	int (*clock)(struct dib_transport *transport, const struct dibber_clock_request *request,
		     struct dibber_clock_reply *reply);
};

/* Bus addresses [first, last). */
struct dib_range {
	uint64_t first, last;
};

#define DIB_RANGES   8u
#define DIB_BAR_READ 256u

struct dib_transport {
	const struct dib_transport_ops *ops;
	struct dib_range
		usable[DIB_RANGES]; /* the bus addresses that map() can be given, ascending */
	unsigned int usable_count;
	bool observes;	 /* by observe() */
	uint32_t random; /* a number to use in place of one drawn at random, so that a run repeats;
			    0: none */
	uint32_t preloaded; /* CRC of the image that lies in the card's SRAM, and nothing has been
			       written there since; 0: none */
	bool copies;	 /* the card has copies of memory, which serve() brings up to date */
	uint32_t shared_bytes; /* with copies: for how much there is room */
};

/* Find the transport of a URI and open it; `observe`: beside another user where that is possible,
 * else as the only one. */
int dib_transport_open(const char *uri, bool observe, struct dib_transport **transport);

extern const struct dib_transport_ops dib_transport_vfio_user;
extern const struct dib_transport_ops dib_transport_vfio;
extern const struct dib_transport_ops dib_transport_uart;

#endif
