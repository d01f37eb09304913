/* The disk under the store of a simulated run: the calls by which LMDB writes its data file, with
 * what a power cut leaves of them.
 *
 * The file itself lies in memory (/dev/shm) and always holds what was written. Beside it the disk
 * remembers what each write replaced until the next fdatasync; after a power cut each of these
 * writes is there, is not there, or is there in part, as the seed decides: in sectors of 512 bytes
 * or pages, from the front or anywhere. A write through a descriptor that was opened with O_DSYNC
 * is there once it has returned, and nothing else by it.
 *
 * Like the machine: one disk, one thread. */
#ifndef TESTS_SIM_DISK_H
#define TESTS_SIM_DISK_H

#include "base/base.h"

/* How a life ends: the process alone, or the power of the machine too. */
enum disk_end { DISK_KILL, DISK_POWER };

/* Without `loud` what the store writes to its log (standard error) is dropped: commits fail all the
 * time. */
void disk_begin(uint64_t seed, bool loud);
void disk_end(void);

/* From now on every call fails, as if nobody were there any more: the program may then be taken
 * down in its own way, and nothing of that reaches the file. */
void disk_die(enum disk_end how);
/* The same within the `calls`-th call from now; 0 takes it back. */
void disk_die_at(enum disk_end how, unsigned calls);
bool disk_dead(void);
/* After it: decides what the file holds, and takes calls again. */
void disk_revive(void);

/* The `calls`-th write (or fdatasync) from now fails with EIO, once; 0 takes it back. */
void disk_fail_write(unsigned calls);
void disk_fail_sync(unsigned calls);
/* Writes fail with ENOSPC, all of them or every second, until it is taken back. */
void disk_fill(bool full);

struct disk_counts {
	uint64_t writes, syncs, failed, undone, torn, kept, crashes;
};
extern struct disk_counts disk_counts;

#endif
