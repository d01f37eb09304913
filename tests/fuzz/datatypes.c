/* Rules and lines: the text up to the first empty line is a section `datatypes`, what follows are
 * lines. Whatever the bytes, a rule or a sentence; and what a rule reads, the catalog takes. */
#include "conf/conf.h"
#include "model/series.h"
#include "stream/datatypes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const struct datatype *rule, const struct datatype_record *record)
{
	ASSERT(rule->all_values || record->count == rule->value_count);
	ASSERT(rule->kind == DATATYPE_EVENTS || record->count);
	for (size_t i = 0; i < record->count; i++)
		ASSERT(!metric_check(record->numbers[i].metric, NULL));
	for (size_t i = 0; i < rule->tag_count; i++) {
		struct tag tag = {rule->tags[i].key, record->tags[i]};
		struct errbuf e = {""};
		if (tag.value.len && tags_sort_and_check(&tag, 1, &e))
			ASSERT(strstr(e.text, "bytes"));
	}
}

static void check_lines(const struct datatype *rule, struct slice rest)
{
	struct datatype_reader reader;
	struct datatype_record record;
	datatype_reader_init(&reader, rule);
	while (rest.len) {
		const char *newline = memchr(rest.data, '\n', rest.len);
		size_t len = newline ? (size_t)(newline - rest.data) : rest.len;
		if (datatype_read(&reader, (struct slice){rest.data, len}, &record) ==
		    DATATYPE_READ)
			check_record(rule, &record);
		len += newline != NULL;
		rest = (struct slice){rest.data + len, rest.len - len};
	}
	datatype_reader_release(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *empty = size ? memmem(text, size, "\n\n", 2) : NULL;
	size_t len = empty ? (size_t)(empty - text) : size;
	struct conf *conf = conf_new();
	struct datatypes *datatypes = NULL;
	struct errbuf e = {""};
	int err = conf_read_yaml(conf, "fuzz", (struct slice){text, len}, &e);
	err = err ? err : datatypes_read(conf->sections[CONF_SECTION_DATATYPES], &datatypes, &e);
	ASSERT(!err || e.text[0]);
	for (size_t i = 0; !err && i < datatypes->count; i++)
		if (datatypes->list[i].kind != DATATYPE_UNREAD)
			check_lines(&datatypes->list[i], (struct slice){text + len, size - len});
	datatypes_free(datatypes);
	conf_free(conf);
	return 0;
}
