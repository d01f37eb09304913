/* The envelope of Sentry's clients (develop.sentry.dev/sdk/data-model/envelopes/): a line of JSON
 * with headers, then items, each a line of JSON with headers and a payload:
 *
 *     {"event_id":"9ec79c33ec9942ab8353589fcb2e04dc","dsn":"http://key@host/1"}\n
 *     {"type":"attachment","length":10}\n
 *     helloworld\n
 *     {"type":"session"}\n
 *     {"started":"2020-02-07T14:16:00Z"}
 *
 * Lines end with \n alone: a \r belongs to a payload, and is a blank within headers. A payload
 * whose item has a `length` has exactly so many bytes, and after it a newline or the end; one
 * without goes to the next newline or to the end. Blank lines in front of an item are passed over.
 *
 * Bytes in, struct out: no I/O, no globals; memory from the caller's arena. */
#ifndef WIRE_SENTRY_ENVELOPE_H
#define WIRE_SENTRY_ENVELOPE_H

#include "wire/json.h"

enum {
	SENTRY_HEADER_MAX_BYTES = 64 << 10, /* of the line of an envelope, or of an item */
	SENTRY_ITEMS_MAX = 1000,            /* of one envelope */
	SENTRY_ID_BYTES = 32,               /* an event's id: hexadecimal digits */
};

struct sentry_envelope {
	const struct json *headers; /* an object, in the arena */
	struct slice rest;          /* what was not read yet */
	size_t item_count;          /* that were read */
};

struct sentry_item {
	struct slice type; /* len 0: it says none */
	const struct json *headers;
	struct slice payload;
	bool cut; /* the payload is shorter than its headers say: the envelope ends within it */
};

/* Reads the headers of an envelope. The bytes must outlive it. ERR_INVALID with a sentence;
 * ERR_LIMIT: the arena is full. */
int sentry_envelope_begin(struct sentry_envelope *envelope, struct slice bytes, struct arena *arena,
			  struct errbuf *e) MUST_CHECK;

/* The next item. ERR_NOT_FOUND: there are no more; ERR_INVALID: from here on this is no envelope,
 * with a sentence, and the item is given if it is cut; ERR_LIMIT: the arena is full, or there are
 * more than SENTRY_ITEMS_MAX items. */
int sentry_envelope_next(struct sentry_envelope *envelope, struct arena *arena,
			 struct sentry_item *item, struct errbuf *e) MUST_CHECK;

/* An id as clients write it, with dashes or without, in large letters or small ones: 32 small
 * digits. False: it is none. */
bool sentry_id_parse(struct slice text, char id[SENTRY_ID_BYTES]) MUST_CHECK;

#endif
