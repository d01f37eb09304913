/* Devices of /v2, those of a kind, since power strips are devices that have outlets, and what lies
 * below them. */
#ifndef API_V2_DEVICE_H
#define API_V2_DEVICE_H

#include "http/http.h"
#include "inventory/inventory.h"

struct v2_device_kind {
	const char *noun;  /* of the path: /v2/device/ */
	const char *child; /* what lies below one: .../interface/ */
	bool (*is)(const struct device *device);
};

/* `/v2/device/NAME/` */
void v2_device_kind_uri(const struct v2_device_kind *kind, struct slice device, struct buf *out);

/* Those that live at the time that is asked for, as a plain list; and one of them, with the name
 * that the path has. */
void v2_device_list(struct http_request *request, const struct v2_device_kind *kind);
void v2_device_get(struct http_request *request, const struct v2_device_kind *kind);

/* /v2/device/NAME/interface/... with so many parts, at least three. */
void v2_below_device(struct http_request *request, size_t parts);
/* /v2/device/NAME/interface/IF/ALIAS.. */
void v2_endpoint_begin(struct http_request *request, size_t parts);

#endif
