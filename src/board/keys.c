#include "board/keys.h"

#include <pthread.h>

#include "base/hash_set.h"
#include "base/log.h"
#include "base/put.h"
#include "base/stats.h"
#include "board/row_name.h"
#include "loop/job.h"
#include "model/stream.h"
#include "store/wait.h"
#include "wire/json.h"

enum {
	KEYS_KNOWN_PRESET = 1 << 17,
	KEYS_TURNS = 60,
	KEYS_TURN_MS = 60000,
	KEYS_WAITING_PRESET_BYTES = 4 << 20,
	KEYS_RECORD_MAX_BYTES = 8 << 10, /* longer than any name that may be written */
	KEYS_VALUE_MAX_BYTES = 2 << 10,
	KEYS_BATCH_MAX = 128,
	KEYS_READ_MAX_BYTES = 4 << 20,
	KEYS_WRITE_MAX_BYTES = 4 << 20,
	KEYS_PARSED_MAX_BYTES = 64 << 10,
	KEYS_EVERY_MS = 1000,
	KEYS_LINES_A_MINUTE = 3,
};
#define KEYS_RENEW_MS INT64_C(86400000)

static const struct {
	const char *name;   /* in the value, and the column of a sig */
	const char *family; /* in the row of a group */
} board_key_types[] = {[BOARD_METRIC] = {"metric", "k"}, [BOARD_SOURCE] = {"source", "ks"}};

struct board_keys {
	struct board_keys_options options;
	_Atomic int64_t keep_ms; /* options.keep_ms, as it is now */
	pthread_mutex_t lock;    /* guards what follows up to `job` */
	struct hash_set known;   /* of records that were noted since the last renewal */
	struct buf waiting;      /* records */
	struct job *job;         /* NULL: it is over, or has not begun */
	/* The job's. */
	struct buf taken;
	int64_t renewed_ms; /* monotonic */
	struct log_rate lines;
};

/* ---- Records --------------------------------------------------------------------------------- */

struct keys_record {
	struct slice tenant, group;
	struct board_key key;
	struct hash128 hash;
	char sig[CHUKWA_SIG_DIGITS + 1];
	/* What the store has: the key, who has its sig, and a key of the other type. */
	struct store_request *stored, *holder, *other;
};

static void keys_put_record(struct slice tenant, struct slice group, const struct board_key *key,
			    struct buf *out)
{
	buf_put_varint(out, key->type);
	buf_put_text(out, tenant);
	buf_put_text(out, group);
	buf_put_text(out, key->name);
	buf_put_text(out, key->unit);
	buf_put_text(out, key->kind);
}

static struct keys_record keys_take_record(struct cursor *c)
{
	struct keys_record record = {.key.type = (enum board_key_type)cursor_varint(c)};
	const uint8_t *begin = c->at - 1; /* the type has one byte */
	record.tenant = cursor_text(c, KEYS_RECORD_MAX_BYTES);
	record.group = cursor_text(c, KEYS_RECORD_MAX_BYTES);
	record.key.name = cursor_text(c, KEYS_RECORD_MAX_BYTES);
	record.key.unit = cursor_text(c, KEYS_RECORD_MAX_BYTES);
	record.key.kind = cursor_text(c, KEYS_RECORD_MAX_BYTES);
	ASSERT(!c->bad);
	record.hash = hash128(begin, (size_t)(c->at - begin), 0);
	return record;
}

/* ---- Noting ---------------------------------------------------------------------------------- */

/* A group is a datatype, and names are UTF-8 without control characters, as those of streams. */
static bool keys_may_be(struct slice group, const struct board_key *key)
{
	const struct stream_names names = {SLICE("-"), SLICE("-"), group, key->name};
	struct errbuf e;
	return stream_names_check(&names, &e) == 0 && key->name.len &&
	       key->name.len <= BOARD_NAME_MAX_BYTES && key->unit.len <= BOARD_UNIT_MAX_BYTES &&
	       key->kind.len <= BOARD_KIND_MAX_BYTES;
}

/* With the lock. Whether it is known from now on. */
static bool keys_wait(struct board_keys *keys, const struct buf *record)
{
	if (buf_append(&keys->waiting, record->data, record->len) == 0)
		return true;
	stat_add(STAT_row_keys_left_out, 1);
	return false;
}

/* With the lock. A name that is not known is looked up in the store each time it is noted. */
static bool keys_is_due(const struct board_keys *keys, struct hash128 hash)
{
	/* Each time round a name has another minute of the hour, so that it meets the samples of
	 * who sends them every ten minutes. */
	uint64_t turn = (uint64_t)(clock_mono_ms(keys->options.clock) / KEYS_TURN_MS);
	return keys->known.table.count < keys->options.known_max ||
	       (hash.low + turn / KEYS_TURNS) % KEYS_TURNS == turn % KEYS_TURNS;
}

/* With the lock. */
static void keys_note_new(struct board_keys *keys, struct slice group, const struct board_key *key,
			  const struct buf *record, struct hash128 hash)
{
	bool may_be = !record->failed && keys_may_be(group, key);
	if (!may_be)
		stat_add(STAT_row_keys_refused, 1);
	if ((!may_be || keys_wait(keys, record)) &&
	    keys->known.table.count < keys->options.known_max)
		hash_set_add(&keys->known, hash, keys->options.known_max);
}

void board_keys_note(struct board_keys *keys, struct slice tenant, struct slice group,
		     const struct board_key *key)
{
	struct buf record;
	if (!keys)
		return;
	buf_init(&record, KEYS_RECORD_MAX_BYTES);
	keys_put_record(tenant, group, key, &record);
	struct hash128 hash = hash128(record.data, record.len, 0);
	pthread_mutex_lock(&keys->lock);
	if (!hash_set_has(&keys->known, hash) && keys_is_due(keys, hash))
		keys_note_new(keys, group, key, &record, hash);
	pthread_mutex_unlock(&keys->lock);
	buf_release(&record);
}

void board_keys_note_series(struct board_keys *keys, struct slice tenant, struct slice group,
			    struct slice metric, struct tags tags, struct slice kind,
			    struct slice unit)
{
	struct slice source = row_name_source(tags);
	struct buf name;
	if (!keys || !source.data)
		return;
	buf_init(&name, METRIC_MAX_BYTES + TAGS_TEXT_MAX_BYTES);
	row_name_put(metric, tags, &name);
	board_keys_note(keys, tenant, group,
			&(struct board_key){.type = BOARD_METRIC,
					    .name = buf_slice(&name),
					    .unit = unit,
					    .kind = kind});
	board_keys_note(keys, tenant, group,
			&(struct board_key){.type = BOARD_SOURCE, .name = source});
	buf_release(&name);
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct keys_batch {
	struct board_keys *keys;
	int64_t now_ms, stamp_us, expires_ms; /* stamp_us: taken before anything is read */
	size_t count;
	struct keys_record list[KEYS_BATCH_MAX];
	struct store_read *read;
	struct store_write *write;
};

static struct store_parts keys_group_key(struct slice tenant, struct slice group)
{
	return (struct store_parts){{tenant, group}};
}

static struct store_parts keys_column(const struct keys_record *record, enum board_key_type type)
{
	return (struct store_parts){{slice_of(board_key_types[type].family), record->key.name}};
}

/* Of all groups of a tenant, since rows of `chukwa` are. */
static struct store_parts keys_sig_column(const struct keys_record *record)
{
	return (struct store_parts){
		{slice_of(board_key_types[record->key.type].name), slice_of(record->sig)}};
}

static struct store_request *keys_ask_cell(struct keys_batch *batch, struct store_parts key,
					   struct store_parts column)
{
	struct store_request *request = store_read_add(batch->read, STORE_CELL_GET);
	ASSERT(request); /* of a batch there are few */
	request->cell_get = (struct store_cell_get){
		.table = TABLE_CHUKWA_METADATA, .key = key, .column = column};
	return request;
}

static int keys_ask(struct keys_batch *batch, struct task_queue *queue)
{
	int err = 0;
	batch->read->now_ms = batch->now_ms;
	for (size_t i = 0; i < batch->count && !err; i++) {
		struct keys_record *r = &batch->list[i];
		struct store_parts key = keys_group_key(r->tenant, r->group);
		enum board_key_type other =
			r->key.type == BOARD_METRIC ? BOARD_SOURCE : BOARD_METRIC;
		err = chukwa_sig(r->key.name, r->sig);
		r->stored = keys_ask_cell(batch, key, keys_column(r, r->key.type));
		r->other = keys_ask_cell(batch, key, keys_column(r, other));
		r->holder = keys_ask_cell(batch, keys_group_key(r->tenant, SLICE("")),
					  keys_sig_column(r));
	}
	return err ? err : store_read_wait(batch->read, queue);
}

static void keys_put_value(const struct keys_record *record, struct buf *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_write_object_begin(&json);
	json_put_text(&json, "type", board_key_types[record->key.type].name);
	json_put_text(&json, "sig", record->sig);
	if (record->key.unit.len)
		json_put_string(&json, "unit", record->key.unit);
	if (record->key.kind.len)
		json_put_string(&json, "kind", record->key.kind);
	json_write_object_end(&json);
	ASSERT(!out->failed); /* each part has a maximum */
}

/* Whether a cell is there as it would be put now, and stays for long enough. */
static bool keys_stays(const struct keys_batch *batch, const struct store_request *request,
		       struct slice value)
{
	const struct store_cell_get *get = &request->cell_get;
	return get->found && slice_equal(get->cell.value, value) &&
	       (batch->expires_ms ? get->cell.expires_ms > batch->expires_ms - KEYS_RENEW_MS / 2
				  : !get->cell.expires_ms);
}

/* The name that has had the sig of this one before; NULL data: none. */
static struct slice keys_holder(const struct keys_batch *batch, size_t at)
{
	const struct keys_record *r = &batch->list[at];
	if (r->holder->cell_get.found)
		return r->holder->cell_get.cell.value;
	for (size_t i = 0; i < at; i++) {
		const struct keys_record *before = &batch->list[i];
		if (before->key.type == r->key.type && slice_equal(before->tenant, r->tenant) &&
		    strcmp(before->sig, r->sig) == 0)
			return before->key.name;
	}
	return (struct slice){NULL, 0};
}

static void keys_say_clash(struct keys_batch *batch, const struct keys_record *r,
			   struct slice holder)
{
	stat_add(STAT_row_keys_clashes, 1);
	log_rated(&batch->keys->lines, clock_mono_ms(batch->keys->options.clock), LOG_WARN,
		  "rows: the %ss " SHOWN " and " SHOWN " of tenant " SHOWN
		  " have the same sig %s: their texts and notes lie in the same rows",
		  board_key_types[r->key.type].name, SHOWN_OF(holder), SHOWN_OF(r->key.name),
		  SHOWN_OF(r->tenant), r->sig);
}

static void keys_say_both(struct keys_batch *batch, const struct keys_record *r)
{
	stat_add(STAT_row_keys_both, 1);
	log_rated(&batch->keys->lines, clock_mono_ms(batch->keys->options.clock), LOG_INFO,
		  "rows: " SHOWN " is a metric and a source of the group " SHOWN " of tenant " SHOWN
		  ": both are kept",
		  SHOWN_OF(r->key.name), SHOWN_OF(r->group), SHOWN_OF(r->tenant));
}

static int keys_put_cell(struct keys_batch *batch, struct store_parts key,
			 struct store_parts column, struct slice value)
{
	return store_cell_put(batch->write, TABLE_CHUKWA_METADATA, &key, &column, value,
			      batch->stamp_us, batch->expires_ms);
}

static int keys_put(struct keys_batch *batch, size_t at, struct slice value)
{
	const struct keys_record *r = &batch->list[at];
	const struct store_parts all = keys_group_key(r->tenant, SLICE(""));
	struct slice holder = keys_holder(batch, at);
	bool clashes = holder.data && !slice_equal(holder, r->key.name);
	if (clashes)
		keys_say_clash(batch, r, holder);
	if (!r->stored->cell_get.found && r->other->cell_get.found)
		keys_say_both(batch, r);
	int err = keys_put_cell(batch, keys_group_key(r->tenant, r->group),
				keys_column(r, r->key.type), value);
	if (!err && !clashes)
		err = keys_put_cell(batch, all, keys_sig_column(r), r->key.name);
	return err ? err
		   : keys_put_cell(batch, all, (struct store_parts){{SLICE("group"), r->group}},
				   SLICE(""));
}

static int keys_submit(struct keys_batch *batch, struct task_queue *queue)
{
	struct buf value;
	int err = 0;
	buf_init(&value, KEYS_VALUE_MAX_BYTES);
	for (size_t i = 0; i < batch->count && !err; i++) {
		buf_clear(&value);
		keys_put_value(&batch->list[i], &value);
		if (!keys_stays(batch, batch->list[i].stored, buf_slice(&value)))
			err = keys_put(batch, i, buf_slice(&value));
	}
	ASSERT(!err); /* each key has a maximum, and of a batch there are few */
	buf_release(&value);
	return store_write_wait_known(batch->write, queue);
}

/* What is not written is noted again with the next sample. */
static void keys_forget(struct keys_batch *batch, int err)
{
	struct board_keys *keys = batch->keys;
	pthread_mutex_lock(&keys->lock);
	for (size_t i = 0; i < batch->count; i++)
		hash_table_remove(&keys->known.table, batch->list[i].hash);
	pthread_mutex_unlock(&keys->lock);
	stat_add(STAT_row_keys_left_out, (int64_t)batch->count);
	if (err != ERR_CANCELLED)
		log_rated(&keys->lines, clock_mono_ms(keys->options.clock), LOG_WARN,
			  "rows: names of %zu metrics and sources are not stored yet: %s",
			  batch->count, err_text(err));
}

void board_keys_set_keep(struct board_keys *keys, int64_t keep_ms)
{
	if (atomic_exchange(&keys->keep_ms, keep_ms) == keep_ms)
		return;
	pthread_mutex_lock(&keys->lock);
	hash_set_release(&keys->known);
	pthread_mutex_unlock(&keys->lock);
}

static void keys_write_batch(struct keys_batch *batch, struct task_queue *queue)
{
	const struct board_keys_options *options = &batch->keys->options;
	int64_t keep_ms = atomic_load(&batch->keys->keep_ms);
	batch->now_ms = clock_wall_ms(options->clock);
	batch->stamp_us = store_stamp(options->store);
	batch->expires_ms = keep_ms ? batch->now_ms + keep_ms + 2 * KEYS_RENEW_MS : 0;
	batch->read = store_read_new(options->store, KEYS_READ_MAX_BYTES);
	batch->write = store_write_new(options->store, KEYS_WRITE_MAX_BYTES);
	int err = keys_ask(batch, queue);
	err = err ? err : keys_submit(batch, queue);
	if (err)
		keys_forget(batch, err);
	store_read_free(batch->read);
	store_write_free(batch->write);
	batch->count = 0;
}

/* Where cells expire, all is noted anew once a day. */
static void keys_take(struct board_keys *keys)
{
	int64_t now_ms = clock_mono_ms(keys->options.clock);
	buf_clear(&keys->taken);
	pthread_mutex_lock(&keys->lock);
	struct buf waiting = keys->waiting;
	keys->waiting = keys->taken;
	keys->taken = waiting;
	if (atomic_load(&keys->keep_ms) && now_ms - keys->renewed_ms >= KEYS_RENEW_MS) {
		hash_set_release(&keys->known);
		keys->renewed_ms = now_ms;
	}
	pthread_mutex_unlock(&keys->lock);
}

void board_keys_write(struct board_keys *keys, struct task_queue *queue)
{
	keys_take(keys);
	struct cursor c = cursor_of(keys->taken.data, keys->taken.len);
	struct keys_batch *batch = mem_zalloc(sizeof(*batch));
	batch->keys = keys;
	while (cursor_left(&c)) {
		batch->list[batch->count++] = keys_take_record(&c);
		if (batch->count == KEYS_BATCH_MAX || !cursor_left(&c))
			keys_write_batch(batch, queue);
	}
	mem_free(batch);
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct board_keys *board_keys_new(const struct board_keys_options *options)
{
	struct board_keys *keys = mem_zalloc(sizeof(*keys));
	keys->options = *options;
	if (!keys->options.known_max)
		keys->options.known_max = KEYS_KNOWN_PRESET;
	size_t max_bytes =
		options->waiting_max_bytes ? options->waiting_max_bytes : KEYS_WAITING_PRESET_BYTES;
	atomic_init(&keys->keep_ms, options->keep_ms);
	pthread_mutex_init(&keys->lock, NULL);
	buf_init(&keys->waiting, max_bytes);
	buf_init(&keys->taken, max_bytes);
	keys->renewed_ms = clock_mono_ms(options->clock);
	keys->lines = (struct log_rate){.lines_max = KEYS_LINES_A_MINUTE};
	return keys;
}

static void keys_run(struct job *job, void *owner)
{
	while (!job_sleep(job, KEYS_EVERY_MS))
		board_keys_write(owner, job_queue(job));
}

static void keys_over(void *owner)
{
	struct board_keys *keys = owner;
	job_free(keys->job);
	keys->job = NULL;
}

void board_keys_start(struct board_keys *keys)
{
	int err = job_start("row names", keys_run, keys_over, keys, keys->options.executor,
			    &keys->job);
	ASSERT(!err); /* one of the first */
}

void board_keys_stop(struct board_keys *keys)
{
	if (keys->job)
		job_stop(keys->job);
}

bool board_keys_is_over(const struct board_keys *keys)
{
	return !keys->job;
}

void board_keys_free(struct board_keys *keys)
{
	if (!keys)
		return;
	ASSERT(board_keys_is_over(keys));
	hash_set_release(&keys->known);
	buf_release(&keys->waiting);
	buf_release(&keys->taken);
	pthread_mutex_destroy(&keys->lock);
	mem_free(keys);
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct keys_reading {
	int (*each)(const struct board_key *key, struct slice sig, void *owner);
	int (*each_group)(struct slice group, void *owner);
	void *owner;
	struct arena arena;
};

/* Which family; -1: none that is known. */
static int keys_type_of(struct slice family)
{
	for (int type = 0; type < (int)ARRAY_LEN(board_key_types); type++)
		if (slice_equal(family, slice_of(board_key_types[type].family)))
			return type;
	return -1;
}

static struct slice keys_text_of(const struct json *value, const char *name)
{
	const struct json *member = json_member(value, name);
	return member && member->type == JSON_T_STRING ? member->text : SLICE("");
}

static int keys_see(const struct store_cell *cell, void *owner)
{
	struct keys_reading *reading = owner;
	int type = keys_type_of(cell->column.part[0]);
	struct json *value;
	struct slice sig = SLICE("");
	struct errbuf e;
	if (type < 0)
		return 0;
	struct board_key key = {.type = (enum board_key_type)type,
				.name = cell->column.part[1],
				.unit = SLICE(""),
				.kind = SLICE("")};
	arena_reset(&reading->arena);
	if (json_parse(cell->value, &reading->arena, &value, &e) ||
	    json_get_text(value, "sig", &sig, &e)) {
		stat_add(STAT_row_cells_unread, 1);
		return 0;
	}
	key.unit = keys_text_of(value, "unit");
	key.kind = keys_text_of(value, "kind");
	return reading->each(&key, sig, reading->owner);
}

int board_keys_each(struct store *store, struct task_queue *queue, int64_t now_ms,
		    struct slice tenant, struct slice group,
		    int (*each)(const struct board_key *key, struct slice sig, void *owner),
		    void *owner, struct errbuf *e)
{
	struct keys_reading reading = {.each = each, .owner = owner};
	const struct store_cell_scan scan = {.table = TABLE_CHUKWA_METADATA,
					     .key = keys_group_key(tenant, group),
					     .from = {{SLICE("k")}},
					     .to = {{SLICE("ks\0")}}};
	arena_init(&reading.arena, KEYS_PARSED_MAX_BYTES);
	int err = store_cells_wait(store, queue, now_ms, &scan, keys_see, &reading, e);
	arena_release(&reading.arena);
	return err;
}

static int keys_see_group(const struct store_cell *cell, void *owner)
{
	const struct keys_reading *reading = owner;
	return reading->each_group(cell->column.part[1], reading->owner);
}

int board_groups_each(struct store *store, struct task_queue *queue, int64_t now_ms,
		      struct slice tenant, int (*each)(struct slice group, void *owner),
		      void *owner, struct errbuf *e)
{
	struct keys_reading reading = {.each_group = each, .owner = owner};
	const struct store_cell_scan scan = {.table = TABLE_CHUKWA_METADATA,
					     .key = keys_group_key(tenant, SLICE("")),
					     .from = {{SLICE("group")}},
					     .to = {{SLICE("group\0")}}};
	return store_cells_wait(store, queue, now_ms, &scan, keys_see_group, &reading, e);
}
