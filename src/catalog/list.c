/* Listing names. Tenants are the rows of metric_names, metrics its columns; tag keys and values
 * come from the metric's index, so they are those of series that exist.
 *
 * A name stays in its set when the last series of its metric is forgotten, since sets only grow. So
 * the registry is asked of each name whether it has one, some names at a time, and the scan goes on
 * after them until there are enough. */
#include "catalog/private.h"

enum {
	GATHERED_MAX_BYTES = 64 << 20, /* of struct slice */
	SLICE_ROWS = 4096,
	CHECK_NAMES = 256, /* in one read */
	TRIM_NAMES = 4096,
};

static int list_by_bytes(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Sorted, each once, at most `limit`. */
static int finish_names(struct catalog_list *list)
{
	struct slice *names = (struct slice *)(void *)list->gathered.data;
	size_t count = list->gathered.len / sizeof(*names), kept = 0;
	if (count > 1)
		qsort(names, count, sizeof(*names), list_by_bytes);
	for (size_t i = 0; i < count; i++) {
		if (kept == 0 || !slice_equal(names[kept - 1], names[i]))
			names[kept++] = names[i];
	}
	list->cut = list->cut || kept > list->limit;
	list->count = kept < list->limit ? kept : list->limit;
	list->names = arena_alloc(list->arena, list->count * sizeof(*names));
	if (!list->names)
		return errbuf_set(&list->error, ERR_LIMIT, "too many names for one answer");
	if (list->count)
		memcpy(list->names, names, list->count * sizeof(*names));
	return 0;
}

static void list_finish(struct catalog_list *list, int err)
{
	if (!err)
		err = finish_names(list);
	if (err)
		list->count = 0;
	if (err && !list->error.text[0])
		errbuf_set(&list->error, err, "%s", err_text(err));
	buf_release(&list->gathered);
	list->done(list, err);
}

static int list_gather(struct catalog_list *list, struct slice name)
{
	struct slice copy = arena_copy(list->arena, name);
	if (copy.data && buf_append(&list->gathered, &copy, sizeof(copy)) == 0)
		return 0;
	return errbuf_set(&list->error, ERR_LIMIT, "too many names for one answer");
}

/* ---- Tag keys and values ------------------------------------------------------------------- */

/* Sorting millions of names would take long: of twice as many as may be given half goes. */
static void trim_names(struct catalog_list *list)
{
	struct slice *names = (struct slice *)(void *)list->gathered.data;
	size_t count = list->gathered.len / sizeof(*names);
	if (count < TRIM_NAMES || count / 2 <= list->limit)
		return;
	qsort(names, count, sizeof(*names), list_by_bytes);
	list->cut = true;
	list->gathered.len = list->limit * sizeof(*names);
}

void list_from_index(struct catalog_list *list, bool over, int err)
{
	if (!err)
		trim_names(list);
	if (!over)
		return;
	catalog_find_cancel(&list->find);
	list_finish(list, err);
}

static void find_failed(struct catalog_find *find, int err)
{
	find->list->error = find->error;
	list_finish(find->list, err);
}

static void start_index(struct catalog_list *list)
{
	list->find = (struct catalog_find){
		.catalog = list->catalog,
		.tenant = list->tenant,
		.metric = list->metric,
		.done = find_failed,
		.list = list,
	};
	catalog_find_start(&list->find);
}

/* ---- Metric names -------------------------------------------------------------------------- */

/* The first name after all that begin with `prefix`: its last byte that can be raised is, what
 * follows is cut. NULL data: there is no such name. */
static struct slice after_prefix(struct slice prefix, struct arena *arena)
{
	while (prefix.len && (uint8_t)prefix.data[prefix.len - 1] == 0xff)
		prefix.len--;
	if (!prefix.len)
		return (struct slice){NULL, 0};
	struct slice after = arena_copy(arena, prefix);
	if (after.data)
		((char *)after.data)[after.len - 1]++;
	return after; /* where the arena is full the scan goes further than it must, no more */
}

static bool must_check(const struct catalog_list *list)
{
	return list->what == CATALOG_METRIC_NAMES;
}

static size_t gathered_count(const struct catalog_list *list)
{
	return list->gathered.len / sizeof(struct slice);
}

static void list_add_scan(struct catalog_list *list, struct store_request *request)
{
	struct store_cell_scan *scan = &request->cell_scan;
	scan->table = TABLE_METRIC_NAMES;
	scan->key.part[0] = list->tenant;
	scan->limit = list->limit + 1; /* one more tells that the list is cut */
	if (must_check(list))
		scan->limit -= gathered_count(list);
	if (list->prefix.len) {
		scan->from.part[0] = list->prefix;
		scan->to.part[0] = list->after_prefix;
	}
	if (list->next.data)
		scan->from.part[0] = list->next;
}

static int list_accept_scan(struct catalog_list *list, const struct store_request *request)
{
	const struct store_cell_scan *scan = &request->cell_scan;
	list->at_end = !request->more && scan->count < scan->limit;
	for (size_t i = 0; i < scan->count; i++) {
		struct slice name = scan->cells[i].column.part[0];
		int err = name_starts(name, list->prefix) ? list_gather(list, name) : 0;
		if (err)
			return err;
	}
	if (!must_check(list) || !scan->count)
		return 0;
	/* The next scan begins after this name: at the name and a zero byte, which every copy ends
	 * in. */
	list->next = arena_copy(list->arena, scan->cells[scan->count - 1].column.part[0]);
	list->next.len++;
	return list->next.data ? 0 : ERR_LIMIT;
}

/* ---- Whether a metric has series ----------------------------------------------------------- */

static int list_check_names(struct catalog_list *list)
{
	const struct slice *names = (const struct slice *)(const void *)list->gathered.data;
	size_t count = gathered_count(list) - list->checked;
	for (size_t i = 0; i < count && i < CHECK_NAMES; i++) {
		struct store_request *request =
			i ? store_read_add(list->ask->read, STORE_SERIES_LIST)
			  : catalog_ask_again(list->ask, STORE_SERIES_LIST, NULL);
		request->series_list = (struct store_series_list){
			.tenant = list->tenant, .metric = names[list->checked + i], .limit = 1};
	}
	list->checking = true;
	return ask_submit(list->ask);
}

/* Those without series are taken out. */
static void list_accept_checks(struct catalog_list *list)
{
	struct slice *names = (struct slice *)(void *)list->gathered.data;
	size_t at = list->checked, count = gathered_count(list);
	const struct store_request *request = list->ask->read->requests;
	for (; request; request = request->next, at++) {
		if (request->series_list.count || request->more)
			names[list->checked++] = names[at];
	}
	memmove(names + list->checked, names + at, (count - at) * sizeof(*names));
	list->gathered.len -= (at - list->checked) * sizeof(*names);
	list->checking = false;
}

/* ---- Tenants ------------------------------------------------------------------------------- */

static bool gathered_last(const struct catalog_list *list, struct slice name)
{
	size_t len = list->gathered.len;
	struct slice last;
	if (!len)
		return false;
	memcpy(&last, list->gathered.data + len - sizeof(last), sizeof(last));
	return slice_equal(last, name);
}

static int list_accept_enumerate(struct catalog_list *list, const struct store_request *request)
{
	const struct store_enumerate *rows = &request->enumerate;
	for (size_t i = 0; i < rows->count; i++) {
		struct slice tenant = rows->rows[i].key.part[0];
		if (gathered_last(list, tenant) || !name_starts(tenant, list->prefix))
			continue;
		int err = list_gather(list, tenant);
		if (err)
			return err;
	}
	return 0;
}

/* ---- Reads of the store -------------------------------------------------------------------- */

static int list_read_slice(struct catalog_list *list, const struct store_token *token)
{
	if (list->what == CATALOG_TENANTS)
		catalog_ask_again(list->ask, STORE_ENUMERATE, token)->enumerate =
			(struct store_enumerate){.table = TABLE_METRIC_NAMES, .limit = SLICE_ROWS};
	else
		list_add_scan(list, catalog_ask_again(list->ask, STORE_CELL_SCAN, token));
	return ask_submit(list->ask);
}

static void end_read(struct catalog_list *list, int err)
{
	if (err && !list->error.text[0])
		errbuf_set(&list->error, err, "%s", store_read_sentence(list->ask->read, err));
	ask_release(list->ask);
	list->ask = NULL;
	list_finish(list, err);
}

/* Scans and checks in turn, until there are enough names or no more. */
static void check_done(struct catalog_list *list, int err)
{
	if (!err && list->checking)
		list_accept_checks(list);
	bool unchecked = gathered_count(list) > list->checked;
	bool over = !unchecked && (list->at_end || gathered_count(list) > list->limit);
	if (!err && !over)
		err = unchecked ? list_check_names(list) : list_read_slice(list, NULL);
	if (err || over)
		end_read(list, err);
}

static void list_read_done(void *owner, int err)
{
	struct catalog_list *list = FROM_OWNER(catalog_list, owner);
	const struct store_request *request = list->ask->read->requests;
	if (must_check(list)) {
		if (!err && !list->checking)
			err = list_accept_scan(list, request);
		check_done(list, err);
		return;
	}
	if (!err)
		err = list->what == CATALOG_TENANTS ? list_accept_enumerate(list, request)
						    : list_accept_scan(list, request);
	bool more = !err && request->more;
	if (more)
		err = list_read_slice(list, &request->token);
	if (!more || err)
		end_read(list, err);
}

static void start_read(struct catalog_later *later)
{
	struct catalog_list *list = CONTAINER_OF(later, struct catalog_list, later);
	list->after_prefix = after_prefix(list->prefix, list->arena);
	list->ask = ask_new(list->catalog, list_read_done, list);
	int err = list->catalog->closing ? ERR_CANCELLED : list_read_slice(list, NULL);
	if (err)
		end_read(list, err);
}

/* ---- Start --------------------------------------------------------------------------------- */

void catalog_list_start(struct catalog_list *list)
{
	ASSERT(list->catalog && list->done && list->arena && !list->catalog->closing);
	list->magic = MAGIC_OF(catalog_list);
	list->names = NULL;
	list->count = 0;
	list->cut = false;
	list->error.text[0] = 0;
	list->ask = NULL;
	list->checked = 0;
	list->next = list->from;
	list->checking = list->at_end = false;
	buf_init(&list->gathered, GATHERED_MAX_BYTES);
	if (list->what == CATALOG_TAG_KEYS || list->what == CATALOG_TAG_VALUES)
		start_index(list);
	else
		later_do(list->catalog, &list->later, start_read);
}

void catalog_list_cancel(struct catalog_list *list)
{
	later_remove(&list->later);
	catalog_find_cancel(&list->find);
	ask_release(list->ask);
	buf_release(&list->gathered);
}
