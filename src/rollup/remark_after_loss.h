/* Private: marks that were lost (marks_state) are made again from raw data, without anybody's
 * doing.
 *
 * A sample whose touch was left out because one had been made before the loss may still be on its
 * way then; all that was touched before is handed to the store within the quiet time. So it begins
 * that much later, when something that was handed over by then is durable. What fails is begun
 * again.
 *
 * The thread of the executor. */
#ifndef ROLLUP_REMARK_AFTER_LOSS_H
#define ROLLUP_REMARK_AFTER_LOSS_H

#include "rollup/site.h"

struct remark_after_loss;

/* The site is the caller's. */
struct remark_after_loss *remark_after_loss_new(const struct rollup_site *site,
						struct executor *executor);
/* Not while it runs. */
void remark_after_loss_free(struct remark_after_loss *remarking);
/* Begins if there is something to be made and nothing begun. Everything that was handed to the
 * store before asof_ms is durable. */
void remark_after_loss_look(struct remark_after_loss *remarking, int64_t asof_ms);
/* Begins nothing more, and ends what runs; that is over when it rests. */
void remark_after_loss_stop(struct remark_after_loss *remarking);
bool remark_after_loss_rests(const struct remark_after_loss *remarking);

#endif
