#include "api/reply_stream.h"

#include "base/log.h"
#include "http/http.h"

enum { PIECE_MAX_BYTES = 128 << 10 };

int sending_send(struct sending *sending, struct http_request *request, struct buf *out)
{
	int err = 0;
	if (!sending->streaming)
		http_stream_begin(request, sending->status, sending->content_type);
	sending->streaming = true;
	while (out->len && !err) {
		struct slice piece = buf_slice(out);
		if (piece.len > PIECE_MAX_BYTES)
			piece.len = PIECE_MAX_BYTES;
		err = http_stream_write(request, piece);
		if (!err || err == ERR_BUSY)
			buf_consume(out, piece.len);
	}
	sending->stalled = err == ERR_BUSY;
	return err;
}

void sending_end(struct sending *sending, struct http_request *request, struct slice whole,
		 const char *cut)
{
	if (!sending->streaming) {
		if (cut)
			http_reply_header(request, "X-Granary-Cut", cut);
		http_reply(request, sending->status, sending->content_type, whole);
		return;
	}
	if (cut)
		http_stream_trailer(request, "X-Granary-Cut", cut);
	http_stream_end(request);
}

void sending_fail(struct sending *sending, struct http_request *request, const char *what,
		  int status, const char *sentence)
{
	if (sending->streaming) {
		log_warn("%s was broken off: %s", what, sentence);
		http_stream_break(request);
		return;
	}
	http_reply_error(request, status, "%s", sentence);
}
