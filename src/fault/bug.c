/* Which bug a report is, as people say it when the report is there already: a cell of `oops` beside
 * the entry of its id (tables.h). Each tracker has a cell of its own, so nobody who says something
 * has to know what others say; the higher stamp wins. A text that is taken away deletes the cell,
 * unless the body has a bug of that tracker: then an empty one is stored, which wins over it.
 *
 * Collection keeps a report that has such a bug (collect.c). With the entry of a report that goes
 * it deletes the cells of its bugs. It looks for bugs once more just before that write. Two cases
 * are left. A bug that is said while the write is under way does not keep the report; its cell
 * stays, and would be that of the next report of this id. A bug that is said after the write finds
 * no report when it reads it again, and deletes its cell. */
#include "fault/fault.h"
#include "fault/said.h"
#include "store/wait.h"

enum { BUG_WRITE_MAX_BYTES = 16 << 10 };

struct bug_saying {
	const struct fault_site *site;
	struct task_queue *queue;
	struct slice tenant, id;
	const struct fault_bug *said;
	int64_t stamp_us;
};

static const struct fault_oops_bug *bug_find(const struct fault_found *found, struct slice tracker)
{
	for (size_t i = 0; i < found->bug_count; i++)
		if (slice_equal(found->bugs[i].tracker, tracker))
			return &found->bugs[i];
	return NULL;
}

static bool bug_is_attribute(struct slice name, struct slice tracker)
{
	const struct slice prefix = SLICE(FAULT_BUG_PREFIX);
	return name.len == prefix.len + tracker.len && slice_starts_with(name, prefix) &&
	       slice_ends_with(name, tracker);
}

static bool bug_is_in_body(struct slice body, struct slice tracker, struct arena *arena)
{
	struct json_reader reader;
	json_reader_init(&reader, body, arena);
	bool found = false, more = json_next(&reader) == JSON_OBJECT_BEGIN;
	while (more && !found && json_next(&reader) == JSON_KEY) {
		found = bug_is_attribute(reader.text, tracker);
		more = json_skip(&reader, json_next(&reader));
	}
	return found;
}

static int bug_write(const struct bug_saying *s, bool deletes, struct errbuf *e)
{
	struct store_write *write = store_write_new(s->site->store, BUG_WRITE_MAX_BYTES);
	struct fault_parts key, column;
	fault_oops_key(&key, s->tenant, s->id);
	fault_oops_bug_column(&column, s->id, s->said->tracker);
	int err = deletes ? store_cell_delete(write, TABLE_OOPS, &key.parts, &column.parts,
					      s->stamp_us)
			  : store_cell_put(write, TABLE_OOPS, &key.parts, &column.parts,
					   s->said->bug, s->stamp_us, 0);
	err = err ? err : store_write_wait_known(write, s->queue);
	if (err)
		errbuf_set(e, err, "the bug of report " SHOWN " is not stored: %s", SHOWN_OF(s->id),
			   write->error.text[0] ? write->error.text : err_text(err));
	store_write_free(write);
	return err;
}

static int bug_say(struct bug_saying *s, const struct fault_found *found, struct arena *arena,
		   struct errbuf *e)
{
	const struct fault_oops_bug *before = bug_find(found, s->said->tracker);
	bool deletes = !s->said->bug.len &&
		       !bug_is_in_body(buf_slice(&found->body), s->said->tracker, arena);
	if (!before && deletes)
		return 0;
	if (!before && found->bug_count >= FAULT_BUGS_MAX)
		return errbuf_set(e, ERR_INVALID,
				  "report " SHOWN " has bugs of %d trackers, and may have no more",
				  SHOWN_OF(s->id), FAULT_BUGS_MAX);
	s->stamp_us = store_stamp(s->site->store);
	if (before) /* whatever the clock of who said that */
		s->stamp_us = larger_of(s->stamp_us, before->stamp_us + 1);
	return bug_write(s, deletes, e);
}

int fault_say_bug(struct fault *fault, struct task_queue *queue, struct slice tenant,
		  struct slice id, const struct fault_bug *said, struct arena *arena,
		  struct fault_found *found, struct errbuf *e)
{
	int err = fault_read_report(fault, queue, tenant, id, arena, found, e);
	if (err)
		return err;
	struct bug_saying saying = {.site = fault_site_of(fault),
				    .queue = queue,
				    .tenant = tenant,
				    .id = found->id,
				    .said = said};
	err = bug_say(&saying, found, arena, e);
	buf_release(&found->body);
	if (err)
		return err;
	err = fault_read_report(fault, queue, tenant, saying.id, arena, found, e);
	if (err == ERR_NOT_FOUND && saying.stamp_us && bug_write(&saying, true, e))
		return ERR_UNKNOWN;
	return err;
}
