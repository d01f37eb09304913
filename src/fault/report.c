/* From a document to a report, in this order:
 *
 *     sort        the members of all objects, so that equal content is equal text
 *     digest      of that text, before anything is taken away
 *     unpack      a timeline that is a text of JSON
 *     mask        the whole tree: nothing below sees a secret but the id, which is an address
 *     add         of an event of Sentry's clients what it says in the words of a report
 *     map         members to attributes: names of dialects, the request's variables, long names
 *     shape       values of known attributes: texts, the duration, the timeline; the facts
 *     group       of what the body will have, so that it can be found again from there
 *     write       the body, with what of the report was refused
 *
 * Where the arena ends, the rest is gone through without it, and the end says so. */
#include "fault/report.h"

#include <inttypes.h>
#include <math.h>

#include "base/utf8.h"
#include "base/visible.h"
#include "fault/attributes.h"
#include "fault/canonical.h"
#include "fault/group.h"
#include "fault/sentry.h"
#include "fault/tags.h"
#include "fault/timeline.h"
#include "wire/number.h"

enum {
	REPORT_NAME_HASH_BYTES = 33, /* ~ and 32 digits */
	/* The text of the digest has escapes and decimals that the document does not have. */
	REPORT_DIGEST_FACTOR = 8,
	REPORT_ROOM_BYTES = 16 << 10,
	REPORT_DURATION_MAX_DAYS = 366,
	REPORT_LEVELS_MAX = JSON_DEPTH_MAX - 1, /* of an attribute: the body can be read again */
};

/* The attribute that says what was refused. The sender's own has another name (attributes.c). */
static const struct slice report_refused_name = SLICE("refused");

struct report_attribute {
	struct slice name;
	struct json *value;
	const struct fault_attribute *known; /* NULL: it is not */
	enum fault_named how;
	size_t place; /* in the document */
	bool dropped;
};

struct report_reading {
	const struct fault_report_options *options;
	enum fault_dialect dialect;
	struct arena *arena;
	struct fault_report *report;
	struct report_attribute *attributes;
	size_t count, places;
	struct slice given_id; /* by the sender, beside the document or in it; no data: none */
	bool keeps_id;         /* the document's, as reported.id */
	bool cut;              /* the document; then the report has an id of its own */
	bool arena_full;
	struct errbuf *e;
};

/* ---- What is refused ------------------------------------------------------------------------ */

static void report_refuse(struct report_reading *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void report_refuse(struct report_reading *r, const char *fmt, ...)
{
	char sentence[sizeof(((struct errbuf *)NULL)->text)];
	if (r->report->refused_count++ >= FAULT_REFUSED_MAX)
		return;
	va_list args;
	va_start(args, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, args);
	va_end(args);
	struct slice copy = arena_copy(r->arena, slice_of(sentence));
	r->arena_full |= !copy.data;
	r->report->refused[r->report->refused_count - 1] = copy;
}

static int report_no_memory(struct report_reading *r)
{
	return errbuf_set(r->e, ERR_LIMIT, "the report needs more memory than it may have");
}

static int report_too_large(struct report_reading *r)
{
	return errbuf_set(r->e, ERR_LIMIT, "the report has more than %zu bytes",
			  r->options->body_max_bytes);
}

static int report_too_deep(struct report_reading *r)
{
	return errbuf_set(r->e, ERR_LIMIT, "the report nests deeper than %d", JSON_DEPTH_MAX);
}

/* ---- Id ------------------------------------------------------------------------------------- */

static bool report_id_takes(const uint8_t *p, size_t len)
{
	if (len == 1)
		return *p > ' ' && *p != 0x7f && *p != '/';
	return len && !visible_is_command(utf8_code(p, len));
}

/* Addresses under /oops/ that are no reports. */
static bool report_id_is_taken(struct slice id)
{
	static const struct slice names[] = {SLICE("days"), SLICE("groups"), SLICE("live"),
					     SLICE("messages"), SLICE("projects")};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (slice_equal(id, names[i]))
			return true;
	return false;
}

bool fault_id_valid(struct slice id)
{
	if (!id.len || id.len > FAULT_ID_MAX_BYTES || slice_equal(id, SLICE(".")) ||
	    slice_equal(id, SLICE("..")) || report_id_is_taken(id))
		return false;
	const uint8_t *p = (const uint8_t *)id.data;
	for (size_t at = 0, len; at < id.len; at += len) {
		len = utf8_length(p + at, id.len - at);
		if (!report_id_takes(p + at, len))
			return false;
	}
	return true;
}

static struct slice report_document_id(const struct json *document, const char *name)
{
	const struct json *id = json_member(document, name);
	if (id && (id->type == JSON_T_STRING || id->type == JSON_T_NUMBER))
		return id->text;
	return (struct slice){NULL, 0};
}

/* Which id the sender gives. The `id` of an event of Sentry is some member of its own. A report
 * that is cut does not have the id of the whole one, which may still come. */
static void report_choose_id(struct report_reading *r, const struct json *document,
			     struct slice beside)
{
	const struct slice none = {NULL, 0};
	const struct json *member = json_member(document, "id");
	bool is_event = r->dialect == FAULT_OF_SENTRY;
	struct slice own = is_event ? none : report_document_id(document, "id");
	r->given_id = beside.data ? beside : fault_id_valid(own) ? own : none;
	r->cut = document->mended == JSON_CUT;
	/* What stands in the document is kept: as reported.id, or as event_id. */
	struct slice kept = report_document_id(document, is_event ? "event_id" : "id");
	if (r->cut && beside.data && !slice_equal(beside, kept))
		report_refuse(r,
			      "id: \"" SHOWN
			      "\" is that of the whole report, so the report has another",
			      SHOWN_OF(beside));
	r->given_id = r->cut ? none : r->given_id;
	r->keeps_id = member && member->type != JSON_T_NULL &&
		      (!r->given_id.data || !slice_equal(r->given_id, own));
	const struct json *event_id = is_event ? json_member(document, "event_id") : NULL;
	if (!beside.data && event_id && event_id->type != JSON_T_NULL)
		report_refuse(r, "event_id: it is not 32 hexadecimal digits, so the report has "
				 "another id");
	if (!r->given_id.data && r->keeps_id && !is_event)
		report_refuse(r, "id: it %s, so the report has another; it is kept as reported.id",
			      r->cut ? "is that of the whole report" : "cannot be one");
}

/* Before masking: what would be hidden in it would be another id. */
static void report_take_id(struct report_reading *r)
{
	struct fault_report *report = r->report;
	report->id_given = r->given_id.data != NULL;
	if (report->id_given) {
		report->id = arena_copy(r->arena, r->given_id);
		r->arena_full |= !report->id.data;
		return;
	}
	char *made = arena_printf(r->arena, "OOPS-%016" PRIx64 "%016" PRIx64, report->digest.high,
				  report->digest.low);
	r->arena_full |= !made;
	if (made)
		report->id = slice_of(made);
}

/* ---- Members in order, and the digest ------------------------------------------------------- */

static int report_by_name(const void *a, const void *b)
{
	const struct report_attribute *x = a, *y = b;
	int order = slice_compare(x->name, y->name);
	return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* Of those with one name the last remains. */
static void report_sort(struct report_reading *r)
{
	qsort(r->attributes, r->count, sizeof(*r->attributes), report_by_name);
	struct report_attribute *last = NULL;
	for (struct report_attribute *a = r->attributes; a < r->attributes + r->count; a++) {
		if (a->dropped)
			continue;
		if (last && slice_equal(last->name, a->name))
			last->dropped = true;
		last = a;
	}
}

static size_t report_child_count(const struct json *node)
{
	size_t count = 0;
	for (const struct json *child = node->first; child; child = child->next)
		count++;
	return count;
}

/* Room for all that there can be: members, the request's variables, which become attributes, and
 * what an event says in the words of a report. */
static int report_list_members(struct report_reading *r, struct json *document)
{
	size_t max = report_child_count(document) + fault_attribute_count;
	const struct json *variables = json_member(document, "req_vars");
	if (variables)
		max += report_child_count(variables);
	r->attributes = arena_alloc(r->arena, max * sizeof(*r->attributes));
	if (!r->attributes)
		return report_no_memory(r);
	for (struct json *member = document->first; member; member = member->next) {
		r->attributes[r->count] = (struct report_attribute){
			.name = member->key, .value = member, .place = r->places++};
		r->count++;
		int err = canonical_sort(member, REPORT_LEVELS_MAX, r->arena);
		if (err)
			return err == ERR_INVALID ? report_too_deep(r) : report_no_memory(r);
	}
	report_sort(r);
	return 0;
}

/* What is no content: the id, unless the report has another one, as one that is cut has; and what
 * python-oops notes of where it read the report. */
static bool report_is_content(const struct report_reading *r, struct slice name)
{
	if (r->dialect == FAULT_OF_SENTRY)
		return !r->given_id.data || !slice_equal(name, SLICE("event_id"));
	return (r->keeps_id || !slice_equal(name, SLICE("id"))) &&
	       !slice_equal(name, SLICE("datedir_repo_filepath"));
}

/* For most reports at once, so that it need not grow. */
static void report_make_room(struct buf *text)
{
	char *room = buf_reserve(text, (size_t)smaller_of(REPORT_ROOM_BYTES, (int64_t)text->max));
	ASSERT(room || !text->max);
}

static int report_make_digest(struct report_reading *r)
{
	struct buf text;
	struct json_writer writer;
	buf_init(&text, REPORT_DIGEST_FACTOR * r->options->body_max_bytes);
	report_make_room(&text);
	json_writer_init(&writer, &text);
	json_write_object_begin(&writer);
	for (const struct report_attribute *a = r->attributes; a < r->attributes + r->count; a++) {
		if (a->dropped || !report_is_content(r, a->name))
			continue;
		json_write_key_slice(&writer, a->name);
		json_write_tree(&writer, a->value);
	}
	json_write_object_end(&writer);
	r->report->digest = hash128(text.data, text.len, r->options->digest_key);
	int err = text.failed ? report_too_large(r) : 0;
	buf_release(&text);
	return err;
}

/* ---- Names ---------------------------------------------------------------------------------- */

static void report_add(struct report_reading *r, struct slice name, struct json *value)
{
	static const struct slice prefix = {"REQUEST.", 8};
	char *whole = arena_alloc(r->arena, prefix.len + name.len);
	r->arena_full |= !whole;
	if (!whole)
		return;
	memcpy(whole, prefix.data, prefix.len);
	if (name.len)
		memcpy(whole + prefix.len, name.data, name.len);
	r->attributes[r->count] = (struct report_attribute){
		.name = {whole, prefix.len + name.len}, .value = value, .place = r->places++};
	r->attributes[r->count].known =
		fault_attribute_find(r->attributes[r->count].name, &r->attributes[r->count].how);
	r->count++;
}

static bool report_is_pair(const struct json *item)
{
	return item->type == JSON_T_ARRAY && item->first && item->first->type == JSON_T_STRING &&
	       item->first->next && !item->first->next->next;
}

/* The pairs become attributes; what is none stays. */
static void report_take_pairs(struct report_reading *r, struct json *list)
{
	struct json **tail = &list->first;
	list->count = 0;
	for (struct json *item = list->first, *next; item; item = next) {
		next = item->next;
		if (report_is_pair(item)) {
			report_add(r, item->first->text, item->first->next);
			continue;
		}
		*tail = item;
		tail = &item->next;
		list->count++;
	}
	*tail = NULL;
}

static void report_unpack_request(struct report_reading *r, struct report_attribute *variables)
{
	struct json *value = variables->value;
	variables->known = NULL;
	if (value->type == JSON_T_NULL)
		return;
	if (value->type != JSON_T_OBJECT && value->type != JSON_T_ARRAY) {
		report_refuse(r, "req_vars: neither an object nor a list of pairs; it is kept as "
				 "it is");
		return;
	}
	if (value->type == JSON_T_ARRAY) {
		report_take_pairs(r, value);
	} else {
		for (struct json *member = value->first; member; member = member->next)
			report_add(r, member->key, member);
		value->first = NULL;
	}
	variables->dropped = !value->first;
	if (value->first)
		report_refuse(r,
			      "req_vars: %zu of its items are no pairs of a name and a value; "
			      "they are kept there",
			      value->count);
}

/* The places of rows, as bits, of which the document has an attribute. */
struct report_there {
	uint64_t named, sent;
};

static void report_map_one(struct report_reading *r, struct report_attribute *a,
			   const struct report_there *there)
{
	if (r->dialect != FAULT_OF_SENTRY && slice_equal(a->name, SLICE("req_vars"))) {
		report_unpack_request(r, a);
		return;
	}
	if (!a->known || a->how == FAULT_NAMED_SO)
		return;
	uint64_t bit = UINT64_C(1) << (a->known - fault_attributes);
	if (a->how == FAULT_NAMED_IN_PYTHON &&
	    (r->dialect == FAULT_OF_SENTRY || ((there->named | there->sent) & bit))) {
		a->known = NULL;
		return;
	}
	if (slice_equal(a->name, SLICE("id")) && !r->keeps_id) {
		a->dropped = true;
		return;
	}
	if (there->named & bit) {
		report_refuse(r, "%s: it is left out, since %s is there, too", a->known->sent,
			      a->known->name);
		a->dropped = true;
		return;
	}
	a->name = slice_of(a->known->name);
}

static void report_map(struct report_reading *r)
{
	struct report_there there = {0, 0};
	size_t members = r->count;
	for (size_t i = 0; i < members; i++) {
		struct report_attribute *a = &r->attributes[i];
		a->known = fault_attribute_find(a->name, &a->how);
		if (!a->known || a->dropped)
			continue;
		uint64_t bit = UINT64_C(1) << (a->known - fault_attributes);
		there.named |= a->how == FAULT_NAMED_SO ? bit : 0;
		there.sent |= a->how == FAULT_NAMED_AS_SENT ? bit : 0;
	}
	for (size_t i = 0; i < members; i++) {
		if (!r->attributes[i].dropped)
			report_map_one(r, &r->attributes[i], &there);
	}
}

static struct slice report_hashed_name(struct report_reading *r, struct slice name)
{
	struct hash128 hash = hash128(name.data, name.len, 0);
	size_t kept = utf8_cut(name, FAULT_ATTRIBUTE_MAX_BYTES - REPORT_NAME_HASH_BYTES);
	char *cut = arena_alloc(r->arena, kept + REPORT_NAME_HASH_BYTES + 1);
	r->arena_full |= !cut;
	if (!cut)
		return name;
	if (kept)
		memcpy(cut, name.data, kept);
	snprintf(cut + kept, REPORT_NAME_HASH_BYTES + 1, "~%016" PRIx64 "%016" PRIx64, hash.high,
		 hash.low);
	return (struct slice){cut, kept + REPORT_NAME_HASH_BYTES};
}

static void report_fit_names(struct report_reading *r)
{
	for (struct report_attribute *a = r->attributes; a < r->attributes + r->count; a++) {
		if (a->dropped || (a->name.len && a->name.len <= FAULT_ATTRIBUTE_MAX_BYTES))
			continue;
		report_refuse(r,
			      "the name \"" SHOWN "\" has %zu bytes and not 1 to %d: it is cut "
			      "and closed by a hash",
			      SHOWN_OF(a->name), a->name.len, FAULT_ATTRIBUTE_MAX_BYTES);
		a->name = report_hashed_name(r, a->name);
	}
}

/* Keys may have had secrets. */
static void report_take_masked_names(struct report_reading *r)
{
	for (size_t i = 0; i < r->count; i++)
		r->attributes[i].name = r->attributes[i].value->key;
}

/* ---- Events of Sentry's clients -------------------------------------------------------------- */

/* {"values": [...]} becomes the list, so that all clients' events have one shape. */
static void report_take_exceptions(struct report_attribute *a)
{
	const struct json *values = json_member(a->value, "values");
	if (a->value->type == JSON_T_STRING)
		return;
	a->name = fault_sentry_name(a->name);
	if (!values || values->type != JSON_T_ARRAY || a->value->first->next)
		return;
	a->value->type = JSON_T_ARRAY;
	a->value->first = values->first;
	a->value->count = values->count;
}

static bool report_has(const struct report_reading *r, struct slice name)
{
	for (size_t i = 0; i < r->count; i++) {
		if (!r->attributes[i].dropped && slice_equal(r->attributes[i].name, name))
			return true;
	}
	return false;
}

/* After masking: what is hidden in the event gives nothing. What is made of several parts of it is
 * masked by its own name, too. */
static void report_add_of_event(struct report_reading *r, const struct json *event)
{
	struct json *made = fault_sentry_attributes(event, r->arena);
	r->arena_full |= !made;
	if (!made)
		return;
	fault_mask_tree(r->options->masks, made, r->arena);
	const char *sentence;
	for (size_t at = 0; (sentence = fault_sentry_misshape(event, &at));)
		report_refuse(r, "%s", sentence);
	for (size_t i = 0; i < r->count; i++) {
		if (slice_equal(r->attributes[i].name, SLICE("exception")))
			report_take_exceptions(&r->attributes[i]);
	}
	for (struct json *member = made->first; member; member = member->next) {
		if (report_has(r, member->key))
			continue;
		r->attributes[r->count] = (struct report_attribute){
			.name = member->key, .value = member, .place = r->places++};
		r->count++;
	}
}

/* What was dropped goes; if it was doubled, that is said. */
static void report_drop(struct report_reading *r, bool doubled)
{
	size_t kept = 0;
	for (size_t i = 0; i < r->count; i++) {
		struct report_attribute *a = &r->attributes[i];
		if (!a->dropped)
			r->attributes[kept++] = *a;
		else if (doubled)
			report_refuse(r,
				      "\"" SHOWN "\" is there more than once: the last one "
				      "counts",
				      SHOWN_OF(a->name));
	}
	r->count = kept;
}

/* ---- What was mended ------------------------------------------------------------------------- */

/* A bit for each enum json_mended that is in the tree. */
static unsigned report_mended_in(const struct json *tree)
{
	unsigned found = tree->mended ? 1u << tree->mended : 0;
	for (const struct json *child = tree->first; found && child; child = child->next)
		found |= report_mended_in(child);
	return found;
}

static void report_name_mended(struct report_reading *r, const struct json *document)
{
	unsigned all = 0;
	for (size_t i = 0; document->mended && i < r->count; i++) {
		const struct report_attribute *a = &r->attributes[i];
		unsigned found = report_mended_in(a->value);
		all |= found;
		if (found & 1u << JSON_NOT_UTF8)
			report_refuse(r, SHOWN ": U+FFFD stands for what is not UTF-8",
				      SHOWN_OF(a->name));
		if (found & 1u << JSON_TOO_DEEP)
			report_refuse(r, SHOWN ": null stands for what nests deeper than %d",
				      SHOWN_OF(a->name), JSON_DEPTH_MAX);
		if (found & 1u << JSON_CUT)
			report_refuse(r,
				      SHOWN ": the report is cut within it, and what follows is "
					    "not there",
				      SHOWN_OF(a->name));
	}
	if (document->mended == JSON_CUT && !(all & 1u << JSON_CUT))
		report_refuse(r, "the report is cut, and what follows is not there");
}

/* ---- Values --------------------------------------------------------------------------------- */

/* A column of O may be a text of JSON. What it becomes is sorted as the rest is. */
static void report_unpack_timeline(struct report_reading *r, struct json *document)
{
	struct json *parsed, *timeline = NULL;
	for (struct json *member = document->first; member; member = member->next) {
		if (slice_equal(member->key, SLICE("timeline")))
			timeline = member;
	}
	if (!timeline || timeline->type != JSON_T_STRING || !timeline->text.len ||
	    timeline->text.data[0] != '[')
		return;
	int err = json_parse(timeline->text, r->arena, &parsed, NULL);
	if (!err)
		err = canonical_sort(parsed, REPORT_LEVELS_MAX, r->arena);
	r->arena_full |= err == ERR_LIMIT;
	if (err)
		return;
	timeline->type = JSON_T_ARRAY;
	timeline->first = parsed->first;
	timeline->count = parsed->count;
}

/* Numbers keep their digits. */
static void report_shape_text(struct report_reading *r, const struct report_attribute *a)
{
	struct json *value = a->value;
	char digits[NUMBER_PRINT_MAX_BYTES];
	switch (value->type) {
	case JSON_T_NULL:
	case JSON_T_STRING:
		return;
	case JSON_T_BOOL:
		value->text = value->boolean ? SLICE("true") : SLICE("false");
		break;
	case JSON_T_NUMBER:
		if (!value->text.len)
			value->text = arena_copy(
				r->arena,
				(struct slice){digits, number_print(digits, value->number)});
		r->arena_full |= !value->text.data;
		break;
	case JSON_T_ARRAY:
	case JSON_T_OBJECT:
		report_refuse(r, SHOWN ": it is no text, and is kept as it is", SHOWN_OF(a->name));
		return;
	}
	value->type = JSON_T_STRING;
}

/* A number, or a text that is one, as a number. False: neither. */
static bool report_read_number(struct json *value, double *number)
{
	struct slice text = value->text;
	if (value->type == JSON_T_NUMBER) {
		*number = value_as_f64(value->number);
		return true;
	}
	if (value->type != JSON_T_STRING || !text.len ||
	    number_parse_f64(text.data, text.data + text.len, number))
		return false;
	value->type = JSON_T_NUMBER;
	if (number_parse_json(text, &value->number)) {
		value->number = value_f64(*number);
		value->text = (struct slice){NULL, 0};
	}
	return true;
}

/* In the body and the facts it is ms and us, whatever the dialect has. */
static void report_shape_duration(struct report_reading *r, struct report_attribute *a)
{
	bool seconds = r->dialect == FAULT_OF_PYTHON;
	struct json as_it_came = *a->value;
	double number = NAN;
	if (a->value->type == JSON_T_NULL)
		return;
	bool is_number = report_read_number(a->value, &number);
	if (is_number && seconds && number == -1) /* python-oops: not known */
		return;
	double us = number * (seconds ? 1e6 : 1e3);
	if (!is_number || !(us >= 0) || us > REPORT_DURATION_MAX_DAYS * 86400e6) {
		*a->value = as_it_came;
		report_refuse(r,
			      "duration: no time from 0 to %d days, so it is not known; it is "
			      "kept as it is",
			      REPORT_DURATION_MAX_DAYS);
		return;
	}
	int64_t whole = llround(us);
	r->report->facts.duration_us = whole;
	if (!seconds)
		return;
	a->value->text = (struct slice){NULL, 0};
	a->value->number = whole % 1000 ? value_f64((double)whole / 1e3) : value_i64(whole / 1000);
}

static void report_shape_timeline(struct report_reading *r, const struct report_attribute *a)
{
	size_t bad;
	r->report->facts.statements = fault_timeline_statements(a->value, &bad);
	if (a->value->type != JSON_T_ARRAY && a->value->type != JSON_T_NULL)
		report_refuse(r, "timeline: it is no list, and is kept as it is");
	else if (bad)
		report_refuse(r,
			      "timeline: %zu of its %zu items have no shape that is known; they "
			      "are kept as they are",
			      bad, report_child_count(a->value));
}

/* What is called so and has another shape is an attribute like any. */
static void report_shape_tags(struct report_reading *r, const struct report_attribute *a)
{
	struct slice tags = fault_tags_of(a->value, r->arena);
	r->arena_full |= !tags.data;
	r->report->facts.texts[FAULT_TAGS] = tags;
}

static void report_shape(struct report_reading *r)
{
	for (struct report_attribute *a = r->attributes; a < r->attributes + r->count; a++) {
		if (!a->known)
			continue;
		switch (a->known->shape) {
		case FAULT_SHAPE_TEXT:
			report_shape_text(r, a);
			break;
		case FAULT_SHAPE_DURATION:
			report_shape_duration(r, a);
			break;
		case FAULT_SHAPE_TIMELINE:
			report_shape_timeline(r, a);
			break;
		case FAULT_SHAPE_TAGS:
			report_shape_tags(r, a);
			break;
		case FAULT_SHAPE_ANY:
			break;
		}
	}
}

/* ---- Facts ---------------------------------------------------------------------------------- */

/* A copy, so that it does not live on the document. */
static struct slice report_fact_copy(struct report_reading *r, struct slice fact)
{
	struct slice copy = arena_copy(r->arena, fact);
	r->arena_full |= !copy.data;
	return copy;
}

static void report_gather_facts(struct report_reading *r)
{
	const struct fault_attribute *from[FAULT_TEXTS] = {NULL};
	char clean[FAULT_CONTEXT_MAX_BYTES];
	for (const struct report_attribute *a = r->attributes; a < r->attributes + r->count; a++) {
		int fact = a->known ? a->known->fact : -1;
		if (fact < 0 || a->value->type != JSON_T_STRING || !a->value->text.len ||
		    (from[fact] && from[fact] < a->known))
			continue;
		from[fact] = a->known;
		size_t len = fault_fact_cut(clean, (enum fault_text)fact, a->value->text);
		r->report->facts.texts[fact] = report_fact_copy(r, (struct slice){clean, len});
	}
}

/* The attributes as an object, as the body is read again. */
static const struct json *report_object(struct report_reading *r)
{
	struct json *object = arena_zalloc(r->arena, sizeof(*object));
	struct json *members = arena_alloc(r->arena, r->count * sizeof(*members));
	r->arena_full |= !object || !members;
	if (!object || !members)
		return NULL;
	object->type = JSON_T_OBJECT;
	object->count = r->count;
	object->first = r->count ? members : NULL;
	for (size_t i = 0; i < r->count; i++) {
		members[i] = *r->attributes[i].value;
		members[i].key = r->attributes[i].name;
		members[i].next = i + 1 < r->count ? &members[i + 1] : NULL;
	}
	return object;
}

static void report_find_group(struct report_reading *r)
{
	const struct json *object = report_object(r);
	struct fault_group group;
	struct slice *texts = r->report->facts.texts;
	if (!object)
		return;
	if (fault_group_make(object, r->arena, &group)) {
		r->arena_full = true;
		return;
	}
	texts[FAULT_GROUP] = group.name;
	if (!slice_equal(group.all, group.name))
		texts[FAULT_GROUP_ALL] = group.all;
	char title[FAULT_LABEL_MAX_BYTES];
	size_t len = fault_text_cut(title, group.title, sizeof(title));
	texts[FAULT_TITLE] = report_fact_copy(r, (struct slice){title, len});
}

/* ---- The whole ------------------------------------------------------------------------------ */

/* As the answer has it, but that one text says how many are not named. */
static void report_write_refused(const struct fault_report *report, struct json_writer *writer)
{
	char more[64];
	size_t named = (size_t)smaller_of((int64_t)report->refused_count, FAULT_REFUSED_MAX);
	json_write_key_slice(writer, report_refused_name);
	json_write_array_begin(writer);
	for (size_t i = 0; i < named; i++)
		json_write_string(writer, report->refused[i]);
	snprintf(more, sizeof(more), "%zu more", report->refused_count - named);
	if (report->refused_count > named)
		json_write_string(writer, slice_of(more));
	json_write_array_end(writer);
}

static int report_write_body(struct report_reading *r, bool with_refused)
{
	struct buf body;
	struct json_writer writer;
	buf_init(&body, r->options->body_max_bytes);
	report_make_room(&body);
	json_writer_init(&writer, &body);
	json_write_object_begin(&writer);
	for (const struct report_attribute *a = r->attributes; a < r->attributes + r->count; a++) {
		if (with_refused && slice_compare(a->name, report_refused_name) > 0) {
			report_write_refused(r->report, &writer);
			with_refused = false;
		}
		json_write_key_slice(&writer, a->name);
		json_write_literally(&writer, a->value);
	}
	if (with_refused)
		report_write_refused(r->report, &writer);
	json_write_object_end(&writer);
	int err = body.failed ? report_too_large(r) : 0;
	if (!err) {
		r->report->body = arena_copy(r->arena, buf_slice(&body));
		r->arena_full |= !r->report->body.data;
	}
	buf_release(&body);
	return err;
}

/* No report is too large for what was refused of it: then the answer alone says that. */
static int report_write(struct report_reading *r)
{
	bool any = r->report->refused_count;
	int err = report_write_body(r, any);
	return err && any ? report_write_body(r, false) : err;
}

static int report_read(struct report_reading *r, struct json *document, struct slice id)
{
	int err = report_list_members(r, document);
	if (err)
		return err;
	report_choose_id(r, document, id);
	err = report_make_digest(r);
	if (err)
		return err;
	report_take_id(r);
	report_unpack_timeline(r, document);
	fault_mask_tree(r->options->masks, document, r->arena);
	report_take_masked_names(r);
	report_drop(r, true);
	report_name_mended(r, document);
	if (r->dialect == FAULT_OF_SENTRY)
		report_add_of_event(r, document);
	report_map(r);
	report_drop(r, false);
	report_fit_names(r);
	report_sort(r);
	report_drop(r, true);
	report_shape(r);
	report_gather_facts(r);
	report_find_group(r);
	err = report_write(r);
	return err || !r->arena_full ? err : report_no_memory(r);
}

int fault_report_read(struct json *document, enum fault_dialect dialect, struct slice id,
		      const struct fault_report_options *options, struct arena *arena,
		      struct fault_report *report, struct errbuf *e)
{
	*report = (struct fault_report){.facts = {.duration_us = -1, .statements = -1}};
	struct report_reading r = {
		.options = options, .dialect = dialect, .arena = arena, .report = report, .e = e};
	if (!document || document->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "a report is an object, and this is none");
	if (document->mended == JSON_CUT && !document->first)
		return errbuf_set(e, ERR_INVALID, "the report is cut before its first attribute");
	if (id.data && !fault_id_valid(id))
		return errbuf_set(e, ERR_INVALID,
				  "\"" SHOWN "\" cannot be the id of a report: 1 to %d bytes of "
				  "UTF-8 without /, blanks and control characters, and not days, "
				  "groups, live, messages or projects",
				  SHOWN_OF(id), FAULT_ID_MAX_BYTES);
	return report_read(&r, document, id);
}
