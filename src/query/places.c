/* Places: how many queries run at once. The next ones wait in order of arrival, up to a bound. A
 * run whose answer nobody takes gives its place up, so that clients who do not read keep nobody
 * out. */
#include "query/private.h"

#include "base/stats.h"

static void places_begin(struct query_run *run)
{
	run->engine->running++;
	run->state = RUN_FINDING;
	run->asked_us = run_mono_us(run);
	stat_set(STAT_queries_running, (int64_t)run->engine->running);
	catalog_find_start(&run->find);
}

static void wait_remove(struct query_run *run)
{
	struct query_engine *engine = run->engine;
	struct query_run **link = &engine->first;
	while (*link != run)
		link = &(*link)->next;
	*link = run->next;
	if (engine->last == &run->next)
		engine->last = link;
	engine->waiting--;
}

static void begin_waiting(struct query_engine *engine)
{
	while (engine->first && engine->running < engine->options.concurrent_max) {
		struct query_run *run = engine->first;
		wait_remove(run);
		places_begin(run);
	}
}

static void place_release(struct query_run *run)
{
	run->engine->running--;
	stat_set(STAT_queries_running, (int64_t)run->engine->running);
}

void place_leave(struct query_run *run)
{
	struct query_engine *engine = run->engine;
	if (run->state == RUN_WAITING)
		wait_remove(run);
	else if (run->state >= RUN_FINDING && run->state <= RUN_ANSWERING && !run->rests)
		place_release(run);
	engine->resting -= run->rests;
	run->rests = false;
	run->state = RUN_ENDED;
	begin_waiting(engine);
}

/* Whoever asked reads no further: others do not wait for him. What he is to get stays in memory, so
 * at most as many rest as there are places. */
static void places_rest(struct query_run *run)
{
	struct query_engine *engine = run->engine;
	if (engine->resting >= engine->options.concurrent_max)
		return;
	place_release(run);
	run->rests = true;
	engine->resting++;
}

void place_wake(struct query_run *run)
{
	struct query_engine *engine = run->engine;
	if (!run->rests)
		return;
	run->rests = false;
	engine->resting--;
	engine->running++;
	stat_set(STAT_queries_running, (int64_t)engine->running);
}

void places_tick(struct query_engine *engine)
{
	for (struct query_run *run = engine->runs; run; run = run->older) {
		if (run->state == RUN_ANSWERING && !run->rests && !run->called)
			places_rest(run);
		run->called = false;
	}
	begin_waiting(engine);
}

int place_begin(struct query_run *run)
{
	struct query_engine *engine = run->engine;
	if (engine->running < engine->options.concurrent_max) {
		places_begin(run);
		return 0;
	}
	if (engine->waiting == engine->options.waiting_max)
		return errbuf_set(&run->query.error, ERR_BUSY,
				  "%zu queries run and %zu wait; try again later", engine->running,
				  engine->waiting);
	run->state = RUN_WAITING;
	run->next = NULL;
	*engine->last = run;
	engine->last = &run->next;
	engine->waiting++;
	return 0;
}
