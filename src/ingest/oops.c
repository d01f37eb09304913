#include "ingest/oops.h"

#include "fault/pack.h"
#include "ingest/oops_reading.h"
#include "store/schema.h"
#include "wire/oops_document.h"

enum {
	OOPS_BATCH_MAX_BYTES = 96 << 20,
	/* While one report is read: its attributes, what masks replace, and its body. */
	OOPS_SCRATCH_FACTOR = 8,
	OOPS_SCRATCH_MORE_BYTES = 4 << 20,
	/* An arrival is one value of a table that is shared; id and facts lie beside the body. */
	OOPS_PACKED_MAX_BYTES = TABLE_SHARED_VALUE_MAX_BYTES - (8 << 10),
	/* Of a batch, so that a submission is smaller than a write may be. */
	OOPS_PACKED_ALL_MAX_BYTES = 36 << 20,
};

void oops_batch_init(struct oops_batch *batch)
{
	*batch = (struct oops_batch){.is_array = false};
	arena_init(&batch->arena, OOPS_BATCH_MAX_BYTES);
}

void oops_batch_release(struct oops_batch *batch)
{
	arena_release(&batch->arena);
}

void oops_reading_init(struct oops_reading *r, struct oops_batch *batch,
		       const struct fault_report_options *options, struct errbuf *e)
{
	*r = (struct oops_reading){.batch = batch, .options = options, .e = e};
	arena_init(&r->scratch,
		   OOPS_SCRATCH_FACTOR * options->body_max_bytes + OOPS_SCRATCH_MORE_BYTES);
	buf_init(&r->packed, 2 * TABLE_SHARED_VALUE_MAX_BYTES + options->body_max_bytes);
}

void oops_reading_release(struct oops_reading *r)
{
	buf_release(&r->packed);
	arena_release(&r->scratch);
}

/* ---- One report ------------------------------------------------------------------------------ */

static int oops_no_memory(struct errbuf *e)
{
	return errbuf_set(e, ERR_LIMIT,
			  "the reports of this body take more memory than one request may have: "
			  "send them in several requests");
}

/* The report goes with the arena that it was read in, so that its refused parts are copied. */
static int oops_keep_refused(struct oops_reading *r, const struct fault_report *read,
			     struct oops_report *report)
{
	struct arena *arena = &r->batch->arena;
	size_t shown = read->refused_count;
	if (shown > FAULT_REFUSED_MAX)
		shown = FAULT_REFUSED_MAX;
	report->refused_count = read->refused_count;
	report->refused_shown = shown;
	if (!shown)
		return 0;
	struct slice *refused = arena_alloc(arena, shown * sizeof(*refused));
	if (!refused)
		return oops_no_memory(r->e);
	report->refused = refused;
	for (size_t i = 0; i < shown; i++) {
		refused[i] = arena_copy(arena, read->refused[i]);
		if (!refused[i].data)
			return oops_no_memory(r->e);
	}
	return 0;
}

static int oops_keep_facts(struct oops_reading *r, struct fault_facts *facts)
{
	for (size_t i = 0; i < FAULT_TEXTS; i++) {
		struct slice *text = &facts->texts[i];
		if (!text->len)
			continue;
		*text = arena_copy(&r->batch->arena, *text);
		if (!text->data)
			return oops_no_memory(r->e);
	}
	return 0;
}

/* An error is one of the whole body. */
static int oops_keep(struct oops_reading *r, const struct fault_report *read,
		     struct oops_report *report)
{
	struct oops_batch *batch = r->batch;
	struct fault_item item = {
		.id = arena_copy(&batch->arena, read->id),
		.digest = read->digest,
		.facts = read->facts,
		.dictionary = r->dictionary,
		.body_bytes = read->body.len,
		.packed = arena_copy(&batch->arena, buf_slice(&r->packed)),
	};
	r->packed_bytes += item.packed.len;
	if (!item.id.data || !item.packed.data || r->packed_bytes > OOPS_PACKED_ALL_MAX_BYTES)
		return oops_no_memory(r->e);
	int err = oops_keep_facts(r, &item.facts);
	err = err ? err : oops_keep_refused(r, read, report);
	if (err)
		return err;
	report->id = item.id;
	report->item = batch->item_count;
	batch->items[batch->item_count++] = item;
	return 0;
}

static int oops_pack(struct oops_reading *r, const struct fault_report *read, struct errbuf *why)
{
	buf_clear(&r->packed);
	r->dictionary = fault_pack(read->body, &r->packed);
	if (!r->packed.failed && r->packed.len <= OOPS_PACKED_MAX_BYTES)
		return 0;
	return errbuf_set(why, ERR_LIMIT,
			  "the report is too large: compressed it has more than %d bytes",
			  OOPS_PACKED_MAX_BYTES);
}

/* The id of a document that could not be read, for who sent many. */
static struct slice oops_id_of(const struct json *document, struct arena *arena)
{
	const struct json *id = json_member(document, "id");
	if (!id || id->type != JSON_T_STRING || !fault_id_valid(id->text))
		return (struct slice){NULL, 0};
	return arena_copy(arena, id->text);
}

int oops_read_one(struct oops_reading *r, struct json *document, struct slice id,
		  struct oops_report *report)
{
	struct fault_report read;
	struct errbuf why = {""};
	arena_reset(&r->scratch);
	report->err =
		fault_report_read(document, r->dialect, id, r->options, &r->scratch, &read, &why);
	if (!report->err)
		report->err = oops_pack(r, &read, &why);
	if (!report->err)
		return oops_keep(r, &read, report);
	report->id = oops_id_of(document, &r->batch->arena);
	report->sentence = arena_copy(&r->batch->arena, slice_of(why.text)).data;
	return report->sentence ? 0 : oops_no_memory(r->e);
}

/* ---- A body ---------------------------------------------------------------------------------- */

int oops_make_room(struct oops_batch *batch, size_t count, struct errbuf *e)
{
	batch->count = count;
	if (!count)
		return 0;
	batch->reports = arena_zalloc(&batch->arena, count * sizeof(*batch->reports));
	batch->items = arena_zalloc(&batch->arena, count * sizeof(*batch->items));
	return batch->reports && batch->items ? 0 : oops_no_memory(e);
}

static bool oops_report_is_cut(const struct json *array)
{
	const struct json *item = array->first;
	while (item && item->mended != JSON_CUT)
		item = item->next;
	return item != NULL;
}

/* An array that is cut between two reports has one result more: a report that could not be read. */
static int oops_read_array(struct oops_reading *r, struct json *array, bool takes_array)
{
	const struct slice none = {NULL, 0};
	size_t at = 0;
	if (!takes_array)
		return errbuf_set(r->e, ERR_INVALID,
				  "this is an array: PUT takes one report, POST /oops an array");
	if (array->count > FAULT_ITEMS_MAX)
		return errbuf_set(r->e, ERR_LIMIT,
				  "there are %zu reports, and one request may have %d; none of "
				  "them was taken: send them in several requests",
				  array->count, FAULT_ITEMS_MAX);
	r->batch->is_array = true;
	bool cut = array->mended == JSON_CUT && !oops_report_is_cut(array);
	int err = oops_make_room(r->batch, array->count + cut, r->e);
	for (struct json *item = array->first; item && !err; item = item->next)
		err = oops_read_one(r, item, none, &r->batch->reports[at++]);
	if (cut && !err)
		r->batch->reports[at] = (struct oops_report){
			.err = ERR_INVALID,
			.sentence = "the body is cut here, and what follows is not there"};
	return err;
}

int oops_read_single(struct oops_reading *r, struct json *document, struct slice id)
{
	int err = oops_make_room(r->batch, 1, r->e);
	err = err ? err : oops_read_one(r, document, id, r->batch->reports);
	if (err)
		return err;
	const struct oops_report *report = r->batch->reports;
	return report->err ? errbuf_set(r->e, report->err, "%s", report->sentence) : 0;
}

int oops_batch_read(struct oops_batch *batch, struct slice body, struct slice id,
		    const struct oops_options *options, struct errbuf *e)
{
	struct oops_reading r;
	enum oops_dialect dialect;
	struct arena tree;
	struct buf unpacked;
	struct json *root;
	ASSERT(!batch->count);
	arena_init(&tree, OOPS_TREE_MAX_BYTES);
	oops_reading_init(&r, batch, &options->report, e);
	buf_init(&unpacked, OOPS_UNPACKED_MAX_BYTES);
	int err = oops_document_parse(body, OOPS_UNPACKED_MAX_BYTES, &unpacked, &tree, &root,
				      &dialect, e);
	r.dialect = dialect == OOPS_JSON ? FAULT_OF_OOPS : FAULT_OF_PYTHON;
	if (!err)
		err = root->type == JSON_T_ARRAY ? oops_read_array(&r, root, options->takes_array)
						 : oops_read_single(&r, root, id);
	buf_release(&unpacked);
	oops_reading_release(&r);
	arena_release(&tree);
	return err;
}
