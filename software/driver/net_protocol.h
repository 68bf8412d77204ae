/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What the network devices of two nodes say to each other: docs/design/network-device.md. All
 * numbers are little-endian. Everything here that another node wrote is checked before it is used.
 */

#ifndef DIBBER_NET_PROTOCOL_H
#define DIBBER_NET_PROTOCOL_H

#include <linux/align.h>
#include <linux/if_ether.h>
#include <linux/types.h>
#include <linux/virtio_net.h>

#define DIBBER_NET_MAGIC 0x4e424944 /* "DIBN" */
/*
 * Of the hello, the headers and the notices. The endpoint of greetings is no part of it: a device
 * that greets by another endpoint is never heard, so no version could tell it.
 */
#define DIBBER_NET_VERSION 2

/* The most queues of a device. */
#define DIBBER_NET_QUEUES 8

/*
 * The endpoint by which all network devices greet each other. Not the last one of a card with 8:
 * the remote window has it on a card with a window.
 */
#define DIBBER_NET_CONTROL 6

/* A MAC address is this prefix and the node number in two bytes, the high one first. Bit 1 of the
 * first byte says that it is administered locally (IEEE 802, 8.4).
 */
#define DIBBER_NET_PREFIX { 0x02, 'D', 'I', 'B' }

/* The longest IP packet, its Ethernet header and two VLAN tags. */
#define DIBBER_NET_MAX_FRAME (65535 + ETH_HLEN + 8)

/* Positions in a ring are multiples of this, so a notice has room for its kind below them. */
#define DIBBER_NET_ALIGN 64

#define DIBBER_NET_RECORD(bytes) ALIGN(sizeof(struct dibber_net_header) + (bytes), DIBBER_NET_ALIGN)
#define DIBBER_NET_MAX_RECORD	 DIBBER_NET_RECORD(DIBBER_NET_MAX_FRAME)

/* Bytes of a ring: of ours, and what another node's may have; a power of two. Behind the ring lie
 * DIBBER_NET_SCRATCH bytes that nobody reads.
 */
#define DIBBER_NET_RING	      (512u << 10)
#define DIBBER_NET_RING_LEAST (256u << 10)
#define DIBBER_NET_RING_MOST  (16u << 20)
#define DIBBER_NET_SCRATCH    4096

/* Kinds of notices, in the bits below a position. */
#define DIBBER_NET_NOTICE_KIND 63u
#define DIBBER_NET_TAIL	       0u /* the position behind the last record that was put */
#define DIBBER_NET_CREDIT      1u /* the position behind the last record that was taken */

/**
 * struct dibber_net_hello - what a node sends with SEND to the control endpoint of another one
 * @magic: DIBBER_NET_MAGIC
 * @version: DIBBER_NET_VERSION
 * @ring_bytes: of each ring
 * @queues: how many of @queue are used, 1 to DIBBER_NET_QUEUES
 * @queue: for each queue of the sender of this hello
 * @queue.endpoint: the target of notices
 * @queue.key: of the region with the ring for the same queue of the receiver
 */
struct dibber_net_hello {
	__le32 magic;
	__le32 version;
	__le32 ring_bytes;
	__le32 queues;
	struct {
		__le32 endpoint;
		__le32 key;
	} queue[DIBBER_NET_QUEUES];
};

/**
 * struct dibber_net_header - before each frame in a ring
 * @position: where this record begins, in bytes since the hello
 * @length: bytes of the frame
 * @offload: checksum and segmentation that were left undone, as virtio has them
 * @reserved: 0
 */
struct dibber_net_header {
	__le64 position;
	__le32 length;
	struct virtio_net_hdr offload;
	__u8 reserved[10];
};

static_assert(sizeof(struct dibber_net_hello) == 16 + 8 * DIBBER_NET_QUEUES);
static_assert(sizeof(struct dibber_net_header) == 32);

#endif
