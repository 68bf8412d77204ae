// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* The PCI driver: finding a card, checking what it is, and letting it go. docs/driver.md */

#include "dibber.h"

#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/slab.h>

static int node[DIBBER_NODES];
module_param_array(node, int, NULL, 0444);
MODULE_PARM_DESC(node, "node number of each card, in the order of /dev/dibberN");

static DEFINE_IDA(numbers);

static void free_card(struct kref *references)
{
	struct dibber_card *card = container_of(references, struct dibber_card, references);

	ida_free(&numbers, card->number);
	kfree(card);
}

void dibber_put(struct dibber_card *card)
{
	kref_put(&card->references, free_card);
}

void dibber_complain(struct dibber_card *card, const char *format, ...)
{
	struct va_format message;
	va_list arguments;

	if (!__ratelimit(&card->complaints))
		return;
	va_start(arguments, format);
	message.fmt = format;
	message.va = &arguments;
	pr_warn("%s: %pV", card->name, &message);
	va_end(arguments);
}

/* Identity ------------------------------------------------------------------------------------- */

static int identify(struct dibber_card *card)
{
	struct device *dev = &card->pdev->dev;
	u32 magic = dibber_read(card, DIBBER_HOST_MAGIC);
	u32 version = dibber_read(card, DIBBER_HOST_INTERFACE_VERSION);
	u32 hash = dibber_read(card, DIBBER_HOST_INTERFACE_HASH);
	u32 geometry = dibber_read(card, DIBBER_HOST_GEOMETRY);
	u32 sram = dibber_read(card, DIBBER_HOST_SRAM);

	if (magic != DIBBER_MAGIC) {
		dev_err(dev, "BAR 0 begins with 0x%08x, a Dibber card with 0x%08x\n", magic,
			DIBBER_MAGIC);
		return -ENODEV;
	}
	if (version != DIBBER_INTERFACE_VERSION || hash != DIBBER_INTERFACE_HASH) {
		dev_err(dev,
			"the card has interface %08x (hash %08x), the driver %08x (hash %08x)\n",
			version, hash, DIBBER_INTERFACE_VERSION, DIBBER_INTERFACE_HASH);
		return -ENODEV;
	}
	card->features = dibber_read(card, DIBBER_HOST_FEATURES);
	card->clock_hz = dibber_read(card, DIBBER_HOST_CLOCK_HZ);
	card->endpoint_count = dibber_field(geometry, HOST_GEOMETRY_ENDPOINTS);
	card->slot_count = dibber_field(geometry, HOST_GEOMETRY_SLOTS);
	card->region_count = dibber_field(geometry, HOST_GEOMETRY_REGIONS);
	card->sram_bytes = dibber_field(sram, HOST_SRAM_SIZE) << 10;
	card->image_limit = dibber_field(sram, HOST_SRAM_IMAGE) << 10;
	if (card->endpoint_count < 2 || card->endpoint_count > DIBBER_ENDPOINTS ||
	    !is_power_of_2(card->slot_count) || card->slot_count > DIBBER_SLOTS ||
	    !card->region_count || card->region_count > DIBBER_REGIONS || !card->clock_hz ||
	    card->sram_bytes > DIBBER_SRAM_MAX || card->sram_bytes <= DIBBER_SHARED_FROM_END ||
	    !card->image_limit || card->image_limit > card->sram_bytes - DIBBER_SHARED_FROM_END) {
		dev_err(dev, "geometry 0x%08x and SRAM 0x%08x cannot be\n", geometry, sram);
		return -ENODEV;
	}
	if (card->node >= dibber_field(geometry, HOST_GEOMETRY_NODES)) {
		dev_err(dev, "node number %u: parameter node\n", card->node);
		return -EINVAL;
	}
	return 0;
}

/* Interrupts ----------------------------------------------------------------------------------- */

static irqreturn_t interrupt(int irq, void *data)
{
	const struct dibber_vector *vector = data;
	struct dibber_card *card = vector->card;
	unsigned int number;

	for (number = vector->number; number < card->endpoint_count; number += card->vectors)
		dibber_endpoint_interrupt(&card->endpoint[number]);
	return IRQ_HANDLED;
}

static void free_interrupts(struct dibber_card *card, int count)
{
	while (count--)
		free_irq(pci_irq_vector(card->pdev, count), &card->vector[count]);
	pci_free_irq_vectors(card->pdev);
}

static int request_interrupts(struct dibber_card *card)
{
	int most = min_t(int, card->endpoint_count, DIBBER_VECTORS);
	int i, rc;

	card->vectors = pci_alloc_irq_vectors(card->pdev, 1, most, PCI_IRQ_MSIX);
	if (card->vectors < 0)
		return dev_err_probe(&card->pdev->dev, card->vectors, "no MSI-X vectors\n");
	for (i = 0; i < card->vectors; i++) {
		card->vector[i].card = card;
		card->vector[i].number = i;
		rc = request_irq(pci_irq_vector(card->pdev, i), interrupt, 0, card->name,
				 &card->vector[i]);
		if (rc) {
			free_interrupts(card, i);
			return rc;
		}
	}
	return 0;
}

/* Probe and remove ----------------------------------------------------------------------------- */

static int dibber_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct dibber_card *card;
	unsigned int i;
	int rc;

	card = kzalloc(sizeof(*card), GFP_KERNEL);
	if (!card)
		return -ENOMEM;
	card->number = ida_alloc(&numbers, GFP_KERNEL);
	if (card->number < 0) {
		rc = card->number;
		kfree(card);
		return rc;
	}
	kref_init(&card->references);
	mutex_init(&card->lock);
	ratelimit_state_init(&card->complaints, HZ, 1);
	ratelimit_set_flags(&card->complaints, RATELIMIT_MSG_ON_RELEASE);
	INIT_LIST_HEAD(&card->users);
	for (i = 0; i < DIBBER_ENDPOINTS; i++) {
		init_waitqueue_head(&card->endpoint[i].wait);
		spin_lock_init(&card->endpoint[i].lock);
	}
	card->pdev = pdev;
	card->node = card->number < DIBBER_NODES ? node[card->number] : 0;
	snprintf(card->name, sizeof(card->name), "dibber%d", card->number);
	pci_set_drvdata(pdev, card);

	rc = pci_enable_device(pdev);
	if (rc)
		goto no_device;
	rc = pci_request_regions(pdev, card->name);
	if (rc)
		goto no_regions;
	rc = -ENODEV;
	if (pci_resource_len(pdev, 0) < DIBBER_BAR0_SIZE) {
		dev_err(&pdev->dev, "BAR 0 %pR is too short for a Dibber card\n",
			&pdev->resource[0]);
		goto no_bar;
	}
	card->bar_start = pci_resource_start(pdev, 0);
	card->bar = pci_iomap(pdev, 0, DIBBER_BAR0_SIZE);
	if (!card->bar)
		goto no_bar;
	rc = identify(card);
	if (rc)
		goto no_card;
	rc = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (rc)
		goto no_card;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	dma_set_seg_boundary(&pdev->dev, ULONG_MAX);
	/* A process and the card are to see the same bytes, so no copy may be between them. */
	if (dma_max_mapping_size(&pdev->dev) != SIZE_MAX) {
		dev_err(&pdev->dev, "the system copies what devices reach (swiotlb)\n");
		rc = -EOPNOTSUPP;
		goto no_card;
	}
	rc = dibber_admin_create(card);
	if (rc)
		goto no_card;
	dibber_window_create(card);
	rc = request_interrupts(card);
	if (rc)
		goto no_interrupts;
	pci_set_master(pdev);
	dibber_keys_begin(card);
	rc = dibber_program_load(card);
	if (rc)
		goto no_program;
	mutex_lock(&card->lock);
	dibber_window_open(card);
	mutex_unlock(&card->lock);

	card->misc.minor = MISC_DYNAMIC_MINOR;
	card->misc.name = card->name;
	card->misc.fops = &dibber_file_operations;
	card->misc.parent = &pdev->dev;
	rc = misc_register(&card->misc);
	if (rc)
		goto no_misc;
	dev_info(&pdev->dev, "/dev/%s: node %u, %u endpoints, %d vectors, control program 0x%08x\n",
		 card->name, card->node, card->endpoint_count, card->vectors, card->identity);
	dibber_net_add(card);
	pci_save_state(pdev);
	return 0;

no_misc:
	mutex_lock(&card->lock);
	dibber_window_close(card);
	mutex_unlock(&card->lock);
no_program:
	dibber_program_stop(card);
	free_interrupts(card, card->vectors);
no_interrupts:
	dibber_window_destroy(card);
	dibber_admin_destroy(card);
no_card:
	pci_iounmap(pdev, card->bar);
no_bar:
	pci_release_regions(pdev);
no_regions:
	pci_disable_device(pdev);
no_device:
	dibber_put(card);
	return rc;
}

/*
 * Users are left with their open files and mappings: calls return ENODEV, mappings show ones. What
 * they had registered is given back before this returns. With the card locked.
 */
static void end_users(struct dibber_card *card)
{
	unsigned int i;

	for (i = 1; i < card->endpoint_count; i++) {
		struct dibber_file *file = card->endpoint[i].file;

		if (!file)
			continue;
		WRITE_ONCE(file->lost, true);
		dibber_endpoint_close(file);
	}
	dibber_window_close(card);
	dibber_program_stop(card);
}

static void dibber_remove(struct pci_dev *pdev)
{
	struct dibber_card *card = pci_get_drvdata(pdev);
	unsigned int i;

	dibber_net_remove(card);
	misc_deregister(&card->misc);
	mutex_lock(&card->lock);
	end_users(card);
	WRITE_ONCE(card->gone, true);
	free_interrupts(card, card->vectors);
	dibber_admin_destroy(card);
	dibber_window_destroy(card);
	pci_iounmap(pdev, card->bar);
	mutex_unlock(&card->lock);
	for (i = 0; i < DIBBER_ENDPOINTS; i++)
		wake_up_all(&card->endpoint[i].wait);
	pci_release_regions(pdev);
	pci_disable_device(pdev);
	dibber_put(card);
}

/* Resets and errors ---------------------------------------------------------------------------- */

/* Before the card is reset, or when it is not to be trusted. The device itself stays. */
static void stop_card(struct pci_dev *pdev)
{
	struct dibber_card *card = pci_get_drvdata(pdev);

	/* It is down already when a reset before this one has failed, or has not come to its end.
	 */
	if (dibber_net_down(card))
		card->net_was_up = true;
	mutex_lock(&card->lock);
	/* What failed once stays as it is: the card may not answer any more. */
	if (!card->resetting)
		end_users(card);
	card->resetting = true;
	mutex_unlock(&card->lock);
}

/* After the reset. Processes open their endpoints anew; the network device does so by itself. */
static int start_card(struct pci_dev *pdev)
{
	struct dibber_card *card = pci_get_drvdata(pdev);
	int rc;

	mutex_lock(&card->lock);
	rc = identify(card);
	if (!rc) {
		pci_set_master(pdev);
		dibber_keys_begin(card);
		rc = dibber_program_load(card);
		/* A program that has not started as it should reaches no memory. */
		if (rc)
			dibber_program_stop(card);
		else
			dibber_window_open(card);
	}
	card->resetting = rc;
	mutex_unlock(&card->lock);
	if (rc) {
		dev_err(&pdev->dev, "it does not work after its reset: %d\n", rc);
	} else if (card->net_was_up) {
		card->net_was_up = false;
		dibber_net_up(card);
	}
	return rc;
}

/* What was under way may be lost or damaged, and nobody knows which, so all begins anew. */
static pci_ers_result_t error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	dev_warn(&pdev->dev, "PCIe reports an error (state %u): all endpoints end\n", state);
	stop_card(pdev);
	return state == pci_channel_io_perm_failure ? PCI_ERS_RESULT_DISCONNECT
						    : PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	/* As probe() has saved it. It can be restored once only. */
	pci_restore_state(pdev);
	pci_save_state(pdev);
	return start_card(pdev) ? PCI_ERS_RESULT_DISCONNECT : PCI_ERS_RESULT_RECOVERED;
}

static void reset_done(struct pci_dev *pdev)
{
	start_card(pdev);
	/* The kernel has used up what was saved. */
	pci_save_state(pdev);
}

static const struct pci_error_handlers dibber_errors = {
	.error_detected = error_detected,
	.slot_reset = slot_reset,
	.reset_prepare = stop_card,
	.reset_done = reset_done,
};

/* A card that loses power forgets endpoints and regions, and nobody could tell the processes. */
static int dibber_suspend(struct device *dev)
{
	dev_warn_ratelimited(dev, "suspend is refused: unbind the driver first\n");
	return -EBUSY;
}

static DEFINE_SIMPLE_DEV_PM_OPS(dibber_pm, dibber_suspend, NULL);

static const struct pci_device_id dibber_ids[] = {
	{ PCI_DEVICE(DIBBER_PCI_VENDOR, DIBBER_PCI_DEVICE) }, {}
};
MODULE_DEVICE_TABLE(pci, dibber_ids);

static struct pci_driver dibber_driver = {
	.name = "dibber",
	.id_table = dibber_ids,
	.probe = dibber_probe,
	.remove = dibber_remove,
	.err_handler = &dibber_errors,
	.driver.pm = pm_sleep_ptr(&dibber_pm),
};
module_pci_driver(dibber_driver);

MODULE_DESCRIPTION("Dibber: a network card of strided puts");
MODULE_AUTHOR("The Dibber project");
MODULE_LICENSE("Dual BSD/GPL");
