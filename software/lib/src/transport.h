/* The interface to the way to a card. `transport_vfio_user.c` leads to a simulated card,
 * `transport_vfio.c` to a card in a PCIe slot, `transport_kernel.c` to a card that the Linux driver
 * has, `transport_uart.c` to a card behind a serial port.
 */

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
	bool queues;	      /* holds queue entries, which announce data elsewhere */
	int fd;		      /* shares the memory, or -1 */
	uint64_t fd_offset;
};

/* A command on its way to the card. */
struct dib_submission {
	const struct dibber_command *command; /* DIBBER_SLOT_BYTES of a command of any kind */
	uint32_t slot;			      /* its slot, offset in BAR 0 */
	uint32_t doorbell;     /* the register that is written then, offset in BAR 0 */
	uint32_t producer;     /* the value for that register */
	uint32_t participant;  /* for the clock: the caller */
	enum dibber_call call; /* for the clock: the call */
};

/* Pages of the remote window. */
struct dib_window_request {
	uint64_t offset; /* of the first byte in the region */
	uint64_t length; /* bytes */
	uint32_t key;	 /* of the region at the other node */
	uint16_t node;
	int16_t addend;
	uint32_t access; /* enum dib_window_access */
	uint32_t first;	 /* returned: the first page */
	uint32_t queue;	 /* returned: stores that may be on their way to the card */
};

/* Several threads may call each function at once. A function returns 0, or a negative enum
 * dib_error with its reason kept. */
struct dib_transport_ops {
	const char *scheme; /* of the URI, without its colon */

	int (*open)(const char *path, struct dib_transport **transport);
	/* NULL if a card takes one user only. Otherwise opens the card beside another program that
	 * drives it. Then only bar_read() and bar_write() may be called. */
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
	/* Posted: returns before the card has the value. Later writes and reads do not pass it. */
	int (*bar_write)(struct dib_transport *transport, uint64_t offset, const void *data,
			 size_t length);

	/* NULL: nothing leads to BAR 2. Else how many bytes of it there are, 0 if the card has
	 * none. `memory` is where the processor reaches them by itself, or NULL: then the two calls
	 * below do. */
	int (*aperture)(struct dib_transport *transport, uint64_t *bytes, uint8_t **memory);
	/* As bar_read() and bar_write(). A write has up to DIB_APERTURE_WRITE bytes. */
	int (*aperture_read)(struct dib_transport *transport, uint64_t offset, void *data,
			     size_t length);
	int (*aperture_write)(struct dib_transport *transport, uint64_t offset, const void *data,
			      size_t length);

	/* With administer(), for a card with a window: what the page table is asked for. Enters
	 * pages for `owner`, an endpoint, and returns the first one; the processor reaches them at
	 * the aperture's `memory` until window_unmap(). */
	int (*window_map)(struct dib_transport *transport, unsigned int owner,
			  struct dib_window_request *request);
	void (*window_unmap)(struct dib_transport *transport, unsigned int owner,
			     unsigned int first, unsigned int pages);

	/* Tell the clock of the call, write the slot, ring the doorbell. Posted and ordered as
	 * bar_write(). */
	int (*submit)(struct dib_transport *transport, const struct dib_submission *submission);

	int (*map)(struct dib_transport *transport, const struct dib_mapping *mapping);
	int (*unmap)(struct dib_transport *transport, const struct dib_mapping *mapping);

	/* NULL where the library is the card's administrator. Else another is, which has loaded the
	 * control program and gives the keys: run a command of the administrator. REGION_ADD
	 * returns its key in the command. */
	int (*administer)(struct dib_transport *transport, struct dibber_admin_command *command);

	/* Have `fd` (an eventfd) signalled by MSI-X vector `vector`. */
	int (*set_vector)(struct dib_transport *transport, unsigned int vector, int fd);

	/* Up to DIB_ENDS descriptors, with their epoll events, that tell of the card's end. Returns
	 * how many. NULL if there are no vectors either. */
	unsigned int (*ends)(struct dib_transport *transport, int fds[DIB_ENDS],
			     uint32_t events[DIB_ENDS]);
	/* Called after such an event, and each 100 ms: whether the card has ended. Then its calls
	 * return LOST. */
	bool (*has_ended)(struct dib_transport *transport);

	/* Serve the card's requests to this process, waiting at most `timeout_ms` for one. Needed
	 * if the card has no direct way to memory. */
	int (*serve)(struct dib_transport *transport, int timeout_ms);

	/* NULL, or returns false: there is no clock. */
	bool (*has_clock)(struct dib_transport *transport);
	/* `reply` NULL: posted. */
	int (*clock)(struct dib_transport *transport, const struct dibber_clock_request *request,
		     struct dibber_clock_reply *reply);
};

/* Bus addresses [first, last). */
struct dib_range {
	uint64_t first, last;
};

#define DIB_RANGES	   8u
#define DIB_BAR_READ	   256u
#define DIB_APERTURE_WRITE 1024u

struct dib_transport {
	const struct dib_transport_ops *ops;
	struct dib_range usable[DIB_RANGES]; /* bus addresses that map() accepts, ascending */
	unsigned int usable_count;
	bool observes;	 /* opened by observe() */
	uint32_t random; /* a number to use instead of a random one, so that a run repeats; 0: none
			  */
	uint32_t preloaded;    /* CRC of the image in the card's SRAM, if nothing was written there
				* since; 0: none */
	bool copies;	       /* the card has copies of memory, which serve() updates */
	uint32_t shared_bytes; /* with copies: how many bytes have room */
};

/* Find the transport of a URI and open it. With `observe`, open beside another user if that is
 * possible, otherwise as the only user. */
int dib_transport_open(const char *uri, bool observe, struct dib_transport **transport);

extern const struct dib_transport_ops dib_transport_vfio_user;
extern const struct dib_transport_ops dib_transport_vfio;
extern const struct dib_transport_ops dib_transport_kernel;
extern const struct dib_transport_ops dib_transport_uart;

/* Whether another than the library is the card's administrator. */
static inline bool dib_is_administered(const struct dib_transport *transport)
{
	return transport->ops->administer != NULL;
}

#endif
