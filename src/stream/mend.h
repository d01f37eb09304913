/* Notes of streams after a loss: bytes that are said to be in blocks, and are in none, become a
 * hole. Of a store that nobody else has open. */
#ifndef STREAM_MEND_H
#define STREAM_MEND_H

#include "base/exec.h"
#include "stream/site.h"
#include "stream/tables.h"

/* Looks at all streams, and tells each range of bytes that is lost; lines of it count as not read,
 * too. Notes that cannot be read stay as they are. For threads that may wait. The store's error,
 * with a sentence: streams that were not looked at yet are as before. */
int stream_mend(const struct stream_site *site, struct task_queue *queue,
		void (*tell)(void *owner, const struct stream_id *id,
			     const struct offset_range *lost),
		void *owner, struct errbuf *e) MUST_CHECK;

#endif
