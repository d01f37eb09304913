#include "fault/tags.h"

#include "wire/number.h"

#define TAGS_BEFORE_VALUE '\xff'
#define TAGS_BETWEEN      '\xfe'

/* ---- Reading --------------------------------------------------------------------------------- */

bool fault_tag_split(struct slice tag, struct slice *name, struct slice *value)
{
	const char *end = tag.len ? memchr(tag.data, TAGS_BEFORE_VALUE, tag.len) : NULL;
	if (!end || tag.len > FAULT_TAG_MAX_BYTES)
		return false;
	*name = (struct slice){tag.data, (size_t)(end - tag.data)};
	*value = (struct slice){end + 1, tag.len - name->len - 1};
	return name->len && value->len;
}

bool fault_tags_next(struct slice *tags, struct slice *tag)
{
	struct slice name, value;
	while (tags->len) {
		const char *end = memchr(tags->data, TAGS_BETWEEN, tags->len);
		size_t len = end ? (size_t)(end - tags->data) : tags->len;
		size_t taken = end ? len + 1 : len;
		*tag = (struct slice){tags->data, len};
		*tags = (struct slice){tags->data + taken, tags->len - taken};
		if (fault_tag_split(*tag, &name, &value))
			return true;
	}
	return false;
}

/* ---- Making ---------------------------------------------------------------------------------- */

struct tags_making {
	char text[FAULT_TAGS_MAX_BYTES];
	size_t len, count;
};

static bool tags_have(const struct tags_making *making, struct slice tag)
{
	struct slice tags = {making->text, making->len}, other;
	while (fault_tags_next(&tags, &other))
		if (slice_equal(other, tag))
			return true;
	return false;
}

static void tags_add(struct tags_making *making, struct slice name, struct slice value)
{
	char tag[FAULT_TAG_MAX_BYTES];
	if (!name.len || !value.len || making->count == FAULT_REPORT_TAGS_MAX)
		return;
	size_t len = fault_text_cut(tag, name, FAULT_TAG_NAME_MAX_BYTES);
	tag[len++] = TAGS_BEFORE_VALUE;
	len += fault_text_cut(tag + len, value, FAULT_TAG_VALUE_MAX_BYTES);
	if (tags_have(making, (struct slice){tag, len}))
		return;
	if (making->count++)
		making->text[making->len++] = TAGS_BETWEEN;
	memcpy(making->text + making->len, tag, len);
	making->len += len;
}

/* As it stands in the body. Empty: it is no scalar. */
static struct slice tags_scalar(const struct json *value, char digits[NUMBER_PRINT_MAX_BYTES])
{
	switch (value->type) {
	case JSON_T_STRING:
		return value->text;
	case JSON_T_NUMBER:
		return value->text.len
			       ? value->text
			       : (struct slice){digits, number_print(digits, value->number)};
	case JSON_T_BOOL:
		return value->boolean ? SLICE("true") : SLICE("false");
	case JSON_T_NULL:
	case JSON_T_ARRAY:
	case JSON_T_OBJECT:
		break;
	}
	return SLICE("");
}

struct slice fault_tags_of(const struct json *value, struct arena *arena)
{
	struct tags_making making;
	char digits[NUMBER_PRINT_MAX_BYTES], more_digits[NUMBER_PRINT_MAX_BYTES];
	making.len = making.count = 0;
	if (value->type != JSON_T_OBJECT && value->type != JSON_T_ARRAY)
		return SLICE("");
	for (const struct json *item = value->first; item; item = item->next) {
		const struct json *first = item->type == JSON_T_ARRAY ? item->first : NULL;
		if (value->type == JSON_T_OBJECT)
			tags_add(&making, item->key, tags_scalar(item, digits));
		else if (first && first->next)
			tags_add(&making, tags_scalar(first, digits),
				 tags_scalar(first->next, more_digits));
	}
	return arena_copy(arena, (struct slice){making.text, making.len});
}
