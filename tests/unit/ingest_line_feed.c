/* Line protocol into the store: what is stored of which line, what is refused and where, in
 * whatever pieces the bytes arrive. */
#include "ingest_harness.h"

#include "base/random.h"
#include "base/stats.h"
#include "ingest/line_feed.h"
#include "retention/retention.h"

/* At most 511 bytes at `to`. */
static size_t PRINTF_LIKE(2, 3) print(char *to, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(to, 512, fmt, args);
	va_end(args);
	return (size_t)n;
}

/* The bytes in pieces of at most `piece` bytes, each an allocation of its own:
 * what reads past a piece is seen by the sanitizer. */
static void feed_in_pieces(struct line_feed *feed, const char *text, size_t len, size_t piece)
{
	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		char *copy = mem_alloc(n);
		memcpy(copy, text + at, n);
		line_feed_piece(feed, (struct slice){copy, n});
		mem_free(copy);
	}
}

static struct ingest_request *write_pieces(struct harness *h, struct slice tenant, const char *text,
					   size_t len, size_t piece)
{
	struct ingest_request *r = harness_request(h);
	struct line_feed feed;
	line_feed_init(&feed, r, tenant, LINE_MS);
	feed_in_pieces(&feed, text, len, piece);
	line_feed_end(&feed);
	line_feed_release(&feed);
	harness_finish(h, r);
	return r;
}

static struct ingest_request *write_text(struct harness *h, const char *tenant, const char *text)
{
	return write_pieces(h, tenant ? slice_of(tenant) : (struct slice){NULL, 0}, text,
			    strlen(text), 1 << 20);
}

static void want_error(const struct ingest_request *r, size_t i, uint64_t line, uint32_t column,
		       enum ingest_reason reason, const char *sentence)
{
	assert_true(i < r->error_count);
	const struct ingest_error *error = &r->errors[i];
	if (error->place.index != line || error->place.column != column ||
	    error->reason != reason || strcmp(error->sentence, sentence) != 0)
		fail_msg("line %llu, column %u, %s: %s", (unsigned long long)error->place.index,
			 error->place.column, ingest_reason_text(error->reason), error->sentence);
}

static void fields_become_metrics(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r =
		write_text(&h, NULL,
			   "cpu,host=a,dc=x usage=1.5,idle=7i,big=18446744073709551615u 1000\n"
			   "load value=3 2000\n"
			   "load,host=b value=true,five=F 3000\n"
			   "now f=1\n");
	assert_int_equal(ingest_status(r), 204);
	assert_int_equal(r->accepted, 7);
	ingest_request_free(r);
	harness_expect(&h, "default:cpu_big,dc=x,host=a 1000=18446744073709551615u\n"
			   "default:cpu_idle,dc=x,host=a 1000=7i\n"
			   "default:cpu_usage,dc=x,host=a 1000=1.5f\n"
			   "default:load 2000=3.0f\n"
			   "default:load,host=b 3000=1.0f\n"
			   "default:load_five,host=b 3000=0.0f\n"
			   "default:now_f 1700000000000=1.0f\n");
	harness_close(&h);
}

static void a_second_line_is_known(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	int64_t unknown = stat_get(STAT_ingest_unknown);
	ingest_request_free(write_text(&h, NULL, "m,t=1 a=1i,b=2i 1\nm,t=1 a=3i,b=4i 2\n"));
	assert_int_equal(stat_get(STAT_ingest_unknown) - unknown, 1);
	ingest_request_free(write_text(&h, NULL, "m,t=1 a=5i,b=6i 3\nm,t=1 a=7i,b=8i 3\n"));
	assert_int_equal(stat_get(STAT_ingest_unknown) - unknown, 1);
	harness_expect(&h, "default:m_a,t=1 1=1i 2=3i 3=7i\ndefault:m_b,t=1 1=2i 2=4i 3=8i\n");
	harness_close(&h);
}

/* Of two values of one sample in one body the later wins, whatever was known when. */
/* x_debug is kept for 2 h, all else for ever. Each line comes three times: of a series that is not
 * known, of one that is, and, with a text in front, of one some of whose metrics are left out. */
static void fields_of_one_line_may_be_kept_for_different_times(void **state)
{
	(void)state;
	static const char *const items[] = {"*/x_debug/raw:2h", "*/y_*/raw:2h"};
	struct harness h = {0};
	struct retention_rules rules;
	struct granularities none = {0};
	struct errbuf e;
	char text[512];
	assert_int_equal(retention_parse(items, 2, &none, 0, &rules, &e), 0);
	harness_open(&h, &(struct ingest_options){.retention = {.rules = &rules}});
	for (int i = 0; i < 2; i++) {
		print(text,
		      "x,h=a cpu=1,debug=2,net=3 1699990000000\n"
		      "x,h=a text=\"t\",debug=2,net=%d 1699990000001\n"
		      "y,h=a cpu=1,debug=2 1699990000000\n"
		      "y,h=a cpu=1,debug=2 1700000000000\n"
		      "x,h=a cpu=4,debug=5,net=6 1700000000000\n",
		      3 + i);
		struct ingest_request *r = write_text(&h, "t", text);
		assert_int_equal(r->accepted, 8);
		assert_int_equal(r->refused, 4); /* three for the time, one for the text */
		want_error(r, 0, 1, 27, INGEST_TOO_OLD,
			   "the time 2023-11-14T19:26:40Z is older than the retention of 7200 s");
		ingest_request_free(r);
	}
	harness_expect(&h, "t:x_cpu,h=a 1699990000000=1.0f 1700000000000=4.0f\n"
			   "t:x_debug,h=a 1700000000000=5.0f\n"
			   "t:x_net,h=a 1699990000000=3.0f 1699990000001=4.0f 1700000000000=6.0f\n"
			   "t:y_cpu,h=a 1700000000000=1.0f\n"
			   "t:y_debug,h=a 1700000000000=2.0f\n");
	clock_virtual_advance(&h.clock, 3 * INT64_C(86400000000));
	harness_expect(&h, "t:x_cpu,h=a 1699990000000=1.0f 1700000000000=4.0f\n"
			   "t:x_debug,h=a\n"
			   "t:x_net,h=a 1699990000000=3.0f 1699990000001=4.0f 1700000000000=6.0f\n"
			   "t:y_cpu,h=a\nt:y_debug,h=a\n");
	harness_close(&h);
}

static void order_is_kept_among_known_and_unknown(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	ingest_request_free(write_text(&h, NULL, "m,a=1,b=2 f=1i 1\n"));
	/* The same series under another key is unknown, then known again. */
	ingest_request_free(write_text(&h, NULL,
				       "m,b=2,a=1 f=2i 1\nm,a=1,b=2 f=3i 1\nm,a=1,b=2 f=4i 2\n"
				       "m,b=2,a=1 f=5i 2\n"));
	harness_expect(&h, "default:m_f,a=1,b=2 1=3i 2=5i\n");
	harness_close(&h);
}

static void order_is_kept_behind_an_opening(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	ingest_request_free(write_text(&h, NULL, "m,a=1,b=2 f=1i 1\n"));
	struct ingest_request *r = harness_request(&h);
	struct line_feed feed;
	line_feed_init(&feed, r, (struct slice){0}, LINE_MS);
	char unknown[256], known[256];
	/* Blanks, so that the lines are read with their piece. */
	snprintf(unknown, sizeof(unknown), "m,b=2,a=1 f=2i 1\n%80s\n", "");
	snprintf(known, sizeof(known), "m,a=1,b=2 f=3i 1\n%80s\n", "");
	line_feed_piece(&feed, slice_of(unknown));
	line_feed_piece(&feed, slice_of(known));
	line_feed_end(&feed);
	line_feed_release(&feed);
	harness_finish(&h, r);
	ingest_request_free(r);
	harness_expect(&h, "default:m_f,a=1,b=2 1=3i\n");
	harness_close(&h);
}

static void one_key_may_have_many_shapes(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	int64_t unknown = stat_get(STAT_ingest_unknown);
	const char *text = "m a=1i,b=2i 1\nm b=3i 2\nm b=4i,a=5i 3\nm a=6i,b=7i,c=8i 4\n"
			   "n a=9i,b=10i 1\n";
	for (int i = 0; i < 4; i++)
		ingest_request_free(write_text(&h, NULL, text));
	harness_expect(&h, "default:m_a 1=1i 3=5i 4=6i\ndefault:m_b 1=2i 2=3i 3=4i 4=7i\n"
			   "default:m_c 4=8i\ndefault:n_a 1=9i\ndefault:n_b 1=10i\n");
	int64_t asked = stat_get(STAT_ingest_unknown) - unknown;
	ingest_request_free(write_text(&h, NULL, text));
	assert_int_equal(stat_get(STAT_ingest_unknown) - unknown, asked);
	harness_close(&h);
}

/* The names are compared with those of the line before and not read again: of whatever length they
 * are, another measurement has them all. */
static void another_measurement_may_have_the_same_fields(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	ingest_request_free(write_text(&h, NULL,
				       "m a=1i,a_name_of_nineteen_1=2i,bb=3i 1\nn "
				       "a=4i,a_name_of_nineteen_1=5i,bb=6i 2\n"));
	harness_expect(&h, "default:m_a 1=1i\ndefault:m_a_name_of_nineteen_1 1=2i\n"
			   "default:m_bb 1=3i\ndefault:n_a 2=4i\n"
			   "default:n_a_name_of_nineteen_1 2=5i\ndefault:n_bb 2=6i\n");
	harness_close(&h);
}

static void text_fields_make_no_series(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r = write_text(&h, NULL,
					      "m v=\"1.0\",n=1i 1\n"
					      "m v=\"2.0\",n=2i 2\n"
					      "only s=\"x\" 3\n"
					      "m v=NaN,n=3i 3\n");
	assert_int_equal(ingest_status(r), 400);
	assert_int_equal(r->refused, 4);
	assert_int_equal(r->accepted, 3);
	want_error(r, 0, 1, 5, INGEST_NOT_NUMBER, "a text is not stored, only numbers are");
	want_error(r, 2, 3, 8, INGEST_NOT_NUMBER, "a text is not stored, only numbers are");
	want_error(r, 3, 4, 5, INGEST_NOT_FINITE, "the value is not a finite number");
	ingest_request_free(r);
	harness_expect(&h, "default:m_n 1=1i 2=2i 3=3i\n");
	/* Once it is a number it has a series, and the key's other handles stay. */
	r = write_text(&h, NULL, "m v=4,n=4i 4\nm v=\"5\",n=5i 5\n");
	assert_int_equal(r->refused, 1);
	ingest_request_free(r);
	int64_t unknown = stat_get(STAT_ingest_unknown);
	r = write_text(&h, NULL, "m v=6,n=6i 6\nm v=\"7\",n=7i 7\n");
	ingest_request_free(r);
	assert_int_equal(stat_get(STAT_ingest_unknown), unknown);
	harness_expect(&h, "default:m_n 1=1i 2=2i 3=3i 4=4i 5=5i 6=6i 7=7i\n"
			   "default:m_v 4=4.0f 6=6.0f\n");
	harness_close(&h);
}

/* The rest of each line is taken, also when a text stands where a number stood. */
static void texts_may_be_left_out(UNUSED void **state)
{
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.texts_left_out = true});
	int64_t before = stat_get(STAT_ingest_texts_left_out);
	struct ingest_request *r = write_text(&h, NULL,
					      "m v=\"1.0\",n=1i 1\n"
					      "m v=2,n=2i 2\n"
					      "m v=3,n=\"three\" 3\n"
					      "only s=\"x\" 3\n");
	assert_int_equal(ingest_status(r), 204);
	assert_int_equal(r->refused, 0);
	assert_int_equal(r->accepted, 4);
	assert_int_equal(stat_get(STAT_ingest_texts_left_out) - before, 3);
	ingest_request_free(r);
	r = write_text(&h, NULL, "m v=NaN,n=\"x\" 4\n");
	assert_int_equal(ingest_status(r), 400);
	want_error(r, 0, 1, 5, INGEST_NOT_FINITE, "the value is not a finite number");
	ingest_request_free(r);
	harness_expect(&h, "default:m_n 1=1i 2=2i\ndefault:m_v 2=2.0f 3=3.0f\n");
	harness_close(&h);
}

/* In one piece, so that both wait for the same opening. */
static void different_fields_may_be_text_at_first(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	ingest_request_free(write_text(&h, NULL,
				       "m a=\"x\",b=1i,c=2i 1\nm a=3i,b=\"y\",c=4i 2\n"
				       "m a=\"x\",b=\"y\",c=5i 3\n"));
	harness_expect(&h, "default:m_a 2=3i\ndefault:m_b 1=1i\ndefault:m_c 1=2i 2=4i 3=5i\n");
	int64_t unknown = stat_get(STAT_ingest_unknown);
	ingest_request_free(write_text(&h, NULL, "m a=6i,b=7i,c=8i 4\n"));
	assert_int_equal(stat_get(STAT_ingest_unknown), unknown);
	harness_expect(&h, "default:m_a 2=3i 4=6i\ndefault:m_b 1=1i 4=7i\n"
			   "default:m_c 1=2i 2=4i 3=5i 4=8i\n");
	harness_close(&h);
}

static void bad_lines_cost_only_themselves(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r = write_text(&h, NULL,
					      "m f=1i 1\n"
					      "m f=x 2\n"
					      "m,=a f=1i 3\n"
					      "# comment\r\n"
					      "m,t= f=1i 4\n"
					      "m,t=1,t=2 f=1i 5\n"
					      "m,t=\x01 f=1i 6\n"
					      "m,t=\xff f=1i 7\n"
					      "\xff f=1i 8\n"
					      "m \xfe=1i 9\n"
					      "m f=1i -1\n"
					      "m f=1i 1700086400000\n"
					      "m f=1i 1700086400001\n"
					      "no_fields\n"
					      "m f=2i 2\n"
					      "m f=3i 3");
	static const struct {
		uint64_t line;
		uint32_t column;
		enum ingest_reason reason;
	} want[] = {{2, 5, INGEST_SYNTAX},   {3, 3, INGEST_SYNTAX},  {5, 5, INGEST_SYNTAX},
		    {6, 7, INGEST_NAME},     {7, 3, INGEST_NAME},    {8, 3, INGEST_NAME},
		    {9, 1, INGEST_NAME},     {10, 3, INGEST_NAME},   {11, 8, INGEST_TOO_OLD},
		    {13, 8, INGEST_TOO_NEW}, {14, 10, INGEST_SYNTAX}};
	assert_int_equal(r->refused, ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		if (r->errors[i].place.index != want[i].line ||
		    r->errors[i].reason != want[i].reason ||
		    r->errors[i].place.column != want[i].column)
			fail_msg("%zu: line %llu, column %u: %s", i,
				 (unsigned long long)r->errors[i].place.index,
				 r->errors[i].place.column, r->errors[i].sentence);
	}
	want_error(r, 8, 11, 8, INGEST_TOO_OLD, "the time 1969-12-31T23:59:59.999Z is before 1970");
	want_error(r, 9, 13, 8, INGEST_TOO_NEW,
		   "the time 2023-11-15T22:13:20.001Z is more than 86400 s ahead of now");
	ingest_request_free(r);
	harness_expect(&h, "default:m_f 1=1i 2=2i 3=3i 1700086400000=1i\n");
	harness_close(&h);
}

static void integers_out_of_range_cost_only_their_field(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	int64_t before = stat_get(STAT_ingest_refused_out_of_range);
	struct ingest_request *r = write_text(&h, NULL,
					      "m a=1i,b=9223372036854775808i,c=+3i 1\n"
					      "m a=-1u,b=2i,c=18446744073709551616u 2\n"
					      "m d=-9223372036854775809i 3\n");
	assert_int_equal(ingest_status(r), 400);
	assert_int_equal(r->accepted, 3);
	assert_int_equal(r->refused, 4);
	const char *sentence = "the integer does not fit the 64 bits of its type";
	want_error(r, 0, 1, 10, INGEST_OUT_OF_RANGE, sentence);
	want_error(r, 1, 2, 5, INGEST_OUT_OF_RANGE, sentence);
	want_error(r, 2, 2, 16, INGEST_OUT_OF_RANGE, sentence);
	want_error(r, 3, 3, 5, INGEST_OUT_OF_RANGE, sentence);
	assert_int_equal(stat_get(STAT_ingest_refused_out_of_range) - before, 4);
	ingest_request_free(r);
	harness_expect(&h, "default:m_a 1=1i\ndefault:m_b 2=2i\ndefault:m_c 1=3i\n");
	harness_close(&h);
}

/* Of sorted tags the first bad one is told, where it stands in the line as it was sent. */
static void a_bad_tag_is_named_with_its_column(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r = write_text(&h, NULL,
					      "m,z=1,b=\x01,y=2 f=1i 1\n"
					      "m,b=1,a=1,b=2 f=1i 1\n"
					      "  m,x=1,k\\=\x7f=1 f=1i 1\n"
					      "m\\,a=1,a=2,a=3,a=4 f=1i 1\n"
					      "m,a=b,tenant=a/b f=1i 1\n"
					      "m,tenant=t,a=b,tenant=u f=1i 1\n"
					      "m,a\\ b=1,c=2,a\\ b=3 f=1i 1\n");
	want_error(r, 0, 1, 7, INGEST_NAME, "value of tag \"b\" holds a control character");
	want_error(r, 1, 2, 11, INGEST_NAME, "tag \"b\" stands twice");
	want_error(r, 2, 3, 9, INGEST_NAME, "tag key \"k=\\x7f\" holds a control character");
	want_error(r, 3, 4, 12, INGEST_NAME, "tag \"a\" stands twice");
	want_error(r, 4, 5, 7, INGEST_NAME,
		   "tenant \"a/b\" is not 1 to 64 of A-Z a-z 0-9 _ . and -");
	want_error(r, 5, 6, 16, INGEST_NAME, "tag \"tenant\" stands twice");
	want_error(r, 6, 7, 14, INGEST_NAME, "tag \"a b\" stands twice");
	assert_int_equal(r->refused, 7);
	ingest_request_free(r);
	harness_expect(&h, "");
	harness_close(&h);
}

/* One tag too many is told at that tag; tags that are too long together where they begin. */
static void too_many_tags_are_told_where_they_are(void **state)
{
	(void)state;
	struct harness h = {0};
	struct buf text;
	harness_open(&h, NULL);
	buf_init(&text, 1 << 16);
	buf_append_text(&text, "m");
	for (int i = 0; i < TAGS_MAX + 1; i++)
		buf_printf(&text, ",k%02d=v", i);
	buf_append_text(&text, " f=1i 1\nm");
	for (int i = 0; i < 3; i++)
		buf_printf(&text, ",k%d=%01024d", i, 0);
	buf_append_text(&text, " f=1i 1\n");
	struct ingest_request *r = write_pieces(&h, SLICE("t"), text.data, text.len, 1 << 20);
	/* 64 tags of six bytes stand before it. */
	want_error(r, 0, 1, 2 + 64 * 6 + 1, INGEST_NAME, "there are more than 64 tags");
	want_error(r, 1, 2, 3, INGEST_NAME,
		   "the tags take 3084 bytes as text, more than the 3000 allowed");
	ingest_request_free(r);
	buf_release(&text);
	harness_close(&h);
}

static void tenants_come_from_header_tag_or_nowhere(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	ingest_request_free(write_text(&h, NULL, "m,tenant=t-1,x=y f=1i 1\nm,x=y f=2i 1\n"));
	ingest_request_free(write_text(&h, "t-2", "m,tenant=t-1,x=y f=3i 1\nm,x=y f=4i 1\n"));
	ingest_request_free(write_text(&h, "t-1", "m,x=y f=5i 2\n"));
	struct ingest_request *r =
		write_text(&h, NULL, "m,tenant=a/b f=1i 1\nm,tenant=,x=y f=1i 1\n");
	assert_int_equal(r->refused, 2);
	assert_int_equal(r->errors[0].reason, INGEST_NAME);
	ingest_request_free(r);
	harness_expect(&h, "default:m_f,x=y 1=2i\n"
			   "t-1:m_f,x=y 1=1i 2=5i\n"
			   "t-2:m_f,tenant=t-1,x=y 1=3i\n"
			   "t-2:m_f,x=y 1=4i\n");
	harness_close(&h);
}

static void the_tenants_tag_can_be_another_or_none(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.tenant_tag = SLICE("org")});
	ingest_request_free(write_text(&h, NULL, "m,org=o,tenant=t f=1i 1\n"));
	harness_expect(&h, "o:m_f,tenant=t 1=1i\n");
	harness_close(&h);
	struct harness none = {0};
	harness_open(&none, &(struct ingest_options){.tenant_tag = SLICE("")});
	ingest_request_free(write_text(&none, NULL, "m,tenant=t f=1i 1\n"));
	harness_expect(&none, "default:m_f,tenant=t 1=1i\n");
	harness_close(&none);
}

static void of_doubled_fields_the_last_counts(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	for (int i = 0; i < 3; i++)
		ingest_request_free(write_text(&h, NULL, "m a=1i,b=2i,a=3i 1\nm a=4i,a=5i 2\n"));
	harness_expect(&h, "default:m_a 1=3i 2=5i\ndefault:m_b 1=2i\n");
	harness_close(&h);
}

static void names_are_unescaped(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	ingest_request_free(write_text(&h, NULL, "a\\ b\\,c,k\\ 1=v\\=\\,2 f\\=x=1i,value=2i 1\n"));
	/* Names are as they are; the text of the tags is escaped by the store's own rule. */
	harness_expect(&h, "default:a b,c,k 1=v\\=\\,2 1=2i\n"
			   "default:a b,c_f=x,k 1=v\\=\\,2 1=1i\n");
	harness_close(&h);
}

/* ---- Pieces --------------------------------------------------------------------------------- */

static const char hard[] =
	"m,t=1 a=1i,b=2.5 1\n"
	"\r\n"
	"# comment with \"quotes\n"
	"m,t=2 a=2i,s=\"text with\nnewlines, \\\"quotes\\\" and \\\\\n m,x=1 f=1i 1\n\" 2\n"
	"bad\n"
	"  m,t=1   a=3i,b=4   3  \r\n"
	"m,t=\\ \\, a=1i 4\n"
	"m,t=3 s=\"never closed\n"
	"m,t=4 a=5i 5\n"
	"m,t=4 a=6i 6";

static char *everything_of(struct harness *h, struct ingest_request *r)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < r->error_count; i++)
		buf_printf(&out, "%llu:%u %s\n", (unsigned long long)r->errors[i].place.index,
			   r->errors[i].place.column, r->errors[i].sentence);
	char *stored = harness_stored(h);
	buf_printf(&out, "%llu %llu\n%s", (unsigned long long)r->accepted,
		   (unsigned long long)r->refused, stored);
	mem_free(stored);
	char *text = mem_copy_text(buf_slice(&out));
	buf_release(&out);
	return text;
}

static char *in_pieces(const char *text, size_t len, size_t piece)
{
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r = write_pieces(&h, (struct slice){0}, text, len, piece);
	char *all = everything_of(&h, r);
	ingest_request_free(r);
	harness_close(&h);
	return all;
}

static void pieces_of_any_size_give_the_same(void **state)
{
	(void)state;
	static const char want[] = "4:14 a text is not stored, only numbers are\n"
				   "8:4 a blank and fields are missing\n"
				   "11:9 a text that begins here is not closed\n"
				   "8 3\n"
				   "default:m_a,t= \\, 4=1i\n"
				   "default:m_a,t=1 1=1i 3=3i\n"
				   "default:m_a,t=2 2=2i\n"
				   "default:m_a,t=4 5=5i 6=6i\n"
				   "default:m_b,t=1 1=2.5f 3=4.0f\n";
	for (size_t piece = 1; piece <= sizeof(hard); piece++) {
		char *got = in_pieces(hard, sizeof(hard) - 1, piece);
		if (strcmp(got, want) != 0)
			fail_msg("pieces of %zu:\n%s", piece, got);
		mem_free(got);
	}
}

/* Random lines, some longer than a piece, some with texts over many lines; random cuts. */
static size_t random_lines(struct random *random, char *text, size_t max)
{
	size_t len = 0;
	while (len + 4096 < max) {
		len += print(text + len, "m,t=%d a=%di", (int)random_below(random, 5),
			     (int)random_below(random, 1000));
		if (random_below(random, 4) == 0) {
			len += print(text + len, ",s=\"");
			for (size_t n = random_below(random, 300); n; n--)
				text[len++] = "ab \n\n,=\\"[random_below(random, 7)];
			text[len++] = '"';
		}
		len += print(text + len, " %d\n", (int)random_below(random, 100000));
	}
	return len;
}

static void random_cuts_give_the_same(void **state)
{
	(void)state;
	static char text[96 << 10];
	struct random random;
	random_init(&random, 3);
	for (int round = 0; round < 12; round++) {
		size_t len = random_lines(&random, text, sizeof(text));
		char *want = in_pieces(text, len, len);
		for (int i = 0; i < 6; i++) {
			char *got = in_pieces(text, len, 1 + random_below(&random, 30000));
			assert_string_equal(got, want);
			mem_free(got);
		}
		mem_free(want);
	}
}

/* A line of `bytes` with its newline, filled up in a tag or in a text, then a good line. */
static char *long_line(size_t bytes, bool in_text, bool newline, size_t *len)
{
	char *text = mem_alloc(bytes + 600);
	const char *before = in_text ? "m f=1i,s=\"" : "m,t=",
		   *after = in_text ? "\" 1" : " f=1i 1";
	size_t at = print(text, "%s", before);
	size_t fill = bytes - strlen(before) - strlen(after) - 1;
	memset(text + at, 'x', fill);
	for (size_t i = 100; in_text && i < fill; i += 1000)
		text[at + i] = '\n';
	at += fill;
	at += print(text + at, "%s\n", after);
	if (!newline)
		at--;
	else
		at += print(text + at, "good f=2i 2\n");
	*len = at;
	return text;
}

static void lines_that_are_too_long_are_skipped(void **state)
{
	(void)state;
	static const size_t pieces[] = {100, 4096, 65535, 65536, 65537, 70000, 1 << 20};
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		for (size_t extra = 0; extra < 3; extra++) {
			size_t len;
			char *text =
				long_line(LINE_MAX_BYTES + 1 + extra * 70000, false, true, &len);
			struct harness h = {0};
			harness_open(&h, NULL);
			struct ingest_request *r =
				write_pieces(&h, (struct slice){0}, text, len, pieces[i]);
			assert_int_equal(r->refused, 1);
			want_error(r, 0, 1, 1, INGEST_TOO_LONG,
				   "the line is longer than 65536 bytes");
			ingest_request_free(r);
			harness_expect(&h, "default:good_f 2=2i\n");
			harness_close(&h);
			mem_free(text);
		}
	}
}

static void texts_up_to_the_limit_are_read(void **state)
{
	(void)state;
	for (size_t piece = 1000; piece <= 100000; piece += 33000) {
		size_t len;
		char *text = long_line(LINE_MAX_BYTES, true, true, &len);
		char *got = in_pieces(text, len, piece);
		assert_string_equal(got, "1:10 a text is not stored, only numbers are\n2 1\n"
					 "default:good_f 2=2i\ndefault:m_f 1=1i\n");
		mem_free(got);
		mem_free(text);
	}
}

/* A quote that is never closed must not swallow what follows for longer than a line may be. */
static void a_text_without_end_swallows_nothing(void **state)
{
	(void)state;
	static char text[300 << 10];
	size_t len = print(text, "m s=\"open\n");
	while (len + 100 < sizeof(text))
		len += print(text + len, "m,t=%zu f=1i 1\n", len % 3);
	static const size_t pieces[] = {777, 20000, 65536, 262144, sizeof(text)};
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct harness h = {0};
		harness_open(&h, NULL);
		struct ingest_request *r =
			write_pieces(&h, (struct slice){0}, text, len, pieces[i]);
		assert_int_equal(r->refused, 1);
		assert_int_equal(r->errors[0].place.index, 1);
		assert_int_equal(r->errors[0].place.column, 5);
		ingest_request_free(r);
		harness_expect(&h, "default:m_f,t=0 1=1i\ndefault:m_f,t=1 1=1i\n"
				   "default:m_f,t=2 1=1i\n");
		harness_close(&h);
	}
}

static void nothing_is_a_success(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r = write_text(&h, NULL, "");
	assert_int_equal(ingest_status(r), 204);
	ingest_request_free(r);
	r = write_text(&h, NULL, "\n\n# nothing\n");
	assert_int_equal(ingest_status(r), 204);
	ingest_request_free(r);
	harness_close(&h);
}

static void lines_without_time_get_that_of_their_piece(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r = harness_request(&h);
	struct line_feed feed;
	line_feed_init(&feed, r, (struct slice){0}, LINE_NS);
	line_feed_piece(&feed, SLICE("m f=1i\nm f=2i\n"
				     "                                                          \n"
				     "          \n"));
	clock_virtual_advance(&h.clock, 5000 * 1000);
	line_feed_piece(&feed, SLICE("m f=3i\n"));
	line_feed_end(&feed);
	line_feed_release(&feed);
	harness_finish(&h, r);
	ingest_request_free(r);
	harness_expect(&h, "default:m_f 1700000000000=2i 1700000005000=3i\n");
	harness_close(&h);
}

static void only_the_first_sentences_are_kept(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	char text[4096];
	size_t len = 0;
	for (int i = 0; i < INGEST_ERRORS_MAX + 5; i++)
		len += print(text + len, "bad line %d\n", i);
	int64_t before = stat_get(STAT_ingest_refused_syntax);
	struct ingest_request *r = write_text(&h, NULL, text);
	assert_int_equal(r->refused, INGEST_ERRORS_MAX + 5);
	assert_int_equal(r->error_count, INGEST_ERRORS_MAX);
	assert_int_equal(r->errors[INGEST_ERRORS_MAX - 1].place.index, INGEST_ERRORS_MAX);
	assert_int_equal(stat_get(STAT_ingest_refused_syntax) - before, INGEST_ERRORS_MAX + 5);
	ingest_request_free(r);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_become_metrics),
		cmocka_unit_test(a_second_line_is_known),
		cmocka_unit_test(fields_of_one_line_may_be_kept_for_different_times),
		cmocka_unit_test(order_is_kept_among_known_and_unknown),
		cmocka_unit_test(order_is_kept_behind_an_opening),
		cmocka_unit_test(one_key_may_have_many_shapes),
		cmocka_unit_test(different_fields_may_be_text_at_first),
		cmocka_unit_test(another_measurement_may_have_the_same_fields),
		cmocka_unit_test(text_fields_make_no_series),
		cmocka_unit_test(texts_may_be_left_out),
		cmocka_unit_test(bad_lines_cost_only_themselves),
		cmocka_unit_test(integers_out_of_range_cost_only_their_field),
		cmocka_unit_test(a_bad_tag_is_named_with_its_column),
		cmocka_unit_test(too_many_tags_are_told_where_they_are),
		cmocka_unit_test(tenants_come_from_header_tag_or_nowhere),
		cmocka_unit_test(the_tenants_tag_can_be_another_or_none),
		cmocka_unit_test(of_doubled_fields_the_last_counts),
		cmocka_unit_test(names_are_unescaped),
		cmocka_unit_test(pieces_of_any_size_give_the_same),
		cmocka_unit_test(random_cuts_give_the_same),
		cmocka_unit_test(lines_that_are_too_long_are_skipped),
		cmocka_unit_test(texts_up_to_the_limit_are_read),
		cmocka_unit_test(a_text_without_end_swallows_nothing),
		cmocka_unit_test(nothing_is_a_success),
		cmocka_unit_test(lines_without_time_get_that_of_their_piece),
		cmocka_unit_test(only_the_first_sentences_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
