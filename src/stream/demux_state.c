#include "stream/demux_state.h"

#include "base/grow.h"
#include "base/put.h"
#include "store/wait.h"

enum {
	DEMUX_STATE_VERSION = 3,
	DEMUX_NAMED = 1,
	DEMUX_HAS_LAST = 2,
};

static void demux_read_remove_end(struct demux_read *read, size_t at)
{
	mem_free_slice(read->ends[at].header);
	memmove(&read->ends[at], &read->ends[at + 1],
		(--read->end_count - at) * sizeof(*read->ends));
}

static void demux_read_release(struct demux_read *read)
{
	while (read->end_count)
		demux_read_remove_end(read, 0);
	offsets_release(&read->done);
}

void demux_state_release(struct demux_state *state)
{
	for (size_t i = 0; i < state->read_count; i++)
		demux_read_release(&state->reads[i]);
	mem_free(state->reads);
	mem_free(state->late);
	hash_set_release(&state->series);
	*state = (struct demux_state){.rule = 0};
}

static void demux_state_remove_read(struct demux_state *state, size_t at)
{
	demux_read_release(&state->reads[at]);
	memmove(&state->reads[at], &state->reads[at + 1],
		(--state->read_count - at) * sizeof(*state->reads));
}

struct demux_read *demux_state_read(struct demux_state *state, uint64_t incarnation)
{
	size_t at = 0;
	while (at < state->read_count && state->reads[at].incarnation < incarnation)
		at++;
	if (at < state->read_count && state->reads[at].incarnation == incarnation)
		return &state->reads[at];
	GROW(state->reads, state->read_room, state->read_count + 1);
	memmove(&state->reads[at + 1], &state->reads[at],
		(state->read_count++ - at) * sizeof(*state->reads));
	state->reads[at] = (struct demux_read){.incarnation = incarnation};
	return &state->reads[at];
}

static bool demux_state_is_among(const uint64_t *incarnations, size_t count, uint64_t one)
{
	for (size_t i = 0; i < count; i++)
		if (incarnations[i] == one)
			return true;
	return false;
}

size_t demux_state_keep_reads(struct demux_state *state, const uint64_t *incarnations, size_t count)
{
	size_t before = state->read_count;
	for (size_t i = state->read_count; i-- > 0;)
		if (!demux_state_is_among(incarnations, count, state->reads[i].incarnation))
			demux_state_remove_read(state, i);
	return before - state->read_count;
}

const struct demux_end *demux_read_end_at(const struct demux_read *read, uint64_t offset)
{
	for (size_t i = 0; i < read->end_count; i++)
		if (read->ends[i].at == offset)
			return &read->ends[i];
	return NULL;
}

/* Where no range ends any more, another line was read behind. */
static void demux_read_keep_ends(struct demux_read *read)
{
	for (size_t i = read->end_count; i-- > 0;) {
		uint64_t at = read->ends[i].at;
		if (!offsets_meet(&read->done, at - 1, at) || offsets_meet(&read->done, at, at + 1))
			demux_read_remove_end(read, i);
	}
}

void demux_read_put_end(struct demux_read *read, const struct demux_end *end)
{
	size_t at = 0;
	demux_read_keep_ends(read);
	while (at < read->end_count && read->ends[at].at < end->at)
		at++;
	if (at < read->end_count && read->ends[at].at == end->at) {
		demux_read_remove_end(read, at);
	} else if (read->end_count == DEMUX_ENDS_MAX) {
		demux_read_remove_end(read, 0);
		at -= at > 0;
	}
	memmove(&read->ends[at + 1], &read->ends[at],
		(read->end_count++ - at) * sizeof(*read->ends));
	read->ends[at] = *end;
}

bool demux_state_add_late(struct demux_state *state, int64_t ms)
{
	size_t at = state->late_count;
	while (at && state->late[at - 1] > ms)
		at--;
	if (at && state->late[at - 1] == ms)
		return true;
	if (state->late_count == DEMUX_LATE_MAX)
		return false;
	GROW(state->late, state->late_room, state->late_count + 1);
	memmove(&state->late[at + 1], &state->late[at],
		(state->late_count++ - at) * sizeof(*state->late));
	state->late[at] = ms;
	return true;
}

void demux_state_remove_late(struct demux_state *state, size_t count)
{
	if (!count) /* of none there may be no list */
		return;
	state->late_count -= count;
	memmove(state->late, state->late + count, state->late_count * sizeof(*state->late));
}

/* ---- The cell -------------------------------------------------------------------------------- */

static void demux_put_names(const struct stream_names *names, struct buf *out)
{
	buf_put_text(out, names->source);
	buf_put_text(out, names->cluster);
	buf_put_text(out, names->datatype);
	buf_put_text(out, names->name);
}

static void demux_put_read(const struct demux_read *read, struct buf *out)
{
	buf_put_varint(out, read->incarnation);
	stream_put_offsets(&read->done, out);
	buf_put_varint(out, read->kept_from);
	buf_put_varint(out, read->end_count);
	for (size_t i = 0; i < read->end_count; i++) {
		buf_put_varint(out, read->ends[i].at);
		buf_put_varint(out, read->ends[i].carry.left);
		buf_put_varint(out, zigzag_encode(read->ends[i].carry.ms));
		buf_put_text(out, read->ends[i].header);
	}
}

int demux_state_encode(const struct demux_state *state, const struct stream_names *names,
		       struct buf *out)
{
	int64_t before = 0;
	buf_append_char(out, DEMUX_STATE_VERSION);
	demux_put_names(names, out);
	buf_put_varint(out, state->rule);
	buf_append_char(out, (char)((state->named ? DEMUX_NAMED : 0) |
				    (state->has_last ? DEMUX_HAS_LAST : 0)));
	buf_put_varint(out, zigzag_encode(state->last_ms));
	buf_put_varint(out, zigzag_encode(state->top_ms));
	buf_put_varint(out, zigzag_encode(state->floor_ms));
	buf_put_varint(out, zigzag_encode(state->gone_ms));
	buf_put_varint(out, zigzag_encode(state->ahead_ms));
	buf_put_varint(out, state->counts.lines);
	buf_put_varint(out, state->counts.passed);
	buf_put_varint(out, state->counts.unread);
	buf_put_varint(out, state->counts.late);
	buf_put_varint(out, state->counts.rest);
	buf_put_text(out, (struct slice){state->example, state->example_len});
	buf_put_varint(out, state->late_count);
	for (size_t i = 0; i < state->late_count; i++) {
		buf_put_varint(out, zigzag_encode(state->late[i] - before));
		before = state->late[i];
	}
	buf_put_varint(out, state->series.table.count);
	for (size_t at = 0; at < state->series.table.slot_count; at++) {
		const struct hash128 *hash = hash_table_at(&state->series.table, at);
		if (hash)
			buf_append(out, hash, sizeof(*hash));
	}
	buf_put_varint(out, state->read_count);
	for (size_t i = 0; i < state->read_count; i++)
		demux_put_read(&state->reads[i], out);
	return out->failed ? ERR_LIMIT : 0;
}

static struct stream_names demux_take_names(struct cursor *c)
{
	struct stream_names names;
	names.source = cursor_text(c, STREAM_SOURCE_MAX_BYTES);
	names.cluster = cursor_text(c, STREAM_CLUSTER_MAX_BYTES);
	names.datatype = cursor_text(c, STREAM_DATATYPE_MAX_BYTES);
	names.name = cursor_text(c, STREAM_NAME_MAX_BYTES);
	return names;
}

static void demux_take_late(struct cursor *c, struct demux_state *state)
{
	uint64_t count = cursor_varint(c);
	int64_t ms = 0;
	c->bad = c->bad || count > DEMUX_LATE_MAX;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		int64_t step = zigzag_decode(cursor_varint(c));
		c->bad = c->bad || (i && step <= 0) || __builtin_add_overflow(ms, step, &ms);
		if (!c->bad && !demux_state_add_late(state, ms))
			c->bad = true;
	}
}

static void demux_take_series(struct cursor *c, struct demux_state *state)
{
	uint64_t count = cursor_varint(c);
	c->bad = c->bad || count > DEMUX_SERIES_MAX;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		struct hash128 hash;
		hash.low = cursor_u64(c);
		hash.high = cursor_u64(c);
		if (!c->bad)
			hash_set_add(&state->series, hash, DEMUX_SERIES_MAX);
	}
}

/* Versions before 3 have the end of the last range alone. */
static void demux_take_read(struct cursor *c, struct demux_state *state, unsigned version)
{
	struct demux_read *read = demux_state_read(state, cursor_varint(c));
	stream_take_offsets(c, &read->done);
	read->kept_from = cursor_varint(c);
	uint64_t count = version < 3 ? 1 : cursor_varint(c);
	c->bad = c->bad || count > DEMUX_ENDS_MAX;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		const struct offsets *done = &read->done;
		uint64_t last = done->count ? done->list[done->count - 1].end : 0;
		struct demux_end end = {.at = version < 3 ? last : cursor_varint(c)};
		uint64_t left = cursor_varint(c);
		end.carry.left = left < LINE_CARRY_MAX ? (uint32_t)left : LINE_CARRY_MAX;
		end.carry.ms = zigzag_decode(cursor_varint(c));
		struct slice header = cursor_text(c, DEMUX_HEADER_MAX_BYTES);
		c->bad = c->bad || (!end.at && version >= 3);
		if (c->bad || !end.at)
			continue;
		end.header = mem_copy_slice(header);
		demux_read_put_end(read, &end);
	}
	demux_read_keep_ends(read);
}

int demux_state_decode(struct slice value, struct demux_state *state, struct stream_names *names)
{
	struct cursor c = cursor_of(value.data, value.len);
	unsigned version = cursor_u8(&c);
	if (!c.bad && (!version || version > DEMUX_STATE_VERSION))
		return ERR_VERSION;
	*names = demux_take_names(&c);
	state->rule = cursor_varint(&c);
	unsigned flags = cursor_u8(&c);
	state->named = flags & DEMUX_NAMED;
	state->has_last = flags & DEMUX_HAS_LAST;
	state->last_ms = state->top_ms = zigzag_decode(cursor_varint(&c));
	if (version >= 2)
		state->top_ms = zigzag_decode(cursor_varint(&c));
	state->floor_ms = zigzag_decode(cursor_varint(&c));
	state->gone_ms = version < 3 ? INT64_MIN : zigzag_decode(cursor_varint(&c));
	state->ahead_ms = version < 3 ? 0 : zigzag_decode(cursor_varint(&c));
	state->counts.lines = cursor_varint(&c);
	state->counts.passed = cursor_varint(&c);
	state->counts.unread = cursor_varint(&c);
	state->counts.late = cursor_varint(&c);
	state->counts.rest = cursor_varint(&c);
	struct slice example = cursor_text(&c, DEMUX_EXAMPLE_MAX_BYTES);
	memcpy(state->example, example.data, example.len);
	state->example_len = example.len;
	demux_take_late(&c, state);
	demux_take_series(&c, state);
	uint64_t reads = cursor_varint(&c);
	for (uint64_t i = 0; i < reads && !c.bad; i++)
		demux_take_read(&c, state, version);
	return c.bad || cursor_left(&c) ? ERR_DAMAGED : 0;
}

/* ---- All of a tenant ------------------------------------------------------------------------- */

struct demux_walk {
	const struct stream_parts *after; /* NULL: all */
	int (*each)(const struct stream_names *names, const struct demux_state *state, void *owner);
	void *owner;
	struct errbuf *e;
};

static int demux_see_cell(const struct store_cell *cell, void *owner)
{
	struct demux_walk *walk = owner;
	struct demux_state state = {.rule = 0};
	struct stream_names names;
	if (walk->after && slice_equal(cell->column.part[0], walk->after->parts.part[0]))
		return 0;
	int err = demux_state_decode(cell->value, &state, &names);
	err = err ? errbuf_set(walk->e, err, "how far a stream is read cannot be read")
		  : walk->each(&names, &state, walk->owner);
	demux_state_release(&state);
	return err;
}

int demux_each(const struct stream_site *site, struct task_queue *queue, struct slice tenant,
	       const struct stream_names *after,
	       int (*each)(const struct stream_names *names, const struct demux_state *state,
			   void *owner),
	       void *owner, struct errbuf *e)
{
	struct demux_walk walk = {.each = each, .owner = owner, .e = e};
	struct stream_parts key, from;
	demux_key(&key, tenant);
	struct store_cell_scan scan = {.table = TABLE_DEMUX, .key = key.parts};
	if (after) {
		demux_column(&from, after);
		scan.from = from.parts;
		walk.after = &from;
	}
	return store_cells_wait(site->store, queue, clock_wall_ms(site->clock), &scan,
				demux_see_cell, &walk, e);
}
