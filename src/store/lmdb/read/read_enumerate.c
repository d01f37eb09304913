/* ENUMERATE of samples. */
#include "base/grow.h"
#include "store/lmdb/read/read.h"

static bool enumerate_add_row(struct reading *r, struct store_enumerate *out, uint64_t handle,
			      int64_t period_ms, size_t *cap)
{
	if (!GROW_IN_ARENA(&r->read->arena, out->rows, *cap, out->count + 1))
		return false;
	out->rows[out->count++] = (struct store_row){.handle = handle, .period_ms = period_ms};
	return true;
}

/* The periods of a table that have segments, ascending, each once; none where `to` is NULL, which
 * only counts them. With the read lock of the heads. */
static size_t copy_periods(const struct heads *heads, enum table table, int64_t *to)
{
	size_t count = 0;
	int64_t last_ms = 0;
	for (size_t i = 0; i < heads->directory_count; i++) {
		const struct store_target *sheet = &heads->directory[i].sheet;
		if (sheet->table != table || (count && last_ms == sheet->period_ms))
			continue;
		last_ms = sheet->period_ms;
		if (to)
			to[count] = last_ms;
		count++;
	}
	return count;
}

int reading_periods(struct reading *r, struct store_periods *out)
{
	struct heads *heads = &r->engine->heads;
	pthread_rwlock_rdlock(&heads->lock);
	out->count = copy_periods(heads, out->table, NULL);
	out->periods_ms = arena_alloc(&r->read->arena, (out->count + 1) * sizeof(*out->periods_ms));
	if (out->periods_ms)
		copy_periods(heads, out->table, out->periods_ms);
	pthread_rwlock_unlock(&heads->lock);
	return out->periods_ms ? 0 : ERR_LIMIT;
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
	struct samples samples;
	int err = reading_list_segments(r, table, period_ms, INT64_MIN, INT64_MAX, &segment_count);
	samples_init(&samples, fields);
	if (!err)
		err = reading_series(r, &t, segment_count, true, 1, &samples);
	*has = samples.count > 0;
	samples_release(&samples);
	return err;
}

enum { LIST_SLICE = 256 };

/* An enumeration of samples: by series of the registry, then by period. Token: the registry's for
 * the series that comes next, then its next period i64. */
struct enumeration {
	struct reading *r;
	struct store_request *request;
	struct store_periods periods;
	size_t max, cap;
	int64_t from_period; /* of the first series of this slice */
};

/* The rows of one series. *stopped: a bound was reached; the token says where. */
static int enumerate_series(struct enumeration *n, uint64_t handle, bool *stopped)
{
	struct store_enumerate *out = &n->request->enumerate;
	for (size_t p = 0; p < n->periods.count; p++) {
		bool has = false;
		if (n->periods.periods_ms[p] < n->from_period)
			continue;
		int err = reading_check_time(n->r);
		if (!err)
			err = has_samples(n->r, out->table, n->periods.periods_ms[p], handle, &has);
		*stopped = err == ERR_TIMEOUT && out->count;
		if (!err && has)
			*stopped = out->count == n->max ||
				   !enumerate_add_row(n->r, out, handle, n->periods.periods_ms[p],
						      &n->cap);
		if (*stopped) {
			struct store_token *token = &n->request->token;
			registry_list_token(handle, token);
			memcpy(token->bytes + token->len, &n->periods.periods_ms[p], 8);
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
	struct enumeration n = {.r = r, .request = request, .periods = {.table = out->table}};
	struct arena arena;
	arena_init(&arena, 64 << 20);
	n.max = out->limit && out->limit < r->budget ? out->limit : r->budget;
	out->rows = NULL;
	out->count = 0;
	request->more = false;
	int err = reading_periods(r, &n.periods);
	if (!err)
		err = enumerate_slices(&n, &arena);
	r->budget -= out->count;
	arena_release(&arena);
	return err;
}
