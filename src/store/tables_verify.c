#include "store/tables_verify.h"

#include <stdarg.h>

#include "base/cursor.h"
#include "base/visible.h"
#include "store/wait.h"

enum {
	VERIFY_SENTENCE_MAX_BYTES = 4096,
	VERIFY_PART_MAX_BYTES = 400,
	VERIFY_WHY_BYTES = 600,
	VERIFY_GOES_ON_CELLS = 64
};

static void tables_verify_put_part(struct buf *out, const struct part_def *def, struct slice part)
{
	buf_printf(out, " %s ", def->name);
	size_t len = smaller_of(part.len, (size_t)VERIFY_PART_MAX_BYTES);
	if (def->type == PART_TEXT)
		visible_append(out, (struct slice){part.data, len});
	else if (def->type == PART_U64 && part.len == 8)
		buf_printf(out, "%llu", (unsigned long long)be64_get((const uint8_t *)part.data));
	else
		for (size_t i = 0; i < len; i++)
			buf_printf(out, "%02x", (uint8_t)part.data[i]);
}

static void tables_verify_put_parts(struct buf *out, const struct part_def *defs, size_t count,
				    const struct store_parts *parts)
{
	for (size_t i = 0; i < count && parts->part[i].data; i++)
		tables_verify_put_part(out, &defs[i], parts->part[i]);
}

void tables_verify_count(struct tables_verify *v)
{
	if (v->goes_on && v->checked % VERIFY_GOES_ON_CELLS == 0)
		v->goes_on(v->owner);
	v->checked++;
}

void tables_verify_goes_on(struct tables_verify *v)
{
	if (v->goes_on)
		v->goes_on(v->owner);
}

void tables_verify_tell(struct tables_verify *v, enum table table, const struct store_parts *key,
			const struct store_parts *column, const char *fmt, ...)
{
	const struct table_def *def = &schema[table];
	char why[VERIFY_WHY_BYTES];
	struct buf out;
	va_list args;
	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	buf_init(&out, VERIFY_SENTENCE_MAX_BYTES);
	buf_printf(&out, "%s:", def->name);
	tables_verify_put_parts(&out, def->key, def->key_count, key);
	if (column) {
		buf_append_char(&out, ',');
		tables_verify_put_parts(&out, def->column, def->column_count, column);
	}
	buf_printf(&out, ": %s", why);
	buf_append_char(&out, 0);
	if (out.failed) /* the last byte is the zero all the same */
		out.data[out.len - 1] = 0;
	v->problems++;
	v->tell(v->owner, out.data);
	buf_release(&out);
}

/* Damage is a problem, and no error. */
static int tables_verify_end_read(struct tables_verify *v, enum table table,
				  const struct store_parts *key, int err, const struct errbuf *e)
{
	static const struct store_parts none;
	if (err != ERR_DAMAGED && err != ERR_VERSION)
		return err;
	tables_verify_tell(v, table, key ? key : &none, NULL, "the row cannot be read whole: %s",
			   e->text);
	return 0;
}

int tables_verify_row(struct tables_verify *v, enum table table, const struct store_parts *key,
		      int (*each)(const struct store_cell *cell, void *owner), void *owner)
{
	struct errbuf e = {""};
	int err = store_row_wait(v->store, v->queue, clock_wall_ms(v->clock), table, key, each,
				 owner, &e);
	return tables_verify_end_read(v, table, key, err, &e);
}

int tables_verify_rows(struct tables_verify *v, enum table table,
		       int (*each)(const struct store_row *row, void *owner), void *owner)
{
	struct errbuf e = {""};
	int err = store_rows_wait(v->store, v->queue, clock_wall_ms(v->clock), table, each, owner,
				  &e);
	return tables_verify_end_read(v, table, NULL, err, &e);
}
