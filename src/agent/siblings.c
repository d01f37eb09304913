#include "agent/siblings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/hash_table.h"
#include "wire/number.h"

enum {
	SIBLINGS_ARENA_MAX_BYTES = 8 << 20,
	SIBLINGS_NAMES_MAX_BYTES = 32 << 20, /* of one directory */
	SIBLINGS_TRIES = 6,
	SIBLINGS_NUMBER_DIGITS = 5, /* more are a date: 202611 is a month, 261129 a day */
};

/* ---- Names ----------------------------------------------------------------------------------- */

/* `1`, `20261129`, `2026-11-29T10:00`, `old`: what stands behind the dot. */
static bool siblings_is_turn(struct slice text, uint32_t *number)
{
	bool digits = false, others = false;
	uint32_t value = 0;
	*number = 0;
	if (slice_equal(text, SLICE("old")))
		return true;
	for (size_t i = 0; i < text.len; i++) {
		bool digit = number_is_digit(text.data[i]);
		digits |= digit;
		others |= !digit;
		if (!digit && !memchr("-_.:T", text.data[i], 5))
			return false;
	}
	if (digits && !others && text.len <= SIBLINGS_NUMBER_DIGITS) {
		for (size_t i = 0; i < text.len; i++)
			value = value * 10 + (uint32_t)(text.data[i] - '0');
		*number = value + 1;
	}
	return digits;
}

/* `before` SEPARATOR TURN `behind` */
static bool siblings_has_form(struct slice name, struct slice before, struct slice behind,
			      struct slice *turn)
{
	uint32_t number;
	if (name.len < before.len + 2 + behind.len || !slice_starts_with(name, before) ||
	    !slice_ends_with(name, behind) || !memchr(".-_", name.data[before.len], 3))
		return false;
	*turn = (struct slice){name.data + before.len + 1, name.len - before.len - 1 - behind.len};
	return siblings_is_turn(*turn, &number);
}

static struct slice siblings_unpacked(struct slice name)
{
	const char *ending = content_ending(content_packing_of(name));
	return (struct slice){name.data, name.len - strlen(ending)};
}

/* `app` of `app.log`: with it begins each name that the log may get. */
static struct slice siblings_stem(struct slice base)
{
	const char *dot = base.len ? memrchr(base.data + 1, '.', base.len - 1) : NULL;
	return (struct slice){base.data, dot ? (size_t)(dot - base.data) : base.len};
}

static bool siblings_has_turn(struct slice base, struct slice name, struct slice *turn)
{
	if (!base.len)
		return false;
	name = siblings_unpacked(name);
	if (siblings_has_form(name, base, SLICE(""), turn))
		return true;
	struct slice stem = siblings_stem(base);
	return stem.len < base.len &&
	       siblings_has_form(name, stem,
				 (struct slice){base.data + stem.len, base.len - stem.len}, turn);
}

bool siblings_is_rotated(struct slice base, struct slice name, uint32_t *number)
{
	struct slice turn;
	return siblings_has_turn(base, name, &turn) && siblings_is_turn(turn, number);
}

/* `before` SEPARATOR TURN: each `before`, put in front of `behind`. */
static size_t siblings_bases_before(struct slice name, struct slice behind, struct slice *bases,
				    size_t count, char *room)
{
	uint32_t number;
	for (size_t at = name.len; at-- > 1 && count < SIBLINGS_BASES_MAX;) {
		if (!memchr(".-_", name.data[at], 3))
			continue;
		if (!siblings_is_turn((struct slice){name.data + at + 1, name.len - at - 1},
				      &number))
			continue;
		if (behind.len) {
			char *to = room + count * (SIBLINGS_NAME_MAX_BYTES + 1);
			memcpy(to, name.data, at);
			memcpy(to + at, behind.data, behind.len);
			bases[count++] = (struct slice){to, at + behind.len};
		} else {
			bases[count++] = (struct slice){name.data, at};
		}
	}
	return count;
}

size_t siblings_bases_of(struct slice name, struct slice bases[SIBLINGS_BASES_MAX],
			 char room[SIBLINGS_BASES_MAX * (SIBLINGS_NAME_MAX_BYTES + 1)])
{
	if (name.len > SIBLINGS_NAME_MAX_BYTES)
		return 0;
	name = siblings_unpacked(name);
	size_t count = siblings_bases_before(name, (struct slice){NULL, 0}, bases, 0, room);
	const char *dot = name.len ? memrchr(name.data, '.', name.len) : NULL;
	if (dot && dot > name.data) {
		struct slice stem = {name.data, (size_t)(dot - name.data)};
		struct slice ext = {dot, name.len - stem.len};
		count = siblings_bases_before(stem, ext, bases, count, room);
	}
	return count;
}

/* ---- The names of a directory ---------------------------------------------------------------- */

void siblings_init(struct siblings *siblings, struct clock *clock)
{
	*siblings = (struct siblings){.clock = clock};
	arena_init(&siblings->arena, SIBLINGS_ARENA_MAX_BYTES);
	arena_init(&siblings->names.arena, SIBLINGS_NAMES_MAX_BYTES);
}

void siblings_release(struct siblings *siblings)
{
	mem_free(siblings->list);
	arena_release(&siblings->arena);
	mem_free(siblings->names.directory);
	mem_free(siblings->names.list);
	arena_release(&siblings->names.arena);
}

static void siblings_keep_name(void *owner, const char *name)
{
	struct siblings_names *names = owner;
	struct slice copy = {NULL, 0};
	if (!names->full)
		copy = arena_copy(&names->arena, slice_of(name));
	names->full = !copy.data;
	if (names->full)
		return;
	GROW(names->list, names->capacity, names->count + 1);
	names->list[names->count++] = copy;
}

static int siblings_order_names(const void *left, const void *right)
{
	const struct slice *a = left, *b = right;
	return slice_compare(*a, *b);
}

static bool siblings_is_same(const struct file_look *a, const struct file_look *b)
{
	return file_id_equal(&a->id, &b->id) && a->changed_ns == b->changed_ns;
}

/* Lists a directory. The names are kept for the next log if it did not change meanwhile, nor just
 * before. */
static int siblings_read_names(struct siblings *siblings, struct files *files,
			       const char *directory, const struct file_look *before)
{
	struct siblings_names *names = &siblings->names;
	struct file_look behind;
	mem_free(names->directory);
	names->directory = NULL;
	names->count = names->full = 0;
	arena_reset(&names->arena);
	int err = files->list(files, directory, siblings_keep_name, names);
	err = err ? err : files->look_at(files, directory, &behind);
	if (err || names->full)
		return err;
	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), siblings_order_names);
	int64_t age_ns = siblings->clock->wall_us(siblings->clock) * 1000 - behind.changed_ns;
	if (siblings_is_same(before, &behind) && age_ns > SIBLINGS_STEP_NS) {
		names->directory = mem_copy_text(slice_of(directory));
		names->look = behind;
	}
	return 0;
}

/* Where the first name stands that is not before a text. */
static size_t siblings_names_from(const struct siblings_names *names, struct slice text)
{
	size_t at = 0, end = names->count;
	while (at < end) {
		size_t middle = at + (end - at) / 2;
		if (slice_compare(names->list[middle], text) < 0)
			at = middle + 1;
		else
			end = middle;
	}
	return at;
}

/* ---- Finding --------------------------------------------------------------------------------- */

struct siblings_search {
	struct siblings *siblings;
	struct slice base;
	int err;
};

static void siblings_see(void *owner, const char *text)
{
	struct siblings_search *search = owner;
	struct siblings *siblings = search->siblings;
	struct slice name = slice_of(text), turn = {NULL, 0};
	uint32_t number = 0;
	bool is_log = slice_equal(name, search->base);
	if (search->err || (!is_log && !siblings_has_turn(search->base, name, &turn)))
		return;
	bool is_dated = !is_log && siblings_is_turn(turn, &number) && !number &&
			!slice_equal(turn, SLICE("old"));
	name = arena_copy(&siblings->arena, name);
	if (!name.data || siblings->count == SIBLINGS_MAX) {
		search->err = ERR_LIMIT;
		return;
	}
	GROW(siblings->list, siblings->capacity, siblings->count + 1);
	siblings->list[siblings->count++] = (struct sibling){
		.name = name,
		.number = number,
		.is_dated = is_dated,
		.is_log = is_log,
		.packing = is_log ? CONTENT_PLAIN : content_packing_of(name),
		.unpacked = siblings_unpacked(name).len,
	};
}

/* Numbers and dates are surer than times: a renamed file may be written to for a while when the
 * next one has been made. Those with neither are taken for older ones. */
static int siblings_kind(const struct sibling *sibling)
{
	return sibling->is_log ? 3 : sibling->number ? 2 : sibling->is_dated ? 1 : 0;
}

/* How many digits a name begins with; zeros in front are taken off it. */
static size_t siblings_digits(struct slice *name)
{
	size_t len = 0;
	while (name->len > 1 && name->data[0] == '0' && number_is_digit(name->data[1]))
		*name = (struct slice){name->data + 1, name->len - 1};
	while (len < name->len && number_is_digit(name->data[len]))
		len++;
	return len;
}

/* Numbers in names by their values: `app-2026-11-29-10.log` is younger than `app-2026-11-29-9.log`
 * (log4j, logback). */
static int siblings_compare_names(struct slice left, struct slice right)
{
	struct slice a = left, b = right;
	while (a.len && b.len) {
		size_t a_digits = siblings_digits(&a), b_digits = siblings_digits(&b);
		if (a_digits && b_digits && a_digits != b_digits)
			return a_digits < b_digits ? -1 : 1;
		size_t len = a_digits && b_digits ? a_digits : 1;
		int order = len == 1 ? (uint8_t)*a.data - (uint8_t)*b.data
				     : memcmp(a.data, b.data, len);
		if (order)
			return order;
		a = (struct slice){a.data + len, a.len - len};
		b = (struct slice){b.data + len, b.len - len};
	}
	if (a.len || b.len)
		return a.len ? 1 : -1;
	return slice_compare(left, right);
}

/* Older ones first. */
static int siblings_compare(const void *left, const void *right)
{
	const struct sibling *a = left, *b = right;
	int kind = siblings_kind(a);
	if (kind != siblings_kind(b))
		return kind < siblings_kind(b) ? -1 : 1;
	if (a->number != b->number)
		return a->number > b->number ? -1 : 1;
	if (kind == 0 && a->look.changed_ns != b->look.changed_ns)
		return a->look.changed_ns < b->look.changed_ns ? -1 : 1;
	return siblings_compare_names((struct slice){a->name.data, a->unpacked},
				      (struct slice){b->name.data, b->unpacked});
}

/* A file that is being packed is there twice: the packed one counts when the other one is gone. */
static void siblings_drop_unfinished(struct siblings *siblings)
{
	struct hash_table plain = {.count = 0}; /* hashes of names alone */
	size_t kept = 0;
	bool added;
	for (size_t i = 0; i < siblings->count; i++) {
		const struct slice name = siblings->list[i].name;
		if (siblings->list[i].packing == CONTENT_PLAIN)
			hash_table_add(&plain, hash128(name.data, name.len, 0),
				       sizeof(struct hash128), &added);
	}
	for (size_t i = 0; i < siblings->count; i++) {
		const struct sibling *sibling = &siblings->list[i];
		const char *dot = memrchr(sibling->name.data, '.', sibling->name.len);
		bool twice =
			sibling->packing != CONTENT_PLAIN &&
			hash_table_find(&plain, hash128(sibling->name.data,
							(size_t)(dot - sibling->name.data), 0));
		if (!twice)
			siblings->list[kept++] = *sibling;
	}
	siblings->count = kept;
	hash_table_release(&plain);
}

static int siblings_look(struct siblings *siblings, struct files *files, const char *directory)
{
	char path[PATH_MAX];
	size_t kept = 0;
	for (size_t i = 0; i < siblings->count; i++) {
		struct sibling *sibling = &siblings->list[i];
		int len = snprintf(path, sizeof(path), "%s/%s", directory, sibling->name.data);
		int err = len < (int)sizeof(path) ? files->look_at(files, path, &sibling->look)
						  : -ENAMETOOLONG;
		if (err == ERR_NOT_FOUND || err == -ELOOP) {
			/* It was renamed meanwhile; or is a link that leads nowhere, and is found
			 * so the next time, too. */
			siblings->which += hash64(sibling->name.data, sibling->name.len, 0);
			continue;
		}
		if (err)
			return err;
		if (sibling->look.type == FILE_REGULAR)
			siblings->list[kept++] = *sibling;
	}
	siblings->count = kept;
	return 0;
}

/* Names that the log may have got, in any order. */
static int siblings_list(struct siblings *siblings, struct files *files, const char *directory,
			 struct siblings_search *search)
{
	const struct siblings_names *names = &siblings->names;
	struct slice stem = siblings_stem(search->base);
	struct file_look look;
	int err = files->look_at(files, directory, &look);
	bool known = !err && names->directory && strcmp(names->directory, directory) == 0 &&
		     siblings_is_same(&names->look, &look);
	if (!err && !known)
		err = siblings_read_names(siblings, files, directory, &look);
	if (err)
		return err;
	if (names->full)
		return files->list(files, directory, siblings_see, search);
	for (size_t i = siblings_names_from(names, stem);
	     i < names->count && slice_starts_with(names->list[i], stem); i++)
		siblings_see(search, names->list[i].data);
	return 0;
}

static int siblings_find_once(struct siblings *siblings, struct files *files, const char *directory,
			      struct slice base)
{
	struct siblings_search search = {siblings, base, 0};
	siblings->count = siblings->which = 0;
	arena_reset(&siblings->arena);
	int err = siblings_list(siblings, files, directory, &search);
	err = err ? err : search.err;
	err = err ? err : siblings_look(siblings, files, directory);
	if (err)
		return err;
	siblings_drop_unfinished(siblings);
	if (siblings->count)
		qsort(siblings->list, siblings->count, sizeof(*siblings->list), siblings_compare);
	siblings->which += siblings->count;
	for (size_t i = 0; i < siblings->count; i++) {
		const struct sibling *sibling = &siblings->list[i];
		uint64_t file[] = {sibling->look.id.inode, (uint64_t)sibling->look.id.born_ns};
		/* In any order: that of times may change. */
		siblings->which += hash64(sibling->name.data, sibling->name.len,
					  hash64(file, sizeof(file), 0));
	}
	return 0;
}

/* While files are renamed one after the other, a directory may be read with one of them twice, or
 * not at all: what was read counts if it is the same the next time. */
int siblings_find(struct siblings *siblings, struct files *files, const char *directory,
		  struct slice base)
{
	uint64_t before = 0;
	bool seen = false;
	for (int i = 0; i < SIBLINGS_TRIES; i++) {
		int err = siblings_find_once(siblings, files, directory, base);
		if (err && err != ERR_RETRY)
			return err;
		if (!err && seen && siblings->which == before)
			return 0;
		seen = !err;
		before = siblings->which;
	}
	return ERR_RETRY;
}

int siblings_check(struct siblings *siblings, struct files *files, const char *directory,
		   struct slice base)
{
	uint64_t before = siblings->which;
	int err = siblings_find_once(siblings, files, directory, base);
	if (err == ERR_NOT_FOUND) {
		siblings->count = siblings->which = 0;
		err = 0;
	}
	return err ? err : siblings->which == before ? 0 : ERR_RETRY;
}
