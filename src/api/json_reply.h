/* Private to api/: an answer in JSON that is short enough to be made at once. */
#ifndef API_JSON_REPLY_H
#define API_JSON_REPLY_H

#include "wire/json.h"

struct http_request;

struct json_reply {
	struct json_writer json;
	struct buf body;
};

/* To be written to, and then sent. */
struct json_writer *json_reply_begin(struct json_reply *reply, size_t max_bytes);
/* With status 200; 422 where max_bytes were not enough. The reply is released. */
void json_reply_send(struct json_reply *reply, struct http_request *request);

#endif
