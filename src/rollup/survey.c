#include "rollup/survey.h"

#include "base/hash.h"
#include "model/series.h"

enum {
	GROUP_MAX = 512, /* series at once */
	PLACES_MAX = 1 + ROLLUP_GRAINS_MAX,
	READ_MAX_BYTES = 16 << 20,
	NAMES_MAX_BYTES = 16 << 20,
	TABLE_SLOTS = 4 * RETENTION_SURVEY_LINES_MAX,
};

struct retention_survey {
	struct retention_survey_options options;
	char tenant[TENANT_MAX_BYTES], metric[METRIC_MAX_BYTES];
	struct task begin;
	struct store_read *list, *read;
	struct store_request *listed, *counted[PLACES_MAX];
	size_t places;           /* raw samples and the granularities */
	size_t have[PLACES_MAX]; /* series whose shares have been taken */
	uint64_t handles[GROUP_MAX];
	size_t count;
	struct retention_memo memo;
	struct arena names;
	uint32_t *table; /* by hash of tenant, metric and place: one more than the line's place */
	struct retention_line *lines;
	struct retention_survey_result result;
	bool cancelled;
};

static void run_begin(struct task *task);
static void on_list(struct store_read *read, int err);
static void on_counted(struct store_read *read, int err);

/* ---- Life ------------------------------------------------------------------------------------ */

static struct store_read *new_read(struct retention_survey *s, store_read_done *done)
{
	struct store_read *read = store_read_new(s->options.store, READ_MAX_BYTES);
	read->executor = s->options.executor;
	read->done = done;
	read->owner = s;
	return read;
}

static struct slice keep(char *to, size_t room, struct slice text)
{
	ASSERT(text.len <= room);
	if (text.len)
		memcpy(to, text.data, text.len);
	return (struct slice){to, text.len};
}

struct retention_survey *retention_survey_start(const struct retention_survey_options *options)
{
	struct retention_survey *s = mem_zalloc(sizeof(*s));
	ASSERT(options->lines_max <= RETENTION_SURVEY_LINES_MAX);
	s->options = *options;
	s->options.tenant = keep(s->tenant, sizeof(s->tenant), options->tenant);
	s->options.metric = keep(s->metric, sizeof(s->metric), options->metric);
	s->places = 1 + options->grains->count;
	s->list = new_read(s, on_list);
	s->read = new_read(s, on_counted);
	arena_init(&s->names, NAMES_MAX_BYTES);
	s->table = mem_zalloc(TABLE_SLOTS * sizeof(*s->table));
	s->lines = mem_alloc_array(options->lines_max + 1, sizeof(*s->lines));
	s->result.lines = s->lines;
	s->begin.run = run_begin;
	options->executor->post(options->executor, &s->begin);
	return s;
}

void retention_survey_free(struct retention_survey *s)
{
	store_read_free(s->list);
	store_read_free(s->read);
	retention_memo_release(&s->memo);
	arena_release(&s->names);
	mem_free(s->table);
	mem_free(s->lines);
	mem_free(s);
}

void retention_survey_cancel(struct retention_survey *s)
{
	s->cancelled = true;
}

const struct retention_survey_result *retention_survey_result(const struct retention_survey *s)
{
	return &s->result;
}

static int by_name(const void *a, const void *b)
{
	const struct retention_line *x = a, *y = b;
	int order = slice_compare(x->tenant, y->tenant);
	order = order ? order : slice_compare(x->metric, y->metric);
	return order ? order : (x->grain > y->grain) - (x->grain < y->grain);
}

static void end(struct retention_survey *s, int err)
{
	if (s->result.line_count)
		qsort(s->lines, s->result.line_count, sizeof(*s->lines), by_name);
	s->options.done(s->options.owner, err);
}

static void submit(struct retention_survey *s, struct store_read *read)
{
	read->now_ms = clock_wall_ms(s->options.clock);
	int err = s->cancelled ? ERR_CANCELLED : store_read_submit(read);
	if (err)
		end(s, err);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static int grain_of(size_t place)
{
	return (int)place - 1;
}

static bool is_of(const struct retention_line *line, const struct store_series *series, int grain)
{
	return line->grain == grain && slice_equal(line->tenant, series->tenant) &&
	       slice_equal(line->metric, series->metric);
}

static void set_rule(struct retention_survey *s, struct retention_line *line)
{
	const struct retention_survey_options *o = &s->options;
	struct retention_fit fit = retention_find(o->rules, &s->memo, line->tenant, line->metric);
	bool raw = line->grain == RETENTION_RAW;
	int64_t preset_ms = raw ? o->raw_retention_ms : o->grains->list[line->grain].retention_ms;
	line->rule = raw ? fit.raw : fit.grains[line->grain];
	line->keep_ms = retention_keep_ms(o->rules, line->rule, preset_ms);
	line->retention = retention_class_for(line->keep_ms);
}

/* NULL: there are too many. */
static struct retention_line *new_line(struct retention_survey *s,
				       const struct store_series *series, int grain)
{
	if (s->result.line_count == s->options.lines_max)
		return NULL;
	struct retention_line *line = &s->lines[s->result.line_count];
	*line = (struct retention_line){.tenant = arena_copy(&s->names, series->tenant),
					.metric = arena_copy(&s->names, series->metric),
					.grain = grain};
	if (!line->tenant.data || !line->metric.data)
		return NULL;
	set_rule(s, line);
	s->result.line_count++;
	return line;
}

/* The line of a metric; *other, where there is no room for it, is set up for the sums. */
static struct retention_line *line_of(struct retention_survey *s, const struct store_series *series,
				      int grain, struct retention_line *other)
{
	uint64_t seed = hash64(series->tenant.data, series->tenant.len, (uint64_t)grain + 2);
	uint64_t hash = hash64(series->metric.data, series->metric.len, seed);
	for (size_t at = hash % TABLE_SLOTS;; at = (at + 1) % TABLE_SLOTS) {
		uint32_t known = s->table[at];
		if (known && is_of(&s->lines[known - 1], series, grain))
			return &s->lines[known - 1];
		if (known)
			continue;
		struct retention_line *line = new_line(s, series, grain);
		if (line) {
			s->table[at] = (uint32_t)s->result.line_count;
			return line;
		}
		break;
	}
	s->result.cut = true;
	*other = (struct retention_line){
		.tenant = series->tenant, .metric = series->metric, .grain = grain};
	set_rule(s, other);
	return other;
}

static void add(struct retention_amount *amount, const struct store_share *share)
{
	if (!amount->series || share->oldest_ms < amount->oldest_ms)
		amount->oldest_ms = share->oldest_ms;
	amount->series++;
	amount->samples += share->samples;
	amount->bytes += share->bytes;
}

static void add_series(struct retention_survey *s, const struct store_series *series, size_t place,
		       const struct store_share *shares)
{
	struct retention_line other, *line = NULL;
	for (size_t c = 0; c < RETENTION_CLASSES; c++) {
		if (!shares[c].samples)
			continue;
		line = line ? line : line_of(s, series, grain_of(place), &other);
		add(&line->amounts[c], &shares[c]);
		if (c != (size_t)line->retention)
			add(&s->result.moves[place][c][line->retention], &shares[c]);
	}
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void list_series(struct retention_survey *s, const struct store_token *token)
{
	struct store_token from = token ? *token : (struct store_token){0};
	store_read_reset(s->list);
	s->listed = store_read_add(s->list, STORE_SERIES_LIST);
	ASSERT(s->listed); /* the first of an empty arena */
	s->listed->series_list = (struct store_series_list){
		.tenant = s->options.tenant, .metric = s->options.metric, .limit = GROUP_MAX};
	s->listed->token = from;
	submit(s, s->list);
}

static void run_begin(struct task *task)
{
	list_series(CONTAINER_OF(task, struct retention_survey, begin), NULL);
}

/* What lies behind the series that are listed. */
static void list_next(struct retention_survey *s)
{
	if (s->listed->more)
		list_series(s, &s->listed->token);
	else
		end(s, 0);
}

static void count_series(struct retention_survey *s)
{
	store_read_reset(s->read);
	for (size_t place = 0; place < s->places; place++) {
		struct store_request *request = store_read_add(s->read, STORE_SHARES);
		ASSERT(request);
		request->shares = (struct store_shares){
			.table = place ? TABLE_DATA_DOWNSAMPLED : TABLE_DATA_RAW,
			.period_ms = place ? s->options.grains->list[place - 1].width_ms : 0,
			.handles = s->handles,
			.handle_count = s->count};
		s->counted[place] = request;
		s->have[place] = 0;
	}
	submit(s, s->read);
}

static void on_list(struct store_read *read, int err)
{
	struct retention_survey *s = read->owner;
	const struct store_series_list *list = &s->listed->series_list;
	if (err) {
		end(s, err);
		return;
	}
	s->count = list->count;
	s->result.series += list->count;
	for (size_t i = 0; i < list->count; i++)
		s->handles[i] = list->series[i].handle;
	if (s->count)
		count_series(s);
	else
		list_next(s);
}

static void on_counted(struct store_read *read, int err)
{
	struct retention_survey *s = read->owner;
	const struct store_series *series = s->listed->series_list.series;
	bool more = false;
	if (err) {
		end(s, err);
		return;
	}
	for (size_t place = 0; place < s->places; place++) {
		const struct store_shares *shares = &s->counted[place]->shares;
		for (size_t *i = &s->have[place]; *i < shares->next_handle; ++*i)
			add_series(s, &series[*i], place, &shares->list[*i * RETENTION_CLASSES]);
		more |= s->counted[place]->more;
	}
	if (more)
		submit(s, s->read);
	else
		list_next(s);
}
