/* A report as it is understood: from a document of some dialect to attributes, facts and an id.
 *
 * Whatever is in a document is kept: each member of its object is an attribute, a text or any JSON.
 * Attributes that are known (attributes.c) have one name, whatever the dialect calls them; what has
 * a known name but another shape is kept as it is, and named in `refused`, which the body has as an
 * attribute; so is what a reader has mended (json.h). Secrets are masked (mask.h) before anything
 * else sees them, but for the digest.
 *
 * The document's own id is taken if it can be one; else the report gets one made of its digest, and
 * the attribute `reported.id` keeps the sender's. `id` is no attribute of the body, and neither is
 * `date`: the sender's becomes `reported.date`, as a report is filed by when it was received. Its
 * `refused` becomes `reported.refused`.
 *
 * Pure; memory from the caller's arena. */
#ifndef FAULT_REPORT_H
#define FAULT_REPORT_H

#include "base/hash.h"
#include "base/mem.h"
#include "fault/facts.h"
#include "fault/mask.h"
#include "wire/json.h"

enum fault_dialect {
	FAULT_OF_OOPS,   /* JSON with the names of O; those of python-oops are known there, too */
	FAULT_OF_PYTHON, /* python-oops: BSON, rfc822; durations are in seconds */
	FAULT_OF_SENTRY, /* an event of Sentry's clients (sentry.h) */
};

enum {
	FAULT_REFUSED_MAX = 20,          /* parts named; more are counted */
	FAULT_ATTRIBUTE_MAX_BYTES = 200, /* of a name; a longer one is cut and closed by a hash */
};

struct fault_report {
	struct slice id;
	bool id_given; /* by the sender; else it is made of the digest */
	/* Keyed, of the document before masking, without its id, unless that is kept as
	 * reported.id: the same content has the same digest, whatever the order of its members. */
	struct hash128 digest;
	struct fault_facts facts;
	/* JSON: an object of all attributes, by name ascending, as are the members of objects in
	 * it. `duration` is in ms. */
	struct slice body;
	struct slice refused[FAULT_REFUSED_MAX]; /* a sentence each */
	size_t refused_count;                    /* of all; may be more than there are sentences */
};

struct fault_report_options {
	uint64_t digest_key;
	const struct fault_masks *masks;
	size_t body_max_bytes;
};

/* `id`, where it has data, is the one that the sender gave beside the document (PUT /oops/ID): it
 * wins over the document's. A report that is cut (json.h) has neither. The document's tree is
 * changed. ERR_INVALID: the document is no object, or `id` cannot be one; ERR_LIMIT: the body is
 * too large, or the arena is full; with a sentence.
 */
int fault_report_read(struct json *document, enum fault_dialect dialect, struct slice id,
		      const struct fault_report_options *options, struct arena *arena,
		      struct fault_report *report, struct errbuf *e) MUST_CHECK;

/* 1 to FAULT_ID_MAX_BYTES of UTF-8 without `/`, blanks and control characters, and not `.`, `..`,
 * `days`, `groups`, `live`, `messages` or `projects`: it is a part of addresses. */
bool fault_id_valid(struct slice id);

#endif
