/* What the server says about itself: `/`, `/style.css`, `/metrics`, `/-/healthy`, `/-/ready`. */
#ifndef API_ADMIN_HOME_PAGE_H
#define API_ADMIN_HOME_PAGE_H

#include "http/http.h"

extern const struct http_handler self_page;
extern const struct http_handler self_style;
extern const struct http_handler self_metrics;
extern const struct http_handler self_healthy;
extern const struct http_handler self_ready;

/* All counters and gauges, and those of the process, in the Prometheus text format 0.0.4. */
void self_metrics_text(struct buf *out);

#endif
