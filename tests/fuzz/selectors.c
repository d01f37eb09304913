/* Selectors of tags: any text is read or refused with a sentence; what was read can be matched. */
#include "base/base.h"
#include "base/mem.h"
#include "catalog/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	struct catalog_selector list[CATALOG_SELECTORS_MAX];
	struct errbuf e = {""};
	struct arena arena;
	size_t count = 0;
	arena_init(&arena, 1 << 16);
	int err = catalog_selectors_parse(text, &arena, list, &count, &e);
	ASSERT(err == 0 ? count > 0 : e.text[0] != 0);
	for (size_t i = 0; !err && i < count; i++) {
		ASSERT(list[i].key.len > 0 && list[i].value_count > 0);
		const struct catalog_pattern *first = &list[i].values[0];
		/* A value made of the pieces alone matches: stars stand for nothing, too. */
		char value[4096];
		size_t len = 0;
		for (size_t p = 0; p < first->piece_count; p++) {
			if (first->pieces[p].len > sizeof(value) - len)
				break;
			memcpy(value + len, first->pieces[p].data, first->pieces[p].len);
			len += first->pieces[p].len;
		}
		if (size <= sizeof(value))
			ASSERT(selector_match(&list[i], (struct slice){value, len}));
		(void)selector_match(&list[i], text);
	}
	arena_release(&arena);
	return 0;
}
