#include "snmp/correlate.h"

#include "base/hash.h"

/* Where a message is cut: numbers, texts and names stay well below POLL_BYTES_MAX together. */
enum { MESSAGE_CELLS = POLL_CELLS_MAX / 4, MESSAGE_BYTES = POLL_BYTES_MAX / 4, PARTING_ROUNDS = 3 };

enum { ROWS_AHEAD = 4 }; /* whose memory is fetched while a row is named */

struct correlate_emission {
	struct correlate_set *set;
	struct correlate_output *output;
	struct arena *scratch;
	struct slice device;
	uint32_t part;
	struct errbuf *e;
	struct correlate_path path; /* of the present row */
	size_t builder_row;
};

/* ---- Messages -------------------------------------------------------------------------------- */

static int begin_message(struct correlate_emission *em)
{
	const struct correlate_plan *plan = em->set->plan;
	struct poll_builder *builder = em->output->builder;
	if (em->output->built == plan)
		return poll_begin_again(builder, em->device, em->set->begun_ms, em->e);
	em->output->built = NULL;
	int err = poll_begin(builder, em->device, plan->oidset->name, em->set->begun_ms, em->e);
	for (size_t i = 0; !err && i < plan->value_count; i++)
		err = poll_add_column(builder, plan->columns[i].def->name, em->e);
	em->output->built = err ? NULL : plan;
	return err;
}

static int end_message(struct correlate_emission *em, bool last)
{
	struct buf *message = em->output->message;
	buf_clear(message);
	int err = poll_encode(em->output->builder, em->part, last, message, em->e);
	em->part++;
	return err ? err : em->output->emit(em->output->owner, buf_slice(message));
}

static int next_message(struct correlate_emission *em)
{
	int err = end_message(em, false);
	return err ? err : begin_message(em);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Whether the next row shall begin another message, far from what a message may hold. */
static bool is_crowded(const struct poll_builder *builder)
{
	return builder->row_count * builder->column_count > MESSAGE_CELLS ||
	       builder->texts.len > MESSAGE_BYTES || builder->rows.len > MESSAGE_BYTES;
}

static int correlate_add_row(struct correlate_emission *em, int64_t ts_ms)
{
	struct poll_builder *builder = em->output->builder;
	int err = is_crowded(builder) ? next_message(em) : 0;
	em->builder_row = builder->row_count;
	err = err ? err : poll_add_row(builder, em->path.parts, em->path.count, ts_ms, em->e);
	if (err != ERR_LIMIT || builder->row_count == 0)
		return err;
	err = next_message(em);
	em->builder_row = 0;
	return err ? err : poll_add_row(builder, em->path.parts, em->path.count, ts_ms, em->e);
}

static int set_text(struct correlate_emission *em, size_t column, const struct correlate_cell *cell)
{
	struct poll_builder *builder = em->output->builder;
	struct slice text = correlate_cell_text(cell);
	int err = poll_set_text(builder, em->builder_row, column, text, false, em->e);
	if (err != ERR_LIMIT || builder->row_count == 1)
		return err;
	/* The row begins once more in the next message, with what is left of it. */
	err = next_message(em);
	err = err ? err : correlate_add_row(em, correlate_cell_ms(em->set, cell));
	return err ? err : poll_set_text(builder, em->builder_row, column, text, false, em->e);
}

static int set_cell(struct correlate_emission *em, size_t column, const struct correlate_cell *cell)
{
	em->output->values++;
	if (cell->type == CELL_TEXT)
		return set_text(em, column, cell);
	poll_set(em->output->builder, em->builder_row, column,
		 (struct value){cell->bits, (enum value_type)cell->type});
	return 0;
}

/* The cells of a row of the poll, and the earliest time that one of them has. */
struct gathered {
	const struct correlate_cell *cells[CORRELATE_COLUMNS_MAX]; /* NULL: none */
	int64_t first_ms;                                          /* INT64_MAX: all are */
};

static void gather_cell(const struct correlate_set *set, struct gathered *gathered, size_t column,
			const struct correlate_cell *cell)
{
	gathered->cells[column] = cell;
	if (cell && correlate_cell_ms(set, cell) < gathered->first_ms)
		gathered->first_ms = correlate_cell_ms(set, cell);
}

/* What of a row of the walk has a path. */
static void correlate_gather(const struct correlate_set *set, size_t row, struct gathered *gathered)
{
	const struct correlate_plan *plan = set->plan;
	const struct correlate_cell *cells = correlate_cell(set, row, 0);
	gathered->first_ms = INT64_MAX;
	for (size_t i = 0; i < plan->value_count; i++) {
		bool wanted = cells[i].type != CELL_NONE && !plan->columns[i].scalar;
		gather_cell(set, gathered, i, wanted ? &cells[i] : NULL);
	}
}

static bool has_values(const struct correlate_set *set, size_t row)
{
	const struct correlate_cell *cells = correlate_cell(set, row, 0);
	for (size_t i = 0; i < set->plan->value_count; i++)
		if (cells[i].type != CELL_NONE && !set->plan->columns[i].scalar)
			return true;
	return false;
}

/* The values of that time; *next_ms: the next one that others have, INT64_MAX if all are done. */
static int emit_time(struct correlate_emission *em, const struct gathered *gathered, int64_t at_ms,
		     int64_t *next_ms)
{
	const struct correlate_plan *plan = em->set->plan;
	bool whole = plan->oidset->kind != OIDSET_COUNTERS; /* its rows have versions */
	int err = correlate_add_row(em, at_ms);
	em->output->rows++;
	*next_ms = INT64_MAX;
	for (size_t i = 0; !err && i < plan->value_count; i++) {
		const struct correlate_cell *cell = gathered->cells[i];
		if (!cell)
			continue;
		int64_t ts_ms = correlate_cell_ms(em->set, cell);
		if (ts_ms == at_ms || whole)
			err = set_cell(em, i, cell);
		else if (ts_ms > at_ms && ts_ms < *next_ms)
			*next_ms = ts_ms;
	}
	return err;
}

/* The values of one row, once for each time that they have. Versioned rows stay whole. */
static int emit_cells(struct correlate_emission *em, const struct gathered *gathered)
{
	int err = 0;
	for (int64_t at_ms = gathered->first_ms; !err && at_ms != INT64_MAX;)
		err = emit_time(em, gathered, at_ms, &at_ms);
	return err;
}

/* Nearly all rows: numbers that came in one reply. False: it is none of these, and nothing was
 * done. */
static bool emit_plain(struct correlate_emission *em, size_t row, int *err)
{
	const struct correlate_set *set = em->set;
	const struct correlate_plan *plan = set->plan;
	const struct correlate_cell *cells = correlate_cell(set, row, 0), *first = NULL;
	struct value values[CORRELATE_COLUMNS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < plan->value_count; i++) {
		const struct correlate_cell *cell = &cells[i];
		values[i] = (struct value){0};
		if (cell->type == CELL_NONE || plan->columns[i].scalar)
			continue;
		first = first ? first : cell;
		if (cell->type == CELL_TEXT || cell->reply != first->reply)
			return false;
		values[i] = (struct value){cell->bits, (enum value_type)cell->type};
		count++;
	}
	if (!first)
		return false;
	*err = correlate_add_row(em, correlate_cell_ms(set, first));
	if (!*err)
		poll_set_row(em->output->builder, em->builder_row, values);
	em->output->rows++;
	em->output->values += count;
	return true;
}

static int emit_scalars(struct correlate_emission *em)
{
	struct gathered gathered = {.first_ms = INT64_MAX};
	const struct correlate_plan *plan = em->set->plan;
	for (size_t i = 0; i < plan->value_count; i++)
		gather_cell(em->set, &gathered, i,
			    plan->columns[i].scalar ? correlate_set_scalar(em->set, i) : NULL);
	em->path.count = 0;
	return emit_cells(em, &gathered);
}

/* ---- Paths ----------------------------------------------------------------------------------- */

struct correlate_named_row {
	uint32_t row;
	uint32_t next; /* of the same hash, plus 1 */
	bool shared;
	struct correlate_path path;
};

static bool same_path(const struct correlate_path *a, const struct correlate_path *b)
{
	bool same = a->count == b->count;
	for (size_t i = 0; same && i < a->count; i++)
		same = slice_equal(a->parts[i], b->parts[i]);
	return same;
}

static uint64_t correlate_path_hash(const struct correlate_path *path)
{
	uint64_t hash = path->count;
	for (size_t i = 0; i < path->count; i++)
		hash = hash64(path->parts[i].data, path->parts[i].len, hash);
	return hash;
}

/* Marks those that have their path in common with another; *found: how many. */
static int find_shared(struct arena *scratch, struct correlate_named_row *list, size_t count,
		       size_t *found)
{
	size_t buckets = 64;
	while (buckets < count)
		buckets *= 2;
	uint32_t *first = arena_zalloc(scratch, buckets * sizeof(*first));
	*found = 0;
	if (!first)
		return ERR_LIMIT;
	for (size_t i = 0; i < count; i++)
		list[i].shared = false;
	for (size_t i = 0; i < count; i++) {
		uint32_t *bucket = &first[correlate_path_hash(&list[i].path) & (buckets - 1)];
		uint32_t at = *bucket;
		while (at && !same_path(&list[at - 1].path, &list[i].path))
			at = list[at - 1].next;
		if (at) {
			*found += 1 + !list[at - 1].shared;
			list[at - 1].shared = list[i].shared = true;
			continue;
		}
		list[i].next = *bucket;
		*bucket = (uint32_t)i + 1;
	}
	return 0;
}

/* Drops those without a path; gives back how many are left. */
static size_t drop_nameless(struct correlate_named_row *list, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (list[i].path.count)
			list[kept++] = list[i];
	return kept;
}

static int correlate_name_by_index(struct correlate_set *set, struct correlate_named_row *row)
{
	struct correlate_path *path = &row->path;
	correlate_note(&set->notes, TROUBLE_SHARED,
		       "several rows are called " SHOWN ": their indices tell them apart",
		       SHOWN_OF(path->parts[path->count - 1]));
	int err = correlate_path_by_index(set, row->row, path);
	if (err != ERR_NOT_FOUND)
		return err;
	path->count = 0; /* its name became too long */
	return 0;
}

/* A name with its index may be what another is called: then these two get theirs once more. */
static int part_shared(struct correlate_emission *em, struct correlate_named_row *list,
		       size_t *count)
{
	struct correlate_set *set = em->set;
	size_t found;
	int err = find_shared(em->scratch, list, *count, &found);
	for (int round = 0; !err && found && round < PARTING_ROUNDS; round++) {
		for (size_t i = 0; !err && i < *count; i++)
			if (list[i].shared)
				err = correlate_name_by_index(set, &list[i]);
		*count = drop_nameless(list, *count);
		err = err ? err : find_shared(em->scratch, list, *count, &found);
	}
	for (size_t i = 0; !err && found && i < *count; i++)
		if (list[i].shared)
			list[i].path.count = 0;
	*count = drop_nameless(list, *count);
	return err;
}

/* The cells of a row have not been touched since their reply came. */
static inline __attribute__((always_inline)) void fetch_row(const struct correlate_set *set,
							    size_t row)
{
	const char *cells = (const char *)correlate_cell(set, row, 0);
	for (size_t at = 0; at < set->plan->value_count * sizeof(*set->cells); at += 64)
		__builtin_prefetch(cells + at);
}

/* Rows that have values, with their paths, in the order of their indices. */
static int name_rows(struct correlate_emission *em, const struct correlate_naming *naming,
		     struct correlate_named_row **rows, size_t *count)
{
	struct correlate_set *set = em->set;
	const uint32_t *order = correlate_set_order(set, em->scratch);
	struct correlate_named_row *list = arena_alloc(em->scratch, set->row_count * sizeof(*list));
	*count = 0;
	if (!order || !list)
		return ERR_LIMIT;
	for (size_t i = 0; i < set->row_count; i++) {
		struct correlate_named_row *named = &list[*count];
		if (i + ROWS_AHEAD < set->row_count)
			fetch_row(set, order[i + ROWS_AHEAD]);
		if (!has_values(set, order[i]))
			continue;
		*named = (struct correlate_named_row){.row = order[i]};
		int err = correlate_path(set, naming, order[i], &named->path);
		if (err && err != ERR_NOT_FOUND)
			return err;
		*count += err == 0;
	}
	*rows = list;
	return set->may_share ? part_shared(em, list, count) : 0;
}

static int emit_rows(struct correlate_emission *em, const struct correlate_named_row *rows,
		     size_t count)
{
	struct gathered gathered;
	int err = 0;
	for (size_t i = 0; !err && i < count; i++) {
		em->path = rows[i].path;
		if (emit_plain(em, rows[i].row, &err))
			continue;
		correlate_gather(em->set, rows[i].row, &gathered);
		err = emit_cells(em, &gathered);
	}
	return err;
}

int correlate(struct correlate_set *set, struct slice device, const struct correlate_naming *naming,
	      struct correlate_output *output, struct errbuf *e)
{
	struct correlate_emission em = {.set = set, .output = output, .device = device, .e = e};
	em.scratch = output->scratch ? output->scratch : &set->arena;
	struct correlate_named_row *rows;
	size_t count;
	output->rows = output->values = 0;
	int err = name_rows(&em, naming, &rows, &count);
	if (err)
		return errbuf_set(e, err, "a poll of " SHOWN " takes more than %d bytes",
				  SHOWN_OF(set->plan->oidset->name), CORRELATE_ARENA_MAX_BYTES);
	err = begin_message(&em);
	err = err ? err : emit_scalars(&em);
	err = err ? err : emit_rows(&em, rows, count);
	return err ? err : end_message(&em, true);
}
