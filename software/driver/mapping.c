// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * What a process maps of its endpoint: the window, which is the page of command slots and the
 * doorbell page behind it, and the two queues, which it can only read.
 *
 * Pages come by faults, and not with mmap(), because unmap_mapping_range() finds a mapping only
 * when mmap() is over. So an endpoint that ends first says so, then takes the pages away; a later
 * fault finds a page of ones. Slots, doorbells and queues have one each, because a process may
 * still write into the first two.
 */

#include "dibber.h"

#define PER_ENDPOINT_SHIFT 24 /* log2 of the offsets that an endpoint has for mmap() */
#define QUEUES_OFFSET	   0x10000
#define QUEUE_ONES	   2ul /* of the pages of ones: behind those of the window */

static_assert(PAGE_SIZE == DIBBER_DOORBELL_OFFSET, "slots and doorbells are a page each");
static_assert(DIBBER_ENDPOINT_STRIDE == 2 * PAGE_SIZE, "and nothing else is there");

loff_t dibber_mapping_window(unsigned int number)
{
	return (loff_t)number << PER_ENDPOINT_SHIFT;
}

loff_t dibber_mapping_queues(unsigned int number)
{
	return dibber_mapping_window(number) + QUEUES_OFFSET;
}

/* The place of a page of a mapping, in bytes from where its endpoint's offsets begin. */
static unsigned long place_of(const struct vm_area_struct *vma, unsigned long address)
{
	u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (address - vma->vm_start);

	return offset & ((1ul << PER_ENDPOINT_SHIFT) - 1);
}

static unsigned int number_of(const struct vm_area_struct *vma)
{
	return vma->vm_pgoff >> (PER_ENDPOINT_SHIFT - PAGE_SHIFT);
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct dibber_file *file = vma->vm_private_data;
	unsigned long place = place_of(vma, vmf->address & PAGE_MASK);
	unsigned long frame;
	vm_fault_t result;

	mutex_lock(&file->map_lock);
	/* The file may have become an endpoint with shorter queues since mmap(). */
	if (file->mapped != number_of(vma) || place >= QUEUES_OFFSET + file->queue_bytes)
		frame = page_to_pfn(file->ones) + min(place >> PAGE_SHIFT, QUEUE_ONES);
	else if (place >= QUEUES_OFFSET)
		frame = virt_to_phys(file->queues + place - QUEUES_OFFSET) >> PAGE_SHIFT;
	else
		frame = (file->card->bar_start + DIBBER_ENDPOINT_BASE +
			 file->mapped * DIBBER_ENDPOINT_STRIDE + place) >>
			PAGE_SHIFT;
	result = vmf_insert_pfn(vma, vmf->address & PAGE_MASK, frame);
	mutex_unlock(&file->map_lock);
	return result;
}

static const struct vm_operations_struct mapping_operations = {
	.fault = fault,
};

static void change_flags(struct vm_area_struct *vma, unsigned long set, unsigned long clear)
{
#ifdef DIBBER_VM_FLAGS_FUNCTIONS
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

int dibber_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct dibber_file *file = filp->private_data;
	unsigned long length = vma->vm_end - vma->vm_start;
	unsigned long place = place_of(vma, vma->vm_start);
	bool queues = place >= QUEUES_OFFSET;
	int rc = -EINVAL;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	/* The kernel's checks of read and write rights were those of the open file. */
	if (queues && vma->vm_flags & VM_WRITE)
		return -EACCES;
	mutex_lock(&file->map_lock);
	if (!file->mapped || current->mm != file->mm)
		rc = -EPERM;
	else if (number_of(vma) == file->mapped &&
		 (queues ? length <= file->queue_bytes &&
				   place - QUEUES_OFFSET <= file->queue_bytes - length
			 : length <= DIBBER_ENDPOINT_STRIDE &&
				   place <= DIBBER_ENDPOINT_STRIDE - length))
		rc = 0;
	mutex_unlock(&file->map_lock);
	if (rc)
		return rc;
	change_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY,
		     VM_MAYEXEC | (queues ? VM_MAYWRITE : 0));
	if (!queues)
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_ops = &mapping_operations;
	vma->vm_private_data = file;
	return 0;
}

void dibber_mapping_end(struct dibber_file *file)
{
	unsigned int number;

	mutex_lock(&file->map_lock);
	number = file->mapped;
	file->mapped = 0;
	mutex_unlock(&file->map_lock);
	if (number)
		unmap_mapping_range(file->file->f_mapping, dibber_mapping_window(number),
				    1l << PER_ENDPOINT_SHIFT, 1);
}
