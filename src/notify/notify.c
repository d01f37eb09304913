#include "notify/notify.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "fault/daily.h"
#include "base/put.h"
#include "notify/post.h"
#include "store/wait.h"

enum {
	NOTIFY_VERSION = 1, /* of a note */
	NOTIFY_EVERY_MS = 250,
	NOTIFY_LOOK_US = 60000000, /* so often a tenant is looked at in any case */
	NOTIFY_LIST_MAX = 100,     /* messages that are read at a time */
	NOTIFY_LINES_MAX = 10000,  /* webhooks, each with a tenant */
	NOTIFY_SENDING_MAX = 4,    /* at once to one webhook */
	NOTIFY_MAILS_MAX = 16,     /* at once: each may have two sockets (post.h) */
	NOTIFY_BODY_MAX_BYTES = BROKER_PUBLISH_MAX_BYTES,
	NOTIFY_MAIL_MAX_BYTES = 16 << 20,
	NOTIFY_DAILY_US = 60000000, /* to make a daily report */
	NOTIFY_NOTE_MAX_BYTES = 100,
	NOTIFY_MEMORY_BYTES = 64 << 10,
	NOTIFY_LOGS_A_MINUTE = 3,
};
/* After each try that failed; after the last it is given up. */
static const int64_t notify_rests_us[] = {5000000,   10000000,  30000000,  60000000,
					  120000000, 300000000, 600000000, 600000000};

/* A webhook, and a tenant whose messages it is sent. */
struct notify_line {
	const struct webhook *webhook;
	size_t *webhook_sending; /* so many lines of the webhook are sending */
	struct fault_book *book;
	bool begun; /* seen_us is right */
	bool sending;
	int64_t seen_us;         /* all messages up to then are done */
	int64_t noted_us;        /* as it is stored */
	uint64_t made;           /* fault_messages_made when it was read last */
	int64_t look_us, due_us; /* monotonic */
	size_t tries;
	struct fault_message_list list; /* newest first; those below `left` are to be done */
	size_t left;
};

struct notify {
	struct notify_options options;
	struct job *job; /* NULL: it is over */
	struct post_sockets sockets;
	/* The job's. */
	struct posts *posts;
	struct job *running; /* `job`, as it knows itself */
	struct notify_line **lines;
	size_t count, room;
	size_t book_count;                   /* of which there are lines */
	size_t sending[NOTIFY_WEBHOOKS_MAX]; /* lines of each webhook */
	struct log_rate logs;
};

static int64_t notify_now_us(const struct notify *notify)
{
	struct clock *clock = fault_site_of(notify->options.fault)->clock;
	return clock->mono_us(clock);
}

/* ---- Notes ----------------------------------------------------------------------------------- */

static int notify_write_note(struct notify *notify, struct slice tenant,
			     const struct webhook *webhook, int64_t seen_us)
{
	const struct fault_site *site = fault_site_of(notify->options.fault);
	const struct store_parts key = {{tenant}};
	const struct store_parts column = {{slice_of(webhook->name)}};
	struct store_write *write = store_write_new(site->store, NOTIFY_MEMORY_BYTES);
	struct buf value;
	buf_init(&value, NOTIFY_NOTE_MAX_BYTES);
	buf_append_char(&value, NOTIFY_VERSION);
	buf_append(&value, &seen_us, 8);
	int err = store_cell_put(write, TABLE_FAULT_NOTES, &key, &column, buf_slice(&value),
				 store_stamp(site->store), 0);
	err = err ? err : store_write_wait(write, job_queue(notify->running));
	buf_release(&value);
	store_write_free(write);
	return err;
}

/* ERR_NOT_FOUND: there is none. */
static int notify_read_note(struct notify *notify, struct slice tenant,
			    const struct webhook *webhook, int64_t *seen_us)
{
	const struct fault_site *site = fault_site_of(notify->options.fault);
	struct store_read *read = store_read_new(site->store, NOTIFY_MEMORY_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	request->cell_get = (struct store_cell_get){.table = TABLE_FAULT_NOTES,
						    .key = {{tenant}},
						    .column = {{slice_of(webhook->name)}}};
	read->now_ms = clock_wall_ms(site->clock);
	int err = store_read_wait(read, job_queue(notify->running));
	if (!err && !request->cell_get.found)
		err = ERR_NOT_FOUND;
	if (!err) {
		struct slice value = request->cell_get.cell.value;
		struct cursor c = cursor_of(value.data, value.len);
		bool known = cursor_u8(&c) == NOTIFY_VERSION;
		*seen_us = (int64_t)cursor_u64(&c);
		err = c.bad || !known ? ERR_DAMAGED : 0;
	}
	store_read_free(read);
	return err;
}

/* The date of a tenant's newest message; 0: it has none. */
static int notify_newest(struct notify *notify, struct slice tenant, int64_t *newest_us,
			 struct errbuf *e)
{
	const struct fault_message_filter filter = {
		.from_us = INT64_MIN, .to_us = INT64_MAX, .kind = -1, .limit = 1};
	struct fault_message_list list;
	int err = fault_messages_list(fault_site_of(notify->options.fault),
				      job_queue(notify->running), tenant, &filter, &list, e);
	*newest_us = list.newest_us;
	fault_message_list_release(&list);
	return err;
}

/* A tenant without a note has had no message when the webhook was begun with. Where a note cannot
 * be read nobody knows which messages were sent, so it goes on behind the newest. */
static int notify_begin(struct notify *notify, struct notify_line *line, struct errbuf *e)
{
	struct slice tenant = fault_book_tenant(line->book);
	int err = notify_read_note(notify, tenant, line->webhook, &line->seen_us);
	bool damaged = err == ERR_DAMAGED;
	if (damaged) {
		log_warn("webhooks: how far %s is with the messages of tenant " SHOWN
			 " (table fault_notes) cannot be read; the webhook goes on with the next "
			 "message",
			 line->webhook->shown, SHOWN_OF(tenant));
		err = notify_newest(notify, tenant, &line->seen_us, e);
	} else if (err == ERR_NOT_FOUND) {
		line->seen_us = err = 0;
	}
	line->noted_us = damaged ? INT64_MIN : line->seen_us;
	line->begun = !err;
	return err;
}

/* ---- Webhooks that are new ------------------------------------------------------------------- */

/* A webhook has a note of its own, which says that it is begun with: in the row of no tenant. */
static const struct slice notify_no_tenant = SLICE("*");

struct notify_beginning {
	struct notify *notify;
	bool is_new[NOTIFY_WEBHOOKS_MAX]; /* the webhook */
	struct errbuf *e;
};

static bool notify_has(const struct notify *notify, const struct webhook *webhook)
{
	return (webhook->way == WEBHOOK_MAILS) == notify->options.mails;
}

/* A new webhook is not sent the messages that the tenant has already. A note that is there stays,
 * also one that cannot be read (notify_begin). */
static int notify_see_tenant(const struct store_row *row, void *owner)
{
	struct notify_beginning *beginning = owner;
	struct notify *notify = beginning->notify;
	struct slice tenant = row->key.part[0];
	int64_t newest_us, seen_us;
	int err = notify_newest(notify, tenant, &newest_us, beginning->e);
	for (size_t i = 0; i < notify->options.count && !err; i++) {
		const struct webhook *webhook = &notify->options.webhooks[i];
		if (!beginning->is_new[i] ||
		    (webhook->tenant && !slice_equal(slice_of(webhook->tenant), tenant)))
			continue;
		err = notify_read_note(notify, tenant, webhook, &seen_us);
		if (err == ERR_NOT_FOUND)
			err = notify_write_note(notify, tenant, webhook, newest_us);
		err = err == ERR_DAMAGED ? 0 : err;
	}
	return err;
}

/* Once for each webhook: all its tenants that have messages get a note. Then a tenant without one
 * is a new tenant. */
static int notify_begin_webhooks(struct notify *notify, struct errbuf *e)
{
	const struct fault_site *site = fault_site_of(notify->options.fault);
	struct notify_beginning beginning = {.notify = notify, .e = e};
	int64_t seen_us;
	bool any = false;
	int err = 0;
	for (size_t i = 0; i < notify->options.count && !err; i++) {
		const struct webhook *webhook = &notify->options.webhooks[i];
		if (!notify_has(notify, webhook))
			continue;
		err = notify_read_note(notify, notify_no_tenant, webhook, &seen_us);
		beginning.is_new[i] = err == ERR_NOT_FOUND;
		any |= beginning.is_new[i];
		err = beginning.is_new[i] || err == ERR_DAMAGED ? 0 : err;
	}
	if (!err && any)
		err = store_rows_wait(site->store, job_queue(notify->running),
				      clock_wall_ms(site->clock), TABLE_FAULT_MESSAGES,
				      notify_see_tenant, &beginning, e);
	for (size_t i = 0; i < notify->options.count && !err; i++)
		if (beginning.is_new[i])
			err = notify_write_note(notify, notify_no_tenant,
						&notify->options.webhooks[i], 0);
	return err;
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* A line for people. */
static void notify_put_line(const struct fault_message *message, struct slice tenant,
			    struct buf *text)
{
	static const char *const whats[] = {[FAULT_NEW_GROUP] = "New fault",
					    [FAULT_REGRESSED] = "A resolved fault is back",
					    [FAULT_UNMUTED] = "A muted fault is frequent",
					    [FAULT_RISEN] = "A fault is more frequent than usual",
					    [FAULT_DAY_OVER] = "The day is over",
					    [FAULT_HELD_BACK] = "Messages were held back"};
	buf_printf(text, "%s (%.*s", whats[message->kind], (int)tenant.len, tenant.data);
	if (message->environment.len)
		buf_printf(text, ", %.*s", (int)message->environment.len,
			   message->environment.data);
	struct slice about = message->title.len ? message->title : message->group;
	if (about.len)
		buf_printf(text, "): %.*s", (int)about.len, about.data);
	else
		buf_printf(text, "): %llu %s", (unsigned long long)message->count,
			   message->kind == FAULT_HELD_BACK ? "messages" : "reports");
}

/* Control characters from there on become blanks: what a sender wrote makes no lines of its own. */
static void notify_blank(struct buf *text, size_t begin)
{
	for (size_t i = begin; i < text->len; i++)
		if ((unsigned char)text->data[i] < ' ')
			text->data[i] = ' ';
}

static void notify_put_fact(struct buf *text, const char *name, struct slice value)
{
	size_t begin = text->len;
	if (!value.len)
		return;
	buf_printf(text, "%-13s%.*s", name, (int)value.len, value.data);
	notify_blank(text, begin);
	buf_append_char(text, '\n');
}

static void notify_put_facts(const struct fault_message *message, struct buf *text)
{
	notify_put_fact(text, "group", message->group);
	notify_put_fact(text, "report", message->report);
	notify_put_fact(text, "environment", message->environment);
	notify_put_fact(text, "level", message->level);
	notify_put_fact(text, "release", message->release);
	if (message->group.len)
		buf_printf(text, "%-13s%llu\n", "reports", (unsigned long long)message->count);
}

/* The daily report, of a day that is over. */
static int notify_put_day(struct notify *notify, struct notify_line *line, int64_t of_us,
			  struct buf *text, struct errbuf *e)
{
	struct fault_daily daily;
	const struct fault_daily_question question = {.tenant = fault_book_tenant(line->book),
						      .day = fault_day_of(of_us),
						      .deadline_us = notify_now_us(notify) +
								     NOTIFY_DAILY_US};
	int err = fault_daily_read(notify->options.fault, job_queue(notify->running), &question,
				   &daily, e);
	if (!err)
		fault_daily_put_text(&daily, text);
	fault_daily_release(&daily);
	return err;
}

static int notify_mail(struct notify *notify, struct notify_line *line,
		       const struct fault_message *message, const char *id, struct errbuf *e)
{
	struct clock *clock = fault_site_of(notify->options.fault)->clock;
	struct buf subject, text;
	int err = 0;
	buf_init(&subject, NOTIFY_BODY_MAX_BYTES);
	buf_init(&text, NOTIFY_MAIL_MAX_BYTES);
	notify_put_line(message, fault_book_tenant(line->book), &subject);
	notify_blank(&subject, 0);
	buf_append(&text, subject.data, subject.len);
	buf_append_text(&text, "\n\n");
	if (message->kind == FAULT_DAY_OVER)
		err = notify_put_day(notify, line, message->of_us, &text, e);
	else
		notify_put_facts(message, &text);
	if (!err)
		posts_start_mail(notify->posts,
				 &(struct post_mail){.server = notify->options.mail_server,
						     .from = notify->options.mail_from,
						     .to = line->webhook->url,
						     .id = id,
						     .subject = buf_slice(&subject),
						     .wall_s = clock_wall_ms(clock) / 1000,
						     .text = buf_slice(&text)},
				 line);
	buf_release(&subject);
	buf_release(&text);
	return err;
}

/* The body of what is posted and published. */
static void notify_put_json(struct notify_line *line, const struct fault_message *message,
			    struct buf *body)
{
	struct slice tenant = fault_book_tenant(line->book);
	struct json_writer json;
	struct buf text;
	buf_init(&text, NOTIFY_BODY_MAX_BYTES);
	notify_put_line(message, tenant, &text);
	json_writer_init(&json, body);
	json_write_object_begin(&json);
	fault_message_put_json(&json, message);
	json_write_key(&json, "tenant");
	json_write_string(&json, tenant);
	json_write_key(&json, "text");
	json_write_string(&json, buf_slice(&text));
	json_write_object_end(&json);
	ASSERT(!body->failed); /* a message's texts are short */
	buf_release(&text);
}

static void notify_post(struct notify *notify, struct notify_line *line, const char *id,
			struct slice body)
{
	struct clock *clock = fault_site_of(notify->options.fault)->clock;
	posts_start(notify->posts,
		    &(struct post_message){.url = line->webhook->url,
					   .id = id,
					   .body = body,
					   .secret = notify->options.secret,
					   .wall_s = clock_wall_ms(clock) / 1000},
		    line);
}

static int notify_publish(struct notify *notify, struct notify_line *line,
			  const struct fault_message *message, const char *id, struct slice body,
			  struct errbuf *e)
{
	const struct webhook *webhook = line->webhook;
	const struct broker_publication publication = {
		.exchange = webhook->exchange ? webhook->exchange : "",
		.key = webhook->key ? webhook->key : "",
		.id = id,
		.type = fault_message_kinds[message->kind],
		.made_s = floor_div(message->made_us, 1000000),
		.body = body,
	};
	return posts_start_publishing(notify->posts, &webhook->broker, &publication, line, e);
}

static int notify_send(struct notify *notify, struct notify_line *line,
		       const struct fault_message *message, struct errbuf *e)
{
	char id[FAULT_MESSAGE_ID_BYTES + 1];
	struct buf body;
	int err = 0;
	snprintf(id, sizeof(id), "%.*s", (int)message->id.len, message->id.data);
	buf_init(&body, NOTIFY_BODY_MAX_BYTES);
	if (line->webhook->way != WEBHOOK_MAILS)
		notify_put_json(line, message, &body);
	switch (line->webhook->way) {
	case WEBHOOK_POSTS:
		notify_post(notify, line, id, buf_slice(&body));
		break;
	case WEBHOOK_MAILS:
		err = notify_mail(notify, line, message, id, e);
		break;
	case WEBHOOK_PUBLISHES:
		err = notify_publish(notify, line, message, id, buf_slice(&body), e);
		break;
	}
	buf_release(&body);
	line->sending = !err;
	*line->webhook_sending += !err;
	return err;
}

/* The message is done with. */
static void notify_pass_over(struct notify_line *line)
{
	line->seen_us = line->list.list[--line->left].date_us;
	line->tries = 0;
	line->due_us = 0;
}

static void notify_fail(struct notify *notify, struct notify_line *line, const char *reason)
{
	const struct fault_message *message = &line->list.list[line->left - 1];
	struct slice tenant = fault_book_tenant(line->book);
	stat_add(STAT_webhooks_failed, 1);
	if (line->tries == 0)
		log_rated(&notify->logs, notify_now_us(notify) / 1000, LOG_WARN,
			  "webhooks: %s has not taken a message of tenant " SHOWN
			  ": %s; the server tries again",
			  line->webhook->shown, SHOWN_OF(tenant), reason);
	if (line->tries < ARRAY_LEN(notify_rests_us)) {
		line->due_us = notify_now_us(notify) + notify_rests_us[line->tries++];
		return;
	}
	log_warn("webhooks: message " SHOWN " of tenant " SHOWN " is not sent to %s any more: %s",
		 SHOWN_OF(message->id), SHOWN_OF(tenant), line->webhook->shown, reason);
	stat_add(STAT_webhooks_given_up, 1);
	notify_pass_over(line);
}

static void notify_take_results(struct notify *notify)
{
	struct post_result result;
	while (posts_take(notify->posts, &result)) {
		struct notify_line *line = result.owner;
		line->sending = false;
		--*line->webhook_sending;
		if (!result.taken) {
			notify_fail(notify, line, result.reason);
			continue;
		}
		stat_add(STAT_webhooks_sent, 1);
		notify_pass_over(line);
	}
}

/* ---- A line ---------------------------------------------------------------------------------- */

/* Messages that are not done yet, if there may be some. */
static int notify_read(struct notify *notify, struct notify_line *line, struct errbuf *e)
{
	const struct fault_site *site = fault_site_of(notify->options.fault);
	const struct fault_message_filter filter = {.from_us = INT64_MIN,
						    .after_us = line->seen_us,
						    .to_us = INT64_MAX,
						    .kind = -1,
						    .limit = NOTIFY_LIST_MAX,
						    .oldest = true};
	uint64_t made = fault_messages_made(notify->options.fault);
	int64_t now_us = notify_now_us(notify);
	if (line->made == made && now_us < line->look_us)
		return 0;
	fault_message_list_release(&line->list);
	int err = fault_messages_list(site, job_queue(notify->running),
				      fault_book_tenant(line->book), &filter, &line->list, e);
	line->left = err ? 0 : line->list.count;
	if (!err && !line->list.cut) {
		line->made = made;
		line->look_us = now_us + NOTIFY_LOOK_US;
	}
	return err;
}

/* Nothing is answered while a daily report is made, so it waits until no mail is under way. */
static bool notify_has_room(const struct notify *notify, const struct notify_line *line)
{
	const struct fault_message *message = &line->list.list[line->left - 1];
	size_t under_way = 0;
	if (*line->webhook_sending >= NOTIFY_SENDING_MAX)
		return false;
	if (!notify->options.mails)
		return true;
	for (size_t i = 0; i < notify->options.count; i++)
		under_way += notify->sending[i];
	return message->kind == FAULT_DAY_OVER ? !under_way : under_way < NOTIFY_MAILS_MAX;
}

/* The next message that it wants is sent; those before it are passed over. */
static int notify_go_on(struct notify *notify, struct notify_line *line, struct errbuf *e)
{
	int err = line->begun ? 0 : notify_begin(notify, line, e);
	if (!err && !line->left)
		err = notify_read(notify, line, e);
	while (!err && line->left &&
	       !webhook_wants(line->webhook, &line->list.list[line->left - 1]))
		notify_pass_over(line);
	if (!err && line->noted_us != line->seen_us)
		err = notify_write_note(notify, fault_book_tenant(line->book), line->webhook,
					line->seen_us);
	if (!err)
		line->noted_us = line->seen_us;
	if (err || !line->left || !notify_has_room(notify, line))
		return err;
	err = notify_send(notify, line, &line->list.list[line->left - 1], e);
	/* A daily report that cannot be made is not waited for without an end. */
	if (err && err != ERR_CANCELLED)
		notify_fail(notify, line, e->text[0] ? e->text : err_text(err));
	return err == ERR_CANCELLED ? err : 0;
}

/* Another process may have sent meanwhile, or it is a tenant's first time. */
static void notify_forget(struct notify_line *line)
{
	fault_message_list_release(&line->list);
	line->left = 0;
	line->begun = false;
	line->look_us = 0;
}

static void notify_look_at(struct notify *notify, struct notify_line *line)
{
	struct errbuf e = {""};
	if (line->sending || notify_now_us(notify) < line->due_us)
		return;
	if (!fault_book_is_owned(line->book)) {
		notify_forget(line);
		return;
	}
	int err = notify_go_on(notify, line, &e);
	if (!err || err == ERR_CANCELLED)
		return;
	line->due_us = notify_now_us(notify) + notify_rests_us[0];
	log_rated(&notify->logs, notify_now_us(notify) / 1000, LOG_WARN,
		  "webhooks: messages of tenant " SHOWN " are not sent: %s; the server tries again",
		  SHOWN_OF(fault_book_tenant(line->book)), e.text[0] ? e.text : err_text(err));
}

/* ---- The job --------------------------------------------------------------------------------- */

static void notify_add_line(struct notify *notify, size_t number, struct fault_book *book)
{
	const struct webhook *webhook = &notify->options.webhooks[number];
	struct slice tenant = fault_book_tenant(book);
	for (size_t i = 0; i < notify->count; i++)
		if (notify->lines[i]->webhook == webhook && notify->lines[i]->book == book)
			return;
	if (!notify_has(notify, webhook) ||
	    (webhook->tenant && !slice_equal(slice_of(webhook->tenant), tenant)))
		return;
	if (notify->count == NOTIFY_LINES_MAX) {
		log_rated(&notify->logs, notify_now_us(notify) / 1000, LOG_WARN,
			  "webhooks: %s is not sent the messages of tenant " SHOWN
			  ": webhooks have %d tenants to look after already",
			  webhook->shown, SHOWN_OF(tenant), NOTIFY_LINES_MAX);
		return;
	}
	struct notify_line *line = mem_zalloc(sizeof(*line));
	*line = (struct notify_line){
		.webhook = webhook, .webhook_sending = &notify->sending[number], .book = book};
	GROW(notify->lines, notify->room, notify->count + 1);
	notify->lines[notify->count++] = line;
}

/* Books are only added. */
static void notify_add_lines(struct notify *notify)
{
	size_t count;
	struct fault_book **books = fault_copy_books(notify->options.fault, &count);
	for (size_t i = 0; i < count && count != notify->book_count; i++)
		for (size_t n = 0; n < notify->options.count; n++)
			notify_add_line(notify, n, books[i]);
	notify->book_count = count;
	mem_free(books);
}

/* Returns when that is done, or the job is to end. */
static void notify_begin_all(struct notify *notify)
{
	struct errbuf e = {""};
	int err = notify_begin_webhooks(notify, &e);
	while (err && err != ERR_CANCELLED &&
	       !job_sleep(notify->running, notify_rests_us[0] / 1000)) {
		log_rated(&notify->logs, notify_now_us(notify) / 1000, LOG_WARN,
			  "webhooks: nothing is sent, since how far they are cannot be read or "
			  "written: %s; the server tries again",
			  e.text[0] ? e.text : err_text(err));
		err = notify_begin_webhooks(notify, &e);
	}
}

static void notify_run(struct job *job, void *owner)
{
	struct notify *notify = owner;
	notify->running = job;
	notify_begin_all(notify);
	notify->posts = posts_new(job, &notify->sockets, notify->options.internal);
	while (!job_is_stopping(job)) {
		notify_add_lines(notify);
		for (size_t i = 0; i < notify->count && !job_is_stopping(job); i++)
			notify_look_at(notify, notify->lines[i]);
		posts_wait(notify->posts, NOTIFY_EVERY_MS);
		notify_take_results(notify);
	}
	posts_free(notify->posts);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void notify_over(void *owner)
{
	struct notify *notify = owner;
	job_free(notify->job);
	notify->job = NULL;
}

struct notify *notify_start(const struct notify_options *options)
{
	struct notify *notify = mem_zalloc(sizeof(*notify));
	ASSERT(options->count && options->count <= NOTIFY_WEBHOOKS_MAX);
	notify->options = *options;
	notify->logs = (struct log_rate){.lines_max = NOTIFY_LOGS_A_MINUTE};
	post_sockets_init(&notify->sockets);
	int err = job_start(options->mails ? "mail" : "webhooks", notify_run, notify_over, notify,
			    options->executor, &notify->job);
	ASSERT(!err); /* one of the first */
	return notify;
}

void notify_stop(struct notify *notify)
{
	if (!notify->job)
		return;
	job_stop(notify->job);
	post_sockets_shut(&notify->sockets);
}

bool notify_is_over(const struct notify *notify)
{
	return !notify->job;
}

void notify_free(struct notify *notify)
{
	if (!notify)
		return;
	ASSERT(notify_is_over(notify));
	for (size_t i = 0; i < notify->count; i++) {
		fault_message_list_release(&notify->lines[i]->list);
		mem_free(notify->lines[i]);
	}
	mem_free(notify->lines);
	post_sockets_release(&notify->sockets);
	mem_free(notify);
}
