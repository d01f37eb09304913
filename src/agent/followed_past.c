/* What is delivered, and what was there before a log was followed: none of it comes again, whatever
 * it is called by now. */
#include "agent/followed.h"
#include "base/grow.h"

int followed_open_sibling(struct followed *f, const struct sibling *sibling,
			  struct content **content)
{
	struct file_look look;
	int err = followed_open(f, sibling->name.data, sibling->packing, content, &look);
	if (err == ERR_NOT_FOUND)
		return ERR_RETRY;
	/* One that is shorter than when the names were read was emptied since, and may begin as it
	 * did. */
	if (!err &&
	    (!file_id_equal(&look.id, &sibling->look.id) || look.bytes < sibling->look.bytes)) {
		followed_close(f, content);
		return ERR_RETRY;
	}
	return err;
}

/* ---- Remembering ----------------------------------------------------------------------------- */

static bool followed_is_there(const struct followed *f, const struct segment_past *past)
{
	const struct siblings *siblings = &f->site->siblings;
	for (size_t i = 0; i < siblings->count; i++)
		if (file_id_equal(&siblings->list[i].look.id, &past->id))
			return true;
	return false;
}

/* The site's list of siblings may be that of another log; then too much is forgotten, which the
 * floor makes good. */
static void followed_forget_past(struct followed *f)
{
	size_t gone = 0;
	while (gone < f->past_count && followed_is_there(f, &f->past[gone]))
		gone++;
	gone = gone < f->past_count ? gone : 0;
	f->floor_ns = larger_of(f->floor_ns, f->past[gone].changed_ns);
	memmove(&f->past[gone], &f->past[gone + 1], (--f->past_count - gone) * sizeof(*f->past));
}

void followed_add_past(struct followed *f, const struct segment_past *past)
{
	/* Empty ones are all alike, and their inodes are used again. */
	if (!past->file_bytes && !past->id.born_ns)
		return;
	if (f->past_count == FOLLOWED_PAST_MAX)
		followed_forget_past(f);
	GROW(f->past, f->past_capacity, f->past_count + 1);
	f->past[f->past_count++] = *past;
}

void followed_remove_past(struct followed *f, const struct file_id *id)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->past_count; i++)
		if (!file_id_equal(&f->past[i].id, id))
			f->past[kept++] = f->past[i];
	f->past_count = kept;
}

bool followed_has_copy(const struct followed *f)
{
	bool copy = false;
	for (size_t i = 0; i < f->past_count; i++)
		copy |= f->past[i].copy;
	return copy;
}

void followed_remove_copy(struct followed *f, const struct file_id *id)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->past_count; i++)
		if (!f->past[i].copy || !file_id_equal(&f->past[i].id, id))
			f->past[kept++] = f->past[i];
	f->past_count = kept;
}

/* ---- Knowing again --------------------------------------------------------------------------- */

/* Whether a sibling was delivered before, as far as it can be told without reading it: if its birth
 * is known, its size tells. Where births are not known another file may have the inode and the size
 * by now, but not the time of its last change, which whoever packs a file keeps. By that time alone
 * a file is known that could not be read and was packed since. */
bool followed_knows(const struct followed *f, const struct sibling *sibling, bool or_copy)
{
	bool packed = sibling->packing != CONTENT_PLAIN;
	if (sibling->look.changed_ns < f->floor_ns)
		return true;
	for (size_t i = 0; i < f->past_count; i++) {
		const struct segment_past *past = &f->past[i];
		bool timed = packed && past->changed_ns == sibling->look.changed_ns;
		bool same = file_id_equal(&past->id, &sibling->look.id) &&
			    past->file_bytes == sibling->look.bytes;
		if ((or_copy || !past->copy) &&
		    (same ? past->id.born_ns || timed : timed && past->end == SEGMENT_OPEN))
			return true;
	}
	return false;
}

/* Whether a content is that of a delivered file, and nothing more. Another file may be as short as
 * that one was, and have the same bytes; but for one that was packed since. */
static int segment_past_check(const struct segment_past *past, const struct sibling *sibling,
			      struct content *content)
{
	size_t more;
	char byte;
	bool may_be = file_id_equal(&past->id, &sibling->look.id) ||
		      sibling->packing != CONTENT_PLAIN ||
		      past->tail.bytes == CONTENT_MARK_MAX_BYTES;
	if (past->end == SEGMENT_OPEN || !may_be || file_id_is_older(&sibling->look.id, &past->id))
		return ERR_NOT_FOUND;
	int err = content_check_head(content, past->head);
	err = err ? err : content_check(content, past->end, past->tail);
	err = err ? err : content_read(content, past->end, &byte, 1, &more);
	return err ? err : more ? ERR_NOT_FOUND : 0;
}

int followed_is_past(struct followed *f, const struct sibling *sibling, struct content *content,
		     bool timed, bool *past)
{
	*past = false;
	for (size_t i = 0; i < f->past_count; i++) {
		if ((f->rule->own && !file_id_equal(&f->past[i].id, &sibling->look.id)) ||
		    (timed && f->past[i].changed_ns != sibling->look.changed_ns))
			continue;
		int err = segment_past_check(&f->past[i], sibling, content);
		if (err && err != ERR_NOT_FOUND)
			return err;
		*past = !err;
		if (!*past)
			continue;
		if (!file_id_equal(&f->past[i].id, &sibling->look.id)) {
			struct segment_past copy = f->past[i];
			copy.id = sibling->look.id;
			copy.file_bytes = sibling->look.bytes;
			copy.changed_ns = sibling->look.changed_ns;
			followed_add_past(f, &copy);
		}
		return 0;
	}
	return 0;
}

/* ---- What was there before ------------------------------------------------------------------- */

void followed_note_file(struct followed *f, const struct sibling *sibling, bool copy)
{
	followed_add_past(f, &(struct segment_past){
				     .id = sibling->look.id,
				     .end = SEGMENT_OPEN,
				     .file_bytes = sibling->look.bytes,
				     .changed_ns = sibling->look.changed_ns,
				     .copy = copy,
			     });
}

static int followed_note_content(struct followed *f, const struct sibling *sibling,
				 struct content *content)
{
	struct segment_past past = {
		.id = sibling->look.id,
		.end = sibling->look.bytes,
		.file_bytes = sibling->look.bytes,
		.changed_ns = sibling->look.changed_ns,
	};
	int err = content_note_head(content, &past.head);
	err = err ? err : content_mark_at(content, past.end, &past.tail);
	if (!err)
		followed_add_past(f, &past);
	return err == ERR_NOT_FOUND ? ERR_RETRY : err;
}

/* What is packed or cannot be read is known by its file alone. */
static int followed_note_sibling(struct followed *f, const struct sibling *sibling)
{
	struct content *content;
	int err = followed_open_sibling(f, sibling, &content);
	if (err == ERR_RETRY)
		return err;
	if (!err && !content_is_packed(content)) {
		err = followed_note_content(f, sibling, content);
		followed_close(f, &content);
		return err;
	}
	if (!err)
		followed_close(f, &content);
	followed_note_file(f, sibling, false);
	return 0;
}

int followed_note_older(struct followed *f, const struct sibling *than)
{
	int err = 0;
	f->past_count = 0;
	for (const struct sibling *s = f->site->siblings.list; s < than && !err; s++)
		err = followed_note_sibling(f, s);
	return err;
}

int followed_note_past(struct followed *f)
{
	struct siblings *siblings = &f->site->siblings;
	int err = siblings_find(siblings, f->site->files, f->directory, f->base);
	if (err)
		return err;
	size_t others = siblings->count;
	others -= others && siblings->list[others - 1].is_log;
	return followed_note_older(f, siblings->list + others);
}
