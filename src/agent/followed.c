#include "agent/followed.h"

#include <limits.h>
#include <stdio.h>

#include "base/grow.h"
#include "base/stats.h"

enum { FOLLOWED_LINES_A_MINUTE = 20 };

/* ---- Life ------------------------------------------------------------------------------------ */

void followed_site_init(struct followed_site *site, struct files *files, struct clock *clock,
			uint64_t seed)
{
	*site = (struct followed_site){.files = files, .clock = clock};
	random_init(&site->random, seed);
	siblings_init(&site->siblings, clock);
	buf_init(&site->data, CHUNK_DATA_MAX_BYTES);
	char *room = buf_reserve(&site->data, CHUNK_DATA_MAX_BYTES);
	ASSERT(room);
	site->losses.lines_max = site->troubles.lines_max = FOLLOWED_LINES_A_MINUTE;
}

void followed_site_release(struct followed_site *site)
{
	ASSERT(!site->open_count);
	siblings_release(&site->siblings);
	buf_release(&site->data);
}

struct followed *followed_new(struct followed_site *site, const struct followed_rule *rule,
			      const struct stream_names *names, struct slice path)
{
	struct followed *f = mem_zalloc(sizeof(*f));
	f->site = site;
	f->rule = rule;
	f->incarnation = random_next(&site->random);
	f->path = mem_copy_text(path);
	f->names = (struct stream_names){
		.source = mem_copy_slice(names->source),
		.cluster = mem_copy_slice(names->cluster),
		.datatype = mem_copy_slice(names->datatype),
		.name = mem_copy_slice(names->name),
	};
	const char *slash = strrchr(f->path, '/');
	ASSERT(slash);
	f->base = slice_of(slash + 1);
	f->directory = mem_copy_text(
		(struct slice){f->path, slash == f->path ? 1 : (size_t)(slash - f->path)});
	return f;
}

void followed_free(struct followed *f)
{
	if (!f)
		return;
	followed_rest(f);
	mem_free(f->plan);
	mem_free(f->past);
	mem_free_slice(f->names.source);
	mem_free_slice(f->names.cluster);
	mem_free_slice(f->names.datatype);
	mem_free_slice(f->names.name);
	mem_free(f->path);
	mem_free(f->directory);
	mem_free(f->problem);
	mem_free(f);
}

void followed_note_problem(struct followed *f, const char *text)
{
	mem_free(f->problem);
	f->problem = text ? mem_copy_text(slice_of(text)) : NULL;
}

void followed_set_problem(struct followed *f, const char *text)
{
	if (f->problem && text && strcmp(f->problem, text) == 0)
		return;
	followed_note_problem(f, text);
	if (text)
		log_rated(&f->site->troubles, clock_mono_ms(f->site->clock), LOG_WARN, "%s: %s",
			  f->path, text);
}

void followed_forget(struct followed *f)
{
	followed_rest(f);
	f->plan_count = f->past_count = 0;
	f->incarnation = random_next(&f->site->random);
	f->offset = f->careful_until = 0;
	f->floor_ns = 0;
	f->begun = false;
	f->state = FOLLOWED_READING;
	f->unwanted_ms = 0;
}

/* ---- Segments -------------------------------------------------------------------------------- */

/* Whether what was opened is what the name says, and nothing that it leads to. */
static bool followed_is_no_link(struct followed *f, const char *path,
				const struct file_look *opened)
{
	struct files *files = f->site->files;
	struct file_look look;
	return !files->look_link(files, path, &look) && file_id_equal(&look.id, &opened->id);
}

int followed_open(struct followed *f, const char *name, enum content_packing packing,
		  struct content **content, struct file_look *look)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	if (len >= (int)sizeof(path))
		return ERR_NOT_FOUND;
	int err = content_open(f->site->files, path, packing, content, look);
	if (!err && f->rule->no_links && !followed_is_no_link(f, path, look)) {
		content_close(*content);
		*content = NULL;
		err = ERR_NOT_FOUND;
	}
	f->site->open_count += !err;
	return err;
}

void followed_close(struct followed *f, struct content **content)
{
	f->site->open_count -= *content != NULL;
	content_close(*content);
	*content = NULL;
}

struct segment *followed_add(struct followed *f, size_t at)
{
	GROW(f->plan, f->plan_capacity, f->plan_count + 1);
	memmove(&f->plan[at + 1], &f->plan[at], (f->plan_count - at) * sizeof(*f->plan));
	f->plan_count++;
	f->plan[at] = (struct segment){.end = SEGMENT_OPEN};
	return &f->plan[at];
}

void followed_close_segment(struct followed *f, struct segment *segment)
{
	followed_close(f, &segment->content);
}

int segment_check_marks(const struct segment *segment, struct content *content)
{
	int err = content_check_head(content, segment->head);
	err = err ? err : content_check(content, segment->at, segment->tail);
	return err || segment->at == segment->bytes
		       ? err
		       : content_check(content, segment->bytes, segment->last);
}

void followed_read_again(struct followed *f)
{
	const struct segment *first = f->plan_count ? &f->plan[0] : NULL;
	f->read = (struct followed_place){
		.segment = f->plan_first,
		.at = first ? first->at : 0,
		.tail = first ? first->tail : (struct content_mark){0},
		.offset = f->offset,
		.within = first && first->within,
	};
}

/* Whether a packed content has more than what was delivered of it. */
static bool segment_has_rest(const struct segment *segment)
{
	char byte;
	size_t more;
	return segment->content && content_is_packed(segment->content) &&
	       (content_read(segment->content, segment->at, &byte, 1, &more) || more);
}

/* A packed file of which a part was delivered, since it begins as a file did that is gone, is
 * looked at again: its length is not noted. */
static struct segment_past segment_become_past(const struct segment *segment)
{
	struct file_look look = {.bytes = segment->at};
	if (segment->content && content_is_packed(segment->content) &&
	    (content_look(segment->content, &look) || segment_has_rest(segment)))
		look.bytes = 0;
	return (struct segment_past){
		.id = segment->id,
		.head = segment->head,
		.tail = segment->tail,
		.end = segment->at,
		.file_bytes = look.bytes,
		.changed_ns = segment->changed_ns,
	};
}

static void followed_remove(struct followed *f, size_t at)
{
	memmove(&f->plan[at], &f->plan[at + 1], (--f->plan_count - at) * sizeof(*f->plan));
}

void followed_drop_first(struct followed *f)
{
	followed_close_segment(f, &f->plan[0]);
	followed_remove(f, 0);
	f->plan_first++;
}

/* The content stays open for a while: more may be written to it by who has not noticed yet that it
 * was renamed. */
void followed_pass(struct followed *f)
{
	struct segment *first = &f->plan[0];
	struct file_look look;
	if (f->late && !content_look(f->late, &look) && look.bytes > f->late_past.end)
		f->search = true;
	followed_close(f, &f->late);
	f->late_past = segment_become_past(first);
	f->search |=
		first->content && content_is_packed(first->content) && !f->late_past.file_bytes;
	followed_remove_copy(f, &first->id);
	followed_add_past(f, &f->late_past);
	if (first->content && !content_is_packed(first->content)) {
		f->late = first->content;
		f->late_until_ms = clock_mono_ms(f->site->clock) + FOLLOWED_LATE_MS;
	} else {
		followed_close_segment(f, first);
	}
	followed_remove(f, 0);
	f->plan_first++;
}

static bool segment_is_delivered(const struct segment *segment)
{
	return segment->at == segment->end;
}

void followed_pass_delivered(struct followed *f)
{
	while (f->plan_count > 1 && segment_is_delivered(&f->plan[0]))
		followed_pass(f);
}

size_t followed_pinned(const struct followed *f)
{
	return f->pending_count ? (size_t)(f->read.segment - f->plan_first) + 1 : 0;
}

/* So do empty ones in the middle. */
static void followed_pass_empty(struct followed *f)
{
	size_t pinned = followed_pinned(f);
	for (size_t i = pinned ? pinned : 1; i + 1 < f->plan_count; i++) {
		if (!segment_is_delivered(&f->plan[i]))
			continue;
		struct segment_past past = segment_become_past(&f->plan[i]);
		followed_add_past(f, &past);
		followed_close_segment(f, &f->plan[i]);
		followed_remove(f, i--);
	}
}

/* ---- Looking --------------------------------------------------------------------------------- */

int segment_check(struct segment *segment)
{
	struct file_look look;
	if (content_is_packed(segment->content))
		return 0;
	int err = content_look(segment->content, &look);
	if (err)
		return err;
	if (look.bytes == segment->bytes && look.changed_ns == segment->changed_ns &&
	    !segment->unchecked)
		return 0;
	if (look.bytes < segment->bytes)
		return ERR_NOT_FOUND;
	/* The new mark first: were it of another content, that had not the old marks. */
	struct content_mark last = segment->last;
	if (look.bytes > segment->bytes)
		err = content_mark_at(segment->content, look.bytes, &last);
	err = err ? err : segment_check_marks(segment, segment->content);
	if (err)
		return err;
	segment->last = last;
	segment->unchecked = false;
	segment->bytes = look.bytes;
	segment->changed_ns = look.changed_ns;
	if (segment->head.bytes == CONTENT_MARK_MAX_BYTES)
		return 0;
	return content_note_head(segment->content, &segment->head);
}

void followed_doubt_log(struct followed *f)
{
	struct segment *last = followed_last(f);
	if (last && segment_is_short(last))
		last->changed_ns = 0;
	f->search = true;
}

/* Whether a file of the plan that was empty has bytes by now. */
static bool followed_any_is_filled(const struct followed *f)
{
	bool any = false;
	for (size_t i = 0; i + 1 < f->plan_count && !any; i++) {
		struct content *content = f->plan[i].content;
		struct file_look look;
		any = content && !f->plan[i].bytes && !content_is_packed(content) &&
		      !content_look(content, &look) && look.bytes;
	}
	return any;
}

static bool followed_is_copy_file(const struct followed *f, const struct file_id *id)
{
	bool is = false;
	for (size_t i = 0; i < f->past_count && !is; i++)
		is = f->past[i].copy && file_id_equal(&f->past[i].id, id);
	return is;
}

/* Whether a copy that is being made has more than when the names were read. */
static bool followed_any_copy_has_grown(const struct followed *f)
{
	const struct siblings *siblings = &f->site->siblings;
	bool any = false;
	for (size_t i = 0; i < siblings->count && !any && followed_has_copy(f); i++) {
		const struct sibling *sibling = &siblings->list[i];
		struct file_look look;
		char path[PATH_MAX];
		if (!followed_is_copy_file(f, &sibling->look.id))
			continue;
		int len = snprintf(path, sizeof(path), "%s/%s", f->directory, sibling->name.data);
		any = len < (int)sizeof(path) &&
		      !f->site->files->look_at(f->site->files, path, &look) &&
		      look.bytes > sibling->look.bytes;
	}
	return any;
}

/* The program that empties a log has made its copy before. The copy is looked at after the log: if
 * it has not become longer, the log was not emptied yet. */
static int followed_check_log(struct followed *f, struct segment *log)
{
	const struct segment before = *log;
	int err = segment_check(log);
	if (err || !segment_is_short(&before) ||
	    (!followed_any_is_filled(f) && !followed_any_copy_has_grown(f)))
		return err;
	*log = before;
	followed_doubt_log(f);
	return ERR_RETRY;
}

int followed_check(struct followed *f, struct segment *segment)
{
	bool was_empty = !segment->bytes;
	if (segment == followed_last(f) && !f->rule->own)
		return followed_check_log(f, segment);
	int err = segment_check(segment);
	if (err || !was_empty || !segment->bytes || f->rule->own)
		return err;
	followed_close_segment(f, segment);
	*segment = (struct segment){.id = segment->id, .end = SEGMENT_OPEN};
	followed_doubt_log(f);
	return ERR_NOT_FOUND;
}

/* Opens what is at the path, if it is the segment's. */
static int followed_open_at_path(struct followed *f, struct segment *segment)
{
	struct file_look look;
	int err = followed_open(f, f->base.data, CONTENT_PLAIN, &segment->content, &look);
	if (err)
		return err;
	segment->unchecked = true;
	return file_id_equal(&look.id, &segment->id) ? 0 : ERR_NOT_FOUND;
}

bool followed_is_young(const struct followed_site *site, int64_t changed_ns)
{
	int64_t age_ns = site->clock->wall_us(site->clock) * 1000 - changed_ns;
	return age_ns >= 0 && age_ns < SIBLINGS_STEP_NS;
}

/* Whether a file of which all was sent needs not be opened again: it is the one that it was when it
 * was closed. An open one is not read again then, either. */
static bool followed_is_at_rest(const struct followed *f, const struct file_look *at_path)
{
	const struct segment *only = &f->plan[0];
	return f->plan_count == 1 && at_path && !f->rule->whole && !f->search && only->still &&
	       !only->content && only->end == SEGMENT_OPEN && only->at == only->bytes &&
	       file_id_equal(&at_path->id, &only->id) && at_path->bytes == only->bytes &&
	       at_path->changed_ns == only->changed_ns;
}

/* ERR_NOT_FOUND: a content is not where it was, or not the same. */
static int followed_check_plan(struct followed *f, const struct file_look *at_path)
{
	bool all = true;
	if (followed_is_at_rest(f, at_path))
		return 0;
	for (size_t i = 0; i < f->plan_count; i++) {
		struct segment *segment = &f->plan[i];
		int err = segment->content ? followed_check(f, segment) : ERR_NOT_FOUND;
		if (err == ERR_NOT_FOUND && at_path && file_id_equal(&at_path->id, &segment->id) &&
		    !followed_has_behind(f, segment)) {
			followed_close_segment(f, segment);
			err = followed_open_at_path(f, segment);
			err = err ? err : segment_check(segment);
		}
		if (err) /* it is opened anew, also where it cannot be read any more (ESTALE) */
			followed_close_segment(f, segment);
		if (err && err != ERR_NOT_FOUND)
			return err;
		segment->still = !err && !followed_is_young(f->site, segment->changed_ns);
		all &= !err;
	}
	return all ? 0 : ERR_NOT_FOUND;
}

/* Where segments end: see the header. What is looked at later is not older: a segment is measured
 * after one behind it was seen to have bytes. */
static void followed_settle(struct followed *f)
{
	bool behind_has_bytes = false;
	for (size_t i = f->plan_count; i-- > 0;) {
		struct segment *segment = &f->plan[i];
		bool ends = behind_has_bytes && segment->end == SEGMENT_OPEN && segment->content &&
			    !content_is_packed(segment->content);
		int err = ends ? followed_check(f, segment) : ERR_NOT_FOUND;
		if (!err) {
			segment->end = segment->bytes;
			followed_changed(f);
		}
		f->look_again |= ends && err == ERR_NOT_FOUND;
		behind_has_bytes |= segment->bytes > 0;
	}
	followed_pass_delivered(f);
	followed_pass_empty(f);
}

/* More was written to the file that was delivered last: it goes in front of what is sent next. */
static void followed_look_late(struct followed *f)
{
	struct file_look look;
	if (!f->late || followed_is_careful(f) || (f->plan_count && f->plan[0].within))
		return;
	const struct segment_past past = f->late_past;
	bool same = !content_look(f->late, &look) && look.bytes >= past.end;
	if (same && look.bytes > past.end && followed_late_may_be_copy(f)) {
		/* The file is judged as others are, by what it has now. */
		followed_close(f, &f->late);
		followed_remove_past(f, &past.id);
		f->search = f->look_again = true;
	} else if (same && look.bytes > past.end && !content_check(f->late, past.end, past.tail)) {
		*followed_add(f, 0) = (struct segment){
			.id = past.id,
			.head = past.head,
			.at = past.end,
			.tail = past.tail,
			.end = SEGMENT_OPEN,
			.bytes = past.end,
			.last = past.tail,
			.content = f->late,
			.unchecked = true,
		};
		followed_changed(f);
		f->late = NULL;
		followed_remove_past(f, &past.id);
	} else if (!same || clock_mono_ms(f->site->clock) >= f->late_until_ms) {
		followed_close(f, &f->late);
	}
}

static bool followed_is_at_path(struct followed *f, const struct file_look *look)
{
	const struct segment *last = followed_last(f);
	return last && file_id_equal(&last->id, &look->id);
}

/* A whole file is sent when nobody has written to it for a while; what is there then is all. */
static void followed_look_whole(struct followed *f)
{
	struct segment *segment = followed_last(f);
	int64_t now_ms = clock_wall_ms(f->site->clock);
	if (!segment || segment->end != SEGMENT_OPEN || !segment->content ||
	    now_ms - segment->changed_ns / 1000000 < FOLLOWED_STILL_MS)
		return;
	segment->end = segment->bytes;
	followed_changed(f);
	if (segment->at == segment->end)
		f->state = FOLLOWED_DONE;
}

void followed_trouble(struct followed *f, int err)
{
	char text[300];
	snprintf(text, sizeof(text), "it cannot be read: %s", err_text(err));
	followed_set_problem(f, text);
}

/* Whether names have come or gone since the last search. */
static bool followed_directory_changed(struct followed *f)
{
	struct file_look look;
	if (f->site->files->look_at(f->site->files, f->directory, &look))
		return false;
	bool changed = look.changed_ns != f->directory_ns;
	f->directory_ns = followed_is_young(f->site, look.changed_ns) ? 0 : look.changed_ns;
	return changed;
}

/* If the first file has nothing more to send, and nothing of the files behind it was sent, nothing
 * behind its place was sent before. */
static void followed_note_all_sent(struct followed *f)
{
	const struct segment *first = f->plan_count ? &f->plan[0] : NULL;
	if (!first || !first->content || content_is_packed(first->content) ||
	    first->bytes != first->at)
		return;
	for (size_t i = 1; i < f->plan_count; i++)
		if (f->plan[i].begun)
			return;
	f->careful_until = f->offset;
}

/* While a checkpoint says that a file is empty, nothing of it was sent. */
static void followed_note_begun(struct followed *f)
{
	for (size_t i = 0; i < f->plan_count; i++) {
		struct segment *segment = &f->plan[i];
		if (segment->begun || !segment->bytes)
			continue;
		segment->begun = true;
		followed_changed(f);
	}
}

/* The marks of a short file do not tell whether it only grew, or was copied and emptied meanwhile,
 * and begun in the same way. But a copy is a new name in the directory, or was one when it was
 * begun: what is there by now is to be compared. */
static bool followed_may_be_copied(struct followed *f, const struct file_look *look)
{
	const struct segment *last = followed_last(f);
	return last && !f->rule->own && last->bytes < CONTENT_MARK_MAX_BYTES &&
	       look->changed_ns != last->changed_ns &&
	       (f->search || followed_has_copy(f) || followed_late_may_be_copy(f) ||
		followed_directory_changed(f));
}

static void followed_look_on(struct followed *f, const struct file_look *look)
{
	bool moved = look ? !followed_is_at_path(f, look) : followed_directory_changed(f);
	if (!moved && look && followed_may_be_copied(f, look)) {
		moved = true;
		if (segment_is_short(followed_last(f))) {
			followed_close_segment(f, followed_last(f));
			look = NULL;
		}
	}
	int err = followed_check_plan(f, look);
	/* The next look is to see what has happened to it since it was looked at by its path. */
	if (!err && !moved && look)
		followed_last(f)->changed_ns = look->changed_ns;
	f->search |= moved || err == ERR_NOT_FOUND;
	if (f->search && (!err || err == ERR_NOT_FOUND)) {
		f->search_again = false;
		err = followed_find(f);
		f->search = err || f->search_again || followed_is_full(f);
		if (followed_is_full(f))
			log_rated(&f->site->troubles, clock_mono_ms(f->site->clock), LOG_WARN,
				  "%s: so many of its files wait to be delivered that others are "
				  "looked for later: one that is removed before that is not known",
				  f->path);
	}
	f->look_again = err == ERR_RETRY;
	if (err && err != ERR_RETRY)
		followed_trouble(f, err);
	if (err)
		return;
	followed_set_problem(f, NULL);
	followed_note_all_sent(f);
	followed_look_late(f);
	followed_settle(f);
	followed_note_begun(f);
	if (f->rule->whole)
		followed_look_whole(f);
}

void followed_look(struct followed *f)
{
	struct file_look look;
	if (f->state == FOLLOWED_STOPPED || f->state == FOLLOWED_DONE || f->asks)
		return;
	f->look_again = false;
	int err = f->site->files->look_at(f->site->files, f->path, &look);
	if (!err && look.type != FILE_REGULAR) {
		followed_set_problem(f, "it cannot be read: it is no regular file");
		return;
	}
	if (err && err != ERR_NOT_FOUND) {
		followed_trouble(f, err);
		return;
	}
	if (!f->begun)
		followed_begin(f);
	f->state = FOLLOWED_READING;
	/* The collector may have what is on its way. */
	if (f->pending_count && f->careful_until < f->read.offset)
		f->careful_until = f->read.offset;
	if (f->begun)
		followed_look_on(f, err ? NULL : &look);
	if (err && !followed_behind_bytes(f))
		f->state = FOLLOWED_MISSING;
	if (!f->pending_count)
		followed_read_again(f);
}

uint64_t followed_behind_bytes(const struct followed *f)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < f->plan_count; i++) {
		const struct segment *segment = &f->plan[i];
		uint64_t end = segment->end == SEGMENT_OPEN ? segment->bytes : segment->end;
		bytes += end > segment->at ? end - segment->at : 0;
	}
	return bytes;
}

void followed_skip(struct followed *f, uint64_t bytes)
{
	bool fits = bytes <= STREAM_OFFSET_MAX - f->offset;
	f->offset = fits ? f->offset + bytes : STREAM_OFFSET_MAX;
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static int followed_begin_segment(struct followed *f)
{
	struct file_look look;
	struct content *content;
	int err = followed_open(f, f->base.data, CONTENT_PLAIN, &content, &look);
	if (err)
		return err;
	uint64_t skipped = f->rule->from > f->rule->first ? f->rule->from - f->rule->first : 0;
	struct segment segment = {
		.id = look.id,
		.end = SEGMENT_OPEN,
		.content = content,
		.unchecked = true,
	};
	bool at_end = f->rule->from_end && !f->came_later;
	/* A file that is shorter than what was sent of it is another one. */
	segment.at = at_end ? look.bytes : skipped <= look.bytes ? skipped : 0;
	err = content_mark_at(content, segment.at, &segment.tail);
	segment.bytes = segment.at;
	segment.last = segment.tail;
	if (err) {
		followed_close(f, &content);
		return err;
	}
	if (at_end)
		followed_skip(f, segment.at);
	*followed_add(f, 0) = segment;
	return 0;
}

/* Who has not noticed yet that the log was renamed writes to the youngest one of before; unless
 * that is the log's copy, which is being made. */
static void followed_begin_late(struct followed *f)
{
	const struct siblings *siblings = &f->site->siblings;
	size_t count = siblings->count;
	count -= count && siblings->list[count - 1].is_log;
	const struct segment_past *past = f->past_count ? &f->past[f->past_count - 1] : NULL;
	if (!count || !past || past->end == SEGMENT_OPEN ||
	    !file_id_equal(&past->id, &siblings->list[count - 1].look.id) ||
	    followed_open_sibling(f, &siblings->list[count - 1], &f->late))
		return;
	f->late_past = *past;
	f->late_until_ms = clock_mono_ms(f->site->clock) + FOLLOWED_LATE_MS;
	if (f->plan_count && followed_is_copy_of(f->late, f->plan[0].content))
		followed_close(f, &f->late);
}

void followed_begin(struct followed *f)
{
	/* What is there is found as what comes next. */
	if (f->rule->own || (f->since_ns && f->rule->from <= f->rule->first)) {
		f->offset = f->rule->own ? f->offset : f->rule->first;
		f->floor_ns = f->since_ns;
		f->begun = true;
		followed_changed(f);
		return;
	}
	int err = followed_note_past(f);
	err = err == ERR_NOT_FOUND ? 0 : err;
	f->offset = f->rule->from > f->rule->first ? f->rule->from : f->rule->first;
	err = err ? err : followed_begin_segment(f);
	err = err == ERR_NOT_FOUND ? 0 : err;
	/* What was at the path when the others were noted may be one of them by now. */
	if (!err)
		err = siblings_check(&f->site->siblings, f->site->files, f->directory, f->base);
	if (!err) {
		followed_begin_late(f);
		f->begun = true;
		followed_changed(f);
		return;
	}
	if (f->plan_count)
		followed_drop_first(f);
	f->look_again = err == ERR_RETRY;
	if (!f->look_again)
		followed_trouble(f, err);
}

void followed_rule_changed(struct followed *f)
{
	if (f->state != FOLLOWED_DONE || f->rule->whole)
		return;
	f->state = FOLLOWED_READING;
	if (f->plan_count)
		followed_last(f)->end = SEGMENT_OPEN;
	followed_changed(f);
}

bool followed_has_delivered(const struct followed *f, const struct file_look *look)
{
	const struct segment *only = f->plan_count == 1 ? &f->plan[0] : NULL;
	if (only && file_id_equal(&only->id, &look->id))
		return only->at == look->bytes;
	for (size_t i = 0; i < f->past_count; i++)
		if (file_id_equal(&f->past[i].id, &look->id) && f->past[i].end == look->bytes)
			return true;
	return false;
}

void followed_removed(struct followed *f, const struct file_id *id)
{
	followed_remove_past(f, id);
	if (f->late && file_id_equal(&f->late_past.id, id))
		followed_close(f, &f->late);
	if (f->plan_count == 1 && file_id_equal(&f->plan[0].id, id))
		followed_drop_first(f);
	followed_changed(f);
	followed_read_again(f);
}

bool followed_is_open(const struct followed *f)
{
	bool open = f->late != NULL;
	for (size_t i = 0; i < f->plan_count; i++)
		open |= f->plan[i].content != NULL;
	return open;
}

void followed_rest(struct followed *f)
{
	for (size_t i = 0; i < f->plan_count; i++)
		followed_close_segment(f, &f->plan[i]);
	followed_close(f, &f->late);
}
