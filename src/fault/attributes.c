/* What is known by other names only where that loses nothing:
 *  - `value`, the message of an exception, and `tb_text`, its trace, have no name in O, so they
 *    keep that of python-oops;
 *  - `req_vars` becomes an attribute REQUEST.<name> for each of its members (report.c), whatever
 *    their values are;
 *  - python-oops has lists as `username` sometimes: they stay lists, and are no user;
 *  - `HTTP_STATUS`, `reporter`, `informational` and the rest of python-oops have no counterpart in
 *    O and stay as they are. */
#include "fault/attributes.h"

const struct fault_attribute fault_attributes[] = {
	{"bug.", NULL, NULL, NULL, FAULT_SHAPE_TEXT, -1,
	 "Numbers or addresses of bugs, by tracker: bug.launchpad."},
	{"HTTP.method", NULL, NULL, "request.method", FAULT_SHAPE_TEXT, -1, "GET, POST."},
	{"HTTP.", NULL, NULL, NULL, FAULT_SHAPE_TEXT, -1, "Variables of HTTP: HTTP.method is GET."},
	{"REQUEST.", NULL, "req_vars", NULL, FAULT_SHAPE_ANY, -1, "Variables of the request."},
	{"context", NULL, "topic", "transaction|culprit", FAULT_SHAPE_TEXT, FAULT_CONTEXT,
	 "What the request was for: a page, a template, a call."},
	{"exception", NULL, "type", "exception.type", FAULT_SHAPE_TEXT, FAULT_EXCEPTION,
	 "The class of the exception."},
	{"value", NULL, NULL,
	 "exception.value|logentry.formatted|logentry.message|message.formatted|message",
	 FAULT_SHAPE_TEXT, -1, "The message of the exception."},
	{"tb_text", NULL, NULL, NULL, FAULT_SHAPE_TEXT, -1, "The trace of the exception, as text."},
	{"URL", NULL, "url", "request.url", FAULT_SHAPE_TEXT, -1, "The address of the request."},
	{"userid", NULL, NULL, "user.id", FAULT_SHAPE_TEXT, FAULT_USER,
	 "The number or key of the user."},
	{"username", NULL, NULL, "user.username|user.email", FAULT_SHAPE_ANY, FAULT_USER,
	 "The name of the user."},
	{"branch", NULL, "branch_nick", NULL, FAULT_SHAPE_TEXT, -1,
	 "The branch of the server's source."},
	{"revision", NULL, "revno", NULL, FAULT_SHAPE_TEXT, -1,
	 "The revision of the server's source."},
	{"duration", NULL, NULL, NULL, FAULT_SHAPE_DURATION, -1,
	 "How long the request took, in ms."},
	{"timeline", NULL, NULL, NULL, FAULT_SHAPE_TIMELINE, -1,
	 "What was done during the request."},
	{"level", NULL, NULL, NULL, FAULT_SHAPE_TEXT, FAULT_LEVEL,
	 "How bad it is: error, warning."},
	{"release", NULL, NULL, NULL, FAULT_SHAPE_TEXT, FAULT_RELEASE,
	 "The release of the server."},
	{"environment", NULL, NULL, NULL, FAULT_SHAPE_TEXT, FAULT_ENVIRONMENT,
	 "Where the server runs: production, staging."},
	{"host", NULL, "hostname", "server_name", FAULT_SHAPE_TEXT, FAULT_HOST,
	 "The name of the machine."},
	{"tags", NULL, NULL, NULL, FAULT_SHAPE_TAGS, -1,
	 "Names and values: {\"browser\": \"Firefox\"}, or a list of pairs."},
	{"reported.date", "date", "time", "timestamp", FAULT_SHAPE_ANY, -1,
	 "When the sender says it was."},
	{"reported.id", "id", NULL, NULL, FAULT_SHAPE_ANY, -1,
	 "The sender's id, where the report has another."},
	{"reported.refused", "refused", NULL, NULL, FAULT_SHAPE_ANY, -1,
	 "The sender's refused: a report has under this name what of it was refused."},
};
const size_t fault_attribute_count = ARRAY_LEN(fault_attributes);

_Static_assert(ARRAY_LEN(fault_attributes) <= FAULT_ATTRIBUTES_MAX, "a set of rows is a word");

/* Whether it is this name or, where that ends with a point, begins with it. Most are told apart by
 * their first byte. */
static bool attributes_name_is(struct slice name, const char *known)
{
	if (!known || !name.len || *name.data != *known)
		return false;
	size_t len = strlen(known);
	if (name.len < len || memcmp(name.data, known, len) != 0)
		return false;
	return name.len == len || known[len - 1] == '.';
}

const struct fault_attribute *fault_attribute_find(struct slice name, enum fault_named *how)
{
	for (size_t i = 0; i < fault_attribute_count; i++) {
		const struct fault_attribute *row = &fault_attributes[i];
		*how = FAULT_NAMED_SO;
		if (attributes_name_is(name, row->name))
			return row;
		*how = FAULT_NAMED_AS_SENT;
		if (attributes_name_is(name, row->sent))
			return row;
		*how = FAULT_NAMED_IN_PYTHON;
		if (attributes_name_is(name, row->python))
			return row;
	}
	return NULL;
}
