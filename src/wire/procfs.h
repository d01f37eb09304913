/* Linux's /proc: the texts that host metrics are made from (proc(5); fields in the order of
 * Documentation/filesystems/proc.rst and admin-guide/iostats.rst). Bytes in, struct out.
 *
 * Each function returns 0, ERR_INVALID where the text is not such a file (nothing usable is then in
 * *out), or ERR_LIMIT where the arena is full. Fields that a kernel does not have are 0, except
 * where a `has` says so; fields that it has beyond ours are passed over. Names point into `text`.
 */
#ifndef WIRE_PROCFS_H
#define WIRE_PROCFS_H

#include "base/base.h"

struct arena;

enum {
	PROC_CORES_MAX = 4096,
	PROC_DISKS_MAX = 1024,
	PROC_INTERFACES_MAX = 1024,
	PROC_MOUNTS_MAX = 4096,
	PROC_NAME_MAX_BYTES = 64,
};

/* Since boot, in ticks. Guest time is part of user and nice. */
enum proc_cpu_state {
	PROC_USER,
	PROC_NICE,
	PROC_SYSTEM,
	PROC_IDLE,
	PROC_IOWAIT,
	PROC_IRQ,
	PROC_SOFTIRQ,
	PROC_STEAL,
	PROC_CPU_STATES
};

struct proc_cpu {
	uint32_t core;
	uint64_t ticks[PROC_CPU_STATES];
};

/* /proc/stat */
struct proc_stat {
	struct proc_cpu all; /* `core` means nothing */
	struct proc_cpu *cores;
	size_t core_count;
	bool cut; /* there are more than PROC_CORES_MAX; so below */
};
int proc_stat_parse(struct slice text, struct arena *arena, struct proc_stat *out) MUST_CHECK;

/* /proc/loadavg: of 1, 5 and 15 minutes */
struct proc_loadavg {
	double load[3];
};
int proc_loadavg_parse(struct slice text, struct proc_loadavg *out) MUST_CHECK;

/* /proc/meminfo, in bytes (the file counts KiB) */
struct proc_meminfo {
	uint64_t total, free, available, buffers, cached, swap_total, swap_free;
	bool has_available; /* since Linux 3.14 */
};
int proc_meminfo_parse(struct slice text, struct proc_meminfo *out) MUST_CHECK;

/* /proc/vmstat: pages swapped since boot */
struct proc_vmstat {
	uint64_t swap_in, swap_out;
};
int proc_vmstat_parse(struct slice text, struct proc_vmstat *out) MUST_CHECK;

/* /proc/uptime */
int proc_uptime_parse(struct slice text, double *seconds) MUST_CHECK;

/* /proc/diskstats, since boot. A sector has 512 bytes here, whatever the disk's are. */
struct proc_disk {
	struct slice name;
	bool partition; /* of a disk that the file names before it */
	bool stacked;   /* made of other disks (dm-0, md0), which count the same bytes */
	uint64_t reads, read_bytes, writes, write_bytes;
	uint64_t busy_ms; /* the kernel keeps 32 bits of it */
};
struct proc_diskstats {
	struct proc_disk *disks;
	size_t count;
	bool cut;
};
int proc_diskstats_parse(struct slice text, struct arena *arena,
			 struct proc_diskstats *out) MUST_CHECK;

/* /proc/self/mounts, in the order of mounting. Names are unescaped, in the arena. */
struct proc_mount {
	struct slice source, target, type;
};
struct proc_mounts {
	struct proc_mount *mounts;
	size_t count;
	bool cut;
};
int proc_mounts_parse(struct slice text, struct arena *arena, struct proc_mounts *out) MUST_CHECK;

/* /proc/net/dev, since the interface came up */
struct proc_interface {
	struct slice name;
	uint64_t rx_bytes, rx_packets, rx_errors, rx_dropped;
	uint64_t tx_bytes, tx_packets, tx_errors, tx_dropped, tx_collisions;
};
struct proc_net_dev {
	struct proc_interface *interfaces;
	size_t count;
	bool cut;
};
int proc_net_dev_parse(struct slice text, struct arena *arena, struct proc_net_dev *out) MUST_CHECK;

/* /proc/self/stat. The program's name may hold anything, also `)`. */
struct proc_self_stat {
	uint64_t user_ticks, system_ticks, threads;
};
int proc_self_stat_parse(struct slice text, struct proc_self_stat *out) MUST_CHECK;

/* /proc/self/status, in bytes */
struct proc_self_status {
	uint64_t resident, anonymous, swapped;
};
int proc_self_status_parse(struct slice text, struct proc_self_status *out) MUST_CHECK;

/* /proc/self/io: bytes that went to and came from disks */
struct proc_self_io {
	uint64_t read_bytes, write_bytes;
};
int proc_self_io_parse(struct slice text, struct proc_self_io *out) MUST_CHECK;

#endif
