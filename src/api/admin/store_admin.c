#include "api/admin/admin.h"

#include "api/admin/memory_json.h"
#include "api/admin/store_json.h"
#include "api/admin/store_verify.h"
#include "api/call.h"

enum {
	SLICE_MAX_BYTES = 16 << 20,
	ANSWER_MAX_BYTES = 1 << 20,
	SENTENCES_MAX = 1000,
	SENTENCES_MAX_BYTES = 256 << 10,
};

struct admin {
	struct api_call call;
	enum store_op op;
	struct store_read *read;
	struct store_request *slice;
	struct store_token token;
	struct store_stats stats;
	bool all_words;
	uint64_t checked, problems, orphans;
	const char *sentences[SENTENCES_MAX]; /* in the arena */
	size_t sentence_count;
};

struct verify_question {
	bool words;
};

static const struct api_call_kind admin_kind;

static struct admin *admin_of(struct api_call *call)
{
	ASSERT(call->kind == &admin_kind);
	return CONTAINER_OF(call, struct admin, call);
}

static void admin_ended(struct api_call *call)
{
	store_read_free(admin_of(call)->read);
}

static void answer_error(struct admin *admin, int err)
{
	api_call_fail(&admin->call, http_status_of(err), "the store could not be read: %s",
		      store_read_sentence(admin->read, err));
}

static void keep_sentence(void *owner, const char *sentence)
{
	struct admin *admin = owner;
	if (admin->sentence_count == SENTENCES_MAX)
		return;
	struct slice copy = arena_copy(&admin->call.arena, slice_of(sentence));
	if (copy.data)
		admin->sentences[admin->sentence_count++] = copy.data;
}

static void verify_tables_run(struct api_call *call)
{
	struct admin *admin = admin_of(call);
	struct tables_verify tables = {.store = call->api->store,
				       .clock = call->api->clock,
				       .queue = job_queue(call->job),
				       .all_words = admin->all_words,
				       .tell = keep_sentence,
				       .owner = admin};
	call->err = store_verify_tables(&tables);
	admin->checked += tables.checked;
	admin->problems += tables.problems;
	admin->orphans = tables.orphans;
}

static void verify_tables_over(struct api_call *call)
{
	struct admin *admin = admin_of(call);
	if (!call->request)
		return;
	if (call->err) {
		api_call_fail_with(call, call->err, "");
		return;
	}
	const struct store_verified found = {admin->checked, admin->problems, admin->orphans,
					     admin->sentences, admin->sentence_count};
	store_verify_json(&found, &call->json);
	api_call_end(call);
}

static const struct api_call_kind admin_kind = {.arena_max_bytes = SENTENCES_MAX_BYTES,
						.out_max_bytes = ANSWER_MAX_BYTES,
						.ended = admin_ended,
						.job_name = "verify",
						.run = verify_tables_run,
						.over = verify_tables_over};

/* Verify still has to look at the tables; a job does that. */
static void store_admin_answer(struct admin *admin)
{
	if (admin->op == STORE_VERIFY) {
		api_call_start_job(&admin->call);
		return;
	}
	store_stats_json(&admin->stats, memory_json, &admin->call.json);
	api_call_end(&admin->call);
}

/* Reads on from the token. */
static void next_slice(struct admin *admin)
{
	store_read_reset(admin->read);
	admin->slice = store_read_add(admin->read, admin->op);
	ASSERT(admin->slice);
	admin->slice->token = admin->token;
	if (admin->op == STORE_STATS)
		*admin->slice->stats = admin->stats;
	else
		admin->slice->verify = (struct store_verify){.checked = admin->checked,
							     .problems = admin->problems};
	admin->read->now_ms = clock_wall_ms(admin->call.api->clock);
	int err = store_read_submit(admin->read);
	if (err)
		answer_error(admin, err);
}

static void store_admin_take_slice(struct admin *admin)
{
	const struct store_request *slice = admin->slice;
	admin->token = slice->token;
	if (admin->op == STORE_STATS) {
		admin->stats = *slice->stats;
		return;
	}
	admin->checked = slice->verify.checked;
	admin->problems = slice->verify.problems;
	for (size_t i = 0; i < slice->verify.sentence_count; i++)
		keep_sentence(admin, slice->verify.sentences[i]);
}

static void slice_done(struct store_read *read, int err)
{
	struct admin *admin = admin_of(api_call_from(read->owner));
	ASSERT(read == admin->read);
	if (err) {
		answer_error(admin, err);
		return;
	}
	store_admin_take_slice(admin);
	if (admin->slice->more)
		next_slice(admin);
	else
		store_admin_answer(admin);
}

static void store_admin_begin(struct http_request *request, enum store_op op, bool all_words)
{
	struct api *api = api_of(request);
	if (http_reply_head(request, "application/json"))
		return;
	struct admin *admin = mem_zalloc(sizeof(*admin));
	api_call_init(&admin->call, request, &admin_kind);
	admin->op = op;
	admin->all_words = all_words;
	admin->read = store_read_new(api->store, SLICE_MAX_BYTES);
	admin->read->executor = loop_executor(api->loop);
	admin->read->done = slice_done;
	admin->read->owner = admin;
	next_slice(admin);
}

static void stats_end(struct http_request *request)
{
	store_admin_begin(request, STORE_STATS, false);
}

const struct param verify_params[] = {
	{"words", PARAM_FLAG, offsetof(struct verify_question, words),
	 .help = "Looks for all words of each block of streams in its filter, not only of some."},
	{NULL}};

static void verify_end(struct http_request *request)
{
	struct verify_question question = {.words = false};
	struct errbuf e = {""};
	if (params_read_route(request, 0, &question, &e))
		http_reply_error(request, 400, "%s", e.text);
	else
		store_admin_begin(request, STORE_VERIFY, question.words);
}

const struct http_handler store_admin_stats = API_CALL_HANDLER(stats_end);
const struct http_handler store_admin_verify = API_CALL_HANDLER(verify_end);
