/* A fault report in any of the forms that python-oops and its kin write, told apart by its bytes:
 *
 *  - `BZh`: bzip2, with one of the others within;
 *  - a length that fits (or one below 16 MB: its last byte is then zero, which no text has): BSON;
 *  - `{` or `[` after blanks: JSON;
 *  - a first line that is a header: rfc822.
 *
 * oops_datedir_repo tries BSON and falls back to rfc822, which takes anything; here of a cut BSON
 * what is there is read, and what has no header is refused.
 *
 * Bytes in, tree out: no I/O, no globals. Threads: any. */
#ifndef WIRE_OOPS_DOCUMENT_H
#define WIRE_OOPS_DOCUMENT_H

#include "wire/json.h"

enum oops_dialect { OOPS_JSON, OOPS_BSON, OOPS_RFC822 };

/* "JSON", "BSON", "rfc822". */
const char *oops_dialect_name(enum oops_dialect dialect);

/* The tree is what the reader of the dialect gives (bson.h, oops_rfc822.h; json_parse_lax): an
 * object, or of JSON an array. It is in `arena`; its text also in `bytes`, or where these were
 * packed in `unpacked`, which is cleared first and takes at most unpacked_max_bytes. Both have to
 * outlive the tree.
 *
 * ERR_INVALID: empty, cut, damaged, or of none of these forms; ERR_LIMIT: the arena or `unpacked`
 * is full. Both with a sentence. *dialect is then the one that was tried. */
int oops_document_parse(struct slice bytes, size_t unpacked_max_bytes, struct buf *unpacked,
			struct arena *arena, struct json **root, enum oops_dialect *dialect,
			struct errbuf *e) MUST_CHECK;

#endif
