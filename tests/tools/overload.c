/* Offers a server more line protocol than it can take: many connections, each with one request at a
 * time, plain and gzipped bodies, known and new series.
 *
 *   overload --port 8470 --connections 64 --seconds 15 --rows 500 --rate 400 --report FILE
 *
 * Connection c sends requests k = 0, 1, 2 ... (attempts: each is sent once, whatever becomes of
 * it). Request k holds for each row i, of S series that have T = rows / S times in each request
 *
 *     load,c=<c>,r=<i % S> v=<k>i <base + k T + i / S>
 *
 * and in each eighth request (--fresh, 0: in none) a tenth of the rows are of series that were
 * never there before:
 *
 *     fresh,c=<c>,n=<k>.<i> v=<k>i <the same>
 *
 * where v and n have ten digits, so that a body is made once and then changed in place: making it
 * must cost less than taking it. --gzip is every how many-th connection compresses (2; 0: none).
 *
 * --rate is of all connections together, in requests a second, 0: as fast as answers come. A
 * request that cannot leave in time leaves as soon as it can, and the next one after it.
 *
 * FILE gets a line per connection: `c attempts k k k ...`, the requests that were answered with
 * 204. Standard output gets one JSON object: how many requests were answered how, how many had no
 * answer within the time-out, how many 503 or 429 lacked a Retry-After, and latencies. */
#include <getopt.h>
#include <pthread.h>
#include <unistd.h>
#include <zlib.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "tools/raw_http.h"

enum {
	CONNECTIONS_MAX = 1024,
	ROWS_MAX = 20000,
	ROW_MAX_BYTES = 100,
	FRESH_SHARE = 10, /* a tenth of the rows */
	DIGITS = 10,      /* of k and of a time */
	ATTEMPTS_MAX = 1 << 20,
	RETRY_MS = 20, /* after a connection could not be had */
};

struct load {
	uint16_t port;
	unsigned connections, rows, series, seconds, timeout_s, fresh_each, gzip_each;
	double rate;
	int64_t base_s, begun_us;
	const char *report;
};

/* Bodies of one kind; the places in them that differ from one to the next. */
struct text {
	struct buf body;
	uint32_t *ends;  /* of rows, behind the newline */
	uint32_t *names; /* where the k of a new series stands; 0: none */
};

struct sender {
	const struct load *load;
	unsigned number;
	struct raw_http client;
	bool open;
	struct text usual, fresh;
	struct buf packed, head;
	z_stream zlib;
	size_t attempts;
	uint8_t *accepted; /* by attempt */
	/* What became of them. */
	size_t answered[6]; /* by hundreds; [5] are those of 500 and above but 503 and 507 */
	size_t busy, full, silent, refused,
		unsaid; /* 503 or 429; 507; nothing; connect; no header */
	size_t latencies_max_us;
	int64_t accepted_rows, sent_bytes;
};

/* ---- Bodies ---------------------------------------------------------------------------------- */

static unsigned times_of(const struct load *load)
{
	return (load->rows + load->series - 1) / load->series;
}

static void text_init(struct text *text, const struct load *load, unsigned number, bool fresh)
{
	buf_init(&text->body, (size_t)load->rows * ROW_MAX_BYTES);
	text->ends = mem_alloc_array(load->rows, sizeof(*text->ends));
	text->names = mem_zalloc(load->rows * sizeof(*text->names));
	for (unsigned i = 0; i < load->rows; i++) {
		if (fresh && i % FRESH_SHARE == 0) {
			buf_printf(&text->body, "fresh,c=%u,n=", number);
			text->names[i] = (uint32_t)text->body.len;
			buf_printf(&text->body, "%0*d.%u", DIGITS, 0, i);
		} else {
			buf_printf(&text->body, "load,c=%u,r=%u", number, i % load->series);
		}
		buf_printf(&text->body, " v=%0*di %0*d\n", DIGITS, 0, DIGITS, 0);
		text->ends[i] = (uint32_t)text->body.len;
	}
	ASSERT(!text->body.failed);
}

static void text_release(struct text *text)
{
	buf_release(&text->body);
	mem_free(text->ends);
	mem_free(text->names);
}

static void print_digits(char *to, unsigned long long n)
{
	char digits[32];
	snprintf(digits, sizeof(digits), "%0*llu", DIGITS, n);
	memcpy(to, digits, DIGITS);
}

static struct slice make_body(struct sender *s, size_t k)
{
	const struct load *load = s->load;
	unsigned times = times_of(load);
	bool fresh = load->fresh_each && k % load->fresh_each == 0;
	struct text *text = fresh ? &s->fresh : &s->usual;
	char *bytes = text->body.data, number[DIGITS], when[DIGITS];
	print_digits(number, k);
	for (unsigned i = 0; i < load->rows; i++) {
		if (i % load->series == 0)
			print_digits(when, (unsigned long long)load->base_s + k * times +
						   i / load->series);
		char *end = bytes + text->ends[i] - 1;
		memcpy(end - DIGITS, when, DIGITS);
		memcpy(end - 2 - 2 * DIGITS, number, DIGITS);
		if (text->names[i])
			memcpy(bytes + text->names[i], number, DIGITS);
	}
	return buf_slice(&text->body);
}

static struct slice pack(struct sender *s, struct slice body)
{
	size_t bound = deflateBound(&s->zlib, body.len);
	buf_clear(&s->packed);
	char *to = buf_reserve(&s->packed, bound);
	ASSERT(to);
	deflateReset(&s->zlib);
	s->zlib.next_in = (unsigned char *)(uintptr_t)body.data;
	s->zlib.avail_in = (unsigned)body.len;
	s->zlib.next_out = (unsigned char *)to;
	s->zlib.avail_out = (unsigned)bound;
	int result = deflate(&s->zlib, Z_FINISH);
	ASSERT(result == Z_STREAM_END);
	s->packed.len = bound - s->zlib.avail_out;
	return buf_slice(&s->packed);
}

static struct slice make_request(struct sender *s, size_t k)
{
	struct slice body = make_body(s, k);
	unsigned each = s->load->gzip_each;
	bool gzip = each && s->number % each == each - 1;
	if (gzip)
		body = pack(s, body);
	buf_clear(&s->head);
	buf_printf(&s->head,
		   "POST /write?precision=s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s"
		   "Content-Length: %zu\r\n\r\n",
		   gzip ? "Content-Encoding: gzip\r\n" : "", body.len);
	return body;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void hang_up(struct sender *s)
{
	if (s->open)
		raw_http_close(&s->client);
	s->open = false;
}

static bool has_field(struct slice head, const char *name)
{
	return memmem(head.data, head.len, name, strlen(name)) != NULL;
}

static void count(struct sender *s, size_t k, const struct http_reply *reply)
{
	if (reply->status == 204) {
		s->accepted[k] = 1;
		s->accepted_rows += s->load->rows;
	}
	if (reply->status == 503 || reply->status == 429) {
		s->busy++;
		s->unsaid += !has_field(reply->head, "\r\nRetry-After: ");
	} else if (reply->status == 507) {
		s->full++;
	} else {
		s->answered[reply->status / 100 < 5 ? reply->status / 100 : 5]++;
	}
	if (has_field(reply->head, "\r\nConnection: close"))
		hang_up(s);
}

/* An answer may come before all of the body has gone, and the rest then finds no reader. */
static void send_one(struct sender *s, size_t k)
{
	struct clock *clock = clock_real();
	struct http_reply reply;
	struct slice body = make_request(s, k);
	if (!s->open && raw_http_open(&s->client, s->load->port, (int)s->load->timeout_s)) {
		s->refused++;
		usleep(RETRY_MS * 1000);
		return;
	}
	s->open = true;
	int64_t begun_us = clock->mono_us(clock);
	int sent = raw_http_send(&s->client, buf_slice(&s->head), body);
	int err = raw_http_receive(&s->client, &reply);
	size_t took_us = (size_t)(clock->mono_us(clock) - begun_us);
	if (took_us > s->latencies_max_us)
		s->latencies_max_us = took_us;
	s->sent_bytes += (int64_t)body.len;
	if (err) {
		s->silent++;
		hang_up(s);
		return;
	}
	count(s, k, &reply);
	if (sent)
		hang_up(s);
}

static void *sender_run(void *argument)
{
	struct sender *s = argument;
	const struct load *load = s->load;
	struct clock *clock = clock_real();
	int64_t end_us = load->begun_us + (int64_t)load->seconds * 1000000;
	for (size_t k = 0; k < ATTEMPTS_MAX; k++) {
		int64_t due_us = load->begun_us;
		if (load->rate > 0)
			due_us += (int64_t)(1e6 * ((double)k * load->connections + s->number) /
					    load->rate);
		int64_t now_us = clock->mono_us(clock);
		if (now_us >= end_us || due_us >= end_us)
			break;
		if (due_us > now_us)
			usleep((unsigned)(due_us - now_us));
		s->attempts = k + 1;
		send_one(s, k);
	}
	hang_up(s);
	return NULL;
}

static void sender_init(struct sender *s, const struct load *load, unsigned number)
{
	*s = (struct sender){.load = load, .number = number};
	text_init(&s->usual, load, number, false);
	if (load->fresh_each)
		text_init(&s->fresh, load, number, true);
	buf_init(&s->packed, (size_t)ROWS_MAX * ROW_MAX_BYTES);
	buf_init(&s->head, 1024);
	s->accepted = mem_zalloc(ATTEMPTS_MAX);
	/* 15 + 16: with the head of gzip. */
	int err = deflateInit2(&s->zlib, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
	ASSERT(err == Z_OK);
}

static void sender_release(struct sender *s)
{
	deflateEnd(&s->zlib);
	text_release(&s->usual);
	if (s->load->fresh_each)
		text_release(&s->fresh);
	buf_release(&s->packed);
	buf_release(&s->head);
	mem_free(s->accepted);
}

/* ---- Report ---------------------------------------------------------------------------------- */

static int write_accepted(const struct load *load, const struct sender *senders)
{
	FILE *file = fopen(load->report, "w");
	if (!file)
		return ERR_INVALID;
	for (unsigned c = 0; c < load->connections; c++) {
		fprintf(file, "%u %zu", c, senders[c].attempts);
		for (size_t k = 0; k < senders[c].attempts; k++) {
			if (senders[c].accepted[k])
				fprintf(file, " %zu", k);
		}
		fputc('\n', file);
	}
	return fclose(file) ? ERR_INVALID : 0;
}

static void report(const struct load *load, const struct sender *senders)
{
	struct sender sum = {0};
	for (unsigned c = 0; c < load->connections; c++) {
		const struct sender *s = &senders[c];
		sum.attempts += s->attempts;
		for (size_t i = 0; i < ARRAY_LEN(sum.answered); i++)
			sum.answered[i] += s->answered[i];
		sum.busy += s->busy;
		sum.full += s->full;
		sum.silent += s->silent;
		sum.refused += s->refused;
		sum.unsaid += s->unsaid;
		sum.accepted_rows += s->accepted_rows;
		sum.sent_bytes += s->sent_bytes;
		if (s->latencies_max_us > sum.latencies_max_us)
			sum.latencies_max_us = s->latencies_max_us;
	}
	printf("{\"attempts\": %zu, \"ok\": %zu, \"bad\": %zu, \"failed\": %zu, \"busy\": %zu, "
	       "\"full\": %zu, \"silent\": %zu, \"not_connected\": %zu, "
	       "\"without_retry_after\": %zu, \"rows\": %lld, \"sent_bytes\": %lld, "
	       "\"longest_ms\": %.1f, \"base_s\": %lld}\n",
	       sum.attempts, sum.answered[2], sum.answered[4], sum.answered[5], sum.busy, sum.full,
	       sum.silent, sum.refused, sum.unsaid, (long long)sum.accepted_rows,
	       (long long)sum.sent_bytes, (double)sum.latencies_max_us / 1e3,
	       (long long)load->base_s);
}

static int run(struct load *load)
{
	struct clock *clock = clock_real();
	struct sender *senders = mem_alloc_array(load->connections, sizeof(*senders));
	pthread_t threads[CONNECTIONS_MAX];
	if (!load->series || load->series > load->rows)
		load->series = load->rows;
	load->base_s = clock_wall_ms(clock) / 1000 - 86400;
	for (unsigned c = 0; c < load->connections; c++)
		sender_init(&senders[c], load, c);
	load->begun_us = clock->mono_us(clock);
	for (unsigned c = 0; c < load->connections; c++) {
		ASSERT(pthread_create(&threads[c], NULL, sender_run, &senders[c]) == 0);
	}
	for (unsigned c = 0; c < load->connections; c++)
		pthread_join(threads[c], NULL);
	report(load, senders);
	int err = load->report ? write_accepted(load, senders) : 0;
	for (unsigned c = 0; c < load->connections; c++)
		sender_release(&senders[c]);
	mem_free(senders);
	return err;
}

static int usage(void)
{
	fputs("usage: overload --port PORT [--connections N] [--seconds S] [--rows N] [--series N] "
	      "[--fresh N] [--gzip N] [--rate N] [--timeout S] [--report FILE]\n",
	      stderr);
	return 2;
}

static int parse(int argc, char **argv, struct load *load)
{
	static const struct option names[] = {
		{"port", required_argument, NULL, 'p'},
		{"connections", required_argument, NULL, 'c'},
		{"seconds", required_argument, NULL, 's'},
		{"rows", required_argument, NULL, 'r'},
		{"series", required_argument, NULL, 'i'},
		{"fresh", required_argument, NULL, 'f'},
		{"gzip", required_argument, NULL, 'z'},
		{"rate", required_argument, NULL, 'a'},
		{"timeout", required_argument, NULL, 't'},
		{"report", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	int option;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		unsigned number = (unsigned)strtoul(optarg ? optarg : "", NULL, 10);
		if (option == 'p')
			load->port = (uint16_t)number;
		else if (option == 'c')
			load->connections = number;
		else if (option == 's')
			load->seconds = number;
		else if (option == 'r')
			load->rows = number;
		else if (option == 'i')
			load->series = number;
		else if (option == 'f')
			load->fresh_each = number;
		else if (option == 'z')
			load->gzip_each = number;
		else if (option == 'a')
			load->rate = strtod(optarg, NULL);
		else if (option == 't')
			load->timeout_s = number;
		else if (option == 'o')
			load->report = optarg;
		else
			return ERR_INVALID;
	}
	bool ok = load->port && load->connections && load->connections <= CONNECTIONS_MAX &&
		  load->rows && load->rows <= ROWS_MAX && optind == argc;
	return ok ? 0 : ERR_INVALID;
}

int main(int argc, char **argv)
{
	struct load load = {.connections = 64,
			    .seconds = 15,
			    .rows = 500,
			    .timeout_s = 30,
			    .fresh_each = 8,
			    .gzip_each = 2};
	if (parse(argc, argv, &load))
		return usage();
	return run(&load) ? 1 : 0;
}
