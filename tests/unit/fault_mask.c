/* Which parts of a report are hidden and, as often, which are not. The tables are JSON as it comes
 * and as it must become; the numbers of cards are those that issuers publish for tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fault/mask.h"

/* `text` is JSON, or with `raw` the one text of a tree. Returns how much was masked. */
static size_t masked(const char *text, bool raw, const struct fault_masks *masks,
		     size_t memory_max_bytes, struct buf *out)
{
	struct arena parsing, arena;
	struct json *tree, node = {.type = JSON_T_STRING, .text = slice_of(text)};
	struct json_writer writer;
	struct errbuf e;
	arena_init(&parsing, 1 << 20);
	arena_init(&arena, memory_max_bytes);
	if (!raw && json_parse(slice_of(text), &parsing, &tree, &e))
		fail_msg("%s: %s", text, e.text);
	tree = raw ? &node : tree;
	size_t count = fault_mask_tree(masks, tree, &arena);
	buf_clear(out);
	json_writer_init(&writer, out);
	if (raw)
		buf_append(out, tree->text.data, tree->text.len);
	else
		json_write_literally(&writer, tree);
	buf_append_char(out, 0);
	arena_release(&arena);
	arena_release(&parsing);
	return count;
}

struct mask_case {
	const char *text;
	const char *expected; /* NULL: as it came */
};

static void check_cases(const struct mask_case *cases, size_t count, bool raw)
{
	struct buf out;
	size_t wrong = 0;
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < count; i++) {
		const char *expected = cases[i].expected ? cases[i].expected : cases[i].text;
		size_t found = masked(cases[i].text, raw, &fault_masks_preset, 1 << 20, &out);
		if (strcmp(out.data, expected) == 0 && !found == !cases[i].expected)
			continue;
		print_error("%s\n  became   %s\n  and not  %s\n", cases[i].text, out.data,
			    expected);
		wrong++;
	}
	buf_release(&out);
	assert_int_equal(wrong, 0);
}

static void values_under_names_of_secrets(void **state)
{
	static const struct mask_case cases[] = {
		{"{\"password\":\"x\"}", "{\"password\":\"<hidden>\"}"},
		{"{\"argv\":[\"mysql\",\"--password\",\"x\",\"db\"]}",
		 "{\"argv\":[\"mysql\",\"--password\",\"<hidden>\",\"db\"]}"},
		{"[\"--token\",\"-v\",\"x\",\"--secret=y\",\"z\"]",
		 "[\"--token\",\"-v\",\"x\",\"--secret=<hidden>\",\"z\"]"},
		{"{\"PASSWORD\":\"x\"}", "{\"PASSWORD\":\"<hidden>\"}"},
		{"{\"user_password\":\"x\"}", "{\"user_password\":\"<hidden>\"}"},
		{"{\"password2\":\"x\"}", "{\"password2\":\"<hidden>\"}"},
		{"{\"passwordConfirmation\":\"x\"}", "{\"passwordConfirmation\":\"<hidden>\"}"},
		{"{\"dbpassword\":\"x\"}", "{\"dbpassword\":\"<hidden>\"}"},
		{"{\"HTTP_COOKIE\":\"a=b\"}", "{\"HTTP_COOKIE\":\"<hidden>\"}"},
		{"{\"HTTP.Authorization\":\"x\"}", "{\"HTTP.Authorization\":\"<hidden>\"}"},
		{"{\"X-API-Key\":\"x\"}", "{\"X-API-Key\":\"<hidden>\"}"},
		{"{\"stripeApiKey\":\"x\"}", "{\"stripeApiKey\":\"<hidden>\"}"},
		{"{\"APIKey\":\"x\"}", "{\"APIKey\":\"<hidden>\"}"},
		{"{\"DBPwd\":\"x\",\"dbPwd\":\"y\"}",
		 "{\"DBPwd\":\"<hidden>\",\"dbPwd\":\"<hidden>\"}"},
		{"{\"accessToken\":\"x\"}", "{\"accessToken\":\"<hidden>\"}"},
		{"{\"csrfmiddlewaretoken\":\"x\"}", "{\"csrfmiddlewaretoken\":\"<hidden>\"}"},
		{"{\"AWS_SECRET_ACCESS_KEY\":\"x\"}", "{\"AWS_SECRET_ACCESS_KEY\":\"<hidden>\"}"},
		{"{\"user[password]\":\"x\"}", "{\"user[password]\":\"<hidden>\"}"},
		{"{\"oauth_signature\":\"x\"}", "{\"oauth_signature\":\"<hidden>\"}"},
		{"{\"auth\":\"x\"}", "{\"auth\":\"<hidden>\"}"},
		{"{\"card_number\":\"x\"}", "{\"card_number\":\"<hidden>\"}"},
		{"{\"password\":12345}", "{\"password\":\"<hidden>\"}"},
		{"{\"a\":[{\"b\":{\"c\":[{\"token\":\"x\"}]}}]}",
		 "{\"a\":[{\"b\":{\"c\":[{\"token\":\"<hidden>\"}]}}]}"},
		{"{\"cookies\":{\"a\":\"b\",\"c\":[1,\"d\",null]}}",
		 "{\"cookies\":{\"a\":\"<hidden>\",\"c\":[\"<hidden>\",\"<hidden>\",null]}}"},
		{"[[\"HTTP_COOKIE\",\"x\"],[\"HTTP_HOST\",\"y\"]]",
		 "[[\"HTTP_COOKIE\",\"<hidden>\"],[\"HTTP_HOST\",\"y\"]]"},
		{"[{\"name\":\"Cookie\",\"value\":\"x\"}]",
		 "[{\"name\":\"Cookie\",\"value\":\"<hidden>\"}]"},
		{"[{\"value\":\"x\",\"key\":\"api_key\"}]",
		 "[{\"value\":\"<hidden>\",\"key\":\"api_key\"}]"},
		{"{\"password\":\"x\",\"password\":\"y\"}",
		 "{\"password\":\"<hidden>\",\"password\":\"<hidden>\"}"},
		{"{\"card\":4111111111111111}", "{\"card\":\"<hidden>\"}"},
		{"{\"http://a:x@b/\":1}", "{\"http://a:<hidden>@b/\":1}"},
	};
	(void)state;
	check_cases(cases, ARRAY_LEN(cases), false);
}

static void values_that_are_no_secrets(void **state)
{
	static const struct mask_case cases[] = {
		{"{\"token_count\":\"5\"}", NULL},
		{"{\"tokenCount\":5}", NULL},
		{"{\"max_tokens\":100}", NULL},
		{"{\"password_length\":8}", NULL},
		{"{\"passwordResetUrl\":\"/reset\"}", NULL},
		{"{\"password_changed_at\":\"2026-01-01\"}", NULL},
		{"{\"cookie_domain\":\"example.com\"}", NULL},
		{"{\"SESSION_COOKIE_AGE\":1209600}", NULL},
		{"{\"secret_name\":\"db\"}", NULL},
		{"{\"token_type\":\"bearer\"}", NULL},
		{"{\"access_key_id\":\"AKIA1\"}", NULL},
		{"{\"tokenizer\":\"bert\"}", NULL},
		{"{\"secretary\":\"Ann\"}", NULL},
		{"{\"cookiecutter\":\"2.1\"}", NULL},
		{"{\"passwordless\":\"yes\"}", NULL},
		{"{\"author\":\"Ann\"}", NULL},
		{"{\"authors\":[\"Ann\"]}", NULL},
		{"{\"authority\":\"example.com\"}", NULL},
		{"{\"django.contrib.auth\":\"4.2\"}", NULL},
		{"{\"pass_count\":3,\"bypass\":\"no\",\"compass\":\"N\"}", NULL},
		{"{\"laptop\":\"x\",\"session\":\"7\",\"class\":\"y\",\"key\":\"z\"}", NULL},
		{"{\"inside\":\"x\",\"sidebar\":\"y\",\"primary_key\":\"7\"}", NULL},
		{"{\"has_password\":true,\"token\":null,\"secret\":\"\"}", NULL},
		{"{\"password\":\"<hidden>\"}", NULL},
		{"[\"password\",\"username\"]", NULL},
		{"{\"missing\":[\"password\",\"username\"]}", NULL},
		{"[[\"password is wrong\",\"x\"]]", NULL},
		{"[[\"password\",\"x\",\"y\"]]", NULL},
		{"[[0,12,\"SQL-main\",\"SELECT 1\"]]", NULL},
		{"{\"name\":\"Cookie\",\"count\":\"x\"}", NULL},
		{"{\"timestamp\":1764000000123,\"id\":4111111111111112}", NULL},
		{"{\"ratio\":0.4111111111111111,\"n\":1e400}", NULL},
	};
	(void)state;
	check_cases(cases, ARRAY_LEN(cases), false);
}

#define KEY "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"

static void secrets_within_texts(void **state)
{
	static const struct mask_case cases[] = {
		/* Queries and forms. */
		{"/login?user=a&password=x%20y&next=/", "/login?user=a&password=<hidden>&next=/"},
		{"token=abc", "token=<hidden>"},
		{"a=1&access_token=x;b=2", "a=1&access_token=<hidden>;b=2"},
		{"user%5Bpassword%5D=x&a=1", "user%5Bpassword%5D=<hidden>&a=1"},
		{"user%5Bpwd%5d=x", "user%5Bpwd%5d=<hidden>"},
		{"user[password]=x", "user[password]=<hidden>"},
		{"GET /?token=a,b(c) HTTP/1.1", "GET /?token=<hidden>) HTTP/1.1"},
		{"token=a&token=b", "token=<hidden>&token=<hidden>"},
		{"token=$ecret!", "token=<hidden>"},
		/* Lines. */
		{"HOME=/root\nDB_PASSWORD=x\nPATH=/bin",
		 "HOME=/root\nDB_PASSWORD=<hidden>\nPATH=/bin"},
		{"a: 1\npassword: hunter2\r\nb: 2", "a: 1\npassword: <hidden>\r\nb: 2"},
		{"password = hunter2", "password = <hidden>"},
		{"Authorization: Bearer abc.def\nHost: x", "Authorization: <hidden>\nHost: x"},
		{"GET / HTTP/1.1\r\nCookie: a=b; c=d\r\n\r\n",
		 "GET / HTTP/1.1\r\nCookie: <hidden>\r\n\r\n"},
		{"HTTP_COOKIE=a=b; c=d", "HTTP_COOKIE=<hidden>"},
		{"HTTP_COOKIE=abc", "HTTP_COOKIE=<hidden>"},
		{"a\n\tCookie: a=b; c=d", "a\n\tCookie: <hidden>"},
		{"query: 'SELECT 1 WHERE password='x''",
		 "query: 'SELECT 1 WHERE password='<hidden>"},
		{"execute(\"... WHERE a=\\\"b\\\" AND password='x'\")",
		 "execute(\"... WHERE a=\\\"b\\\" AND password='<hidden>'\")"},
		{"token=mypassword", "token=<hidden>"},
		{"sent Bearer abc123de== to it", "sent Bearer <hidden> to it"},
		{"set cookie=a=b; c=d", "set cookie=<hidden>; c=d"},
		{"token=my_own", "token=<hidden>"},
		{"token=a.b", "token=<hidden>"},
		{"token='()x'", "token='<hidden>'"},
		{"X-Api-Key: abc", "X-Api-Key: <hidden>"},
		{"curl -H 'Authorization: Bearer abcdef12' x",
		 "curl -H 'Authorization: Bearer <hidden>' x"},
		{"sent basic dXNlcjpwYXNzMTIz to it", "sent basic <hidden> to it"},
		{"mysql --password=x -h db", "mysql --password=<hidden> -h db"},
		/* SQL, and code. */
		{"SELECT 1 FROM u WHERE password = 'x' AND id = 7",
		 "SELECT 1 FROM u WHERE password = '<hidden>' AND id = 7"},
		{"UPDATE u SET password='it''s', name='n'",
		 "UPDATE u SET password='<hidden>', name='n'"},
		{"UPDATE u SET u.\"password\" = 'x\\'y' WHERE a='b'",
		 "UPDATE u SET u.\"password\" = '<hidden>' WHERE a='b'"},
		{"SET [password]=N'x'", "SET [password]=N'<hidden>'"},
		{"SET password = md5('x'), b = 1", "SET password = md5('<hidden>'), b = 1"},
		{"WHERE token=lower(trim('x'))", "WHERE token=lower(trim('<hidden>'))"},
		{"WHERE otp = 1234 AND a = 1", "WHERE otp = <hidden> AND a = 1"},
		{"WHERE password = 'cut of", "WHERE password = '<hidden>"},
		{"{'password': 'x', 'a': 'b'}", "{'password': '<hidden>', 'a': 'b'}"},
		{"{u'token': u'x'}", "{u'token': u'<hidden>'}"},
		{"{\"password\":\"x\\\"y\",\"a\":1}", "{\"password\":\"<hidden>\",\"a\":1}"},
		{"\"{\\\"token\\\":\\\"x\\\",\\\"a\\\":1}\"",
		 "\"{\\\"token\\\":\\\"<hidden>\\\",\\\"a\\\":1}\""},
		{"{\"pwd\":1234,\"a\":1}", "{\"pwd\":<hidden>,\"a\":1}"},
		{"request['token'] = \"x\"", "request['token'] = \"<hidden>\""},
		{":password => 'x'", ":password => '<hidden>'"},
		{"password := 'x'; token = 'y'", "password := '<hidden>'; token = '<hidden>'"},
		{"if password == 'x':", "if password == '<hidden>':"},
		{"login(user, password='x')", "login(user, password='<hidden>')"},
		/* Values of an INSERT, and statements of users. */
		{"INSERT INTO u (name, password) VALUES ('bob', 'x')",
		 "INSERT INTO u (name, password) VALUES <hidden>"},
		{"insert into u(`api_token`,a) values(\n'x;)', 1), (lower('y)'), 2) on conflict",
		 "insert into u(`api_token`,a) values<hidden> on conflict"},
		{"INSERT INTO u (otp)\n VALUES (1234); SELECT 'a'",
		 "INSERT INTO u (otp)\n VALUES <hidden>; SELECT 'a'"},
		{"INSERT INTO u (a, \"pwd\") VALUES ('a', 'cut",
		 "INSERT INTO u (a, \"pwd\") VALUES <hidden>"},
		{"INSERT INTO u (pwd) VALUES (\\'x\\', \\'y\\'); rest",
		 "INSERT INTO u (pwd) VALUES <hidden>; rest"},
		{"INSERT INTO u (pwd) VALUES (\\\"x\\\") rest",
		 "INSERT INTO u (pwd) VALUES <hidden> rest"},
		{"CREATE USER bob IDENTIFIED BY 'x'", "CREATE USER bob IDENTIFIED BY '<hidden>'"},
		{"alter role bob password  'it''s' login",
		 "alter role bob password  '<hidden>' login"},
		/* Whatever a statement compares such a column with. */
		{"SELECT 1 FROM u WHERE password LIKE 'x' OR a LIKE 'b'",
		 "SELECT 1 FROM u WHERE password LIKE '<hidden>' OR a LIKE 'b'"},
		{"select 1 from u where token in ('x', N'y') or a in ('b')",
		 "select 1 from u where token in ('<hidden>', N'<hidden>') or a in ('b')"},
		{"DELETE FROM u WHERE u.token <> 'x' OR pwd != \"y\"",
		 "DELETE FROM u WHERE u.token <> '<hidden>' OR pwd != \"<hidden>\""},
		{"SELECT a FROM u WHERE token BETWEEN 'x' AND 'y'",
		 "SELECT a FROM u WHERE token BETWEEN '<hidden>' AND '<hidden>'"},
		{"SELECT a FROM u WHERE (id, token) = (1, 'x') AND b = 'c'",
		 "SELECT a FROM u WHERE (id, token) = (1, '<hidden>') AND b = 'c'"},
		{"UPDATE u SET (token, a) = ('x', 'b'), c = 'd'",
		 "UPDATE u SET (token, a) = ('<hidden>', '<hidden>'), c = 'd'"},
		{"SELECT a FROM u WHERE 'x' = password",
		 "SELECT a FROM u WHERE '<hidden>' = password"},
		{"SELECT a FROM u\nWHERE lower(pwd) =\n 'x'",
		 "SELECT a FROM u\nWHERE lower(pwd) =\n '<hidden>'"},
		{"UPDATE u SET pwd = concat('x', 'y') || 'z', a = 'b'",
		 "UPDATE u SET pwd = concat('<hidden>', '<hidden>') || '<hidden>', a = 'b'"},
		{"SELECT a FROM u WHERE pwd = /* why */ 'x'",
		 "SELECT a FROM u WHERE pwd = /* why */ '<hidden>'"},
		{"SELECT a FROM u WHERE token IS NOT DISTINCT FROM _utf8'x'",
		 "SELECT a FROM u WHERE token IS NOT DISTINCT FROM _utf8'<hidden>'"},
		{"INSERT INTO u (a, token) SELECT 'x', 'y'",
		 "INSERT INTO u (a, token) SELECT '<hidden>', '<hidden>'"},
		{"SELECT 'x' AS token, 'b' AS a", "SELECT '<hidden>' AS token, 'b' AS a"},
		{"ALTER USER bob IDENTIFIED  BY \"x\"",
		 "ALTER USER bob IDENTIFIED  BY \"<hidden>\""},
		{"SET PASSWORD FOR 'bob' = PASSWORD('x')",
		 "SET PASSWORD FOR '<hidden>' = PASSWORD('<hidden>')"},
		{"INSERT INTO log (a) VALUES ('sent token=x to ''bob''', 'c')",
		 "INSERT INTO log (a) VALUES ('sent token=<hidden> to ''bob''', 'c')"},
		/* A scheme before the value; names and cards in addresses. */
		{"authorization=Basic dXNlcjpw a", "authorization=<hidden> a"},
		{"/?%70assword=x&pass%77ord=y", "/?%70assword=<hidden>&pass%77ord=<hidden>"},
		{"card=4111+1111+1111+1111&a=b", "card=<hidden>&a=b"},
		{"/?c=4111%201111%201111%201111&d=%224111111111111111%22",
		 "/?c=<hidden>&d=%22<hidden>%22"},
		{"4111%2d1111%2D1111%2d1111 card%3A4111111111111111", "<hidden> card%3A<hidden>"},
		/* By shape. */
		{"postgres://bob:x@db:5432/app", "postgres://bob:<hidden>@db:5432/app"},
		{"see https://a:p@ss@h/ and redis://:x@r/0",
		 "see https://a:<hidden>@h/ and redis://:<hidden>@r/0"},
		{"card 4111111111111111.", "card <hidden>."},
		{"4111 1111 1111 1111 12/27", "<hidden> 12/27"},
		{"4111-1111-1111-1111", "<hidden>"},
		{"4111 1111 1111 1111 123", "<hidden> 123"},
		{"3782 822463 10005", "<hidden>"},
		{"378282246310005,30569309025904", "<hidden>,<hidden>"},
		{"5555555555554444 6011111111111117", "<hidden> <hidden>"},
		{"2223003122003222 3530111333300000 4222222222222", "<hidden> <hidden> <hidden>"},
		{KEY, "<hidden>"},
		{"key:\n" KEY "\nend", "key:\n<hidden>\nend"},
		{"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", "<hidden>"},
		{"-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----!",
		 "<hidden>!"},
	};
	(void)state;
	check_cases(cases, ARRAY_LEN(cases), true);
}

static void texts_without_secrets(void **state)
{
	static const struct mask_case cases[] = {
		/* Prose, and what engines say. */
		{"", NULL},
		{"password: must be longer than 8", NULL},
		{"INSERT INTO u (name, password) VALUES (%s, %s)", NULL},
		{"INSERT INTO u (name, password) VALUES ($1, $2), (:1, ?)", NULL},
		{"INSERT INTO u (password) VALUES (%(password_1)s)", NULL},
		{"INSERT INTO u (name, age) VALUES ('bob', 7)", NULL},
		{"(password) f('x') VALUES ('a')", NULL},
		{"f(password; a) VALUES ('a')", NULL},
		{"(password) values are in 'x'", NULL},
		{"password '?' and identified by ''", NULL},
		{"Invalid password: try again", NULL},
		{"Unexpected token '<'", NULL},
		{"Unexpected token = in JSON at position 12", NULL},
		{"SyntaxError: Unexpected token: 'x'", NULL},
		{"the token expired at 12:30", NULL},
		{"basic authentication and bearer tokens", NULL},
		{"Basic authentication-required", NULL},
		{"Basic Authentication, BEARER AUTHENTICATION, Bearer abc123", NULL},
		{"bearer", NULL},
		{"forebearer abcdefgh12", NULL},
		/* Names that are none, and what stands for a value. */
		{"?token_count=5&tokens=7&sort=password", NULL},
		{"a=password&b=token", NULL},
		{"?token=&x=1", NULL},
		{"WHERE password = %s AND token = ? AND otp = $1", NULL},
		{"WHERE password = :password OR token=:t OR secret = NULL", NULL},
		{"SET password = %(password)s", NULL},
		{"login(user, password=password, token=None)", NULL},
		{"password=*** token=<hidden>", NULL},
		{"{'password': None, 'token': '[Filtered]', 'secret': ''}", NULL},
		{"{\"has_token\": true, \"token\": null}", NULL},
		{"if password != 'x' or token >= 'y':", NULL},
		{"SELECT password, \"name\" FROM u WHERE a = 'b' AND c IN ('d', 'e')", NULL},
		{"SELECT a FROM u WHERE password LIKE %s OR token IN (?, ?) OR 'b' = a", NULL},
		{"SELECT a FROM u WHERE password = 'None' OR token = ''", NULL},
		{"if password in ('x', 'y') or 'x' == token_type:", NULL},
		/* Code. */
		{"token = request.headers.get(name)", NULL},
		{"token = self.tokens[2]", NULL},
		{"password = get_password2()", NULL},
		{"def check(password):\n\tpass", NULL},
		{"std::token::next", NULL},
		{"if token[:2] in quotes or token[0] == \"/\":", NULL},
		{"token[:2000]", NULL},
		{"elif token == 0x40 or cookie == 0 or otp == 1234:", NULL},
		{"cookies = []", NULL},
		{"    self.cookies = cookies", NULL},
		{"cookie = f.tell()", NULL},
		{"authorization = self.headers.get('a')", NULL},
		{"    cookies=None,", NULL},
		{"connect(authkey=self._authkey, password=new_password)", NULL},
		{"f(f'password={password!r}, token={}')", NULL},
		{"{'HAVE_PASSWD': 1}", NULL},
		{"print(\"raw token=\" + repr(a) + \".\")", NULL},
		{"f('x', '&token=', \"b\")", NULL},
		{"def load(self, password=None):", NULL},
		{"# basic method=c14n tests", NULL},
		{"    secret: str", NULL},
		{"a basic FieldStorage test", NULL},
		/* Addresses, keys for all, and numbers. */
		{"http://host:8080/a?b=c@d", NULL},
		{"http://user@host/ http://user:@host/", NULL},
		{"http://[::1]:80/", NULL},
		{"mail bob@example.com at 10:00", NULL},
		{"https://0123456789abcdef@sentry.example/1", NULL},
		{"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", NULL},
		{"-----BEGIN CERTIFICATE-----\nPRIVATE KEY\n-----END CERTIFICATE-----", NULL},
		{"---------- captured log ----------", NULL},
		{"4111111111111112", NULL},
		{"1764000000123 1764000000123456 1764000000123456789", NULL},
		{"x4111111111111111 4111111111111111x _4111111111111111", NULL},
		{"0.4111111111111111 4111111111111111.5", NULL},
		{"41111111111111110000", NULL},
		{"411111111111", NULL},
		{"f47ac10b-4111-1111-1111-111111111111", NULL},
		{"4111-1111-1111-1111-22", NULL},
		{"ab-4111-1111-1111-1111", NULL},
		{"4111 1111-1111 1111", NULL},
		{"0000 4111 1111 1111 1111", NULL},
		{"4111 1111 1111 1111 0000", NULL},
		{"8111111111111111 0000000000000000 7411111111111111", NULL},
		{"2026-11-24 10:22:17 127.0.0.1", NULL},
	};
	(void)state;
	check_cases(cases, ARRAY_LEN(cases), true);
}

static void what_is_masked_is_counted(void **state)
{
	struct buf out;
	(void)state;
	buf_init(&out, 1 << 20);
	assert_int_equal(masked("{\"a\":\"token=1&token=2\",\"password\":[\"x\",3,true]}", false,
				&fault_masks_preset, 1 << 20, &out),
			 4);
	assert_int_equal(masked("[]", false, &fault_masks_preset, 1 << 20, &out), 0);
	buf_release(&out);
}

static void words_can_be_others(void **state)
{
	static const char *const words[] = {"salary", "=note", "pin"};
	static const struct fault_masks masks = {words, ARRAY_LEN(words)}, none = {NULL, 0};
	struct buf out;
	(void)state;
	buf_init(&out, 1 << 20);
	masked("{\"mySalary\":1,\"note\":\"a\",\"note_b\":\"c\",\"pin\":\"d\",\"spin\":\"e\","
	       "\"password\":\"f\"}",
	       false, &masks, 1 << 20, &out);
	assert_string_equal(out.data,
			    "{\"mySalary\":\"<hidden>\",\"note\":\"<hidden>\",\"note_b\":\"c\","
			    "\"pin\":\"<hidden>\",\"spin\":\"e\",\"password\":\"f\"}");
	masked("{\"password\":\"x\",\"card\":\"4111111111111111\"}", false, &none, 1 << 20, &out);
	assert_string_equal(out.data, "{\"password\":\"x\",\"card\":\"<hidden>\"}");
	buf_release(&out);
}

static void a_full_arena_hides_the_whole_text(void **state)
{
	struct buf out;
	(void)state;
	buf_init(&out, 1 << 20);
	assert_int_equal(masked("a text with token=x in it", true, &fault_masks_preset, 8, &out),
			 1);
	assert_string_equal(out.data, "<hidden>");
	buf_release(&out);
}

/* A name that is longer than what is looked at counts by its end. */
static void long_names(void **state)
{
	char text[600];
	struct buf out;
	(void)state;
	buf_init(&out, 1 << 20);
	snprintf(text, sizeof(text), "{\"%0300d_token\":\"x\"}", 0);
	assert_int_equal(masked(text, false, &fault_masks_preset, 1 << 20, &out), 1);
	snprintf(text, sizeof(text), "{\"token_%0300d\":\"x\"}", 0);
	assert_int_equal(masked(text, false, &fault_masks_preset, 1 << 20, &out), 0);
	buf_release(&out);
}

/* Each piece of the text looked for the end of the line, of the word, of the rows: 8 MB would take
 * longer than a test may. */
static void a_long_line_is_gone_through_once(void **state)
{
	static const char *const pieces[][2] = {{" token = x", ""},
						{"password==", ""},
						{"(password)values(", ""},
						{"(password)values(", ")"},
						{"select a'", ""},
						{"set '\\' a ", ""},
						{"pwd:\n", ""}};
	struct arena arena;
	struct buf text;
	(void)state;
	arena_init(&arena, 1 << 20);
	buf_init(&text, 8 << 20);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		size_t bytes = strlen(pieces[i][0]) + strlen(pieces[i][1]);
		buf_clear(&text);
		for (size_t n = 0; n < text.max / bytes; n++)
			buf_append_text(&text, pieces[i][0]);
		for (size_t n = 0; n < text.max / bytes; n++)
			buf_append_text(&text, pieces[i][1]);
		struct json node = {.type = JSON_T_STRING, .text = buf_slice(&text)};
		assert_int_equal(fault_mask_tree(&fault_masks_preset, &node, &arena), 0);
	}
	buf_release(&text);
	arena_release(&arena);
}

/* Each value reached to the end of the text, and stood for one. */
static void what_stands_for_a_value_is_short(void **state)
{
	struct arena arena;
	struct buf text;
	(void)state;
	arena_init(&arena, 16 << 20);
	buf_init(&text, 8 << 20);
	for (size_t n = 1; !text.failed; n++) {
		buf_append_text(&text, " token=");
		for (size_t i = 0; i < n; i++)
			buf_append_char(&text, '\\');
		buf_append_text(&text, "\"%(");
	}
	text.failed = false;
	memcpy(text.data + text.len - 2, ")s", 2);
	struct json node = {.type = JSON_T_STRING, .text = buf_slice(&text)};
	assert_int_equal(fault_mask_tree(&fault_masks_preset, &node, &arena), 1);
	buf_release(&text);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_under_names_of_secrets),
		cmocka_unit_test(values_that_are_no_secrets),
		cmocka_unit_test(secrets_within_texts),
		cmocka_unit_test(texts_without_secrets),
		cmocka_unit_test(what_is_masked_is_counted),
		cmocka_unit_test(words_can_be_others),
		cmocka_unit_test(a_full_arena_hides_the_whole_text),
		cmocka_unit_test(long_names),
		cmocka_unit_test(a_long_line_is_gone_through_once),
		cmocka_unit_test(what_stands_for_a_value_is_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
