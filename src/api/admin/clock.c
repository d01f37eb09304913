#include "api/admin/admin.h"

#include "api/json_reply.h"
#include "api/params.h"
#include "api/routes.h"
#include "base/clock_watch.h"
#include "base/log.h"
#include "wire/timetext.h"

enum { ANSWER_MAX_BYTES = 4096 };

void clock_sentence(const struct clock_judgement *judgement, char to[CLOCK_SENTENCE_MAX_BYTES])
{
	char shown[TIME_PRINT_MAX_BYTES], sure[TIME_PRINT_MAX_BYTES];
	int64_t left_us = CLOCK_STANDS_US - judgement->stood_us;
	int shown_len = (int)time_print(shown, floor_div(judgement->wall_us, 1000000) * 1000);
	int sure_len = (int)time_print(sure, floor_div(judgement->sure_us, 1000000) * 1000);
	snprintf(to, CLOCK_SENTENCE_MAX_BYTES,
		 "the clock shows %.*s, but by what is known it should be about %.*s; nothing "
		 "expires, so the disk may fill, until the clock is back or has stood for %lld s "
		 "more; if it is right: granary clock accept",
		 shown_len, shown, sure_len, sure, (long long)(left_us / 1000000));
}

static void reply_clock(struct http_request *request)
{
	struct clock_judgement judgement;
	char sentence[CLOCK_SENTENCE_MAX_BYTES];
	struct json_reply reply;
	clock_judge(api_of(request)->clock, &judgement);
	struct json_writer *json = json_reply_begin(&reply, ANSWER_MAX_BYTES);
	json_write_object_begin(json);
	json_put_bool(json, "doubted", judgement.doubted);
	json_put_i64(json, "shows", floor_div(judgement.wall_us, 1000));
	json_put_i64(json, "expected", floor_div(judgement.sure_us, 1000));
	json_put_i64(json, "stoodMs", judgement.stood_us / 1000);
	json_put_i64(json, "standsMs", CLOCK_STANDS_US / 1000);
	if (judgement.doubted) {
		clock_sentence(&judgement, sentence);
		json_put_text(json, "why", sentence);
	}
	json_write_object_end(json);
	json_reply_send(&reply, request);
}

static void clock_end(struct http_request *request)
{
	if (params_none(request))
		reply_clock(request);
}

static void accept_end(struct http_request *request)
{
	if (!params_none(request))
		return;
	struct clock *clock = api_of(request)->clock;
	if (clock_is_doubted(clock))
		log_warn("clock: what it shows is accepted, as asked for");
	clock_accept(clock);
	reply_clock(request);
}

const struct http_handler clock_handler = {.end = clock_end};
const struct http_handler clock_accept_handler = {.end = accept_end};
