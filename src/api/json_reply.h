/* Private to api/: an answer in JSON that is short enough to be made at once. */
#ifndef API_JSON_REPLY_H
#define API_JSON_REPLY_H

#include "wire/json.h"

struct http_request;

struct json_reply {
	struct json_writer json;
	struct buf body;
};

/* To be written to, and then sent. What does not fit in max_bytes is left out, so they have to be
 * more than there can be. */
struct json_writer *json_reply_begin(struct json_reply *reply, size_t max_bytes);
/* With status 200; the reply is released. */
void json_reply_send(struct json_reply *reply, struct http_request *request);

#endif
