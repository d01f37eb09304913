/* The interfaces of a device by its counters: those of which some endpoint has a series that had
 * data at some time. For devices of which nobody polls what interfaces they have.
 *
 * Embedded in its owner. Threads: the loop's. */
#ifndef API_ESMOND_POLLED_H
#define API_ESMOND_POLLED_H

#include "api/esmond/answer.h"
#include "api/esmond/path.h"
#include "catalog/catalog.h"

struct v2_polled {
	/* The caller fills these in. */
	struct v2_answer *answer;
	const struct device *device;
	const struct slice *endpoints; /* aliases: `in`, `out` */
	size_t endpoint_count;
	int64_t begin_ms, end_ms; /* inclusive */
	/* Never from within v2_polled_start; err 0, or the answer is to be failed with it. */
	void (*ended)(struct v2_polled *polled, int err);

	/* Results, until the release: ascending, each once. */
	struct slice *names;
	size_t count;
	struct errbuf error;

	/* private */
	uint32_t magic; /* from the start to the release */
	size_t at;      /* endpoint */
	struct v2_endpoint endpoint;
	struct catalog_pattern patterns[2];
	struct slice pieces[2];
	struct catalog_selector selectors[2];
	struct catalog_find find;
	struct store_read *read; /* whether they had data */
	struct arena arena;
	size_t room;
	bool finding;
};

/* False: the device polls none of these endpoints, `ended` does not come. */
bool v2_polled_start(struct v2_polled *polled) MUST_CHECK;
/* At any time after the start, or of zeroes. */
void v2_polled_release(struct v2_polled *polled);

#endif
