/* The inventory that a poller elsewhere is given. What is taken can be written again. */
#include "base/buf.h"
#include "conf/conf.h"
#include "inventory/inventory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf *conf = conf_new();
	struct inventory_copy *copy = inventory_copy_new(SLICE("site"), conf, files_real());
	struct errbuf e = {""};
	struct buf text;
	buf_init(&text, 16 << 20);
	if (inventory_copy_read(copy, "f", (struct slice){(const char *)data, size}, &e)) {
		ASSERT(e.text[0]);
	} else {
		inventory_document_write(inventory_copy_snapshot(copy), SLICE("site"), &text);
		ASSERT(!text.failed);
		ASSERT(inventory_copy_read(copy, "g", buf_slice(&text), &e) == 0);
	}
	buf_release(&text);
	inventory_copy_free(copy);
	conf_free(conf);
	return 0;
}
