/* Of the model of faults: what is right of groups, by plain loops over the reports that have
 * landed. */
#include "fault_model.h"

#include "base/grow.h"
#include "fault/message.h"
#include "fault/rise.h"

/* Of a group: what its reports add up to. */
struct sum {
	uint64_t count, hours[HOURS], users[USERS];
	const struct arrival *first, *last;
};

/* Of two reports of one time the one with the lesser text is the earlier. */
static bool is_before(const struct arrival *a, const struct arrival *b)
{
	char one[24], other[24];
	if (a->order.date_us != b->order.date_us)
		return a->order.date_us < b->order.date_us;
	snprintf(one, sizeof(one), "id%u", a->id);
	snprintf(other, sizeof(other), "id%u", b->id);
	return strcmp(one, other) < 0;
}

/* Whether the group is among those of the day that are counted: the first GROUPS_MAX, by when the
 * first report of each was received. */
static bool is_counted(bool counted[GROUPS], unsigned group)
{
	size_t count = 0;
	for (unsigned g = 0; g < GROUPS; g++)
		count += counted[g];
	counted[group] = group < GROUPS - 1 && (counted[group] || count < GROUPS_MAX);
	return counted[group];
}

static void count_one(struct sum *sum, const struct arrival *a)
{
	sum->first = sum->count && is_before(sum->first, a) ? sum->first : a;
	sum->last = sum->count && is_before(a, sum->last) ? sum->last : a;
	sum->count++;
	sum->hours[hour_of(a->order.date_us)]++;
	sum->users[a->content / GROUPS % USERS]++;
}

/* Of each id the first that was received counts. Adds to what there is. */
static void count_groups(const struct model *m, unsigned tenant, int64_t day,
			 struct sum sums[GROUPS])
{
	bool *seen = mem_zalloc(IDS_MAX * sizeof(*seen));
	bool counted[GROUPS] = {false};
	for (size_t i = 0; i < m->arrival_count; i++) {
		const struct arrival *a = &m->arrivals[i];
		if (a->tenant != tenant || seen[a->id])
			continue;
		seen[a->id] = true;
		if (day_of(a->order.date_us) == day && is_counted(counted, a->content % GROUPS))
			count_one(&sums[a->content % GROUPS], a);
	}
	mem_free(seen);
}

static bool same_users(struct model *m, const char *whose, const struct fault_tally *tally,
		       const struct sum *sum)
{
	uint64_t distinct = 0;
	bool about;
	for (unsigned u = 0; u < USERS; u++) {
		struct slice name = content_of(u * GROUPS).user;
		const struct fault_value *value = fault_tally_find(tally, FAULT_TALLY_USER, name);
		uint64_t count = value ? value->count : 0, wanted = sum->users[u];
		distinct += name.len > 0 && wanted > 0;
		if (count != wanted)
			return differ(m, "%s: %llu of user %u, not %llu", whose,
				      (unsigned long long)count, u, (unsigned long long)wanted);
	}
	if (fault_tally_distinct(tally, FAULT_TALLY_USER, &about) != distinct || about)
		return differ(m, "%s: the users are not %llu", whose, (unsigned long long)distinct);
	return true;
}

/* A tag's value is the user of its report. */
static bool same_tags(struct model *m, const char *whose, const struct fault_tally *tally,
		      const struct sum *sum)
{
	for (unsigned u = 0; u < USERS; u++) {
		char text[16];
		struct slice name = content_of(u * GROUPS).user;
		int len = snprintf(text, sizeof(text), "who\xff%.*s", (int)name.len, name.data);
		const struct fault_value *value = fault_tally_find(
			tally, FAULT_TALLY_TAG, (struct slice){text, name.len ? (size_t)len : 0});
		uint64_t count = value ? value->count : 0;
		if (count != sum->users[u])
			return differ(m, "%s: %llu tags of user %u, not %llu", whose,
				      (unsigned long long)count, u,
				      (unsigned long long)sum->users[u]);
	}
	return true;
}

static bool same_end(struct model *m, const char *whose, const struct fault_tally_end *end,
		     const struct arrival *wanted)
{
	if (end->date_us != wanted->order.date_us)
		return differ(m, "%s: an end is at %lld, not %lld", whose, (long long)end->date_us,
			      (long long)wanted->order.date_us);
	return id_of(end->id) == wanted->id ||
	       differ(m, "%s: an end is " SHOWN ", not id%u", whose, SHOWN_OF(end->id), wanted->id);
}

static bool same_tally(struct model *m, const char *whose, unsigned group,
		       const struct fault_tally *tally, const struct sum *sum)
{
	char of[120];
	snprintf(of, sizeof(of), "%s, group " SHOWN, whose, SHOWN_OF(group_name(group)));
	if (tally->count != sum->count)
		return differ(m, "%s: %llu reports, not %llu", of, (unsigned long long)tally->count,
			      (unsigned long long)sum->count);
	if (!sum->count)
		return true;
	for (size_t h = 0; h < HOURS; h++)
		if (tally->hours[h] != sum->hours[h])
			return differ(m, "%s: %llu in hour %zu, not %llu", of,
				      (unsigned long long)tally->hours[h], h,
				      (unsigned long long)sum->hours[h]);
	return same_end(m, of, &tally->first, sum->first) &&
	       same_end(m, of, &tally->last, sum->last) && same_users(m, of, tally, sum) &&
	       same_tags(m, of, tally, sum);
}

static bool check_all(struct model *m, const struct answer *a, const char *whose)
{
	struct sum sums[GROUPS] = {0};
	size_t groups = 0;
	bool right = true;
	count_groups(m, a->tenant, a->day, sums);
	for (unsigned g = 0; g < GROUPS && right; g++) {
		static const struct fault_tally none;
		struct slice name = group_name(g);
		const struct fault_group_sum *sum =
			hash_table_find(&a->sums.table, hash128(name.data, name.len, 0));
		right = same_tally(m, whose, g, sum ? sum->tally : &none, &sums[g]);
		groups += sums[g].count > 0;
	}
	if (right && a->sums.table.count != groups)
		right = differ(m, "%s: %zu groups, not %zu", whose, a->sums.table.count, groups);
	return right;
}

static bool check_history(struct model *m, const struct answer *a, const char *whose)
{
	struct sum all = {0};
	size_t days = 0;
	bool right = true;
	/* A clock may have been ahead. */
	for (int64_t day = m->first_day; day <= now_ms(m) / DAY_MS + 2 && right; day++) {
		struct sum sums[GROUPS] = {0};
		const struct sum *sum = &sums[a->group];
		count_groups(m, a->tenant, day, sums);
		if (!sum->count)
			continue;
		if (days == a->history.count || a->history.days[days].day != day ||
		    a->history.days[days].count != sum->count)
			return differ(m, "%s: not %llu reports of day %lld", whose,
				      (unsigned long long)sum->count, (long long)(day - BEGIN_DAY));
		days++;
		all.first = all.count ? all.first : sum->first;
		all.last = sum->last;
		all.count += sum->count;
		for (size_t h = 0; h < HOURS; h++)
			all.hours[h] += sum->hours[h];
		for (size_t u = 0; u < USERS; u++)
			all.users[u] += sum->users[u];
	}
	if (days != a->history.count)
		return differ(m, "%s: %zu days, not %zu", whose, a->history.count, days);
	return same_tally(m, whose, a->group, &a->history.tally, &all);
}

/* No more than have landed. */
static bool check_most(struct model *m, const struct answer *a, const char *whose)
{
	uint64_t counted = a->history.tally.count, landed = 0;
	for (size_t at = 0; at < a->sums.table.slot_count; at++) {
		const struct fault_group_sum *sum = fault_groups_at(&a->sums, at);
		counted += sum ? sum->tally->count : 0;
	}
	for (size_t i = 0; i < m->arrival_count; i++)
		landed += m->arrivals[i].tenant == a->tenant;
	return counted <= landed || differ(m, "%s: %llu reports in groups, of %llu", whose,
					   (unsigned long long)counted, (unsigned long long)landed);
}

bool check_groups(struct model *m, const struct answer *a, const char *whose)
{
	bool exact = answer_is_exact(m, a);
	char of[80];
	snprintf(of, sizeof(of), "%s of %s, %s of day %lld", whose, tenant_names[a->tenant].data,
		 a->what == ASKED_GROUP ? "a group, asked" : "groups",
		 (long long)(a->day - BEGIN_DAY));
	m->answers++;
	m->exact += exact;
	if (!exact || is_late(m, a->tenant, a->what == ASKED_GROUPS ? a->day : m->first_day))
		return check_most(m, a, of);
	return a->what == ASKED_GROUPS ? check_all(m, a, of) : check_history(m, a, of);
}

/* ---- Messages -------------------------------------------------------------------------------- */

enum { DAYS = 64, HOURS_ALL = DAYS * HOURS };

struct messages {
	struct model *m;
	unsigned tenant;
	bool groups[GROUPS], days[DAYS];
	uint64_t held_back[HOURS_ALL], told_of[HOURS_ALL]; /* from the first day on */
	int64_t last_us;
};

static unsigned group_number(struct slice name)
{
	unsigned g = 0;
	while (g < GROUPS && !slice_equal(content_of(g).group, name))
		g++;
	return g;
}

static size_t hour_number(const struct messages *seen, int64_t us)
{
	int64_t hour = floor_div(us, FAULT_HOUR_US) - seen->m->first_day * HOURS;
	ASSERT(hour >= 0 && hour < HOURS_ALL);
	return (size_t)hour;
}

static struct hash128 message_hash(const struct fault_message *message)
{
	return hash128(message->id.data, message->id.len, 0);
}

static int follow_message(void *owner, const struct fault_message *message)
{
	struct messages *seen = owner;
	bool added;
	if (message->date_us <= seen->m->follow_us[seen->tenant])
		return 0;
	hash_table_add(&seen->m->followed[seen->tenant], message_hash(message),
		       sizeof(struct hash128), &added);
	seen->last_us = larger_of(seen->last_us, message->date_us);
	return 0;
}

void follow_messages(struct model *m, unsigned tenant)
{
	struct messages seen = {.m = m, .tenant = tenant, .last_us = m->follow_us[tenant]};
	struct errbuf e = {""};
	int err = fault_messages_read(&m->site, &m->own, tenant_names[tenant], follow_message,
				      &seen, &e);
	ASSERT(!err);
	m->follow_us[tenant] = seen.last_us;
}

static int see_message(void *owner, const struct fault_message *message)
{
	struct messages *seen = owner;
	if (!hash_table_find(&seen->m->followed[seen->tenant], message_hash(message)))
		differ(seen->m, "who follows messages of %s has passed one by",
		       tenant_names[seen->tenant].data);
	unsigned group = group_number(message->group);
	size_t day;
	seen->held_back[hour_number(seen, message->made_us)] += message->held_back;
	switch (message->kind) {
	case FAULT_NEW_GROUP:
		ASSERT(group < GROUPS);
		if (seen->groups[group])
			differ(seen->m, "two messages say that group %u is new", group);
		seen->groups[group] = true;
		break;
	case FAULT_DAY_OVER:
		day = hour_number(seen, message->of_us) / HOURS;
		if (seen->days[day])
			differ(seen->m, "two messages say that day %zu is over", day);
		seen->days[day] = true;
		break;
	case FAULT_HELD_BACK:
		seen->told_of[hour_number(seen, message->of_us)] += message->count;
		break;
	case FAULT_RISEN:
		if (message->count < FAULT_RISE_REPORTS)
			differ(seen->m, "a group with %llu reports has risen",
			       (unsigned long long)message->count);
		break;
	default:
		differ(seen->m, "a message of kind %d", message->kind);
	}
	return 0;
}

/* Which groups anybody sent; and which count, which they may have to do for a moment only. */
static bool check_new(const struct messages *seen)
{
	struct model *m = seen->m;
	struct sum sums[GROUPS] = {{0}};
	bool landed[GROUPS];
	for (int64_t day = m->first_day; day <= now_ms(m) / DAY_MS; day++)
		count_groups(m, seen->tenant, day, sums);
	memcpy(landed, m->had_group[seen->tenant], sizeof(landed));
	for (size_t i = 0; i < m->arrival_count; i++)
		if (m->arrivals[i].tenant == seen->tenant)
			landed[m->arrivals[i].content % GROUPS] = true;
	for (unsigned g = 0; g < GROUPS; g++) {
		const char *name = tenant_names[seen->tenant].data;
		if (sums[g].count && !seen->groups[g] && !m->late[seen->tenant])
			return differ(m, "group %u of %s is new, and there is no message", g, name);
		if (!landed[g] && seen->groups[g])
			return differ(m, "a message says that group %u of %s is new", g, name);
	}
	return true;
}

static bool has_reports(const struct model *m, unsigned tenant, int64_t day)
{
	bool seen[IDS_MAX] = {false};
	for (size_t i = 0; i < m->arrival_count; i++) {
		const struct arrival *a = &m->arrivals[i];
		if (a->tenant != tenant || seen[a->id])
			continue;
		seen[a->id] = true;
		if (day_of(a->order.date_us) == day)
			return true;
	}
	return false;
}

/* Owners have had the time to close a day, and to tell what was held back in an hour. */
bool check_messages(struct model *m, unsigned tenant)
{
	struct messages *seen = mem_zalloc(sizeof(*seen));
	struct errbuf e = {""};
	int64_t past_ms = now_ms(m) - WRITE_MAX_MS - 2 * SKEW_MS;
	seen->m = m;
	seen->tenant = tenant;
	follow_messages(m, tenant);
	int err =
		fault_messages_read(&m->site, &m->own, tenant_names[tenant], see_message, seen, &e);
	bool right = !err && !m->failure[0] && check_new(seen);
	for (int64_t day = m->first_day; (day + 1) * DAY_MS < past_ms && right; day++)
		if (has_reports(m, tenant, day) && !seen->days[day - m->first_day])
			right = differ(m, "day %lld of %s is over, and there is no message",
				       (long long)(day - BEGIN_DAY), tenant_names[tenant].data);
	int64_t hours = past_ms / 3600000 - m->first_day * HOURS;
	for (int64_t h = 0; h < hours && right; h++)
		if (seen->held_back[h] != seen->told_of[h])
			right = differ(m,
				       "of hour %lld of %s %llu messages are held back, not %llu",
				       (long long)h, tenant_names[tenant].data,
				       (unsigned long long)seen->held_back[h],
				       (unsigned long long)seen->told_of[h]);
	mem_free(seen);
	return right;
}

/* ---- Minutes --------------------------------------------------------------------------------- */

/* By what it is called: a name has `-`, a group a text without. */
static struct given *given_of(struct model *m, unsigned tenant, int64_t minute, const char *text)
{
	struct hash128 hash = hash128(text, strlen(text), 0);
	for (size_t i = 0; i < m->given_count; i++) {
		struct given *given = &m->given[i];
		if (given->tenant == tenant && given->minute == minute &&
		    memcmp(&given->hash, &hash, sizeof(hash)) == 0)
			return given;
	}
	GROW(m->given, m->given_room, m->given_count + 1);
	m->given[m->given_count] = (struct given){.tenant = tenant, .minute = minute, .hash = hash};
	return &m->given[m->given_count++];
}

/* Where it is kept may be away. */
int take_minute(void *owner, const struct fault_minute *minute, struct errbuf *e)
{
	const struct minute_owner *to = owner;
	struct model *m = to->m;
	bool taken = m->rests || !chance(m, m->fails);
	trace(m, "minute %lld of %s is %staken", (long long)(minute->start_us / FAULT_MINUTE_US),
	      tenant_names[to->tenant].data, taken ? "" : "not ");
	if (!taken)
		return errbuf_set(e, ERR_BUSY, "minutes are not taken");
	if (minute->names_rest || minute->groups_rest)
		differ(m, "a minute has a rest");
	for (size_t at = 0; at < minute->counts.slot_count; at++) {
		const struct fault_minute_count *count = hash_table_at(&minute->counts, at);
		char text[100];
		if (!count)
			continue;
		if (count->group)
			snprintf(text, sizeof(text), SHOWN, SHOWN_OF(count->texts[0]));
		else
			snprintf(text, sizeof(text), SHOWN "-" SHOWN, SHOWN_OF(count->texts[0]),
				 SHOWN_OF(count->texts[1]));
		given_of(m, to->tenant, minute->start_us / FAULT_MINUTE_US, text)->reports =
			count->reports;
	}
	return 0;
}

static void want_minutes(struct model *m, unsigned tenant)
{
	bool *seen = mem_zalloc(IDS_MAX * sizeof(*seen));
	for (size_t i = 0; i < m->arrival_count; i++) {
		const struct arrival *a = &m->arrivals[i];
		struct content content = content_of(a->content);
		int64_t minute = floor_div(a->order.date_us, FAULT_MINUTE_US);
		char text[100];
		if (a->tenant != tenant || seen[a->id])
			continue;
		seen[a->id] = true;
		snprintf(text, sizeof(text), SHOWN, SHOWN_OF(content.group));
		given_of(m, tenant, minute, text)->wanted++;
		snprintf(text, sizeof(text), SHOWN "-" SHOWN, SHOWN_OF(content.context),
			 SHOWN_OF(content.exception));
		given_of(m, tenant, minute, text)->wanted++;
	}
	mem_free(seen);
}

/* Whether a report of the minute's day was collected: then nobody counts it again. */
static bool some_are_gone(const struct model *m, unsigned tenant, int64_t minute)
{
	int64_t day = minute / FAULT_MINUTES_A_DAY;
	for (size_t i = 0; i < m->arrival_count; i++)
		if (m->arrivals[i].tenant == tenant && m->arrivals[i].gone &&
		    day_of(m->arrivals[i].order.date_us) >= day)
			return true;
	return false;
}

/* Owners have had the time to give a minute that is over for so long. */
bool check_minutes(struct model *m, unsigned tenant)
{
	int64_t past = (now_ms(m) - WRITE_MAX_MS - 3 * SKEW_MS) / 60000;
	for (size_t i = 0; i < m->given_count; i++)
		m->given[i].wanted = 0;
	want_minutes(m, tenant);
	for (size_t i = 0; i < m->given_count; i++) {
		const struct given *given = &m->given[i];
		if (given->tenant != tenant || given->minute >= past ||
		    given->reports == given->wanted || m->late[tenant] ||
		    some_are_gone(m, tenant, given->minute))
			continue;
		return differ(m, "%llu reports of %s in a minute %lld minutes ago, not %llu",
			      (unsigned long long)given->reports, tenant_names[tenant].data,
			      (long long)(past - given->minute), (unsigned long long)given->wanted);
	}
	return true;
}
