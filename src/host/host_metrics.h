/* This machine's numbers: a snapshot of Linux's /proc, and the metrics that two of them make. A
 * server keeps them of its own machine (ingest/host.h), an agent sends them (agent/inlet_system.c).
 *
 * Names are Chukwa's (SystemMetrics, which had them from Sigar), with these differences: cores,
 * disks and interfaces are tags instead of parts of the name; counters are rates per second instead
 * of differences per period; a total over all of them has no such tag. */
#ifndef HOST_HOST_METRICS_H
#define HOST_HOST_METRICS_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "catalog/catalog.h"
#include "model/value.h"
#include "wire/procfs.h"

/* In ranges: what a core, an interface, a file system, a disk and the process have. */
enum host_metric {
	HOST_CPU_COMBINED,
	HOST_CPU_USER,
	HOST_CPU_SYS,
	HOST_CPU_IDLE,
	HOST_CPU_NICE,
	HOST_CPU_WAIT,
	HOST_CPU_IRQ,
	HOST_CPU_SOFTIRQ,
	HOST_CPU_STOLEN,
	HOST_LOAD_1,
	HOST_LOAD_5,
	HOST_LOAD_15,
	HOST_MEMORY_TOTAL,
	HOST_MEMORY_FREE,
	HOST_MEMORY_USED,
	HOST_MEMORY_ACTUAL_FREE,
	HOST_MEMORY_ACTUAL_USED,
	HOST_MEMORY_FREE_PERCENT,
	HOST_MEMORY_USED_PERCENT,
	HOST_MEMORY_BUFFERS,
	HOST_MEMORY_CACHED,
	HOST_SWAP_TOTAL,
	HOST_SWAP_FREE,
	HOST_SWAP_USED,
	HOST_SWAP_PAGE_IN,
	HOST_SWAP_PAGE_OUT,
	HOST_UPTIME,
	HOST_NET_RX_BYTES,
	HOST_NET_RX_PACKETS,
	HOST_NET_RX_ERRORS,
	HOST_NET_RX_DROPPED,
	HOST_NET_TX_BYTES,
	HOST_NET_TX_PACKETS,
	HOST_NET_TX_ERRORS,
	HOST_NET_TX_DROPPED,
	HOST_NET_TX_COLLISIONS,
	HOST_DISK_TOTAL,
	HOST_DISK_USED,
	HOST_DISK_PERCENT_USED,
	HOST_DISK_READS,
	HOST_DISK_READ_BYTES,
	HOST_DISK_WRITES,
	HOST_DISK_WRITE_BYTES,
	HOST_DISK_BUSY,
	HOST_PROCESS_CPU,
	HOST_PROCESS_RESIDENT,
	HOST_PROCESS_ANONYMOUS,
	HOST_PROCESS_SWAPPED,
	HOST_PROCESS_THREADS,
	HOST_PROCESS_READ_BYTES,
	HOST_PROCESS_WRITE_BYTES,
	HOST_METRICS
};

struct host_metric_def {
	const char *name;
	enum catalog_kind kind;
	const char *unit;
};

extern const struct host_metric_def host_metrics[HOST_METRICS];

/* A mounted file system that lies on a disk. */
struct host_volume {
	struct slice mount;  /* where; a C string */
	struct slice device; /* `sda1` of /dev/sda1; of another root its source */
	struct file_room room;
};

/* One reading of /proc. A part that could not be read or parsed has `has` false. */
struct host_snapshot {
	struct arena arena; /* texts and arrays */
	int64_t wall_ms, mono_us;
	bool has_stat, has_load, has_memory, has_vm, has_uptime, has_disks, has_net, has_self,
		has_status, has_io;
	struct proc_stat stat;
	struct proc_loadavg load;
	struct proc_meminfo memory;
	struct proc_vmstat vm;
	double uptime_s;
	struct proc_diskstats disks;
	struct proc_net_dev net;
	struct proc_self_stat self;
	struct proc_self_status status;
	struct proc_self_io io;
	struct host_volume *volumes;
	size_t volume_count;
};

void host_snapshot_init(struct host_snapshot *snapshot);
void host_snapshot_release(struct host_snapshot *snapshot);
/* Any one thread; reads about ten small files and asks each file system for its room. */
void host_snapshot_read(struct host_snapshot *snapshot, struct files *files, struct clock *clock);

/* Names that are left out; a star at the end stands for any rest. */
struct host_ignore {
	const char *const *names;
	size_t count;
};
bool host_ignored(struct host_ignore ignore, struct slice name);

/* The values of one thing: metrics first to first + count, in `values`. */
struct host_group {
	const char *tag_key;    /* NULL: the machine as a whole */
	struct slice tag_value; /* `0` (core), `eth0`, `sda`, `granary` */
	size_t first, count;
	const struct value *values; /* VALUE_NONE: not known this time */
};
typedef void host_group_fn(void *context, const struct host_group *group);

struct host_rules {
	struct host_ignore interfaces, disks;
	double ticks_per_second;
	struct slice process; /* what this process is called */
};

/* Calls `each` for every group that has a value. Percentages and rates are those between the two
 * snapshots: where a counter has gone backwards (a reset, a wrap) or the thing is new, there is
 * none rather than a negative or a wild one. */
void host_compare(const struct host_snapshot *before, const struct host_snapshot *after,
		  const struct host_rules *rules, host_group_fn *each, void *context);

/* The group as a line of JSON, without a newline: the time of its snapshot, its tag, and its values
 * by their names without `SystemMetrics.`:
 *
 *     {"time":"2026-11-29T10:00:00Z","core":"0","cpu.combined":1.5,"cpu.user":1}
 */
void host_group_put(const struct host_group *group, int64_t wall_ms, struct buf *out);

#endif
