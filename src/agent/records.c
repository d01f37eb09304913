#include "agent/records.h"

const char *const records_words[RECORDS_KINDS + 1] = {
	[RECORDS_RAW] = "raw",         [RECORDS_LINES] = "lines",
	[RECORDS_ESCAPED] = "escaped", [RECORDS_BEGINNING] = "beginning",
	[RECORDS_DOCKER] = "docker",   [RECORDS_CRI] = "cri",
};

enum { RECORDS_ESCAPE = 4 }; /* Ctrl-D, as Chukwa's appenders of log4j write it */

static bool records_line_is_escaped(struct slice line)
{
	return line.len >= 2 && line.data[line.len - 2] == RECORDS_ESCAPE;
}

/* `{"log":"text\n",...}`: a text without a newline at its end is a part of a record. What looks
 * otherwise is a record of its own. */
static bool records_docker_is_partial(struct slice line)
{
	static const struct slice begin = SLICE("{\"log\":\"");
	if (!slice_starts_with(line, begin))
		return false;
	const char *at = line.data + begin.len, *end = line.data + line.len;
	bool newline = false;
	while (at < end && *at != '"') {
		bool escape = *at == '\\' && at + 1 < end;
		newline = escape && at[1] == 'n';
		at += escape ? 2 : 1;
	}
	return at < end && !newline;
}

/* `TIME stdout P text`: P is a part of a record, F is the last part or the whole. */
static bool records_cri_is_partial(struct slice line)
{
	const char *end = line.data + line.len;
	const char *stream = memchr(line.data, ' ', line.len);
	const char *tag = stream ? memchr(stream + 1, ' ', (size_t)(end - stream - 1)) : NULL;
	return tag && end - tag >= 3 && tag[1] == 'P' && (tag[2] == ' ' || tag[2] == ':');
}

/* Whether the record of a line ends with it, newline included. */
static bool records_line_ends(enum records_kind kind, struct slice line)
{
	switch (kind) {
	case RECORDS_ESCAPED:
		return !records_line_is_escaped(line);
	case RECORDS_DOCKER:
		return !records_docker_is_partial(line);
	case RECORDS_CRI:
		return !records_cri_is_partial(line);
	default:
		return true;
	}
}

static void records_add(struct records_found *found, size_t end)
{
	found->ends[found->end_count++] = (uint32_t)end;
	found->whole_bytes = end;
}

void records_find(const struct records_rule *rule, struct slice data, struct records_found *found,
		  uint64_t *work)
{
	found->whole_bytes = found->end_count = 0;
	if (!data.len)
		return;
	if (rule->kind == RECORDS_RAW) {
		records_add(found, data.len);
		return;
	}
	const char *at = data.data, *end = data.data + data.len, *newline;
	if (rule->kind == RECORDS_LINES) {
		newline = memrchr(data.data, '\n', data.len);
		found->whole_bytes = newline ? (size_t)(newline + 1 - data.data) : 0;
		return;
	}
	while (found->end_count < RECORDS_ENDS_MAX &&
	       (newline = memchr(at, '\n', (size_t)(end - at)))) {
		struct slice line = {at, (size_t)(newline + 1 - at)};
		if (rule->kind == RECORDS_BEGINNING) {
			/* The record in front ends where this one begins. */
			struct slice text = {at, line.len - 1};
			if (at > data.data && regex_search(&rule->begins, text, work))
				records_add(found, (size_t)(at - data.data));
		} else if (records_line_ends(rule->kind, line)) {
			records_add(found, (size_t)(newline + 1 - data.data));
		}
		at = newline + 1;
	}
}
