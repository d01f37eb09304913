/* A report as it lies in `report_arrivals`, and where it lies (doc/format-faults.md). Bytes in,
 * struct out; what is decoded points into the bytes, but for the body. Pure. */
#ifndef FAULT_ARRIVAL_H
#define FAULT_ARRIVAL_H

#include "base/buf.h"
#include "base/hash.h"
#include "fault/facts.h"

#define FAULT_HOUR_US INT64_C(3600000000)
#define FAULT_DAY_US  (FAULT_HOURS * FAULT_HOUR_US)

/* A row has so many sequence numbers: 1 << FAULT_RUN_BITS. On disk; less is for tests, and then
 * what is made of a run's reports by parts is made of as many parts. */
#ifndef FAULT_RUN_BITS
#define FAULT_RUN_BITS 12
#endif

enum {
	FAULT_HOURS = 24, /* of a day */
	FAULT_RUN_REPORTS = 1 << FAULT_RUN_BITS,
	FAULT_RUN_PART = FAULT_RUN_REPORTS > 128 ? FAULT_RUN_REPORTS / 64 : 2,
	FAULT_BODY_MAX_BYTES = 8 << 20, /* of an attribute's object, before it is compressed */
	FAULT_FACTS_MAX = 64,
};

/* Which arrival: of which writer the how manyth. */
struct fault_place {
	uint64_t writer, sequence;
};

/* The order in which reports were received, of all writers: by date, writer, sequence. */
struct fault_order {
	int64_t date_us;
	struct fault_place place;
};

static inline int fault_order_compare(const struct fault_order *a, const struct fault_order *b)
{
	if (a->date_us != b->date_us)
		return a->date_us < b->date_us ? -1 : 1;
	if (a->place.writer != b->place.writer)
		return a->place.writer < b->place.writer ? -1 : 1;
	return (a->place.sequence > b->place.sequence) - (a->place.sequence < b->place.sequence);
}

static inline bool fault_place_equal(struct fault_place a, struct fault_place b)
{
	return a.writer == b.writer && a.sequence == b.sequence;
}

/* In a table of places. */
static inline struct hash128 fault_place_hash(struct fault_place place)
{
	return hash128((const char *)&place, sizeof(place), 0);
}

struct fault_arrival {
	bool is_void;    /* all but the date is nothing then */
	int64_t date_us; /* when it was received */
	struct hash128 digest;
	struct slice id;
	struct fault_facts facts;
	uint64_t dictionary; /* by which the body was compressed; 0: none */
	uint64_t body_bytes; /* before it was compressed */
	struct slice packed; /* the body as it is stored */
};

void fault_arrival_encode(const struct fault_arrival *arrival, struct buf *out);
/* ERR_DAMAGED: no program wrote these bytes; ERR_VERSION: a later one did. */
int fault_arrival_decode(struct slice bytes, struct fault_arrival *arrival) MUST_CHECK;

/* Id and facts become copies in the arena, and the body goes. ERR_LIMIT. */
int fault_arrival_keep(struct fault_arrival *arrival, struct arena *arena) MUST_CHECK;
/* Likewise, without what lists do not show. */
int fault_arrival_keep_listed(struct fault_arrival *arrival, struct arena *arena) MUST_CHECK;

/* The body, appended to `out` (pack.h). */
int fault_body_unpack(const struct fault_arrival *arrival, struct buf *out) MUST_CHECK;

#endif
