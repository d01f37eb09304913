/* Journals of systemd: entries in the order that the library gives them, each a record
 *
 *     <30>2023-11-14T22:13:20.123456Z host sshd[811]: Accepted publickey for root
 *
 * with the priority as syslog has it, then the time, host, name and process as `journalctl -o
 * short-iso-precise` shows them, in UTC; then the message to the byte. An entry with no priority
 * has no `<30>`.
 *
 * Where the next entry begins is the note of the spool (spool_append_noted): the cursor of the last
 * one. So each entry is in the spool once, whatever ends the process. Entries that went before they
 * were read are a hole: numbers of entries are missing, which is counted.
 *
 * The library watches the directories that were there when it opened them. When a directory comes
 * later, or another one takes its place, the journals are opened again at the cursor. */
#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-journal.h>
#include <time.h>

/* syslog's names, which are levels of our log, too. */
#undef LOG_DEBUG
#undef LOG_INFO

#include "agent/adaptors.h"
#include "agent/inlet.h"
#include "base/log.h"
#include "base/stats.h"
#include "wire/number.h"
#include "wire/syslog.h"

enum {
	JOURNAL_AGAIN_MS = 5000, /* one that cannot be opened is tried again */
	JOURNAL_WAIT_MS = 250,   /* whether the job is to end */
	JOURNAL_REST_MS = 100,   /* what comes meanwhile goes into the spool together */
	JOURNAL_RECORDS_MAX = 1024,
	JOURNAL_BATCH_BYTES = 256 << 10, /* no entry is added to so many */
	JOURNAL_MESSAGE_MAX_BYTES = 512 << 10,
	JOURNAL_WORD_MAX_BYTES = 256, /* of a host and a name */
	JOURNAL_HEAD_MAX_BYTES = 1024,
	JOURNAL_ID_DIGITS = 32,
	JOURNAL_SEVERITIES = 8,
	JOURNAL_PLACES = 2,
};

/* Where the library looks for journals of this machine. */
static const char *const journal_places[JOURNAL_PLACES] = {"/run/log/journal", "/var/log/journal"};

struct journal_inlet {
	struct inlet *inlet;
	struct job *job;
	struct spool_stream *stream;
	sd_journal *journal;                   /* NULL: it is not open */
	struct file_id places[JOURNAL_PLACES]; /* when it was opened; zero: there was none */
	bool moved;                            /* one of them is another one by now */

	struct buf cursor; /* of the last entry that was taken; empty: none was */
	struct buf found;  /* of the one that the library is at */
	bool begun;        /* there is a note, which may be an empty one */
	/* The library was told to go to the cursor, and has given no entry since. */
	bool sought;
	bool gap_said, damaged; /* the entry that is being taken */
	int failed;             /* or why it cannot be read now */

	/* For the next call of the spool. */
	struct buf text;
	size_t ends[JOURNAL_RECORDS_MAX];
	size_t count;
};

/* ---- Entries --------------------------------------------------------------------------------- */

/* An entry that is damaged stays so. Whatever else is wrong may pass: it is read again. */
static void journal_note_failed(struct journal_inlet *j, int r)
{
	if (r == -EBADMSG || r == -EPROTONOSUPPORT || r == -E2BIG)
		j->damaged = true;
	else
		j->failed = r;
}

/* A field of the entry, until the next one is asked for. False: it has none. */
static bool journal_field(struct journal_inlet *j, const char *name, struct slice *value)
{
	const void *data;
	size_t len, front = strlen(name) + 1;
	int r = sd_journal_get_data(j->journal, name, &data, &len);
	if (r < 0 && r != -ENOENT)
		journal_note_failed(j, r);
	if (r < 0 || len < front)
		return false;
	*value = (struct slice){(const char *)data + front, len - front};
	return true;
}

/* *number stays as it is where there is none. */
static bool journal_number(struct journal_inlet *j, const char *name, uint64_t max,
			   uint64_t *number)
{
	struct slice text;
	uint64_t found;
	if (!journal_field(j, name, &text) ||
	    number_parse_u64(text.data, text.data + text.len, &found) || found > max)
		return false;
	*number = found;
	return true;
}

/* A field that is one word of the head, whoever wrote it. */
static bool journal_put_word(struct journal_inlet *j, const char *name)
{
	struct slice word;
	if (!journal_field(j, name, &word) || !word.len)
		return false;
	size_t len = word.len < JOURNAL_WORD_MAX_BYTES ? word.len : JOURNAL_WORD_MAX_BYTES;
	for (size_t i = 0; i < len; i++)
		buf_append_char(&j->text, (uint8_t)word.data[i] <= ' ' || word.data[i] == 0x7f
						  ? '_'
						  : word.data[i]);
	return true;
}

static void journal_put_priority(struct journal_inlet *j)
{
	uint64_t severity, facility = 1; /* RFC 3164, 4.3.3: of `user` */
	if (!journal_number(j, "PRIORITY", JOURNAL_SEVERITIES - 1, &severity))
		return;
	(void)journal_number(j, "SYSLOG_FACILITY", SYSLOG_FACILITIES - 1, &facility);
	buf_printf(&j->text, "<%u>", (unsigned)(facility * JOURNAL_SEVERITIES + severity));
}

/* When the program wrote it, where that is known, else when the journal had it. */
static void journal_put_time(struct journal_inlet *j)
{
	uint64_t us = 0;
	struct tm utc;
	char text[64];
	int r = 0;
	if (!journal_number(j, "_SOURCE_REALTIME_TIMESTAMP", INT64_MAX, &us))
		r = sd_journal_get_realtime_usec(j->journal, &us);
	if (r < 0)
		journal_note_failed(j, r);
	time_t seconds = (time_t)(us / 1000000);
	gmtime_r(&seconds, &utc);
	size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	buf_printf(&j->text, "%.*s.%06uZ ", (int)len, text, (unsigned)(us % 1000000));
}

static void journal_put_source(struct journal_inlet *j)
{
	uint64_t pid;
	if (!journal_put_word(j, "_HOSTNAME"))
		buf_append_char(&j->text, '-');
	buf_append_char(&j->text, ' ');
	if (!journal_put_word(j, "SYSLOG_IDENTIFIER") && !journal_put_word(j, "_COMM"))
		buf_append_text(&j->text, "unknown");
	if (journal_number(j, "_PID", UINT32_MAX, &pid) ||
	    journal_number(j, "SYSLOG_PID", UINT32_MAX, &pid))
		buf_printf(&j->text, "[%u]", (unsigned)pid);
	buf_append_text(&j->text, ": ");
}

/* Adds the entry that the library is at. */
static int journal_take_entry(struct journal_inlet *j)
{
	struct slice message = {NULL, 0};
	const size_t begin = j->text.len;
	j->damaged = false;
	j->failed = 0;
	journal_put_priority(j);
	journal_put_time(j);
	journal_put_source(j);
	(void)journal_field(j, "MESSAGE", &message);
	if (j->damaged || j->failed)
		j->text.len = begin;
	if (j->failed)
		return j->failed;
	if (j->damaged) {
		stat_add(STAT_journal_unreadable, 1);
		inlet_set_problem(j->inlet, "an entry of the journal is damaged, and left out");
		return 0;
	}
	if (message.len > JOURNAL_MESSAGE_MAX_BYTES) {
		stat_add(STAT_inlet_cut_bytes, (int64_t)(message.len - JOURNAL_MESSAGE_MAX_BYTES));
		message.len = JOURNAL_MESSAGE_MAX_BYTES;
	}
	buf_append(&j->text, message.data, message.len);
	j->ends[j->count++] = j->text.len;
	return 0;
}

/* ---- Cursors --------------------------------------------------------------------------------- */

/* `s=ID;i=NUMBER;...`: within an ID, entries are numbered one after the other. */
static bool journal_read_cursor(const struct buf *cursor, struct slice *id, uint64_t *number)
{
	const struct slice text = buf_slice(cursor), front = SLICE("s=");
	if (text.len < front.len + JOURNAL_ID_DIGITS + 3 || !slice_starts_with(text, front))
		return false;
	*id = (struct slice){text.data + front.len, JOURNAL_ID_DIGITS};
	const char *at = id->data + id->len;
	char *end = NULL;
	if (memcmp(at, ";i=", 3) == 0) /* a zero is behind the text */
		*number = strtoull(at + 3, &end, 16);
	return end && *end == ';';
}

/* Whether entries lie between the last one and this one. */
static void journal_note_gap(struct journal_inlet *j)
{
	struct slice last_id, id;
	uint64_t last, number;
	if (!journal_read_cursor(&j->cursor, &last_id, &last) ||
	    !journal_read_cursor(&j->found, &id, &number) || !slice_equal(last_id, id) ||
	    number <= last + 1)
		return;
	stat_add(STAT_journal_missed, (int64_t)(number - last - 1));
	if (!j->gap_said)
		log_warn("adaptor %s: %llu entries of the journal are missing behind number %llu: "
			 "they were removed before they were read, are damaged, or not for this "
			 "user; granary_agent_journal_missed_total counts further ones",
			 inlet_adaptor(j->inlet)->name.data,
			 (unsigned long long)(number - last - 1), (unsigned long long)last);
	j->gap_said = true;
}

static int journal_find_cursor(struct journal_inlet *j)
{
	char *text;
	int r = sd_journal_get_cursor(j->journal, &text);
	if (r < 0)
		return r;
	buf_clear(&j->found);
	buf_append(&j->found, text, strlen(text) + 1);
	mem_free(text);
	if (j->found.failed)
		return ERR_LIMIT;
	j->found.len--; /* its zero is behind it */
	return 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Entries that were taken go into the spool, with the cursor. ERR_CANCELLED: they are taken again
 * after the next start. */
static int journal_flush(struct journal_inlet *j)
{
	struct slice records[JOURNAL_RECORDS_MAX];
	size_t begin = 0;
	for (size_t i = 0; i < j->count; i++) {
		records[i] = (struct slice){j->text.data + begin, j->ends[i] - begin};
		begin = j->ends[i];
	}
	while (inlet_append_noted(j->inlet, j->stream, records, j->count, buf_slice(&j->cursor)))
		if (job_sleep(j->job, INLET_ROOM_MS))
			return ERR_CANCELLED;
	j->begun = true;
	buf_clear(&j->text);
	j->count = 0;
	return 0;
}

/* Whether the library is at the entry of the cursor, or at a copy of it, as journald makes one
 * where it moves a journal to /var: only number and ID of a copy are others. */
static bool journal_is_at_cursor(const struct journal_inlet *j)
{
	const char *last = strstr(j->cursor.data, ";b="), *found = strstr(j->found.data, ";b=");
	return last && found && strcmp(last, found) == 0;
}

static int journal_step(struct journal_inlet *j)
{
	int r = sd_journal_next(j->journal);
	int err = r > 0 ? journal_find_cursor(j) : 0;
	return err ? err : r;
}

/* Goes to the next entry that was not taken. 0: there is none. */
static int journal_next(struct journal_inlet *j)
{
	int r = journal_step(j);
	bool again = r > 0 && j->sought && journal_is_at_cursor(j);
	j->sought = j->sought && r == 0;
	return again ? journal_step(j) : r;
}

/* Takes as many entries as go together. *taken: there was one. */
static int journal_take(struct journal_inlet *j, bool *taken)
{
	int r = 0;
	*taken = false;
	while (j->count < JOURNAL_RECORDS_MAX && j->text.len < JOURNAL_BATCH_BYTES &&
	       (r = journal_next(j)) > 0) {
		r = journal_take_entry(j);
		if (r < 0)
			break;
		*taken = true;
		journal_note_gap(j);
		buf_clear(&j->cursor);
		buf_append(&j->cursor, j->found.data, j->found.len + 1);
		j->cursor.len--;
	}
	return r < 0 ? r : 0;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static bool journal_is_machine(const struct journal_inlet *j)
{
	return slice_equal(inlet_adaptor(j->inlet)->path, SLICE(ADAPTOR_JOURNAL_LOCAL));
}

/* Looks at the places that are watched. */
static void journal_look(const struct journal_inlet *j, struct file_look looks[JOURNAL_PLACES])
{
	struct files *files = files_real();
	const char *const path = inlet_adaptor(j->inlet)->path.data;
	memset(looks, 0, JOURNAL_PLACES * sizeof(*looks));
	if (!journal_is_machine(j))
		(void)!files->look_at(files, path, looks);
	else
		for (size_t i = 0; i < JOURNAL_PLACES; i++)
			(void)!files->look_at(files, journal_places[i], looks + i);
}

bool inlet_journal_is_there(void)
{
	struct files *files = files_real();
	struct file_look look;
	bool there = false;
	for (size_t i = 0; i < JOURNAL_PLACES; i++)
		there |= files->look_at(files, journal_places[i], &look) == 0;
	return there;
}

static bool journal_has_moved(const struct journal_inlet *j)
{
	struct file_look looks[JOURNAL_PLACES];
	bool same = true;
	journal_look(j, looks);
	for (size_t i = 0; i < JOURNAL_PLACES; i++)
		same &= file_id_equal(&looks[i].id, &j->places[i]);
	return !same;
}

static void journal_close(struct journal_inlet *j)
{
	if (j->journal)
		sd_journal_close(j->journal);
	j->journal = NULL;
}

static int journal_open_place(struct journal_inlet *j, const struct file_look *looks)
{
	const char *const files[] = {inlet_adaptor(j->inlet)->path.data, NULL};
	bool there = false;
	for (size_t i = 0; i < JOURNAL_PLACES; i++)
		there |= looks[i].id.inode != 0;
	if (!there)
		return -ENOENT;
	if (journal_is_machine(j))
		return sd_journal_open(&j->journal, SD_JOURNAL_LOCAL_ONLY);
	if (looks->type == FILE_DIRECTORY)
		return sd_journal_open_directory(&j->journal, files[0], 0);
	return sd_journal_open_files(&j->journal, (const char **)(uintptr_t)files, 0);
}

/* Where reading begins if there is no note. */
static int journal_seek_begin(struct journal_inlet *j)
{
	int r;
	if (!inlet_adaptor(j->inlet)->rule.from_end)
		return sd_journal_seek_head(j->journal);
	buf_clear(&j->found);
	r = sd_journal_seek_tail(j->journal);
	r = r < 0 ? r : sd_journal_previous(j->journal);
	if (r > 0)
		r = journal_find_cursor(j);
	if (r < 0)
		return r;
	if (j->found.len) { /* with its zero, as journal_find_cursor has it */
		buf_append(&j->cursor, j->found.data, j->found.len + 1);
		j->cursor.len--;
	}
	return journal_flush(j);
}

static int journal_seek(struct journal_inlet *j)
{
	/* A longer message is cut: it may be packed, and as long as its writer liked. */
	int r = sd_journal_set_data_threshold(j->journal, JOURNAL_MESSAGE_MAX_BYTES + 64);
	if (r < 0)
		return r;
	j->sought = j->cursor.len > 0;
	if (j->sought)
		return sd_journal_seek_cursor(j->journal, j->cursor.data);
	return j->begun ? sd_journal_seek_head(j->journal) : journal_seek_begin(j);
}

static int journal_open(struct journal_inlet *j)
{
	struct file_look looks[JOURNAL_PLACES];
	journal_look(j, looks);
	for (size_t i = 0; i < JOURNAL_PLACES; i++)
		j->places[i] = looks[i].id;
	j->moved = j->gap_said = false;
	int r = journal_open_place(j, looks);
	/* All of a journal that comes later is behind its end of now. */
	if (r == -ENOENT && inlet_adaptor(j->inlet)->rule.from_end && !j->begun) {
		int err = journal_flush(j);
		return err ? err : r;
	}
	r = r < 0 ? r : journal_seek(j);
	return r < 0 ? r : 0;
}

/* ---- Again and again ------------------------------------------------------------------------- */

static int journal_wait(struct journal_inlet *j)
{
	int r;
	do {
		r = sd_journal_wait(j->journal, JOURNAL_WAIT_MS * 1000);
		j->moved = journal_has_moved(j);
	} while (r == SD_JOURNAL_NOP && !j->moved && !job_is_stopping(j->job));
	return r < 0 ? r : 0;
}

/* Takes what is there, and waits for what comes. */
static int journal_turn(struct journal_inlet *j)
{
	bool taken, full;
	int err = journal_take(j, &taken);
	full = j->count == JOURNAL_RECORDS_MAX || j->text.len >= JOURNAL_BATCH_BYTES;
	if (taken) {
		int why = journal_flush(j);
		err = err ? err : why;
	}
	if (err || full)
		return err;
	if (taken)
		return job_sleep(j->job, JOURNAL_REST_MS);
	if (!j->moved)
		return journal_wait(j);
	/* All of what was there before is read. */
	journal_close(j);
	return 0;
}

static void journal_work(struct journal_inlet *j)
{
	while (!job_is_stopping(j->job)) {
		bool opens = !j->journal;
		int err = opens ? journal_open(j) : journal_turn(j);
		if (opens && !err)
			inlet_set_problem(j->inlet, NULL);
		if (!err || err == ERR_CANCELLED)
			continue;
		inlet_set_problem(j->inlet, "the journal cannot be read: %s", err_text(err));
		journal_close(j);
		if (job_sleep(j->job, JOURNAL_AGAIN_MS))
			break;
	}
	journal_close(j);
}

static void journal_run(struct inlet *inlet, struct job *job)
{
	struct journal_inlet *j = inlet_state(inlet);
	j->inlet = inlet;
	j->job = job;
	if (inlet_own_stream(inlet, &j->stream))
		return;
	buf_init(&j->cursor, SPOOL_NOTE_MAX_BYTES + 1);
	buf_init(&j->found, SPOOL_NOTE_MAX_BYTES);
	buf_init(&j->text,
		 JOURNAL_BATCH_BYTES + JOURNAL_HEAD_MAX_BYTES + JOURNAL_MESSAGE_MAX_BYTES);
	j->begun = spool_note(j->stream, &j->cursor);
	buf_append_char(&j->cursor, 0);
	j->cursor.len--;
	journal_work(j);
	buf_release(&j->cursor);
	buf_release(&j->found);
	buf_release(&j->text);
}

const struct inlet_kind inlet_journal = {
	.run = journal_run,
	.goes_on = true,
	.bytes = sizeof(struct journal_inlet),
};
