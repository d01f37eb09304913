/* Opening. An opening goes over its groups in passes. In the first, a group is registered at once
 * if its tenant has room for all its metrics, and only looked up if not (or if the tenant's series
 * have not been counted yet). So an opening of what exists never waits and is never refused. What
 * was not found is then asked for again, exactly: either there is room for it, or there is a
 * sentence. */
#include "base/grow.h"
#include "catalog/private.h"

enum {
	BATCH_GROUPS = 512, /* of one read: a request takes about 2 KB */
	/* The memory of a read that a group's names use, at most. */
	GROUP_BYTES = sizeof(struct store_request) + TENANT_MAX_BYTES + TAGS_TEXT_MAX_BYTES +
		      TAGS_MAX * 64,
	METRIC_BYTES = METRIC_MAX_BYTES + 64,
	SENTENCES_MAX_BYTES = 64 << 10,
	STORED_NAMES_MAX = 1 << 20,
};

enum group_state {
	GROUP_FIND,   /* to be looked up */
	GROUP_CREATE, /* to be registered; `reserved` is taken from its tenant */
	GROUP_ASK,    /* `missing` are not there; to be registered if there is room */
	GROUP_DONE,
};

struct group_work {
	struct tenant *tenant;
	struct store_request *request;
	uint64_t epoch;
	uint16_t reserved, missing;
	uint8_t state;
};

struct new_name {
	struct slice tenant, metric;
	struct hash128 hash;
};

struct catalog_round {
	struct store_read *read;
	size_t next, batch; /* groups before `batch` had their turn in this pass, those up to `next`
			     * are being read */
	int load_err;
	struct arena sentences;
	struct new_name
		*names; /* not known to be stored; those before `names_added` are in a write */
	size_t name_count, name_capacity, names_added;
	bool names_gathered;
	struct group_work work[];
};

/* ---- Results ------------------------------------------------------------------------------- */

static const char *sentence_of(struct catalog_round *round, const struct errbuf *e)
{
	struct slice copy = arena_copy(&round->sentences, slice_of(e->text));
	return copy.data ? copy.data : "a limit of the catalog was reached";
}

static void group_fail(struct catalog_round *round, struct catalog_group *group,
		       struct group_work *work, int err, const struct errbuf *e)
{
	group->err = err;
	group->sentence = e ? sentence_of(round, e) : err_text(err);
	work->state = GROUP_DONE;
}

static void open_refuse(struct catalog_open *open, size_t i, enum permit why)
{
	const struct catalog_options *options = &open->catalog->options;
	struct catalog_group *group = &open->groups[i];
	int tenant_len = (int)group->tenant.len;
	struct errbuf e;
	if (why == PERMIT_SERIES) {
		stat_add(STAT_catalog_refused_series, open->round->work[i].missing);
		errbuf_set(&e, ERR_LIMIT, "tenant %.*s has all the %llu series it may have",
			   tenant_len, group->tenant.data,
			   (unsigned long long)options->series_per_tenant_max);
	} else {
		stat_add(STAT_catalog_refused_rate, open->round->work[i].missing);
		errbuf_set(&e, ERR_LIMIT,
			   "tenant %.*s has used up its %llu new series a minute; try again later",
			   tenant_len, group->tenant.data,
			   (unsigned long long)options->new_series_per_minute_max);
	}
	group_fail(open->round, group, &open->round->work[i], ERR_LIMIT, &e);
}

/* ---- Configured limits --------------------------------------------------------------------- */

static int open_check_lengths(const struct catalog_options *options,
			      const struct catalog_group *group, struct errbuf *e)
{
	for (size_t i = 0; i < group->count; i++) {
		struct slice metric = group->metrics[i];
		if (metric.len > options->name_max_bytes)
			return errbuf_set(e, ERR_LIMIT, "metric " SHOWN " has more than %zu bytes",
					  SHOWN_OF(metric), options->name_max_bytes);
	}
	for (size_t i = 0; i < group->tags.count; i++) {
		const struct tag *tag = &group->tags.list[i];
		if (tag->key.len > options->name_max_bytes)
			return errbuf_set(e, ERR_LIMIT, "tag key " SHOWN " has more than %zu bytes",
					  SHOWN_OF(tag->key), options->name_max_bytes);
		if (tag->value.len > options->value_max_bytes)
			return errbuf_set(e, ERR_LIMIT,
					  "the value of tag " SHOWN " has more than %zu bytes",
					  SHOWN_OF(tag->key), options->value_max_bytes);
	}
	return 0;
}

static int open_check_group(const struct catalog_options *options,
			    const struct catalog_group *group, struct errbuf *e)
{
	ASSERT(group->count >= 1 && group->count <= STORE_GROUP_MAX);
	if (group->tags.count > options->tags_max)
		return errbuf_set(e, ERR_LIMIT, "there are more than %zu tags", options->tags_max);
	return open_check_lengths(options, group, e);
}

static void check_groups(struct catalog_open *open)
{
	struct errbuf e;
	for (size_t i = 0; i < open->count; i++) {
		struct catalog_group *group = &open->groups[i];
		memset(group->handles, 0, group->count * sizeof(*group->handles));
		group->err = 0;
		group->sentence = NULL;
		if (!open_check_group(&open->catalog->options, group, &e))
			continue;
		stat_add(STAT_catalog_refused_size, (int64_t)group->count);
		group_fail(open->round, group, &open->round->work[i], ERR_LIMIT, &e);
	}
}

/* ---- Permits ------------------------------------------------------------------------------- */

/* With the lock held. The groups of one opening mostly share their tenant. */
static struct tenant *find_tenant(struct catalog_open *open, size_t i)
{
	if (i && open->round->work[i - 1].tenant &&
	    slice_equal(open->groups[i - 1].tenant, open->groups[i].tenant))
		return open->round->work[i - 1].tenant;
	return tenant_get(open->catalog, open->groups[i].tenant);
}

static enum permit reserve(struct catalog_open *open, size_t i, size_t series)
{
	struct group_work *work = &open->round->work[i];
	enum permit permit = tenant_reserve(open->catalog, work->tenant, series);
	if (permit != PERMIT_YES)
		return permit;
	work->epoch = work->tenant->epoch;
	work->reserved = (uint16_t)series;
	work->state = GROUP_CREATE;
	return permit;
}

static void choose_first_pass(struct catalog_open *open)
{
	static const struct errbuf too_many = {"there are too many tenants"};
	pthread_mutex_lock(&open->catalog->lock);
	for (size_t i = 0; i < open->count; i++) {
		struct group_work *work = &open->round->work[i];
		if (work->state == GROUP_DONE || open->find_only)
			continue;
		work->tenant = find_tenant(open, i);
		if (!work->tenant)
			group_fail(open->round, &open->groups[i], work, ERR_LIMIT, &too_many);
		else
			(void)reserve(open, i, open->groups[i].count);
	}
	pthread_mutex_unlock(&open->catalog->lock);
}

/* With the lock held. True: the opening now waits for this tenant's count, which `load` says
 * whether the caller must begin. */
static bool wait_for(struct catalog_open *open, struct tenant *tenant, bool *load)
{
	*load = tenant->state == COUNT_UNKNOWN;
	tenant->state = COUNT_LOADING;
	open->next = tenant->waiting;
	tenant->waiting = open;
	return true;
}

/* For each group in ASK: registers, refuses or waits. True: the opening waits, and may by now be
 * going on in another thread. */
static bool choose_next_pass(struct catalog_open *open)
{
	struct catalog *catalog = open->catalog;
	struct catalog_round *round = open->round;
	struct tenant *tenant = NULL;
	bool waits = false, load = false;
	pthread_mutex_lock(&catalog->lock);
	for (size_t i = 0; i < open->count && !waits; i++) {
		struct group_work *work = &round->work[i];
		if (work->state != GROUP_ASK)
			continue;
		tenant = work->tenant;
		enum permit permit = reserve(open, i, work->missing);
		if (permit == PERMIT_WAIT && round->load_err)
			group_fail(round, &open->groups[i], work, round->load_err, NULL);
		else if (permit == PERMIT_WAIT)
			waits = wait_for(open, tenant, &load);
		else if (permit != PERMIT_YES)
			open_refuse(open, i, permit);
	}
	pthread_mutex_unlock(&catalog->lock);
	if (load)
		tenant_load(catalog, tenant);
	return waits;
}

/* ---- Reads --------------------------------------------------------------------------------- */

static bool open_add_request(struct catalog_open *open, size_t i)
{
	const struct catalog_group *group = &open->groups[i];
	struct group_work *work = &open->round->work[i];
	struct store_request *request = store_read_add(open->round->read, STORE_SERIES_OPEN);
	if (!request)
		return false;
	request->series_open = (struct store_series_open){
		.tenant = group->tenant,
		.tags = group->tags,
		.metrics = group->metrics,
		.count = group->count,
		.find_only = work->state == GROUP_FIND,
	};
	work->request = request;
	return true;
}

/* The next read of this pass; its number of groups. The longest group fits into an empty read. */
static size_t fill_read(struct catalog_open *open)
{
	struct catalog_round *round = open->round;
	size_t added = 0, bytes = 0;
	store_read_reset(round->read);
	for (round->batch = round->next; round->next < open->count; round->next++) {
		struct group_work *work = &round->work[round->next];
		work->request = NULL;
		if (work->state != GROUP_FIND && work->state != GROUP_CREATE)
			continue;
		bytes += GROUP_BYTES + open->groups[round->next].count * METRIC_BYTES;
		if (added == BATCH_GROUPS || (added && bytes > OPEN_READ_MAX_BYTES) ||
		    !open_add_request(open, round->next))
			break;
		added++;
	}
	return added;
}

static void open_unreserve(struct group_work *work, size_t created)
{
	tenant_unreserve(work->tenant, work->reserved - created, work->epoch);
	work->reserved = 0;
}

/* Handles of one group that the store has answered. With the lock held. */
static void open_accept_handles(struct catalog_open *open, size_t i)
{
	struct catalog_group *group = &open->groups[i];
	struct group_work *work = &open->round->work[i];
	const struct store_series_open *answer = &work->request->series_open;
	size_t missing = 0;
	memcpy(group->handles, answer->handles, group->count * sizeof(*group->handles));
	for (size_t m = 0; m < group->count; m++)
		missing += group->handles[m] == 0;
	if (answer->created) {
		open->created += answer->created;
		indexes_note(open->catalog, group);
	}
	if (work->state == GROUP_CREATE)
		open_unreserve(work, answer->created);
	work->missing = (uint16_t)missing;
	if (missing == 0)
		work->state = GROUP_DONE;
	else if (open->find_only)
		group_fail(open->round, group, work, ERR_NOT_FOUND, NULL);
	else if (work->state == GROUP_FIND)
		work->state = GROUP_ASK;
	else
		group_fail(open->round, group, work, ERR_UNKNOWN, NULL);
}

/* The groups of the present read; `err`: 0, or why the read was not made or not complete. */
static void open_accept_answers(struct catalog_open *open, int err)
{
	struct catalog_round *round = open->round;
	pthread_mutex_lock(&open->catalog->lock);
	for (size_t i = round->batch; i < round->next; i++) {
		struct group_work *work = &round->work[i];
		if (!work->request)
			continue;
		int group_err = work->request->err;
		if (!group_err && !work->request->series_open.handles)
			group_err = err ? err : ERR_RETRY;
		if (!group_err) {
			open_accept_handles(open, i);
		} else {
			if (work->state == GROUP_CREATE)
				open_unreserve(work, 0);
			group_fail(round, &open->groups[i], work, group_err,
				   group_err == round->read->err && round->read->error.text[0]
					   ? &round->read->error
					   : NULL);
		}
		work->request = NULL;
	}
	pthread_mutex_unlock(&open->catalog->lock);
}

/* ---- The machine --------------------------------------------------------------------------- */

static void open_run_done(struct task *task)
{
	struct catalog_open *open = CONTAINER_OF(task, struct catalog_open, task);
	stat_add(STAT_catalog_series_created, (int64_t)open->created);
	open->done(open);
}

static void open_step(struct catalog_open *open);

static void open_run_step(struct task *task)
{
	open_step(CONTAINER_OF(task, struct catalog_open, task));
}

static void open_read_done(struct store_read *read, int err)
{
	struct catalog_open *open = FROM_OWNER(catalog_open, read->owner);
	open_accept_answers(open, err);
	open_step(open);
}

/* Submits the next read: 1 if it did, 0 if nothing is left in this pass, or the store's refusal. */
static int submit_next(struct catalog_open *open)
{
	struct catalog_round *round = open->round;
	if (!fill_read(open))
		return 0;
	round->read->now_ms = clock_wall_ms(open->catalog->clock);
	int err = store_read_submit(round->read);
	return err ? err : 1;
}

static bool has_work(const struct catalog_open *open)
{
	for (size_t i = 0; i < open->count; i++) {
		if (open->round->work[i].state == GROUP_CREATE)
			return true;
	}
	return false;
}

/* One read after the other, then what needs a second pass. Once a read is submitted or a wait has
 * begun, the opening may already go on in another thread. */
static void open_step(struct catalog_open *open)
{
	for (;;) {
		int submitted = submit_next(open);
		if (submitted > 0)
			return;
		if (submitted < 0) {
			open_accept_answers(open, submitted);
			continue;
		}
		if (choose_next_pass(open))
			return;
		open->round->next = 0;
		if (!has_work(open))
			break;
	}
	open_run_done(&open->task);
}

void open_resume(struct catalog_open *open, int err)
{
	open->round->load_err = err;
	open->round->next = open->count; /* this pass is over: the next is chosen */
	open->task.run = open_run_step;
	open->executor->post(open->executor, &open->task);
}

/* ---- Start and finish ---------------------------------------------------------------------- */

static struct store_read *spare_read(struct catalog *catalog)
{
	struct store_read *read = NULL;
	pthread_mutex_lock(&catalog->lock);
	if (catalog->spare_count)
		read = catalog->spare_reads[--catalog->spare_count];
	pthread_mutex_unlock(&catalog->lock);
	return read ? read : store_read_new(catalog->store, OPEN_READ_MAX_BYTES);
}

static struct catalog_round *round_new(struct catalog_open *open)
{
	struct catalog_round *round =
		mem_zalloc(sizeof(*round) + open->count * sizeof(round->work[0]));
	open->magic = MAGIC_OF(catalog_open);
	arena_init(&round->sentences, SENTENCES_MAX_BYTES);
	round->read = spare_read(open->catalog);
	round->read->executor = open->executor;
	round->read->done = open_read_done;
	round->read->owner = open;
	return round;
}

static void open_round_free(struct catalog *catalog, struct catalog_round *round)
{
	store_read_reset(round->read);
	pthread_mutex_lock(&catalog->lock);
	if (catalog->spare_count < READS_SPARE_MAX) {
		catalog->spare_reads[catalog->spare_count++] = round->read;
		round->read = NULL;
	}
	pthread_mutex_unlock(&catalog->lock);
	store_read_free(round->read);
	arena_release(&round->sentences);
	mem_free(round->names);
	mem_free(round);
}

/* The store takes nothing now: what was reserved goes back, as if nothing had been asked. */
static void undo_start(struct catalog_open *open)
{
	pthread_mutex_lock(&open->catalog->lock);
	for (size_t i = 0; i < open->count; i++) {
		if (open->round->work[i].state == GROUP_CREATE)
			open_unreserve(&open->round->work[i], 0);
	}
	pthread_mutex_unlock(&open->catalog->lock);
	open_round_free(open->catalog, open->round);
	open->round = NULL;
}

int catalog_open_start(struct catalog_open *open)
{
	ASSERT(open->catalog && open->executor && open->done);
	open->created = 0;
	open->round = round_new(open);
	check_groups(open);
	choose_first_pass(open);
	int submitted = submit_next(open);
	if (submitted < 0) {
		undo_start(open);
		return submitted;
	}
	if (submitted == 0) {
		open->task.run = open_run_done;
		open->executor->post(open->executor, &open->task);
	}
	return 0;
}

/* ---- Names --------------------------------------------------------------------------------- */

static void gather_name(struct catalog_round *round, struct hash_set *seen, struct slice tenant,
			struct slice metric, struct hash128 hash)
{
	if (!hash_set_add(seen, hash, SIZE_MAX))
		return;
	GROW(round->names, round->name_capacity, round->name_count + 1);
	round->names[round->name_count++] = (struct new_name){tenant, metric, hash};
}

static void gather_names(struct catalog_open *open)
{
	struct catalog *catalog = open->catalog;
	struct hash_set seen = {0};
	pthread_mutex_lock(&catalog->lock);
	for (size_t i = 0; i < open->count; i++) {
		const struct catalog_group *group = &open->groups[i];
		uint64_t seed = name_seed(group->tenant);
		for (size_t m = 0; m < group->count; m++) {
			if (!group->handles[m])
				continue;
			struct hash128 hash = metric_hash(seed, group->metrics[m]);
			if (!hash_set_has(&catalog->stored_names, hash))
				gather_name(open->round, &seen, group->tenant, group->metrics[m],
					    hash);
		}
	}
	pthread_mutex_unlock(&catalog->lock);
	hash_set_release(&seen);
}

int catalog_open_add_names(struct catalog_open *open, struct store_write *write)
{
	struct catalog_round *round = open->round;
	ASSERT_IS(catalog_open, open);
	ASSERT(round);
	if (!round->names_gathered)
		gather_names(open);
	round->names_gathered = true;
	for (; round->names_added < round->name_count; round->names_added++) {
		const struct new_name *name = &round->names[round->names_added];
		struct store_parts key = {.part = {name->tenant}};
		struct store_parts column = {.part = {name->metric}};
		int err = store_set_add(write, TABLE_METRIC_NAMES, &key, &column, SLICE("raw"));
		if (err)
			return err;
	}
	return 0;
}

void catalog_open_finish(struct catalog_open *open, int write_err)
{
	struct catalog *catalog = open->catalog;
	struct catalog_round *round = open->round;
	ASSERT_IS(catalog_open, open);
	ASSERT(round);
	open->magic = 0;
	pthread_mutex_lock(&catalog->lock);
	for (size_t i = 0; !write_err && i < round->names_added; i++)
		hash_set_add(&catalog->stored_names, round->names[i].hash, STORED_NAMES_MAX);
	pthread_mutex_unlock(&catalog->lock);
	open_round_free(catalog, round);
	open->round = NULL;
}
