#include "ingest/loki.h"

#include "base/hash_table.h"
#include "base/stats.h"
#include "wire/loki_push.h"

enum {
	LOKI_SCRATCH_MAX_BYTES = 64 << 20, /* of one entry, decoded */
	LOKI_NAME_ROOM_BYTES = 2 * STREAM_NAME_MAX_BYTES,
	/* What a chunk can list of the ends of its records, each of which takes up to three bytes.
	 */
	LOKI_RECORDS_MAX = CHUNK_ENDS_MAX_BYTES / 4,
};

struct loki_reading {
	struct chunks_batch *batch;
	const struct collector *collector;
	struct slice tenant;
	struct arena scratch;   /* of one entry */
	struct hash_table seen; /* of records of the body: struct hash128 */
	size_t entries, named;

	/* The stream that is read. */
	size_t at;
	const struct loki_stream *stream;
	struct chunk_fields fields;
	uint64_t names_hash;

	/* The chunk that is made. */
	struct buf data;
	struct buf record;
	uint32_t ends[LOKI_RECORDS_MAX];
	uint64_t hashes[LOKI_RECORDS_MAX];
	size_t count;
};

/* ---- What is wrong --------------------------------------------------------------------------- */

/* Named, as far as there are not too many already. */
static void loki_refuse(struct loki_reading *r, const struct errbuf *why)
{
	stat_add(STAT_loki_refused, 1);
	struct slice kept = {NULL, 0};
	if (r->named < LOKI_NAMED_MAX)
		kept = arena_copy(&r->batch->arena, slice_of(why->text));
	if (kept.data) {
		chunks_batch_add_item(r->batch)->sentence = kept.data;
		r->named++;
	} else {
		r->batch->unnamed++;
	}
}

static void loki_refuse_stream(struct loki_reading *r, const char *wrong)
{
	struct errbuf why;
	struct buf labels;
	buf_init(&labels, LOKI_NAME_ROOM_BYTES);
	loki_labels_put(&r->stream->labels, NULL, &labels);
	(void)errbuf_set(&why, ERR_INVALID, "stream %zu " SHOWN ": %s", r->at,
			 SHOWN_OF(buf_slice(&labels)), wrong);
	buf_release(&labels);
	loki_refuse(r, &why);
}

static void loki_refuse_entry(struct loki_reading *r, size_t at, const struct loki_entry *entry)
{
	struct errbuf why;
	struct buf labels;
	buf_init(&labels, LOKI_NAME_ROOM_BYTES);
	loki_labels_put(&r->stream->labels, NULL, &labels);
	(void)errbuf_set(&why, ERR_INVALID, "entry %zu of stream %zu " SHOWN ": %s%s" SHOWN "%s",
			 at, r->at, SHOWN_OF(buf_slice(&labels)), entry->wrong,
			 entry->shown.len ? ": \"" : "", SHOWN_OF(entry->shown),
			 entry->shown.len ? "\"" : "");
	buf_release(&labels);
	loki_refuse(r, &why);
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* The value of the first of these labels that is there; it is used then. */
static struct slice loki_take(const struct loki_labels *labels, const char *const *names,
			      bool *used, const char *preset)
{
	for (size_t n = 0; names[n]; n++) {
		for (size_t i = 0; i < labels->count; i++) {
			if (!slice_equal(labels->list[i].name, slice_of(names[n])))
				continue;
			used[i] = true;
			return labels->list[i].value;
		}
	}
	return slice_of(preset);
}

static int loki_make_name(struct loki_reading *r, const struct loki_labels *labels, bool *used,
			  struct slice *name)
{
	static const char *const names[] = {"filename", NULL};
	struct buf text;
	buf_init(&text, LOKI_LABELS_MAX * LOKI_LABEL_VALUE_MAX_BYTES * 4);
	struct slice file = loki_take(labels, names, used, "");
	buf_append(&text, file.data, file.len);
	loki_labels_put(labels, used, &text);
	*name = arena_copy(&r->batch->arena, buf_slice(&text));
	buf_release(&text);
	return name->data ? 0 : ERR_LIMIT;
}

/* As Chukwa writes them. A tag cannot have a quote. */
static int loki_make_tags(struct loki_reading *r, const struct loki_labels *labels,
			  struct slice *tags)
{
	struct buf text;
	buf_init(&text, LOKI_LABELS_MAX * LOKI_LABEL_VALUE_MAX_BYTES * 2);
	for (size_t i = 0; i < labels->count; i++) {
		const struct loki_label *label = &labels->list[i];
		if (i)
			buf_append_char(&text, ' ');
		buf_append(&text, label->name.data, label->name.len);
		buf_append_text(&text, "=\"");
		for (size_t at = 0; at < label->value.len; at++) {
			char c = label->value.data[at];
			buf_append_char(&text, c == '"' ? '\'' : c);
		}
		buf_append_char(&text, '"');
	}
	*tags = arena_copy(&r->batch->arena, buf_slice(&text));
	buf_release(&text);
	return tags->data ? 0 : ERR_LIMIT;
}

static uint64_t loki_hash_names(const struct stream_names *names)
{
	uint64_t hash = hash64(names->source.data, names->source.len, names->source.len);
	hash = hash64(names->datatype.data, names->datatype.len, hash);
	hash = hash64(names->cluster.data, names->cluster.len, hash);
	return hash64(names->name.data, names->name.len, hash);
}

/* ERR_INVALID: the stream was refused. */
static int loki_begin_stream(struct loki_reading *r)
{
	static const char *const sources[] = {"host", "hostname", "instance", "nodename", NULL};
	static const char *const datatypes[] = {"job", "app", "service_name", "container", NULL};
	static const char *const clusters[] = {"cluster", NULL};
	const struct loki_labels *labels = &r->stream->labels;
	struct stream_names *names = &r->fields.names;
	bool used[LOKI_LABELS_MAX] = {false};
	struct errbuf why = {""};
	r->fields = (struct chunk_fields){.incarnation = 0};
	names->source = loki_take(labels, sources, used, "unknown");
	names->datatype = loki_take(labels, datatypes, used, "loki");
	names->cluster = loki_take(labels, clusters, used, "unknown_cluster");
	int err = loki_make_name(r, labels, used, &names->name);
	err = err ? err : loki_make_tags(r, labels, &r->fields.tags);
	if (err)
		return err;
	err = chunks_batch_check(r->tenant, names, &why);
	if (!err && r->fields.tags.len > CHUNK_TAGS_MAX_BYTES)
		err = errbuf_set(&why, ERR_INVALID, "its labels have %zu bytes, more than %d",
				 r->fields.tags.len, CHUNK_TAGS_MAX_BYTES);
	if (err)
		loki_refuse_stream(r, why.text);
	r->names_hash = loki_hash_names(names);
	return err;
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

static struct stream_append *loki_make_append(struct loki_reading *r)
{
	struct arena *arena = &r->batch->arena;
	struct chunk_fields fields = r->fields;
	struct chunk_data data = {buf_slice(&r->data), r->ends, r->count};
	struct stream_append *append = arena_zalloc(arena, sizeof(*append));
	uint64_t *hashes = arena_alloc(arena, r->count * sizeof(*hashes));
	if (!append || !hashes)
		return NULL;
	memcpy(hashes, r->hashes, r->count * sizeof(*hashes));
	append->hashes = hashes;
	append->count = r->count;
	append->arena = arena;
	chunk_note_lines(&fields, &data);
	if (chunk_unplaced_make(&fields, &data, CHUNK_LEVEL_PRESET, arena, &append->frame))
		return NULL;
	return append;
}

/* What has been gathered becomes a chunk. */
static int loki_flush(struct loki_reading *r)
{
	if (!r->count)
		return 0;
	struct stream_chunk chunk = {.id = {.tenant = r->tenant, .names = r->fields.names}};
	chunk.append = loki_make_append(r);
	if (!chunk.append || r->batch->chunk_count == STREAM_CHUNKS_MAX)
		return ERR_LIMIT;
	struct chunks_item *item = chunks_batch_add_item(r->batch);
	item->data_bytes = r->data.len;
	chunks_batch_add(r->batch, &chunk);
	r->count = 0;
	buf_clear(&r->data);
	return 0;
}

/* An entry that the body has already is passed over, as what was pushed before is. */
static bool loki_is_new(struct loki_reading *r, uint64_t hash)
{
	bool added;
	const struct hash128 both = {hash, r->names_hash | 1};
	(void)hash_table_add(&r->seen, both, sizeof(both), &added);
	return added;
}

static int loki_add_entry(struct loki_reading *r, size_t at, struct loki_entry *entry)
{
	if (!entry->wrong) {
		buf_clear(&r->record);
		loki_record_put(entry, &r->record);
		if (r->record.failed)
			entry->wrong = "its line and metadata have more than 983040 bytes";
	}
	if (entry->wrong) {
		loki_refuse_entry(r, at, entry);
		return 0;
	}
	struct slice record = buf_slice(&r->record);
	uint64_t hash = collector_hash_record(r->collector, record);
	if (!loki_is_new(r, hash)) {
		stat_add(STAT_loki_repeated, 1);
		return 0;
	}
	int err = 0;
	if (r->count == LOKI_RECORDS_MAX || r->data.len + record.len > CHUNK_DATA_MAX_BYTES)
		err = loki_flush(r);
	if (err)
		return err;
	buf_append(&r->data, record.data, record.len);
	r->hashes[r->count] = hash;
	r->ends[r->count++] = (uint32_t)r->data.len;
	return 0;
}

static int loki_gather(struct loki_reading *r)
{
	struct loki_entries entries;
	struct loki_entry entry;
	if (r->stream->wrong) {
		loki_refuse_stream(r, r->stream->wrong);
		return 0;
	}
	int err = loki_begin_stream(r);
	if (err)
		return err == ERR_INVALID ? 0 : err;
	loki_entries_begin(&entries, r->stream, &r->scratch);
	for (size_t at = 0; !(err = loki_entries_next(&entries, &entry)); at++) {
		if (++r->entries > LOKI_ENTRIES_MAX)
			return ERR_LIMIT;
		err = loki_add_entry(r, at, &entry);
		if (err)
			return err;
		arena_reset(&r->scratch);
	}
	return err == ERR_NOT_FOUND ? loki_flush(r) : err;
}

static int loki_gather_all(struct loki_reading *r, const struct loki_push *push, struct errbuf *e)
{
	int err = 0;
	for (r->at = 0; r->at < push->count && !err; r->at++) {
		r->stream = &push->streams[r->at];
		err = loki_gather(r);
	}
	if (err)
		return errbuf_set(e, ERR_LIMIT,
				  "there are more than %d entries, or they take too much memory; "
				  "none of them was taken: send them in several requests",
				  LOKI_ENTRIES_MAX);
	return 0;
}

int loki_batch_read(struct chunks_batch *batch, struct slice body, struct slice tenant,
		    const struct collector *collector, struct errbuf *e)
{
	struct loki_push push;
	ASSERT(!batch->item_count);
	int err = loki_push_read(body, &batch->arena, &push, e);
	if (err)
		return err;
	struct loki_reading *r = mem_zalloc(sizeof(*r));
	r->batch = batch;
	r->collector = collector;
	r->tenant = tenant;
	arena_init(&r->scratch, LOKI_SCRATCH_MAX_BYTES);
	buf_init(&r->data, CHUNK_DATA_MAX_BYTES);
	buf_init(&r->record, CHUNK_DATA_MAX_BYTES);
	err = loki_gather_all(r, &push, e);
	buf_release(&r->record);
	buf_release(&r->data);
	hash_table_release(&r->seen);
	arena_release(&r->scratch);
	mem_free(r);
	return err;
}
