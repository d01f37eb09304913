#include "stream/heads.h"

#include "store/wait.h"

enum { CARRY_ARENA_MAX_BYTES = 1 << 20 };

struct heads_walk {
	int (*each)(const struct chunk_place *place, struct slice value, void *owner);
	void *owner;
	struct errbuf *e;
};

static int heads_see(const struct store_cell *cell, void *owner)
{
	struct heads_walk *walk = owner;
	struct chunk_place place;
	int err = chunk_head_column_read(cell, &place);
	if (err)
		return errbuf_set(walk->e, err, "the head of a block cannot be read");
	return walk->each(&place, cell->value, walk->owner);
}

int chunk_heads_each(const struct stream_site *site, struct task_queue *queue,
		     const struct stream_id *id, enum chunk_head_kind kind, uint64_t from,
		     uint64_t to,
		     int (*each)(const struct chunk_place *place, struct slice value, void *owner),
		     void *owner, struct errbuf *e)
{
	struct heads_walk walk = {each, owner, e};
	struct stream_parts key, first, behind;
	int err = 0;
	chunk_head_bound(&first, kind, from);
	chunk_head_bound(&behind, kind, to);
	for (uint64_t part = (from + 1) >> CHUNK_SINK_PART_BITS;
	     part <= to >> CHUNK_SINK_PART_BITS && !err; part++) {
		chunk_sink_key(&key, id, part);
		const struct store_cell_scan scan = {.table = TABLE_CHUNK_HEADS,
						     .key = key.parts,
						     .from = first.parts,
						     .to = behind.parts};
		err = store_cells_wait(site->store, queue, clock_wall_ms(site->clock), &scan,
				       heads_see, &walk, e);
	}
	return err;
}

struct heads_carry {
	struct line_carry *carry;
	struct arena arena;
	struct errbuf *e;
};

static int heads_see_carry(UNUSED const struct chunk_place *place, struct slice value, void *owner)
{
	struct heads_carry *of = owner;
	struct chunk_lines lines;
	arena_reset(&of->arena);
	int err = chunk_lines_decode(value, &of->arena, &lines);
	if (err)
		return errbuf_set(of->e, err,
				  "what is known of the lines of a block cannot be read");
	*of->carry = lines.behind;
	return 0;
}

int chunk_carry_read(const struct stream_site *site, struct task_queue *queue,
		     const struct stream_id *id, const struct offsets *sealed, uint64_t offset,
		     struct line_carry *carry, struct errbuf *e)
{
	struct heads_carry of = {.carry = carry, .e = e};
	*carry = (struct line_carry){0, 0};
	if (!offset || !offsets_meet(sealed, offset - 1, offset))
		return 0;
	arena_init(&of.arena, CARRY_ARENA_MAX_BYTES);
	int err = chunk_heads_each(site, queue, id, CHUNK_HEAD_LINES, offset - 1, offset,
				   heads_see_carry, &of, e);
	arena_release(&of.arena);
	return err;
}
