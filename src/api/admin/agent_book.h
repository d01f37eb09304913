/* Private to api/admin/: what agents elsewhere have said of the files they follow, in memory only.
 *
 * An agent begins with a report of all its adaptors, and goes on with reports of what has changed.
 * Both carry its boot, a number by lot of each start of the agent: so what the book has is never
 * put together of two starts of an agent, or of what was before a start of the server. A boot that
 * comes back when another one has come after it is that of a second agent: two report under one
 * name, and take the place of each other.
 *
 * Invariants: agents, and the adaptors of each, are in order of name, each name once; there are at
 * most AGENTS_MAX agents, AGENT_ADAPTORS_MAX adaptors of each, and AGENT_BOOK_MAX_BYTES altogether,
 * what the heap needs besides included, and of these one part in AGENT_TENANT_PARTS of each tenant
 * whose agents bear its name. A report that is refused changes nothing but what is known
 * of the boots.
 *
 * No I/O, no clock. One thread. */
#ifndef API_ADMIN_AGENT_BOOK_H
#define API_ADMIN_AGENT_BOOK_H

#include "base/base.h"
#include "base/mem.h"

enum {
	AGENTS_MAX = 10000,
	AGENT_ADAPTORS_MAX = 20000,
	AGENT_BOOK_MAX_BYTES = 64 << 20,
	AGENT_TENANT_PARTS = 4,
	/* Not heard of for so long: an agent is forgotten when others need its room. */
	AGENT_KEEP_MS = 7 * 86400 * 1000,
	AGENT_BOOTS_BEFORE = 3, /* that are remembered of each */
	AGENT_TELL_MS = 600000,
};

enum adaptor_state {
	ADAPTOR_FOLLOWING, /* all is sent */
	ADAPTOR_BEHIND,    /* it is sending */
	ADAPTOR_WAITING,   /* the collector does not take it now */
	ADAPTOR_MISSING,   /* there is no file */
	ADAPTOR_STOPPED,   /* a refusal for good, or an error that somebody has to mend */
	ADAPTOR_DONE,      /* a whole file was sent */
	ADAPTOR_STATES,
};

extern const char *const adaptor_state_words[ADAPTOR_STATES + 1]; /* ends with NULL */

struct adaptor_seen {
	struct slice name, kind, datatype, path, error;
	enum adaptor_state state;
	int64_t offset_bytes, behind_bytes;
	int64_t last_line_ms; /* 0: never */
};

/* A report. Texts are whoever's; the lists are sorted when it is taken. */
struct agent_said {
	size_t of_tenant; /* the agent's name begins with that of a tenant, of so many bytes; 0: not
			   */
	uint64_t boot;
	bool all;
	struct slice version, collector, problem;
	struct adaptor_seen *adaptors;
	size_t adaptor_count;
	struct slice *gone; /* names; one that is among `adaptors`, too, is not gone */
	size_t gone_count;
};

struct agent_seen {
	struct slice name, version, collector, problem;
	uint64_t boot, boots_before[AGENT_BOOTS_BEFORE]; /* the last one first; 0: none */
	int64_t heard_ms;
	int64_t shared_ms; /* when a boot came back; 0: never */
	int64_t told_ms;   /* when that was last to be told */
	struct adaptor_seen **adaptors;
	size_t count;
	size_t states[ADAPTOR_STATES]; /* how many are in each */
	int64_t behind_bytes;          /* of all; INT64_MAX: so many or more */
	size_t held_bytes;
};

struct agent_book {
	struct agent_seen **agents;
	size_t count;
	size_t held_bytes;
};

struct agent_book *agent_book_new(void);
void agent_book_free(struct agent_book *book); /* NULL is allowed */

/* Takes a report; `arena` is for the time of the call. With a sentence each: ERR_RETRY, the book
 * does not have that boot of the agent: it has to report all; ERR_INVALID, an adaptor is named
 * twice; ERR_LIMIT, the agent has too many adaptors; ERR_FULL, there is no room. */
int agent_book_take(struct agent_book *book, struct slice name, struct agent_said *said,
		    struct arena *arena, int64_t now_ms, struct errbuf *e) MUST_CHECK;

/* Whether it is to be told that several agents report under this name: once in AGENT_TELL_MS while
 * they do. */
bool agent_book_tells_shared(struct agent_book *book, struct slice name, int64_t now_ms) MUST_CHECK;

/* NULL: there is none of that name. Until the book changes. */
const struct agent_seen *agent_book_find(const struct agent_book *book, struct slice name);
/* False: there is none. */
bool agent_book_forget(struct agent_book *book, struct slice name) MUST_CHECK;

/* The place of the first agent, or adaptor, whose name is behind this one; the count: none is. */
size_t agent_book_behind(const struct agent_book *book, struct slice name);
size_t agent_seen_behind(const struct agent_seen *agent, struct slice name);

#endif
