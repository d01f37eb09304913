/* Order of events: the handles of the counter and of what is polled beside it (sysUpTime, the
 * interface's discontinuity time and speed) are looked up; then the rows, or the samples, are read,
 * a piece at a time. Where there is no such series and a name has a `_`, the device's series are
 * looked through once for one whose names have a `/` there, as the document writes them. What is no
 * number has no series: samples are read where there is none, too. */
#include "api/esmond/fetch.h"

#include "base/owner.h"
#include "rate/oidset.h"
#include "rate/read.h"

enum {
	PIECE_SLOTS = 16384,
	SLOT_BYTES = 200, /* of a row, as stored and as computed, with room to grow */
	FOUND_MAX_BYTES = 64 << 20,
	ROWS_MAX = 100000, /* of one OID of a device */
};

/* What is looked up of a row. */
enum { METRIC_COUNTER, METRIC_DISCONTINUITY, METRIC_SPEED, ROW_METRICS };

struct v2_fetch_work {
	uint32_t magic;
	struct v2_fetch *fetch;

	struct catalog_open open;
	struct catalog_group groups[2]; /* of the row, of the device */
	struct slice metrics[ROW_METRICS], uptime_metric;
	struct tag tags[2 + COUNTER_KEY_PATH_MAX], device_tags[2];
	uint64_t handles[ROW_METRICS], uptime;

	struct rate_table table;
	struct rate_column column;
	struct rate_row row;
	struct rate_read *rates;
	size_t level;
	int64_t at_ms; /* where the next piece of rows begins */

	struct store_read *read; /* of samples */
	struct v2_samples samples;
	struct buf row_key;

	/* A row that nobody has by the name that was asked for is looked up among its device's. */
	struct catalog_find find;
	struct catalog_pattern patterns[2];
	struct slice pieces[2];
	struct catalog_selector selectors[2];
	struct arena found; /* the series, and the names of the one that is meant */
	bool finding, resembled;

	struct task later; /* says what happened within a call of the owner's */
};

void v2_fetch_release(struct v2_fetch *fetch)
{
	struct v2_fetch_work *work = fetch->work;
	fetch->work = NULL;
	if (!work)
		return;
	if (work->finding)
		catalog_find_cancel(&work->find);
	arena_release(&work->found);
	if (work->rates)
		rate_read_free(work->rates);
	if (work->read)
		store_read_free(work->read);
	v2_samples_release(&work->samples);
	buf_release(&work->row_key);
	work->magic = 0;
	mem_free(work);
}

static struct executor *v2_fetch_executor_of(const struct v2_fetch *fetch)
{
	return loop_executor(fetch->answer->call.api->loop);
}

/* Ends with an error; `sentence` may be empty. */
static void v2_fetch_fail(struct v2_fetch *fetch, int err, const char *sentence)
{
	fetch->err = errbuf_set(&fetch->error, err, "%s", sentence[0] ? sentence : err_text(err));
	fetch->more = false;
	fetch->count = 0;
	fetch->got(fetch);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void v2_fetch_rows_read(struct rate_read *rates, int err)
{
	struct v2_fetch_work *work = FROM_OWNER(v2_fetch_work, rate_read_owner(rates));
	struct v2_fetch *fetch = work->fetch;
	ASSERT(work->rates == rates && !fetch->raw);
	if (!api_call_settle(&fetch->answer->call))
		return;
	if (err) {
		v2_fetch_fail(fetch, err, rate_read_error(rates));
		return;
	}
	struct rate_series series = rate_read_series(rates, 0, 0);
	fetch->rows = series.rows;
	fetch->count = series.count;
	fetch->until_ms = work->at_ms;
	fetch->more = work->at_ms < fetch->to_ms;
	fetch->got(fetch);
}

/* ERR_BUSY or what is wrong with the table; `got` does not come. */
static int v2_fetch_read_rows(struct v2_fetch *fetch)
{
	struct v2_fetch_work *work = fetch->work;
	int64_t from_ms = work->at_ms, to_ms = from_ms + fetch->period_ms * PIECE_SLOTS;
	if (!work->rates)
		work->rates =
			rate_read_new(fetch->answer->call.api->store, v2_fetch_executor_of(fetch));
	if (to_ms > fetch->to_ms)
		to_ms = fetch->to_ms;
	struct rate_read_options options = {
		.table = &work->table,
		.level = work->level,
		.from_ms = from_ms,
		.to_ms = to_ms,
		.now_ms = fetch->answer->now_ms,
		.deadline_us = fetch->answer->call.deadline_us,
		.rows_max = 2 * PIECE_SLOTS, /* stored and computed are counted both */
		.done = v2_fetch_rows_read,
		.owner = work,
	};
	ASSERT(from_ms < to_ms);
	work->at_ms = to_ms;
	int err = rate_read_start(work->rates, &options);
	if (err)
		return errbuf_set(&fetch->error, err, "%s", rate_read_error(work->rates));
	fetch->answer->call.held++;
	return 0;
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* Against the server's bound; the largest piece of an answer counts. */
static int v2_fetch_charge(struct v2_fetch *fetch, size_t bytes)
{
	struct v2_answer *answer = fetch->answer;
	if (bytes <= answer->charged_bytes)
		return 0;
	if (http_request_charge(answer->call.request, bytes - answer->charged_bytes))
		return errbuf_set(&fetch->error, ERR_BUSY, "the memory for answers is in use");
	answer->charged_bytes = bytes;
	return 0;
}

static int submit_read(struct v2_fetch *fetch)
{
	struct store_read *read = fetch->work->read;
	int err = store_read_submit(read);
	if (err)
		return errbuf_set(&fetch->error, err, "%s", store_read_sentence(read, err));
	fetch->answer->call.held++;
	return 0;
}

static void samples_read(struct store_read *read, int err)
{
	struct v2_fetch_work *work = FROM_OWNER(v2_fetch_work, read->owner);
	struct v2_fetch *fetch = work->fetch;
	ASSERT(work->read == read && fetch->raw);
	struct v2_samples *samples = &work->samples;
	if (!api_call_settle(&fetch->answer->call))
		return;
	if (err) {
		v2_fetch_fail(fetch, err, store_read_sentence(read, err));
		return;
	}
	err = v2_samples_take(samples);
	err = err ? err : v2_fetch_charge(fetch, read->arena.used_bytes);
	if (err) {
		v2_fetch_fail(fetch, err, fetch->error.text);
		return;
	}
	fetch->found |= samples->any_text;
	fetch->samples = samples->list;
	fetch->count = samples->count;
	fetch->more = samples->more;
	fetch->got(fetch);
}

static struct store_read *v2_fetch_begin_read(struct v2_fetch *fetch)
{
	struct v2_fetch_work *work = fetch->work;
	if (!work->read)
		work->read = store_read_new(fetch->answer->call.api->store, SAMPLES_READ_BYTES);
	store_read_reset(work->read);
	work->read->executor = v2_fetch_executor_of(fetch);
	work->read->done = samples_read;
	work->read->owner = work;
	work->read->now_ms = fetch->answer->now_ms;
	work->read->deadline_us = fetch->answer->call.deadline_us;
	return work->read;
}

static int v2_fetch_read_samples(struct v2_fetch *fetch)
{
	struct store_read *read = v2_fetch_begin_read(fetch);
	return v2_samples_ask(&fetch->work->samples, read) ? submit_read(fetch) : ERR_NOT_FOUND;
}

/* Under which texts are stored; none where nothing can have that name. */
static void make_row_key(struct v2_fetch *fetch)
{
	const struct v2_target *target = &fetch->target;
	struct buf *text = &fetch->work->row_key;
	struct counter_key key = {
		.ns = COUNTER_TENANT,
		.device = target->device,
		.oidset = target->oidset->set_name,
		.oid = target->oid->name,
		.path_count = target->path_count,
		.freq_ms = target->oidset->frequency_ms,
	};
	memcpy(key.path, target->path, sizeof(key.path));
	buf_init(text, COUNTER_KEY_MAX_BYTES);
	if (counter_key_encode(&key, text))
		buf_clear(text);
}

/* ERR_NOT_FOUND: nothing can be stored under such names. */
static int begin_samples(struct v2_fetch *fetch)
{
	struct v2_fetch_work *work = fetch->work;
	make_row_key(fetch);
	work->samples = (struct v2_samples){
		.handle = work->handles[METRIC_COUNTER],
		.row_key = buf_slice(&work->row_key),
		.period_ms = fetch->target.oidset->frequency_ms,
		.at_ms = fetch->from_ms,
		.to_ms = fetch->to_ms,
	};
	return v2_fetch_read_samples(fetch);
}

static void begin_raw(struct v2_fetch *fetch)
{
	int err = fetch->from_ms < fetch->to_ms ? begin_samples(fetch) : ERR_NOT_FOUND;
	if (err == ERR_NOT_FOUND)
		fetch->got(fetch);
	else if (err)
		v2_fetch_fail(fetch, err, fetch->error.text);
}

/* ---- The table of one counter ---------------------------------------------------------------- */

/* ERR_NOT_FOUND: the OIDSet has no such period. */
static int v2_fetch_find_level(const struct counter_config *config, int64_t period_ms,
			       size_t *level)
{
	for (*level = 0; *level <= config->period_count; ++*level) {
		if (counter_level_ms(config, *level) == period_ms)
			return 0;
	}
	return ERR_NOT_FOUND;
}

static int v2_fetch_make_table(struct v2_fetch *fetch)
{
	struct v2_fetch_work *work = fetch->work;
	const struct oidset *oidset = fetch->target.oidset;
	struct rate_table *table = &work->table;
	struct buf text;
	table->device = fetch->target.device;
	table->oidset = oidset->set_name;
	table->config = rate_config_of(oidset);
	buf_init(&text, TAGS_TEXT_MAX_BYTES);
	int err = tags_encode(work->groups[0].tags, &text);
	work->row.id = rate_row_id(buf_slice(&text));
	buf_release(&text);
	work->row.handles = &work->handles[METRIC_COUNTER];
	work->row.discontinuity = work->handles[METRIC_DISCONTINUITY];
	work->row.speed = work->handles[METRIC_SPEED];
	if (!rate_column_of(fetch->target.oid, &work->column))
		err = ERR_INVALID; /* whoever asks for rates has looked before */
	table->columns = &work->column;
	table->column_count = 1;
	table->rows = &work->row;
	table->row_count = 1;
	table->uptime = work->uptime;
	return err ? err : v2_fetch_find_level(&table->config, fetch->period_ms, &work->level);
}

/* ---- Handles --------------------------------------------------------------------------------- */

static int open_handles(struct v2_fetch *fetch);

/* Takes the names of the row over, if it is the one that is meant. */
static bool take_names(struct v2_fetch *fetch, struct slice tags_text)
{
	struct v2_target *target = &fetch->target;
	struct slice parts[COUNTER_KEY_PATH_MAX];
	struct tags tags;
	if (tags_decode(tags_text, &fetch->work->found, &tags))
		return false;
	for (size_t i = 0; i < target->path_count; i++) {
		parts[i] = tags_find(tags, target->oidset->path_tags[i]);
		if (!parts[i].data || !counter_key_part_matches(parts[i], target->path[i]))
			return false;
	}
	memcpy(target->path, parts, target->path_count * sizeof(parts[0]));
	return true;
}

static void resembling_found(struct catalog_find *find, int err)
{
	struct v2_fetch *fetch = FROM_OWNER(v2_fetch_work, find->owner)->fetch;
	bool is_there = false;
	ASSERT(fetch->work->finding);
	fetch->work->finding = false;
	if (!fetch->answer->call.request)
		return; /* it is over, and freed when its turn has passed */
	if (err) {
		v2_fetch_fail(fetch, err, find->error.text);
		return;
	}
	for (size_t i = 0; i < find->count && !is_there; i++)
		is_there = take_names(fetch, find->series[i].tags_text);
	err = is_there ? open_handles(fetch) : ERR_NOT_FOUND;
	if (err == ERR_NOT_FOUND && fetch->raw)
		begin_raw(fetch);
	else if (err == ERR_NOT_FOUND)
		fetch->got(fetch);
	else if (err)
		v2_fetch_fail(fetch, err, "");
}

static bool may_resemble(const struct v2_fetch *fetch)
{
	for (size_t i = 0; i < fetch->target.path_count; i++) {
		struct slice part = fetch->target.path[i];
		if (part.len && memchr(part.data, '_', part.len))
			return !fetch->work->resembled;
	}
	return false;
}

/* By which the device's rows are looked through: a text has no series, but others of its row do. */
static struct slice metric_of_rows(const struct v2_fetch *fetch)
{
	const struct oidset *oidset = fetch->target.oidset;
	const struct oid_def *oid = fetch->target.oid;
	for (size_t i = 0; i < oidset->oid_count && oid->type == OID_TEXT; i++) {
		if (!oidset->oids[i]->scalar)
			oid = oidset->oids[i];
	}
	return oid->name;
}

static void find_resembling(struct v2_fetch *fetch)
{
	struct v2_fetch_work *work = fetch->work;
	work->resembled = work->finding = true;
	work->pieces[0] = fetch->target.device;
	work->pieces[1] = fetch->target.oidset->set_name;
	for (size_t i = 0; i < 2; i++) {
		work->patterns[i] = (struct catalog_pattern){&work->pieces[i], 1};
		work->selectors[i] = (struct catalog_selector){
			i ? SLICE("oidset") : SLICE("device"), &work->patterns[i], 1};
	}
	arena_init(&work->found, FOUND_MAX_BYTES);
	work->find = (struct catalog_find){
		.catalog = fetch->answer->call.api->catalog,
		.tenant = COUNTER_TENANT,
		.metric = metric_of_rows(fetch),
		.selectors = work->selectors,
		.selector_count = 2,
		.series_max = ROWS_MAX,
		.done = resembling_found,
		.owner = work,
		.arena = &work->found,
	};
	catalog_find_start(&work->find);
}

static void v2_fetch_opened(struct catalog_open *open)
{
	struct v2_fetch_work *work = FROM_OWNER(v2_fetch_work, open->owner);
	struct v2_fetch *fetch = work->fetch;
	int err = work->groups[0].err;
	struct errbuf e = {""};
	if (err && work->groups[0].sentence)
		errbuf_set(&e, err, "%s", work->groups[0].sentence);
	catalog_open_finish(open, ERR_CANCELLED);
	if (!api_call_settle(&fetch->answer->call))
		return;
	if (err && err != ERR_NOT_FOUND) {
		v2_fetch_fail(fetch, err, e.text);
		return;
	}
	fetch->found = work->handles[METRIC_COUNTER] != 0;
	if (!fetch->found && may_resemble(fetch)) {
		find_resembling(fetch);
		return;
	}
	if (fetch->raw) {
		begin_raw(fetch);
		return;
	}
	if (!fetch->found || fetch->from_ms >= fetch->to_ms) {
		fetch->until_ms = fetch->to_ms;
		fetch->got(fetch);
		return;
	}
	err = v2_fetch_make_table(fetch);
	err = err ? err : v2_fetch_read_rows(fetch);
	if (err)
		v2_fetch_fail(fetch, err, fetch->error.text);
}

/* ERR_INVALID: nothing can have such a name. */
static int v2_fetch_name_series(struct v2_fetch *fetch)
{
	struct v2_fetch_work *work = fetch->work;
	const struct v2_target *target = &fetch->target;
	size_t count = 2;
	work->device_tags[0] = (struct tag){SLICE("device"), target->device};
	work->device_tags[1] = (struct tag){SLICE("oidset"), target->oidset->set_name};
	memcpy(work->tags, work->device_tags, sizeof(work->device_tags));
	for (size_t i = 0; i < target->path_count; i++)
		work->tags[count++] = (struct tag){target->oidset->path_tags[i], target->path[i]};
	work->metrics[METRIC_COUNTER] = target->oid->name;
	work->metrics[METRIC_DISCONTINUITY] = SLICE("ifCounterDiscontinuityTime");
	work->metrics[METRIC_SPEED] = SLICE("ifHighSpeed");
	work->uptime_metric = SLICE("sysUpTime");
	work->groups[0] = (struct catalog_group){
		.tenant = COUNTER_TENANT,
		.tags = {work->tags, count},
		.metrics = work->metrics,
		/* No two alike: of samples nothing else is needed. */
		.count = fetch->raw ? 1 : ROW_METRICS,
		.handles = work->handles,
	};
	work->groups[1] = (struct catalog_group){
		.tenant = COUNTER_TENANT,
		.tags = {work->device_tags, 2},
		.metrics = &work->uptime_metric,
		.count = 1,
		.handles = &work->uptime,
	};
	int err = tags_sort_and_check(work->tags, count, NULL);
	return err ? err : tags_sort_and_check(work->device_tags, 2, NULL);
}

/* ERR_BUSY; ERR_NOT_FOUND: nothing can have such names. */
static int open_handles(struct v2_fetch *fetch)
{
	struct v2_fetch_work *work = fetch->work;
	if (v2_fetch_name_series(fetch))
		return ERR_NOT_FOUND;
	work->open = (struct catalog_open){
		.catalog = fetch->answer->call.api->catalog,
		.executor = v2_fetch_executor_of(fetch),
		.done = v2_fetch_opened,
		.owner = work,
		.groups = work->groups,
		.count = fetch->raw ? 1 : 2,
		.find_only = true,
	};
	int err = catalog_open_start(&work->open);
	fetch->answer->call.held += !err;
	return err;
}

/* ---- The owner's calls ----------------------------------------------------------------------- */

static void say_later(struct task *task)
{
	struct v2_fetch_work *work = CONTAINER_OF(task, struct v2_fetch_work, later);
	ASSERT_IS(v2_fetch_work, work);
	struct v2_fetch *fetch = work->fetch;
	if (!api_call_settle(&fetch->answer->call))
		return;
	if (fetch->err)
		v2_fetch_fail(fetch, fetch->err, fetch->error.text);
	else
		fetch->got(fetch);
}

static void post_later(struct v2_fetch *fetch, int err)
{
	struct executor *executor = v2_fetch_executor_of(fetch);
	fetch->err = err;
	fetch->work->later.run = say_later;
	fetch->answer->call.held++;
	executor->post(executor, &fetch->work->later);
}

/* What the pieces take. */
static int charge_slots(struct v2_fetch *fetch)
{
	int64_t slots = (fetch->to_ms - fetch->from_ms) / fetch->period_ms + 1;
	return v2_fetch_charge(fetch,
			       (size_t)(slots < PIECE_SLOTS ? slots : PIECE_SLOTS) * SLOT_BYTES);
}

void v2_fetch_start(struct v2_fetch *fetch)
{
	ASSERT(fetch->got && fetch->period_ms > 0);
	ASSERT(fetch->target.path_count <= COUNTER_KEY_PATH_MAX);
	v2_fetch_release(fetch);
	struct v2_fetch_work *work = mem_zalloc(sizeof(*work));
	work->magic = MAGIC_OF(v2_fetch_work);
	fetch->work = work;
	work->fetch = fetch;
	work->at_ms = fetch->from_ms;
	fetch->err = 0;
	fetch->error.text[0] = 0;
	fetch->found = fetch->more = false;
	fetch->count = 0;
	int err = api_call_check_time(&fetch->answer->call, &fetch->error);
	err = err ? err : charge_slots(fetch);
	err = err ? err : open_handles(fetch);
	fetch->until_ms = fetch->to_ms;
	if (err)
		post_later(fetch, err == ERR_NOT_FOUND ? 0 : err);
}

void v2_fetch_next(struct v2_fetch *fetch)
{
	ASSERT(fetch->more);
	int err = api_call_check_time(&fetch->answer->call, &fetch->error);
	if (!err)
		err = fetch->raw ? v2_fetch_read_samples(fetch) : v2_fetch_read_rows(fetch);
	if (err)
		post_later(fetch, err);
}
