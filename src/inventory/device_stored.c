/* A device as it is stored: a cell of table `devices`, its value a JSON object
 *
 *     {"address":"r1.example","port":161,"credentials":"lab","active":true,"begin":1370044800000,
 *      "end":253402127999000,"oidsets":["FastPollHC"],"poller":"site_b"}
 *
 * with times in ms, `poller` only where somebody else than the server polls it, `storedAs` only
 * where it is not the device's name. Keys that are not known are passed over: a later version may
 * have put them. */
#include "base/buf.h"
#include "inventory/private.h"
#include "wire/json.h"

void device_encode(const struct device *device, struct buf *out)
{
	struct json_writer w;
	json_writer_init(&w, out);
	json_write_object_begin(&w);
	json_put_string(&w, "address", device->address);
	json_put_u64(&w, "port", device->port);
	json_put_string(&w, "credentials", device->credentials_name);
	json_put_bool(&w, "active", device->active);
	json_put_i64(&w, "begin", device->begin_ms);
	json_put_i64(&w, "end", device->end_ms);
	json_put_strings(&w, "oidsets", device->oidset_names, device->oidset_name_count);
	if (device->poller.len) {
		json_put_string(&w, "poller", device->poller);
	}
	if (device->stored_as.len) {
		json_put_string(&w, "storedAs", device->stored_as);
	}
	json_write_object_end(&w);
}

static int decode_oidsets(const struct json *list, struct arena *arena, struct device_spec *spec)
{
	struct slice *names = arena_alloc(arena, (list->count + 1) * sizeof(*names));
	if (!names)
		return ERR_LIMIT;
	for (const struct json *n = list->first; n; n = n->next) {
		if (n->type != JSON_T_STRING)
			return ERR_INVALID;
		names[spec->oidset_count++] = n->text;
	}
	spec->oidsets = names;
	return 0;
}

int device_decode(struct slice name, struct slice text, struct arena *arena,
		  struct device_spec *spec)
{
	struct json *root;
	const struct json *oidsets = NULL;
	struct slice host = {NULL, 0};
	int64_t port = 0;
	*spec = device_spec_preset();
	spec->name = name;
	int err = json_parse(text, arena, &root, NULL);
	err = err ? err : json_get_text(root, "address", &host, NULL);
	err = err ? err : json_get_i64(root, "port", &port, NULL);
	err = err ? err : json_get_text(root, "credentials", &spec->credentials, NULL);
	err = err ? err : json_get_bool(root, "active", &spec->active, NULL);
	err = err ? err : json_get_i64(root, "begin", &spec->begin_ms, NULL);
	err = err ? err : json_get_i64(root, "end", &spec->end_ms, NULL);
	err = err ? err : json_get_array(root, "oidsets", &oidsets, NULL);
	err = err ? err : decode_oidsets(oidsets, arena, spec);
	if (!err && json_member(root, "poller"))
		err = json_get_text(root, "poller", &spec->poller, NULL);
	if (!err && json_member(root, "storedAs"))
		err = json_get_text(root, "storedAs", &spec->stored_as, NULL);
	if (err)
		return err;
	const char *address = arena_printf(arena, "[%.*s]:%d", (int)host.len, host.data, (int)port);
	spec->address = address ? slice_of(address) : SLICE("");
	return address ? 0 : ERR_LIMIT;
}
