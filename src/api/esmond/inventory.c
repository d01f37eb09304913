/* /v2/inventory/: the row keys of what is stored, by document E's names: of each series one for
 * each period and year of its data.
 *
 * The store's registry is gone through in slices. Of the series of a slice the newest sample is
 * looked up in each table, then that before the newest year of any, and so on: one read for each
 * year that there is. Samples count for every period, since bins that are not stored yet are made
 * of them when somebody asks. */

#include <stdlib.h>

#include "api/esmond/answer.h"
#include "api/esmond/esmond.h"
#include "api/esmond/lookup.h"
#include "api/esmond/params.h"
#include "model/counter_key.h"

enum {
	SERIES_A_SLICE = 1000,
	READ_MAX_BYTES = 4 << 20,
	FOUND_MAX_BYTES = 16 << 20,
	TAGS_ARENA_BYTES = 64 << 10,
	YEARS_MAX = 200,
	GROUPS_MAX = 64, /* tables and periods of all OIDSets of a slice */
};

/* What is asked for in one table: which series of the slice have older data. */
struct v2_inventory_group {
	enum table table;
	int64_t period_ms, key_ms; /* key_ms: of the keys that it is for; 0: all of its series */
	uint64_t *handles;
	uint32_t *series;
	int64_t *newest_ms; /* NOTHING: there is none */
	size_t count;
	int64_t before_ms;
	struct store_request *request; /* NULL: not asked, or answered */
};

#define NOTHING INT64_MIN

struct seen {
	uint32_t series;
	int year;
	int64_t key_ms;
};

struct v2_inventory_call {
	struct v2_answer answer;
	struct v2_lookups lookups;
	struct v2_page page;
	uint64_t matched, work; /* work: of this turn */
	struct store_read *read, *years;
	struct store_request *request;
	struct store_token token;
	struct arena tags, found;
	struct buf key;
	struct v2_inventory_group groups[GROUPS_MAX];
	size_t group_count, rounds;
	struct seen *seen; /* in `found` */
	size_t seen_count, seen_cap;
	size_t next, at; /* series of the slice, and where in `seen` its years begin */
	bool reading;
};

static void v2_inventory_release(struct v2_answer *answer)
{
	struct v2_inventory_call *call = CONTAINER_OF(answer, struct v2_inventory_call, answer);
	if (call->read)
		store_read_free(call->read);
	if (call->years)
		store_read_free(call->years);
	arena_release(&call->tags);
	arena_release(&call->found);
	buf_release(&call->key);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

struct stored {
	struct counter_key key;
	const struct oidset *oidset;
	const struct oid_def *oid;
};

/* Its names are of the registry's slice. False: it is none of a counter, or of an OIDSet that is
 * not configured any more. */
static bool v2_inventory_name_series(struct v2_inventory_call *call,
				     const struct store_series *series, struct stored *stored)
{
	const struct inventory_conf *conf = call->answer.inventory->conf;
	struct tags tags;
	arena_reset(&call->tags);
	if (tags_decode(series->tags_text, &call->tags, &tags))
		return false;
	struct slice device = tags_find(tags, SLICE("device"));
	struct slice set = tags_find(tags, SLICE("oidset"));
	*stored = (struct stored){.oidset = set.data ? inventory_conf_oidset_stored(conf, set)
						     : NULL};
	stored->oid = stored->oidset ? oidset_oid(stored->oidset, series->metric) : NULL;
	if (!device.data || !stored->oid)
		return false;
	stored->key = (struct counter_key){.ns = COUNTER_TENANT,
					   .device = device,
					   .oidset = set,
					   .oid = series->metric,
					   .has_year = true};
	for (size_t i = 0; i < stored->oidset->path_tag_count && !stored->oid->scalar; i++) {
		struct slice part = tags_find(tags, stored->oidset->path_tags[i]);
		if (!part.data)
			return false;
		stored->key.path[stored->key.path_count++] = part;
	}
	return true;
}

static void v2_inventory_take_key(struct v2_inventory_call *call, const struct stored *stored)
{
	buf_clear(&call->key);
	if (counter_key_encode(&stored->key, &call->key))
		return;
	struct slice text = buf_slice(&call->key);
	if (v2_lookups_match(&call->lookups, &text, &call->work) &&
	    v2_page_has(&call->page, call->matched++))
		json_write_string(&call->answer.call.json, text);
}

/* `end`: behind the series' years, which ascend. */
static void take_years(struct v2_inventory_call *call, struct stored *stored, int64_t key_ms,
		       size_t end)
{
	int before = -1;
	stored->key.freq_ms = key_ms;
	for (size_t i = call->at; i < end; i++) {
		const struct seen *seen = &call->seen[i];
		if ((seen->key_ms && seen->key_ms != key_ms) || seen->year == before)
			continue;
		before = stored->key.year = seen->year;
		v2_inventory_take_key(call, stored);
	}
}

static void v2_inventory_take_series(struct v2_inventory_call *call, size_t number,
				     const struct store_series *series)
{
	struct stored stored;
	size_t end = call->at;
	while (end < call->seen_count && call->seen[end].series == number)
		end++;
	if (end > call->at && v2_inventory_name_series(call, series, &stored)) {
		take_years(call, &stored, stored.oidset->frequency_ms, end);
		for (size_t i = 0; stored.oid->aggregate && i < stored.oidset->aggregate_count; i++)
			take_years(call, &stored, stored.oidset->aggregates_ms[i], end);
	}
	call->at = end;
}

/* ---- Years ----------------------------------------------------------------------------------- */

static int by_series(const void *left, const void *right)
{
	const struct seen *a = left, *b = right;
	if (a->series != b->series)
		return a->series < b->series ? -1 : 1;
	return (a->year > b->year) - (a->year < b->year);
}

static int add_seen(struct v2_inventory_call *call, const struct seen *seen)
{
	if (call->seen_count == call->seen_cap) {
		size_t cap = 2 * call->seen_cap + 4096;
		struct seen *list = arena_alloc(&call->found, cap * sizeof(*list));
		if (!list)
			return ERR_LIMIT;
		if (call->seen_count)
			memcpy(list, call->seen, call->seen_count * sizeof(*list));
		call->seen = list;
		call->seen_cap = cap;
	}
	call->seen[call->seen_count++] = *seen;
	return 0;
}

/* What this slice of the read found. */
static void v2_inventory_take_newest(struct v2_inventory_group *group)
{
	const struct store_points *points = group->request->last_before.points;
	for (size_t i = 0; i < group->count; i++) {
		if (points[i].count)
			group->newest_ms[i] = points[i].ts_ms[0];
	}
}

/* The newest year that any of the group has goes to `seen`; before it the others are looked for. */
static int v2_inventory_take_group(struct v2_inventory_call *call, struct v2_inventory_group *group)
{
	int64_t newest_ms = NOTHING;
	size_t left = 0;
	for (size_t i = 0; i < group->count; i++) {
		if (group->newest_ms[i] > newest_ms)
			newest_ms = group->newest_ms[i];
	}
	int year = counter_key_year(newest_ms);
	group->before_ms = counter_key_year_ms(year);
	for (size_t i = 0; i < group->count; i++) {
		struct seen seen = {group->series[i], year, group->key_ms};
		if (group->newest_ms[i] == NOTHING)
			continue;
		if (group->newest_ms[i] >= group->before_ms && add_seen(call, &seen))
			return ERR_LIMIT;
		group->handles[left] = group->handles[i];
		group->series[left++] = group->series[i];
	}
	group->count = left;
	return 0;
}

static void years_known(struct v2_inventory_call *call)
{
	if (call->seen_count)
		qsort(call->seen, call->seen_count, sizeof(*call->seen), by_series);
	api_call_later(&call->answer.call);
}

static void ask_years(struct v2_inventory_call *call);
static void submit_years(struct v2_inventory_call *call);

static void years_read(struct store_read *read, int err)
{
	struct v2_answer *answer = v2_answer_of(api_call_from(read->owner));
	struct v2_inventory_call *call = CONTAINER_OF(answer, struct v2_inventory_call, answer);
	if (!api_call_settle(&answer->call))
		return;
	call->reading = false;
	bool more = false;
	for (size_t i = 0; i < call->group_count && !err; i++) {
		struct v2_inventory_group *group = &call->groups[i];
		if (!group->request)
			continue;
		v2_inventory_take_newest(group);
		more |= group->request->more;
	}
	for (size_t i = 0; i < call->group_count && !err && !more; i++) {
		if (call->groups[i].request)
			err = v2_inventory_take_group(call, &call->groups[i]);
	}
	if (!err && more) {
		submit_years(call);
		return;
	}
	if (err)
		api_call_fail_with(&answer->call, err, store_read_sentence(read, err));
	else if (++call->rounds < YEARS_MAX)
		ask_years(call);
	else
		years_known(call);
}

static void ask_years(struct v2_inventory_call *call)
{
	struct v2_answer *answer = &call->answer;
	struct store_read *read = call->years;
	size_t asked = 0;
	store_read_reset(read);
	read->executor = loop_executor(answer->call.api->loop);
	read->done = years_read;
	read->owner = call;
	read->now_ms = answer->now_ms;
	read->deadline_us = answer->call.deadline_us;
	for (size_t i = 0; i < call->group_count; i++) {
		struct v2_inventory_group *group = &call->groups[i];
		group->request = group->count ? store_read_add(read, STORE_LAST_BEFORE) : NULL;
		if (!group->request)
			continue;
		asked++;
		for (size_t h = 0; h < group->count; h++)
			group->newest_ms[h] = NOTHING;
		group->request->last_before = (struct store_last_before){
			.table = group->table,
			.period_ms = group->period_ms,
			.handles = group->handles,
			.handle_count = group->count,
			.before_ms = group->before_ms,
		};
	}
	if (asked)
		submit_years(call);
	else
		years_known(call);
}

static void submit_years(struct v2_inventory_call *call)
{
	struct v2_answer *answer = &call->answer;
	struct errbuf e;
	int err = api_call_check_time(&answer->call, &e);
	if (err) {
		api_call_fail_with(&answer->call, err, e.text);
		return;
	}
	err = store_read_submit(call->years);
	if (err) {
		api_call_fail_with(&answer->call, err, store_read_sentence(call->years, err));
		return;
	}
	call->reading = true;
	answer->call.held++;
}

static int add_to_group(struct v2_inventory_call *call, enum table table, int64_t period_ms,
			int64_t key_ms, size_t number, uint64_t handle)
{
	struct v2_inventory_group *group = call->groups, *end = group + call->group_count;
	while (group < end && (group->table != table || group->period_ms != period_ms))
		group++;
	if (group == end) {
		if (call->group_count == GROUPS_MAX)
			return ERR_LIMIT;
		call->group_count++;
		*group = (struct v2_inventory_group){.table = table,
						     .period_ms = period_ms,
						     .key_ms = key_ms,
						     .before_ms = STORE_TS_MAX};
		group->handles =
			arena_alloc(&call->found, SERIES_A_SLICE * sizeof(*group->handles));
		group->series = arena_alloc(&call->found, SERIES_A_SLICE * sizeof(*group->series));
		group->newest_ms =
			arena_alloc(&call->found, SERIES_A_SLICE * sizeof(*group->newest_ms));
		if (!group->handles || !group->series || !group->newest_ms)
			return ERR_LIMIT;
	}
	group->handles[group->count] = handle;
	group->series[group->count++] = (uint32_t)number;
	return 0;
}

static int group_series(struct v2_inventory_call *call, size_t number,
			const struct store_series *series)
{
	struct stored stored;
	if (!v2_inventory_name_series(call, series, &stored))
		return 0;
	const struct oidset *oidset = stored.oidset;
	int64_t base_ms = oidset->frequency_ms;
	int err = add_to_group(call, TABLE_RAW_DATA, base_ms, 0, number, series->handle);
	if (!err && stored.oid->aggregate)
		err = add_to_group(call, TABLE_BASE_RATES, base_ms, base_ms, number,
				   series->handle);
	for (size_t i = 0; !err && stored.oid->aggregate && i < oidset->aggregate_count; i++)
		err = add_to_group(call, TABLE_RATE_AGGREGATIONS, oidset->aggregates_ms[i],
				   oidset->aggregates_ms[i], number, series->handle);
	return err;
}

/* ---- Slices ---------------------------------------------------------------------------------- */

static void v2_inventory_finish(struct v2_inventory_call *call)
{
	struct v2_answer *answer = &call->answer;
	json_write_array_end(&answer->call.json);
	api_call_end(&answer->call);
}

static void slice_read(struct store_read *read, int err)
{
	struct v2_answer *answer = v2_answer_of(api_call_from(read->owner));
	struct v2_inventory_call *call = CONTAINER_OF(answer, struct v2_inventory_call, answer);
	if (!api_call_settle(&answer->call))
		return;
	call->reading = false;
	call->next = call->at = 0;
	call->group_count = call->rounds = call->seen_count = call->seen_cap = 0;
	arena_reset(&call->found);
	const struct store_series_list *list = &call->request->series_list;
	for (size_t i = 0; i < list->count && !err; i++)
		err = group_series(call, i, &list->series[i]);
	if (err == ERR_LIMIT && call->group_count == GROUPS_MAX)
		api_call_fail(&answer->call, 422,
			      "the OIDSets have more than %d frequencies in all", GROUPS_MAX);
	else if (err)
		api_call_fail_with(&answer->call, err, store_read_sentence(read, err));
	else
		ask_years(call);
}

static void v2_inventory_read_slice(struct v2_inventory_call *call)
{
	struct v2_answer *answer = &call->answer;
	struct store_read *read = call->read;
	store_read_reset(read);
	read->executor = loop_executor(answer->call.api->loop);
	read->done = slice_read;
	read->owner = call;
	read->now_ms = answer->now_ms;
	read->deadline_us = answer->call.deadline_us;
	call->request = store_read_add(read, STORE_SERIES_LIST);
	ASSERT(call->request); /* the first of an empty read */
	call->request->token = call->token;
	call->request->series_list =
		(struct store_series_list){.tenant = COUNTER_TENANT, .limit = SERIES_A_SLICE};
	int err = store_read_submit(read);
	if (err) {
		api_call_fail_with(&answer->call, err, store_read_sentence(read, err));
		return;
	}
	call->reading = true;
	answer->call.held++;
}

static void v2_inventory_advance(struct api_call *base)
{
	struct v2_answer *answer = v2_answer_of(base);
	struct v2_inventory_call *call = CONTAINER_OF(answer, struct v2_inventory_call, answer);
	const struct store_series_list *list = &call->request->series_list;
	if (call->reading || !api_call_room(&answer->call))
		return;
	call->work = 0;
	for (size_t i = 0; i < 100 && call->work < V2_TURN_WORK && call->next < list->count;
	     i++, call->next++)
		v2_inventory_take_series(call, call->next, &list->series[call->next]);
	if (call->page.limit && call->matched >= call->page.offset + call->page.limit) {
		v2_inventory_finish(call);
	} else if (call->next < list->count) {
		api_call_later(&answer->call);
	} else if (call->request->more) {
		call->token = call->request->token;
		v2_inventory_read_slice(call);
	} else {
		v2_inventory_finish(call);
	}
}

static void v2_inventory_end(struct http_request *request)
{
	static const char *const fields[] = {"row_key", NULL};
	struct v2_inventory_call *call;
	struct errbuf e;
	if (v2_part_count(request) != 1 || !slice_equal(v2_part(request, 0), SLICE("inventory"))) {
		v2_no_such_path(request);
		return;
	}
	call = mem_zalloc(sizeof(*call));
	struct v2_answer *answer = &call->answer;
	v2_answer_init(answer, request, v2_inventory_advance, v2_inventory_release);
	arena_init(&call->tags, TAGS_ARENA_BYTES);
	arena_init(&call->found, FOUND_MAX_BYTES);
	buf_init(&call->key, COUNTER_KEY_MAX_BYTES);
	if (v2_params_lookups(request, NULL, fields, &answer->call.arena, &call->lookups, &e) ||
	    v2_page_read(request, &call->page, &e)) {
		api_call_fail(&answer->call, 400, "%s", e.text);
		return;
	}
	if (!http_param(request, "limit").data)
		call->page.limit = 0;
	json_write_array_begin(&answer->call.json);
	call->read = store_read_new(answer->call.api->store, READ_MAX_BYTES);
	call->years = store_read_new(answer->call.api->store, READ_MAX_BYTES);
	v2_inventory_read_slice(call);
}

const struct http_handler v2_inventory = V2_HANDLER(v2_inventory_end);
