/* The inventory as it travels to a poller that is a process of its own: one JSON object,
 *
 *     {"poller":"site_b","definitions":"0f1e2d3c4b5a6978",
 *      "oids":{"ifMtu":{"oid":"1.3.6.1.2.1.2.2.1.4","type":"Integer32"},...},
 *      "oidsets":{"Own":{"frequency":"60000ms","correlator":"Index","oids":["ifMtu"],...},...},
 *      "devices":[{"name":"rtr_a","address":"[192.0.2.1]:161","credentials":"lab",
 *                  "active":true,"begin":"2020-08-24T16:34:05Z","end":"9999-12-29T23:59:59Z",
 *                  "oidsets":["Own"],"poller":"site_b"},...]}
 *
 * with `stored_as` of a device whose polls say another name than its own,
 *
 * which is also YAML: `oids`, `oidsets` and `devices` are what people write in files of OIDSets and
 * in lists of devices, and are read by what reads those. So there is one reader with one set of
 * checks, and a poller's copy on disk is something to look at. `definitions` is a hash of `oids`
 * and `oidsets`: while it stays, so do they, and no poll under way is cut off by a new device. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "inventory/private.h"
#include "wire/json.h"
#include "wire/timetext.h"

enum {
	DEFINITIONS_BYTES = 16, /* hex digits */
	/* What that many devices are as a tree: a dozen nodes each. */
	DOCUMENT_ARENA_MAX_BYTES = 256 << 20,
	ADDRESS_TEXT_BYTES = INVENTORY_ADDRESS_MAX_BYTES + 16,
};

/* ---- Writing --------------------------------------------------------------------------------- */

static void write_duration(struct json_writer *w, const char *key, int64_t ms)
{
	char text[32];
	json_write_key(w, key);
	snprintf(text, sizeof(text), "%lldms", (long long)ms);
	json_write_text(w, text);
}

static void write_time(struct json_writer *w, const char *key, int64_t ms)
{
	char text[TIME_PRINT_MAX_BYTES];
	json_put_string(w, key, (struct slice){text, time_print(text, ms)});
}

static void write_true(struct json_writer *w, const char *key, bool yes)
{
	if (!yes)
		return;
	json_put_bool(w, key, true);
}

static void write_oid(struct json_writer *w, const struct oid_def *oid)
{
	json_write_key_slice(w, oid->name);
	json_write_object_begin(w);
	json_put_string(w, "oid", oid->oid);
	json_put_string(w, "type", slice_of(oid_type_text(oid->type)));
	write_true(w, "scalar", oid->scalar);
	write_true(w, "aggregate", oid->aggregate);
	if (oid->endpoint_alias.len)
		json_put_string(w, "alias", oid->endpoint_alias);
	json_write_object_end(w);
}

static void write_lists(struct json_writer *w, const struct oidset *set)
{
	json_write_key(w, "oids");
	json_write_array_begin(w);
	for (size_t i = 0; i < set->oid_count; i++)
		json_write_string(w, set->oids[i]->name);
	json_write_array_end(w);
	json_put_strings(w, "tags", set->path_tags, set->path_tag_count);
	json_write_key(w, "aggregates");
	json_write_array_begin(w);
	for (size_t i = 0; i < set->aggregate_count; i++) {
		char text[32];
		snprintf(text, sizeof(text), "%lldms", (long long)set->aggregates_ms[i]);
		json_write_text(w, text);
	}
	json_write_array_end(w);
}

static void write_oidset(struct json_writer *w, const struct oidset *set)
{
	json_write_key_slice(w, set->name);
	json_write_object_begin(w);
	write_duration(w, "frequency", set->frequency_ms);
	json_put_string(w, "kind", slice_of(oidset_kind_text(set->kind)));
	json_put_string(w, "correlator", slice_of(set->correlator->name));
	if (set->correlate_oid)
		json_put_string(w, "correlate_oid", set->correlate_oid->name);
	write_lists(w, set);
	write_duration(w, "ttl", set->ttl_ms);
	json_put_string(w, "set_name", set->set_name);
	write_true(w, "skip_undescribed", set->skip_undescribed);
	json_write_object_end(w);
}

static void write_device(struct json_writer *w, const struct device *device)
{
	char address[ADDRESS_TEXT_BYTES];
	snprintf(address, sizeof(address), "[%s]:%u", device->address.data, device->port);
	json_write_object_begin(w);
	json_put_string(w, "name", device->name);
	json_put_string(w, "address", slice_of(address));
	json_put_string(w, "credentials", device->credentials_name);
	json_put_bool(w, "active", device->active);
	write_time(w, "begin", device->begin_ms);
	write_time(w, "end", device->end_ms);
	json_write_key(w, "oidsets");
	json_write_array_begin(w);
	for (size_t i = 0; i < device->oidset_count; i++)
		json_write_string(w, device->oidsets[i]->name);
	json_write_array_end(w);
	json_put_string(w, "poller", device->poller);
	if (device->stored_as.len)
		json_put_string(w, "stored_as", device->stored_as);
	json_write_object_end(w);
}

/* Of the definitions without the braces around them. */
static void write_definitions(const struct inventory_conf *conf, struct buf *out)
{
	struct json_writer w;
	json_writer_init(&w, out);
	json_write_object_begin(&w);
	json_write_key(&w, "oids");
	json_write_object_begin(&w);
	for (size_t i = 0; i < conf->oid_count; i++)
		write_oid(&w, conf->oids[i]);
	json_write_object_end(&w);
	json_write_key(&w, "oidsets");
	json_write_object_begin(&w);
	for (size_t i = 0; i < conf->oidset_count; i++)
		write_oidset(&w, conf->oidsets[i]);
	json_write_object_end(&w);
	json_write_object_end(&w);
}

static void write_all(const struct inventory *inventory, struct slice poller, struct buf *out)
{
	struct json_writer w;
	struct buf definitions;
	char hash[DEFINITIONS_BYTES + 1];
	buf_init(&definitions, INVENTORY_DOCUMENT_MAX_BYTES);
	write_definitions(inventory->conf, &definitions);
	snprintf(hash, sizeof(hash), "%016llx",
		 (unsigned long long)hash64(definitions.data, definitions.len, 0));
	buf_append_text(out, "{\"poller\":");
	json_append_string(out, poller);
	buf_printf(out, ",\"definitions\":\"%s\",\n", hash);
	ASSERT(definitions.len >= 2); /* its braces */
	buf_append(out, definitions.data + 1, definitions.len - 2);
	out->failed |= definitions.failed;
	buf_release(&definitions);
	buf_append_text(out, ",\n\"devices\":");
	json_writer_init(&w, out);
	json_write_array_begin(&w);
	for (size_t i = 0; i < inventory->device_count; i++) {
		if (!slice_equal(inventory->devices[i]->poller, poller))
			continue;
		buf_append_char(out, '\n');
		write_device(&w, inventory->devices[i]);
	}
	json_write_array_end(&w);
	buf_append_text(out, "}\n");
}

/* The length of a character that JSON may hold as it is and YAML would fold or refuse, and its
 * number; 0: there is none at `p`. */
static size_t odd_length(const uint8_t *p, size_t left, unsigned *number)
{
	if (left >= 2 && p[0] == 0xc2 && p[1] <= 0x9f)
		return *number = p[1], 2; /* C1 controls, among them NEL */
	if (left < 3)
		return 0;
	*number = (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
	bool odd =
		p[0] >= 0xe0 && p[0] < 0xf0 &&
		(*number == 0x2028 || *number == 0x2029 || *number == 0xfeff || *number >= 0xfffe);
	return odd ? 3 : 0;
}

/* What is outside of ASCII stands in strings only, where an escape means the same. */
static void escape_odd(struct slice text, struct buf *out)
{
	const uint8_t *p = (const uint8_t *)text.data;
	size_t from = 0;
	for (size_t at = 0; at < text.len;) {
		unsigned number;
		size_t len = p[at] < 0x80 ? 0 : odd_length(p + at, text.len - at, &number);
		if (!len) {
			at++;
			continue;
		}
		buf_append(out, p + from, at - from);
		buf_printf(out, "\\u%04x", number);
		from = at += len;
	}
	buf_append(out, p + from, text.len - from);
}

void inventory_document_write(const struct inventory *inventory, struct slice poller,
			      struct buf *out)
{
	struct buf text;
	buf_init(&text, INVENTORY_DOCUMENT_MAX_BYTES);
	write_all(inventory, poller, &text);
	escape_odd(buf_slice(&text), out);
	out->failed |= text.failed;
	buf_release(&text);
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct inventory_copy {
	struct slice poller;
	const struct conf *conf;
	struct files *files;
	const struct inventory *snapshot;
	char definitions[DEFINITIONS_BYTES + 1]; /* of the snapshot; empty: to be read again */
};

/* What is being read. */
struct document_reading {
	struct inventory_copy *copy;
	struct arena arena;
	const struct conf_node *root;
	struct inventory_conf *conf; /* with a reference */
	struct slice definitions;
	const struct device **devices; /* with references */
	size_t device_count;
	struct errbuf *e;
};

static int take_head(struct document_reading *r, const char *file, struct slice text)
{
	static const char *const keys[] = {"poller",  "definitions", "oids",
					   "oidsets", "devices",     NULL};
	struct slice poller;
	int err = conf_tree_parse(file, text, &r->arena, &r->root, r->e);
	err = err ? err : conf_node_check_map(r->root, keys, r->e);
	for (size_t i = 0; keys[i] && !err; i++)
		if (!conf_node_member(r->root, keys[i]))
			err = conf_node_refuse(r->root, r->e, "%s is missing", keys[i]);
	err = err ? err
		  : conf_node_text(conf_node_member(r->root, "poller"), 1, INVENTORY_NAME_MAX_BYTES,
				   &poller, r->e);
	err = err ? err
		  : conf_node_text(conf_node_member(r->root, "definitions"), DEFINITIONS_BYTES,
				   DEFINITIONS_BYTES, &r->definitions, r->e);
	if (!err && !slice_equal(poller, r->copy->poller))
		err = conf_node_refuse(conf_node_member(r->root, "poller"), r->e,
				       "is " SHOWN ", not " SHOWN, SHOWN_OF(poller),
				       SHOWN_OF(r->copy->poller));
	return err;
}

static int take_definitions(struct document_reading *r)
{
	struct inventory_copy *copy = r->copy;
	if (slice_equal(r->definitions, slice_of(copy->definitions))) {
		ASSERT(copy->snapshot); /* or there would be no hash to be equal to */
		r->conf = copy->snapshot->conf;
		inventory_conf_take(r->conf);
		return 0;
	}
	return inventory_conf_of(conf_node_member(r->root, "oids"),
				 conf_node_member(r->root, "oidsets"), copy->conf, copy->files,
				 &r->conf, r->e);
}

static int document_by_name(const void *left, const void *right)
{
	return slice_compare((*(const struct device *const *)left)->name,
			     (*(const struct device *const *)right)->name);
}

static bool same(const struct device *d, const struct device_spec *spec, struct slice host,
		 uint16_t port, const struct inventory_conf *conf)
{
	bool equal = d->conf == conf && d->port == port && slice_equal(d->address, host) &&
		     slice_equal(d->credentials_name, spec->credentials) &&
		     slice_equal(d->stored_as, spec->stored_as) && d->active == spec->active &&
		     d->begin_ms == spec->begin_ms && d->end_ms == spec->end_ms &&
		     d->oidset_name_count == spec->oidset_count;
	for (size_t i = 0; equal && i < spec->oidset_count; i++)
		equal = slice_equal(d->oidset_names[i], spec->oidsets[i]);
	return equal;
}

/* The object stays where nothing is said again of a device; its state always does. */
static int take_device(struct document_reading *r, const struct device_spec *spec)
{
	const struct inventory *before = r->copy->snapshot;
	const struct device *old = before ? inventory_device(before, spec->name) : NULL;
	struct slice host = {NULL, 0};
	uint16_t port = 0;
	int err = device_spec_check(spec, NULL, &host, &port, r->e);
	if (err)
		return err;
	if (!slice_equal(spec->poller, r->copy->poller))
		return device_refuse(spec, r->e, ERR_INVALID, "is polled by " SHOWN,
				     SHOWN_OF(spec->poller));
	const struct device *device = NULL;
	if (old && same(old, spec, host, port, r->conf)) {
		device_take(old);
		device = old;
	} else {
		device = device_new(spec, host, port, r->conf, old ? old->state : NULL);
	}
	if (!device)
		return device_refuse(spec, r->e, ERR_LIMIT, "is too long");
	r->devices[r->device_count++] = device;
	return 0;
}

static int take_devices(struct document_reading *r)
{
	struct device_spec *specs;
	size_t count;
	int err = device_list_read(conf_node_member(r->root, "devices"), &r->arena, &specs, &count,
				   r->e);
	if (err)
		return err;
	r->devices = mem_alloc_array(count + 1, sizeof(*r->devices));
	for (size_t i = 0; i < count && !err; i++)
		err = take_device(r, &specs[i]);
	if (!err && count)
		qsort(r->devices, count, sizeof(*r->devices), document_by_name);
	for (size_t i = 1; i < count && !err; i++)
		if (slice_equal(r->devices[i - 1]->name, r->devices[i]->name))
			err = errbuf_set(r->e, ERR_INVALID, "%s: device " SHOWN " stands twice",
					 r->root->file, SHOWN_OF(r->devices[i]->name));
	return err;
}

static void publish(struct document_reading *r)
{
	struct inventory_copy *copy = r->copy;
	const struct inventory *before = copy->snapshot;
	ASSERT(r->conf && r->definitions.len == DEFINITIONS_BYTES);
	copy->snapshot = inventory_new(r->conf, r->devices, r->device_count,
				       before ? before->number + 1 : 1);
	inventory_release(before);
	snprintf(copy->definitions, sizeof(copy->definitions), "%s", r->definitions.data);
}

struct inventory_copy *inventory_copy_new(struct slice poller, const struct conf *conf,
					  struct files *files)
{
	struct inventory_copy *copy = mem_zalloc(sizeof(*copy));
	*copy = (struct inventory_copy){.poller = poller, .conf = conf, .files = files};
	return copy;
}

void inventory_copy_free(struct inventory_copy *copy)
{
	if (!copy)
		return;
	inventory_release(copy->snapshot);
	mem_free(copy);
}

int inventory_copy_read(struct inventory_copy *copy, const char *file, struct slice text,
			struct errbuf *e)
{
	struct document_reading r = {.copy = copy, .e = e};
	arena_init(&r.arena, DOCUMENT_ARENA_MAX_BYTES);
	int err = take_head(&r, file, text);
	err = err ? err : take_definitions(&r);
	err = err ? err : take_devices(&r);
	if (!err)
		publish(&r);
	for (size_t i = 0; i < r.device_count; i++)
		device_release(r.devices[i]);
	mem_free(r.devices);
	inventory_conf_release(r.conf);
	arena_release(&r.arena);
	return err;
}

const struct inventory *inventory_copy_snapshot(const struct inventory_copy *copy)
{
	return copy->snapshot;
}

void inventory_copy_forget(struct inventory_copy *copy)
{
	copy->definitions[0] = 0;
}
