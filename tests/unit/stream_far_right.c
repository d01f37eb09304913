/* What is right in the model of streams on a far store. It is measured by what senders have made.
 */
#include "stream_far.h"

#include "store/wait.h"
#include "stream/chunk_reader.h"
#include "stream/line_scan.h"
#include "stream/retain.h"

enum { BINS_MAX = 4000, SERIES_MAX = 1000, READ_MAX_BYTES = 32 << 20 };

/* ---- Works ----------------------------------------------------------------------------------- */

void work_note(struct work *work)
{
	const struct world *w = work->process->world;
	for (size_t i = 0; i < w->content_count; i++) {
		const struct content *content = &w->contents[i];
		for (size_t j = 0; j < content->acked.count; j++)
			offsets_add(&work->acked[i], content->acked.list[j].begin,
				    content->acked.list[j].end);
		work->gone[i] = content->gone;
	}
	work->contents = w->content_count;
}

/* What it asked the store for had no answer. */
static bool read_has_no_answer(int err)
{
	return err == ERR_CANCELLED || err == ERR_UNKNOWN || err == ERR_BUSY;
}

/* Only what somebody deleted has gone, or what is old. */
static void check_kept(struct world *w, size_t at, uint64_t kept)
{
	const struct content *content = &w->contents[at];
	if (kept <= content->deletable)
		return;
	int64_t sent_ms = kept <= content->len ? content->sent_ms[kept - 1] : 0;
	if (w->removes != REMOVES_OLD || !sent_ms ||
	    now_ms(w) - sent_ms < KEEP_MS - (int64_t)SKEW_MS)
		differ(w, "of content %zu what is below %llu has gone", at,
		       (unsigned long long)kept);
}

static void check_held(struct world *w, size_t at, const struct offsets *acked,
		       const struct stream_known *known)
{
	struct offsets kept = {.list = NULL};
	for (size_t i = 0; i < acked->count; i++)
		offsets_add(&kept, acked->list[i].begin, acked->list[i].end);
	offsets_cut(&kept, known->kept_from);
	for (size_t i = 0; i < kept.count; i++)
		if (!offsets_cover(&known->held, kept.list[i].begin, kept.list[i].end))
			differ(w, "of content %zu the bytes from %llu to %llu are not held", at,
			       (unsigned long long)kept.list[i].begin,
			       (unsigned long long)kept.list[i].end);
	offsets_release(&kept);
}

static void check_bytes(struct world *w, size_t at, uint64_t begin, struct slice data)
{
	const struct content *content = &w->contents[at];
	if (begin + data.len > content->sent ||
	    memcmp(data.data, content->text + begin, data.len) != 0)
		differ(w, "of content %zu the bytes from %llu to %llu are others", at,
		       (unsigned long long)begin, (unsigned long long)(begin + data.len));
}

/* All that is held, in its order, each byte once. */
static int check_all_bytes(struct world *w, size_t at, const struct stream_site *site,
			   struct task_queue *queue, const struct stream_known *known,
			   struct errbuf *e)
{
	const struct stream_id id = id_of(w, w->contents[at].stream, at + 1);
	struct chunk_reader reader;
	struct stream_piece piece;
	struct offsets read = {.list = NULL};
	int err;
	chunk_reader_init(&reader, site, queue, &id, &known->sealed, &known->held, 0, UINT64_MAX,
			  e);
	while (!(err = chunk_reader_next(&reader, &piece)) && piece.data.len) {
		if (offsets_meet(&read, piece.begin, piece.begin + piece.data.len))
			differ(w, "of content %zu the byte at %llu comes twice", at,
			       (unsigned long long)piece.begin);
		offsets_add(&read, piece.begin, piece.begin + piece.data.len);
		check_bytes(w, at, piece.begin, piece.data);
	}
	for (size_t i = 0; i < known->held.count && !err; i++)
		if (!offsets_cover(&read, known->held.list[i].begin, known->held.list[i].end))
			differ(w, "of content %zu not all is there that is held", at);
	chunk_reader_release(&reader);
	offsets_release(&read);
	w->reads++;
	return err;
}

/* What is missing may have gone since it was known. */
static bool read_was_overtaken(struct work *work, const struct stream_id *id, uint64_t kept)
{
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	int err = stream_known_read_blocks(&known, streams_site(work->process->streams),
					   &work->stepped.queue, id, &e);
	bool raised = err || known.kept_from > kept;
	stream_known_release(&known);
	return raised;
}

void work_read(struct task_queue *queue, void *owner)
{
	struct work *work = owner;
	struct world *w = work->process->world;
	struct content *content = &w->contents[work->content];
	const struct stream_site *site = streams_site(work->process->streams);
	const struct stream_id id = id_of(w, content->stream, work->content + 1);
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	int err = stream_known_read(&known, site, queue, &id, 0, &e);
	if (!err) {
		check_kept(w, work->content, known.kept_from);
		if (known.kept_from < work->gone[work->content])
			differ(w, "of content %zu what has gone is seen again: %llu and %llu",
			       work->content, (unsigned long long)known.kept_from,
			       (unsigned long long)work->gone[work->content]);
		check_held(w, work->content, &work->acked[work->content], &known);
		err = check_all_bytes(w, work->content, site, queue, &known, &e);
		content->gone = larger_of(content->gone, known.kept_from);
	}
	if (err == ERR_DAMAGED && w->removes && read_was_overtaken(work, &id, known.kept_from))
		err = 0;
	if (err && !read_has_no_answer(err))
		differ(w, "reading content %zu ends with error %d: %s", work->content, err, e.text);
	stream_known_release(&known);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

struct searched {
	struct world *w;
	struct offsets seen[CONTENTS_MAX]; /* of the lines that were given */
	bool lines[CONTENTS_MAX][LINES];   /* that were */
};

static int search_see(const struct line_seen *seen, void *owner)
{
	struct searched *found = owner;
	struct world *w = found->w;
	size_t at = seen->stream->id.incarnation - 1;
	uint64_t end = seen->offset + seen->bytes;
	if (at >= w->content_count || offsets_meet(&found->seen[at], seen->offset, end)) {
		differ(w, "of content %zu the line at %llu is given again", at,
		       (unsigned long long)seen->offset);
		return 0;
	}
	offsets_add(&found->seen[at], seen->offset, end);
	check_bytes(w, at, seen->offset, seen->text);
	const struct content *content = &w->contents[at];
	for (size_t i = 0; i < content->line_count; i++) {
		const struct far_line *line = &content->lines[i];
		if (line->begin != seen->offset || line->end != end)
			continue;
		found->lines[at][i] = true;
		if (line->ms != seen->ms)
			differ(w, "of content %zu the line at %llu has another time", at,
			       (unsigned long long)seen->offset);
	}
	w->lines_seen++;
	return 0;
}

static void check_lines(struct world *w, unsigned stream, const struct offsets *acked,
			size_t contents, const struct searched *found)
{
	for (size_t at = 0; at < contents; at++) {
		const struct content *content = &w->contents[at];
		for (size_t i = 0; content->stream == stream && i < content->line_count; i++) {
			const struct far_line *line = &content->lines[i];
			if (offsets_cover(&acked[at], line->begin, line->end) &&
			    !found->lines[at][i])
				differ(w, "of content %zu the line at %zu is not found", at,
				       line->begin);
		}
	}
}

static void searched_free(struct searched *found)
{
	for (size_t i = 0; i < CONTENTS_MAX; i++)
		offsets_release(&found->seen[i]);
	mem_free(found);
}

static int search_all(struct searched *found, unsigned stream, const struct stream_site *site,
		      struct task_queue *queue, struct errbuf *e)
{
	struct line_query query = {.terms = NULL};
	const struct line_scan_rules rules = {.tenant = SLICE("t"),
					      .names = id_of(found->w, stream, 0).names,
					      .from_ms = INT64_MIN,
					      .to_ms = INT64_MAX,
					      .query = &query};
	struct line_scan scan;
	int err = line_scan_open(&scan, site, queue, &rules, e);
	for (size_t i = 0; i < scan.part_count && !err; i++)
		err = line_scan_look(&scan, &scan.parts[i], search_see, found);
	if (!err && scan.work.damaged && !found->w->removes)
		differ(found->w, "%llu parts of stream %u cannot be searched",
		       (unsigned long long)scan.work.damaged, stream);
	line_scan_close(&scan);
	return err;
}

void work_search(struct task_queue *queue, void *owner)
{
	struct work *work = owner;
	struct world *w = work->process->world;
	struct searched *found = mem_zalloc(sizeof(*found));
	struct errbuf e = {""};
	unsigned stream = (unsigned)work->stream;
	found->w = w;
	int err = search_all(found, stream, streams_site(work->process->streams), queue, &e);
	if (!err && !w->removes)
		check_lines(w, stream, work->acked, work->contents, found);
	if (err && !read_has_no_answer(err))
		differ(w, "searching stream %u ends with error %d: %s", stream, err, e.text);
	searched_free(found);
}

/* ---- Deletions ------------------------------------------------------------------------------- */

void work_delete(struct task_queue *queue, void *owner)
{
	struct work *work = owner;
	struct process *p = work->process;
	struct world *w = p->world;
	struct content *content = &w->contents[work->content];
	const struct stream_id id = id_of(w, content->stream, work->content + 1);
	const struct offsets *acked = &work->acked[work->content];
	uint64_t end = acked->count ? acked->list[acked->count - 1].end : 0, bytes;
	struct errbuf e = {""};
	/* While it is not known what it has seen, it may have seen all. */
	content->deletable = CONTENT_MAX_BYTES;
	int err = stream_delete(streams_site(p->streams), queue, &id, false, &bytes, &e);
	trace(w, "%s: content %zu is deleted to %llu: error %d %s", p->name, work->content,
	      (unsigned long long)end, err, e.text);
	if (err)
		return;
	streams_note_deleted(p->streams, &id);
	content->deleted = larger_of(content->deleted, end);
}

/* ---- What has landed ------------------------------------------------------------------------- */

static void check_landed_content(struct world *w, size_t at, struct task_queue *queue)
{
	const struct content *content = &w->contents[at];
	const struct stream_site site = {.store = far_landed(w->far), .clock = &w->clock.clock};
	const struct stream_id id = id_of(w, content->stream, at + 1);
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	int err = stream_known_read(&known, &site, queue, &id, 0, &e);
	if (!err) {
		check_kept(w, at, known.kept_from);
		if (known.kept_from < content->deleted || known.kept_from < content->gone)
			differ(w, "of content %zu %llu is kept, though all to %llu was deleted", at,
			       (unsigned long long)known.kept_from,
			       (unsigned long long)content->deleted);
		check_held(w, at, &content->acked, &known);
		if (known.tail_data_bytes)
			differ(w, "of content %zu chunks wait though all is sealed", at);
		err = check_all_bytes(w, at, &site, queue, &known, &e);
	}
	if (err)
		differ(w, "content %zu cannot be read: error %d, %s", at, err, e.text);
	stream_known_release(&known);
}

void check_landed(struct world *w)
{
	const struct stream_site site = {.store = far_landed(w->far), .clock = &w->clock.clock};
	struct task_queue queue;
	task_queue_init(&queue);
	for (size_t i = 0; i < w->content_count && !w->failure[0]; i++)
		if (w->contents[i].acked.count)
			check_landed_content(w, i, &queue);
	for (unsigned stream = 0; stream < STREAMS && !w->failure[0]; stream++) {
		struct searched *found = mem_zalloc(sizeof(*found));
		struct offsets acked[CONTENTS_MAX];
		struct errbuf e = {""};
		found->w = w;
		for (size_t i = 0; i < w->content_count; i++)
			acked[i] = w->contents[i].acked;
		int err = search_all(found, stream, &site, &queue, &e);
		if (err)
			differ(w, "lines cannot be searched: error %d, %s", err, e.text);
		else if (!w->removes)
			check_lines(w, stream, acked, w->content_count, found);
		searched_free(found);
	}
	task_queue_release(&queue);
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* What the lines of a stream add up to in 10 s. */
struct far_bin {
	unsigned stream;
	int64_t ms;
	char method;
	int64_t count, sum;
	bool counted, summed; /* the store says so */
};

struct far_bins {
	struct world *w;
	struct far_bin list[BINS_MAX];
	size_t count;
	bool named[STREAMS], unnamed[STREAMS];
};

static struct far_bin *bins_at(struct far_bins *bins, unsigned stream, int64_t ms, char method)
{
	for (size_t i = 0; i < bins->count; i++) {
		struct far_bin *bin = &bins->list[i];
		if (bin->stream == stream && bin->ms == ms && bin->method == method)
			return bin;
	}
	return NULL;
}

static void bins_make(struct far_bins *bins)
{
	const struct world *w = bins->w;
	for (size_t at = 0; at < w->content_count; at++) {
		const struct content *content = &w->contents[at];
		for (size_t i = 0; content->sent && i < content->line_count; i++) {
			const struct far_line *line = &content->lines[i];
			int64_t ms = line->ms / 10000 * 10000;
			struct far_bin *bin = bins_at(bins, content->stream, ms, line->method);
			if (!bin) {
				ASSERT(bins->count < BINS_MAX);
				bin = &bins->list[bins->count++];
				*bin = (struct far_bin){content->stream, ms, line->method};
			}
			bin->count++;
			bin->sum += line->bytes;
		}
	}
}

/* A series of a stream, as its tags say; a stream that is the first of its source has no name.
 * STREAMS: it is that one. */
static unsigned bins_stream_of(const struct far_bins *bins, struct slice tags)
{
	for (unsigned stream = 0; stream < STREAMS; stream++) {
		const struct stream_names names = id_of(bins->w, stream, 0).names;
		char text[64];
		int len = snprintf(text, sizeof(text), "name=%.*s", (int)names.name.len,
				   names.name.data);
		if (memmem(tags.data, tags.len, text, (size_t)len))
			return stream;
		len = snprintf(text, sizeof(text), "host=%.*s,", (int)names.source.len,
			       names.source.data);
		if (!bins->w->same_source && memmem(tags.data, tags.len, text, (size_t)len))
			return stream;
	}
	return STREAMS;
}

static char bins_method_of(struct slice tags)
{
	const char *at = memmem(tags.data, tags.len, "method=", 7);
	return at ? at[7] : '?';
}

static int bins_read_points(struct store *store, struct task_queue *queue, uint64_t handle,
			    int64_t now, struct store_read *read, struct store_points *points)
{
	store_read_reset(read);
	read->now_ms = now;
	read->points_max = 0;
	struct store_request *request = store_read_add(read, STORE_RANGE);
	request->range = (struct store_range){.table = TABLE_DATA_RAW,
					      .handles = &handle,
					      .handle_count = 1,
					      .start_ms = STORE_TS_MIN,
					      .end_ms = STORE_TS_MAX};
	(void)store;
	int err = store_read_wait(read, queue);
	*points = request->range.points[0];
	return err;
}

static void bins_compare_point(struct far_bins *bins, unsigned stream, char method, bool sum,
			       int64_t ms, double value)
{
	struct world *w = bins->w;
	struct far_bin *bin = bins_at(bins, stream, ms, method);
	double want = !bin ? 0 : sum ? (double)bin->sum : (double)bin->count;
	w->points++;
	if (!bin || value != want)
		differ(w, "of stream %u the %s of %c at %.0f s is %g and not %g", stream,
		       sum ? "sum" : "count", method, (double)(ms - w->begun_ms) / 1000, value,
		       want);
	else if (sum)
		bin->summed = true;
	else
		bin->counted = true;
}

static void bins_compare_series(struct far_bins *bins, const struct store_series *series,
				unsigned stream, const struct store_points *points)
{
	bool sum = slice_equal(series->metric, SLICE("acc.bytes.sum"));
	if (!sum && !slice_equal(series->metric, SLICE("acc.count")))
		return;
	for (size_t i = 0; i < points->count; i++) {
		struct value value = {points->bits[0][i], points->types[0][i]};
		bins_compare_point(bins, stream, bins_method_of(series->tags_text), sum,
				   points->ts_ms[i], value_as_f64(value));
	}
}

/* The stream whose series say no name: there is one at most. */
static unsigned bins_unnamed(const struct far_bins *bins)
{
	for (unsigned stream = 0; stream < STREAMS; stream++)
		if (!bins->named[stream])
			for (size_t i = 0; i < bins->count; i++)
				if (bins->list[i].stream == stream)
					return stream;
	return 0;
}

static void bins_compare(struct far_bins *bins, const struct store_series *list, size_t count,
			 struct task_queue *queue)
{
	struct world *w = bins->w;
	struct store *store = far_landed(w->far);
	struct store_read *read = store_read_new(store, READ_MAX_BYTES);
	for (int pass = 0; pass < 2; pass++) { /* who has a name is known after the first */
		for (size_t i = 0; i < count && !w->failure[0]; i++) {
			unsigned stream = bins_stream_of(bins, list[i].tags_text);
			struct store_points points;
			int err = bins_read_points(store, queue, list[i].handle, now_ms(w), read,
						   &points);
			ASSERT(!err);
			if (pass == 0 && stream < STREAMS && points.count)
				bins->named[stream] = true;
			if (pass == 1)
				bins_compare_series(bins, &list[i],
						    stream < STREAMS ? stream : bins_unnamed(bins),
						    &points);
		}
	}
	store_read_free(read);
}

void check_samples(struct world *w)
{
	struct far_bins *bins = mem_zalloc(sizeof(*bins));
	struct store_read *read = store_read_new(far_landed(w->far), READ_MAX_BYTES);
	struct task_queue queue;
	task_queue_init(&queue);
	bins->w = w;
	bins_make(bins);
	read->now_ms = now_ms(w);
	struct store_request *request = store_read_add(read, STORE_SERIES_LIST);
	request->series_list = (struct store_series_list){.tenant = SLICE("t")};
	int err = store_read_wait(read, &queue);
	ASSERT(!err && !request->more);
	bins_compare(bins, request->series_list.series, request->series_list.count, &queue);
	for (size_t i = 0; i < bins->count; i++)
		if (!bins->list[i].counted || !bins->list[i].summed)
			differ(w, "stream %u has no samples of %c at %.0f s", bins->list[i].stream,
			       bins->list[i].method,
			       (double)(bins->list[i].ms - w->begun_ms) / 1000);
	store_read_free(read);
	task_queue_release(&queue);
	mem_free(bins);
}

/* ---- What is old ----------------------------------------------------------------------------- */

/* A pass that begins now, by the clock of whoever removes, sees all that was acknowledged before,
 * and what is younger than it may be stays, also where it fills a hole. */
static void check_gone_byte(struct world *w, size_t at, uint64_t offset, int64_t begun_ms)
{
	const struct content *content = &w->contents[at];
	int64_t acked_ms = content->acked_ms[offset];
	if (acked_ms && acked_ms + 2 * SKEW_MS < begun_ms &&
	    content->sent_ms[offset] > begun_ms - KEEP_MS + SKEW_MS)
		differ(w, "of content %zu the byte at %llu has gone though it is not old", at,
		       (unsigned long long)offset);
}

static int kept_see(const struct store_cell *cell, void *owner)
{
	struct world *w = owner;
	enum stream_property property;
	struct stream_kept kept = {.from = 0};
	size_t at = (size_t)be64_get((const uint8_t *)cell->column.part[1].data) - 1;
	if (!streams_read_property(cell, &property) || property != STREAM_KEPT)
		return 0;
	int err = stream_kept_decode(cell->value, &kept);
	ASSERT(!err && at < w->content_count);
	struct content *content = &w->contents[at];
	for (; content->kept_from < kept.from; content->kept_from++)
		check_gone_byte(w, at, content->kept_from, cell->stamp_us / 1000);
	offsets_release(&kept.going);
	return 0;
}

void check_gone_is_old(struct world *w)
{
	struct stream_parts key;
	struct task_queue queue;
	struct errbuf e = {""};
	if (w->removes != REMOVES_OLD)
		return;
	task_queue_init(&queue);
	streams_key(&key, SLICE("t"));
	int err = store_row_wait(far_landed(w->far), &queue, now_ms(w), TABLE_STREAMS, &key.parts,
				 kept_see, w, &e);
	ASSERT(!err);
	task_queue_release(&queue);
}

static int gone_see(UNUSED const struct store_row *row, void *owner)
{
	differ(owner, "blocks are there though all is old");
	return 0;
}

void check_gone(struct world *w)
{
	struct task_queue queue;
	struct errbuf e = {""};
	task_queue_init(&queue);
	int err = w->removed_come_back ? 0
				       : store_rows_wait(far_landed(w->far), &queue, now_ms(w),
							 TABLE_CHUNK_SINK, gone_see, w, &e);
	ASSERT(!err);
	for (size_t i = 0; i < w->content_count; i++)
		if (w->contents[i].acked.count) {
			const struct stream_site site = {.store = far_landed(w->far),
							 .clock = &w->clock.clock};
			const struct stream_id id = id_of(w, w->contents[i].stream, i + 1);
			struct stream_known known = {.made = false};
			err = stream_known_read(&known, &site, &queue, &id, 0, &e);
			if (err || known.held.count)
				differ(w, "content %zu is there though it is old: error %d", i,
				       err);
			stream_known_release(&known);
		}
	task_queue_release(&queue);
}
