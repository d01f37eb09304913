/* ENUMERATE of samples. */
#include "store/lmdb/read.h"

static bool add_row(struct reading *r, struct store_enumerate *out, uint64_t handle,
		    int64_t period_ms, size_t *cap)
{
	if (out->count == *cap) {
		size_t more = *cap ? *cap * 2 : 256;
		struct store_row *grown = arena_alloc(&r->read->arena, more * sizeof(*grown));
		if (!grown)
			return false;
		if (out->count)
			memcpy(grown, out->rows, out->count * sizeof(*grown));
		out->rows = grown;
		*cap = more;
	}
	out->rows[out->count++] = (struct store_row){.handle = handle, .period_ms = period_ms};
	return true;
}

/* The periods of a table that have segments, ascending, each once. */
static size_t list_periods(struct reading *r, enum table table, int64_t *periods, size_t max)
{
	struct heads *heads = &r->engine->heads;
	size_t count = 0;
	pthread_rwlock_rdlock(&heads->lock);
	for (size_t i = 0; i < heads->directory_count; i++) {
		const struct sheet *sheet = &heads->directory[i].sheet;
		if (sheet->table == table && count < max &&
		    (count == 0 || periods[count - 1] != sheet->period_ms))
			periods[count++] = sheet->period_ms;
	}
	pthread_rwlock_unlock(&heads->lock);
	return count;
}

static int has_samples(struct reading *r, enum table table, int64_t period_ms, uint64_t handle,
		       bool *has)
{
	unsigned fields = (unsigned)schema[table].field_count;
	struct target t = {.handle = handle,
			   .first_column = handle_column(handle) * fields,
			   .fields = fields,
			   .start_ms = INT64_MIN,
			   .end_ms = INT64_MAX};
	size_t segment_count;
	struct run run;
	int err = reading_list_segments(r, table, period_ms, INT64_MIN, INT64_MAX, &segment_count);
	run_init(&run, fields);
	if (!err)
		err = reading_series(r, &t, segment_count, true, 1, &run);
	*has = run.count > 0;
	run_release(&run);
	return err;
}

enum { PERIODS_MAX = 1024, LIST_SLICE = 256 };

/* An enumeration of samples: by series of the registry, then by period. Token: the registry's for
 * the series that comes next, then its next period i64. */
struct enumeration {
	struct reading *r;
	struct store_request *request;
	int64_t *periods;
	size_t period_count, max, cap;
	int64_t from_period; /* of the first series of this slice */
};

/* The rows of one series. *stopped: a bound was reached; the token says where. */
static int enumerate_series(struct enumeration *n, uint64_t handle, bool *stopped)
{
	struct store_enumerate *out = &n->request->enumerate;
	for (size_t p = 0; p < n->period_count; p++) {
		bool has = false;
		if (n->periods[p] < n->from_period)
			continue;
		int err = reading_check_time(n->r);
		if (!err)
			err = has_samples(n->r, out->table, n->periods[p], handle, &has);
		*stopped = err == ERR_TIMEOUT && out->count;
		if (!err && has)
			*stopped = out->count == n->max ||
				   !add_row(n->r, out, handle, n->periods[p], &n->cap);
		if (*stopped) {
			struct store_token *token = &n->request->token;
			registry_list_token(handle, token);
			memcpy(token->bytes + token->len, &n->periods[p], 8);
			token->len += 8;
			return out->count || n->max == 0 ? 0 : ERR_LIMIT;
		}
		if (err)
			return err;
	}
	n->from_period = INT64_MIN;
	return 0;
}

static int enumerate_slices(struct enumeration *n, struct arena *arena)
{
	struct reading *r = n->r;
	struct store_token *token = &n->request->token;
	struct store_request list = {.op = STORE_SERIES_LIST};
	int err = 0;
	bool stopped = false;
	n->from_period = INT64_MIN;
	if (token->len > 8) {
		memcpy(&n->from_period, token->bytes + token->len - 8, 8);
		list.token = *token;
		list.token.len -= 8;
	}
	do {
		arena_reset(arena);
		list.series_list.limit = LIST_SLICE;
		err = registry_series_list(&r->engine->registry, r->reader->txn, &list, arena);
		if (!err)
			err = reading_renew(r);
		for (size_t i = 0; i < list.series_list.count && !err && !stopped; i++)
			err = enumerate_series(n, list.series_list.series[i].handle, &stopped);
	} while (list.more && !err && !stopped);
	n->request->more = stopped;
	return err;
}

int reading_enumerate_samples(struct reading *r, struct store_request *request)
{
	struct store_enumerate *out = &request->enumerate;
	struct enumeration n = {.r = r, .request = request};
	struct arena arena;
	arena_init(&arena, 64 << 20);
	n.periods = mem_alloc_array(PERIODS_MAX, sizeof(*n.periods));
	n.period_count = list_periods(r, out->table, n.periods, PERIODS_MAX);
	n.max = out->limit && out->limit < r->budget ? out->limit : r->budget;
	out->rows = NULL;
	out->count = 0;
	request->more = false;
	int err = enumerate_slices(&n, &arena);
	r->budget -= out->count;
	arena_release(&arena);
	mem_free(n.periods);
	return err;
}
