/* /metrics: the rows of base/stats.def, and what the kernel knows about this process under the
 * names that Prometheus' own clients use. */
#include <sys/resource.h>
#include <unistd.h>

#include "api/admin/admin.h"
#include "api/routes.h"
#include "base/file.h"
#include "base/stats.h"
#include "wire/procfs.h"

enum { METRICS_MAX_BYTES = 1 << 20, PROC_TEXT_MAX_BYTES = 64 << 10 };

static void metrics_text_put_name(struct buf *out, const char *name, const char *help,
				  const char *type)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_stat(struct buf *out, enum stat_id id, bool first)
{
	const struct stat_def *def = &stat_defs[id];
	char text[STAT_TEXT_BYTES];
	if (first)
		metrics_text_put_name(out, def->name, def->help,
				      def->kind == STAT_COUNTER ? "counter" : "gauge");
	buf_append_text(out, def->name);
	if (*def->label)
		buf_printf(out, "{%s}", def->label);
	buf_printf(out, " %s\n", stat_text(id, text));
}

static void metrics_text_put_stats(struct buf *out)
{
	const char *last = "";
	for (int id = 0; id < STAT_COUNT; id++) {
		const char *name = stat_defs[id].name;
		put_stat(out, (enum stat_id)id, strcmp(name, last) != 0);
		last = name;
	}
}

/* A file of /proc that has gone or looks unfamiliar costs its metrics, not the page. */
static struct slice read_proc(const char *path, struct buf *text)
{
	struct files *files = files_real();
	buf_clear(text);
	return files->read(files, path, PROC_TEXT_MAX_BYTES, text) ? (struct slice){"", 0}
								   : buf_slice(text);
}

static void put_cpu(struct buf *out)
{
	struct rusage usage;
	if (getrusage(RUSAGE_SELF, &usage))
		return;
	double seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	metrics_text_put_name(out, "process_cpu_seconds_total",
			      "Total user and system CPU time spent.", "counter");
	buf_printf(out, "process_cpu_seconds_total %.6f\n", seconds);
}

static void put_gauge(struct buf *out, const char *name, const char *help, uint64_t value)
{
	metrics_text_put_name(out, name, help, "gauge");
	buf_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void put_memory(struct buf *out, struct buf *text)
{
	struct proc_self_status status;
	if (proc_self_status_parse(read_proc("/proc/self/status", text), &status))
		return;
	put_gauge(out, "process_resident_memory_bytes",
		  "Resident memory, pages of the data file included.", status.resident);
	put_gauge(out, "granary_process_anonymous_memory_bytes",
		  "Resident memory that is this process's own.", status.anonymous);
}

static void put_threads(struct buf *out, struct buf *text)
{
	struct proc_self_stat stat;
	if (!proc_self_stat_parse(read_proc("/proc/self/stat", text), &stat))
		put_gauge(out, "granary_process_threads", "Threads of this process.", stat.threads);
}

static void put_descriptors(struct buf *out)
{
	struct rlimit limit;
	if (!getrlimit(RLIMIT_NOFILE, &limit))
		put_gauge(out, "process_max_fds", "Maximum number of open file descriptors.",
			  limit.rlim_cur);
}

void self_metrics_text(struct buf *out)
{
	struct buf text;
	buf_init(&text, PROC_TEXT_MAX_BYTES);
	metrics_text_put_stats(out);
	put_cpu(out);
	put_memory(out, &text);
	put_threads(out, &text);
	put_descriptors(out);
	metrics_text_put_name(out, "granary_build_info", "Always 1; the label names the version.",
			      "gauge");
	buf_append_text(out, "granary_build_info{version=\"" GRANARY_VERSION "\"} 1\n");
	buf_release(&text);
}

void self_metrics_reply(struct http_request *request, int64_t started_ms)
{
	struct buf out;
	buf_init(&out, METRICS_MAX_BYTES);
	self_metrics_text(&out);
	metrics_text_put_name(&out, "process_start_time_seconds",
			      "Start of the process since the epoch.", "gauge");
	buf_printf(&out, "process_start_time_seconds %.3f\n", (double)started_ms / 1000);
	ASSERT(!out.failed);
	http_reply(request, 200, "text/plain; version=0.0.4; charset=utf-8", buf_slice(&out));
	buf_release(&out);
}

static void metrics_end(struct http_request *request)
{
	self_metrics_reply(request, api_of(request)->started_ms);
}

const struct http_handler self_metrics = {.end = metrics_end};
