/* What the rules of retention.h and keep.h share. Private to retention/. */
#ifndef RETENTION_PATTERN_H
#define RETENTION_PATTERN_H

#include "base/base.h"

/* A `*` of the pattern stands for any text, also for none. */
bool retention_matches(struct slice pattern, struct slice text);
/* A tenant's name in which stars stand for others of its bytes. ERR_INVALID with a sentence. */
int retention_check_tenant(struct slice pattern, struct errbuf *e) MUST_CHECK;
/* *keep_ms 0: for ever. ERR_INVALID with a sentence. */
int retention_read_duration(struct slice text, int64_t *keep_ms, struct errbuf *e) MUST_CHECK;

#endif
