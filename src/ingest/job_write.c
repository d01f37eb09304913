#include "ingest/job_write.h"

static void job_write_on_over(struct task *task)
{
	CONTAINER_OF(task, struct job_write, over)->answer.there = true;
}

/* On the executor, which asks the job's thread to go on. */
static void job_write_on_done(struct ingest_request *r)
{
	struct job_write *write = ingest_owner(r);
	struct executor *back = &job_queue(write->job)->executor;
	write->answer.err = r->err;
	write->refused_values = r->refused;
	for (size_t i = 0; i < r->error_count && !r->err; i++)
		write->refused[write->refused_count++] = r->errors[i].place.index;
	if (r->err)
		write->error = r->error;
	else if (r->error_count)
		errbuf_set(&write->why, 0, "%s", r->errors[0].sentence);
	ingest_request_free(r);
	back->post(back, &write->over);
}

/* On the executor. */
static void job_write_submit(void *owner)
{
	struct job_write *write = owner;
	const struct ingest_door door = {.done = job_write_on_done,
					 .owner = write,
					 .patient = true,
					 .stamp_us = write->stamp_us};
	struct ingest_request *r = ingest_request_new(write->ingest, &door);
	ingest_piece_begin(r);
	for (size_t i = 0; i < write->count; i++) {
		write->points[i].place = (struct ingest_place){.index = i};
		ingest_points(r, &write->points[i]);
	}
	ingest_piece_end(r);
	ingest_request_end(r);
}

int job_write_wait(struct job_write *write, struct errbuf *e)
{
	write->over = (struct task){.run = job_write_on_over};
	write->answer = (struct task_answer){false, 0};
	write->refused_count = 0;
	write->refused_values = 0;
	write->error.text[0] = 0;
	job_call(write->job, write->executor, job_write_submit, write);
	int err = task_queue_wait_for(job_queue(write->job), &write->answer);
	const char *why = write->error.text[0] ? write->error.text : err_text(err);
	return err ? errbuf_set(e, err, "%s", why) : 0;
}
