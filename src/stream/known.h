/* What the store knows of one incarnation of a stream: whether it is there, and which of its bytes
 * are in blocks, and which in chunks that wait for that. For threads that may wait. */
#ifndef STREAM_KNOWN_H
#define STREAM_KNOWN_H

#include "base/exec.h"
#include "stream/site.h"
#include "stream/tables.h"

struct stream_waiting {
	struct chunk_place place;
	size_t stored_bytes;
};

enum { STREAM_NOTES_MAX = 8 };

struct stream_known {
	bool made, here, appended;
	int64_t made_ms;
	struct offsets sealed; /* in blocks */
	struct offsets held;   /* these, and chunks */
	/* Bytes below have gone, or are to go: they are neither in `sealed` nor in `held`, and are
	 * not taken again. */
	uint64_t kept_from;
	uint64_t deleted_to; /* somebody deleted the bytes below; 0: nobody did */
	/* The offsets of all notes of deletions, the least ones of them where there are more. */
	uint64_t deleted[STREAM_NOTES_MAX];
	size_t deleted_count;
	struct stream_kept kept; /* as it is noted; what was deleted since may go beyond it */
	struct offsets noted;    /* in blocks, from kept.from on */
	uint64_t tail_data_bytes, tail_stored_bytes;
	int64_t oldest_ms; /* when the first of its chunks was received; 0: there is none */
	/* The chunks that wait, by sequence id; as many as were asked for. */
	struct stream_waiting *waiting;
	size_t waiting_count, waiting_room;
};

/* Zeroed before; what was there is released. ERR_DAMAGED; or the store's error, with a sentence. */
int stream_known_read(struct stream_known *known, const struct stream_site *site,
		      struct task_queue *queue, const struct stream_id *id, size_t waiting_max,
		      struct errbuf *e) MUST_CHECK;
/* The same for lists: chunks are not looked at, and may be damaged. */
int stream_known_list(struct stream_known *known, const struct stream_site *site,
		      struct task_queue *queue, const struct stream_id *id,
		      struct errbuf *e) MUST_CHECK;
/* The same without chunks. */
int stream_known_read_blocks(struct stream_known *known, const struct stream_site *site,
			     struct task_queue *queue, const struct stream_id *id,
			     struct errbuf *e) MUST_CHECK;
void stream_known_release(struct stream_known *known);

/* Gives each stream of a tenant to `each`, in the order of names and incarnations; `after`: only
 * those behind this one, or NULL. What it is given lies in the store's answer. Stops at the first
 * error of `each`. ERR_DAMAGED; or the store's error, with a sentence. */
int stream_each(const struct stream_site *site, struct task_queue *queue, struct slice tenant,
		const struct stream_id *after,
		int (*each)(const struct stream_made *made, void *owner), void *owner,
		struct errbuf *e) MUST_CHECK;

#endif
