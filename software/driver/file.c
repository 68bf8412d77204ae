// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* /dev/dibberN: open, ioctl, read, poll, release. */

#include "dibber.h"

#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

static int file_open(struct inode *inode, struct file *filp)
{
	struct dibber_card *card = container_of(filp->private_data, struct dibber_card, misc);
	struct dibber_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	/* misc_deregister() waits for this function, so the card is still there. */
	kref_get(&card->references);
	file->card = card;
	file->file = filp;
	mutex_init(&file->lock);
	mutex_init(&file->map_lock);
	INIT_LIST_HEAD(&file->regions);
	filp->private_data = file;
	return stream_open(inode, filp);
}

/* Every mapping is gone: each holds the file. */
static int file_release(struct inode *inode, struct file *filp)
{
	struct dibber_file *file = filp->private_data;
	struct dibber_card *card = file->card;

	/* Closes the endpoint if the address space has not ended yet. */
	if (file->mm)
		mmu_notifier_unregister(&file->notifier, file->mm);
	if (file->ones)
		__free_pages(file->ones, DIBBER_ONES_ORDER);
	kfree(file);
	dibber_put(card);
	return 0;
}

static int get_info(struct dibber_file *file, struct dibber_info *info)
{
	struct dibber_card *card = file->card;

	if (READ_ONCE(card->gone))
		return -ENODEV;
	*info = (struct dibber_info){
		.abi = DIBBER_ABI,
		.card = card->number,
		.interface_version = DIBBER_INTERFACE_VERSION,
		.interface_hash = DIBBER_INTERFACE_HASH,
		.identity = card->identity,
		.endpoints = card->endpoint_count,
		.endpoint = file->number,
		.node = card->node,
	};
	return 0;
}

/*
 * Banks `host` and `window` and the registers of doorbell pages may be read by all. The SRAM shows
 * what other processes do, so it takes an administrator.
 */
static bool may_read(const struct dibber_card *card, u32 offset)
{
	if (offset % 4)
		return false;
	if (offset < DIBBER_MSIX_TABLE_BASE)
		return true;
	if (dibber_window_exists(card) && offset >= DIBBER_APERTURE_REGISTERS &&
	    offset <= DIBBER_APERTURE_REGISTERS + DIBBER_WINDOW_LATE)
		return true;
	if (offset >= DIBBER_FIRMWARE_BASE && offset - DIBBER_FIRMWARE_BASE < card->sram_bytes)
		return capable(CAP_SYS_ADMIN);
	if (offset < DIBBER_ENDPOINT_BASE || offset >= DIBBER_BAR0_SIZE)
		return false;
	offset -= DIBBER_ENDPOINT_BASE;
	return offset / DIBBER_ENDPOINT_STRIDE < card->endpoint_count &&
	       offset % DIBBER_ENDPOINT_STRIDE >= DIBBER_DOORBELL_OFFSET &&
	       offset % DIBBER_ENDPOINT_STRIDE < DIBBER_DOORBELL_OFFSET + DIBBER_DOORBELL_SIZE;
}

static int read_register(struct dibber_file *file, struct dibber_register *access)
{
	struct dibber_card *card = file->card;
	int rc;

	if (!may_read(card, access->offset)) {
		dibber_complain(card, "register 0x%x is not to be read\n", access->offset);
		return -EACCES;
	}
	rc = mutex_lock_killable(&card->lock);
	if (rc)
		return rc;
	/* In a reset the card answers nothing, which some systems take for an error. */
	if (card->gone)
		rc = -ENODEV;
	else if (card->resetting)
		rc = -ESHUTDOWN;
	else
		access->value = dibber_read(card, access->offset);
	mutex_unlock(&card->lock);
	return rc;
}

static int close_endpoint(struct dibber_file *file)
{
	int rc = mutex_lock_killable(&file->card->lock);

	if (rc)
		return rc;
	rc = file->number ? 0 : -ENOTCONN;
	dibber_endpoint_close(file);
	mutex_unlock(&file->card->lock);
	return rc;
}

union argument {
	struct dibber_info info;
	struct dibber_register access;
	struct dibber_endpoint_open open;
	struct dibber_region_add add;
	struct dibber_region_remove remove;
	struct dibber_eventfd eventfd;
	struct dibber_window_map map;
	struct dibber_window_unmap unmap;
};

/* What needs an endpoint is for the process alone that opened it. */
static bool is_owner(struct dibber_file *file)
{
	return READ_ONCE(file->mm) == current->mm;
}

static int dispatch(struct dibber_file *file, unsigned int call, union argument *argument)
{
	if (READ_ONCE(file->lost))
		return -ENODEV;
	switch (call) {
	case DIBBER_IOC_INFO:
		return get_info(file, &argument->info);
	case DIBBER_IOC_REGISTER:
		return read_register(file, &argument->access);
	case DIBBER_IOC_ENDPOINT_OPEN:
		if (!(file->file->f_mode & FMODE_WRITE))
			return -EACCES;
		return dibber_endpoint_open(file, &argument->open);
	}
	if (!READ_ONCE(file->mm))
		return -ENOTCONN;
	if (!is_owner(file)) {
		dibber_complain(file->card, "%s did not open the endpoint that it uses\n",
				current->comm);
		return -EPERM;
	}
	switch (call) {
	case DIBBER_IOC_ENDPOINT_CLOSE:
		return close_endpoint(file);
	case DIBBER_IOC_REGION_ADD:
		return dibber_region_add(file, &argument->add);
	case DIBBER_IOC_REGION_REMOVE:
		if (argument->remove.reserved)
			return -EINVAL;
		return dibber_region_remove(file, argument->remove.key);
	case DIBBER_IOC_WINDOW_MAP:
		return dibber_window_map(file, &argument->map);
	case DIBBER_IOC_WINDOW_UNMAP:
		if (argument->unmap.reserved)
			return -EINVAL;
		return dibber_window_unmap(file, argument->unmap.first);
	default:
		if (argument->eventfd.reserved)
			return -EINVAL;
		return dibber_endpoint_eventfd(file, argument->eventfd.fd);
	}
}

/* Undo what a process was not told of. */
static void undo(struct dibber_file *file, unsigned int call, const union argument *argument)
{
	if (call == DIBBER_IOC_REGION_ADD) {
		dibber_region_remove(file, argument->add.key);
	} else if (call == DIBBER_IOC_WINDOW_MAP) {
		dibber_window_unmap(file, argument->map.first);
	} else if (call == DIBBER_IOC_ENDPOINT_OPEN) {
		mutex_lock(&file->card->lock);
		dibber_endpoint_close(file);
		mutex_unlock(&file->card->lock);
	}
}

static long file_ioctl(struct file *filp, unsigned int call, unsigned long address)
{
	struct dibber_file *file = filp->private_data;
	void __user *user = (void __user *)address;
	union argument argument = {};
	int rc;

	switch (call) {
	case DIBBER_IOC_INFO:
	case DIBBER_IOC_REGISTER:
	case DIBBER_IOC_ENDPOINT_OPEN:
	case DIBBER_IOC_ENDPOINT_CLOSE:
	case DIBBER_IOC_REGION_ADD:
	case DIBBER_IOC_REGION_REMOVE:
	case DIBBER_IOC_EVENTFD:
	case DIBBER_IOC_WINDOW_MAP:
	case DIBBER_IOC_WINDOW_UNMAP:
		break;
	default:
		dibber_complain(file->card, "there is no ioctl 0x%x\n", call);
		return -ENOTTY;
	}
	if (_IOC_DIR(call) & _IOC_WRITE && copy_from_user(&argument, user, _IOC_SIZE(call)))
		return -EFAULT;
	rc = dispatch(file, call, &argument);
	if (!rc && _IOC_DIR(call) & _IOC_READ && copy_to_user(user, &argument, _IOC_SIZE(call))) {
		undo(file, call, &argument);
		rc = -EFAULT;
	}
	return rc;
}

/* Whether the card is gone, or was reset. */
static bool is_lost(struct dibber_file *file)
{
	return READ_ONCE(file->card->gone) || READ_ONCE(file->lost);
}

/* Whether nothing will interrupt any more. */
static bool has_ended(struct dibber_file *file)
{
	return is_lost(file) || !READ_ONCE(file->number);
}

static u64 take_interrupts(struct dibber_endpoint *endpoint)
{
	u64 count;

	spin_lock_irq(&endpoint->lock);
	count = endpoint->interrupts;
	endpoint->interrupts = 0;
	spin_unlock_irq(&endpoint->lock);
	return count;
}

/* Whether a reader has waited long enough. */
static bool is_over(struct dibber_file *file, struct dibber_endpoint *endpoint)
{
	return READ_ONCE(endpoint->interrupts) || has_ended(file);
}

/* As of an eventfd: 8 bytes, the interrupts since the last read. */
static ssize_t file_read(struct file *filp, char __user *user, size_t length, loff_t *offset)
{
	struct dibber_file *file = filp->private_data;
	unsigned int number = READ_ONCE(file->number);
	struct dibber_endpoint *endpoint = &file->card->endpoint[number];
	u64 count;
	int rc;

	if (length < sizeof(count))
		return -EINVAL;
	if (!number)
		return is_lost(file) ? -ENODEV : -ENOTCONN;
	if (!is_owner(file))
		return -EPERM;
	for (;;) {
		count = take_interrupts(endpoint);
		if (count)
			return copy_to_user(user, &count, sizeof(count)) ? -EFAULT : sizeof(count);
		if (has_ended(file))
			return is_lost(file) ? -ENODEV : -ENOTCONN;
		if (filp->f_flags & O_NONBLOCK)
			return -EAGAIN;
		rc = wait_event_interruptible(endpoint->wait, is_over(file, endpoint));
		if (rc)
			return rc;
	}
}

static __poll_t file_poll(struct file *filp, struct poll_table_struct *table)
{
	struct dibber_file *file = filp->private_data;
	unsigned int number = READ_ONCE(file->number);
	struct dibber_endpoint *endpoint = &file->card->endpoint[number];
	__poll_t events = 0;

	poll_wait(filp, &endpoint->wait, table);
	if (READ_ONCE(file->card->gone) || (READ_ONCE(file->mm) && !number))
		events |= EPOLLHUP | EPOLLERR;
	if (number && READ_ONCE(endpoint->interrupts))
		events |= EPOLLIN | EPOLLRDNORM;
	return events;
}

const struct file_operations dibber_file_operations = {
	.owner = THIS_MODULE,
	.open = file_open,
	.release = file_release,
	.unlocked_ioctl = file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = dibber_mmap,
	.read = file_read,
	.poll = file_poll,
};
