/* A tree of JSON made value by value: by json_parse, and by readers of other formats whose values
 * are JSON's.
 *
 * A full arena is sticky: nothing is made after that, and who makes a tree checks `full` once, at
 * the end. What a text or key points to must outlive the tree. */
#ifndef WIRE_JSON_MAKE_H
#define WIRE_JSON_MAKE_H

#include "wire/json.h"

struct json_maker {
	struct arena *arena;
	bool full;
	unsigned level; /* how many arrays and objects are open */
	/* Where the next value goes, by level; level 0 is the root itself. */
	struct json *parent[JSON_DEPTH_MAX + 1];
	struct json **tail[JSON_DEPTH_MAX + 1];
};

/* *root is NULL until the first value is made. */
void json_maker_init(struct json_maker *maker, struct arena *arena, struct json **root);

/* The next member of the object, or element of the array (with no key), that is open; an array or
 * object is then open itself. Of a scalar the caller fills the value in. At most JSON_DEPTH_MAX may
 * be open. NULL: the arena is full. */
struct json *json_make(struct json_maker *maker, enum json_type type, struct slice key);
/* The array or object that was opened last gets no more. */
void json_make_end(struct json_maker *maker);

/* Marks the value that was made last; those that are open get JSON_MENDED_WITHIN. */
void json_make_mended(struct json_maker *maker, struct json *node, enum json_mended how);
/* Marks the array or object that was opened last with JSON_CUT. */
void json_make_cut(struct json_maker *maker);

/* Takes back the value that was made last, a scalar; `made` is where it hangs. */
void json_make_undo(struct json_maker *maker, struct json **made);

void json_make_null(struct json_maker *maker, struct slice key);
void json_make_bool(struct json_maker *maker, struct slice key, bool boolean);
void json_make_text(struct json_maker *maker, struct slice key, struct slice text);
/* With its literal. A double that is not finite becomes the text NaN, Infinity or -Infinity. */
void json_make_number(struct json_maker *maker, struct slice key, struct value number);

/* Memory of the tree; NULL: the arena is full. */
char *json_make_room(struct json_maker *maker, size_t bytes);
/* The text itself if it is UTF-8, else a copy with U+FFFD for each wrong byte; empty when the arena
 * is full. */
struct slice json_make_utf8(struct json_maker *maker, struct slice text);

#endif
