#include "stream/heads.h"

#include "store/wait.h"

enum { CARRY_ARENA_MAX_BYTES = 1 << 20 };

struct heads_walk {
	const struct stream_site *site;
	struct task_queue *queue;
	const struct stream_id *id;
	struct stream_parts first, behind; /* columns: the first, and the one that ends the walk */
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

/* Blocks end behind `from` and not behind `to`. */
static void heads_set_bounds(struct heads_walk *walk, enum chunk_head_kind kind, uint64_t from,
			     uint64_t to)
{
	chunk_head_bound(&walk->first, kind, from);
	chunk_head_bound(&walk->behind, kind, to);
}

static int heads_walk_part(struct heads_walk *walk, uint64_t part)
{
	struct stream_parts key;
	chunk_sink_key(&key, walk->id, part);
	const struct store_cell_scan scan = {.table = TABLE_CHUNK_HEADS,
					     .key = key.parts,
					     .from = walk->first.parts,
					     .to = walk->behind.parts};
	return store_cells_wait(walk->site->store, walk->queue, clock_wall_ms(walk->site->clock),
				&scan, heads_see, walk, walk->e);
}

/* Only parts in which a range lies are read: a sender chooses offsets, and between two of its
 * ranges there may be more parts than can be read. */
int chunk_heads_each(const struct stream_site *site, struct task_queue *queue,
		     const struct stream_id *id, enum chunk_head_kind kind,
		     const struct offsets *sealed,
		     int (*each)(const struct chunk_place *place, struct slice value, void *owner),
		     void *owner, struct errbuf *e)
{
	struct heads_walk walk = {
		.site = site, .queue = queue, .id = id, .each = each, .owner = owner, .e = e};
	uint64_t next = 0; /* the first part that was not read yet */
	int err = 0;
	if (!sealed->count)
		return 0;
	heads_set_bounds(&walk, kind, sealed->list[0].begin, sealed->list[sealed->count - 1].end);
	for (size_t i = 0; i < sealed->count && !err; i++) {
		const struct offset_range *range = &sealed->list[i];
		uint64_t part = (range->begin + 1) >> CHUNK_SINK_PART_BITS;
		for (part = part > next ? part : next;
		     part <= range->end >> CHUNK_SINK_PART_BITS && !err; next = ++part)
			err = heads_walk_part(&walk, part);
	}
	return err;
}

int chunk_heads_at(const struct stream_site *site, struct task_queue *queue,
		   const struct stream_id *id, enum chunk_head_kind kind, uint64_t end,
		   int (*each)(const struct chunk_place *place, struct slice value, void *owner),
		   void *owner, struct errbuf *e)
{
	struct heads_walk walk = {
		.site = site, .queue = queue, .id = id, .each = each, .owner = owner, .e = e};
	ASSERT(end);
	heads_set_bounds(&walk, kind, end - 1, end);
	return heads_walk_part(&walk, end >> CHUNK_SINK_PART_BITS);
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
	if (err == ERR_LIMIT)
		return errbuf_set(of->e, err, "the head of a block takes more memory than it may");
	if (!err)
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
	int err =
		chunk_heads_at(site, queue, id, CHUNK_HEAD_LINES, offset, heads_see_carry, &of, e);
	arena_release(&of.arena);
	if (err == ERR_DAMAGED || err == ERR_VERSION) { /* nothing is known of the block */
		*carry = (struct line_carry){0, 0};
		return 0;
	}
	return err;
}
