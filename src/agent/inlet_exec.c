/* Commands that are run again and again. A run is the line
 *
 *     2026-11-29T10:00:00.123Z exec status=0 df -k
 *
 * and behind it what the command has printed, each line a record; or all of it one record
 * (`records: escaped`). So lines that have no time of their own have that of their run. In place of
 * `status=0` there is `signal=9`, `timeout` where it was killed for its time, and `cut=N` behind
 * that where N bytes are left out. What a command says by standard error goes to the log. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/inlet.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "wire/timetext.h"

enum {
	EXEC_OUTPUT_MAX_BYTES = 512 << 10,
	EXEC_COMPLAINT_MAX_BYTES = 1024, /* of standard error, which goes to the log */
	EXEC_LOOK_MS = 100,              /* whether the command has ended, and the job is to */
	EXEC_LOOK_SOON_MS = 2,           /* it has closed its output, or was killed */
	EXEC_KILL_MS = 5000,
	EXEC_HEAD_MAX_BYTES = 256, /* without the command */
	EXEC_COMPLAINTS_A_MINUTE = 6,
};

extern char **environ;

struct exec_pipe {
	int fd; /* -1: at its end */
	struct buf text;
	uint64_t cut_bytes;
};

struct exec_run {
	struct inlet *inlet;
	struct job *job;
	pid_t pid;
	struct exec_pipe out, complaint;
	int64_t begun_ms; /* by the wall clock */
	int status;       /* as waitpid() has it */
	bool ended, timed_out;
};

/* ---- The process ----------------------------------------------------------------------------- */

static int exec_spawn_by(struct exec_run *run, int out, int complaint,
			 posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes)
{
	char *const argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
			      (char *)(uintptr_t)inlet_adaptor(run->inlet)->path.data, NULL};
	sigset_t all, none;
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(actions, complaint, STDERR_FILENO);
	/* Also what libraries have opened. */
	posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
	/* A group of its own, so that all of it can be killed. Signals that this process ignores
	 * are not ignored by the command. */
	posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
						     POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigdefault(attributes, &all);
	posix_spawnattr_setsigmask(attributes, &none);
	return -posix_spawn(&run->pid, "/bin/sh", actions, attributes, argv, environ);
}

static int exec_spawn(struct exec_run *run)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int out[2], complaint[2];
	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(complaint, O_CLOEXEC)) {
		int err = -errno;
		close(out[0]);
		close(out[1]);
		return err;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	int err = exec_spawn_by(run, out[1], complaint[1], &actions, &attributes);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	close(out[1]);
	close(complaint[1]);
	run->out.fd = out[0];
	run->complaint.fd = complaint[0];
	return err;
}

static void exec_close(struct exec_pipe *from)
{
	if (from->fd >= 0)
		close(from->fd);
	from->fd = -1;
}

static void exec_read(struct exec_pipe *from)
{
	char piece[16 << 10];
	ssize_t got = read(from->fd, piece, sizeof(piece));
	if (got < 0 && errno == EINTR)
		return;
	if (got <= 0) {
		exec_close(from);
		return;
	}
	size_t room = from->text.max - from->text.len;
	size_t kept = (size_t)got < room ? (size_t)got : room;
	buf_append(&from->text, piece, kept);
	from->cut_bytes += (uint64_t)got - kept;
}

/* One that has ended stays a zombie, so that no stranger gets its number, which is that of its
 * group, too. */
static void exec_look(struct exec_run *run)
{
	siginfo_t info = {.si_pid = 0};
	if (!run->ended && !waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT))
		run->ended = info.si_pid == run->pid;
}

static void exec_wait_once(struct exec_run *run, int64_t left_ms)
{
	struct exec_pipe *const pipes[] = {&run->out, &run->complaint};
	struct pollfd polled[2];
	bool open = run->out.fd >= 0 || run->complaint.fd >= 0;
	int64_t rest_ms = open ? EXEC_LOOK_MS : EXEC_LOOK_SOON_MS;
	for (size_t i = 0; i < 2; i++)
		polled[i] = (struct pollfd){.fd = pipes[i]->fd, .events = POLLIN};
	if (poll(polled, 2, (int)smaller_of(rest_ms, left_ms)) > 0)
		for (size_t i = 0; i < 2; i++)
			if (polled[i].revents)
				exec_read(pipes[i]);
	exec_look(run);
}

/* Until the command has ended and nobody has its output open any more, or its time is over. */
static void exec_wait(struct exec_run *run)
{
	struct clock *clock = inlet_clock(run->inlet);
	int64_t until_ms = clock_mono_ms(clock) + inlet_adaptor(run->inlet)->timeout_ms, left_ms;
	while ((left_ms = until_ms - clock_mono_ms(clock)) > 0 && !job_is_stopping(run->job) &&
	       (!run->ended || run->out.fd >= 0 || run->complaint.fd >= 0))
		exec_wait_once(run, left_ms);
	run->timed_out = left_ms <= 0 && !run->ended;
	/* One that has ended may have left others: each run would leave more of them. */
	kill(-run->pid, SIGKILL);
	/* One that hangs in the kernel cannot be killed; nobody waits for it. */
	for (int i = 0; i < EXEC_KILL_MS / EXEC_LOOK_SOON_MS && !run->ended; i++) {
		poll(NULL, 0, EXEC_LOOK_SOON_MS);
		exec_look(run);
	}
	if (run->ended)
		waitpid(run->pid, &run->status, 0);
	run->timed_out |= !run->ended;
	exec_close(&run->out);
	exec_close(&run->complaint);
}

/* ---- What it has printed --------------------------------------------------------------------- */

static void exec_put_head(const struct exec_run *run, struct buf *head)
{
	const struct slice command = inlet_adaptor(run->inlet)->path;
	char time[TIME_PRINT_MAX_BYTES];
	buf_append(head, time, time_print(time, run->begun_ms));
	if (run->timed_out)
		buf_append_text(head, " exec timeout");
	else if (WIFSIGNALED(run->status))
		buf_printf(head, " exec signal=%d", WTERMSIG(run->status));
	else
		buf_printf(head, " exec status=%d", WEXITSTATUS(run->status));
	if (run->out.cut_bytes)
		buf_printf(head, " cut=%llu", (unsigned long long)run->out.cut_bytes);
	buf_append_char(head, ' ');
	for (size_t i = 0; i < command.len; i++) /* in one line */
		buf_append_char(head, (unsigned char)command.data[i] < ' ' ? ' ' : command.data[i]);
}

/* The head and the lines of the output, each a record. */
static int exec_append_lines(struct exec_run *run, struct spool_stream *stream, struct slice head)
{
	struct slice *records = NULL, left = buf_slice(&run->out.text);
	size_t count = 0, capacity = 0;
	GROW(records, capacity, 1);
	records[count++] = head;
	while (left.len) {
		const char *newline = memchr(left.data, '\n', left.len);
		size_t len = newline ? (size_t)(newline - left.data) : left.len;
		GROW(records, capacity, count + 1);
		records[count++] = (struct slice){left.data, len};
		len += newline != NULL;
		left = (struct slice){left.data + len, left.len - len};
	}
	int err = inlet_append_patiently(run->inlet, run->job, stream, records, count);
	mem_free(records);
	return err;
}

static int exec_append(struct exec_run *run, struct spool_stream *stream)
{
	struct buf text;
	int err;
	buf_init(&text,
		 EXEC_HEAD_MAX_BYTES + inlet_adaptor(run->inlet)->path.len + EXEC_OUTPUT_MAX_BYTES);
	exec_put_head(run, &text);
	if (inlet_adaptor(run->inlet)->rule.records.kind == RECORDS_LINES) {
		err = exec_append_lines(run, stream, buf_slice(&text));
	} else {
		struct slice out = buf_slice(&run->out.text);
		out.len -= out.len && out.data[out.len - 1] == '\n';
		if (out.len)
			buf_append_char(&text, '\n');
		buf_append(&text, out.data, out.len);
		const struct slice record = buf_slice(&text);
		err = inlet_append_patiently(run->inlet, run->job, stream, &record, 1);
	}
	buf_release(&text);
	return err;
}

static void exec_judge(struct exec_run *run, struct log_rate *complaints)
{
	struct inlet *inlet = run->inlet;
	if (run->complaint.text.len)
		log_rated(complaints, clock_mono_ms(inlet_clock(inlet)), LOG_WARN,
			  "adaptor %s: its command says: " SHOWN, inlet_adaptor(inlet)->name.data,
			  SHOWN_OF(buf_slice(&run->complaint.text)));
	stat_add(STAT_inlet_cut_bytes, (int64_t)run->out.cut_bytes);
	if (run->timed_out) {
		stat_add(STAT_exec_killed, 1);
		inlet_set_problem(inlet, "its command was killed, since it took longer than "
					 "`timeout`");
	} else if (WIFSIGNALED(run->status)) {
		stat_add(STAT_exec_failed, 1);
		inlet_set_problem(inlet, "its command was ended by signal %d",
				  WTERMSIG(run->status));
	} else if (WEXITSTATUS(run->status)) {
		stat_add(STAT_exec_failed, 1);
		inlet_set_problem(inlet, "its command ended with status %d",
				  WEXITSTATUS(run->status));
	} else {
		stat_add(STAT_exec_ended, 1);
		inlet_set_problem(inlet, NULL);
	}
}

/* ---- Again and again ------------------------------------------------------------------------- */

struct exec_inlet {
	struct inlet *inlet;
	struct job *job;
	struct spool_stream *stream;
	struct log_rate complaints;
};

static void exec_once(void *owner)
{
	struct exec_inlet *x = owner;
	struct exec_run run = {.inlet = x->inlet, .job = x->job, .out.fd = -1, .complaint.fd = -1};
	run.begun_ms = clock_wall_ms(inlet_clock(x->inlet));
	buf_init(&run.out.text, EXEC_OUTPUT_MAX_BYTES);
	buf_init(&run.complaint.text, EXEC_COMPLAINT_MAX_BYTES);
	int err = exec_spawn(&run);
	if (err) {
		stat_add(STAT_exec_killed, 1);
		inlet_set_problem(x->inlet, "its command cannot be run: %s", err_text(err));
	} else {
		exec_wait(&run);
		if (job_is_stopping(x->job)) {
			stat_add(STAT_exec_killed, 1);
		} else {
			exec_judge(&run, &x->complaints);
			(void)exec_append(&run, x->stream); /* counted where it is lost */
		}
	}
	exec_close(&run.out);
	exec_close(&run.complaint);
	buf_release(&run.out.text);
	buf_release(&run.complaint.text);
}

static void inlet_exec_run(struct inlet *inlet, struct job *job)
{
	struct exec_inlet x = {
		.inlet = inlet, .job = job, .complaints.lines_max = EXEC_COMPLAINTS_A_MINUTE};
	if (!inlet_own_stream(inlet, &x.stream))
		inlet_repeat(inlet, job, exec_once, &x);
}

const struct inlet_kind inlet_exec = {.run = inlet_exec_run};
