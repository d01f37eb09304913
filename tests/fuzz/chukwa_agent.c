/* Lines of Chukwa's agents: whatever is made of them lies within them, and a line that is written
 * of what one said says the same. */
#include "base/buf.h"
#include "wire/chukwa_agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_MAX_BYTES = 1 << 20 };

static void check_within(struct slice part, struct slice line)
{
	ASSERT(!part.len ||
	       (part.data >= line.data && part.data + part.len <= line.data + line.len));
}

static void check_adaptor(const struct chukwa_add *add)
{
	struct chukwa_adaptor adaptor;
	struct errbuf e = {""};
	if (chukwa_adaptor_read(add, &adaptor, &e)) {
		ASSERT(e.text[0]);
		return;
	}
	enum chukwa_kind kind = adaptor.class->kind;
	check_within(adaptor.path, add->params);
	check_within(adaptor.pattern, add->params);
	check_within(adaptor.child_name, add->params);
	ASSERT(adaptor.first <= CHUKWA_OFFSET_MAX);
	ASSERT((adaptor.path.len > 0) ==
	       (kind == CHUKWA_TAIL || kind == CHUKWA_FILE || kind == CHUKWA_DIRECTORY));
	ASSERT((adaptor.child != NULL) == (kind == CHUKWA_DIRECTORY));
	check_within(adaptor.command, add->params);
	check_within(adaptor.port, add->params);
	check_within(adaptor.uri, add->params);
	check_within(adaptor.checkers, add->params);
	ASSERT((adaptor.command.len > 0) == (kind == CHUKWA_EXEC));
	ASSERT((adaptor.uri.len > 0) == (kind == CHUKWA_REST));
	ASSERT((adaptor.checkers.len > 0) == (kind == CHUKWA_HEARTBEAT));
	struct slice left = adaptor.checkers, uri;
	while (!chukwa_take_checker(&left, &uri, NULL))
		check_within(uri, add->params);
}

/* As a checkpoint has it. */
static void check_again(const struct chukwa_add *add, struct arena *arena)
{
	struct chukwa_add again;
	struct buf out;
	buf_init(&out, 2 * CHUKWA_LINE_MAX_BYTES);
	buf_printf(&out, "ADD %.*s = %.*s %.*s %.*s %llu", (int)add->id.len, add->id.data,
		   (int)add->class.len, add->class.data, (int)add->datatype.len, add->datatype.data,
		   (int)add->params.len, add->params.len ? add->params.data : "",
		   (unsigned long long)add->offset);
	if (out.len <= CHUKWA_LINE_MAX_BYTES) {
		ASSERT(!chukwa_add_parse(buf_slice(&out), arena, &again, NULL));
		ASSERT(slice_equal(again.id, add->id) && slice_equal(again.class, add->class));
		ASSERT(slice_equal(again.datatype, add->datatype));
		ASSERT(slice_equal(again.params, add->params) && again.offset == add->offset);
	}
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	struct slice rest = {bytes, size}, line;
	struct arena arena;
	arena_init(&arena, ARENA_MAX_BYTES);
	while (slice_take_text_line(&rest, &line)) {
		struct chukwa_add add;
		struct errbuf e = {""};
		arena_reset(&arena);
		int err = chukwa_add_parse(line, &arena, &add, &e);
		ASSERT(!err || err == ERR_NOT_FOUND || (err == ERR_INVALID && e.text[0]));
		if (err)
			continue;
		check_within(add.class, line);
		check_within(add.datatype, line);
		check_within(add.params, line);
		ASSERT(add.id.len <= CHUKWA_ID_MAX_BYTES && add.offset <= CHUKWA_OFFSET_MAX);
		check_adaptor(&add);
		check_again(&add, &arena);
	}
	arena_release(&arena);
	mem_free(bytes);
	return 0;
}
