/* Doubly linked circular lists. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_LIST_H
#define DFI_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define member_of(pointer, type, member) \
	((type *)(void *)((char *)(pointer) - offsetof(type, member)))

static inline void list_init(struct list *list)
{
	list->next = list->prev = list;
}

static inline bool list_empty(const struct list *list)
{
	return list->next == list;
}

static inline void list_append(struct list *list, struct list *item)
{
	item->prev = list->prev;
	item->next = list;
	list->prev->next = item;
	list->prev = item;
}

/* An item that was removed may be removed again. */
static inline void list_remove(struct list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	list_init(item);
}

/* `following` keeps the loop going when the body removes `item`. */
#define list_each(item, following, head)                                                \
	for (struct list *item = (head)->next, *following = item->next; item != (head); \
	     item = following, following = item->next)

#endif
