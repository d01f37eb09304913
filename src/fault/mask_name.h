/* Which names are those of secrets.
 *
 * A name is taken as parts: it is cut at whatever is no letter or digit, and at the borders of
 * camelCase: `HTTP_COOKIE` and `httpCookie` are `http`, `cookie`; `X-API-Key` is `x`, `api`, `key`;
 * `user%5Bpassword%5D` is `user`, `password`. Digits at the end of a part do not count.
 *
 * A word matches where it ends with a part and begins with one; a word of MASK_NAME_LONG_BYTES or
 * more may begin within a part. So `apikey` is in `api_key` and `stripeApiKey`, `token` in
 * `accesstoken`, but not in `tokenizer`; a word `pin` would not be in `spin`.
 *
 * What follows the word may say that the value is about the secret and is not the secret: the name
 * `token_count` is none, nor `passwordLength`, nor `cookie_domain` (mask_name.c has the list). */
#ifndef FAULT_MASK_NAME_H
#define FAULT_MASK_NAME_H

#include "fault/mask.h"

enum {
	MASK_NAME_MAX_BYTES = 128, /* of a longer name the last that many are looked at */
	MASK_NAME_LONG_BYTES = 5,
	MASK_NAMES_KNOWN = 256, /* a power of two */
};

/* The words by their last character. It points to the masks. */
struct mask_table {
	const struct fault_masks *masks;
	uint8_t first[128];                 /* by character: a word's place + 1 */
	uint8_t next[FAULT_MASK_WORDS_MAX]; /* of the same last character */
	size_t len[FAULT_MASK_WORDS_MAX];   /* without the `=` */
};

/* What is known while a tree is gone through. It points to names and texts of the tree: the names
 * of one report are few, and come again with each frame of a trace. */
struct mask_words {
	struct mask_table table;
	/* What mask_text.c knows of the text that it goes through. */
	struct slice no_rows;   /* a part in which no VALUES has a literal */
	struct slice statement; /* the text, if it is a statement of SQL */
	const char *closing;    /* up to here all literals of the statement were looked at */
	struct mask_name_known {
		struct slice name;
		bool secret;
	} known[MASK_NAMES_KNOWN];
};

void mask_words_init(struct mask_words *words, const struct fault_masks *masks);

/* The name has to stay where it is as long as the words are asked. */
bool mask_name_is_secret(struct mask_words *words, struct slice name);

/* Whether the value is a header's, which goes to the end of its line: authorization, cookie. */
bool mask_name_is_header(struct slice name);

#endif
