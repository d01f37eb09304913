/* Any bytes as the note of a deletion: what is taken for one, and written again, says the same. */
#include "rollup/deletion_note.h"

enum { ARENA_BYTES = 1 << 20, NOTE_MAX_BYTES = 8 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_same(const struct rollup_deletion_spec *a, const struct rollup_deletion_spec *b)
{
	ASSERT(slice_equal(a->tenant, b->tenant) && slice_equal(a->metric, b->metric));
	ASSERT(slice_equal(a->by, b->by) && a->tag_count == b->tag_count);
	for (size_t i = 0; i < a->tag_count; i++)
		ASSERT(slice_equal(a->tags[i], b->tags[i]));
	ASSERT(a->from_ms == b->from_ms && a->to_ms == b->to_ms && a->whole == b->whole);
}

static void write_again(const struct rollup_deletion_spec *spec)
{
	struct rollup_deletion_spec again;
	struct errbuf e = {""};
	struct arena arena;
	struct buf note;
	arena_init(&arena, NOTE_MAX_BYTES);
	buf_init(&note, NOTE_MAX_BYTES);
	deletion_note_put(spec, &note);
	int err = deletion_note_read(buf_slice(&note), &arena, &again, &e);
	ASSERT(!note.failed && !err);
	is_same(spec, &again);
	buf_release(&note);
	arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rollup_deletion_spec spec;
	struct errbuf e = {""};
	struct arena arena;
	arena_init(&arena, ARENA_BYTES);
	if (deletion_note_read((struct slice){(const char *)data, size}, &arena, &spec, &e))
		ASSERT(e.text[0]);
	else
		write_again(&spec);
	arena_release(&arena);
	return 0;
}
