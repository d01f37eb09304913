#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/stats.h"
#include "host/host_metrics.h"

/* ---- A /proc of our own --------------------------------------------------------------------- */

struct proc_text {
	const char *path, *text;
};

struct fake_proc {
	struct files files;
	const struct proc_text *texts;
	size_t count;
};

static int fake_read(struct files *files, const char *path, size_t max_bytes, struct buf *out)
{
	struct fake_proc *fake = CONTAINER_OF(files, struct fake_proc, files);
	buf_clear(out);
	for (size_t i = 0; i < fake->count; i++) {
		struct slice text = slice_of(fake->texts[i].text);
		if (strcmp(fake->texts[i].path, path) == 0)
			return text.len > max_bytes ? ERR_LIMIT
						    : buf_append(out, text.data, text.len);
	}
	return ERR_NOT_FOUND;
}

/* Of 1,000 bytes 400 are used, and 100 are kept for root; /mnt cannot be asked. */
static int fake_room(struct files *files, const char *path, struct file_room *room)
{
	(void)files;
	if (strcmp(path, "/mnt") == 0)
		return -ENOTCONN;
	*room = (struct file_room){1000, 600, 500};
	if (strcmp(path, "/data") == 0)
		*room = (struct file_room){3000, 0, 0};
	if (strcmp(path, "/odd") == 0)
		*room = (struct file_room){10, 11, 12};
	if (strcmp(path, "/none") == 0)
		*room = (struct file_room){0, 0, 0};
	return 0;
}

static void snapshot(struct host_snapshot *s, int64_t at_us, const struct proc_text *texts,
		     size_t count)
{
	struct fake_proc fake = {
		.files = {.read = fake_read, .room = fake_room}, .texts = texts, .count = count};
	struct clock_virtual clock;
	clock_virtual_init(&clock, 1600000000000000);
	clock_virtual_advance(&clock, at_us);
	host_snapshot_init(s);
	host_snapshot_read(s, &fake.files, &clock.clock);
}

/* ---- What came out -------------------------------------------------------------------------- */

enum { GROUPS_MAX = 32, CPU_VALUES = 4 };

struct found {
	size_t count;
	struct {
		char tag[64];
		struct value values[HOST_METRICS];
	} groups[GROUPS_MAX];
};

static void remember(void *context, const struct host_group *group)
{
	struct found *found = context;
	assert_true(found->count < GROUPS_MAX);
	snprintf(found->groups[found->count].tag, 64, "%s=%.*s",
		 group->tag_key ? group->tag_key : "", (int)group->tag_value.len,
		 group->tag_value.data ? group->tag_value.data : "");
	struct value *values = found->groups[found->count++].values;
	memset(values, 0, sizeof(found->groups[0].values));
	for (size_t i = 0; i < group->count; i++)
		values[group->first + i] = group->values[i];
}

static const struct value *group_of(const struct found *found, const char *tag)
{
	for (size_t i = 0; i < found->count; i++) {
		if (strcmp(found->groups[i].tag, tag) == 0)
			return found->groups[i].values;
	}
	return NULL;
}

static void assert_near(struct value value, double expected)
{
	assert_int_not_equal(value.type, VALUE_NONE);
	if (fabs(value_as_f64(value) - expected) > 1e-9 * (1 + fabs(expected)))
		fail_msg("%.17g instead of %.17g", value_as_f64(value), expected);
}

static const char *const ignore_disks[] = {"loop*", "sr0"};
static const char *const ignore_interfaces[] = {"lo"};
static const struct host_rules rules = {
	.interfaces = {ignore_interfaces, 1},
	.disks = {ignore_disks, 2},
	.ticks_per_second = 100,
	.process = SLICE("granary"),
};

static void compare(const struct proc_text *before, size_t before_count,
		    const struct proc_text *after, size_t after_count, int64_t us,
		    struct found *found)
{
	struct host_snapshot a, b;
	snapshot(&a, 5000000, before, before_count);
	snapshot(&b, 5000000 + us, after, after_count);
	found->count = 0;
	host_compare(&a, &b, &rules, remember, found);
	host_snapshot_release(&a);
	host_snapshot_release(&b);
}

#define TEXTS(...)                                                                                 \
	(const struct proc_text[]){__VA_ARGS__},                                                   \
		ARRAY_LEN(((const struct proc_text[]){__VA_ARGS__}))

/* ---- Cases ---------------------------------------------------------------------------------- */

/* The case of Chukwa's own test: cores at 0.607 and 0.898 make 0.7525, with user 0.59, sys 0.159
 * and idle 0.205. In ticks of a thousandth of ten seconds on each core. */
static void cpu_of_two_cores_is_chukwas_example(void **state)
{
	(void)state;
	struct found found;
	compare(TEXTS({"/proc/stat", "cpu  1000 0 0 0 0 0 0 0 0 0\ncpu0 1000 0 0 0\n"
				     "cpu1 0 0 0 0\n"}),
		TEXTS({"/proc/stat", "cpu  2180 4 318 410 3 53 32 0 0 0\n"
				     "cpu0 1480 4 120 340 3 53 0 0 0 0\n"
				     "cpu1 700 0 198 70 0 0 32 0 0 0\n"}),
		10000000, &found);
	assert_int_equal(found.count, 3);
	const struct value *all = group_of(&found, "=");
	assert_near(all[HOST_CPU_COMBINED], 75.25);
	assert_near(all[HOST_CPU_USER], 59);
	assert_near(all[HOST_CPU_SYS], 15.9);
	assert_near(all[HOST_CPU_IDLE], 20.5);
	assert_near(all[HOST_CPU_NICE], 0.2);
	assert_near(all[HOST_CPU_WAIT], 0.15);
	assert_near(all[HOST_CPU_IRQ], 2.65);
	assert_near(all[HOST_CPU_SOFTIRQ], 1.6);
	assert_near(all[HOST_CPU_STOLEN], 0);
	assert_int_equal(all[HOST_LOAD_1].type, VALUE_NONE);
	assert_near(group_of(&found, "core=0")[HOST_CPU_COMBINED], 60.7);
	assert_near(group_of(&found, "core=1")[HOST_CPU_COMBINED], 89.8);
	assert_near(group_of(&found, "core=1")[HOST_CPU_IDLE], 7);
}

static void a_core_that_came_or_went_backwards_has_no_values(void **state)
{
	(void)state;
	struct found found;
	compare(TEXTS({"/proc/stat", "cpu 10 0 0 10\ncpu0 10 0 0 10 5\ncpu2 9 0 0 0\n"
				     "cpu3 7 7 7 7\n"}),
		TEXTS({"/proc/stat", "cpu 20 0 0 20\ncpu0 20 0 0 9 4\ncpu1 5 0 0 0\n"
				     "cpu2 8 0 0 9\ncpu3 7 7 7 7\n"}),
		1000000, &found);
	/* cpu0's idle and iowait went back, which kernels do: they count as nothing. cpu1 is new,
	 * cpu2's user time went back, cpu3 stood still. */
	assert_int_equal(found.count, 2);
	assert_near(group_of(&found, "core=0")[HOST_CPU_COMBINED], 100);
	assert_near(group_of(&found, "core=0")[HOST_CPU_IDLE], 0);
	assert_near(group_of(&found, "=")[HOST_CPU_USER], 50);
}

static void memory_and_swap(void **state)
{
	(void)state;
	struct found found;
	compare(NULL, 0,
		TEXTS({"/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 250 kB\n"
					"Buffers: 20 kB\nCached: 130 kB\nSwapTotal: 500 kB\n"
					"SwapFree: 400 kB\n"},
		      {"/proc/loadavg", "0.61 0.68 12.49 1/94 19208\n"},
		      {"/proc/uptime", "2986.13 5399.19\n"},
		      {"/proc/vmstat", "pswpin 5\npswpout 6\n"}),
		1000000, &found);
	assert_int_equal(found.count, 1);
	const struct value *v = group_of(&found, "=");
	assert_true(value_identical(v[HOST_MEMORY_TOTAL], value_u64(1024000)));
	assert_true(value_identical(v[HOST_MEMORY_FREE], value_u64(102400)));
	assert_true(value_identical(v[HOST_MEMORY_USED], value_u64(921600)));
	assert_true(value_identical(v[HOST_MEMORY_ACTUAL_FREE], value_u64(256000)));
	assert_true(value_identical(v[HOST_MEMORY_ACTUAL_USED], value_u64(768000)));
	assert_near(v[HOST_MEMORY_FREE_PERCENT], 25);
	assert_near(v[HOST_MEMORY_USED_PERCENT], 75);
	assert_true(value_identical(v[HOST_SWAP_USED], value_u64(102400)));
	assert_near(v[HOST_LOAD_1], 0.61);
	assert_near(v[HOST_LOAD_5], 0.68);
	assert_near(v[HOST_LOAD_15], 12.49);
	assert_near(v[HOST_UPTIME], 2986.13);
	assert_int_equal(v[HOST_SWAP_PAGE_IN].type, VALUE_NONE); /* no earlier count */
}

static void memory_without_available_is_estimated_and_nonsense_is_left_out(void **state)
{
	(void)state;
	struct found found;
	compare(NULL, 0,
		TEXTS({"/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 20 kB\n"
					"Cached: 130 kB\n"}),
		1000000, &found);
	assert_true(
		value_identical(group_of(&found, "=")[HOST_MEMORY_ACTUAL_FREE], value_u64(256000)));
	int64_t malformed = stat_get(STAT_host_malformed);
	compare(NULL, 0, TEXTS({"/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1001 kB\n"}), 1000000,
		&found);
	assert_int_equal(found.count, 0);
	assert_int_equal(stat_get(STAT_host_malformed), malformed + 1);
}

#define NET "a|b\nc|d\n"

static void interfaces_are_rates_per_second(void **state)
{
	(void)state;
	struct found found;
	compare(TEXTS({"/proc/net/dev", NET "lo: 5 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n"
					    "eth0: 1000 10 1 2 0 0 0 0 500 5 3 4 0 6 0 0\n"
					    "wlan0: 100 10 0 0 0 0 0 0 100 10 0 0 0 0 0 0\n"
					    "gone0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"}),
		TEXTS({"/proc/net/dev", NET "lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n"
					    "new0: 7 7 0 0 0 0 0 0 7 7 0 0 0 0 0 0\n"
					    "eth0: 5000 30 2 2 0 0 0 0 600 9 3 8 0 7 0 0\n"
					    "wlan0: 50 20 0 0 0 0 0 0 300 30 0 0 0 0 0 0\n"}),
		4000000, &found);
	assert_int_equal(found.count, 3);
	const struct value *eth = group_of(&found, "interface=eth0");
	assert_near(eth[HOST_NET_RX_BYTES], 1000);  /* 4000 in 4 s */
	assert_near(eth[HOST_NET_RX_PACKETS], 5);   /* 20 */
	assert_near(eth[HOST_NET_RX_ERRORS], 0.25); /* 1 */
	assert_near(eth[HOST_NET_RX_DROPPED], 0);
	assert_near(eth[HOST_NET_TX_BYTES], 25);  /* 100 */
	assert_near(eth[HOST_NET_TX_PACKETS], 1); /* 4 */
	assert_near(eth[HOST_NET_TX_ERRORS], 0);
	assert_near(eth[HOST_NET_TX_DROPPED], 1); /* 4 */
	assert_near(eth[HOST_NET_TX_COLLISIONS], 0.25);
	/* wlan0's received bytes were reset: no rate, and certainly none below zero. */
	const struct value *wlan = group_of(&found, "interface=wlan0");
	assert_int_equal(wlan[HOST_NET_RX_BYTES].type, VALUE_NONE);
	assert_near(wlan[HOST_NET_RX_PACKETS], 2.5);
	assert_near(wlan[HOST_NET_TX_BYTES], 50);
	const struct value *all = group_of(&found, "=");
	assert_near(all[HOST_NET_RX_BYTES], 1000);
	assert_near(all[HOST_NET_TX_BYTES], 75);
	assert_null(group_of(&found, "interface=lo"));
	assert_null(group_of(&found, "interface=new0"));
}

static void disks_without_partitions_and_without_counting_twice(void **state)
{
	(void)state;
	struct found found;
	compare(TEXTS({"/proc/diskstats", "8 0 sda 10 0 100 0 20 0 200 0 0 1000 0\n"
					  "8 1 sda1 10 0 100 0 20 0 200 0 0 1000 0\n"
					  "8 16 sdb 0 0 0 0 0 0 0 0 0 4294967290 0\n"
					  "253 0 dm-0 10 0 100 0 20 0 200 0 0 1000 0\n"
					  "7 0 loop0 1 0 1 0 1 0 1 0 0 1 0\n"
					  "11 0 sr0 1 0 1 0 1 0 1 0 0 1 0\n"}),
		TEXTS({"/proc/diskstats", "8 0 sda 30 0 140 0 20 0 240 0 0 1500 0\n"
					  "8 1 sda1 30 0 140 0 20 0 240 0 0 1500 0\n"
					  "8 16 sdb 4 0 8 0 0 0 0 0 0 3 0\n"
					  "253 0 dm-0 30 0 140 0 20 0 240 0 0 1500 0\n"
					  "7 0 loop0 9 0 9 0 9 0 9 0 0 9 0\n"
					  "11 0 sr0 9 0 9 0 9 0 9 0 0 9 0\n"}),
		2000000, &found);
	assert_int_equal(found.count, 4); /* sda, sdb, dm-0, all */
	const struct value *sda = group_of(&found, "disk=sda");
	assert_near(sda[HOST_DISK_READS], 10);         /* 20 in 2 s */
	assert_near(sda[HOST_DISK_READ_BYTES], 10240); /* 40 sectors of 512 */
	assert_near(sda[HOST_DISK_WRITES], 0);
	assert_near(sda[HOST_DISK_WRITE_BYTES], 10240);
	assert_near(sda[HOST_DISK_BUSY], 25); /* 500 ms of 2 s */
	/* The kernel's 32 bits of busy time passed their end. */
	assert_int_equal(group_of(&found, "disk=sdb")[HOST_DISK_BUSY].type, VALUE_NONE);
	assert_near(group_of(&found, "disk=dm-0")[HOST_DISK_READS], 10);
	const struct value *all = group_of(&found, "=");
	assert_near(all[HOST_DISK_READS], 12);         /* sda and sdb, not dm-0 */
	assert_near(all[HOST_DISK_READ_BYTES], 12288); /* 48 sectors */
	assert_int_equal(all[HOST_DISK_BUSY].type, VALUE_NONE);
	assert_null(group_of(&found, "disk=sda1"));
	assert_null(group_of(&found, "disk=loop0"));
	assert_null(group_of(&found, "disk=sr0"));
}

static void own_process(void **state)
{
	(void)state;
	struct found found;
	compare(TEXTS({"/proc/self/stat",
		       "1 (granary) S 0 0 0 0 0 0 0 0 0 0 100 50 0 0 20 0 7 0\n"},
		      {"/proc/self/io", "read_bytes: 1000\nwrite_bytes: 4096\n"}),
		TEXTS({"/proc/self/stat",
		       "1 (granary) S 0 0 0 0 0 0 0 0 0 0 160 90 0 0 20 0 8 0\n"},
		      {"/proc/self/io", "read_bytes: 1000\nwrite_bytes: 12288\n"},
		      {"/proc/self/status", "VmRSS: 10 kB\nRssAnon: 4 kB\n"}),
		2000000, &found);
	assert_int_equal(found.count, 1);
	const struct value *v = group_of(&found, "process=granary");
	assert_near(v[HOST_PROCESS_CPU], 50); /* 100 ticks of 10 ms in 2 s */
	assert_true(value_identical(v[HOST_PROCESS_THREADS], value_u64(8)));
	assert_true(value_identical(v[HOST_PROCESS_RESIDENT], value_u64(10240)));
	assert_true(value_identical(v[HOST_PROCESS_ANONYMOUS], value_u64(4096)));
	assert_near(v[HOST_PROCESS_READ_BYTES], 0);
	assert_near(v[HOST_PROCESS_WRITE_BYTES], 4096);
}

static void a_line_of_json(void **state)
{
	(void)state;
	const struct value values[CPU_VALUES] = {
		value_f64(1.5), value_u64(1), {0, VALUE_NONE}, value_f64(97.25)};
	const struct host_group group = {"core", SLICE("0"), HOST_CPU_COMBINED, CPU_VALUES, values};
	const struct host_group whole = {NULL, {NULL, 0}, HOST_UPTIME, 1, values};
	struct buf out;
	buf_init(&out, 4096);
	host_group_put(&group, 1764410400123, &out);
	host_group_put(&whole, 1764410400000, &out);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, "{\"time\":\"2025-11-29T10:00:00.123Z\",\"core\":\"0\","
				      "\"cpu.combined\":1.5,\"cpu.user\":1,\"cpu.idle\":97.25}"
				      "{\"time\":\"2025-11-29T10:00:00Z\",\"Uptime\":1.5}");
	buf_release(&out);
}

static void no_time_between_snapshots_gives_nothing(void **state)
{
	(void)state;
	struct found found;
	compare(TEXTS({"/proc/loadavg", "1 1 1 1/1 1\n"}),
		TEXTS({"/proc/loadavg", "1 1 1 1/1 1\n"}), 0, &found);
	assert_int_equal(found.count, 0);
}

static void room_of_what_is_mounted_from_disks(void **state)
{
	(void)state;
	static const char mounts[] = "proc /proc proc rw 0 0\n"
				     "tmpfs /run tmpfs rw 0 0\n"
				     "nas:/x /net nfs rw 0 0\n"
				     "/dev/sda1 / ext4 rw 0 0\n"
				     "/dev/sda1 /again ext4 rw 0 0\n"
				     "/dev/loop0 /snap squashfs ro 0 0\n"
				     "/dev/sdc1 /mnt xfs rw 0 0\n"
				     "/dev/sdd1 /odd xfs rw 0 0\n"
				     "/dev/sde1 /none xfs rw 0 0\n"
				     "/dev/sdf1 /a\\012b xfs rw 0 0\n"
				     "/dev/mapper/d /data xfs rw 0 0\n";
	struct found found;
	compare(TEXTS({"/proc/self/mounts", mounts}), TEXTS({"/proc/self/mounts", mounts}),
		10000000, &found);
	assert_int_equal(found.count, 3);
	const struct value *root = group_of(&found, "mount=/");
	const struct value *data = group_of(&found, "mount=/data");
	const struct value *all = group_of(&found, "=");
	assert_true(value_identical(root[HOST_DISK_TOTAL], value_u64(1000)));
	assert_true(value_identical(root[HOST_DISK_USED], value_u64(400)));
	assert_near(root[HOST_DISK_PERCENT_USED], 100.0 * 400 / 900);
	assert_near(data[HOST_DISK_PERCENT_USED], 100);
	assert_true(value_identical(all[HOST_DISK_TOTAL], value_u64(4000)));
	assert_true(value_identical(all[HOST_DISK_USED], value_u64(3400)));
	assert_near(all[HOST_DISK_PERCENT_USED], 100.0 * 3400 / 3900);
}

/* In a container the root stands for the disk below it; a root in memory for none. */
static void room_of_other_roots(void **state)
{
	(void)state;
	struct found found;
	compare(TEXTS({"/proc/self/mounts", "overlay / overlay rw 0 0\n"}),
		TEXTS({"/proc/self/mounts", "overlay / overlay rw 0 0\n"}), 10000000, &found);
	assert_true(value_identical(group_of(&found, "mount=/")[HOST_DISK_TOTAL], value_u64(1000)));
	compare(TEXTS({"/proc/self/mounts", "tmpfs / tmpfs rw 0 0\n"}),
		TEXTS({"/proc/self/mounts", "tmpfs / tmpfs rw 0 0\n"}), 10000000, &found);
	assert_int_equal(found.count, 0);
}

static void unreadable_files_are_counted_and_cost_only_themselves(void **state)
{
	(void)state;
	struct host_snapshot s;
	int64_t unreadable = stat_get(STAT_host_unreadable),
		malformed = stat_get(STAT_host_malformed);
	snapshot(&s, 0, TEXTS({"/proc/loadavg", "1 1 1 1/1 1\n"}, {"/proc/stat", "nonsense\n"}));
	assert_true(s.has_load);
	assert_false(s.has_stat || s.has_memory || s.has_disks || s.has_net || s.has_io);
	assert_int_equal(stat_get(STAT_host_unreadable), unreadable + 9);
	assert_int_equal(stat_get(STAT_host_malformed), malformed + 1);
	host_snapshot_release(&s);
}

static void names_and_units_are_complete(void **state)
{
	(void)state;
	for (size_t i = 0; i < HOST_METRICS; i++) {
		assert_non_null(host_metrics[i].name);
		assert_int_equal(strncmp(host_metrics[i].name, "SystemMetrics.", 14), 0);
		assert_true(host_metrics[i].unit[0]);
		size_t unit = strlen(host_metrics[i].unit);
		bool per_second = unit > 2 && strcmp(host_metrics[i].unit + unit - 2, "/s") == 0;
		assert_int_equal(per_second, host_metrics[i].kind == KIND_RATE);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(host_metrics[i].name, host_metrics[j].name);
	}
	assert_string_equal(host_metrics[HOST_LOAD_15].name, "SystemMetrics.LoadAverage.15");
	assert_string_equal(host_metrics[HOST_NET_TX_BYTES].name, "SystemMetrics.network.TxBytes");
	assert_string_equal(host_metrics[HOST_DISK_READ_BYTES].name,
			    "SystemMetrics.disk.ReadBytes");
}

static void stars_match_any_rest(void **state)
{
	(void)state;
	static const char *const names[] = {"loop*", "sda", "*x"};
	struct host_ignore ignore = {names, ARRAY_LEN(names)};
	assert_true(host_ignored(ignore, SLICE("loop")));
	assert_true(host_ignored(ignore, SLICE("loop17")));
	assert_true(host_ignored(ignore, SLICE("sda")));
	assert_false(host_ignored(ignore, SLICE("sda1")));
	assert_false(host_ignored(ignore, SLICE("loo")));
	assert_false(host_ignored(ignore, SLICE("ax"))); /* a star elsewhere is itself */
	assert_false(host_ignored((struct host_ignore){NULL, 0}, SLICE("sda")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_of_two_cores_is_chukwas_example),
		cmocka_unit_test(a_core_that_came_or_went_backwards_has_no_values),
		cmocka_unit_test(memory_and_swap),
		cmocka_unit_test(memory_without_available_is_estimated_and_nonsense_is_left_out),
		cmocka_unit_test(interfaces_are_rates_per_second),
		cmocka_unit_test(disks_without_partitions_and_without_counting_twice),
		cmocka_unit_test(room_of_what_is_mounted_from_disks),
		cmocka_unit_test(room_of_other_roots),
		cmocka_unit_test(own_process),
		cmocka_unit_test(a_line_of_json),
		cmocka_unit_test(no_time_between_snapshots_gives_nothing),
		cmocka_unit_test(unreadable_files_are_counted_and_cost_only_themselves),
		cmocka_unit_test(names_and_units_are_complete),
		cmocka_unit_test(stars_match_any_rest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
