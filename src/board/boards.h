/* Boards: charts, widgets and dashboards of tenants (document.h), in the store and shipped.
 *
 * Each is a cell of the table `chukwa_metadata`: row (tenant, `chart_meta`), column (`c`, id), its
 * JSON. Shipped ones (shipped.json) are in the program, are there for every tenant, and are never
 * written. What a user saves under the id of a shipped one is found instead of it; when that is
 * deleted the shipped one is back.
 *
 * Nobody overwrites what he has not seen: who saves may name the entity tag of what he has read,
 * and is refused if it has changed since. Changes that one process makes for a tenant come one
 * after the other, so that of two who have read the same only one saves. Cells of this table have
 * no conditions of the store's: where processes share a store, one that saves between another's
 * reading and writing goes unnoticed. So it is with how many there may be.
 *
 * Threads: any that may wait. */
#ifndef BOARD_BOARDS_H
#define BOARD_BOARDS_H

#include "base/clock.h"
#include "board/document.h"
#include "store/store.h"

struct boards;

struct boards_limits {
	size_t each_max; /* of each kind, of a tenant */
};

struct boards *boards_new(struct store *store, struct clock *clock,
			  const struct boards_limits *limits);
void boards_free(struct boards *boards);

struct board {
	struct slice id, text;
	bool is_shipped; /* what was found is the shipped one */
};

/* The texts are in the arena, or the program's. ERR_NOT_FOUND, the store's error; with a sentence.
 */
int boards_get(struct boards *boards, struct task_queue *queue, struct slice tenant,
	       enum board_kind kind, struct slice id, struct arena *arena, struct board *board,
	       struct errbuf *e) MUST_CHECK;

struct boards_listing {
	struct slice tenant;
	enum board_kind kind;
	struct slice prefix; /* only ids that begin so; empty: all */
	size_t offset, limit;
};
/* Gives them to `each` by id in byte order, `limit` after the first `offset`; until `each` says an
 * error, which is given back. */
int boards_list(struct boards *boards, struct task_queue *queue,
		const struct boards_listing *listing,
		int (*each)(const struct board *board, void *owner), void *owner,
		struct errbuf *e) MUST_CHECK;

/* What is changed, and what it depends on: If-Match and If-None-Match as they were sent (RFC 9110,
 * 13.1), NULL data: nothing. */
struct board_change {
	struct slice tenant;
	enum board_kind kind;
	struct slice id; /* NULL data: a new one is put */
	struct slice if_match, if_none_match;
	bool is_stale; /* result, of an error: they do not hold */
	bool is_new;   /* result: there was none, not even a shipped one */
	bool is_back;  /* result of a deletion: the shipped one is */
};

/* Puts a document in place of what is under change->id, which is renamed where the document has
 * another id. When it returns 0 the document is durable. ERR_EXISTS: there is one that would be
 * overwritten, or the conditions do not hold; ERR_NOT_FOUND: nothing is there to be renamed;
 * ERR_LIMIT: there are too many; the store's error; with a sentence. */
int boards_put(struct boards *boards, struct task_queue *queue, struct board_change *change,
	       const struct board_document *document, struct errbuf *e) MUST_CHECK;
/* ERR_EXISTS: it is a shipped one, or the conditions do not hold; ERR_NOT_FOUND, the store's error;
 * with a sentence. */
int boards_delete(struct boards *boards, struct task_queue *queue, struct board_change *change,
		  struct errbuf *e) MUST_CHECK;

/* A dashboard with the widgets and charts that it names, as one JSON document. What it names and is
 * not there stands in `missing`. Errors as boards_get. */
int boards_export(struct boards *boards, struct task_queue *queue, struct slice tenant,
		  struct slice id, struct arena *arena, struct json_writer *json,
		  struct errbuf *e) MUST_CHECK;

/* Puts all of such a document, or nothing: in one batch, with the dashboard last, for stores whose
 * batches are not atomic over several rows. ERR_INVALID, ERR_LIMIT: something of it may not be;
 * ERR_EXISTS: something of it is there and is another, and it does not `overwrite`; the store's
 * error; with a sentence. */
struct boards_import {
	struct slice tenant;
	bool overwrite;
	struct slice if_match, if_none_match; /* of the dashboard, as of a board_change */
	bool is_stale;                        /* result, of an error: they do not hold */
	struct slice id;                      /* result: of the dashboard, in the arena */
	size_t created, replaced, unchanged;  /* results */
};
int boards_import(struct boards *boards, struct task_queue *queue, struct boards_import *import,
		  const struct json *root, struct arena *arena, struct errbuf *e) MUST_CHECK;

#endif
