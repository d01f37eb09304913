/* One stream's lines become samples: what has come of it since the last pass is read, and what it
 * adds up to is written.
 *
 *     known bytes - bytes that are done --line_runs--> fields --+--> samples ---------+--> sink
 *                                                               +--> bins, by time ---+
 *
 * A stream is all incarnations of its names. Its samples are a function of their bytes and of the
 * rule of its datatype (datatypes.h):
 *
 * - Where each record is a sample, it is written at the time of its line.
 * - Where events are counted, a bin has all of them whose lines have a time in it. The bins of the
 *   last minutes are in memory, and an event is added there. A bin may be older than these, or may
 *   have been begun before a restart. Such a bin is *derived anew*: all lines of its time are
 * looked at once more, by the heads of blocks. So a late line is counted where it belongs. The
 * samples are the same if the process is killed, or if the stream is read again from its beginning.
 *
 * Values that are no numbers, where the rule names them, go the same way into rows, at most
 * `texts_max` in a minute of the lines' time. So do tags of chunks, as notes at the source of the
 * first part of the names of metrics: each hour in which lines have them, once. A block knows the
 * tags of its first chunk, and not those of the others.
 *
 * Samples are written first, and durable; then the state is (demux_state.h). A record is read when
 * its end has come. Where bytes are missing, what is behind the hole is read from its first whole
 * record on; what fills the hole later is late.
 *
 * Bins whose bytes may have gone, or that are older than `late_max_ms` before the newest line, are
 * not derived, and also reading a stream again from its beginning leaves them; their lines are
 * counted. So are lines whose time is a day and more after their receipt: their clock is wrong.
 *
 * A block that cannot be read is passed over, and counted, as where lines are searched for.
 *
 * For threads that may wait; one at a time. */
#ifndef STREAM_DEMUX_PASS_H
#define STREAM_DEMUX_PASS_H

#include "model/series.h"
#include "stream/bins.h"
#include "stream/datatypes.h"
#include "stream/demux_state.h"
#include "stream/known.h"

enum {
	DEMUX_TAGS_MAX = DATATYPE_TAGS_MAX + 3,
	DEMUX_TEXTS_MINUTES = 16, /* of a stream, whose texts are counted; a power of two */
	DEMUX_TAGS_NOTED = 16,    /* of a stream, that are known to be noted */
};

/* What is written at one time of one series of tags. */
struct demux_point {
	int64_t ms;
	struct tag tags[DEMUX_TAGS_MAX];
	size_t tag_count;
	const struct slice *metrics, *units; /* a unit may be empty */
	const struct value *values;
	size_t count;
};

/* A text of a row, or a note (board/rows.h): a value that is no number. */
struct demux_text {
	int64_t ms;
	bool is_note;
	struct slice metric, text;
	struct tag tags[DEMUX_TAGS_MAX];
	size_t tag_count;
};

struct job;

/* Where samples go. */
struct demux_sink {
	/* Returns when they are durable. Which of them are refused for good is counted there. The
	 * stamp was taken before their lines were read; each value takes one µs of it. */
	int (*write)(struct demux_sink *sink, struct job *job, struct slice tenant,
		     const struct datatype *rule, const struct demux_point *points, size_t count,
		     int64_t stamp_us, struct errbuf *e);
	/* The same of texts; each takes one µs of the stamp. A text that is written again is there
	 * once; of two of one series and time the later one stays. NULL: nobody wants them. */
	int (*write_texts)(struct demux_sink *sink, struct job *job, struct slice tenant,
			   const struct datatype *rule, const struct demux_text *texts,
			   size_t count, int64_t stamp_us, struct errbuf *e);
};

/* What passes work with. */
struct demux_work {
	const struct stream_site *site;
	struct task_queue *queue;
	struct job *job; /* for the sink */
	struct demux_sink *sink;
	int64_t until_ms;     /* of the owner's lease, by the wall clock */
	int64_t write_max_ms; /* how long a write may take */
	int64_t late_max_ms;
	size_t bins_max_bytes; /* of one stream */

	/* private */
	struct line_clock clock;
	struct arena arena; /* of the points that wait */
	struct arena heads; /* of the block that is looked at */
	struct demux_point *points;
	size_t point_count, value_count;
	struct arena text_arena;
	struct demux_text *texts; /* that wait */
	size_t text_count;
};

void demux_work_init(struct demux_work *work);
void demux_work_release(struct demux_work *work);

struct demux_stream {
	struct slice tenant; /* texts are the caller's */
	struct stream_names names;
	const struct datatype *rule;

	/* private */
	bool loaded;
	struct demux_state state;
	struct bins bins;
	int64_t open_ms;    /* bins from here on are in memory, and whole */
	int64_t late_at_ms; /* monotonic: when bins may be derived anew */
	bool changed;       /* the state is to be written */
	/* How many texts lines of the last minutes had. */
	struct demux_texts_minute {
		int64_t minute;
		size_t texts;
	} minutes[DEMUX_TEXTS_MINUTES];
	uint64_t noted[DEMUX_TAGS_NOTED]; /* hashes of tags of chunks and their hours */
	size_t noted_next;
};

struct demux_passed {
	uint64_t bytes;   /* that were read */
	bool more;        /* it has not come to the end */
	bool waits;       /* bins wait to be derived anew */
	uint64_t damaged; /* blocks that cannot be read, so that bins are not derived */
	uint64_t lost;    /* bytes of blocks that cannot be read, and are passed over for good */
};

/* Reads on, some MB. With an error, which has its sentence, nothing has happened but that samples
 * may have been written which are written again. ERR_CANCELLED: the job is to end, or the lease
 * ends too soon. */
int demux_pass(struct demux_work *work, struct demux_stream *stream, struct demux_passed *passed,
	       struct errbuf *e) MUST_CHECK;
/* The next pass begins with the first byte that is held. Errors as above. */
int demux_begin_again(struct demux_work *work, struct demux_stream *stream,
		      struct errbuf *e) MUST_CHECK;
/* Its memory goes; the next pass reads its cell. */
void demux_stream_forget(struct demux_stream *stream);

#endif
