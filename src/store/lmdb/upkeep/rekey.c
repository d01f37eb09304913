/* Re-keying: samples go to another retention class, group by group, when the writer puts the batch
 * that asks for it, which is alone in its transaction.
 *
 * A group of a class is read whole, blocks and heads. Those of its samples that are meant are
 * merged into the group of the same segment in the class that is wanted, which is written again
 * with what heads of it hold: so a block never has a higher sequence than a row of its band that is
 * not in it. The heads of the other class stay as they are in the first step. In the second what is
 * meant is blanked, and the group is written again without it, with all that its heads hold; a
 * record of kind RECORD_CLEAR for each series takes the same out of what a replay makes of the
 * journal's rows.
 *
 * A reader that has looked at the one class before a commit and at the other after it finds the
 * samples in one of them at least, as long as no step takes away what a step before it has not put
 * there before the reader began; the contract leaves that to the caller. */
#include "store/lmdb/upkeep/upkeep.h"

/* The series of one group that are meant. */
struct rekeyed_series {
	uint32_t ordinal_in_group[STORE_GROUP_MAX];
	unsigned first_column[STORE_GROUP_MAX];
	size_t count;
};

struct moving {
	struct engine *engine;
	MDB_txn *txn;
	const struct store_rekeying *rekeying;
	unsigned fields;
	struct rekeyed_series wanted;
	struct strips source, target;
};

bool rekey_wanted(const struct store_write *write)
{
	for (const struct store_stage *s = write->stages; s; s = s->next) {
		if (s->rekeying)
			return true;
	}
	return false;
}

/* ---- What is meant --------------------------------------------------------------------------- */

/* Bit by column of the strip. */
static uint32_t wanted_columns(const struct moving *m, const struct strip *strip)
{
	uint32_t columns = 0;
	for (size_t i = 0; i < m->wanted.count; i++) {
		unsigned first = m->wanted.first_column[i];
		if (m->wanted.ordinal_in_group[i] != strip->ordinal_in_group ||
		    first < strip->first_column ||
		    first >= strip->first_column + strip->samples.fields)
			continue;
		columns |= (uint32_t)(((UINT64_C(1) << m->fields) - 1)
				      << (first - strip->first_column));
	}
	return columns;
}

static int64_t visible_from(enum retention_class retention, int64_t now_ms)
{
	int64_t lifetime_ms = retention_class_ms(retention), from;
	if (!lifetime_ms || __builtin_sub_overflow(now_ms, lifetime_ms, &from))
		return INT64_MIN;
	return from;
}

static bool rekey_any_value(const struct samples *samples, size_t row, uint32_t columns)
{
	for (unsigned f = 0; f < samples->fields; f++) {
		if (columns >> f & 1 && samples->types[f][row] != VALUE_NONE)
			return true;
	}
	return false;
}

static void copy_row(struct samples *to, const struct samples *from, size_t row, uint32_t columns)
{
	size_t at = to->count++;
	to->ts_ms[at] = from->ts_ms[row];
	for (unsigned f = 0; f < from->fields; f++) {
		bool has = columns >> f & 1;
		to->bits[f][at] = has ? from->bits[f][row] : 0;
		to->types[f][at] = has ? from->types[f][row] : VALUE_NONE;
	}
}

/* The samples of a strip (sorted) that are to be in the class; rows without any are left out. */
static void rekey_select_samples(const struct moving *m, const struct strip *strip, int64_t from_ms,
				 uint32_t columns, struct samples *out)
{
	const struct samples *samples = &strip->samples;
	int64_t end_ms = m->rekeying->end_ms;
	samples_init(out, samples->fields);
	samples_reserve(out, samples->count);
	out->sequence = samples->sequence;
	for (size_t i = 0; i < samples->count; i++) {
		if (samples->ts_ms[i] >= from_ms && samples->ts_ms[i] < end_ms &&
		    rekey_any_value(samples, i, columns))
			copy_row(out, samples, i, columns);
	}
}

static bool blank_rows(const struct moving *m, struct strip *strip, uint32_t columns)
{
	struct samples *samples = &strip->samples;
	bool any = false;
	for (size_t i = 0; i < samples->count; i++) {
		if (samples->ts_ms[i] < m->rekeying->start_ms ||
		    samples->ts_ms[i] >= m->rekeying->end_ms)
			continue;
		any |= rekey_any_value(samples, i, columns);
		for (unsigned f = 0; f < samples->fields; f++) {
			if (columns >> f & 1)
				samples->types[f][i] = VALUE_NONE;
		}
	}
	return any;
}

/* ---- One group ------------------------------------------------------------------------------- */

static void add_heads(struct strips *strips, const struct sealing *sealing)
{
	for (size_t i = 0; i < sealing->count; i++)
		strips_add_head(strips, sealing->heads[i], sealing->ordinal_in_group[i]);
}

static int rekey_load(struct moving *m, const struct group_id *id, struct strips *strips,
		      struct sealing *sealing)
{
	strips_reset(strips);
	seal_collect(m->engine, id, true, sealing);
	int err = strips_load(strips, m->txn, m->engine->env.dbi[DB_EXTENTS], id);
	if (!err)
		add_heads(strips, sealing);
	for (size_t i = 0; i < strips->count && !err; i++)
		samples_sort(&strips->list[i].samples);
	return err;
}

static int store(struct moving *m, const struct group_id *id, struct strips *strips,
		 const struct sealing *sealing)
{
	struct engine *engine = m->engine;
	MDB_dbi extents = engine->env.dbi[DB_EXTENTS];
	uint64_t bytes = 0;
	bool changed = false; /* any error undoes the batch */
	int err = group_clear(m->txn, extents, id, &changed);
	if (!err)
		err = group_store(m->txn, extents, id, strips, engine->next_flush++, &bytes);
	if (err)
		return err;
	seal_mark_heads(engine, sealing, true);
	/* It may end later now; where, is looked up when somebody has to know. */
	unsettled_add_known(&engine->unsettled, id, engine_now_us(engine), INT64_MAX);
	return 0;
}

/* Should the transaction be undone, the directory names a segment that is empty. */
static void rekey_name_segment(struct heads *heads, const struct segment_id *segment)
{
	if (heads_has_segment(heads, segment))
		return;
	pthread_rwlock_wrlock(&heads->lock);
	heads_add_segment(heads, segment);
	pthread_rwlock_unlock(&heads->lock);
}

/* Lays the rows over or under what the class has of the strip; of one time the later wins. */
static void rekey_merge(struct strips *target, const struct strip *strip,
			const struct samples *rows)
{
	struct strip *to = strips_get(target, strip->ordinal_in_group, strip->first_column,
				      strip->samples.fields);
	struct samples merged;
	samples_init(&merged, rows->fields);
	if (rows->sequence > to->samples.sequence)
		samples_merge(&to->samples, rows, &merged);
	else
		samples_merge(rows, &to->samples, &merged);
	samples_release(&to->samples);
	to->samples = merged;
}

static int64_t rekey_later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* *any: some have been merged into the target. */
static void merge_wanted(struct moving *m, const struct group_id *from, bool *any)
{
	const struct store_rekeying *r = m->rekeying;
	int64_t from_ms = rekey_later(
		r->start_ms, rekey_later(visible_from(from->segment.sheet.retention, r->now_ms),
					 visible_from(r->target.retention, r->now_ms)));
	for (size_t i = 0; i < m->source.count; i++) {
		const struct strip *strip = &m->source.list[i];
		uint32_t columns = wanted_columns(m, strip);
		struct samples rows;
		if (!columns)
			continue;
		rekey_select_samples(m, strip, from_ms, columns, &rows);
		if (rows.count)
			rekey_merge(&m->target, strip, &rows);
		*any |= rows.count != 0;
		samples_release(&rows);
	}
}

static int clear_wanted(struct moving *m, const struct group_id *from,
			const struct sealing *sealing)
{
	bool any = false;
	for (size_t i = 0; i < m->source.count; i++) {
		uint32_t columns = wanted_columns(m, &m->source.list[i]);
		if (columns)
			any |= blank_rows(m, &m->source.list[i], columns);
	}
	return any ? store(m, from, &m->source, sealing) : 0;
}

/* Its extents are going, a slice at a time: what is read of it is not all, what is written goes
 * too.
 */
static bool is_going(const struct moving *m, const struct segment_id *segment)
{
	return m->engine->is_expiring && expires_now(m->engine, segment);
}

static int move_group(struct moving *m, const struct group_id *from)
{
	struct sealing of_source, of_target;
	struct group_id to = *from;
	bool any = false;
	to.segment.sheet.retention = m->rekeying->target.retention;
	int err = rekey_load(m, from, &m->source, &of_source);
	if (!err)
		err = rekey_load(m, &to, &m->target, &of_target);
	if (err)
		return err;
	if (!is_going(m, &to.segment))
		merge_wanted(m, from, &any);
	if (any) {
		rekey_name_segment(&m->engine->heads, &to.segment);
		err = store(m, &to, &m->target, &of_target);
	}
	if (!err && m->rekeying->step == STORE_REKEY_CLEAR)
		err = clear_wanted(m, from, &of_source);
	return err;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* The handles from `at` on that lie in one group; how many that are. */
static size_t rekey_next_group(struct moving *m, size_t at, const struct segment_id *segment,
			       struct group_id *id)
{
	const struct store_rekeying *r = m->rekeying;
	size_t taken = 0;
	m->wanted.count = 0;
	for (; at + taken < r->n; taken++) {
		uint64_t handle = r->handles[at + taken];
		uint32_t ordinal_in_group;
		if (registry_columns(&m->engine->registry, handle_shape(handle)) <=
		    handle_column(handle))
			continue;
		struct group_id other = engine_group_of(m->engine, segment, handle_shape(handle),
							handle_ordinal(handle), &ordinal_in_group);
		if (m->wanted.count && !group_same(&other, id))
			break;
		*id = other;
		m->wanted.ordinal_in_group[m->wanted.count] = ordinal_in_group;
		m->wanted.first_column[m->wanted.count++] = handle_column(handle) * m->fields;
	}
	return taken;
}

static int move_segment(struct moving *m, const struct segment_id *segment)
{
	int err = 0;
	for (size_t at = 0; at < m->rekeying->n && !err;) {
		struct group_id id;
		at += rekey_next_group(m, at, segment, &id);
		if (m->wanted.count)
			err = move_group(m, &id);
	}
	return err;
}

/* Of other classes. The directory grows while samples are moved. */
static size_t list_segments(const struct moving *m, struct segment_id *list)
{
	const struct heads *heads = &m->engine->heads;
	const struct store_rekeying *r = m->rekeying;
	int64_t first = segment_of(r->target.table, r->target.period_ms, r->start_ms);
	int64_t last = segment_of(r->target.table, r->target.period_ms, r->end_ms - 1);
	size_t count = 0;
	for (size_t i = 0; i < heads->directory_count; i++) {
		const struct segment_id *id = &heads->directory[i];
		if (id->sheet.table == r->target.table &&
		    id->sheet.period_ms == r->target.period_ms &&
		    id->sheet.retention != r->target.retention && id->segment >= first &&
		    id->segment <= last)
			list[count++] = *id;
	}
	return count;
}

int rekey(struct engine *engine, MDB_txn *txn, const struct store_rekeying *rekeying)
{
	if (rekeying->start_ms == rekeying->end_ms)
		return 0;
	struct moving *m = mem_zalloc(sizeof(*m));
	*m = (struct moving){.engine = engine, .txn = txn, .rekeying = rekeying};
	m->fields = (unsigned)schema[rekeying->target.table].field_count;
	struct segment_id *list = mem_alloc_array(engine->heads.directory_count + 1, sizeof(*list));
	size_t count = list_segments(m, list);
	int err = 0;
	for (size_t i = 0; i < count && !err; i++) {
		if (!is_going(m, &list[i]))
			err = move_segment(m, &list[i]);
	}
	engine->rekeyed_us = engine_now_us(engine);
	mem_free(list);
	strips_release(&m->source);
	strips_release(&m->target);
	mem_free(m);
	return err;
}
