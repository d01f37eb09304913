#include "catalog/private.h"

enum { LATERS_PER_TURN = 16 };

struct catalog_options catalog_options_default(void)
{
	return (struct catalog_options){
		.tags_max = TAGS_MAX,
		.name_max_bytes = METRIC_MAX_BYTES,
		.value_max_bytes = TAG_VALUE_MAX_BYTES,
		.series_per_tenant_max = 10000000,
		.new_series_per_minute_max = 6000000,
		.index_max_bytes = (size_t)512 << 20,
	};
}

static void run_laters(struct task *task);

struct catalog *catalog_new(struct store *store, struct clock *clock, struct executor *executor,
			    const struct catalog_options *options)
{
	struct catalog *catalog = mem_zalloc(sizeof(*catalog));
	catalog->store = store;
	catalog->clock = clock;
	catalog->executor = executor;
	catalog->options = *options;
	catalog->kick.run = run_laters;
	later_list_init(&catalog->laters);
	pthread_mutex_init(&catalog->lock, NULL);
	buf_init(&catalog->note_text, TAGS_TEXT_MAX_BYTES);
	return catalog;
}

static void catalog_free(struct catalog *catalog)
{
	indexes_free(catalog);
	tenants_free(catalog);
	hash_set_release(&catalog->stored_names);
	buf_release(&catalog->note_text);
	for (size_t i = 0; i < catalog->spare_count; i++)
		store_read_free(catalog->spare_reads[i]);
	pthread_mutex_destroy(&catalog->lock);
	mem_free(catalog);
}

void catalog_enter(struct catalog *catalog)
{
	catalog->busy++;
}

void catalog_leave(struct catalog *catalog)
{
	ASSERT(catalog->busy);
	size_t left = --catalog->busy;
	if (left || !catalog->closing)
		return;
	catalog_closed *closed = catalog->closed;
	void *owner = catalog->closed_owner;
	catalog_free(catalog);
	closed(owner);
}

/* ---- Later --------------------------------------------------------------------------------- */

static void kick(struct catalog *catalog)
{
	if (catalog->kicked)
		return;
	catalog->kicked = true;
	catalog_enter(catalog);
	catalog->executor->post(catalog->executor, &catalog->kick);
}

void later_do(struct catalog *catalog, struct catalog_later *later,
	      void (*run)(struct catalog_later *later))
{
	later->next = later->prev = NULL;
	later->run = run;
	later_append(&catalog->laters, later);
	kick(catalog);
}

/* A few at a time, so that many finds do not hold up the executor's thread. */
static void run_laters(struct task *task)
{
	struct catalog *catalog = CONTAINER_OF(task, struct catalog, kick);
	catalog->kicked = false;
	if (catalog->closing) {
		indexes_cancel(catalog);
		sweep_cancel(catalog);
	}
	for (int i = 0; i < LATERS_PER_TURN; i++) {
		struct catalog_later *later = later_pop(&catalog->laters);
		if (!later)
			break;
		later->run(later);
	}
	if (catalog->laters.next != &catalog->laters)
		kick(catalog);
	catalog_leave(catalog);
}

/* ---- Asking the store ---------------------------------------------------------------------- */

static void ask_done(struct store_read *read, int err)
{
	struct catalog_ask *ask = FROM_OWNER(catalog_ask, read->owner);
	struct catalog *catalog = ask->catalog;
	ask->in_flight = false;
	if (ask->dropped)
		ask_release(ask);
	else
		ask->done(ask->owner, err);
	catalog_leave(catalog);
}

struct catalog_ask *ask_new(struct catalog *catalog, void (*done)(void *owner, int err),
			    void *owner)
{
	struct catalog_ask *ask = mem_zalloc(sizeof(*ask));
	*ask = (struct catalog_ask){MAGIC_OF(catalog_ask), catalog, .done = done, .owner = owner};
	ask->read = store_read_new(catalog->store, ASK_MAX_BYTES);
	ask->read->executor = catalog->executor;
	ask->read->done = ask_done;
	ask->read->owner = ask;
	return ask;
}

struct store_request *catalog_ask_again(struct catalog_ask *ask, enum store_op op,
					const struct store_token *token)
{
	struct store_token from = {0};
	if (token)
		from = *token; /* it may lie in what is forgotten now */
	store_read_reset(ask->read);
	struct store_request *request = store_read_add(ask->read, op);
	request->token = from;
	return request;
}

int ask_submit(struct catalog_ask *ask)
{
	ASSERT(!ask->in_flight && !ask->dropped);
	ask->read->now_ms = clock_wall_ms(ask->catalog->clock);
	catalog_enter(ask->catalog);
	ask->in_flight = true;
	int err = store_read_submit(ask->read);
	if (!err)
		return 0;
	ask->in_flight = false;
	ask->catalog->busy--; /* the caller is inside or an opening, so this frees nothing */
	return err;
}

void ask_release(struct catalog_ask *ask)
{
	if (!ask)
		return;
	ASSERT_IS(catalog_ask, ask);
	if (ask->in_flight) {
		ASSERT(!ask->dropped);
		ask->dropped = true;
		store_read_cancel(ask->read);
		return;
	}
	store_read_free(ask->read);
	ask->magic = 0;
	mem_free(ask);
}

/* ---- Life ---------------------------------------------------------------------------------- */

void catalog_close(struct catalog *catalog, catalog_closed *closed, void *owner)
{
	ASSERT(!catalog->closing);
	catalog->closing = true;
	catalog->closed = closed;
	catalog->closed_owner = owner;
	kick(catalog);
}

struct catalog_usage catalog_usage(const struct catalog *catalog)
{
	return (struct catalog_usage){catalog->index_count, catalog->index_bytes,
				      catalog->indexed_series};
}

bool catalog_sweeping(const struct catalog *catalog)
{
	return catalog->sweep != NULL;
}
