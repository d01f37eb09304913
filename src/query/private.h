/* What the files of the query engine share; see query.h. */
#ifndef QUERY_PRIVATE_H
#define QUERY_PRIVATE_H

#include "loop/loop.h"
#include "query/query.h"

enum {
	BATCH_SERIES = 512,          /* of one read: each costs 150 bytes in its result */
	READ_MAX_BYTES = 32 << 20,   /* results of one read */
	SERIES_MAX_BYTES = 64 << 20, /* names of the series of one query, and its spec */
	SLICE_WINDOWS = 16384,       /* summaries of one read: 100 bytes each */
	WINDOW_POINTS = 4096,        /* of one chunk made from windows */
};

struct query_engine {
	struct query_options options;
	struct loop_timer *timer;
	struct query_run *runs;          /* all that live */
	struct query_run *first, **last; /* those that wait for a place, by arrival */
	size_t running, waiting, in_flight;
};

/* How points come: as they are (raw.c) or by windows (windows.c). */
struct query_reader {
	/* Adds the requests of the next slice to the (reset) read; false: there is none. */
	bool (*next)(struct query_run *run);
	/* The read is done: true if it is to be submitted again as it is. */
	bool (*arrived)(struct query_run *run);
	/* The next points of the slice; false: it has none left. */
	bool (*take)(struct query_run *run, size_t points_max, struct query_chunk *chunk);
};

extern const struct query_reader reader_raw, reader_windows;

struct query_windows {
	int64_t head_end_ms;    /* the first multiple of the window at or after start, at most end:
				 * before it lies a window that is cut at the front */
	int64_t from_ms, to_ms; /* of the windows of this slice */
	size_t per_series;      /* windows from from_ms to to_ms */
	bool with_head;         /* this slice begins with the head */
	struct store_request *head, *main;   /* NULL: not of this slice */
	size_t head_have, main_have;         /* series whose summaries have been copied */
	struct store_summary *heads, *mains; /* [series], [series * per_series] */
};

enum run_state {
	RUN_NEW,
	RUN_WAITING, /* for a place */
	RUN_FINDING,
	RUN_READING,
	RUN_GIVING, /* a slice is there */
	RUN_ENDED,
};

struct query_run {
	struct query query;
	struct query_engine *engine;
	query_ready *ready;
	void *owner;
	const struct query_reader *reader;
	enum run_state state;
	struct query_run *older, *newer; /* in engine->runs */
	struct query_run *next;          /* that waits */
	int64_t now_ms, start_ms, end_ms, deadline_us;
	struct catalog_find find;

	struct store_read *read;
	bool in_flight, dropped;
	uint64_t *handles;         /* of the batch, BATCH_SERIES */
	size_t batch, batch_count; /* the present series: from `batch` on */
	size_t next_series,
		offset;    /* of the slice: series of the batch and points of it to give next */
	size_t last_given; /* index of the last series given, plus one */
	struct store_request *range; /* raw */
	struct store_token token;
	bool batch_open; /* it goes on at the token */
	struct query_windows windows;
	/* Points put together for a chunk, WINDOW_POINTS each. */
	int64_t *ts_ms;
	uint64_t *bits;
	uint8_t *types;
};

/* The handles of the next `count` series (or as many as there are) become the batch; false: there
 * are none. */
bool run_next_batch(struct query_run *run, size_t count);

#endif
