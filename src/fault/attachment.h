/* Files that a sender adds to a report, as they lie in `report_attachments` (doc/format-faults.md):
 * of each a head, and its content. Bytes in, struct out; what is decoded points into the bytes.
 * Pure. */
#ifndef FAULT_ATTACHMENT_H
#define FAULT_ATTACHMENT_H

#include "base/buf.h"
#include "fault/facts.h"

enum {
	FAULT_ATTACHMENTS_MAX = 100,           /* of a report */
	FAULT_ATTACHMENTS_MAX_BYTES = 8 << 20, /* likewise */
	FAULT_ATTACHMENT_MAX_BYTES = 1000000,  /* a cell has no more than 1 MiB */
	FAULT_ATTACHMENT_TEXT_MAX_BYTES = 200, /* of its name, of its type */
};

/* The parts of an attachment. The numbers are on disk. */
enum fault_attachment_part { FAULT_ATTACHMENT_HEAD = 0, FAULT_ATTACHMENT_CONTENT = 1 };

struct fault_attachment {
	struct slice name, type; /* as the sender says; may be empty */
	uint64_t bytes;
	bool kept;           /* else it was too large, and has no content here */
	struct slice packed; /* the cell of the content */
};

void fault_attachment_encode(const struct fault_attachment *attachment, struct buf *out);
/* The head. ERR_DAMAGED, ERR_VERSION. */
int fault_attachment_decode(struct slice bytes, struct fault_attachment *attachment) MUST_CHECK;

/* Appends the cell of a content. */
void fault_attachment_pack(struct slice content, struct buf *packed);
/* Appends the content that a cell has, which is `bytes` long. ERR_DAMAGED, ERR_LIMIT. */
int fault_attachment_unpack(struct slice packed, uint64_t bytes, struct buf *out) MUST_CHECK;

#endif
