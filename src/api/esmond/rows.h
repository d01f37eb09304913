/* Going through the versioned rows of devices: their interfaces, or their outlets, that match
 * look-ups and lived at some time.
 *
 * One device after the other is read from the store; the rows of each come in the order of their
 * names, and of one name in that of time. Embedded in its owner, whose answer it works for: it
 * stops while the client does not read, and rests between devices so that others get their turn.
 *
 * Interfaces whose ifAlias contains `:hide:` are passed over, unless the configuration shows them.
 * Threads: the loop's. */
#ifndef API_ESMOND_ROWS_H
#define API_ESMOND_ROWS_H

#include "api/esmond/answer.h"
#include "api/esmond/lookup.h"
#include "api/esmond/params.h"

enum { V2_FIELDS_MAX = 8 };

struct v2_row {
	const struct device *device;
	const struct inventory_row *row;
	bool hidden;
	struct slice values[V2_FIELDS_MAX]; /* by field; a missing one has NULL data */
};

struct v2_rows {
	/* The caller fills these in. */
	struct v2_answer *answer;
	enum oidset_kind kind;
	/* Names of fields, NULL-terminated: `device`, `device__name`, or keys of attributes. */
	const char *const *fields;
	struct v2_lookups lookups;
	int64_t begin_ms, end_ms;    /* inclusive */
	const struct device *device; /* only this one; NULL: all */
	struct slice name;           /* only rows that it names, also as `xe-0_2_0`; NULL: all */
	bool with_hidden;            /* take them, too; row->hidden tells */
	/* Each row that matches. False: that is enough, `ended` comes next. */
	bool (*take)(struct v2_rows *rows, const struct v2_row *row);
	/* A device that no look-up leaves out has no rows of that time; may be NULL. */
	void (*bare)(struct v2_rows *rows, const struct device *device);
	/* Not called from within v2_rows_start; err 0, or the answer is to be failed with it. */
	void (*ended)(struct v2_rows *rows, int err);

	struct errbuf error;

	/* private */
	uint32_t magic; /* from the start to the release */
	struct inventory_rows_read read;
	struct arena arena;
	size_t next; /* device */
	size_t row;  /* of those that were read of it */
	bool has_rows, reading;
};

/* The fields of interfaces and of outlets that look-ups may be on. */
extern const char *const v2_interface_fields[];
enum {
	FIELD_DEVICE,
	FIELD_DEVICE_NAME,
	FIELD_IF_NAME,
	FIELD_IF_ALIAS,
	FIELD_IF_DESCR,
	FIELD_IP_ADDR,
	FIELD_PHYS_ADDRESS,
};
extern const char *const v2_outlet_fields[];

/* Takes the answer's `advance` for itself until `ended`. */
void v2_rows_start(struct v2_rows *rows);
/* At any time, before the owner is freed. */
void v2_rows_release(struct v2_rows *rows);

/* The members of a row's attributes, into the object that is open. */
void v2_put_attributes(struct v2_answer *answer, const struct inventory_row *row);

#endif
