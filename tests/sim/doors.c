/* Clients of the server's own doors: bodies of line protocol and of /api/put that arrive in pieces,
 * are sent again when no answer came, or broken off; and queries through the catalog. */
#include "ingest/line_feed.h"
#include "ingest/put_feed.h"
#include "wire/number.h"
#include "world.h"

#define DAY_MS INT64_C(86400000)

enum {
	LINE_DOORS = 2, /* the others put JSON */
	FIELDS = 3,
	HOSTS = DOOR_SERIES / FIELDS,
	BODY_MAX_BYTES = 1 << 20,
	LINES_MAX = 60,
	PIECE_MAX_BYTES = 700,
};

/* ---- Life ------------------------------------------------------------------------------------ */

void doors_init(struct world *world)
{
	static char metrics[DOORS * DOOR_SERIES][16];
	for (unsigned d = 0; d < DOORS; d++) {
		struct door *door = &world->doors[d];
		*door = (struct door){.number = d, .world = world};
		buf_init(&door->body, BODY_MAX_BYTES);
		for (unsigned i = 0; i < DOOR_SERIES; i++) {
			unsigned at = d * DOOR_SERIES + i, series = DIRECT_SERIES + at;
			struct series_name *name = &world->names[series];
			snprintf(metrics[at], sizeof(metrics[at]), "d%u_f%u", d, i % FIELDS);
			name->tenant = "default";
			name->metric = metrics[at];
			snprintf(name->tags, sizeof(name->tags), "host=h%u", i / FIELDS);
			*door_row(world, at) = (struct row){
				.table = TABLE_DATA_RAW,
				.retention = retention_class_for(world->retention.levels_ms[0]),
				.series = series,
				.decimals = d >= LINE_DOORS};
		}
	}
}

void doors_release(struct world *world)
{
	for (size_t d = 0; d < DOORS; d++) {
		buf_release(&world->doors[d].body);
		mem_free(world->doors[d].sent);
	}
}

static void release_feeds(struct door *door)
{
	if (door->line)
		line_feed_release(door->line);
	if (door->put)
		put_feed_release(door->put);
	mem_free(door->line);
	mem_free(door->put);
	door->line = NULL;
	door->put = NULL;
}

/* ---- Bodies ---------------------------------------------------------------------------------- */

static void put_number(struct door *door, struct value value)
{
	char text[NUMBER_PRINT_MAX_BYTES];
	buf_append(&door->body, text, number_print(text, value));
	if (value.type == VALUE_I64)
		buf_append_char(&door->body, 'i');
	if (value.type == VALUE_U64)
		buf_append_char(&door->body, 'u');
}

static struct value new_value(struct door *door, size_t row, int64_t ts_ms)
{
	struct world *world = door->world;
	uint32_t id = ++world->next_id;
	if (door->sent_count == door->sent_cap) {
		door->sent_cap = door->sent_cap ? door->sent_cap * 2 : 64;
		door->sent = mem_resize_array(door->sent, door->sent_cap, sizeof(*door->sent));
	}
	door->sent[door->sent_count++] = (struct sent){row, ts_ms, id};
	return row_value(world, door_row(world, row), ts_ms, 0, id);
}

static int64_t pick_time(struct door *door)
{
	struct world *world = door->world;
	int64_t now = floor_to(now_ms(), GRID_MS), since = now - door->next_ms;
	if (since < 0 || since > DAY_MS)
		door->next_ms = now - 100 * GRID_MS;
	if (chance(world, 80))
		return door->next_ms += GRID_MS;
	return now - (int64_t)pick(world, 4000) * GRID_MS;
}

static void add_line(struct door *door, unsigned host, int64_t ts_ms)
{
	struct world *world = door->world;
	unsigned fields = 1 + (unsigned)pick(world, (1 << FIELDS) - 1);
	buf_printf(&door->body, "d%u,host=h%u", door->number, host);
	char between = ' ';
	for (unsigned f = 0; f < FIELDS; f++) {
		if (!(fields >> f & 1))
			continue;
		size_t row = door->number * DOOR_SERIES + host * FIELDS + f;
		buf_printf(&door->body, "%cf%u=", between, f);
		put_number(door, new_value(door, row, ts_ms));
		between = ',';
	}
	buf_printf(&door->body, " %lld%s", (long long)ts_ms, chance(world, 10) ? "\r\n" : "\n");
}

static void add_put(struct door *door, unsigned host, int64_t ts_ms)
{
	unsigned f = (unsigned)pick(door->world, FIELDS);
	size_t row = door->number * DOOR_SERIES + host * FIELDS + f;
	buf_printf(&door->body,
		   "%c{\"metric\":\"d%u_f%u\",\"tags\":{\"host\":\"h%u\"},\"timestamp\":%lld,"
		   "\"value\":",
		   door->body.len ? ',' : '[', door->number, f, host, (long long)ts_ms);
	put_number(door, new_value(door, row, ts_ms));
	buf_append_char(&door->body, '}');
}

static void build_body(struct door *door)
{
	struct world *world = door->world;
	door->body.len = 0;
	door->sent_count = 0;
	unsigned host = (unsigned)pick(world, HOSTS);
	for (size_t n = 1 + pick(world, chance(world, 50) ? 5 : LINES_MAX); n; n--) {
		if (chance(world, 20))
			host = (unsigned)pick(world, HOSTS);
		if (door->number < LINE_DOORS)
			add_line(door, host, pick_time(door));
		else
			add_put(door, host, pick_time(door));
	}
	if (door->number >= LINE_DOORS)
		buf_append_char(&door->body, ']');
}

/* ---- Requests -------------------------------------------------------------------------------- */

static bool only_too_old(const struct ingest_request *r)
{
	for (size_t i = 0; i < r->error_count; i++) {
		if (r->errors[i].reason != INGEST_TOO_OLD && r->errors[i].reason != INGEST_TOO_NEW)
			return false;
	}
	return true;
}

static void answered(struct door *door, const struct ingest_request *r)
{
	struct world *world = door->world;
	say(world, "door %u: %llu accepted, %llu refused: %s", door->number,
	    (unsigned long long)r->accepted, (unsigned long long)r->refused,
	    r->err ? err_text(r->err) : "safe");
	if (r->err) {
		door->again = chance(world, 80);
		return;
	}
	world->door_samples += (int64_t)r->accepted;
	world->counts.answered++;
	if (r->refused) {
		if (!only_too_old(r))
			violate(world, "door %u refuses: %s", door->number, r->errors[0].sentence);
		return;
	}
	if (r->accepted != door->sent_count)
		violate(world, "door %u: %llu samples accepted of %zu", door->number,
			(unsigned long long)r->accepted, door->sent_count);
	door->batch->outcome = ANSWERED;
	door->batch->answered_at = world->tick;
}

static void on_done(struct ingest_request *r)
{
	struct door *door = ingest_owner(r);
	if (!door->world->ghost)
		answered(door, r);
	ingest_request_free(r);
	door->request = NULL;
	door->done = true;
}

static void on_resume(struct ingest_request *r)
{
	((struct door *)ingest_owner(r))->paused = false;
}

static void begin_request(struct door *door)
{
	struct world *world = door->world;
	if (door->again)
		world->counts.resent++;
	else
		build_body(door);
	say(world, "door %u: %zu samples%s", door->number, door->sent_count,
	    door->again ? ", again" : "");
	door->again = door->ended = door->done = door->paused = false;
	door->fed = 0;
	door->batch = new_batch(world, false);
	for (size_t i = 0; i < door->sent_count; i++)
		model_row_put(door_row(world, door->sent[i].row), door->sent[i].ts_ms, door->batch,
			      door->sent[i].id);
	door->request = ingest_request_new(
		world->ingest,
		&(struct ingest_door){.done = on_done, .resume = on_resume, .owner = door});
	world->counts.requests++;
	if (door->number < LINE_DOORS) {
		door->line = mem_zalloc(sizeof(*door->line));
		line_feed_init(door->line, door->request, (struct slice){NULL, 0}, LINE_MS);
	} else {
		door->put = mem_zalloc(sizeof(*door->put));
		put_feed_init(door->put, door->request, (struct slice){NULL, 0},
			      buf_slice(&door->body));
	}
}

/* The next piece, in memory of its own; true: that was the last. */
static bool feed(struct door *door)
{
	if (door->put)
		return !put_feed_slice(door->put);
	size_t left = door->body.len - door->fed;
	size_t n = 1 + pick(door->world, chance(door->world, 20) ? 5 : PIECE_MAX_BYTES);
	if (n > left)
		n = left;
	char *piece = mem_alloc(n);
	memcpy(piece, door->body.data + door->fed, n);
	line_feed_piece(door->line, (struct slice){piece, n});
	mem_free(piece);
	door->fed += n;
	if (door->fed < door->body.len)
		return false;
	line_feed_end(door->line);
	return true;
}

/* The client is gone; what was sent may be there or not. */
static void break_off(struct door *door)
{
	say(door->world, "door %u: broken off", door->number);
	release_feeds(door);
	ingest_request_abandon(door->request);
	door->request = NULL;
}

void door_step(struct world *world)
{
	struct door *door = &world->doors[pick(world, DOORS)];
	if (!door->request) {
		begin_request(door);
	} else if (chance(world, 2)) {
		break_off(door);
		door->again = chance(world, 50);
	} else if (!door->ended && !door->paused) {
		bool last = false;
		for (size_t n = 1 + pick(world, 6); n && !last && !door->paused; n--) {
			last = feed(door);
			door->paused = !last && ingest_request_must_pause(door->request);
		}
		if (last) {
			release_feeds(door);
			door->ended = true;
			ingest_request_end(door->request);
		}
	}
}

bool doors_idle(const struct world *world)
{
	for (size_t d = 0; d < DOORS; d++) {
		if (world->doors[d].request)
			return false;
	}
	return true;
}

void doors_after_crash(struct world *world)
{
	for (size_t d = 0; d < DOORS; d++) {
		struct door *door = &world->doors[d];
		if (door->batch && door->batch->outcome == OPEN && door->sent_count)
			door->again = chance(world, 60);
	}
}

/* ---- Queries --------------------------------------------------------------------------------- */

struct asked {
	struct world *world;
	size_t slot;
	struct query *query;
	uint64_t tick;
	int64_t at_ms;
	const char *tenant, *metric;
	struct got got[SERIES];
	struct row *rows[SERIES];
	size_t count;
};

static void free_asked(struct asked *asked)
{
	asked->world->asked[asked->slot] = NULL;
	for (size_t i = 0; i < asked->count; i++)
		got_release(&asked->got[i]);
	query_free(asked->query);
	mem_free(asked);
}

static struct got *got_of(struct asked *asked, struct slice tags_text)
{
	for (size_t i = 0; i < asked->count; i++) {
		const char *tags = asked->world->names[asked->rows[i]->series].tags;
		if (slice_equal(slice_of(tags), tags_text))
			return &asked->got[i];
	}
	return NULL;
}

static void take_chunks(struct asked *asked)
{
	struct query_chunk chunk;
	size_t count;
	const struct catalog_series *series = query_series(asked->query, &count);
	while (query_next(asked->query, 1 + pick(asked->world, 500), &chunk)) {
		struct slice tags = series[chunk.series_index].tags_text;
		struct got *got = got_of(asked, tags);
		if (!got) {
			violate(asked->world, "a query finds the series %s,%.*s", asked->metric,
				(int)tags.len, tags.data);
			return;
		}
		for (size_t i = 0; i < chunk.count; i++) {
			struct value value = {chunk.bits[i], (enum value_type)chunk.types[i]};
			got_add(got, chunk.ts_ms[i], &value);
		}
	}
}

static void check_answer(struct asked *asked)
{
	const struct query *query = asked->query;
	for (size_t i = 0; i < asked->count && !query->err && !query->cut; i++) {
		if (!check_got(asked->world, asked->rows[i], &asked->got[i], query->spec.start_ms,
			       query->spec.end_ms, asked->at_ms, asked->tick))
			return;
	}
	if (query->err && query->err != ERR_TIMEOUT && query->err != ERR_BUSY &&
	    !asked->world->dead)
		violate(asked->world, "a query fails: %s (%s)", err_text(query->err),
			query->error.text);
}

static void on_ready(void *owner)
{
	struct asked *asked = owner;
	struct world *world = asked->world;
	if (world->ghost)
		return;
	take_chunks(asked);
	if (!asked->query->ended || world->failed)
		return;
	check_answer(asked);
	say(world, "query %zu: %llu points: %s", asked->slot,
	    (unsigned long long)asked->query->points, err_text(asked->query->err));
	free_asked(asked);
}

/* All series of the metric, also those that nobody has written yet. */
static void list_rows(struct asked *asked)
{
	struct world *world = asked->world;
	for (size_t i = 0; i < ROWS; i++) {
		struct row *row = &world->rows[i];
		const struct series_name *name = &world->names[row->series];
		if (row->table != TABLE_DATA_RAW || strcmp(name->metric, asked->metric) != 0 ||
		    strcmp(name->tenant, asked->tenant) != 0)
			continue;
		asked->rows[asked->count] = row;
		asked->got[asked->count++].fields = 1;
	}
}

void query_step(struct world *world)
{
	size_t slot = 0;
	while (slot < QUERIES_MAX && world->asked[slot])
		slot++;
	if (slot == QUERIES_MAX)
		return;
	struct asked *asked = mem_zalloc(sizeof(*asked));
	const struct series_name *name = &world->names[pick(world, SERIES)];
	*asked = (struct asked){.world = world,
				.slot = slot,
				.tick = world->tick,
				.at_ms = now_ms(),
				.tenant = name->tenant,
				.metric = name->metric};
	world->asked[slot] = asked;
	list_rows(asked);
	asked->query = query_new(world->queries, on_ready, asked);
	int64_t start_ms = now_ms() - (int64_t)pick(world, 20000) * GRID_MS;
	asked->query->spec = (struct query_spec){
		.tenant = slice_of(name->tenant),
		.metric = slice_of(name->metric),
		.start_ms = start_ms,
		.end_ms = start_ms + (int64_t)pick(world, 20000) * GRID_MS,
	};
	world->counts.queries++;
	int err = query_start(asked->query);
	say(world, "query %zu of %s:%s, %zu series: %s", slot, name->tenant, name->metric,
	    asked->count, err_text(err));
	if (err && err != ERR_BUSY)
		violate(world, "a query is refused: %s", err_text(err));
	if (err)
		free_asked(asked);
}

/* ---- The end of a life ----------------------------------------------------------------------- */

void doors_abandon(struct world *world)
{
	for (size_t d = 0; d < DOORS; d++) {
		struct door *door = &world->doors[d];
		if (!world->ghost && door->request && door->ended &&
		    !pump_until(world, &door->done, "a request"))
			continue;
	}
	for (size_t d = 0; d < DOORS; d++) {
		if (world->doors[d].request)
			break_off(&world->doors[d]);
	}
	for (size_t q = 0; q < QUERIES_MAX; q++) {
		if (world->asked[q])
			free_asked(world->asked[q]);
	}
}
