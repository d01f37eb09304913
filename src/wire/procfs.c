/* Every file is lines of fields between blanks, so all parsers are the same two loops: lines, then
 * fields. A missing field stays 0, one that is no number makes the file ERR_INVALID. */
#include "wire/procfs.h"

#include "base/mem.h"
#include "wire/number.h"

enum { SECTOR_BYTES = 512, KIB = 1024 };

/* Bytes up to `separator`, taken off the front of `rest` with it. False at the end. */
static bool procfs_next_line(struct slice *rest, struct slice *line)
{
	if (rest->len == 0)
		return false;
	const char *end = memchr(rest->data, '\n', rest->len);
	*line = (struct slice){rest->data, end ? (size_t)(end - rest->data) : rest->len};
	size_t used = line->len + (end != NULL);
	rest->data += used;
	rest->len -= used;
	return true;
}

static bool procfs_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The next run of non-blanks; empty at the end. */
static struct slice procfs_next_field(struct slice *line)
{
	size_t start = 0, end;
	while (start < line->len && procfs_blank(line->data[start]))
		start++;
	for (end = start; end < line->len && !procfs_blank(line->data[end]);)
		end++;
	struct slice field = {line->data + start, end - start};
	line->data += end;
	line->len -= end;
	return field;
}

/* The next field as a number; 0 when there is none. False: it is no number, or over 64 bits. */
static bool next_number(struct slice *line, uint64_t *number)
{
	struct slice field = procfs_next_field(line);
	*number = 0;
	return field.len == 0 || number_parse_u64(field.data, field.data + field.len, number) == 0;
}

static bool next_numbers(struct slice *line, uint64_t *numbers, size_t count)
{
	bool good = true;
	for (size_t i = 0; i < count; i++)
		good &= next_number(line, &numbers[i]);
	return good;
}

static bool next_decimal(struct slice *line, double *number)
{
	struct slice field = procfs_next_field(line);
	return field.len && number_parse_f64(field.data, field.data + field.len, number) == 0;
}

/* Room for one more in an array that grows by doubling in the arena: what it outgrows stays there
 * until the round ends, at most as much again. */
static void *procfs_grow(struct arena *arena, void *array, size_t count, size_t size_bytes)
{
	if (count & (count - 1))
		return array; /* capacity is the next power of two */
	void *bigger = arena_alloc(arena, (count ? 2 * count : 1) * size_bytes);
	if (bigger && count)
		memcpy(bigger, array, count * size_bytes);
	return bigger;
}

/* ---- /proc/stat ---------------------------------------------------------------------------- */

static int add_core(struct arena *arena, struct proc_stat *out, struct slice name,
		    const struct proc_cpu *cpu)
{
	uint64_t core;
	if (number_parse_u64(name.data + 3, name.data + name.len, &core) || core > UINT32_MAX)
		return ERR_INVALID;
	if (out->core_count == PROC_CORES_MAX) {
		out->cut = true;
		return 0;
	}
	out->cores = procfs_grow(arena, out->cores, out->core_count, sizeof(*out->cores));
	if (!out->cores)
		return ERR_LIMIT;
	out->cores[out->core_count] = *cpu;
	out->cores[out->core_count++].core = (uint32_t)core;
	return 0;
}

int proc_stat_parse(struct slice text, struct arena *arena, struct proc_stat *out)
{
	bool has_all = false;
	struct slice line;
	*out = (struct proc_stat){.cores = NULL};
	while (procfs_next_line(&text, &line)) {
		struct slice name = procfs_next_field(&line);
		struct proc_cpu cpu = {.core = 0};
		if (!slice_starts_with(name, SLICE("cpu")))
			continue;
		if (!next_numbers(&line, cpu.ticks, PROC_CPU_STATES))
			return ERR_INVALID;
		if (name.len == 3) {
			out->all = cpu;
			has_all = true;
			continue;
		}
		int err = add_core(arena, out, name, &cpu);
		if (err)
			return err;
	}
	return has_all ? 0 : ERR_INVALID;
}

/* ---- One line, one number a key ------------------------------------------------------------- */

int proc_loadavg_parse(struct slice text, struct proc_loadavg *out)
{
	struct slice line;
	if (!procfs_next_line(&text, &line))
		return ERR_INVALID;
	for (size_t i = 0; i < ARRAY_LEN(out->load); i++) {
		if (!next_decimal(&line, &out->load[i]))
			return ERR_INVALID;
	}
	return 0;
}

int proc_uptime_parse(struct slice text, double *seconds)
{
	struct slice line;
	return procfs_next_line(&text, &line) && next_decimal(&line, seconds) ? 0 : ERR_INVALID;
}

struct procfs_key {
	const char *name; /* with its colon, where the file has one */
	uint64_t *number;
	bool *has;
};

/* Lines `name number`, each number times `unit`. `found` counts the keys that were there. */
static int parse_keys(struct slice text, const struct procfs_key *keys, size_t count, uint64_t unit,
		      size_t *found)
{
	struct slice line;
	*found = 0;
	while (procfs_next_line(&text, &line)) {
		struct slice name = procfs_next_field(&line);
		for (size_t i = 0; i < count; i++) {
			if (!slice_equal(name, slice_of(keys[i].name)))
				continue;
			uint64_t number;
			if (!next_number(&line, &number) ||
			    __builtin_mul_overflow(number, unit, keys[i].number))
				return ERR_INVALID;
			if (keys[i].has)
				*keys[i].has = true;
			++*found;
		}
	}
	return 0;
}

int proc_meminfo_parse(struct slice text, struct proc_meminfo *out)
{
	*out = (struct proc_meminfo){.total = 0};
	const struct procfs_key keys[] = {
		{"MemTotal:", &out->total, NULL},
		{"MemFree:", &out->free, NULL},
		{"MemAvailable:", &out->available, &out->has_available},
		{"Buffers:", &out->buffers, NULL},
		{"Cached:", &out->cached, NULL},
		{"SwapTotal:", &out->swap_total, NULL},
		{"SwapFree:", &out->swap_free, NULL},
	};
	size_t found;
	int err = parse_keys(text, keys, ARRAY_LEN(keys), KIB, &found);
	return err ? err : out->total ? 0 : ERR_INVALID;
}

int proc_vmstat_parse(struct slice text, struct proc_vmstat *out)
{
	*out = (struct proc_vmstat){.swap_in = 0};
	const struct procfs_key keys[] = {
		{"pswpin", &out->swap_in, NULL},
		{"pswpout", &out->swap_out, NULL},
	};
	size_t found;
	int err = parse_keys(text, keys, ARRAY_LEN(keys), 1, &found);
	return err ? err : found == ARRAY_LEN(keys) ? 0 : ERR_INVALID;
}

int proc_self_status_parse(struct slice text, struct proc_self_status *out)
{
	*out = (struct proc_self_status){.resident = 0};
	const struct procfs_key keys[] = {
		{"VmRSS:", &out->resident, NULL},
		{"RssAnon:", &out->anonymous, NULL},
		{"VmSwap:", &out->swapped, NULL},
	};
	size_t found;
	int err = parse_keys(text, keys, ARRAY_LEN(keys), KIB, &found);
	return err ? err : out->resident ? 0 : ERR_INVALID;
}

int proc_self_io_parse(struct slice text, struct proc_self_io *out)
{
	*out = (struct proc_self_io){.read_bytes = 0};
	const struct procfs_key keys[] = {
		{"read_bytes:", &out->read_bytes, NULL},
		{"write_bytes:", &out->write_bytes, NULL},
	};
	size_t found;
	int err = parse_keys(text, keys, ARRAY_LEN(keys), 1, &found);
	return err ? err : found == ARRAY_LEN(keys) ? 0 : ERR_INVALID;
}

int proc_self_stat_parse(struct slice text, struct proc_self_stat *out)
{
	/* Fields 14, 15 and 20 of proc(5). Field 2 is the name in parentheses, so counting begins
	 * after the last of them: what follows is field 3. */
	enum { FIRST = 3, UTIME = 14, STIME = 15, THREADS = 20 };
	const char *close = text.len ? memrchr(text.data, ')', text.len) : NULL;
	if (!close)
		return ERR_INVALID;
	struct slice line = {close + 1, text.len - (size_t)(close + 1 - text.data)};
	*out = (struct proc_self_stat){.threads = 0};
	bool good = true;
	for (int field = FIRST; field <= THREADS; field++) {
		if (field == UTIME)
			good &= next_number(&line, &out->user_ticks);
		else if (field == STIME)
			good &= next_number(&line, &out->system_ticks);
		else if (field == THREADS)
			good &= next_number(&line, &out->threads);
		else
			procfs_next_field(&line);
	}
	return good && out->threads ? 0 : ERR_INVALID;
}

/* ---- /proc/diskstats ------------------------------------------------------------------------ */

static bool all_digits(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (!number_is_digit(text.data[i]))
			return false;
	}
	return text.len > 0;
}

/* sda1 of sda, nvme0n1p2 of nvme0n1: the disk's name, a `p` if that ends in a digit, a number. */
static bool procfs_partition_of(struct slice name, struct slice disk)
{
	if (disk.len == 0 || name.len <= disk.len || memcmp(name.data, disk.data, disk.len) != 0)
		return false;
	struct slice rest = {name.data + disk.len, name.len - disk.len};
	if (!number_is_digit(disk.data[disk.len - 1]))
		return all_digits(rest);
	return rest.data[0] == 'p' && all_digits((struct slice){rest.data + 1, rest.len - 1});
}

/* The kernel lists a disk right before its partitions. */
static bool is_partition(const struct proc_diskstats *out, struct slice name)
{
	for (size_t i = out->count; i > 0; i--) {
		const struct proc_disk *before = &out->disks[i - 1];
		if (!before->partition)
			return procfs_partition_of(name, before->name);
	}
	return false;
}

static int add_disk(struct arena *arena, struct proc_diskstats *out, const struct proc_disk *disk)
{
	if (out->count == PROC_DISKS_MAX) {
		out->cut = true;
		return 0;
	}
	out->disks = procfs_grow(arena, out->disks, out->count, sizeof(*out->disks));
	if (!out->disks)
		return ERR_LIMIT;
	out->disks[out->count++] = *disk;
	return 0;
}

int proc_diskstats_parse(struct slice text, struct arena *arena, struct proc_diskstats *out)
{
	struct slice line;
	*out = (struct proc_diskstats){.disks = NULL};
	while (procfs_next_line(&text, &line)) {
		/* major minor name: reads, merged, sectors, ms, writes, merged, sectors, ms, in
		 * flight, busy ms, ... */
		uint64_t major_minor[2], n[10];
		bool good = next_numbers(&line, major_minor, 2);
		struct slice name = procfs_next_field(&line);
		good &= next_numbers(&line, n, ARRAY_LEN(n));
		if (!good || name.len == 0 || name.len > PROC_NAME_MAX_BYTES ||
		    n[2] > UINT64_MAX / SECTOR_BYTES || n[6] > UINT64_MAX / SECTOR_BYTES)
			return ERR_INVALID;
		struct proc_disk disk = {
			.name = name,
			.partition = is_partition(out, name),
			.stacked = slice_starts_with(name, SLICE("dm-")) ||
				   slice_starts_with(name, SLICE("md")),
			.reads = n[0],
			.read_bytes = n[2] * SECTOR_BYTES,
			.writes = n[4],
			.write_bytes = n[6] * SECTOR_BYTES,
			.busy_ms = n[9],
		};
		int err = add_disk(arena, out, &disk);
		if (err)
			return err;
	}
	return 0;
}

/* ---- /proc/net/dev -------------------------------------------------------------------------- */

static int add_interface(struct arena *arena, struct proc_net_dev *out, struct slice name,
			 const uint64_t n[16])
{
	if (out->count == PROC_INTERFACES_MAX) {
		out->cut = true;
		return 0;
	}
	out->interfaces = procfs_grow(arena, out->interfaces, out->count, sizeof(*out->interfaces));
	if (!out->interfaces)
		return ERR_LIMIT;
	out->interfaces[out->count++] = (struct proc_interface){
		.name = name,
		.rx_bytes = n[0],
		.rx_packets = n[1],
		.rx_errors = n[2],
		.rx_dropped = n[3],
		.tx_bytes = n[8],
		.tx_packets = n[9],
		.tx_errors = n[10],
		.tx_dropped = n[11],
		.tx_collisions = n[13],
	};
	return 0;
}

int proc_net_dev_parse(struct slice text, struct arena *arena, struct proc_net_dev *out)
{
	struct slice line;
	*out = (struct proc_net_dev){.interfaces = NULL};
	/* Two lines of headings, without which this is another file. */
	if (!procfs_next_line(&text, &line) || !procfs_next_line(&text, &line) ||
	    !memchr(line.data, '|', line.len))
		return ERR_INVALID;
	while (procfs_next_line(&text, &line)) {
		/* The first number may touch the colon; an alias (eth0:1) has one in its name. */
		const char *colon = line.len ? memrchr(line.data, ':', line.len) : NULL;
		if (!colon)
			return ERR_INVALID;
		struct slice head = {line.data, (size_t)(colon - line.data)};
		struct slice rest = {colon + 1, line.len - head.len - 1};
		struct slice name = procfs_next_field(&head);
		uint64_t n[16];
		if (name.len == 0 || name.len > PROC_NAME_MAX_BYTES ||
		    procfs_next_field(&head).len || !next_numbers(&rest, n, ARRAY_LEN(n)))
			return ERR_INVALID;
		int err = add_interface(arena, out, name, n);
		if (err)
			return err;
	}
	return 0;
}

/* ---- /proc/self/mounts ----------------------------------------------------------------------- */

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Blanks, newlines and backslashes are written as \ooo (getmntent(3)). */
static bool procfs_unescape(struct slice field, struct arena *arena, struct slice *name)
{
	char *to = arena_alloc(arena, field.len + 1);
	size_t n = 0;
	if (!to)
		return false;
	for (size_t i = 0; i < field.len; i++) {
		const char *p = field.data + i;
		if (*p == '\\' && field.len - i >= 4 && is_octal(p[1]) && is_octal(p[2]) &&
		    is_octal(p[3])) {
			to[n++] = (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
			i += 3;
		} else {
			to[n++] = *p;
		}
	}
	to[n] = 0;
	*name = (struct slice){to, n};
	return true;
}

int proc_mounts_parse(struct slice text, struct arena *arena, struct proc_mounts *out)
{
	struct slice line;
	*out = (struct proc_mounts){.mounts = NULL};
	while (procfs_next_line(&text, &line)) {
		struct slice source = procfs_next_field(&line), target = procfs_next_field(&line);
		struct proc_mount mount = {.type = procfs_next_field(&line)};
		if (mount.type.len == 0)
			return ERR_INVALID;
		if (out->count == PROC_MOUNTS_MAX) {
			out->cut = true;
			return 0;
		}
		out->mounts = procfs_grow(arena, out->mounts, out->count, sizeof(*out->mounts));
		if (!out->mounts || !procfs_unescape(source, arena, &mount.source) ||
		    !procfs_unescape(target, arena, &mount.target))
			return ERR_LIMIT;
		out->mounts[out->count++] = mount;
	}
	return out->count ? 0 : ERR_INVALID;
}
