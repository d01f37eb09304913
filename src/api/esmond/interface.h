/* Interfaces of /v2, and what lies below a device. */
#ifndef API_ESMOND_INTERFACE_H
#define API_ESMOND_INTERFACE_H

#include "api/esmond/rows.h"

/* /v2/device/NAME/interface/... with so many parts, at least three. */
void v2_below_device(struct http_request *request, size_t parts);

/* /v2/device/NAME/interface/IF/ALIAS.. */
void v2_endpoint_begin(struct http_request *request, size_t parts);

#endif
