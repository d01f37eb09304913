#include "fault/message_live.h"

#include "base/log.h"
#include "base/stats.h"

enum {
	MESSAGE_LINES_A_MINUTE = 3,
	MESSAGE_BATCHES_MAX = 3, /* on their way to the viewers of a tenant */
};

/* A tenant with viewers. */
struct message_feed {
	struct message_live *live;
	char *tenant;
	struct message_feed *following;
	/* Guarded by the lock. */
	size_t viewer_count, batch_count;
	uint64_t watches; /* so many have begun */
	int64_t after_us; /* messages of later dates are looked for */
	/* The executor's thread. */
	struct fault_message_viewer *viewers;
};

/* What was found, on its way to the viewers. */
struct message_batch {
	struct task task;
	struct message_feed *feed;
	uint64_t watches; /* it is for those that had begun by then */
	struct fault_message_list list;
};

struct message_live {
	const struct fault_site *site;
	pthread_mutex_t lock; /* guards the next, and what feeds say */
	struct message_feed *feeds;
	struct log_rate lines; /* the job's */
};

/* ---- The executor's thread ------------------------------------------------------------------- */

static struct message_feed *message_feed_of(struct message_live *live, struct slice tenant)
{
	struct message_feed *feed = live->feeds;
	while (feed && !slice_equal(slice_of(feed->tenant), tenant))
		feed = feed->following;
	if (feed)
		return feed;
	feed = mem_zalloc(sizeof(*feed));
	feed->live = live;
	feed->tenant = mem_copy_text(tenant);
	feed->after_us = INT64_MAX;
	feed->following = live->feeds;
	live->feeds = feed;
	return feed;
}

void message_live_watch(struct message_live *live, struct fault_message_viewer *viewer,
			struct slice tenant)
{
	pthread_mutex_lock(&live->lock);
	struct message_feed *feed = message_feed_of(live, tenant);
	feed->viewer_count++;
	viewer->number = ++feed->watches;
	if (viewer->has_seen)
		feed->after_us = smaller_of(feed->after_us, viewer->seen_us);
	pthread_mutex_unlock(&live->lock);
	viewer->feed = feed;
	viewer->begun = false;
	viewer->following = feed->viewers;
	viewer->place = &feed->viewers;
	if (viewer->following)
		viewer->following->place = &viewer->following;
	feed->viewers = viewer;
	stat_add(STAT_fault_viewers, 1);
}

void message_live_leave(struct fault_message_viewer *viewer)
{
	struct message_feed *feed = viewer->feed;
	if (!feed)
		return;
	*viewer->place = viewer->following;
	if (viewer->following)
		viewer->following->place = viewer->place;
	stat_add(STAT_fault_viewers, -1);
	pthread_mutex_lock(&feed->live->lock);
	feed->viewer_count--;
	pthread_mutex_unlock(&feed->live->lock);
	viewer->feed = NULL;
}

static void message_show_to(const struct message_batch *batch, struct fault_message_viewer *viewer)
{
	struct fault_messages_told told = {.list = batch->list.list,
					   .begins = !viewer->begun && !batch->list.cut};
	if (!viewer->has_seen) {
		viewer->has_seen = true;
		viewer->seen_us = batch->list.newest_us;
	}
	while (told.count < batch->list.count && told.list[told.count].date_us > viewer->seen_us)
		told.count++;
	viewer->begun = viewer->begun || told.begins;
	viewer->show(viewer, &told);
}

static void message_show_batch(struct task *task)
{
	struct message_batch *batch = CONTAINER_OF(task, struct message_batch, task);
	struct message_feed *feed = batch->feed;
	struct fault_message_viewer *following;
	for (struct fault_message_viewer *viewer = feed->viewers; viewer; viewer = following) {
		following = viewer->following;
		if (viewer->number <= batch->watches)
			message_show_to(batch, viewer);
	}
	pthread_mutex_lock(&feed->live->lock);
	feed->batch_count--;
	pthread_mutex_unlock(&feed->live->lock);
	fault_message_list_release(&batch->list);
	mem_free(batch);
}

/* ---- The job --------------------------------------------------------------------------------- */

static void message_feed_free(struct message_feed *feed)
{
	mem_free(feed->tenant);
	mem_free(feed);
}

/* What is still on its way to viewers is waited for. */
static bool message_feed_goes(struct message_feed *feed)
{
	struct message_live *live = feed->live;
	pthread_mutex_lock(&live->lock);
	bool over = !feed->viewer_count && !feed->batch_count;
	for (struct message_feed **at = &live->feeds; over && *at; at = &(*at)->following) {
		if (*at != feed)
			continue;
		*at = feed->following;
		break;
	}
	pthread_mutex_unlock(&live->lock);
	return over;
}

/* Viewers that have come meanwhile may want what is older. */
static void message_post(struct message_feed *feed, struct message_batch *batch,
			 struct executor *executor)
{
	pthread_mutex_lock(&feed->live->lock);
	if (feed->watches == batch->watches)
		feed->after_us =
			batch->list.cut ? batch->list.list[0].date_us : batch->list.newest_us;
	feed->batch_count++;
	pthread_mutex_unlock(&feed->live->lock);
	executor->post(executor, &batch->task);
}

/* True: there are more. */
static bool message_look_at(struct message_feed *feed, struct job *job, struct executor *executor)
{
	struct message_live *live = feed->live;
	struct message_batch *batch = mem_zalloc(sizeof(*batch));
	struct fault_message_filter filter = {.from_us = INT64_MIN,
					      .to_us = INT64_MAX,
					      .kind = -1,
					      .limit = FAULT_MESSAGES_TOLD_MAX,
					      .oldest = true};
	struct errbuf e = {""};
	batch->task.run = message_show_batch;
	batch->feed = feed;
	pthread_mutex_lock(&live->lock);
	bool waits = feed->batch_count >= MESSAGE_BATCHES_MAX;
	batch->watches = feed->watches;
	filter.after_us = feed->after_us;
	pthread_mutex_unlock(&live->lock);
	if (waits) {
		mem_free(batch);
		return false;
	}
	int err = fault_messages_list(live->site, job_queue(job), slice_of(feed->tenant), &filter,
				      &batch->list, &e);
	if (!err) {
		bool more = batch->list.cut;
		message_post(feed, batch, executor);
		return more;
	}
	if (err != ERR_CANCELLED)
		log_rated(&live->lines, clock_mono_ms(live->site->clock), LOG_WARN,
			  "faults: the messages of tenant " SHOWN
			  " cannot be read: %s; the server tries again",
			  SHOWN_OF(slice_of(feed->tenant)), e.text[0] ? e.text : err_text(err));
	fault_message_list_release(&batch->list);
	mem_free(batch);
	return false;
}

bool message_live_look(struct message_live *live, struct job *job, struct executor *executor)
{
	bool more = false;
	pthread_mutex_lock(&live->lock);
	struct message_feed *feed = live->feeds;
	pthread_mutex_unlock(&live->lock);
	/* New ones come before the first, and only this job takes some away. */
	while (feed && !job_is_stopping(job)) {
		struct message_feed *following = feed->following;
		if (message_feed_goes(feed))
			message_feed_free(feed);
		else
			more = message_look_at(feed, job, executor) || more;
		feed = following;
	}
	return more;
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct message_live *message_live_new(const struct fault_site *site)
{
	struct message_live *live = mem_zalloc(sizeof(*live));
	live->site = site;
	live->lines = (struct log_rate){.lines_max = MESSAGE_LINES_A_MINUTE};
	pthread_mutex_init(&live->lock, NULL);
	return live;
}

bool message_live_is_watched(struct message_live *live)
{
	pthread_mutex_lock(&live->lock);
	bool watched = live->feeds != NULL;
	pthread_mutex_unlock(&live->lock);
	return watched;
}

void message_live_free(struct message_live *live)
{
	while (live->feeds) {
		struct message_feed *feed = live->feeds;
		live->feeds = feed->following;
		ASSERT(!feed->viewer_count && !feed->batch_count);
		message_feed_free(feed);
	}
	pthread_mutex_destroy(&live->lock);
	mem_free(live);
}
