/* Any bytes as what Sentry's clients send, at both doors: there is one report that can be
 * submitted, or none, or a sentence says why not; the id that the client is told is 32 digits. The
 * last of the bytes is also a header with a key, and an address. */
#include "ingest/sentry.h"
#include "wire/sentry_auth.h"

#include "fault_item.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_body(struct slice bytes, bool is_envelope)
{
	const struct sentry_options options = {.report = {1, &fault_masks_preset, BODY_MAX_BYTES},
					       .is_envelope = is_envelope,
					       .slow_ms = 1};
	char digits[SENTRY_ID_BYTES];
	struct oops_batch batch;
	struct errbuf e = {""};
	struct minute_counts counts;
	struct slice id;
	oops_batch_init(&batch);
	int err = sentry_batch_read(&batch, bytes, &options, &id, &counts, &e);
	ASSERT(!err || (e.text[0] && (err == ERR_INVALID || err == ERR_LIMIT)));
	ASSERT(!id.len || sentry_id_parse(id, digits));
	ASSERT(err || batch.count <= 1);
	ASSERT(counts.count <= MINUTE_COUNTS_MAX);
	if (!err && batch.item_count)
		check_item(batch.items);
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
