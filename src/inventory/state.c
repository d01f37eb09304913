/* How polling a device goes. Written by the poller's threads, read by those who answer. */
#include <pthread.h>

#include "inventory/private.h"

struct device_state {
	_Atomic size_t references;
	pthread_mutex_t lock; /* guards status */
	struct device_status status;
};

struct device_state *device_state_new(void)
{
	struct device_state *state = mem_zalloc(sizeof(*state));
	state->references = 1;
	pthread_mutex_init(&state->lock, NULL);
	return state;
}

void device_state_take(struct device_state *state)
{
	ASSERT(state->references > 0);
	state->references++;
}

void device_state_release(struct device_state *state)
{
	ASSERT(state->references > 0);
	if (--state->references > 0)
		return;
	pthread_mutex_destroy(&state->lock);
	mem_free(state);
}

void device_state_succeeded(struct device_state *state, int64_t now_ms)
{
	pthread_mutex_lock(&state->lock);
	state->status = (struct device_status){.resolved = true, .last_success_ms = now_ms};
	pthread_mutex_unlock(&state->lock);
}

void device_state_failed(struct device_state *state, int64_t now_ms, bool resolved, const char *why)
{
	struct device_status *status = &state->status;
	ASSERT(why);
	pthread_mutex_lock(&state->lock);
	status->resolved = resolved;
	/* Since the first of the polls that failed in a row, with the latest reason. */
	if (status->failing_since_ms == 0)
		status->failing_since_ms = now_ms;
	snprintf(status->error, sizeof(status->error), "%s", why);
	pthread_mutex_unlock(&state->lock);
}

struct device_status device_state_read(const struct device_state *state)
{
	/* The lock is no part of what is read. */
	pthread_mutex_t *lock = (pthread_mutex_t *)&state->lock;
	pthread_mutex_lock(lock);
	struct device_status status = state->status;
	pthread_mutex_unlock(lock);
	return status;
}

void device_state_set(struct device_state *state, const struct device_status *status)
{
	pthread_mutex_lock(&state->lock);
	state->status = *status;
	pthread_mutex_unlock(&state->lock);
}
