/* A log that is followed under its path: what of it is to be sent, and what is delivered.
 *
 * The file at a path is not always the same: logs are renamed and begun anew, or copied and emptied
 * (copytruncate), or removed. Its stream goes on over all of that. The contents that have been at
 * the path, one behind the other, are *segments* of the stream, and the *plan* lists those that are
 * not delivered whole: first the one that is being sent, last the one that is at the path.
 *
 * A content is known by its file (device, inode, birth) and by marks: the hash of its first bytes,
 * of those in front of where its sending stands, and of its last ones (content.h). A content that
 * has not these marks is another one, and one that has them in another file is a copy, also a
 * packed one.
 *
 * The bytes at an offset of a stream never change. So a change of the plan (where a segment ends,
 * what comes behind it) must be in a checkpoint before anything is sent by it: nothing is read
 * while `version` is above the site's `saved_version`. A segment ends when one behind it has bytes:
 * whoever writes has then opened that one, and writes to the first no more. What is written
 * to it all the same is sent, too, as a segment of its own.
 *
 * What is gone before it was read is a hole in the stream, and said in the log. Where it is not
 * known how much of it was delivered before a restart, the stream goes on in a new incarnation.
 *
 * Private to agent/. One thread: the agent's. */
#ifndef AGENT_FOLLOWED_H
#define AGENT_FOLLOWED_H

#include "agent/content.h"
#include "agent/records.h"
#include "agent/siblings.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "wire/chunk.h"

#define SEGMENT_OPEN UINT64_MAX

enum {
	FOLLOWED_PLAN_MAX =
		64, /* segments with bytes; files beyond wait until these are delivered */
	FOLLOWED_SEGMENTS_MAX = 1024,
	FOLLOWED_CAREFUL_BYTES = 80 << 20, /* more than is sent without a checkpoint */
	FOLLOWED_PAST_MAX = 512,           /* contents that are remembered as delivered */
	FOLLOWED_RETRY_MS = 200,           /* files were being renamed, or are not written whole */
	FOLLOWED_LATE_MS = 60000,  /* a delivered file that was renamed stays open for so long */
	FOLLOWED_STILL_MS = 60000, /* who has not written to a file for so long writes no more */
};

struct segment {
	struct file_id id;
	struct content_mark head; /* of its first bytes, as many as it had */
	uint64_t at;              /* the first byte of the content that is not delivered */
	struct content_mark tail; /* of the bytes in front of it */
	uint64_t end;             /* SEGMENT_OPEN: it is not known yet */
	uint64_t bytes;           /* how long it was when it was last looked at */
	struct content_mark last; /* of the bytes in front of that */
	int64_t changed_ns;
	bool within;        /* a record goes on at `at` */
	bool unchecked;     /* the content was opened, and its marks not looked at yet */
	bool still;         /* it was right when it was last looked at, and had not just changed */
	bool fresh;         /* it was found by the present search */
	bool begun;         /* it is not empty, and the next checkpoint says so */
	int64_t missing_ms; /* it cannot be found since; 0: it was found */
	struct content *content; /* NULL: it is not open */
};

/* A content that is delivered, or was there before the log was followed. */
struct segment_past {
	struct file_id id;
	struct content_mark head, tail; /* tail: of the bytes in front of the end */
	uint64_t end;                   /* SEGMENT_OPEN: not known, the file is packed */
	uint64_t file_bytes;            /* of a packed file; else the end */
	int64_t changed_ns;
	bool copy; /* it is no past one, but the copy of one that is in the plan */
};

/* How far the plan has been read: `segment` is a number that stays until the next look. */
struct followed_place {
	uint64_t segment;
	uint64_t at;
	struct content_mark tail;
	uint64_t offset; /* of the stream */
	bool within;
};

/* What the adaptors of an agent share. */
struct followed_site {
	struct files *files;
	struct clock *clock;
	uint64_t version;       /* of the newest plan */
	uint64_t saved_version; /* the checkpoint has all plans up to this one */
	size_t open_count;      /* contents */
	struct siblings siblings;
	struct buf data; /* of the chunk that was read last */
	struct records_found found;
	struct random random; /* of incarnations */
	struct log_rate losses, troubles;
};

/* Whether a change is so young that another one may follow with the same time. */
bool followed_is_young(const struct followed_site *site, int64_t changed_ns);

/* How the file of an adaptor is read. */
struct followed_rule {
	struct records_rule records;
	int64_t rest_ms; /* a record that is not whole is sent in parts after so long */
	bool from_end;   /* what is there at the first look is not sent, unless it came later */
	uint64_t from;   /* the offset of the stream where sending begins */
	uint64_t first;  /* the offset of the stream that the first byte of the file has */
	bool whole;      /* the file is one record, and sent once it is written no more */
	bool passes;     /* it is forgotten when it is gone: it came with a directory */
	bool ends;       /* nothing is sent behind this offset of the stream: */
	uint64_t until;
	/* This program alone writes, renames and removes what is at the path and beside it: there
	 * are no copies, and what is there when it is first looked at is sent, too. */
	bool own;
	bool no_links; /* others may write to the directory, who may not read all that we may */
};

enum followed_state {
	FOLLOWED_READING,
	FOLLOWED_MISSING, /* nothing is at the path, and all is sent */
	FOLLOWED_STOPPED, /* refused by the collector, or its offsets are used up */
	FOLLOWED_DONE,    /* a whole file that is delivered */
};

struct followed {
	struct followed_site *site;
	const struct followed_rule *rule;
	struct stream_names names;
	char *path, *directory;
	struct slice base; /* in the path */
	uint64_t incarnation;
	uint64_t offset; /* of the stream: up to here it is delivered; where the first segment is
			    at */
	uint64_t version;
	bool begun;       /* it has been looked at, now or before a restart */
	bool came_later;  /* it was not there when its directory was looked at first */
	int64_t since_ns; /* rotated files that are younger than this are of it; 0: none that is
			   * there when it is begun */

	struct segment *plan;
	size_t plan_count, plan_capacity;
	uint64_t plan_first;       /* the number of the first one, from one look to the next */
	struct segment_past *past; /* the oldest first */
	size_t past_count, past_capacity;
	struct content *late; /* of the one that was delivered last, or was the last one of before
				 the log was begun; NULL: it is not open */
	struct segment_past late_past;
	int64_t late_until_ms;
	int64_t floor_ns; /* what was last written to before is past, too; 0: all that is is listed
			   */

	struct followed_place read;
	int64_t unfinished_since_ms; /* the end of a record is awaited; 0: none is */
	int64_t directory_ns;        /* when the directory changed, as of the last look */
	bool search;                 /* the directory is to be searched */
	bool search_again;           /* what a search has found cannot be used yet */
	bool look_again;             /* what was read was not what the plan says */
	/* Up to here a collector may have bytes from before a restart. What comes at their offsets
	 * must be the same, so nothing is put in front of it; and one chunk is sent after the
	 * other: were it refused as another one, those behind it would come twice. */
	uint64_t careful_until;
	bool asks; /* no checkpoint knows it, and the collector is asked what it holds */

	/* The agent's. */
	uint64_t held_incarnation; /* the answer, the newest one; 0: none is known */
	uint64_t held_end;
	int64_t held_made_ms;
	int64_t due_ms;   /* when it is to be looked at, while it is active */
	int64_t later_ms; /* its chunks are not sent before */
	int64_t later_rest_ms;
	int64_t unwanted_ms;  /* nobody has needed it since, by the wall clock; 0: it is needed */
	size_t pending_count; /* chunks that were read and are not acknowledged */
	unsigned turn_count;  /* chunks that were read in this turn */
	bool active, wanted;
	uint64_t reported_hash; /* of what was told of it; 0: nothing was */
	bool looked;            /* in this turn, so that it may be read */
	bool held_up;           /* while answers are taken: a chunk in front is not delivered */

	enum followed_state state;
	char *problem; /* NULL: none */
	int64_t last_line_ms;
	uint64_t lost_bytes;
};

/* A chunk as it was read: data and ends lie in the site until the next one is read. */
struct followed_chunk {
	struct chunk_fields fields;
	struct chunk_data data;
	struct followed_place after;
};

void followed_site_init(struct followed_site *site, struct files *files, struct clock *clock,
			uint64_t seed);
void followed_site_release(struct followed_site *site);

/* The rule outlives it; names and path are copied. */
struct followed *followed_new(struct followed_site *site, const struct followed_rule *rule,
			      const struct stream_names *names, struct slice path);
void followed_free(struct followed *f);

/* Looks which files are there, and brings the plan up to date. What is on its way stays as it was
 * read. */
void followed_look(struct followed *f);

static inline bool followed_is_careful(const struct followed *f)
{
	return f->offset < f->careful_until;
}

/* Whether what a plan says may be sent. */
static inline bool followed_is_saved(const struct followed *f)
{
	return f->version <= f->site->saved_version;
}

/* Reads on from where reading stands. False: there is nothing to send at present. *wait_ms: it is
 * to be asked again after so long, -1: when something has changed. */
bool followed_read(struct followed *f, struct followed_chunk *chunk, int64_t *wait_ms);
/* What was read and not acknowledged is read again. */
void followed_read_again(struct followed *f);
/* Everything up to a place is delivered. */
void followed_acknowledge(struct followed *f, const struct followed_place *place);

/* What comes next is sent in a new incarnation, at the same offset. */
void followed_renew(struct followed *f);
/* Where it stood is not known any more. */
void followed_forget(struct followed *f);
/* The plan begins, for a log that no checkpoint knows. */
void followed_begin(struct followed *f);
/* The same for one of which a collector holds an incarnation up to `end`, and these are the last
 * bytes that it holds. ERR_NOT_FOUND: no file has them. */
int followed_adopt(struct followed *f, uint64_t incarnation, uint64_t end,
		   struct slice last) MUST_CHECK;
/* Bytes that are there and not delivered, as of the last look. */
uint64_t followed_behind_bytes(const struct followed *f);
/* Whether it has files open. */
bool followed_is_open(const struct followed *f);
/* It has another rule: what was a whole file may be followed now. */
void followed_rule_changed(struct followed *f);
/* Whether a file is delivered, as long as it is. */
bool followed_has_delivered(const struct followed *f, const struct file_look *look);
/* A file of which that is so is removed. Nothing is on its way. */
void followed_removed(struct followed *f, const struct file_id *id);
/* Closes its files: they are opened when they are needed. */
void followed_rest(struct followed *f);

/* For the report. NULL: there is none. */
void followed_note_problem(struct followed *f, const char *text);
/* The same, with a line in the log when it is another one. */
void followed_set_problem(struct followed *f, const char *text);

/* ---- Private to followed*.c ------------------------------------------------------------------ */

/* The plan is another one. */
static inline void followed_changed(struct followed *f)
{
	f->version = ++f->site->version;
}

static inline struct segment *followed_last(struct followed *f)
{
	return f->plan_count ? &f->plan[f->plan_count - 1] : NULL;
}

/* Whether the marks of a segment do not tell it from another content that begins alike. */
static inline bool segment_is_short(const struct segment *segment)
{
	return segment->bytes > 0 && segment->bytes < CONTENT_MARK_MAX_BYTES;
}

/* Whether more of the stream is known to come behind a segment. Then it is not what is at the path
 * now: that is the youngest, also if it is in the same file and begins alike. */
static inline bool followed_has_behind(const struct followed *f, const struct segment *segment)
{
	bool bytes = false;
	for (const struct segment *s = segment + 1; s < f->plan + f->plan_count; s++)
		bytes |= s->bytes > 0;
	return bytes;
}

/* So many segments in front keep their places in the plan: chunks of them are on their way. */
size_t followed_pinned(const struct followed *f);
struct segment *followed_add(struct followed *f, size_t at);
/* The first segment is delivered and leaves the plan. */
void followed_pass(struct followed *f);
/* The same of all that have something behind them. */
void followed_pass_delivered(struct followed *f);
/* The error is said in the report. */
void followed_trouble(struct followed *f, int err);
/* The stream goes on behind so many bytes that are not sent; its offsets have an end. */
void followed_skip(struct followed *f, uint64_t bytes);
/* The first one leaves the plan, and is not remembered. */
void followed_drop_first(struct followed *f);
void followed_close_segment(struct followed *f, struct segment *segment);
int followed_open(struct followed *f, const char *name, enum content_packing packing,
		  struct content **content, struct file_look *look) MUST_CHECK;
void followed_close(struct followed *f, struct content **content);
/* Whether a content has the marks of a segment: as content_check(). */
int segment_check_marks(const struct segment *segment, struct content *content) MUST_CHECK;
/* Looks at the open content, and notes what is new. ERR_NOT_FOUND: it is another one. What is
 * packed does not change. */
int segment_check(struct segment *segment) MUST_CHECK;
/* A file that was empty has bytes: it may be a copy of the log, which may have been begun alike
 * since it was looked for. The next look searches for both. */
void followed_doubt_log(struct followed *f);
/* As segment_check(), of one of the plan. Of an empty file nothing could be judged: one that is not
 * at the path and has its first bytes may be a copy that is made. It is closed and looks empty
 * until a search has found it as a new one: ERR_NOT_FOUND. */
int followed_check(struct followed *f, struct segment *segment) MUST_CHECK;
/* Finds the files of the plan by what is in the directory, and what comes behind them. ERR_RETRY:
 * not now. */
int followed_find(struct followed *f) MUST_CHECK;
/* Whether the content of a sibling is the beginning of another one: it is a copy, perhaps not all
 * of it yet. The length of a packed one is not known: it counts if it is the whole of the other. */
bool followed_is_copy_of(struct content *copy, struct content *of);
/* Whether what is written late may be a copy that was being made: it was empty when it was passed,
 * and is not known to be older than the log, as a renamed one is. */
bool followed_late_may_be_copy(struct followed *f);
/* Whether no more files get into the plan at present. */
bool followed_is_full(const struct followed *f);
/* Opens a sibling. ERR_RETRY: another file has its name by now, or it was emptied. */
int followed_open_sibling(struct followed *f, const struct sibling *sibling,
			  struct content **content) MUST_CHECK;
/* What is older than a sibling is none of the stream. */
int followed_note_older(struct followed *f, const struct sibling *than) MUST_CHECK;
/* What is there beside the log when it is begun is none of its stream. */
int followed_note_past(struct followed *f) MUST_CHECK;
/* Remembers a sibling as it is now, by its file alone. */
void followed_note_file(struct followed *f, const struct sibling *sibling, bool copy);
/* Remembers one; where there are too many, one that is there no more is forgotten. */
void followed_add_past(struct followed *f, const struct segment_past *past);
void followed_remove_past(struct followed *f, const struct file_id *id);
/* Whether a file is remembered as a copy of one of the plan; it is none any more. */
bool followed_has_copy(const struct followed *f);
void followed_remove_copy(struct followed *f, const struct file_id *id);
/* Whether a sibling is past by what is known without opening it; or by its content, which is
 * remembered then. `timed`: only what had these bytes at the same time counts. */
bool followed_knows(const struct followed *f, const struct sibling *sibling, bool or_copy);
int followed_is_past(struct followed *f, const struct sibling *sibling, struct content *content,
		     bool timed, bool *past) MUST_CHECK;

#endif
