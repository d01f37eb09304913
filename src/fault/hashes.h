/* Which group each hash of a report leads to (group.h). A report has two, of its application's
 * frames and of all frames. The first of them that is known finds the group, also where the other
 * one is new: so a fault stays in its group when its sender marks other frames as the application's
 * than before. Where none is known, the hash of the application's frames is a new group. Either way
 * all hashes of the report are known from then on.
 *
 * What is known lies in the store (doc/format-faults.md, `fault_hashes`), and what was needed of
 * late lies here. It is forgotten after a day, so that what another process has stored meanwhile is
 * found. Two processes that meet a fault for the first time at one moment may begin a group each.
 *
 * One thread. */
#ifndef FAULT_HASHES_H
#define FAULT_HASHES_H

#include "base/hash_table.h"
#include "fault/facts.h"
#include "fault/group.h"
#include "store/store.h"

enum { FAULT_HASHES_OF_REPORT = 2 };

/* What is known of a hash. A slot of a hash table. */
struct fault_known {
	struct hash128 key; /* of the tenant and the hash */
	int64_t until_ms;   /* monotonic: it is read again then */
	enum {
		FAULT_HASH_NEW,      /* it is to be stored with the next report */
		FAULT_HASH_ENTERING, /* a report is on its way with it */
		FAULT_HASH_STORED,
		FAULT_HASH_LEFT_OUT, /* there was no room, or its cell is damaged */
	} state;
	uint8_t group_bytes;
	char group[FAULT_GROUP_NAME_BYTES];
};

/* Zeroed: empty. Hashes that were needed last are in `young`; when it is full it takes the place of
 * `old`. */
struct fault_hashes {
	uint64_t seed; /* a secret: senders choose hashes */
	struct hash_table young, old;
};
void fault_hashes_release(struct fault_hashes *hashes);

/* The way of one report to its group. */
struct fault_lookup {
	struct fault_lookup_hash {
		struct slice text; /* the report's */
		struct fault_known known;
		bool is_known;
		bool enters;                   /* it is to be stored */
		struct store_request *request; /* NULL: it was known here */
	} hashes[FAULT_HASHES_OF_REPORT];
	size_t count; /* 0: the report has no group */
	char group[FAULT_GROUP_NAME_BYTES];
	size_t group_bytes;
};

/* Begins it. Adds to `read` what is to be read for it, FAULT_HASHES_OF_REPORT requests at most, for
 * which there is room. The texts of the facts stay as long as the lookup. `now_ms` is monotonic. */
void fault_hashes_ask(struct fault_hashes *hashes, struct slice tenant,
		      const struct fault_facts *facts, int64_t now_ms, struct store_read *read,
		      struct fault_lookup *lookup);
/* The read is done, and not freed yet: finds the group. New hashes are stored while *room lasts,
 * which becomes less by each; others are known here only. `now_ms` is monotonic, `wall_ms` the wall
 * clock. */
void fault_hashes_choose(struct fault_hashes *hashes, struct fault_lookup *lookup, int64_t now_ms,
			 int64_t wall_ms, size_t *room);
/* Gives facts the group, whose text is the lookup's. */
void fault_lookup_apply(const struct fault_lookup *lookup, struct fault_facts *facts);
/* Adds to a write what is to be stored of it. Errors as of store_cell_put. */
int fault_lookup_put(const struct fault_lookup *lookup, struct slice tenant, int64_t stamp_us,
		     int64_t wall_ms, struct store_write *write) MUST_CHECK;
/* The write is over. If it has failed the next report that has the hash stores it. */
void fault_hashes_note_written(struct fault_hashes *hashes, const struct fault_lookup *lookup,
			       bool failed);

#endif
