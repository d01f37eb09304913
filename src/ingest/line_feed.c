#include "ingest/line_feed.h"

#include "base/stats.h"
#include "ingest/raw_retention.h"

_Static_assert((int)LINE_FIELDS_MAX == (int)INGEST_POINTS_MAX, "a line is one ingest_points");

enum {
	CARRY_MAX_BYTES = 2 * LINE_MAX_BYTES + LINE_PADDING_BYTES,
	TEXTS_TOLD_MAX = 1000,
	TEXT_LINES_A_MINUTE = 10,
};

/* One per server, since lines are taken one after the other. */
struct line_scratch {
	struct line_fields fields;
	struct tag tags[LINE_TAGS_MAX];
	struct slice metrics[LINE_FIELDS_MAX];
	struct value values[LINE_FIELDS_MAX];
	uint64_t handles[LINE_FIELDS_MAX];
	uint16_t positions[LINE_FIELDS_MAX];
	char text[LINE_MAX_BYTES];
};

void line_scratch_free(struct line_scratch *scratch)
{
	mem_free(scratch);
}

void line_feed_init(struct line_feed *feed, struct ingest_request *r, struct slice tenant,
		    enum line_precision precision)
{
	struct ingest *ingest = r->ingest;
	if (!ingest->line)
		ingest->line = mem_alloc(sizeof(*ingest->line));
	*feed = (struct line_feed){.r = r,
				   .tenant = tenant,
				   .precision = precision,
				   .line_max_bytes = LINE_MAX_BYTES,
				   .line = 1};
	/* No tenant's name has a blank: keys without a header have a seed of their own. */
	feed->tenant_seed = tenant.data ? hash64(tenant.data, tenant.len, ingest->seed)
					: hash64(" ", 1, ingest->seed);
	buf_init(&feed->carry, CARRY_MAX_BYTES);
}

static void line_feed_set_last(struct line_feed *feed, struct field_names *fields)
{
	if (feed->last == fields)
		return;
	if (feed->last)
		field_names_release(feed->last);
	if (fields)
		field_names_hold(fields);
	feed->last = fields;
}

void line_feed_release(struct line_feed *feed)
{
	line_feed_set_last(feed, NULL);
	buf_release(&feed->carry);
}

/* ---- One line ------------------------------------------------------------------------------- */

/* The line that is being read. */
struct line_feed_line {
	struct line_feed *feed;
	struct line_reader *reader;
	struct line_fields *fields;
	struct slice key;
	struct hash128 hash; /* of the cache entry */
	int64_t ts_ms;
};

static struct hash128 line_feed_key_hash(const struct line_feed *feed, struct slice key)
{
	struct hash128 hash = hash128(key.data, key.len, 0);
	hash.low += feed->tenant_seed;
	hash.high ^= feed->tenant_seed;
	return hash;
}

/* The key's entry has another shape: the hash of a second entry, for this shape. */
static struct hash128 line_feed_field_names_hash(struct hash128 hash,
						 const struct field_names *fields)
{
	return (struct hash128){hash.low ^ fields->key.low, hash.high + fields->key.high};
}

static struct ingest_place line_feed_place_at(const struct line_feed_line *t, const char *at)
{
	struct line_bad place = line_place(t->reader, at);
	return (struct ingest_place){place.line, place.column};
}

static struct ingest_place line_feed_key_place(const struct line_feed_line *t)
{
	return line_feed_place_at(t, t->key.data);
}

static struct request *line_feed_request_for(const struct line_feed_line *t)
{
	return request_of(t->feed->r);
}

/* The raw measurement: the key up to a comma without a backslash. */
static struct slice line_feed_measurement_of(struct slice key)
{
	size_t n = 0;
	for (; n < key.len && key.data[n] != ','; n++) {
		if (key.data[n] == '\\' && n + 1 < key.len &&
		    (key.data[n + 1] == ',' || key.data[n + 1] == '=' || key.data[n + 1] == ' '))
			n++;
	}
	return (struct slice){key.data, n};
}

/* The raw name of a field of the line. */
static struct slice line_feed_field_name(const struct line_feed_line *t,
					 const struct field_names *expected, size_t field)
{
	if (!t->fields->expected)
		return t->fields->names[field];
	const uint64_t *words = expected->names.words;
	for (size_t i = 0; i < field; i++)
		words += (expected->names.lengths[i] + 7) / 8;
	return (struct slice){(const char *)words, expected->names.lengths[field] - 1u};
}

/* Senders such as Telegraf send some texts with every flush, so the log names each metric once. */
static void line_feed_leave_text_out(const struct line_feed_line *t,
				     const struct field_names *expected, size_t field)
{
	struct ingest *ingest = t->feed->r->ingest;
	struct slice measurement = line_feed_measurement_of(t->key);
	struct slice name = line_feed_field_name(t, expected, field);
	struct hash128 first = hash128(measurement.data, measurement.len, ingest->seed);
	stat_add(STAT_ingest_texts_left_out, 1);
	t->feed->texts_left_out++;
	if (!hash_set_add(&ingest->told_texts, hash128(name.data, name.len, first.low),
			  TEXTS_TOLD_MAX))
		return;
	ingest->text_lines.lines_max = TEXT_LINES_A_MINUTE;
	log_rated(&ingest->text_lines, clock_mono_ms(ingest->options.clock), LOG_WARN,
		  "line protocol: field " SHOWN " of " SHOWN " is a text and is left out, now and "
		  "later: only numbers are stored (line.text_fields: refuse answers 400 instead)",
		  SHOWN_OF(name), SHOWN_OF(measurement));
}

static void line_feed_refuse_faults(const struct line_feed_line *t,
				    const struct field_names *expected)
{
	static const struct {
		enum ingest_reason reason;
		const char *sentence;
	} means[] = {
		[LINE_FAULT_TEXT] = {INGEST_NOT_NUMBER, "a text is not stored, only numbers are"},
		[LINE_FAULT_NOT_FINITE] = {INGEST_NOT_FINITE, "the value is not a finite number"},
		[LINE_FAULT_OUT_OF_RANGE] = {INGEST_OUT_OF_RANGE,
					     "the integer does not fit the 64 bits of its type"},
	};
	for (size_t i = 0; i < t->fields->fault_count; i++) {
		const struct line_fault *fault = &t->fields->faults[i];
		if (fault->kind == LINE_FAULT_TEXT && t->feed->r->ingest->options.texts_left_out)
			line_feed_leave_text_out(t, expected, fault->field);
		else
			ingest_refuse(t->feed->r, line_feed_place_at(t, fault->at),
				      means[fault->kind].reason, (struct slice){0}, "%s",
				      means[fault->kind].sentence);
	}
}

/* The names of a line that had some other names than expected. Some may lie in the field names that
 * were expected, so only those of the line have a place. */
static struct field_names *line_feed_make_field_names(const struct line_feed_line *t,
						      struct slice measurement)
{
	const struct line_fields *fields = t->fields;
	struct errbuf e;
	size_t field;
	struct field_names *names = field_names_get(t->feed->r->ingest->field_sets, measurement,
						    fields->names, fields->count, &field, &e);
	if (names)
		return names;
	const char *name = fields->names[field].data;
	bool here = name >= t->reader->start && name < t->reader->at;
	ingest_refuse(t->feed->r, here ? line_feed_place_at(t, name) : line_feed_key_place(t),
		      INGEST_NAME, (struct slice){0}, "%s", e.text);
	return NULL;
}

static void line_feed_fill_names(struct line_fields *fields, const struct line_names *names)
{
	const uint64_t *words = names->words;
	for (size_t i = 0; i < names->count; i++) {
		fields->names[i] = (struct slice){(const char *)words, names->lengths[i] - 1u};
		words += (names->lengths[i] + 7) / 8;
	}
}

/* With a reference for the caller, or NULL and refused. `expected` is what line_fields was given.
 * */
static struct field_names *line_feed_field_names_of(const struct line_feed_line *t,
						    struct field_names *expected, bool of_entry)
{
	struct slice measurement = line_feed_measurement_of(t->key);
	if (t->fields->expected) {
		if (of_entry || slice_equal(measurement, expected->measurement)) {
			field_names_hold(expected);
			return expected;
		}
		line_feed_fill_names(t->fields, &expected->names);
	}
	return line_feed_make_field_names(t, measurement);
}

/* The fields that are numbers, by their position in the shape. */
static size_t line_feed_gather_numbers(const struct line_feed_line *t, struct line_scratch *s)
{
	size_t n = 0;
	for (size_t i = 0; i < t->fields->count; i++) {
		if (t->fields->values[i].type == VALUE_NONE)
			continue;
		s->values[n] = t->fields->values[i];
		s->positions[n++] = (uint16_t)i;
	}
	return n;
}

static struct ingest_place line_feed_time_place(const struct line_feed_line *t)
{
	return t->fields->has_time ? line_feed_place_at(t, t->fields->time_at)
				   : line_feed_key_place(t);
}

static bool line_feed_add_known(const struct line_feed_line *t, const struct cache_entry *entry,
				struct line_scratch *s, size_t count)
{
	uint8_t levels[LINE_FIELDS_MAX];
	bool several = entry->level == CACHE_LEVELS;
	for (size_t i = 0; i < count; i++) {
		s->handles[i] = cache_handle(entry, s->positions[i]);
		if (!s->handles[i])
			return false;
		if (several)
			levels[i] = cache_level(entry, s->positions[i]);
	}
	raw_retention_add(line_feed_request_for(t),
			  &(struct known){.level = entry->level,
					  .levels = several ? levels : NULL,
					  .ts_ms = t->ts_ms,
					  .handles = s->handles,
					  .values = s->values,
					  .count = count,
					  .place = line_feed_time_place(t)});
	return true;
}

/* If a line has a field twice, the last counts. */
static size_t line_feed_without_repeats(const struct field_names *fields, struct line_scratch *s,
					size_t count)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		struct slice metric = fields->metrics[s->positions[i]];
		size_t at = 0;
		while (at < n && !slice_equal(s->metrics[at], metric))
			at++;
		s->metrics[at] = metric;
		s->values[at] = s->values[i];
		n += at == n;
	}
	return n;
}

static void line_feed_refuse_tag(const struct line_feed_line *t, struct slice name, size_t nth,
				 const struct errbuf *e)
{
	ingest_refuse(t->feed->r, line_feed_place_at(t, line_tag_place(t->key, name, nth)),
		      INGEST_NAME, (struct slice){0}, "%s", e->text);
}

/* The sorted tags: list[fault], or all of them, for which the first stands, or that which was too
 * much. */
static void line_feed_refuse_tags(const struct line_feed_line *t, const struct tag *list,
				  size_t count, size_t fault, const struct errbuf *e)
{
	size_t nth = 0;
	if (fault == count)
		fault = count > TAGS_MAX ? TAGS_MAX : 0;
	while (nth < fault && slice_equal(list[fault - nth - 1].key, list[fault].key))
		nth++;
	line_feed_refuse_tag(t, list[fault].key, nth, e);
}

static bool line_feed_read_identity(const struct line_feed_line *t, struct line_scratch *s,
				    struct unknown *u)
{
	struct ingest_request *r = t->feed->r;
	const struct ingest *ingest = r->ingest;
	struct slice measurement;
	const char *at, *reason;
	size_t count, fault;
	struct errbuf e;
	if (line_tags(t->key, s->text, &measurement, s->tags, &count, &at, &reason) != LINE_OK) {
		ingest_refuse(r, line_feed_place_at(t, at), INGEST_SYNTAX, (struct slice){0}, "%s",
			      reason);
		return false;
	}
	if (ingest_tenant(ingest, t->feed->tenant, s->tags, &count, &u->tenant, &e)) {
		/* The first is none, or it is one and there is a second. */
		line_feed_refuse_tag(t, ingest->options.tenant_tag, tenant_valid(u->tenant), &e);
		return false;
	}
	if (tags_sort_and_find_fault(s->tags, count, &fault, &e)) {
		line_feed_refuse_tags(t, s->tags, count, fault, &e);
		return false;
	}
	u->tags = (struct tags){s->tags, count};
	return true;
}

static void line_feed_add_unknown(const struct line_feed_line *t, struct field_names *fields,
				  struct line_scratch *s, size_t count)
{
	struct unknown u = {.key = t->hash,
			    .fields = fields,
			    .metrics = fields->metrics,
			    .metric_count = fields->names.count,
			    .positions = count < fields->names.count ? s->positions : NULL,
			    .values = s->values,
			    .count = count,
			    .ts_ms = t->ts_ms,
			    .place = line_feed_key_place(t),
			    .time_column = line_feed_time_place(t).column};
	if ((!fields->repeats && resolving_put_again(line_feed_request_for(t), &u)) ||
	    !line_feed_read_identity(t, s, &u))
		return;
	if (UNLIKELY(fields->repeats)) {
		u.count = u.metric_count = line_feed_without_repeats(fields, s, count);
		u.key = line_feed_field_names_hash(u.key, fields);
		u.fields = NULL;
		u.positions = NULL;
		u.metrics = s->metrics;
		u.no_cache = true;
	}
	resolving_add_unknown(line_feed_request_for(t), &u);
}

/* Whatever is not the shortest way: text among the fields, another shape, an unknown key. */
static void line_feed_accept_slowly(struct line_feed_line *t, const struct cache_entry *entry,
				    struct field_names *expected)
{
	struct line_scratch *s = t->feed->r->ingest->line;
	line_feed_refuse_faults(t, expected);
	size_t count = line_feed_gather_numbers(t, s);
	if (!count)
		return;
	struct field_names *fields =
		line_feed_field_names_of(t, expected, entry && entry->fields == expected);
	if (!fields)
		return;
	if (entry && entry->fields != fields) {
		t->hash = line_feed_field_names_hash(t->hash, fields);
		entry = cache_find(t->feed->r->ingest->cache, t->hash);
	}
	bool known = entry && entry->fields == fields &&
		     request_touched(line_feed_request_for(t), entry, t->ts_ms) &&
		     line_feed_add_known(t, entry, s, count);
	if (!known) {
		line_feed_set_last(t->feed, fields);
		line_feed_add_unknown(t, fields, s, count);
	}
	field_names_release(fields);
}

static enum line_result line_feed_accept_line(struct line_feed *feed, struct line_reader *reader,
					      struct slice key, struct hash128 hash)
{
	struct ingest *ingest = feed->r->ingest;
	struct line_fields *fields = &ingest->line->fields;
	struct line_feed_line t = {feed, reader, fields, key, hash, 0};
	const struct cache_entry *entry = cache_find(ingest->cache, t.hash);
	struct field_names *expected = entry && entry->fields ? entry->fields : feed->last;
	enum line_result result = line_fields(reader, expected ? &expected->names : NULL, fields);
	if (UNLIKELY(result != LINE_OK))
		return result;
	t.ts_ms = fields->has_time ? fields->ts_ms : feed->r->now_ms;
	struct request *q = request_of(feed->r);
	if (UNLIKELY(t.ts_ms < q->oldest_ms || t.ts_ms > q->newest_ms)) {
		request_time(q, t.ts_ms, line_feed_time_place(&t), (struct slice){0});
		return LINE_OK;
	}
	if (LIKELY(entry && entry->fields && fields->expected && !fields->fault_count &&
		   !entry->is_list && t.ts_ms >= q->sure_ms &&
		   request_touched(q, entry, t.ts_ms))) {
		cache_handles(entry, ingest->line->handles);
		request_add(q, entry->level, t.ts_ms, ingest->line->handles, fields->values,
			    fields->count);
		return LINE_OK;
	}
	line_feed_accept_slowly(&t, entry, expected);
	return LINE_OK;
}

/* ---- Many lines ----------------------------------------------------------------------------- */

static void line_feed_refuse_bad(struct line_feed *feed, const struct line_bad *bad)
{
	ingest_refuse(feed->r, (struct ingest_place){bad->line, bad->column},
		      bad->too_long ? INGEST_TOO_LONG : INGEST_SYNTAX, (struct slice){0}, "%s",
		      bad->reason);
}

enum line_feed_cut_means {
	CUT_WAITS,        /* more may close the text */
	CUT_FIRST_IS_BAD, /* the first line is as long as it may be */
	CUT_IS_BAD,       /* nothing more comes */
};

/* The lines that come next, as far as they can be guessed, so that their places in the cache are
 * fetched in time. */
enum { LOOKOUT_LINES = 8 };
struct line_feed_lookahead {
	const char *at, *end;
	unsigned first, count;
	struct seen {
		struct slice key;
		struct hash128 hash;
	} lines[LOOKOUT_LINES];
};

static void line_feed_prefetch(const struct line_feed *feed, struct line_feed_lookahead *l,
			       const char *now)
{
	while (l->count && l->lines[l->first].key.data < now) {
		l->first = (l->first + 1) % LOOKOUT_LINES;
		l->count--;
	}
	if (l->at < now)
		l->at = now;
	while (l->count < LOOKOUT_LINES) {
		struct seen *seen = &l->lines[(l->first + l->count) % LOOKOUT_LINES];
		if (!line_peek(&l->at, l->end, &seen->key))
			return;
		seen->hash = line_feed_key_hash(feed, seen->key);
		cache_prefetch(feed->r->ingest->cache, seen->hash);
		l->count++;
	}
}

static enum line_result line_feed_next_line(struct line_feed *feed, struct line_feed_lookahead *l,
					    struct line_reader *reader)
{
	struct slice key;
	line_feed_prefetch(feed, l, reader->at);
	struct seen seen = l->count ? l->lines[l->first] : (struct seen){0};
	enum line_result result = line_next_peeked(reader, seen.key, &key);
	if (UNLIKELY(result != LINE_OK))
		return result;
	if (UNLIKELY(key.data != seen.key.data))
		seen.hash = line_feed_key_hash(feed, key);
	return line_feed_accept_line(feed, reader, key, seen.hash);
}

/* Whole lines; gives how many bytes were taken: all but a line that ends in an open text. */
static size_t line_feed_accept_lines(struct line_feed *feed, const char *bytes, size_t len,
				     enum line_feed_cut_means means)
{
	struct line_reader reader;
	struct line_feed_lookahead lookout = {.at = bytes, .end = bytes + len};
	enum line_result result;
	line_reader_init(&reader, bytes, len, feed->line, feed->precision);
	reader.line_max_bytes = feed->line_max_bytes;
	while (!feed->r->err &&
	       (result = line_feed_next_line(feed, &lookout, &reader)) != LINE_DONE) {
		if (LIKELY(result == LINE_OK))
			continue;
		if (result == LINE_CUT) {
			if (means != CUT_IS_BAD &&
			    (means != CUT_FIRST_IS_BAD || reader.start != bytes)) {
				feed->line = reader.line;
				return (size_t)(reader.start - bytes);
			}
			line_skip(&reader);
		}
		line_feed_refuse_bad(feed, &reader.bad);
	}
	feed->line = reader.line;
	return len;
}

/* ---- Pieces --------------------------------------------------------------------------------- */

static size_t line_feed_through_newline(const char *newline, const char *begin)
{
	return newline ? (size_t)(newline - begin) + 1 : 0;
}

/* The carry up to its last newline. */
static void line_feed_accept_carry(struct line_feed *feed, enum line_feed_cut_means means)
{
	struct buf *carry = &feed->carry;
	char *padding = buf_reserve(carry, LINE_PADDING_BYTES);
	ASSERT(padding);
	memset(padding, 0, LINE_PADDING_BYTES);
	size_t whole =
		line_feed_through_newline(memrchr(carry->data, '\n', carry->len), carry->data);
	size_t taken = line_feed_accept_lines(feed, carry->data, whole, means);
	buf_consume(carry, taken);
	feed->cut = whole - taken;
}

/* Neither the carry nor the piece's beginning has room for another byte of this line. */
static void line_too_long(struct line_feed *feed)
{
	if (feed->cut) {
		line_feed_accept_carry(feed, CUT_FIRST_IS_BAD);
		return;
	}
	ingest_refuse(feed->r, (struct ingest_place){feed->line, 1}, INGEST_TOO_LONG,
		      (struct slice){0}, "the line is longer than %d bytes", LINE_MAX_BYTES);
	buf_clear(&feed->carry);
	feed->skipping = true;
}

static void line_feed_drop_front(struct slice *piece, size_t n)
{
	piece->data += n;
	piece->len -= n;
}

static void line_feed_skip_line(struct line_feed *feed, struct slice *piece)
{
	size_t n = line_feed_through_newline(memchr(piece->data, '\n', piece->len), piece->data);
	if (n) {
		feed->skipping = false;
		feed->line++;
	}
	line_feed_drop_front(piece, n ? n : piece->len);
}

/* Adds to the carry up to a newline and reads it. After a text that was not closed, as much again
 * is added before the next attempt, so that texts of many lines are not read too often. */
static void line_feed_add_to_carry(struct line_feed *feed, struct slice *piece)
{
	struct buf *carry = &feed->carry;
	size_t skip = 2 * feed->cut > carry->len ? 2 * feed->cut - carry->len : 0;
	const char *newline = NULL;
	if (skip < piece->len)
		newline = memchr(piece->data + skip, '\n', piece->len - skip);
	size_t n = newline ? line_feed_through_newline(newline, piece->data) : piece->len;
	size_t room = carry->len <= LINE_MAX_BYTES ? LINE_MAX_BYTES + 1 - carry->len : 0;
	bool overflows = n > room;
	if (overflows)
		n = room;
	buf_append(carry, piece->data, n);
	line_feed_drop_front(piece, n);
	if (overflows)
		line_too_long(feed);
	else if (newline)
		line_feed_accept_carry(feed, CUT_WAITS);
}

/* Accepts the lines that lie whole in the piece, with LINE_PADDING_BYTES after them. */
static bool line_feed_accept_in_place(struct line_feed *feed, struct slice *piece)
{
	if (feed->carry.len || piece->len <= LINE_PADDING_BYTES)
		return false;
	const char *newline = memrchr(piece->data, '\n', piece->len - LINE_PADDING_BYTES);
	size_t whole = line_feed_through_newline(newline, piece->data);
	size_t taken = whole ? line_feed_accept_lines(feed, piece->data, whole, CUT_WAITS) : 0;
	line_feed_drop_front(piece, taken);
	return taken;
}

void line_feed_piece(struct line_feed *feed, struct slice piece)
{
	ingest_piece_begin(feed->r);
	while (piece.len && !feed->r->err) {
		if (feed->skipping)
			line_feed_skip_line(feed, &piece);
		else if (!line_feed_accept_in_place(feed, &piece))
			line_feed_add_to_carry(feed, &piece);
	}
	ingest_piece_end(feed->r);
}

void line_feed_try(struct line_feed *feed)
{
	if (!feed->cut || feed->r->err)
		return;
	ingest_piece_begin(feed->r);
	line_feed_accept_carry(feed, CUT_WAITS);
	ingest_piece_end(feed->r);
}

void line_feed_end(struct line_feed *feed)
{
	if (!feed->carry.len || feed->r->err)
		return;
	ingest_piece_begin(feed->r);
	buf_append_char(&feed->carry, '\n');
	line_feed_accept_carry(feed, CUT_IS_BAD);
	ingest_piece_end(feed->r);
}
