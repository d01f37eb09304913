#include "rollup/shared_settings.h"

#include "base/log.h"
#include "lease/session.h"
#include "rollup/site.h"
#include "store/wait.h"
#include "wire/timetext.h"

enum { SHOWN_VALUE_BYTES = 60 };

const struct store_parts shared_settings_row = {{SLICE("settings")}};
const struct store_parts shared_settings_column = {{SLICE("rollup")}};

/* ---- Printing -------------------------------------------------------------------------------- */

static void shared_settings_put_text(struct buf *to, struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\n')
			buf_append_text(to, "\\n");
		else if (text.data[i] == '\\')
			buf_append_text(to, "\\\\");
		else
			buf_append_char(to, text.data[i]);
	}
}

/* 0 is for ever. */
static void shared_settings_put_duration(struct buf *to, int64_t ms)
{
	char text[DURATION_PRINT_MAX_BYTES];
	buf_append_text(to, ms ? duration_print(text, ms) : "0");
}

static void shared_settings_put_width(struct buf *to, const struct granularity *granularity)
{
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	buf_append(to, width, granularity_width_print(width, granularity->width_ms));
}

static void shared_settings_put_granularities(struct buf *to,
					      const struct granularities *granularities)
{
	for (size_t g = 0; g < granularities->count; g++) {
		buf_append_text(to, g ? "," : "");
		shared_settings_put_width(to, &granularities->list[g]);
		buf_append_char(to, ':');
		shared_settings_put_duration(to, granularities->list[g].retention_ms);
	}
}

static void shared_settings_put_rules(struct buf *to, const struct rollup_site *site)
{
	const struct retention_rules *rules = &site->retention;
	for (size_t i = 0; i < rules->count; i++) {
		const struct retention_rule *rule = &rules->list[i];
		buf_append_text(to, i ? "," : "");
		shared_settings_put_text(to, rule->tenant);
		buf_append_char(to, '/');
		shared_settings_put_text(to, rule->metric);
		buf_append_char(to, '/');
		if (rule->granularity >= 0)
			shared_settings_put_width(to, &site->granularities.list[rule->granularity]);
		else
			buf_append_text(to, rule->granularity == RETENTION_RAW ? "raw" : "*");
		buf_append_char(to, ':');
		shared_settings_put_duration(to, rule->keep_ms);
	}
}

static void shared_settings_put_suffixes(struct buf *to, const struct rollup_site *site)
{
	for (size_t i = 0; i < site->counter_suffix_count; i++) {
		buf_append_text(to, i ? "," : "");
		shared_settings_put_text(to, slice_of(site->counter_suffixes[i]));
	}
}

void shared_settings_print(const struct rollup_site *site, struct buf *text)
{
	buf_printf(text, "rollup.partitions %u\nrollup.slot ", site->partitions);
	shared_settings_put_duration(text, site->granularities.slot_ms);
	buf_append_text(text, "\nrollup.granularities ");
	shared_settings_put_granularities(text, &site->granularities);
	buf_append_text(text, "\nretention.raw ");
	shared_settings_put_duration(text, site->retention.levels_ms[0]);
	buf_append_text(text, "\nretention.rules ");
	shared_settings_put_rules(text, site);
	buf_append_text(text, "\nrollup.counter_suffixes ");
	shared_settings_put_suffixes(text, site);
	buf_append_text(text, "\nrollup.quiet ");
	shared_settings_put_duration(text, site->quiet_ms);
	buf_append_text(text, "\nrollup.clock_difference ");
	shared_settings_put_duration(text, site->skew_max_ms);
	buf_printf(text, "\nrollup.late %s\nrollup.tracking %s\n",
		   site->retention.keeps_late ? "keep" : "refuse",
		   site->redis.host[0] ? "redis" : "store");
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* Cuts a line off: an option and its value. */
static bool shared_settings_next(struct slice *rest, struct slice *option, struct slice *value)
{
	const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
	if (!end)
		return false;
	size_t len = (size_t)(end - rest->data);
	const char *blank = memchr(rest->data, ' ', len);
	size_t name = blank ? (size_t)(blank - rest->data) : len;
	*option = (struct slice){rest->data, name};
	*value = (struct slice){rest->data + name + (blank != NULL), len - name - (blank != NULL)};
	*rest = (struct slice){end + 1, rest->len - len - 1};
	return true;
}

static bool shared_settings_find(struct slice text, struct slice wanted, struct slice *value)
{
	struct slice option;
	while (shared_settings_next(&text, &option, value)) {
		if (slice_equal(option, wanted))
			return true;
	}
	return false;
}

/* An option that only one of the texts has is one of another version of the program: nobody can say
 * whether it differs. */
bool shared_settings_differ(struct slice stored, struct slice own,
			    struct shared_settings_difference *difference)
{
	struct slice option, value, there;
	*difference = (struct shared_settings_difference){0};
	for (struct slice rest = own; shared_settings_next(&rest, &option, &value);) {
		if (!shared_settings_find(stored, option, &there) || slice_equal(there, value))
			continue;
		if (difference->option.len)
			difference->others++;
		else
			*difference = (struct shared_settings_difference){option, there, value, 0};
	}
	return difference->option.len != 0;
}

bool shared_settings_have_granularity(struct slice text, struct slice width)
{
	struct slice list;
	if (!shared_settings_find(text, SLICE("rollup.granularities"), &list))
		return false;
	while (list.len > width.len) {
		const char *end = memchr(list.data, ',', list.len);
		size_t len = end ? (size_t)(end - list.data) + 1 : list.len;
		if (memcmp(list.data, width.data, width.len) == 0 && list.data[width.len] == ':')
			return true;
		list = (struct slice){list.data + len, list.len - len};
	}
	return false;
}

/* ---- Who is at work -------------------------------------------------------------------------- */

int shared_settings_find_other(const struct rollup_site *site, struct task_queue *queue,
			       char name[SHARED_SETTINGS_NAME_MAX_BYTES])
{
	struct sessions all = {0};
	int err = sessions_look(&all, site->session, queue);
	name[0] = 0;
	for (size_t i = 0; i < all.count && !err && !name[0]; i++) {
		struct slice holder = all.list[i].cell.holder;
		if (all.list[i].alive && !slice_equal(holder, slice_of(site->name)))
			snprintf(name, SHARED_SETTINGS_NAME_MAX_BYTES, SHOWN, SHOWN_OF(holder));
	}
	sessions_release(&all);
	return err;
}

/* ---- Sentences ------------------------------------------------------------------------------- */

/* The beginning of a long one. */
static const char *shared_settings_shown(struct slice value, char to[SHOWN_VALUE_BYTES + 4])
{
	bool cut = value.len > SHOWN_VALUE_BYTES;
	snprintf(to, SHOWN_VALUE_BYTES + 4, "%.*s%s",
		 (int)(cut ? SHOWN_VALUE_BYTES - 1 : value.len), value.len ? value.data : "",
		 cut ? "..." : "");
	return value.len ? to : "empty";
}

void shared_settings_complain(const struct shared_settings_difference *difference)
{
	char stored[SHOWN_VALUE_BYTES + 4], own[SHOWN_VALUE_BYTES + 4];
	log_error("%.*s is %s here and %s in the store, where another process has changed it: this "
		  "process ends; start it with the same",
		  (int)difference->option.len, difference->option.data,
		  shared_settings_shown(difference->own, own),
		  shared_settings_shown(difference->stored, stored));
}

int shared_settings_refuse(const struct shared_settings_difference *difference, const char *other,
			   struct errbuf *e)
{
	char stored[SHOWN_VALUE_BYTES + 4], own[SHOWN_VALUE_BYTES + 4], more[40] = "";
	if (difference->others)
		snprintf(more, sizeof(more), " (and %zu more)", difference->others);
	return errbuf_set(e, ERR_INVALID,
			  "%.*s is %s in the store and %s here%s, and all processes that share a "
			  "store have the same; %.60s is at work with the stored value: start with "
			  "that, or stop all processes and start one with the new value",
			  (int)difference->option.len, difference->option.data,
			  shared_settings_shown(difference->stored, stored),
			  shared_settings_shown(difference->own, own), more, other);
}
