#include "fault/collector.h"

#include "base/log.h"
#include "fault/fault.h"

enum { COLLECTOR_LINES_A_MINUTE = 3 };

struct fault_collector {
	struct fault *fault;
	struct fault_collect_rules rules;
	int64_t every_ms;
	struct job *job; /* NULL: it is over, or has not begun */
	struct log_rate lines;
};

static void collector_plan(struct fault_collector *collector, struct job *job,
			   struct fault_book *book)
{
	struct clock *clock = fault_site_of(collector->fault)->clock;
	struct fault_plan *plan = NULL;
	struct errbuf e = {""};
	int err = fault_plan_new(book, job_queue(job), &collector->rules, 0, &plan, &e);
	if (!err && fault_plan_view(plan).runs)
		err = fault_book_collect(book, plan, &e);
	else if (!err)
		fault_plan_free(plan);
	if (!err)
		return;
	fault_plan_free(plan);
	if (err != ERR_CANCELLED && err != ERR_EXISTS && err != ERR_RETRY)
		log_rated(&collector->lines, clock_mono_ms(clock), LOG_WARN,
			  "faults: no reports of tenant " SHOWN
			  " are collected: %s; the server tries again",
			  SHOWN_OF(fault_book_tenant(book)), e.text[0] ? e.text : err_text(err));
}

static void collector_run(struct job *job, void *owner)
{
	struct fault_collector *collector = owner;
	while (!job_sleep(job, collector->every_ms)) {
		size_t count;
		struct fault_book **books = fault_copy_books(collector->fault, &count);
		for (size_t i = 0; i < count && !job_is_stopping(job); i++)
			if (fault_book_is_owned(books[i]) && !fault_book_collects(books[i]))
				collector_plan(collector, job, books[i]);
		mem_free(books);
	}
}

static void collector_over(void *owner)
{
	struct fault_collector *collector = owner;
	job_free(collector->job);
	collector->job = NULL;
}

struct fault_collector *
fault_collector_new(struct fault *fault, const struct fault_collect_rules *rules, int64_t every_ms)
{
	struct fault_collector *collector = mem_zalloc(sizeof(*collector));
	collector->fault = fault;
	collector->rules = *rules;
	collector->every_ms = every_ms;
	collector->lines = (struct log_rate){.lines_max = COLLECTOR_LINES_A_MINUTE};
	return collector;
}

void fault_collector_start(struct fault_collector *collector, struct executor *executor)
{
	int err = job_start("fault-gc", collector_run, collector_over, collector, executor,
			    &collector->job);
	ASSERT(!err); /* one of the first */
}

void fault_collector_stop(struct fault_collector *collector)
{
	if (collector->job)
		job_stop(collector->job);
}

bool fault_collector_is_over(const struct fault_collector *collector)
{
	return !collector->job;
}

void fault_collector_free(struct fault_collector *collector)
{
	mem_free(collector);
}
