#include "api/esmond/path.h"

#include "api/esmond/name.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"

const struct device *v2_find_device(const struct inventory *inventory, struct slice part,
				    struct arena *arena)
{
	struct slice name;
	const struct device *device = inventory_device(inventory, part);
	if (device || v2_name_decode(part, arena, &name))
		return device;
	return inventory_device(inventory, name);
}

/* ---- Endpoints ------------------------------------------------------------------------------- */

bool v2_is_endpoint(const struct oidset *oidset, const struct oid_def *oid)
{
	return oidset->kind == OIDSET_COUNTERS && oid->endpoint_alias.len && !oid->scalar &&
	       oidset->path_tag_count == 1;
}

static bool find_in(const struct oidset *oidset, struct slice alias, struct v2_endpoint *endpoint)
{
	for (size_t i = 0; i < oidset->oid_count; i++) {
		const struct oid_def *oid = oidset->oids[i];
		if (v2_is_endpoint(oidset, oid) && slice_equal(oid->endpoint_alias, alias)) {
			*endpoint = (struct v2_endpoint){oidset, oid};
			return true;
		}
	}
	return false;
}

bool v2_find_endpoint(const struct device *device, struct slice alias, struct slice oidset,
		      struct v2_endpoint *endpoint)
{
	for (size_t i = 0; i < device->oidset_count; i++) {
		const struct oidset *candidate = device->oidsets[i];
		if (oidset.len && !slice_equal(oidset, candidate->name) &&
		    !slice_equal(oidset, candidate->set_name))
			continue;
		if (find_in(candidate, alias, endpoint))
			return true;
	}
	return false;
}

bool v2_next_endpoint(const struct device *device, size_t *at, struct v2_endpoint *endpoint)
{
	size_t number = 0;
	for (size_t i = 0; i < device->oidset_count; i++) {
		const struct oidset *oidset = device->oidsets[i];
		for (size_t j = 0; j < oidset->oid_count; j++, number++) {
			struct v2_endpoint first;
			if (number < *at || !v2_is_endpoint(oidset, oidset->oids[j]))
				continue;
			struct slice alias = oidset->oids[j]->endpoint_alias;
			if (!v2_find_endpoint(device, alias, SLICE(""), &first) ||
			    first.oid != oidset->oids[j] || first.oidset != oidset)
				continue;
			*at = number + 1;
			*endpoint = first;
			return true;
		}
	}
	return false;
}

/* ---- Links ----------------------------------------------------------------------------------- */

void v2_device_uri(struct slice device, struct buf *out)
{
	buf_append_text(out, "/v2/device/");
	v2_name_encode(device, out);
	buf_append_char(out, '/');
}

void v2_interface_uri(struct slice device, struct slice interface, struct buf *out)
{
	v2_device_uri(device, out);
	buf_append_text(out, "interface/");
	v2_name_encode(interface, out);
}

int64_t v2_id_of(struct slice a, struct slice b, int64_t c)
{
	uint64_t hash = hash64(a.data, a.len, (uint64_t)c);
	hash = hash64(b.data, b.len, hash);
	return (int64_t)(hash & ((UINT64_C(1) << 53) - 1));
}
