/* The registry: opening, finding, listing, forgetting; series_sets; rows of samples. */
#include "contract.h"

#define I(x) value_i64(x)

static void opened_once_found_ever_after(struct rig *rig)
{
	size_t created;
	uint64_t a, again, other;
	const char *cpu = "cpu", *mem = "mem";
	assert_int_equal(rig_find(rig, "t", "cpu", "host=a"), 0);
	rig_group(rig, "t", &cpu, 1, "host=a", false, &a, &created);
	assert_int_equal(created, 1);
	assert_int_not_equal(a, 0);
	rig_group(rig, "t", &cpu, 1, "host=a", false, &again, &created);
	assert_int_equal(created, 0);
	assert_int_equal(a, again);
	assert_int_equal(rig_find(rig, "t", "cpu", "host=a"), a);
	rig_group(rig, "t", &mem, 1, "host=a", false, &other, &created);
	assert_int_not_equal(a, other);
	assert_int_equal(rig_find(rig, "t", "cpu", "host=b"), 0);
	assert_int_equal(rig_find(rig, "t", "cpu", ""), 0);
	assert_int_equal(rig_find(rig, "t", "cpu", "dc=x,host=a"), 0);
	assert_int_equal(rig_find(rig, "u", "cpu", "host=a"), 0);
	assert_int_equal(rig_find(rig, "t", "cp", "host=a"), 0);
}

/* Identities that would be one if tenant, metric and tags were merely joined. */
static void identities_do_not_run_together(struct rig *rig)
{
	static const struct {
		const char *tenant, *metric, *tags;
	} identities[] = {
		{"t", "cpu", ""},
		{"t", "cpu", "host=a"},
		{"tc", "pu", "host=a"},
		{"t", "cpu,host=a", ""},
		{"t", "cpu", "host=a,host2=b"},
		{"t", "cpu", "host=a\\,host2\\=b"},
		{"t", "cpu", "h=ost\\=a"},
		{"t", "cpu", "h\\=ost=a"},
		{"T", "cpu", "host=a"},
		{"t", "CPU", "host=a"},
		{"t", "cpu", "host=A"},
		{"t", "cpu", "Host=a"},
		{"t", "cpu ", "host=a"},
		{"t", "\xc3\xa9", "host=\xc3\xa9"},
	};
	enum { COUNT = ARRAY_LEN(identities) };
	uint64_t handles[COUNT];
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < COUNT; i++) {
			size_t created;
			const char *metric = identities[i].metric;
			rig_group(rig, identities[i].tenant, &metric, 1, identities[i].tags, false,
				  &handles[i], &created);
			assert_int_equal(created, pass == 0);
			for (size_t j = 0; j < i; j++)
				assert_int_not_equal(handles[i], handles[j]);
		}
	}
}

static void group_keeps_its_order(struct rig *rig)
{
	static const char *const first[] = {"d", "b", "c", "b", "a"};
	static const char *const second[] = {"a", "e", "b"};
	uint64_t h[5], g[3];
	size_t created;
	rig_group(rig, "t", first, 5, "host=a", false, h, &created);
	assert_int_equal(created, 4);
	assert_int_equal(h[1], h[3]); /* a name that stands twice */
	rig_group(rig, "t", second, 3, "host=a", true, g, &created);
	assert_int_equal(created, 0);
	assert_int_equal(g[0], h[4]);
	assert_int_equal(g[1], 0);
	assert_int_equal(g[2], h[1]);
	rig_group(rig, "t", second, 3, "host=a", false, g, &created);
	assert_int_equal(created, 1);
	assert_int_equal(g[0], h[4]);
	assert_int_not_equal(g[1], 0);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(rig_find(rig, "t", first[i], "host=a"), h[i]);
}

/* At most STORE_GROUP_MAX metrics at once; two opens in one batch see each other. */
static void largest_group(struct rig *rig)
{
	static char names[STORE_GROUP_MAX][16];
	static const char *metrics[STORE_GROUP_MAX];
	static uint64_t handles[STORE_GROUP_MAX];
	static struct value values[STORE_GROUP_MAX];
	size_t created;
	for (size_t i = 0; i < STORE_GROUP_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "m%zu", i);
		metrics[i] = names[i];
		values[i] = I((int64_t)i);
	}
	rig_group(rig, "t", metrics, STORE_GROUP_MAX, "host=a", false, handles, &created);
	assert_int_equal(created, STORE_GROUP_MAX);
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_append(write, &RAW, T0, handles, STORE_GROUP_MAX, values), 0);
	rig_commit(rig, write);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < STORE_GROUP_MAX; i += 73)
			expect_all(rig, RAW, handles[i], POINTS({T0, {values[i]}}));
		rig_settle(rig);
	}
	assert_int_equal(rig_list(rig, "t", "", 100, 0).count, STORE_GROUP_MAX);
}

static void opens_of_one_batch_see_each_other(struct rig *rig)
{
	struct store_read *read = rig_read_new(rig);
	struct slice metric = TEXT("cpu");
	struct store_request *requests[3];
	for (int i = 0; i < 3; i++) {
		requests[i] = store_read_add(read, STORE_SERIES_OPEN);
		requests[i]->series_open = (struct store_series_open){
			.tenant = TEXT("t"), .metrics = &metric, .count = 1};
	}
	assert_int_equal(rig_read(rig, read), 0);
	size_t created = 0;
	for (int i = 0; i < 3; i++) {
		created += requests[i]->series_open.created;
		assert_int_equal(requests[i]->series_open.handles[0],
				 requests[0]->series_open.handles[0]);
	}
	assert_int_equal(created, 1);
	store_read_free(read);
}

/* Names as long as model/series.h permits; one series' tags at the limit of their text. */
static void longest_names(struct rig *rig)
{
	char metric[METRIC_MAX_BYTES + 1] = "", tenant[TENANT_MAX_BYTES + 1] = "";
	char a[TAG_KEY_MAX_BYTES + 1] = "", value[TAG_VALUE_MAX_BYTES + 1] = "";
	char tags[TAGS_TEXT_MAX_BYTES + 1];
	memset(metric, 'm', METRIC_MAX_BYTES);
	memset(tenant, 't', TENANT_MAX_BYTES);
	memset(a, 'a', TAG_KEY_MAX_BYTES);
	memset(value, 'v', TAG_VALUE_MAX_BYTES);
	/* 256 + 1 + 1024, 3 + 1024, 3 + 688: with a comma behind the last, just the 3000. */
	int n = snprintf(tags, sizeof(tags), "%s=%s,b=%s,c=%.688s", a, value, value, value);
	assert_int_equal(n, TAGS_TEXT_MAX_BYTES - 1);
	const char *name = metric;
	uint64_t h;
	rig_group(rig, tenant, &name, 1, tags, false, &h, NULL);
	rig_put(rig, RAW, h, T0, I(1));
	rig_reopen(rig);
	h = rig_find(rig, tenant, metric, tags);
	assert_int_not_equal(h, 0);
	expect_all(rig, RAW, h, POINTS({T0, {I(1)}}));
	struct series_list list = rig_list(rig, tenant, metric, 0, 0);
	assert_int_equal(list.count, 1);
	assert_slice(list.list[0].tags_text, slice_of(tags));
	/* Its columns in series_sets are longer than those of other tables may be. */
	for (size_t max = 0; max < 3; max++) {
		struct store_cell_scan scan = {.table = TABLE_SERIES_SETS,
					       .key = *PARTS(slice_of(tenant), slice_of(metric))};
		struct cells cells = rig_scan(rig, &scan, max);
		assert_int_equal(cells.count, 3);
		assert_int_equal(cells.list[0].column.part[0].len, 256);
		assert_int_equal(cells.list[0].column.part[1].len, 1024);
		assert_int_equal(cells.list[2].column.part[2].len, 256 + 1 + 2999);
	}
	/* As many tags as there may be. */
	n = 0;
	for (int i = 0; i < TAGS_MAX; i++)
		n += snprintf(tags + n, sizeof(tags) - (size_t)n, "%sk%02d=v", i ? "," : "", i);
	uint64_t many = rig_series(rig, "many", tags);
	assert_int_equal(rig_find(rig, "t", "many", tags), many);
	struct store_cell_scan scan = {.table = TABLE_SERIES_SETS,
				       .key = *PARTS(TEXT("t"), TEXT("many"))};
	assert_int_equal(rig_scan(rig, &scan, 7).count, TAGS_MAX);
}

static bool listed(struct series_list all, const char *tenant, const char *metric, const char *tags)
{
	for (size_t i = 0; i < all.count; i++) {
		if (slice_equal(all.list[i].tenant, slice_of(tenant)) &&
		    slice_equal(all.list[i].metric, slice_of(metric)) &&
		    slice_equal(all.list[i].tags_text, slice_of(tags)))
			return true;
	}
	return false;
}

static void list_by_tenant_and_metric(struct rig *rig)
{
	const char *cpu = "cpu", *cpu2 = "cpu2";
	uint64_t h;
	for (int i = 0; i < 5; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "host=%d", i);
		rig_group(rig, "one", &cpu, 1, tags, false, &h, NULL);
		rig_group(rig, "one", &cpu2, 1, tags, false, &h, NULL);
		rig_group(rig, "two", &cpu, 1, tags, false, &h, NULL);
	}
	for (size_t max = 0; max < 4; max++) {
		for (size_t limit = 0; limit < 4; limit++) {
			struct series_list all = rig_list(rig, "", "", limit, max);
			assert_int_equal(all.count, 15);
			all = rig_list(rig, "one", "cpu", limit, max);
			assert_int_equal(all.count, 5);
			for (int i = 0; i < 5; i++) {
				char tags[16];
				snprintf(tags, sizeof(tags), "host=%d", i);
				assert_true(listed(all, "one", "cpu", tags));
			}
			assert_int_equal(rig_list(rig, "two", "", limit, max).count, 5);
			assert_int_equal(rig_list(rig, "", "cpu", limit, max).count, 10);
			assert_int_equal(rig_list(rig, "two", "cpu2", limit, max).count, 0);
			assert_int_equal(rig_list(rig, "three", "", limit, max).count, 0);
		}
	}
}

/* The news of metric cpu of tenant t are the series with these tags, each with its handle. */
static void expect_news(struct rig *rig, uint64_t *since, const char *const *tags, size_t count)
{
	struct series_list news = rig_news(rig, "t", "cpu", since, 0, 0);
	assert_int_equal(news.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_true(listed(news, "t", "cpu", tags[i]));
		assert_int_equal(news.list[i].handle,
				 rig_find(rig, "t", "cpu", news.list[i].tags_text.data));
	}
}

static void news_are_what_was_registered_since(struct rig *rig)
{
	const char *cpu = "cpu";
	uint64_t since = 0, h;
	rig_series(rig, "cpu", "host=old");
	expect_news(rig, &since, NULL, 0); /* what was there is in the list */
	expect_news(rig, &since, NULL, 0);
	rig_series(rig, "cpu", "host=a");
	rig_series(rig, "cpu", "");
	rig_series(rig, "cpu", "host=old"); /* not registered again */
	rig_series(rig, "cpu2", "host=b");
	rig_group(rig, "u", &cpu, 1, "host=c", false, &h, NULL);
	rig_find(rig, "t", "cpu", "host=never");
	uint64_t before = since;
	expect_news(rig, &since, (const char *[]){"host=a", ""}, 2);
	expect_news(rig, &since, NULL, 0);
	rig_put(rig, RAW, rig_find(rig, "t", "cpu", "host=a"), T0, I(1)); /* a sample is none */
	expect_news(rig, &since, NULL, 0);
	rig_series(rig, "cpu", "host=d");
	expect_news(rig, &since, (const char *[]){"host=d"}, 1);
	/* Who has not gone on gets all. */
	expect_news(rig, &before, (const char *[]){"host=a", "", "host=d"}, 3);
	assert_int_equal(rig_news(rig, "u", "cpu", &before, 0, 0).count, 0);
}

/* An empty registry has a since, too, from which its first series is new. */
static void news_of_a_metric_that_begins(struct rig *rig)
{
	uint64_t since = 0;
	expect_news(rig, &since, NULL, 0);
	rig_series(rig, "cpu", "host=a");
	expect_news(rig, &since, (const char *[]){"host=a"}, 1);
}

static void news_come_in_slices(struct rig *rig)
{
	enum { SERIES = 7 };
	char tags[16];
	uint64_t since = 0;
	rig_series(rig, "cpu", "i=old");
	expect_news(rig, &since, NULL, 0);
	for (int i = 0; i < SERIES; i++) {
		snprintf(tags, sizeof(tags), "i=%d", i);
		rig_series(rig, "cpu", tags);
		rig_series(rig, "cpu2", tags);
	}
	for (size_t max = 0; max < 4; max++) {
		for (size_t limit = 0; limit < 9; limit++) {
			uint64_t from = since;
			struct series_list news = rig_news(rig, "t", "cpu", &from, limit, max);
			assert_int_equal(news.count, SERIES);
			for (int i = 0; i < SERIES; i++) {
				snprintf(tags, sizeof(tags), "i=%d", i);
				assert_true(listed(news, "t", "cpu", tags));
			}
			assert_int_equal(rig_news(rig, "t", "cpu", &from, limit, max).count, 0);
		}
	}
}

static int forget(struct rig *rig, const uint64_t *handles, size_t n);

static void news_when_it_is_registered_again(struct rig *rig)
{
	uint64_t since = 0, h = rig_series(rig, "cpu", "host=a");
	expect_news(rig, &since, NULL, 0);
	assert_int_equal(forget(rig, &h, 1), 0);
	assert_int_equal(rig_news(rig, "t", "cpu", &since, 0, 0).count, 0);
	rig_series(rig, "cpu", "host=a");
	expect_news(rig, &since, (const char *[]){"host=a"}, 1);
	expect_news(rig, &since, NULL, 0);
}

/* Between any two slices of the list, and of the news, a series is registered. */
static void news_and_a_list_miss_none(struct rig *rig)
{
	enum { SERIES = 12 };
	char tags[16];
	size_t registered = 0;
	bool seen[4 * SERIES] = {false};
	uint64_t since = 0;
	for (; registered < SERIES; registered++) {
		snprintf(tags, sizeof(tags), "i=%zu", registered);
		rig_series(rig, "cpu", tags);
	}
	expect_news(rig, &since, NULL, 0);
	for (int pass = 0; pass < 2; pass++) {
		struct store_read *read = rig_read_new(rig);
		struct store_request *request =
			store_read_add(read, pass ? STORE_SERIES_NEWS : STORE_SERIES_LIST);
		if (pass)
			request->series_news = (struct store_series_news){
				.tenant = TEXT("t"), .metric = TEXT("cpu"), .since = since};
		else
			request->series_list = (struct store_series_list){.tenant = TEXT("t"),
									  .metric = TEXT("cpu")};
		read->points_max = 2;
		for (bool more = true; more; more = request->more) {
			assert_int_equal(rig_read(rig, read), 0);
			const struct store_series *given =
				pass ? request->series_news.series : request->series_list.series;
			size_t count =
				pass ? request->series_news.count : request->series_list.count;
			for (size_t i = 0; i < count; i++)
				seen[strtoul(given[i].tags_text.data + 2, NULL, 10)] = true;
			if (registered == (pass ? 3 : 2) * SERIES)
				continue;
			snprintf(tags, sizeof(tags), "i=%zu", registered++);
			rig_series(rig, "cpu", tags);
		}
		if (pass)
			since = request->series_news.next_since;
		store_read_free(read);
	}
	struct series_list rest = rig_news(rig, "t", "cpu", &since, 0, 0);
	for (size_t i = 0; i < rest.count; i++)
		seen[strtoul(rest.list[i].tags_text.data + 2, NULL, 10)] = true;
	for (size_t i = 0; i < registered; i++)
		assert_true(seen[i]);
}

/* Asks once, since a time that is not moved on. */
static int ask_news(struct rig *rig, uint64_t since, size_t *count)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = store_read_add(read, STORE_SERIES_NEWS);
	request->series_news = (struct store_series_news){
		.tenant = TEXT("t"), .metric = TEXT("cpu"), .since = since};
	int err = rig_read(rig, read);
	*count = err ? 0 : request->series_news.count;
	store_read_free(read);
	return err;
}

/* News are there for a day; whoever comes later is given them, or told that they have gone. */
static void news_go_after_a_day_and_say_so(struct rig *rig)
{
	uint64_t since = 0, fresh = 0;
	size_t count;
	expect_news(rig, &since, NULL, 0);
	rig_series(rig, "cpu", "host=a");
	rig_advance_ms(rig, STORE_NEWS_MS - 1);
	assert_int_equal(ask_news(rig, since, &count), 0);
	assert_int_equal(count, 1);
	rig_series(rig, "cpu", "host=b");
	rig_advance_ms(rig, 2);
	rig_settle(rig);
	int err = ask_news(rig, since, &count);
	assert_true(err == ERR_NOT_FOUND || (!err && count == 2));
	rig_advance_ms(rig, 400 * (int64_t)DAY_MS);
	rig_settle(rig);
	err = ask_news(rig, since, &count);
	assert_true(err == ERR_NOT_FOUND || (!err && count == 2));
	assert_int_equal(rig_news(rig, "t", "cpu", &fresh, 0, 0).count, 0);
	assert_int_equal(rig_list(rig, "t", "cpu", 0, 0).count, 2);
	rig_series(rig, "cpu", "host=c");
	expect_news(rig, &fresh, (const char *[]){"host=c"}, 1);
}

/* Whose store others share has news; who has none refuses them. */
static void news_where_there_are_any(struct rig *rig)
{
	const struct {
		const char *tenant, *metric;
	} wrong[] = {{"", "cpu"}, {"t", ""}, {"t", "cpu"}};
	unsigned can = rig->store->engine->can;
	assert_true(!(can & STORE_SHARED) || can & STORE_NEWS);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct store_read *read = rig_read_new(rig);
		struct store_request *request = store_read_add(read, STORE_SERIES_NEWS);
		request->series_news.tenant = slice_of(wrong[i].tenant);
		request->series_news.metric = slice_of(wrong[i].metric);
		bool taken = i == 2 && can & STORE_NEWS;
		assert_int_equal(rig_read(rig, read), taken ? 0 : ERR_INVALID);
		assert_int_equal(request->err, taken ? 0 : ERR_INVALID);
		if (!(can & STORE_NEWS))
			assert_non_null(strstr(read->error.text, "has no news of series"));
		store_read_free(read);
	}
}

static void described_as_opened(struct rig *rig)
{
	uint64_t handles[4] = {rig_series(rig, "cpu", "dc=x,host=a"), 0, UINT64_MAX - 7, 0};
	rig_advance_ms(rig, 5000);
	handles[3] = rig_series(rig, "mem", "");
	rig_advance_ms(rig, 5000);
	rig_series(rig, "cpu", "dc=x,host=a"); /* not seen for the first time again */
	for (int pass = 0; pass < 2; pass++) {
		struct store_read *read = rig_read_new(rig);
		struct store_request *request = store_read_add(read, STORE_SERIES_DESCRIBE);
		request->series_describe.handles = handles;
		request->series_describe.count = 4;
		assert_int_equal(rig_read(rig, read), 0);
		const struct store_series *s = request->series_describe.series;
		assert_int_equal(s[0].handle, handles[0]);
		assert_slice(s[0].tenant, TEXT("t"));
		assert_slice(s[0].metric, TEXT("cpu"));
		assert_slice(s[0].tags_text, TEXT("dc=x,host=a"));
		assert_int_equal(s[0].first_seen_ms, T0);
		assert_int_equal(s[1].handle, 0);
		assert_int_equal(s[2].handle, 0);
		assert_int_equal(s[3].handle, handles[3]);
		assert_slice(s[3].tags_text, TEXT(""));
		assert_int_equal(s[3].first_seen_ms, T0 + 5000);
		store_read_free(read);
		rig_put(rig, RAW, handles[0], T0, I(1));
		rig_put(rig, RAW, handles[3], T0, I(1));
		rig_reopen(rig);
		handles[0] = rig_find(rig, "t", "cpu", "dc=x,host=a");
		handles[3] = rig_find(rig, "t", "mem", "");
	}
}

/* What has samples is in the registry after reopening, with its first time. */
static void registered_with_its_first_sample_at_the_latest(struct rig *rig)
{
	static const char *const metrics[] = {"a", "b", "c"};
	uint64_t h[3];
	rig_group(rig, "t", metrics, 3, "host=x", false, h, NULL);
	rig_put(rig, RAW, h[1], T0, I(1));
	rig_reopen(rig);
	uint64_t b = rig_find(rig, "t", "b", "host=x");
	assert_int_not_equal(b, 0);
	expect_all(rig, RAW, b, POINTS({T0, {I(1)}}));
	/* Opening the whole group again gives that one its old identity. */
	rig_group(rig, "t", metrics, 3, "host=x", false, h, NULL);
	assert_int_equal(h[1], b);
	rig_put(rig, RAW, h[0], T0, I(0));
	rig_put(rig, RAW, h[2], T0, I(2));
	rig_settle(rig);
	rig_reopen(rig);
	for (size_t i = 0; i < 3; i++)
		expect_all(rig, RAW, rig_find(rig, "t", metrics[i], "host=x"),
			   POINTS({T0, {I((int64_t)i == 1 ? 1 : (int64_t)i)}}));
	assert_int_equal(rig_list(rig, "t", "", 0, 0).count, 3);
}

static int forget(struct rig *rig, const uint64_t *handles, size_t n)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_series_forget(write, handles, n), 0);
	int err = rig_write(rig, write);
	store_write_free(write);
	return err;
}

static void expect_dead(struct rig *rig, uint64_t handle)
{
	struct store_write *write = rig_write_new(rig);
	struct value v = I(1);
	int err = store_append(write, &RAW, T0, &handle, 1, &v);
	if (!err)
		err = rig_write(rig, write);
	assert_int_equal(err, ERR_NOT_FOUND);
	store_write_free(write);
}

static void forgotten_only_without_data(struct rig *rig)
{
	uint64_t bare = rig_series(rig, "cpu", "host=bare");
	uint64_t full = rig_series(rig, "cpu", "host=full");
	uint64_t other = rig_series(rig, "cpu", "host=other");
	struct store_target late = {TABLE_DATA_LATE, RETENTION_EVER, 0};
	rig_put(rig, RAW, full, T0, I(1));
	rig_put(rig, late, other, T0, I(1)); /* in another table than most */
	uint64_t generation = store_series_generation(rig->store);
	assert_int_equal(forget(rig, (uint64_t[]){bare, full, other}, 3), 0);
	assert_true(store_series_generation(rig->store) > generation);
	assert_int_equal(rig_find(rig, "t", "cpu", "host=bare"), 0);
	assert_int_equal(rig_find(rig, "t", "cpu", "host=full"), full);
	assert_int_equal(rig_find(rig, "t", "cpu", "host=other"), other);
	assert_int_equal(rig_list(rig, "t", "cpu", 0, 0).count, 2);
	expect_dead(rig, bare);
	expect_all(rig, RAW, bare, NO_POINTS);
	assert_int_equal(forget(rig, &bare, 1), 0);
	/* The same name begins again. */
	uint64_t again = rig_series(rig, "cpu", "host=bare");
	rig_put(rig, RAW, again, T0 + 1, I(2));
	expect_all(rig, RAW, again, POINTS({T0 + 1, {I(2)}}));
	rig_reopen(rig);
	again = rig_find(rig, "t", "cpu", "host=bare");
	expect_all(rig, RAW, again, POINTS({T0 + 1, {I(2)}}));
	expect_all(rig, RAW, rig_find(rig, "t", "cpu", "host=full"), POINTS({T0, {I(1)}}));
}

static void forgotten_after_its_data_was_deleted(struct rig *rig)
{
	uint64_t sealed = rig_series(rig, "cpu", "host=sealed");
	uint64_t fresh = rig_series(rig, "cpu", "host=fresh");
	rig_put(rig, RAW, sealed, T0, I(1));
	rig_settle(rig);
	rig_put(rig, RAW, fresh, T0, I(1));
	for (int i = 0; i < 2; i++) {
		uint64_t h = i ? fresh : sealed;
		assert_int_equal(forget(rig, &h, 1), 0);
		assert_int_equal(rig_find(rig, "t", "cpu", i ? "host=fresh" : "host=sealed"), h);
		rig_delete(rig, RAW, h, INT64_MIN, INT64_MAX);
		rig_settle(rig);
		assert_int_equal(forget(rig, &h, 1), 0);
		assert_int_equal(rig_find(rig, "t", "cpu", i ? "host=fresh" : "host=sealed"), 0);
		expect_dead(rig, h);
	}
	rig_reopen(rig);
	assert_int_equal(rig_find(rig, "t", "cpu", "host=fresh"), 0);
	assert_int_equal(rig_find(rig, "t", "cpu", "host=sealed"), 0);
	assert_int_equal(rig_list(rig, "", "", 0, 0).count, 0);
	/* Nothing of the old life is seen in a new one. */
	expect_all(rig, RAW, rig_series(rig, "cpu", "host=sealed"), NO_POINTS);
	expect_all(rig, RAW, rig_series(rig, "cpu", "host=fresh"), NO_POINTS);
	rig_verify(rig);
}

static void forgotten_after_its_data_expired(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	rig_put(rig, (struct store_target){TABLE_DATA_RAW, RETENTION_2_DAYS}, h, T0, I(1));
	rig_advance_ms(rig, 5LL * DAY_MS);
	rig_settle(rig);
	assert_int_equal(forget(rig, &h, 1), 0);
	assert_int_equal(rig_find(rig, "t", "cpu", ""), 0);
}

/* An engine that counts on from what is on disk must not give a dead handle again. */
static void forgotten_after_reopening_then_born_again(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	rig_put(rig, RAW, h, T0, I(1));
	rig_delete(rig, RAW, h, INT64_MIN, INT64_MAX);
	rig_settle(rig);
	rig_reopen(rig);
	h = rig_series(rig, "cpu", "");
	assert_int_equal(forget(rig, &h, 1), 0);
	uint64_t again = rig_series(rig, "cpu", "");
	assert_int_not_equal(again, h);
	rig_put(rig, RAW, again, T0 + 1, I(2));
	expect_all(rig, RAW, again, POINTS({T0 + 1, {I(2)}}));
	expect_dead(rig, h);
}

/* Two batches on their way at once; what each ends with. */
static void both(struct rig *rig, struct store_write *first, struct store_write *second, int *a,
		 int *b)
{
	*a = *b = 1;
	first->owner = a;
	second->owner = b;
	assert_int_equal(store_write_submit(first), 0);
	assert_int_equal(store_write_submit(second), 0);
	while (*a == 1 || *b == 1)
		task_queue_wait(&rig->queue);
	store_write_free(first);
	store_write_free(second);
}

static struct store_write *appending(struct rig *rig, uint64_t handle)
{
	struct store_write *write = rig_write_new(rig);
	struct value v = I(7);
	assert_int_equal(store_append(write, &RAW, T0, &handle, 1, &v), 0);
	return write;
}

static struct store_write *forgetting(struct rig *rig, uint64_t handle)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_series_forget(write, &handle, 1), 0);
	return write;
}

/* Whichever of the two is first, a sample that was answered with success is there. */
static void forgetting_while_samples_come_loses_none(struct rig *rig)
{
	for (int round = 0; round < 40; round++) {
		char tags[16];
		int appended, forgotten;
		snprintf(tags, sizeof(tags), "i=%d", round);
		uint64_t h = rig_series(rig, "cpu", tags);
		if (round % 4 >= 2) { /* durable already, or registered in the same moment */
			rig_put(rig, RAW, h, T0 - 5, I(1));
			rig_delete(rig, RAW, h, INT64_MIN, INT64_MAX);
		}
		if (round % 2)
			both(rig, appending(rig, h), forgetting(rig, h), &appended, &forgotten);
		else
			both(rig, forgetting(rig, h), appending(rig, h), &forgotten, &appended);
		assert_int_equal(forgotten, 0);
		assert_true(appended == 0 || appended == ERR_NOT_FOUND);
		if (round % 2)
			assert_int_equal(appended, 0);
		uint64_t found = rig_find(rig, "t", "cpu", tags);
		assert_int_equal(found, appended == 0 ? h : 0);
		if (found)
			expect_all(rig, RAW, h, POINTS({T0, {I(7)}}));
	}
	rig_reopen(rig);
	for (int round = 1; round < 40; round += 2) {
		char tags[16];
		snprintf(tags, sizeof(tags), "i=%d", round);
		expect_all(rig, RAW, rig_find(rig, "t", "cpu", tags), POINTS({T0, {I(7)}}));
	}
	rig_verify(rig);
}

/* Within one batch: stage by stage, and last in its stage. */
static void forgetting_is_ordered_within_its_batch(struct rig *rig)
{
	uint64_t kept = rig_series(rig, "kept", ""), late = rig_series(rig, "late", "");
	uint64_t gone = rig_series(rig, "gone", ""), sealed = rig_series(rig, "sealed", "");
	struct value v = I(7);
	rig_put(rig, RAW, sealed, T0, v);
	rig_settle(rig);
	rig_put(rig, RAW, gone, T0, v);
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_series_forget(write, (uint64_t[]){kept, late}, 2), 0);
	assert_int_equal(store_append(write, &RAW, T0, &kept, 1, &v), 0);
	assert_int_equal(store_append(write, &RAW, T0 + 9, &gone, 1, &v), 0);
	uint64_t both_gone[2] = {gone, sealed};
	assert_int_equal(store_delete_range(write, &RAW, both_gone, 2, T0, T0 + 10), 0);
	store_write_next_stage(write);
	assert_int_equal(store_series_forget(write, both_gone, 2), 0);
	rig_commit(rig, write);
	assert_int_equal(rig_find(rig, "t", "kept", ""), kept);
	assert_int_equal(rig_find(rig, "t", "late", ""), 0);
	assert_int_equal(rig_find(rig, "t", "gone", ""), 0);
	assert_int_equal(rig_find(rig, "t", "sealed", ""), 0);
	expect_all(rig, RAW, kept, POINTS({T0, {I(7)}}));
	expect_dead(rig, gone);
	expect_all(rig, RAW, rig_series(rig, "gone", ""), NO_POINTS);
	rig_reopen(rig);
	expect_all(rig, RAW, rig_find(rig, "t", "kept", ""), POINTS({T0, {I(7)}}));
	expect_all(rig, RAW, rig_series(rig, "gone", ""), NO_POINTS);
	rig_verify(rig);
}

/* ---- series_sets --------------------------------------------------------------------------- */

static void expect_sets(struct rig *rig, const char *metric, struct store_parts from,
			struct store_parts to, const char *const (*expected)[3], size_t count)
{
	for (size_t max = 0; max < 4; max++) {
		struct store_cell_scan scan = {
			.table = TABLE_SERIES_SETS,
			.key = *PARTS(TEXT("t"), slice_of(metric)),
			.from = from,
			.to = to,
			.backward = max == 2,
		};
		struct cells cells = rig_scan(rig, &scan, max);
		assert_int_equal(cells.count, count);
		for (size_t i = 0; i < count; i++) {
			const char *const *e = expected[scan.backward ? count - 1 - i : i];
			assert_int_equal(cells.list[i].value.len, 0);
			for (size_t p = 0; p < 3; p++)
				assert_slice(cells.list[i].column.part[p], slice_of(e[p]));
		}
	}
}

/* The four hosts of the document and what its table of series-sets holds for them. */
static void series_sets_are_the_documents(struct rig *rig)
{
	static const char *const expected[][3] = {
		{"dc", "ams", "cpu,dc=ams,host=h-1"},   {"dc", "ams", "cpu,dc=ams,host=h-2"},
		{"dc", "dfw", "cpu,dc=dfw,host=h-10"},  {"dc", "dfw", "cpu,dc=dfw,host=h-3"},
		{"host", "h-1", "cpu,dc=ams,host=h-1"}, {"host", "h-10", "cpu,dc=dfw,host=h-10"},
		{"host", "h-2", "cpu,dc=ams,host=h-2"}, {"host", "h-3", "cpu,dc=dfw,host=h-3"},
	};
	const struct store_parts none = {0};
	rig_series(rig, "cpu", "dc=dfw,host=h-10");
	rig_series(rig, "cpu", "dc=dfw,host=h-3");
	rig_series(rig, "cpu", "dc=ams,host=h-2");
	rig_series(rig, "cpu", "dc=ams,host=h-1");
	rig_series(rig, "cpu", ""); /* without tags, in no cell */
	rig_series(rig, "cpu2", "dc=ams");
	for (int pass = 0; pass < 2; pass++) {
		expect_sets(rig, "cpu", none, none, expected, 8);
		expect_sets(rig, "cpu", *PARTS(TEXT("dc"), TEXT("dfw")), *PARTS(TEXT("host")),
			    expected + 2, 2);
		expect_sets(rig, "cpu", *PARTS(TEXT("host")), none, expected + 4, 4);
		/* host=h-1*: from "h-1" to what follows every h-1… */
		expect_sets(rig, "cpu", *PARTS(TEXT("host"), TEXT("h-1")),
			    *PARTS(TEXT("host"), TEXT("h-2")), expected + 4, 2);
		expect_sets(rig, "cpu", *PARTS(TEXT("a")), *PARTS(TEXT("dc")), expected, 0);
		expect_sets(rig, "cpux", none, none, expected, 0);
		struct store_cell cell;
		assert_true(rig_cell_get(
			rig, TABLE_SERIES_SETS, PARTS(TEXT("t"), TEXT("cpu")),
			PARTS(TEXT("host"), TEXT("h-1"), TEXT("cpu,dc=ams,host=h-1")), &cell));
		assert_false(rig_cell_get(
			rig, TABLE_SERIES_SETS, PARTS(TEXT("t"), TEXT("cpu")),
			PARTS(TEXT("host"), TEXT("h-1"), TEXT("cpu,dc=ams,host=h-2")), &cell));
		struct rows rows = rig_enumerate(rig, TABLE_SERIES_SETS, 0, 1);
		assert_true(rows.count >= 2);
		for (size_t i = 0; i < rows.count; i++)
			assert_slice(rows.list[i].key.part[0], TEXT("t"));
		/* All are durable once each has a sample. */
		if (pass)
			break;
		static const char *const tags[] = {"dc=dfw,host=h-10", "dc=dfw,host=h-3",
						   "dc=ams,host=h-2", "dc=ams,host=h-1"};
		for (size_t i = 0; i < 4; i++)
			rig_put(rig, RAW, rig_find(rig, "t", "cpu", tags[i]), T0, I(1));
		rig_put(rig, RAW, rig_find(rig, "t", "cpu2", "dc=ams"), T0, I(1));
		rig_reopen(rig);
	}
}

static void series_sets_escape_and_forget(struct rig *rig)
{
	static const char *const expected[][3] = {
		{"a,b", "c=d", "m\\,x,a\\,b=c\\=d"},
		{"e", "f\\g", "m\\,x,e=f\\\\g"},
	};
	const struct store_parts none = {0};
	uint64_t h = rig_series(rig, "m,x", "e=f\\\\g");
	rig_series(rig, "m,x", "a\\,b=c\\=d");
	expect_sets(rig, "m,x", none, none, expected, 2);
	assert_int_equal(forget(rig, &h, 1), 0);
	expect_sets(rig, "m,x", none, none, expected, 1);
}

/* ---- Rows of samples ----------------------------------------------------------------------- */

static bool has_row(struct rows rows, uint64_t handle, int64_t period_ms)
{
	for (size_t i = 0; i < rows.count; i++) {
		if (rows.list[i].handle == handle && rows.list[i].period_ms == period_ms)
			return true;
	}
	return false;
}

static void every_row_of_samples_is_enumerated(struct rig *rig)
{
	enum { SERIES = 20 };
	uint64_t h[SERIES];
	for (size_t i = 0; i < SERIES; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "i=%zu", i);
		h[i] = rig_series(rig, "cpu", tags);
		if (i % 3 == 0)
			rig_put(rig, RAW, h[i], T0, I(1));
		for (int64_t p = 1; p <= (int64_t)(i % 3); p++)
			rig_put(rig,
				(struct store_target){TABLE_RAW_DATA, RETENTION_EVER, p * 1000},
				h[i], T0, I(1));
		if (i == 10)
			rig_settle(rig);
	}
	for (int pass = 0; pass < 2; pass++) {
		for (size_t max = 0; max < 4; max++) {
			struct rows raw = rig_enumerate(rig, TABLE_DATA_RAW, max, 0);
			struct rows counters = rig_enumerate(rig, TABLE_RAW_DATA, 0, max);
			for (size_t i = 0; i < SERIES; i++) {
				assert_int_equal(has_row(raw, h[i], 0), i % 3 == 0);
				assert_int_equal(has_row(counters, h[i], 1000), i % 3 >= 1);
				assert_int_equal(has_row(counters, h[i], 2000), i % 3 == 2);
			}
		}
		assert_int_equal(rig_enumerate(rig, TABLE_DATA_LATE, 0, 0).count, 0);
		rig_settle(rig);
	}
}

/* Ascending, each once; other tables have their own. */
static void periods_of_a_table(struct rig *rig)
{
	uint64_t a = rig_series(rig, "a", ""), b = rig_series(rig, "b", "");
	const int64_t periods_ms[] = {60000, 1000, 86400000, 1000};
	for (size_t i = 0; i < ARRAY_LEN(periods_ms); i++)
		rig_put(rig, (struct store_target){TABLE_RAW_DATA, RETENTION_EVER, periods_ms[i]},
			i % 2 ? b : a, T0 + (int64_t)i, I(1));
	rig_put(rig, (struct store_target){TABLE_RAW_DATA, RETENTION_400_DAYS, 1000}, a, T0, I(1));
	for (int pass = 0; pass < 2; pass++) {
		struct store_read *read = rig_read_new(rig);
		struct store_request *counters = store_read_add(read, STORE_PERIODS);
		struct store_request *none = store_read_add(read, STORE_PERIODS);
		counters->periods.table = TABLE_RAW_DATA;
		none->periods.table = TABLE_DATA_DOWNSAMPLED;
		assert_int_equal(rig_read(rig, read), 0);
		assert_int_equal(counters->periods.count, 3);
		assert_true(counters->periods.periods_ms[0] == 1000 &&
			    counters->periods.periods_ms[1] == 60000 &&
			    counters->periods.periods_ms[2] == 86400000);
		assert_int_equal(none->periods.count, 0);
		store_read_free(read);
		rig_settle(rig);
	}
}

/* Rows that are there throughout are all given, whatever is written, sealed or deleted beside. */
static void enumeration_during_writes_misses_nothing(struct rig *rig)
{
	enum { SERIES = 60 };
	uint64_t h[SERIES];
	bool seen[SERIES] = {false};
	char tags[16];
	for (size_t i = 0; i < SERIES; i++) {
		snprintf(tags, sizeof(tags), "i=%zu", i);
		h[i] = rig_series(rig, "cpu", tags);
		rig_put(rig, RAW, h[i], T0, I(1));
		rig_cell_put(rig, TABLE_DEVICES, PARTS(slice_of(tags)), PARTS(TEXT("a")), TEXT("v"),
			     1, 0);
	}
	rig_settle(rig);
	struct store_read *read = rig_read_new(rig);
	struct store_request *rows = store_read_add(read, STORE_ENUMERATE);
	struct store_request *cells = store_read_add(read, STORE_ENUMERATE);
	size_t cells_seen = 0;
	rows->enumerate = (struct store_enumerate){.table = TABLE_DATA_RAW, .limit = 5};
	cells->enumerate = (struct store_enumerate){.table = TABLE_DEVICES, .limit = 5};
	for (int round = 0; round == 0 || rows->more || cells->more; round++) {
		bool rows_ran = round == 0 || rows->more, cells_ran = round == 0 || cells->more;
		assert_int_equal(rig_read(rig, read), 0);
		for (size_t i = 0; rows_ran && i < rows->enumerate.count; i++) {
			for (size_t j = 0; j < SERIES; j++)
				seen[j] |= rows->enumerate.rows[i].handle == h[j];
		}
		for (size_t i = 0; cells_ran && i < cells->enumerate.count; i++)
			cells_seen += cells->enumerate.rows[i].key.part[0].data[0] == 'i';
		/* Beside: new rows before and behind, and a row that comes and goes. */
		for (int k = 0; k < 3; k++) {
			snprintf(tags, sizeof(tags), "n=%d.%d", round, k);
			uint64_t fresh = rig_series(rig, k == 0 ? "a" : "z", tags);
			rig_put(rig, RAW, fresh, T0 + round, I(2));
			rig_put(rig, RAW, h[(round * 7 + k) % SERIES], T0 + 1 + round, I(3));
			snprintf(tags, sizeof(tags), "%c%d", k ? 'z' : 'a', round);
			rig_cell_put(rig, TABLE_DEVICES, PARTS(slice_of(tags)), PARTS(TEXT("a")),
				     TEXT("v"), 1, 0);
			if (k == 1)
				rig_delete(rig, RAW, fresh, INT64_MIN, INT64_MAX);
		}
		if (round % 4 == 1)
			rig_settle(rig);
		assert_true(round < 1000);
	}
	for (size_t i = 0; i < SERIES; i++)
		assert_true(seen[i]);
	assert_true(cells_seen >= SERIES);
	store_read_free(read);
}

const struct contract_case cases_series[] = {
	CASE(opened_once_found_ever_after),
	CASE(identities_do_not_run_together),
	CASE(group_keeps_its_order),
	CASE(largest_group),
	CASE(opens_of_one_batch_see_each_other),
	CASE(longest_names),
	CASE(list_by_tenant_and_metric),
	CASE_NEEDS(news_are_what_was_registered_since, STORE_NEWS),
	CASE_NEEDS(news_of_a_metric_that_begins, STORE_NEWS),
	CASE_NEEDS(news_come_in_slices, STORE_NEWS),
	CASE_NEEDS(news_when_it_is_registered_again, STORE_NEWS),
	CASE_NEEDS(news_and_a_list_miss_none, STORE_NEWS),
	CASE_NEEDS(news_go_after_a_day_and_say_so, STORE_NEWS),
	CASE(news_where_there_are_any),
	CASE(described_as_opened),
	CASE(registered_with_its_first_sample_at_the_latest),
	CASE_NEEDS(forgotten_only_without_data, STORE_EXACT_FORGETTING),
	CASE_NEEDS(forgotten_after_its_data_was_deleted, STORE_EXACT_FORGETTING),
	CASE_NEEDS(forgotten_after_its_data_expired, STORE_EXACT_FORGETTING),
	CASE_NEEDS(forgotten_after_reopening_then_born_again, STORE_EXACT_FORGETTING),
	CASE_NEEDS(forgetting_while_samples_come_loses_none, STORE_EXACT_FORGETTING),
	CASE_NEEDS(forgetting_is_ordered_within_its_batch, STORE_EXACT_FORGETTING),
	CASE(series_sets_are_the_documents),
	CASE_NEEDS(series_sets_escape_and_forget, STORE_EXACT_FORGETTING),
	CASE(every_row_of_samples_is_enumerated),
	CASE(periods_of_a_table),
	CASE(enumeration_during_writes_misses_nothing),
	{0},
};
