/* /v2/inventory/: the row keys of what is stored, by document E's names: of each series one for
 * each period and year.
 *
 * The store's registry is gone through in slices; what is not on the page is counted. Years are
 * those from when the series was first seen until now. */

#include "api/v2.h"
#include "api/v2_answer.h"
#include "api/v2_lookup.h"
#include "api/v2_params.h"
#include "model/counter_key.h"

enum {
	SERIES_A_SLICE = 1000,
	READ_MAX_BYTES = 4 << 20,
	TAGS_ARENA_BYTES = 64 << 10,
	YEARS_MAX = 200,
};

struct call {
	struct v2_answer answer;
	struct v2_lookups lookups;
	struct v2_page page;
	uint64_t matched, work;
	struct store_read *read;
	struct store_request *request;
	struct store_token token;
	struct arena tags;
	struct buf key;
	size_t next; /* series of the slice */
	bool reading;
};

static void release(struct v2_answer *answer)
{
	struct call *call = CONTAINER_OF(answer, struct call, answer);
	if (call->read)
		store_read_free(call->read);
	arena_release(&call->tags);
	buf_release(&call->key);
	mem_free(call);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

struct stored {
	struct counter_key key;
	const struct oidset *oidset;
	const struct oid_def *oid;
};

/* False: it is none of a counter, or of an OIDSet that is not configured any more. */
static bool name_series(struct call *call, const struct store_series *series, struct stored *stored)
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

static void put_key(struct call *call, const struct stored *stored)
{
	struct json_writer *json = &call->answer.json;
	struct slice text = buf_slice(&call->key);
	json_write_object_begin(json);
	v2_put_text(json, "row_key", text);
	v2_put_number(json, "frequency", stored->key.freq_ms);
	json_put_bool(json, "aggregate", stored->key.freq_ms != stored->oidset->frequency_ms);
	json_write_object_end(json);
}

static void take_key(struct call *call, const struct stored *stored)
{
	buf_clear(&call->key);
	if (counter_key_encode(&stored->key, &call->key))
		return;
	struct slice text = buf_slice(&call->key);
	if (v2_lookups_match(&call->lookups, &text, &call->work) &&
	    v2_page_has(&call->page, call->matched++))
		put_key(call, stored);
}

static void take_years(struct call *call, struct stored *stored, int64_t first_ms)
{
	int last = counter_key_year(call->answer.now_ms), year = counter_key_year(first_ms);
	if (year < last - YEARS_MAX)
		year = last - YEARS_MAX;
	for (; year <= last; year++) {
		stored->key.year = year;
		take_key(call, stored);
	}
}

static void take_series(struct call *call, const struct store_series *series)
{
	struct stored stored;
	if (!name_series(call, series, &stored))
		return;
	stored.key.freq_ms = stored.oidset->frequency_ms;
	take_years(call, &stored, series->first_seen_ms);
	for (size_t i = 0; stored.oid->aggregate && i < stored.oidset->aggregate_count; i++) {
		stored.key.freq_ms = stored.oidset->aggregates_ms[i];
		take_years(call, &stored, series->first_seen_ms);
	}
}

/* ---- Slices ---------------------------------------------------------------------------------- */

static void finish(struct call *call)
{
	struct v2_answer *answer = &call->answer;
	v2_page_end(answer->request, &call->page, call->matched, &answer->json);
	v2_answer_end(answer);
}

static void slice_read(struct store_read *read, int err)
{
	struct call *call = read->owner;
	struct v2_answer *answer = &call->answer;
	if (!v2_answer_settle(answer))
		return;
	call->reading = false;
	call->next = 0;
	if (err)
		v2_answer_fail_with(answer, err, store_read_sentence(read, err));
	else
		v2_answer_go_on(answer);
}

static void read_slice(struct call *call)
{
	struct v2_answer *answer = &call->answer;
	struct store_read *read = call->read;
	store_read_reset(read);
	read->executor = loop_executor(answer->api->loop);
	read->done = slice_read;
	read->owner = call;
	read->now_ms = answer->now_ms;
	call->request = store_read_add(read, STORE_SERIES_LIST);
	ASSERT(call->request); /* the first of an empty read */
	call->request->token = call->token;
	call->request->series_list =
		(struct store_series_list){.tenant = COUNTER_TENANT, .limit = SERIES_A_SLICE};
	int err = store_read_submit(read);
	if (err) {
		v2_answer_fail_with(answer, err, store_read_sentence(read, err));
		return;
	}
	call->reading = true;
	answer->held++;
}

static void advance(struct v2_answer *answer)
{
	struct call *call = CONTAINER_OF(answer, struct call, answer);
	const struct store_series_list *list = &call->request->series_list;
	if (call->reading || !v2_answer_room(answer))
		return;
	for (size_t i = 0; i < 100 && call->next < list->count; i++)
		take_series(call, &list->series[call->next++]);
	if (call->next < list->count) {
		v2_answer_later(answer);
	} else if (call->request->more) {
		call->token = call->request->token;
		read_slice(call);
	} else {
		finish(call);
	}
}

static void inventory_end(struct http_request *request)
{
	static const char *const fields[] = {"row_key", NULL};
	struct call *call;
	struct errbuf e;
	if (v2_part_count(request) != 1 || !slice_equal(v2_part(request, 0), SLICE("inventory"))) {
		v2_no_such_path(request);
		return;
	}
	call = mem_zalloc(sizeof(*call));
	struct v2_answer *answer = &call->answer;
	v2_answer_init(answer, request, advance, release);
	arena_init(&call->tags, TAGS_ARENA_BYTES);
	buf_init(&call->key, COUNTER_KEY_MAX_BYTES);
	if (v2_params_lookups(request, NULL, fields, &answer->arena, &call->lookups, &e) ||
	    v2_page_read(request, &call->page, &e)) {
		v2_answer_fail(answer, 400, "%s", e.text);
		return;
	}
	v2_page_begin(&answer->json);
	call->read = store_read_new(answer->api->store, READ_MAX_BYTES);
	read_slice(call);
}

const struct http_handler v2_inventory = V2_HANDLER(inventory_end);
