/* Of the model of faults: who sends reports, and what is in them. */
#include "fault_model.h"

#include "fault/pack.h"

static const struct slice contexts[CONTEXTS] = {SLICE(""), SLICE("c"), SLICE("c:1"), SLICE("c\\2")};
static const struct slice exceptions[EXCEPTIONS] = {SLICE(""), SLICE("E"), SLICE("F:x"),
						    SLICE("G\x01")};
/* As doc/format-faults.md escapes them. */
static const char *const names[CONTEXTS][EXCEPTIONS] = {
	{":", ":E", ":F\\:x", ":G\\x01"},
	{"c:", "c:E", "c:F\\:x", "c:G\\x01"},
	{"c\\:1:", "c\\:1:E", "c\\:1:F\\:x", "c\\:1:G\\x01"},
	{"c\\\\2:", "c\\\\2:E", "c\\\\2:F\\:x", "c\\\\2:G\\x01"},
};

static const struct slice groups[GROUPS] = {SLICE("1-a"), SLICE("1-b"), SLICE("1-c"), SLICE("1-d"),
					    SLICE("")};
static const struct slice users[USERS] = {SLICE("anna"), SLICE(""), SLICE("bob")};
/* Reports have their user in a tag, too, and another tag. */
static const struct slice tags[USERS] = {SLICE("who\xff"
					       "anna\xfe"
					       "a\xff"
					       "b"),
					 SLICE(""),
					 SLICE("a\xff"
					       "b\xfe"
					       "who\xff"
					       "bob")};

struct slice group_name(unsigned group)
{
	return groups[group];
}

struct content content_of(unsigned content)
{
	unsigned context = content % CONTEXTS, exception = content / CONTEXTS % EXCEPTIONS;
	return (struct content){
		.context = contexts[context],
		.exception = exceptions[exception],
		.group = groups[content % GROUPS],
		.user = users[content / GROUPS % USERS],
		.tags = tags[content / GROUPS % USERS],
		.name = names[context][exception],
		.duration_us = content % 5 ? (int64_t)(content * 37 % 7) * 1000 : -1,
		.statements = content % 3 ? (int64_t)(content * 11 % 4) : -1,
	};
}

unsigned context_of(struct slice text)
{
	unsigned i = 0;
	while (i < CONTEXTS && !slice_equal(contexts[i], text))
		i++;
	return i;
}

unsigned exception_of(struct slice text)
{
	unsigned i = 0;
	while (i < EXCEPTIONS && !slice_equal(exceptions[i], text))
		i++;
	return i;
}

unsigned id_of(struct slice text)
{
	unsigned id;
	char copy[24];
	snprintf(copy, sizeof(copy), SHOWN, SHOWN_OF(text));
	return sscanf(copy, "id%u", &id) == 1 && id < IDS_MAX ? id : IDS_MAX;
}

/* Mostly one of those that others use at the moment, too. */
static unsigned some_id(struct model *m)
{
	unsigned newest = m->next_id;
	if (chance(m, m->reuse))
		return newest - (unsigned)pick(m, newest < m->ids ? newest + 1 : m->ids);
	if (!m->collects && chance(m, 3))
		return (unsigned)pick(m, newest + 1);
	if (newest + 1 < IDS_MAX)
		m->next_id++;
	return m->next_id;
}

struct slice body_of(unsigned id, char to[BODY_BYTES])
{
	snprintf(to, BODY_BYTES, "\"id%u w%u\"", id, id % WORDS);
	return slice_of(to);
}

static void choose_report(struct model *m, struct report *report)
{
	struct buf packed;
	report->id = some_id(m);
	report->content = (unsigned)pick(m, m->contents);
	snprintf(report->text, sizeof(report->text), "id%u", report->id);
	buf_init(&packed, 1024);
	report->dictionary = fault_pack(body_of(report->id, report->body), &packed);
	ASSERT(!packed.failed && packed.len <= sizeof(report->packed));
	report->packed_len = packed.len;
	memcpy(report->packed, packed.data, packed.len);
	buf_release(&packed);
}

static void choose_reports(struct client *c)
{
	struct model *m = c->model;
	c->tenant = (unsigned)pick(m, TENANTS * 2) % (TENANTS + 1) % TENANTS;
	c->count = chance(m, m->many) ? 1 + pick(m, ITEMS) : 1;
	for (size_t i = 0; i < c->count; i++) {
		choose_report(m, &c->reports[i]);
		m->sent[c->tenant][c->reports[i].id] = true;
	}
}

static void note_ack(struct client *c, size_t i)
{
	struct model *m = c->model;
	const struct report *report = &c->reports[i];
	ASSERT(m->ack_count < ACKS_MAX);
	m->acks[m->ack_count++] = (struct ack){
		.tenant = c->tenant,
		.id = report->id,
		.content = report->content,
		.outcome = c->items[i].outcome,
		.date_us = c->items[i].date_us,
	};
}

static void on_done(struct fault_submission *submission)
{
	static const char *const outcomes[] = {"taken", "repeated", "conflict", "removed",
					       "failed"};
	struct client *c = submission->owner;
	struct model *m = c->model;
	struct process *p = c->process;
	size_t left = 0;
	c->process = NULL;
	for (size_t i = 0; i < c->count; i++) {
		const struct fault_item *item = &c->items[i];
		trace(m, "client %zu: %s/id%u.%u by %s %s, error %d, date %lld",
		      (size_t)(c - m->clients), tenant_names[c->tenant].data, c->reports[i].id,
		      c->reports[i].content, p->name, outcomes[item->outcome],
		      item->outcome == FAULT_FAILED ? item->err : 0, (long long)item->date_us);
		if (item->outcome != FAULT_FAILED)
			note_ack(c, i);
	}
	for (size_t i = 0; i < c->count; i++) {
		if (c->items[i].outcome != FAULT_FAILED)
			continue;
		struct report report = c->reports[i];
		c->reports[left++] = report;
	}
	c->count = left;
	c->waits = left > 0 && chance(m, 80);
}

void client_begin(struct client *c)
{
	struct model *m = c->model;
	struct process *p = &m->processes[pick(m, m->takers)];
	if (c->process || p->frozen)
		return;
	if (!c->waits)
		choose_reports(c);
	c->waits = true;
	for (size_t i = 0; i < c->count; i++) {
		static const struct fault_attachment file = {
			.name = SLICE("f"), .type = SLICE(""), .kept = true, .packed = SLICE("f")};
		const struct content content = content_of(c->reports[i].content);
		c->items[i] = (struct fault_item){
			.id = slice_of(c->reports[i].text),
			.digest = {c->reports[i].content, 77},
			.facts = {.duration_us = content.duration_us,
				  .statements = content.statements,
				  .attachments = c->reports[i].content % 2},
			.attachments = &file,
			.dictionary = c->reports[i].dictionary,
			.body_bytes = strlen(c->reports[i].body),
			.packed = {c->reports[i].packed, c->reports[i].packed_len},
			.date_us = INT64_MIN,
		};
		for (size_t t = 0; t < FAULT_TEXTS; t++)
			c->items[i].facts.texts[t] = SLICE("");
		c->items[i].facts.texts[FAULT_CONTEXT] = content.context;
		c->items[i].facts.texts[FAULT_EXCEPTION] = content.exception;
		c->items[i].facts.texts[FAULT_GROUP] = content.group;
		c->items[i].facts.texts[FAULT_USER] = content.user;
		c->items[i].facts.texts[FAULT_TAGS] = content.tags;
	}
	c->submission = (struct fault_submission){
		.tenant = tenant_names[c->tenant],
		.items = c->items,
		.count = c->count,
		.done = on_done,
		.owner = c,
	};
	c->process = p;
	for (size_t i = 0; i < c->count; i++)
		trace(m, "client %zu: %s/id%u.%u to %s", (size_t)(c - m->clients),
		      tenant_names[c->tenant].data, c->reports[i].id, c->reports[i].content,
		      p->name);
	if (fault_intake_submit(p->intake, &c->submission))
		c->process = NULL;
}
