/* A stream of document K (Chukwa): the bytes that one source emits under one name, numbered from
 * zero. Its four names, its tenant, and its incarnation: a number by lot, made when whoever sends
 * it begins it. The bytes at an offset of an incarnation never change.
 *
 * The text form of a stream is its address: `source/cluster/datatype/name@incarnation`, the last
 * one 16 hexadecimal digits. In the first three names `/` and `%` are written as %2F and %25; a
 * name is everything up to the last `@`. So `host1/web/syslog//var/log/messages@00c1d2e3f4a5b6c7`.
 *
 * Pure; any thread. */
#ifndef MODEL_STREAM_H
#define MODEL_STREAM_H

#include "base/buf.h"
#include "base/mem.h"

enum {
	STREAM_SOURCE_MAX_BYTES = 255, /* of a host's name */
	STREAM_CLUSTER_MAX_BYTES = 64,
	STREAM_DATATYPE_MAX_BYTES = 64,
	STREAM_NAME_MAX_BYTES = 1024,
	STREAM_INCARNATION_DIGITS = 16,
	/* The first three may be three times as long, all of them escaped. With the zero that is
	 * behind a text while it is made. */
	STREAM_ADDRESS_MAX_BYTES = 3 * (STREAM_SOURCE_MAX_BYTES + STREAM_CLUSTER_MAX_BYTES +
					STREAM_DATATYPE_MAX_BYTES) +
				   STREAM_NAME_MAX_BYTES + STREAM_INCARNATION_DIGITS + 5,
};

/* What the byte behind the last one of any stream is at most: sequence ids are signed numbers of 64
 * bits at Chukwa. */
#define STREAM_OFFSET_MAX INT64_MAX

struct stream_names {
	struct slice source, cluster, datatype, name;
};

/* ERR_INVALID with a sentence: a name is too long, is not UTF-8, or has control characters; the
 * source, the cluster or the datatype is empty; or the datatype is a row of its own in
 * chukwa_metadata. */
int stream_names_check(const struct stream_names *names, struct errbuf *e) MUST_CHECK;

bool stream_names_equal(const struct stream_names *a, const struct stream_names *b);
/* Whether names are those that are asked for, of which any may be left out (NULL data). */
bool stream_names_fit(const struct stream_names *asked, const struct stream_names *names);

/* Appends the address of names that were checked. */
void stream_address_put(const struct stream_names *names, uint64_t incarnation, struct buf *out);
/* The inverse; names that were escaped are in the arena, the others in the text. ERR_INVALID with a
 * sentence, also where stream_names_check has one; ERR_LIMIT: the arena is full. */
int stream_address_parse(struct slice text, struct arena *arena, struct stream_names *names,
			 uint64_t *incarnation, struct errbuf *e) MUST_CHECK;

#endif
