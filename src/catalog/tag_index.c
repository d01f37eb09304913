#define BASE_MAY_MALLOC /* <roaring.h> has inline functions that do */
#include <roaring/roaring.h>

#include "catalog/tag_index.h"

#include "base/hash.h"
#include "catalog/private.h"
#include "catalog/selector.h"

enum {
	LIST_MAX = 32,         /* ids of a pair beyond which a bitmap is smaller and faster */
	NONE = UINT32_MAX,     /* no slot, no pair */
	COUNT_MAX = 1u << 31,  /* of series, pairs, tags: 32-bit numbers with room to double */
	POOL_MAX = UINT32_MAX, /* bytes of text: offsets have 32 bits */
	ESCAPED_KEY_MAX = 2 * TAG_KEY_MAX_BYTES,
	ESCAPED_PAIR_MAX = 2 * (TAG_KEY_MAX_BYTES + TAG_VALUE_MAX_BYTES) + 1,
};

/* Arrays of hundreds of millions of numbers: by half, and not twice as base/grow.h does. Its tables
 * have slots of four bytes, so they are its own, too. */
#define GROW_BY_HALF(array, count, capacity)                                                       \
	do {                                                                                       \
		if ((count) == (capacity)) {                                                       \
			(capacity) = (capacity) ? (capacity) + (capacity) / 2 : 8;                 \
			(array) = mem_resize_array((array), (capacity), sizeof(*(array)));         \
		}                                                                                  \
	} while (0)

struct text {
	uint32_t at, len, hash;
};

/* Texts, each once, numbered in the order of arrival. */
struct texts {
	struct text *list;
	size_t count, capacity;
	uint32_t *slots; /* open addressing, at most 2/3 full */
	size_t slot_count;
};

/* The series of the pair whose text is pairs.list[number]. */
struct posting {
	uint32_t key;  /* number in `keys` */
	uint32_t next; /* pair of the same key that came before this one */
	uint32_t count;
	union {
		uint32_t one;             /* count 1 */
		uint32_t *ids;            /* up to LIST_MAX; room for the next power of two */
		roaring_bitmap_t *bitmap; /* more */
	};
};

struct tag_index_key {
	uint32_t newest_pair, pair_count;
};

struct tag_index {
	unsigned owners;
	char *pool;
	size_t pool_len, pool_capacity;
	struct texts pairs, keys;
	struct posting *postings;
	size_t posting_bytes; /* held by lists and bitmaps; of bitmaps an upper bound */
	struct tag_index_key *key_list;
	size_t posting_capacity, key_capacity;

	uint64_t *handles; /* by id */
	uint32_t *
		tag_end; /* by id: where its pairs end in `tags`; they begin where the last's end */
	size_t count, handle_capacity, end_capacity;
	uint32_t *tags; /* pair numbers */
	size_t tag_count, tag_capacity;
	uint32_t *handle_slots; /* id by handle, open addressing */
	size_t handle_slot_count;
};

struct tag_index *tag_index_new(void)
{
	struct tag_index *index = mem_zalloc(sizeof(*index));
	index->owners = 1;
	return index;
}

struct tag_index *tag_index_acquire(struct tag_index *index)
{
	index->owners++;
	return index;
}

void tag_index_release(struct tag_index *index)
{
	if (--index->owners)
		return;
	for (size_t i = 0; i < index->pairs.count; i++) {
		struct posting *p = &index->postings[i];
		if (p->count > LIST_MAX)
			roaring_bitmap_free(p->bitmap);
		else if (p->count > 1)
			mem_free(p->ids);
	}
	mem_free(index->pool);
	mem_free(index->pairs.list);
	mem_free(index->pairs.slots);
	mem_free(index->keys.list);
	mem_free(index->keys.slots);
	mem_free(index->postings);
	mem_free(index->key_list);
	mem_free(index->handles);
	mem_free(index->tag_end);
	mem_free(index->tags);
	mem_free(index->handle_slots);
	mem_free(index);
}

/* ---- Texts --------------------------------------------------------------------------------- */

static struct slice tag_index_text_of(const struct tag_index *index, const struct texts *texts,
				      uint32_t n)
{
	const struct text *text = &texts->list[n];
	return (struct slice){index->pool + text->at, text->len};
}

static uint32_t text_find(const struct tag_index *index, const struct texts *texts,
			  struct slice bytes, uint32_t hash)
{
	if (!texts->slot_count)
		return NONE;
	for (size_t at = hash & (texts->slot_count - 1);; at = (at + 1) & (texts->slot_count - 1)) {
		uint32_t n = texts->slots[at];
		if (n == NONE)
			return NONE;
		if (texts->list[n].hash == hash &&
		    slice_equal(tag_index_text_of(index, texts, n), bytes))
			return n;
	}
}

static void text_enter(struct texts *texts, uint32_t n)
{
	size_t at = texts->list[n].hash & (texts->slot_count - 1);
	while (texts->slots[at] != NONE)
		at = (at + 1) & (texts->slot_count - 1);
	texts->slots[at] = n;
}

static void texts_make_room(struct texts *texts)
{
	GROW_BY_HALF(texts->list, texts->count, texts->capacity);
	if (texts->count * 3 < texts->slot_count * 2)
		return;
	texts->slot_count = texts->slot_count ? texts->slot_count * 2 : 16;
	texts->slots = mem_resize_array(texts->slots, texts->slot_count, sizeof(*texts->slots));
	memset(texts->slots, 0xff, texts->slot_count * sizeof(*texts->slots));
	for (size_t i = 0; i < texts->count; i++)
		text_enter(texts, (uint32_t)i);
}

/* NONE: no room. */
static uint32_t text_add(struct tag_index *index, struct texts *texts, struct slice bytes,
			 uint32_t hash)
{
	if (texts->count >= COUNT_MAX || bytes.len > POOL_MAX - index->pool_len)
		return NONE;
	if (index->pool_len + bytes.len > index->pool_capacity) {
		index->pool_capacity += index->pool_capacity / 2 + bytes.len + 256;
		index->pool = mem_resize(index->pool, index->pool_capacity);
	}
	texts_make_room(texts);
	memcpy(index->pool + index->pool_len, bytes.data, bytes.len);
	uint32_t n = (uint32_t)texts->count++;
	texts->list[n] = (struct text){(uint32_t)index->pool_len, (uint32_t)bytes.len, hash};
	index->pool_len += bytes.len;
	text_enter(texts, n);
	return n;
}

static uint32_t text_hash(struct slice bytes)
{
	return (uint32_t)hash64(bytes.data, bytes.len, 0);
}

/* ---- Adding -------------------------------------------------------------------------------- */

/* Offset of the first unescaped `stop`, or the length. */
static size_t unescaped(struct slice text, size_t at, char stop)
{
	for (; at < text.len && text.data[at] != stop; at++) {
		if (text.data[at] == '\\')
			at++;
	}
	return at < text.len ? at : text.len;
}

static uint32_t key_number(struct tag_index *index, struct slice key)
{
	uint32_t hash = text_hash(key);
	uint32_t n = text_find(index, &index->keys, key, hash);
	if (n != NONE)
		return n;
	GROW_BY_HALF(index->key_list, index->keys.count, index->key_capacity);
	n = text_add(index, &index->keys, key, hash);
	if (n != NONE)
		index->key_list[n] = (struct tag_index_key){.newest_pair = NONE};
	return n;
}

static int pair_add(struct tag_index *index, struct slice pair, uint32_t hash, uint32_t *number)
{
	size_t equals = unescaped(pair, 0, '=');
	if (equals == pair.len || equals == 0)
		return ERR_DAMAGED;
	uint32_t key = key_number(index, (struct slice){pair.data, equals});
	GROW_BY_HALF(index->postings, index->pairs.count, index->posting_capacity);
	uint32_t n = text_add(index, &index->pairs, pair, hash);
	if (key == NONE || n == NONE)
		return ERR_LIMIT;
	index->postings[n] = (struct posting){.key = key, .next = index->key_list[key].newest_pair};
	index->key_list[key].newest_pair = n;
	index->key_list[key].pair_count++;
	*number = n;
	return 0;
}

/* `hint`: the pair that stood here in the series before, often the same. */
static int pair_number(struct tag_index *index, struct slice pair, uint32_t hint, uint32_t *number)
{
	if (hint != NONE && slice_equal(tag_index_text_of(index, &index->pairs, hint), pair)) {
		*number = hint;
		return 0;
	}
	uint32_t hash = text_hash(pair);
	*number = text_find(index, &index->pairs, pair, hash);
	return *number != NONE ? 0 : pair_add(index, pair, hash, number);
}

/* A bitmap and its array of containers take about 64 bytes, an allocation 16 of its own. */
enum { BITMAP_BYTES = 64, ALLOCATION_BYTES = 16 };

static void posting_to_bitmap(struct tag_index *index, struct posting *p)
{
	uint32_t *ids = p->ids;
	p->bitmap = roaring_bitmap_of_ptr(LIST_MAX, ids);
	mem_free(ids);
	index->posting_bytes += BITMAP_BYTES - LIST_MAX * sizeof(uint16_t);
}

static void posting_add(struct tag_index *index, struct posting *p, uint32_t id)
{
	if (p->count == 0) {
		p->one = id;
	} else if (p->count == 1) {
		uint32_t first = p->one;
		p->ids = mem_alloc_array(2, sizeof(*p->ids));
		p->ids[0] = first;
		p->ids[1] = id;
		index->posting_bytes += 2 * sizeof(*p->ids) + ALLOCATION_BYTES;
	} else if (p->count < LIST_MAX) {
		if ((p->count & (p->count - 1)) == 0) {
			p->ids = mem_resize_array(p->ids, p->count * 2, sizeof(*p->ids));
			index->posting_bytes += p->count * sizeof(*p->ids);
		}
		p->ids[p->count] = id;
	} else {
		if (p->count == LIST_MAX)
			posting_to_bitmap(index, p);
		roaring_bitmap_add(p->bitmap, id);
		index->posting_bytes += sizeof(uint16_t);
	}
	p->count++;
}

static size_t handle_slot(const struct tag_index *index, uint64_t handle)
{
	size_t mask = index->handle_slot_count - 1;
	size_t at = (handle * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & mask;
	while (index->handle_slots[at] != NONE && index->handles[index->handle_slots[at]] != handle)
		at = (at + 1) & mask;
	return at;
}

static void handles_make_room(struct tag_index *index)
{
	GROW_BY_HALF(index->handles, index->count, index->handle_capacity);
	GROW_BY_HALF(index->tag_end, index->count, index->end_capacity);
	if (index->count * 3 < index->handle_slot_count * 2)
		return;
	index->handle_slot_count = index->handle_slot_count ? index->handle_slot_count * 2 : 16;
	index->handle_slots = mem_resize_array(index->handle_slots, index->handle_slot_count,
					       sizeof(*index->handle_slots));
	memset(index->handle_slots, 0xff, index->handle_slot_count * sizeof(*index->handle_slots));
	for (size_t id = 0; id < index->count; id++)
		index->handle_slots[handle_slot(index, index->handles[id])] = (uint32_t)id;
}

static size_t tags_begin(const struct tag_index *index, uint32_t id)
{
	return id ? index->tag_end[id - 1] : 0;
}

/* Appends the numbers of the pairs of `text` to index->tags. */
static int tag_index_add_pairs(struct tag_index *index, struct slice text)
{
	size_t hints = index->count ? tags_begin(index, (uint32_t)index->count - 1) : 0;
	size_t hints_end = index->tag_count;
	for (size_t at = 0; at < text.len;) {
		size_t end = unescaped(text, at, ',');
		uint32_t hint = hints < hints_end ? index->tags[hints++] : NONE;
		uint32_t number = NONE;
		struct slice pair = {text.data + at, end - at};
		int err = pair_number(index, pair, hint, &number);
		if (err)
			return err;
		GROW_BY_HALF(index->tags, index->tag_count, index->tag_capacity);
		index->tags[index->tag_count++] = number;
		at = end + 1;
	}
	return index->tag_count < COUNT_MAX ? 0 : ERR_LIMIT;
}

int tag_index_add(struct tag_index *index, uint64_t handle, struct slice tags_text)
{
	if (index->count >= COUNT_MAX)
		return ERR_LIMIT;
	handles_make_room(index);
	size_t slot = handle_slot(index, handle);
	if (index->handle_slots[slot] != NONE)
		return 0;
	size_t begin = index->tag_count;
	int err = tag_index_add_pairs(index, tags_text);
	if (err) {
		index->tag_count = begin;
		return err;
	}
	uint32_t id = (uint32_t)index->count++;
	for (size_t i = begin; i < index->tag_count; i++)
		posting_add(index, &index->postings[index->tags[i]], id);
	index->handles[id] = handle;
	index->tag_end[id] = (uint32_t)index->tag_count;
	index->handle_slots[slot] = id;
	return 0;
}

static size_t posting_bytes(const struct posting *p)
{
	if (p->count > LIST_MAX)
		return BITMAP_BYTES + ALLOCATION_BYTES + roaring_bitmap_size_in_bytes(p->bitmap);
	return p->count > 1 ? p->count * sizeof(uint32_t) + ALLOCATION_BYTES : 0;
}

void tag_index_optimize(struct tag_index *index)
{
	index->posting_bytes = 0;
	for (size_t i = 0; i < index->pairs.count; i++) {
		struct posting *p = &index->postings[i];
		if (p->count > LIST_MAX) {
			roaring_bitmap_run_optimize(p->bitmap);
			roaring_bitmap_shrink_to_fit(p->bitmap);
		}
		index->posting_bytes += posting_bytes(p);
	}
}

size_t tag_index_series(const struct tag_index *index)
{
	return index->count;
}

static size_t texts_bytes(const struct texts *texts)
{
	return texts->capacity * sizeof(*texts->list) + texts->slot_count * sizeof(*texts->slots);
}

size_t tag_index_bytes(const struct tag_index *index)
{
	size_t bytes = sizeof(*index) + index->pool_capacity + texts_bytes(&index->pairs) +
		       texts_bytes(&index->keys);
	bytes += index->posting_capacity * sizeof(*index->postings);
	bytes += index->key_capacity * sizeof(*index->key_list);
	bytes += index->handle_capacity * sizeof(*index->handles);
	bytes += index->end_capacity * sizeof(*index->tag_end);
	bytes += index->tag_capacity * sizeof(*index->tags);
	bytes += index->handle_slot_count * sizeof(*index->handle_slots);
	bytes += index->posting_bytes;
	return bytes;
}

/* ---- Matching ------------------------------------------------------------------------------ */

static void tag_index_append_escaped(char *to, size_t *len, struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		if (c == ',' || c == '=' || c == '\\')
			to[(*len)++] = '\\';
		to[(*len)++] = c;
	}
}

static uint32_t find_key(const struct tag_index *index, struct slice key)
{
	char text[ESCAPED_KEY_MAX];
	size_t len = 0;
	if (key.len > TAG_KEY_MAX_BYTES)
		return NONE;
	tag_index_append_escaped(text, &len, key);
	struct slice escaped = {text, len};
	return text_find(index, &index->keys, escaped, text_hash(escaped));
}

static uint32_t find_pair(const struct tag_index *index, struct slice key, struct slice value)
{
	char text[ESCAPED_PAIR_MAX];
	size_t len = 0;
	if (key.len > TAG_KEY_MAX_BYTES || value.len > TAG_VALUE_MAX_BYTES)
		return NONE;
	tag_index_append_escaped(text, &len, key);
	text[len++] = '=';
	tag_index_append_escaped(text, &len, value);
	struct slice escaped = {text, len};
	return text_find(index, &index->pairs, escaped, text_hash(escaped));
}

/* A name without its backslashes, in `room` (of its length) unless it has none. */
static struct slice tag_index_unescape(struct slice name, char *room)
{
	if (!memchr(name.data, '\\', name.len))
		return name;
	size_t n = 0;
	for (size_t i = 0; i < name.len; i++) {
		i += name.data[i] == '\\' && i + 1 < name.len;
		room[n++] = name.data[i];
	}
	return (struct slice){room, n};
}

static struct slice pair_value(const struct tag_index *index, uint32_t pair)
{
	struct slice text = tag_index_text_of(index, &index->pairs, pair);
	size_t skip = index->keys.list[index->postings[pair].key].len + 1;
	return (struct slice){text.data + skip, text.len - skip};
}

static bool pair_matches(const struct tag_index *index, uint32_t pair,
			 const struct catalog_selector *selector)
{
	char room[ESCAPED_PAIR_MAX];
	struct slice value = pair_value(index, pair);
	if (value.len > sizeof(room))
		return false;
	return selector_match(selector, tag_index_unescape(value, room));
}

static void posting_into(const struct posting *p, roaring_bitmap_t *set)
{
	if (p->count > LIST_MAX)
		roaring_bitmap_or_inplace(set, p->bitmap);
	else
		roaring_bitmap_add_many(set, p->count, p->count == 1 ? &p->one : p->ids);
}

static roaring_bitmap_t *match_exact(const struct tag_index *index,
				     const struct catalog_selector *selector)
{
	roaring_bitmap_t *set = roaring_bitmap_create();
	for (size_t i = 0; i < selector->value_count; i++) {
		uint32_t pair = find_pair(index, selector->key, selector->values[i].pieces[0]);
		if (pair != NONE)
			posting_into(&index->postings[pair], set);
	}
	return set;
}

static bool series_matches(const struct tag_index *index, uint32_t id,
			   const struct catalog_selector *selector, uint32_t key)
{
	for (size_t i = tags_begin(index, id); i < index->tag_end[id]; i++) {
		uint32_t pair = index->tags[i];
		if (index->postings[pair].key == key)
			return pair_matches(index, pair, selector);
	}
	return false;
}

/* ---- Searches ------------------------------------------------------------------------------ */

/* Selectors are taken one by one, exact ones first: they leave little for the others to look at.
 * Where fewer series are left than the key has values, looking at them is cheaper than looking
 * through the values. */
struct tag_search {
	struct tag_index *index;
	struct catalog_find *find;
	struct roaring_bitmap_s *set; /* what matches those before; NULL: all */
	bool exact_over;
	size_t at; /* the next selector, of those that are exact or those that are not */
	/* The selector at work; NULL: none is. */
	const struct catalog_selector *selector;
	struct roaring_bitmap_s *found;
	uint32_t key, pair;             /* the next value; NONE: none is left */
	roaring_uint32_iterator_t *ids; /* or the next of `set` */
	uint64_t weight;                /* of looking at a value */
	struct firsts *firsts;          /* of a find that has `from`, once its selectors are done */
};

/* In pieces of patterns that are looked for: about a millisecond. */
enum { SEARCH_STEP_WORK = 100000 };

static void firsts_free(struct firsts *firsts);

struct tag_search *tag_search_new(struct tag_index *index, struct catalog_find *find)
{
	struct tag_search *search = mem_zalloc(sizeof(*search));
	search->index = tag_index_acquire(index);
	search->find = find;
	search->pair = NONE;
	find->count = 0;
	if (find->list && find->list->what == CATALOG_TAG_VALUES) {
		uint32_t key = find_key(index, find->list->tag_key);
		search->pair = key == NONE ? (uint32_t)NONE : index->key_list[key].newest_pair;
	}
	return search;
}

static void search_end_selector(struct tag_search *search)
{
	if (search->ids)
		roaring_free_uint32_iterator(search->ids);
	search->ids = NULL;
	search->found = NULL;
	search->selector = NULL;
}

void tag_search_free(struct tag_search *search)
{
	if (!search)
		return;
	if (search->found)
		roaring_bitmap_free(search->found);
	if (search->set)
		roaring_bitmap_free(search->set);
	search_end_selector(search);
	firsts_free(search->firsts);
	tag_index_release(search->index);
	mem_free(search);
}

static const struct catalog_selector *search_next(struct tag_search *search)
{
	const struct catalog_find *find = search->find;
	for (;;) {
		for (; search->at < find->selector_count; search->at++) {
			const struct catalog_selector *selector = &find->selectors[search->at];
			if (selector_exact(selector) == !search->exact_over) {
				search->at++;
				return selector;
			}
		}
		if (search->exact_over)
			return NULL;
		search->exact_over = true;
		search->at = 0;
	}
}

/* False: there is no further selector, or no series is left. */
static bool search_begin_selector(struct tag_search *search, uint64_t *work)
{
	const struct tag_index *index = search->index;
	const struct catalog_selector *selector = search_next(search);
	if (!selector || (search->set && roaring_bitmap_is_empty(search->set)))
		return false;
	search->selector = selector;
	search->key = find_key(index, selector->key);
	search->pair = NONE;
	search->weight = 1;
	for (size_t i = 0; i < selector->value_count; i++)
		search->weight += selector->values[i].piece_count;
	if (selector_exact(selector)) {
		search->found = match_exact(index, selector);
		*work += 10 * search->weight;
		return true;
	}
	search->found = roaring_bitmap_create();
	if (search->key == NONE)
		return true;
	const struct tag_index_key *key = &index->key_list[search->key];
	if (search->set && roaring_bitmap_get_cardinality(search->set) < key->pair_count)
		search->ids = roaring_create_iterator(search->set);
	else
		search->pair = key->newest_pair;
	return true;
}

/* True: the selector is done. */
static bool search_go_on(struct tag_search *search, uint64_t *work)
{
	const struct tag_index *index = search->index;
	roaring_uint32_iterator_t *ids = search->ids;
	for (; *work < SEARCH_STEP_WORK && search->pair != NONE; *work += search->weight) {
		const struct posting *posting = &index->postings[search->pair];
		if (pair_matches(index, search->pair, search->selector)) {
			posting_into(posting, search->found);
			*work += posting->count / 64;
		}
		search->pair = posting->next;
	}
	for (; *work < SEARCH_STEP_WORK && ids && ids->has_value; *work += search->weight) {
		uint32_t id = ids->current_value;
		if (series_matches(index, id, search->selector, search->key))
			roaring_bitmap_add(search->found, id);
		roaring_advance_uint32_iterator(ids);
	}
	return search->pair == NONE && (!ids || !ids->has_value);
}

/* Those found of those left. */
static void search_narrow(struct tag_search *search)
{
	roaring_bitmap_t *found = search->found;
	search_end_selector(search);
	if (search->set) {
		roaring_bitmap_and_inplace(found, search->set);
		roaring_bitmap_free(search->set);
	}
	search->set = found;
}

/* ---- Results ------------------------------------------------------------------------------- */

static struct slice tags_text(const struct tag_index *index, uint32_t id, struct arena *arena)
{
	size_t begin = tags_begin(index, id), end = index->tag_end[id], len = 0;
	for (size_t i = begin; i < end; i++)
		len += index->pairs.list[index->tags[i]].len + 1;
	char *text = arena_alloc(arena, len + 1);
	if (!text)
		return (struct slice){NULL, 0};
	len = 0;
	for (size_t i = begin; i < end; i++) {
		struct slice pair = tag_index_text_of(index, &index->pairs, index->tags[i]);
		if (i > begin)
			text[len++] = ',';
		memcpy(text + len, pair.data, pair.len);
		len += pair.len;
	}
	text[len] = 0;
	return (struct slice){text, len};
}

struct output {
	const struct tag_index *index;
	struct catalog_find *find;
};

/* False, which ends the iteration, when the arena is full. */
static bool tag_index_emit(uint32_t id, void *context)
{
	struct output *out = context;
	struct slice text = tags_text(out->index, id, out->find->arena);
	if (!text.data)
		return false;
	struct catalog_series *series = &out->find->series[out->find->count++];
	*series = (struct catalog_series){out->index->handles[id], text};
	return true;
}

static int tag_index_by_tags_text(const void *a, const void *b)
{
	const struct catalog_series *left = a, *right = b;
	return slice_compare(left->tags_text, right->tags_text);
}

static int emit_all(const struct tag_index *index, struct catalog_find *find,
		    const roaring_bitmap_t *set, size_t count)
{
	struct output out = {index, find};
	if (count > find->series_max)
		return errbuf_set(&find->error, ERR_LIMIT,
				  "%zu series match; at most %zu are read at once%s%s%s", count,
				  find->series_max, find->series_option ? " (" : "",
				  find->series_option ? find->series_option : "",
				  find->series_option ? ")" : "");
	find->series = arena_alloc(find->arena, count * sizeof(*find->series));
	bool whole = find->series != NULL;
	if (set)
		whole = whole && roaring_iterate(set, tag_index_emit, &out);
	for (size_t id = 0; !set && whole && id < count; id++)
		whole = tag_index_emit((uint32_t)id, &out);
	if (!whole)
		return errbuf_set(&find->error, ERR_LIMIT,
				  "the names of %zu series take too much memory", count);
	if (count > 1)
		qsort(find->series, count, sizeof(*find->series), tag_index_by_tags_text);
	return 0;
}

static int search_result(const struct tag_search *search)
{
	search->find->metric_series = search->index->count;
	const roaring_bitmap_t *set = search->set;
	size_t count = set ? roaring_bitmap_get_cardinality(set) : search->index->count;
	return emit_all(search->index, search->find, set, count);
}

/* ---- The first results ------------------------------------------------------------------------
 */

/* The first series, by their texts, of all that match: of twice as many as are wanted half goes,
 * again and again. So memory is bounded, however many match, and they are looked at in steps. */
struct firsts {
	size_t wanted, count, at; /* `at`: the next id, where all series match */
	bool trimmed;             /* list[wanted - 1] is the last that still counts */
	roaring_uint32_iterator_t *ids;
	struct arena one, texts, spare; /* the text at hand; those of the list; for trimming */
	struct catalog_series list[];   /* 2 * wanted */
};

enum { FIRSTS_TEXTS_MAX_BYTES = 256 << 20, FIRSTS_WEIGHT = 30 };

static struct firsts *firsts_new(const struct tag_search *search)
{
	size_t wanted = search->find->series_max;
	struct firsts *firsts = mem_zalloc(sizeof(*firsts) + 2 * wanted * sizeof(*firsts->list));
	firsts->wanted = wanted;
	firsts->ids = search->set ? roaring_create_iterator(search->set) : NULL;
	arena_init(&firsts->one, 2 * TAGS_TEXT_MAX_BYTES);
	arena_init(&firsts->texts, FIRSTS_TEXTS_MAX_BYTES);
	arena_init(&firsts->spare, FIRSTS_TEXTS_MAX_BYTES);
	return firsts;
}

static void firsts_free(struct firsts *firsts)
{
	if (!firsts)
		return;
	if (firsts->ids)
		roaring_free_uint32_iterator(firsts->ids);
	arena_release(&firsts->one);
	arena_release(&firsts->texts);
	arena_release(&firsts->spare);
	mem_free(firsts);
}

/* Sorted, at most as many as are wanted, their texts in `arena`. */
static bool firsts_keep(struct firsts *firsts, struct arena *arena)
{
	bool whole = true;
	if (firsts->count > 1)
		qsort(firsts->list, firsts->count, sizeof(*firsts->list), tag_index_by_tags_text);
	if (firsts->count > firsts->wanted)
		firsts->count = firsts->wanted;
	for (size_t i = 0; whole && i < firsts->count; i++) {
		firsts->list[i].tags_text = arena_copy(arena, firsts->list[i].tags_text);
		whole = firsts->list[i].tags_text.data;
	}
	return whole;
}

static bool firsts_trim(struct firsts *firsts)
{
	bool whole = firsts_keep(firsts, &firsts->spare);
	struct arena texts = firsts->texts;
	firsts->texts = firsts->spare;
	firsts->spare = texts;
	arena_reset(&firsts->spare);
	firsts->trimmed = true;
	return whole;
}

static bool firsts_add(struct tag_search *search, uint32_t id)
{
	struct firsts *firsts = search->firsts;
	arena_reset(&firsts->one);
	struct slice text = tags_text(search->index, id, &firsts->one);
	if (!text.data)
		return false;
	bool before = slice_compare(text, search->find->from) < 0;
	if (before || (firsts->trimmed &&
		       slice_compare(text, firsts->list[firsts->wanted - 1].tags_text) > 0))
		return true;
	text = arena_copy(&firsts->texts, text);
	firsts->list[firsts->count++] = (struct catalog_series){search->index->handles[id], text};
	return text.data && (firsts->count < 2 * firsts->wanted || firsts_trim(firsts));
}

/* *id: the next series that matches. */
static bool firsts_next(struct tag_search *search, uint32_t *id)
{
	struct firsts *firsts = search->firsts;
	if (!firsts->ids) {
		*id = (uint32_t)firsts->at;
		return firsts->at++ < search->index->count;
	}
	bool any = firsts->ids->has_value;
	*id = firsts->ids->current_value;
	if (any)
		roaring_advance_uint32_iterator(firsts->ids);
	return any;
}

/* True: all are there, or *err. */
static bool firsts_step(struct tag_search *search, uint64_t *work, int *err)
{
	struct catalog_find *find = search->find;
	if (!search->firsts)
		search->firsts = firsts_new(search);
	struct firsts *firsts = search->firsts;
	bool whole = true;
	uint32_t id;
	for (; whole && *work < SEARCH_STEP_WORK; *work += FIRSTS_WEIGHT) {
		if (!firsts_next(search, &id)) {
			whole = firsts_keep(firsts, find->arena);
			find->series =
				arena_alloc(find->arena, firsts->count * sizeof(*find->series));
			if (!whole || !find->series)
				break;
			memcpy(find->series, firsts->list, firsts->count * sizeof(*find->series));
			find->count = firsts->count;
			find->metric_series = search->index->count;
			return true;
		}
		whole = firsts_add(search, id);
	}
	if (whole && *work >= SEARCH_STEP_WORK)
		return false;
	*err = errbuf_set(&find->error, ERR_LIMIT, "the names of %zu series take too much memory",
			  find->series_max);
	return true;
}

static int tag_index_gather(struct catalog_list *list, struct slice name)
{
	char room[ESCAPED_PAIR_MAX];
	if (name.len > sizeof(room))
		return 0;
	name = tag_index_unescape(name, room);
	if (!name_starts(name, list->prefix))
		return 0;
	struct slice copy = arena_copy(list->arena, name);
	if (!copy.data || buf_append(&list->gathered, &copy, sizeof(copy)))
		return errbuf_set(&list->error, ERR_LIMIT,
				  "too many names; ask for those that begin with a prefix");
	return 0;
}

static int gather_values(struct tag_search *search, uint64_t *work)
{
	int err = 0;
	for (; search->pair != NONE && *work < SEARCH_STEP_WORK && !err; *work += 5) {
		err = tag_index_gather(search->find->list, pair_value(search->index, search->pair));
		search->pair = search->index->postings[search->pair].next;
	}
	return err;
}

bool tag_search_step(struct tag_search *search, int *err)
{
	struct catalog_list *list = search->find->list;
	uint64_t work = 0;
	*err = 0;
	if (list && list->what == CATALOG_TAG_KEYS) {
		const struct tag_index *index = search->index;
		for (uint32_t key = 0; key < index->keys.count && !*err; key++)
			*err = tag_index_gather(list, tag_index_text_of(index, &index->keys, key));
		return true;
	}
	if (list) {
		*err = gather_values(search, &work);
		return *err || search->pair == NONE;
	}
	while (work < SEARCH_STEP_WORK) {
		if (search->firsts ||
		    (!search->selector && !search_begin_selector(search, &work))) {
			if (search->find->from.data)
				return firsts_step(search, &work, err);
			*err = search_result(search);
			return true;
		}
		if (search_go_on(search, &work))
			search_narrow(search);
	}
	return false;
}
