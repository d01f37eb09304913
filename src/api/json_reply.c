#include "api/json_reply.h"

#include "http/http.h"

struct json_writer *json_reply_begin(struct json_reply *reply, size_t max_bytes)
{
	buf_init(&reply->body, max_bytes);
	json_writer_init(&reply->json, &reply->body);
	return &reply->json;
}

void json_reply_send(struct json_reply *reply, struct http_request *request)
{
	ASSERT(!reply->json.depth); /* whole */
	if (reply->body.failed)
		http_reply_error(request, 422, "the answer is too long");
	else
		http_reply(request, 200, "application/json", buf_slice(&reply->body));
	buf_release(&reply->body);
}
