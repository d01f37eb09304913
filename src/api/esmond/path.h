/* Who is meant by a path of /v2: devices, OIDSets and the endpoints of interfaces; and the paths of
 * these. Pure: over a picture of the inventory. */
#ifndef API_ESMOND_PATH_H
#define API_ESMOND_PATH_H

#include "inventory/inventory.h"

struct arena;
struct buf;

/* The device that a part of a path names: as it stands there, or decoded. NULL: none. */
const struct device *v2_find_device(const struct inventory *inventory, struct slice part,
				    struct arena *arena);

/* An endpoint of a device's interfaces: an OID of one of its OIDSets that has an alias, stored by
 * interface. */
struct v2_endpoint {
	const struct oidset *oidset;
	const struct oid_def *oid;
};

/* Whether such rows have this OID for their endpoint: the path of the OIDSet is an interface. */
bool v2_is_endpoint(const struct oidset *oidset, const struct oid_def *oid);

/* Endpoint number *at of the device (0 at first), which moves on; each alias once, from the first
 * OIDSet that has it. False: there are no more. */
bool v2_next_endpoint(const struct device *device, size_t *at, struct v2_endpoint *endpoint);

/* By alias (`in`, `error/out`), of a certain OIDSet if that is not empty. */
bool v2_find_endpoint(const struct device *device, struct slice alias, struct slice oidset,
		      struct v2_endpoint *endpoint);

/* `/v2/device/NAME/`, `/v2/device/NAME/interface/IF` */
void v2_device_uri(struct slice device, struct buf *out);
void v2_interface_uri(struct slice device, struct slice interface, struct buf *out);

/* A number for what has none: always the same of the same names, within what JSON's readers keep.
 */
int64_t v2_id_of(struct slice a, struct slice b, int64_t c);

#endif
