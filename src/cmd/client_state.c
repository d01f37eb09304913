#include "cmd/client_state.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cmd/client_private.h"
#include "wire/number.h"

enum { CLIENT_STATE_MAX_BYTES = 2 << 20 };

bool client_state_set_path(struct client_state *state, const char *file)
{
	return snprintf(state->path, sizeof(state->path), "%s.state", file) <
	       (int)sizeof(state->path);
}

static int client_state_complain(const struct client_state *state, int err)
{
	command_complain(state->args, "%s: %s", state->path, err_text(err));
	return err;
}

static void client_state_title(const struct client_state *state, char to[64])
{
	snprintf(to, 64, "granary %s 1", state->args->command->name);
}

/* The path of a socket is a whole one, and the name and password of a user are left out. */
static void client_state_put_server(const struct client_state *state, struct buf *out)
{
	const char *server = client_server(state->args);
	size_t scheme = strlen(HTTP_CLIENT_UNIX);
	char whole[PATH_MAX];
	const char *path = NULL;
	if (strncmp(server, HTTP_CLIENT_UNIX, scheme) == 0)
		path = realpath(server + scheme, whole);
	const char *host = strstr(server, "://"), *at = strrchr(server, '@');
	size_t begin = out->len;
	if (path)
		buf_printf(out, HTTP_CLIENT_UNIX "%s", path);
	else if (host && at)
		buf_printf(out, "%.*s%s", (int)(host + 3 - server), server, at + 1);
	else
		buf_append_text(out, server);
	while (out->len > begin && out->data[out->len - 1] == '/')
		out->len--;
}

static int client_state_check_server(const struct client_state *state, struct slice of)
{
	const char *name = state->args->command->name;
	struct buf server;
	buf_init(&server, CLIENT_STATE_MAX_BYTES);
	client_state_put_server(state, &server);
	int err = slice_equal(of, buf_slice(&server)) ? 0 : ERR_INVALID;
	if (err)
		command_complain(state->args,
				 "%s is of an %s with the server " SHOWN ", not " SHOWN
				 "; --server names that one, and without %s the %s begins at the "
				 "start",
				 state->path, name, SHOWN_OF(of), SHOWN_OF(buf_slice(&server)),
				 state->path, name);
	buf_release(&server);
	return err;
}

int client_state_save(const struct client_state *state)
{
	char title[64];
	struct buf text;
	buf_init(&text, CLIENT_STATE_MAX_BYTES);
	client_state_title(state, title);
	buf_append_text(&text, title);
	for (size_t i = 0; state->numbers[i]; i++)
		buf_printf(&text, "%c%llu", i ? ' ' : '\n', (unsigned long long)*state->numbers[i]);
	buf_append_char(&text, '\n');
	client_state_put_server(state, &text);
	buf_append_char(&text, '\n');
	buf_append(&text, state->asked.data, state->asked.len);
	buf_append_char(&text, '\n');
	if (state->next) {
		buf_append(&text, state->next->data, state->next->len);
		buf_append_char(&text, '\n');
	}
	int err = text.failed ? ERR_LIMIT
			      : files_real()->replace(files_real(), state->path, buf_slice(&text),
						      0644);
	buf_release(&text);
	return err ? client_state_complain(state, err) : 0;
}

/* Just as many as there are, a blank between them. */
static bool client_state_numbers(const struct client_state *state, struct slice line,
				 uint64_t numbers[CLIENT_STATE_NUMBERS_MAX])
{
	const char *at = line.data, *end = line.data + line.len;
	for (size_t i = 0; state->numbers[i]; i++) {
		bool is_last = !state->numbers[i + 1];
		const char *blank = is_last ? end : memchr(at, ' ', (size_t)(end - at));
		if (!blank || number_parse_u64(at, blank, &numbers[i]))
			return false;
		at = blank + !is_last;
	}
	return true;
}

static int client_state_parse(const struct client_state *state, struct slice text)
{
	char title[64];
	uint64_t numbers[CLIENT_STATE_NUMBERS_MAX];
	struct slice line, counts, server, asked, next = {NULL, 0};
	client_state_title(state, title);
	bool whole = slice_take_line(&text, &line) && slice_equal(line, slice_of(title)) &&
		     slice_take_line(&text, &counts) && slice_take_line(&text, &server) &&
		     slice_take_line(&text, &asked) &&
		     (!state->next || slice_take_line(&text, &next)) && !text.len &&
		     client_state_numbers(state, counts, numbers);
	if (!whole) {
		command_complain(state->args,
				 "%s is no state that %s has written; without it the %s begins at "
				 "the start",
				 state->path, state->args->command->name,
				 state->args->command->name);
		return ERR_INVALID;
	}
	int err = client_state_check_server(state, server);
	if (err)
		return err;
	if (!slice_equal(asked, state->asked))
		return ERR_EXISTS;
	for (size_t i = 0; state->numbers[i]; i++)
		*state->numbers[i] = numbers[i];
	return state->next ? buf_append(state->next, next.data, next.len) : 0;
}

int client_state_read(const struct client_state *state)
{
	struct buf text;
	struct errbuf e;
	buf_init(&text, CLIENT_STATE_MAX_BYTES);
	int err = file_read_own(state->path, CLIENT_STATE_MAX_BYTES, &text, &e);
	if (!err)
		err = client_state_parse(state, buf_slice(&text));
	else if (err != ERR_NOT_FOUND)
		command_complain(state->args, "%s", e.text);
	buf_release(&text);
	return err;
}

int client_state_remove(const struct client_state *state)
{
	int err = files_real()->remove(files_real(), state->path);
	return err && err != ERR_NOT_FOUND ? client_state_complain(state, err) : 0;
}
