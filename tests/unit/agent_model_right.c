/* Right and wrong in the model of the agent: when all is at rest, the lines that the collectors
 * have are those that were written. */
#include "agent_model.h"

#include <inttypes.h>

struct check {
	struct world *w;
	ssize_t last; /* line */
	size_t garbage;
};

/* A file that is gone may be taken for another one that begins alike, or has its inode: its bytes
 * then come under its name, and a collector that has seen the first notices. */
static bool is_alike(const struct world *w)
{
	return w->destroyed && (w->kinds.heads || !w->files.has_births);
}

/* Which of a removed file and a renamed one is older is told by the times of their last changes
 * alone, where there are no births. If the clock has jumped, the younger one may come first, and a
 * line that is half written in it is cut there. */
static bool may_be_cut(const struct world *w)
{
	return w->destroyed && w->kinds.clock_jumps && !w->files.has_births;
}

static void check_line(struct check *check, struct slice line)
{
	struct world *w = check->w;
	size_t dots = 0, number = 0;
	if (line.len && line.data[0] == '#')
		return;
	while (dots < line.len && line.data[line.len - 1 - dots] == '.')
		dots++;
	size_t before = line.len - dots;
	if (before < LINE_DIGITS || !model_line_read(line.data + before - LINE_DIGITS, &number) ||
	    number >= w->lines || model_line_dots(number) != dots) {
		check->garbage++;
		return;
	}
	check->garbage += before > LINE_DIGITS;
	bool once = !w->ambiguous && !is_alike(w);
	if (w->seen[number] && once)
		fail(w, "line %zu is there twice", number);
	bool ordered = !w->ambiguous && !w->kinds.late && !is_alike(w);
	if ((ssize_t)number < check->last && ordered)
		fail(w, "line %zu comes behind line %zd", number, check->last);
	w->seen[number] = 1;
	check->last = (ssize_t)number;
}

static void check_run(struct check *check, struct slice run)
{
	while (run.len) {
		const char *newline = memchr(run.data, '\n', run.len);
		size_t len = newline ? (size_t)(newline - run.data) : run.len;
		if (newline)
			check_line(check, (struct slice){run.data, len});
		else
			check->garbage++;
		len += newline != NULL;
		run = (struct slice){run.data + len, run.len - len};
	}
}

static void check_runs(struct check *check, const struct incarnation *in)
{
	for (size_t at = 0; at < in->have.len;) {
		size_t end = at;
		while (end < in->have.len && in->have.data[end])
			end++;
		check_run(check, (struct slice){in->bytes.data + at, end - at});
		at = end;
		while (at < in->have.len && !in->have.data[at])
			at++;
	}
}

/* The bytes of an incarnation that either collector has are put together. Where a checkpoint was
 * lost, the two may have different bytes at an offset, since they know nothing of each other: each
 * has its lines. */
static void check_incarnation(struct check *check, struct incarnation *in,
			      const struct incarnation *other)
{
	bool same = true;
	for (size_t i = 0; other && i < other->have.len; i++) {
		struct slice byte = {other->bytes.data + i, 1};
		if (!other->have.data[i] || model_incarnation_take(check->w, in, i, byte))
			continue;
		same = false;
		if (!check->w->ambiguous)
			fail(check->w, "the collectors have different bytes at %zu", i);
	}
	check_runs(check, in);
	if (!same)
		check_runs(check, other);
}

static const char *file_of_line(struct world *w, size_t line)
{
	char text[LINE_MAX_BYTES];
	size_t len = model_line_of(line, text);
	for (size_t i = 0; i < SIM_FILES_MAX; i++) {
		const struct sim_file *file = &w->files.list[i];
		if (file->used && file->bytes.len &&
		    memmem(file->bytes.data, file->bytes.len, text, len)) {
			tell(w, "%s is %" PRIu64, file->name ? file->name : "it", file->id.inode);
			return file->name ? file->name : "a file without a name";
		}
	}
	return "no file, or a packed one";
}

static int check_order(const void *left, const void *right)
{
	const struct incarnation *a = left, *b = right;
	return (a->order > b->order) - (a->order < b->order);
}

/* The list of the first collector gets the incarnations of both, in order. */
static void check_gather(struct world *w)
{
	struct collector_of_sim *one = &w->collectors[0], *two = &w->collectors[1];
	for (size_t i = 0; i < two->count; i++) {
		struct incarnation *in = model_incarnation_of(w, one, two->list[i].id);
		in->order = (size_t)smaller_of((int64_t)in->order, (int64_t)two->list[i].order);
	}
	qsort(one->list, one->count, sizeof(*one->list), check_order);
}

void model_check_all(struct world *w)
{
	struct check check = {.w = w, .last = -1};
	struct collector_of_sim *one = &w->collectors[0], *two = &w->collectors[1];
	if (w->forgotten) /* nothing was sent since, so the log was not begun before */
		memset(w->excused, 1, w->lines);
	check_gather(w);
	for (size_t i = 0; i < one->count; i++) {
		const struct incarnation *other = NULL;
		for (size_t j = 0; j < two->count; j++)
			if (two->list[j].id == one->list[i].id)
				other = &two->list[j];
		if (other && is_alike(w))
			return; /* nothing can be said */
		check_incarnation(&check, &one->list[i], other);
	}
	for (size_t i = 0; i < w->lines && !may_be_cut(w); i++)
		if (!w->seen[i] && !w->excused[i])
			return fail(w, "line %zu of %zu is missing; it is in %s", i, w->lines,
				    file_of_line(w, i));
	if (check.garbage > w->destroyed * 2 + w->begun_anew && !w->ambiguous)
		fail(w, "%zu lines are none, %zu contents were destroyed, %zu times it began anew",
		     check.garbage, w->destroyed, w->begun_anew);
	if (w->others && !w->ambiguous && !is_alike(w))
		fail(w, "%zu chunks had other bytes than were there", w->others);
}
