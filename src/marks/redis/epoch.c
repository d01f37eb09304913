#include "marks/redis/epoch.h"

#include <hiredis/hiredis.h>

#include "base/mem.h"
#include "marks/redis/redis.h"
#include "store/wait.h"

enum { CELL_MAX_BYTES = 1 << 20 };

static const struct store_parts row = {{SLICE("rollup-track")}}, column = {{SLICE("redis")}};

/* ---- The text -------------------------------------------------------------------------------- */

/* Of the store that has one already. */
static void redis_epoch_make(struct redis_epoch *epoch, char text[EPOCH_MAX_BYTES])
{
	struct epoch_text parts;
	if (!epoch_text_read(slice_of(epoch->stored), &parts))
		parts.store = random_next(&epoch->random);
	parts.slot_s = epoch->options.slot_ms / 1000;
	parts.run = slice_of(epoch->run);
	parts.lot = random_next(&epoch->random);
	epoch_text_write(&parts, text);
}

static bool redis_epoch_is_of_another_store(const struct redis_epoch *epoch)
{
	struct epoch_text found, stored;
	if (!epoch->found[0])
		return false;
	return !epoch_text_read(slice_of(epoch->found), &found) ||
	       !epoch_text_read(slice_of(epoch->stored), &stored) || found.store != stored.store;
}

/* Since that was written nothing can have been lost. */
static bool redis_epoch_is_whole(const struct redis_epoch *epoch)
{
	struct epoch_text found;
	return epoch_text_read(slice_of(epoch->found), &found) &&
	       found.slot_s == epoch->options.slot_ms / 1000 &&
	       slice_equal(found.run, slice_of(epoch->run));
}

/* ---- The store's cell ------------------------------------------------------------------------ */

int redis_epoch_read(struct redis_epoch *epoch, struct store *store)
{
	struct task_queue queue;
	struct store_read *read = store_read_new(store, CELL_MAX_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	request->cell_get.table = TABLE_LEASES;
	request->cell_get.key = row;
	request->cell_get.column = column;
	task_queue_init(&queue);
	int err = store_read_wait(read, &queue);
	struct slice text = request->cell_get.cell.value;
	if (!err && request->cell_get.found && text.len < EPOCH_MAX_BYTES) {
		memcpy(epoch->stored, text.data, text.len);
		epoch->version = request->cell_get.cell.version;
	}
	task_queue_release(&queue);
	store_read_free(read);
	return err;
}

int marks_redis_void(struct store *store, struct task_queue *queue, struct errbuf *e)
{
	struct redis_epoch epoch = {.version = 0};
	struct epoch_text parts;
	char text[EPOCH_MAX_BYTES];
	int err = redis_epoch_read(&epoch, store);
	if (!err && !epoch.stored[0])
		return 0;
	if (!err) {
		random_init(&epoch.random, random_system_seed());
		if (!epoch_text_read(slice_of(epoch.stored), &parts))
			parts = (struct epoch_text){.run = SLICE("none")};
		parts.store = random_next(&epoch.random);
		epoch_text_write(&parts, text);
		err = store_put_if_wait(store, queue, TABLE_LEASES, &row, &column, epoch.version,
					slice_of(text));
	}
	return err ? errbuf_set(e, err, "the marks of roll-ups: %s", err_text(err)) : 0;
}

/* The store's epoch becomes `text`, if nobody else has changed it. False: it is another. */
static bool redis_epoch_keep(struct redis_epoch *epoch, const char *text)
{
	struct store_write *write = store_write_new(epoch->options.store, CELL_MAX_BYTES);
	struct store_write_cond *there;
	int err = store_cell_put_if(write, TABLE_LEASES, &row, &column, epoch->version,
				    slice_of(text), 0, &there);
	if (!err)
		err = store_write_wait(write, redis_client_queue(epoch->options.client));
	if (!err) {
		struct slice value = there->applied ? slice_of(text) : there->value;
		epoch->version = there->version;
		if (value.data && value.len < EPOCH_MAX_BYTES)
			snprintf(epoch->stored, sizeof(epoch->stored), "%.*s", (int)value.len,
				 value.data);
	}
	store_write_free(write);
	return !err && strcmp(epoch->stored, text) == 0;
}

void redis_epoch_restored(struct redis_epoch *epoch)
{
	if (epoch->present[0] && redis_epoch_keep(epoch, epoch->present))
		epoch->options.restored(epoch->options.owner);
}

/* ---- Greeting -------------------------------------------------------------------------------- */

static void redis_epoch_take_run(struct redis_epoch *epoch, const char *info)
{
	static const char name[] = "run_id:";
	const char *at = strstr(info, name);
	size_t len = at ? strcspn(at + sizeof(name) - 1, "\r\n ") : 0;
	if (len && len < sizeof(epoch->run))
		memcpy(epoch->run, at + sizeof(name) - 1, len);
}

static void redis_epoch_take_greeting(struct redis_request *request, size_t command,
				      const redisReply *reply)
{
	struct redis_epoch *epoch = request->owner;
	if (reply->type != REDIS_REPLY_STRING)
		return;
	if (command == 0)
		redis_epoch_take_run(epoch, reply->str);
	else
		snprintf(epoch->found, sizeof(epoch->found), "%s", reply->str);
}

static int redis_epoch_ask_who(struct redis_epoch *epoch)
{
	memset(epoch->found, 0, sizeof(epoch->found));
	memset(epoch->run, 0, sizeof(epoch->run));
	redis_request_clear(&epoch->request);
	redis_command(&epoch->request, SLICE("INFO"));
	redis_word(&epoch->request, SLICE("server"));
	redis_command(&epoch->request, SLICE("GET"));
	redis_word(&epoch->request, slice_of(epoch->options.key));
	epoch->request.answer = redis_epoch_take_greeting;
	int err = redis_ask_now(&epoch->request);
	return err || epoch->run[0] ? err : ERR_INVALID;
}

static void redis_epoch_adopt(struct redis_epoch *epoch)
{
	bool another = strcmp(epoch->found, epoch->present) != 0;
	bool first = !epoch->present[0];
	memcpy(epoch->present, epoch->found, sizeof(epoch->present));
	if (another && (!first || strcmp(epoch->present, epoch->stored) != 0))
		epoch->options.lost(epoch->options.owner,
				    first ? "not all of it has been marked again yet"
					  : "another process has found it emptied");
}

/* The first epoch of all is in the store before it is in Redis. NULL, or why there is none. */
static const char *redis_epoch_begin_new(struct redis_epoch *epoch)
{
	redis_epoch_make(epoch, epoch->present);
	if (epoch->stored[0])
		epoch->options.lost(epoch->options.owner,
				    epoch->found[0] ? "it was restarted, or slots were others"
						    : "it was emptied");
	else if (!redis_epoch_keep(epoch, epoch->present))
		return "its epoch could not be kept";
	redis_request_clear(&epoch->request);
	redis_command(&epoch->request, SLICE("SET"));
	redis_word(&epoch->request, slice_of(epoch->options.key));
	redis_word(&epoch->request, slice_of(epoch->present));
	epoch->request.answer = NULL;
	return redis_ask_now(&epoch->request) ? "its epoch could not be written" : NULL;
}

void redis_epoch_greet(struct redis_epoch *epoch)
{
	const char *why = NULL;
	if (redis_epoch_ask_who(epoch))
		why = "it does not say who it is (INFO)";
	else if (redis_epoch_is_of_another_store(epoch))
		why = "the database has the marks of another data directory: "
		      "empty it (FLUSHDB) or give another";
	else if (redis_epoch_is_whole(epoch))
		redis_epoch_adopt(epoch);
	else
		why = redis_epoch_begin_new(epoch);
	if (why)
		redis_client_refuse(epoch->options.client, why);
	else
		redis_client_ready(epoch->options.client);
}

/* ---- Looking --------------------------------------------------------------------------------- */

bool redis_epoch_seen(struct redis_epoch *epoch, const struct redisReply *reply)
{
	if (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, epoch->present) == 0)
		return true;
	redis_client_greet_again(epoch->options.client);
	return false;
}

static void redis_epoch_take_look(struct redis_request *request, UNUSED size_t command,
				  const redisReply *reply)
{
	(void)redis_epoch_seen(request->owner, reply);
}

/* An error breaks the connection, or is asked for again. */
void redis_epoch_look(struct redis_epoch *epoch)
{
	redis_request_clear(&epoch->request);
	redis_command(&epoch->request, SLICE("GET"));
	redis_word(&epoch->request, slice_of(epoch->options.key));
	epoch->request.answer = redis_epoch_take_look;
	(void)redis_ask_now(&epoch->request);
}

/* ---- Life ------------------------------------------------------------------------------------ */

void redis_epoch_init(struct redis_epoch *epoch, const struct redis_epoch_options *options)
{
	epoch->options = *options;
	random_init(&epoch->random, random_system_seed());
	epoch->request.owner = epoch;
	redis_request_init(&epoch->request, options->client);
}

void redis_epoch_release(struct redis_epoch *epoch)
{
	redis_request_release(&epoch->request);
}
