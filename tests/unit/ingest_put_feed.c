/* Bodies of /api/put into the store: what is stored of which point, what is refused and why. */
#include "ingest_harness.h"

#include "base/random.h"
#include "base/stats.h"
#include "ingest/put_feed.h"
#include "retention/retention.h"

/* What most tests write into: opened before each, closed after it. */
static struct harness one;

static int open_one(UNUSED void **state)
{
	one = (struct harness){0};
	harness_open(&one, NULL);
	return 0;
}

static int close_one(UNUSED void **state)
{
	harness_close(&one);
	return 0;
}

/* Bodies stand in these tests with ' for ", since so they can be read. The copy is an allocation
 * of its own: what reads past it is seen by the sanitizer. */
static char *copy_quoted(struct slice body)
{
	char *copy = mem_alloc(body.len);
	for (size_t i = 0; i < body.len; i++)
		copy[i] = body.data[i] == '\'' ? '"' : body.data[i];
	return copy;
}

static struct ingest_request *put_slice(struct harness *h, const char *tenant, struct slice body)
{
	struct ingest_request *r = harness_request(h);
	struct put_feed *feed = mem_alloc(sizeof(*feed));
	char *copy = copy_quoted(body);
	put_feed_init(feed, r, tenant ? slice_of(tenant) : (struct slice){NULL, 0},
		      (struct slice){copy, body.len});
	while (put_feed_slice(feed))
		;
	put_feed_release(feed);
	mem_free(feed);
	mem_free(copy);
	harness_finish(h, r);
	return r;
}

static struct ingest_request *put(struct harness *h, const char *tenant, const char *body)
{
	return put_slice(h, tenant, slice_of(body));
}

/* All of it is taken. */
static void put_good(struct harness *h, const char *tenant, const char *body)
{
	struct ingest_request *r = put(h, tenant, body);
	if (r->refused)
		fail_msg("%s", r->errors[0].sentence);
	assert_int_equal(ingest_status(r), 204);
	ingest_request_free(r);
}

static void want_error(const struct ingest_request *r, size_t i, uint64_t index,
		       enum ingest_reason reason, const char *sentence)
{
	assert_true(i < r->error_count);
	const struct ingest_error *error = &r->errors[i];
	if (error->place.index != index || error->reason != reason ||
	    strcmp(error->sentence, sentence) != 0)
		fail_msg("point %llu, %s: %s", (unsigned long long)error->place.index,
			 ingest_reason_text(error->reason), error->sentence);
}

/* One body whose only point is refused. */
static void refused(struct harness *h, const char *body, enum ingest_reason reason,
		    const char *sentence)
{
	struct ingest_request *r = put(h, NULL, body);
	assert_int_equal(r->accepted, 0);
	assert_int_equal(r->refused, 1);
	want_error(r, 0, 0, reason, sentence);
	assert_int_equal(ingest_status(r), 400);
	ingest_request_free(r);
}

/* ---- Points --------------------------------------------------------------------------------- */

/* The worked example of the document: these four hosts. */
static void the_points_of_the_document(void **state)
{
	(void)state;
	put_good(&one, NULL,
		 "[{'metric':'cpu_idle','timestamp':'2020-08-24T16:34:05Z','value':477,'tags':{'"
		 "tenant':'t-1','os':'linux','host':'h-4','deployment':'prod'}},"
		 "{'metric':'cpu_idle','timestamp':1598284275,'value':186,'tags':{'tenant':'t-1','"
		 "host':'h-1','deployment':'prod','os':'linux'}},"
		 "{'metric':'cpu_idle','timestamp':1598286234000,'value':828.0,'tags':{'os':'linux'"
		 ",'host':'h-1','deployment':'prod','tenant':'t-1'}},"
		 "{'metric':'cpu_idle','timestamp':'1598286238','value':'842','tags':{'os':'linux',"
		 "'host':'h-1','deployment':'prod','tenant':'t-1'}}]");
	harness_expect(&one,
		       "t-1:cpu_idle,deployment=prod,host=h-1,os=linux 1598284275000=186.0f "
		       "1598286234000=828.0f 1598286238000=842.0f\n"
		       "t-1:cpu_idle,deployment=prod,host=h-4,os=linux 1598286845000=477.0f\n");
}

static void one_object_or_an_array(void **state)
{
	(void)state;
	put_good(&one, NULL, "{'metric':'a','timestamp':1,'value':1,'tags':{}}");
	put_good(&one, NULL, " [ {'metric':'b','timestamp':1,'value':2,'tags':{}} ]\n");
	put_good(&one, NULL, "[]");
	put_good(&one, NULL, "{'value':3,'metric':'c','timestamp':1}");
	harness_expect(&one, "default:a 1000=1.0f\ndefault:b 1000=2.0f\ndefault:c 1000=3.0f\n");
}

static void numbers_are_exact(void **state)
{
	(void)state;
	put_good(&one, NULL,
		 "[{'metric':'a','timestamp':1,'value':9007199254740993,'tags':{}},"
		 "{'metric':'b','timestamp':1,'value':-9007199254740993,'tags':{}},"
		 "{'metric':'c','timestamp':1,'value':18446744073709551615,'tags':{}},"
		 "{'metric':'d','timestamp':1,'value':1e-3,'tags':{}},"
		 "{'metric':'e','timestamp':1,'value':'9007199254740993','tags':{}},"
		 "{'metric':'f','timestamp':1,'value':'-1.5e3','tags':{}},"
		 "{'metric':'g','timestamp':1,'value':-0,'tags':{}},"
		 "{'metric':'h','timestamp':1,'value':9007199254740992,'tags':{}}]");
	harness_expect(&one, "default:a 1000=9007199254740993i\n"
			     "default:b 1000=-9007199254740993i\n"
			     "default:c 1000=18446744073709551615u\n"
			     "default:d 1000=0.001f\n"
			     "default:e 1000=9007199254740993i\n"
			     "default:f 1000=-1500.0f\n"
			     "default:g 1000=-0.0f\n"
			     "default:h 1000=9007199254740992.0f\n");
}

/* No type holds them: the nearest double does as well as it can (Python prints float(2**64 + 1)
 * so). */
static void integers_beyond_64_bits_are_doubles(void **state)
{
	(void)state;
	put_good(&one, NULL,
		 "[{'metric':'a','timestamp':1,'value':18446744073709551616},"
		 "{'metric':'b','timestamp':1,'value':18446744073709551617},"
		 "{'metric':'c','timestamp':1,'value':-9223372036854775808},"
		 "{'metric':'d','timestamp':1,'value':-9223372036854775809}]");
	harness_expect(&one, "default:a 1000=1.8446744073709552e+19f\n"
			     "default:b 1000=1.8446744073709552e+19f\n"
			     "default:c 1000=-9.223372036854776e+18f\n"
			     "default:d 1000=-9.223372036854776e+18f\n");
}

static void times_in_every_form(void **state)
{
	(void)state;
	put_good(&one, NULL,
		 "[{'metric':'m','timestamp':0,'value':0,'tags':{}},"
		 "{'metric':'m','timestamp':1.5,'value':1,'tags':{}},"
		 "{'metric':'m','timestamp':1600000000,'value':2,'tags':{}},"
		 "{'metric':'m','timestamp':1600000000123,'value':3,'tags':{}},"
		 "{'metric':'m','timestamp':'2020-08-24T18:34:05.5+02:00','value':4,'tags':{}},"
		 "{'metric':'m','timestamp':'2020-08-24','value':5,'tags':{}}]");
	harness_expect(&one, "default:m 0=0.0f 1500=1.0f 1598227200000=5.0f 1598286845500=4.0f "
			     "1600000000000=2.0f 1600000000123=3.0f\n");
}

static void the_later_of_two_values_wins(void **state)
{
	(void)state;
	put_good(&one, NULL,
		 "[{'metric':'a','timestamp':1,'value':1,'tags':{}},"
		 "{'metric':'b','timestamp':1,'value':2,'tags':{}},"
		 "{'metric':'a','timestamp':1,'value':3,'tags':{}},"
		 "{'metric':'b','timestamp':1,'value':4,'tags':{}},"
		 "{'metric':'a','timestamp':1,'value':5,'tags':{}}]");
	/* Also where the tags are written in another order. */
	put_good(&one, NULL,
		 "[{'metric':'c','timestamp':1,'value':1,'tags':{'x':'1','y':'2'}},"
		 "{'metric':'c','timestamp':1,'value':2,'tags':{'y':'2','x':'1'}}]");
	harness_expect(&one,
		       "default:a 1000=5.0f\ndefault:b 1000=4.0f\ndefault:c,x=1,y=2 1000=2.0f\n");
}

/* As in line protocol: nobody can tell which of the two was meant. */
static void keys_that_stand_twice_are_refused(void **state)
{
	(void)state;
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'metric':'m'}", INGEST_SYNTAX,
		"\"metric\" stands twice");
	refused(&one, "{'metric':1,'timestamp':1,'value':1,'metric':'m','metric':2}", INGEST_SYNTAX,
		"\"metric\" stands twice");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'timestamp':{'a':[]}}", INGEST_SYNTAX,
		"\"timestamp\" stands twice");
	refused(&one, "{'metric':'m','value':1,'timestamp':1,'value':[]}", INGEST_SYNTAX,
		"\"value\" stands twice");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{'a':'1'},'tags':{'a':'1'}}",
		INGEST_SYNTAX, "\"tags\" stands twice");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{},'tags':7}", INGEST_SYNTAX,
		"\"tags\" stands twice");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{'a':'1','b':'2','a':'1'}}",
		INGEST_NAME, "tag \"a\" stands twice");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{'a':'1','\\u0061':'1'}}",
		INGEST_NAME, "tag \"a\" stands twice");
	/* Only its own point; also of tags that are written like those before. */
	struct ingest_request *r =
		put(&one, NULL,
		    "[{'metric':'m','value':1,'timestamp':1,'tags':{'a':1,'a':1}},"
		    "{'metric':'m','value':2,'timestamp':2,'tags':{'a':1,'a':1}},"
		    "{'metric':'m','value':3,'timestamp':3,'tags':{'a':1}}]");
	assert_int_equal(r->refused, 2);
	want_error(r, 0, 0, INGEST_NAME, "tag \"a\" stands twice");
	want_error(r, 1, 1, INGEST_NAME, "tag \"a\" stands twice");
	ingest_request_free(r);
	/* What is not looked at may stand as often as it likes. */
	put_good(&one, NULL,
		 "{'x':1,'x':2,'metric':'m','timestamp':4,'value':4,'tags':{'a':1},'x':3}");
	harness_expect(&one, "default:m,a=1 3000=3.0f 4000=4.0f\n");
}

static void other_members_are_not_looked_at(void **state)
{
	(void)state;
	put_good(
		&one, NULL,
		"{\"x\":{\"metric\":\"y\",\"tags\":[{}]},\"metric\":\"m\",\"Metric\":1,"
		"\"timestamp\":1,"
		"\"value\":1,\"tags\":{\"k\":\"v\"},\"y\":[[],{\"value\":null}],\"\":\"\\u00e9\"}");
	harness_expect(&one, "default:m,k=v 1000=1.0f\n");
}

static void names_with_escapes(void **state)
{
	(void)state;
	put_good(&one, NULL,
		 "[{'metric':'\\u0063pu','timestamp':1,'value':1,'tags':{'h\\u00f6st':'a\\/"
		 "b','p':'a,b=c\\\\'}},"
		 "{'metric':'cpu','timestamp':2,'value':2,'tags':{'p':'a,b=c\\\\','h\xc3\xb6st':'a/"
		 "b'}}]");
	harness_expect(&one, "default:cpu,h\xc3\xb6st=a/b,p=a\\,b\\=c\\\\ 1000=1.0f 2000=2.0f\n");
}

/* ---- Tenants and tags ----------------------------------------------------------------------- */

static void the_tenant_of_a_point(void **state)
{
	(void)state;
	put_good(&one, NULL,
		 "[{'metric':'m','timestamp':1,'value':1,'tags':{'tenant':'t-1'}},"
		 "{'metric':'m','timestamp':1,'value':2,'tags':{'k':'v'}},"
		 "{'metric':'m','timestamp':1,'value':3,'tags':{'tenant':'t-2','k':'v'}}]");
	/* Beside the header it is an ordinary tag. */
	put_good(&one, "t-3", "{'metric':'m','timestamp':1,'value':4,'tags':{'tenant':'t-1'}}");
	struct ingest_request *r =
		put(&one, NULL,
		    "[{'metric':'m','timestamp':1,'value':1,'tags':{'tenant':'no way'}},"
		    "{'metric':'n','timestamp':1,'value':1,'tags':{'tenant':'no way'}},"
		    "{'metric':'m','timestamp':1,'value':5,'tags':{'tenant':'t-4'}}]");
	assert_int_equal(r->refused, 2);
	want_error(r, 0, 0, INGEST_NAME,
		   "tenant \"no way\" is not 1 to 64 of A-Z a-z 0-9 _ . and -");
	want_error(r, 1, 1, INGEST_NAME,
		   "tenant \"no way\" is not 1 to 64 of A-Z a-z 0-9 _ . and -");
	ingest_request_free(r);
	harness_expect(&one, "default:m,k=v 1000=2.0f\n"
			     "t-1:m 1000=1.0f\n"
			     "t-2:m,k=v 1000=3.0f\n"
			     "t-3:m,tenant=t-1 1000=4.0f\n"
			     "t-4:m 1000=5.0f\n");
}

static void another_tag_may_name_the_tenant(void **state)
{
	(void)state;
	struct harness h = {0};
	struct ingest_options options = {.tenant_tag = SLICE("customer")};
	harness_open(&h, &options);
	put_good(&h, NULL,
		 "{'metric':'m','timestamp':1,'value':1,'tags':{'tenant':'x','customer':'t-1'}}");
	harness_expect(&h, "t-1:m,tenant=x 1000=1.0f\n");
	harness_close(&h);
}

static void scalar_tags_are_taken_as_written(void **state)
{
	(void)state;
	put_good(&one, NULL,
		 "{'metric':'m','timestamp':1,'value':1,'tags':{'a':80,'b':1.50,'c':true,'d':false}"
		 "}");
	harness_expect(&one, "default:m,a=80,b=1.50,c=true,d=false 1000=1.0f\n");
}

static void bad_tags_are_refused(void **state)
{
	(void)state;
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{'a':''}}", INGEST_NAME,
		"value of tag \"a\" is empty (1 to 1024 bytes)");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{'':'a'}}", INGEST_NAME,
		"tag key \"\" is empty (1 to 256 bytes)");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{'a':null}}", INGEST_NAME,
		"tag \"a\" has no value");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{'a':[1]}}", INGEST_NAME,
		"tag \"a\" is not a text");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{'a':{'b':[]}}}", INGEST_NAME,
		"tag \"a\" is not a text");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{'a':'\\n'}}", INGEST_NAME,
		"value of tag \"a\" holds a control character");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':{'tenant':''}}", INGEST_NAME,
		"tenant \"\" is not 1 to 64 of A-Z a-z 0-9 _ . and -");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':[]}", INGEST_SYNTAX,
		"\"tags\" is not an object");
	refused(&one, "{'metric':'m','timestamp':1,'value':1,'tags':null}", INGEST_SYNTAX,
		"\"tags\" is not an object");
	harness_expect(&one, "");
}

/* A body with `count` tags, one of which is the tenant's. */
static void put_tags(struct buf *body, unsigned count)
{
	buf_clear(body);
	buf_append_text(body, "{\"metric\":\"m\",\"timestamp\":1,\"value\":1,\"tags\":{");
	for (unsigned i = 0; i + 1 < count; i++)
		buf_printf(body, "\"k%02u\":\"v\",", i);
	buf_append_text(body, "\"tenant\":\"t\"}}");
}

static void tags_have_a_maximum(void **state)
{
	(void)state;
	struct buf body;
	buf_init(&body, 1 << 16);
	put_tags(&body, TAGS_MAX + 1);
	struct ingest_request *r = put_slice(&one, NULL, buf_slice(&body));
	assert_int_equal(r->accepted, 1);
	ingest_request_free(r);
	r = put_slice(&one, "t", buf_slice(&body));
	assert_int_equal(r->refused, 1);
	want_error(r, 0, 0, INGEST_NAME, "there are more than 64 tags");
	ingest_request_free(r);
	put_tags(&body, TAGS_MAX + 2);
	r = put_slice(&one, NULL, buf_slice(&body));
	assert_int_equal(r->refused, 1);
	want_error(r, 0, 0, INGEST_NAME, "there are more than 64 tags");
	ingest_request_free(r);
	buf_release(&body);
}

/* ---- What is refused ------------------------------------------------------------------------ */

static void one_bad_point_costs_no_other(void **state)
{
	(void)state;
	int64_t before = stat_get(STAT_ingest_refused_not_number);
	struct ingest_request *r =
		put(&one, NULL,
		    "[{'metric':'a','timestamp':1,'value':1,'tags':{'k':'v'}},"
		    "{'metric':'b','timestamp':1,'value':{'x':[1]},'tags':{'k':'v'}},"
		    "{'metric':'c','timestamp':1,'value':3,'tags':{'k':'v'}},"
		    "17,[{'metric':'d','timestamp':1,'value':4,'tags':{}}],'e',null,{'metric':'f','"
		    "timestamp':1,'value':6,'tags':{'k':'v'}},"
		    "{'metric':'g','timestamp':1,'value':NaN,'tags':{'k':'v'}},"
		    "{'metric':'h','timestamp':1,'value':8,'tags':{'k':'v'}},"
		    "{'metric':'i','timestamp':-Infinity,'value':8,'tags':{}},"
		    "{}]");
	assert_int_equal(r->accepted, 4);
	assert_int_equal(r->refused, 8);
	want_error(r, 0, 1, INGEST_NOT_NUMBER, "the value is not a number");
	want_error(r, 1, 3, INGEST_SYNTAX, "a point is an object");
	want_error(r, 2, 4, INGEST_SYNTAX, "a point is an object");
	want_error(r, 3, 5, INGEST_SYNTAX, "a point is an object");
	want_error(r, 4, 6, INGEST_SYNTAX, "a point is an object");
	want_error(r, 5, 8, INGEST_NOT_FINITE, "the value is not a finite number");
	want_error(r, 6, 10, INGEST_TIME,
		   "\"-Infinity\" is no time: it is neither a number nor a date");
	want_error(r, 7, 11, INGEST_SYNTAX, "\"metric\" is missing");
	assert_int_equal(ingest_status(r), 400);
	assert_int_equal(stat_get(STAT_ingest_refused_not_number), before + 1);
	ingest_request_free(r);
	harness_expect(&one, "default:a,k=v 1000=1.0f\ndefault:c,k=v 1000=3.0f\n"
			     "default:f,k=v 1000=6.0f\ndefault:h,k=v 1000=8.0f\n");
}

static void refused_values(const char *const *values, size_t count, enum ingest_reason reason,
			   const char *sentence)
{
	char body[256];
	for (size_t i = 0; i < count; i++) {
		snprintf(body, sizeof(body), "{'metric':'m','timestamp':1,'value':%s,'tags':{}}",
			 values[i]);
		refused(&one, body, reason, sentence);
	}
}

static void bad_values_are_refused(void **state)
{
	(void)state;
	static const char *const not_finite[] = {"1e400",         "-1e309",   "NaN",
						 "Infinity",      "\"NaN\"",  "\"-inf\"",
						 "\"+Infinity\"", "\"1e400\""};
	static const char *const not_numbers[] = {"null", "true", "{}", "[]", "[1]"};
	static const char *const texts[] = {"\"\"",    "\"abc\"", "\"1 \"", "\"0x10\"",
					    "\"1,5\"", "\".5\"",  "\"na\"", "\"1s\""};
	refused_values(not_finite, ARRAY_LEN(not_finite), INGEST_NOT_FINITE,
		       "the value is not a finite number");
	refused_values(not_numbers, ARRAY_LEN(not_numbers), INGEST_NOT_NUMBER,
		       "the value is not a number");
	refused_values(texts, ARRAY_LEN(texts), INGEST_NOT_NUMBER,
		       "the value is a text, not a number");
	refused(&one, "{'metric':'m','timestamp':1,'tags':{}}", INGEST_NOT_NUMBER,
		"\"value\" is missing");
	harness_expect(&one, "");
}

static void bad_metrics_are_refused(void **state)
{
	(void)state;
	struct buf body;
	refused(&one, "{'metric':'','timestamp':1,'value':1,'tags':{}}", INGEST_NAME,
		"metric \"\" is empty (1 to 256 bytes)");
	refused(&one, "{'metric':'a\\u0000b','timestamp':1,'value':1,'tags':{}}", INGEST_NAME,
		"metric \"a\\x00b\" holds a control character");
	refused(&one, "{'metric':null,'timestamp':1,'value':1}", INGEST_SYNTAX,
		"\"metric\" is not a text");
	refused(&one, "{'timestamp':1,'value':1}", INGEST_SYNTAX, "\"metric\" is missing");
	buf_init(&body, 4096);
	buf_append_text(&body, "{\"timestamp\":1,\"value\":1,\"metric\":\"");
	for (int i = 0; i < METRIC_MAX_BYTES + 1; i++)
		buf_append_char(&body, 'm');
	buf_append_text(&body, "\"}");
	struct ingest_request *r = put_slice(&one, NULL, buf_slice(&body));
	assert_int_equal(r->refused, 1);
	assert_int_equal(r->errors[0].reason, INGEST_NAME);
	assert_non_null(strstr(r->errors[0].sentence, "is too long (1 to 256 bytes)"));
	ingest_request_free(r);
	buf_release(&body);
	harness_expect(&one, "");
}

static void times_outside_the_window_are_refused(void **state)
{
	(void)state;
	char body[256];
	refused(&one, "{'metric':'m','timestamp':-1,'value':1,'tags':{}}", INGEST_TOO_OLD,
		"the time 1969-12-31T23:59:59Z is before 1970");
	refused(&one, "{'metric':'m','timestamp':'1969-12-31T23:59:59.999Z','value':1,'tags':{}}",
		INGEST_TOO_OLD, "the time 1969-12-31T23:59:59.999Z is before 1970");
	long long edge = HARNESS_NOW_MS + 86400000;
	snprintf(body, sizeof(body), "{'metric':'m','timestamp':%lld,'value':1,'tags':{}}",
		 edge + 1);
	struct ingest_request *r = put(&one, NULL, body);
	assert_int_equal(r->refused, 1);
	assert_int_equal(r->errors[0].reason, INGEST_TOO_NEW);
	ingest_request_free(r);
	snprintf(body, sizeof(body), "{'metric':'m','timestamp':%lld,'value':1,'tags':{}}", edge);
	put_good(&one, NULL, body);
	refused(&one, "{'metric':'m','timestamp':true,'value':1,'tags':{}}", INGEST_TIME,
		"\"timestamp\" is neither a number nor a text");
	refused(&one, "{'metric':'m','timestamp':'now','value':1,'tags':{}}", INGEST_TIME,
		"\"now\" is no time: it is neither a number nor a date");
	refused(&one, "{'metric':'m','timestamp':'2020-02-30','value':1,'tags':{}}", INGEST_TIME,
		"\"2020-02-30\" is no time: the month has no such day");
	refused(&one, "{'metric':'m','value':1}", INGEST_TIME, "\"timestamp\" is missing");
	harness_expect(&one, "default:m 1700086400000=1.0f\n");
}

/* A time that falls out of the retention while its group waits is refused point by point; here at
 * once, since the clock stands still. */
static void times_older_than_the_retention_are_refused_each(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules = {.levels_ms = {3600000}};
	struct ingest_options options = {.retention = {.rules = &rules}};
	harness_open(&h, &options);
	struct ingest_request *r =
		put(&h, NULL,
		    "[{'metric':'a','timestamp':1699990000,'value':1,'tags':{}},"
		    "{'metric':'b','timestamp':1699990000,'value':1,'tags':{}},"
		    "{'metric':'c','timestamp':1700000000,'value':1,'tags':{}}]");
	assert_int_equal(r->refused, 2);
	assert_int_equal(r->errors[0].place.index, 0);
	assert_int_equal(r->errors[1].place.index, 1);
	assert_int_equal(r->errors[1].reason, INGEST_TOO_OLD);
	ingest_request_free(r);
	harness_expect(&h, "default:c 1700000000000=1.0f\n");
	harness_close(&h);
}

/* ---- What is no JSON ------------------------------------------------------------------------ */

static void what_stands_before_a_fault_of_json_is_kept(void **state)
{
	(void)state;
	struct ingest_request *r = put(&one, NULL,
				       "[\n{'metric':'a','timestamp':1,'value':1,'tags':{}},"
				       "\n{'metric':'b','timestamp':1,'value':2,'tags':{}},"
				       "\n "
				       "{'metric':'c','timestamp':1,value:3},\n{'metric':'d','"
				       "timestamp':1,'value':4,'tags':{}}]");
	assert_int_equal(r->accepted, 2);
	assert_int_equal(r->refused, 1);
	want_error(
		r, 0, 2, INGEST_SYNTAX,
		"line 4, column 30: a key in quotes should stand here; what follows was not read");
	assert_int_equal(r->errors[0].place.column, 30);
	ingest_request_free(r);
	harness_expect(&one, "default:a 1000=1.0f\ndefault:b 1000=2.0f\n");
}

/* Every beginning of a body: the points that are whole are kept, and one refusal says the rest. */
static void a_body_may_end_anywhere(void **state)
{
	(void)state;
	static const char whole[] = "[{'metric':'a','timestamp':1,'value':1,'tags':{'k':'v'}},"
				    "{'metric':'b','timestamp':1,'value':2,'tags':{'k':'v'}},"
				    "{'metric':'c','timestamp':2,'value':3,'tags':{'k':'v'}}]";
	size_t each = strlen("{'metric':'a','timestamp':1,'value':1,'tags':{'k':'v'}}");
	for (size_t len = 0; len < sizeof(whole) - 1; len++) {
		struct harness h = {0};
		harness_open(&h, NULL);
		struct ingest_request *r = put_slice(&h, NULL, (struct slice){whole, len});
		size_t points = len < 1 ? 0 : len / (each + 1);
		assert_int_equal(r->accepted, points);
		assert_int_equal(r->refused, 1);
		assert_int_equal(r->errors[0].place.index, points);
		assert_int_equal(r->errors[0].reason, INGEST_SYNTAX);
		ingest_request_free(r);
		harness_close(&h);
	}
}

static void faults_around_the_points(void **state)
{
	(void)state;
	refused(&one, "", INGEST_SYNTAX,
		"line 1, column 1: the text ends where a value should stand; what follows was not "
		"read");
	refused(&one, "17", INGEST_SYNTAX, "a point is an object");
	refused(&one, "put m 1 1 k=v", INGEST_SYNTAX,
		"line 1, column 1: not a value; what follows was not read");
	struct ingest_request *r =
		put(&one, NULL, "{'metric':'a','timestamp':1,'value':1,'tags':{}} x");
	assert_int_equal(r->accepted, 1);
	assert_int_equal(r->errors[0].place.index, 1);
	ingest_request_free(r);
	r = put(&one, NULL, "[{'metric':'b','timestamp':1,'value':1,'tags':{}}],");
	assert_int_equal(r->accepted, 1);
	assert_int_equal(r->refused, 1);
	assert_int_equal(r->errors[0].place.index, 1);
	ingest_request_free(r);
}

/* More text with escapes than may be held. */
static void escapes_have_a_bound(void **state)
{
	(void)state;
	struct buf body;
	buf_init(&body, 64 << 20);
	buf_append_text(&body, "[{'metric':'a','timestamp':1,'value':1,'tags':{}},"
			       "{'x':'\\n");
	for (int i = 0; i < PUT_TEXT_MAX_BYTES / 8; i++)
		buf_append_text(&body, "xxxxxxxx");
	buf_append_text(&body, "\"}]");
	struct ingest_request *r = put_slice(&one, NULL, buf_slice(&body));
	assert_int_equal(r->accepted, 1);
	assert_int_equal(r->refused, 1);
	assert_int_equal(r->errors[0].reason, INGEST_TOO_LONG);
	assert_int_equal(r->errors[0].place.index, 1);
	ingest_request_free(r);
	buf_release(&body);
}

/* ---- Many points ---------------------------------------------------------------------------- */

/* Points in every mixture of tags, times, metrics, spellings and faults, over many slices: what is
 * stored is what a table of the last value says. */
static void put_mixture(struct buf *body, uint64_t seed, unsigned points, double last[4][3][8],
			unsigned *bad)
{
	struct random random;
	random_init(&random, seed);
	for (unsigned i = 0; i < points; i++) {
		uint64_t host = random_below(&random, 4), time = random_below(&random, 3);
		uint64_t metric = random_below(&random, 8);
		double value = (double)random_below(&random, 100000) / 4;
		bool fault = random_below(&random, 10) == 0;
		buf_append_char(body, i ? ',' : '[');
		buf_printf(body, "{\"tags\":%s", "");
		if (random_below(&random, 2))
			buf_printf(body, "{\"host\":\"h%d\",\"os\":\"x\"}", (int)host);
		else if (random_below(&random, 2))
			buf_printf(body, "{\"os\":\"x\",\"host\":\"h%d\"}", (int)host);
		else
			buf_printf(body, "{\"os\":\"x\",\"h\\u006fst\":\"\\u0068%d\"}", (int)host);
		buf_printf(body, ",\"metric\":\"%s%d\"", random_below(&random, 8) ? "m" : "\\u006d",
			   (int)metric);
		buf_printf(body, ",\"timestamp\":%d,\"value\":", (int)time);
		if (fault)
			buf_append_text(body, "\"none\"}");
		else
			buf_printf(body, "%.2f}", value);
		*bad += fault;
		if (!fault)
			last[host][time][metric] = value;
	}
	buf_append_char(body, ']');
}

static void a_mixture_of_points(void **state)
{
	(void)state;
	double last[4][3][8];
	memset(last, 0, sizeof(last));
	unsigned bad = 0;
	struct buf body, want;
	buf_init(&body, 64 << 20);
	buf_init(&want, 1 << 20);
	put_mixture(&body, 8470, 30000, last, &bad);
	assert_true(body.len > 5 * PUT_SLICE_BYTES);
	struct ingest_request *r = put_slice(&one, NULL, buf_slice(&body));
	assert_int_equal(r->accepted, 30000 - bad);
	assert_int_equal(r->refused, bad);
	assert_int_equal(r->error_count, INGEST_ERRORS_MAX);
	ingest_request_free(r);
	for (int metric = 0; metric < 8; metric++) {
		for (int host = 0; host < 4; host++) {
			buf_printf(&want, "default:m%d,host=h%d,os=x", metric, host);
			for (int time = 0; time < 3; time++) {
				buf_printf(&want, " %d=", time * 1000);
				number_append(&want, value_f64(last[host][time][metric]));
				buf_append_char(&want, 'f');
			}
			buf_append_char(&want, '\n');
		}
	}
	buf_append_char(&want, 0);
	harness_expect(&one, want.data);
	buf_release(&body);
	buf_release(&want);
}

/* Tags with escapes whose memory is given to others before the same tags come again. */
static void tags_outlive_the_memory_of_their_text(void **state)
{
	(void)state;
	struct buf body;
	buf_init(&body, 1 << 20);
	buf_append_text(&body,
			"[{'metric':'a','timestamp':1,'value':1,'tags':{'\\u006b':'\\u0076'}},"
			"{'metric':'b','timestamp':1,'value':2,'x':'\\n");
	for (int i = 0; i < 10000; i++)
		buf_append_text(&body, "xxxxxxxxxx");
	buf_append_text(&body,
			"'},{'y':'\\nyyyy','z':'\\nzzzz','metric':'c','timestamp':1,'value':3,"
			"'tags':{'\\u006b':'\\u0076'}}");
	buf_append_text(&body, ",{'y':'\\nyyyy','z':'\\nzzzz','metric':'d','timestamp':1,'value':4,"
			       "'tags':{'\\u006b':'\\u0076'}}]");
	struct ingest_request *r = put_slice(&one, NULL, buf_slice(&body));
	assert_int_equal(r->refused, 0);
	ingest_request_free(r);
	harness_expect(&one, "default:a,k=v 1000=1.0f\ndefault:b 1000=2.0f\n"
			     "default:c,k=v 1000=3.0f\ndefault:d,k=v 1000=4.0f\n");
	/* Also where the tags stand before the text that takes their memory's place. */
	buf_clear(&body);
	buf_append_text(
		&body,
		"[{'metric':'e','timestamp':1,'value':1,'tags':{'\\u006b':'\\u0076'},'x':'\\n");
	for (int i = 0; i < 10000; i++)
		buf_append_text(&body, "xxxxxxxxxx");
	buf_append_text(&body,
			"'},{'y':'\\nyyyy','z':'\\nzzzz','metric':'f','timestamp':1,'value':2,"
			"'tags':{'\\u006b':'\\u0076'}}]");
	r = put_slice(&one, NULL, buf_slice(&body));
	assert_int_equal(r->refused, 0);
	ingest_request_free(r);
	harness_expect(&one, "default:a,k=v 1000=1.0f\ndefault:b 1000=2.0f\n"
			     "default:c,k=v 1000=3.0f\ndefault:d,k=v 1000=4.0f\n"
			     "default:e,k=v 1000=1.0f\ndefault:f,k=v 1000=2.0f\n");
	buf_release(&body);
}

static void a_point_without_tags_before_one_with_tags(void **state)
{
	(void)state;
	put_good(&one, NULL,
		 "[{'metric':'a','timestamp':1,'value':1},"
		 "{'metric':'b','timestamp':1,'value':2,'tags':{'k':'v'}},"
		 "{'metric':'c','timestamp':1,'value':3}]");
	harness_expect(&one, "default:a 1000=1.0f\ndefault:b,k=v 1000=2.0f\ndefault:c 1000=3.0f\n");
}

enum { ORDER_POINTS = 5, ORDER_KINDS = 4, ORDERS = 1 << 2 * ORDER_POINTS };

static unsigned kind_of(unsigned order, unsigned point)
{
	return order >> (2 * point) & 3;
}

/* Points that have no tags, that have empty ones, and that have the one or the other, in every
 * order of five: each is of the series that it names itself. */
static void tags_are_of_their_point_in_any_order(void **state)
{
	(void)state;
	static const char *const kinds[ORDER_KINDS] = {"", ",'tags':{}", ",'tags':{'k':'v'}",
						       ",'tags':{'k':'w'}"};
	static const char *const series[ORDER_KINDS] = {"", "", ",k=v", ",k=w"};
	struct buf body, want;
	buf_init(&body, 1 << 20);
	buf_init(&want, 1 << 20);
	for (unsigned order = 0; order < ORDERS; order++) {
		buf_clear(&body);
		for (unsigned i = 0; i < ORDER_POINTS; i++)
			buf_printf(&body, "%c{'metric':'m%u','timestamp':%u,'value':1%s}",
				   i ? ',' : '[', i, order, kinds[kind_of(order, i)]);
		buf_append_text(&body, "]");
		buf_append_char(&body, 0);
		put_good(&one, NULL, body.data);
	}
	for (unsigned i = 0; i < ORDER_POINTS; i++) {
		for (unsigned kind = 1; kind < ORDER_KINDS; kind++) {
			buf_printf(&want, "default:m%u%s", i, series[kind]);
			for (unsigned order = 0; order < ORDERS; order++) {
				unsigned had = kind_of(order, i);
				if (had == kind || (had == 0 && kind == 1))
					buf_printf(&want, " %u=1.0f", order * 1000);
			}
			buf_append_char(&want, '\n');
		}
	}
	buf_append_char(&want, 0);
	harness_expect(&one, want.data);
	buf_release(&body);
	buf_release(&want);
}

/* Whatever the bytes: each point is taken or refused, once. */
static void damaged_bodies(void **state)
{
	(void)state;
	static const char whole[] =
		"[{'metric':'a','timestamp':1,'value':1,'tags':{'k':'v'}},"
		"{'metric':'b','timestamp':1,'value':NaN,'tags':{'k':'v'}},"
		"{'metric':'\\u0063','timestamp':'1970-01-01','value':'3','tags':{'k':'v'}},"
		"{'x':[{}],'metric':'d','value':4,'timestamp':1.5},17,null]";
	static const char bytes[] = "{}[]:,\"\\0123456789eE+-.truefalsn \n\x00\x80\xc3/u";
	struct random random;
	random_init(&random, 4242);
	for (int i = 0; i < 5000; i++) {
		char *body = copy_quoted((struct slice){whole, sizeof(whole) - 1});
		for (uint64_t n = random_below(&random, 4); n > 0; n--)
			body[random_below(&random, sizeof(whole) - 1)] =
				bytes[random_below(&random, sizeof(bytes) - 1)];
		struct ingest_request *r = harness_request(&one);
		struct put_feed *feed = mem_alloc(sizeof(*feed));
		put_feed_init(feed, r, (struct slice){NULL, 0},
			      (struct slice){body, sizeof(whole) - 1});
		while (put_feed_slice(feed))
			;
		uint64_t points = feed->index;
		put_feed_release(feed);
		mem_free(feed);
		mem_free(body);
		harness_finish(&one, r);
		assert_int_equal(r->err, 0);
		assert_int_equal(r->accepted + r->refused, points);
		assert_true(points <= 8);
		ingest_request_free(r);
	}
}

/* More metrics of one line than a group holds. */
static void more_points_than_a_group(void **state)
{
	(void)state;
	struct buf body;
	buf_init(&body, 1 << 20);
	for (int i = 0; i < 3 * INGEST_POINTS_MAX + 1; i++)
		buf_printf(&body,
			   "%c"
			   "{\"metric\":\"m%d\",\"timestamp\":1,\"value\":1}",
			   i ? ',' : '[', i);
	buf_append_char(&body, ']');
	struct ingest_request *r = put_slice(&one, NULL, buf_slice(&body));
	assert_int_equal(r->accepted, 3 * INGEST_POINTS_MAX + 1);
	assert_int_equal(r->refused, 0);
	ingest_request_free(r);
	buf_release(&body);
}

/* Over a limit each new series is refused by itself, with its own index; those that exist are not.
 */
static void limits_of_the_catalog_count_each_point(void **state)
{
	(void)state;
	struct harness h = {0};
	h.catalog_options = catalog_options_default();
	h.catalog_options.series_per_tenant_max = 2;
	harness_open(&h, NULL);
	put_good(&h, NULL,
		 "[{'metric':'a','timestamp':1,'value':1,'tags':{}},"
		 "{'metric':'b','timestamp':1,'value':1,'tags':{}}]");
	struct ingest_request *r = put(&h, NULL,
				       "[{'metric':'c','timestamp':2,'value':1,'tags':{}},"
				       "{'metric':'a','timestamp':2,'value':2,'tags':{}},"
				       "{'metric':'d','timestamp':2,'value':1,'tags':{}},"
				       "{'metric':'b','timestamp':2,'value':2,'tags':{}}]");
	assert_int_equal(r->accepted, 2);
	assert_int_equal(r->refused, 2);
	assert_int_equal(r->errors[0].place.index, 0);
	assert_int_equal(r->errors[1].place.index, 2);
	assert_int_equal(r->errors[1].reason, INGEST_LIMIT);
	ingest_request_free(r);
	/* A point between them that is refused for itself makes a gap. */
	r = put(&h, NULL,
		"[{'metric':'e','timestamp':3,'value':1},{'metric':'f','timestamp':3,'value':'x'},"
		"{'metric':'g','timestamp':3,'value':1}]");
	assert_int_equal(r->refused, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(r->errors[i].place.index, i);
	assert_int_equal(r->errors[1].reason, INGEST_NOT_NUMBER);
	ingest_request_free(r);
	harness_expect(&h, "default:a 1000=1.0f 2000=2.0f\ndefault:b 1000=1.0f 2000=2.0f\n");
	harness_close(&h);
}

static void points_know_where_they_begin(void **state)
{
	(void)state;
	static const char body[] = " [ {\"metric\":\"a\",\"timestamp\":1,\"value\":1}, 17 ,{}]";
	struct ingest_request *r = harness_request(&one);
	struct put_feed *feed = mem_alloc(sizeof(*feed));
	size_t offset;
	put_feed_init(feed, r, (struct slice){NULL, 0}, slice_of(body));
	feed->keep_offsets = true;
	assert_false(put_feed_slice(feed));
	assert_int_equal(feed->index, 3);
	assert_true(put_feed_offset(feed, 0, &offset));
	assert_int_equal(offset, 3);
	assert_true(put_feed_offset(feed, 1, &offset));
	assert_memory_equal(body + offset, "17", 2);
	assert_true(put_feed_offset(feed, 2, &offset));
	assert_memory_equal(body + offset, "{}", 2);
	assert_false(put_feed_offset(feed, 3, &offset));
	put_feed_release(feed);
	mem_free(feed);
	harness_finish(&one, r);
	ingest_request_free(r);
}

#define WITH_ONE(test) cmocka_unit_test_setup_teardown(test, open_one, close_one)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ONE(the_points_of_the_document),
		WITH_ONE(one_object_or_an_array),
		WITH_ONE(numbers_are_exact),
		WITH_ONE(integers_beyond_64_bits_are_doubles),
		WITH_ONE(times_in_every_form),
		WITH_ONE(the_later_of_two_values_wins),
		WITH_ONE(keys_that_stand_twice_are_refused),
		WITH_ONE(other_members_are_not_looked_at),
		WITH_ONE(names_with_escapes),
		WITH_ONE(the_tenant_of_a_point),
		cmocka_unit_test(another_tag_may_name_the_tenant),
		WITH_ONE(scalar_tags_are_taken_as_written),
		WITH_ONE(bad_tags_are_refused),
		WITH_ONE(tags_have_a_maximum),
		WITH_ONE(one_bad_point_costs_no_other),
		WITH_ONE(bad_values_are_refused),
		WITH_ONE(bad_metrics_are_refused),
		WITH_ONE(times_outside_the_window_are_refused),
		cmocka_unit_test(times_older_than_the_retention_are_refused_each),
		WITH_ONE(what_stands_before_a_fault_of_json_is_kept),
		cmocka_unit_test(a_body_may_end_anywhere),
		WITH_ONE(faults_around_the_points),
		WITH_ONE(escapes_have_a_bound),
		WITH_ONE(a_mixture_of_points),
		WITH_ONE(tags_outlive_the_memory_of_their_text),
		WITH_ONE(a_point_without_tags_before_one_with_tags),
		WITH_ONE(tags_are_of_their_point_in_any_order),
		WITH_ONE(damaged_bodies),
		WITH_ONE(more_points_than_a_group),
		cmocka_unit_test(limits_of_the_catalog_count_each_point),
		WITH_ONE(points_know_where_they_begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
