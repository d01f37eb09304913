/* GET /api/streams/export: the bytes of a stream, as they were sent. */
#include "api/stream/streams.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/call.h"
#include "api/stream/which.h"
#include "stream/chunk_reader.h"
#include "stream/streams.h"

enum {
	EXPORT_LIMIT = 4 << 20,
	EXPORT_LIMIT_MAX = 16 << 20,
	EXPORT_ARENA_MAX_BYTES = 64 << 10,
	EXPORT_OFFSET_BYTES = 24,
};

struct export_question {
	struct which_stream which;
	uint64_t from, to, limit;
};

struct export_call {
	struct api_call call;
	struct export_question asked; /* texts in the call's arena */
	struct stream_id id;
	uint64_t begin; /* of what is answered */
	uint64_t lost;  /* bytes in front of it that are held and cannot be read */
};

static const struct api_call_kind export_kind;

static struct export_call *export_call_of(struct api_call *call)
{
	ASSERT(call->kind == &export_kind);
	return CONTAINER_OF(call, struct export_call, call);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool export_is_damage(int err)
{
	return err == ERR_DAMAGED || err == ERR_VERSION;
}

/* Moves behind bytes of blocks that cannot be read. What is in no block tells nobody where it
 * ends. */
static int export_skip_lost(struct export_call *call, struct chunk_reader *reader, int damage)
{
	struct offset_range lost;
	uint64_t at = reader->at;
	int err = chunk_reader_skip_lost(reader, &lost);
	if (!err && lost.begin == lost.end)
		return errbuf_prefix(&call->call.error, damage,
				     "the bytes from offset %" PRIu64 " on cannot be read", at);
	call->lost += lost.end - lost.begin;
	call->begin = lost.end;
	return err;
}

/* Pieces up to the first hole, the first bytes that cannot be read, or the limit. Where such bytes
 * come first, the answer begins behind them. */
static int export_read_pieces(struct export_call *call, struct chunk_reader *reader)
{
	struct stream_piece piece;
	struct buf *out = &call->call.out;
	const uint64_t limit = call->asked.limit;
	int err = 0;
	while (!err && out->len < limit) {
		err = chunk_reader_next_readable(reader, &piece);
		if (export_is_damage(err) && out->len)
			return 0;
		if (export_is_damage(err)) {
			err = export_skip_lost(call, reader, err);
			continue;
		}
		if (err || !piece.data.len)
			break;
		if (!out->len)
			call->begin = piece.begin;
		if (piece.begin != call->begin + out->len)
			break;
		err = buf_append(out, piece.data.data,
				 smaller_of(piece.data.len, (size_t)limit - out->len));
	}
	return err;
}

static int export_read(struct export_call *call, const struct stream_known *known)
{
	struct chunk_reader reader;
	chunk_reader_init(&reader, streams_site(call->call.api->streams), job_queue(call->call.job),
			  &call->id, &known->sealed, &known->held, call->asked.from, call->asked.to,
			  &call->call.error);
	int err = export_read_pieces(call, &reader);
	chunk_reader_release(&reader);
	return err;
}

/* Where a chunk that waits cannot be read, the blocks are given, and then the error. */
static int export_read_blocks(struct export_call *call, struct stream_known *known, int damage)
{
	struct api_call *base = &call->call;
	const struct errbuf why = base->error;
	int err = stream_known_read_blocks(known, streams_site(base->api->streams),
					   job_queue(base->job), &call->id, &base->error);
	err = err ? err : export_read(call, known);
	if (err || base->out.len || call->lost)
		return err;
	base->error = why;
	return damage;
}

static void export_run(struct api_call *base)
{
	struct export_call *call = export_call_of(base);
	struct stream_known known = {.made = false};
	call->begin = call->asked.from;
	int err = stream_known_read(&known, streams_site(base->api->streams), job_queue(base->job),
				    &call->id, 0, &base->error);
	if (!err && !known.made)
		err = errbuf_set(&base->error, ERR_NOT_FOUND, "there is no stream `" SHOWN "`",
				 SHOWN_OF(call->asked.which.stream));
	else if (!err)
		err = export_read(call, &known);
	else if (export_is_damage(err))
		err = export_read_blocks(call, &known, err);
	if (export_is_damage(err))
		errbuf_prefix(&base->error, err, "stream `" SHOWN "`",
			      SHOWN_OF(call->asked.which.stream));
	base->err = err;
	stream_known_release(&known);
}

static void export_over(struct api_call *base)
{
	struct export_call *call = export_call_of(base);
	char offset[EXPORT_OFFSET_BYTES], lost[EXPORT_OFFSET_BYTES];
	if (!base->request)
		return;
	if (base->err) {
		buf_clear(&base->out);
		api_call_fail_with(base, base->err, base->error.text);
		return;
	}
	snprintf(offset, sizeof(offset), "%" PRIu64, call->begin);
	http_reply_header(base->request, "X-Granary-Offset", offset);
	snprintf(lost, sizeof(lost), "%" PRIu64, call->lost);
	if (call->lost)
		http_reply_header(base->request, "X-Granary-Lost", lost);
	base->content_type = "application/octet-stream";
	api_call_end(base);
}

static const struct api_call_kind export_kind = {.arena_max_bytes = EXPORT_ARENA_MAX_BYTES,
						 .out_max_bytes = EXPORT_LIMIT_MAX,
						 .job_name = "export",
						 .run = export_run,
						 .over = export_over};

/* ---- What is asked --------------------------------------------------------------------------- */

#define EXPORT_FIELD(field_) offsetof(struct export_question, field_)

const struct param streams_export_params[] = {
	WHICH_STREAM(struct export_question),
	{"from", PARAM_NUMBER, EXPORT_FIELD(from), 0, INT64_MAX,
	 .help = "The first offset; the first that is held."},
	{"to", PARAM_NUMBER, EXPORT_FIELD(to), 0, INT64_MAX,
	 .help = "The offset behind the last; all that is held."},
	{"limit", PARAM_NUMBER, EXPORT_FIELD(limit), 1, EXPORT_LIMIT_MAX,
	 .help = "At most so many bytes; 4 MiB."},
	{NULL}};

static void export_end(struct http_request *request)
{
	struct export_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &export_kind);
	api_call_set_deadline(&call->call);
	call->asked = (struct export_question){.to = INT64_MAX, .limit = EXPORT_LIMIT};
	int err = params_read_route(request, 0, &call->asked, &e);
	err = err ? err : which_stream_keep(&call->asked.which, &call->call.arena, &call->id, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler streams_export = API_CALL_HANDLER(export_end);
