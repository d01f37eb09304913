/* Where one meta page is damaged nobody says whether it was the newer one. If it was, the state
 * that it led to is whole all the same, since no later commit has taken its pages: its list of
 * databases is a leaf somewhere, and it has got further than that of the other meta page. */
#include "base/cursor.h"
#include "store/lmdb/inspect/repair.h"

/* How far a state has got: none of these ever falls, and every commit raises one. */
struct newest_progress {
	uint64_t sequence, version, flush, names;
};

static int progress_counters(struct pages_walk *walk, struct slice key, struct slice value,
			     UNUSED uint64_t page)
{
	struct newest_progress *progress = walk->context;
	uint64_t counters[COUNTERS];
	struct slice payload;
	if (!slice_equal(key, SLICE("counters")) || record_open(key, value, &payload) ||
	    payload.len != sizeof(counters))
		return 0;
	memcpy(counters, payload.data, sizeof(counters));
	progress->version = counters[COUNTER_VERSION];
	progress->flush = counters[COUNTER_FLUSH];
	if (counters[COUNTER_SEQUENCE] > progress->sequence)
		progress->sequence = counters[COUNTER_SEQUENCE];
	return 0;
}

static int progress_journal(struct pages_walk *walk, struct slice key, struct slice value,
			    UNUSED uint64_t page)
{
	struct newest_progress *progress = walk->context;
	struct journal_view view;
	if (!journal_page_open(key, value, &view) &&
	    view.first_sequence + view.records > progress->sequence)
		progress->sequence = view.first_sequence + view.records;
	return 0;
}

static int newest_read_progress(struct datafile *file, uint64_t above,
				struct newest_progress *progress)
{
	uint8_t from[8];
	be64_put(from, above);
	struct pages_walk journal = {.pages = &file->pages,
				     .tree = file->trees[DB_JOURNAL],
				     .from = {(const char *)from, sizeof(from)},
				     .context = progress,
				     .entry = progress_journal};
	struct pages_walk meta = {.pages = &file->pages,
				  .tree = file->trees[DB_META],
				  .context = progress,
				  .entry = progress_counters};
	*progress = (struct newest_progress){.names = file->trees[DB_BANDS].entries +
						      file->trees[DB_SHAPES].entries};
	int err = pages_walk(&meta);
	return err ? err : pages_walk(&journal);
}

static bool is_further(const struct newest_progress *a, const struct newest_progress *b)
{
	if (a->sequence != b->sequence)
		return a->sequence > b->sequence;
	if (a->version != b->version)
		return a->version > b->version;
	return a->flush != b->flush ? a->flush > b->flush : a->names > b->names;
}

/* All that was written may be of use, also after the last page that this meta page knows. */
static int pages_use_all(struct pages *pages)
{
	struct pages_meta meta = pages->meta;
	uint64_t written = pages->source.bytes / meta.page_bytes;
	if (written > meta.last_page + 1)
		meta.last_page = written - 1;
	return pages_use_meta(pages, &meta);
}

int repair_find_newest(struct repairing *r, bool *found)
{
	struct datafile *file = &r->file;
	struct newest_progress best, other;
	struct pages_meta known = file->pages.meta;
	*found = false;
	int err = datafile_find(file, NULL, NULL);
	if (!err)
		err = newest_read_progress(file, 0, &best);
	if (!err)
		err = pages_use_all(&file->pages);
	struct datafile candidate = *file;
	uint64_t last = file->pages.meta.last_page;
	for (uint64_t page = 2; page <= last && !err; page++) {
		if (!datafile_find_in(&candidate, page))
			continue;
		err = newest_read_progress(&candidate, best.sequence, &other);
		if (!err && is_further(&other, &best)) {
			best = other;
			*file = candidate;
			*found = true;
		}
	}
	if (!err && !*found)
		err = pages_use_meta(&file->pages, &known);
	return err;
}
