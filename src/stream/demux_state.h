/* How far the lines of a stream are read into samples (demux.h): a cell of the table `demux`, for
 * all incarnations of a stream's names. It is written after the samples are durable, so that what
 * it says is never ahead of them.
 *
 * Zeroed: nothing is read. One thread at a time. */
#ifndef STREAM_DEMUX_STATE_H
#define STREAM_DEMUX_STATE_H

#include "base/exec.h"
#include "base/hash_set.h"
#include "stream/datatypes.h"
#include "stream/site.h"
#include "stream/tables.h"

enum {
	DEMUX_EXAMPLE_MAX_BYTES = 256,
	DEMUX_HEADER_MAX_BYTES = 4096, /* of line_fields_state_encode() */
	DEMUX_LATE_MAX = 4096,
	DEMUX_ENDS_MAX = 8, /* of ranges, of an incarnation */
	DEMUX_SERIES_MAX = DATATYPE_SERIES_MAX,
	DEMUX_STATE_MAX_BYTES = TABLE_SHARED_VALUE_MAX_BYTES,
};

/* Where a range of lines that are read ends. */
struct demux_end {
	uint64_t at;
	struct line_carry carry; /* goes to the line behind */
	struct slice header;     /* what the lines before say of those behind; owned */
};

/* Of an incarnation. */
struct demux_read {
	uint64_t incarnation;
	struct offsets done; /* which bytes are read; each range ends where a record does */
	uint64_t kept_from;  /* what was gone when they were read */
	struct demux_end ends[DEMUX_ENDS_MAX]; /* of the last ranges, ascending */
	size_t end_count;
};

/* How many lines there were. */
struct demux_counts {
	uint64_t lines;
	uint64_t passed; /* of no sample: names of columns, or left out by a condition */
	uint64_t unread; /* the rule does not read them */
	uint64_t late; /* so old that their bins are not derived anew, or ahead of their receipt */
	uint64_t rest; /* of labels of which there were too many */
};

struct demux_state {
	uint64_t rule;    /* its hash; another rule begins with other bins */
	bool named;       /* its series have the tag `name` */
	bool has_last;    /* a line was read */
	int64_t last_ms;  /* the greatest time of a line, its receipt where the line is ahead of it
			   */
	int64_t top_ms;   /* the greatest time of a line: bins behind it have not begun */
	int64_t floor_ms; /* bins in front of it are never derived */
	int64_t gone_ms;  /* bytes of bins before may have gone: what is stored of them stays */
	int64_t ahead_ms; /* so much at most times of lines were after their receipt */
	struct demux_counts counts;
	char example[DEMUX_EXAMPLE_MAX_BYTES + 1]; /* the last line that no rule read */
	size_t example_len;
	int64_t *late; /* when bins begin that are to be derived anew; sorted */
	size_t late_count, late_room;
	struct hash_set series;   /* of labels that have series */
	struct demux_read *reads; /* by incarnation */
	size_t read_count, read_room;
};

void demux_state_release(struct demux_state *state);

/* Of an incarnation; a new one is empty. */
struct demux_read *demux_state_read(struct demux_state *state, uint64_t incarnation);
/* Forgets the incarnations that are not among these, and gives how many. */
size_t demux_state_keep_reads(struct demux_state *state, const uint64_t *incarnations,
			      size_t count);
/* The end of a range at an offset; NULL: nothing is known of it. */
const struct demux_end *demux_read_end_at(const struct demux_read *read, uint64_t offset);
/* Notes an end, and takes its header. With too many ranges the first ones are forgotten. */
void demux_read_put_end(struct demux_read *read, const struct demux_end *end);
/* A bin is to be derived anew. False: there are too many of them. */
bool demux_state_add_late(struct demux_state *state, int64_t ms) MUST_CHECK;

/* The first `count` late bins wait no more. */
void demux_state_remove_late(struct demux_state *state, size_t count);

/* ERR_LIMIT: it is larger than a cell may be. */
int demux_state_encode(const struct demux_state *state, const struct stream_names *names,
		       struct buf *out) MUST_CHECK;
/* Into a zeroed one, which is to be released in any case. The names point into the value.
 * ERR_DAMAGED; ERR_VERSION. */
int demux_state_decode(struct slice value, struct demux_state *state,
		       struct stream_names *names) MUST_CHECK;

/* Gives what is known of each stream of a tenant to `each`, in the order of names; `after`: only of
 * those behind these names, or NULL. Stops at the first error of `each`. For threads that may wait.
 * ERR_DAMAGED; or the store's error, with a sentence. */
int demux_each(const struct stream_site *site, struct task_queue *queue, struct slice tenant,
	       const struct stream_names *after,
	       int (*each)(const struct stream_names *names, const struct demux_state *state,
			   void *owner),
	       void *owner, struct errbuf *e) MUST_CHECK;

#endif
