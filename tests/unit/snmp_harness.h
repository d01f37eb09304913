/* For tests of src/snmp: OIDSets made by hand, values as an agent would send them, and polls as
 * lines of text that a person can compare. */
#ifndef TESTS_UNIT_SNMP_HARNESS_H
#define TESTS_UNIT_SNMP_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "snmp/correlate.h"

enum { RIG_OIDS_MAX = 16, RIG_TEXT_BYTES = 1 << 20 };

/* One OIDSet, one walk of it, and what came out. */
struct rig {
	struct oid_def defs[RIG_OIDS_MAX];
	uint8_t memory[RIG_OIDS_MAX][OID_MAX_BYTES];
	const struct oid_def *oids[RIG_OIDS_MAX];
	size_t def_count;
	struct correlator correlator;
	struct oidset oidset;
	struct correlate_plan plan;
	struct correlate_set set;
	struct poll_builder builder;
	struct buf message;
	struct correlate_output output;
	struct buf text; /* the polls, as lines */
	size_t messages;
	bool last;
	struct errbuf e;
};

static inline struct oid_def *rig_def(struct rig *rig, const char *name, const char *oid,
				      enum oid_type type)
{
	struct oid_def *def = &rig->defs[rig->def_count];
	assert_true(rig->def_count < RIG_OIDS_MAX);
	*def = (struct oid_def){.name = slice_of(name), .oid = slice_of(oid), .type = type};
	assert_int_equal(oid_parse(def->oid, rig->memory[rig->def_count], &def->ber, NULL), 0);
	rig->def_count++;
	return def;
}

static inline struct oid_def *rig_oid(struct rig *rig, const char *name, const char *oid,
				      enum oid_type type)
{
	struct oid_def *def = rig_def(rig, name, oid, type);
	rig->oids[rig->oidset.oid_count++] = def;
	return def;
}

static inline void rig_name_oid(struct rig *rig, const char *name, const char *oid,
				enum oid_type type)
{
	rig->oidset.name_oids[rig->oidset.name_oid_count++] = rig_def(rig, name, oid, type);
}

static inline void rig_open(struct rig *rig, const char *name, enum correlator_kind kind)
{
	memset(rig, 0, sizeof(*rig));
	rig->correlator = (struct correlator){.name = "test", .kind = kind};
	rig->oidset = (struct oidset){
		.name = slice_of(name),
		.set_name = slice_of(name),
		.frequency_ms = 30000,
		.correlator = &rig->correlator,
		.oids = rig->oids,
	};
	correlate_set_init(&rig->set);
	poll_builder_init(&rig->builder);
	buf_init(&rig->message, POLL_BYTES_MAX);
	buf_init(&rig->text, RIG_TEXT_BYTES);
}

static inline void rig_close(struct rig *rig)
{
	correlate_set_release(&rig->set);
	poll_builder_release(&rig->builder);
	buf_release(&rig->message);
	buf_release(&rig->text);
}

/* After the OIDs: the walk begins at 1,000 ms. */
static inline void rig_begin(struct rig *rig)
{
	correlate_plan_init(&rig->plan, &rig->oidset);
	correlate_set_begin(&rig->set, &rig->plan, 1000);
}

/* The place of a column by its name. */
static inline size_t rig_column(const struct correlate_plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->count; i++)
		if (slice_equal(plan->columns[i].def->name, slice_of(name)))
			return i;
	fail_msg("no column %s", name);
	return 0;
}

/* `index`: dotted. */
static inline void set_add(struct correlate_set *set, const char *name, const char *index,
			   struct snmp_value value)
{
	uint8_t memory[OID_MAX_BYTES];
	size_t len = 0;
	char *end;
	for (const char *at = index; *at; at = *end ? end + 1 : end)
		len += oid_put_arc(memory + len, (uint32_t)strtoul(at, &end, 10));
	struct slice bytes = {(char *)memory, len};
	correlate_set_add(set, rig_column(set->plan, name), bytes, &value);
}

static inline struct snmp_value counter64(uint64_t n)
{
	return (struct snmp_value){.type = SNMP_COUNTER64, .u64 = n};
}

static inline struct snmp_value counter32(uint32_t n)
{
	return (struct snmp_value){.type = SNMP_COUNTER32, .u64 = n};
}

static inline struct snmp_value ticks(uint32_t n)
{
	return (struct snmp_value){.type = SNMP_TIMETICKS, .u64 = n};
}

static inline struct snmp_value integer(int64_t n)
{
	return (struct snmp_value){.type = SNMP_INTEGER, .i64 = n};
}

static inline struct snmp_value octets(const void *bytes, size_t len)
{
	return (struct snmp_value){.type = SNMP_OCTETS, .bytes = {bytes, len}};
}

static inline struct snmp_value text(const char *t)
{
	return octets(t, strlen(t));
}

static inline void print_rig_value(struct buf *out, struct value v)
{
	if (v.type == VALUE_U64)
		buf_printf(out, "%llu", (unsigned long long)v.bits);
	else if (v.type == VALUE_I64)
		buf_printf(out, "%lld", (long long)v.bits);
	else
		buf_printf(out, "%g", value_as_f64(v));
}

static inline void print_rig_row(struct buf *out, const struct poll *poll,
				 const struct poll_names *names, const struct poll_values *values,
				 size_t row)
{
	for (size_t i = 0; i < names->rows[row].part_count; i++)
		buf_printf(out, i ? "|%.*s" : "%.*s", (int)names->rows[row].parts[i].len,
			   names->rows[row].parts[i].data);
	buf_printf(out, " @%lld", (long long)values->row_ts_ms[row]);
	for (size_t c = 0; c < poll->column_count; c++) {
		struct value v = values->values[row * poll->column_count + c];
		const char *name = names->columns[c].data;
		int name_len = (int)names->columns[c].len;
		for (size_t t = 0; t < values->text_count; t++)
			if (values->texts[t].row == row && values->texts[t].column == c)
				buf_printf(out, " %.*s=\"%.*s\"", name_len, name,
					   (int)values->texts[t].text.len,
					   values->texts[t].text.data);
		if (v.type == VALUE_NONE)
			continue;
		buf_printf(out, " %.*s=", name_len, name);
		print_rig_value(out, v);
	}
	buf_append_char(out, '\n');
}

/* One line a row: `path|path @time column=value column="text"`. */
static inline void print_rig_poll(struct buf *out, const struct poll *poll)
{
	struct arena arena;
	struct poll_names names;
	struct poll_values values;
	struct errbuf e;
	arena_init(&arena, POLL_ARENA_MAX_BYTES);
	assert_int_equal(poll_decode_names(poll, &arena, &names, &e), 0);
	assert_int_equal(poll_decode_values(poll, &arena, &values, &e), 0);
	for (size_t row = 0; row < poll->row_count; row++)
		print_rig_row(out, poll, &names, &values, row);
	arena_release(&arena);
}

static inline int rig_emit(void *owner, struct slice message)
{
	struct rig *rig = owner;
	struct poll poll;
	struct errbuf e;
	assert_int_equal(poll_open(message, &poll, &e), 0);
	assert_int_equal(poll.part, rig->messages);
	assert_false(rig->last);
	rig->messages++;
	rig->last = poll.last;
	if (poll.row_count < 1000)
		print_rig_poll(&rig->text, &poll);
	return 0;
}

/* The poll as text. */
static inline const char *rig_run(struct rig *rig, const struct correlate_naming *naming)
{
	buf_clear(&rig->text);
	rig->messages = 0;
	rig->last = false;
	rig->output = (struct correlate_output){
		.builder = &rig->builder,
		.message = &rig->message,
		.emit = rig_emit,
		.owner = rig,
	};
	assert_int_equal(correlate(&rig->set, SLICE("router_a"), naming, &rig->output, &rig->e), 0);
	assert_true(rig->last);
	buf_append_char(&rig->text, 0);
	return rig->text.data;
}

/* The poll of a device whose interfaces were called so before and are after. */
static inline const char *rig_run_named(struct rig *rig, const struct if_names *names)
{
	struct correlate_naming naming = {.before = names, .after = names};
	return rig_run(rig, &naming);
}

/* A device's names: `index, name` pairs, ended by NULL; the guard's moment beside. */
struct named {
	const char *index, *name, *descr, *alias;
};

static inline struct if_names *make_names(const struct named *list, int64_t at_ms, uint32_t uptime,
					  uint32_t change)
{
	struct correlate_plan plan;
	struct correlate_set set;
	struct if_names *names;
	struct errbuf e;
	correlate_plan_init_names(&plan, true, true);
	correlate_set_init(&set);
	correlate_set_begin(&set, &plan, at_ms);
	set_add(&set, "sysUpTime", "0", ticks(uptime));
	set_add(&set, "ifTableLastChange", "0", ticks(change));
	for (; list->index; list++) {
		if (list->name)
			set_add(&set, "ifName", list->index, text(list->name));
		if (list->descr)
			set_add(&set, "ifDescr", list->index, text(list->descr));
		if (list->alias)
			set_add(&set, "ifAlias", list->index, text(list->alias));
	}
	assert_int_equal(if_names_new(&set, &names, &e), 0);
	correlate_set_release(&set);
	return names;
}

#endif
