/* The tags of a report as one text, which is one of its facts (facts.h).
 *
 * In a document they are an object, or a list of pairs, as Sentry's clients send them:
 *
 *     {"browser": "Firefox", "retries": 3}        [["browser", "Firefox"], ["retries", 3]]
 *
 * A tag is a name and a value that is a text, a number, true or false. In the text of a tag stands
 * its name, then the byte 0xff, then its value; between two tags stands the byte 0xfe. No UTF-8 has
 * these bytes. Pure. */
#ifndef FAULT_TAGS_H
#define FAULT_TAGS_H

#include "fault/facts.h"
#include "wire/json.h"

/* The first tags of a value in a document, without those that are there already; names and values
 * are cut to their limits. Empty: it has none, as where it has another shape. No data: the arena
 * is full. */
struct slice fault_tags_of(const struct json *value, struct arena *arena);

/* Takes the first tag off a text of tags, without what is none. False: there is none left. */
bool fault_tags_next(struct slice *tags, struct slice *tag);
/* False: it is no tag. */
bool fault_tag_split(struct slice tag, struct slice *name, struct slice *value);

#endif
