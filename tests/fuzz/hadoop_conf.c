/* Hadoop's configuration files: whatever is read is UTF-8 within the limits, and a file that is
 * written of what one said says the same. */
#include "base/buf.h"
#include "base/utf8.h"
#include "wire/hadoop_conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX_BYTES = 16 << 20 };

/* Each character that is not a letter or a digit by its number. */
static void write_text(struct buf *out, struct slice text)
{
	for (size_t at = 0, n; at < text.len; at += n) {
		const uint8_t *p = (const uint8_t *)text.data + at;
		n = utf8_length(p, text.len - at);
		ASSERT(n);
		uint32_t code = n == 1 ? *p : utf8_code(p, n);
		if (code < 0x80 && ((code | 0x20) - 'a' < 26 || code - '0' < 10))
			buf_append_char(out, (char)code);
		else
			buf_printf(out, "&#%u;", code);
	}
}

static void check_again(const struct hadoop_conf *conf, struct arena *arena)
{
	struct hadoop_conf again;
	struct buf out;
	buf_init(&out, MEMORY_MAX_BYTES);
	buf_append_text(&out, "<configuration>");
	for (const struct hadoop_property *p = conf->first; p; p = p->next) {
		buf_append_text(&out, "<property><name>");
		write_text(&out, p->name);
		buf_append_text(&out, "</name><value>");
		write_text(&out, p->value);
		buf_append_text(&out, p->final ? "</value><final>true</final></property>"
					       : "</value></property>");
	}
	buf_append_text(&out, "</configuration>");
	ASSERT(!out.failed);
	if (out.len <= HADOOP_CONF_MAX_BYTES) {
		ASSERT(!hadoop_conf_parse(buf_slice(&out), arena, &again, NULL));
		ASSERT(again.count == conf->count);
		const struct hadoop_property *q = again.first;
		for (const struct hadoop_property *p = conf->first; p; p = p->next, q = q->next)
			ASSERT(slice_equal(p->name, q->name) && slice_equal(p->value, q->value) &&
			       p->final == q->final);
	}
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	struct arena arena;
	struct hadoop_conf conf;
	struct errbuf e = {""};
	arena_init(&arena, MEMORY_MAX_BYTES);
	int err = hadoop_conf_parse((struct slice){bytes, size}, &arena, &conf, &e);
	ASSERT(!err || (err == ERR_INVALID && e.text[0]));
	if (!err) {
		size_t count = 0;
		unsigned line = 1;
		for (const struct hadoop_property *p = conf.first; p; p = p->next, count++) {
			ASSERT(p->name.len && p->name.len <= HADOOP_NAME_MAX_BYTES);
			ASSERT(p->value.len <= HADOOP_TEXT_MAX_BYTES && p->line >= line);
			line = p->line;
		}
		ASSERT(count == conf.count && count <= HADOOP_PROPERTIES_MAX);
		check_again(&conf, &arena);
	}
	arena_release(&arena);
	mem_free(bytes);
	return 0;
}
