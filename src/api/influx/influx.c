#include "api/influx/influx.h"

#include <strings.h>

#include "api/routes.h"
#include "base/hash.h"
#include "base/stats.h"
#include "ingest/line.h"
#include "wire/json.h"
#include "wire/timetext.h"

enum {
	ANSWER_MAX_BYTES = 64 << 10,
	ANSWER_TEXT_MAX_BYTES = 400,
	NAME_MAX_BYTES = 1024,
	ID_BYTES = 17
};

#define JSON_TYPE "application/json"
/* Clients look at the first numbers only: this is the protocol of that version. */
#define INFLUX_VERSION "1.8.0+granary." GRANARY_VERSION

/* ---- Is somebody there ---------------------------------------------------------------------- */

static void put_version(struct http_request *http)
{
	http_reply_header(http, "X-Influxdb-Version", INFLUX_VERSION);
	http_reply_header(http, "X-Influxdb-Build", "Granary");
}

static void ping_end(struct http_request *http)
{
	struct slice verbose = http_param(http, "verbose");
	put_version(http);
	if (!verbose.len || slice_equal(verbose, SLICE("0")) ||
	    slice_equal(verbose, SLICE("false")))
		http_reply(http, 204, NULL, (struct slice){0});
	else
		http_reply(http, 200, JSON_TYPE, SLICE("{\"version\":\"" INFLUX_VERSION "\"}"));
}

/* Clients that ask for the health want to write. */
static void health_end(struct http_request *http)
{
	const char *fault =
		!api_of(http)->ready ? "starting or stopping"
		: stat_get(STAT_store_read_only)
			? "there is no room: writes are refused with 507, and the log says "
			  "why; queries are answered"
			: NULL;
	char answer[ANSWER_TEXT_MAX_BYTES];
	snprintf(answer, sizeof(answer),
		 "{\"name\":\"granary\",\"message\":\"%s\",\"status\":\"%s\",\"checks\":[],"
		 "\"version\":\"" GRANARY_VERSION "\"}",
		 fault ? fault : "ready for writes", fault ? "fail" : "pass");
	put_version(http);
	http_reply(http, fault ? 503 : 200, JSON_TYPE, slice_of(answer));
}

static void influx_ready_end(struct http_request *http)
{
	const struct api *api = api_of(http);
	char started[TIME_PRINT_MAX_BYTES], answer[200];
	if (!api->ready) {
		http_reply_error(http, 503, "the server is starting or stopping");
		return;
	}
	int len = (int)time_print(started, api->started_ms);
	int64_t up_ms = clock_wall_ms(api->clock) - api->started_ms;
	put_version(http);
	snprintf(answer, sizeof(answer),
		 "{\"status\":\"ready\",\"started\":\"%.*s\",\"up\":\"%lld.%03llds\"}", len,
		 started, (long long)(up_ms / 1000), (long long)(up_ms % 1000));
	http_reply(http, 200, JSON_TYPE, slice_of(answer));
}

const struct http_handler influx_ping = {.end = ping_end};
const struct http_handler influx_health = {.end = health_end};
const struct http_handler influx_ready = {.end = influx_ready_end, .error = line_error_v2};

/* ---- Buckets and organisations -------------------------------------------------------------- */

/* Ids are 16 digits; the same name has the same one always. */
static void write_id(struct json_writer *json, const char *key, struct slice name)
{
	char id[ID_BYTES];
	snprintf(id, sizeof(id), "%016llx",
		 (unsigned long long)(hash64(name.data, name.len, 0) | 1));
	json_put_text(json, key, id);
}

static void write_bucket(struct json_writer *json, struct slice name)
{
	write_id(json, "id", name);
	write_id(json, "orgID", SLICE("default"));
	json_put_text(json, "type", "user");
	json_put_string(json, "name", name);
	json_write_key(json, "retentionRules");
	json_write_array_begin(json);
	json_write_array_end(json);
}

static void write_org(struct json_writer *json, struct slice name)
{
	write_id(json, "id", name);
	json_put_string(json, "name", name);
	json_put_text(json, "status", "active");
}

/* The one that is asked for, or that which is there without asking. */
static void reply_named(struct http_request *http, const char *param, const char *list,
			void (*write)(struct json_writer *json, struct slice name))
{
	struct slice name = http_param(http, param);
	struct json_writer json;
	struct buf out;
	if (!name.len)
		name = SLICE("default");
	if (name.len > NAME_MAX_BYTES) {
		http_reply_error(http, 400, "the name is longer than %d bytes", NAME_MAX_BYTES);
		return;
	}
	buf_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_write_object_begin(&json);
	json_write_key(&json, list);
	json_write_array_begin(&json);
	json_write_object_begin(&json);
	write(&json, name);
	json_write_object_end(&json);
	json_write_array_end(&json);
	json_write_object_end(&json);
	put_version(http);
	http_reply(http, 200, JSON_TYPE, buf_slice(&out));
	buf_release(&out);
}

static void buckets_end(struct http_request *http)
{
	reply_named(http, "name", "buckets", write_bucket);
}

static void orgs_end(struct http_request *http)
{
	reply_named(http, "org", "orgs", write_org);
}

const struct http_handler influx_buckets = {.end = buckets_end, .error = line_error_v2};
const struct http_handler influx_orgs = {.end = orgs_end, .error = line_error_v2};

/* ---- Databases ------------------------------------------------------------------------------ */

static bool influx_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Takes the next word, a run of what is not blank, off the front. */
static struct slice influx_take_word(struct slice *text)
{
	size_t begin = 0, end;
	while (begin < text->len && influx_is_blank(text->data[begin]))
		begin++;
	end = begin;
	while (end < text->len && !influx_is_blank(text->data[end]))
		end++;
	struct slice word = {text->data + begin, end - begin};
	*text = (struct slice){text->data + end, text->len - end};
	return word;
}

static bool influx_word_is(struct slice word, const char *known)
{
	if (word.len && word.data[word.len - 1] == ';')
		word.len--;
	return word.len == strlen(known) && strncasecmp(word.data, known, word.len) == 0;
}

/* Telegraf puts `q` into a form, others into the URL. */
static void influx_query_end(struct http_request *http)
{
	struct slice q;
	if (http_form_field(http, "q", &q)) {
		http_reply_error(http, 400, "the form is not properly percent-encoded");
		return;
	}
	if (!q.data)
		q = http_param(http, "q");
	struct slice first = influx_take_word(&q), second = influx_take_word(&q),
		     third = influx_take_word(&q);
	put_version(http);
	if (influx_word_is(first, "CREATE") && influx_word_is(second, "DATABASE") && third.len)
		http_reply(http, 200, JSON_TYPE, SLICE("{\"results\":[{\"statement_id\":0}]}"));
	else if (influx_word_is(first, "SHOW") && influx_word_is(second, "DATABASES") && !third.len)
		http_reply(http, 200, JSON_TYPE,
			   SLICE("{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":"
				 "\"databases\",\"columns\":[\"name\"],\"values\":[[\"default\"]]"
				 "}]}]}"));
	else
		http_reply_error(http, 400,
				 "only CREATE DATABASE and SHOW DATABASES are answered here; "
				 "see /api/query for queries");
}

const struct http_handler influx_query = {.end = influx_query_end, .error = line_error_v1};
