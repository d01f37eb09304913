/* Private: rates of what is polled no more. A device that fell silent before the server ended has
 * raw data of which no rates were made, and no poll would bring its turn. So once after the start,
 * when whatever is still polled has had its turn, a job goes through the checkpoints, and brings up
 * to date what no worker has heard of. */
#ifndef PERSIST_CATCH_UP_H
#define PERSIST_CATCH_UP_H

struct catch_up;
struct persist;

struct catch_up *catch_up_new(struct persist *persist);
/* `stopped` comes when the job has ended, perhaps from within. */
void catch_up_stop(struct catch_up *catch_up, void (*stopped)(void *owner), void *owner);
void catch_up_free(struct catch_up *catch_up); /* stopped */

#endif
