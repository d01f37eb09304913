#include "board/shipped.h"

enum { SHIPPED_ARENA_MAX_BYTES = 16 << 20 };

/* Made of shipped.json by the build. */
extern const char board_shipped_json[];
extern const size_t board_shipped_json_bytes;

static void board_shipped_add(struct board_shipped *shipped, enum board_kind kind,
			      const struct json *tree)
{
	struct errbuf e;
	struct board_document *made = &shipped->list[kind][shipped->count[kind]++];
	int err =
		board_document_make(kind, tree, (struct slice){NULL, 0}, &shipped->arena, made, &e);
	ASSERT(!err && json_member(tree, board_kinds[kind].id_member));
	ASSERT(made == shipped->list[kind] || slice_compare(made[-1].id, made->id) < 0);
}

void board_shipped_init(struct board_shipped *shipped)
{
	static const char *const names[BOARD_KINDS] = {"charts", "widgets", "dashboards"};
	struct json *root;
	struct errbuf e;
	*shipped = (struct board_shipped){.count = {0}};
	arena_init(&shipped->arena, SHIPPED_ARENA_MAX_BYTES);
	int err = json_parse((struct slice){board_shipped_json, board_shipped_json_bytes},
			     &shipped->arena, &root, &e);
	ASSERT(!err);
	for (enum board_kind kind = 0; kind < BOARD_KINDS; kind++) {
		const struct json *list = json_member(root, names[kind]);
		ASSERT(list);
		shipped->list[kind] = arena_alloc(
			&shipped->arena, (list->count + 1) * sizeof(struct board_document));
		ASSERT(shipped->list[kind]);
		for (const struct json *one = list->first; one; one = one->next)
			board_shipped_add(shipped, kind, one);
	}
}

void board_shipped_release(struct board_shipped *shipped)
{
	arena_release(&shipped->arena);
}

const struct board_document *board_shipped_find(const struct board_shipped *shipped,
						enum board_kind kind, struct slice id)
{
	for (size_t i = 0; i < shipped->count[kind]; i++) {
		if (slice_equal(shipped->list[kind][i].id, id))
			return &shipped->list[kind][i];
	}
	return NULL;
}
