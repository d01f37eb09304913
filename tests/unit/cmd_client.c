/* The client commands below their requests: escaping, tables and CSV. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tools/missing.h"
#include "cmd/client_private.h"
#include "http/client.h"

/* ---- What is printed ------------------------------------------------------------------------ */

/* Standard output goes to a file meanwhile. */
static int saved_fd;
static FILE *captured;

static void capture_begin(void)
{
	fflush(stdout);
	captured = tmpfile();
	assert_non_null(captured);
	saved_fd = dup(STDOUT_FILENO);
	assert_true(dup2(fileno(captured), STDOUT_FILENO) >= 0);
}

static void capture_end(char *text, size_t max)
{
	fflush(stdout);
	assert_true(dup2(saved_fd, STDOUT_FILENO) >= 0);
	close(saved_fd);
	rewind(captured);
	text[fread(text, 1, max - 1, captured)] = '\0';
	fclose(captured);
}

static void print(enum client_output output, const char *const *cells, size_t count, char *text,
		  size_t max)
{
	static const char *const titles[] = {"name", "value"};
	struct text_table table;

	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < count; i++)
		text_table_add(&table, slice_of(cells[i]));
	capture_begin();
	text_table_print(&table, output);
	capture_end(text, max);
	text_table_release(&table);
}

static void csv_quotes_what_needs_it(UNUSED void **state)
{
	static const char *const cells[] = {"plain", "1", "a,b", "say \"hi\"", "two\nlines", ""};
	char text[500];

	print(OUTPUT_CSV, cells, ARRAY_LEN(cells), text, sizeof(text));
	assert_string_equal(text, "name,value\r\n"
				  "plain,1\r\n"
				  "\"a,b\",\"say \"\"hi\"\"\"\r\n"
				  "\"two\nlines\",\r\n");
}

static void columns_are_aligned_numbers_to_the_right(UNUSED void **state)
{
	static const char *const cells[] = {"a", "1.5", "long name", "-10", "\xc3\xbc", "300.25"};
	char text[500];

	print(OUTPUT_TABLE, cells, ARRAY_LEN(cells), text, sizeof(text));
	assert_string_equal(text, "name        value\n"
				  "a             1.5\n"
				  "long name     -10\n"
				  "\xc3\xbc          300.25\n");
}

static void no_rows_are_a_head(UNUSED void **state)
{
	char text[500];

	print(OUTPUT_TABLE, NULL, 0, text, sizeof(text));
	assert_string_equal(text, "name  value\n");
	print(OUTPUT_CSV, NULL, 0, text, sizeof(text));
	assert_string_equal(text, "name,value\r\n");
}

static void terminals_get_no_commands(UNUSED void **state)
{
	static const char *const cells[] = {"a\x1b[2Jb",
					    "x\x7f",
					    "two\r\nlines\t",
					    "\xc2\x9b"
					    "31m",
					    "\x9b"
					    "31m\xff",
					    "\xe2\x80\xae"
					    "exe",
					    "\xc3\xbc\xf0\x9f\x98\x80",
					    "\xe2\x80"};
	char text[500];

	print(OUTPUT_TABLE, cells, ARRAY_LEN(cells), text, sizeof(text));
	assert_string_equal(text, "name            value\n"
				  "a\\x1b[2Jb       x\\x7f\n"
				  "two\\r\\nlines\\t  \\u009b31m\n"
				  "\\x9b31m\\xff     \\u202eexe\n"
				  "\xc3\xbc\xf0\x9f\x98\x80              \\xe2\\x80\n");
	/* Programs get what there is; standard output is a file here. */
	print(OUTPUT_CSV, cells, 2, text, sizeof(text));
	assert_string_equal(text, "name,value\r\na\x1b[2Jb,x\x7f\r\n");
}

/* In pieces of any length it is the same. */
static void lines_stay_lines(UNUSED void **state)
{
	static const char text[] = "a,\x1b[0m\r\nb\r\xc3\xbc\xc2\x85\xe2\x82\xac\tc\xf0\x9f"
				   "\x98\x80\n\xf0\x9f\r";
	static const char wanted[] = "a,\\x1b[0m\r\nb\\r\xc3\xbc\\u0085\xe2\x82\xac\tc"
				     "\xf0\x9f\x98\x80\n\\xf0\\x9f\\r";
	for (size_t step = 1; step < sizeof(text); step++) {
		struct terminal_lines lines = {0};
		struct buf out;
		buf_init(&out, 1000);
		for (size_t at = 0; at < sizeof(text) - 1; at += step) {
			size_t left = sizeof(text) - 1 - at;
			terminal_append_lines(&lines, &out,
					      (struct slice){text + at, left < step ? left : step});
		}
		terminal_end_lines(&lines, &out);
		buf_append_char(&out, 0);
		assert_string_equal(out.data, wanted);
		buf_release(&out);
	}
}

/* ---- Escaping ------------------------------------------------------------------------------- */

static void parameters_are_escaped(UNUSED void **state)
{
	struct buf path;

	buf_init(&path, 1000);
	buf_append_text(&path, "/api/query");
	client_param(&path, "tag", "a b=c&d/\xc3\xbc%+?#");
	client_param(&path, "x", "A-z_0.9~");
	client_param(&path, "empty", "");
	buf_append_char(&path, '\0');
	assert_string_equal(path.data, "/api/query?tag=a%20b%3Dc%26d%2F%C3%BC%25%2B%3F%23"
				       "&x=A-z_0.9~&empty=");
	buf_release(&path);
}

/* ---- Who is shown the token ------------------------------------------------------------------ */

enum { SOMEBODY_ELSE = 65534, REQUEST_BYTES = 4096 };

/* A process of a user which answers 200 at a socket, and sends to `heard` what it was asked. */
struct listening {
	pid_t process;
	int heard;
};

static void answer_for_ever(int listener, int heard)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
				     "Connection: close\r\n\r\n";
	for (;;) {
		char request[REQUEST_BYTES];
		int asked = accept(listener, NULL, NULL);
		ssize_t len = recv(asked, request, sizeof(request), 0);
		/* Who only looks whether somebody listens sends nothing. */
		if (len > 0 && (send(heard, request, (size_t)len, 0) != len ||
				send(asked, answer, sizeof(answer) - 1, 0) < 0))
			_exit(1);
		close(asked);
	}
}

static struct listening listen_as(uid_t user, const char *path)
{
	struct listening l;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int ends[2], listener = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	l.process = fork();
	assert_true(l.process >= 0);
	if (l.process == 0) {
		/* The kernel notes who calls listen(). A case that fails does not end us. */
		if (setuid(user) || prctl(PR_SET_PDEATHSIG, SIGKILL) || listen(listener, 8) ||
		    send(ends[1], "", 1, 0) != 1)
			_exit(1);
		answer_for_ever(listener, ends[1]);
	}
	char ready;
	close(ends[1]);
	close(listener);
	assert_int_equal(recv(ends[0], &ready, 1, 0), 1);
	l.heard = ends[0];
	return l;
}

static void listen_end(struct listening *l)
{
	kill(l->process, SIGKILL);
	waitpid(l->process, NULL, 0);
	close(l->heard);
}

static void ask(struct http_client *http, const struct listening *l, char request[REQUEST_BYTES])
{
	struct http_call call = {.path = "/"};
	struct errbuf e = {""};
	assert_non_null(http);
	assert_int_equal(http_client_call(http, &call, &e), 0);
	assert_int_equal(call.status, 200);
	ssize_t len = recv(l->heard, request, REQUEST_BYTES - 1, 0);
	assert_true(len > 0);
	request[len] = 0;
}

static void refused(struct http_client *http)
{
	struct http_call call = {.path = "/"};
	struct errbuf e = {""};
	assert_int_equal(http_client_call(http, &call, &e), ERR_DENIED);
	assert_non_null(strstr(e.text, "granary.sock is another user's"));
}

/* The owner of a ./var in which one stands puts another socket in the place of one's own (or a link
 * in the place of a link) when the command has looked at it, and has not connected yet. */
static void a_socket_that_was_put_there_meanwhile_gets_nothing(UNUSED void **state)
{
	char dir[] = "/tmp/granary-client-XXXXXX", request[REQUEST_BYTES];
	static const char token[] = "gr_0123456789abcdef_0123456789abcdef0123456789abcdef"
				    "0123456789abcdef0123456789abcdef";
	const struct command_args args = {.token_file = "token"};
	struct http_client_options own_how = {.timeout_ms = 0}, swapped_how = own_how;
	if (geteuid() != 0)
		missing("not root: no process of another user can be started");
	assert_true(mkdtemp(dir) && chdir(dir) == 0 && mkdir("var", 0755) == 0);
	unsetenv("GRANARY_SERVER");
	FILE *file = fopen("token", "w");
	assert_true(file && fchmod(fileno(file), 0600) == 0 && fputs(token, file) >= 0 &&
		    fclose(file) == 0);

	struct listening own = listen_as(0, "var/granary.sock");
	struct http_client *http = client_connect(&args, &own_how);
	struct http_client *swapped = client_connect(&args, &swapped_how);
	ask(http, &own, request);
	assert_non_null(strstr(request, token));

	struct listening other = listen_as(SOMEBODY_ELSE, "var/other");
	assert_int_equal(rename("var/other", "var/granary.sock"), 0);
	for (int i = 0; i < 2; i++) {
		refused(swapped);
		refused(http);
	}
	assert_int_equal(recv(other.heard, request, 1, MSG_DONTWAIT), -1);
	http_client_free(http);
	http_client_free(swapped);
	listen_end(&own);
	listen_end(&other);
	assert_true(unlink("token") == 0 && unlink("var/granary.sock") == 0 && rmdir("var") == 0 &&
		    rmdir(dir) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csv_quotes_what_needs_it),
		cmocka_unit_test(columns_are_aligned_numbers_to_the_right),
		cmocka_unit_test(no_rows_are_a_head),
		cmocka_unit_test(terminals_get_no_commands),
		cmocka_unit_test(lines_stay_lines),
		cmocka_unit_test(parameters_are_escaped),
		cmocka_unit_test(a_socket_that_was_put_there_meanwhile_gets_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
