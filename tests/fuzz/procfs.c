/* The first byte chooses the file. */
#include "base/mem.h"
#include "wire/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(uint8_t which, struct slice text, struct arena *arena)
{
	union {
		struct proc_stat stat;
		struct proc_loadavg load;
		struct proc_meminfo memory;
		struct proc_vmstat vm;
		double uptime;
		struct proc_diskstats disks;
		struct proc_net_dev net;
		struct proc_self_stat self;
		struct proc_self_status status;
		struct proc_self_io io;
		struct proc_mounts mounts;
	} out;
	switch ((uint8_t)(which - '0') % 11) {
	case 0:
		return proc_stat_parse(text, arena, &out.stat);
	case 1:
		return proc_loadavg_parse(text, &out.load);
	case 2:
		return proc_meminfo_parse(text, &out.memory);
	case 3:
		return proc_vmstat_parse(text, &out.vm);
	case 4:
		return proc_uptime_parse(text, &out.uptime);
	case 5:
		return proc_diskstats_parse(text, arena, &out.disks);
	case 6:
		return proc_net_dev_parse(text, arena, &out.net);
	case 7:
		return proc_self_stat_parse(text, &out.self);
	case 8:
		return proc_self_status_parse(text, &out.status);
	case 10:
		return proc_mounts_parse(text, arena, &out.mounts);
	default:
		return proc_self_io_parse(text, &out.io);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	arena_init(&arena, 1 << 20);
	if (size > 0) {
		struct slice text = {(const char *)data + 1, size - 1};
		int err = parse(data[0], text, &arena);
		ASSERT(err == 0 || err == ERR_INVALID || err == ERR_LIMIT);
	}
	arena_release(&arena);
	return 0;
}
