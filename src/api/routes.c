#include "api/routes.h"

#include "api/self.h"
#include "api/store_admin.h"

/* A row: verb, path, whether all below it belongs to it too, role, limits of the body as sent and
 * as decoded, handler, help, example (a path, or a command line). Of a path and a prefix of it, the
 * path comes first. */
#define NO_BODY 0, 0

const struct http_route api_routes[] = {
	{VERB_GET, "/", false, ROLE_READ, NO_BODY, &self_page,
	 "This page: what is collected, how the server is doing, and every route.", "/"},
	{VERB_GET, "/style.css", false, ROLE_NONE, NO_BODY, &self_style,
	 "What this page looks like.", "/style.css"},
	{VERB_GET, "/metrics", false, ROLE_READ, NO_BODY, &self_metrics,
	 "Counters and gauges of this server, as Prometheus reads them.", "/metrics"},
	{VERB_GET, "/-/healthy", false, ROLE_NONE, NO_BODY, &self_healthy,
	 "200 as long as the server answers at all.", "/-/healthy"},
	{VERB_GET, "/-/ready", false, ROLE_NONE, NO_BODY, &self_ready,
	 "200 once data can be written and read, 503 before.", "/-/ready"},
	{VERB_GET, "/api/stats", false, ROLE_READ, NO_BODY, &store_admin_stats,
	 "What is stored: series, samples, bytes per sample by table, sizes.", "/api/stats"},
	{VERB_GET, "/api/verify", false, ROLE_ADMIN, NO_BODY, &store_admin_verify,
	 "Reads everything that is stored and checks it; may take long.", "granary verify"},
};

const size_t api_route_count = ARRAY_LEN(api_routes);
