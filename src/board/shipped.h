/* Boards that are part of the program: shipped.json, a list of each kind. Private to board/. */
#ifndef BOARD_SHIPPED_H
#define BOARD_SHIPPED_H

#include "board/document.h"

struct board_shipped {
	struct arena arena;
	struct board_document *list[BOARD_KINDS]; /* by id in byte order */
	size_t count[BOARD_KINDS];
};

void board_shipped_init(struct board_shipped *shipped);
void board_shipped_release(struct board_shipped *shipped);
/* NULL: none has this id. */
const struct board_document *board_shipped_find(const struct board_shipped *shipped,
						enum board_kind kind, struct slice id);

#endif
