/* What is thought of the wall clock, by which stored data expires: GET /api/clock; and that what it
 * shows is right: POST /api/clock/accept. */
#ifndef API_ADMIN_CLOCK_H
#define API_ADMIN_CLOCK_H

#include "base/clock.h"
#include "http/http.h"

extern const struct http_handler clock_handler, clock_accept_handler;

enum { CLOCK_SENTENCE_MAX_BYTES = 400 };

/* Says why nothing expires while the clock is doubted, and what ends that. */
void clock_sentence(const struct clock_judgement *judgement, char to[CLOCK_SENTENCE_MAX_BYTES]);

#endif
