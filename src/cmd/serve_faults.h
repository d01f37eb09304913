/* Fault reports in the server: what takes them, counts them and reads them (fault/fault.h), and the
 * workers that read their bodies. One part of the server, put together and taken apart here. The
 * loop's thread. */
#ifndef CMD_SERVE_FAULTS_H
#define CMD_SERVE_FAULTS_H

#include "base/base.h"
#include "base/clock.h"

struct catalog;
struct conf;
struct fault;
struct ingest;
struct lease_session;
struct loop;
struct oops_amqp;
struct pool;
struct serve_faults;
struct store;

/* Refuses words for masks that no name can contain, and a password for AMQP that cannot be read:
 * with a sentence. */
int serve_faults_check(const struct conf *conf, struct errbuf *e) MUST_CHECK;

struct serve_faults_options {
	const struct conf *conf; /* all outlive it */
	struct store *store;
	struct clock *clock;
	struct loop *loop;
	struct lease_session *session;
};

/* Blocks for a moment. On an error *faults is NULL, or is to be stopped and freed. */
int serve_faults_open(const struct serve_faults_options *options, struct serve_faults **faults,
		      struct errbuf *e) MUST_CHECK;
/* NULL is allowed for these. */
void serve_faults_tick(struct serve_faults *faults); /* several times a second */
/* What comes by AMQP, and the counts that become series: they begin when all else has. */
void serve_faults_start(struct serve_faults *faults, struct ingest *ingest,
			struct catalog *catalog); /* faults: not NULL */
/* AMQP ends before the rest. */
void serve_faults_stop_amqp(struct serve_faults *faults);
bool serve_faults_is_amqp_over(const struct serve_faults *faults);
void serve_faults_stop(struct serve_faults *faults); /* when no request is at work any more */
bool serve_faults_are_over(const struct serve_faults *faults);
void serve_faults_free(struct serve_faults *faults); /* over */

/* Prints the address of project 1 to standard output, which Sentry's clients are given; nothing
 * where the store takes no writes and has none. `address` is that of the server. */
void serve_faults_print_dsn(const struct serve_faults *faults, const char *address);

struct fault *serve_faults_fault(const struct serve_faults *faults);
struct pool *serve_faults_pool(const struct serve_faults *faults);
/* NULL: no reports come by AMQP. */
struct oops_amqp *serve_faults_amqp(const struct serve_faults *faults);

#endif
