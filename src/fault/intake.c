#include "fault/intake.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/random.h"
#include "base/stats.h"
#include "fault/tables.h"

enum {
	READ_MAX_BYTES = 64 << 20, /* FAULT_ITEMS_MAX ids, each with some arrivals */
	WRITE_MAX_BYTES = 48 << 20,
	/* Reports that are being written, and voids that are to be: readers look for what comes
	 * next in two rows, so no more than a row has. */
	IN_FLIGHT_MAX = FAULT_RUN_REPORTS,
	DAY_HASHES_MAX = 200000, /* that a writer stores */
	CLOCK_BACK_US = 1000000, /* a clock that is set back by more begins a writer */
};
/* What a writer received longer ago it does not say any more: its process may have been frozen, and
 * after a day others take it for dead (book.c). */
#define IDLE_MAX_US INT64_C(43200000000)
/* A run that is not full is not sealed before its writer is closed: one that wrote nothing for so
 * long, or whose run was begun so long ago. */
#define QUIET_MAX_US (IDLE_MAX_US / 2)
#define RUN_MAX_US   FAULT_DAY_US

struct intake_void {
	uint64_t sequence;
	int64_t date_us;
};

/* Who writes a tenant's arrivals; while its clock goes on. */
struct intake_writer {
	char *tenant_text;
	struct slice tenant;
	uint64_t writer, next;
	int64_t began_us;        /* a stamp from before it wrote anything; 0: it did not */
	int64_t run_us, last_us; /* when it received the first of its present run, and its last */
	bool registered;         /* its cell is durable */
	int64_t hash_day;        /* of its last report */
	size_t hash_room;        /* so many hashes may yet be stored on that day */
	struct intake_void *voids;
	size_t void_count, void_room;
	struct store_write *void_write; /* NULL: none is under way */
	size_t voids_written;           /* so many of the first */
	size_t submissions;             /* that write by it */
	struct fault_intake *intake;
	struct intake_writer *next_writer;
	bool old; /* it is given no more reports */
	/* The write that closes an old writer. It is sent when all else of the writer is written.
	 */
	struct store_write *close_write; /* NULL: none is under way */
	int64_t close_stamp_us;          /* 0: none was sent yet */
	bool closed;
};

struct fault_intake {
	struct fault_intake_options options;
	const struct fault_site *site;
	struct executor *executor;
	struct random random;
	struct intake_writer *writers;
	struct fault_hashes hashes;
	struct fault_submission *active, *waiting, **waiting_end;
	size_t in_flight, voids; /* reports */
};

struct fault_intake *fault_intake_new(const struct fault_intake_options *options)
{
	struct fault_intake *intake = mem_zalloc(sizeof(*intake));
	intake->options = *options;
	intake->site = options->site;
	intake->executor = options->executor;
	intake->waiting_end = &intake->waiting;
	random_init(&intake->random, options->seed);
	intake->hashes.seed = hash64(&options->seed, sizeof(options->seed), 0);
	return intake;
}

static void intake_free_writer(struct intake_writer *writer)
{
	mem_free(writer->tenant_text);
	mem_free(writer->voids);
	mem_free(writer);
}

bool fault_intake_is_idle(const struct fault_intake *intake)
{
	for (const struct intake_writer *w = intake->writers; w; w = w->next_writer)
		if (w->void_write || w->close_write)
			return false;
	return !intake->in_flight;
}

void fault_intake_free(struct fault_intake *intake)
{
	ASSERT(fault_intake_is_idle(intake));
	while (intake->writers) {
		struct intake_writer *writer = intake->writers;
		intake->writers = writer->next_writer;
		intake_free_writer(writer);
	}
	fault_hashes_release(&intake->hashes);
	mem_free(intake);
}

/* ---- Writers --------------------------------------------------------------------------------- */

static struct intake_writer *intake_begin_writer(struct fault_intake *intake, struct slice tenant)
{
	struct intake_writer *writer = mem_zalloc(sizeof(*writer));
	writer->tenant_text = mem_copy_text(tenant);
	writer->tenant = (struct slice){writer->tenant_text, tenant.len};
	writer->writer = random_next(&intake->random) | 1; /* 0 is none */
	writer->last_us = INT64_MIN;
	writer->hash_day = INT64_MIN;
	writer->intake = intake;
	writer->next_writer = intake->writers;
	intake->writers = writer;
	return writer;
}

/* Where the clock was set back, so that within one writer the dates rise and are right; or where
 * there may be nothing more for long, and its run is to be sealed. */
static bool intake_is_due(const struct intake_writer *writer, int64_t now_us)
{
	bool begun = writer->next % FAULT_RUN_REPORTS;
	return writer->next && (now_us < writer->last_us - CLOCK_BACK_US ||
				now_us > writer->last_us + QUIET_MAX_US ||
				(begun && now_us > writer->run_us + RUN_MAX_US));
}

/* The writer of a tenant. */
static struct intake_writer *intake_writer_of(struct fault_intake *intake, struct slice tenant)
{
	int64_t now_us = intake->site->clock->wall_us(intake->site->clock);
	struct intake_writer *writer = intake->writers;
	while (writer && (writer->old || !slice_equal(writer->tenant, tenant)))
		writer = writer->next_writer;
	if (writer && intake_is_due(writer, now_us)) {
		writer->old = true;
		writer = NULL;
	}
	return writer ? writer : intake_begin_writer(intake, tenant);
}

/* ---- Voids ----------------------------------------------------------------------------------- */

static void intake_add_void(struct intake_writer *writer, uint64_t sequence, int64_t date_us)
{
	GROW(writer->voids, writer->void_room, writer->void_count + 1);
	writer->voids[writer->void_count++] = (struct intake_void){sequence, date_us};
	writer->intake->voids++;
	stat_add(STAT_fault_voids, 1);
}

static void intake_on_voids_written(struct store_write *write, int err)
{
	struct intake_writer *writer = write->owner;
	size_t written = err ? 0 : writer->voids_written;
	memmove(writer->voids, writer->voids + written,
		(writer->void_count - written) * sizeof(*writer->voids));
	writer->void_count -= written;
	writer->intake->voids -= written;
	writer->void_write = NULL;
	store_write_free(write);
}

static int intake_put_arrival(struct store_write *write, const struct intake_writer *writer,
			      uint64_t sequence, const struct fault_arrival *arrival,
			      int64_t stamp_us)
{
	struct fault_parts key, column;
	struct buf value;
	buf_init(&value, TABLE_SHARED_VALUE_MAX_BYTES);
	fault_arrival_encode(arrival, &value);
	fault_arrivals_key(&key, writer->tenant, (struct fault_place){writer->writer, sequence});
	fault_arrivals_column(&column, sequence);
	int err = value.failed ? ERR_LIMIT
			       : store_cell_put(write, TABLE_REPORT_ARRIVALS, &key.parts,
						&column.parts, buf_slice(&value), stamp_us, 0);
	buf_release(&value);
	return err;
}

static void intake_write_voids(struct intake_writer *writer)
{
	const struct fault_site *site = writer->intake->site;
	int64_t stamp_us = store_stamp(site->store);
	int err = 0;
	if (!writer->void_count || writer->void_write)
		return;
	struct store_write *write = store_write_new(site->store, WRITE_MAX_BYTES);
	for (size_t i = 0; i < writer->void_count && !err; i++) {
		const struct fault_arrival nothing = {.is_void = true,
						      .date_us = writer->voids[i].date_us};
		err = intake_put_arrival(write, writer, writer->voids[i].sequence, &nothing,
					 stamp_us);
	}
	ASSERT(!err); /* a few bytes each, of at most some thousands */
	write->executor = writer->intake->executor;
	write->done = intake_on_voids_written;
	write->owner = writer;
	writer->voids_written = writer->void_count;
	writer->void_write = write;
	if (!store_write_submit(write))
		return;
	writer->void_write = NULL;
	store_write_free(write);
}

/* ---- The end of a submission ----------------------------------------------------------------- */

static void intake_begin(struct fault_submission *s);

static bool intake_collides(const struct fault_submission *a, const struct fault_submission *b)
{
	if (!slice_equal(a->tenant, b->tenant))
		return false;
	for (size_t i = 0; i < a->count; i++)
		for (size_t j = 0; j < b->count; j++)
			if (slice_equal(a->items[i].id, b->items[j].id))
				return true;
	return false;
}

/* Whether one with an id of it is at work, or waits before it. */
static bool intake_must_wait(const struct fault_intake *intake, const struct fault_submission *s)
{
	for (const struct fault_submission *a = intake->active; a; a = a->next)
		if (intake_collides(a, s))
			return true;
	for (const struct fault_submission *w = intake->waiting; w && w != s; w = w->next)
		if (intake_collides(w, s))
			return true;
	return false;
}

static void intake_activate(struct fault_intake *intake, struct fault_submission *s)
{
	s->next = intake->active;
	intake->active = s;
	intake_begin(s);
}

static void intake_begin_waiting(struct fault_intake *intake)
{
	struct fault_submission **place = &intake->waiting;
	while (*place) {
		struct fault_submission *s = *place;
		if (intake_must_wait(intake, s)) {
			place = &s->next;
			continue;
		}
		*place = s->next;
		if (intake->waiting_end == &s->next)
			intake->waiting_end = place;
		intake_activate(intake, s);
		place = &intake->waiting; /* it may have ended at once, and others with it */
	}
}

static void intake_count(const struct fault_submission *s)
{
	for (size_t i = 0; i < s->count; i++) {
		switch (s->items[i].outcome) {
		case FAULT_TAKEN:
			stat_add(STAT_fault_taken, 1);
			break;
		case FAULT_REPEATED:
			stat_add(STAT_fault_repeated, 1);
			break;
		case FAULT_CONFLICT:
			stat_add(STAT_fault_conflicts, 1);
			break;
		case FAULT_ERASED:
			stat_add(STAT_fault_refused_erased, 1);
			break;
		case FAULT_FAILED:
			stat_add(STAT_fault_failed, 1);
			break;
		}
	}
}

static bool intake_same_digest(struct hash128 a, struct hash128 b)
{
	return a.low == b.low && a.high == b.high;
}

/* Items whose id another item of the submission has, too: what became of that one decides. */
static void intake_judge_same(struct fault_submission *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct fault_item *item = &s->items[i];
		const struct fault_item *first = &s->items[item->same];
		if (first == item || item->outcome != FAULT_TAKEN)
			continue;
		bool same = intake_same_digest(first->digest, item->digest);
		item->outcome = first->outcome == FAULT_FAILED ? FAULT_FAILED
				: same                         ? FAULT_REPEATED
							       : FAULT_CONFLICT;
		item->err = first->err;
		item->date_us = first->date_us;
	}
}

static void intake_end(struct fault_submission *s)
{
	struct fault_intake *intake = s->intake;
	for (size_t i = 0; i < s->count; i++)
		fault_hashes_note_written(&intake->hashes, &s->items[i].lookup,
					  s->items[i].outcome == FAULT_FAILED);
	struct fault_submission **place = &intake->active;
	while (*place != s)
		place = &(*place)->next;
	*place = s->next;
	if (s->writer)
		s->writer->submissions--;
	store_read_free(s->read);
	store_write_free(s->write);
	s->read = NULL;
	s->write = NULL;
	intake->in_flight -= s->count;
	intake_judge_same(s);
	intake_count(s);
	s->done(s);
	intake_begin_waiting(intake);
}

/* Of those that were to be written. */
static void intake_fail(struct fault_submission *s, int err)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->items[i].outcome != FAULT_TAKEN || s->items[i].same != i)
			continue;
		s->items[i].outcome = FAULT_FAILED;
		s->items[i].err = err;
	}
	intake_end(s);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Nothing of the arrivals is there, nor will be. */
static void intake_make_voids(struct fault_submission *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].outcome == FAULT_TAKEN && s->items[i].same == i)
			intake_add_void(s->writer, s->items[i].sequence, s->items[i].date_us);
}

/* Others may have taken its writer for dead meanwhile. */
static bool intake_is_too_late(const struct fault_submission *s)
{
	int64_t now_us = s->intake->site->clock->wall_us(s->intake->site->clock);
	return now_us > s->numbered_us + IDLE_MAX_US;
}

static void intake_on_written(struct store_write *write, int err)
{
	struct fault_submission *s = write->owner;
	if (!err || write->stages_kept > 0)
		s->writer->registered = true;
	s->unknown = s->unknown || err == ERR_UNKNOWN || write->stages_kept > s->arrivals_stage;
	if (intake_is_too_late(s)) {
		intake_fail(s, ERR_UNKNOWN);
	} else if (!err) {
		if (s->intake->options.written)
			s->intake->options.written(s->intake->options.owner, s->tenant);
		intake_end(s);
	} else if (s->unknown && err != ERR_CANCELLED) {
		s->again = true; /* at the next tick */
	} else {
		intake_make_voids(s);
		intake_fail(s, err);
	}
}

/* An error: the store does not take it, and nothing was sent. */
static int intake_submit_write(struct fault_submission *s)
{
	s->again = false;
	s->write->executor = s->intake->executor;
	s->write->done = intake_on_written;
	s->write->owner = s;
	int err = store_write_submit(s->write);
	s->again = err == ERR_BUSY;
	return s->again ? 0 : err;
}

static void intake_submit_again(struct fault_submission *s)
{
	if (intake_is_too_late(s)) {
		intake_fail(s, ERR_UNKNOWN);
		return;
	}
	int err = intake_submit_write(s);
	if (err && s->unknown && err != ERR_CANCELLED) {
		s->again = true;
	} else if (err) {
		intake_make_voids(s);
		intake_fail(s, err);
	}
}

static int intake_put_writer(struct store_write *write, const struct intake_writer *writer,
			     enum fault_writer_state state, int64_t stamp_us)
{
	const struct fault_site *site = writer->intake->site;
	struct fault_parts key, column;
	struct buf value;
	const struct fault_writer_cell cell = {
		.state = state,
		.next = state ? writer->next : 0,
		.began_us = writer->began_us,
		.last_us = state ? writer->last_us : 0,
		.holder = site->holder,
	};
	buf_init(&value, 1 << 12);
	fault_writer_cell_encode(&cell, &value);
	fault_writers_key(&key, writer->tenant);
	fault_writers_column(&column, writer->writer);
	int err = store_cell_put(write, TABLE_REPORT_WRITERS, &key.parts, &column.parts,
				 buf_slice(&value), stamp_us, 0);
	buf_release(&value);
	return err;
}

/* A head is there if its content is: nobody looks for the content of one that was not kept. */
static int intake_put_attachment(struct fault_submission *s, const struct fault_item *item,
				 size_t number, int64_t stamp_us)
{
	const struct fault_attachment *attachment = &item->attachments[number];
	const struct fault_place place = {s->writer->writer, item->sequence};
	struct fault_parts key, column;
	struct buf head;
	buf_init(&head, 1 << 10);
	fault_attachment_encode(attachment, &head);
	ASSERT(!head.failed);
	fault_arrivals_key(&key, s->tenant, place);
	fault_attachments_column(&column, item->sequence, FAULT_ATTACHMENT_HEAD, number);
	int err = store_cell_put(s->write, TABLE_REPORT_ATTACHMENTS, &key.parts, &column.parts,
				 buf_slice(&head), stamp_us, 0);
	buf_release(&head);
	if (err || !attachment->kept)
		return err;
	fault_attachments_column(&column, item->sequence, FAULT_ATTACHMENT_CONTENT, number);
	return store_cell_put(s->write, TABLE_REPORT_ATTACHMENTS, &key.parts, &column.parts,
			      attachment->packed, stamp_us, 0);
}

static int intake_put_listing(struct fault_submission *s, const struct fault_item *item,
			      int64_t stamp_us)
{
	struct fault_parts key, column;
	uint8_t value[FAULT_LISTING_BYTES];
	const struct fault_listing listing = {{item->date_us, {s->writer->writer, item->sequence}},
					      item->digest};
	fault_listing_encode(&listing, value);
	fault_oops_key(&key, s->tenant, item->id);
	fault_oops_column(&column, item->id, listing.order.place);
	return store_cell_put(s->write, TABLE_OOPS, &key.parts, &column.parts,
			      (struct slice){(char *)value, sizeof(value)}, stamp_us, 0);
}

static void intake_number(struct fault_submission *s, struct fault_item *item)
{
	struct intake_writer *writer = s->writer;
	int64_t now_us = s->intake->site->clock->wall_us(s->intake->site->clock);
	item->date_us = writer->last_us = larger_of(now_us, writer->last_us + 1);
	if (writer->next % FAULT_RUN_REPORTS == 0)
		writer->run_us = item->date_us;
	item->sequence = writer->next++;
}

static void intake_choose_group(struct fault_submission *s, struct fault_item *item)
{
	struct intake_writer *writer = s->writer;
	const struct fault_site *site = s->intake->site;
	int64_t day = fault_day_of(item->date_us);
	if (day != writer->hash_day) {
		writer->hash_day = day;
		writer->hash_room = DAY_HASHES_MAX;
	}
	fault_hashes_choose(&s->intake->hashes, &item->lookup, clock_mono_ms(site->clock),
			    clock_wall_ms(site->clock), &writer->hash_room);
}

static bool intake_is_written(const struct fault_submission *s, size_t i)
{
	return s->items[i].outcome == FAULT_TAKEN && s->items[i].same == i;
}

/* ---- The end of a writer --------------------------------------------------------------------- */

static void intake_on_closed(struct store_write *write, int err)
{
	struct intake_writer *writer = write->owner;
	const struct fault_intake_options *options = &writer->intake->options;
	writer->close_write = NULL;
	writer->closed = !err;
	store_write_free(write);
	if (!err && options->written)
		options->written(options->owner, writer->tenant);
}

/* One whose outcome is not known is sent again under its stamp, so that it never replaces what the
 * owner made of it meanwhile. The stamp was taken when the owner could not have taken the writer
 * for dead yet. */
static void intake_close_writer(struct intake_writer *writer)
{
	const struct fault_site *site = writer->intake->site;
	if (!writer->close_stamp_us) {
		writer->close_stamp_us = store_stamp(site->store);
		writer->closed = !writer->registered ||
				 site->clock->wall_us(site->clock) > writer->last_us + IDLE_MAX_US;
		if (writer->closed)
			return;
	}
	struct store_write *write = store_write_new(site->store, WRITE_MAX_BYTES);
	int err = intake_put_writer(write, writer, FAULT_WRITER_CLOSED, writer->close_stamp_us);
	ASSERT(!err); /* the first of an empty write */
	write->executor = writer->intake->executor;
	write->done = intake_on_closed;
	write->owner = writer;
	writer->close_write = write;
	if (!store_write_submit(write))
		return;
	writer->close_write = NULL;
	store_write_free(write);
}

/* Old writers go when nothing of them is left to be written. */
static void intake_drop_old(struct fault_intake *intake)
{
	int64_t now_us = intake->site->clock->wall_us(intake->site->clock);
	struct intake_writer **place = &intake->writers;
	while (*place) {
		struct intake_writer *writer = *place;
		writer->old = writer->old || intake_is_due(writer, now_us);
		if (writer->old && !writer->submissions && !writer->void_count &&
		    !writer->void_write && !writer->close_write && !writer->closed)
			intake_close_writer(writer);
		if (!writer->closed) {
			place = &writer->next_writer;
			continue;
		}
		*place = writer->next_writer;
		intake_free_writer(writer);
	}
}

/* ---- Filling a write ------------------------------------------------------------------------- */

/* What has to be there before an arrival is. */
static int intake_fill_first(struct fault_submission *s, int64_t stamp_us)
{
	int err = 0;
	s->arrivals_stage = !s->writer->registered;
	if (s->arrivals_stage) {
		s->writer->began_us = s->writer->began_us ? s->writer->began_us : stamp_us;
		err = intake_put_writer(s->write, s->writer, FAULT_WRITER_WRITES, stamp_us);
	}
	for (size_t i = 0; i < s->count; i++) {
		const struct fault_item *item = &s->items[i];
		if (!intake_is_written(s, i))
			continue;
		for (int64_t n = 0; n < item->facts.attachments && !err; n++)
			err = intake_put_attachment(s, item, (size_t)n, stamp_us);
		s->arrivals_stage |= item->facts.attachments > 0;
	}
	if (s->arrivals_stage)
		store_write_next_stage(s->write);
	return err;
}

/* All requests of the write. A submission is smaller than a batch may be. */
static int intake_fill_write(struct fault_submission *s)
{
	int64_t stamp_us = store_stamp(s->intake->site->store);
	int err = intake_fill_first(s, stamp_us);
	for (size_t i = 0; i < s->count && !err; i++) {
		struct fault_item *item = &s->items[i];
		if (!intake_is_written(s, i))
			continue;
		struct fault_arrival arrival = {
			.date_us = item->date_us,
			.digest = item->digest,
			.id = item->id,
			.facts = item->facts,
			.dictionary = item->dictionary,
			.body_bytes = item->body_bytes,
			.packed = item->packed,
		};
		fault_lookup_apply(&item->lookup, &arrival.facts);
		err = intake_put_arrival(s->write, s->writer, item->sequence, &arrival, stamp_us);
	}
	store_write_next_stage(s->write);
	for (size_t i = 0; i < s->count && !err; i++) {
		if (!intake_is_written(s, i))
			continue;
		err = intake_put_listing(s, &s->items[i], stamp_us);
		err = err ? err
			  : fault_lookup_put(&s->items[i].lookup, s->tenant, stamp_us,
					     clock_wall_ms(s->intake->site->clock), s->write);
	}
	return err;
}

static void intake_write(struct fault_submission *s)
{
	size_t count = 0;
	s->writer = intake_writer_of(s->intake, s->tenant);
	s->writer->submissions++;
	for (size_t i = 0; i < s->count; i++) {
		if (!intake_is_written(s, i))
			continue;
		intake_number(s, &s->items[i]);
		intake_choose_group(s, &s->items[i]);
		count++;
	}
	if (!count) {
		intake_end(s);
		return;
	}
	s->numbered_us = s->writer->last_us;
	s->write = store_write_new(s->intake->site->store, WRITE_MAX_BYTES);
	int err = intake_fill_write(s);
	err = err ? err : intake_submit_write(s);
	if (!err)
		return;
	s->writer->next -= count; /* nobody has a number behind these yet */
	intake_fail(s, err);
}

/* ---- Looking ids and hashes up --------------------------------------------------------------- */

/* The first of the arrivals that an id has. False: it has none. */
static bool intake_first(const struct store_request *request, struct fault_listing *first)
{
	bool any = false;
	*first = (struct fault_listing){0};
	for (size_t i = 0; i < request->cell_scan.count; i++) {
		struct fault_listing listing;
		if (!fault_listing_decode(&request->cell_scan.cells[i], &listing) ||
		    (any && fault_order_compare(&listing.order, &first->order) > 0))
			continue;
		*first = listing;
		any = true;
	}
	return any;
}

/* By what was read of its id first, where several items have it: not all is read at one moment. */
static void intake_judge(struct fault_submission *s, struct fault_item *item)
{
	struct fault_listing first;
	if (!intake_first(s->items[item->same].request, &first)) {
		item->outcome = FAULT_TAKEN;
		return;
	}
	item->outcome = fault_listing_is_erased(&first)                  ? FAULT_ERASED
			: intake_same_digest(first.digest, item->digest) ? FAULT_REPEATED
									 : FAULT_CONFLICT;
	item->date_us = first.order.date_us;
}

/* A hash that cannot be read is as one that is not known. */
static int intake_err_of_ids(const struct fault_submission *s)
{
	int err = 0;
	for (size_t i = 0; i < s->count && !err; i++)
		err = s->items[i].request->err;
	return err;
}

static void intake_on_read(struct store_read *read, int err)
{
	struct fault_submission *s = read->owner;
	bool more = false;
	if (err == ERR_DAMAGED)
		err = intake_err_of_ids(s);
	for (size_t i = 0; i < s->count; i++)
		more = more || s->items[i].request->more;
	if (!err && more)
		err = ERR_RETRY; /* so many arrivals of one id, or of so many ids, are rare */
	for (size_t i = 0; i < s->count; i++) {
		struct fault_item *item = &s->items[i];
		item->outcome = FAULT_TAKEN;
		if (err)
			continue;
		intake_judge(s, item);
	}
	if (err)
		intake_fail(s, err);
	else
		intake_write(s);
}

struct intake_id_parts {
	struct fault_parts key, from, to;
};

static void intake_ask(struct fault_submission *s, struct intake_id_parts *parts)
{
	s->read = store_read_new(s->intake->site->store, READ_MAX_BYTES);
	s->read->now_ms = clock_wall_ms(s->intake->site->clock);
	s->read->executor = s->intake->executor;
	s->read->done = intake_on_read;
	s->read->owner = s;
	for (size_t i = 0; i < s->count; i++) {
		struct fault_item *item = &s->items[i];
		fault_oops_key(&parts[i].key, s->tenant, item->id);
		fault_oops_bound(&parts[i].from, item->id, false);
		fault_oops_bound(&parts[i].to, item->id, true);
		item->request = store_read_add(s->read, STORE_CELL_SCAN);
		ASSERT(item->request); /* there is room for FAULT_ITEMS_MAX */
		item->request->cell_scan = (struct store_cell_scan){
			.table = TABLE_OOPS,
			.key = parts[i].key.parts,
			.from = parts[i].from.parts,
			.to = parts[i].to.parts,
			.limit = FAULT_LISTINGS_MAX,
		};
		fault_hashes_ask(&s->intake->hashes, s->tenant, &item->facts,
				 clock_mono_ms(s->intake->site->clock), s->read, &item->lookup);
	}
}

static void intake_find_same(struct fault_submission *s)
{
	for (size_t i = 0; i < s->count; i++) {
		s->items[i].same = i;
		for (size_t j = 0; j < i && s->items[i].same == i; j++)
			if (slice_equal(s->items[i].id, s->items[j].id))
				s->items[i].same = j;
	}
}

static void intake_begin(struct fault_submission *s)
{
	struct intake_id_parts *parts = mem_alloc_array(s->count, sizeof(*parts));
	intake_find_same(s);
	intake_ask(s, parts);
	int err = store_read_submit(s->read);
	mem_free(parts);
	if (!err)
		return;
	for (size_t i = 0; i < s->count; i++)
		s->items[i].outcome = FAULT_TAKEN;
	intake_fail(s, err);
}

int fault_intake_submit(struct fault_intake *intake, struct fault_submission *s)
{
	if (s->count > FAULT_ITEMS_MAX)
		return ERR_LIMIT;
	if (intake->in_flight + intake->voids + s->count > IN_FLIGHT_MAX)
		return ERR_BUSY;
	s->intake = intake;
	s->read = NULL;
	s->write = NULL;
	s->writer = NULL;
	s->again = s->unknown = false;
	s->next = NULL;
	intake->in_flight += s->count;
	if (intake_must_wait(intake, s)) {
		*intake->waiting_end = s;
		intake->waiting_end = &s->next;
	} else {
		intake_activate(intake, s);
	}
	return 0;
}

void fault_intake_tick(struct fault_intake *intake)
{
	for (struct fault_submission *s = intake->active, *next; s; s = next) {
		next = s->next;
		if (s->again)
			intake_submit_again(s);
	}
	for (struct intake_writer *w = intake->writers; w; w = w->next_writer)
		intake_write_voids(w);
	intake_drop_old(intake);
}
