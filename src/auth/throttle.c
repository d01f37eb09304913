#include "auth/throttle.h"

#include "base/hash.h"
#include "base/random.h"

enum { THROTTLE_V6_BYTES = 8 }; /* a client has a whole /64 */

void throttle_init(struct throttle *throttle)
{
	*throttle = (struct throttle){.seed = random_system_seed()};
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static uint64_t throttle_account(const struct throttle *throttle, struct slice account)
{
	return hash64(account.data, account.len, throttle->seed) | 1;
}

static uint64_t throttle_address(const struct throttle *throttle, const struct loop_address *from)
{
	size_t len = from->v6 ? THROTTLE_V6_BYTES : 4;
	return hash64(from->bytes, len, throttle->seed + 1) | 1;
}

/* The key of an account together with an address. */
static uint64_t throttle_pair(uint64_t account, uint64_t address)
{
	return (account ^ address) | 1;
}

static struct throttle_row *throttle_find(struct throttle_row *rows, uint64_t of)
{
	for (size_t i = 0; i < THROTTLE_ROWS; i++)
		if (rows[i].of == of)
			return &rows[i];
	return NULL;
}

/* The least goes first: one that is free, the one that was seen longest ago, and of those that hold
 * somebody up only where all do. */
static int64_t throttle_worth(const struct throttle_row *row, int64_t now_ms)
{
	if (!row->of)
		return INT64_MIN;
	return row->seen_ms + (row->until_ms > now_ms ? INT64_MAX / 2 : 0);
}

static struct throttle_row *throttle_take(struct throttle_row *rows, uint64_t of, int64_t now_ms)
{
	struct throttle_row *row = throttle_find(rows, of), *least = &rows[0];
	if (row)
		return row;
	for (size_t i = 1; i < THROTTLE_ROWS; i++)
		if (throttle_worth(&rows[i], now_ms) < throttle_worth(least, now_ms))
			least = &rows[i];
	*least = (struct throttle_row){.of = of, .seen_ms = now_ms};
	return least;
}

/* ---- Wrong ones ------------------------------------------------------------------------------ */

static int64_t throttle_left_ms(struct throttle *throttle, uint64_t of, int64_t now_ms)
{
	const struct throttle_row *row = throttle_find(throttle->wrong, of);
	return row && row->until_ms > now_ms ? row->until_ms - now_ms : 0;
}

static void throttle_count(struct throttle *throttle, uint64_t of, int64_t now_ms)
{
	struct throttle_row *row = throttle_take(throttle->wrong, of, now_ms);
	int64_t wait_ms = THROTTLE_FIRST_MS;
	if (now_ms - row->seen_ms >= THROTTLE_FORGET_MS)
		row->wrong = 0;
	row->seen_ms = now_ms;
	if (++row->wrong < THROTTLE_WRONG_MAX)
		return;
	for (unsigned i = THROTTLE_WRONG_MAX; i < row->wrong && wait_ms < THROTTLE_MOST_MS; i++)
		wait_ms *= 2;
	row->until_ms = now_ms + (wait_ms < THROTTLE_MOST_MS ? wait_ms : THROTTLE_MOST_MS);
}

static void throttle_forget(struct throttle_row *rows, uint64_t of)
{
	struct throttle_row *row = throttle_find(rows, of);
	if (row)
		*row = (struct throttle_row){.of = 0};
}

int64_t throttle_held_up_ms(struct throttle *throttle, struct slice account,
			    const struct loop_address *from, int64_t now_ms)
{
	uint64_t name = throttle_account(throttle, account),
		 address = throttle_address(throttle, from);
	bool known = throttle_find(throttle->known, throttle_pair(name, address));
	int64_t by_name_ms = known ? 0 : throttle_left_ms(throttle, name, now_ms);
	int64_t by_address_ms = throttle_left_ms(throttle, address, now_ms);
	return by_name_ms > by_address_ms ? by_name_ms : by_address_ms;
}

int64_t throttle_try(struct throttle *throttle, struct slice account,
		     const struct loop_address *from, int64_t now_ms)
{
	uint64_t name = throttle_account(throttle, account),
		 address = throttle_address(throttle, from);
	int64_t left_ms = throttle_held_up_ms(throttle, account, from, now_ms);
	if (left_ms)
		return left_ms;
	throttle_count(throttle, address, now_ms);
	if (!throttle_find(throttle->known, throttle_pair(name, address)))
		throttle_count(throttle, name, now_ms);
	return 0;
}

void throttle_good(struct throttle *throttle, struct slice account, const struct loop_address *from,
		   int64_t now_ms)
{
	uint64_t name = throttle_account(throttle, account),
		 address = throttle_address(throttle, from);
	throttle_forget(throttle->wrong, name);
	throttle_forget(throttle->wrong, address);
	throttle_take(throttle->known, throttle_pair(name, address), now_ms)->seen_ms = now_ms;
}
