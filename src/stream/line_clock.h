/* The records of a stream's bytes, which are mostly lines, and the time of each.
 *
 * A line's time is what it says (wire/line_time.h). One that says none has the time of the line
 * before, as far as LINE_CARRY_MAX lines behind the last that said one; else it is when its chunk
 * was received. So the times of lines are a function of the bytes, of when they were received, and
 * of the sender's zone.
 *
 * One thread at a time. */
#ifndef STREAM_LINE_CLOCK_H
#define STREAM_LINE_CLOCK_H

#include "wire/chunk.h"
#include "wire/line_time.h"
#include "wire/zones.h"

enum {
	LINE_CARRY_MAX = 1000,
	/* A longer record is several, each of so many bytes but the last: so it lies in blocks. */
	LINE_RECORD_MAX_BYTES = CHUNK_DATA_MAX_BYTES,
};

/* What goes from one line to the next. */
struct line_carry {
	uint32_t left; /* lines that may still have the time; 0: there is none */
	int64_t ms;
};

struct line_clock {
	struct zones *zones;
	struct line_time_context context;
	struct line_carry carry;
	bool of_receipt;      /* the last line has the time at which it was received */
	bool year_of_receipt; /* its time has the year that is nearest to that */
};

void line_clock_init(struct line_clock *clock);
void line_clock_release(struct line_clock *clock);
/* What follows was sent from this zone; UTC where it is not known. */
void line_clock_set_zone(struct line_clock *clock, struct slice zone);
/* The time of the next line, in ms since 1970. `line` is without its end. */
int64_t line_clock_next(struct line_clock *clock, struct slice line, int64_t received_ms);

/* A walk over the records of some bytes. */
struct line_records {
	struct slice data;
	bool lines; /* each newline ends a record; else the ends are listed */
	/* Offsets of the first byte behind each record, ascending; the data may end before them. */
	const uint32_t *ends;
	size_t end_count;

	/* private but for begin and end */
	size_t next;       /* of the ends */
	size_t begin, end; /* of the record, with its newline */
};
/* Behind the last record whose end is in the data; 0: none is. */
size_t line_records_ended(const struct line_records *records);
/* The next record, which has at least a byte. What stands behind the last end is one, too. */
bool line_records_next(struct line_records *records);
/* Without the end of the line. */
struct slice line_records_text(const struct line_records *records);

#endif
