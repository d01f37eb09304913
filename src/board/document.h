/* Charts, widgets and dashboards as JSON: what a user sends becomes what is stored.
 *
 * The shapes are HICC's, of Chukwa (doc/boards.md). A chart says which series it shows and how. A
 * widget has a title and the address of what it shows, mostly a chart. A dashboard is a grid of
 * widgets. Members that are known are checked; others are kept, with the digits of their numbers.
 *
 * Pure, any thread. */
#ifndef BOARD_DOCUMENT_H
#define BOARD_DOCUMENT_H

#include "base/mem.h"
#include "wire/json.h"

enum board_kind { BOARD_CHART, BOARD_WIDGET, BOARD_DASHBOARD, BOARD_KINDS };

enum {
	BOARD_ID_MAX_BYTES = 200,
	BOARD_GRID_MAX = 500,                 /* widgets of a dashboard */
	BOARD_TEXT_MAX_BYTES = 256 << 10,     /* of any kind */
	BOARD_DEPTH_MAX = JSON_DEPTH_MAX - 2, /* so that it may stand in a list of an export */
	/* A dashboard with all that it names. It can be imported with some blanks more. */
	BOARD_EXPORT_MAX_BYTES = 31 << 20,
	BOARD_IMPORT_MAX_BYTES = 32 << 20,
};

struct board_rule;

/* What is of one kind, once. */
struct board_kind_def {
	const char *name;      /* in addresses and sentences */
	const char *id_member; /* which member is its id */
	const char *row;       /* of chukwa_metadata, as K has it */
	size_t max_bytes;      /* of one, as it is stored */
	const struct board_rule *rules;
};
extern const struct board_kind_def board_kinds[BOARD_KINDS];

struct board_document {
	enum board_kind kind;
	struct slice id, text; /* in the arena */
};

/* The document of a tree. Its id is its own member, else `id`, else a random one (`id` with NULL
 * data); a widget must have its title. What it does not say gets the presets of its kind. Memory
 * comes from the arena. ERR_INVALID, ERR_LIMIT with a sentence that names the member. */
int board_document_make(enum board_kind kind, const struct json *tree, struct slice id,
			struct arena *arena, struct board_document *made,
			struct errbuf *e) MUST_CHECK;
/* The same of a text. */
int board_document_parse(enum board_kind kind, struct slice text, struct slice id,
			 struct arena *arena, struct board_document *made,
			 struct errbuf *e) MUST_CHECK;

/* A list of series, as a chart has them. ERR_INVALID with a sentence that names the member. */
int board_series_check(const struct json *list, struct errbuf *e) MUST_CHECK;

/* The id of the chart that a widget shows: its `src` is /hicc/v1/chart/draw/ID, where Chukwa draws
 * charts; or with circles, tile or piechart for chart. NULL data: it shows something else. Memory
 * comes from the arena. */
struct slice board_widget_chart(const struct json *widget, struct arena *arena);

enum { BOARD_TAG_BYTES = 2 + 32 + 1 };

/* The entity tag of a text (RFC 9110, 8.8.3): the same text has the same tag. */
void board_tag(struct slice text, char tag[BOARD_TAG_BYTES]);

#endif
