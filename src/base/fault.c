#include "base/fault.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { POINTS_MAX = 16, NAME_MAX_BYTES = 48 };

static struct fault_point {
	char name[NAME_MAX_BYTES];
	enum fault_action action;
	unsigned first, times, passes;
} points[POINTS_MAX];

static unsigned point_count;
static void (*pause_at)(const char *name);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of the above */

_Atomic int fault_armed;

int fault_pass(const char *name)
{
	int result = 0;
	pthread_mutex_lock(&lock);
	void (*pause)(const char *name) = pause_at;
	for (unsigned i = 0; i < point_count; i++) {
		struct fault_point *point = &points[i];
		if (strcmp(point->name, name) != 0)
			continue;
		unsigned pass = ++point->passes;
		bool hit = pass >= point->first &&
			   (point->times == 0 || pass < point->first + point->times);
		if (hit && point->action == FAULT_KILL)
			kill(getpid(), SIGKILL);
		if (hit)
			result = ERR_FAULT;
	}
	pthread_mutex_unlock(&lock);
	if (pause)
		pause(name);
	return result;
}

void fault_arm(const char *name, enum fault_action action, unsigned first, unsigned times)
{
	pthread_mutex_lock(&lock);
	ASSERT(point_count < POINTS_MAX && strlen(name) < NAME_MAX_BYTES);
	struct fault_point *point = &points[point_count++];
	*point = (struct fault_point){.action = action, .first = first, .times = times};
	memcpy(point->name, name, strlen(name));
	fault_armed = 1;
	pthread_mutex_unlock(&lock);
}

void fault_set_pause(void (*pause)(const char *name))
{
	pthread_mutex_lock(&lock);
	pause_at = pause;
	fault_armed = pause || point_count;
	pthread_mutex_unlock(&lock);
}

void fault_disarm_all(void)
{
	pthread_mutex_lock(&lock);
	point_count = 0;
	pause_at = NULL;
	fault_armed = 0;
	pthread_mutex_unlock(&lock);
}

int fault_arm_from_env(struct errbuf *e)
{
	const char *at = getenv("GRANARY_FAULTS");
	while (at && *at) {
		char name[NAME_MAX_BYTES], action[8], mark = 0;
		unsigned first = 1;
		int used = 0;
		if (sscanf(at, "%47[a-z_.]=%7[a-z]%n%c", name, action, &used, &mark) < 2)
			return errbuf_set(e, ERR_INVALID, "GRANARY_FAULTS: cannot read \"%s\"", at);
		at += used;
		unsigned times = 1;
		if (*at == '@') {
			char *end;
			first = (unsigned)strtoul(at + 1, &end, 10);
			at = end;
		} else if (*at == '*') {
			times = 0;
			at++;
		}
		if (*at == ',')
			at++;
		else if (*at)
			return errbuf_set(e, ERR_INVALID, "GRANARY_FAULTS: cannot read \"%s\"", at);
		bool kills = strcmp(action, "kill") == 0;
		if ((!kills && strcmp(action, "error") != 0) || point_count == POINTS_MAX)
			return errbuf_set(e, ERR_INVALID, "GRANARY_FAULTS: unknown action \"%s\"",
					  action);
		fault_arm(name, kills ? FAULT_KILL : FAULT_ERROR, first, times);
	}
	return 0;
}
