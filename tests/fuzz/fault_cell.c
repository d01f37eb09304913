/* Any bytes as each cell of faults: nothing is read outside, and what is taken for an arrival or a
 * summary is the same when it is written and read again. */
#include "fault/book_private.h"
#include "fault/quota.h"
#include "fault/said.h"
#include "fault/tags.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_arrival(struct slice bytes)
{
	struct fault_arrival arrival, again;
	struct buf out;
	if (fault_arrival_decode(bytes, &arrival))
		return;
	buf_init(&out, 2 * bytes.len + 64);
	fault_arrival_encode(&arrival, &out);
	ASSERT(!out.failed && !fault_arrival_decode(buf_slice(&out), &again));
	ASSERT(arrival.is_void == again.is_void && arrival.date_us == again.date_us);
	ASSERT(slice_equal(arrival.id, again.id) && slice_equal(arrival.packed, again.packed));
	ASSERT(arrival.facts.duration_us == again.facts.duration_us);
	for (size_t i = 0; i < FAULT_TEXTS && !arrival.is_void; i++)
		ASSERT(slice_equal(arrival.facts.texts[i], again.facts.texts[i]));
	buf_release(&out);
	buf_init(&out, 1 << 20);
	if (!arrival.is_void && !fault_body_unpack(&arrival, &out))
		ASSERT(out.len == arrival.body_bytes);
	buf_release(&out);
}

static void check_day(struct slice bytes)
{
	static const char *const columns[] = {"duration", "statement count", "total",
					      "hours",    "state",           "volume",
					      "rest",     "groups rest",     "other"};
	const struct fault_day_limits limits = {.list_max = 10, .names_max = 10, .groups_max = 10};
	struct fault_day *day = fault_day_new(0, &limits);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		int err = fault_day_load(day, FAULT_ROW_DAY, slice_of(columns[i]), bytes,
					 (struct fault_version){1, 1});
		ASSERT(!err || err == ERR_DAMAGED);
	}
	int err = fault_day_load(day, FAULT_ROW_VOLUMES, SLICE("volume.a:b"), bytes,
				 (struct fault_version){1, 1});
	ASSERT(!err || err == ERR_DAMAGED);
	err = fault_day_load(day, FAULT_ROW_GROUPS, SLICE("group.1-a"), bytes,
			     (struct fault_version){1, 1});
	ASSERT(!err || err == ERR_DAMAGED || err == ERR_VERSION);
	fault_day_view_free(fault_day_view_new(day));
	fault_day_free(day);
}

/* What is read without its values is read with them, too; all that is counted in it is a tag. */
static void check_tally(struct slice bytes)
{
	struct fault_tally tally, again;
	struct hash_table ids = {0};
	struct slice name, value;
	int err = fault_tally_take(&again, 0, 0, bytes);
	ASSERT(fault_tally_take(&tally, 0, FAULT_TALLY_ALL, bytes) == err);
	const struct fault_values *tags = &tally.values[FAULT_TALLY_TAG];
	for (size_t i = 0; i < tags->count; i++)
		ASSERT(fault_tag_split(tags->list[i].text, &name, &value));
	fault_tally_merge(&again, &tally, FAULT_TALLY_ALL);
	fault_tally_erase(&again, SLICE("a"), &ids);
	fault_tally_release(&tally);
	fault_tally_release(&again);
}

static void check_book(struct slice bytes)
{
	struct fault_book book = {.site = NULL};
	struct book_cell cell;
	if (!book_cell_begin(bytes, &cell) && cell.whole && !book_cell_take(&book, &cell))
		ASSERT(!cell.rest.bad);
	book_positions_release(&book.positions);
	mem_free(book.open.list);
	mem_free(book.recount.list);
	mem_free(book.clear.list);
	mem_free(book.late);
}

static void check_merges(struct slice bytes)
{
	struct fault_merges merges;
	struct arena arena;
	struct buf out;
	arena_init(&arena, FAULT_MERGES_MEMORY_BYTES);
	buf_init(&out, FAULT_MERGES_MEMORY_BYTES);
	if (!fault_merges_decode(bytes, &arena, &merges)) {
		for (size_t i = 0; i < merges.count; i++)
			ASSERT(!fault_merges_find(&merges, merges.list[i].root));
		fault_merges_encode(&merges, &out);
		ASSERT(!out.failed && out.len <= bytes.len);
	}
	buf_release(&out);
	arena_release(&arena);
}

static void check_said(struct slice bytes)
{
	struct fault_said said, again;
	struct buf out;
	if (fault_said_decode(bytes, &said))
		return;
	buf_init(&out, 1 << 20);
	fault_said_encode(&said, &out);
	ASSERT(!fault_said_decode(buf_slice(&out), &again) && said.merged == again.merged);
	buf_release(&out);
}

static void check_quota(struct slice bytes)
{
	struct fault_quota quota, again, sum;
	struct buf out;
	if (fault_quota_decode(bytes, &quota))
		return;
	buf_init(&out, 64);
	fault_quota_encode(&quota, &out);
	ASSERT(!out.failed && out.len <= bytes.len);
	ASSERT(!fault_quota_decode(buf_slice(&out), &again) &&
	       memcmp(&quota, &again, sizeof(quota)) == 0);
	sum = (struct fault_quota){.at_ms = quota.at_ms, .used = {1, 1, 1}};
	fault_quota_add(&sum, &quota);
	for (int s = 0; s < FAULT_SPANS; s++)
		ASSERT(sum.used[s] > quota.used[s] || sum.used[s] == UINT64_MAX);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = {size ? (const char *)data : "", size};
	struct fault_versioned versioned;
	struct fault_writer_cell writer;
	struct fault_attachment attachment;
	struct buf content, unpacked;
	check_arrival(bytes);
	check_day(bytes);
	check_tally(bytes);
	check_book(bytes);
	check_merges(bytes);
	check_said(bytes);
	check_quota(bytes);
	buf_init(&unpacked, FAULT_VERSIONED_MAX_BYTES);
	if (!fault_versioned_decode(bytes, &unpacked, &versioned))
		check_day(versioned.value);
	buf_release(&unpacked);
	if (!fault_writer_cell_decode(bytes, &writer))
		ASSERT(writer.holder.len <= size);
	if (!fault_attachment_decode(bytes, &attachment))
		ASSERT(attachment.name.len + attachment.type.len < size);
	buf_init(&content, FAULT_ATTACHMENT_MAX_BYTES);
	if (!fault_attachment_unpack(bytes, size, &content))
		ASSERT(content.len == size);
	buf_release(&content);
	return 0;
}
