/* Names of rotated files, and the files that a log may have become while names change. The rows are
 * what logrotate, savelog, newsyslog, cronolog, Python's and log4j's handlers call their files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/siblings.h"
#include "agent_files.h"
#include "base/random.h"

/* ---- Names ----------------------------------------------------------------------------------- */

static const struct {
	const char *base, *name;
} rotated_rows[] =
	{
		{"app.log", "app.log.1"},
		{"app.log", "app.log.10"},
		{"app.log", "app.log.0"},
		{"app.log", "app.log.1.gz"},
		{"app.log", "app.log.1.zst"},
		{"app.log", "app.log-20261129"},
		{"app.log", "app.log-20261129.zst"},
		{"app.log", "app.log-20261129-1764412800.gz"},
		{"app.log", "app.log.2026-11-29"},
		{"app.log", "app.log_2026-11-29T10:00"},
		{"app.log", "app.log.2026-11-29.1"},
		{"app.log", "app.log.old"},
		{"app.log", "app.log.old.gz"},
		{"app.log", "app-20261129.log"},
		{"app.log", "app.2026-11-29.log"},
		{"app.log", "app.1.log"},
		{"app.log", "app.1.log.gz"},
		{"app.log", "app.old.log"},
		{"syslog", "syslog.1"},
		{"syslog", "syslog-20261129.gz"},
		{"syslog", "syslog.old"},
		{".log", ".log.1"},
		{"a.b.c", "a.b.c.1"},
		{"a.b.c", "a.b.1.c"},
		{"app.log.1", "app.log.1.2"},
		{"app.", "app..1"},
		{"a", "a.1"},
		{"1", "1.1"},
},
  other_rows[] = {
	  {"app.log", "app.log"},
	  {"app.log", "app.log.bak.txt"},
	  {"app.log", "app.log.bak"},
	  {"app.log", "app.logs"},
	  {"app.log", "app.logs.1"},
	  {"app.log", "app.log1"},
	  {"app.log", "app.log."},
	  {"app.log", "app.log-"},
	  {"app.log", "app.log.-"},
	  {"app.log", "app.log.gz"}, /* a log that is packed itself has no turn */
	  {"app.log", "app.log.zst"},
	  {"app.log", "app.log..gz"},
	  {"app.log", "application.log"},
	  {"app.log", "application.log.1"},
	  {"app.log", "xapp.log.1"},
	  {"app.log", "pp.log.1"},
	  {"app.log", "app.log.1x"},
	  {"app.log", "app.log.x1"},
	  {"app.log", "app.log.1.bz2"},
	  {"app.log", "app.log.1.gz.tmp"},
	  {"app.log", "app.log.1.GZ"},
	  {"app.log", "app.log.1.gz.zst"}, /* packed twice: unpacked once, it is no text */
	  {"app.log", "app.log.1.zst.gz"},
	  {"app.log", "app.log.OLD"},
	  {"app.log", "app.log.old.old"},
	  {"app.log", "app.log.1.old"},
	  {"app.log", "app.log.older"},
	  {"app.log", "app.log+1"},
	  {"app.log", "app.log 1"},
	  {"app.log", "app.log.1\n"},
	  {"app.log", "app.log.\xd9\xa1"}, /* a digit, but not one of ASCII */
	  {"app.log", "app.log.T"},
	  {"app.log", "app..log"},
	  {"app.log", "app.log.log"},
	  {"app.log", "app-err.log"},
	  {"app.log", "app-1.log.2"},
	  {"app.log", "app.1.logs"},
	  {"app.log", "app1.log"},
	  {"app.log", "app.1"},
	  {"app.log", ".1.log"},
	  {"app.log", ""},
	  {"app.log", ".gz"},
	  {"app.log", "."},
	  {"syslog", "sys.1.log"},
	  {"syslog", "1.syslog"},
	  {".log", ".1.log"},
	  {"", ".1"}, /* no log has an empty name */
	  {"", "-20261129"},
	  {"", ""},
	  {"", "x.1"},
};

static bool is_rotated(const char *base, const char *name)
{
	uint32_t number = 12345;
	return siblings_is_rotated(slice_of(base), slice_of(name), &number);
}

static void rotated_names_are_known(UNUSED void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rotated_rows); i++)
		if (!is_rotated(rotated_rows[i].base, rotated_rows[i].name))
			fail_msg("%s of %s", rotated_rows[i].name, rotated_rows[i].base);
}

static void other_names_are_not(UNUSED void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(other_rows); i++)
		if (is_rotated(other_rows[i].base, other_rows[i].name))
			fail_msg("%s of %s", other_rows[i].name, other_rows[i].base);
}

static void numbers_are_one_more_than_in_the_name(UNUSED void **state)
{
	static const struct {
		const char *name;
		uint32_t number;
	} rows[] = {
		{"app.log.0", 1},       {"app.log.1", 2},          {"app.log.01", 2},
		{"app.log.3.gz", 4},    {"app.3.log", 4},          {"app.log.99999", 100000},
		{"app.log.100000", 0},  {"app.log.20261129", 0},   {"app.log.1.1", 0},
		{"app.log.2026-11", 0}, {"app.log.old", 0},        {"app.old.log.zst", 0},
		{"app-12.log", 13},     {"app.log.4294967296", 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t number = 12345;
		assert_true(siblings_is_rotated(SLICE("app.log"), slice_of(rows[i].name), &number));
		assert_int_equal(number, rows[i].number);
	}
}

static bool is_among_the_bases(const char *base, const char *name)
{
	struct slice bases[SIBLINGS_BASES_MAX];
	char room[SIBLINGS_BASES_MAX * (SIBLINGS_NAME_MAX_BYTES + 1)];
	bool found = false;
	size_t count = siblings_bases_of(slice_of(name), bases, room);
	assert_true(count <= SIBLINGS_BASES_MAX);
	for (size_t i = 0; i < count; i++)
		found |= slice_equal(bases[i], slice_of(base));
	return found;
}

static void bases_are_the_inverse(UNUSED void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rotated_rows); i++)
		if (!is_among_the_bases(rotated_rows[i].base, rotated_rows[i].name))
			fail_msg("%s of %s", rotated_rows[i].name, rotated_rows[i].base);
	for (size_t i = 0; i < ARRAY_LEN(other_rows); i++)
		if (is_among_the_bases(other_rows[i].base, other_rows[i].name))
			fail_msg("%s of %s", other_rows[i].name, other_rows[i].base);
}

static void append_parts(struct random *random, uint64_t below, char text[static 128])
{
	static const char *const parts[] = {".",   "-",   "_",    "1",  "20261129", "old",
					    "log", ".gz", ".zst", "ap", ":",        "T"};
	for (uint64_t n = random_below(random, below); n--;)
		snprintf(text + strlen(text), 128 - strlen(text), "%s",
			 parts[random_below(random, ARRAY_LEN(parts))]);
}

/* Two functions tell whether one name is a form of another. They agree on names that are put
 * together from their parts at random. */
static void both_say_the_same(UNUSED void **state)
{
	struct random random;
	size_t rotated = 0;
	random_init(&random, 11);
	for (int round = 0; round < 200000; round++) {
		char base[128] = "", name[128] = "";
		append_parts(&random, 4, base);
		if (random_below(&random, 2))
			memcpy(name, base, sizeof(name));
		append_parts(&random, 5, name);
		bool is = is_rotated(base, name);
		if (is != is_among_the_bases(base, name))
			fail_msg("'%s' of '%s'", name, base);
		rotated += is;
	}
	assert_true(rotated > 1000);
}

static void long_names_have_no_bases(UNUSED void **state)
{
	struct slice bases[SIBLINGS_BASES_MAX];
	char room[SIBLINGS_BASES_MAX * (SIBLINGS_NAME_MAX_BYTES + 1)], name[300];
	memset(name, 'a', sizeof(name));
	name[253] = '.';
	name[254] = '1';
	assert_int_equal(siblings_bases_of((struct slice){name, 255}, bases, room), 1);
	assert_int_equal(bases[0].len, 253);
	name[254] = '.';
	name[255] = '1';
	assert_int_equal(siblings_bases_of((struct slice){name, 256}, bases, room), 0);
	/* More than there may be. */
	for (size_t i = 1; i < 255; i++)
		name[i] = i % 2 ? '.' : '1';
	assert_int_equal(siblings_bases_of((struct slice){name, 255}, bases, room),
			 SIBLINGS_BASES_MAX);
	assert_int_equal(siblings_bases_of((struct slice){NULL, 0}, bases, room), 0);
}

/* ---- Finding --------------------------------------------------------------------------------- */

struct world {
	struct sim_files sim;
	struct clock_virtual clock;
	struct siblings siblings;
	int rotations, looks;
};

static int make_world(void **state)
{
	struct world *world = mem_zalloc(sizeof(*world));
	clock_virtual_init(&world->clock, 1795953600000000);
	sim_files_init(&world->sim, &world->clock.clock);
	siblings_init(&world->siblings, &world->clock.clock);
	*state = world;
	return 0;
}

static int free_world(void **state)
{
	struct world *world = *state;
	siblings_release(&world->siblings);
	sim_files_release(&world->sim);
	mem_free(world);
	return 0;
}

/* Each a millisecond after the one in front. */
static void make_file(struct world *world, const char *name)
{
	char path[300];
	snprintf(path, sizeof(path), "/log/%s", name);
	clock_virtual_advance(&world->clock, 1000);
	sim_make(&world->sim, path);
}

static int find(struct world *world, const char *base)
{
	return siblings_find(&world->siblings, &world->sim.files, "/log", slice_of(base));
}

/* The names of the list, one behind the other. */
static void assert_listed(const struct siblings *siblings, const char *expected)
{
	struct buf text;
	buf_init(&text, 4096);
	for (size_t i = 0; i < siblings->count; i++)
		buf_printf(&text, "%s%s", i ? " " : "", siblings->list[i].name.data);
	buf_append_char(&text, 0);
	assert_string_equal(text.data, expected);
	buf_release(&text);
}

static void older_ones_come_first(void **state)
{
	struct world *world = *state;
	static const char *const names[] = {
		"app.log",     "app.log.2",        "app.log.10.gz", "app.log-20261128",
		"app.log.1",   "app-20261127.log", "other.log",     "app.log-20261129.gz",
		"app.old.log", "app.log.old.gz",   "app.log.bak",   "app.log.old",
		"app.log.9",   "app.log.3.zst",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		make_file(world, names[i]);
	assert_int_equal(find(world, "app.log"), 0);
	/* app.log.old.gz is app.log.old, being packed. */
	assert_listed(&world->siblings, "app.old.log app.log.old app-20261127.log app.log-20261128 "
					"app.log-20261129.gz app.log.10.gz app.log.9 app.log.3.zst "
					"app.log.2 app.log.1 app.log");
	for (size_t i = 0; i < world->siblings.count; i++)
		assert_int_equal(world->siblings.list[i].is_log, i == world->siblings.count - 1);
	assert_int_equal(world->siblings.list[4].packing, CONTENT_GZIP);
	assert_int_equal(world->siblings.list[7].packing, CONTENT_ZSTD);
	assert_int_equal(world->siblings.list[8].packing, CONTENT_PLAIN);
	assert_int_equal(find(world, "other.log"), 0);
	assert_listed(&world->siblings, "other.log");
	assert_int_equal(find(world, "none.log"), 0);
	assert_int_equal(world->siblings.count, 0);
}

/* Those without a number or a date are ordered by when they were written to, packed or not. */
static void old_ones_are_ordered_by_time(void **state)
{
	struct world *world = *state;
	make_file(world, "app.log.old.gz");
	make_file(world, "app.old.log");
	make_file(world, "app.log-20260101");
	assert_int_equal(find(world, "app.log"), 0);
	assert_listed(&world->siblings, "app.log.old.gz app.old.log app.log-20260101");
	make_file(world, "app.log.old.gz");
	assert_int_equal(find(world, "app.log"), 0);
	assert_listed(&world->siblings, "app.old.log app.log.old.gz app.log-20260101");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(world->siblings.list[i].is_dated, i == 2);
}

/* savelog and newsyslog begin with 0. */
static void number_0_is_the_youngest_number(void **state)
{
	struct world *world = *state;
	make_file(world, "syslog.0");
	make_file(world, "syslog.2.gz");
	make_file(world, "syslog.1.gz");
	make_file(world, "syslog");
	assert_int_equal(find(world, "syslog"), 0);
	assert_listed(&world->siblings, "syslog.2.gz syslog.1.gz syslog.0 syslog");
}

/* logrotate's dateformat -%Y%m, and -%y%m%d: the higher one is the younger one, as of each date. */
static void six_digits_are_a_date(void **state)
{
	struct world *world = *state;
	make_file(world, "app.log-202611");
	make_file(world, "app.log-202609");
	make_file(world, "app.log-202610.gz");
	make_file(world, "app.log-99999");
	make_file(world, "app.log-12");
	assert_int_equal(find(world, "app.log"), 0);
	assert_listed(&world->siblings, "app.log-202609 app.log-202610.gz app.log-202611 "
					"app.log-99999 app.log-12");
}

/* Several of a day: `app-%d-%i.log` of log4j, `app.%d.%i.log` of logback. */
static void numbers_behind_a_date_rise(void **state)
{
	struct world *world = *state;
	static const char *const names[] = {
		"app-2026-11-30-1.log",     "app-2026-11-29-10.log",   "app-2026-11-29-9.log",
		"app-2026-11-29-100.log",   "app-2026-11-29-2.log.gz", "app-2026-09-30-11.log",
		"app-2026-10-01-1.log.zst", "app-2026-11-29-0.log.gz",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		make_file(world, names[i]);
	assert_int_equal(find(world, "app.log"), 0);
	assert_listed(&world->siblings,
		      "app-2026-09-30-11.log app-2026-10-01-1.log.zst app-2026-11-29-0.log.gz "
		      "app-2026-11-29-2.log.gz app-2026-11-29-9.log app-2026-11-29-10.log "
		      "app-2026-11-29-100.log app-2026-11-30-1.log");
	/* Longer than any integer, and with the hour. */
	make_file(world, "x.log.99999999999999999999");
	make_file(world, "x.log.100000000000000000000");
	make_file(world, "x.log.2026-11-29T09:59");
	make_file(world, "x.log.2026-11-29T10:00");
	make_file(world, "x.log.2026-11-29T00:00");
	assert_int_equal(find(world, "x.log"), 0);
	assert_listed(&world->siblings,
		      "x.log.2026-11-29T00:00 x.log.2026-11-29T09:59 x.log.2026-11-29T10:00 "
		      "x.log.99999999999999999999 x.log.100000000000000000000");
}

/* While it is packed it is there twice, and the packed one is not whole. */
static void a_file_that_is_being_packed_counts_once(void **state)
{
	struct world *world = *state;
	make_file(world, "app.log.1");
	make_file(world, "app.log.1.gz");
	make_file(world, "app.log.2.zst");
	make_file(world, "app.log.2");
	make_file(world, "app.log.22.gz");
	make_file(world, "app-20261129.log.gz");
	make_file(world, "app-20261129.log");
	make_file(world, "app.log");
	assert_int_equal(find(world, "app.log"), 0);
	assert_listed(&world->siblings,
		      "app-20261129.log app.log.22.gz app.log.2 app.log.1 app.log");
	sim_unlink(&world->sim, "/log/app.log.1");
	assert_int_equal(find(world, "app.log"), 0);
	assert_listed(&world->siblings,
		      "app-20261129.log app.log.22.gz app.log.2 app.log.1.gz app.log");
}

static void a_check_notices_what_changed(void **state)
{
	struct world *world = *state;
	struct files *files = &world->sim.files;
	struct siblings *siblings = &world->siblings;
	world->sim.has_births = true;
	make_file(world, "app.log.1");
	make_file(world, "app.log");
	assert_int_equal(find(world, "app.log"), 0);
	assert_int_equal(siblings_check(siblings, files, "/log", SLICE("app.log")), 0);
	/* That a log is written to is no change, nor is what others do. */
	sim_append(&world->sim, sim_find(&world->sim, "/log/app.log"), "x", 1);
	make_file(world, "other.log.1");
	assert_int_equal(siblings_check(siblings, files, "/log", SLICE("app.log")), 0);
	assert_listed(siblings, "app.log.1 app.log");
	make_file(world, "app.log"); /* another file of the same name, maybe with its inode */
	assert_int_equal(siblings_check(siblings, files, "/log", SLICE("app.log")), ERR_RETRY);
	assert_int_equal(siblings_check(siblings, files, "/log", SLICE("app.log")), 0);
	/* The two change their names. */
	sim_rename(&world->sim, "/log/app.log", "/log/x");
	sim_rename(&world->sim, "/log/app.log.1", "/log/app.log");
	sim_rename(&world->sim, "/log/x", "/log/app.log.1");
	assert_int_equal(siblings_check(siblings, files, "/log", SLICE("app.log")), ERR_RETRY);
	sim_unlink(&world->sim, "/log/app.log.1");
	assert_int_equal(siblings_check(siblings, files, "/log", SLICE("app.log")), ERR_RETRY);
	assert_listed(siblings, "app.log");
}

static void rotate(struct world *world)
{
	for (int i = 5; i >= 0; i--) {
		char from[64], to[64];
		snprintf(from, sizeof(from), i ? "/log/app.log.%d" : "/log/app.log", i);
		snprintf(to, sizeof(to), "/log/app.log.%d", i + 1);
		sim_rename(&world->sim, from, to);
	}
	make_file(world, "app.log");
	world->rotations++;
}

static void rotate_at_random(void *owner)
{
	struct world *world = owner;
	struct random random;
	random_init(&random, (uint64_t)world->looks++);
	if (random_below(&random, 30) < 2)
		rotate(world);
}

static void rotate_always(void *owner)
{
	struct world *world = owner;
	world->looks++;
	rotate(world);
}

/* Each file is there once, and its number is its age: it has been rotated so often since it was
 * made, for its birth is the time of that. */
static void assert_consistent(const struct world *world)
{
	const struct siblings *siblings = &world->siblings;
	for (size_t i = 0; i < siblings->count; i++) {
		for (size_t j = i + 1; j < siblings->count; j++) {
			assert_false(slice_equal(siblings->list[i].name, siblings->list[j].name));
			assert_true(file_id_is_older(&siblings->list[i].look.id,
						     &siblings->list[j].look.id));
		}
	}
	assert_int_equal(siblings->count, 7);
}

static void names_that_change_meanwhile(void **state)
{
	struct world *world = *state;
	int found = 0;
	world->sim.has_births = true;
	world->sim.owner = world;
	/* Free places between the files, so that a listing meets new ones before and behind. */
	for (int i = 0; i < 7; i++) {
		for (int j = 0; j < 90; j++)
			make_file(world, "x");
		rotate(world);
		for (int j = 0; j < 90; j++) {
			char name[32];
			snprintf(name, sizeof(name), "x%d", i * 90 + j);
			make_file(world, name);
		}
	}
	for (int i = 0; i < 630; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/log/x%d", i);
		sim_unlink(&world->sim, path);
	}
	assert_int_equal(find(world, "app.log"), 0);
	assert_consistent(world);
	world->sim.meanwhile = rotate_at_random;
	for (int round = 0; round < 3000; round++) {
		int before = world->rotations, err = find(world, "app.log");
		assert_true(err == 0 || err == ERR_RETRY);
		if (err)
			continue;
		found += world->rotations != before;
		assert_consistent(world);
	}
	assert_true(found > 100); /* names changed, and it was found all the same */
	world->sim.meanwhile = rotate_always;
	world->looks = 0;
	assert_int_equal(find(world, "app.log"), ERR_RETRY);
	assert_true(world->looks < 1000);
}

static int no_such_directory(UNUSED struct files *files, UNUSED const char *path,
			     UNUSED file_name_fn *each, UNUSED void *owner)
{
	return ERR_NOT_FOUND;
}

static int too_many_names(UNUSED struct files *files, UNUSED const char *path, file_name_fn *each,
			  void *owner)
{
	for (int i = 0; i <= SIBLINGS_MAX; i++) {
		char name[32];
		snprintf(name, sizeof(name), "app.log.%d", i);
		each(owner, name);
	}
	return 0;
}

static void directories_that_cannot_be_listed(void **state)
{
	struct world *world = *state;
	make_file(world, "app.log");
	world->sim.files.list = too_many_names;
	assert_int_equal(find(world, "app.log"), ERR_LIMIT);
	world->sim.files.list = sim_list;
	assert_int_equal(find(world, "app.log"), 0);
	world->sim.files.list = no_such_directory;
	assert_int_equal(find(world, "app.log"), ERR_NOT_FOUND);
	world->sim.files.list = sim_list;
	assert_int_equal(find(world, "app.log"), 0);
	world->sim.files.list = no_such_directory;
	/* A check takes it for an empty one. */
	struct files *files = &world->sim.files;
	assert_int_equal(siblings_check(&world->siblings, files, "/log", SLICE("app.log")),
			 ERR_RETRY);
	assert_int_equal(siblings_check(&world->siblings, files, "/log", SLICE("app.log")), 0);
	assert_int_equal(world->siblings.count, 0);
}

/* On a real file system. */
static void what_is_no_regular_file_is_left_out(void **state)
{
	struct world *world = *state;
	static const char *const names[] = {"app.log.1", "app.log.2", "app.log.3",
					    "app.log.4", "app.log.5", "app.log"};
	char dir[] = "/tmp/granary-siblings-XXXXXX", path[ARRAY_LEN(names)][64];
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", dir, names[i]);
	assert_int_equal(mkdir(path[0], 0700), 0);
	assert_int_equal(mkfifo(path[1], 0600), 0);
	assert_int_equal(symlink("gone", path[2]), 0);
	assert_int_equal(symlink("app.log.2", path[3]), 0);
	assert_int_equal(symlink("app.log.5", path[4]), 0); /* to itself */
	FILE *file = fopen(path[5], "w");
	assert_non_null(file);
	fclose(file);
	int err = siblings_find(&world->siblings, files_real(), dir, SLICE("app.log"));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		remove(path[i]);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(err, 0);
	assert_listed(&world->siblings, "app.log");
	assert_int_equal(siblings_find(&world->siblings, files_real(), dir, SLICE("app.log")),
			 ERR_NOT_FOUND);
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, make_world, free_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rotated_names_are_known),
		cmocka_unit_test(other_names_are_not),
		cmocka_unit_test(numbers_are_one_more_than_in_the_name),
		cmocka_unit_test(bases_are_the_inverse),
		cmocka_unit_test(both_say_the_same),
		cmocka_unit_test(long_names_have_no_bases),
		IN_WORLD(older_ones_come_first),
		IN_WORLD(old_ones_are_ordered_by_time),
		IN_WORLD(number_0_is_the_youngest_number),
		IN_WORLD(six_digits_are_a_date),
		IN_WORLD(numbers_behind_a_date_rise),
		IN_WORLD(a_file_that_is_being_packed_counts_once),
		IN_WORLD(a_check_notices_what_changed),
		IN_WORLD(names_that_change_meanwhile),
		IN_WORLD(directories_that_cannot_be_listed),
		IN_WORLD(what_is_no_regular_file_is_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
