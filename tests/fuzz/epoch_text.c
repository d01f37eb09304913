/* Any bytes as the text of an epoch: what is taken for one lies within it, and written and read
 * again it says the same. */
#include "marks/redis/epoch_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	struct epoch_text epoch, again;
	char written[EPOCH_MAX_BYTES];
	if (!epoch_text_read(text, &epoch))
		return 0;
	ASSERT(epoch.run.len && epoch.run.len < RUN_MAX_BYTES && epoch.slot_s >= 0);
	ASSERT(epoch.run.data > text.data && epoch.run.data + epoch.run.len < text.data + size);
	if (memchr(epoch.run.data, 0, epoch.run.len))
		return 0; /* none that Redis can have said, and not to be written as one */
	epoch_text_write(&epoch, written);
	bool read = epoch_text_read(slice_of(written), &again);
	ASSERT(read && epoch.store == again.store && epoch.lot == again.lot);
	ASSERT(epoch.slot_s == again.slot_s && slice_equal(epoch.run, again.run));
	return 0;
}
