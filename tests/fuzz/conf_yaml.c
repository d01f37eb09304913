/* The configuration file: whatever the bytes, an answer and no crash. */
#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct errbuf e;
	struct conf *conf = conf_new();
	if (conf_read_yaml(conf, "fuzz", (struct slice){(const char *)data, size}, &e))
		ASSERT(e.text[0]);
	conf_free(conf);
	return 0;
}
