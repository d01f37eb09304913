/* Chunks of a log: what is read at the place where reading stands, cut between records, and what
 * becomes of the plan when it is delivered. */
#include "agent/followed.h"
#include "base/stats.h"

/* The bytes that a chunk is to have: `data` lies at the place where reading stands, `last` says
 * that the content ends behind it. */
struct followed_cut {
	size_t bytes;     /* 0: nothing is to be sent yet */
	bool lines;       /* the records are its lines */
	size_t end_count; /* else: of the ends in the site */
	bool goes_on;
};

static void followed_cut_end_at(struct followed *f, struct followed_cut *cut, size_t bytes)
{
	f->site->found.ends[0] = (uint32_t)bytes;
	*cut = (struct followed_cut){.bytes = bytes, .end_count = 1};
}

/* The record at the beginning of the data is not whole, and is not awaited any longer. */
static void followed_cut_unfinished(struct followed *f, struct slice data, bool last,
				    struct followed_cut *cut)
{
	const char *newline = memrchr(data.data, '\n', data.len);
	if (last) {
		followed_cut_end_at(f, cut, data.len);
	} else if (f->rule->records.kind == RECORDS_BEGINNING && newline) {
		followed_cut_end_at(f, cut, (size_t)(newline + 1 - data.data));
	} else {
		*cut = (struct followed_cut){.bytes = data.len, .goes_on = true};
	}
}

static void followed_cut(struct followed *f, struct slice data, bool last, bool full,
			 struct followed_cut *cut)
{
	int64_t now_ms = clock_mono_ms(f->site->clock);
	uint64_t work = 0;
	*cut = (struct followed_cut){0};
	if (f->rule->whole) {
		if (last)
			followed_cut_end_at(f, cut, data.len);
		else if (full)
			*cut = (struct followed_cut){.bytes = data.len, .goes_on = true};
		return;
	}
	struct records_found *found = &f->site->found;
	records_find(&f->rule->records, data, found, &work);
	if (found->whole_bytes) {
		f->unfinished_since_ms = 0;
		*cut = (struct followed_cut){
			.bytes = found->whole_bytes,
			.lines = f->rule->records.kind == RECORDS_LINES,
			.end_count = found->end_count,
		};
		return;
	}
	if (!f->unfinished_since_ms)
		f->unfinished_since_ms = now_ms;
	if (!last && !full && now_ms - f->unfinished_since_ms < f->rule->rest_ms)
		return;
	f->unfinished_since_ms = 0;
	followed_cut_unfinished(f, data, last, cut);
}

static void followed_fill(struct followed *f, struct slice data, const struct followed_cut *cut,
			  struct followed_chunk *chunk)
{
	size_t mark = f->read.at + cut->bytes < CONTENT_MARK_MAX_BYTES
			      ? (size_t)(f->read.at + cut->bytes)
			      : CONTENT_MARK_MAX_BYTES;
	chunk->after = f->read;
	chunk->after.at += cut->bytes;
	chunk->after.offset += cut->bytes;
	chunk->after.within = cut->goes_on;
	/* The bytes in front of the data may be needed for the mark, and lie there. */
	chunk->after.tail = content_mark_of(data.data + cut->bytes - mark, mark);
	chunk->fields = (struct chunk_fields){
		.names = f->names,
		.incarnation = f->incarnation,
		.sequence_id = chunk->after.offset,
		.data_bytes = (uint32_t)cut->bytes,
		.clock_ms = clock_wall_ms(f->site->clock),
		.lines = cut->lines,
		.continues = f->read.within,
		.goes_on = cut->goes_on,
	};
	chunk->data = (struct chunk_data){
		.data = {data.data, cut->bytes},
		.ends = f->site->found.ends,
		.end_count = cut->end_count,
	};
}

/* Another content may begin as a short one does, at the same path, after a copy was made and the
 * file emptied. So a short one is read as it was when it was looked at, and no further. */
static bool followed_reads_as_looked_at(const struct followed *f, const struct segment *segment)
{
	return segment_is_short(segment) && !f->rule->own && !content_is_packed(segment->content);
}

static int segment_check_unchanged(const struct segment *segment)
{
	struct file_look look;
	int err = content_look(segment->content, &look);
	bool same = !err && look.bytes == segment->bytes && look.changed_ns == segment->changed_ns;
	return err ? err : same ? 0 : ERR_RETRY;
}

/* Fills the site's buffer: up to CONTENT_MARK_MAX_BYTES in front of the place, and what is
 * behind it. After they were read the marks must still be right: a content that was cut off and
 * written again meanwhile is another one. */
static int followed_read_data(struct followed *f, struct segment *segment, struct slice *data)
{
	size_t front =
		f->read.at < CONTENT_MARK_MAX_BYTES ? (size_t)f->read.at : CONTENT_MARK_MAX_BYTES;
	bool as_looked_at = followed_reads_as_looked_at(f, segment);
	uint64_t end =
		as_looked_at && segment->bytes < segment->end ? segment->bytes : segment->end;
	uint64_t left = end > f->read.at ? end - f->read.at : 0;
	size_t most = CHUNK_DATA_MAX_BYTES - CONTENT_MARK_MAX_BYTES, got;
	most = front + (left < most ? (size_t)left : most);
	char *to = f->site->data.data;
	int err = content_read(segment->content, f->read.at - front, to, most, &got);
	if (err)
		return err;
	if (got < front ||
	    content_mark_of(to + front - f->read.tail.bytes, f->read.tail.bytes).hash !=
		    f->read.tail.hash)
		return ERR_RETRY;
	if (!content_is_packed(segment->content))
		err = segment_check_marks(segment, segment->content);
	if (!err && as_looked_at)
		err = segment_check_unchanged(segment);
	*data = (struct slice){to + front, got - front};
	return err == ERR_NOT_FOUND ? ERR_RETRY : err;
}

static struct segment *followed_reading(struct followed *f)
{
	size_t at = (size_t)(f->read.segment - f->plan_first);
	return at < f->plan_count ? &f->plan[at] : NULL;
}

/* Reading has come to the end of what a segment has now. True: it goes on in the next one. */
static bool followed_read_over(struct followed *f, struct segment *segment)
{
	bool is_last = segment == followed_last(f);
	if (segment->end == SEGMENT_OPEN && content_is_packed(segment->content) && !is_last) {
		segment->end = f->read.at;
		followed_changed(f);
		return false;
	}
	if (f->read.at != segment->end || is_last)
		return false;
	f->read = (struct followed_place){
		.segment = f->read.segment + 1,
		.at = segment[1].at,
		.tail = segment[1].tail,
		.offset = f->read.offset,
		.within = segment[1].within,
	};
	return true;
}

/* A damaged file may not be written whole yet. */
static void followed_read_failed(struct followed *f, struct segment *segment, int err)
{
	f->look_again = true;
	if (err == ERR_RETRY)
		return;
	followed_trouble(f, err);
	if (err == ERR_DAMAGED && segment != followed_last(f) &&
	    clock_wall_ms(f->site->clock) - segment->changed_ns / 1000000 > FOLLOWED_STILL_MS) {
		stat_add(STAT_agent_damaged_files, 1);
		segment->end = f->read.at;
		followed_changed(f);
	}
}

/* Chunks that are on their way are awaited: their delivery says that all is well. */
static void followed_use_up(struct followed *f)
{
	if (f->read.offset != f->offset)
		return;
	f->state = FOLLOWED_STOPPED;
	stat_add(STAT_agent_stopped, 1);
	followed_set_problem(f, "it is not sent any more: its stream would have bytes beyond "
				"offset 2^63");
}

/* Bytes behind the end of a stream are not read. True: the end is there. */
static bool followed_read_end(const struct followed *f, struct slice *data)
{
	uint64_t left = f->rule->ends ? f->rule->until - f->read.offset : UINT64_MAX;
	if (data->len < left)
		return false;
	data->len = (size_t)left;
	return true;
}

bool followed_read(struct followed *f, struct followed_chunk *chunk, int64_t *wait_ms)
{
	struct segment *segment;
	struct slice data;
	struct followed_cut cut;
	*wait_ms = -1;
	if (f->look_again)
		*wait_ms = FOLLOWED_RETRY_MS;
	if (f->state == FOLLOWED_STOPPED || f->state == FOLLOWED_DONE || f->look_again ||
	    !followed_is_saved(f) || (f->rule->ends && f->read.offset >= f->rule->until))
		return false;
	while ((segment = followed_reading(f)) && segment->content) {
		if (f->rule->whole && segment->end == SEGMENT_OPEN)
			return false;
		int err = followed_read_data(f, segment, &data);
		if (err) {
			followed_read_failed(f, segment, err);
			*wait_ms = FOLLOWED_RETRY_MS;
			return false;
		}
		if (!data.len) {
			if (followed_read_over(f, segment))
				continue;
			return false;
		}
		if (!segment->begun) { /* for the checkpoint it is empty */
			f->look_again = true;
			*wait_ms = FOLLOWED_RETRY_MS;
			return false;
		}
		bool last = segment->end - f->read.at == data.len;
		last |= followed_read_end(f, &data);
		bool full = data.len == CHUNK_DATA_MAX_BYTES - CONTENT_MARK_MAX_BYTES;
		followed_cut(f, data, last, full, &cut);
		if (!cut.bytes) {
			*wait_ms =
				f->rule->whole
					? FOLLOWED_STILL_MS
					: larger_of(1, f->unfinished_since_ms + f->rule->rest_ms -
							       clock_mono_ms(f->site->clock));
			return false;
		}
		if (cut.bytes > STREAM_OFFSET_MAX - f->read.offset) {
			followed_use_up(f);
			return false;
		}
		followed_fill(f, data, &cut, chunk);
		f->read = chunk->after;
		f->last_line_ms = chunk->fields.clock_ms;
		return true;
	}
	return false;
}

void followed_acknowledge(struct followed *f, const struct followed_place *place)
{
	while (f->plan_first < place->segment) {
		ASSERT(f->plan[0].at == f->plan[0].end); /* delivered before */
		followed_pass(f);
	}
	ASSERT(place->segment == f->plan_first && place->offset >= f->offset);
	f->plan[0].at = place->at;
	f->plan[0].tail = place->tail;
	f->plan[0].within = place->within;
	f->offset = place->offset;
	followed_pass_delivered(f);
	if (f->rule->whole && f->plan[0].at == f->plan[0].end)
		f->state = FOLLOWED_DONE;
}

void followed_renew(struct followed *f)
{
	f->incarnation = random_next(&f->site->random);
	followed_changed(f);
	followed_read_again(f);
}
