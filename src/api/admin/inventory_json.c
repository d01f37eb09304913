#include "api/admin/inventory_json.h"

#include "api/admin/reporter.h"
#include "wire/timetext.h"

/* ---- Out ------------------------------------------------------------------------------------- */

/* null where it is not known, or never. */
static void inventory_json_write_time(struct json_writer *w, const char *key, int64_t ms)
{
	char text[TIME_PRINT_MAX_BYTES];
	json_write_key(w, key);
	if (ms == 0 || ms == INVENTORY_FOREVER_MS)
		json_write_null(w);
	else
		json_write_string(w, (struct slice){text, time_print(text, ms)});
}

static void inventory_json_write_state(const struct device *device, int64_t heard_ms,
				       int64_t now_ms, struct json_writer *w)
{
	struct device_status status = device_state_read(device->state);
	const char *state = "waiting";
	struct slice reason = SLICE("");
	int64_t since_ms = 0;
	if (!device_is_active(device, now_ms)) {
		state = "inactive";
		reason = !device->active             ? SLICE("it is switched off")
			 : now_ms < device->begin_ms ? SLICE("its begin is to come")
						     : SLICE("its end has passed");
		since_ms = now_ms >= device->end_ms ? device->end_ms : 0;
	} else if (device->problem.len) {
		state = "misconfigured";
		reason = device->problem;
	} else if (device->poller.len && !heard_ms) {
		reason = SLICE("its poller has not been heard of");
	} else if (device->poller.len && reporter_is_silent(heard_ms, now_ms)) {
		state = "failing";
		reason = SLICE("its poller is not heard of any more");
		since_ms = heard_ms;
	} else if (status.failing_since_ms) {
		state = "failing";
		reason = slice_of(status.error);
		since_ms = status.failing_since_ms;
	} else if (status.last_success_ms) {
		state = "ok";
	}
	json_put_string(w, "state", slice_of(state));
	json_put_string(w, "reason", reason);
	inventory_json_write_time(w, "since", since_ms);
	inventory_json_write_time(w, "lastSuccess", status.last_success_ms);
}

void device_json(const struct device *device, bool whole, int64_t heard_ms, int64_t now_ms,
		 struct json_writer *w)
{
	json_write_object_begin(w);
	json_put_string(w, "name", device->name);
	json_put_string(w, "storedAs", device_stored_as(device));
	if (whole) {
		json_put_string(w, "address", device->address);
		json_put_u64(w, "port", device->port);
		json_put_string(w, "credentials", device->credentials_name);
	}
	json_put_string(w, "poller", device->poller);
	json_put_bool(w, "active", device->active);
	inventory_json_write_time(w, "begin", device->begin_ms);
	inventory_json_write_time(w, "end", device->end_ms);
	json_put_strings(w, "oidsets", device->oidset_names, device->oidset_name_count);
	inventory_json_write_state(device, heard_ms, now_ms, w);
	json_write_object_end(w);
}

static void oid_json(const struct oid_def *oid, struct json_writer *w)
{
	json_write_object_begin(w);
	json_put_string(w, "name", oid->name);
	json_put_string(w, "oid", oid->oid);
	json_put_string(w, "type", slice_of(oid_type_text(oid->type)));
	json_put_bool(w, "scalar", oid->scalar);
	json_put_bool(w, "aggregate", oid->aggregate);
	json_put_string(w, "alias", oid->endpoint_alias.data ? oid->endpoint_alias : SLICE(""));
	json_write_object_end(w);
}

void oidset_json(const struct oidset *set, struct json_writer *w)
{
	json_write_object_begin(w);
	json_put_string(w, "name", set->name);
	json_put_string(w, "setName", set->set_name);
	json_put_bool(w, "shipped", set->shipped);
	json_put_i64(w, "frequencyMs", set->frequency_ms);
	json_put_string(w, "kind", slice_of(oidset_kind_text(set->kind)));
	json_put_string(w, "correlator", slice_of(set->correlator->name));
	json_put_strings(w, "tags", set->path_tags, set->path_tag_count);
	json_write_key(w, "aggregatesMs");
	json_write_array_begin(w);
	for (size_t i = 0; i < set->aggregate_count; i++)
		json_write_i64(w, set->aggregates_ms[i]);
	json_write_array_end(w);
	json_put_i64(w, "ttlMs", set->ttl_ms);
	json_put_string(w, "queue", set->queue->name);
	json_write_key(w, "oids");
	json_write_array_begin(w);
	for (size_t i = 0; i < set->oid_count; i++)
		oid_json(set->oids[i], w);
	json_write_array_end(w);
	json_write_object_end(w);
}

void interface_json(struct slice device, const struct inventory_row *row, struct json_writer *w)
{
	json_write_object_begin(w);
	json_put_string(w, "device", device);
	json_put_string(w, "name", row->name);
	inventory_json_write_time(w, "begin", row->begin_ms);
	inventory_json_write_time(w, "end", row->end_ms);
	json_write_key(w, "attributes");
	json_write_raw(w, row->attributes);
	json_write_object_end(w);
}

void device_spec_json(const struct device_spec *spec, struct json_writer *w)
{
	json_write_object_begin(w);
	if (spec->name.data)
		json_put_string(w, "name", spec->name);
	json_put_string(w, "address", spec->address);
	json_put_string(w, "credentials", spec->credentials);
	if (spec->poller.len)
		json_put_string(w, "poller", spec->poller);
	json_put_bool(w, "active", spec->active);
	if (spec->begin_ms != DEVICE_BEGIN_NOW)
		inventory_json_write_time(w, "begin", spec->begin_ms);
	if (spec->end_ms != INVENTORY_FOREVER_MS)
		inventory_json_write_time(w, "end", spec->end_ms);
	if (spec->oidsets) {
		json_put_strings(w, "oidsets", spec->oidsets, spec->oidset_count);
	}
	json_write_object_end(w);
}

/* ---- In -------------------------------------------------------------------------------------- */

static int inventory_json_wrong(const struct json *member, const char *what, struct errbuf *e)
{
	return errbuf_set(e, ERR_INVALID, SHOWN " %s", SHOWN_OF(member->key), what);
}

static int inventory_json_take_text(const struct json *member, struct slice *out, struct errbuf *e)
{
	if (member->type != JSON_T_STRING)
		return inventory_json_wrong(member, "must be a text", e);
	*out = member->text;
	return 0;
}

/* A text of ISO 8601, or seconds or ms since 1970; null is for ever. */
static int inventory_json_take_time(const struct json *member, int64_t *ms, struct errbuf *e)
{
	struct errbuf why;
	if (member->type == JSON_T_NULL) {
		*ms = INVENTORY_FOREVER_MS;
		return 0;
	}
	if (member->type != JSON_T_STRING && member->type != JSON_T_NUMBER)
		return inventory_json_wrong(member, "must be a time", e);
	if (time_parse_absolute(member->text, ms, &why))
		return inventory_json_wrong(member, why.text, e);
	return 0;
}

static int take_oidsets(const struct json *member, struct arena *arena, struct device_spec *spec,
			struct errbuf *e)
{
	if (member->type != JSON_T_ARRAY)
		return inventory_json_wrong(member, "must be a list of names", e);
	struct slice *names = arena_alloc(arena, (member->count + 1) * sizeof(*names));
	if (!names)
		return errbuf_set(e, ERR_LIMIT, "the request is too large");
	spec->oidsets = names;
	spec->oidset_count = 0;
	for (const struct json *n = member->first; n; n = n->next) {
		if (n->type != JSON_T_STRING)
			return inventory_json_wrong(member, "must be a list of names", e);
		names[spec->oidset_count++] = n->text;
	}
	return 0;
}

static int inventory_json_take_member(const struct json *member, struct arena *arena,
				      struct device_spec *spec, struct errbuf *e)
{
	struct slice key = member->key;
	if (slice_equal(key, SLICE("name")))
		return inventory_json_take_text(member, &spec->name, e);
	if (slice_equal(key, SLICE("address")))
		return inventory_json_take_text(member, &spec->address, e);
	if (slice_equal(key, SLICE("credentials")))
		return inventory_json_take_text(member, &spec->credentials, e);
	if (slice_equal(key, SLICE("poller")))
		return inventory_json_take_text(member, &spec->poller, e);
	if (slice_equal(key, SLICE("begin")))
		return inventory_json_take_time(member, &spec->begin_ms, e);
	if (slice_equal(key, SLICE("end")))
		return inventory_json_take_time(member, &spec->end_ms, e);
	if (slice_equal(key, SLICE("oidsets")))
		return take_oidsets(member, arena, spec, e);
	if (!slice_equal(key, SLICE("active")))
		return inventory_json_wrong(
			member,
			"is not known: name, address, credentials, active, begin, end, "
			"oidsets and poller are",
			e);
	if (member->type != JSON_T_BOOL)
		return inventory_json_wrong(member, "must be true or false", e);
	spec->active = member->boolean;
	return 0;
}

int device_spec_from_json(const struct json *object, struct arena *arena, struct device_spec *spec,
			  struct errbuf *e)
{
	int err = 0;
	if (object->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "a device is an object");
	for (const struct json *n = object->first; n && !err; n = n->next)
		err = inventory_json_take_member(n, arena, spec, e);
	return err;
}
