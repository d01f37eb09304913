#include "stream/mend.h"

#include "store/wait.h"
#include "stream/demux_state.h"
#include "stream/known.h"

enum {
	MEND_PARTS_MAX = 1 << 20, /* of a range: a longer one is none */
	MEND_WRITE_MAX_BYTES = 4 << 20,
};

struct mend {
	const struct stream_site *site;
	struct task_queue *queue;
	void (*tell)(void *owner, const struct stream_id *id, const struct offset_range *lost);
	void *owner;
	struct errbuf *e;
	struct offsets lost; /* of the stream that is looked at */
};

static bool mend_is_damage(int err)
{
	return err == ERR_DAMAGED || err == ERR_VERSION;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static int mend_see_block(const struct store_cell *cell, void *owner)
{
	struct mend *m = owner;
	struct chunk_place place;
	if (!chunk_column_read(cell, &place))
		offsets_remove(&m->lost, place.sequence_id - place.length, place.sequence_id);
	return 0;
}

/* What is noted is lost, but for what is in blocks. */
static int mend_find_lost(struct mend *m, const struct stream_id *id, const struct offsets *noted)
{
	struct stream_parts key;
	uint64_t next = 0; /* the first part that was not read yet */
	int err = 0;
	for (size_t i = 0; i < noted->count; i++)
		offsets_add(&m->lost, noted->list[i].begin, noted->list[i].end);
	for (size_t i = 0; i < noted->count && !err; i++) {
		uint64_t part = (noted->list[i].begin + 1) >> CHUNK_SINK_PART_BITS,
			 last = noted->list[i].end >> CHUNK_SINK_PART_BITS;
		if (last - part > MEND_PARTS_MAX)
			return ERR_DAMAGED;
		for (part = part > next ? part : next; part <= last && !err; next = ++part) {
			chunk_sink_key(&key, id, part);
			err = store_row_wait(m->site->store, m->queue,
					     clock_wall_ms(m->site->clock), TABLE_CHUNK_SINK,
					     &key.parts, mend_see_block, m, m->e);
		}
	}
	return err;
}

/* ---- Notes ----------------------------------------------------------------------------------- */

static void mend_take_lost(const struct mend *m, struct offsets *from)
{
	for (size_t i = 0; i < m->lost.count; i++)
		offsets_remove(from, m->lost.list[i].begin, m->lost.list[i].end);
}

static int mend_put(struct mend *m, enum table table, const struct stream_parts *key,
		    const struct stream_parts *column, const struct buf *value)
{
	struct store_write *write = store_write_new(m->site->store, MEND_WRITE_MAX_BYTES);
	int err = value->failed ? ERR_LIMIT
				: store_cell_put(write, table, &key->parts, &column->parts,
						 buf_slice(value), store_stamp(m->site->store), 0);
	err = err ? err : store_write_wait(write, m->queue);
	store_write_free(write);
	return err ? errbuf_set(m->e, err, "notes of streams cannot be written: %s", err_text(err))
		   : 0;
}

static int mend_put_sealed(struct mend *m, const struct stream_id *id, const struct offsets *sealed)
{
	struct stream_parts key, column;
	struct buf value;
	buf_init(&value, TABLE_SHARED_VALUE_MAX_BYTES);
	stream_sealed_encode(sealed, &value);
	streams_key(&key, id->tenant);
	streams_column(&column, id, STREAM_SEALED);
	int err = mend_put(m, TABLE_STREAMS, &key, &column, &value);
	buf_release(&value);
	return err;
}

/* How far the lines of a stream are read. */
struct mend_demux {
	struct mend *m;
	const struct stream_id *id;
	struct buf value; /* empty: there is nothing to write */
};

static int mend_see_demux(const struct store_cell *cell, void *owner)
{
	struct mend_demux *of = owner;
	struct demux_state state = {.rule = 0};
	struct stream_names names;
	int err = demux_state_decode(cell->value, &state, &names);
	if (!err && stream_names_equal(&names, &of->id->names)) {
		mend_take_lost(of->m, &demux_state_read(&state, of->id->incarnation)->done);
		err = demux_state_encode(&state, &names, &of->value);
	}
	demux_state_release(&state);
	return err;
}

static int mend_demux(struct mend *m, const struct stream_id *id)
{
	struct mend_demux of = {.m = m, .id = id};
	struct stream_parts key, column;
	demux_key(&key, id->tenant);
	demux_column(&column, &id->names);
	const struct store_cell_scan scan = {
		.table = TABLE_DEMUX, .key = key.parts, .from = column.parts, .limit = 1};
	buf_init(&of.value, DEMUX_STATE_MAX_BYTES);
	int err = store_cells_wait(m->site->store, m->queue, clock_wall_ms(m->site->clock), &scan,
				   mend_see_demux, &of, m->e);
	if (!err && of.value.len)
		err = mend_put(m, TABLE_DEMUX, &key, &column, &of.value);
	buf_release(&of.value);
	return mend_is_damage(err) ? 0 : err;
}

/* ---- Streams --------------------------------------------------------------------------------- */

static int mend_stream(struct mend *m, const struct stream_id *id)
{
	struct stream_known known = {.made = false};
	int err = stream_known_read_blocks(&known, m->site, m->queue, id, m->e);
	err = err ? err : mend_find_lost(m, id, &known.noted);
	if (!err && m->lost.count) {
		mend_take_lost(m, &known.noted);
		err = mend_put_sealed(m, id, &known.noted);
		err = err ? err : mend_demux(m, id);
		for (size_t i = 0; i < m->lost.count && !err; i++)
			m->tell(m->owner, id, &m->lost.list[i]);
	}
	stream_known_release(&known);
	offsets_release(&m->lost);
	return mend_is_damage(err) ? 0 : err;
}

static int mend_see_stream(const struct stream_made *made, void *owner)
{
	return mend_stream(owner, &made->id);
}

static int mend_see_tenant(const struct store_row *row, void *owner)
{
	struct mend *m = owner;
	int err = stream_each(m->site, m->queue, row->key.part[0], NULL, mend_see_stream, m, m->e);
	return mend_is_damage(err) ? 0 : err;
}

int stream_mend(const struct stream_site *site, struct task_queue *queue,
		void (*tell)(void *owner, const struct stream_id *id,
			     const struct offset_range *lost),
		void *owner, struct errbuf *e)
{
	struct mend m = {.site = site, .queue = queue, .tell = tell, .owner = owner, .e = e};
	return store_rows_wait(site->store, queue, clock_wall_ms(site->clock), TABLE_STREAMS,
			       mend_see_tenant, &m, e);
}
