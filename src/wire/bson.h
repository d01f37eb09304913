/* BSON (bsonspec.org, version 1.1) as a tree of JSON: fault reports of python-oops are kept so.
 *
 *     document   int32 length, of all of it; elements; a zero byte
 *     element    type byte; key, ended by a zero byte; value
 *     string     int32 length, with its zero byte; text; a zero byte
 *
 * All numbers are little endian. What becomes of the types:
 *
 *     | type                   | JSON                                                            |
 *     |------------------------|-----------------------------------------------------------------|
 *     | 01 double              | number; NaN, Infinity, -Infinity as text                        |
 *     | 02 string, 0d code,    | text                                                            |
 *     | 0e symbol              |                                                                 |
 *     | 03 document            | object                                                          |
 *     | 04 array               | array, in the order of the bytes: its keys are not looked at    |
 *     | 05 binary              | subtypes 3 and 4 of 16 bytes: a UUID as text, in the order of   |
 *     |                        | the bytes. Else the bytes as text if they are UTF-8 (Python 2   |
 *     |                        | has its str here), else in base64                               |
 *     | 06 undefined, 0a null  | null                                                            |
 *     | 07 ObjectId            | text, 24 hexadecimal digits                                     |
 *     | 08 boolean             | true, or false for a zero byte                                  |
 *     | 09 UTC datetime        | text: 2011-02-27T12:00:00Z, with .123 only where there are ms   |
 *     | 0b regular expression  | text: /pattern/options                                          |
 *     | 0c DBPointer           | text: collection:ObjectId                                       |
 *     | 0f code with scope     | object: code, a text, and scope, an object                      |
 *     | 10 int32, 12 int64     | number, exact                                                   |
 *     | 11 timestamp           | number, exact, unsigned: Python's bson has integers from 2^63 on |
 *     |                        | here                                                            |
 *     | 13 decimal128          | text, as the specification of decimal128 writes it: 12.50,      |
 *     |                        | 1E+40, NaN, Infinity                                            |
 *     | ff min key, 7f max key | text: MinKey, MaxKey                                            |
 *
 * Text and keys that are not UTF-8 have U+FFFD for each wrong byte. Of doubled keys all are in the
 * tree, and the last counts (json.h). Null stands for what nests deeper than JSON_DEPTH_MAX. Where
 * there are fewer bytes than the document says, the tree has the elements that are whole. The tree
 * says so, as that of json_parse_lax.
 *
 * It agrees with the package `bson` of Python, which python-oops uses, but that refuses text that
 * is not UTF-8, and gives nonsense for the types that it does not know.
 *
 * Bytes in, tree out: no I/O, no globals. Threads: any. */
#ifndef WIRE_BSON_H
#define WIRE_BSON_H

#include "wire/json.h"

enum { BSON_DOCUMENT_MIN_BYTES = 5 }; /* its length and the zero byte */

/* The document that the bytes begin with; what follows it is not looked at, as in Python. The tree
 * is in `arena`, its text also in `bytes`, which have to outlive it. ERR_INVALID with a sentence
 * that says what is wrong at which byte, from 0; ERR_LIMIT: the arena is full. */
int bson_parse(struct slice bytes, struct arena *arena, struct json **root,
	       struct errbuf *e) MUST_CHECK;

#endif
