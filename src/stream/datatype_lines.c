/* Lines of a datatype: fields to tags and numbers, and conditions. */
#include "base/grow.h"
#include "base/utf8.h"
#include "model/series.h"
#include "stream/datatypes.h"

void datatype_reader_init(struct datatype_reader *reader, const struct datatype *rule)
{
	ASSERT(rule->kind != DATATYPE_UNREAD);
	*reader = (struct datatype_reader){.rule = rule};
	fields_reader_init(&reader->fields, &rule->format);
	arena_init_small(&reader->arena, FIELDS_MEMORY_MAX_BYTES);
	GROW(reader->numbers, reader->capacity, DATATYPE_VALUES_MAX + DATATYPE_TEXTS_MAX);
}

void datatype_reader_release(struct datatype_reader *reader)
{
	fields_reader_release(&reader->fields);
	arena_release(&reader->arena);
	mem_free(reader->numbers);
}

static struct slice datatype_text(const struct fields_reader *fields,
				  const struct datatype_field *field)
{
	if (field->place != SIZE_MAX)
		return fields->list[field->place].text;
	return fields_find(fields, field->name);
}

/* ---- Conditions ------------------------------------------------------------------------------ */

bool datatype_take_relation(struct slice *rest, enum datatype_relation *relation)
{
	static const struct {
		struct slice text;
		enum datatype_relation relation;
	} relations[] = {
		{SLICE("!="), DATATYPE_NOT_EQUAL}, {SLICE("<="), DATATYPE_AT_MOST},
		{SLICE(">="), DATATYPE_AT_LEAST},  {SLICE("="), DATATYPE_EQUAL},
		{SLICE("<"), DATATYPE_LESS},       {SLICE(">"), DATATYPE_MORE},
	};
	for (size_t i = 0; i < ARRAY_LEN(relations); i++) {
		size_t len = relations[i].text.len;
		if (!slice_starts_with(*rest, relations[i].text))
			continue;
		*relation = relations[i].relation;
		*rest = (struct slice){rest->data + len, rest->len - len};
		return true;
	}
	return false;
}

bool datatype_relation_holds(enum datatype_relation relation, int order)
{
	switch (relation) {
	case DATATYPE_EQUAL:
		return order == 0;
	case DATATYPE_NOT_EQUAL:
		return order != 0;
	case DATATYPE_LESS:
		return order < 0;
	case DATATYPE_AT_MOST:
		return order <= 0;
	case DATATYPE_MORE:
		return order > 0;
	default:
		return order >= 0;
	}
}

static struct slice datatype_trim(struct slice text)
{
	while (text.len && text.data[text.len - 1] == ' ')
		text.len--;
	while (text.len && *text.data == ' ')
		text = (struct slice){text.data + 1, text.len - 1};
	return text;
}

int datatype_condition_parse(const struct datatype *rule, struct slice text, struct arena *arena,
			     struct datatype_condition *condition, struct errbuf *e)
{
	size_t at = 0;
	text = arena_copy(arena, text);
	if (!text.data)
		return ERR_LIMIT;
	while (at < text.len && !memchr("=<>", text.data[at], 3) &&
	       (text.data[at] != '!' || text.data[at + 1] != '='))
		at++;
	struct slice name = datatype_trim((struct slice){text.data, at});
	struct slice rest = {text.data + at, text.len - at};
	*condition = (struct datatype_condition){.field = {name, SIZE_MAX}};
	if (!name.len || !datatype_take_relation(&rest, &condition->relation))
		return errbuf_set(e, ERR_INVALID,
				  "'" SHOWN "' is no condition, as status>=400 is one",
				  SHOWN_OF(text));
	condition->text = datatype_trim(rest);
	if (condition->text.len && memchr("=<>", *condition->text.data, 3))
		return errbuf_set(e, ERR_INVALID,
				  "'" SHOWN "' is no condition: the relations are = != < <= > >=",
				  SHOWN_OF(text));
	if (fields_number(condition->text, 0, &condition->number))
		condition->number = (struct value){.type = VALUE_NONE};
	if (condition->number.type == VALUE_NONE && condition->relation > DATATYPE_NOT_EQUAL)
		return errbuf_set(e, ERR_INVALID, "'" SHOWN "' is no number to compare with",
				  SHOWN_OF(condition->text));
	if (rule->format.kind != FIELDS_PATTERN)
		return 0;
	condition->field.place = fields_format_find(&rule->format, name);
	return condition->field.place < rule->format.names.count
		       ? 0
		       : errbuf_set(e, ERR_INVALID, "the pattern has no field <" SHOWN ">",
				    SHOWN_OF(name));
}

bool datatype_condition_fits(const struct datatype_condition *condition,
			     const struct fields_reader *fields)
{
	struct slice text = datatype_text(fields, &condition->field);
	struct value number;
	if (!text.data)
		return false;
	bool numbers = condition->number.type != VALUE_NONE && !fields_number(text, 0, &number);
	if (!numbers && condition->relation > DATATYPE_NOT_EQUAL)
		return false;
	int order = numbers ? value_compare(number, condition->number)
			    : !slice_equal(text, condition->text);
	return datatype_relation_holds(condition->relation, order);
}

/* ---- A record -------------------------------------------------------------------------------- */

/* Whether the catalog takes it as the value of a tag. */
static bool datatype_tag_fits(struct slice text)
{
	bool plain = true;
	if (text.len > TAG_VALUE_MAX_BYTES)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		if (c < ' ' || c == 0x7f)
			return false;
		plain &= c < 0x80;
	}
	return plain || utf8_is_valid(text);
}

static bool datatype_take_tags(struct datatype_reader *reader)
{
	const struct datatype *rule = reader->rule;
	for (size_t i = 0; i < rule->tag_count; i++) {
		reader->tags[i] = datatype_text(&reader->fields, &rule->tags[i].field);
		if (!datatype_tag_fits(reader->tags[i]))
			return false;
	}
	return true;
}

/* False: there are none. */
static bool datatype_take_values(struct datatype_reader *reader, struct datatype_record *record)
{
	const struct datatype *rule = reader->rule;
	bool some = false;
	for (size_t i = 0; i < rule->value_count; i++) {
		const struct datatype_value *from = &rule->values[i];
		struct datatype_number *number = &reader->numbers[i];
		struct slice text = datatype_text(&reader->fields, &from->field);
		*number = (struct datatype_number){.metric = from->metric, .unit = from->unit.unit};
		if (!text.len || slice_equal(text, SLICE("-")))
			continue;
		if (fields_number(text, from->unit.scale, &number->value)) {
			number->value.type = VALUE_NONE;
			record->refused++;
		} else {
			some = true;
		}
	}
	record->count = rule->value_count;
	return some;
}

/* Behind the values; whether there are some. */
static bool datatype_take_texts(struct datatype_reader *reader, struct datatype_record *record)
{
	const struct datatype *rule = reader->rule;
	size_t before = record->count;
	GROW(reader->numbers, reader->capacity, record->count + rule->text_count);
	for (size_t i = 0; i < rule->text_count; i++) {
		const struct datatype_value *from = &rule->texts[i];
		struct datatype_number *number = &reader->numbers[record->count];
		struct slice text = datatype_text(&reader->fields, &from->field);
		*number = (struct datatype_number){.metric = from->metric, .unit = from->unit.unit};
		if (!text.len || slice_equal(text, SLICE("-")))
			continue;
		if (fields_number(text, from->unit.scale, &number->value) == 0)
			record->count++;
		else
			reader->texts[record->text_count++] =
				(struct datatype_text){from->metric, text};
	}
	record->texts = reader->texts;
	return record->count > before || record->text_count;
}

/* Whether a metric is that of a field, behind the rule's prefix. */
static bool datatype_is_metric(const struct datatype *rule, struct slice metric, struct slice field)
{
	return metric.len == rule->prefix.len + field.len && slice_ends_with(metric, field);
}

static bool datatype_is_left_out(const struct datatype *rule, struct slice field)
{
	for (size_t i = 0; i < rule->text_count; i++)
		if (slice_equal(rule->texts[i].field.name, field) ||
		    datatype_is_metric(rule, rule->texts[i].metric, field))
			return true;
	for (size_t i = 0; i < rule->tag_count; i++)
		if (slice_equal(rule->tags[i].field.name, field))
			return true;
	for (size_t i = 0; i < rule->excepted.count; i++)
		if (slice_equal(rule->excepted.list[i], field))
			return true;
	return false;
}

static const struct datatype_unit *datatype_unit_of(const struct datatype *rule, struct slice field)
{
	static const struct datatype_unit none;
	for (size_t i = 0; i < rule->unit_count; i++)
		if (slice_equal(rule->units[i].field, field))
			return &rule->units[i];
	return &none;
}

/* Its metric; false: none may be called so. */
static bool datatype_name_number(struct datatype_reader *reader, struct slice field,
				 struct slice *metric)
{
	struct slice prefix = reader->rule->prefix;
	size_t len = prefix.len + field.len;
	char *to = arena_alloc(&reader->arena, len + !len);
	if (!to)
		return false;
	if (prefix.len)
		memcpy(to, prefix.data, prefix.len);
	if (field.len)
		memcpy(to + prefix.len, field.data, field.len);
	*metric = (struct slice){to, len};
	return !metric_check(*metric, NULL);
}

static bool datatype_take_all(struct datatype_reader *reader, struct datatype_record *record)
{
	const struct fields_reader *fields = &reader->fields;
	arena_reset(&reader->arena);
	GROW(reader->numbers, reader->capacity, fields->count);
	for (size_t i = 0; i < fields->count; i++) {
		const struct fields_field *field = &fields->list[i];
		const struct datatype_unit *unit = datatype_unit_of(reader->rule, field->name);
		struct datatype_number *number = &reader->numbers[record->count];
		if (fields_number(field->text, unit->scale, &number->value) ||
		    datatype_is_left_out(reader->rule, field->name))
			continue;
		number->unit = unit->unit;
		if (datatype_name_number(reader, field->name, &number->metric))
			record->count++;
		else
			record->refused++;
	}
	return record->count > 0;
}

enum datatype_result datatype_read(struct datatype_reader *reader, struct slice line,
				   struct datatype_record *record)
{
	const struct datatype *rule = reader->rule;
	enum fields_result result = fields_read(&reader->fields, line);
	if (result != FIELDS_READ)
		return result == FIELDS_NONE ? DATATYPE_PASSED : DATATYPE_NOT;
	for (size_t i = 0; i < rule->condition_count; i++)
		if (!datatype_condition_fits(&rule->conditions[i], &reader->fields))
			return DATATYPE_PASSED;
	*record = (struct datatype_record){.tags = reader->tags, .refused = reader->fields.cut};
	if (!datatype_take_tags(reader))
		return DATATYPE_NOT;
	bool some = rule->all_values ? datatype_take_all(reader, record)
				     : datatype_take_values(reader, record);
	some |= datatype_take_texts(reader, record);
	record->numbers = reader->numbers;
	return some || rule->kind == DATATYPE_EVENTS ? DATATYPE_READ : DATATYPE_NOT;
}
