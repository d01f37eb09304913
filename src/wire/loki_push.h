/* What clients of Grafana Loki push (grafana.com/docs/loki/latest/reference/loki-http-api/, "Ingest
 * logs"), in JSON:
 *
 *     {"streams":[{"stream":{"job":"web","host":"a"},
 *                  "values":[["1700000000123456789","a line"],
 *                            ["1700000000123456790","another",{"trace":"0242ac12"}]]}]}
 *
 * The time of an entry is a text, in ns since 1970; its third element, structured metadata, may be
 * left out. A body is read as a whole first, so that of one that is cut off, or is no JSON, nothing
 * is taken. What is wrong with one stream or entry is said of it, with a constant reason, and the
 * others are good. Other members are passed over, as Loki does.
 *
 * As Loki has it: labels are texts under names of A-Z a-z 0-9 _ that do not begin with a digit;
 * those with an empty value count as not there; a stream has at least one. Metadata are texts under
 * any names, in which `_` stands for other characters. In texts U+FFFD stands for what is no UTF-8.
 *
 * Bytes in, struct out: no I/O, no globals; memory from the caller's arena. */
#ifndef WIRE_LOKI_PUSH_H
#define WIRE_LOKI_PUSH_H

#include "base/buf.h"
#include "base/mem.h"
#include "wire/json.h"

enum {
	LOKI_STREAMS_MAX = 10000, /* of a body */
	LOKI_LABELS_MAX = 128,    /* of a stream; also metadata of an entry */
	LOKI_LABEL_NAME_MAX_BYTES = 1024,
	LOKI_LABEL_VALUE_MAX_BYTES = 2048, /* of a stream's */
	LOKI_LINE_MAX_BYTES = 256 << 10,   /* as Loki's own limit is */
	LOKI_TIME_BYTES = 30,              /* 2023-11-14T22:13:20.123456789Z */
};

struct loki_label {
	struct slice name, value;
};

struct loki_labels {
	struct loki_label *list; /* sorted by name; no two have one name */
	size_t count;
};

struct loki_stream {
	const char *wrong; /* why none of it can be taken; NULL: nothing is */
	struct loki_labels labels;
	struct slice values; /* the text of an array, in the body */
};

struct loki_push {
	struct loki_stream *streams; /* in the arena */
	size_t count;
};

/* The streams of a body, which must outlive them. ERR_INVALID with a sentence: it is no JSON, or is
 * no push; ERR_LIMIT: the arena is full, or there are more than LOKI_STREAMS_MAX streams. */
int loki_push_read(struct slice body, struct arena *arena, struct loki_push *push,
		   struct errbuf *e) MUST_CHECK;

struct loki_entry {
	const char *wrong;  /* why it cannot be taken; NULL: it can */
	struct slice shown; /* of one whose time is wrong, the text of that */
	int64_t time_ns;
	struct slice line;
	struct loki_labels metadata; /* the last of equal names, in the order of names */
};

/* The entries of a stream, one after the other. What they point to lies in the body, or in the
 * arena, which may be reset between two of them. */
struct loki_entries {
	struct json_reader reader;
	struct arena *arena;
};
void loki_entries_begin(struct loki_entries *entries, const struct loki_stream *stream,
			struct arena *arena);
/* 0; ERR_NOT_FOUND: there are no more; ERR_LIMIT: the arena is full. */
int loki_entries_next(struct loki_entries *entries, struct loki_entry *entry) MUST_CHECK;

/* An entry as a record of a stream: its time as RFC 3339, a blank, the line, behind it `
 * key="value"` for each of its metadata, and a newline. In values `"` and `\` have a `\` before
 * them, and a newline is `\n`. */
void loki_record_put(const struct loki_entry *entry, struct buf *out);
/* Labels as Loki shows them: {a="b",c="d"}, without those whose `skip` is set. Nothing, where none
 * is left. `skip` may be NULL. */
void loki_labels_put(const struct loki_labels *labels, const bool *skip, struct buf *out);

#endif
