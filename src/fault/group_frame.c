/* Frames of traces, as words. */
#include "fault/group_private.h"

/* The last frames of this trace that repeat those before them go: a recursion, also of a few
 * functions that call each other. */
static void grouping_frame_fold(struct grouping_making *making)
{
	struct fault_group *group = making->group;
	for (size_t period = 1; period <= GROUP_CYCLE_MAX; period++) {
		size_t same = 0;
		if (group->count < making->trace + 2 * period)
			return;
		const struct fault_word *end = group->words + group->count;
		while (same < period && grouping_same_word(end - 1 - same, end - 1 - same - period))
			same++;
		if (same == period) {
			group->count -= period;
			return;
		}
	}
}

static bool grouping_frame_is_nowhere(struct slice name)
{
	static const struct slice names[] = {
		SLICE(""),         SLICE("??"), SLICE("<anonymous>"),   SLICE("<unknown>"),
		SLICE("native"),   SLICE("?"),  SLICE("[native code]"), SLICE("eval"),
		SLICE("anonymous")};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (slice_equal(name, names[i]))
			return true;
	return false;
}

/* Without the scheme, the host and the query of an address. */
static struct slice grouping_frame_path(struct slice file)
{
	size_t scheme = grouping_find(file, 0, SLICE("://"));
	if (scheme < file.len) {
		size_t host = grouping_find(file, scheme + 3, SLICE("/"));
		file = grouping_part(file, host < file.len ? host : scheme + 3, file.len);
	}
	size_t query = grouping_find(file, 0, SLICE("?"));
	return grouping_part(file, 0, query);
}

/* The last part of a path; *before: what stands before it. */
static struct slice grouping_frame_last_part(struct slice path, struct slice *before)
{
	size_t slash = grouping_find_last(path, '/'), back = grouping_find_last(path, '\\');
	if (slash == path.len || (back < path.len && back > slash))
		slash = back;
	*before = grouping_part(path, 0, slash < path.len ? slash : 0);
	return grouping_part(path, slash < path.len ? slash + 1 : 0, path.len);
}

/* Whether the folder names the program's part, and not a release, a build or a home. */
static bool grouping_frame_is_folder(struct slice folder, struct slice before,
				     struct grouping_making *making)
{
	struct slice above;
	struct slice parent = grouping_frame_last_part(before, &above);
	struct buf name;
	if (!folder.len || !before.len || slice_equal(parent, SLICE("home")) ||
	    slice_equal(parent, SLICE("Users")) || grouping_begins(folder, SLICE("python3")))
		return false;
	buf_init(&name, GROUP_LOOK_MAX_BYTES);
	grouping_name(folder, &name);
	bool same = slice_equal(buf_slice(&name), folder);
	making->full |= name.failed;
	buf_release(&name);
	return same;
}

/* The module, else the file with the folder it is in. */
static void grouping_frame_put_where(struct grouping_making *making,
				     const struct grouping_frame *frame)
{
	struct buf *to = &making->text;
	struct slice before, above;
	if (frame->module.len) {
		grouping_name(frame->module, to);
		return;
	}
	struct slice base = grouping_frame_last_part(grouping_frame_path(frame->file), &before);
	struct slice folder = grouping_frame_last_part(before, &above);
	if (grouping_frame_is_folder(folder, above, making)) {
		buf_append(to, folder.data, folder.len);
		buf_append_char(to, '/');
	}
	grouping_name(base, to);
	for (size_t i = 0; i < to->len; i++)
		if (to->data[i] >= 'A' && to->data[i] <= 'Z')
			to->data[i] |= 0x20;
}

void grouping_add_frame(struct grouping_making *making, const struct grouping_frame *frame)
{
	bool named = !grouping_frame_is_nowhere(frame->function);
	bool placed = frame->module.len || !grouping_frame_is_nowhere(frame->file);
	if (!named && !placed)
		return;
	bool application =
		frame->application >= 0 ? frame->application > 0 : !grouping_is_foreign(frame);
	buf_clear(&making->text);
	if (placed)
		grouping_frame_put_where(making, frame);
	if (named) {
		buf_append_char(&making->text, ' ');
		grouping_name(frame->function, &making->text);
	}
	making->frames++;
	making->application_frames += application;
	grouping_add(making, FAULT_WORD_FRAME, application, buf_slice(&making->text));
	grouping_frame_fold(making);
}
