#include "fault/message.h"

#include "base/hash.h"
#include "base/log.h"
#include "fault/day.h"
#include "base/put.h"
#include "fault/tables.h"
#include "store/wait.h"

enum { MESSAGE_VERSION = 1, MESSAGE_CAUSE_MAX_BYTES = 1 << 10, MESSAGE_TEXTS = 6 };

const char *const fault_message_kinds[] = {[FAULT_NEW_GROUP] = "new",
					   [FAULT_REGRESSED] = "regressed",
					   [FAULT_UNMUTED] = "unmuted",
					   [FAULT_DAY_OVER] = "day",
					   [FAULT_HELD_BACK] = "held_back",
					   [FAULT_RISEN] = "risen",
					   NULL};

void fault_message_id(enum fault_message_kind kind, struct slice subject, int64_t of_us,
		      char to[FAULT_MESSAGE_ID_BYTES + 1])
{
	struct buf cause;
	buf_init(&cause, MESSAGE_CAUSE_MAX_BYTES);
	buf_append_char(&cause, (char)kind);
	buf_append(&cause, &of_us, sizeof(of_us));
	buf_append(&cause, subject.data, subject.len);
	ASSERT(!cause.failed); /* names of groups are short */
	struct hash128 hash = hash128(cause.data, cause.len, MESSAGE_VERSION);
	snprintf(to, FAULT_MESSAGE_ID_BYTES + 1, "%016llx%016llx", (unsigned long long)hash.high,
		 (unsigned long long)hash.low);
	buf_release(&cause);
}

/* All texts of a message, in the order in which they are stored. */
static void message_texts(struct fault_message *message, struct slice *to[MESSAGE_TEXTS])
{
	to[0] = &message->group;
	to[1] = &message->title;
	to[2] = &message->report;
	to[3] = &message->environment;
	to[4] = &message->level;
	to[5] = &message->release;
}

void fault_message_encode(const struct fault_message *message, struct buf *out)
{
	struct fault_message copy = *message;
	struct slice *texts[MESSAGE_TEXTS];
	message_texts(&copy, texts);
	buf_append_char(out, MESSAGE_VERSION);
	buf_append_char(out, (char)message->kind);
	buf_append_char(out, message->held_back);
	buf_append(out, &message->date_us, 8);
	buf_append(out, &message->of_us, 8);
	buf_put_varint(out, message->count);
	for (size_t i = 0; i < MESSAGE_TEXTS; i++)
		buf_put_text(out, *texts[i]);
	if (message->made_us != message->date_us)
		buf_append(out, &message->made_us, 8);
}

int fault_message_decode(struct slice bytes, struct fault_message *message)
{
	struct slice *texts[MESSAGE_TEXTS];
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c);
	*message = (struct fault_message){.id = SLICE("")};
	message_texts(message, texts);
	if (!c.bad && version != MESSAGE_VERSION)
		return ERR_VERSION;
	uint8_t kind = cursor_u8(&c);
	message->held_back = cursor_u8(&c) != 0;
	message->date_us = (int64_t)cursor_u64(&c);
	message->of_us = (int64_t)cursor_u64(&c);
	message->count = cursor_varint(&c);
	for (size_t i = 0; i < MESSAGE_TEXTS; i++)
		*texts[i] = cursor_text(&c, FAULT_MESSAGE_TEXT_MAX_BYTES);
	message->made_us = cursor_left(&c) ? (int64_t)cursor_u64(&c) : message->date_us;
	message->kind = (enum fault_message_kind)kind;
	return c.bad || kind >= FAULT_MESSAGE_KINDS ? ERR_DAMAGED : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void message_put_text(struct json_writer *json, const char *key, struct slice text)
{
	if (!text.len)
		return;
	json_write_key(json, key);
	json_write_string(json, text);
}

/* What the count is of. */
static const char *message_count_key(enum fault_message_kind kind)
{
	return kind == FAULT_HELD_BACK ? "messages" : "reports";
}

void fault_message_put_json(struct json_writer *json, const struct fault_message *message)
{
	char day[FAULT_DAY_TEXT_BYTES + 1];
	json_write_key(json, "id");
	json_write_string(json, message->id);
	json_put_i64(json, "date", floor_div(message->made_us, 1000));
	json_put_text(json, "kind", fault_message_kinds[message->kind]);
	if (message->kind == FAULT_DAY_OVER || message->kind == FAULT_RISEN) {
		fault_day_text(fault_day_of(message->of_us), day);
		json_put_text(json, "day", day);
	} else if (message->of_us) {
		json_put_i64(json, message->kind == FAULT_HELD_BACK ? "hour" : "said",
			     floor_div(message->of_us, 1000));
	}
	message_put_text(json, "group", message->group);
	message_put_text(json, "title", message->title);
	message_put_text(json, "report", message->report);
	message_put_text(json, "environment", message->environment);
	message_put_text(json, "level", message->level);
	message_put_text(json, "release", message->release);
	json_put_u64(json, message_count_key(message->kind), message->count);
	if (message->held_back)
		json_put_bool(json, "held_back", true);
}

/* ---- In the store ---------------------------------------------------------------------------- */

struct message_reading {
	int (*each)(void *owner, const struct fault_message *message);
	void *owner;
	size_t damaged;
};

static int message_see_cell(const struct store_cell *cell, void *owner)
{
	struct message_reading *reading = owner;
	struct fault_message message;
	if (fault_message_decode(cell->value, &message)) {
		reading->damaged++;
		return 0;
	}
	message.id = cell->column.part[0];
	return reading->each(reading->owner, &message);
}

int fault_messages_read(const struct fault_site *site, struct task_queue *queue,
			struct slice tenant,
			int (*each)(void *owner, const struct fault_message *message), void *owner,
			struct errbuf *e)
{
	struct message_reading reading = {each, owner, 0};
	const struct store_parts key = {{tenant}};
	int err = store_row_wait(site->store, queue, clock_wall_ms(site->clock),
				 TABLE_FAULT_MESSAGES, &key, message_see_cell, &reading, e);
	if (reading.damaged)
		log_warn("faults: %zu messages of tenant " SHOWN
			 " (table fault_messages) cannot be read; they are left out",
			 reading.damaged, SHOWN_OF(tenant));
	return err;
}

int fault_message_keep(struct fault_message *message, struct arena *arena)
{
	struct slice *texts[MESSAGE_TEXTS + 1];
	message_texts(message, texts);
	texts[MESSAGE_TEXTS] = &message->id;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		*texts[i] = arena_copy(arena, *texts[i]);
		if (!texts[i]->data)
			return ERR_LIMIT;
	}
	return 0;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

struct message_listing {
	const struct fault_message_filter *filter;
	struct fault_message_list *list;
};

void fault_message_list_release(struct fault_message_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		mem_free(list->memory[i]);
	mem_free(list->memory);
	mem_free(list->list);
	*list = (struct fault_message_list){NULL};
}

/* Its texts point into what is returned. */
static char *message_copy(const struct fault_message *message, struct fault_message *to)
{
	struct slice *texts[MESSAGE_TEXTS + 1];
	size_t len = 0;
	*to = *message;
	message_texts(to, texts);
	texts[MESSAGE_TEXTS] = &to->id;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		len += texts[i]->len;
	char *memory = mem_alloc(len + 1), *at = memory;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		memcpy(at, texts[i]->data, texts[i]->len);
		texts[i]->data = at;
		at += texts[i]->len;
	}
	return memory;
}

static bool message_fits(const struct fault_message_filter *filter,
			 const struct fault_message *message)
{
	return message->made_us >= filter->from_us && message->made_us < filter->to_us &&
	       message->date_us > filter->after_us &&
	       (filter->kind < 0 || (int)message->kind == filter->kind) &&
	       (filter->held_back || !message->held_back);
}

static void message_insert(struct fault_message_list *l, const struct fault_message *message)
{
	size_t at = l->count;
	while (at && l->list[at - 1].date_us < message->date_us)
		at--;
	memmove(&l->list[at + 1], &l->list[at], (l->count - at) * sizeof(*l->list));
	memmove(&l->memory[at + 1], &l->memory[at], (l->count - at) * sizeof(*l->memory));
	l->memory[at] = message_copy(message, &l->list[at]);
	l->count++;
}

static void message_insert_for(struct fault_message_list *l, const struct fault_message *message,
			       size_t goes)
{
	mem_free(l->memory[goes]);
	l->count--;
	memmove(&l->list[goes], &l->list[goes + 1], (l->count - goes) * sizeof(*l->list));
	memmove(&l->memory[goes], &l->memory[goes + 1], (l->count - goes) * sizeof(*l->memory));
	message_insert(l, message);
}

static int message_list_one(void *owner, const struct fault_message *message)
{
	const struct message_listing *listing = owner;
	struct fault_message_list *l = listing->list;
	l->newest_us = larger_of(l->newest_us, message->date_us);
	if (!message_fits(listing->filter, message))
		return 0;
	l->cut = l->cut || l->count == listing->filter->limit;
	if (l->count < listing->filter->limit)
		message_insert(l, message);
	else if (!listing->filter->oldest && message->date_us > l->list[l->count - 1].date_us)
		message_insert_for(l, message, l->count - 1);
	else if (listing->filter->oldest && message->date_us < l->list[0].date_us)
		message_insert_for(l, message, 0);
	return 0;
}

int fault_messages_list(const struct fault_site *site, struct task_queue *queue,
			struct slice tenant, const struct fault_message_filter *filter,
			struct fault_message_list *list, struct errbuf *e)
{
	struct message_listing listing = {filter, list};
	*list = (struct fault_message_list){
		.list = mem_alloc_array(filter->limit, sizeof(*list->list)),
		.memory = mem_alloc_array(filter->limit, sizeof(*list->memory))};
	return fault_messages_read(site, queue, tenant, message_list_one, &listing, e);
}
