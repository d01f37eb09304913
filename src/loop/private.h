/* Shared by the files of loop/ only. */
#ifndef LOOP_PRIVATE_H
#define LOOP_PRIVATE_H

#include <stdatomic.h>
#include <uv.h>

#include "loop/loop.h"

struct loop {
	uv_loop_t uv;
	struct executor executor;
	uv_async_t wake;
	pthread_mutex_t lock; /* guards first, last */
	struct task *first, *last;
	atomic_bool stopping;
	char *read_buffer; /* LOOP_READ_BYTES: filled and emptied within one read event */
};

#endif
