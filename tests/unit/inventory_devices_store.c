#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/buf.h"
#include "conf/conf.h"
#include "inventory/inventory.h"
#include "naive.h"

#define T0_MS INT64_C(1600000000000)

static struct clock_virtual clock_;
static struct task_queue queue;
static struct store *store;
static struct inventory_conf *conf;
static struct inventory_keeper *keeper;
static struct errbuf e;

static int fake_read(struct files *files, const char *path, size_t max_bytes, struct buf *out)
{
	(void)files;
	(void)path;
	(void)max_bytes;
	return buf_append_text(out, "lab: {version: 2c, community: public}\n"
				    "core: {version: 2c, community: x}\n");
}

static int fake_mode(struct files *files, const char *path, unsigned *mode)
{
	(void)files;
	(void)path;
	*mode = 0600;
	return 0;
}

static struct files fake = {.read = fake_read, .mode = fake_mode};

static struct inventory_conf *conf_of(const char *text)
{
	struct conf *read = conf_new();
	struct inventory_conf *made;
	assert_int_equal(conf_read_yaml(read, "g.yml", slice_of(text), &e), 0);
	assert_int_equal(inventory_conf_read(read, &fake, &made, &e), 0);
	conf_free(read);
	return made;
}

static void open_keeper(void)
{
	const struct inventory_options options = {
		.store = store, .clock = &clock_.clock, .executor = &queue.executor, .conf = conf};
	assert_int_equal(inventory_keeper_open(&options, &keeper, &e), 0);
}

static void reopen(const char *configuration)
{
	inventory_keeper_free(keeper);
	inventory_conf_release(conf);
	conf = conf_of(configuration);
	open_keeper();
}

#define SECRETS "snmp: {secrets_file: s.yml}\n"

static int setup(void **state)
{
	(void)state;
	clock_virtual_init(&clock_, T0_MS * 1000);
	task_queue_init(&queue);
	store = naive_open(&clock_.clock);
	conf = conf_of(SECRETS
		       "oidsets: {Own: {frequency: 60s, correlator: Index, oids: [ifMtu]}}\n");
	open_keeper();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	inventory_keeper_free(keeper);
	inventory_conf_release(conf);
	store_close(store);
	task_queue_release(&queue);
	return 0;
}

/* ---- Changes --------------------------------------------------------------------------------- */

static const struct slice sets[] = {SLICE("FastPollHC"), SLICE("Errors")};
static size_t changes_done;
static int change_err;

static void changed(struct inventory_change *change, int err)
{
	(void)change;
	changes_done++;
	change_err = err;
}

static struct device_spec spec_of(const char *name, const char *address)
{
	struct device_spec spec = device_spec_preset();
	spec.name = slice_of(name);
	spec.address = slice_of(address);
	spec.credentials = SLICE("lab");
	spec.oidsets = sets;
	spec.oidset_count = 2;
	return spec;
}

static void pump(void)
{
	while (task_queue_run(&queue))
		;
}

static struct inventory_change apply(enum inventory_op op, const struct device_spec *specs,
				     size_t count, const char *to)
{
	struct inventory_change change = {
		.op = op, .specs = specs, .count = count, .to = slice_of(to), .done = changed};
	size_t before = changes_done;
	assert_int_equal(inventory_keeper_change(keeper, &change), 0);
	assert_int_equal(changes_done, before);
	pump();
	assert_int_equal(changes_done, before + 1);
	return change;
}

static void add(const char *name, const char *address)
{
	struct device_spec spec = spec_of(name, address);
	struct inventory_change change = apply(INVENTORY_ADD, &spec, 1, "");
	assert_string_equal(change.error.text, "");
	assert_int_equal(change_err, 0);
}

/* Names, with blanks between. */
static void check_names(const char *wanted)
{
	const struct inventory *snapshot = inventory_keeper_take(keeper);
	char is[500] = "";
	size_t n = 0;
	for (size_t i = 0; i < snapshot->device_count; i++)
		n += (size_t)snprintf(is + n, sizeof(is) - n, "%s%s", i ? " " : "",
				      snapshot->devices[i]->name.data);
	assert_string_equal(is, wanted);
	inventory_release(snapshot);
}

static void devices_outlive_a_restart(void **state)
{
	(void)state;
	add("rtr_b", "b.example");
	add("rtr_a", "10.0.0.1:1161");
	add("rtr_c", "[2001:db8::1]:16100");
	add("rtr_d", "2001:db8::2");
	add("rtr_e", "::ffff:192.0.2.1");
	add("rtr_f", "1.a");
	reopen(SECRETS);
	check_names("rtr_a rtr_b rtr_c rtr_d rtr_e rtr_f");
	const struct inventory *snapshot = inventory_keeper_take(keeper);
	const struct device *a = inventory_device(snapshot, SLICE("rtr_a"));
	assert_string_equal(a->address.data, "10.0.0.1");
	assert_int_equal(a->port, 1161);
	assert_string_equal(a->credentials->community.data, "public");
	assert_true(a->active);
	assert_int_equal(a->begin_ms, T0_MS);
	assert_int_equal(a->end_ms, INT64_C(253402127999000));
	assert_int_equal(a->oidset_count, 2);
	assert_string_equal(a->oidsets[0]->name.data, "Errors");
	assert_string_equal(a->oidsets[1]->name.data, "FastPollHC");
	assert_int_equal(a->problem.len, 0);
	assert_true(device_is_active(a, T0_MS));
	assert_false(device_is_active(a, T0_MS - 1));
	assert_int_equal(inventory_device(snapshot, SLICE("rtr_b"))->port, 161);
	assert_string_equal(inventory_device(snapshot, SLICE("rtr_c"))->address.data,
			    "2001:db8::1");
	assert_int_equal(inventory_device(snapshot, SLICE("rtr_c"))->port, 16100);
	assert_string_equal(inventory_device(snapshot, SLICE("rtr_d"))->address.data,
			    "2001:db8::2");
	assert_null(inventory_device(snapshot, SLICE("rtr")));
	inventory_release(snapshot);
}

static void assert_refused(struct device_spec spec, const char *sentence)
{
	struct inventory_change change = apply(INVENTORY_ADD, &spec, 1, "");
	assert_int_equal(change_err, ERR_INVALID);
	assert_string_equal(change.error.text, sentence);
	assert_int_equal(change.fault, 0);
	check_names("");
}

/* Whoever sends an URL takes these out of it: what they named was neither found nor removed. */
static void devices_named_by_dots_could_not_be_removed(void **state)
{
	(void)state;
	assert_refused(spec_of(".", "h"), "device .: a name that is nothing but dots, one or two, "
					  "cannot stand in an URL");
	assert_refused(spec_of("..", "h"),
		       "device ..: a name that is nothing but dots, one or two, "
		       "cannot stand in an URL");
}

static void what_is_wrong_is_said(void **state)
{
	(void)state;
	static const struct slice unknown[] = {SLICE("FastPolHC")},
				  twice[] = {SLICE("Own"), SLICE("Own")};
	struct device_spec spec = spec_of("", "h");
	assert_refused(spec, "device : a name has 1 to 255 bytes");
	assert_refused(spec_of("a b", "h"), "device a b: a name has no blanks");
	assert_refused(spec_of("a", ""), "device a: needs an address");
	static const char *const bad[] = {"h:",     "h:0",       "h:65536", "h x", "[::1",
					  "[::1]x", "[::1]:",    "a/b",     ":1",  "300.1.2.3",
					  "1.2.3",  "1.2.3.4.5", "12345",   "a.1"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char sentence[200];
		snprintf(sentence, sizeof(sentence),
			 "device a: '%s' is not an address: HOST, HOST:PORT or [IPV6]:PORT",
			 bad[i]);
		assert_refused(spec_of("a", bad[i]), sentence);
	}
	spec = spec_of("a", "h");
	spec.credentials = SLICE("labb");
	assert_refused(spec, "device a: 'labb' is not a name of credentials in the secrets file; "
			     "did you mean lab?");
	spec.credentials = SLICE("");
	assert_refused(spec,
		       "device a: needs credentials: the name of an entry of the secrets file");
	spec = spec_of("a", "h");
	spec.oidsets = unknown;
	spec.oidset_count = 1;
	assert_refused(spec, "device a: 'FastPolHC' is not an OIDSet; did you mean FastPollHC?");
	spec.oidsets = twice;
	spec.oidset_count = 2;
	assert_refused(spec, "device a: the OIDSet Own stands twice");
	spec = spec_of("a", "h");
	spec.begin_ms = spec.end_ms = T0_MS;
	assert_refused(spec, "device a: its end must lie after its begin");
	spec = spec_of("a", "h");
	spec.file = "d.csv";
	spec.line = 7;
	spec.credentials = SLICE("nobody");
	assert_refused(spec, "d.csv:7: device a: 'nobody' is not a name of credentials in the "
			     "secrets file");
}

static void a_list_is_taken_as_a_whole_or_not_at_all(void **state)
{
	(void)state;
	struct device_spec specs[] = {spec_of("c", "h"), spec_of("a", "h"), spec_of("b", "h:x")};
	struct inventory_change change = apply(INVENTORY_ADD, specs, 3, "");
	assert_int_equal(change_err, ERR_INVALID);
	assert_int_equal(change.fault, 2);
	check_names("");
	specs[2] = spec_of("a", "h");
	change = apply(INVENTORY_ADD, specs, 3, "");
	assert_int_equal(change_err, ERR_INVALID);
	assert_int_equal(change.fault, 2);
	assert_string_equal(change.error.text, "device a: stands twice");
	specs[2] = spec_of("b", "h");
	apply(INVENTORY_ADD, specs, 3, "");
	assert_int_equal(change_err, 0);
	check_names("a b c");
	struct device_spec more[] = {spec_of("d", "h"), spec_of("b", "h")};
	change = apply(INVENTORY_ADD, more, 2, "");
	assert_int_equal(change_err, ERR_EXISTS);
	assert_int_equal(change.fault, 1);
	assert_string_equal(change.error.text, "device b: is there already");
	check_names("a b c");
	reopen(SECRETS);
	check_names("a b c");
}

static void changing_renaming_removing(void **state)
{
	(void)state;
	add("a", "h");
	add("b", "h");
	const struct inventory *before = inventory_keeper_take(keeper);
	struct device_spec spec = spec_of("a", "other:99");
	spec.active = false;
	apply(INVENTORY_CHANGE, &spec, 1, "");
	assert_int_equal(change_err, 0);
	const struct inventory *after = inventory_keeper_take(keeper);
	/* Who has the snapshot of before goes on seeing it. */
	assert_string_equal(before->devices[0]->address.data, "h");
	assert_string_equal(after->devices[0]->address.data, "other");
	assert_false(device_is_active(after->devices[0], T0_MS));
	assert_ptr_equal(before->devices[1], after->devices[1]);
	assert_ptr_equal(before->devices[0]->state, after->devices[0]->state);
	assert_true(after->number > before->number);
	inventory_release(before);
	inventory_release(after);
	spec = spec_of("a", "");
	struct inventory_change change = apply(INVENTORY_RENAME, &spec, 1, "b");
	assert_int_equal(change_err, ERR_EXISTS);
	assert_string_equal(change.error.text, "device b: is there already");
	apply(INVENTORY_RENAME, &spec, 1, "z");
	assert_int_equal(change_err, 0);
	check_names("b z");
	change = apply(INVENTORY_REMOVE, &spec, 1, "");
	assert_int_equal(change_err, ERR_NOT_FOUND);
	assert_string_equal(change.error.text, "device a: does not exist");
	spec = spec_of("b", "");
	apply(INVENTORY_REMOVE, &spec, 1, "");
	assert_int_equal(change_err, 0);
	reopen(SECRETS);
	check_names("z");
	const struct inventory *snapshot = inventory_keeper_take(keeper);
	assert_string_equal(snapshot->devices[0]->address.data, "other");
	assert_int_equal(snapshot->devices[0]->port, 99);
	inventory_release(snapshot);
}

/* What its series are called. */
static void assert_stored_as(const char *name, const char *wanted)
{
	const struct inventory *snapshot = inventory_keeper_take(keeper);
	const struct device *device = inventory_device(snapshot, slice_of(name));
	assert_non_null(device);
	struct slice stored_as = device_stored_as(device);
	assert_int_equal(stored_as.len, strlen(wanted));
	assert_memory_equal(stored_as.data, wanted, stored_as.len);
	assert_ptr_equal(inventory_device_stored(snapshot, stored_as), device);
	assert_true(slice_equal(inventory_stored_as(snapshot, slice_of(name)), stored_as));
	inventory_release(snapshot);
}

static void rename_device(const char *from, const char *to)
{
	struct device_spec spec = spec_of(from, "");
	struct inventory_change change = apply(INVENTORY_RENAME, &spec, 1, to);
	assert_string_equal(change.error.text, "");
	assert_int_equal(change_err, 0);
}

/* The data go with the device, not with the name. */
static void a_renamed_device_keeps_what_is_stored_of_it(void **state)
{
	(void)state;
	add("old", "h");
	assert_stored_as("old", "old");
	const struct inventory *before = inventory_keeper_take(keeper);
	rename_device("old", "new");
	assert_stored_as("new", "old");
	const struct inventory *after = inventory_keeper_take(keeper);
	assert_ptr_equal(before->devices[0]->state, after->devices[0]->state);
	inventory_release(before);
	inventory_release(after);
	/* A change leaves it, and nobody's spec says it. */
	struct device_spec spec = spec_of("new", "other");
	spec.stored_as = SLICE("mine");
	apply(INVENTORY_CHANGE, &spec, 1, "");
	assert_int_equal(change_err, 0);
	assert_stored_as("new", "old");
	rename_device("new", "newer");
	assert_stored_as("newer", "old");
	/* Who has that name later begins again; and the next. */
	struct device_spec specs[] = {spec_of("old~2", "h"), spec_of("old", "h")};
	specs[1].stored_as = SLICE("old");
	apply(INVENTORY_ADD, specs, 2, "");
	assert_int_equal(change_err, 0);
	assert_stored_as("old~2", "old~2");
	assert_stored_as("old", "old~3");
	rename_device("old", "third");
	reopen(SECRETS);
	check_names("newer old~2 third");
	assert_stored_as("newer", "old");
	assert_stored_as("third", "old~3");
	/* Back again. */
	rename_device("newer", "old");
	assert_stored_as("old", "old");
	/* Nobody's data: as before, it is gone on with. */
	spec = spec_of("third", "");
	apply(INVENTORY_REMOVE, &spec, 1, "");
	add("old~3", "h");
	assert_stored_as("old~3", "old~3");
	add("third", "h");
	assert_stored_as("third", "third");
}

/* What would be too long, or cut a character, is made shorter. */
static void a_long_name_that_is_taken(void **state)
{
	(void)state;
	char name[INVENTORY_NAME_MAX_BYTES + 1] = "", wanted[INVENTORY_NAME_MAX_BYTES + 1];
	memset(name, 'a', INVENTORY_NAME_MAX_BYTES - 3);
	memcpy(name + INVENTORY_NAME_MAX_BYTES - 3, "\xc3\xa9z", 3);
	add(name, "h");
	rename_device(name, "x");
	add(name, "h");
	snprintf(wanted, sizeof(wanted), "%.*s~2", INVENTORY_NAME_MAX_BYTES - 3, name);
	assert_stored_as(name, wanted);
	assert_stored_as("x", name);
}

/* Who polls it elsewhere has the credentials; the server need not. */
static void a_device_of_another_poller(void **state)
{
	(void)state;
	struct device_spec spec = spec_of("a", "h");
	spec.credentials = SLICE("theirs");
	spec.poller = SLICE("site b");
	assert_refused(spec, "device a: the name of its poller has no blanks");
	spec.poller = SLICE("site\x01");
	assert_refused(spec, "device a: the name of its poller: value of tag \"v\" holds a control "
			     "character");
	spec.poller = SLICE("site");
	apply(INVENTORY_ADD, &spec, 1, "");
	assert_int_equal(change_err, 0);
	reopen(SECRETS);
	const struct inventory *before = inventory_keeper_take(keeper);
	assert_string_equal(before->devices[0]->poller.data, "site");
	assert_int_equal(before->devices[0]->problem.len, 0);
	assert_null(before->devices[0]->credentials);

	/* Back to the server it comes with credentials that this one has. */
	spec.poller = SLICE("");
	struct inventory_change change = apply(INVENTORY_CHANGE, &spec, 1, "");
	assert_int_equal(change_err, ERR_INVALID);
	assert_string_equal(change.error.text,
			    "device a: 'theirs' is not a name of credentials in the secrets file");
	spec.credentials = SLICE("lab");
	apply(INVENTORY_CHANGE, &spec, 1, "");
	assert_int_equal(change_err, 0);
	const struct inventory *after = inventory_keeper_take(keeper);
	assert_int_equal(after->devices[0]->poller.len, 0);
	/* What the one poller said is not what the other finds. */
	assert_ptr_not_equal(before->devices[0]->state, after->devices[0]->state);
	inventory_release(before);
	inventory_release(after);
}

/* A later configuration need not have what an earlier one had. */
static void what_is_no_longer_configured_is_a_problem(void **state)
{
	(void)state;
	static const struct slice own[] = {SLICE("Own"), SLICE("Errors")};
	struct device_spec spec = spec_of("a", "h");
	spec.oidsets = own;
	apply(INVENTORY_ADD, &spec, 1, "");
	assert_int_equal(change_err, 0);
	reopen("");
	const struct inventory *snapshot = inventory_keeper_take(keeper);
	const struct device *a = snapshot->devices[0];
	assert_string_equal(a->problem.data, "there is no entry of the secrets file called lab, "
					     "OIDSet Own");
	assert_null(a->credentials);
	assert_int_equal(a->oidset_count, 1);
	assert_string_equal(a->oidsets[0]->name.data, "Errors");
	/* It can be switched off and renamed all the same, but not be given more of that kind. */
	struct arena arena;
	arena_init(&arena, 1 << 20);
	spec = device_spec_of(a, &arena);
	spec.active = false;
	apply(INVENTORY_CHANGE, &spec, 1, "");
	assert_int_equal(change_err, 0);
	apply(INVENTORY_RENAME, &spec, 1, "b");
	assert_int_equal(change_err, 0);
	spec.name = SLICE("b");
	spec.oidsets = own;
	spec.oidset_count = 1;
	apply(INVENTORY_CHANGE, &spec, 1, "");
	assert_int_equal(change_err, ERR_INVALID);
	arena_release(&arena);
	inventory_release(snapshot);
	reopen(SECRETS "oidsets: {Own: {frequency: 60s, correlator: Index, oids: [ifMtu]}}\n");
	snapshot = inventory_keeper_take(keeper);
	assert_int_equal(snapshot->devices[0]->problem.len, 0);
	assert_int_equal(snapshot->devices[0]->oidset_count, 2);
	inventory_release(snapshot);
}

static size_t heard;

static void hear(struct inventory_listener *listener)
{
	(void)listener;
	heard++;
}

static void listeners_hear_of_what_happened(void **state)
{
	(void)state;
	struct inventory_listener first = {.changed = hear}, second = {.changed = hear};
	inventory_keeper_listen(keeper, &first);
	inventory_keeper_listen(keeper, &second);
	heard = 0;
	add("a", "h");
	assert_int_equal(heard, 2);
	struct device_spec spec = spec_of("a", "h");
	apply(INVENTORY_ADD, &spec, 1, "");
	assert_int_equal(change_err, ERR_EXISTS);
	assert_int_equal(heard, 2);
	inventory_keeper_unlisten(keeper, &second);
	add("b", "h");
	assert_int_equal(heard, 3);
	inventory_keeper_unlisten(keeper, &first);
}

/* In the order in which they came; each sees what the one before did. */
static void changes_wait_for_each_other(void **state)
{
	(void)state;
	struct device_spec spec = spec_of("a", "h");
	struct inventory_change changes[65];
	for (size_t i = 0; i < 64; i++) {
		changes[i] =
			(struct inventory_change){.op = i % 2 ? INVENTORY_REMOVE : INVENTORY_ADD,
						  .specs = &spec,
						  .count = 1,
						  .done = changed};
		assert_int_equal(inventory_keeper_change(keeper, &changes[i]), 0);
	}
	changes[64] = changes[0];
	assert_int_equal(inventory_keeper_change(keeper, &changes[64]), ERR_BUSY);
	assert_false(inventory_keeper_idle(keeper));
	size_t before = changes_done;
	change_err = 0;
	pump();
	assert_int_equal(changes_done - before, 64);
	assert_int_equal(change_err, 0);
	assert_true(inventory_keeper_idle(keeper));
	check_names("");
}

static void a_failing_device_says_since_when(void **state)
{
	(void)state;
	add("a", "h");
	const struct inventory *snapshot = inventory_keeper_take(keeper);
	struct device_state *device = snapshot->devices[0]->state;
	struct device_status status = device_state_read(device);
	assert_int_equal(status.failing_since_ms, 0);
	assert_int_equal(status.last_success_ms, 0);
	device_state_failed(device, 1000, false, "h: unknown host");
	device_state_failed(device, 2000, true, "no answer");
	status = device_state_read(device);
	assert_int_equal(status.failing_since_ms, 1000);
	assert_string_equal(status.error, "no answer");
	assert_true(status.resolved);
	device_state_succeeded(device, 3000);
	status = device_state_read(device);
	assert_int_equal(status.failing_since_ms, 0);
	assert_int_equal(status.last_success_ms, 3000);
	assert_string_equal(status.error, "");
	inventory_release(snapshot);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(devices_outlive_a_restart),
		TEST(devices_named_by_dots_could_not_be_removed),
		TEST(what_is_wrong_is_said),
		TEST(a_list_is_taken_as_a_whole_or_not_at_all),
		TEST(changing_renaming_removing),
		TEST(a_renamed_device_keeps_what_is_stored_of_it),
		TEST(a_long_name_that_is_taken),
		TEST(a_device_of_another_poller),
		TEST(what_is_no_longer_configured_is_a_problem),
		TEST(listeners_hear_of_what_happened),
		TEST(changes_wait_for_each_other),
		TEST(a_failing_device_says_since_when),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
