#include "fault/search.h"

#include "wire/json.h"

enum { SEARCH_ARENA_MAX_BYTES = 2 * FAULT_BODY_MAX_BYTES };

void fault_search_init(struct fault_search *search, const struct words_query *query)
{
	words_matcher_init(&search->matcher, query);
	buf_init(&search->body, FAULT_BODY_MAX_BYTES);
	arena_init(&search->arena, SEARCH_ARENA_MAX_BYTES);
}

void fault_search_release(struct fault_search *search)
{
	words_matcher_release(&search->matcher);
	buf_release(&search->body);
	arena_release(&search->arena);
}

/* Where the reader of a body is. Tags are an object, or an array of pairs: {"browser": "x"} or
 * [["browser", "x"]]. */
struct search_place {
	unsigned depth;
	struct slice attribute; /* at depth 1 */
	struct slice tag;       /* within `tags` */
	bool in_tags, in_pair;
};

static void search_see_scalar(struct fault_search *search, struct search_place *place,
			      struct slice text)
{
	if (place->depth == 1)
		words_match_value(&search->matcher, place->attribute, text);
	if (place->in_pair && !place->tag.data)
		place->tag = text;
	else if (place->in_tags && place->tag.data && (place->in_pair || place->depth == 2)) {
		words_match_value(&search->matcher, place->tag, text);
		place->in_pair = false;
	}
}

static void search_see_key(struct search_place *place, struct slice key)
{
	if (place->depth == 1) {
		place->attribute = key;
		place->in_tags = slice_equal(key, SLICE("tags"));
		place->tag = (struct slice){NULL, 0};
	} else if (place->depth == 2) {
		place->tag = key;
	}
}

static void search_see(struct fault_search *search, struct search_place *place,
		       enum json_event event, struct slice text)
{
	switch (event) {
	case JSON_KEY:
		search_see_key(place, text);
		return;
	case JSON_STRING:
	case JSON_NUMBER:
		words_match(&search->matcher, text);
		search_see_scalar(search, place, text);
		return;
	case JSON_TRUE:
	case JSON_FALSE:
		search_see_scalar(search, place,
				  event == JSON_TRUE ? SLICE("true") : SLICE("false"));
		return;
	case JSON_OBJECT_BEGIN:
	case JSON_ARRAY_BEGIN:
		place->depth++;
		place->in_pair = place->in_tags && event == JSON_ARRAY_BEGIN && place->depth == 3;
		if (place->in_pair)
			place->tag = (struct slice){NULL, 0};
		return;
	case JSON_OBJECT_END:
	case JSON_ARRAY_END:
		place->depth--;
		place->in_pair = false;
		place->in_tags = place->in_tags && place->depth > 1;
		return;
	case JSON_NULL:
	case JSON_BAD:
	case JSON_END:
		return;
	}
}

static bool search_look_at_body(struct fault_search *search, struct slice body)
{
	struct json_reader reader;
	struct search_place place = {0};
	enum json_event event;
	arena_reset(&search->arena);
	json_reader_init(&reader, body, &search->arena);
	for (event = json_next(&reader); event != JSON_BAD && event != JSON_END;
	     event = json_next(&reader)) {
		search_see(search, &place, event, reader.text);
		if (words_matcher_fails(&search->matcher))
			return false;
	}
	return event == JSON_END;
}

static void search_begin(struct fault_search *search, const struct fault_arrival *arrival)
{
	words_matcher_begin(&search->matcher);
	words_match(&search->matcher, arrival->id);
	words_match_value(&search->matcher, SLICE("id"), arrival->id);
	for (enum fault_text i = 0; i < FAULT_TEXTS_LISTED; i++)
		words_match_value(&search->matcher, slice_of(fault_text_name(i)),
				  arrival->facts.texts[i]);
}

static bool search_fits(struct fault_search *search, const struct fault_arrival *arrival,
			struct slice body)
{
	const struct slice texts[] = {body, arrival->id};
	if (!words_matcher_may_fit(&search->matcher, texts, ARRAY_LEN(texts)))
		return false;
	search_begin(search, arrival);
	return search_look_at_body(search, body) && words_matcher_fits(&search->matcher);
}

int fault_search_fits(struct fault_search *search, const struct fault_arrival *arrival, bool *fits)
{
	*fits = true;
	if (!search->matcher.query->count)
		return 0;
	buf_clear(&search->body);
	int err = fault_body_unpack(arrival, &search->body);
	*fits = !err && search_fits(search, arrival, buf_slice(&search->body));
	return err;
}

bool fault_search_fits_body(struct fault_search *search, const struct fault_arrival *arrival,
			    struct slice body)
{
	return !search->matcher.query->count || search_fits(search, arrival, body);
}

void fault_search_add_words(struct words_set *set, unsigned part, struct arena *arena,
			    const struct fault_arrival *arrival, struct slice body)
{
	struct json_reader reader;
	enum json_event event;
	words_set_add(set, part, arrival->id);
	for (enum fault_text i = 0; i < FAULT_TEXTS_LISTED; i++)
		words_set_add(set, part, arrival->facts.texts[i]);
	arena_reset(arena);
	json_reader_init(&reader, body, arena);
	for (event = json_next(&reader); event != JSON_BAD && event != JSON_END;
	     event = json_next(&reader)) {
		if (event == JSON_STRING || event == JSON_NUMBER)
			words_set_add(set, part, reader.text);
	}
}
