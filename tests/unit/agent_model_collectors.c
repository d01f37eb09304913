/* Collectors of the model of the agent: two, which know nothing of each other, and the net between
 * them and the agent, which cuts requests off, loses answers and gives those of somebody else. */
#include "agent_model.h"

#include <inttypes.h>

#include "agent/agent_private.h"

enum { STREAM_MAX_BYTES = 16 << 20 };

struct incarnation *model_incarnation_of(struct world *w, struct collector_of_sim *c, uint64_t id)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].id == id)
			return &c->list[i];
	if (c->count == INCARNATIONS_MAX) {
		fail(w, "there are too many incarnations");
		return &c->list[0];
	}
	struct incarnation *added = &c->list[c->count++];
	added->id = id;
	added->order = w->incarnations++;
	buf_init(&added->bytes, STREAM_MAX_BYTES);
	buf_init(&added->have, STREAM_MAX_BYTES);
	return added;
}

bool model_incarnation_take(struct world *w, struct incarnation *in, uint64_t begin,
			    struct slice data)
{
	size_t end = (size_t)begin + data.len;
	if (end > in->bytes.len) {
		size_t more = end - in->bytes.len;
		char *bytes = buf_reserve(&in->bytes, more), *have = buf_reserve(&in->have, more);
		if (!bytes || !have) {
			fail(w, "a stream of %zu bytes", end);
			return false;
		}
		memset(bytes, 0, more);
		memset(have, 0, more);
		in->bytes.len = in->have.len = end;
	}
	for (size_t i = 0; i < data.len; i++)
		if (in->have.data[begin + i] && in->bytes.data[begin + i] != data.data[i])
			return false;
	for (size_t i = 0; i < data.len; i++)
		w->repeated += in->have.data[begin + i] != 0;
	memcpy(in->bytes.data + begin, data.data, data.len);
	memset(in->have.data + begin, 1, data.len);
	return true;
}

static void collector_answer_chunk(struct world *w, struct collector_of_sim *c,
				   const struct chunk_frame *frame, struct buf *answer)
{
	struct buf data;
	struct arena arena;
	struct chunk_data chunk;
	const struct chunk_fields *fields = &frame->fields;
	bool later = chance(w, w->later_percent);
	buf_init(&data, CHUNK_DATA_MAX_BYTES + CHUNK_ENDS_MAX_BYTES);
	arena_init(&arena, 8 << 20);
	int err = chunk_frame_unpack(frame, &data, &arena, &chunk);
	if (err || !slice_equal(fields->names.name, SLICE(LOG)) ||
	    !slice_equal(fields->names.source, SLICE("host1")))
		fail(w, "a chunk that is none: %s", err_text(err));
	struct incarnation *in = model_incarnation_of(w, c, fields->incarnation);
	const char *line = chunk.data.data, *behind = line + chunk.data.len;
	while (line + LINE_DIGITS < behind && *line == '#')
		line = (const char *)memchr(line, '\n', (size_t)(behind - line)) + 1;
	tell(w, "%s: %" PRIu64 " to %" PRIu64 " of %016" PRIx64 ": %.*s", later ? "later" : "takes",
	     chunk_begin(fields), fields->sequence_id, fields->incarnation,
	     behind - line < LINE_DIGITS ? 0 : LINE_DIGITS, line);
	bool taken = !later && model_incarnation_take(w, in, chunk_begin(fields), chunk.data);
	w->others += !later && !taken;
	buf_printf(answer, "%s: %u bytes ending at offset %" PRIu64 "%s\n",
		   later   ? "later"
		   : taken ? "ok"
			   : "other",
		   fields->data_bytes, fields->sequence_id - 1, taken ? "" : ": why");
	if (taken) {
		size_t begin = (size_t)chunk_begin(fields), end = (size_t)fields->sequence_id;
		const char *have = in->have.data, *before = memrchr(have, 0, begin),
			   *behind_all = memchr(have + end, 0, in->have.len - end);
		buf_printf(answer, "held: %zu to %zu of %016" PRIx64 "\n",
			   before ? (size_t)(before + 1 - have) : 0,
			   behind_all ? (size_t)(behind_all - have) : in->have.len, in->id);
	}
	buf_release(&data);
	arena_release(&arena);
}

static void collector_post(struct world *w, struct collector_of_sim *c, struct slice body,
			   struct buf *answer)
{
	struct chunk_frame frame;
	const char *why;
	enum chunk_found found;
	w->posts++;
	if (w->forgotten)
		memset(w->excused, 1, w->lines);
	w->forgotten = false;
	while ((found = chunk_frame_next(&body, &frame, &why)) != CHUNK_NONE) {
		if (found == CHUNK_DAMAGED)
			fail(w, "a frame is damaged: %s", why);
		else
			collector_answer_chunk(w, c, &frame, answer);
	}
}

static void collector_list(struct collector_of_sim *c, struct buf *answer)
{
	buf_append_text(answer, "{\"streams\":[");
	for (size_t i = 0; i < c->count; i++) {
		const struct incarnation *in = &c->list[i];
		buf_printf(answer,
			   "%s{\"datatype\":\"app\",\"name\":\"" LOG
			   "\",\"incarnation\":\"%016" PRIx64 "\",\"made\":%zu,\"held_to\":%zu}",
			   i ? "," : "", in->id, i + 1, in->bytes.len);
	}
	buf_append_text(answer, "]}");
}

/* The answer is the bytes that are held from an offset on, to the next hole. */
static void collector_export(struct collector_of_sim *c, const char *path, struct buf *answer,
			     int64_t *offset)
{
	const char *from = strstr(path, "from="), *to = strstr(path, "to="),
		   *id = strstr(path, "%40");
	ASSERT(from && to && id);
	size_t begin = strtoul(from + 5, NULL, 10), end = strtoul(to + 3, NULL, 10);
	uint64_t incarnation = strtoull(id + 3, NULL, 16);
	for (size_t i = 0; i < c->count; i++) {
		const struct incarnation *in = &c->list[i];
		if (in->id != incarnation)
			continue;
		while (begin < in->have.len && !in->have.data[begin])
			begin++;
		*offset = (int64_t)begin;
		for (; begin < end && begin < in->have.len && in->have.data[begin]; begin++)
			buf_append_char(answer, in->bytes.data[begin]);
	}
}

void model_tell_plan(const struct world *w)
{
	const struct followed *f = w->agent->count ? w->agent->list[0] : NULL;
	char text[600];
	int len = 0;
	for (size_t i = 0; w->trace && f && i < f->plan_count && len < 400; i++) {
		const struct segment *segment = &f->plan[i];
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				" [%" PRIu64 ": %" PRIu64 "/%" PRIu64 " end %" PRId64 "%s]",
				segment->id.inode, segment->at, segment->bytes,
				(int64_t)segment->end, segment->content ? "" : " closed");
	}
	if (len)
		tell(w, "       %" PRIu64 "%s%s%s", f->offset, text, f->look_again ? " again" : "",
		     f->version > w->agent->site.saved_version ? " not saved" : "");
}

int model_net_call(struct agent_net *net, const char *collector, struct http_call *call,
		   struct errbuf *e)
{
	struct world *w = CONTAINER_OF(net, struct world, net);
	struct collector_of_sim *c = &w->collectors[strcmp(collector, "two") == 0];
	struct buf answer;
	model_tell_plan(w);
	bool cut = chance(w, w->cut_percent), arrives = !cut || chance(w, 50);
	if (!w->calm)
		clock_virtual_advance(&w->clock, (int64_t)pick(w, 200000));
	model_meanwhile(w);
	if (w->killed || (w->kinds.kills && !w->calm && chance(w, 1))) {
		w->killed = w->files.down = true;
		cut = true;
		arrives = chance(w, 50);
	}
	buf_init(&answer, 32 << 20);
	if (arrives && call->body.data)
		collector_post(w, c, call->body, &answer);
	else if (arrives && strncmp(call->path, "/api/streams/export", 19) == 0)
		collector_export(c, call->path, &answer, &call->offset);
	else if (arrives)
		collector_list(c, &answer);
	call->status = 200;
	if (chance(w, w->odd_percent)) {
		buf_clear(&answer);
		buf_append_text(&answer, "<html>ok: 3 bytes ending at offset 7\n</html>");
		call->status = 502;
	}
	int err = cut ? errbuf_set(e, ERR_TIMEOUT, "no answer") : 0;
	if (!err)
		call->take(call->owner, call->status, buf_slice(&answer));
	buf_release(&answer);
	model_meanwhile(w);
	return err;
}
