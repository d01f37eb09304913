/* A message as answers show it. */
#ifndef API_FAULT_MESSAGES_JSON_H
#define API_FAULT_MESSAGES_JSON_H

#include "fault/message.h"
#include "wire/json.h"

/* An object, without what the message does not have. */
void messages_put_json(struct json_writer *json, const struct fault_message *message);

#endif
