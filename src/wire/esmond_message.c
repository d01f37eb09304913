#include "wire/esmond_message.h"

#include <math.h>

#include "base/hash.h"
#include "base/mem.h"
#include "wire/json.h"
#include "wire/number.h"

/* 9999-12-31: what comes after is no time but a mistake of unit. */
#define SECONDS_MAX 253402300799.0

/* ---- Reading ------------------------------------------------------------------------------- */

struct esmond_reading {
	struct slice json;
	struct arena *arena;
	struct poll_builder *builder;
	struct errbuf *e;
	struct slice oid;
	int64_t ts_ms;
};

/* The text of a value that has no type of ours: its JSON as it came. */
static struct slice json_of(const struct esmond_reading *r, const struct json *node)
{
	struct json_reader reader;
	struct slice rest = {r->json.data + node->offset, r->json.len - node->offset};
	json_reader_init(&reader, rest, r->arena);
	if (!json_skip(&reader, json_next(&reader)))
		return (struct slice){"null", 4}; /* only if the arena is full */
	return json_text_from(&reader, 0);
}

static bool is_integer(struct slice literal)
{
	for (size_t i = 0; i < literal.len; i++)
		if (!number_is_digit(literal.data[i]) && literal.data[i] != '-')
			return false;
	return true;
}

/* An integer beyond 64 bits would lose digits as a double, so it is left to be kept as it came. */
static bool esmond_number_of(const struct json *node, struct value *value)
{
	const char *p = node->text.data, *end = p + node->text.len;
	uint64_t u;
	int64_t i;
	*value = node->number;
	if (!is_integer(node->text))
		return isfinite(value_as_f64(*value));
	if (number_parse_u64(p, end, &u) == 0)
		*value = value_u64(u);
	else if (number_parse_i64(p, end, &i) == 0)
		*value = value_i64(i);
	else
		return false;
	return true;
}

static int set_value(const struct esmond_reading *r, size_t row, size_t column,
		     const struct json *node)
{
	struct value value;
	if (node->type == JSON_T_NULL)
		return 0;
	if (node->type == JSON_T_NUMBER && esmond_number_of(node, &value)) {
		poll_set(r->builder, row, column, value);
		return 0;
	}
	if (node->type == JSON_T_STRING)
		return poll_set_text(r->builder, row, column, node->text, false, r->e);
	return poll_set_text(r->builder, row, column, json_of(r, node), true, r->e);
}

/* Where an OID's name stands in a path of esmond's correlators that has `count` parts with it; -1:
 * it has no place there. */
static int oid_place(size_t count)
{
	return count == 1 || count == 2 ? 0 : count == 3 ? 1 : -1;
}

static int bad_pair(const struct esmond_reading *r, size_t number)
{
	return errbuf_set(r->e, ERR_INVALID,
			  "item %zu of \"data\" is not [[path of at most %d texts], value]", number,
			  POLL_PARTS_MAX);
}

/* The path without the OID's name. */
static int esmond_read_path(const struct esmond_reading *r, const struct json *path, size_t number,
			    struct slice *parts, size_t *part_count)
{
	int place = oid_place(path->count), at = 0;
	size_t count = 0;
	if (path->type != JSON_T_ARRAY || path->count > POLL_PARTS_MAX)
		return bad_pair(r, number);
	for (const struct json *part = path->first; part; part = part->next, at++) {
		if (part->type != JSON_T_STRING && part->type != JSON_T_NUMBER)
			return bad_pair(r, number);
		if (at != place || !slice_equal(part->text, r->oid))
			parts[count++] = part->text;
	}
	*part_count = count;
	return 0;
}

static int esmond_read_pair(const struct esmond_reading *r, const struct json *pair, size_t number)
{
	struct slice parts[POLL_PARTS_MAX];
	size_t part_count = 0;
	if (pair->type != JSON_T_ARRAY || pair->count != 2)
		return bad_pair(r, number);
	int err = esmond_read_path(r, pair->first, number, parts, &part_count);
	if (!err)
		err = poll_add_row(r->builder, parts, part_count, r->ts_ms, r->e);
	if (err)
		return err;
	return set_value(r, r->builder->row_count - 1, 0, pair->first->next);
}

static int read_correlated(const struct esmond_reading *r, const struct json *data)
{
	size_t number = 0;
	int err = poll_add_column(r->builder, r->oid, r->e);
	for (const struct json *pair = data->first; pair && !err; pair = pair->next)
		err = esmond_read_pair(r, pair, ++number);
	return err;
}

/* Rows by index, while an uncorrelated message is read: open addressing, a row + 1 in each place
 * that is taken. */
struct row_index {
	uint32_t *places;
	struct slice *indexes; /* by row */
	size_t mask;
};

static int find_row(const struct esmond_reading *r, const struct row_index *index,
		    struct slice name, size_t *row)
{
	size_t at = hash64(name.data, name.len, 0) & index->mask;
	for (; index->places[at]; at = (at + 1) & index->mask) {
		*row = index->places[at] - 1;
		if (slice_equal(index->indexes[*row], name))
			return 0;
	}
	*row = r->builder->row_count;
	int err = poll_add_row(r->builder, &name, 1, r->ts_ms, r->e);
	if (err)
		return err;
	index->indexes[*row] = name;
	index->places[at] = (uint32_t)*row + 1;
	return 0;
}

static int make_index(const struct esmond_reading *r, const struct json *data,
		      struct row_index *index)
{
	size_t names = 0, places = 16;
	for (const struct json *list = data->first; list; list = list->next)
		names += list->count;
	while (places < 2 * names)
		places *= 2;
	index->mask = places - 1;
	index->places = arena_zalloc(r->arena, places * sizeof(*index->places));
	index->indexes = arena_alloc(r->arena, (names + 1) * sizeof(*index->indexes));
	if (!index->places || !index->indexes)
		return errbuf_set(r->e, ERR_LIMIT, "a message of %zu values is too large", names);
	return 0;
}

/* `ifAlias.17` of `ifAlias`: 17. */
static bool esmond_index_of(struct slice name, struct slice oid, struct slice *index)
{
	if (name.len < oid.len + 2 || memcmp(name.data, oid.data, oid.len) != 0 ||
	    name.data[oid.len] != '.')
		return false;
	*index = (struct slice){name.data + oid.len + 1, name.len - oid.len - 1};
	return true;
}

static int esmond_read_list(const struct esmond_reading *r, const struct row_index *rows,
			    size_t column, const struct json *list)
{
	for (const struct json *pair = list->first; pair; pair = pair->next) {
		struct slice index;
		size_t row = 0;
		if (pair->type != JSON_T_ARRAY || pair->count != 2 ||
		    pair->first->type != JSON_T_STRING ||
		    !esmond_index_of(pair->first->text, list->key, &index))
			return errbuf_set(r->e, ERR_INVALID,
					  "an item of \"" SHOWN "\" is not [\"" SHOWN
					  ".index\", value]",
					  SHOWN_OF(list->key), SHOWN_OF(list->key));
		int err = find_row(r, rows, index, &row);
		if (!err)
			err = set_value(r, row, column, pair->first->next);
		if (err)
			return err;
	}
	return 0;
}

static int read_uncorrelated(const struct esmond_reading *r, const struct json *data)
{
	struct row_index rows;
	int err = make_index(r, data, &rows);
	for (const struct json *list = data->first; list && !err; list = list->next) {
		if (list->type != JSON_T_ARRAY)
			return errbuf_set(r->e, ERR_INVALID, "\"" SHOWN "\" of \"data\" is no list",
					  SHOWN_OF(list->key));
		err = poll_add_column(r->builder, list->key, r->e);
	}
	size_t column = 0;
	for (const struct json *list = data->first; list && !err; list = list->next)
		err = esmond_read_list(r, &rows, column++, list);
	return err;
}

static int esmond_read_time(const struct json *root, int64_t *ts_ms, struct errbuf *e)
{
	double seconds = 0;
	int err = json_get_f64(root, "timestamp", &seconds, e);
	if (err)
		return err;
	if (!(seconds >= 0 && seconds <= SECONDS_MAX))
		return errbuf_set(e, ERR_INVALID, "\"timestamp\" is not seconds since 1970");
	*ts_ms = (int64_t)floor(seconds) * 1000;
	return 0;
}

static int esmond_read_root(struct esmond_reading *r, const struct json *root)
{
	struct slice device, oidset;
	const struct json *data = json_member(root, "data");
	if (root->type != JSON_T_OBJECT)
		return errbuf_set(r->e, ERR_INVALID, "it is no object");
	int err = json_get_text(root, "device_name", &device, r->e);
	if (!err)
		err = json_get_text(root, "oidset_name", &oidset, r->e);
	if (!err)
		err = esmond_read_time(root, &r->ts_ms, r->e);
	if (!err)
		err = poll_begin(r->builder, device, oidset, r->ts_ms, r->e);
	if (err)
		return err;
	if (data && data->type == JSON_T_OBJECT)
		return read_uncorrelated(r, data);
	if (!data || data->type != JSON_T_ARRAY)
		return errbuf_set(r->e, ERR_INVALID, "\"data\" is %s",
				  data ? "neither list nor object" : "missing");
	err = json_get_text(root, "oid_name", &r->oid, r->e);
	return err ? err : read_correlated(r, data);
}

int esmond_message_read(struct slice json, struct arena *arena, struct poll_builder *builder,
			struct errbuf *e)
{
	struct json *root = NULL;
	struct esmond_reading r = {.json = json, .arena = arena, .builder = builder, .e = e};
	int err = json_parse(json, arena, &root, e);
	if (!err)
		err = esmond_read_root(&r, root);
	return err == ERR_NOT_FOUND ? ERR_INVALID : err;
}

/* ---- Writing ------------------------------------------------------------------------------- */

struct writing {
	const struct poll *poll;
	const struct poll_names *names;
	const struct poll_values *values;
	size_t text; /* the next of values->texts that was not written */
	struct json_writer json;
};

static void esmond_write_head(struct writing *w, struct slice oid)
{
	struct json_writer *json = &w->json;
	int64_t ts_ms = w->poll->ts_ms;
	char seconds[32];
	size_t len = number_print_f64(seconds, (double)ts_ms / 1000);
	json_write_object_begin(json);
	json_put_string(json, "oidset_name", w->poll->oidset);
	json_put_string(json, "device_name", w->poll->device);
	json_put_string(json, "oid_name", oid);
	json_write_key(json, "timestamp");
	json_write_raw(json, (struct slice){seconds, len});
	json_write_key(json, "data");
}

static void write_tail(struct writing *w)
{
	json_write_key(&w->json, "metadata");
	json_write_object_begin(&w->json);
	json_write_object_end(&w->json);
	json_write_object_end(&w->json);
}

/* Those of one column stand together, by row: so each is found by going on from the last. */
static const struct poll_text *esmond_find_text(struct writing *w, size_t row, size_t column)
{
	const struct poll_values *v = w->values;
	while (w->text < v->text_count &&
	       (v->texts[w->text].column < column ||
		(v->texts[w->text].column == column && v->texts[w->text].row < row)))
		w->text++;
	if (w->text == v->text_count || v->texts[w->text].column != column ||
	    v->texts[w->text].row != row)
		return NULL;
	return &v->texts[w->text];
}

static void write_path(struct writing *w, const struct poll_row *row, struct slice oid)
{
	int place = oid_place(row->part_count + 1);
	json_write_array_begin(&w->json);
	for (size_t i = 0; i <= row->part_count; i++) {
		if ((int)i == place)
			json_write_string(&w->json, oid);
		if (i < row->part_count)
			json_write_string(&w->json, row->parts[i]);
	}
	json_write_array_end(&w->json);
}

/* `ifAlias.17` */
static void write_name(struct writing *w, const struct poll_row *row, struct slice oid)
{
	char name[POLL_COLUMN_MAX_BYTES + POLL_PARTS_MAX * (1 + POLL_PART_MAX_BYTES)];
	struct slice text = {name, oid.len};
	memcpy(name, oid.data, oid.len);
	for (size_t i = 0; i < row->part_count; i++) {
		name[text.len++] = '.';
		memcpy(name + text.len, row->parts[i].data, row->parts[i].len);
		text.len += row->parts[i].len;
	}
	json_write_string(&w->json, text);
}

static void write_column(struct writing *w, size_t column, bool correlated)
{
	struct slice oid = w->names->columns[column];
	json_write_array_begin(&w->json);
	for (size_t row = 0; row < w->poll->row_count; row++) {
		struct value value = w->values->values[row * w->poll->column_count + column];
		const struct poll_text *text = esmond_find_text(w, row, column);
		if (!text && value.type == VALUE_NONE)
			continue;
		json_write_array_begin(&w->json);
		if (correlated)
			write_path(w, &w->names->rows[row], oid);
		else
			write_name(w, &w->names->rows[row], oid);
		if (!text)
			json_write_number(&w->json, value);
		else if (text->json)
			json_write_raw(&w->json, text->text);
		else
			json_write_string(&w->json, text->text);
		json_write_array_end(&w->json);
	}
	json_write_array_end(&w->json);
}

static int esmond_finish(struct buf *out, size_t before)
{
	if (!out->failed)
		return 0;
	out->failed = false;
	out->len = before;
	return ERR_LIMIT;
}

int esmond_message_write(const struct poll *poll, const struct poll_names *names,
			 const struct poll_values *values, size_t column, struct buf *out)
{
	struct writing w = {.poll = poll, .names = names, .values = values};
	size_t before = out->len;
	ASSERT(column < poll->column_count);
	json_writer_init(&w.json, out);
	esmond_write_head(&w, names->columns[column]);
	write_column(&w, column, true);
	write_tail(&w);
	return esmond_finish(out, before);
}

int esmond_message_write_uncorrelated(const struct poll *poll, const struct poll_names *names,
				      const struct poll_values *values, struct buf *out)
{
	struct writing w = {.poll = poll, .names = names, .values = values};
	size_t before = out->len;
	json_writer_init(&w.json, out);
	esmond_write_head(&w, SLICE(""));
	json_write_object_begin(&w.json);
	for (size_t column = 0; column < poll->column_count; column++) {
		json_write_key_slice(&w.json, names->columns[column]);
		write_column(&w, column, false);
	}
	json_write_object_end(&w.json);
	write_tail(&w);
	return esmond_finish(out, before);
}
