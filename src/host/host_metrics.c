#include "host/host_metrics.h"

#include "base/stats.h"
#include "wire/json.h"
#include "wire/timetext.h"

#define PREFIX "SystemMetrics."

const struct host_metric_def host_metrics[HOST_METRICS] = {
	/* Percent of the time of one core or, for all, of all cores together: 0 to 100. combined is
	 * user + sys + nice + wait, as Sigar's. */
	[HOST_CPU_COMBINED] = {PREFIX "cpu.combined", KIND_GAUGE, "%"},
	[HOST_CPU_USER] = {PREFIX "cpu.user", KIND_GAUGE, "%"},
	[HOST_CPU_SYS] = {PREFIX "cpu.sys", KIND_GAUGE, "%"},
	[HOST_CPU_IDLE] = {PREFIX "cpu.idle", KIND_GAUGE, "%"},
	[HOST_CPU_NICE] = {PREFIX "cpu.nice", KIND_GAUGE, "%"},
	[HOST_CPU_WAIT] = {PREFIX "cpu.wait", KIND_GAUGE, "%"},
	[HOST_CPU_IRQ] = {PREFIX "cpu.irq", KIND_GAUGE, "%"},
	[HOST_CPU_SOFTIRQ] = {PREFIX "cpu.softIrq", KIND_GAUGE, "%"},
	[HOST_CPU_STOLEN] = {PREFIX "cpu.stolen", KIND_GAUGE, "%"},
	[HOST_LOAD_1] = {PREFIX "LoadAverage.1", KIND_GAUGE, "tasks"},
	[HOST_LOAD_5] = {PREFIX "LoadAverage.5", KIND_GAUGE, "tasks"},
	[HOST_LOAD_15] = {PREFIX "LoadAverage.15", KIND_GAUGE, "tasks"},
	[HOST_MEMORY_TOTAL] = {PREFIX "memory.Total", KIND_GAUGE, "bytes"},
	[HOST_MEMORY_FREE] = {PREFIX "memory.Free", KIND_GAUGE, "bytes"},
	[HOST_MEMORY_USED] = {PREFIX "memory.Used", KIND_GAUGE, "bytes"},
	/* Actual: without what the kernel gives back on demand, such as its caches. */
	[HOST_MEMORY_ACTUAL_FREE] = {PREFIX "memory.ActualFree", KIND_GAUGE, "bytes"},
	[HOST_MEMORY_ACTUAL_USED] = {PREFIX "memory.ActualUsed", KIND_GAUGE, "bytes"},
	[HOST_MEMORY_FREE_PERCENT] = {PREFIX "memory.FreePercent", KIND_GAUGE, "%"},
	[HOST_MEMORY_USED_PERCENT] = {PREFIX "memory.UsedPercent", KIND_GAUGE, "%"},
	[HOST_MEMORY_BUFFERS] = {PREFIX "memory.Buffers", KIND_GAUGE, "bytes"},
	[HOST_MEMORY_CACHED] = {PREFIX "memory.Cached", KIND_GAUGE, "bytes"},
	[HOST_SWAP_TOTAL] = {PREFIX "swap.Total", KIND_GAUGE, "bytes"},
	[HOST_SWAP_FREE] = {PREFIX "swap.Free", KIND_GAUGE, "bytes"},
	[HOST_SWAP_USED] = {PREFIX "swap.Used", KIND_GAUGE, "bytes"},
	[HOST_SWAP_PAGE_IN] = {PREFIX "swap.PageIn", KIND_RATE, "pages/s"},
	[HOST_SWAP_PAGE_OUT] = {PREFIX "swap.PageOut", KIND_RATE, "pages/s"},
	[HOST_UPTIME] = {PREFIX "Uptime", KIND_GAUGE, "s"},
	[HOST_NET_RX_BYTES] = {PREFIX "network.RxBytes", KIND_RATE, "bytes/s"},
	[HOST_NET_RX_PACKETS] = {PREFIX "network.RxPackets", KIND_RATE, "packets/s"},
	[HOST_NET_RX_ERRORS] = {PREFIX "network.RxErrors", KIND_RATE, "packets/s"},
	[HOST_NET_RX_DROPPED] = {PREFIX "network.RxDropped", KIND_RATE, "packets/s"},
	[HOST_NET_TX_BYTES] = {PREFIX "network.TxBytes", KIND_RATE, "bytes/s"},
	[HOST_NET_TX_PACKETS] = {PREFIX "network.TxPackets", KIND_RATE, "packets/s"},
	[HOST_NET_TX_ERRORS] = {PREFIX "network.TxErrors", KIND_RATE, "packets/s"},
	[HOST_NET_TX_DROPPED] = {PREFIX "network.TxDropped", KIND_RATE, "packets/s"},
	[HOST_NET_TX_COLLISIONS] = {PREFIX "network.TxCollisions", KIND_RATE, "collisions/s"},
	/* Each part of a disk that is mounted, once. Percent as df counts: of what is used and what
	 * may still be. */
	[HOST_DISK_TOTAL] = {PREFIX "disk.Total", KIND_GAUGE, "bytes"},
	[HOST_DISK_USED] = {PREFIX "disk.Used", KIND_GAUGE, "bytes"},
	[HOST_DISK_PERCENT_USED] = {PREFIX "disk.PercentUsed", KIND_GAUGE, "%"},
	[HOST_DISK_READS] = {PREFIX "disk.Reads", KIND_RATE, "operations/s"},
	[HOST_DISK_READ_BYTES] = {PREFIX "disk.ReadBytes", KIND_RATE, "bytes/s"},
	[HOST_DISK_WRITES] = {PREFIX "disk.Writes", KIND_RATE, "operations/s"},
	[HOST_DISK_WRITE_BYTES] = {PREFIX "disk.WriteBytes", KIND_RATE, "bytes/s"},
	[HOST_DISK_BUSY] = {PREFIX "disk.Busy", KIND_GAUGE, "%"},
	[HOST_PROCESS_CPU] = {PREFIX "process.CpuPercent", KIND_GAUGE, "%"},
	[HOST_PROCESS_RESIDENT] = {PREFIX "process.ResidentBytes", KIND_GAUGE, "bytes"},
	[HOST_PROCESS_ANONYMOUS] = {PREFIX "process.AnonymousBytes", KIND_GAUGE, "bytes"},
	[HOST_PROCESS_SWAPPED] = {PREFIX "process.SwappedBytes", KIND_GAUGE, "bytes"},
	[HOST_PROCESS_THREADS] = {PREFIX "process.Threads", KIND_GAUGE, "threads"},
	[HOST_PROCESS_READ_BYTES] = {PREFIX "process.ReadBytes", KIND_RATE, "bytes/s"},
	[HOST_PROCESS_WRITE_BYTES] = {PREFIX "process.WriteBytes", KIND_RATE, "bytes/s"},
};

enum {
	CPU_FIRST = HOST_CPU_COMBINED,
	CPU_COUNT = HOST_CPU_STOLEN - HOST_CPU_COMBINED + 1,
	NET_FIRST = HOST_NET_RX_BYTES,
	NET_COUNT = HOST_NET_TX_COLLISIONS - HOST_NET_RX_BYTES + 1,
	VOLUME_FIRST = HOST_DISK_TOTAL,
	VOLUME_COUNT = HOST_DISK_PERCENT_USED - HOST_DISK_TOTAL + 1,
	DISK_FIRST = HOST_DISK_READS,
	DISK_COUNT = HOST_DISK_BUSY - HOST_DISK_READS + 1,
	PROCESS_FIRST = HOST_PROCESS_CPU,
	PROCESS_COUNT = HOST_PROCESS_WRITE_BYTES - HOST_PROCESS_CPU + 1,
	WHOLE_FIRST = 0,
	WHOLE_COUNT = HOST_DISK_BUSY, /* a percentage of several disks is no sum */
};

/* ---- Reading ------------------------------------------------------------------------------- */

enum { FILE_MAX_BYTES = 4 << 20, SNAPSHOT_MAX_BYTES = 16 << 20, VOLUMES_MAX = 64 };

void host_snapshot_init(struct host_snapshot *snapshot)
{
	*snapshot = (struct host_snapshot){.wall_ms = 0};
	arena_init(&snapshot->arena, SNAPSHOT_MAX_BYTES);
}

void host_snapshot_release(struct host_snapshot *snapshot)
{
	arena_release(&snapshot->arena);
}

/* The text of one file, in the arena because names point into it; NULL data if it could not be
 * read. */
static struct slice host_read_text(struct host_snapshot *s, struct files *files, const char *path)
{
	struct buf text;
	buf_init(&text, FILE_MAX_BYTES);
	int err = files->read(files, path, FILE_MAX_BYTES, &text);
	struct slice copy = {NULL, 0};
	if (!err)
		copy = arena_copy(&s->arena, buf_slice(&text));
	buf_release(&text);
	if (!copy.data)
		stat_add(STAT_host_unreadable, 1);
	return copy;
}

/* Whether a parser took its text; counted if it did not. */
static bool host_parsed(int err)
{
	if (err)
		stat_add(STAT_host_malformed, 1);
	return err == 0;
}

static bool host_begins(struct slice text, const char *with)
{
	size_t len = strlen(with);
	return text.len >= len && memcmp(text.data, with, len) == 0;
}

/* File systems on a disk are mounted from /dev; a root of another source (a container's overlay)
 * stands for the disk below it, unless it lies in memory. */
static bool host_on_disk(const struct proc_mount *mount)
{
	if (host_begins(mount->source, "/dev/"))
		return true;
	return slice_equal(mount->target, SLICE("/")) &&
	       !slice_equal(mount->type, SLICE("tmpfs")) &&
	       !slice_equal(mount->type, SLICE("ramfs")) &&
	       !slice_equal(mount->type, SLICE("rootfs"));
}

static struct slice host_device_of(struct slice source)
{
	static const size_t prefix = sizeof("/dev/") - 1;
	if (!host_begins(source, "/dev/"))
		return source;
	return (struct slice){source.data + prefix, source.len - prefix};
}

static bool host_has_volume(const struct host_snapshot *s, struct slice device)
{
	for (size_t i = 0; i < s->volume_count; i++) {
		if (slice_equal(s->volumes[i].device, device))
			return true;
	}
	return false;
}

/* A file system that is mounted twice is there once. */
static void host_read_volumes(struct host_snapshot *s, struct files *files)
{
	struct proc_mounts mounts;
	struct slice text = host_read_text(s, files, "/proc/self/mounts");
	if (!text.data || !host_parsed(proc_mounts_parse(text, &s->arena, &mounts)))
		return;
	s->volumes = arena_alloc(&s->arena, VOLUMES_MAX * sizeof(*s->volumes));
	for (size_t i = 0; s->volumes && i < mounts.count && s->volume_count < VOLUMES_MAX; i++) {
		const struct proc_mount *mount = &mounts.mounts[i];
		struct host_volume volume = {.mount = mount->target,
					     .device = host_device_of(mount->source)};
		struct tag name = {SLICE("mount"), volume.mount};
		if (!host_on_disk(mount) || host_has_volume(s, volume.device) ||
		    tags_sort_and_check(&name, 1, NULL) ||
		    files->room(files, volume.mount.data, &volume.room))
			continue;
		s->volumes[s->volume_count++] = volume;
	}
}

void host_snapshot_read(struct host_snapshot *s, struct files *files, struct clock *clock)
{
	struct arena *arena = &s->arena;
	arena_reset(arena);
	*s = (struct host_snapshot){.arena = s->arena};
	s->wall_ms = clock_wall_ms(clock);
	s->mono_us = clock->mono_us(clock);
	struct slice text = host_read_text(s, files, "/proc/stat");
	s->has_stat = text.data && host_parsed(proc_stat_parse(text, arena, &s->stat));
	text = host_read_text(s, files, "/proc/loadavg");
	s->has_load = text.data && host_parsed(proc_loadavg_parse(text, &s->load));
	text = host_read_text(s, files, "/proc/meminfo");
	s->has_memory = text.data && host_parsed(proc_meminfo_parse(text, &s->memory));
	text = host_read_text(s, files, "/proc/vmstat");
	s->has_vm = text.data && host_parsed(proc_vmstat_parse(text, &s->vm));
	text = host_read_text(s, files, "/proc/uptime");
	s->has_uptime = text.data && host_parsed(proc_uptime_parse(text, &s->uptime_s));
	text = host_read_text(s, files, "/proc/diskstats");
	s->has_disks = text.data && host_parsed(proc_diskstats_parse(text, arena, &s->disks));
	text = host_read_text(s, files, "/proc/net/dev");
	s->has_net = text.data && host_parsed(proc_net_dev_parse(text, arena, &s->net));
	text = host_read_text(s, files, "/proc/self/stat");
	s->has_self = text.data && host_parsed(proc_self_stat_parse(text, &s->self));
	text = host_read_text(s, files, "/proc/self/status");
	s->has_status = text.data && host_parsed(proc_self_status_parse(text, &s->status));
	text = host_read_text(s, files, "/proc/self/io");
	s->has_io = text.data && host_parsed(proc_self_io_parse(text, &s->io));
	host_read_volumes(s, files);
}

/* ---- Comparing ----------------------------------------------------------------------------- */

struct host_comparison {
	const struct host_snapshot *before, *after;
	const struct host_rules *rules;
	double seconds;
	host_group_fn *each;
	void *context;
	struct value whole[HOST_METRICS]; /* of the machine */
};

bool host_ignored(struct host_ignore ignore, struct slice name)
{
	for (size_t i = 0; i < ignore.count; i++) {
		struct slice pattern = slice_of(ignore.names[i]);
		bool star = pattern.len && pattern.data[pattern.len - 1] == '*';
		struct slice head = {pattern.data, pattern.len - star};
		if (star && name.len >= head.len && memcmp(name.data, head.data, head.len) == 0)
			return true;
		if (!star && slice_equal(name, pattern))
			return true;
	}
	return false;
}

static struct value host_rate(const struct host_comparison *c, uint64_t before, uint64_t after)
{
	if (after < before)
		return (struct value){0, VALUE_NONE};
	return value_f64((double)(after - before) / c->seconds);
}

static struct value host_percent(double part, double whole)
{
	return whole > 0 ? value_f64(100 * part / whole) : (struct value){0, VALUE_NONE};
}

/* Adds what a part has to the machine's total: the sum of what is known. */
static void host_add_to_whole(struct host_comparison *c, const struct value *values, size_t first,
			      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct value *sum = &c->whole[first + i];
		if (values[i].type == VALUE_NONE)
			continue;
		double so_far = sum->type == VALUE_NONE ? 0 : value_as_f64(*sum);
		*sum = value_f64(so_far + value_as_f64(values[i]));
	}
}

static void host_emit(const struct host_comparison *c, const char *key, struct slice name,
		      size_t first, size_t count, const struct value *values)
{
	for (size_t i = 0; i < count; i++) {
		if (values[i].type != VALUE_NONE) {
			struct host_group group = {key, name, first, count, values};
			c->each(c->context, &group);
			return;
		}
	}
}

/* False where there is nothing to say: no time has passed, or a state went backwards. idle and
 * iowait may (proc(5) says so of iowait, and tickless kernels do it to idle); they then count as
 * nothing. */
static bool host_compare_cpu(const struct proc_cpu *before, const struct proc_cpu *after,
			     struct value values[CPU_COUNT])
{
	double d[PROC_CPU_STATES], total = 0;
	for (int i = 0; i < PROC_CPU_STATES; i++) {
		bool backwards = after->ticks[i] < before->ticks[i];
		if (backwards && i != PROC_IDLE && i != PROC_IOWAIT)
			return false;
		d[i] = backwards ? 0 : (double)(after->ticks[i] - before->ticks[i]);
		total += d[i];
	}
	double busy = d[PROC_USER] + d[PROC_NICE] + d[PROC_SYSTEM] + d[PROC_IOWAIT];
	const double parts[CPU_COUNT] = {
		busy,           d[PROC_USER], d[PROC_SYSTEM],  d[PROC_IDLE],  d[PROC_NICE],
		d[PROC_IOWAIT], d[PROC_IRQ],  d[PROC_SOFTIRQ], d[PROC_STEAL],
	};
	for (size_t i = 0; i < CPU_COUNT; i++)
		values[i] = host_percent(parts[i], total);
	return total > 0;
}

static const struct proc_cpu *host_find_core(const struct proc_stat *stat, size_t hint,
					     uint32_t core)
{
	if (hint < stat->core_count && stat->cores[hint].core == core)
		return &stat->cores[hint];
	for (size_t i = 0; i < stat->core_count; i++) {
		if (stat->cores[i].core == core)
			return &stat->cores[i];
	}
	return NULL;
}

static void host_compare_cpus(struct host_comparison *c)
{
	const struct proc_stat *before = &c->before->stat, *after = &c->after->stat;
	if (!c->before->has_stat || !c->after->has_stat)
		return;
	struct value values[CPU_COUNT];
	if (host_compare_cpu(&before->all, &after->all, values))
		memcpy(&c->whole[CPU_FIRST], values, sizeof(values));
	for (size_t i = 0; i < after->core_count; i++) {
		const struct proc_cpu *core = &after->cores[i];
		const struct proc_cpu *was = host_find_core(before, i, core->core);
		char name[16];
		int len = snprintf(name, sizeof(name), "%u", core->core);
		if (was && host_compare_cpu(was, core, values))
			host_emit(c, "core", (struct slice){name, (size_t)len}, CPU_FIRST,
				  CPU_COUNT, values);
	}
}

static void host_compare_memory(struct host_comparison *c)
{
	const struct proc_meminfo *m = &c->after->memory;
	struct value *v = c->whole;
	if (!c->after->has_memory)
		return;
	uint64_t actual = m->has_available ? m->available : m->free + m->buffers + m->cached;
	if (m->free > m->total || actual > m->total || m->swap_free > m->swap_total) {
		stat_add(STAT_host_malformed, 1);
		return;
	}
	v[HOST_MEMORY_TOTAL] = value_u64(m->total);
	v[HOST_MEMORY_FREE] = value_u64(m->free);
	v[HOST_MEMORY_USED] = value_u64(m->total - m->free);
	v[HOST_MEMORY_ACTUAL_FREE] = value_u64(actual);
	v[HOST_MEMORY_ACTUAL_USED] = value_u64(m->total - actual);
	v[HOST_MEMORY_FREE_PERCENT] = host_percent((double)actual, (double)m->total);
	v[HOST_MEMORY_USED_PERCENT] = host_percent((double)(m->total - actual), (double)m->total);
	v[HOST_MEMORY_BUFFERS] = value_u64(m->buffers);
	v[HOST_MEMORY_CACHED] = value_u64(m->cached);
	v[HOST_SWAP_TOTAL] = value_u64(m->swap_total);
	v[HOST_SWAP_FREE] = value_u64(m->swap_free);
	v[HOST_SWAP_USED] = value_u64(m->swap_total - m->swap_free);
}

static void host_compare_rest(struct host_comparison *c)
{
	const struct host_snapshot *before = c->before, *after = c->after;
	if (after->has_load) {
		for (size_t i = 0; i < ARRAY_LEN(after->load.load); i++)
			c->whole[HOST_LOAD_1 + i] = value_f64(after->load.load[i]);
	}
	if (after->has_uptime)
		c->whole[HOST_UPTIME] = value_f64(after->uptime_s);
	if (before->has_vm && after->has_vm) {
		c->whole[HOST_SWAP_PAGE_IN] = host_rate(c, before->vm.swap_in, after->vm.swap_in);
		c->whole[HOST_SWAP_PAGE_OUT] =
			host_rate(c, before->vm.swap_out, after->vm.swap_out);
	}
}

/* The entry of that name in a list whose entries begin with their names; NULL: none. Lists change
 * seldom, so the place it has in the other list is looked at first. */
static const void *host_find_named(const void *list, size_t count, size_t entry_bytes, size_t hint,
				   struct slice wanted)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = (i + hint) % count;
		const struct slice *name = (const void *)((const char *)list + at * entry_bytes);
		if (slice_equal(*name, wanted))
			return name;
	}
	return NULL;
}

static void host_compare_interfaces(struct host_comparison *c)
{
	const struct proc_net_dev *before = &c->before->net, *after = &c->after->net;
	if (!c->before->has_net || !c->after->has_net)
		return;
	for (size_t i = 0; i < after->count; i++) {
		const struct proc_interface *is = &after->interfaces[i];
		const struct proc_interface *was = host_find_named(
			before->interfaces, before->count, sizeof(*is), i, is->name);
		if (!was || host_ignored(c->rules->interfaces, is->name))
			continue;
		const struct value values[NET_COUNT] = {
			host_rate(c, was->rx_bytes, is->rx_bytes),
			host_rate(c, was->rx_packets, is->rx_packets),
			host_rate(c, was->rx_errors, is->rx_errors),
			host_rate(c, was->rx_dropped, is->rx_dropped),
			host_rate(c, was->tx_bytes, is->tx_bytes),
			host_rate(c, was->tx_packets, is->tx_packets),
			host_rate(c, was->tx_errors, is->tx_errors),
			host_rate(c, was->tx_dropped, is->tx_dropped),
			host_rate(c, was->tx_collisions, is->tx_collisions),
		};
		host_add_to_whole(c, values, NET_FIRST, NET_COUNT);
		host_emit(c, "interface", is->name, NET_FIRST, NET_COUNT, values);
	}
}

static void host_compare_disks(struct host_comparison *c)
{
	const struct proc_diskstats *before = &c->before->disks, *after = &c->after->disks;
	if (!c->before->has_disks || !c->after->has_disks)
		return;
	for (size_t i = 0; i < after->count; i++) {
		const struct proc_disk *is = &after->disks[i];
		const struct proc_disk *was =
			host_find_named(before->disks, before->count, sizeof(*is), i, is->name);
		if (!was || is->partition || host_ignored(c->rules->disks, is->name))
			continue;
		struct value values[DISK_COUNT] = {
			host_rate(c, was->reads, is->reads),
			host_rate(c, was->read_bytes, is->read_bytes),
			host_rate(c, was->writes, is->writes),
			host_rate(c, was->write_bytes, is->write_bytes),
			{0, VALUE_NONE},
		};
		if (is->busy_ms >= was->busy_ms)
			values[DISK_COUNT - 1] = host_percent((double)(is->busy_ms - was->busy_ms),
							      c->seconds * 1000);
		/* The disks below a stacked one have counted its bytes already. */
		if (!is->stacked)
			host_add_to_whole(c, values, DISK_FIRST, DISK_COUNT - 1);
		host_emit(c, "disk", is->name, DISK_FIRST, DISK_COUNT, values);
	}
}

static void host_room_values(const struct file_room *room, struct value values[VOLUME_COUNT])
{
	uint64_t used = room->total_bytes - room->free_bytes;
	values[0] = value_u64(room->total_bytes);
	values[1] = value_u64(used);
	values[2] = host_percent((double)used, (double)used + (double)room->available_bytes);
}

static void host_compare_volumes(struct host_comparison *c)
{
	const struct host_snapshot *after = c->after;
	struct file_room all = {0};
	struct value values[VOLUME_COUNT];
	for (size_t i = 0; i < after->volume_count; i++) {
		const struct host_volume *volume = &after->volumes[i];
		const struct file_room *room = &volume->room;
		if (host_ignored(c->rules->disks, volume->device) || !room->total_bytes ||
		    room->free_bytes > room->total_bytes)
			continue;
		all.total_bytes += room->total_bytes;
		all.free_bytes += room->free_bytes;
		all.available_bytes += room->available_bytes;
		host_room_values(room, values);
		host_emit(c, "mount", volume->mount, VOLUME_FIRST, VOLUME_COUNT, values);
	}
	if (all.total_bytes)
		host_room_values(&all, &c->whole[VOLUME_FIRST]);
}

static void host_compare_process(struct host_comparison *c)
{
	const struct host_snapshot *before = c->before, *after = c->after;
	struct value v[HOST_METRICS] = {{0, VALUE_NONE}};
	if (before->has_self && after->has_self) {
		struct value ticks =
			host_rate(c, before->self.user_ticks + before->self.system_ticks,
				  after->self.user_ticks + after->self.system_ticks);
		if (ticks.type != VALUE_NONE)
			v[HOST_PROCESS_CPU] =
				host_percent(value_as_f64(ticks), c->rules->ticks_per_second);
		v[HOST_PROCESS_THREADS] = value_u64(after->self.threads);
	}
	if (after->has_status) {
		v[HOST_PROCESS_RESIDENT] = value_u64(after->status.resident);
		v[HOST_PROCESS_ANONYMOUS] = value_u64(after->status.anonymous);
		v[HOST_PROCESS_SWAPPED] = value_u64(after->status.swapped);
	}
	if (before->has_io && after->has_io) {
		v[HOST_PROCESS_READ_BYTES] =
			host_rate(c, before->io.read_bytes, after->io.read_bytes);
		v[HOST_PROCESS_WRITE_BYTES] =
			host_rate(c, before->io.write_bytes, after->io.write_bytes);
	}
	host_emit(c, "process", c->rules->process, PROCESS_FIRST, PROCESS_COUNT, &v[PROCESS_FIRST]);
}

void host_compare(const struct host_snapshot *before, const struct host_snapshot *after,
		  const struct host_rules *rules, host_group_fn *each, void *context)
{
	struct host_comparison c = {
		.before = before,
		.after = after,
		.rules = rules,
		.seconds = (double)(after->mono_us - before->mono_us) / 1e6,
		.each = each,
		.context = context,
	};
	if (after->mono_us <= before->mono_us)
		return;
	host_compare_cpus(&c);
	host_compare_memory(&c);
	host_compare_rest(&c);
	host_compare_interfaces(&c);
	host_compare_volumes(&c);
	host_compare_disks(&c);
	host_compare_process(&c);
	host_emit(&c, NULL, (struct slice){NULL, 0}, WHOLE_FIRST, WHOLE_COUNT, c.whole);
}

/* ---- As JSON --------------------------------------------------------------------------------- */

void host_group_put(const struct host_group *group, int64_t wall_ms, struct buf *out)
{
	struct json_writer json;
	char time[TIME_PRINT_MAX_BYTES];
	json_writer_init(&json, out);
	json_write_object_begin(&json);
	json_put_string(&json, "time", (struct slice){time, time_print(time, wall_ms)});
	if (group->tag_key)
		json_put_string(&json, group->tag_key, group->tag_value);
	for (size_t i = 0; i < group->count; i++)
		if (group->values[i].type != VALUE_NONE)
			json_put_number(&json,
					host_metrics[group->first + i].name + sizeof(PREFIX) - 1,
					group->values[i]);
	json_write_object_end(&json);
}
