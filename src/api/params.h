/* What a route is asked: its parameters, a row of a table each, which stands in the route's row
 * (struct http_route). From the rows come what is read, the sentences of errors, what is refused as
 * unknown, and the description on the page `/`. Pure.
 *
 * A misspelt `tag` that was passed over would answer with everything: so nothing is passed over. */
#ifndef API_PARAMS_H
#define API_PARAMS_H

#include "catalog/catalog.h"
#include "http/http.h"

enum param_type {
	PARAM_OTHER,  /* the route reads it by itself */
	PARAM_TEXT,   /* struct slice */
	PARAM_FLAG,   /* bool: true or false */
	PARAM_NUMBER, /* uint64_t or size_t: from `least` to `most` */
	PARAM_TIME,   /* int64_t, in ms (wire/timetext.h) */
	PARAM_WORD,   /* int or enum: its place in `words` */
	PARAM_TENANT, /* struct slice: else the header X-Tenant, else `default`; both only if they
			 agree. Of a caller that does not have all tenants it is the request's. */
	PARAM_TENANT_OR_ALL, /* struct slice: of all where it is left out */
	PARAM_METRIC,        /* struct slice */
};

struct param {
	const char *name; /* NULL: the end of the table */
	enum param_type type;
	size_t offset; /* where the value goes; it stays as it is where none is given */
	uint64_t least, most;
	const char *const *words; /* ends with NULL */
	const char *missing;      /* it must be given: what to say where it is not, or "" */
	bool repeated;
	const char *help; /* a sentence; NULL: none, as of what is there for clients that send it */
};

/* Reads all parameters into `question`. A time may be given as an age, counted from now_ms.
 * ERR_INVALID with a sentence, which names the parameter, what was given, and what may be. */
int params_read(const struct http_request *request, const struct param *params, int64_t now_ms,
		void *question, struct errbuf *e) MUST_CHECK;
/* The values alone, where the names are checked by others: the row of a name, or NULL. */
int params_read_values(const struct http_request *request, const struct param *params,
		       int64_t now_ms, void *question, struct errbuf *e) MUST_CHECK;
const struct param *params_find(const struct param *params, struct slice name);
/* With the table of the request's route. */
int params_read_route(const struct http_request *request, int64_t now_ms, void *question,
		      struct errbuf *e) MUST_CHECK;
/* For a route without a table: it takes no parameter. True; or 400 has been answered. */
bool params_none(struct http_request *request) MUST_CHECK;

/* Copies a text into the arena, for work that goes on when the request is gone. One that was not
 * given stays so. ERR_INVALID with a sentence: it has more than max_bytes, or is not UTF-8. */
int params_keep(struct arena *arena, struct slice *text, const char *name, size_t max_bytes,
		struct errbuf *e) MUST_CHECK;

/* All `tag`s, into an array in `arena`. ERR_INVALID, ERR_LIMIT with a sentence. */
int params_selectors(const struct http_request *request, struct arena *arena,
		     struct catalog_selector **list, size_t *count, struct errbuf *e) MUST_CHECK;

/* What may be given, as a page shows it: "a number from 1 to 1000". */
void param_describe(const struct param *param, struct buf *out);

#endif
