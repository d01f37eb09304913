/* Doubt: what expires by a wrong clock is gone for good, so nothing does while the clock is doubted
 * (base/clock_watch.h says when that is). Here that is told to people, and kept for the next start.
 *
 * The mark is written once in a minute, and as soon as the doubt begins, moves or ends. So it is
 * also the time of the newest commit, give or take a minute, and a start whose clock is far from it
 * doubts. That of the newest sample would not do: a client may write what is yet to come, and a
 * wrong clock has this machine's own metrics written so. A store of an earlier program has no mark;
 * the newest page of its journal says when that was written, or else the newest stamp of a cell.
 * Where the mark was damaged, a wrong clock may have written these, too: then a start doubts any.
 */
#include "base/stats.h"
#include "store/lmdb/upkeep/upkeep.h"
#include "wire/timetext.h"

#define MARK_INTERVAL_US (INT64_C(60) * 1000000)
#define REMIND_US        (INT64_C(3600) * 1000000)

static const struct slice mark_name = SLICE(ENV_CLOCK);

struct mark_numbers {
	uint64_t doubted;
	int64_t sure_us, shown_us, stood_us;
};

int doubt_load(struct engine *engine, MDB_txn *txn)
{
	struct slice value, payload;
	struct mark_numbers n;
	int err = env_get(txn, engine->env.dbi[DB_META], mark_name, &value);
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err;
	engine->mark_is_lost = record_open(mark_name, value, &payload) || payload.len != sizeof(n);
	if (engine->mark_is_lost)
		return 0;
	memcpy(&n, payload.data, sizeof(n));
	engine->kept_mark = (struct clock_mark){n.sure_us, n.doubted != 0, n.shown_us, n.stood_us};
	engine->has_kept_mark = true;
	return 0;
}

static int64_t newest_write_us(const struct engine *engine)
{
	size_t last = engine->journal_first + engine->journal_count - 1;
	if (!engine->journal_count)
		return engine->stamp_us;
	return engine->journal[last % engine->journal_cap].written_ms * 1000;
}

void doubt_resume(struct engine *engine)
{
	struct clock_mark known = {.sure_us = newest_write_us(engine)};
	if (engine->has_kept_mark)
		known = engine->kept_mark;
	else if (engine->mark_is_lost && known.sure_us)
		known.sure_us -= CLOCK_GAP_US + 2 * CLOCK_TOLERANCE_US;
	if (known.sure_us)
		clock_watch_resume(&engine->watch, &known);
}

static void tell_doubt(const struct engine *engine, const struct clock_mark *mark)
{
	char shown[TIME_PRINT_MAX_BYTES], sure[TIME_PRINT_MAX_BYTES];
	log_warn("store %s: the clock shows %.*s, but by what is known it should be about %.*s. "
		 "Nothing expires, so the disk may fill, until the clock has stood for a day "
		 "(%lld s so far) or is back. If it is right: granary clock accept",
		 engine->options.path, (int)time_print(shown, mark->shown_us / 1000000 * 1000),
		 shown, (int)time_print(sure, mark->sure_us / 1000000 * 1000), sure,
		 (long long)(mark->stood_us / 1000000));
}

/* While it lasts once in an hour. */
static void doubt_tell(struct engine *engine, const struct clock_mark *mark)
{
	const struct clock_mark *told = &engine->told_mark;
	bool jumped = mark->doubted && (!told->doubted || mark->stood_us < told->stood_us);
	bool again = mark->doubted && mark->stood_us / REMIND_US != told->stood_us / REMIND_US;
	if (jumped)
		stat_add(STAT_store_clock_jumps, 1);
	if (jumped || again)
		tell_doubt(engine, mark);
	else if (!mark->doubted && told->doubted)
		log_warn("store %s: the clock is believed again: what has expired leaves the disk",
			 engine->options.path);
	if (mark->doubted != told->doubted)
		engine->expire_due_us = 0;
	stat_set(STAT_store_clock_doubted, mark->doubted);
	engine->told_mark = *mark;
}

static int put_mark(struct engine *engine, MDB_txn *txn, const struct clock_mark *mark)
{
	struct mark_numbers n = {mark->doubted, mark->sure_us, mark->shown_us, mark->stood_us};
	uint8_t value[RECORD_HEADER_BYTES + sizeof(n)];
	memcpy(value + RECORD_HEADER_BYTES, &n, sizeof(n));
	record_seal(mark_name, value, sizeof(value));
	return env_put(txn, engine->env.dbi[DB_META], mark_name,
		       (struct slice){(const char *)value, sizeof(value)});
}

static bool is_mark_due(const struct engine *engine, const struct clock_mark *mark, int64_t now_us)
{
	const struct clock_mark *kept = &engine->kept_mark;
	return !engine->has_kept_mark || now_us >= engine->mark_due_us ||
	       mark->doubted != kept->doubted || mark->stood_us < kept->stood_us;
}

int doubt_update(struct engine *engine, MDB_txn *txn)
{
	struct clock_mark mark;
	clock_watch_mark(&engine->watch, &mark);
	doubt_tell(engine, &mark);
	if (!is_mark_due(engine, &mark, engine_now_us(engine)))
		return 0;
	engine->new_mark = mark;
	engine->has_new_mark = true;
	return put_mark(engine, txn, &mark);
}

void doubt_committed(struct engine *engine)
{
	if (!engine->has_new_mark)
		return;
	engine->kept_mark = engine->new_mark;
	engine->has_kept_mark = true;
	engine->mark_due_us = engine_now_us(engine) + MARK_INTERVAL_US;
	engine->has_new_mark = false;
}

void doubt_aborted(struct engine *engine)
{
	engine->has_new_mark = false;
}
