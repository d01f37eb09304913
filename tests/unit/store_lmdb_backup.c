/* Backups of the embedded engine: what is in them, what ends them, and that none of it ends the
 * store. Cells of random bytes are what is stored. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "lmdb_dir.h"
#include "store/lmdb/lmdb.h"
#include "store/wait.h"

enum {
	VALUE_BYTES = 16000,
	BLOCK = 1 << 20,
	MANY = 1500, /* 24 MB: more than a pipe and what is read ahead hold */
	FREE_ROOM = 1 << 30,
};

struct backup_rig {
	struct lmdb_dir dir, copy;
	struct lmdb_options options;
	struct files files;
	uint64_t free_bytes; /* of the disk, as the store sees it */
	struct store *store;
	struct task_queue queue;
	struct store_backup *backup;
	struct errbuf e;
	char *block;
};

static struct backup_rig *the_rig;

static int told_free_bytes(UNUSED struct files *files, UNUSED const char *path, uint64_t *bytes)
{
	*bytes = the_rig->free_bytes;
	return 0;
}

static struct store *open_dir(struct backup_rig *rig, const char *path)
{
	struct store *store = NULL;
	rig->options.path = path;
	if (lmdb_open(&rig->options, &store, &rig->e))
		fail_msg("%s", rig->e.text);
	return store;
}

static int set_up(void **state)
{
	struct backup_rig *rig = mem_zalloc(sizeof(*rig));
	the_rig = rig;
	lmdb_dir_make(&rig->dir);
	lmdb_dir_make(&rig->copy);
	rig->files = *files_real();
	rig->files.free_bytes = told_free_bytes;
	rig->free_bytes = FREE_ROOM;
	rig->options = (struct lmdb_options){
		.map_bytes = 256 << 20, .not_durable = true, .files = &rig->files};
	rig->block = mem_alloc(BLOCK);
	task_queue_init(&rig->queue);
	rig->store = open_dir(rig, rig->dir.path);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct backup_rig *rig = *state;
	store_backup_end(rig->backup);
	store_close(rig->store);
	task_queue_release(&rig->queue);
	lmdb_dir_remove(&rig->dir);
	lmdb_dir_remove(&rig->copy);
	mem_free(rig->block);
	mem_free(rig);
	return 0;
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static const struct store_parts row = {{SLICE("backup")}};

/* What cell `i` holds in its generation. */
static struct slice value_of(unsigned i, unsigned generation)
{
	static char bytes[VALUE_BYTES];
	struct random random;
	random_init(&random, (uint64_t)i << 32 | generation);
	for (size_t at = 0; at < VALUE_BYTES; at += 8) {
		uint64_t number = random_next(&random);
		memcpy(bytes + at, &number, 8);
	}
	return (struct slice){bytes, VALUE_BYTES};
}

/* Cells from .. to, durable when it returns. Generation 0: they are deleted. */
static void put(struct backup_rig *rig, unsigned from, unsigned to, unsigned generation)
{
	char name[16];
	while (from < to) {
		struct store_write *write = store_write_new(rig->store, 8 << 20);
		for (int n = 0; n < 100 && from < to; n++, from++) {
			struct store_parts column = {
				{{name, (size_t)snprintf(name, sizeof(name), "%08u", from)}}};
			int err = generation ? store_cell_put(write, TABLE_DEVICES, &row, &column,
							      value_of(from, generation),
							      store_stamp(rig->store), 0)
					     : store_cell_delete(write, TABLE_DEVICES, &row,
								 &column, store_stamp(rig->store));
			assert_int_equal(err, 0);
		}
		assert_int_equal(store_write_wait(write, &rig->queue), 0);
		store_write_free(write);
	}
}

struct counting {
	unsigned next, generation;
};

static int count_one(const struct store_cell *cell, void *owner)
{
	struct counting *counting = owner;
	struct slice wanted = value_of(counting->next++, counting->generation);
	assert_true(slice_equal(cell->value, wanted));
	return 0;
}

/* All cells of a store, which are 0 .. the answer, in that generation. */
static unsigned count(struct backup_rig *rig, struct store *store, unsigned generation)
{
	struct counting counting = {0, generation};
	assert_int_equal(store_row_wait(store, &rig->queue, clock_wall_ms(clock_real()),
					TABLE_DEVICES, &row, count_one, &counting, &rig->e),
			 0);
	return counting.next;
}

/* ---- Backups --------------------------------------------------------------------------------- */

static void begin(struct backup_rig *rig, uint64_t growth_max_bytes)
{
	if (store_backup_begin(rig->store, growth_max_bytes, &rig->backup, &rig->e))
		fail_msg("%s", rig->e.text);
}

static void end(struct backup_rig *rig)
{
	store_backup_end(rig->backup);
	rig->backup = NULL;
}

static uint64_t held(struct backup_rig *rig)
{
	struct store_backup_cost cost;
	if (store_backup_look(rig->backup, &cost, &rig->e))
		fail_msg("%s", rig->e.text);
	return cost.held_bytes;
}

static uint64_t file_bytes(struct backup_rig *rig, char path[512])
{
	struct stat st;
	snprintf(path, 512, "%s/data.mdb", rig->dir.path);
	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

/* The rest of the backup to a directory of its own, in reads of that many bytes. */
static uint64_t copy_rest(struct backup_rig *rig, size_t block_bytes)
{
	char path[512];
	size_t bytes = block_bytes;
	uint64_t total = 0;
	snprintf(path, sizeof(path), "%s/data.mdb", rig->copy.path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	while (bytes == block_bytes) {
		if (store_backup_read(rig->backup, rig->block, block_bytes, &bytes, &rig->e))
			fail_msg("%s", rig->e.text);
		assert_int_equal(write(fd, rig->block, bytes), bytes);
		total += bytes;
	}
	close(fd);
	return total;
}

static void assert_copy_has(struct backup_rig *rig, unsigned cells, unsigned generation)
{
	struct store *copy = open_dir(rig, rig->copy.path);
	assert_int_equal(count(rig, copy, generation), cells);
	store_close(copy);
}

static void it_is_what_was_stored_when_it_began(void **state)
{
	struct backup_rig *rig = *state;
	put(rig, 0, MANY, 1);
	begin(rig, UINT64_MAX);
	put(rig, 0, MANY / 2, 2);
	put(rig, MANY / 2, MANY, 0);
	put(rig, MANY, MANY + 100, 1);
	put(rig, 0, MANY / 2, 3);
	assert_true(copy_rest(rig, BLOCK) >= (uint64_t)MANY * VALUE_BYTES);
	end(rig);
	assert_copy_has(rig, MANY, 1);
	put(rig, MANY, MANY + 100, 0);
	assert_int_equal(count(rig, rig->store, 3), MANY / 2);
}

/* The first bytes are kept from the beginning; a read may end within them, and at their end. */
static void it_is_read_in_pieces_of_any_size(void **state)
{
	static const size_t sizes[] = {4096, 8192, 8191, 12345, 100};
	struct backup_rig *rig = *state;
	put(rig, 0, 20, 1);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		begin(rig, UINT64_MAX);
		copy_rest(rig, sizes[i]);
		end(rig);
		assert_copy_has(rig, 20, 1);
	}
}

static void a_store_without_anything_is_backed_up(void **state)
{
	struct backup_rig *rig = *state;
	begin(rig, 0);
	copy_rest(rig, BLOCK);
	assert_int_equal(held(rig), 0);
	end(rig);
	assert_copy_has(rig, 0, 1);
}

static void one_is_at_work_at_a_time(void **state)
{
	struct backup_rig *rig = *state;
	struct store_backup *second = NULL;
	begin(rig, UINT64_MAX);
	assert_int_equal(store_backup_begin(rig->store, UINT64_MAX, &second, &rig->e), ERR_BUSY);
	assert_non_null(strstr(rig->e.text, "another backup is at work"));
	end(rig);
	begin(rig, UINT64_MAX);
}

/* Whoever wanted it may leave at any moment, and the store goes on. */
static void it_can_be_ended_anywhere(void **state)
{
	struct backup_rig *rig = *state;
	size_t bytes;
	put(rig, 0, MANY, 1);
	for (int blocks = 0; blocks < 26; blocks += 5) {
		begin(rig, UINT64_MAX);
		for (int i = 0; i < blocks; i++) {
			if (store_backup_read(rig->backup, rig->block, BLOCK, &bytes, &rig->e))
				fail_msg("%s", rig->e.text);
		}
		end(rig);
		put(rig, 0, 10, 1);
	}
	assert_int_equal(count(rig, rig->store, 1), MANY);
}

/* ---- What it costs --------------------------------------------------------------------------- */

/* Each cell takes four pages or more; those that are written over are held. */
static void what_is_freed_is_held_and_counted(void **state)
{
	struct backup_rig *rig = *state;
	char path[512];
	put(rig, 0, 500, 1);
	begin(rig, UINT64_MAX);
	assert_int_equal(held(rig), 0);
	uint64_t before = file_bytes(rig, path);
	put(rig, 0, 500, 2);
	assert_true(held(rig) >= 500 * 4 * 4096);
	uint64_t grown = file_bytes(rig, path);
	assert_true(grown >= before + 400 * 4 * 4096);
	end(rig);
	/* From now on it is used again. */
	put(rig, 0, 500, 3);
	put(rig, 0, 500, 4);
	assert_true(file_bytes(rig, path) <= grown + 200 * 4 * 4096);
	begin(rig, UINT64_MAX);
	assert_int_equal(held(rig), 0);
}

static void it_is_to_be_ended_when_it_costs_too_much(void **state)
{
	struct backup_rig *rig = *state;
	struct store_backup_cost cost;
	put(rig, 0, 500, 1);
	begin(rig, 4 << 20);
	put(rig, 0, 100, 2); /* 1.6 MB of values, and as many again of what lies beside them */
	assert_true(held(rig) < 4 << 20);
	put(rig, 100, 500, 2);
	assert_int_equal(store_backup_look(rig->backup, &cost, &rig->e), ERR_FULL);
	assert_non_null(strstr(rig->e.text, "more than backup.growth_max"));
	assert_true(cost.held_bytes > 4 << 20);
}

/* The disk is full, and the pages that the store could use instead are held. */
static void it_is_to_be_ended_when_it_takes_the_last_room(void **state)
{
	struct backup_rig *rig = *state;
	struct store_backup_cost cost;
	store_close(rig->store);
	rig->options.min_free_bytes = 100 << 20;
	rig->store = open_dir(rig, rig->dir.path);
	put(rig, 0, 2000, 1);
	begin(rig, UINT64_MAX);
	put(rig, 0, 2000, 0);
	/* Deleting cells frees their bytes at once. */
	assert_true(held(rig) >= 1500 * 4 * 4096);
	rig->free_bytes = (100 << 20) - 1;
	assert_int_equal(store_backup_look(rig->backup, &cost, &rig->e), ERR_FULL);
	assert_non_null(strstr(rig->e.text, "there is no more room in "));
	rig->free_bytes = 100 << 20;
	assert_true(held(rig) > 0);
}

static void a_store_that_has_no_room_anyway_is_backed_up(void **state)
{
	struct backup_rig *rig = *state;
	rig->options.min_free_bytes = 100 << 20;
	store_close(rig->store);
	rig->store = open_dir(rig, rig->dir.path);
	put(rig, 0, 20, 1);
	begin(rig, UINT64_MAX);
	put(rig, 0, 10, 2);
	rig->free_bytes = 0;
	assert_true(held(rig) > 0);
}

/* ---- The disk -------------------------------------------------------------------------------- */

/* A page that is not there is to who touches it in memory what one is that the disk cannot read. */
static void what_the_disk_does_not_give_ends_the_backup_alone(void **state)
{
	struct backup_rig *rig = *state;
	char path[512], wanted[600];
	size_t bytes;
	int err = 0;
	put(rig, 0, MANY, 1);
	uint64_t length = file_bytes(rig, path);
	begin(rig, UINT64_MAX);
	assert_int_equal(truncate(path, 20 << 20), 0);
	for (int i = 0; i < 100 && !err; i++)
		err = store_backup_read(rig->backup, rig->block, BLOCK, &bytes, &rig->e);
	assert_int_equal(err, ERR_DAMAGED);
	snprintf(wanted, sizeof(wanted), "%s cannot be read at byte 20971520: it ends there", path);
	assert_string_equal(rig->e.text, wanted);
	assert_int_equal(truncate(path, (off_t)length), 0);
	end(rig);
	begin(rig, UINT64_MAX);
}

/* ---- Restoring ------------------------------------------------------------------------------- */

static const char *made_before;

/* In the place of libc's: another process makes this directory just before. */
int mkdir(const char *path, mode_t mode)
{
	if (made_before && strcmp(made_before, path) == 0) {
		made_before = NULL;
		assert_int_equal(syscall(SYS_mkdirat, AT_FDCWD, path, 0777), 0);
	}
	return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

/* Whoever has made it may put other files there. */
static void a_directory_that_was_made_meanwhile_is_left_alone(void **state)
{
	struct backup_rig *rig = *state;
	struct lmdb_restore *restore = NULL;
	char to[256], part[256];
	snprintf(to, sizeof(to), "%s/deep/restored", rig->copy.path);
	snprintf(part, sizeof(part), "%s.restoring", to);
	/* The parents are made as well. */
	made_before = part;
	assert_int_equal(lmdb_restore_begin(to, &restore, &rig->e), ERR_EXISTS);
	assert_non_null(strstr(rig->e.text, part));
	/* It is as it was: empty. */
	assert_int_equal(rmdir(part), 0);
	assert_int_equal(lmdb_restore_begin(to, &restore, &rig->e), 0);
	assert_int_equal(access(part, F_OK), 0);
	lmdb_restore_free(restore);
	assert_int_equal(access(part, F_OK), -1);
	*strrchr(to, '/') = 0;
	assert_int_equal(rmdir(to), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_what_was_stored_when_it_began, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(it_is_read_in_pieces_of_any_size, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_store_without_anything_is_backed_up, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(one_is_at_work_at_a_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_can_be_ended_anywhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_freed_is_held_and_counted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(it_is_to_be_ended_when_it_costs_too_much, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(it_is_to_be_ended_when_it_takes_the_last_room,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_store_that_has_no_room_anyway_is_backed_up,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_the_disk_does_not_give_ends_the_backup_alone,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_directory_that_was_made_meanwhile_is_left_alone,
						set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
