#include "ingest/demux_samples.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/stats.h"
#include "board/row_name.h"
#include "ingest/job_write.h"
#include "store/wait.h"

enum {
	DEMUX_DESCRIBED_MAX = 100000,
	DEMUX_DESCRIBED_AT_ONCE = 100,
	DEMUX_LOGS_A_MINUTE = 3,
	DEMUX_UNITS_WRITE_MAX_BYTES = 1 << 20,
	/* More than the texts of a write may have (demux_texts.c). */
	DEMUX_TEXTS_WRITE_MAX_BYTES = 16 << 20,
};

/* ---- Units ----------------------------------------------------------------------------------- */

/* Metrics of points that are not described yet. */
struct demux_units {
	struct store_write *write;
	struct hash128 hashes[DEMUX_DESCRIBED_AT_ONCE];
	size_t count;
};

static struct hash128 demux_metric_hash(struct slice tenant, struct slice metric, struct slice unit)
{
	struct hash128 hash = hash128(tenant.data, tenant.len, 0);
	hash = hash128(metric.data, metric.len, hash.low ^ hash.high);
	return hash128(unit.data, unit.len, hash.low ^ hash.high);
}

static bool demux_units_have(const struct demux_units *units, struct hash128 hash)
{
	for (size_t i = 0; i < units->count; i++)
		if (memcmp(&units->hashes[i], &hash, sizeof(hash)) == 0)
			return true;
	return false;
}

static void demux_add_unit(struct demux_samples *samples, struct demux_units *units,
			   struct slice tenant, struct slice metric, struct slice unit)
{
	struct hash128 hash = demux_metric_hash(tenant, metric, unit);
	const struct catalog_info info = {.kind = KIND_GAUGE, .unit = unit, .home = TABLE_DATA_RAW};
	if (units->count == DEMUX_DESCRIBED_AT_ONCE || hash_set_has(&samples->described, hash) ||
	    demux_units_have(units, hash))
		return;
	/* A metric whose name cannot be one has been refused. */
	if (!catalog_info_put(samples->store, units->write, tenant, metric, &info))
		units->hashes[units->count++] = hash;
}

/* Is tried again with the next samples where the store takes nothing now. */
static void demux_write_units(struct demux_samples *samples, struct job *job, struct slice tenant,
			      const struct demux_point *points, size_t count)
{
	struct demux_units units = {
		.write = store_write_new(samples->store, DEMUX_UNITS_WRITE_MAX_BYTES)};
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < points[i].count; j++)
			demux_add_unit(samples, &units, tenant, points[i].metrics[j],
				       points[i].units[j]);
	if (units.count && !store_write_wait_known(units.write, job_queue(job)))
		for (size_t i = 0; i < units.count; i++)
			hash_set_add(&samples->described, units.hashes[i], DEMUX_DESCRIBED_MAX);
	store_write_free(units.write);
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* Ingest takes so many metrics at once. */
static void demux_add_points(const struct demux_point *point, struct slice tenant, struct tag *tags,
			     struct ingest_points *list, size_t *count)
{
	memcpy(tags, point->tags, point->tag_count * sizeof(*tags));
	for (size_t at = 0; at < point->count; at += INGEST_POINTS_MAX)
		list[(*count)++] = (struct ingest_points){
			.tenant = tenant,
			.tags = tags,
			.tag_count = point->tag_count,
			.metrics = point->metrics + at,
			.values = point->values + at,
			.count = smaller_of(point->count - at, (size_t)INGEST_POINTS_MAX),
			.ts_ms = point->ms};
}

/* The tags are those that were written, in their order by now. */
static void demux_note_keys(struct demux_samples *samples, struct slice tenant, struct slice group,
			    const struct demux_point *point, const struct tag *tags)
{
	const struct tags written = {tags, point->tag_count};
	for (size_t i = 0; i < point->count; i++)
		board_keys_note_series(samples->keys, tenant, group, point->metrics[i], written,
				       slice_of(catalog_kind_text(KIND_GAUGE)), point->units[i]);
}

static void demux_say_refused(struct demux_samples *samples, struct slice tenant,
			      const struct datatype *rule, const struct job_write *write)
{
	stat_add(STAT_demux_refused, (int64_t)write->refused_values);
	log_rated(&samples->lines, clock_mono_ms(samples->clock), LOG_WARN,
		  "streams: of tenant " SHOWN " %llu samples of datatype " SHOWN
		  " are not stored: %s",
		  SHOWN_OF(tenant), (unsigned long long)write->refused_values, SHOWN_OF(rule->name),
		  write->why.text);
}

static int demux_write(struct demux_sink *sink, struct job *job, struct slice tenant,
		       const struct datatype *rule, const struct demux_point *points, size_t count,
		       int64_t stamp_us, struct errbuf *e)
{
	struct demux_samples *samples = CONTAINER_OF(sink, struct demux_samples, sink);
	struct tag *tags = mem_alloc_array(count, DEMUX_TAGS_MAX * sizeof(*tags));
	struct ingest_points *list = NULL;
	size_t room = 0, values = 0;
	struct job_write write = {.ingest = samples->ingest,
				  .executor = samples->executor,
				  .job = job,
				  .stamp_us = stamp_us};
	for (size_t i = 0; i < count; i++) {
		GROW(list, room, write.count + points[i].count / INGEST_POINTS_MAX + 1);
		demux_add_points(&points[i], tenant, tags + i * DEMUX_TAGS_MAX, list, &write.count);
		values += points[i].count;
	}
	write.points = list;
	int err = job_write_wait(&write, e);
	if (!err) {
		stat_add(STAT_demux_samples, (int64_t)values);
		demux_write_units(samples, job, tenant, points, count);
		for (size_t i = 0; i < count; i++)
			demux_note_keys(samples, tenant, rule->name, &points[i],
					tags + i * DEMUX_TAGS_MAX);
	}
	if (!err && write.refused_values)
		demux_say_refused(samples, tenant, rule, &write);
	mem_free(list);
	mem_free(tags);
	return err;
}

/* ---- Texts and notes ------------------------------------------------------------------------- */

/* Some texts that are written at once. */
struct demux_rows {
	struct demux_samples *samples;
	struct job *job;
	struct slice tenant;
	int64_t stamp_us;
	struct store_write *write;
	size_t put, refused; /* `put`: in the write */
	struct errbuf why;   /* of one that was refused */
};

static int demux_compare_tags(const void *a, const void *b)
{
	return slice_compare(((const struct tag *)a)->key, ((const struct tag *)b)->key);
}

/* In the order of their keys, as series have them. */
static struct tags demux_sort_tags(const struct demux_text *text, struct tag list[DEMUX_TAGS_MAX])
{
	memcpy(list, text->tags, text->tag_count * sizeof(*list));
	qsort(list, text->tag_count, sizeof(*list), demux_compare_tags);
	return (struct tags){list, text->tag_count};
}

/* 0, or an error after which all of them are written again. */
static int demux_put_text(struct demux_rows *rows, const struct demux_text *text)
{
	const struct row_site *site = rows->samples->rows;
	struct tag list[DEMUX_TAGS_MAX];
	const struct tags tags = demux_sort_tags(text, list);
	struct row_note_id id;
	struct buf name;
	buf_init(&name, METRIC_MAX_BYTES + TAGS_TEXT_MAX_BYTES);
	row_name_put(text->metric, tags, &name);
	const struct row row = {rows->tenant, buf_slice(&name), row_name_source(tags)};
	int err = name.failed ? errbuf_set(&rows->why, ERR_LIMIT, "the name of a row is too long")
		  : text->is_note ? row_note_add(site, job_queue(rows->job), &row, text->ms,
						 text->text, ROW_NOTES_OF_CHUNKS, &id, &rows->why)
				  : row_text_put(site, rows->write, &row, text->ms, text->text,
						 rows->stamp_us, &rows->why);
	buf_release(&name);
	rows->put += !err && !text->is_note;
	if (err != ERR_INVALID && err != ERR_LIMIT)
		return err;
	rows->refused++;
	return 0;
}

static void demux_say_refused_texts(struct demux_rows *rows, const struct datatype *rule)
{
	struct demux_samples *samples = rows->samples;
	stat_add(STAT_demux_texts_refused, (int64_t)rows->refused);
	log_rated(&samples->lines, clock_mono_ms(samples->clock), LOG_WARN,
		  "streams: of tenant " SHOWN " %zu texts of datatype " SHOWN " are not stored: %s",
		  SHOWN_OF(rows->tenant), rows->refused, SHOWN_OF(rule->name), rows->why.text);
}

static void demux_note_text_keys(struct demux_rows *rows, struct slice group,
				 const struct demux_text *text)
{
	struct tag list[DEMUX_TAGS_MAX];
	if (!text->is_note)
		board_keys_note_series(rows->samples->keys, rows->tenant, group, text->metric,
				       demux_sort_tags(text, list), SLICE("text"), SLICE(""));
}

static int demux_write_texts(struct demux_sink *sink, struct job *job, struct slice tenant,
			     const struct datatype *rule, const struct demux_text *texts,
			     size_t count, int64_t stamp_us, struct errbuf *e)
{
	struct demux_samples *samples = CONTAINER_OF(sink, struct demux_samples, sink);
	struct demux_rows rows = {
		.samples = samples,
		.job = job,
		.tenant = tenant,
		.stamp_us = stamp_us,
		.write = store_write_new(samples->store, DEMUX_TEXTS_WRITE_MAX_BYTES)};
	int err = 0;
	for (size_t i = 0; i < count && !err; i++, rows.stamp_us++)
		err = demux_put_text(&rows, &texts[i]);
	if (err)
		errbuf_set(e, err, "%s", rows.why.text);
	else if (rows.put && (err = store_write_wait_known(rows.write, job_queue(job))) != 0)
		errbuf_set(e, err, "%s", err_text(err));
	store_write_free(rows.write);
	for (size_t i = 0; i < count && !err; i++)
		demux_note_text_keys(&rows, rule->name, &texts[i]);
	if (!err && rows.refused)
		demux_say_refused_texts(&rows, rule);
	return err;
}

/* ---- Life ------------------------------------------------------------------------------------ */

void demux_samples_init(struct demux_samples *samples, struct ingest *ingest, struct store *store,
			struct clock *clock, struct executor *executor, struct board_keys *keys,
			const struct row_site *rows)
{
	*samples = (struct demux_samples){.sink = {demux_write, rows ? demux_write_texts : NULL},
					  .ingest = ingest,
					  .store = store,
					  .clock = clock,
					  .executor = executor,
					  .keys = keys,
					  .rows = rows,
					  .lines = {.lines_max = DEMUX_LOGS_A_MINUTE}};
}

void demux_samples_release(struct demux_samples *samples)
{
	hash_set_release(&samples->described);
}
