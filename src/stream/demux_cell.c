/* The cell of a stream: how far it is read. */
#include "store/wait.h"
#include "stream/demux_private.h"

struct pass_cell {
	struct demux_stream *stream;
	bool found;
};

static int pass_see_cell(const struct store_cell *cell, void *owner)
{
	struct pass_cell *of = owner;
	struct stream_parts column;
	struct stream_names names;
	demux_column(&column, &of->stream->names);
	if (!slice_equal(cell->column.part[0], column.parts.part[0]))
		return 0;
	of->found = true;
	int err = demux_state_decode(cell->value, &of->stream->state, &names);
	return err ? err : stream_names_equal(&names, &of->stream->names) ? 0 : ERR_DAMAGED;
}

struct pass_named {
	const struct stream_names *names;
	struct stream_names group;
	int64_t made_ms;
	bool named;
};

/* One that was made before may be seen only now, when another is without a name already. */
static int pass_see_read(const struct stream_names *names, const struct demux_state *state,
			 void *owner)
{
	struct pass_named *of = owner;
	if (!stream_names_fit(&of->group, names))
		return PASS_ENOUGH;
	of->named = !state->named && !slice_equal(names->name, of->names->name);
	return of->named ? PASS_ENOUGH : 0;
}

/* The first of the streams of a source that have one datatype needs no name in its series. */
static int pass_see_other(const struct stream_made *made, void *owner)
{
	struct pass_named *of = owner;
	if (!stream_names_fit(&of->group, &made->id.names))
		return PASS_ENOUGH;
	if (slice_equal(made->id.names.name, of->names->name))
		return 0;
	of->named = made->made_ms < of->made_ms ||
		    (made->made_ms == of->made_ms &&
		     slice_compare(made->id.names.name, of->names->name) < 0);
	return of->named ? PASS_ENOUGH : 0;
}

static int pass_find_named(struct pass *p, int64_t made_ms)
{
	const struct demux_stream *stream = p->stream;
	struct pass_named of = {&stream->names, stream->names, made_ms, false};
	struct stream_id before = {.tenant = stream->tenant, .names = stream->names};
	before.names.name = SLICE("");
	of.group.name = (struct slice){NULL, 0};
	int err = demux_each(p->work->site, p->work->queue, stream->tenant, &before.names,
			     pass_see_read, &of, p->e);
	if (err == ERR_DAMAGED || err == ERR_VERSION)
		err = 0; /* what another's cell says is not known */
	if (!err || (err == PASS_ENOUGH && !of.named))
		err = stream_each(p->work->site, p->work->queue, stream->tenant, &before,
				  pass_see_other, &of, p->e);
	p->stream->state.named = of.named;
	return err == PASS_ENOUGH ? 0 : err;
}

/* Another rule makes other samples: of what is done it makes none. */
static void pass_take_rule(struct demux_stream *stream)
{
	struct demux_state *state = &stream->state;
	if (state->rule == stream->rule->hash)
		return;
	state->rule = stream->rule->hash;
	state->late_count = 0;
	hash_set_release(&state->series);
	/* Not behind the greatest time: one line of a clock that is ahead would keep all others of
	 * that time from being counted. */
	if (state->has_last)
		state->floor_ms = larger_of(state->floor_ms, bin_start_ms(state->last_ms) + BIN_MS);
	stream->changed = true;
}

int pass_read_cell(struct pass *p, bool *found)
{
	struct demux_stream *stream = p->stream;
	struct pass_cell of = {.stream = stream};
	struct stream_parts key, column;
	stream->state.floor_ms = stream->state.gone_ms = INT64_MIN;
	demux_key(&key, stream->tenant);
	demux_column(&column, &stream->names);
	const struct store_cell_scan scan = {
		.table = TABLE_DEMUX, .key = key.parts, .from = column.parts, .limit = 1};
	int err = store_cells_wait(p->work->site->store, p->work->queue,
				   clock_wall_ms(p->work->site->clock), &scan, pass_see_cell, &of,
				   p->e);
	*found = of.found;
	if (err == ERR_DAMAGED || err == ERR_VERSION)
		errbuf_set(p->e, err, "how far it is read cannot be read: %s", err_text(err));
	return err;
}

int pass_load(struct pass *p, int64_t made_ms)
{
	struct demux_stream *stream = p->stream;
	bool found;
	int err = pass_read_cell(p, &found);
	if (!err && !found)
		err = pass_find_named(p, made_ms);
	if (err)
		return err;
	bins_init(&stream->bins, stream->rule->tag_count, stream->rule->value_count);
	pass_take_rule(stream);
	stream->open_ms = stream->state.has_last ? bin_start_ms(stream->state.top_ms) + BIN_MS
						 : stream->state.gone_ms;
	stream->late_at_ms = 0;
	stream->loaded = true;
	/* Whether it has a name is there before its samples are. */
	return found || !store_is_shared(p->work->site->store) ? 0 : pass_write_cell(p, false);
}

int pass_write_cell(struct pass *p, bool gone)
{
	struct demux_work *work = p->work;
	struct stream_parts key, column;
	struct buf value;
	int err = 0;
	struct store_write *write = store_write_new(work->site->store, DEMUX_STATE_MAX_BYTES * 2);
	demux_key(&key, p->stream->tenant);
	demux_column(&column, &p->stream->names);
	buf_init(&value, DEMUX_STATE_MAX_BYTES);
	if (gone)
		err = store_cell_delete(write, TABLE_DEMUX, &key.parts, &column.parts, p->stamp_us);
	else if (demux_state_encode(&p->stream->state, &p->stream->names, &value))
		err = errbuf_set(p->e, ERR_LIMIT, "it has too many holes");
	else
		err = store_cell_put(write, TABLE_DEMUX, &key.parts, &column.parts,
				     buf_slice(&value), p->stamp_us, 0);
	if (!err && !pass_may_write(work))
		err = ERR_CANCELLED;
	err = err ? err : store_write_wait_known(write, work->queue);
	buf_release(&value);
	store_write_free(write);
	return err;
}
