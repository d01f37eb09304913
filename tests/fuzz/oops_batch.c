/* Any bytes as a body of POST /oops: each report of it can be submitted, or a sentence says why
 * not; what is packed is the whole body again. */
#include "ingest/oops.h"

#include "fault_item.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_body(struct slice bytes, struct slice id, bool takes_array)
{
	const struct oops_options options = {.report = {1, &fault_masks_preset, BODY_MAX_BYTES},
					     .takes_array = takes_array};
	struct oops_batch batch;
	struct errbuf e = {""};
	size_t good = 0;
	oops_batch_init(&batch);
	int err = oops_batch_read(&batch, bytes, id, &options, &e);
	ASSERT(!err || (e.text[0] && (err == ERR_INVALID || err == ERR_LIMIT)));
	for (size_t i = 0; i < batch.count && !err; i++) {
		const struct oops_report *report = &batch.reports[i];
		ASSERT(report->err ? report->sentence[0] != 0 : report->item == good);
		good += !report->err;
	}
	ASSERT(err || good == batch.item_count);
	for (size_t i = 0; i < batch.item_count; i++)
		check_item(&batch.items[i]);
	oops_batch_release(&batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = {size ? (const char *)data : "", size};
	read_body(bytes, (struct slice){NULL, 0}, true);
	read_body(bytes, SLICE("OOPS-1"), false);
	return 0;
}
