/* Roll-ups as the configuration wants them. The loop's thread. */
#ifndef CMD_SERVE_ROLLUPS_H
#define CMD_SERVE_ROLLUPS_H

#include "base/buf.h"
#include "rollup/backfill.h"
#include "rollup/deletions.h"
#include "marks/redis/url.h"
#include "retention/retention.h"
#include "rollup/rollup.h"

struct conf;
struct files;
struct loop;

struct serve_rollups {
	struct rollup_site site;
	struct retention_rules retention; /* what else than the options say is kept for how long */
	struct partitions own;
	bool share; /* these are shared with others that say `any` */
	const struct conf *conf;
	struct redis_url redis; /* rollup.tracking; no host: the store */
	struct stored_settings settings;
	bool keeps_late;           /* points that come after their slot is closed are kept */
	char name[256];            /* of this process among those that roll up */
	struct rollup *rollup;     /* NULL: this process rolls nothing up */
	struct backfill *backfill; /* NULL likewise */
};

/* What belongs together is checked; the sentence names the option, its file and line. */
int serve_rollups_read(struct serve_rollups *rollups, const struct conf *conf, struct files *files,
		       struct errbuf *e) MUST_CHECK;
/* Before anything is written; blocks for a moment. */
int serve_rollups_open(struct serve_rollups *rollups, struct store *store,
		       struct errbuf *e) MUST_CHECK;
void serve_rollups_start(struct serve_rollups *rollups, struct loop *loop);
void serve_rollups_stop(struct serve_rollups *rollups);
/* It has stopped, or never started. */
bool serve_rollups_over(const struct serve_rollups *rollups);
void serve_rollups_free(struct serve_rollups *rollups);
/* What deletes samples, and their roll-ups with them. */
struct rollup_deletions *serve_rollups_deletions(struct serve_rollups *rollups,
						 struct catalog *catalog, struct loop *loop);

/* For queries (query/query.h); the owner is the rollups. */
int64_t serve_rollups_before_ms(void *owner, struct slice tenant, struct slice metric);
int64_t serve_rollups_since_ms(void *owner, struct slice metric, size_t granularity);
bool serve_rollups_is_counter(void *owner, struct slice metric);

#endif
