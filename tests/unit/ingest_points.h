/* Points for tests of the push doors, given as texts. */
#ifndef TESTS_UNIT_INGEST_POINTS_H
#define TESTS_UNIT_INGEST_POINTS_H

#include "ingest_harness.h"

/* `k=v k=v` to tags. */
static inline size_t tags_of(const char *text, struct tag *tags)
{
	size_t n = 0;
	while (*text) {
		size_t key = strcspn(text, "="), value = strcspn(text + key + 1, " ");
		tags[n++] = (struct tag){{text, key}, {text + key + 1, value}};
		text += key + 1 + value;
		text += *text == ' ';
	}
	return n;
}

static inline void add_at(struct ingest_request *r, uint64_t index, const char *tenant,
			  const char *tags, const char *metric, struct value value, int64_t ts_ms)
{
	struct tag list[80];
	struct slice name = slice_of(metric);
	struct ingest_points points = {.tenant = slice_of(tenant),
				       .tags = list,
				       .tag_count = tags_of(tags, list),
				       .metrics = &name,
				       .values = &value,
				       .count = 1,
				       .ts_ms = ts_ms,
				       .place = {.index = index},
				       .source = slice_of(tags)};
	ingest_points(r, &points);
}

static inline void add(struct ingest_request *r, const char *tags, const char *metric,
		       double number, int64_t ts_ms)
{
	add_at(r, 0, "t", tags, metric, value_f64(number), ts_ms);
}

/* Of a request with one point that could be stored; an error has a sentence. */
static inline int status_after(struct harness *h)
{
	struct ingest_request *r = harness_request(h);
	add(r, "k=v", "m", 1, 1);
	harness_finish(h, r);
	int status = ingest_status(r);
	if (r->err)
		assert_true(strlen(r->error.text) > 0);
	ingest_request_free(r);
	assert_true(ingest_idle(h->ingest));
	return status;
}

#endif
