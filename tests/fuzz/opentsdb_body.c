/* Bodies of POST /api/query: what is taken keeps its limits, and its filters end on any tags. */
#include "api/opentsdb/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct opentsdb_query *query)
{
	struct opentsdb_filters *filters = &query->filters;
	ASSERT(query->metric.len && filters->selector_count <= CATALOG_SELECTORS_MAX);
	ASSERT(filters->by_count <= QUERY_BY_MAX);
	ASSERT(!query->combine.fill || query->window_ms > 0);
	ASSERT(!query->fn == !query->window_ms);
	(void)opentsdb_filters_keep(filters, SLICE("a=b,host=h-1"));
	combine_free(combine_new(&query->combine));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	struct opentsdb_body body;
	struct arena arena;
	struct errbuf e = {""};
	arena_init(&arena, 16 << 20);
	if (opentsdb_body_read(text, INT64_C(1598287200000), &arena, &body, &e)) {
		ASSERT(e.text[0]);
	} else {
		ASSERT(body.count >= 1 && body.count <= OPENTSDB_QUERIES_MAX);
		ASSERT(body.start_ms <= body.end_ms);
		for (size_t i = 0; i < body.count; i++)
			check(&body.queries[i]);
	}
	arena_release(&arena);
	return 0;
}
