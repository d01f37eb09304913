/* The file has the commands that stand, one a line, as they could be typed:
 *
 *     add adaptor_7 = filetailer.LWFTAdaptor syslog /var/log/messages 0
 *     shutdown adaptor_7 114027
 */
#include "agent/control.h"

#include <inttypes.h>

#include "agent/adaptors.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/stats.h"
#include "base/visible.h"
#include "wire/number.h"
#include "wire/put_line.h"

enum {
	CONTROL_FILE_MAX_BYTES = (CONTROL_ADDED_MAX + 1) * 2 * CHUKWA_LINE_MAX_BYTES,
	CONTROL_FILE_MODE = 0600,
	CONTROL_PARSE_MAX_BYTES = 64 << 10,
	CONTROL_PARAMS_MAX_BYTES = 64 << 10,
	CONTROL_SEEN_MAX_BYTES = 4 << 20,
	CONTROL_LINE_ROOM_BYTES = 32, /* what stands between the words of a line, and its offset */
};

#define CONTROL_TITLE "# Adaptors that were added to granary's agent by commands.\n"

/* ---- Items ----------------------------------------------------------------------------------- */

static struct control_item *control_item_new(const struct chukwa_add *add, struct slice name)
{
	struct control_item *item = mem_zalloc(sizeof(*item));
	item->add = (struct chukwa_add){
		.id = mem_copy_slice(add->id),
		.class = mem_copy_slice(add->class),
		.datatype = mem_copy_slice(add->datatype),
		.params = mem_copy_slice(add->params),
		.offset = add->offset,
	};
	item->name_hash = hash64(name.data, name.len, 0);
	item->progress.offset = item->progress.end = add->offset;
	return item;
}

static void control_item_free(struct control_item *item)
{
	mem_free_slice(item->add.id);
	mem_free_slice(item->add.class);
	mem_free_slice(item->add.datatype);
	mem_free_slice(item->add.params);
	mem_free(item->samples);
	mem_free(item);
}

static struct control_item *control_push(struct control *control, struct control_item *item)
{
	GROW(control->list, control->capacity, control->count + 1);
	control->list[control->count++] = item;
	return item;
}

static size_t control_place(const struct control *control, const struct control_item *item)
{
	size_t i = 0;
	while (control->list[i] != item)
		i++;
	return i;
}

/* Takes one off the list, and frees it. */
static void control_drop(struct control *control, struct control_item *item)
{
	size_t at = control_place(control, item);
	control->count--;
	memmove(control->list + at, control->list + at + 1,
		(control->count - at) * sizeof(control->list[0]));
	control_item_free(item);
}

struct control_item *control_find(const struct control *control, struct slice id)
{
	for (size_t i = 0; i < control->count; i++)
		if (!control->list[i]->stopped && slice_equal(control->list[i]->add.id, id))
			return control->list[i];
	return NULL;
}

size_t control_count(const struct control *control)
{
	size_t count = 0;
	for (size_t i = 0; i < control->count; i++)
		count += control->list[i]->runs;
	return count;
}

/* ---- What is configured, as Chukwa would name it --------------------------------------------- */

static struct slice control_tailer(const struct followed_rule *rule)
{
	switch (rule->records.kind) {
	case RECORDS_RAW:
		return SLICE("filetailer.FileTailingAdaptor");
	case RECORDS_ESCAPED:
		return SLICE("filetailer.CharFileTailingAdaptorUTF8NewLineEscaped");
	default:
		return SLICE("filetailer.CharFileTailingAdaptorUTF8");
	}
}

static struct slice control_class(const struct adaptor *adaptor)
{
	switch (adaptor->kind) {
	case ADAPTOR_FILE:
		return SLICE("FileAdaptor");
	case ADAPTOR_DIRECTORY:
		return adaptor->pattern == ADAPTOR_REGEX || adaptor->pattern == ADAPTOR_NAME_REGEX
			       ? SLICE("RegExDirTailingAdaptor")
			       : SLICE("DirTailingAdaptor");
	case ADAPTOR_EXEC:
		return SLICE("ExecAdaptor");
	case ADAPTOR_UDP:
		return SLICE("UDPAdaptor");
	case ADAPTOR_TCP:
		return SLICE("SocketAdaptor");
	case ADAPTOR_SYSLOG:
		return SLICE("SyslogAdaptor");
	case ADAPTOR_HTTP:
		return SLICE("RestAdaptor");
	case ADAPTOR_SYSTEM:
		return SLICE("sigar.SystemMetrics");
	case ADAPTOR_HEARTBEAT:
		return SLICE("HeartbeatAdaptor");
	case ADAPTOR_JOURNAL: /* Chukwa has none */
		return SLICE("JournalAdaptor");
	case ADAPTOR_TAIL:
	case ADAPTOR_KINDS:
		break;
	}
	return control_tailer(&adaptor->rule);
}

static void control_params(const struct adaptor *adaptor, struct buf *out)
{
	if (adaptor->rule.first)
		buf_printf(out, "%" PRIu64 " ", adaptor->rule.first);
	if (adaptor->kind == ADAPTOR_EXEC)
		buf_printf(out, "%" PRId64 " ", adaptor->every_ms / 1000);
	buf_append(out, adaptor->path.data, adaptor->path.len);
	if (adaptor->kind == ADAPTOR_HTTP || adaptor->kind == ADAPTOR_HEARTBEAT ||
	    adaptor->kind == ADAPTOR_SYSTEM)
		buf_printf(out, " %" PRId64, adaptor->every_ms / 1000);
	if (adaptor->kind == ADAPTOR_DIRECTORY)
		buf_printf(out, " %s %s", adaptor->glob, control_tailer(&adaptor->rule).data);
}

/* A name that is none of Chukwa's gets the prefix that all have there. Blanks, which no command
 * could name, become _. */
static void control_id(struct slice name, struct buf *out)
{
	if (!slice_starts_with(name, SLICE(CHUKWA_ID_PREFIX)))
		buf_append_text(out, CHUKWA_ID_PREFIX);
	for (size_t i = 0; i < name.len; i++)
		buf_append_char(out, (uint8_t)name.data[i] <= ' ' ? '_' : name.data[i]);
}

static void control_push_configured(struct control *control, size_t at)
{
	const struct adaptor *adaptor = &control->base->list[at];
	struct buf id, params;
	buf_init(&id, CONTROL_PARAMS_MAX_BYTES);
	buf_init(&params, CONTROL_PARAMS_MAX_BYTES);
	control_id(adaptor->name, &id);
	control_params(adaptor, &params);
	const struct chukwa_add add = {
		.id = buf_slice(&id),
		.class = control_class(adaptor),
		.datatype = adaptor->datatype,
		.params = buf_slice(&params),
		.offset = adaptor->rule.from,
	};
	struct control_item *item = control_push(control, control_item_new(&add, adaptor->name));
	item->configured = true;
	item->at = at;
	buf_release(&id);
	buf_release(&params);
}

void control_put_class(const struct control_item *item, struct buf *out)
{
	const struct chukwa_class *class = chukwa_class_find(item->add.class);
	struct slice name = class ? class->name : item->add.class;
	buf_append_text(out, CHUKWA_PACKAGE);
	buf_append(out, name.data, name.len);
}

/* ---- What the agent is told ------------------------------------------------------------------ */

static int control_merge_one(struct control *control, const struct control_item *item,
			     struct adaptors *made, struct errbuf *e)
{
	size_t before = made->count;
	int err = item->configured ? adaptors_add(made, &control->base->list[item->at], e)
				   : adaptors_add_chukwa_one(made, &item->add, e);
	if (!err && made->count == before)
		err = errbuf_set(e, ERR_EXISTS, "the configuration has the same");
	if (!err && item->ends) {
		made->list[before].rule.ends = true;
		made->list[before].rule.until = item->until;
	}
	return err;
}

/* Gives the adaptors that all items make, but for those that were stopped. */
static struct adaptors *control_merge(struct control *control, bool tell)
{
	struct adaptors *made = adaptors_new_of(control->base);
	for (size_t i = 0; i < control->count; i++) {
		struct control_item *item = control->list[i];
		struct errbuf e = {""};
		item->runs = !item->stopped && !control_merge_one(control, item, made, &e);
		if (tell && !item->runs && !item->stopped)
			log_warn("adaptor " SHOWN ", which was added by a command, is not followed "
				 "at present: %s",
				 SHOWN_OF(item->add.id), e.text);
	}
	return made;
}

static void control_configure(struct control *control, bool tell)
{
	struct adaptors *made = control_merge(control, tell);
	control->options.agent->configure(control->options.agent, &made);
}

/* The rates of what is configured as before go on. */
static void control_keep_samples(struct control_item *item, struct control_item **before,
				 size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (before[i]->configured && before[i]->name_hash == item->name_hash) {
			item->samples = before[i]->samples;
			before[i]->samples = NULL;
			item->sample_count = before[i]->sample_count;
			item->progress = before[i]->progress;
			return;
		}
}

void control_set_base(struct control *control, struct adaptors **base)
{
	struct control_item **before = control->list;
	size_t count = control->count;
	adaptors_free(control->base);
	control->base = *base;
	*base = NULL;
	control->list = NULL;
	control->count = control->capacity = 0;
	for (size_t i = 0; i < control->base->count; i++) {
		control_push_configured(control, i);
		control_keep_samples(control->list[i], before, count);
	}
	for (size_t i = 0; i < count; i++) {
		if (before[i]->configured)
			control_item_free(before[i]);
		else
			control_push(control, before[i]);
	}
	mem_free(before);
	control_configure(control, true);
}

/* ---- The file -------------------------------------------------------------------------------- */

static void control_put_line(const struct chukwa_add *add, struct buf *out)
{
	buf_append_text(out, "add ");
	buf_append(out, add->id.data, add->id.len);
	buf_append_text(out, " = ");
	buf_append(out, add->class.data, add->class.len);
	buf_append_char(out, ' ');
	buf_append(out, add->datatype.data, add->datatype.len);
	buf_append_char(out, ' ');
	buf_append(out, add->params.data, add->params.len);
	buf_printf(out, " %" PRIu64 "\n", add->offset);
}

static int control_write(struct control *control, struct slice text, struct errbuf *e)
{
	struct files *files = control->options.files;
	int err = files->replace(files, control->options.path, text, CONTROL_FILE_MODE);
	return err ? errbuf_set(e, err, "%s cannot be written: %s", control->options.path,
				err_text(err))
		   : 0;
}

/* All that stands, without one of them. */
static int control_save(struct control *control, const struct control_item *without,
			struct errbuf *e)
{
	struct buf text;
	buf_init(&text, CONTROL_FILE_MAX_BYTES); /* has room for CONTROL_ADDED_MAX */
	buf_append_text(&text, CONTROL_TITLE);
	for (size_t i = 0; i < control->count; i++) {
		const struct control_item *item = control->list[i];
		if (item->configured || item == without)
			continue;
		control_put_line(&item->add, &text);
		if (item->ends)
			buf_printf(&text, "shutdown %.*s %" PRIu64 "\n", (int)item->add.id.len,
				   item->add.id.data, item->until);
	}
	ASSERT(!text.failed);
	int err = control_write(control, buf_slice(&text), e);
	buf_release(&text);
	return err;
}

/* `shutdown ID OFFSET`, of one that was added before. */
static int control_load_end(struct control *control, struct slice rest, struct errbuf *e)
{
	struct slice id = put_line_word(&rest), offset = put_line_word(&rest);
	for (size_t i = 0; i < control->count; i++) {
		struct control_item *item = control->list[i];
		if (!slice_equal(item->add.id, id))
			continue;
		item->ends = !number_parse_u64(offset.data, offset.data + offset.len, &item->until);
		if (item->ends)
			return 0;
	}
	return errbuf_set(e, ERR_INVALID, "it stops no adaptor of the lines before at an offset");
}

static int control_load_line(struct control *control, struct slice line, struct errbuf *e)
{
	struct arena arena;
	struct chukwa_add add;
	struct slice rest = line;
	if (slice_equal_lower(put_line_word(&rest), SLICE("shutdown")))
		return control_load_end(control, rest, e);
	arena_init(&arena, CONTROL_PARSE_MAX_BYTES);
	int err = chukwa_add_parse(line, &arena, &add, e);
	if (!err && control->count >= CONTROL_ADDED_MAX)
		err = errbuf_set(e, ERR_LIMIT, "there are more than %d", CONTROL_ADDED_MAX);
	if (!err)
		control_push(control, control_item_new(&add, add.id));
	arena_release(&arena);
	return err == ERR_NOT_FOUND ? 0 : err;
}

int control_load(struct control *control, struct errbuf *e)
{
	struct files *files = control->options.files;
	struct buf text;
	buf_init(&text, CONTROL_FILE_MAX_BYTES);
	int err = files->read(files, control->options.path, CONTROL_FILE_MAX_BYTES, &text);
	struct slice rest = buf_slice(&text), line;
	for (size_t number = 1; !err && slice_take_text_line(&rest, &line); number++) {
		struct errbuf why = {""};
		if (control_load_line(control, line, &why))
			log_error("%s:%zu is passed over, and other lines are kept: %s",
				  control->options.path, number, why.text);
	}
	buf_release(&text);
	if (err && err != ERR_NOT_FOUND)
		return errbuf_set(e, err, "%s cannot be read: %s", control->options.path,
				  err_text(err));
	return 0;
}

/* ---- Adding and stopping --------------------------------------------------------------------- */

static size_t control_added_count(const struct control *control)
{
	size_t count = 0;
	for (size_t i = 0; i < control->count; i++)
		count += !control->list[i]->configured;
	return count;
}

/* One that is there is added again: it goes on, if it was to end. */
static int control_go_on(struct control *control, struct control_item *item, struct errbuf *e)
{
	if (!item->ends)
		return 0;
	item->ends = false;
	int err = item->configured ? 0 : control_save(control, NULL, e);
	if (err)
		item->ends = true;
	else
		control_configure(control, false);
	return err;
}

/* Takes what was read; 0 and the item, where it is followed and in the file. */
static int control_take(struct control *control, const struct chukwa_add *add,
			struct control_item **item, struct errbuf *e)
{
	size_t bytes = add->id.len + add->class.len + add->datatype.len + add->params.len;
	struct control_item *there = control_find(control, add->id);
	*item = there;
	if (there && there->runs && slice_equal(there->add.class, add->class) &&
	    slice_equal(there->add.datatype, add->datatype) &&
	    slice_equal(there->add.params, add->params))
		return control_go_on(control, there, e);
	if (there)
		return errbuf_set(e, ERR_EXISTS, "there is another adaptor " SHOWN,
				  SHOWN_OF(add->id));
	const struct chukwa_class *class = chukwa_class_find(add->class);
	if (control->by_port && class && class->kind == CHUKWA_EXEC)
		return errbuf_set(e, ERR_INVALID,
				  "commands are taken by the socket in the agent's folder only, "
				  "since every user of the machine reaches a port");
	if (bytes + CONTROL_LINE_ROOM_BYTES > CHUKWA_LINE_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "with its id, the line has more than %d bytes",
				  CHUKWA_LINE_MAX_BYTES);
	if (control_added_count(control) >= CONTROL_ADDED_MAX)
		return errbuf_set(e, ERR_LIMIT, "at most %d adaptors can be added",
				  CONTROL_ADDED_MAX);
	*item = control_push(control, control_item_new(add, add->id));
	struct adaptors *made = control_merge(control, false);
	int err = (*item)->runs ? control_save(control, NULL, e)
				: control_merge_one(control, *item, made, e);
	if (err)
		control_drop(control, *item);
	else
		control->options.agent->configure(control->options.agent, &made);
	adaptors_free(made);
	return err;
}

int control_add(struct control *control, struct slice line, struct control_item **item,
		struct errbuf *e)
{
	struct arena arena;
	struct chukwa_add add;
	arena_init(&arena, CONTROL_PARSE_MAX_BYTES);
	int err = chukwa_add_parse(line, &arena, &add, e);
	err = err ? err : control_take(control, &add, item, e);
	arena_release(&arena);
	if (err)
		log_warn("an adaptor is not added: %s: " SHOWN, e->text, SHOWN_OF(line));
	else
		log_info("adaptor " SHOWN " is added: " SHOWN, SHOWN_OF((*item)->add.id),
			 SHOWN_OF(line));
	return err;
}

/* It is gone from the list, or marked, and not from the agent yet. */
static void control_remove(struct control *control, struct control_item *item, const char *why)
{
	log_info("adaptor " SHOWN " %s%s", SHOWN_OF(item->add.id), why,
		 item->configured ? "; the configuration has it, so the next start or reload "
				    "brings it back"
				  : "");
	item->stopped = item->configured;
	item->ends = false;
	if (!item->configured)
		control_drop(control, item);
}

int control_stop(struct control *control, struct control_item **item, struct errbuf *e)
{
	int err = (*item)->configured ? 0 : control_save(control, *item, e);
	if (err)
		return err;
	control_remove(control, *item, "is stopped");
	*item = NULL;
	control_configure(control, false);
	return 0;
}

/* Also those go that are not followed at present, lest they begin where others end. */
static int control_stop_all(struct control *control, size_t *stopped, struct errbuf *e)
{
	size_t kept = 0;
	*stopped = control_count(control);
	int err = control_write(control, SLICE(CONTROL_TITLE), e);
	if (err)
		return err;
	for (size_t i = 0; i < control->count; i++) {
		struct control_item *item = control->list[i];
		item->stopped = true;
		item->ends = false;
		if (item->configured)
			control->list[kept++] = item;
		else
			control_item_free(item);
	}
	control->count = kept;
	log_info("all %zu adaptors are stopped; the next start or reload brings back those that "
		 "the configuration has",
		 *stopped);
	control_configure(control, false);
	return 0;
}

/* Gives the offset at which it ends. What is not one file, or of which nothing is known, stops at
 * once: what was not delivered of it stays where it is. */
static int control_shut(struct control *control, struct control_item *item, uint64_t *until,
			struct errbuf *e)
{
	*until = item->ends ? item->until : item->progress.end;
	if (item->ends)
		return 0;
	const struct chukwa_class *class = chukwa_class_find(item->add.class);
	if (!class || class->kind != CHUKWA_TAIL || !item->progress.known ||
	    item->progress.offset >= item->progress.end) {
		*until = item->progress.offset;
		return control_stop(control, &item, e);
	}
	item->ends = true;
	item->until = *until;
	int err = item->configured ? 0 : control_save(control, NULL, e);
	if (err)
		item->ends = false;
	else
		control_configure(control, false);
	return err;
}

/* ---- How far they are ------------------------------------------------------------------------ */

/* Takes what the agent says. */
static void control_take_progress(struct control *control)
{
	size_t next = 0; /* both lists have one order, but for what changed meanwhile */
	buf_clear(&control->seen);
	control->options.agent->look(control->options.agent, &control->seen);
	size_t count = control->seen.len / sizeof(struct agent_progress);
	for (size_t i = 0; i < count; i++) {
		struct agent_progress seen;
		memcpy(&seen, control->seen.data + i * sizeof(seen), sizeof(seen));
		for (size_t tried = 0; seen.known && tried < control->count; tried++) {
			struct control_item *item = control->list[next++ % control->count];
			if (item->name_hash != seen.name_hash)
				continue;
			item->progress = seen;
			break;
		}
	}
}

void control_look(struct control *control)
{
	bool any = false;
	struct errbuf e = {""};
	control_take_progress(control);
	for (size_t i = 0; i < control->count; i++) {
		struct control_item *item = control->list[i];
		if (!item->ends || item->progress.offset < item->until)
			continue;
		i -= !item->configured;
		control_remove(control, item, "is at its end, and stopped");
		any = true;
	}
	if (!any)
		return;
	if (control_save(control, NULL, &e)) /* the next start finds the end again */
		log_warn("%s", e.text);
	control_configure(control, false);
}

void control_tick(struct control *control)
{
	control_look(control);
	for (size_t i = 0; i < control->count && control->options.rates; i++) {
		struct control_item *item = control->list[i];
		if (!item->progress.known)
			continue;
		if (!item->samples)
			item->samples = mem_alloc_array(CONTROL_SAMPLES, sizeof(*item->samples));
		item->samples[item->sample_count++ % CONTROL_SAMPLES] = item->progress.offset;
	}
}

double control_rate(const struct control_item *item, unsigned seconds)
{
	size_t steps = seconds * 1000 / CONTROL_SAMPLE_MS;
	if (item->sample_count <= steps)
		return -1;
	uint64_t newest = item->samples[(item->sample_count - 1) % CONTROL_SAMPLES];
	uint64_t then = item->samples[(item->sample_count - 1 - steps) % CONTROL_SAMPLES];
	return newest < then ? -1 : (double)(newest - then) / seconds;
}

/* ---- Commands -------------------------------------------------------------------------------- */

/* The id that a command names; empty: it names none. One without the prefix gets it, which is
 * said. */
static struct slice control_take_id(struct slice rest, struct buf *id, struct buf *out)
{
	struct slice word = put_line_word(&rest);
	if (!word.len) {
		buf_append_text(out, "need to specify an adaptor to shut down, by number\n");
		return word;
	}
	control_id(word, id);
	if (id->len != word.len) {
		buf_append_text(out,
				"adaptor names should start with adaptor_; assuming you meant ");
		visible_append(out, buf_slice(id));
		buf_append_char(out, '\n');
	}
	return buf_slice(id);
}

static void control_reply(struct buf *out, const char *before, struct slice id, const char *after)
{
	buf_append_text(out, before);
	visible_append(out, id);
	buf_append_text(out, after);
	buf_append_char(out, '\n');
}

static bool control_answer_add(struct control *control, struct slice line, struct buf *out)
{
	struct errbuf e = {""};
	struct control_item *item;
	if (control_add(control, line, &item, &e))
		buf_append_text(out, "failed to start adaptor...check logs for details\n");
	else
		control_reply(out, "OK add completed; new ID is ", item->add.id, "");
	return true;
}

static bool control_answer_shutdown(struct control *control, struct slice rest, struct buf *out)
{
	struct errbuf e = {""};
	struct buf name;
	char offset[64];
	uint64_t until;
	buf_init(&name, 2 * CHUKWA_LINE_MAX_BYTES);
	struct slice id = control_take_id(rest, &name, out);
	control_look(control);
	struct control_item *item = id.len ? control_find(control, id) : NULL;
	if (item && !control_shut(control, item, &until, &e)) {
		snprintf(offset, sizeof(offset), " stopping gracefully at %" PRIu64, until);
		control_reply(out, "OK adaptor ", id, offset);
	} else if (item) {
		control_reply(out, "FAIL: ", slice_of(e.text), "");
	} else if (id.len) {
		control_reply(out, "FAIL: perhaps adaptor ", id, " does not exist");
	}
	buf_release(&name);
	return true;
}

/* Chukwa says OK whether it was there or not. */
static bool control_answer_stop(struct control *control, struct slice rest, struct buf *out)
{
	struct errbuf e = {""};
	struct buf name;
	buf_init(&name, 2 * CHUKWA_LINE_MAX_BYTES);
	struct slice id = control_take_id(rest, &name, out);
	struct control_item *item = id.len ? control_find(control, id) : NULL;
	if (item && control_stop(control, &item, &e))
		control_reply(out, "FAIL: ", slice_of(e.text), "");
	else if (id.len)
		control_reply(out, "OK adaptor ", id, " stopped");
	buf_release(&name);
	return true;
}

static bool control_answer_stopall(struct control *control, UNUSED struct slice rest,
				   struct buf *out)
{
	struct errbuf e = {""};
	size_t stopped;
	if (control_stop_all(control, &stopped, &e))
		control_reply(out, "FAIL: ", slice_of(e.text), "");
	else
		buf_printf(out, "stopped %zu adaptors\n", stopped);
	return true;
}

static bool control_answer_list(struct control *control, UNUSED struct slice rest, struct buf *out)
{
	control_look(control);
	for (size_t i = 0; i < control->count; i++) {
		const struct control_item *item = control->list[i];
		if (!item->runs)
			continue;
		visible_append(out, item->add.id);
		buf_append_text(out, ")  ");
		control_put_class(item, out);
		buf_append_char(out, ' ');
		visible_append(out, item->add.datatype);
		buf_append_char(out, ' ');
		visible_append(out, item->add.params);
		buf_printf(out, " %" PRIu64 "\n", item->progress.offset);
	}
	buf_append_char(out, '\n');
	return true;
}

static bool control_answer_reload(struct control *control, UNUSED struct slice rest,
				  struct buf *out)
{
	control->options.agent->try_again(control->options.agent);
	buf_append_text(out, "OK reloadCollectors done\n");
	return true;
}

static bool control_answer_stopagent(struct control *control, UNUSED struct slice rest,
				     struct buf *out)
{
	struct control_agent *agent = control->options.agent;
	if (!agent->stop) {
		buf_append_text(out, "FAIL: the agent is part of granary serve; stop that\n");
		return true;
	}
	log_info("a command stops the agent");
	buf_append_text(out, "stopping agent process.\n");
	agent->stop(agent);
	return false;
}

static bool control_answer_close(UNUSED struct control *control, UNUSED struct slice rest,
				 UNUSED struct buf *out)
{
	return false;
}

/* Chukwa's words. */
static bool control_answer_help(UNUSED struct control *control, UNUSED struct slice rest,
				struct buf *out)
{
	buf_append_text(out, "you're talking to the Chukwa agent.  Commands available: \n"
			     "add [adaptorname] [args] [offset] -- start an adaptor\n"
			     "shutdown [adaptornumber]  -- graceful stop\n"
			     "stop [adaptornumber]  -- abrupt stop\n"
			     "list -- list running adaptors\n"
			     "close -- close this connection\n"
			     "stopagent -- stop the whole agent process\n"
			     "stopall -- stop all adaptors\n"
			     "reloadCollectors -- reload the list of collectors\n"
			     "help -- print this message\n"
			     "\t Command names are case-blind.\n");
	return true;
}

static const struct control_command {
	struct slice name; /* in lower case */
	bool (*answer)(struct control *control, struct slice rest, struct buf *out);
} control_commands[] = {
	{SLICE("shutdown"), control_answer_shutdown},
	{SLICE("stop"), control_answer_stop},
	{SLICE("stopall"), control_answer_stopall},
	{SLICE("list"), control_answer_list},
	{SLICE("reloadcollectors"), control_answer_reload},
	{SLICE("stopagent"), control_answer_stopagent},
	{SLICE("close"), control_answer_close},
	{SLICE("help"), control_answer_help},
};

bool control_answer(struct control *control, struct slice line, struct buf *out)
{
	struct slice rest = line, word = put_line_word(&rest);
	stat_add(STAT_agent_control_commands, 1);
	if (!word.len) {
		buf_printf(out, "%.*s: Chukwa Agent running, version %s, with %zu adaptors\n",
			   (int)control->options.host.len, control->options.host.data,
			   GRANARY_VERSION, control_count(control));
		return true;
	}
	if (slice_equal_lower(word, SLICE("add")))
		return control_answer_add(control, line, out);
	for (size_t i = 0; i < ARRAY_LEN(control_commands); i++)
		if (slice_equal_lower(word, control_commands[i].name))
			return control_commands[i].answer(control, rest, out);
	control_reply(out, "unknown command ", word, "");
	buf_append_text(out, "say 'help' for a list of legal commands\n");
	return true;
}

/* ---- Life ------------------------------------------------------------------------------------ */

void control_init(struct control *control, const struct control_options *options)
{
	*control = (struct control){.options = *options, .base = adaptors_new()};
	buf_init(&control->seen, CONTROL_SEEN_MAX_BYTES);
}

void control_release(struct control *control)
{
	for (size_t i = 0; i < control->count; i++)
		control_item_free(control->list[i]);
	mem_free(control->list);
	adaptors_free(control->base);
	buf_release(&control->seen);
}
