/* The content of a file that is open: what was written to it, unpacked where the file is packed by
 * gzip or zstd, as programs that rotate logs do it.
 *
 * One thread at a time. */
#ifndef AGENT_CONTENT_H
#define AGENT_CONTENT_H

#include "base/file.h"

enum {
	/* So many bytes say whether two contents are the same: the first ones of a file, and those
	 * in front of a place in it. */
	CONTENT_MARK_MAX_BYTES = 1024,
};

/* The hash (XXH3) of some bytes, at most CONTENT_MARK_MAX_BYTES. */
struct content_mark {
	uint32_t bytes;
	uint64_t hash;
};

struct content;

enum content_packing { CONTENT_PLAIN, CONTENT_GZIP, CONTENT_ZSTD };
/* By the end of the name. */
enum content_packing content_packing_of(struct slice name);
const char *content_ending(enum content_packing packing); /* `.gz`; plain: an empty text */

/* ERR_NOT_FOUND; ERR_INVALID: it is no regular file; or why it cannot be opened. */
int content_open(struct files *files, const char *path, enum content_packing packing,
		 struct content **content, struct file_look *look) MUST_CHECK;
void content_close(struct content *content); /* NULL is allowed */

bool content_is_packed(const struct content *content);
int content_look(const struct content *content, struct file_look *look) MUST_CHECK;

/* As many bytes of the content as there are from an offset on, at most max_bytes; fewer only at its
 * end. Going back in a packed file unpacks it again from its beginning. ERR_DAMAGED: it
 * cannot be unpacked, or is not complete yet. */
int content_read(struct content *content, uint64_t offset, void *to, size_t max_bytes,
		 size_t *bytes) MUST_CHECK;

/* The mark of the bytes in front of an offset. ERR_NOT_FOUND: the content is shorter. */
int content_mark_at(struct content *content, uint64_t offset, struct content_mark *mark) MUST_CHECK;
/* The mark of the first bytes, now as many as there are. ERR_NOT_FOUND: the content does not begin
 * as it did. */
int content_note_head(struct content *content, struct content_mark *head) MUST_CHECK;
/* 0: the bytes that end at an offset have this mark, or those at the beginning have. ERR_NOT_FOUND:
 * they have another one, or the content is shorter. Else they cannot be read. */
int content_check(struct content *content, uint64_t offset, struct content_mark mark) MUST_CHECK;
int content_check_head(struct content *content, struct content_mark head) MUST_CHECK;

struct content_mark content_mark_of(const void *bytes, size_t len);

#endif
