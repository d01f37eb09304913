#include "marks/redis/epoch.h"

#include <hiredis/hiredis.h>

#include "base/mem.h"
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

static void redis_epoch_set_key(struct redis_epoch *epoch);

static bool redis_epoch_begin_writing(struct redis_epoch *epoch)
{
	pthread_mutex_lock(&epoch->lock);
	bool may = !epoch->closing && !epoch->writing;
	epoch->writing |= may;
	pthread_mutex_unlock(&epoch->lock);
	return may;
}

static void redis_epoch_end_writing(struct redis_epoch *epoch)
{
	pthread_mutex_lock(&epoch->lock);
	epoch->writing = false;
	pthread_cond_broadcast(&epoch->over);
	pthread_mutex_unlock(&epoch->lock);
}

void redis_epoch_close(struct redis_epoch *epoch)
{
	pthread_mutex_lock(&epoch->lock);
	epoch->closing = true;
	while (epoch->writing)
		pthread_cond_wait(&epoch->over, &epoch->lock);
	pthread_mutex_unlock(&epoch->lock);
}

/* False: it cannot be for now. */
static bool redis_epoch_keep(struct redis_epoch *epoch, const char *text)
{
	if (!redis_epoch_begin_writing(epoch))
		return false;
	snprintf(epoch->written, sizeof(epoch->written), "%s", text);
	store_write_reset(epoch->write);
	int err = store_cell_put_if(epoch->write, TABLE_LEASES, &row, &column, epoch->version,
				    slice_of(epoch->written), 0, &epoch->outcome);
	if (!err)
		err = store_write_submit(epoch->write);
	if (err)
		redis_epoch_end_writing(epoch);
	return !err;
}

static void redis_epoch_take_cell(struct redis_epoch *epoch)
{
	const struct store_write_cond *there = epoch->outcome;
	epoch->version = there->version;
	if (there->applied)
		memcpy(epoch->stored, epoch->written, sizeof(epoch->stored));
	else if (there->value.data && there->value.len < EPOCH_MAX_BYTES)
		snprintf(epoch->stored, sizeof(epoch->stored), "%.*s", (int)there->value.len,
			 there->value.data);
}

/* The first epoch of all is in the store before it is in Redis. */
static void redis_epoch_on_kept(struct store_write *write, int err)
{
	struct redis_epoch *epoch = write->owner;
	bool first = !epoch->stored[0];
	if (!err)
		redis_epoch_take_cell(epoch);
	redis_epoch_end_writing(epoch);
	if (first && (err || !epoch->outcome->applied)) {
		epoch->greeting = false;
		redis_client_refuse(epoch->options.client, "its epoch could not be kept");
	} else if (first) {
		redis_epoch_set_key(epoch);
	} else if (strcmp(epoch->stored, epoch->present) == 0) {
		epoch->options.restored(epoch->options.owner);
	}
}

void redis_epoch_restored(struct redis_epoch *epoch)
{
	if (epoch->present[0])
		(void)redis_epoch_keep(epoch, epoch->present);
}

/* ---- Greeting -------------------------------------------------------------------------------- */

static void redis_epoch_on_set(struct redis_request *request, int err)
{
	struct redis_epoch *epoch = request->owner;
	epoch->greeting = false;
	if (err)
		redis_client_refuse(epoch->options.client, "its epoch could not be written");
	else
		redis_client_ready(epoch->options.client);
}

static void redis_epoch_set_key(struct redis_epoch *epoch)
{
	redis_request_clear(&epoch->set);
	redis_command(&epoch->set, 3);
	redis_word(&epoch->set, SLICE("SET"));
	redis_word(&epoch->set, slice_of(epoch->options.key));
	redis_word(&epoch->set, slice_of(epoch->present));
	redis_ask(&epoch->set);
}

static void redis_epoch_adopt(struct redis_epoch *epoch)
{
	bool another = strcmp(epoch->found, epoch->present) != 0;
	bool first = !epoch->present[0];
	memcpy(epoch->present, epoch->found, sizeof(epoch->present));
	if (another && (!first || strcmp(epoch->present, epoch->stored) != 0))
		epoch->options.lost(epoch->options.owner,
				    first ? "not all of it has been marked anew yet"
					  : "another process has found it emptied");
	epoch->greeting = false;
	redis_client_ready(epoch->options.client);
}

static void redis_epoch_begin_new(struct redis_epoch *epoch)
{
	redis_epoch_make(epoch, epoch->present);
	if (!epoch->stored[0]) {
		epoch->greeting = redis_epoch_keep(epoch, epoch->present);
		if (!epoch->greeting)
			redis_client_refuse(epoch->options.client, "the store is busy");
		return;
	}
	epoch->options.lost(epoch->options.owner, epoch->found[0]
							  ? "it was restarted, or slots were others"
							  : "it was emptied");
	redis_epoch_set_key(epoch);
}

static void redis_epoch_on_greeted(struct redis_request *request, int err)
{
	struct redis_epoch *epoch = request->owner;
	if (!err && !redis_epoch_is_of_another_store(epoch) && epoch->run[0]) {
		if (redis_epoch_is_whole(epoch))
			redis_epoch_adopt(epoch);
		else
			redis_epoch_begin_new(epoch);
		return;
	}
	epoch->greeting = false;
	if (!err && epoch->run[0])
		redis_client_refuse(epoch->options.client,
				    "the database has the marks of another data directory: "
				    "empty it (FLUSHDB) or give another");
	else
		redis_client_refuse(epoch->options.client, "it does not say who it is (INFO)");
}

static void redis_epoch_take_run(struct redis_epoch *epoch, const char *info)
{
	static const char name[] = "run_id:";
	const char *at = strstr(info, name);
	size_t len = at ? strcspn(at + sizeof(name) - 1, "\r\n ") : 0;
	if (len && len < sizeof(epoch->run))
		memcpy(epoch->run, at + sizeof(name) - 1, len);
}

static void redis_epoch_on_greeting(struct redis_request *request, size_t command,
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

void redis_epoch_greet(struct redis_epoch *epoch)
{
	struct redis_request *greet = &epoch->greet;
	if (epoch->greeting || epoch->writing) {
		redis_client_refuse(epoch->options.client, "it is greeted already");
		return;
	}
	epoch->greeting = true;
	memset(epoch->found, 0, sizeof(epoch->found));
	memset(epoch->run, 0, sizeof(epoch->run));
	redis_request_clear(greet);
	redis_command(greet, 2);
	redis_word(greet, SLICE("INFO"));
	redis_word(greet, SLICE("server"));
	redis_command(greet, 2);
	redis_word(greet, SLICE("GET"));
	redis_word(greet, slice_of(epoch->options.key));
	redis_ask(greet);
}

/* ---- Looking --------------------------------------------------------------------------------- */

bool redis_epoch_seen(struct redis_epoch *epoch, const struct redisReply *reply)
{
	if (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, epoch->present) == 0)
		return true;
	redis_client_greet_again(epoch->options.client);
	return false;
}

static void redis_epoch_on_looked(struct redis_request *request, UNUSED int err)
{
	struct redis_epoch *epoch = request->owner;
	epoch->looking = false;
}

static void redis_epoch_on_look(struct redis_request *request, UNUSED size_t command,
				const redisReply *reply)
{
	(void)redis_epoch_seen(request->owner, reply);
}

void redis_epoch_look(struct redis_epoch *epoch)
{
	if (epoch->looking)
		return;
	epoch->looking = true;
	redis_request_clear(&epoch->look);
	redis_command(&epoch->look, 2);
	redis_word(&epoch->look, SLICE("GET"));
	redis_word(&epoch->look, slice_of(epoch->options.key));
	redis_ask(&epoch->look);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void redis_epoch_begin_request(struct redis_epoch *epoch, struct redis_request *request,
				      void (*answer)(struct redis_request *request, size_t command,
						     const redisReply *reply),
				      void (*done)(struct redis_request *request, int err))
{
	*request = (struct redis_request){.executor = redis_client_executor(epoch->options.client),
					  .answer = answer,
					  .done = done,
					  .owner = epoch,
					  .greets = true};
	redis_request_init(request, epoch->options.client);
}

void redis_epoch_init(struct redis_epoch *epoch, const struct redis_epoch_options *options)
{
	epoch->options = *options;
	random_init(&epoch->random, random_system_seed());
	pthread_mutex_init(&epoch->lock, NULL);
	pthread_cond_init(&epoch->over, NULL);
	redis_epoch_begin_request(epoch, &epoch->greet, redis_epoch_on_greeting,
				  redis_epoch_on_greeted);
	redis_epoch_begin_request(epoch, &epoch->set, NULL, redis_epoch_on_set);
	redis_epoch_begin_request(epoch, &epoch->look, redis_epoch_on_look, redis_epoch_on_looked);
	epoch->write = store_write_new(options->store, CELL_MAX_BYTES);
	epoch->write->executor = redis_client_executor(options->client);
	epoch->write->done = redis_epoch_on_kept;
	epoch->write->owner = epoch;
}

void redis_epoch_release(struct redis_epoch *epoch)
{
	redis_request_release(&epoch->greet);
	redis_request_release(&epoch->set);
	redis_request_release(&epoch->look);
	store_write_free(epoch->write);
	pthread_cond_destroy(&epoch->over);
	pthread_mutex_destroy(&epoch->lock);
}
