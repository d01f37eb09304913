/* A thread with a loop of its own, for work that shall not wait for others nor they for it.
 *
 * What lives on the loop is made and closed by tasks posted to its executor. */
#ifndef LOOP_THREAD_H
#define LOOP_THREAD_H

#include "loop/loop.h"

struct loop_thread;

/* The thread is called `name` (at most 15 bytes of it are shown) and serves at once. */
struct loop_thread *loop_thread_new(const char *name);
struct loop *loop_thread_loop(struct loop_thread *thread);

/* Ends the loop after the present events, joins the thread, frees both. Everything that lived on
 * the loop must be closed by then, see loop_free. Not from that thread. */
void loop_thread_free(struct loop_thread *thread);

/* For a thread that hangs: nobody waits for it any more. It and its loop are never freed. */
void loop_thread_abandon(struct loop_thread *thread);

#endif
