// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Endpoints: one for each open file that asks for one, from then until it or its process ends. */

#include "dibber.h"
#include "net_protocol.h"

#include <linux/dma-mapping.h>
#include <linux/slab.h>

static unsigned int user_endpoints;
module_param(user_endpoints, uint, 0644);
MODULE_PARM_DESC(user_endpoints, "endpoints that one user may have of a card; 0: no limit");

/* Users ---------------------------------------------------------------------------------------- */

static struct dibber_user *get_user_of(struct dibber_card *card, kuid_t uid)
{
	struct dibber_user *user;

	list_for_each_entry(user, &card->users, list) {
		if (uid_eq(user->uid, uid))
			goto found;
	}
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return ERR_PTR(-ENOMEM);
	user->uid = uid;
	list_add(&user->list, &card->users);
found:
	if (user_endpoints && user->endpoints >= user_endpoints && !capable(CAP_SYS_RESOURCE)) {
		dibber_complain(card, "user %u has %u endpoints, which is the quota\n",
				from_kuid(&init_user_ns, uid), user->endpoints);
		return ERR_PTR(-EDQUOT);
	}
	user->endpoints++;
	return user;
}

static void put_user_of(struct dibber_user *user)
{
	if (--user->endpoints)
		return;
	list_del(&user->list);
	kfree(user);
}

/* The end of a process ------------------------------------------------------------------------- */

/* The address space ends: its process exits, was killed, or executes another program. */
static void address_space_ends(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct dibber_file *file = container_of(notifier, struct dibber_file, notifier);

	mutex_lock(&file->card->lock);
	dibber_endpoint_close(file);
	mutex_unlock(&file->card->lock);
}

static const struct mmu_notifier_ops notifier_operations = {
	.release = address_space_ends,
};

/* Bind the file to the address space of the process that opens its first endpoint. */
static int bind(struct dibber_file *file)
{
	int rc;

	if (file->mm)
		return file->mm == current->mm ? 0 : -EPERM;
	file->notifier.ops = &notifier_operations;
	rc = mmu_notifier_register(&file->notifier, current->mm);
	if (!rc)
		file->mm = current->mm;
	return rc;
}

/* Queues --------------------------------------------------------------------------------------- */

static bool is_queue_length(u32 entries, u32 least)
{
	return entries >= least && entries <= DIBBER_QUEUE_MAX_ENTRIES && is_power_of_2(entries);
}

static int make_queues(struct dibber_file *file, const struct dibber_endpoint_open *open)
{
	struct device *dev = &file->card->pdev->dev;
	size_t bytes = PAGE_ALIGN((open->cq_entries + open->eq_entries) *
				  (size_t)DIBBER_QUEUE_ENTRY_BYTES);

	file->queues = alloc_pages_exact(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!file->queues)
		return -ENOMEM;
	file->queue_address = dma_map_single(dev, file->queues, bytes, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(dev, file->queue_address)) {
		free_pages_exact(file->queues, bytes);
		file->queues = NULL;
		return -ENOMEM;
	}
	file->queue_bytes = bytes;
	return 0;
}

static void free_queues(struct dibber_file *file)
{
	dma_unmap_single(&file->card->pdev->dev, file->queue_address, file->queue_bytes,
			 DMA_BIDIRECTIONAL);
	free_pages_exact(file->queues, file->queue_bytes);
	file->queues = NULL;
}

/* Opening and closing -------------------------------------------------------------------------- */

/*
 * Network devices of other nodes believe what comes from this endpoint, so a process needs the
 * right to send packets of its own making.
 */
static bool may_have(u32 number)
{
	return number != DIBBER_NET_CONTROL || capable(CAP_NET_RAW);
}

static bool is_free(const struct dibber_card *card, u32 number)
{
	return number && !card->endpoint[number].file && !card->endpoint[number].own;
}

/* The endpoint that is wanted, if it is free. */
static int choose(struct dibber_card *card, u32 wanted)
{
	u32 number;

	if (wanted != DIBBER_ANY_ENDPOINT) {
		if (wanted >= card->endpoint_count)
			return -EINVAL;
		if (!may_have(wanted))
			return -EACCES;
		return is_free(card, wanted) ? (int)wanted : -EBUSY;
	}
	for (number = 1; number < card->endpoint_count; number++) {
		if (is_free(card, number) && may_have(number))
			return number;
	}
	return -ENOSPC;
}

/* With the card locked. */
static int open_locked(struct dibber_file *file, struct dibber_endpoint_open *open)
{
	struct dibber_card *card = file->card;
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_ENDPOINT_OPEN,
		.cq_entries = open->cq_entries,
		.eq_entries = open->eq_entries,
	};
	struct dibber_endpoint *endpoint;
	struct dibber_user *user;
	int number, rc;

	/* A reset may have ended the file while it waited for the lock. */
	if (file->lost)
		return -ENODEV;
	rc = dibber_admin_check(card);
	if (rc)
		return rc;
	if (file->number)
		return -EISCONN;
	number = choose(card, open->number);
	if (number < 0)
		return number;
	user = get_user_of(card, current_uid());
	if (IS_ERR(user))
		return PTR_ERR(user);
	rc = make_queues(file, open);
	if (rc)
		goto no_queues;
	command.endpoint = number;
	command.vector = number % card->vectors;
	command.cq_base = file->queue_address;
	command.eq_base = file->queue_address + (size_t)open->cq_entries * DIBBER_QUEUE_ENTRY_BYTES;
	dibber_write(card, dibber_doorbell(number, DIBBER_DOORBELL_CQ_CONSUMER), 0);
	dibber_write(card, dibber_doorbell(number, DIBBER_DOORBELL_EQ_CONSUMER), 0);
	rc = dibber_admin(card, &command);
	if (rc == -ESHUTDOWN && !card->stopped)
		dibber_program_stop(card);
	if (rc)
		goto not_open;
	endpoint = &card->endpoint[number];
	spin_lock_irq(&endpoint->lock);
	endpoint->interrupts = 0;
	spin_unlock_irq(&endpoint->lock);
	endpoint->file = file;
	file->user = user;
	file->number = number;
	mutex_lock(&file->map_lock);
	file->mapped = number;
	mutex_unlock(&file->map_lock);
	open->number = number;
	open->halts = card->halts;
	open->window = dibber_mapping_window(number);
	open->queues = dibber_mapping_queues(number);
	open->queue_bytes = file->queue_bytes;
	return 0;

not_open:
	free_queues(file);
no_queues:
	put_user_of(user);
	return rc;
}

int dibber_endpoint_open(struct dibber_file *file, struct dibber_endpoint_open *open)
{
	struct dibber_card *card = file->card;
	int rc;

	if (!is_queue_length(open->cq_entries, card->slot_count) ||
	    !is_queue_length(open->eq_entries, 1)) {
		dibber_complain(card, "queues of %u completions and %u events\n", open->cq_entries,
				open->eq_entries);
		return -EINVAL;
	}
	rc = mutex_lock_killable(&file->lock);
	if (rc)
		return rc;
	rc = bind(file);
	if (!rc && !file->ones) {
		struct page *ones = alloc_pages(GFP_KERNEL_ACCOUNT, DIBBER_ONES_ORDER);

		if (ones)
			memset(page_address(ones), 0xff, PAGE_SIZE << DIBBER_ONES_ORDER);
		else
			rc = -ENOMEM;
		file->ones = ones;
	}
	if (!rc)
		rc = mutex_lock_killable(&card->lock);
	if (!rc) {
		rc = open_locked(file, open);
		mutex_unlock(&card->lock);
	}
	mutex_unlock(&file->lock);
	return rc;
}

void dibber_endpoint_close(struct dibber_file *file)
{
	struct dibber_card *card = file->card;
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_ENDPOINT_CLOSE,
		.endpoint = file->number,
	};
	struct dibber_endpoint *endpoint = &card->endpoint[file->number];
	struct eventfd_ctx *eventfd;
	int rc;

	if (!file->number)
		return;
	/* First, so that the process gives no command more. */
	dibber_mapping_end(file);
	dibber_window_release(file);
	rc = dibber_admin(card, &command);
	if (rc && !card->stopped)
		dibber_program_stop(card);
	dibber_regions_release(file);
	free_queues(file);
	spin_lock_irq(&endpoint->lock);
	eventfd = endpoint->eventfd;
	endpoint->eventfd = NULL;
	spin_unlock_irq(&endpoint->lock);
	if (eventfd)
		eventfd_ctx_put(eventfd);
	endpoint->file = NULL;
	put_user_of(file->user);
	file->user = NULL;
	file->number = 0;
	wake_up_interruptible_all(&endpoint->wait);
}

/* Interrupts ----------------------------------------------------------------------------------- */

int dibber_endpoint_eventfd(struct dibber_file *file, int fd)
{
	struct dibber_card *card = file->card;
	struct eventfd_ctx *new = NULL, *old;
	struct dibber_endpoint *endpoint;
	int rc;

	if (fd >= 0) {
		new = eventfd_ctx_fdget(fd);
		if (IS_ERR(new))
			return PTR_ERR(new);
	}
	rc = mutex_lock_killable(&card->lock);
	if (!rc) {
		endpoint = &card->endpoint[file->number];
		old = new;
		if (file->number) {
			spin_lock_irq(&endpoint->lock);
			old = endpoint->eventfd;
			endpoint->eventfd = new;
			spin_unlock_irq(&endpoint->lock);
		} else {
			rc = -ENOTCONN;
		}
		mutex_unlock(&card->lock);
		new = old;
	}
	if (new)
		eventfd_ctx_put(new);
	return rc;
}

/* In an interrupt. */
void dibber_endpoint_interrupt(struct dibber_endpoint *endpoint)
{
	unsigned long flags;

	spin_lock_irqsave(&endpoint->lock, flags);
	endpoint->interrupts++;
	if (endpoint->own)
		endpoint->own->interrupt(endpoint->own);
	if (endpoint->eventfd) {
#ifdef DIBBER_EVENTFD_COUNTS
		eventfd_signal(endpoint->eventfd, 1);
#else
		eventfd_signal(endpoint->eventfd);
#endif
	}
	spin_unlock_irqrestore(&endpoint->lock, flags);
	wake_up(&endpoint->wait);
}
