/* Texts that the rule names, and tags of chunks: values that are no numbers. */
#include "stream/demux_private.h"

#include "base/stats.h"

enum {
	TEXTS_WAITING = 500, /* that are written at once */
	TEXTS_MAX_BYTES = 4 << 20,
	TEXTS_MINUTE_MS = 60000,
};

void demux_texts_init(struct demux_work *work)
{
	arena_init(&work->text_arena, TEXTS_MAX_BYTES);
	work->texts = mem_alloc_array(TEXTS_WAITING, sizeof(*work->texts));
	work->text_count = 0;
}

void demux_texts_release(struct demux_work *work)
{
	mem_free(work->texts);
	arena_release(&work->text_arena);
}

void demux_texts_clear(struct demux_work *work)
{
	work->text_count = 0;
	arena_reset(&work->text_arena);
}

int pass_flush_texts(struct pass *p)
{
	struct demux_work *work = p->work;
	struct demux_sink *sink = work->sink;
	int err = 0;
	if (work->text_count && (!pass_may_write(work) || task_queue_is_stopped(work->queue)))
		err = ERR_CANCELLED;
	else if (work->text_count)
		err = sink->write_texts(sink, work->job, p->stream->tenant, p->stream->rule,
					work->texts, work->text_count,
					p->stamp_us + p->written_texts, p->e);
	p->written_texts += (int64_t)work->text_count;
	demux_texts_clear(work);
	return err;
}

/* Copies the parts that lie in the line. */
static int pass_keep_text(struct pass *p, struct demux_text *text)
{
	struct arena *arena = &p->work->text_arena;
	text->metric = arena_copy(arena, text->metric);
	text->text = arena_copy(arena, text->text);
	for (size_t i = p->fixed_count; i < text->tag_count; i++) {
		text->tags[i].value = arena_copy(arena, text->tags[i].value);
		if (!text->tags[i].value.data)
			return ERR_LIMIT;
	}
	return text->metric.data && text->text.data ? 0 : ERR_LIMIT;
}

/* Without room the texts that wait are written first. */
static int pass_add_text(struct pass *p, const struct demux_text *text)
{
	struct demux_work *work = p->work;
	struct demux_text copy = *text;
	int err = pass_keep_text(p, &copy);
	if (err) {
		err = pass_flush_texts(p);
		copy = *text;
		err = err ? err : pass_keep_text(p, &copy);
	}
	if (err)
		return err == ERR_LIMIT ? errbuf_set(p->e, err, "a text is too large") : err;
	work->texts[work->text_count++] = copy;
	return work->text_count == TEXTS_WAITING ? pass_flush_texts(p) : 0;
}

/* Whether the minute has room for one more text. The newest minutes are counted; an older one
 * shares the room of one of these. */
static bool pass_has_text_room(struct pass *p, int64_t ms)
{
	int64_t minute = floor_div(ms, TEXTS_MINUTE_MS);
	struct demux_texts_minute *count = &p->stream->minutes[minute & (DEMUX_TEXTS_MINUTES - 1)];
	if (minute > count->minute)
		*count = (struct demux_texts_minute){minute, 0};
	if (count->texts == p->stream->rule->texts_max)
		return false;
	count->texts++;
	return true;
}

int pass_take_texts(struct pass *p, const struct demux_point *point)
{
	struct demux_text text = {.ms = point->ms, .tag_count = point->tag_count};
	int err = 0;
	if (!p->record.text_count || !p->work->sink->write_texts)
		return 0;
	memcpy(text.tags, point->tags, point->tag_count * sizeof(*point->tags));
	for (size_t i = 0; i < p->record.text_count && !err; i++) {
		text.metric = p->record.texts[i].metric;
		text.text = p->record.texts[i].text;
		if (pass_has_text_room(p, point->ms))
			err = pass_add_text(p, &text);
		else
			stat_add(STAT_demux_texts_refused, 1);
	}
	return err;
}

/* Tags are noted once for each hour that has them, at its beginning. So each range of an hour shows
 * them, and reading the stream again adds nothing. */
int pass_take_chunk_tags(struct pass *p, struct slice tags, int64_t hour_ms)
{
	struct demux_stream *stream = p->stream;
	const struct slice prefix = stream->rule->prefix;
	const char *dot = prefix.len ? memchr(prefix.data, '.', prefix.len) : NULL;
	struct demux_text note = {
		.ms = hour_ms,
		.is_note = true,
		.metric = dot ? (struct slice){prefix.data, (size_t)(dot - prefix.data)}
			      : stream->rule->name,
		.text = tags,
		.tags = {p->fixed[0]},
		.tag_count = 1};
	uint64_t hash = hash64(tags.data, tags.len, (uint64_t)hour_ms);
	if (!p->work->sink->write_texts)
		return 0;
	for (size_t i = 0; i < DEMUX_TAGS_NOTED; i++)
		if (stream->noted[i] == hash)
			return 0;
	stream->noted[stream->noted_next++ % DEMUX_TAGS_NOTED] = hash;
	return pass_add_text(p, &note);
}
