/* What InfluxDB's clients ask before they write: is somebody there, is there a database, a bucket,
 * an organisation of that name. Writing itself is ingest/line.h.
 *
 *     GET  /ping                     204, or 200 and JSON with ?verbose; headers name a version
 *     GET  /health, /api/v2/health   pass, or 503 and fail while the server starts or stops
 *     GET  /ready, /api/v2/ready     since when
 *     GET  /api/v2/buckets           ?name=x: there is a bucket of that name, whatever it is
 *     GET  /api/v2/orgs              ?org=x: likewise
 *     GET  /query, POST /query       CREATE DATABASE: done. SHOW DATABASES: `default`
 *
 * Databases, buckets and organisations do not exist here: a write may name any, and whose its
 * samples are is said by the header X-Tenant or a tag. Therefore creating one is always done
 * already, and one that is asked for by name is always there. */
#ifndef API_INFLUX_INFLUX_H
#define API_INFLUX_INFLUX_H

#include "http/http.h"

extern const struct http_handler influx_ping;
extern const struct http_handler influx_health;
extern const struct http_handler influx_ready;
extern const struct http_handler influx_query;
extern const struct http_handler influx_buckets;
extern const struct http_handler influx_orgs;

#endif
