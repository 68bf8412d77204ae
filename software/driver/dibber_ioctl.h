/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 WITH Linux-syscall-note */
/*
 * What a program and the driver dibber.ko say to each other on /dev/dibberN.
 *
 * All numbers have the processor's byte order. Every `reserved` member is 0, and a call that finds
 * another value there fails with EINVAL. docs/driver.md has the table of calls and errors.
 */

#ifndef DIBBER_IOCTL_H
#define DIBBER_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Changes whenever a program of before could not use the driver any more. */
#define DIBBER_ABI 1

/* As `number`: any endpoint that is free. */
#define DIBBER_ANY_ENDPOINT 0xffffffffu

/**
 * struct dibber_info - what a card is
 * @abi: DIBBER_ABI of the driver
 * @card: N of /dev/dibberN
 * @interface_version: of the description that the driver was built from
 * @interface_hash: the same
 * @identity: of the control program that the driver has loaded
 * @endpoints: that the card has, endpoint 0 included, which is the driver's
 * @endpoint: the endpoint of this open file; 0: none
 * @node: the card's node number
 */
struct dibber_info {
	__u32 abi;
	__u32 card;
	__u32 interface_version;
	__u32 interface_hash;
	__u32 identity;
	__u32 endpoints;
	__u32 endpoint;
	__u32 node;
};

/**
 * struct dibber_register - read a register
 * @offset: in BAR 0, a multiple of 4
 * @value: returned
 */
struct dibber_register {
	__u32 offset;
	__u32 value;
};

/**
 * struct dibber_endpoint_open - make the open file an endpoint
 * @number: 1 and above, or DIBBER_ANY_ENDPOINT; returned: the one that it got
 * @cq_entries: of the completion queue: a power of two, as many as there are slots, or more
 * @eq_entries: of the event queue: a power of two
 * @halts: returned: the halts that register PROGRAM counts for the program that serves the endpoint
 * @window: returned: offset for mmap() of the page of slots and of the doorbell page behind it
 * @queues: returned: offset for mmap() of the completion queue and of the event queue behind it
 * @queue_bytes: returned: of both queues, rounded up to whole pages
 */
struct dibber_endpoint_open {
	__u32 number;
	__u32 cq_entries;
	__u32 eq_entries;
	__u32 halts;
	__u64 window;
	__u64 queues;
	__u64 queue_bytes;
};

/**
 * struct dibber_region_add - register memory of this process
 * @address: of its first byte, any alignment
 * @length: bytes
 * @rights: enum dibber_right
 * @key: returned
 * @page: returned: 0: the card reaches it as one range of bus addresses; else log2 of the bytes of
 *        a page in the page table that the driver has made for it
 * @reserved: 0
 */
struct dibber_region_add {
	__u64 address;
	__u64 length;
	__u32 rights;
	__u32 key;
	__u32 page;
	__u32 reserved;
};

/**
 * struct dibber_region_remove - withdraw memory
 * @key: of a region of this open file
 * @reserved: 0
 */
struct dibber_region_remove {
	__u32 key;
	__u32 reserved;
};

/**
 * struct dibber_eventfd - have interrupts told
 * @fd: an eventfd that the endpoint's vector signals, or -1: none any more
 * @reserved: 0
 */
struct dibber_eventfd {
	__s32 fd;
	__u32 reserved;
};

/* What a processor may do in a window. */
#define DIBBER_ACCESS_LOAD  1u
#define DIBBER_ACCESS_STORE 2u
#define DIBBER_ACCESS_ADD   4u /* a load adds `addend`, and returns the value before it */

/**
 * struct dibber_window_map - map a part of another node's region into the remote window
 * @offset: of the window's first byte in the region
 * @length: bytes; a window takes whole pages of DIBBER_APERTURE_PAGE
 * @key: of the region at the other node
 * @node: the other node
 * @addend: with DIBBER_ACCESS_ADD, else 0
 * @access: DIBBER_ACCESS_*, or'ed
 * @reserved: 0
 * @first: returned: the window's first page in BAR 2
 * @share: returned: stores that all windows of the file may have on their way to the card. A
 *         barrier tells that there are none; what is more may be lost
 * @place: returned: offset for mmap() of the first page of BAR 2; only pages of the file's windows,
 *         and the page of the processor at @control, can be mapped
 * @control: returned: offset in BAR 2 of the sequences: a load of 4 bytes at 64 times the endpoint
 *         waits for all stores before it, 4 bytes behind that one does not
 */
struct dibber_window_map {
	__u64 offset;
	__u64 length;
	__u32 key;
	__u16 node;
	__s16 addend;
	__u32 access;
	__u32 reserved;
	__u32 first;
	__u32 share;
	__u64 place;
	__u64 control;
};

/**
 * struct dibber_window_unmap - give a window back
 * @first: its first page
 * @reserved: 0
 */
struct dibber_window_unmap {
	__u32 first;
	__u32 reserved;
};

#define DIBBER_IOC_INFO		  _IOR(0xd1, 0x00, struct dibber_info)
#define DIBBER_IOC_REGISTER	  _IOWR(0xd1, 0x01, struct dibber_register)
#define DIBBER_IOC_ENDPOINT_OPEN  _IOWR(0xd1, 0x02, struct dibber_endpoint_open)
#define DIBBER_IOC_ENDPOINT_CLOSE _IO(0xd1, 0x03)
#define DIBBER_IOC_REGION_ADD	  _IOWR(0xd1, 0x04, struct dibber_region_add)
#define DIBBER_IOC_REGION_REMOVE  _IOW(0xd1, 0x05, struct dibber_region_remove)
#define DIBBER_IOC_EVENTFD	  _IOW(0xd1, 0x06, struct dibber_eventfd)
#define DIBBER_IOC_WINDOW_MAP	  _IOWR(0xd1, 0x07, struct dibber_window_map)
#define DIBBER_IOC_WINDOW_UNMAP	  _IOW(0xd1, 0x08, struct dibber_window_unmap)

#endif
