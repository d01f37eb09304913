#include "fault/live.h"

#include "base/log.h"
#include "base/stats.h"
#include "fault/fault.h"

enum {
	BATCH_ARENA_MAX_BYTES = 32 << 20, /* of FAULT_NEWS_MAX reports */
	REST_MS = 20,                     /* between looks at books in which much happens */
	LOOK_US = 1000000, /* other processes write too; and viewers are told that all is well */
	LINES_A_MINUTE = 3,
};

/* A viewer that is not told anything yet. */
struct live_start {
	struct fault_viewer *viewer; /* guarded by the lock; NULL: it has left */
	bool has_seen;
	struct fault_order seen;
	struct slice texts[FAULT_TEXTS];
	struct live_start *following;
};

/* A tenant with viewers. */
struct live_feed {
	struct fault_live *live;
	struct fault_book *book; /* NULL: the job has not seen the feed yet */
	char *tenant;
	uint64_t next; /* of news; the job's */
	bool begun;    /* `next` is known */
	struct live_feed *following;
	/* Guarded by the lock. */
	struct live_start *starts; /* newest first */
	size_t viewer_count, batch_count;
	/* The executor's thread. */
	struct fault_viewer *viewers;
};

/* What the job has found, on its way to the viewers. */
struct live_batch {
	struct task task;
	struct live_feed *feed;
	struct live_start *start; /* for this viewer only */
	uint64_t from, next;      /* of these news; those of the viewer begin at `next` */
	uint64_t *numbers;        /* of news, else NULL */
	struct fault_listed *reports;
	struct slice *made; /* of each, by viewers */
	size_t count, room;
	uint64_t missed;
	bool cut;
	struct fault_order newest; /* with `start` */
	struct fault_merges merges;
	struct arena arena;
};

struct fault_live {
	struct fault *fault;
	int64_t look_us;      /* monotonic: the next one at the latest */
	pthread_mutex_t lock; /* guards the next, and what feeds say */
	struct job *job;      /* NULL: it is over, or has not begun */
	bool stopping;
	struct live_feed *feeds;
	bool woken; /* the task is in the job's queue */
	struct task wake;
	struct message_live *messages; /* whose job it is, too */
	/* The job's. */
	bool due; /* it was woken, maybe while it waited for the store */
	struct log_rate lines;
};

/* ---- Waking the job -------------------------------------------------------------------------- */

/* On the job's thread. */
static void live_awake(struct task *task)
{
	struct fault_live *live = CONTAINER_OF(task, struct fault_live, wake);
	live->due = true;
	pthread_mutex_lock(&live->lock);
	live->woken = false;
	pthread_mutex_unlock(&live->lock);
}

void fault_live_wake(struct fault_live *live)
{
	bool watched = message_live_is_watched(live->messages);
	pthread_mutex_lock(&live->lock);
	bool runs = !live->stopping && live->job; /* in this order: see live_over */
	if (runs && (live->feeds || watched) && !live->woken) {
		struct executor *executor = &job_queue(live->job)->executor;
		live->woken = true;
		executor->post(executor, &live->wake); /* it runs before the job is over */
	}
	pthread_mutex_unlock(&live->lock);
}

/* ---- The executor's thread ------------------------------------------------------------------- */

static struct live_start *live_start_new(struct fault_viewer *viewer)
{
	struct live_start *start = mem_zalloc(sizeof(*start));
	start->viewer = viewer;
	start->has_seen = viewer->has_seen;
	start->seen = viewer->seen;
	for (size_t i = 0; i < FAULT_TEXTS; i++)
		if (viewer->texts[i].data)
			start->texts[i] = mem_copy_slice(viewer->texts[i]);
	return start;
}

static void live_start_free(struct live_start *start)
{
	for (size_t i = 0; i < FAULT_TEXTS; i++)
		mem_free_slice(start->texts[i]);
	mem_free(start);
}

static struct live_feed *live_feed_of(struct fault_live *live, struct slice tenant)
{
	struct live_feed *feed = live->feeds;
	while (feed && !slice_equal(slice_of(feed->tenant), tenant))
		feed = feed->following;
	if (feed)
		return feed;
	feed = mem_zalloc(sizeof(*feed));
	feed->live = live;
	feed->tenant = mem_copy_text(tenant);
	feed->following = live->feeds;
	live->feeds = feed;
	return feed;
}

void fault_live_watch(struct fault_live *live, struct fault_viewer *viewer, struct slice tenant)
{
	struct live_start *start = live_start_new(viewer);
	pthread_mutex_lock(&live->lock);
	struct live_feed *feed = live_feed_of(live, tenant);
	start->following = feed->starts;
	feed->starts = start;
	feed->viewer_count++;
	pthread_mutex_unlock(&live->lock);
	viewer->feed = feed;
	viewer->start = start;
	viewer->following = feed->viewers;
	viewer->place = &feed->viewers;
	if (viewer->following)
		viewer->following->place = &viewer->following;
	feed->viewers = viewer;
	stat_add(STAT_fault_viewers, 1);
	fault_live_wake(live);
}

/* With the lock held. One that the job is at is freed by live_show_start. */
static void live_drop_start(struct live_feed *feed, struct live_start *start)
{
	start->viewer = NULL;
	for (struct live_start **at = &feed->starts; *at; at = &(*at)->following) {
		if (*at != start)
			continue;
		*at = start->following;
		live_start_free(start);
		break;
	}
}

void fault_live_leave(struct fault_viewer *viewer)
{
	struct live_feed *feed = viewer->feed;
	if (!feed)
		return;
	*viewer->place = viewer->following;
	if (viewer->following)
		viewer->following->place = viewer->place;
	stat_add(STAT_fault_viewers, -1);
	pthread_mutex_lock(&feed->live->lock);
	if (viewer->start)
		live_drop_start(feed, viewer->start);
	feed->viewer_count--;
	pthread_mutex_unlock(&feed->live->lock);
	viewer->feed = NULL;
	viewer->start = NULL;
}

/* What all viewers are told alike of the reports from `first` on. */
static struct fault_told live_told(struct live_batch *batch, size_t first)
{
	return (struct fault_told){.reports = batch->reports + first,
				   .count = batch->count - first,
				   .made = batch->made + first,
				   .merges = &batch->merges,
				   .arena = &batch->arena};
}

static void live_show_start(struct live_batch *batch)
{
	struct fault_told told = live_told(batch, 0);
	struct fault_viewer *viewer = batch->start->viewer;
	live_start_free(batch->start);
	if (!viewer)
		return;
	viewer->start = NULL;
	viewer->next = batch->next;
	told.cut = batch->cut;
	told.begins = true;
	told.newest = batch->newest;
	viewer->show(viewer, &told);
}

/* Those that are missed come before the others; a viewer that has begun within misses fewer. */
static uint64_t live_missed_of(const struct live_batch *batch, const struct fault_viewer *viewer)
{
	uint64_t before = viewer->next > batch->from ? viewer->next - batch->from : 0;
	return batch->missed > before ? batch->missed - before : 0;
}

/* A viewer that has begun later has some of it already. */
static void live_show_news(struct live_batch *batch)
{
	struct fault_viewer *following;
	for (struct fault_viewer *viewer = batch->feed->viewers; viewer; viewer = following) {
		size_t first = 0;
		following = viewer->following;
		if (viewer->start || viewer->next > batch->next)
			continue;
		while (first < batch->count && batch->numbers[first] < viewer->next)
			first++;
		struct fault_told told = live_told(batch, first);
		told.missed = live_missed_of(batch, viewer);
		viewer->next = batch->next;
		viewer->show(viewer, &told);
	}
}

static void live_batch_free(struct live_batch *batch)
{
	arena_release(&batch->arena);
	mem_free(batch->numbers);
	mem_free(batch->reports);
	mem_free(batch->made);
	mem_free(batch);
}

static void live_show_batch(struct task *task)
{
	struct live_batch *batch = CONTAINER_OF(task, struct live_batch, task);
	struct fault_live *live = batch->feed->live;
	if (batch->start)
		live_show_start(batch);
	else
		live_show_news(batch);
	pthread_mutex_lock(&live->lock);
	batch->feed->batch_count--;
	pthread_mutex_unlock(&live->lock);
	live_batch_free(batch);
}

void fault_live_tick(struct fault_live *live)
{
	struct clock *clock = fault_site_of(live->fault)->clock;
	int64_t now_us = clock->mono_us(clock);
	if (now_us < live->look_us)
		return;
	live->look_us = now_us + LOOK_US;
	fault_live_wake(live);
}

/* ---- The job --------------------------------------------------------------------------------- */

static struct live_batch *live_batch_new(struct live_feed *feed, size_t room, bool numbered)
{
	struct live_batch *batch = mem_zalloc(sizeof(*batch));
	batch->task.run = live_show_batch;
	batch->feed = feed;
	batch->room = room;
	batch->reports = mem_alloc_array(room, sizeof(*batch->reports));
	batch->made = mem_zalloc(room * sizeof(*batch->made));
	batch->numbers = numbered ? mem_alloc_array(room, sizeof(*batch->numbers)) : NULL;
	arena_init(&batch->arena, BATCH_ARENA_MAX_BYTES);
	return batch;
}

static void live_post(struct live_batch *batch, struct executor *executor)
{
	struct fault_live *live = batch->feed->live;
	pthread_mutex_lock(&live->lock);
	batch->feed->batch_count++;
	pthread_mutex_unlock(&live->lock);
	executor->post(executor, &batch->task);
}

static bool live_keep(struct live_batch *batch, const struct fault_listed *report)
{
	struct fault_listed *kept = &batch->reports[batch->count];
	*kept = *report;
	kept->id = arena_copy(&batch->arena, report->id);
	fault_merges_apply(&batch->merges, &kept->facts);
	if (!kept->id.data || fault_facts_keep(&kept->facts, &batch->arena))
		return false;
	batch->count++;
	return true;
}

/* Newest first, up to the one that the viewer saw last. */
static bool live_take_listed(void *owner, const struct fault_listed *report)
{
	struct live_batch *batch = owner;
	const struct live_start *start = batch->start;
	if (!batch->newest.date_us)
		batch->newest = report->order;
	if (!start->has_seen || fault_order_compare(&report->order, &start->seen) <= 0)
		return false;
	if (!fault_merges_fit(&batch->merges, start->texts, report->facts.texts))
		return true;
	batch->cut = batch->count == batch->room || !live_keep(batch, report);
	return !batch->cut;
}

/* Those of the moment: a report that comes later may count for another group. */
static int live_read_merges(struct live_batch *batch, struct job *job, struct errbuf *e)
{
	const struct live_feed *feed = batch->feed;
	return fault_merges_read(fault_site_of(feed->live->fault), job_queue(job),
				 slice_of(feed->tenant), &batch->arena, &batch->merges, e);
}

static void live_turn_round(struct live_batch *batch)
{
	for (size_t i = 0; i < batch->count / 2; i++) {
		struct fault_listed *a = &batch->reports[i];
		struct fault_listed *b = &batch->reports[batch->count - 1 - i], kept = *a;
		*a = *b;
		*b = kept;
	}
}

static void live_say(struct live_feed *feed, int err, const struct errbuf *e)
{
	struct fault_live *live = feed->live;
	struct clock *clock = fault_site_of(live->fault)->clock;
	if (err != ERR_CANCELLED)
		log_rated(&live->lines, clock_mono_ms(clock), LOG_WARN,
			  "faults: the news of tenant " SHOWN
			  " cannot be read: %s; the server tries again",
			  SHOWN_OF(slice_of(feed->tenant)), e->text[0] ? e->text : err_text(err));
}

/* What has come since the viewer left, and where news go on behind it. False: the store could not
 * be read. */
static bool live_begin(struct live_feed *feed, struct job *job, struct live_start *start)
{
	struct live_batch *batch =
		live_batch_new(feed, start->has_seen ? FAULT_REPLAY_MAX : 1, false);
	struct fault_order reached;
	struct errbuf e = {""};
	batch->start = start;
	const struct fault_list_filter filter = {.from_us = start->seen.date_us,
						 .to_us = INT64_MAX,
						 .after = {.date_us = INT64_MAX},
						 .news = &batch->next};
	int err = live_read_merges(batch, job, &e);
	if (!err)
		err = fault_book_list(feed->book, job_queue(job), &filter, live_take_listed, batch,
				      &reached, &e);
	if (err) {
		live_say(feed, err, &e);
		live_batch_free(batch);
		return false;
	}
	live_turn_round(batch);
	feed->next = feed->begun ? feed->next : batch->next;
	feed->begun = true;
	live_post(batch, fault_executor_of(feed->live->fault));
	return true;
}

/* A viewer that has come; NULL: there is none. */
static struct live_start *live_take_start(struct live_feed *feed)
{
	pthread_mutex_lock(&feed->live->lock);
	struct live_start *start = feed->starts;
	if (start)
		feed->starts = start->following;
	pthread_mutex_unlock(&feed->live->lock);
	return start;
}

/* It is tried again, unless its viewer has left meanwhile. */
static void live_put_start_back(struct live_feed *feed, struct live_start *start)
{
	pthread_mutex_lock(&feed->live->lock);
	bool left = !start->viewer;
	start->following = feed->starts;
	if (!left)
		feed->starts = start;
	pthread_mutex_unlock(&feed->live->lock);
	if (left)
		live_start_free(start);
}

/* Those who have come, in any order, so long as the store can be read. */
static void live_begin_all(struct live_feed *feed, struct job *job)
{
	struct live_start *start;
	while ((start = live_take_start(feed)) != NULL) {
		if (live_begin(feed, job, start))
			continue;
		live_put_start_back(feed, start);
		break;
	}
}

static void live_take_new(void *owner, uint64_t number, const struct fault_listed *report)
{
	struct live_batch *batch = owner;
	ASSERT(batch->count < batch->room);
	batch->numbers[batch->count] = number;
	if (!live_keep(batch, report))
		batch->missed++;
}

/* True: there were some. Viewers are told of nothing, too, and after an error: they see that the
 * server is there. */
static bool live_ask(struct live_feed *feed, struct job *job)
{
	struct live_batch *batch = live_batch_new(feed, FAULT_NEWS_MAX, true);
	struct errbuf e = {""};
	uint64_t missed = 0;
	batch->from = feed->next;
	int err = live_read_merges(batch, job, &e);
	if (!err)
		err = fault_book_news(feed->book, job_queue(job), &feed->next, live_take_new, batch,
				      &missed, &e);
	if (err)
		live_say(feed, err, &e);
	bool any = batch->count || missed;
	batch->next = feed->next;
	batch->missed += missed;
	stat_add(STAT_fault_news_missed, (int64_t)batch->missed);
	live_post(batch, fault_executor_of(feed->live->fault));
	return any;
}

/* What is still on its way to viewers is waited for. */
static bool live_is_over(struct live_feed *feed)
{
	struct fault_live *live = feed->live;
	pthread_mutex_lock(&live->lock);
	bool over = !feed->viewer_count && !feed->starts && !feed->batch_count;
	for (struct live_feed **at = &live->feeds; over && *at; at = &(*at)->following) {
		if (*at != feed)
			continue;
		*at = feed->following;
		break;
	}
	pthread_mutex_unlock(&live->lock);
	return over;
}

static void live_feed_free(struct live_feed *feed)
{
	if (feed->book) {
		fault_book_watch(feed->book, false);
		fault_book_return(feed->live->fault, feed->book);
	}
	mem_free(feed->tenant);
	mem_free(feed);
}

static bool live_look_at(struct live_feed *feed, struct job *job)
{
	if (live_is_over(feed)) {
		live_feed_free(feed);
		return false;
	}
	if (!feed->book) {
		feed->book = fault_book_borrow(feed->live->fault, slice_of(feed->tenant));
		fault_book_watch(feed->book, true);
	}
	live_begin_all(feed, job);
	return feed->begun && live_ask(feed, job);
}

static bool live_look(struct fault_live *live, struct job *job)
{
	bool any = false;
	pthread_mutex_lock(&live->lock);
	struct live_feed *feed = live->feeds;
	pthread_mutex_unlock(&live->lock);
	/* New ones come before the first, and only this job takes some away. */
	while (feed && !job_is_stopping(job)) {
		struct live_feed *following = feed->following;
		any = live_look_at(feed, job) || any;
		feed = following;
	}
	return any;
}

static void live_run(struct job *job, void *owner)
{
	struct fault_live *live = owner;
	while (!job_is_stopping(job)) {
		if (!live->due)
			task_queue_wait(job_queue(job));
		live->due = false;
		bool more = message_live_look(live->messages, job, fault_executor_of(live->fault));
		bool any = live_look(live, job);
		live->due = live->due || more;
		if (any && job_sleep(job, REST_MS))
			break;
	}
	task_queue_run(job_queue(job)); /* nobody wakes a job that stops */
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void live_over(void *owner)
{
	struct fault_live *live = owner;
	job_free(live->job);
	live->job = NULL;
}

struct fault_live *fault_live_new(struct fault *fault)
{
	struct fault_live *live = mem_zalloc(sizeof(*live));
	live->fault = fault;
	live->messages = message_live_new(fault_site_of(fault));
	live->wake.run = live_awake;
	live->lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	pthread_mutex_init(&live->lock, NULL);
	return live;
}

void fault_live_start(struct fault_live *live, struct executor *executor)
{
	struct job *job;
	int err = job_start("fault-news", live_run, live_over, live, executor, &job);
	ASSERT(!err); /* one of the first */
	pthread_mutex_lock(&live->lock);
	live->job = job;
	pthread_mutex_unlock(&live->lock);
}

void fault_live_stop(struct fault_live *live)
{
	pthread_mutex_lock(&live->lock);
	live->stopping = true;
	pthread_mutex_unlock(&live->lock);
	if (live->job)
		job_stop(live->job);
}

bool fault_live_is_over(const struct fault_live *live)
{
	return !live->job;
}

struct message_live *fault_live_messages(struct fault_live *live)
{
	return live->messages;
}

void fault_live_free(struct fault_live *live)
{
	while (live->feeds) {
		struct live_feed *feed = live->feeds;
		live->feeds = feed->following;
		ASSERT(!feed->viewer_count && !feed->batch_count);
		while (feed->starts) {
			struct live_start *start = feed->starts;
			feed->starts = start->following;
			live_start_free(start);
		}
		live_feed_free(feed);
	}
	message_live_free(live->messages);
	pthread_mutex_destroy(&live->lock);
	mem_free(live);
}
