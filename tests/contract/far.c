#include "far.h"

#include "base/random.h"
#include "naive_read.h"

/* A request as it is on its way to one row. */
struct far_piece {
	struct far_piece *next;
	struct naive_request request; /* of one handle, or of a cell */
	uint64_t handle;
	int64_t stamp_us;
};

/* What a stage of a batch puts into one row: it lands as one, unless it is too long for that. Then
 * it is in several of these, of which one lands after the other. */
struct far_row {
	struct far_batch *batch;
	size_t stage;
	uint64_t number;       /* rises with each row that was handed over */
	int64_t not_before_us; /* by the store's clock */
	struct far_piece *first, *last;
	size_t bytes;       /* of the pieces */
	bool goes_on;       /* what was put into the row before lies in another of these */
	struct arena arena; /* the pieces */
};

/* Stages are counted twice: what a stage forgets comes after all else of it. */
struct far_batch {
	struct far_store *from;    /* NULL: it is dead, or closed */
	struct store_write *write; /* NULL: it has been told how the batch ended */
	size_t stage, stage_count, rows_left;
	size_t waiting;    /* rows of the stage that have not landed */
	bool ends_unknown; /* after the stages an append to an unknown series would come */
	int result;
};

struct far_read {
	struct far_store *from;
	struct store_read *read;
	struct store_request **left; /* that are not answered */
	size_t left_count, points;
};

struct far_store {
	struct store store;
	struct far *far;
	struct clock *clock;
	int64_t last_stamp_us;
	uint64_t generation;   /* of series: what it has forgotten itself */
	size_t batches, reads; /* that have not ended */
	bool frozen, dead;
};

struct far {
	struct naive *naive;
	struct far_faults faults;
	enum far_bug bug;
	bool alone;
	pthread_mutex_t lock; /* guards everything; before the naive engine's */
	pthread_cond_t changed;
	struct random random;
	struct far_row **rows;
	struct far_read **reads;
	size_t row_count, row_cap, read_count, read_cap;
	uint64_t numbers; /* of rows */
	bool stopped;
};

enum {
	ROW_MAX_BYTES = 128 << 20,
	ROW_WHOLE_MAX_BYTES = STORE_ROW_WHOLE_BYTES,
	DELAY_MAX_US = 180000000
};

static struct far_store *far_store_of(const struct store *store)
{
	return CONTAINER_OF(store, struct far_store, store);
}

static bool far_chance(struct far *far, unsigned of_thousand)
{
	return of_thousand && random_below(&far->random, 1000) < of_thousand;
}

static int64_t far_stamp_locked(struct far_store *from)
{
	int64_t now_us = from->clock->wall_us(from->clock);
	from->last_stamp_us = now_us > from->last_stamp_us ? now_us : from->last_stamp_us + 1;
	return from->last_stamp_us;
}

/* ---- How a batch and a read end -------------------------------------------------------------- */

static void far_run_write_end(struct task *task)
{
	store_write_end(CONTAINER_OF(task, struct store_write, task));
}

static void far_run_read_end(struct task *task)
{
	store_read_end(CONTAINER_OF(task, struct store_read, task));
}

static void far_post(struct executor *executor, struct task *task, void (*run)(struct task *task))
{
	task->run = run;
	executor->post(executor, task);
}

static void far_tell(struct far_batch *batch, int err)
{
	struct store_write *write = batch->write;
	if (!write)
		return;
	write->stages_kept = batch->stage / 2;
	write->err = err;
	batch->write = NULL;
	batch->from->batches--;
	far_post(write->executor, &write->task, far_run_write_end);
}

static void far_free_row(struct far *far, size_t at)
{
	struct far_row *row = far->rows[at];
	far->rows[at] = far->rows[--far->row_count];
	if (--row->batch->rows_left == 0)
		mem_free(row->batch);
	arena_release(&row->arena);
	mem_free(row);
}

static bool far_same_row(const struct naive_request *a, const struct naive_request *b)
{
	if ((a->kind == REQUEST_CELL) != (b->kind == REQUEST_CELL))
		return false;
	if (a->kind == REQUEST_CELL)
		return a->cell.table == b->cell.table && slice_equal(a->cell.key, b->cell.key);
	return a->handles[0] == b->handles[0] && a->target.table == b->target.table &&
	       a->target.period_ms == b->target.period_ms &&
	       (a->kind == REQUEST_FORGET) == (b->kind == REQUEST_FORGET);
}

/* What was put into the same row by the same batch has not landed yet. */
static bool far_waits_for_its_row(const struct far *far, const struct far_row *row)
{
	for (size_t i = 0; row->goes_on && i < far->row_count; i++) {
		const struct far_row *other = far->rows[i];
		if (other->batch == row->batch && other->stage == row->stage &&
		    other->number < row->number &&
		    far_same_row(&other->first->request, &row->first->request))
			return true;
	}
	return false;
}

/* Nobody waits for the batch any more: half of the rows of this stage land some time, the others do
 * not, nor do those of later stages, nor what comes behind what has not landed. */
static void far_abandon(struct far *far, const struct far_batch *batch)
{
	int64_t now_us = far->naive->clock->wall_us(far->naive->clock);
	for (size_t i = far->row_count; i > 0; i--)
		if (far->rows[i - 1]->batch == batch &&
		    far_waits_for_its_row(far, far->rows[i - 1]))
			far_free_row(far, i - 1);
	for (size_t i = far->row_count; i > 0; i--) {
		struct far_row *row = far->rows[i - 1];
		if (row->batch != batch)
			continue;
		if (row->stage != batch->stage || far_chance(far, 500))
			far_free_row(far, i - 1);
		else if (far_chance(far, 500))
			row->not_before_us =
				now_us + (int64_t)random_below(&far->random, DELAY_MAX_US);
	}
}

/* There is no room for a stage: nothing of it lands, nor of those after it. */
static bool far_ends_full(struct far *far, struct far_batch *batch)
{
	if (!batch->write || !batch->waiting || !far_chance(far, far->faults.full))
		return false;
	far_tell(batch, ERR_FULL);
	for (size_t i = far->row_count; i > 0; i--)
		if (far->rows[i - 1]->batch == batch)
			far_free_row(far, i - 1);
	return true;
}

/* Goes to the next stage that has rows. The batch lives while it has rows, and the caller's row is
 * one of them. */
static void far_advance(struct far *far, struct far_batch *batch)
{
	while (!batch->waiting && batch->stage < batch->stage_count) {
		batch->stage++;
		for (size_t i = 0; i < far->row_count; i++)
			batch->waiting +=
				far->rows[i]->batch == batch && far->rows[i]->stage == batch->stage;
		if (far_ends_full(far, batch))
			return;
	}
	if (batch->waiting)
		return;
	if (batch->write && batch->ends_unknown)
		errbuf_set(&batch->write->error, ERR_NOT_FOUND, "an append to an unknown series");
	far_tell(batch, batch->ends_unknown ? ERR_NOT_FOUND : batch->result);
}

/* ---- Landing --------------------------------------------------------------------------------- */

static bool far_is_log(const struct far_row *row)
{
	const struct naive_request *request = &row->first->request;
	return request->kind == REQUEST_CELL && schema[request->cell.table].cell_kind == CELL_LOG;
}

/* What one process puts into a row of a log lands in its order, but for that which nobody waits
 * for.
 */
static bool far_is_first_of_log(const struct far *far, const struct far_row *row)
{
	for (size_t i = 0; i < far->row_count && far_is_log(row); i++) {
		const struct far_row *other = far->rows[i];
		if (other != row && other->batch->write && other->batch->from == row->batch->from &&
		    far_is_log(other) &&
		    far_same_row(&other->first->request, &row->first->request) &&
		    other->number < row->number)
			return false;
	}
	return true;
}

static bool far_may_land(const struct far *far, const struct far_row *row)
{
	const struct far_batch *batch = row->batch;
	return row->stage == batch->stage && !(batch->from && batch->from->frozen) &&
	       row->not_before_us <= far->naive->clock->wall_us(far->naive->clock) &&
	       far_is_first_of_log(far, row) && !far_waits_for_its_row(far, row);
}

/* The outcome of a condition is its caller's while that waits. */
static int far_apply(struct far *far, struct far_row *row, struct far_piece *piece)
{
	struct store_write_cond nobodys;
	struct store_write *write = row->batch->write;
	if (!write)
		piece->request.cell.outcome = &nobodys;
	return naive_apply(far->naive, &piece->request, 0, piece->stamp_us,
			   write ? &write->arena : &row->arena);
}

static void far_land(struct far *far, size_t at)
{
	struct far_row *row = far->rows[at];
	struct far_batch *batch = row->batch;
	pthread_mutex_lock(&far->naive->lock);
	for (struct far_piece *piece = row->first; piece; piece = piece->next) {
		int err = far_apply(far, row, piece);
		if (batch->from && piece->request.kind == REQUEST_FORGET)
			batch->from->generation++;
		batch->result = batch->result ? batch->result : err;
	}
	pthread_mutex_unlock(&far->naive->lock);
	batch->waiting--;
	batch->rows_left++; /* lives until the end of this */
	far_free_row(far, at);
	if (batch->write && far_chance(far, far->faults.unknown)) {
		far_tell(batch, far->bug == FAR_BUG_KNOWN ? 0 : ERR_UNKNOWN);
		far_abandon(far, batch);
	} else if (batch->write) {
		far_advance(far, batch);
	}
	if (--batch->rows_left == 0)
		mem_free(batch);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int far_append(struct store_write *write, const struct store_target *target, int64_t ts_ms,
		      unsigned fields, const uint64_t *handles, size_t n,
		      const struct value *values)
{
	return naive_engine.append(write, target, ts_ms, fields, handles, n, values);
}

static int far_delete_range(struct store_write *write, const struct store_target *target,
			    const uint64_t *handles, size_t n, int64_t start_ms, int64_t end_ms)
{
	return naive_engine.add_delete_range(write, target, handles, n, start_ms, end_ms);
}

static int far_add_cell(struct store_write *write, const struct store_cell_write *cell)
{
	return naive_engine.add_cell(write, cell);
}

static int far_forget(struct store_write *write, const uint64_t *handles, size_t n)
{
	return naive_engine.add_forget(write, handles, n);
}

static int far_rekey(struct store_write *write, const struct store_rekeying *rekeying)
{
	return naive_engine.add_rekey(write, rekeying);
}

static void far_next_stage(struct store_write *write)
{
	naive_engine.next_stage(write);
}

static size_t far_request_bytes(const struct naive_request *request)
{
	const struct store_cell_write *cell = &request->cell;
	return request->kind == REQUEST_CELL
		       ? cell->key.len + cell->column.len + cell->to.len + cell->value.len
		       : sizeof(int64_t) + TABLE_FIELDS_MAX * sizeof(struct value);
}

/* That of the stage which the request goes to, the newest of them first; a new one where there is
 * none, or no room in it. */
static struct far_row *far_row_for(struct far *far, struct far_batch *batch, size_t stage,
				   const struct naive_request *request)
{
	size_t bytes = far_request_bytes(request);
	bool goes_on = false;
	for (size_t i = far->row_count; i > 0 && far->rows[i - 1]->batch == batch; i--) {
		struct far_row *row = far->rows[i - 1];
		if (row->stage != stage || !far_same_row(&row->first->request, request))
			continue;
		goes_on = row->bytes + bytes > ROW_WHOLE_MAX_BYTES;
		if (goes_on)
			break;
		row->bytes += bytes;
		return row;
	}
	struct far_row *row = mem_zalloc(sizeof(*row));
	row->bytes = bytes;
	row->goes_on = goes_on;
	row->batch = batch;
	row->stage = stage;
	row->number = ++far->numbers;
	arena_init(&row->arena, ROW_MAX_BYTES);
	if (far->row_count == far->row_cap) {
		far->row_cap = far->row_cap ? 2 * far->row_cap : 64;
		far->rows = mem_resize_array(far->rows, far->row_cap, sizeof(*far->rows));
	}
	far->rows[far->row_count++] = row;
	batch->rows_left++;
	return row;
}

/* The part of the request that goes to the row of handle i. */
static void far_add_piece(struct far *far, struct far_batch *batch, size_t stage,
			  const struct naive_request *request, size_t i, int64_t stamp_us)
{
	struct naive_request part = *request;
	part.n = request->kind != REQUEST_CELL;
	part.handles = part.n ? &request->handles[i] : NULL;
	struct far_row *row = far_row_for(far, batch, stage, &part);
	struct far_piece *piece = arena_zalloc(&row->arena, sizeof(*piece));
	size_t fields = schema[part.target.table].field_count;
	piece->stamp_us = stamp_us;
	piece->request = part;
	piece->request.next = NULL;
	if (part.n) {
		piece->handle = *part.handles;
		piece->request.handles = &piece->handle;
	}
	if (part.kind == REQUEST_APPEND) {
		struct slice values = {(const char *)&part.values[i * fields],
				       fields * sizeof(*part.values)};
		piece->request.values = (const void *)arena_copy(&row->arena, values).data;
	}
	if (part.kind == REQUEST_CELL) {
		struct store_cell_write *cell = &piece->request.cell;
		cell->key = arena_copy(&row->arena, cell->key);
		cell->column = arena_copy(&row->arena, cell->column);
		cell->to = arena_copy(&row->arena, cell->to);
		cell->value = arena_copy(&row->arena, cell->value);
	}
	if (row->last)
		row->last->next = piece;
	else
		row->first = piece;
	row->last = piece;
}

static void far_add_request(struct far *far, struct far_batch *batch, size_t stage,
			    const struct naive_request *request)
{
	struct far_store *from = batch->from;
	int64_t stamp_us =
		far->bug == FAR_BUG_LATE_STAMPS ? far_stamp_locked(from) : batch->write->stamp_us;
	/* Else a caller has made it himself, and what is taken later need not be above it. */
	bool taken = stamp_us <= from->last_stamp_us;
	if (request->kind == REQUEST_CELL)
		far_add_piece(far, batch, stage, request, 0, 0);
	for (size_t i = 0; request->kind != REQUEST_CELL && i < request->n; i++) {
		bool stamped =
			request->kind == REQUEST_APPEND || request->kind == REQUEST_DELETE_RANGE;
		struct naive_row *row = stamped ? naive_request_row(far->naive, request, i) : NULL;
		int64_t next_us = row ? naive_next_stamp_us(far->naive, row, stamp_us) : stamp_us;
		if (taken && next_us > from->last_stamp_us)
			from->last_stamp_us = next_us;
		far_add_piece(far, batch, stage, request, i, next_us);
	}
}

static void far_encode(struct far *far, struct far_batch *batch)
{
	pthread_mutex_lock(&far->naive->lock);
	far->naive->batch++;
	for (struct store_stage *stage = batch->write->stages; stage; stage = stage->next) {
		batch->ends_unknown = naive_check_appends(far->naive, stage) != 0;
		if (batch->ends_unknown)
			break;
		for (const struct naive_request *r = stage->first; r; r = r->next)
			far_add_request(far, batch,
					batch->stage_count + (r->kind == REQUEST_FORGET), r);
		batch->stage_count += 2;
	}
	pthread_mutex_unlock(&far->naive->lock);
	for (size_t i = 0; i < far->row_count; i++)
		batch->waiting += far->rows[i]->batch == batch && far->rows[i]->stage == 0;
}

static int far_write_submit(struct store_write *write)
{
	struct far_store *from = far_store_of(write->store);
	struct far *far = from->far;
	pthread_mutex_lock(&far->lock);
	bool refused = !from->dead && far_chance(far, far->faults.refused);
	if (from->dead) {
		write->err = ERR_CANCELLED;
		far_post(write->executor, &write->task, far_run_write_end);
	} else if (!refused) {
		struct far_batch *batch = mem_zalloc(sizeof(*batch));
		batch->from = from;
		batch->write = write;
		batch->rows_left = 1;
		from->batches++;
		far_encode(far, batch);
		if (!far_ends_full(far, batch))
			far_advance(far, batch);
		if (--batch->rows_left == 0)
			mem_free(batch);
		pthread_cond_broadcast(&far->changed);
	}
	pthread_mutex_unlock(&far->lock);
	return refused ? ERR_BUSY : 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void far_end_read(struct far *far, size_t at, int err)
{
	struct far_read *r = far->reads[at];
	far->reads[at] = far->reads[--far->read_count];
	r->read->err = err;
	for (struct store_request *q = r->read->requests; q && !err; q = q->next)
		r->read->err = r->read->err ? r->read->err : q->err;
	for (size_t i = 0; i < r->left_count; i++)
		r->left[i]->err = err;
	r->from->reads--;
	far_post(r->read->executor, &r->read->task, far_run_read_end);
	mem_free(r->left);
	mem_free(r);
}

static int far_read_submit(struct store_read *read)
{
	struct far_store *from = far_store_of(read->store);
	struct far *far = from->far;
	size_t count = 0;
	pthread_mutex_lock(&far->lock);
	bool refused = !from->dead && far_chance(far, far->faults.refused);
	if (!refused) {
		struct far_read *r = mem_zalloc(sizeof(*r));
		for (struct store_request *q = read->requests; q; q = q->next)
			count++;
		r->from = from;
		r->read = read;
		r->points = read->points_max ? read->points_max : NAIVE_POINTS_PRESET;
		if (far_chance(far, far->faults.cut))
			r->points = smaller(r->points, 1 + random_below(&far->random, 4));
		r->left = mem_alloc_array(count, sizeof(*r->left));
		for (struct store_request *q = read->requests; q; q = q->next)
			r->left[r->left_count++] = q;
		if (far->read_count == far->read_cap) {
			far->read_cap = far->read_cap ? 2 * far->read_cap : 64;
			far->reads =
				mem_resize_array(far->reads, far->read_cap, sizeof(*far->reads));
		}
		far->reads[far->read_count++] = r;
		from->reads++;
		if (from->dead)
			far_end_read(far, far->read_count - 1, ERR_CANCELLED);
		pthread_cond_broadcast(&far->changed);
	}
	pthread_mutex_unlock(&far->lock);
	return refused ? ERR_BUSY : 0;
}

static void far_answer(struct far *far, size_t at)
{
	struct far_read *r = far->reads[at];
	size_t i = (size_t)random_below(&far->random, r->left_count);
	struct store_request *request = r->left[i];
	if (far_chance(far, far->faults.failed)) {
		far_end_read(far, at, ERR_UNKNOWN);
		return;
	}
	r->left[i] = r->left[--r->left_count];
	pthread_mutex_lock(&far->naive->lock);
	naive_read_request(far->naive, r->read, request, &r->points);
	pthread_mutex_unlock(&far->naive->lock);
	if (far->bug == FAR_BUG_NEWS && request->op == STORE_SERIES_NEWS)
		request->series_news.count -= request->series_news.count > 0;
	if (!r->left_count)
		far_end_read(far, at, 0);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static bool far_step_locked(struct far *far)
{
	size_t count = far->row_count + far->read_count;
	size_t from = count ? (size_t)random_below(&far->random, count) : 0;
	for (size_t n = 0; n < count; n++) {
		size_t at = (from + n) % count;
		if (at < far->row_count && far_may_land(far, far->rows[at])) {
			far_land(far, at);
			return true;
		}
		if (at >= far->row_count && !far->reads[at - far->row_count]->from->frozen) {
			far_answer(far, at - far->row_count);
			return true;
		}
	}
	return false;
}

bool far_step(struct far *far)
{
	pthread_mutex_lock(&far->lock);
	bool stepped = far_step_locked(far);
	pthread_cond_broadcast(&far->changed);
	pthread_mutex_unlock(&far->lock);
	return stepped;
}

bool far_await(struct far *far)
{
	pthread_mutex_lock(&far->lock);
	while (!far->stopped && !far->row_count && !far->read_count)
		pthread_cond_wait(&far->changed, &far->lock);
	bool going = !far->stopped;
	pthread_mutex_unlock(&far->lock);
	return going;
}

void *far_run(void *context)
{
	struct far *far = context;
	while (far_await(far)) {
		while (far_step(far)) {
		}
	}
	return NULL;
}

void far_stop(struct far *far)
{
	pthread_mutex_lock(&far->lock);
	far->stopped = true;
	pthread_cond_broadcast(&far->changed);
	pthread_mutex_unlock(&far->lock);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int64_t far_stamp(struct store *store)
{
	struct far_store *from = far_store_of(store);
	pthread_mutex_lock(&from->far->lock);
	int64_t stamp_us = far_stamp_locked(from);
	pthread_mutex_unlock(&from->far->lock);
	return stamp_us;
}

static uint64_t far_generation(struct store *store)
{
	struct far_store *from = far_store_of(store);
	pthread_mutex_lock(&from->far->lock);
	uint64_t generation = from->generation;
	pthread_mutex_unlock(&from->far->lock);
	return generation;
}

/* What was told to have ended unknown may land after the process has gone. */
static void far_disown(struct far *far, const struct far_store *from)
{
	for (size_t i = 0; i < far->row_count; i++) {
		if (far->rows[i]->batch->from == from)
			far->rows[i]->batch->from = NULL;
	}
}

static void far_close(struct store *store)
{
	struct far_store *from = far_store_of(store);
	struct far *far = from->far;
	pthread_mutex_lock(&far->lock);
	while (from->batches || from->reads)
		pthread_cond_wait(&far->changed, &far->lock);
	far_disown(far, from);
	pthread_mutex_unlock(&far->lock);
	mem_free(from);
}

#define FAR_CAN (STORE_SAMPLE_STAMPS | STORE_SHARED | STORE_REKEYS | STORE_NEWS)
#define FAR_ENGINE(capabilities)                                                                   \
	{                                                                                          \
		.name = "far", .can = (capabilities), .append = far_append,                        \
		.add_delete_range = far_delete_range, .add_cell = far_add_cell,                    \
		.add_forget = far_forget, .add_rekey = far_rekey, .next_stage = far_next_stage,    \
		.write_submit = far_write_submit, .read_submit = far_read_submit,                  \
		.stamp = far_stamp, .series_generation = far_generation, .close = far_close,       \
	}

static const struct store_engine far_engine = FAR_ENGINE(FAR_CAN);
static const struct store_engine far_engine_alone =
	FAR_ENGINE(FAR_CAN & ~(STORE_SHARED | STORE_NEWS));
static const struct store_engine far_engine_serial = FAR_ENGINE(FAR_CAN | STORE_SERIAL_WRITES);

struct store *far_open(struct far *far, struct clock *clock, int64_t after_us)
{
	struct far_store *from = mem_zalloc(sizeof(*from));
	from->store.engine = far->bug == FAR_BUG_SERIAL ? &far_engine_serial
			     : far->alone               ? &far_engine_alone
							: &far_engine;
	from->far = far;
	from->clock = clock;
	from->last_stamp_us = after_us;
	return &from->store;
}

void far_freeze(struct store *store, bool frozen)
{
	struct far_store *from = far_store_of(store);
	pthread_mutex_lock(&from->far->lock);
	from->frozen = frozen;
	pthread_cond_broadcast(&from->far->changed);
	pthread_mutex_unlock(&from->far->lock);
}

void far_kill(struct store *store)
{
	struct far_store *from = far_store_of(store);
	struct far *far = from->far;
	pthread_mutex_lock(&far->lock);
	from->dead = true;
	for (bool found = true; found;) {
		found = false;
		for (size_t i = 0; i < far->row_count && !found; i++) {
			struct far_batch *batch = far->rows[i]->batch;
			found = batch->from == from && batch->write;
			if (found) {
				far_tell(batch, ERR_CANCELLED);
				far_abandon(far, batch);
			}
		}
	}
	far_disown(far, from);
	for (size_t i = far->read_count; i > 0; i--) {
		if (far->reads[i - 1]->from == from)
			far_end_read(far, i - 1, ERR_CANCELLED);
	}
	pthread_cond_broadcast(&far->changed);
	pthread_mutex_unlock(&far->lock);
}

bool far_has_writes(const struct store *store)
{
	return far_store_of(store)->batches > 0;
}

int64_t far_last_stamp_us(const struct store *store)
{
	return far_store_of(store)->last_stamp_us;
}

struct far *far_new(struct clock *clock, uint64_t seed, const struct far_faults *faults)
{
	struct far *far = mem_zalloc(sizeof(*far));
	far->naive = naive_of(naive_open(clock));
	far->naive->handles_revive = true;
	far->faults = *faults;
	random_init(&far->random, seed);
	pthread_mutex_init(&far->lock, NULL);
	pthread_cond_init(&far->changed, NULL);
	return far;
}

void far_free(struct far *far)
{
	while (far->row_count)
		far_free_row(far, far->row_count - 1);
	ASSERT(!far->read_count);
	store_close(&far->naive->store);
	pthread_cond_destroy(&far->changed);
	pthread_mutex_destroy(&far->lock);
	mem_free(far->rows);
	mem_free(far->reads);
	mem_free(far);
}

void far_set_faults(struct far *far, const struct far_faults *faults)
{
	pthread_mutex_lock(&far->lock);
	far->faults = *faults;
	pthread_mutex_unlock(&far->lock);
}

void far_set_alone(struct far *far)
{
	far->alone = true;
}

void far_plant(struct far *far, enum far_bug bug)
{
	far->bug = bug;
	far->naive->news_gone_untold = bug == FAR_BUG_NEWS_GONE;
}

struct store *far_landed(struct far *far)
{
	return &far->naive->store;
}

/* The n-th, or how many there are. */
static size_t far_bring_back_one(const struct naive_table *table, size_t n)
{
	size_t seen = 0;
	for (size_t i = 0; i < table->count; i++) {
		for (size_t j = 0; j < table->rows[i].count; j++) {
			struct naive_cell *cell = &table->rows[i].cells[j];
			if (cell->deleted && seen++ == n)
				cell->deleted = false;
		}
	}
	return seen;
}

void far_bring_back(struct far *far, enum table table)
{
	const struct naive_table *cells = &far->naive->tables[table];
	ASSERT(schema[table].cell_kind == CELL_LOG);
	pthread_mutex_lock(&far->naive->lock);
	size_t count = far_bring_back_one(cells, SIZE_MAX);
	if (count)
		far_bring_back_one(cells, (size_t)random_below(&far->random, count));
	pthread_mutex_unlock(&far->naive->lock);
}

void far_forget_news(struct far *far)
{
	pthread_mutex_lock(&far->naive->lock);
	far->naive->news_gone = far->naive->registrations;
	pthread_mutex_unlock(&far->naive->lock);
}

void far_settle(struct far *far)
{
	naive_settle(&far->naive->store);
}
