/* The adaptors of a configuration: the section `adaptors`, and what Chukwa's agent was told
 * (doc/agent.md). Who reads them refuses what could not be followed, with a sentence; whether a
 * file is there is not looked at.
 *
 * One thread. */
#ifndef AGENT_ADAPTORS_H
#define AGENT_ADAPTORS_H

#include "agent/adaptor.h"

struct chukwa_add;
struct conf_node;

enum {
	ADAPTORS_MAX = 10000,
	ADAPTORS_MAX_BYTES = 64 << 20,
	ADAPTORS_RUN_MAX = 16, /* that have a thread each, of which a process has few */
	ADAPTOR_NAME_MAX_BYTES = 255,
	ADAPTOR_WAIT_MS = 1000,
	ADAPTOR_WAIT_MAX_MS = 10 * 60 * 1000,
	ADAPTOR_COMMAND_MAX_BYTES = 4096, /* as much as reports have of a path */
	ADAPTOR_EVERY_MIN_MS = 1000,
	ADAPTOR_EVERY_MS = 60000,
	ADAPTOR_EVERY_MAX_MS = 7 * 24 * 3600 * 1000,
	ADAPTOR_TIMEOUT_MS = 30000,
	ADAPTOR_TIMEOUT_MIN_MS = 100,
	ADAPTOR_URL_MAX_BYTES = 2048,
	ADAPTOR_SYSTEM_EVERY_MS = 10000,
	ADAPTOR_COMPONENTS_MAX = 32, /* of a heartbeat */
};

/* The tenant that a server keeps its own machine's metrics in, and the datatype of what an agent
 * sends of its machine. */
#define ADAPTOR_SYSTEM_TENANT   "host"
#define ADAPTOR_SYSTEM_DATATYPE "HostMetrics"
/* The journals of this machine. */
#define ADAPTOR_JOURNAL_LOCAL "local"
/* The datatype of the log of this program. */
#define ADAPTOR_OWN_LOG "granary"
/* The component of a heartbeat that is the agent itself; others are URLs. */
#define ADAPTOR_COMPONENT_AGENT "agent"

/* As they are written in a configuration; ended by NULL. */
extern const char *const adaptor_kind_words[ADAPTOR_KINDS + 1];

struct adaptors *adaptors_new(void);
/* An empty one whose adaptors may be those of `base`, which stays for as long as this one does and
 * is not changed any more. */
struct adaptors *adaptors_new_of(struct adaptors *base);
/* NULL: nothing happens. From any thread, since several may have one that others are made of. */
void adaptors_free(struct adaptors *adaptors);

/* Reads the section `adaptors`, NULL: none is given. The section may go then. ERR_INVALID, or
 * ERR_LIMIT where it is too large, with a sentence. */
int adaptors_read(const struct conf_node *section, struct adaptors **adaptors,
		  struct errbuf *e) MUST_CHECK;

/* Adds adaptors of the logs of this machine, where they follow nothing that is followed already: of
 * files below /var/log, of the journal where the machine has one, and of the log of this program,
 * an absolute path; empty: there is none. The adaptors may have no base. With a sentence. */
int adaptors_add_local(struct adaptors *adaptors, bool has_journal, struct slice own_log,
		       struct errbuf *e) MUST_CHECK;

/* Lines of Chukwa's initial_adaptors, or of a checkpoint (wire/chukwa_agent.h), become adaptors of
 * the same meaning, each named by the line's id. One of that id that is there already stays as it
 * is. What cannot be followed is passed over, said in the log with its place and why, and counted
 * in *skipped. ERR_LIMIT with a sentence: there are too many; some are added. */
int adaptors_add_chukwa(struct adaptors *adaptors, const char *file_name, struct slice text,
			size_t *skipped, struct errbuf *e) MUST_CHECK;

/* The same for one line that was read. 0 also where an adaptor of this name and with the same files
 * is there; ERR_EXISTS: one has its name or its files; ERR_INVALID: it cannot be followed; with a
 * sentence. Its texts lie in `adaptors` then. */
int adaptors_add_chukwa_one(struct adaptors *adaptors, const struct chukwa_add *add,
			    struct errbuf *e) MUST_CHECK;
/* Its texts are in the arena, or in that of the base. */
int adaptors_add(struct adaptors *adaptors, const struct adaptor *adaptor,
		 struct errbuf *e) MUST_CHECK;
/* The next component of a heartbeat. False: there is none. */
bool adaptors_take_component(struct slice *components, struct slice *component);

/* ---- Private to adaptors*.c ------------------------------------------------------------------ */

/* ERR_LIMIT with its sentence. */
int adaptors_full(struct errbuf *e);
/* Copies a path without the / at its end. ERR_INVALID with a sentence: it is none that a stream
 * may be named by. */
int adaptors_take_path(struct adaptors *adaptors, struct slice text, struct slice *path,
		       struct errbuf *e) MUST_CHECK;
/* ERR_INVALID with a sentence: no stream may have its datatype and name. */
int adaptors_check_names(const struct adaptor *adaptor, struct errbuf *e) MUST_CHECK;
/* The place of the adaptor that has the name, or that follows the same files. The count: there is
 * none. */
size_t adaptors_find_name(const struct adaptors *adaptors, struct slice name);
size_t adaptors_find_same(const struct adaptors *adaptors, const struct adaptor *adaptor);
struct adaptors_reader {
	struct adaptors *made;
	const struct conf_node *section; /* in the arena of what is made */
	struct errbuf *e;
};
int adaptors_read_datatype(struct adaptors_reader *r, const struct conf_node *node,
			   struct adaptor *adaptor) MUST_CHECK;
/* Reads an adaptor that is an inlet; `place` has the key of its kind. */
int adaptors_read_inlet(struct adaptors_reader *r, const struct conf_node *node,
			const struct conf_node *place, struct adaptor *adaptor) MUST_CHECK;
/* `PORT`, which is one of 127.0.0.1, or `ADDRESS:PORT`. ERR_INVALID with a sentence. */
int adaptors_take_address(struct adaptors *adaptors, struct slice text, struct slice *place,
			  struct errbuf *e) MUST_CHECK;
/* http://HOST or https://HOST, and what may follow. ERR_INVALID with a sentence. */
int adaptors_take_url(struct adaptors *adaptors, struct slice text, struct slice *url,
		      struct errbuf *e) MUST_CHECK;
/* Adds a component to those of a heartbeat. Likewise. */
int adaptors_add_component(struct adaptors *adaptors, struct slice component,
			   struct adaptor *adaptor, struct errbuf *e) MUST_CHECK;

#endif
