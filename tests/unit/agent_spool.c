/* The spool on simulated files: what is in which file, to the byte; its bound; a disk that is full;
 * an end of the process after any of its steps. And that the agent's part of it removes a file only
 * when all of it is delivered. */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/followed.h"
#include "agent/spool.h"
#include "agent_files.h"
#include "base/log.h"

#define DIRECTORY   "/spool"
#define FILE_OF_UDP DIRECTORY "/raw:udp%3A9095"

enum { MAX_BYTES = 16 << 20, FILE_BYTES = MAX_BYTES / 16 };

struct world {
	struct sim_files sim;
	struct clock_virtual clock;
	struct spool *spool;
	struct spool_stream *stream;
};

static struct spool_stream *stream_of(struct world *world, const char *datatype, const char *name)
{
	struct spool_stream *stream;
	struct errbuf e = {""};
	assert_int_equal(
		spool_stream(world->spool, slice_of(datatype), slice_of(name), &stream, &e), 0);
	return stream;
}

static void start(struct world *world)
{
	struct errbuf e = {""};
	const struct spool_options options = {&world->sim.files, &world->clock.clock, DIRECTORY,
					      MAX_BYTES};
	assert_int_equal(spool_open(&options, &world->spool, &e), 0);
	world->stream = stream_of(world, "raw", "udp:9095");
}

/* As the end of the process by a kill: what is in memory is lost, the files are as they are. */
static void kill_and_start(struct world *world)
{
	uint64_t room_bytes = world->sim.room_bytes;
	world->sim.room_bytes = 0;
	spool_close(world->spool);
	world->sim.room_bytes = room_bytes;
	start(world);
}

static int make_world(void **state)
{
	struct world *world = mem_zalloc(sizeof(*world));
	log_set_level(LOG_ERROR);
	clock_virtual_init(&world->clock, 1795953600000000);
	sim_files_init(&world->sim, &world->clock.clock);
	world->sim.has_births = true;
	start(world);
	*state = world;
	return 0;
}

static int free_world(void **state)
{
	struct world *world = *state;
	spool_close(world->spool);
	assert_int_equal(world->sim.open_count, 0);
	sim_files_release(&world->sim);
	mem_free(world);
	return 0;
}

static int append(struct world *world, struct slice record)
{
	return spool_append(world->stream, &record, 1);
}

static void assert_file(struct world *world, const char *path, const char *text)
{
	struct sim_file *file = sim_find(&world->sim, path);
	assert_non_null(file);
	assert_int_equal(file->bytes.len, strlen(text));
	assert_memory_equal(file->bytes.data, text, strlen(text));
}

static uint64_t bytes_of_files(struct world *world)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < SIM_FILES_MAX; i++)
		if (world->sim.list[i].used && world->sim.list[i].name)
			bytes += world->sim.list[i].bytes.len;
	return bytes;
}

/* ---- Records --------------------------------------------------------------------------------- */

static void a_record_is_a_line(void **state)
{
	struct world *world = *state;
	const struct slice records[] = {SLICE("first"), SLICE(""), SLICE("with \0 zero")};
	assert_int_equal(spool_append(world->stream, records, 3), 0);
	struct sim_file *file = sim_find(&world->sim, FILE_OF_UDP);
	assert_non_null(file);
	assert_int_equal(file->bytes.len, 6 + 1 + 12);
	assert_memory_equal(file->bytes.data, "first\n\nwith \0 zero\n", 19);
	assert_int_equal(spool_bytes(world->spool), 19);
}

/* As Chukwa's appenders write it: a newline behind a byte 4 ends no record. */
static void newlines_within_a_record_are_escaped(void **state)
{
	struct world *world = *state;
	assert_int_equal(append(world, SLICE("a\nb\n\nc")), 0);
	assert_int_equal(append(world, SLICE("ends with it\4")), 0);
	assert_int_equal(append(world, SLICE("\n")), 0);
	assert_file(world, FILE_OF_UDP, "a\4\nb\4\n\4\nc\nends with it\4\n\n\4\n\n");
}

static void names_of_files(void **state)
{
	struct world *world = *state;
	struct errbuf e = {""};
	struct spool_stream *stream;
	char name[SPOOL_NAME_MAX_BYTES + 1];
	const struct slice record = SLICE("x");
	/* By hand: '.' is 2E, '-' is 2D, '_' is 5F, ' ' is 20, U+00FC is C3 BC. */
	stream = stream_of(world, "sys-log_1", "10.0.0.1 \xc3\xbc");
	assert_int_equal(spool_append(stream, &record, 1), 0);
	assert_file(world, DIRECTORY "/sys%2Dlog%5F1:10%2E0%2E0%2E1%20%C3%BC", "x\n");
	/* The one behind is as long as a name may be: "raw:" and 236. */
	memset(name, 'n', sizeof(name));
	name[237] = 0;
	assert_int_equal(spool_stream(world->spool, SLICE("raw"), slice_of(name), &stream, &e),
			 ERR_INVALID);
	assert_non_null(strstr(e.text, "have together more than 240 bytes"));
	name[236] = 0;
	stream_of(world, "raw", name);
	assert_int_equal(spool_check_names(SLICE("raw"), SLICE("/var/log/x"), &e), ERR_INVALID);
	assert_int_equal(spool_check_names(SLICE("raw"), SLICE(""), &e), ERR_INVALID);
	assert_int_equal(spool_check_names(SLICE(""), SLICE("x"), &e), ERR_INVALID);
	assert_int_equal(spool_check_names(SLICE("raw"), SLICE("a\nb"), &e), ERR_INVALID);
}

static void streams_are_found_again(void **state)
{
	struct world *world = *state;
	const struct slice record = SLICE("x");
	struct spool_stream *stream = stream_of(world, "sys.log", "[::1]");
	assert_int_equal(spool_append(stream, &record, 1), 0);
	assert_ptr_equal(stream_of(world, "sys.log", "[::1]"), stream);
	spool_close(world->spool);
	/* Left alone: no colon; no such number; a name that is spelt otherwise. */
	sim_make(&world->sim, DIRECTORY "/core");
	sim_make(&world->sim, DIRECTORY "/raw:x.1");
	sim_make(&world->sim, DIRECTORY "/r%61w:y");
	start(world);
	assert_int_equal(spool_stream_count(world->spool), 2); /* and that of start() */
	stream = spool_stream_at(world->spool, 0);
	assert_true(slice_equal(spool_stream_datatype(stream), SLICE("sys.log")));
	assert_true(slice_equal(spool_stream_name(stream), SLICE("[::1]")));
	assert_int_equal(spool_bytes(world->spool), 2);
}

/* ---- The bound ------------------------------------------------------------------------------- */

/* Each record is 1,000 bytes with its newline: 16,777 of them are 16,777,000 bytes, and 216 are
 * left of 16 MiB, which a record of 215 fills to the last one. */
static void the_bound_is_exact(void **state)
{
	struct world *world = *state;
	char text[999];
	const struct slice record = {text, sizeof(text)};
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 16777; i++)
		assert_int_equal(append(world, record), 0);
	assert_int_equal(append(world, record), ERR_FULL);
	assert_int_equal(append(world, (struct slice){text, 216}), ERR_FULL);
	assert_int_equal(append(world, (struct slice){text, 215}), 0);
	assert_int_equal(append(world, SLICE("")), ERR_FULL);
	assert_int_equal(spool_bytes(world->spool), MAX_BYTES);
	assert_int_equal(bytes_of_files(world), MAX_BYTES);
	assert_false(spool_has_room(world->spool));
	kill_and_start(world);
	assert_int_equal(append(world, SLICE("")), ERR_FULL);
}

/* The bound has become smaller, and more is there than may be. */
static void nothing_is_added_where_too_much_is_there(void **state)
{
	struct world *world = *state;
	struct errbuf e = {""};
	char text[999];
	const struct slice record = {text, sizeof(text)};
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 12000; i++)
		assert_int_equal(append(world, record), 0);
	spool_close(world->spool);
	const struct spool_options options = {&world->sim.files, &world->clock.clock, DIRECTORY,
					      MAX_BYTES / 2};
	assert_int_equal(spool_open(&options, &world->spool, &e), 0);
	world->stream = stream_of(world, "raw", "udp:9095");
	assert_int_equal(append(world, SLICE("a")), ERR_FULL);
	assert_int_equal(spool_bytes(world->spool), 12000 * 1000);
}

static void records_of_one_call_are_all_there_or_none(void **state)
{
	struct world *world = *state;
	static char text[SPOOL_RECORDS_MAX_BYTES];
	const struct slice records[] = {SLICE("first"), {text, sizeof(text) - 9}, SLICE("last")};
	memset(text, '\n', sizeof(text));
	assert_int_equal(spool_append(world->stream, records, 3), ERR_LIMIT);
	assert_null(sim_find(&world->sim, FILE_OF_UDP));
	/* 5 + 2 and n + 2 are the maximum; escaped, it is 6 bytes and 2n + 1. */
	const struct slice two[] = {SLICE("first"), {text, sizeof(text) - 9}};
	assert_int_equal(spool_append(world->stream, two, 2), 0);
	assert_int_equal(spool_bytes(world->spool), 6 + 2 * (sizeof(text) - 9) + 1);
}

/* ---- Long files ------------------------------------------------------------------------------ */

static void fill_file(struct world *world, char with)
{
	static char text[FILE_BYTES - 1];
	memset(text, with, sizeof(text));
	assert_int_equal(append(world, (struct slice){text, sizeof(text)}), 0);
}

static void long_files_are_renamed(void **state)
{
	struct world *world = *state;
	fill_file(world, 'a');
	assert_int_equal(append(world, SLICE("b")), 0);
	assert_file(world, FILE_OF_UDP, "b\n");
	assert_int_equal(sim_find(&world->sim, FILE_OF_UDP ".0000000001")->bytes.len, FILE_BYTES);
	assert_int_equal(world->sim.sync_count, 1); /* before it was renamed */
	kill_and_start(world);
	fill_file(world, 'c');
	assert_int_equal(append(world, SLICE("d")), 0);
	assert_int_equal(sim_find(&world->sim, FILE_OF_UDP ".0000000002")->bytes.len,
			 FILE_BYTES + 2);
	assert_file(world, FILE_OF_UDP, "d\n");
	assert_int_equal(spool_bytes(world->spool), bytes_of_files(world));
}

/* ---- The agent's part ------------------------------------------------------------------------ */

struct delivered {
	const char *names[8]; /* NULL: no more */
	struct world *world;
	size_t removed;
};

static bool is_delivered(void *owner, const struct file_look *look)
{
	struct delivered *delivered = owner;
	for (size_t i = 0; delivered->names[i]; i++) {
		const struct sim_file *file = sim_find(&delivered->world->sim, delivered->names[i]);
		if (file && file->id.inode == look->id.inode)
			return true;
	}
	return false;
}

static void note_removed(void *owner, UNUSED const struct file_look *look)
{
	((struct delivered *)owner)->removed++;
}

static void only_delivered_files_are_removed(void **state)
{
	struct world *world = *state;
	struct delivered delivered = {.world = world};
	fill_file(world, 'a');
	fill_file(world, 'b');
	assert_int_equal(append(world, SLICE("c")), 0);
	spool_remove_delivered(world->stream, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 0);
	delivered.names[0] = FILE_OF_UDP ".0000000002";
	spool_remove_delivered(world->stream, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 1);
	assert_null(sim_find(&world->sim, FILE_OF_UDP ".0000000002"));
	assert_non_null(sim_find(&world->sim, FILE_OF_UDP ".0000000001"));
	assert_int_equal(spool_bytes(world->spool), FILE_BYTES + 2);
	/* A short file at the path stays, while there is room. */
	delivered.names[0] = FILE_OF_UDP;
	spool_remove_delivered(world->stream, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 1);
	/* A long one goes, and the next record makes a new one. */
	fill_file(world, 'd');
	spool_remove_delivered(world->stream, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 2);
	assert_int_equal(append(world, SLICE("e")), 0);
	assert_file(world, FILE_OF_UDP, "e\n");
	assert_int_equal(spool_bytes(world->spool), bytes_of_files(world));
}

/* Many short files may fill the spool, too: 9 streams of less than a file's length each. */
static void short_files_go_when_the_spool_is_half_full(void **state)
{
	struct world *world = *state;
	struct delivered delivered = {.world = world, .names = {DIRECTORY "/raw:s0"}};
	static char text[FILE_BYTES - 2];
	const struct slice record = {text, sizeof(text)};
	struct spool_stream *first = NULL;
	for (char name[] = "s0"; name[1] < '8'; name[1]++) {
		struct spool_stream *stream = stream_of(world, "raw", name);
		first = first ? first : stream;
		assert_int_equal(spool_append(stream, &record, 1), 0);
	}
	spool_remove_delivered(first, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 0); /* 8 bytes are missing to the half */
	assert_int_equal(append(world, SLICE("123456789")), 0);
	spool_remove_delivered(first, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 1);
	assert_int_equal(spool_bytes(world->spool), bytes_of_files(world));
}

/* One that is idle for a minute need not stay for ever, though it is short and there is room. */
static void a_short_file_goes_when_nothing_comes_any_more(void **state)
{
	struct world *world = *state;
	struct delivered delivered = {.world = world, .names = {FILE_OF_UDP}};
	assert_int_equal(append(world, SLICE("a")), 0);
	clock_virtual_advance(&world->clock, 59999000);
	spool_remove_delivered(world->stream, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 0);
	assert_int_equal(append(world, SLICE("b")), 0); /* the minute begins anew */
	clock_virtual_advance(&world->clock, 59999000);
	spool_remove_delivered(world->stream, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 0);
	kill_and_start(world); /* as for one that was left there */
	clock_virtual_advance(&world->clock, 59999000);
	spool_remove_delivered(world->stream, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 0);
	clock_virtual_advance(&world->clock, 1000);
	spool_remove_delivered(world->stream, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 1);
	assert_int_equal(bytes_of_files(world), 0);
	assert_int_equal(spool_bytes(world->spool), 0);
}

/* Renaming a file and syncing the directory may take long. Meanwhile others get the lock: another
 * stream takes a record, and who asks for a sync is not told that it is done. */
static struct {
	struct world *world;
	struct spool_stream *other;
	pthread_t thread;
	atomic_uint appended, synced;
	unsigned calls;
} beside;

static void *append_beside(void *argument)
{
	const struct slice record = SLICE("beside");
	assert_int_equal(spool_append(beside.other, &record, 1), 0);
	atomic_store(&beside.appended, 1);
	return argument;
}

static void *sync_beside(void *argument)
{
	assert_int_equal(spool_sync(beside.world->spool), 0);
	atomic_store(&beside.synced, 1);
	return argument;
}

/* The disk is done when the other thread has its turn. */
static int rename_slowly(struct files *files, const char *from, const char *to)
{
	beside.calls++;
	assert_int_equal(pthread_create(&beside.thread, NULL, append_beside, NULL), 0);
	pthread_join(beside.thread, NULL);
	return sim_rename_over(files, from, to);
}

static int sync_dir_slowly(UNUSED struct files *files, UNUSED const char *path)
{
	pthread_t appends;
	if (beside.calls++)
		return 0;
	assert_int_equal(pthread_create(&beside.thread, NULL, sync_beside, NULL), 0);
	assert_int_equal(pthread_create(&appends, NULL, append_beside, NULL), 0);
	pthread_join(appends, NULL);
	assert_int_equal(atomic_load(&beside.synced), 0);
	return 0;
}

static void a_slow_disk_keeps_no_other_stream_waiting(void **state)
{
	struct world *world = *state;
	memset(&beside, 0, sizeof(beside));
	beside.world = world;
	beside.other = stream_of(world, "raw", "other");
	fill_file(world, 'a');
	world->sim.files.rename = rename_slowly;
	assert_int_equal(append(world, SLICE("b")), 0);
	world->sim.files.rename = sim_rename_over;
	assert_int_equal(beside.calls, 1);
	assert_int_equal(atomic_load(&beside.appended), 1);
	assert_file(world, FILE_OF_UDP, "b\n");
	assert_file(world, DIRECTORY "/raw:other", "beside\n");

	beside.calls = 0;
	atomic_store(&beside.appended, 0);
	world->sim.files.sync_dir = sync_dir_slowly;
	assert_int_equal(spool_sync(world->spool), 0);
	pthread_join(beside.thread, NULL);
	assert_int_equal(atomic_load(&beside.synced), 1);
	world->sim.files.sync_dir = sim_sync_dir;
	assert_file(world, DIRECTORY "/raw:other", "beside\nbeside\n");
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static void a_full_disk_refuses_a_record(void **state)
{
	struct world *world = *state;
	assert_int_equal(append(world, SLICE("kept")), 0);
	world->sim.room_bytes = 0;
	assert_int_equal(append(world, SLICE("lost")), -ENOSPC);
	assert_int_equal(spool_bytes(world->spool), 5);
	world->sim.room_bytes = 100;
	assert_int_equal(append(world, SLICE("again")), 0);
	assert_file(world, FILE_OF_UDP, "kept\nagain\n");
}

/* The checkpoint needs room, too: the disk keeps an eighth of 16 MiB. "x" and its newline are two
 * bytes. */
static void the_spool_does_not_fill_the_disk(void **state)
{
	struct world *world = *state;
	world->sim.free_bytes = (2 << 20) + 2;
	assert_int_equal(append(world, SLICE("x")), 0);
	assert_int_equal(append(world, SLICE("xy")), ERR_FULL);
	world->sim.free_bytes--;
	assert_int_equal(append(world, SLICE("x")), ERR_FULL);
	assert_file(world, FILE_OF_UDP, "x\n");
	assert_false(spool_has_room(world->spool));
	world->sim.free_bytes = 6 << 20;
	assert_true(spool_has_room(world->spool));
	world->sim.free_bytes--;
	assert_false(spool_has_room(world->spool));
}

/* A part that is there cannot be taken back. So the record is taken, and its rest comes first. */
static void a_disk_that_fills_within_a_record(void **state)
{
	struct world *world = *state;
	world->sim.room_bytes = 3;
	assert_int_equal(append(world, SLICE("whole")), 0);
	assert_file(world, FILE_OF_UDP, "who");
	assert_int_equal(append(world, SLICE("next")), -ENOSPC);
	world->sim.room_bytes = 100;
	assert_int_equal(append(world, SLICE("next")), 0);
	assert_file(world, FILE_OF_UDP, "whole\nnext\n");
	assert_int_equal(spool_bytes(world->spool), 11);
}

/* The rest of a record is written when there is room, though nothing more comes. */
static void the_rest_is_written_when_there_is_room(void **state)
{
	struct world *world = *state;
	world->sim.room_bytes = 3;
	assert_int_equal(append(world, SLICE("whole")), 0);
	assert_int_equal(spool_sync(world->spool), -ENOSPC);
	world->sim.room_bytes = 100;
	assert_int_equal(spool_sync(world->spool), 0);
	assert_file(world, FILE_OF_UDP, "whole\n");
}

/* What is there is delivered all the same. */
static void a_start_with_a_full_disk(void **state)
{
	struct world *world = *state;
	spool_close(world->spool);
	sim_append(&world->sim, sim_make(&world->sim, FILE_OF_UDP), "part", 4);
	world->sim.room_bytes = 0;
	start(world);
	assert_file(world, FILE_OF_UDP, "part");
	assert_int_equal(append(world, SLICE("next")), -ENOSPC);
	world->sim.room_bytes = 100;
	assert_int_equal(append(world, SLICE("next")), 0);
	assert_file(world, FILE_OF_UDP, "part\nnext\n");
	assert_int_equal(spool_bytes(world->spool), 10);
}

static void a_file_that_ends_within_a_record_is_mended(void **state)
{
	static const struct {
		const char *left, *mended;
	} cases[] = {
		{"whole\n", "whole\n"}, {"whole\npart", "whole\npart\n"},
		{"a\4", "a\4\n\n"},   /* in front of the newline */
		{"a\4\n", "a\4\n\n"}, /* behind it */
		{"a\4\nb", "a\4\nb\n"}, {"\4", "\4\n\n"},
		{"\n", "\n"},           {"a\4\n\n", "a\4\n\n"},
	};
	struct world *world = *state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		spool_close(world->spool);
		sim_unlink(&world->sim, FILE_OF_UDP);
		sim_append(&world->sim, sim_make(&world->sim, FILE_OF_UDP), cases[i].left,
			   strlen(cases[i].left));
		start(world);
		assert_file(world, FILE_OF_UDP, cases[i].mended);
		assert_int_equal(spool_bytes(world->spool), strlen(cases[i].mended));
	}
}

/* The process ends with the disk full at each byte of a record: after the next start each record is
 * there as a whole, or cut and ended; and the next one is whole. */
static void an_end_at_each_byte(void **state)
{
	struct world *world = *state;
	static const char written[] = "one\4\ntwo\n";
	for (size_t room = 0; room < sizeof(written); room++) {
		char expected[64];
		sim_unlink(&world->sim, FILE_OF_UDP);
		kill_and_start(world);
		world->sim.room_bytes = room;
		int err = append(world, SLICE("one\ntwo"));
		assert_int_equal(err, room ? 0 : -ENOSPC);
		world->sim.room_bytes = 0;
		spool_close(world->spool);
		world->sim.room_bytes = UINT64_MAX;
		start(world);
		assert_int_equal(append(world, SLICE("behind")), 0);
		bool ended = !room || room == sizeof(written) - 1;
		snprintf(expected, sizeof(expected), "%.*s%sbehind\n", (int)room, written,
			 ended       ? ""
			 : room == 4 ? "\n\n"
				     : "\n");
		assert_file(world, FILE_OF_UDP, expected);
	}
}

/* ---- Notes ----------------------------------------------------------------------------------- */

static int append_noted(struct world *world, struct slice record, const char *note)
{
	return spool_append_noted(world->stream, &record, 1, slice_of(note));
}

static void assert_note(struct world *world, const char *text)
{
	struct buf note;
	buf_init(&note, SPOOL_NOTE_MAX_BYTES);
	assert_true(spool_note(world->stream, &note));
	assert_int_equal(note.len, strlen(text));
	assert_memory_equal(note.data, text, note.len);
	buf_release(&note);
}

static bool has_note(struct world *world)
{
	struct buf note;
	buf_init(&note, SPOOL_NOTE_MAX_BYTES);
	bool has = spool_note(world->stream, &note);
	buf_release(&note);
	return has;
}

static void a_note_is_found_again(void **state)
{
	struct world *world = *state;
	assert_false(has_note(world));
	assert_int_equal(append_noted(world, SLICE("one"), "1"), 0);
	assert_int_equal(append_noted(world, SLICE("two\nlines"), "a cursor\nof two"), 0);
	assert_note(world, "a cursor\nof two");
	kill_and_start(world);
	assert_note(world, "a cursor\nof two");
	assert_int_equal(spool_append_noted(world->stream, NULL, 0, SLICE("")), 0);
	kill_and_start(world);
	assert_note(world, "");
	assert_file(world, FILE_OF_UDP, "one\ntwo\4\nlines\n");
	assert_int_equal(spool_bytes(world->spool), 15);
	assert_int_equal(spool_stream_count(world->spool), 1);
}

/* The disk is full at each byte of a record, and the process ends: the record is there as a whole
 * after the next start, since its note was. */
static void an_end_at_each_byte_of_a_noted_record(void **state)
{
	struct world *world = *state;
	static const char whole[] = "first\none\4\ntwo\n";
	for (size_t room = 0; room < sizeof(whole) - 6; room++) {
		sim_unlink(&world->sim, FILE_OF_UDP);
		sim_unlink(&world->sim, FILE_OF_UDP ".note");
		kill_and_start(world);
		assert_int_equal(append_noted(world, SLICE("first"), "1"), 0);
		world->sim.room_bytes = room;
		assert_int_equal(append_noted(world, SLICE("one\ntwo"), "2"), 0);
		world->sim.room_bytes = UINT64_MAX;
		kill_and_start(world);
		assert_file(world, FILE_OF_UDP, whole);
		assert_note(world, "2");
		assert_int_equal(spool_bytes(world->spool), strlen(whole));
		kill_and_start(world); /* nor is it added once more */
		assert_file(world, FILE_OF_UDP, whole);
	}
}

/* The same with the disk still full at the start. */
static void the_rest_of_a_noted_record_waits_for_room(void **state)
{
	struct world *world = *state;
	world->sim.room_bytes = 2;
	assert_int_equal(append_noted(world, SLICE("whole"), "1"), 0);
	kill_and_start(world);
	assert_file(world, FILE_OF_UDP, "wh");
	assert_int_equal(append_noted(world, SLICE("next"), "2"), -ENOSPC);
	assert_note(world, "1");
	world->sim.room_bytes = 100;
	assert_int_equal(append_noted(world, SLICE("next"), "2"), 0);
	assert_file(world, FILE_OF_UDP, "whole\nnext\n");
	assert_int_equal(spool_bytes(world->spool), 11);
}

static void without_its_note_no_record_is_added(void **state)
{
	struct world *world = *state;
	assert_int_equal(append_noted(world, SLICE("a"), "1"), 0);
	world->sim.full = true;
	assert_int_equal(append_noted(world, SLICE("b"), "2"), -ENOSPC);
	world->sim.full = false;
	assert_note(world, "1");
	assert_file(world, FILE_OF_UDP, "a\n");
	assert_int_equal(append_noted(world, SLICE("b"), "2"), 0);
	world->sim.sync_fails = true;
	assert_int_equal(append_noted(world, SLICE("c"), "3"), -EIO); /* that of `b` */
	world->sim.sync_fails = false;
	kill_and_start(world);
	assert_note(world, "2");
	assert_file(world, FILE_OF_UDP, "a\nb\n");
}

static struct world *replacing; /* a note, which takes its time */

/* Another stream gets a record meanwhile. The one that has the note counts already. */
static int replace_slowly(struct files *files, const char *path, struct slice content,
			  unsigned mode)
{
	const struct slice record = SLICE("theirs");
	assert_int_equal(spool_bytes(replacing->spool), 5);
	assert_int_equal(spool_append(stream_of(replacing, "raw", "another"), &record, 1), 0);
	return sim_replace(files, path, content, mode);
}

static void others_go_on_while_a_note_is_written(void **state)
{
	replacing = *state;
	replacing->sim.files.replace = replace_slowly;
	assert_int_equal(append_noted(replacing, SLICE("mine"), "1"), 0);
	replacing->sim.files.replace = sim_replace;
	assert_file(replacing, FILE_OF_UDP, "mine\n");
	assert_file(replacing, DIRECTORY "/raw:another", "theirs\n");
	assert_int_equal(spool_bytes(replacing->spool), 12);
	kill_and_start(replacing);
	assert_note(replacing, "1");
	assert_file(replacing, FILE_OF_UDP, "mine\n");
}

/* Records that were delivered, and whose file is gone or has another name, do not come again. */
static void noted_records_of_a_file_that_is_gone(void **state)
{
	struct world *world = *state;
	struct delivered delivered = {.world = world, .names = {FILE_OF_UDP}};
	static char text[FILE_BYTES - 1];
	memset(text, 'x', sizeof(text));
	const struct slice large = {text, sizeof(text)};
	assert_int_equal(spool_append_noted(world->stream, &large, 1, SLICE("1")), 0);
	spool_remove_delivered(world->stream, is_delivered, note_removed, &delivered);
	assert_int_equal(delivered.removed, 1);
	kill_and_start(world);
	assert_null(sim_find(&world->sim, FILE_OF_UDP));
	assert_note(world, "1");
	assert_int_equal(spool_append_noted(world->stream, &large, 1, SLICE("2")), 0);
	sim_rename(&world->sim, FILE_OF_UDP, FILE_OF_UDP ".0000000001");
	sim_make(&world->sim, FILE_OF_UDP);
	kill_and_start(world);
	assert_file(world, FILE_OF_UDP, "");
	assert_note(world, "2");
	assert_int_equal(append_noted(world, SLICE("b"), "3"), 0);
	assert_file(world, FILE_OF_UDP, "b\n");
	assert_int_equal(spool_bytes(world->spool), FILE_BYTES + 2);
}

static void a_note_that_is_damaged(void **state)
{
	struct world *world = *state;
	assert_int_equal(append_noted(world, SLICE("a"), "cursor"), 0);
	struct sim_file *file = sim_find(&world->sim, FILE_OF_UDP ".note");
	assert_non_null(file);
	for (size_t at = 0; at < file->bytes.len; at++) {
		/* What stands in the head of where the records begin is checked by nothing. */
		bool checked = at < sizeof("granary spool note ") - 1 ||
			       at >= file->bytes.len - sizeof("cursora\n") + 1;
		file->bytes.data[at] ^= 1;
		kill_and_start(world);
		if (checked)
			assert_false(has_note(world));
		file = sim_find(&world->sim, FILE_OF_UDP ".note");
		file->bytes.data[at] ^= 1;
	}
	sim_truncate(&world->sim, file);
	kill_and_start(world);
	assert_false(has_note(world));
	assert_int_equal(append(world, SLICE("b")), 0);
}

static void lose_power(struct world *world)
{
	spool_close(world->spool);
	sim_power_cut(&world->sim);
	start(world);
}

/* After a sync that failed the next one may say that all is well, and the bytes are not there. */
static void what_could_not_be_synced_is_written_again(void **state)
{
	struct world *world = *state;
	assert_int_equal(append(world, SLICE("before")), 0);
	assert_int_equal(spool_sync(world->spool), 0);
	assert_int_equal(append(world, SLICE("x")), 0);
	world->sim.sync_fails = true;
	assert_int_equal(spool_sync(world->spool), -EIO);
	assert_int_equal(append(world, SLICE("y")), 0);
	assert_int_equal(spool_sync(world->spool), -EIO);
	assert_file(world, FILE_OF_UDP, "before\nx\ny\n");
	assert_int_equal(world->sim.sync_count, 3);
	world->sim.sync_fails = false;
	assert_int_equal(append(world, SLICE("z")), 0);
	assert_int_equal(spool_sync(world->spool), 0);
	assert_int_equal(world->sim.sync_count, 4);
	assert_int_equal(spool_sync(world->spool), 0);
	assert_int_equal(world->sim.sync_count, 4); /* nothing has come since */
	assert_int_equal(append(world, SLICE("never synced")), 0);
	lose_power(world);
	assert_file(world, FILE_OF_UDP, "before\nx\ny\nz\n");
}

static struct world *syncing;

/* A record comes after the disk has what was there. */
static int sync_slowly(struct files *files, int handle)
{
	int err = sim_sync(files, handle);
	assert_int_equal(append(syncing, SLICE("meanwhile")), 0);
	return err;
}

static void what_comes_meanwhile_is_synced_the_next_time(void **state)
{
	syncing = *state;
	for (int i = 0; i < 2; i++) {
		syncing->sim.sync_fails = i == 1;
		syncing->sim.files.sync = sync_slowly;
		assert_int_equal(append(syncing, SLICE("x")), 0);
		assert_int_equal(spool_sync(syncing->spool), i ? -EIO : 0);
		syncing->sim.files.sync = sim_sync;
		syncing->sim.sync_fails = false;
		assert_int_equal(spool_sync(syncing->spool), 0);
	}
	lose_power(syncing);
	assert_file(syncing, FILE_OF_UDP, "x\nmeanwhile\nx\nmeanwhile\n");
}

/* The disk was full within the records, too. */
static void what_could_not_be_synced_has_a_rest(void **state)
{
	struct world *world = *state;
	world->sim.room_bytes = 4;
	assert_int_equal(append(world, SLICE("abcdef")), 0);
	world->sim.sync_fails = true;
	world->sim.room_bytes = 1;
	assert_int_equal(spool_sync(world->spool), -ENOSPC);
	assert_file(world, FILE_OF_UDP, "abcde");
	world->sim.room_bytes = UINT64_MAX;
	assert_int_equal(spool_sync(world->spool), -EIO);
	world->sim.sync_fails = false;
	assert_int_equal(spool_sync(world->spool), 0);
	lose_power(world);
	assert_file(world, FILE_OF_UDP, "abcdef\n");
}

/* Whether the process that was killed had synced it, nobody knows. */
static void what_is_found_at_a_start_is_synced(void **state)
{
	struct world *world = *state;
	assert_int_equal(append(world, SLICE("x")), 0);
	kill_and_start(world);
	assert_int_equal(spool_sync(world->spool), 0);
	lose_power(world);
	assert_file(world, FILE_OF_UDP, "x\n");
}

/* What is written and not synced is in memory, which has a bound: 8 MiB. */
static void while_nothing_can_be_synced_little_is_taken(void **state)
{
	struct world *world = *state;
	static char text[(1 << 20) - 1];
	memset(text, 'x', sizeof(text));
	const struct slice large = {text, sizeof(text)};
	world->sim.sync_fails = true;
	for (int i = 0; i < 8; i++)
		assert_int_equal(append(world, large), 0);
	assert_int_equal(append(world, SLICE("x")), -EIO);
	world->sim.sync_fails = false;
	assert_int_equal(append(world, SLICE("x")), 0);
	lose_power(world);
	assert_int_equal(spool_bytes(world->spool), 8 << 20);
}

/* More streams than files may be open. */
static void many_streams(void **state)
{
	struct world *world = *state;
	const struct slice record = SLICE("x");
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 300; i++) {
			char name[16];
			snprintf(name, sizeof(name), "n%d", i);
			assert_int_equal(spool_append(stream_of(world, "raw", name), &record, 1),
					 0);
			assert_true(world->sim.open_count <= 128);
		}
	assert_file(world, DIRECTORY "/raw:n0", "x\nx\n");
	assert_file(world, DIRECTORY "/raw:n299", "x\nx\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, free_world)
		TEST(a_record_is_a_line),
		TEST(newlines_within_a_record_are_escaped),
		TEST(names_of_files),
		TEST(streams_are_found_again),
		TEST(the_bound_is_exact),
		TEST(nothing_is_added_where_too_much_is_there),
		TEST(the_rest_is_written_when_there_is_room),
		TEST(a_start_with_a_full_disk),
		TEST(records_of_one_call_are_all_there_or_none),
		TEST(long_files_are_renamed),
		TEST(only_delivered_files_are_removed),
		TEST(short_files_go_when_the_spool_is_half_full),
		TEST(a_short_file_goes_when_nothing_comes_any_more),
		TEST(a_slow_disk_keeps_no_other_stream_waiting),
		TEST(the_spool_does_not_fill_the_disk),
		TEST(a_full_disk_refuses_a_record),
		TEST(a_disk_that_fills_within_a_record),
		TEST(a_file_that_ends_within_a_record_is_mended),
		TEST(an_end_at_each_byte),
		TEST(a_note_is_found_again),
		TEST(an_end_at_each_byte_of_a_noted_record),
		TEST(the_rest_of_a_noted_record_waits_for_room),
		TEST(without_its_note_no_record_is_added),
		TEST(others_go_on_while_a_note_is_written),
		TEST(noted_records_of_a_file_that_is_gone),
		TEST(a_note_that_is_damaged),
		TEST(what_could_not_be_synced_is_written_again),
		TEST(what_comes_meanwhile_is_synced_the_next_time),
		TEST(what_could_not_be_synced_has_a_rest),
		TEST(what_is_found_at_a_start_is_synced),
		TEST(while_nothing_can_be_synced_little_is_taken),
		TEST(many_streams),
#undef TEST
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
