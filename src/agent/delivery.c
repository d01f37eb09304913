/* Chunks on their way: packed, sent, and what the collector says of each (api/stream/streams.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_private.h"
#include "base/stats.h"
#include "wire/number.h"

enum {
	DELIVERY_LATER_MIN_MS = 250, /* a stream whose chunks are to be sent later; doubled up to */
	DELIVERY_LATER_MAX_MS = 30000,
};

void delivery_add(struct agent *agent, struct followed *f, const struct followed_chunk *chunk)
{
	struct agent_chunk *added = mem_zalloc(sizeof(*added));
	struct chunk_fields fields = chunk->fields;
	fields.tenant = agent_tenant(agent, f);
	fields.zone = agent->options.zone;
	added->f = f;
	added->after = chunk->after;
	added->begin = chunk_begin(&fields);
	buf_init(&added->frame, CHUNK_FRAME_MAX_BYTES);
	int err = chunk_frame_put(&fields, &chunk->data, agent->options.level, &added->frame);
	ASSERT(!err); /* names were checked, ends are bounded */
	*agent->pending_end = added;
	agent->pending_end = &added->next;
	agent->pending_bytes += fields.data_bytes;
	f->pending_count++;
}

static uint64_t delivery_bytes(const struct agent_chunk *chunk)
{
	return chunk->after.offset - chunk->begin;
}

/* Takes the chunk at *at off the list, and frees it. */
static void delivery_remove(struct agent *agent, struct agent_chunk **at)
{
	struct agent_chunk *chunk = *at;
	*at = chunk->next;
	if (agent->pending_end == &chunk->next)
		agent->pending_end = at;
	agent->pending_bytes -= delivery_bytes(chunk);
	if (!--chunk->f->pending_count)
		agent_activate(agent, chunk->f, agent_now_ms(agent));
	buf_release(&chunk->frame);
	mem_free(chunk);
}

void delivery_drop(struct agent *agent, struct followed *f)
{
	for (struct agent_chunk **at = &agent->pending; *at && f->pending_count;) {
		if ((*at)->f == f)
			delivery_remove(agent, at);
		else
			at = &(*at)->next;
	}
	followed_read_again(f);
}

/* ---- Troubles -------------------------------------------------------------------------------- */

bool delivery_rests(const struct agent *agent)
{
	return agent->rest_ms && agent_now_ms(agent) < agent->rest_until_ms;
}

/* The next collector is tried where there are several. */
void delivery_trouble(struct agent *agent, int64_t retry_after_ms, const char *why)
{
	int64_t now_ms = agent_now_ms(agent);
	int64_t ms = agent->rest_ms ? 2 * agent->rest_ms : AGENT_REST_MIN_MS;
	stat_add(STAT_agent_failures, 1);
	agent_set_problem(agent, why);
	log_rated(&agent->troubles, now_ms, LOG_WARN, "nothing is delivered at present: %s", why);
	ms = larger_of(ms, retry_after_ms);
	agent->rest_ms = smaller_of(ms, AGENT_REST_MAX_MS);
	agent->rest_until_ms = now_ms + agent->rest_ms;
	size_t next = (agent->collector + 1) % agent->options.collector_count;
	if (next != agent->collector)
		agent->report_ms = 0;
	agent->collector = next;
}

static void delivery_all_is_well(struct agent *agent)
{
	if (agent->rest_ms)
		log_info("%s takes chunks again", agent->options.collectors[agent->collector]);
	agent->rest_ms = 0;
	agent_set_problem(agent, NULL);
}

static bool delivery_take_answer(void *owner, UNUSED long status, struct slice piece)
{
	struct agent *agent = owner;
	return buf_append(&agent->answer, piece.data, piece.len) == 0;
}

static int delivery_call(struct agent *agent, struct http_call *call)
{
	struct errbuf why = {""};
	const char *collector = agent->options.collectors[agent->collector];
	call->take = delivery_take_answer;
	call->owner = agent;
	buf_clear(&agent->answer);
	int err = agent->options.net->call(agent->options.net, collector, call, &why);
	if (err)
		delivery_trouble(agent, 0, why.text);
	return err;
}

static void delivery_status(struct agent *agent, const struct http_call *call)
{
	char sentence[256];
	struct errbuf why = {""};
	http_client_sentence(buf_slice(&agent->answer), sentence, sizeof(sentence));
	const char *collector = agent->options.collectors[agent->collector];
	if (call->status == 200)
		errbuf_set(&why, ERR_BUSY,
			   "%s: status 200, and the answer (%zu bytes) does not say of each chunk "
			   "what has become of it",
			   collector, agent->answer.len);
	else
		errbuf_set(&why, ERR_BUSY, "%s: status %ld: %s", collector, call->status, sentence);
	delivery_trouble(agent, call->retry_after_ms, why.text);
}

int delivery_get(struct agent *agent, const char *path, struct http_call *call)
{
	char sentence[256];
	*call = (struct http_call){.path = path};
	int err = delivery_call(agent, call);
	if (err || call->status == 200)
		return err;
	http_client_sentence(buf_slice(&agent->answer), sentence, sizeof(sentence));
	log_rated(&agent->troubles, agent_now_ms(agent), LOG_WARN,
		  "%s answers %s with status %ld: %s", agent->options.collectors[agent->collector],
		  path, call->status, sentence);
	return call->status == 404 ? ERR_NOT_FOUND : ERR_BUSY;
}

/* ---- What was said of a chunk ---------------------------------------------------------------- */

struct delivery_line {
	struct slice word; /* `ok` of `ok: 100 bytes ending at offset 199: because ...` */
	struct slice rest;
	uint64_t bytes, last;
};

static bool delivery_take_text(struct slice *line, struct slice text)
{
	if (!slice_starts_with(*line, text))
		return false;
	*line = (struct slice){line->data + text.len, line->len - text.len};
	return true;
}

static bool delivery_take_number(struct slice *line, uint64_t *number)
{
	const char *end = line->data + line->len;
	const char *rest = number_scan_digits(line->data, end, number);
	bool any = rest != line->data;
	*line = (struct slice){rest, (size_t)(end - rest)};
	return any;
}

static bool delivery_parse(struct slice line, struct delivery_line *said)
{
	const char *colon = memchr(line.data, ':', line.len);
	if (!colon)
		return false;
	said->word = (struct slice){line.data, (size_t)(colon - line.data)};
	said->rest = (struct slice){colon, line.len - said->word.len};
	return delivery_take_text(&said->rest, SLICE(": ")) &&
	       delivery_take_number(&said->rest, &said->bytes) &&
	       delivery_take_text(&said->rest, SLICE(" bytes ending at offset ")) &&
	       delivery_take_number(&said->rest, &said->last) &&
	       (!said->rest.len || delivery_take_text(&said->rest, SLICE(": ")));
}

/* `held: 0 to 200 of 00c1d2e3f4a5b6c7`: all of the chunk, and in its incarnation. */
static bool delivery_is_held(struct slice line, const struct agent_chunk *chunk)
{
	char incarnation[STREAM_INCARNATION_DIGITS + 1];
	uint64_t begin, end;
	snprintf(incarnation, sizeof(incarnation), "%016" PRIx64, chunk->f->incarnation);
	return delivery_take_text(&line, SLICE("held: ")) && delivery_take_number(&line, &begin) &&
	       delivery_take_text(&line, SLICE(" to ")) && delivery_take_number(&line, &end) &&
	       delivery_take_text(&line, SLICE(" of ")) && begin <= chunk->begin &&
	       end >= chunk->after.offset && slice_equal(line, slice_of(incarnation));
}

/* A stream that is refused stops, and the others go on. */
static void delivery_refused(struct agent *agent, struct followed *f, struct slice why)
{
	char text[400];
	snprintf(text, sizeof(text), "%s refuses it: " SHOWN "; it is not sent any more",
		 agent->options.collectors[agent->collector], SHOWN_OF(why));
	log_error("%s: %s", f->path, text);
	stat_add(STAT_agent_stopped, 1);
	f->state = FOLLOWED_STOPPED;
	followed_note_problem(f, text);
	delivery_drop(agent, f);
}

/* Other bytes are held at these offsets: what comes now is another incarnation. */
static void delivery_other(struct agent *agent, struct followed *f, struct slice why)
{
	log_warn("%s: the collector has other bytes of this stream: " SHOWN
		 "; it goes on in another incarnation",
		 f->path, SHOWN_OF(why));
	stat_add(STAT_agent_renewed, 1);
	delivery_drop(agent, f);
	followed_renew(f);
}

static void delivery_later(struct agent *agent, struct followed *f, struct slice why)
{
	f->later_rest_ms = f->later_rest_ms
				   ? smaller_of(2 * f->later_rest_ms, DELIVERY_LATER_MAX_MS)
				   : DELIVERY_LATER_MIN_MS;
	f->later_ms = agent_now_ms(agent) + f->later_rest_ms;
	char text[400];
	snprintf(text, sizeof(text), "the collector does not take it yet: " SHOWN, SHOWN_OF(why));
	followed_set_problem(f, text);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static bool delivery_is_due(const struct agent_chunk *chunk, int64_t now_ms)
{
	return !chunk->delivered && chunk->f->later_ms <= now_ms;
}

/* Reads what the answer says of one chunk. False: it says nothing that fits. */
static bool delivery_judge_next(struct slice *text, struct agent_chunk *chunk,
				struct delivery_line *said)
{
	struct slice line;
	if (!slice_take_line(text, &line))
		return false;
	if (slice_starts_with(line, SLICE("damaged: "))) { /* it says not which */
		*said = (struct delivery_line){.word = SLICE("later"), .rest = line};
		return true;
	}
	if (!delivery_parse(line, said) || said->bytes != delivery_bytes(chunk) ||
	    said->last + 1 != chunk->after.offset)
		return false;
	if (!slice_equal(said->word, SLICE("ok")))
		return slice_equal(said->word, SLICE("later")) ||
		       slice_equal(said->word, SLICE("other")) ||
		       slice_equal(said->word, SLICE("refused"));
	if (!slice_take_line(text, &line) || !delivery_is_held(line, chunk))
		return false;
	chunk->delivered = true;
	chunk->f->later_rest_ms = 0;
	return true;
}

/* What a chunk is told stands for those of its file that come after it. */
static void delivery_judge(struct agent *agent, struct agent_chunk *chunk,
			   const struct delivery_line *said)
{
	if (slice_equal(said->word, SLICE("later")))
		delivery_later(agent, chunk->f, said->rest);
	else if (slice_equal(said->word, SLICE("other")))
		delivery_other(agent, chunk->f, said->rest);
	else if (slice_equal(said->word, SLICE("refused")))
		delivery_refused(agent, chunk->f, said->rest);
}

/* Acknowledges what is delivered without a gap, file by file. */
static bool delivery_acknowledge(struct agent *agent)
{
	bool any = false;
	for (struct agent_chunk *c = agent->pending; c; c = c->next)
		c->f->held_up = false;
	for (struct agent_chunk **at = &agent->pending; *at;) {
		struct agent_chunk *chunk = *at;
		if (!chunk->delivered || chunk->f->held_up) {
			chunk->f->held_up = true;
			at = &chunk->next;
			continue;
		}
		stat_add(STAT_agent_delivered_bytes, (int64_t)delivery_bytes(chunk));
		agent->unsaved_bytes += delivery_bytes(chunk);
		followed_acknowledge(chunk->f, &chunk->after);
		followed_set_problem(chunk->f, NULL);
		delivery_remove(agent, at);
		any = true;
	}
	return any;
}

struct delivery_verdict {
	struct agent_chunk *chunk;
	struct delivery_line said;
};

/* False: the answer is none of a collector, at least from some chunk on. *any: something is
 * delivered. */
static bool delivery_take(struct agent *agent, struct agent_chunk **sent, size_t count, bool *any)
{
	struct slice text = buf_slice(&agent->answer);
	struct delivery_verdict *verdicts = mem_alloc_array(count, sizeof(*verdicts));
	size_t said = 0, kept = 0;
	for (; said < count; said++) {
		struct delivery_verdict *verdict = &verdicts[kept];
		verdict->chunk = sent[said];
		if (!delivery_judge_next(&text, sent[said], &verdict->said))
			break;
		kept += !sent[said]->delivered;
	}
	*any = delivery_acknowledge(agent);
	/* A verdict may free the chunks of its file: one of each file is carried out. */
	for (size_t i = 0; i < kept; i++) {
		struct followed *f = verdicts[i].chunk ? verdicts[i].chunk->f : NULL;
		for (size_t j = i + 1; f && j < kept; j++)
			if (verdicts[j].chunk && verdicts[j].chunk->f == f)
				verdicts[j].chunk = NULL;
		if (f)
			delivery_judge(agent, verdicts[i].chunk, &verdicts[i].said);
	}
	mem_free(verdicts);
	return said == count;
}

static size_t delivery_gather(struct agent *agent, struct agent_chunk **sent)
{
	int64_t now_ms = agent_now_ms(agent);
	size_t count = 0;
	buf_clear(&agent->body);
	for (struct agent_chunk *c = agent->pending; c && count < AGENT_POST_CHUNKS_MAX;
	     c = c->next) {
		if (!delivery_is_due(c, now_ms))
			continue;
		if (buf_append(&agent->body, c->frame.data, c->frame.len))
			break;
		sent[count++] = c;
	}
	return count;
}

bool delivery_post(struct agent *agent)
{
	struct agent_chunk *sent[AGENT_POST_CHUNKS_MAX];
	size_t count = delivery_gather(agent, sent);
	if (!count)
		return false;
	struct http_call call = {
		.path = "/chukwa",
		.headers = {"Content-Type: application/octet-stream"},
		.body = buf_slice(&agent->body),
	};
	stat_add(STAT_agent_posts, 1);
	int err = delivery_call(agent, &call);
	if (err)
		return false;
	/* The deliveries of a part count, whatever comes behind it. */
	bool any, all = delivery_take(agent, sent, count, &any);
	if (!all)
		delivery_status(agent, &call);
	else if (any || call.status < 500)
		delivery_all_is_well(agent);
	return any;
}
