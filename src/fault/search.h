/* Search in the texts of reports (words/query.h): words are looked for in the id and in all
 * texts and numbers of the body, not in the names of attributes. A key is `id`, one of the
 * facts, an attribute of the body, or a tag of Sentry's clients; its value is compared as a whole.
 *
 * One thread at a time. */
#ifndef FAULT_SEARCH_H
#define FAULT_SEARCH_H

#include "fault/arrival.h"
#include "words/filter.h"

struct fault_search {
	struct words_matcher matcher;
	struct buf body;
	struct arena arena; /* of the body's strings */
};

/* The query is the caller's. */
void fault_search_init(struct fault_search *search, const struct words_query *query);
void fault_search_release(struct fault_search *search);
/* Whether a report fits whose body is packed in the arrival. ERR_DAMAGED: it cannot be unpacked. */
int fault_search_fits(struct fault_search *search, const struct fault_arrival *arrival,
		      bool *fits) MUST_CHECK;
/* Or one with this body. */
bool fault_search_fits_body(struct fault_search *search, const struct fault_arrival *arrival,
			    struct slice body);
/* Adds all words of a report, and of its values, that a search could find. The arena is reset. */
void fault_search_add_words(struct words_set *set, unsigned part, struct arena *arena,
			    const struct fault_arrival *arrival, struct slice body);

#endif
