/* Lines for Chukwa's agent as adaptors. Different from Chukwa: what a pattern of names has is
 * compared by fnmatch(), so that a name that begins with a dot needs one in the pattern; and the
 * time of a directory's last look is passed over, since where each file stood is told by a line of
 * its own. */
#include <stdio.h>

#include "agent/adaptors.h"
#include "base/log.h"
#include "wire/chukwa_agent.h"

enum { ADAPTORS_CHUKWA_LOGGED_MAX = 100 }; /* lines of a file that are passed over */

/* Why adaptors of a kind are not taken; NULL: they are. */
static const char *adaptors_chukwa_fault(enum chukwa_kind kind)
{
	switch (kind) {
	case CHUKWA_TAIL:
	case CHUKWA_FILE:
	case CHUKWA_DIRECTORY:
	case CHUKWA_EXEC:
	case CHUKWA_UDP:
	case CHUKWA_SYSLOG:
	case CHUKWA_REST:
	case CHUKWA_HEARTBEAT:
	case CHUKWA_HOST_METRICS:
		return NULL;
	case CHUKWA_BUFFERED:
		return "this agent keeps nothing for sending again but files, which are there";
	case CHUKWA_TEST:
		return "this agent makes no data for tests";
	case CHUKWA_NEEDS_JAVA:
		return "what it reads needs Java";
	}
	return "this agent does not know its kind";
}

static void adaptors_chukwa_rule(const struct chukwa_class *class, struct followed_rule *rule)
{
	rule->rest_ms = ADAPTOR_WAIT_MS;
	rule->whole = class->kind == CHUKWA_FILE;
	switch (class->records) {
	case CHUKWA_RAW:
		rule->records.kind = RECORDS_RAW;
		break;
	case CHUKWA_WHOLE_LINES:
	case CHUKWA_LINES:
		rule->records.kind = RECORDS_LINES;
		break;
	case CHUKWA_ESCAPED:
		rule->records.kind = RECORDS_ESCAPED;
		break;
	}
}

/* At Chukwa the whole name has to match. */
static int adaptors_chukwa_regex(struct adaptors *adaptors, struct slice pattern,
				 struct adaptor *adaptor, struct errbuf *e)
{
	char *whole = arena_printf(&adaptors->arena, "^(?:%.*s)$", (int)pattern.len, pattern.data);
	if (!whole)
		return adaptors_full(e);
	adaptor->pattern = ADAPTOR_NAME_REGEX;
	int err = regex_compile(slice_of(whole), false, &adaptors->arena, &adaptor->regex, e);
	return err ? errbuf_prefix(e, ERR_INVALID, "its regular expression " SHOWN,
				   SHOWN_OF(pattern))
		   : 0;
}

/* Chukwa's wildcards are * and ?; what else fnmatch() knows stands for itself. */
static int adaptors_chukwa_names(struct adaptors *adaptors, struct slice pattern,
				 struct adaptor *adaptor, struct errbuf *e)
{
	char *glob = arena_alloc(&adaptors->arena, 2 * pattern.len + 1), *to = glob;
	if (!glob)
		return adaptors_full(e);
	for (size_t i = 0; i < pattern.len; i++) {
		if (pattern.data[i] == '[' || pattern.data[i] == '\\')
			*to++ = '\\';
		*to++ = pattern.data[i];
	}
	*to = 0;
	adaptor->pattern = ADAPTOR_NAMES;
	adaptor->glob = glob;
	return 0;
}

static int adaptors_chukwa_directory(struct adaptors *adaptors, const struct chukwa_adaptor *line,
				     struct adaptor *adaptor, struct errbuf *e)
{
	struct slice pattern = line->pattern.len ? line->pattern : SLICE("*");
	adaptor->kind = ADAPTOR_DIRECTORY;
	adaptor->rule.passes = true;
	if (adaptor->path.len == 1)
		return errbuf_set(e, ERR_INVALID, "its directory / is everything");
	adaptors_chukwa_rule(line->child, &adaptor->rule);
	if (!line->class->regex)
		return adaptors_chukwa_names(adaptors, pattern, adaptor, e);
	adaptor->glob = arena_copy(&adaptors->arena, pattern).data;
	if (!adaptor->glob)
		return adaptors_full(e);
	return adaptors_chukwa_regex(adaptors, pattern, adaptor, e);
}

static int adaptors_chukwa_file(const struct chukwa_add *add, const struct chukwa_adaptor *line,
				struct adaptor *adaptor, struct errbuf *e)
{
	if (line->delete)
		return errbuf_set(e, ERR_INVALID,
				  "its file is to be deleted when it was sent, and this agent "
				  "deletes none");
	if (adaptor->path.len == 1)
		return errbuf_set(e, ERR_INVALID, "its path / is a directory");
	adaptor->kind = line->class->kind == CHUKWA_FILE ? ADAPTOR_FILE : ADAPTOR_TAIL;
	adaptor->rule.from = add->offset;
	adaptor->rule.first = line->first;
	adaptors_chukwa_rule(line->class, &adaptor->rule);
	return 0;
}

static int adaptors_chukwa_exec(struct adaptors *adaptors, const struct chukwa_adaptor *line,
				struct adaptor *adaptor, struct errbuf *e)
{
	adaptor->kind = ADAPTOR_EXEC;
	adaptor->rule.records.kind = RECORDS_LINES;
	adaptor->every_ms = (int64_t)line->seconds * 1000;
	adaptor->timeout_ms = ADAPTOR_TIMEOUT_MS;
	if (line->command.len > ADAPTOR_COMMAND_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "its command has more than %d bytes",
				  ADAPTOR_COMMAND_MAX_BYTES);
	adaptor->path = arena_copy(&adaptors->arena, line->command);
	return adaptor->path.data ? adaptors_check_names(adaptor, e) : adaptors_full(e);
}

/* At Chukwa they are bound to all addresses of the machine. */
static int adaptors_chukwa_port(struct adaptors *adaptors, const struct chukwa_adaptor *line,
				struct adaptor *adaptor, struct errbuf *e)
{
	adaptor->kind = line->class->kind == CHUKWA_UDP ? ADAPTOR_UDP : ADAPTOR_SYSLOG;
	adaptor->datagrams = true;
	int err = adaptors_take_address(adaptors, line->port, &adaptor->path, e);
	return err ? err : adaptors_check_names(adaptor, e);
}

/* At Chukwa the datatype of these metrics is that of Sigar's, whose lines are other ones. */
static int adaptors_chukwa_system(struct adaptors *adaptors, struct adaptor *adaptor,
				  struct errbuf *e)
{
	adaptor->kind = ADAPTOR_SYSTEM;
	adaptor->datatype = SLICE(ADAPTOR_SYSTEM_DATATYPE);
	adaptor->path = arena_copy(&adaptors->arena, SLICE(ADAPTOR_SYSTEM_TENANT));
	return adaptor->path.data ? 0 : adaptors_full(e);
}

static int adaptors_chukwa_heartbeat(struct adaptors *adaptors, const struct chukwa_adaptor *line,
				     struct adaptor *adaptor, struct errbuf *e)
{
	struct slice checkers = line->checkers, uri;
	int err;
	adaptor->kind = ADAPTOR_HEARTBEAT;
	while (!(err = chukwa_take_checker(&checkers, &uri, e))) {
		err = adaptors_add_component(
			adaptors, uri.len ? uri : SLICE(ADAPTOR_COMPONENT_AGENT), adaptor, e);
		if (err)
			return err;
	}
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* What asks again and again. */
static int adaptors_chukwa_asks(struct adaptors *adaptors, const struct chukwa_adaptor *line,
				struct adaptor *adaptor, struct errbuf *e)
{
	int err;
	adaptor->every_ms = (int64_t)line->seconds * 1000;
	adaptor->timeout_ms = ADAPTOR_TIMEOUT_MS;
	if (line->class->kind == CHUKWA_HOST_METRICS) {
		err = adaptors_chukwa_system(adaptors, adaptor, e);
	} else if (line->class->kind == CHUKWA_HEARTBEAT) {
		err = adaptors_chukwa_heartbeat(adaptors, line, adaptor, e);
	} else {
		adaptor->kind = ADAPTOR_HTTP;
		err = adaptors_take_url(adaptors, line->uri, &adaptor->path, e);
	}
	return err ? err : adaptors_check_names(adaptor, e);
}

static int adaptors_chukwa_path(struct adaptors *adaptors, const struct chukwa_add *add,
				const struct chukwa_adaptor *line, struct adaptor *adaptor,
				struct errbuf *e)
{
	int err = adaptors_take_path(adaptors, line->path, &adaptor->path, e);
	err = err ? err : adaptors_check_names(adaptor, e);
	if (err)
		return err;
	return line->class->kind == CHUKWA_DIRECTORY
		       ? adaptors_chukwa_directory(adaptors, line, adaptor, e)
		       : adaptors_chukwa_file(add, line, adaptor, e);
}

static int adaptors_chukwa_make(struct adaptors *adaptors, const struct chukwa_add *add,
				struct adaptor *adaptor, struct errbuf *e)
{
	struct chukwa_adaptor line;
	int err = chukwa_adaptor_read(add, &line, e);
	if (err)
		return err;
	const char *fault = adaptors_chukwa_fault(line.class->kind);
	if (fault)
		return errbuf_set(e, ERR_INVALID, "%s: %s", line.class->name.data, fault);
	adaptor->name = arena_copy(&adaptors->arena, add->id);
	adaptor->datatype = arena_copy(&adaptors->arena, add->datatype);
	if (!adaptor->name.data || !adaptor->datatype.data)
		return adaptors_full(e);
	switch (line.class->kind) {
	case CHUKWA_EXEC:
		return adaptors_chukwa_exec(adaptors, &line, adaptor, e);
	case CHUKWA_UDP:
	case CHUKWA_SYSLOG:
		return adaptors_chukwa_port(adaptors, &line, adaptor, e);
	case CHUKWA_REST:
	case CHUKWA_HEARTBEAT:
	case CHUKWA_HOST_METRICS:
		return adaptors_chukwa_asks(adaptors, &line, adaptor, e);
	default:
		return adaptors_chukwa_path(adaptors, add, &line, adaptor, e);
	}
}

int adaptors_add_chukwa_one(struct adaptors *adaptors, const struct chukwa_add *add,
			    struct errbuf *e)
{
	struct adaptor adaptor = {.kind = ADAPTOR_TAIL};
	int err = adaptors_chukwa_make(adaptors, add, &adaptor, e);
	if (err)
		return err;
	size_t named = adaptors_find_name(adaptors, adaptor.name);
	size_t same = adaptors_find_same(adaptors, &adaptor);
	if (named < adaptors->count && named == same)
		return 0;
	if (named < adaptors->count)
		return errbuf_set(e, ERR_EXISTS,
				  "there is an adaptor " SHOWN " already, which follows " SHOWN,
				  SHOWN_OF(adaptor.name), SHOWN_OF(adaptors->list[named].path));
	if (same < adaptors->count)
		return errbuf_set(e, ERR_EXISTS,
				  "the adaptor " SHOWN " follows the same with the same datatype",
				  SHOWN_OF(adaptors->list[same].name));
	return adaptors_add(adaptors, &adaptor, e);
}

/* One that is there already, by this name and with the same files, is not said in the log: at
 * Chukwa each start reads initial_adaptors again, of which the checkpoint has most. */
static int adaptors_chukwa_take(struct adaptors *adaptors, struct slice text, struct errbuf *e)
{
	struct chukwa_add add;
	int err = chukwa_add_parse(text, &adaptors->arena, &add, e);
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err;
	return adaptors_add_chukwa_one(adaptors, &add, e);
}

int adaptors_add_chukwa(struct adaptors *adaptors, const char *file_name, struct slice text,
			size_t *skipped, struct errbuf *e)
{
	struct slice line;
	size_t skipped_here = 0;
	for (size_t number = 1; slice_take_text_line(&text, &line); number++) {
		struct errbuf why = {""};
		int err = adaptors_chukwa_take(adaptors, line, &why);
		if (err == ERR_LIMIT)
			return errbuf_set(e, err, "%s:%zu: %s", file_name, number, why.text);
		if (!err)
			continue;
		++*skipped;
		if (skipped_here++ < ADAPTORS_CHUKWA_LOGGED_MAX)
			log_warn("%s:%zu is passed over, and other lines are kept: %s", file_name,
				 number, why.text);
	}
	if (skipped_here > ADAPTORS_CHUKWA_LOGGED_MAX)
		log_warn("%s: %zu more lines are passed over", file_name,
			 skipped_here - ADAPTORS_CHUKWA_LOGGED_MAX);
	return 0;
}
