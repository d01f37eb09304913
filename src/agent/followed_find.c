/* Where the segments of a plan are now, and what comes behind them: by what is in the directory. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/followed.h"
#include "base/stats.h"

/* A file that is being packed, or was renamed while it was looked for, may be found then. */
enum {
	FOLLOWED_PATIENCE_MS = 1000,
	FOLLOWED_UNSURE_PATIENCE_MS = 60000,
	FOLLOWED_COMPARE_BYTES = 64 << 10,
};

/* ---- Segments of the plan -------------------------------------------------------------------- */

/* How a file is found for a segment, the surest way first. BY_SHORT_FILE: it is at the path still,
 * but its marks would not tell if it was copied and emptied. BY_OLDER_CONTENT: a copy is not older
 * than what it has, unless a clock has jumped; another content may begin alike. */
enum followed_way { BY_FILE, BY_CONTENT, BY_SHORT_FILE, BY_OLDER_CONTENT, FOLLOWED_WAYS };

static const struct sibling *followed_at_path(const struct followed *f)
{
	const struct siblings *siblings = &f->site->siblings;
	const struct sibling *log = siblings->count ? &siblings->list[siblings->count - 1] : NULL;
	return log && log->is_log ? log : NULL;
}

/* Whether the file at the path is that of a segment. If it has not the segment's content any more,
 * it was emptied, and most likely copied before. */
static bool followed_has_path(const struct followed *f, const struct segment *segment)
{
	const struct sibling *log = followed_at_path(f);
	return log && file_id_equal(&log->look.id, &segment->id);
}

/* A segment as it was when the last of its bytes were sent, of which some may be on their way. */
static struct segment followed_as_sent(const struct followed *f, const struct segment *segment)
{
	struct segment sent = *segment;
	bool on_its_way = followed_pinned(f) == (size_t)(segment - f->plan) + 1;
	sent.bytes = on_its_way ? f->read.at : segment->at;
	sent.last = on_its_way ? f->read.tail : segment->tail;
	return sent;
}

/* A copy that was made before the last look may lack what was written after it. */
static uint64_t followed_least_bytes(const struct followed *f, const struct segment *segment)
{
	if (segment->end != SEGMENT_OPEN)
		return segment->end;
	return followed_has_path(f, segment) ? followed_as_sent(f, segment).bytes : segment->bytes;
}

static ptrdiff_t followed_find_sibling(const struct siblings *siblings, const struct file_id *id)
{
	for (size_t i = 0; i < siblings->count; i++)
		if (file_id_equal(&siblings->list[i].look.id, id))
			return (ptrdiff_t)i;
	return -1;
}

/* Whether a sibling is younger than what comes behind a segment: then it is not the segment, though
 * it may begin alike. */
static bool followed_is_behind(const struct followed *f, const struct segment *segment,
			       const struct sibling *sibling)
{
	const struct siblings *siblings = &f->site->siblings;
	for (const struct segment *s = segment + 1; s < f->plan + f->plan_count; s++) {
		ptrdiff_t at = s->content ? followed_find_sibling(siblings, &s->id) : -1;
		if (at >= 0 && at < sibling - siblings->list)
			return true;
	}
	return false;
}

static bool followed_may_be(const struct followed *f, const struct segment *segment,
			    const struct sibling *sibling, enum followed_way way)
{
	bool same = file_id_equal(&segment->id, &sibling->look.id);
	bool plain = sibling->packing == CONTENT_PLAIN;
	if (sibling->taken || (sibling->is_log && followed_has_behind(f, segment)))
		return false;
	if (way == BY_FILE || way == BY_SHORT_FILE)
		return same && (!plain || sibling->look.bytes >= segment->bytes) &&
		       (sibling->is_log && segment_is_short(segment)) == (way == BY_SHORT_FILE);
	if (f->rule->own) /* has no copies */
		return false;
	bool older = sibling->look.changed_ns < segment->changed_ns ||
		     file_id_is_older(&sibling->look.id, &segment->id);
	if (older != (way == BY_OLDER_CONTENT))
		return false;
	if (same || !segment->head.bytes || followed_knows(f, sibling, false) ||
	    followed_is_behind(f, segment, sibling) ||
	    (plain && sibling->look.bytes < followed_least_bytes(f, segment)))
		return false;
	/* Another file at the path may begin as this one did. */
	return !sibling->is_log || segment->tail.bytes == CONTENT_MARK_MAX_BYTES;
}

/* As segment_check_marks(), of a copy, which may have become longer since it was looked at. */
static int followed_check_copy(const struct followed *f, struct segment *segment,
			       const struct sibling *sibling, struct content *content)
{
	int err = segment_check_marks(segment, content);
	if (!err || sibling->packing != CONTENT_PLAIN || sibling->look.bytes >= segment->bytes)
		return err;
	struct segment shorter = followed_as_sent(f, segment);
	err = segment_check_marks(&shorter, content);
	if (!err)
		*segment = shorter;
	return err;
}

/* The content is that of the segment. */
static void followed_bind(struct followed *f, struct segment *segment, struct sibling *sibling,
			  struct content *content)
{
	if (!file_id_equal(&segment->id, &sibling->look.id))
		followed_changed(f);
	if (f->late && file_id_equal(&f->late_past.id, &sibling->look.id))
		followed_close(f, &f->late);
	segment->id = sibling->look.id;
	segment->content = content;
	segment->changed_ns = sibling->look.changed_ns;
	segment->unchecked = true;
	sibling->taken = true;
}

/* Whether all of a packed content is the beginning of another one: whoever packed that one has not
 * seen what came to it meanwhile. A short one may be that of another file. */
static bool content_is_beginning(struct content *packed, struct content *of)
{
	char *room = mem_alloc(2 * FOLLOWED_COMPARE_BYTES), *other = room + FOLLOWED_COMPARE_BYTES;
	uint64_t at = 0;
	size_t got = 0, there = 0;
	bool same;
	do {
		at += got;
		same = !content_read(packed, at, room, FOLLOWED_COMPARE_BYTES, &got) &&
		       !content_read(of, at, other, got, &there) && there == got &&
		       memcmp(room, other, got) == 0;
	} while (same && got);
	mem_free(room);
	return same && at >= CONTENT_MARK_MAX_BYTES;
}

bool followed_is_copy_of(struct content *copy, struct content *of)
{
	struct file_look all, part;
	struct content_mark head = {0}, mark;
	size_t more;
	char byte;
	if (content_is_packed(of) || content_look(of, &all) || content_look(copy, &part) ||
	    !all.bytes || !part.bytes)
		return false;
	/* Lines that are filled up with blanks may end alike at the same place. */
	if (content_note_head(copy, &head) || content_check_head(of, head))
		return false;
	if (content_is_packed(copy))
		return !content_mark_at(of, all.bytes, &mark) &&
		       !content_check(copy, all.bytes, mark) &&
		       !content_read(copy, all.bytes, &byte, 1, &more) && !more;
	return part.bytes <= all.bytes && !content_mark_at(copy, part.bytes, &mark) &&
	       !content_check(of, part.bytes, mark);
}

/* ERR_NOT_FOUND: what is at the path has all that a sibling has, which is its copy, perhaps not all
 * of it yet, and not that of another content that begins alike. */
static int followed_check_emptied(struct followed *f, const struct segment *segment,
				  const struct sibling *sibling, struct content *copy)
{
	const struct sibling *at_path = followed_at_path(f);
	struct content *log;
	if (!at_path || at_path == sibling ||
	    (file_id_is_older(&sibling->look.id, &at_path->look.id) &&
	     !followed_has_path(f, segment)))
		return 0;
	int err = followed_open_sibling(f, at_path, &log);
	if (err)
		return err;
	bool same = followed_is_copy_of(copy, log);
	followed_close(f, &log);
	return same ? ERR_NOT_FOUND : 0;
}

/* ERR_NOT_FOUND: it is not this one; ERR_RETRY: not now. */
static int followed_try(struct followed *f, struct segment *segment, struct sibling *sibling)
{
	struct content *content;
	int err = followed_open_sibling(f, sibling, &content);
	if (err)
		return err;
	bool past = false;
	/* A program that packs a file keeps the file's time. A packed file with the time of the
	 * segment is the segment, even if a delivered file had the same bytes, such as a heading;
	 * but for one that had them at that time, when the segment was begun with its heading. */
	bool packed = sibling->packing != CONTENT_PLAIN &&
		      sibling->look.changed_ns == segment->changed_ns;
	err = followed_check_copy(f, segment, sibling, content);
	if (!err && !file_id_equal(&segment->id, &sibling->look.id)) {
		err = followed_is_past(f, sibling, content, packed, &past);
		err = !err && past ? ERR_NOT_FOUND : err;
		if (!err && segment_is_short(segment) && !packed)
			err = followed_check_emptied(f, segment, sibling, content);
	}
	if (err)
		followed_close(f, &content);
	else
		followed_bind(f, segment, sibling, content);
	return err;
}

/* ERR_NOT_FOUND; *unsure: but some file is damaged, or not written whole yet. Else it is not known,
 * since a file cannot be read. */
static int followed_find_segment(struct followed *f, struct segment *segment, bool *unsure)
{
	struct siblings *siblings = &f->site->siblings;
	for (int way = 0; way < FOLLOWED_WAYS; way++)
		for (size_t i = 0; i < siblings->count; i++) {
			int err = ERR_NOT_FOUND;
			if (followed_may_be(f, segment, &siblings->list[i], way))
				err = followed_try(f, segment, &siblings->list[i]);
			if (err != ERR_NOT_FOUND && (err != ERR_DAMAGED || way == BY_FILE))
				return err;
			*unsure |= err != ERR_NOT_FOUND;
		}
	return ERR_NOT_FOUND;
}

bool followed_late_may_be_copy(struct followed *f)
{
	const struct segment *last = followed_last(f);
	return f->late && !f->late_past.end && last &&
	       !file_id_is_older(&f->late_past.id, &last->id);
}

static void followed_take_held(struct followed *f)
{
	struct siblings *siblings = &f->site->siblings;
	for (size_t i = 0; i < siblings->count; i++) {
		struct sibling *sibling = &siblings->list[i];
		/* What is written to this one yet is looked after by itself. */
		sibling->taken = f->late && !followed_late_may_be_copy(f) &&
				 file_id_equal(&f->late_past.id, &sibling->look.id);
		for (size_t j = 0; j < f->plan_count; j++)
			sibling->taken |= f->plan[j].content &&
					  file_id_equal(&f->plan[j].id, &sibling->look.id);
	}
}

/* The first segment is gone: what was not delivered of it is a hole. */
static void followed_lose(struct followed *f)
{
	struct segment *segment = &f->plan[0];
	uint64_t end = segment->end == SEGMENT_OPEN ? segment->bytes : segment->end;
	uint64_t lost = end > segment->at ? end - segment->at : 0;
	bool careful = followed_is_careful(f);
	if (segment->end == SEGMENT_OPEN && careful) {
		followed_renew(f);
		f->careful_until = f->offset;
	}
	if (lost) {
		stat_add(STAT_agent_lost_bytes, (int64_t)lost);
		log_rated(&f->site->losses, clock_mono_ms(f->site->clock), LOG_WARN,
			  "%s: a file that was followed is gone before %s; the stream goes on "
			  "%" PRIu64 " bytes behind offset %" PRIu64,
			  f->path,
			  careful ? "it was noted whether all of it was delivered"
				  : "all of it was delivered",
			  lost, f->offset);
	}
	f->lost_bytes += lost;
	followed_skip(f, lost);
	followed_drop_first(f);
	followed_changed(f);
}

/* All that is known of an empty file is its inode, which another file may have by now. So empty
 * files leave the plan, and are found as new ones if they are there. */
static void followed_drop_empty(struct followed *f)
{
	size_t kept = followed_pinned(f);
	for (size_t i = kept; i < f->plan_count; i++)
		if (f->plan[i].content || f->plan[i].bytes)
			f->plan[kept++] = f->plan[i];
	if (kept < f->plan_count)
		followed_changed(f);
	f->plan_count = kept;
}

/* Finds what is not open. One in the middle that is gone is given up when it is the first, so that
 * its hole is where it was. */
static int followed_find_plan(struct followed *f)
{
	struct siblings *siblings = &f->site->siblings;
	int64_t now_ms = clock_mono_ms(f->site->clock);
	bool unsure = false;
	followed_drop_empty(f);
	followed_take_held(f);
	for (size_t i = 0; i < f->plan_count; i++) {
		struct segment *segment = &f->plan[i];
		int err = segment->content ? 0 : followed_find_segment(f, segment, &unsure);
		if (err && err != ERR_NOT_FOUND)
			return err;
		segment->missing_ms = !err ? 0 : segment->missing_ms ? segment->missing_ms : now_ms;
	}
	if (!f->plan_count || !f->plan[0].missing_ms)
		return 0;
	int64_t before_ms = now_ms - (unsure ? FOLLOWED_UNSURE_PATIENCE_MS : FOLLOWED_PATIENCE_MS);
	if (followed_pinned(f) || f->plan[0].missing_ms > before_ms)
		return ERR_RETRY; /* what is on its way is not lost */
	int err = siblings_check(siblings, f->site->files, f->directory, f->base);
	if (err)
		return err;
	while (f->plan_count && f->plan[0].missing_ms && f->plan[0].missing_ms <= before_ms)
		followed_lose(f);
	return ERR_RETRY; /* what comes next is found without them */
}

/* ---- What comes behind the plan -------------------------------------------------------------- */

static bool segment_is_copied(const struct segment *segment, const struct sibling *sibling,
			      struct content *content)
{
	return segment->content && !file_id_is_older(&sibling->look.id, &segment->id) &&
	       followed_is_copy_of(content, segment->content);
}

/* Whether a sibling is the copy of a file of the plan, or of the one at the path. Files that were
 * renamed may all begin with the same heading, and one that has no more yet is no copy. */
static bool followed_is_copy(const struct followed *f, const struct segment *log,
			     const struct sibling *sibling, struct content *content)
{
	if (f->rule->own)
		return false;
	bool is_short =
		sibling->packing == CONTENT_PLAIN && sibling->look.bytes < CONTENT_MARK_MAX_BYTES;
	bool copy = segment_is_copied(log, sibling, content);
	for (size_t i = 0; i < f->plan_count && !copy; i++)
		copy = (!is_short || followed_has_path(f, &f->plan[i])) &&
		       segment_is_copied(&f->plan[i], sibling, content);
	return copy;
}

/* Whether a sibling is the file that was delivered last, packed before its last lines came. */
static bool followed_is_packed_late(const struct followed *f, const struct sibling *sibling,
				    struct content *content)
{
	return f->late && content_is_packed(content) &&
	       file_id_is_older(&f->late_past.id, &sibling->look.id) &&
	       content_is_beginning(content, f->late);
}

/* A file that is delivered up to its former end, and was written to after that; it may have been
 * packed then. A packed file that begins as a short one did may be another one with the same
 * heading, which would not be sent. */
static void followed_go_on(struct followed *f, struct segment *segment)
{
	bool packed = content_is_packed(segment->content);
	for (size_t i = 0; i < f->past_count; i++) {
		const struct segment_past *past = &f->past[i];
		bool same = file_id_equal(&past->id, &segment->id) ||
			    (packed && past->tail.bytes == CONTENT_MARK_MAX_BYTES);
		if (past->end == SEGMENT_OPEN || past->end < segment->at || !same ||
		    content_check_head(segment->content, past->head) ||
		    content_check(segment->content, past->end, past->tail))
			continue;
		segment->at = past->end;
		segment->tail = past->tail;
		if (!packed) {
			segment->bytes = past->end;
			segment->last = past->tail;
		}
	}
}

/* A packed file that is not whole is being written, or stays so and is passed over: it is looked at
 * again when it is longer or shorter. */
static int followed_judge_damaged(struct followed *f, const struct sibling *sibling)
{
	if (clock_wall_ms(f->site->clock) - sibling->look.changed_ns / 1000000 < FOLLOWED_STILL_MS)
		return ERR_RETRY;
	log_rated(&f->site->losses, clock_mono_ms(f->site->clock), LOG_ERROR,
		  "%s/%s is damaged, and passed over: what of it was not sent before is not sent",
		  f->directory, sibling->name.data);
	stat_add(STAT_agent_damaged_files, 1);
	followed_note_file(f, sibling, false);
	followed_changed(f);
	return 0;
}

static int followed_open_next(struct followed *f, struct sibling *sibling, struct content **content)
{
	char text[400];
	int err = followed_open_sibling(f, sibling, content);
	if (!err || err == ERR_RETRY)
		return err;
	snprintf(text, sizeof(text), "what comes next cannot be read: %s/%s: %s", f->directory,
		 sibling->name.data, err_text(err));
	followed_set_problem(f, text);
	return err;
}

/* Makes a new segment of a sibling that is open. */
static int followed_begin_next(struct followed *f, struct segment *segment, struct sibling *sibling,
			       struct content *content)
{
	int err = 0;
	followed_bind(f, segment, sibling, content);
	if (content_is_packed(content)) {
		err = content_note_head(content, &segment->head);
		segment->bytes = segment->head.bytes ? sibling->look.bytes : 0;
	}
	if (!sibling->is_log)
		followed_go_on(f, segment);
	err = err ? err : segment_check(segment);
	if (err)
		followed_close_segment(f, segment);
	return err == ERR_NOT_FOUND ? ERR_RETRY : err;
}

/* Whether nothing of what would come behind a new segment may have been sent before a restart, and
 * no record is cut by it. */
static bool followed_may_insert(const struct followed *f, size_t at)
{
	bool sent = false;
	for (size_t i = at; i < f->plan_count; i++)
		sent |= f->plan[i].begun;
	return !(sent && followed_is_careful(f)) &&
	       !(at < f->plan_count && f->plan[at].within && f->plan[at].begun);
}

/* How many this search has put in front of all others. */
static size_t followed_fresh_in_front(const struct followed *f)
{
	size_t count = 0;
	while (count < f->plan_count && f->plan[count].fresh)
		count++;
	return count == f->plan_count ? 0 : count;
}

/* In front of what is younger. A segment that was not found tells nothing: its file may be at the
 * path still, emptied, and another file may have its inode by now. One that is open and has no name
 * has had all of its content since the last look if nothing of it was sent. */
static size_t followed_place_of_next(const struct followed *f, const struct sibling *sibling)
{
	const struct siblings *siblings = &f->site->siblings;
	for (size_t i = 0; i < f->plan_count; i++) {
		const struct segment *segment = &f->plan[i];
		ptrdiff_t at = followed_find_sibling(siblings, &segment->id);
		bool later = at < 0 && !segment->begun &&
			     segment->changed_ns >= sibling->look.changed_ns;
		if (segment->content && (at > sibling - siblings->list || later))
			return i;
	}
	return f->plan_count;
}

/* Whether a sibling has more than when the segments were looked for, and may be the copy of the log
 * by that: of an empty one nothing could be judged, and a short log may have been begun alike. */
static bool followed_has_grown(struct followed *f, const struct segment *segment,
			       const struct sibling *sibling)
{
	const struct segment *last = followed_last(f);
	return !f->rule->own && !content_is_packed(segment->content) &&
	       segment->bytes > sibling->look.bytes &&
	       (!sibling->look.bytes || (last && segment_is_short(last)));
}

static int followed_take_next(struct followed *f, const struct segment *log,
			      struct sibling *sibling)
{
	struct content *content;
	bool past;
	int err = followed_open_next(f, sibling, &content);
	if (err)
		return err;
	err = followed_is_past(f, sibling, content, false, &past);
	if (!err && !past && followed_is_copy(f, log, sibling, content)) {
		past = true;
		followed_note_file(f, sibling, true);
	} else if (!err && !past && followed_is_packed_late(f, sibling, content)) {
		past = true;
		followed_note_file(f, sibling, false);
	}
	struct segment segment = {.end = SEGMENT_OPEN};
	if (err || past)
		followed_close(f, &content);
	else
		err = followed_begin_next(f, &segment, sibling, content);
	if (err || past)
		return err == ERR_DAMAGED ? followed_judge_damaged(f, sibling) : err;
	if (followed_has_grown(f, &segment, sibling)) {
		followed_close_segment(f, &segment);
		followed_doubt_log(f);
		return ERR_RETRY;
	}
	size_t at = segment.at ? followed_fresh_in_front(f) : followed_place_of_next(f, sibling);
	if (!followed_may_insert(f, at)) {
		followed_close_segment(f, &segment);
		f->search_again = true;
		return 0;
	}
	segment.fresh = true;
	*followed_add(f, at) = segment;
	return 0;
}

/* The one at the path, unless it is in the plan. */
static int followed_open_log(struct followed *f, struct segment *log)
{
	struct siblings *siblings = &f->site->siblings;
	struct sibling *sibling = siblings->count ? &siblings->list[siblings->count - 1] : NULL;
	struct content *content;
	*log = (struct segment){.end = SEGMENT_OPEN};
	if (!sibling || !sibling->is_log || sibling->taken)
		return 0;
	int err = followed_open_next(f, sibling, &content);
	return err ? err : followed_begin_next(f, log, sibling, content);
}

bool followed_is_full(const struct followed *f)
{
	size_t count = 0;
	for (size_t i = 0; i < f->plan_count; i++)
		count += f->plan[i].bytes > 0;
	return count >= FOLLOWED_PLAN_MAX || f->plan_count >= FOLLOWED_SEGMENTS_MAX;
}

static int followed_take_all_next(struct followed *f, const struct segment *log)
{
	struct siblings *siblings = &f->site->siblings;
	int err = 0;
	for (size_t i = 0; i < siblings->count && !err && !followed_is_full(f); i++) {
		struct sibling *sibling = &siblings->list[i];
		if (!sibling->taken && !sibling->is_log && !followed_knows(f, sibling, true))
			err = followed_take_next(f, log, sibling);
	}
	return err;
}

/* What a file is, a copy or one that comes next, was judged by what the others had then. Whoever
 * empties the log has made its copy before: so names are looked at last, and while none has
 * changed, nothing is missing. What is emptied later is seen by the next look. */
static int followed_check_again(struct followed *f)
{
	int err = 0;
	for (size_t i = 0; i < f->plan_count && !err; i++)
		if (f->plan[i].content)
			err = followed_check(f, &f->plan[i]);
	err = err ? err : siblings_check(&f->site->siblings, f->site->files, f->directory, f->base);
	return err == ERR_NOT_FOUND ? ERR_RETRY : err;
}

/* What is a copy of the log is known by that one, once it is in the plan. */
static void followed_forget_copies(struct followed *f, size_t from)
{
	size_t kept = from;
	for (size_t i = from; i < f->past_count; i++)
		if (!f->past[i].copy)
			f->past[kept++] = f->past[i];
	f->past_count = kept;
}

/* The new ones stay in the plan, or leave it again. */
static void followed_keep_fresh(struct followed *f, bool keep)
{
	size_t kept = 0, before = f->plan_count;
	bool any = false;
	for (size_t i = 0; i < before; i++) {
		any |= f->plan[i].fresh;
		if (f->plan[i].fresh && !keep) {
			followed_close_segment(f, &f->plan[i]);
			continue;
		}
		f->plan[kept] = f->plan[i];
		f->plan[kept++].fresh = false;
	}
	f->plan_count = kept;
	if (any && keep)
		followed_changed(f);
}

static int followed_find_next(struct followed *f)
{
	struct segment log;
	size_t past_before = f->past_count;
	int err = followed_open_log(f, &log);
	err = err ? err : followed_take_all_next(f, &log);
	if (!err && log.content && !followed_is_full(f)) {
		log.fresh = true;
		*followed_add(f, f->plan_count) = log;
		log.content = NULL;
	}
	bool full = log.content != NULL;
	followed_close(f, &log.content);
	err = err ? err : followed_check_again(f);
	if ((err || full) && f->past_count > past_before)
		followed_forget_copies(f, past_before);
	followed_keep_fresh(f, !err);
	return err;
}

int followed_find(struct followed *f)
{
	int err = siblings_find(&f->site->siblings, f->site->files, f->directory, f->base);
	if (err == ERR_NOT_FOUND) {
		f->site->siblings.count = f->site->siblings.which = 0;
		err = 0;
	}
	if (!err)
		err = followed_find_plan(f);
	return err ? err : followed_find_next(f);
}

/* ---- Where a collector stands ---------------------------------------------------------------- */

/* Bytes that are found twice, or are so few that they may be anywhere, say nothing. */
enum { FOLLOWED_ADOPT_MIN_BYTES = 128, FOLLOWED_SEARCH_BYTES = 1 << 20 };
#define FOLLOWED_ADOPT_MAX_BYTES (UINT64_C(4) << 30) /* of a file that is searched */

/* Where the bytes end in a content; counts in *found how often they are there. */
static int followed_search(struct content *content, struct slice last, uint64_t *end,
			   unsigned *found)
{
	char *room = mem_alloc(FOLLOWED_SEARCH_BYTES);
	uint64_t at = 0;
	int err = 0;
	for (;;) {
		size_t got = 0;
		err = content_read(content, at, room, FOLLOWED_SEARCH_BYTES, &got);
		const char *hit = room, *behind = room + got;
		while (!err && (hit = memmem(hit, (size_t)(behind - hit), last.data, last.len))) {
			++*found;
			*end = at + (uint64_t)(hit - room) + last.len;
			hit++;
		}
		if (err || got < FOLLOWED_SEARCH_BYTES)
			break;
		at += got - (last.len - 1);
	}
	mem_free(room);
	return err;
}

/* The sibling that has the bytes, and where they end in it. */
static int followed_search_all(struct followed *f, struct slice last, struct sibling **where,
			       uint64_t *end)
{
	struct siblings *siblings = &f->site->siblings;
	unsigned found = 0;
	if (last.len < FOLLOWED_ADOPT_MIN_BYTES)
		return ERR_NOT_FOUND;
	for (size_t i = 0; i < siblings->count; i++) {
		struct sibling *sibling = &siblings->list[i];
		struct content *content;
		unsigned before = found;
		if (sibling->look.bytes > FOLLOWED_ADOPT_MAX_BYTES)
			continue;
		int err = followed_open_sibling(f, sibling, &content);
		if (err)
			return err;
		err = followed_search(content, last, end, &found);
		followed_close(f, &content);
		if (err && err != ERR_DAMAGED)
			return err;
		if (found > before)
			*where = sibling;
	}
	return found == 1 ? 0 : ERR_NOT_FOUND;
}

/* Most often nothing was renamed, and the offset of the stream is that of the file. */
static bool followed_is_at_offset(struct followed *f, uint64_t end, struct slice last,
				  struct sibling **where)
{
	struct siblings *siblings = &f->site->siblings;
	struct sibling *log = siblings->count ? &siblings->list[siblings->count - 1] : NULL;
	struct content *content;
	if (!log || !log->is_log || end < last.len || followed_open_sibling(f, log, &content))
		return false;
	int err = content_check(content, end, content_mark_of(last.data, last.len));
	followed_close(f, &content);
	*where = log;
	return !err;
}

int followed_adopt(struct followed *f, uint64_t incarnation, uint64_t end, struct slice last)
{
	struct sibling *where = NULL;
	uint64_t at = end - f->rule->first;
	int err = siblings_find(&f->site->siblings, f->site->files, f->directory, f->base);
	if (err)
		return err;
	if (!followed_is_at_offset(f, at, last, &where))
		err = followed_search_all(f, last, &where, &at);
	if (err)
		return err;
	err = followed_note_older(f, where);
	struct content *content;
	err = err ? err : followed_open_sibling(f, where, &content);
	if (err)
		return err;
	struct segment *segment = followed_add(f, 0);
	followed_bind(f, segment, where, content);
	segment->at = segment->bytes = at;
	err = content_mark_at(content, at, &segment->tail);
	segment->last = segment->tail;
	err = err ? err : content_note_head(content, &segment->head);
	if (err) {
		followed_forget(f);
		return err;
	}
	f->incarnation = incarnation;
	f->offset = end;
	f->careful_until = end + FOLLOWED_CAREFUL_BYTES;
	f->begun = true;
	followed_changed(f);
	return 0;
}
