/* Correlators: whatever a device sends becomes a poll that can be read back, whose paths are not
 * doubled but for rows in several replies, and whose texts are UTF-8 without control characters.
 *
 * A byte for the correlator, then values: column, type, length of index and of bytes, these. */
#include "base/cursor.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "snmp/correlate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COLUMNS = 4, NAMES = 2 };

static struct oid_def defs[COLUMNS + NAMES];
static const struct oid_def *oids[COLUMNS];

static void make_oidset(struct oidset *oidset, struct correlator *correlator, uint8_t choice)
{
	static const char *const names[] = {"a", "b", "c", "d", "outletID", "tempHumidSensorID"};
	static const char *const cisco[] = {"cpmCPUTotalPhysicalIndex", "entPhysicalName"};
	static const char *const bers[] = {"\1\1", "\1\2", "\1\3", "\1\4", "\1\5", "\1\6"};
	bool is_cisco = choice % (CORRELATOR_GENERIC + 1) == CORRELATOR_CISCO_CPU;
	for (size_t i = 0; i < ARRAY_LEN(defs); i++)
		defs[i] = (struct oid_def){
			.name = slice_of(is_cisco && i >= COLUMNS ? cisco[i - COLUMNS] : names[i]),
			.ber = {bers[i], 2},
			.type = (enum oid_type)((choice / 16 + i * 3) % OID_TYPES),
			.aggregate = i == 0,
		};
	for (size_t i = 0; i < COLUMNS; i++)
		oids[i] = &defs[i];
	*correlator =
		(struct correlator){.name = "fuzz", .kind = choice % (CORRELATOR_GENERIC + 1)};
	*oidset = (struct oidset){.name = SLICE("S"),
				  .set_name = SLICE("S"),
				  .frequency_ms = 1000,
				  .correlator = correlator,
				  .oids = oids,
				  .oid_count = COLUMNS,
				  .name_oids = {&defs[COLUMNS], &defs[COLUMNS + 1]},
				  .name_oid_count = NAMES,
				  .correlate_oid = &defs[COLUMNS],
				  .kind = correlator->kind == CORRELATOR_NONE
						  ? 1 + choice / 16 % (OIDSET_KINDS - 1)
						  : OIDSET_COUNTERS};
}

static void check_text(struct slice text)
{
	size_t n;
	for (size_t at = 0; at < text.len; at += n) {
		n = utf8_length((const uint8_t *)text.data + at, text.len - at);
		ASSERT(n > 0 && (uint8_t)text.data[at] >= 0x20 && text.data[at] != 0x7f);
	}
}

static bool same_row(const struct poll_row *a, const struct poll_row *b)
{
	bool same = a->part_count == b->part_count;
	for (size_t i = 0; same && i < a->part_count; i++)
		same = slice_equal(a->parts[i], b->parts[i]);
	return same;
}

/* A path that is there twice is one row, in two replies. */
static void check_paths(const struct poll *poll, const struct poll_names *names,
			const struct poll_values *values)
{
	for (size_t a = 0; a < poll->row_count; a++)
		for (size_t b = a + 1; b < poll->row_count; b++)
			ASSERT(values->row_ts_ms[a] != values->row_ts_ms[b] ||
			       !same_row(&names->rows[a], &names->rows[b]));
}

static int check_poll(UNUSED void *owner, struct slice message)
{
	struct arena arena;
	struct poll poll;
	struct poll_names names;
	struct poll_values values;
	struct errbuf e;
	arena_init(&arena, POLL_ARENA_MAX_BYTES);
	ASSERT(poll_open(message, &poll, &e) == 0);
	ASSERT(poll_decode_names(&poll, &arena, &names, &e) == 0);
	ASSERT(poll_decode_values(&poll, &arena, &values, &e) == 0);
	for (size_t r = 0; r < poll.row_count; r++)
		for (size_t i = 0; i < names.rows[r].part_count; i++) {
			ASSERT(names.rows[r].parts[i].len > 0);
			check_text(names.rows[r].parts[i]);
		}
	check_paths(&poll, &names, &values);
	for (size_t i = 0; i < values.text_count; i++)
		check_text(values.texts[i].text);
	arena_release(&arena);
	return 0;
}

static void feed(struct correlate_set *set, struct cursor *c)
{
	while (cursor_left(c) && !c->bad) {
		size_t column = cursor_u8(c) % set->plan->count;
		struct snmp_value value = {.type = cursor_u8(c)};
		size_t index_len = cursor_u8(c), len = cursor_u8(c);
		struct slice index = {(const char *)cursor_take(c, index_len), index_len};
		const uint8_t *bytes = cursor_take(c, len);
		bool has_bytes = value.type == SNMP_OCTETS || value.type == SNMP_OID ||
				 value.type == SNMP_IPADDRESS || value.type == SNMP_OPAQUE;
		if (c->bad)
			break;
		if (value.type == 0x20)
			correlate_set_reply(set, set->begun_ms + (int64_t)index_len);
		value.bytes = (struct slice){(const char *)bytes, len};
		if (!has_bytes) {
			value.u64 = 0;
			memcpy(&value.u64, bytes, len < 8 ? len : 8);
		}
		/* The client gives valid names only. */
		if (value.type == SNMP_OID && !oid_valid(value.bytes))
			continue;
		if (!index_len || oid_valid(index))
			correlate_set_add(set, column, index, &value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	struct oidset oidset;
	struct correlator correlator;
	struct correlate_plan plan, names_plan;
	struct correlate_set set, names_set;
	struct poll_builder builder;
	struct buf message;
	struct if_names *names;
	struct errbuf e;
	make_oidset(&oidset, &correlator, cursor_u8(&c));
	/* The first half names interfaces, the second is the walk. */
	struct cursor first = cursor_of(c.at, cursor_left(&c) / 2);
	struct cursor second = cursor_of(first.end, (size_t)(c.end - first.end));
	correlate_plan_init(&plan, &oidset);
	correlate_plan_init_names(&names_plan, true, true);
	correlate_set_init(&set);
	correlate_set_init(&names_set);
	poll_builder_init(&builder);
	buf_init(&message, POLL_BYTES_MAX);
	correlate_set_begin(&names_set, &names_plan, 1000);
	feed(&names_set, &first);
	ASSERT(if_names_new(&names_set, &names, &e) == 0);
	correlate_set_begin(&set, &plan, 2000);
	feed(&set, &second);
	struct correlate_naming naming = {names, names, false};
	struct correlate_output output = {
		.builder = &builder, .message = &message, .emit = check_poll};
	ASSERT(correlate(&set, SLICE("d"), &naming, &output, &e) == 0);
	if_names_release(names);
	buf_release(&message);
	poll_builder_release(&builder);
	correlate_set_release(&set);
	correlate_set_release(&names_set);
	return 0;
}
