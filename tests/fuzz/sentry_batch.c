/* Any bytes as what Sentry's clients send, at both doors: there is one report that can be
 * submitted, or none, or a sentence says why not; the id that the client is told is 32 digits. The
 * last of the bytes is also a header with a key, and an address. */
#include "ingest/sentry.h"
#include "wire/sentry_auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX_BYTES = 1 << 20 };

static void check_report(const struct oops_batch *batch)
{
	struct buf body;
	const struct fault_item *item = batch->items;
	const struct fault_arrival arrival = {.body_bytes = item->body_bytes,
					      .packed = item->packed};
	buf_init(&body, BODY_MAX_BYTES);
	ASSERT(fault_id_valid(item->id));
	ASSERT(fault_body_unpack(&arrival, &body) == 0);
	ASSERT(body.len == item->body_bytes && body.len >= 2 && body.data[0] == '{');
	buf_release(&body);
}

static void read_body(struct slice bytes, bool is_envelope)
{
	const struct sentry_options options = {.report = {1, &fault_masks_preset, BODY_MAX_BYTES},
					       .is_envelope = is_envelope,
					       .slow_ms = 1};
	char digits[SENTRY_ID_BYTES];
	struct oops_batch batch;
	struct errbuf e = {""};
	struct slice id;
	oops_batch_init(&batch);
	int err = sentry_batch_read(&batch, bytes, &options, &id, &e);
	ASSERT(!err || (e.text[0] && (err == ERR_INVALID || err == ERR_LIMIT)));
	ASSERT(!id.len || sentry_id_parse(id, digits));
	ASSERT(err || batch.count <= 1);
	if (!err && batch.item_count)
		check_report(&batch);
	ASSERT(err || !batch.item_count || id.len);
	oops_batch_release(&batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = {size ? (const char *)data : "", size};
	struct sentry_dsn dsn;
	read_body(bytes, true);
	read_body(bytes, false);
	struct slice key = sentry_auth_key(bytes);
	ASSERT(key.len <= size);
	if (sentry_dsn_parse(bytes, &dsn))
		ASSERT(dsn.key.len && dsn.key.len < size);
	return 0;
}
