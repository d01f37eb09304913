#include "cmd/stop_phases.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/supervisor.h"
#include "cmd/command.h"

enum {
	STOP_POLL_MS = 5,
	STOP_CLOSE_MS = 30000, /* on top of the bound, to close the store */
};

void stop_phases_end_phase(void *owner)
{
	struct stop_phases *s = owner;
	s->phase_over = true;
}

static void stop_phases_end(struct stop_phases *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->signals); i++)
		loop_signal_close(s->signals[i]);
	loop_timer_close(s->timer);
	loop_stop(s->loop);
}

/* Some phases have nobody who tells of their end, so the timer looks. */
static void stop_phases_on_timer(void *owner)
{
	struct stop_phases *s = owner;
	const struct stop_phase *phase = s->phase ? &s->phases[s->phase - 1] : NULL;
	while (!phase || (phase->over ? phase->over(s->owner) : s->phase_over)) {
		if (s->phase == s->phase_count) {
			stop_phases_end(s);
			return;
		}
		phase = &s->phases[s->phase++];
		s->phase_over = false;
		supervisor_tell("STATUS=stopping: %s", phase->name);
		if (phase->begin)
			phase->begin(s->owner);
	}
	if (loop_now_ms(s->loop) > s->give_up_ms) {
		log_error("stop: \"%s\" did not end in time; the process ends now; what was "
			  "answered is safe",
			  phase->name);
		_exit(s->dead_err ? EXIT_IO : EXIT_FAILED);
	}
}

void stop_phases_begin(struct stop_phases *s)
{
	if (s->timer)
		return;
	int64_t bound_ms = s->dead_err ? 2 * STOP_DEAD_MS : s->bound_ms;
	s->begun_ms = loop_now_ms(s->loop);
	s->give_up_ms = s->begun_ms + bound_ms;
	/* The loop stands still while the store is closed; this bounds that, too. */
	alarm((unsigned)((bound_ms + STOP_CLOSE_MS) / 1000));
	supervisor_tell("STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld000",
			(long long)(bound_ms + STOP_CLOSE_MS));
	watchdog_free(s->watchdog);
	s->watchdog = NULL;
	s->timer = loop_timer_new(s->loop, stop_phases_on_timer, s);
	loop_timer_start(s->timer, 0, STOP_POLL_MS);
}

static void stop_phases_on_signal(void *owner, int signum)
{
	struct stop_phases *s = owner;
	if (!s->timer) {
		log_info("signal %d: stopping", signum);
		stop_phases_begin(s);
	} else if (s->again_ms && loop_now_ms(s->loop) - s->begun_ms >= s->again_ms) {
		log_warn("signal %d again: the process ends now", signum);
		_exit(EXIT_FAILED);
	}
}

void stop_phases_on_replay(uint64_t pages, uint64_t total)
{
	supervisor_tell_progress("replays the pages of the store's journal", pages, total);
}

void stop_phases_ready(struct stop_phases *s, const struct watched *watched, size_t count)
{
	supervisor_tell("READY=1\nSTATUS=ready");
	s->watchdog = watchdog_new(s->loop, clock_real(), watched, count);
}

/* Gives SIG_BLOCK or SIG_UNBLOCK to this thread, and to those that it starts. */
static void stop_phases_mask_reload(int how)
{
	sigset_t hangup;
	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	pthread_sigmask(how, &hangup, NULL);
}

void stop_phases_begin_process(void)
{
	supervisor_find();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	stop_phases_mask_reload(SIG_BLOCK);
}

int stop_phases_open_signals(struct stop_phases *s, loop_signal_fn *reload, struct errbuf *e)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		bool stops = numbers[i] != SIGHUP;
		int err = loop_signal_open(s->loop, numbers[i],
					   stops ? stop_phases_on_signal : reload,
					   stops ? s : s->owner, &s->signals[i]);
		if (err)
			return errbuf_set(e, err, "signal %d: %s", numbers[i], err_text(err));
	}
	stop_phases_mask_reload(SIG_UNBLOCK);
	return 0;
}

static void stop_phases_run_dead(struct task *task)
{
	struct stop_phases *s = CONTAINER_OF(task, struct stop_phases, dead_task);
	log_error("a commit failed: %s; stopping, since only a restart can tell what is on disk",
		  err_text(s->dead_err));
	stop_phases_begin(s);
}

/* On the store's writer thread. */
void stop_phases_on_dead(void *owner, int err)
{
	struct stop_phases *s = owner;
	s->dead_err = err;
	s->dead_task.run = stop_phases_run_dead;
	loop_executor(s->loop)->post(loop_executor(s->loop), &s->dead_task);
}
