/* Texts captured from machines (a laptop of two cores, a server with LVM and NVMe), shortened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "wire/procfs.h"

static struct arena arena;

static int start(void **state)
{
	(void)state;
	arena_init(&arena, 1 << 20);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static void stat_has_all_and_each_core(void **state)
{
	(void)state;
	struct proc_stat s;
	assert_int_equal(proc_stat_parse(SLICE("cpu  45860 7 8268 539919 1632 0 317 188 11 0\n"
					       "cpu0 21868 3 3761 272006 151 0 143 89 11 0\n"
					       "cpu3 23992 4 4506 267913 1481 0 174 99 0 0\n"
					       "intr 885063 0 0\nctxt 1467200\nbtime 1795251385\n"),
					 &arena, &s),
			 0);
	assert_int_equal(s.all.ticks[PROC_USER], 45860);
	assert_int_equal(s.all.ticks[PROC_NICE], 7);
	assert_int_equal(s.all.ticks[PROC_SYSTEM], 8268);
	assert_int_equal(s.all.ticks[PROC_IDLE], 539919);
	assert_int_equal(s.all.ticks[PROC_IOWAIT], 1632);
	assert_int_equal(s.all.ticks[PROC_IRQ], 0);
	assert_int_equal(s.all.ticks[PROC_SOFTIRQ], 317);
	assert_int_equal(s.all.ticks[PROC_STEAL], 188);
	assert_int_equal(s.core_count, 2);
	assert_int_equal(s.cores[0].core, 0);
	assert_int_equal(s.cores[1].core, 3); /* cores 1 and 2 are offline */
	assert_int_equal(s.cores[1].ticks[PROC_IOWAIT], 1481);
	assert_false(s.cut);
}

static void stat_of_an_old_kernel_has_fewer_columns(void **state)
{
	(void)state;
	struct proc_stat s;
	assert_int_equal(proc_stat_parse(SLICE("cpu 1 2 3 4\ncpu0 1 2 3 4"), &arena, &s), 0);
	assert_int_equal(s.all.ticks[PROC_IDLE], 4);
	assert_int_equal(s.all.ticks[PROC_IOWAIT], 0);
	assert_int_equal(s.core_count, 1);
}

static void what_is_not_stat_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  "\n",
					  "cpu0 1 2 3 4\n",
					  "cpu 1 x 3 4\n",
					  "cpu 1 -2 3 4\n",
					  "cpu 1\ncpux 1\n",
					  "cpu 1 18446744073709551616 3\n",
					  "cpu 1\ncpu99999999999 1\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct proc_stat s;
		assert_int_equal(proc_stat_parse(slice_of(bad[i]), &arena, &s), ERR_INVALID);
	}
}

static void more_cores_than_the_limit_are_cut(void **state)
{
	(void)state;
	struct buf text;
	buf_init(&text, 1 << 20);
	buf_append_text(&text, "cpu 1 1 1 1\n");
	for (int i = 0; i < PROC_CORES_MAX + 1; i++)
		buf_printf(&text, "cpu%d 1 1 1 %d\n", i, i);
	struct proc_stat s;
	assert_int_equal(proc_stat_parse(buf_slice(&text), &arena, &s), 0);
	assert_true(s.cut);
	assert_int_equal(s.core_count, PROC_CORES_MAX);
	assert_int_equal(s.cores[4095].ticks[PROC_IDLE], 4095);
	struct arena small;
	arena_init(&small, 1000);
	assert_int_equal(proc_stat_parse(buf_slice(&text), &small, &s), ERR_LIMIT);
	arena_release(&small);
	buf_release(&text);
}

static void loadavg_and_uptime_are_decimals(void **state)
{
	(void)state;
	struct proc_loadavg load;
	assert_int_equal(proc_loadavg_parse(SLICE("0.61 0.68 12.49 1/94 19208\n"), &load), 0);
	assert_true(load.load[0] == 0.61 && load.load[1] == 0.68 && load.load[2] == 12.49);
	assert_int_equal(proc_loadavg_parse(SLICE("0.61 0.68\n"), &load), ERR_INVALID);
	assert_int_equal(proc_loadavg_parse(SLICE(""), &load), ERR_INVALID);
	double seconds;
	assert_int_equal(proc_uptime_parse(SLICE("2986.13 5399.19\n"), &seconds), 0);
	assert_true(seconds == 2986.13);
	assert_int_equal(proc_uptime_parse(SLICE("soon\n"), &seconds), ERR_INVALID);
	assert_int_equal(proc_uptime_parse(SLICE("\n"), &seconds), ERR_INVALID);
}

static void meminfo_counts_kib(void **state)
{
	(void)state;
	struct proc_meminfo m;
	assert_int_equal(proc_meminfo_parse(SLICE("MemTotal:       24684096 kB\n"
						  "MemFree:        24006120 kB\n"
						  "MemAvailable:   24297448 kB\n"
						  "Buffers:            3588 kB\n"
						  "Cached:           466232 kB\n"
						  "SwapCached:            9 kB\n"
						  "SwapTotal:       1048572 kB\n"
						  "SwapFree:        1048000 kB\n"
						  "HugePages_Total:       0\n"),
					    &m),
			 0);
	assert_int_equal(m.total, 25276514304);     /* 24684096 * 1024 */
	assert_int_equal(m.free, 24582266880);      /* 24006120 * 1024 */
	assert_int_equal(m.available, 24880586752); /* 24297448 * 1024 */
	assert_int_equal(m.buffers, 3674112);       /* 3588 * 1024 */
	assert_int_equal(m.cached, 477421568);      /* 466232 * 1024 */
	assert_int_equal(m.swap_total, 1073737728); /* 1048572 * 1024 */
	assert_int_equal(m.swap_free, 1073152000);  /* 1048000 * 1024 */
	assert_true(m.has_available);
	assert_int_equal(proc_meminfo_parse(SLICE("MemTotal: 5 kB\nMemFree: 3 kB\n"), &m), 0);
	assert_false(m.has_available);
	assert_int_equal(proc_meminfo_parse(SLICE("MemFree: 3 kB\n"), &m), ERR_INVALID);
	assert_int_equal(proc_meminfo_parse(SLICE("MemTotal: 18446744073709551615 kB\n"), &m),
			 ERR_INVALID);
}

static void vmstat_has_pages_swapped(void **state)
{
	(void)state;
	struct proc_vmstat v;
	struct slice text = SLICE("nr_free_pages 6\npgpgin 55\npswpin 12\npswpout 34\n");
	assert_int_equal(proc_vmstat_parse(text, &v), 0);
	assert_int_equal(v.swap_in, 12);
	assert_int_equal(v.swap_out, 34);
	assert_int_equal(proc_vmstat_parse(SLICE("nr_free_pages 6\n"), &v), ERR_INVALID);
}

static void diskstats_tell_disks_from_partitions(void **state)
{
	(void)state;
	static const char text[] =
		" 259       0 nvme0n1 97322 11873 8810418 110550 29102 16066 5745136 19005 0 23440 "
		"137349 10646 3 1859392 6702 4334 1092\n"
		" 259       1 nvme0n1p1 10 0 20 0 0 0 0 0 0 0 0\n"
		" 259       2 nvme0n1p12 10 0 20 0 0 0 0 0 0 0 0\n"
		"   8       0 sda 1 0 2 0 3 0 4 0 0 5 0\n"
		"   8       1 sda1 1 0 2 0 3 0 4 0 0 5 0\n"
		"   8      16 sdaa 1 0 2 0 3 0 4 0 0 5 0\n"
		" 253       0 dm-0 1 0 2 0 3 0 4 0 0 5 0\n"
		" 253       1 dm-01 1 0 2 0 3 0 4 0 0 5 0\n"
		"   9     127 md127 1 0 2 0 3 0 4 0 0 5 0\n";
	struct proc_diskstats d;
	assert_int_equal(proc_diskstats_parse(slice_of(text), &arena, &d), 0);
	assert_int_equal(d.count, 9);
	assert_int_equal(d.disks[0].reads, 97322);
	assert_int_equal(d.disks[0].read_bytes, 4510934016); /* 8810418 * 512 */
	assert_int_equal(d.disks[0].writes, 29102);
	assert_int_equal(d.disks[0].write_bytes, 2941509632); /* 5745136 * 512 */
	assert_int_equal(d.disks[0].busy_ms, 23440);
	static const bool partition[] = {false, true,  true,  false, true,
					 false, false, false, false};
	static const bool stacked[] = {false, false, false, false, false, false, true, true, true};
	for (size_t i = 0; i < d.count; i++) {
		assert_int_equal(d.disks[i].partition, partition[i]);
		assert_int_equal(d.disks[i].stacked, stacked[i]);
	}
	assert_true(slice_equal(d.disks[5].name, SLICE("sdaa")));
}

static void diskstats_that_are_none_are_refused(void **state)
{
	(void)state;
	struct proc_diskstats d;
	assert_int_equal(proc_diskstats_parse(SLICE(""), &arena, &d), 0);
	assert_int_equal(d.count, 0);
	static const char *const bad[] = {"8 0\n", "8 x sda 1\n", "8 0 sda 1 2 3 y\n", "\n",
					  "8 0 sda 1 0 36028797018963968 0 3 0 4 0 0 5\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(proc_diskstats_parse(slice_of(bad[i]), &arena, &d), ERR_INVALID);
}

#define NET_HEAD                                                                                   \
	"Inter-|   Receive                                                |  Transmit\n"           \
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets "      \
	"errs drop fifo colls carrier compressed\n"

static void net_dev_has_both_directions(void **state)
{
	(void)state;
	struct proc_net_dev n;
	assert_int_equal(proc_net_dev_parse(
				 SLICE(NET_HEAD "    lo: 3065525108  188514    0    0    0     0 "
						"0 0 3065525108  188514    0    0    0     0 0 0\n"
						"eth0:115754430 2536 1 2 3 4 5 6 118378 1341 7 8 9 "
						"10 11 12\n"
						"eth0:1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"),
				 &arena, &n),
			 0);
	assert_int_equal(n.count, 3);
	assert_true(slice_equal(n.interfaces[0].name, SLICE("lo")));
	assert_int_equal(n.interfaces[0].tx_bytes, 3065525108);
	const struct proc_interface *eth = &n.interfaces[1];
	assert_true(slice_equal(eth->name, SLICE("eth0")));
	assert_int_equal(eth->rx_bytes, 115754430);
	assert_int_equal(eth->rx_packets, 2536);
	assert_int_equal(eth->rx_errors, 1);
	assert_int_equal(eth->rx_dropped, 2);
	assert_int_equal(eth->tx_bytes, 118378);
	assert_int_equal(eth->tx_packets, 1341);
	assert_int_equal(eth->tx_errors, 7);
	assert_int_equal(eth->tx_dropped, 8);
	assert_int_equal(eth->tx_collisions, 10);
	assert_true(slice_equal(n.interfaces[2].name, SLICE("eth0:1")));
}

static void net_dev_that_is_none_is_refused(void **state)
{
	(void)state;
	struct proc_net_dev n;
	static const char *const bad[] = {"",
					  "a\nb\n",
					  "lo: 1 2 3\n",
					  NET_HEAD "eth0 1 2\n",
					  NET_HEAD ": 1 2\n",
					  NET_HEAD "a b: 1 2\n",
					  NET_HEAD "eth0: 1 x\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(proc_net_dev_parse(slice_of(bad[i]), &arena, &n), ERR_INVALID);
	assert_int_equal(proc_net_dev_parse(SLICE(NET_HEAD), &arena, &n), 0);
	assert_int_equal(n.count, 0);
}

static void a_program_name_with_parentheses_does_not_shift_fields(void **state)
{
	(void)state;
	struct proc_self_stat s;
	assert_int_equal(
		proc_self_stat_parse(
			SLICE("19213 (gra) 1 2 (x) S 19203 19203 4798 0 -1 4194304 98 0 0 0 "
			      "71 23 5 6 20 0 9 0 298613 3133440 413\n"),
			&s),
		0);
	assert_int_equal(s.user_ticks, 71);
	assert_int_equal(s.system_ticks, 23);
	assert_int_equal(s.threads, 9);
	static const char *const bad[] = {"", "19213 cat R 1 2 3\n", "19213 (cat)",
					  "1 (a) S 1 2 3\n",
					  "1 (a) S 1 1 1 0 -1 4 9 0 0 0 x 2 0 0 20 0 1\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(proc_self_stat_parse(slice_of(bad[i]), &s), ERR_INVALID);
}

static void mounts_are_unescaped(void **state)
{
	(void)state;
	struct proc_mounts m;
	assert_int_equal(proc_mounts_parse(SLICE("/dev/sda1 / ext4 rw,relatime 0 0\n"
						 "//nas/a\\040b /mnt/x\\011\\134y\\08 cifs rw 0 0\n"
						 "tmpfs /run tmpfs\n"),
					   &arena, &m),
			 0);
	assert_int_equal(m.count, 3);
	assert_true(slice_equal(m.mounts[0].source, SLICE("/dev/sda1")));
	assert_true(slice_equal(m.mounts[0].target, SLICE("/")));
	assert_true(slice_equal(m.mounts[0].type, SLICE("ext4")));
	assert_true(slice_equal(m.mounts[1].source, SLICE("//nas/a b")));
	/* Three octal digits or nothing. */
	assert_true(slice_equal(m.mounts[1].target, SLICE("/mnt/x\t\\y\\08")));
	assert_string_equal(m.mounts[1].target.data, "/mnt/x\t\\y\\08");
	assert_true(slice_equal(m.mounts[2].type, SLICE("tmpfs")));
	static const char *const bad[] = {"", "\n", "a b\n", "/dev/sda1 / ext4 rw\na b\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(proc_mounts_parse(slice_of(bad[i]), &arena, &m), ERR_INVALID);
}

static void more_mounts_than_the_limit_are_cut(void **state)
{
	(void)state;
	struct proc_mounts m;
	struct buf text;
	buf_init(&text, 1 << 20);
	for (int i = 0; i < PROC_MOUNTS_MAX + 1; i++)
		buf_printf(&text, "/dev/d%d /m%d ext4 rw 0 0\n", i, i);
	assert_int_equal(proc_mounts_parse(buf_slice(&text), &arena, &m), 0);
	assert_int_equal(m.count, PROC_MOUNTS_MAX);
	assert_true(m.cut);
	buf_release(&text);
}

static void own_memory_and_io(void **state)
{
	(void)state;
	struct proc_self_status m;
	assert_int_equal(proc_self_status_parse(SLICE("Name:\tcat\nVmRSS:\t    1732 kB\n"
						      "RssAnon:\t     116 kB\nVmSwap:\t 1 kB\n"),
						&m),
			 0);
	assert_int_equal(m.resident, 1773568); /* 1732 * 1024 */
	assert_int_equal(m.anonymous, 118784); /* 116 * 1024 */
	assert_int_equal(m.swapped, 1024);
	assert_int_equal(proc_self_status_parse(SLICE("Name:\tcat\n"), &m), ERR_INVALID);
	struct proc_self_io io;
	assert_int_equal(proc_self_io_parse(SLICE("rchar: 6976\nwchar: 0\nread_bytes: 4096\n"
						  "write_bytes: 8192\n"
						  "cancelled_write_bytes: 3\n"),
					    &io),
			 0);
	assert_int_equal(io.read_bytes, 4096);
	assert_int_equal(io.write_bytes, 8192);
	assert_int_equal(proc_self_io_parse(SLICE("read_bytes: 4096\n"), &io), ERR_INVALID);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(stat_has_all_and_each_core),
		TEST(stat_of_an_old_kernel_has_fewer_columns),
		TEST(what_is_not_stat_is_refused),
		TEST(more_cores_than_the_limit_are_cut),
		TEST(loadavg_and_uptime_are_decimals),
		TEST(meminfo_counts_kib),
		TEST(vmstat_has_pages_swapped),
		TEST(diskstats_tell_disks_from_partitions),
		TEST(diskstats_that_are_none_are_refused),
		TEST(net_dev_has_both_directions),
		TEST(net_dev_that_is_none_is_refused),
		TEST(a_program_name_with_parentheses_does_not_shift_fields),
		TEST(mounts_are_unescaped),
		TEST(more_mounts_than_the_limit_are_cut),
		TEST(own_memory_and_io),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
