#include "ingest/sentry.h"

#include "base/stats.h"
#include "base/utf8.h"
#include "fault/sentry.h"
#include "ingest/oops_reading.h"
#include "ingest/sentry_counts.h"
#include "wire/sentry_store.h"

/* ---- Items by type --------------------------------------------------------------------------- */

static const struct sentry_type {
	struct slice name;
	enum stat_id count;
} sentry_types[] = {
	{SLICE("event"), STAT_sentry_event},
	{SLICE("transaction"), STAT_sentry_transaction},
	{SLICE("attachment"), STAT_sentry_attachment},
	{SLICE("session"), STAT_sentry_session},
	{SLICE("sessions"), STAT_sentry_sessions},
	{SLICE("client_report"), STAT_sentry_client_report},
	{SLICE("user_report"), STAT_sentry_user_report},
	{SLICE("feedback"), STAT_sentry_feedback},
	{SLICE("check_in"), STAT_sentry_check_in},
	{SLICE("log"), STAT_sentry_log},
	{SLICE("span"), STAT_sentry_span},
	{SLICE("trace_metric"), STAT_sentry_trace_metric},
	{SLICE("profile"), STAT_sentry_profile},
	{SLICE("profile_chunk"), STAT_sentry_profile},
	{SLICE("replay_event"), STAT_sentry_replay},
	{SLICE("replay_recording"), STAT_sentry_replay},
};

static void sentry_count(struct slice type)
{
	for (size_t i = 0; i < ARRAY_LEN(sentry_types); i++) {
		if (slice_equal(sentry_types[i].name, type)) {
			stat_add(sentry_types[i].count, 1);
			return;
		}
	}
	stat_add(STAT_sentry_other, 1);
}

/* ---- Events ---------------------------------------------------------------------------------- */

struct sentry_reading {
	struct oops_reading oops;
	const struct sentry_options *options;
	struct arena tree;
	struct slice id;                      /* 32 digits in the batch's arena, or of len 0 */
	struct fault_attachment *attachments; /* likewise */
	size_t attachment_count, attachment_bytes;
	struct minute_counts *counts;
	struct errbuf *e;
};

/* The first one that is an id holds. */
static void sentry_take_id(struct sentry_reading *r, const struct json *object)
{
	const struct json *member = json_member(object, "event_id");
	char digits[SENTRY_ID_BYTES];
	if (r->id.len || !member || member->type != JSON_T_STRING ||
	    !sentry_id_parse(member->text, digits))
		return;
	struct slice copy =
		arena_copy(&r->oops.batch->arena, (struct slice){digits, SENTRY_ID_BYTES});
	if (copy.data)
		r->id = copy;
}

static int sentry_parse_event(struct sentry_reading *r, struct slice text, struct json **event)
{
	int err = json_parse_lax(text, &r->tree, event, r->e);
	if (!err && (*event)->type != JSON_T_OBJECT)
		err = errbuf_set(r->e, ERR_INVALID, "it is no object of JSON");
	if (err)
		return errbuf_prefix(r->e, err, "the event");
	sentry_take_id(r, *event);
	return 0;
}

static int sentry_read_event(struct sentry_reading *r, struct json *event)
{
	int err = oops_read_single(&r->oops, event, r->id);
	if (err || (r->id.len && event->mended != JSON_CUT))
		return err;
	/* A made one is OOPS- and 32 digits, and is found without OOPS-, too. */
	struct slice made = r->oops.batch->reports->id;
	ASSERT(made.len >= SENTRY_ID_BYTES);
	r->id = (struct slice){made.data + made.len - SENTRY_ID_BYTES, SENTRY_ID_BYTES};
	return 0;
}

/* ---- Attachments ----------------------------------------------------------------------------- */

/* A text of an item's head, as long as one may be. */
static struct slice sentry_label(struct sentry_reading *r, const struct sentry_item *item,
				 const char *key)
{
	struct slice text = SLICE("");
	if (json_get_text(item->headers, key, &text, NULL))
		return SLICE("");
	text.len = utf8_cut(text, FAULT_ATTACHMENT_TEXT_MAX_BYTES);
	text = arena_copy(&r->oops.batch->arena, text);
	return text.data ? text : SLICE("");
}

static bool sentry_keep_content(struct sentry_reading *r, const struct sentry_item *item,
				struct fault_attachment *attachment)
{
	struct buf packed;
	size_t bytes = item->payload.len;
	if (bytes > r->options->attachment_max_bytes ||
	    r->attachment_bytes + bytes > FAULT_ATTACHMENTS_MAX_BYTES)
		return false;
	buf_init(&packed, 2 * FAULT_ATTACHMENT_MAX_BYTES);
	fault_attachment_pack(item->payload, &packed);
	attachment->packed = arena_copy(&r->oops.batch->arena, buf_slice(&packed));
	bool kept = !packed.failed && attachment->packed.data;
	buf_release(&packed);
	r->attachment_bytes += kept ? bytes : 0;
	return kept;
}

static void sentry_take_attachment(struct sentry_reading *r, const struct sentry_item *item)
{
	if (!r->attachments)
		r->attachments = arena_alloc(&r->oops.batch->arena,
					     FAULT_ATTACHMENTS_MAX * sizeof(*r->attachments));
	if (!r->attachments || r->attachment_count == FAULT_ATTACHMENTS_MAX ||
	    !r->options->attachment_max_bytes) {
		stat_add(STAT_fault_attachments_refused, 1);
		return;
	}
	struct fault_attachment *attachment = &r->attachments[r->attachment_count++];
	*attachment = (struct fault_attachment){.name = sentry_label(r, item, "filename"),
						.type = sentry_label(r, item, "content_type"),
						.bytes = item->payload.len};
	attachment->kept = sentry_keep_content(r, item, attachment);
	stat_add(STAT_fault_attachments_refused, !attachment->kept);
}

/* They go with the report of the envelope. Without one there is nothing that they are of. */
static void sentry_give_attachments(struct sentry_reading *r)
{
	if (!r->oops.batch->item_count) {
		stat_add(STAT_fault_attachments_refused, (int64_t)r->attachment_count);
		return;
	}
	struct fault_item *item = &r->oops.batch->items[0];
	item->attachments = r->attachments;
	item->facts.attachments = (int64_t)r->attachment_count;
}

/* ---- Envelopes ------------------------------------------------------------------------------- */

/* What is wrong with counts costs no event. */
static void sentry_read_counts(struct sentry_reading *r, const struct sentry_item *item)
{
	struct json *root;
	if (sentry_counts_has(item->type) && !json_parse_lax(item->payload, &r->tree, &root, NULL))
		sentry_counts_read(item->type, root, r->counts, &r->oops.batch->arena);
}

static bool sentry_is_event(const struct sentry_item *item)
{
	return slice_equal(item->type, SLICE("event"));
}

/* What an envelope has of what becomes a report, or a sample. */
static int sentry_read_item(struct sentry_reading *r, const struct sentry_item *item)
{
	bool is_transaction = slice_equal(item->type, SLICE("transaction"));
	struct json *event;
	sentry_count(item->type);
	sentry_read_counts(r, item);
	if (slice_equal(item->type, SLICE("attachment")))
		sentry_take_attachment(r, item);
	if ((!is_transaction && !sentry_is_event(item)) || r->oops.batch->count)
		return 0;
	int err = sentry_parse_event(r, item->payload, &event);
	if (err || !is_transaction)
		return err ? err : sentry_read_event(r, event);
	double ms = fault_sentry_duration_ms(event); /* NaN is not more */
	if (!r->options->slow_ms || !(ms > (double)r->options->slow_ms))
		return 0;
	stat_add(STAT_sentry_slow, 1);
	return sentry_read_event(r, event);
}

/* Reads the event that the envelope is cut in, if it is the only one. `err` is what is wrong with
 * the envelope; it is returned where no event can be read. */
static int sentry_read_cut(struct sentry_reading *r, const struct sentry_item *item, int err)
{
	struct errbuf e, *told = r->e;
	struct json *event;
	stat_add(STAT_sentry_cut, 1);
	if (r->oops.batch->item_count)
		return 0;
	if (!item->cut || !sentry_is_event(item) || r->oops.batch->count)
		return err;
	sentry_count(item->type);
	r->e = r->oops.e = &e;
	if (!sentry_parse_event(r, item->payload, &event)) {
		event->mended = JSON_CUT;
		err = sentry_read_event(r, event) ? err : 0;
	}
	r->e = r->oops.e = told;
	return err;
}

static int sentry_read_envelope(struct sentry_reading *r, struct slice body)
{
	struct sentry_envelope envelope;
	struct sentry_item item;
	int err = sentry_envelope_begin(&envelope, body, &r->tree, r->e);
	if (err)
		return err;
	sentry_take_id(r, envelope.headers);
	while (!(err = sentry_envelope_next(&envelope, &r->tree, &item, r->e))) {
		err = sentry_read_item(r, &item);
		if (err)
			return err;
	}
	if (err != ERR_NOT_FOUND)
		err = sentry_read_cut(r, &item, err);
	sentry_give_attachments(r);
	return err == ERR_NOT_FOUND ? 0 : err;
}

static int sentry_read_store(struct sentry_reading *r, struct slice body)
{
	struct sentry_store store;
	struct json *event;
	sentry_count(SLICE("event"));
	sentry_store_init(&store, OOPS_UNPACKED_MAX_BYTES);
	int err = sentry_store_unpack(&store, body, r->e);
	err = err ? err : sentry_parse_event(r, store.event, &event);
	err = err ? err : sentry_read_event(r, event);
	sentry_store_release(&store);
	return err;
}

int sentry_batch_read(struct oops_batch *batch, struct slice body,
		      const struct sentry_options *options, struct slice *id,
		      struct minute_counts *counts, struct errbuf *e)
{
	struct sentry_reading r = {.options = options, .counts = counts, .e = e};
	*counts = (struct minute_counts){.first = NULL};
	ASSERT(!batch->count);
	arena_init(&r.tree, OOPS_TREE_MAX_BYTES);
	oops_reading_init(&r.oops, batch, &options->report, e);
	r.oops.dialect = FAULT_OF_SENTRY;
	int err =
		options->is_envelope ? sentry_read_envelope(&r, body) : sentry_read_store(&r, body);
	*id = r.id;
	oops_reading_release(&r.oops);
	arena_release(&r.tree);
	return err;
}
