/* The configuration file: whatever the bytes, an answer and no crash. */
#include "conf/conf.h"
#include "inventory/inventory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct errbuf e;
	struct conf *conf = conf_new();
	struct inventory_conf *inventory = NULL;
	int err = conf_read_yaml(conf, "fuzz", (struct slice){(const char *)data, size}, &e);
	/* Its sections, but no file that it names. */
	conf->snmp_secrets_file = "";
	conf->snmp_oidset_files.count = 0;
	if (!err)
		err = inventory_conf_read(conf, files_real(), &inventory, &e);
	ASSERT(!err || e.text[0]);
	inventory_conf_release(inventory);
	conf_free(conf);
	return 0;
}
