/* The inventory on its way to a poller elsewhere: what is written is read as it was, and what is
 * not right changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/buf.h"
#include "conf/conf.h"
#include "inventory/private.h"

static struct conf *conf;
static struct inventory_conf *sets;
static struct inventory_copy *copy;
static struct buf text;
static struct errbuf e;

/* The poller's own secrets, which are not the server's. */
static int fake_read(UNUSED struct files *files, UNUSED const char *path, UNUSED size_t max_bytes,
		     struct buf *out)
{
	return buf_append_text(out, "lab: {version: 2c, community: near}\n");
}

static int fake_mode(UNUSED struct files *files, UNUSED const char *path, unsigned *mode)
{
	*mode = 0600;
	return 0;
}

static struct files fake = {.read = fake_read, .mode = fake_mode};

static struct inventory_conf *sets_of(const char *yaml)
{
	struct conf *read = conf_new();
	struct inventory_conf *made;
	assert_int_equal(conf_read_yaml(read, "g.yml", slice_of(yaml), &e), 0);
	int err = inventory_conf_read(read, &fake, &made, &e);
	assert_string_equal(e.text, "");
	assert_int_equal(err, 0);
	conf_free(read);
	return made;
}

static const char own[] =
	"oids: {mine: {oid: 1.3.6.1.4.1.9.9, type: Counter64, aggregate: true, alias: own/in}}\n"
	"oidsets:\n"
	"  Own: {frequency: 1500ms, correlator: GenericOid, correlate_oid: ifDescr, tags: [port],\n"
	"        oids: [mine, ifMtu], aggregates: [1h, 1d], ttl: 90d, set_name: Twin}\n"
	"  Twin: {frequency: 1500ms, correlator: GenericOid, correlate_oid: ifDescr, tags: "
	"[port],\n"
	"         oids: [mine, ifMtu], aggregates: [1h, 1d], ttl: 90d}\n"
	"  Quiet: {frequency: 30s, correlator: IfName, oids: [ifMtu], skip_undescribed: true}\n";

static int setup(UNUSED void **state)
{
	e.text[0] = 0;
	conf = conf_new();
	assert_int_equal(conf_read_yaml(conf, "p.yml", SLICE("snmp: {secrets_file: s}\n"), &e), 0);
	sets = sets_of(own);
	copy = inventory_copy_new(SLICE("site"), conf, &fake);
	buf_init(&text, 16 << 20);
	return 0;
}

static int teardown(UNUSED void **state)
{
	inventory_copy_free(copy);
	inventory_conf_release(sets);
	conf_free(conf);
	buf_release(&text);
	return 0;
}

static const struct device *device_of(const char *name, const char *host, const char *poller)
{
	static const struct slice names[] = {SLICE("IfXTable"), SLICE("Own")};
	struct device_spec spec = device_spec_preset();
	spec.name = slice_of(name);
	spec.credentials = SLICE("lab");
	spec.poller = slice_of(poller);
	spec.begin_ms = 1;
	spec.oidsets = names;
	spec.oidset_count = 2;
	return device_new(&spec, slice_of(host), 1161, sets, NULL);
}

/* Writes and reads a snapshot of these; they are released. */
static int pass(const struct device *const *devices, size_t count)
{
	struct inventory *snapshot = inventory_new(sets, devices, count, 7);
	buf_clear(&text);
	inventory_document_write(snapshot, SLICE("site"), &text);
	assert_false(text.failed);
	for (size_t i = 0; i < count; i++)
		device_release(devices[i]);
	inventory_release(snapshot);
	return inventory_copy_read(copy, "doc", buf_slice(&text), &e);
}

static void assert_same_set(const struct oidset *a, const struct oidset *b)
{
	assert_string_equal(a->name.data, b->name.data);
	assert_string_equal(a->set_name.data, b->set_name.data);
	assert_int_equal(a->frequency_ms, b->frequency_ms);
	assert_int_equal(a->kind, b->kind);
	assert_ptr_equal(a->correlator, b->correlator);
	assert_int_equal(a->skip_undescribed, b->skip_undescribed);
	assert_int_equal(a->oid_count, b->oid_count);
	assert_int_equal(a->name_oid_count, b->name_oid_count);
	for (size_t i = 0; i < a->oid_count; i++) {
		const struct oid_def *x = a->oids[i], *y = b->oids[i];
		assert_string_equal(x->name.data, y->name.data);
		assert_true(slice_equal(x->ber, y->ber));
		assert_int_equal(x->type, y->type);
		assert_int_equal(x->scalar, y->scalar);
		assert_int_equal(x->aggregate, y->aggregate);
	}
	for (size_t i = 0; i < a->name_oid_count; i++)
		assert_true(slice_equal(a->name_oids[i]->ber, b->name_oids[i]->ber));
}

static void oidsets_arrive_as_they_are(UNUSED void **state)
{
	assert_int_equal(pass(NULL, 0), 0);
	const struct inventory_conf *got = inventory_copy_snapshot(copy)->conf;
	assert_int_equal(got->oidset_count, sets->oidset_count);
	for (size_t i = 0; i < sets->oidset_count; i++)
		assert_same_set(got->oidsets[i], sets->oidsets[i]);
	const struct oidset *set = inventory_conf_oidset(got, SLICE("Own"));
	assert_int_equal(set->frequency_ms, 1500);
	assert_string_equal(set->correlate_oid->name.data, "ifDescr");
	assert_string_equal(set->path_tags[0].data, "port");
	assert_int_equal(set->aggregate_count, 2);
	assert_int_equal(set->aggregates_ms[1], 86400000);
	assert_int_equal(set->ttl_ms, INT64_C(90) * 86400000);
	assert_string_equal(set->oids[0]->endpoint_alias.data, "own/in");
	assert_true(inventory_conf_oidset(got, SLICE("Quiet"))->skip_undescribed);
}

/* NEL, LINE SEPARATOR, a byte order mark and U+FFFF are line ends or nothing at all in YAML. */
#define ODD "r\xc2\x85\"\\'\xe2\x80\xa8\xef\xbb\xbf\xef\xbf\xbf\xf0\x9f\x98\x80:-#\xc3\xa9"

static void devices_arrive_as_they_are(UNUSED void **state)
{
	const struct device *devices[] = {device_of("other", "h", "elsewhere"),
					  device_of(ODD, "2001:db8::1", "site"),
					  device_of("s", "server", "")};
	assert_int_equal(pass(devices, 3), 0);
	const struct inventory *snapshot = inventory_copy_snapshot(copy);
	assert_int_equal(snapshot->device_count, 1);
	const struct device *d = snapshot->devices[0];
	assert_string_equal(d->name.data, ODD);
	assert_string_equal(d->address.data, "2001:db8::1");
	assert_int_equal(d->port, 1161);
	assert_true(d->active);
	assert_int_equal(d->begin_ms, 1);
	assert_int_equal(d->end_ms, INVENTORY_FOREVER_MS);
	assert_int_equal(d->oidset_count, 2);
	/* By name from the secrets that lie here. */
	assert_string_equal(d->credentials->community.data, "near");
}

static const struct device *renamed_device_of(const char *stored_as, const char *name)
{
	const struct device *made = device_of(name, "h", "site");
	struct arena arena;
	arena_init(&arena, 1 << 16);
	struct device_spec spec = device_spec_of(made, &arena);
	spec.stored_as = slice_of(stored_as);
	struct device *device = device_new(&spec, SLICE("h"), 1161, sets, NULL);
	device_release(made);
	arena_release(&arena);
	return device;
}

/* What is polled of it says the name that it had when it was added. */
static void a_renamed_device_says_what_it_is_stored_as(UNUSED void **state)
{
	const struct device *devices[] = {renamed_device_of(ODD, "new")};
	assert_int_equal(pass(devices, 1), 0);
	const struct inventory *snapshot = inventory_copy_snapshot(copy);
	const struct device *before = snapshot->devices[0];
	assert_string_equal(before->stored_as.data, ODD);
	assert_true(slice_equal(device_stored_as(before), slice_of(ODD)));
	devices[0] = renamed_device_of("other", "new");
	assert_int_equal(pass(devices, 1), 0);
	assert_string_equal(inventory_copy_snapshot(copy)->devices[0]->stored_as.data, "other");
	/* People do not say it. */
	struct device_spec *specs;
	struct arena arena;
	size_t count;
	arena_init(&arena, 1 << 20);
	assert_int_equal(
		device_list_parse("d.yml",
				  SLICE("devices:\n- {name: a, address: h, stored_as: b}\n"),
				  &arena, &specs, &count, &e),
		ERR_INVALID);
	assert_non_null(strstr(e.text, "d.yml:2: devices[0].stored_as"));
	arena_release(&arena);
}

static void what_has_not_changed_stays_the_same_object(UNUSED void **state)
{
	const struct device *first[] = {device_of("a", "h", "site"), device_of("b", "h", "site")};
	assert_int_equal(pass(first, 2), 0);
	const struct inventory *before = inventory_copy_snapshot(copy);
	inventory_take(before);
	device_state_failed(before->devices[1]->state, 5, true, "no answer");
	const struct device *second[] = {device_of("a", "h", "site"), device_of("b", "h2", "site")};
	assert_int_equal(pass(second, 2), 0);
	const struct inventory *after = inventory_copy_snapshot(copy);
	assert_ptr_equal(after->conf, before->conf);
	assert_ptr_equal(after->devices[0], before->devices[0]);
	assert_ptr_not_equal(after->devices[1], before->devices[1]);
	assert_string_equal(after->devices[1]->address.data, "h2");
	assert_int_equal(device_state_read(after->devices[1]->state).failing_since_ms, 5);
	inventory_copy_forget(copy);
	const struct device *third[] = {device_of("a", "h", "site")};
	assert_int_equal(pass(third, 1), 0);
	assert_ptr_not_equal(inventory_copy_snapshot(copy)->conf, before->conf);
	inventory_release(before);
}

static void assert_refused(const char *document, const char *sentence)
{
	const struct inventory *before = inventory_copy_snapshot(copy);
	e.text[0] = 0;
	assert_int_not_equal(inventory_copy_read(copy, "doc", slice_of(document), &e), 0);
	assert_string_equal(e.text, sentence);
	assert_ptr_equal(inventory_copy_snapshot(copy), before);
}

#define HEAD                                                                                       \
	"{\"poller\":\"site\",\"definitions\":\"0123456789abcdef\",\n\"oids\":{},\"oidsets\":{},"  \
	"\n"

static void what_is_wrong_changes_nothing(UNUSED void **state)
{
	const struct device *devices[] = {device_of("a", "h", "site")};
	assert_int_equal(pass(devices, 1), 0);
	assert_refused("", "doc:1: poller is missing");
	assert_refused("[]", "doc:1: takes a mapping of poller and others");
	assert_refused("{\"poller\":\"other\",\"definitions\":\"0123456789abcdef\",\"oids\":{},"
		       "\"oidsets\":{},\"devices\":[]}",
		       "doc:1: poller: is other, not site");
	assert_refused(HEAD "\"devices\":{}}", "doc:3: devices: takes a list");
	assert_refused(HEAD "\"devices\":[\n{\"name\":\"b\",\"address\":\"h\","
			    "\"credentials\":\"lab\"}]}",
		       "doc:4: device b: is polled by ");
	assert_refused(HEAD
		       "\"devices\":[\n{\"name\":\"b\",\"address\":\"h\",\"credentials\":\"x\","
		       "\"poller\":\"site\"},{\"name\":\"b\",\"address\":\"h\","
		       "\"credentials\":\"x\",\"poller\":\"site\"}]}",
		       "doc: device b stands twice");
	assert_refused("{\"poller\":\"site\",\"definitions\":\"0123456789abcdef\",\"oids\":{},\n"
		       "\"oidsets\":{\"A\":{\"frequency\":\"1m\",\"correlator\":\"Index\","
		       "\"oids\":[\"x\"]}},\"devices\":[]}",
		       "doc:2: oidsets.A.oids[0]: 'x' is not an OID that is known by name; `oids` "
		       "can name "
		       "it");
	/* Cut off anywhere, and with any byte turned. */
	struct slice whole = buf_slice(&text);
	for (size_t len = 0; len + 2 < whole.len; len += whole.len / 97)
		assert_int_not_equal(
			inventory_copy_read(copy, "doc", (struct slice){whole.data, len}, &e), 0);
	for (size_t at = 0; at < whole.len; at += whole.len / 97) {
		text.data[at] ^= 0x15;
		(void)!inventory_copy_read(copy, "doc", whole, &e);
		text.data[at] ^= 0x15;
	}
	assert_int_equal(inventory_copy_read(copy, "doc", whole, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(oidsets_arrive_as_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(devices_arrive_as_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(a_renamed_device_says_what_it_is_stored_as, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_has_not_changed_stays_the_same_object, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_wrong_changes_nothing, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
