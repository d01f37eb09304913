/* What this process takes of quotas, and hears of the others. */
#include "fault/projects_private.h"

#include "base/log.h"
#include "base/stats.h"
#include "store/wait.h"

enum {
	QUOTA_TENANTS = 128,   /* of one write, and of one read */
	QUOTA_CELLS_MAX = 256, /* of a tenant in that read; a row that has more is read alone */
	QUOTA_CELL_BYTES = 64, /* at most */
	QUOTA_MEMORY_BYTES = 16 << 20,
	QUOTA_READ_US = 5000000, /* for what is not answered by then there is the next exchange */
};

bool fault_projects_have_quotas(const struct fault_projects *projects)
{
	return fault_quota_end_ms(&projects->limits, 0) != INT64_MIN;
}

int64_t fault_projects_take_quota(struct fault_projects *projects, uint64_t number,
				  enum fault_span *full)
{
	int64_t now_ms = clock_wall_ms(projects->clock), wait_ms = 0;
	if (!fault_projects_have_quotas(projects))
		return 0;
	pthread_mutex_lock(&projects->lock);
	struct projects_slot *slot = projects_slot_of(projects, number);
	if (slot) {
		struct projects_quota *quota = &slot->quota;
		wait_ms = fault_quota_take(&quota->own, &quota->others, &projects->limits, now_ms,
					   full);
		quota->asked = true;
		quota->changed |= !wait_ms;
	}
	pthread_mutex_unlock(&projects->lock);
	return wait_ms;
}

int64_t fault_projects_take_bytes(struct fault_projects *projects, uint64_t number, uint64_t bytes)
{
	int64_t now_ms = clock_wall_ms(projects->clock), wait_ms = 0;
	if (!fault_projects_have_quotas(projects))
		return 0;
	pthread_mutex_lock(&projects->lock);
	struct projects_slot *slot = projects_slot_of(projects, number);
	if (slot) {
		struct projects_quota *quota = &slot->quota;
		wait_ms = fault_quota_take_bytes(&quota->own, &quota->others, &projects->limits,
						 now_ms, bytes);
		quota->asked = true;
		quota->changed |= !wait_ms;
	}
	pthread_mutex_unlock(&projects->lock);
	return wait_ms;
}

/* A tenant of an exchange. */
struct projects_asked {
	struct fault_projects *projects;
	uint64_t number;
	char tenant[TENANT_MAX_BYTES + 1];
	struct projects_quota quota; /* `others`: what is read now */
	struct store_request *request;
	bool is_heard;
};

/* The next tenants after *number, which becomes that of the last one. Their count. */
static size_t projects_take_asked(struct fault_projects *projects, uint64_t *number, int64_t now_ms,
				  struct projects_asked *asked)
{
	size_t count = 0;
	pthread_mutex_lock(&projects->lock);
	for (size_t at = projects_place(projects, *number + 1);
	     at < projects->count && count < QUOTA_TENANTS; at++) {
		struct projects_slot *slot = &projects->list[at];
		if (!slot->quota.asked)
			continue;
		*number = slot->project.number;
		asked[count] = (struct projects_asked){
			.projects = projects, .number = *number, .quota = slot->quota};
		asked[count].quota.others = (struct fault_quota){.at_ms = now_ms};
		memcpy(asked[count++].tenant, slot->project.tenant, sizeof(slot->project.tenant));
		slot->quota.asked = slot->quota.changed = false;
	}
	pthread_mutex_unlock(&projects->lock);
	return count;
}

static struct store_parts projects_quota_row(const struct projects_asked *asked)
{
	return (struct store_parts){{slice_of(asked->tenant)}};
}

static int projects_tell_quotas(struct fault_projects *projects, struct task_queue *queue,
				const struct projects_asked *asked, size_t count)
{
	const struct store_parts column = {{slice_of(projects->quota_column)}};
	struct store_write *write = store_write_new(projects->store, QUOTA_MEMORY_BYTES);
	int64_t stamp_us = store_stamp(projects->store);
	int err = 0;
	write->can_wait = true;
	for (size_t i = 0; i < count && !err; i++) {
		const struct store_parts key = projects_quota_row(&asked[i]);
		struct buf value;
		if (!asked[i].quota.changed)
			continue;
		buf_init(&value, QUOTA_CELL_BYTES);
		fault_quota_encode(&asked[i].quota.own, &value);
		ASSERT(!value.failed);
		err = store_cell_put(
			write, TABLE_FAULT_QUOTAS, &key, &column, buf_slice(&value), stamp_us,
			fault_quota_end_ms(&projects->limits, asked[i].quota.own.at_ms));
		buf_release(&value);
	}
	err = err ? err : store_write_wait(write, queue);
	store_write_free(write);
	return err;
}

/* `column` of no bytes: the whole row. */
static void projects_warn_quota(const struct projects_asked *asked, struct slice column, int err)
{
	struct fault_projects *projects = asked->projects;
	stat_add(STAT_sentry_quotas_unread, 1);
	pthread_mutex_lock(&projects->lock);
	struct projects_slot *slot = projects_slot_of(projects, asked->number);
	bool is_told = slot->is_told;
	slot->is_told = true;
	pthread_mutex_unlock(&projects->lock);
	if (!is_told && column.len)
		log_warn("faults: what a process has taken of the quota of tenant %s (table "
			 "fault_quotas, column " SHOWN ") cannot be read: %s; it does not count",
			 asked->tenant, SHOWN_OF(column), err_text(err));
	else if (!is_told)
		log_warn("faults: what other processes have taken of the quota of tenant %s (table "
			 "fault_quotas) cannot be read: %s; the numbers that were read last count",
			 asked->tenant, err_text(err));
}

static int projects_see_quota(const struct store_cell *cell, void *owner)
{
	struct projects_asked *asked = owner;
	struct slice column = cell->column.part[0];
	struct fault_quota other;
	if (slice_equal(column, slice_of(asked->projects->quota_column)))
		return 0;
	int err = fault_quota_decode(cell->value, &other);
	if (err)
		projects_warn_quota(asked, column, err);
	else
		fault_quota_add(&asked->quota.others, &other);
	return 0;
}

/* What the request has brought, if that is all of the row, or the row. */
static int projects_sum_quota(struct projects_asked *asked, struct task_queue *queue,
			      struct errbuf *e)
{
	const struct store_cell_scan *scan = &asked->request->cell_scan;
	const struct store_parts key = projects_quota_row(asked);
	int64_t now_ms = asked->quota.others.at_ms;
	if (asked->request->more || scan->count == QUOTA_CELLS_MAX)
		return store_row_wait(asked->projects->store, queue, now_ms, TABLE_FAULT_QUOTAS,
				      &key, projects_see_quota, asked, e);
	for (size_t i = 0; i < scan->count && !asked->request->err; i++)
		(void)projects_see_quota(&scan->cells[i], asked);
	return asked->request->err;
}

/* Those of one tenant that are damaged keep nobody from those of another one. */
static int projects_hear_quotas(struct fault_projects *projects, struct task_queue *queue,
				struct projects_asked *asked, size_t count, struct errbuf *e)
{
	struct store_read *read = store_read_new(projects->store, QUOTA_MEMORY_BYTES);
	read->now_ms = asked->quota.others.at_ms;
	read->deadline_us = projects->clock->mono_us(projects->clock) + QUOTA_READ_US;
	for (size_t i = 0; i < count; i++) {
		asked[i].request = store_read_add(read, STORE_CELL_SCAN);
		ASSERT(asked[i].request); /* they are much less than its memory */
		asked[i].request->cell_scan =
			(struct store_cell_scan){.table = TABLE_FAULT_QUOTAS,
						 .key = projects_quota_row(&asked[i]),
						 .limit = QUOTA_CELLS_MAX};
	}
	int err = store_read_wait(read, queue);
	if (err && err != ERR_DAMAGED)
		errbuf_set(e, err, "%s", store_read_sentence(read, err));
	else
		err = 0;
	for (size_t i = 0; i < count && !err; i++) {
		err = projects_sum_quota(&asked[i], queue, e);
		asked[i].is_heard = !err;
		if (err == ERR_DAMAGED) {
			projects_warn_quota(&asked[i], SLICE(""), err);
			err = 0;
		}
	}
	store_read_free(read);
	return err;
}

/* What was not written or read is so the next time. */
static void projects_keep_quotas(struct fault_projects *projects,
				 const struct projects_asked *asked, size_t count, bool is_told)
{
	pthread_mutex_lock(&projects->lock);
	for (size_t i = 0; i < count; i++) {
		struct projects_quota *quota = &projects_slot_of(projects, asked[i].number)->quota;
		quota->changed |= asked[i].quota.changed && !is_told;
		quota->asked |= quota->changed || !asked[i].is_heard;
		if (asked[i].is_heard)
			quota->others = asked[i].quota.others;
	}
	pthread_mutex_unlock(&projects->lock);
}

/* The store's error, after which each process goes on with what it knows. */
static int projects_exchange_some(struct fault_projects *projects, struct task_queue *queue,
				  struct projects_asked *asked, size_t count, struct errbuf *e)
{
	struct errbuf of_hearing = {""};
	int tell_err = projects_tell_quotas(projects, queue, asked, count);
	int hear_err = projects_hear_quotas(projects, queue, asked, count, &of_hearing);
	projects_keep_quotas(projects, asked, count, !tell_err);
	if (tell_err)
		return errbuf_set(e, tell_err, "%s", err_text(tell_err));
	return hear_err ? errbuf_set(e, hear_err, "%s", of_hearing.text) : 0;
}

int fault_projects_exchange_quotas(struct fault_projects *projects, struct task_queue *queue,
				   struct errbuf *e)
{
	if (!fault_projects_have_quotas(projects))
		return 0;
	struct projects_asked *asked = mem_alloc_array(QUOTA_TENANTS, sizeof(*asked));
	int64_t now_ms = clock_wall_ms(projects->clock);
	uint64_t number = 0;
	size_t count;
	int err = 0;
	do {
		count = projects_take_asked(projects, &number, now_ms, asked);
		int some_err = count ? projects_exchange_some(projects, queue, asked, count, e) : 0;
		err = err ? err : some_err;
	} while (count == QUOTA_TENANTS && err != ERR_TIMEOUT && err != ERR_CANCELLED);
	mem_free(asked);
	return err;
}
