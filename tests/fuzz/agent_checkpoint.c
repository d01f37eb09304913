/* Any lines as those of an agent's checkpoint, with their checksum: whatever is in them, the agent
 * starts, and what it has taken of them is the same when it is written and read again. The same of
 * any bytes as a note of the spool. */
#include <inttypes.h>

#include "../unit/agent_files.h"
#include "agent/agent_private.h"
#include "agent/spool_noted.h"
#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX_BYTES = 4 << 20, HEAD_MAX_BYTES = 128 };

static int nobody_answers(UNUSED struct agent_net *net, UNUSED const char *collector,
			  UNUSED struct http_call *call, UNUSED struct errbuf *e)
{
	return ERR_FAULT;
}

/* As doc/format-checkpoint.md says. */
static void put_checkpoint(struct sim_files *sim, const char *name, struct slice lines)
{
	char head[HEAD_MAX_BYTES];
	struct sim_file *file = sim_make(sim, name);
	int len = snprintf(head, sizeof(head),
			   "granary agent checkpoint 1 %020d %012zu %08" PRIx32 "\n", 1, lines.len,
			   crc32c(0, lines.data, lines.len));
	sim_append(sim, file, head, (size_t)len);
	sim_append(sim, file, lines.data, lines.len);
}

/* What is behind the first line of what an agent writes that has read these lines. */
static void write_again(struct slice lines, struct buf *out)
{
	static const char *const collectors[] = {"nobody"};
	static struct sim_files sim;
	struct agent_net net = {.call = nobody_answers};
	struct clock_virtual clock;
	struct errbuf e = {""};
	clock_virtual_init(&clock, 1795953600000000);
	sim_files_init(&sim, &clock.clock);
	put_checkpoint(&sim, "/state/checkpoint.1", lines);
	struct agent *agent = agent_new(&(struct agent_options){
		.files = &sim.files,
		.clock = &clock.clock,
		.net = &net,
		.directory = "/state",
		.source = SLICE("host1"),
		.cluster = SLICE("c"),
		.collectors = collectors,
		.collector_count = 1,
		.open_max = 20,
	});
	ASSERT(!agent_start(agent, &e));
	buf_init(out, OUT_MAX_BYTES);
	if (!checkpoint_save(agent, &e)) { /* though it is what was read */
		const struct sim_file *file = sim_find(&sim, "/state/checkpoint.0");
		ASSERT(file);
		const char *newline = memchr(file->bytes.data, '\n', file->bytes.len);
		ASSERT(newline);
		size_t head = (size_t)(newline + 1 - file->bytes.data);
		buf_append(out, newline + 1, file->bytes.len - head);
	}
	agent_free(agent);
	sim_files_release(&sim);
}

static void read_note(struct slice text)
{
	struct spool_noted noted, again;
	struct buf out;
	if (!spool_noted_decode(text, &noted))
		return;
	buf_init(&out, SPOOL_NOTED_MAX_BYTES);
	spool_noted_encode(&noted, &out);
	ASSERT(!out.failed && spool_noted_decode(buf_slice(&out), &again));
	ASSERT(slice_equal(noted.note, again.note) && slice_equal(noted.records, again.records));
	ASSERT(file_id_equal(&noted.file, &again.file) && noted.at == again.at);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf first, second;
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	write_again((struct slice){bytes, size}, &first);
	write_again(buf_slice(&first), &second);
	ASSERT(slice_equal(buf_slice(&first), buf_slice(&second)));
	read_note((struct slice){bytes, size});
	buf_release(&first);
	buf_release(&second);
	mem_free(bytes);
	return 0;
}
