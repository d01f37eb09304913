/* The checkpoint: how far every log is delivered, and where it goes on.
 * doc/format-checkpoint.md. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_private.h"
#include "base/grow.h"
#include "base/stats.h"
#include "wire/json.h"
#include "wire/number.h"

/*     granary agent checkpoint 1 GENERATION BYTES CRC32C
 *     {"datatype":"syslog","path":"/var/log/messages",...}
 *     ...
 *
 * BYTES and CRC32C are of the lines behind the first one. */
#define CHECKPOINT_TITLE "granary agent checkpoint "

enum {
	CHECKPOINT_VERSION = 1,
	CHECKPOINT_LINE_ARENA_MAX_BYTES = 4 << 20,
	CHECKPOINT_HEAD_MAX_BYTES = 128,
	CHECKPOINT_MODE = 0600,
	CHECKPOINT_PATH_MAX_BYTES = 4096,
};

/* ---- Writing --------------------------------------------------------------------------------- */

/* Thousands of logs have dozens of these each. */
static void checkpoint_print_hex(uint64_t number, char digits[17])
{
	for (size_t i = 0; i < 16; i++)
		digits[i] = "0123456789abcdef"[number >> (60 - 4 * i) & 15];
	digits[16] = 0;
}

static void checkpoint_put_hex(struct json_writer *json, const char *key, uint64_t number)
{
	char digits[17];
	checkpoint_print_hex(number, digits);
	json_put_text(json, key, digits);
}

static void checkpoint_put_mark(struct json_writer *json, const char *key, struct content_mark mark)
{
	char digits[17];
	checkpoint_print_hex(mark.hash, digits);
	json_write_key(json, key);
	json_write_array_begin(json);
	json_write_u64(json, mark.bytes);
	json_write_text(json, digits);
	json_write_array_end(json);
}

static void checkpoint_put_id(struct json_writer *json, const struct file_id *id)
{
	json_write_key(json, "file");
	json_write_array_begin(json);
	json_write_u64(json, id->device);
	json_write_u64(json, id->inode);
	json_write_i64(json, id->born_ns);
	json_write_array_end(json);
}

static void checkpoint_put_end(struct json_writer *json, uint64_t end)
{
	if (end != SEGMENT_OPEN)
		json_put_u64(json, "end", end);
}

static void checkpoint_put_segment(struct json_writer *json, const struct segment *segment)
{
	json_write_object_begin(json);
	checkpoint_put_id(json, &segment->id);
	checkpoint_put_mark(json, "head", segment->head);
	json_put_u64(json, "at", segment->at);
	checkpoint_put_mark(json, "tail", segment->tail);
	checkpoint_put_end(json, segment->end);
	json_put_u64(json, "bytes", segment->bytes);
	checkpoint_put_mark(json, "last", segment->last);
	json_put_i64(json, "changed", segment->changed_ns);
	if (segment->within)
		json_put_bool(json, "within", true);
	if (segment->bytes && !segment->begun)
		json_put_bool(json, "unsent", true);
	json_write_object_end(json);
}

static void checkpoint_put_past(struct json_writer *json, const struct segment_past *past)
{
	json_write_object_begin(json);
	checkpoint_put_id(json, &past->id);
	checkpoint_put_mark(json, "head", past->head);
	checkpoint_put_mark(json, "tail", past->tail);
	checkpoint_put_end(json, past->end);
	json_put_u64(json, "bytes", past->file_bytes);
	json_put_i64(json, "changed", past->changed_ns);
	if (past->copy)
		json_put_bool(json, "copy", true);
	json_write_object_end(json);
}

static void checkpoint_put_names(struct json_writer *json, const struct followed *f)
{
	json_put_string(json, "datatype", f->names.datatype);
	json_put_string(json, agent_is_file(f->names.name) ? "path" : "name", f->names.name);
}

static void checkpoint_put(const struct followed *f, struct buf *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_write_object_begin(&json);
	checkpoint_put_names(&json, f);
	checkpoint_put_hex(&json, "incarnation", f->incarnation);
	json_put_u64(&json, "offset", f->offset);
	if (f->unwanted_ms)
		json_put_i64(&json, "unwanted", f->unwanted_ms);
	if (f->state == FOLLOWED_DONE)
		json_put_bool(&json, "done", true);
	json_put_i64(&json, "floor", f->floor_ns);
	json_write_key(&json, "plan");
	json_write_array_begin(&json);
	for (size_t i = 0; i < f->plan_count; i++)
		checkpoint_put_segment(&json, &f->plan[i]);
	json_write_array_end(&json);
	json_write_key(&json, "past");
	json_write_array_begin(&json);
	for (size_t i = 0; i < f->past_count; i++)
		checkpoint_put_past(&json, &f->past[i]);
	json_write_array_end(&json);
	json_write_object_end(&json);
	buf_append_char(out, '\n');
}

/* Nothing is known of it yet, for this reason. */
static void checkpoint_put_unknown(const struct followed *f, const char *why, struct buf *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_write_object_begin(&json);
	checkpoint_put_names(&json, f);
	json_put_bool(&json, why, true);
	json_write_object_end(&json);
	buf_append_char(out, '\n');
}

static void checkpoint_put_walked(const struct agent_walked *walked, struct buf *out)
{
	buf_printf(out, "{\"walked\":\"%016" PRIx64 "%016" PRIx64 "\",\"since\":%" PRId64 "%s}\n",
		   walked->hash.high, walked->hash.low, walked->since_ms,
		   walked->all ? "" : ",\"unread\":true");
}

static void checkpoint_put_all(const struct agent *agent, struct buf *out)
{
	for (size_t i = 0; i < agent->count; i++) {
		const struct followed *f = agent->list[i];
		if (f->begun)
			checkpoint_put(f, out);
		else if (f->asks)
			checkpoint_put_unknown(f, "asks", out);
		else if (f->rule && f->rule->from_end && !f->came_later)
			checkpoint_put_unknown(f, "from_end", out);
	}
	for (size_t i = 0; agent->adaptors && i < agent->adaptors->count; i++) {
		const struct agent_walked *walked =
			directory_walked(agent, &agent->adaptors->list[i]);
		if (walked)
			checkpoint_put_walked(walked, out);
	}
}

static void checkpoint_path(const struct agent *agent, uint64_t generation,
			    char path[CHECKPOINT_PATH_MAX_BYTES])
{
	snprintf(path, CHECKPOINT_PATH_MAX_BYTES, "%s/checkpoint.%u", agent->options.directory,
		 (unsigned)(generation & 1));
}

int checkpoint_save(struct agent *agent, struct errbuf *e)
{
	char path[CHECKPOINT_PATH_MAX_BYTES], head[CHECKPOINT_HEAD_MAX_BYTES];
	struct files *files = agent->options.files;
	struct buf *out = &agent->checkpoint;
	uint64_t version = agent->site.version;
	/* What is said to be delivered cannot be lost any more, or other bytes would get its place.
	 */
	int err = agent->options.spool ? spool_sync(agent->options.spool) : 0;
	if (err) {
		stat_add(STAT_agent_checkpoint_failures, 1);
		return errbuf_set(e, err,
				  "the checkpoint is not written: the spool cannot be "
				  "synced: %s",
				  err_text(err));
	}
	buf_clear(out);
	/* The first line has always as many bytes. */
	int len = snprintf(head, sizeof(head), CHECKPOINT_TITLE "%d %020" PRIu64 " %012zu %08x\n",
			   CHECKPOINT_VERSION, agent->generation + 1, (size_t)0, 0);
	buf_append(out, head, (size_t)len);
	checkpoint_put_all(agent, out);
	if (out->failed)
		return errbuf_set(e, ERR_LIMIT, "the checkpoint would have more than %d bytes",
				  AGENT_CHECKPOINT_MAX_BYTES);
	struct slice lines = {out->data + len, out->len - (size_t)len};
	snprintf(head, sizeof(head), CHECKPOINT_TITLE "%d %020" PRIu64 " %012zu %08x\n",
		 CHECKPOINT_VERSION, agent->generation + 1, lines.len,
		 crc32c(0, lines.data, lines.len));
	memcpy(out->data, head, (size_t)len);
	checkpoint_path(agent, agent->generation + 1, path);
	err = files->replace(files, path, buf_slice(out), CHECKPOINT_MODE);
	if (err) {
		stat_add(STAT_agent_checkpoint_failures, 1);
		return errbuf_set(e, err, "%s cannot be written: %s", path, err_text(err));
	}
	stat_add(STAT_agent_checkpoints, 1);
	agent->generation++;
	agent->site.saved_version = version;
	agent->unsaved_bytes = 0;
	return 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool checkpoint_get_hex(struct slice text, uint64_t *number)
{
	return !number_parse_hex64(text.data, text.data + text.len, number);
}

/* By its literal: a double has not all digits. */
static bool checkpoint_get_u64(const struct json *node, uint64_t *number)
{
	return node && node->type == JSON_T_NUMBER &&
	       !number_parse_u64(node->text.data, node->text.data + node->text.len, number);
}

static bool checkpoint_get_mark(const struct json *object, const char *key,
				struct content_mark *mark)
{
	const struct json *array = json_member(object, key);
	uint64_t bytes;
	if (!array || array->type != JSON_T_ARRAY || array->count != 2 ||
	    !checkpoint_get_u64(array->first, &bytes) || bytes > CONTENT_MARK_MAX_BYTES ||
	    array->first->next->type != JSON_T_STRING)
		return false;
	mark->bytes = (uint32_t)bytes;
	return checkpoint_get_hex(array->first->next->text, &mark->hash);
}

static bool checkpoint_get_id(const struct json *object, struct file_id *id)
{
	const struct json *array = json_member(object, "file");
	uint64_t born;
	if (!array || array->type != JSON_T_ARRAY || array->count != 3 ||
	    !checkpoint_get_u64(array->first, &id->device) ||
	    !checkpoint_get_u64(array->first->next, &id->inode) ||
	    !checkpoint_get_u64(array->first->next->next, &born))
		return false;
	id->born_ns = (int64_t)born;
	return true;
}

static bool checkpoint_get_end(const struct json *object, uint64_t *end)
{
	const struct json *node = json_member(object, "end");
	*end = SEGMENT_OPEN;
	return !node || checkpoint_get_u64(node, end);
}

static bool checkpoint_get_segment(const struct json *node, struct segment *segment)
{
	const struct json *within = json_member(node, "within");
	const struct json *unsent = json_member(node, "unsent");
	*segment = (struct segment){.within = within && within->boolean};
	bool ok = checkpoint_get_id(node, &segment->id) &&
		  checkpoint_get_mark(node, "head", &segment->head) &&
		  checkpoint_get_u64(json_member(node, "at"), &segment->at) &&
		  checkpoint_get_mark(node, "tail", &segment->tail) &&
		  segment->tail.bytes <= segment->at && checkpoint_get_end(node, &segment->end) &&
		  segment->at <= segment->end &&
		  checkpoint_get_u64(json_member(node, "bytes"), &segment->bytes) &&
		  checkpoint_get_mark(node, "last", &segment->last) &&
		  !json_get_i64(node, "changed", &segment->changed_ns, NULL);
	segment->begun = segment->bytes && !(unsent && unsent->boolean);
	return ok;
}

static bool checkpoint_get_past(const struct json *node, struct segment_past *past)
{
	const struct json *copy = json_member(node, "copy");
	*past = (struct segment_past){.copy = copy && copy->boolean};
	return checkpoint_get_id(node, &past->id) &&
	       checkpoint_get_mark(node, "head", &past->head) &&
	       checkpoint_get_mark(node, "tail", &past->tail) &&
	       checkpoint_get_end(node, &past->end) &&
	       checkpoint_get_u64(json_member(node, "bytes"), &past->file_bytes) &&
	       !json_get_i64(node, "changed", &past->changed_ns, NULL);
}

static bool checkpoint_get_lists(const struct json *root, struct followed *f)
{
	const struct json *plan, *past;
	if (json_get_array(root, "plan", &plan, NULL) ||
	    json_get_array(root, "past", &past, NULL) || plan->count > 2 * FOLLOWED_SEGMENTS_MAX ||
	    past->count > FOLLOWED_PAST_MAX)
		return false;
	for (const struct json *node = plan->first; node; node = node->next) {
		struct segment *segment = followed_add(f, f->plan_count);
		if (!checkpoint_get_segment(node, segment))
			return false;
	}
	GROW(f->past, f->past_capacity, past->count);
	for (const struct json *node = past->first; node; node = node->next)
		if (!checkpoint_get_past(node, &f->past[f->past_count++]))
			return false;
	return true;
}

static bool checkpoint_get_followed(const struct json *root, struct followed *f)
{
	const struct json *done = json_member(root, "done");
	struct slice incarnation;
	if (json_get_text(root, "incarnation", &incarnation, NULL) ||
	    !checkpoint_get_hex(incarnation, &f->incarnation) ||
	    !checkpoint_get_u64(json_member(root, "offset"), &f->offset) ||
	    f->offset > STREAM_OFFSET_MAX || json_get_i64(root, "floor", &f->floor_ns, NULL) ||
	    (json_member(root, "unwanted") &&
	     json_get_i64(root, "unwanted", &f->unwanted_ms, NULL)))
		return false;
	f->begun = true;
	/* A search may have been under way, and names that it was for are not new any more. */
	f->search = true;
	if (done && done->boolean)
		f->state = FOLLOWED_DONE;
	if (!checkpoint_get_lists(root, f))
		return false;
	if (f->plan_count && f->plan[0].begun)
		f->careful_until = f->offset + FOLLOWED_CAREFUL_BYTES;
	return true;
}

static int checkpoint_get_walked(struct agent *agent, const struct json *root, struct slice text)
{
	const struct json *unread = json_member(root, "unread");
	struct hash128 hash;
	int64_t since_ms = clock_wall_ms(agent->options.clock); /* a former program did not say */
	bool added;
	if (text.len != 32 ||
	    (json_member(root, "since") && json_get_i64(root, "since", &since_ms, NULL)) ||
	    !checkpoint_get_hex((struct slice){text.data, 16}, &hash.high) ||
	    !checkpoint_get_hex((struct slice){text.data + 16, 16}, &hash.low))
		return ERR_INVALID;
	struct agent_walked *walked = hash_table_add(&agent->walked, hash, sizeof(*walked), &added);
	walked->since_ms = since_ms;
	walked->all = !(unread && unread->boolean);
	return 0;
}

/* What cannot be used is as if it were not there. */
static int checkpoint_get(struct agent *agent, const struct json *root)
{
	struct slice walked;
	if (json_member(root, "walked") && !json_get_text(root, "walked", &walked, NULL))
		return checkpoint_get_walked(agent, root, walked);
	bool is_file = json_member(root, "path") != NULL;
	struct slice datatype, name;
	struct followed *f;
	if (json_get_text(root, "datatype", &datatype, NULL) ||
	    json_get_text(root, is_file ? "path" : "name", &name, NULL) ||
	    agent_is_file(name) != is_file)
		return ERR_INVALID;
	int err = agent_add(agent, NULL, datatype, name, &f);
	if (err)
		return err;
	const struct json *asks = json_member(root, "asks");
	const struct json *from_end = json_member(root, "from_end");
	f->asks = asks && asks->boolean;
	if (f->asks || (from_end && from_end->boolean) || checkpoint_get_followed(root, f))
		return 0;
	followed_forget(f);
	f->asks = true;
	return ERR_INVALID;
}

struct checkpoint_file {
	struct buf text;
	uint64_t generation;
	struct slice lines;
	bool there, whole;
};

static bool checkpoint_take_number(const char **at, int base, uint64_t *number)
{
	char *end;
	*number = strtoull(*at, &end, base);
	bool found = end != *at && (*end == ' ' || *end == '\n');
	*at = end + found;
	return found;
}

/* ERR_VERSION: another version of this program wrote it. */
static int checkpoint_check(struct checkpoint_file *file)
{
	uint64_t version, bytes, checksum;
	char head[CHECKPOINT_HEAD_MAX_BYTES];
	static const struct slice title = SLICE(CHECKPOINT_TITLE);
	const char *newline = file->text.len ? memchr(file->text.data, '\n', file->text.len) : NULL;
	size_t len = newline ? (size_t)(newline + 1 - file->text.data) : 0;
	if (!newline || len >= sizeof(head) || !slice_starts_with(buf_slice(&file->text), title))
		return 0;
	memcpy(head, file->text.data, len);
	head[len] = 0;
	const char *at = head + title.len;
	if (!checkpoint_take_number(&at, 10, &version))
		return 0;
	if (version > CHECKPOINT_VERSION)
		return ERR_VERSION;
	if (!checkpoint_take_number(&at, 10, &file->generation) ||
	    !checkpoint_take_number(&at, 10, &bytes) ||
	    !checkpoint_take_number(&at, 16, &checksum) || at != head + len)
		return 0;
	file->lines = (struct slice){file->text.data + len, file->text.len - len};
	file->whole = file->lines.len == bytes &&
		      crc32c(0, file->lines.data, file->lines.len) == checksum;
	return 0;
}

static int checkpoint_read(struct agent *agent, unsigned which, struct checkpoint_file *file,
			   struct errbuf *e)
{
	char path[CHECKPOINT_PATH_MAX_BYTES];
	struct files *files = agent->options.files;
	checkpoint_path(agent, which, path);
	int err = files->read(files, path, AGENT_CHECKPOINT_MAX_BYTES, &file->text);
	if (err == ERR_NOT_FOUND)
		return 0;
	if (err)
		return errbuf_set(e, err, "%s cannot be read: %s", path, err_text(err));
	file->there = true;
	err = checkpoint_check(file);
	if (err)
		return errbuf_set(e, err,
				  "%s was written by another version of granary, which knows more",
				  path);
	if (!file->whole) {
		stat_add(STAT_agent_checkpoint_failures, 1);
		log_error("%s is damaged, and passed over", path);
	}
	return 0;
}

static void checkpoint_take_lines(struct agent *agent, struct slice lines)
{
	struct arena arena;
	size_t number = 1;
	arena_init(&arena, CHECKPOINT_LINE_ARENA_MAX_BYTES);
	while (lines.len) {
		const char *newline = memchr(lines.data, '\n', lines.len);
		size_t len = newline ? (size_t)(newline - lines.data) : lines.len;
		struct json *root;
		arena_reset(&arena);
		number++;
		int err = json_parse((struct slice){lines.data, len}, &arena, &root, NULL);
		err = err ? err : checkpoint_get(agent, root);
		if (err)
			log_error("line %zu of the checkpoint cannot be used: %s; its log is taken "
				  "for a new one",
				  number, err_text(err));
		len += newline != NULL;
		lines = (struct slice){lines.data + len, lines.len - len};
	}
	arena_release(&arena);
}

int checkpoint_load(struct agent *agent, struct errbuf *e)
{
	struct checkpoint_file files[2] = {{.there = false}};
	int err = 0;
	for (unsigned i = 0; i < 2; i++) {
		buf_init(&files[i].text, AGENT_CHECKPOINT_MAX_BYTES);
		err = err ? err : checkpoint_read(agent, i, &files[i], e);
	}
	const struct checkpoint_file *newest = NULL;
	for (unsigned i = 0; i < 2 && !err; i++)
		if (files[i].whole && (!newest || files[i].generation > newest->generation))
			newest = &files[i];
	if (newest) {
		agent->generation = newest->generation;
		agent->had_checkpoint = true;
		checkpoint_take_lines(agent, newest->lines);
	} else if (!err && (files[0].there || files[1].there)) {
		log_error("no checkpoint in %s can be read: the collector is asked what it holds",
			  agent->options.directory);
	}
	for (unsigned i = 0; i < 2; i++)
		buf_release(&files[i].text);
	return err;
}
