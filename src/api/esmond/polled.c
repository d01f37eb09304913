#include "api/esmond/polled.h"

#include <stdlib.h>

#include "base/owner.h"
#include "model/counter_key.h"

enum {
	SERIES_MAX = 20000, /* of one OID of a device */
	POLLED_ARENA_BYTES = 64 << 20,
	READ_MAX_BYTES = 64 << 20,
};

static void find_next(struct v2_polled *polled);

/* ---- Names ----------------------------------------------------------------------------------- */

static int v2_polled_add_name(struct v2_polled *polled, struct slice tags_text)
{
	struct slice key = polled->endpoint.oidset->path_tags[0];
	struct tags tags;
	int err = tags_decode(tags_text, &polled->arena, &tags);
	struct slice name = err ? (struct slice){NULL, 0} : tags_find(tags, key);
	if (err || !name.data)
		return err;
	if (polled->count == polled->room) {
		size_t room = polled->room ? polled->room * 2 : 64;
		struct slice *more = arena_alloc(&polled->arena, room * sizeof(*more));
		if (!more)
			return ERR_LIMIT;
		if (polled->count)
			memcpy(more, polled->names, polled->count * sizeof(*more));
		polled->names = more;
		polled->room = room;
	}
	polled->names[polled->count++] = name;
	return 0;
}

static int v2_polled_by_bytes(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static void sort_names(struct v2_polled *polled)
{
	size_t kept = 0;
	if (polled->count)
		qsort(polled->names, polled->count, sizeof(*polled->names), v2_polled_by_bytes);
	for (size_t i = 0; i < polled->count; i++) {
		if (!kept || !slice_equal(polled->names[i], polled->names[kept - 1]))
			polled->names[kept++] = polled->names[i];
	}
	polled->count = kept;
}

/* ---- Endpoint by endpoint -------------------------------------------------------------------- */

/* Of any table: what has left one may be in another. */
static bool had_data(const struct v2_polled *polled, size_t i)
{
	for (const struct store_request *r = polled->read->requests; r; r = r->next) {
		if (r->last_before.points[i].count)
			return true;
	}
	return false;
}

/* There is room for as many as a find gives. */
static bool is_cut(const struct store_read *read)
{
	for (const struct store_request *r = read->requests; r; r = r->next) {
		if (r->more)
			return true;
	}
	return false;
}

static int v2_polled_submit(struct v2_polled *polled)
{
	int err = store_read_submit(polled->read);
	if (err)
		return errbuf_set(&polled->error, err, "%s",
				  store_read_sentence(polled->read, err));
	polled->answer->call.held++;
	return 0;
}

static int add_names(struct v2_polled *polled)
{
	int err = 0;
	for (size_t i = 0; i < polled->find.count && !err; i++) {
		if (had_data(polled, i))
			err = v2_polled_add_name(polled, polled->find.series[i].tags_text);
	}
	return err;
}

static void data_read(struct store_read *read, int err)
{
	struct v2_polled *polled = FROM_OWNER(v2_polled, read->owner);
	ASSERT(polled->read == read && polled->at < polled->endpoint_count);
	if (!api_call_settle(&polled->answer->call))
		return;
	if (err)
		errbuf_set(&polled->error, err, "%s", store_read_sentence(read, err));
	else
		err = is_cut(read) ? ERR_LIMIT : add_names(polled);
	if (err) {
		polled->ended(polled, err);
		return;
	}
	polled->at++;
	find_next(polled);
}

/* The newest one within the time that is asked for; a bin may have begun before it. */
static int ask_last(struct v2_polled *polled, enum table table, int64_t period_ms,
		    const uint64_t *handles)
{
	struct store_request *request = store_read_add(polled->read, STORE_LAST_BEFORE);
	int64_t begin_ms = floor_to(polled->begin_ms, period_ms);
	if (!request)
		return ERR_LIMIT;
	request->last_before = (struct store_last_before){
		.table = table,
		.period_ms = period_ms,
		.handles = handles,
		.handle_count = polled->find.count,
		.before_ms = polled->end_ms + 1,
		.look_back_ms = polled->end_ms + 1 - begin_ms,
	};
	return 0;
}

static int read_data(struct v2_polled *polled)
{
	const struct oidset *oidset = polled->endpoint.oidset;
	const struct catalog_find *find = &polled->find;
	uint64_t *handles = arena_alloc(&polled->arena, find->count * sizeof(*handles));
	if (!handles)
		return ERR_LIMIT;
	for (size_t i = 0; i < find->count; i++)
		handles[i] = find->series[i].handle;
	if (!polled->read)
		polled->read = store_read_new(polled->answer->call.api->store, READ_MAX_BYTES);
	store_read_reset(polled->read);
	polled->read->executor = loop_executor(polled->answer->call.api->loop);
	polled->read->done = data_read;
	polled->read->owner = polled;
	polled->read->now_ms = polled->answer->now_ms;
	polled->read->deadline_us = polled->answer->call.deadline_us;
	int err = ask_last(polled, TABLE_RAW_DATA, oidset->frequency_ms, handles);
	if (!err)
		err = ask_last(polled, TABLE_BASE_RATES, oidset->frequency_ms, handles);
	for (size_t i = 0; i < oidset->aggregate_count && !err; i++)
		err = ask_last(polled, TABLE_RATE_AGGREGATIONS, oidset->aggregates_ms[i], handles);
	return err ? err : v2_polled_submit(polled);
}

static void v2_polled_found(struct catalog_find *find, int err)
{
	struct v2_polled *polled = FROM_OWNER(v2_polled, find->owner);
	ASSERT(polled->finding);
	polled->finding = false;
	if (!polled->answer->call.request)
		return; /* it is over, and freed when its turn has passed */
	if (err) {
		errbuf_set(&polled->error, err, "%s", find->error.text);
	} else if (find->count) {
		err = read_data(polled);
	} else {
		polled->at++;
		find_next(polled);
	}
	if (err)
		polled->ended(polled, err);
}

static void start_find(struct v2_polled *polled)
{
	const char *const keys[] = {"device", "oidset"};
	polled->pieces[0] = device_stored_as(polled->device);
	polled->pieces[1] = polled->endpoint.oidset->set_name;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		polled->patterns[i] = (struct catalog_pattern){&polled->pieces[i], 1};
		polled->selectors[i] =
			(struct catalog_selector){slice_of(keys[i]), &polled->patterns[i], 1};
	}
	polled->finding = true;
	polled->find = (struct catalog_find){
		.catalog = polled->answer->call.api->catalog,
		.tenant = COUNTER_TENANT,
		.metric = polled->endpoint.oid->name,
		.selectors = polled->selectors,
		.selector_count = ARRAY_LEN(keys),
		.series_max = SERIES_MAX,
		.done = v2_polled_found,
		.owner = polled,
		.arena = &polled->arena,
	};
	catalog_find_start(&polled->find);
}

/* False: the device has none of the endpoints that are left. */
static bool next_endpoint(struct v2_polled *polled)
{
	while (polled->at < polled->endpoint_count &&
	       !v2_find_endpoint(polled->device, polled->endpoints[polled->at], SLICE(""),
				 &polled->endpoint))
		polled->at++;
	return polled->at < polled->endpoint_count;
}

static void find_next(struct v2_polled *polled)
{
	if (next_endpoint(polled)) {
		start_find(polled);
		return;
	}
	sort_names(polled);
	polled->ended(polled, 0);
}

bool v2_polled_start(struct v2_polled *polled)
{
	ASSERT(polled->ended && polled->answer);
	if (!next_endpoint(polled))
		return false;
	polled->magic = MAGIC_OF(v2_polled);
	arena_init(&polled->arena, POLLED_ARENA_BYTES);
	start_find(polled);
	return true;
}

void v2_polled_release(struct v2_polled *polled)
{
	if (polled->finding)
		catalog_find_cancel(&polled->find);
	if (polled->read)
		store_read_free(polled->read);
	polled->magic = 0;
	polled->finding = false;
	polled->read = NULL;
	arena_release(&polled->arena);
}
