#include "persist/claims.h"

enum { SEEN_MAX = 4000000 };

void claims_init(struct claims *claims)
{
	*claims = (struct claims){.first = NULL};
	pthread_mutex_init(&claims->lock, NULL);
}

void claims_release(struct claims *claims)
{
	hash_set_release(&claims->seen);
	pthread_mutex_destroy(&claims->lock);
}

struct hash128 claims_source(struct slice device, struct slice oidset)
{
	return hash128(device.data, device.len, hash64(oidset.data, oidset.len, 0));
}

bool claims_take(struct claims *claims, struct claim *claim)
{
	pthread_mutex_lock(&claims->lock);
	const struct claim *other = claims->first;
	while (other &&
	       (other->source.low != claim->source.low || other->source.high != claim->source.high))
		other = other->next;
	if (!other) {
		claim->next = claims->first;
		claims->first = claim;
	}
	pthread_mutex_unlock(&claims->lock);
	return !other;
}

void claims_give_back(struct claims *claims, const struct claim *claim)
{
	pthread_mutex_lock(&claims->lock);
	struct claim **at = &claims->first;
	while (*at && *at != claim)
		at = &(*at)->next;
	if (*at)
		*at = claim->next;
	pthread_mutex_unlock(&claims->lock);
}

void claims_drop(struct claims *claims, const void *worker)
{
	pthread_mutex_lock(&claims->lock);
	for (struct claim **at = &claims->first; *at;) {
		if ((*at)->worker == worker)
			*at = (*at)->next;
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&claims->lock);
}

void claims_see(struct claims *claims, struct hash128 source)
{
	pthread_mutex_lock(&claims->lock);
	hash_set_add(&claims->seen, source, SEEN_MAX);
	pthread_mutex_unlock(&claims->lock);
}

bool claims_seen(struct claims *claims, struct hash128 source)
{
	pthread_mutex_lock(&claims->lock);
	bool seen = hash_set_has(&claims->seen, source);
	pthread_mutex_unlock(&claims->lock);
	return seen;
}
