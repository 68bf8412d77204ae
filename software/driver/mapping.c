// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * What a process maps of its endpoint: the window, which is the page of command slots and the
 * doorbell page behind it, the two queues, which it can only read, and its pages of BAR 2.
 *
 * Pages come by faults, and not with mmap(), because unmap_mapping_range() finds a mapping only
 * when mmap() is over. So an endpoint that ends first says so, then takes the pages away; a later
 * fault finds a page of ones. Slots, doorbells, queues, BAR 2 and its control page have one each,
 * because a process may still write into all but the queues. A store through an old pointer must
 * not look like the answer of a barrier, so pages of BAR 2 do not share one with the control page.
 */

#include "dibber.h"

#define PER_ENDPOINT_SHIFT 24 /* log2 of the offsets that an endpoint has for mmap() */
#define QUEUES_OFFSET	   0x10000
/* Of the pages of ones: behind those of slots and doorbells. */
#define QUEUE_ONES    2ul
#define APERTURE_ONES 3ul
#define CONTROL_ONES  4ul

/* Bytes of BAR 2 that are write-combined. */
#define COMBINED (DIBBER_WINDOW_COMBINED * (unsigned long)DIBBER_APERTURE_PAGE)

/* The place of the control page of BAR 2. */
#define CONTROL (DIBBER_WINDOW_PAGES * (unsigned long)DIBBER_APERTURE_PAGE)

static_assert(CONTROL_ONES < 1ul << DIBBER_ONES_ORDER, "each kind has a page of ones");
static_assert(PAGE_SIZE == DIBBER_DOORBELL_OFFSET, "slots and doorbells are a page each");
static_assert(DIBBER_ENDPOINT_STRIDE == 2 * PAGE_SIZE, "and nothing else is there");
static_assert(DIBBER_APERTURE_BYTES == 1ul << PER_ENDPOINT_SHIFT, "BAR 2 is as long");

loff_t dibber_mapping_window(unsigned int number)
{
	return (loff_t)number << PER_ENDPOINT_SHIFT;
}

loff_t dibber_mapping_queues(unsigned int number)
{
	return dibber_mapping_window(number) + QUEUES_OFFSET;
}

/* Behind the offsets of all endpoints: each has BAR 2 once. */
loff_t dibber_mapping_aperture(unsigned int number)
{
	return dibber_mapping_window(DIBBER_ENDPOINTS + number);
}

/* The place of a page of a mapping, in bytes from where its endpoint's offsets begin. */
static unsigned long place_of(const struct vm_area_struct *vma, unsigned long address)
{
	u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (address - vma->vm_start);

	return offset & ((1ul << PER_ENDPOINT_SHIFT) - 1);
}

/* More than 32 bits: an offset may be any, and none may be taken for one that is revoked. */
static unsigned long number_of(const struct vm_area_struct *vma)
{
	return vma->vm_pgoff >> (PER_ENDPOINT_SHIFT - PAGE_SHIFT);
}

static bool is_aperture(const struct vm_area_struct *vma)
{
	return number_of(vma) >= DIBBER_ENDPOINTS;
}

/* The file has [place, place + length) of BAR 2. With the file's map_lock. */
static bool has_aperture(const struct dibber_file *file, unsigned long place, unsigned long length)
{
	unsigned long first = place / DIBBER_APERTURE_PAGE;
	unsigned long end = DIV_ROUND_UP(place + length, DIBBER_APERTURE_PAGE);

	if (place == CONTROL)
		return length == PAGE_SIZE && file->windows;
	return length <= CONTROL && place <= CONTROL - length &&
	       find_next_zero_bit(file->window, end, first) >= end;
}

/* Where a page of the file's own lies, or the page of ones. With the file's map_lock. */
static unsigned long frame_of(const struct dibber_file *file, const struct vm_area_struct *vma,
			      unsigned long place)
{
	struct dibber_card *card = file->card;
	unsigned long ones = page_to_pfn(file->ones);

	if (is_aperture(vma)) {
		if (file->mapped != number_of(vma) - DIBBER_ENDPOINTS ||
		    !has_aperture(file, place, PAGE_SIZE))
			return ones + (place == CONTROL ? CONTROL_ONES : APERTURE_ONES);
		return (card->window.start + place) >> PAGE_SHIFT;
	}
	/* The file may have become an endpoint with shorter queues since mmap(). */
	if (file->mapped != number_of(vma) || place >= QUEUES_OFFSET + file->queue_bytes)
		return ones + min(place >> PAGE_SHIFT, QUEUE_ONES);
	if (place >= QUEUES_OFFSET)
		return virt_to_phys(file->queues + place - QUEUES_OFFSET) >> PAGE_SHIFT;
	return (card->bar_start + DIBBER_ENDPOINT_BASE + file->mapped * DIBBER_ENDPOINT_STRIDE +
		place) >>
	       PAGE_SHIFT;
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct dibber_file *file = vma->vm_private_data;
	unsigned long place = place_of(vma, vmf->address & PAGE_MASK);
	vm_fault_t result;

	mutex_lock(&file->map_lock);
	result = vmf_insert_pfn(vma, vmf->address & PAGE_MASK, frame_of(file, vma, place));
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

/* Whether the file has what a mapping is to show. With the file's map_lock. */
static bool has_mapping(const struct dibber_file *file, const struct vm_area_struct *vma)
{
	unsigned long length = vma->vm_end - vma->vm_start;
	unsigned long place = place_of(vma, vma->vm_start);

	if (is_aperture(vma))
		return number_of(vma) - DIBBER_ENDPOINTS == file->mapped &&
		       (place >= COMBINED || length <= COMBINED - place) &&
		       has_aperture(file, place, length);
	if (number_of(vma) != file->mapped)
		return false;
	if (place >= QUEUES_OFFSET)
		return length <= file->queue_bytes &&
		       place - QUEUES_OFFSET <= file->queue_bytes - length;
	return length <= DIBBER_ENDPOINT_STRIDE && place <= DIBBER_ENDPOINT_STRIDE - length;
}

/* Loads of uncached pages may change something, so the processor must make none by itself. */
static pgprot_t protection_of(const struct vm_area_struct *vma)
{
	return is_aperture(vma) && place_of(vma, vma->vm_start) < COMBINED
		       ? pgprot_writecombine(vma->vm_page_prot)
		       : pgprot_noncached(vma->vm_page_prot);
}

int dibber_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct dibber_file *file = filp->private_data;
	bool queues = !is_aperture(vma) && place_of(vma, vma->vm_start) >= QUEUES_OFFSET;
	int rc;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	/* The kernel's checks of read and write rights were those of the open file. */
	if (queues && vma->vm_flags & VM_WRITE)
		return -EACCES;
	mutex_lock(&file->map_lock);
	if (!file->mapped || current->mm != file->mm)
		rc = -EPERM;
	else
		rc = has_mapping(file, vma) ? 0 : -EINVAL;
	mutex_unlock(&file->map_lock);
	if (rc)
		return rc;
	change_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY,
		     VM_MAYEXEC | (queues ? VM_MAYWRITE : 0));
	if (!queues)
		vma->vm_page_prot = protection_of(vma);
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
	if (!number)
		return;
	unmap_mapping_range(file->file->f_mapping, dibber_mapping_window(number),
			    1l << PER_ENDPOINT_SHIFT, 1);
	unmap_mapping_range(file->file->f_mapping, dibber_mapping_aperture(number),
			    1l << PER_ENDPOINT_SHIFT, 1);
}

void dibber_mapping_end_pages(struct dibber_file *file, unsigned int first, unsigned int count)
{
	mutex_lock(&file->map_lock);
	bitmap_clear(file->window, first, count);
	mutex_unlock(&file->map_lock);
	unmap_mapping_range(file->file->f_mapping,
			    dibber_mapping_aperture(file->number) +
				    first * (loff_t)DIBBER_APERTURE_PAGE,
			    count * (loff_t)DIBBER_APERTURE_PAGE, 1);
}

void dibber_mapping_end_control(struct dibber_file *file)
{
	unmap_mapping_range(file->file->f_mapping, dibber_mapping_aperture(file->number) + CONTROL,
			    PAGE_SIZE, 1);
}
