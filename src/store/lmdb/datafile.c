#include "store/lmdb/datafile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "store/lmdb/group.h"

enum { SERIES_TEXT_MAX_BYTES = 1000 };

/* ---- The file -------------------------------------------------------------------------------- */

static int datafile_read(void *context, uint64_t offset, void *to, size_t len)
{
	const struct datafile *file = context;
	uint8_t *at = to;
	while (len) {
		ssize_t got = pread(file->fd, at, len, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : ERR_DAMAGED;
		at += got;
		offset += (uint64_t)got;
		len -= (size_t)got;
	}
	return 0;
}

int datafile_open(struct datafile *file, const char *path, struct errbuf *e)
{
	struct stat st;
	*file = (struct datafile){.fd = open(path, O_RDONLY | O_CLOEXEC)};
	if (file->fd < 0 || fstat(file->fd, &st))
		return errbuf_set(e, -errno, "%s: %s", path, err_text(-errno));
	struct pages_source source = {datafile_read, file, (uint64_t)st.st_size};
	int err = pages_open(&file->pages, &source, e);
	return err ? errbuf_prefix(e, err, "%s is damaged", path) : 0;
}

void datafile_close(struct datafile *file)
{
	pages_release(&file->pages);
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

/* ---- Databases ------------------------------------------------------------------------------- */

struct finding_trees {
	struct datafile *file;
	datafile_lost *lost;
	void *context;
};

static void tree_lost(struct pages_walk *walk, const struct pages_loss *loss)
{
	struct finding_trees *finding = walk->context;
	if (finding->lost)
		finding->lost(finding->context, "the list of databases", loss);
}

static int tree_entry(struct pages_walk *walk, struct slice key, struct slice value, uint64_t page)
{
	struct datafile *file = ((struct finding_trees *)walk->context)->file;
	for (int db = 0; db < DB_COUNT; db++) {
		if (!slice_equal(key, slice_of(db_names[db])))
			continue;
		file->found[db] = pages_tree_parse(value, &file->trees[db]) == 0;
		if (file->found[db])
			return 0;
	}
	struct pages_loss loss = {page, "an entry of it cannot be read", key, key, true};
	walk->losses++;
	tree_lost(walk, &loss);
	return 0;
}

int datafile_find(struct datafile *file, datafile_lost *lost, void *context)
{
	struct finding_trees finding = {file, lost, context};
	struct pages_walk walk = {.pages = &file->pages,
				  .tree = file->pages.meta.main,
				  .owner = PAGES_MAIN_TREE,
				  .has_trees = true,
				  .context = &finding,
				  .entry = tree_entry,
				  .lost = tree_lost};
	return pages_walk(&walk);
}

bool datafile_find_in(struct datafile *file, uint64_t page)
{
	struct finding_trees finding = {.file = file};
	struct pages_walk walk = {
		.pages = &file->pages, .has_trees = true, .context = &finding, .entry = tree_entry};
	bool all = true;
	memset(file->found, 0, sizeof(file->found));
	if (pages_leaf(&walk, page))
		return false;
	for (enum db db = 0; db < DB_COUNT; db++)
		all = all && (file->found[db] || !format_has(1, db));
	return all;
}

static int format_entry(struct pages_walk *walk, struct slice key, struct slice value,
			UNUSED uint64_t page)
{
	uint32_t *version = walk->context;
	if (slice_equal(key, SLICE("format")) && value.len == sizeof(*version))
		memcpy(version, value.data, sizeof(*version));
	return 0;
}

int datafile_format(struct datafile *file, uint32_t *version)
{
	struct pages_walk walk = {.pages = &file->pages,
				  .tree = file->trees[DB_META],
				  .context = version,
				  .entry = format_entry};
	*version = 0;
	return file->found[DB_META] ? pages_walk(&walk) : 0;
}

/* ---- The start ------------------------------------------------------------------------------- */

struct start_check {
	struct errbuf *e;
	const char *path, *what; /* what: the tree that is looked at */
};

static void start_lost(void *context, const char *what, const struct pages_loss *loss)
{
	struct start_check *check = context;
	if (!check->e->text[0])
		errbuf_set(check->e, ERR_DAMAGED, "%s is damaged: page %llu, of %s: %s",
			   check->path, (unsigned long long)loss->page, what, loss->why);
}

static void start_walk_lost(struct pages_walk *walk, const struct pages_loss *loss)
{
	struct start_check *check = walk->context;
	start_lost(check, check->what, loss);
}

static int check_metas(const struct pages *pages, const char *path, struct errbuf *e)
{
	for (int n = 0; n < 2; n++) {
		if (pages->metas[n].fault)
			return errbuf_set(e, ERR_DAMAGED, "%s is damaged: page %d, a meta page: %s",
					  path, n, pages->metas[n].fault);
	}
	return 0;
}

static int check_roots(struct datafile *file, struct start_check *check)
{
	int err = 0;
	for (int db = 0; db < DB_COUNT && !err; db++) {
		struct pages_walk walk = {.pages = &file->pages,
					  .tree = file->trees[db],
					  .owner = datafile_owner((enum db)db),
					  .only_root = true,
					  .context = check,
					  .lost = start_walk_lost};
		check->what = db_names[db];
		if (file->found[db])
			err = pages_walk(&walk);
	}
	return err;
}

int datafile_check_start(const char *path, struct errbuf *e)
{
	struct datafile file;
	struct start_check check = {e, path, "the list of free pages"};
	size_t losses;
	e->text[0] = 0;
	int err = datafile_open(&file, path, e);
	if (!err)
		err = check_metas(&file.pages, path, e);
	if (!err)
		err = pages_walk_free(&file.pages, &check, start_walk_lost, &losses);
	if (!err)
		err = datafile_find(&file, start_lost, &check);
	if (!err)
		err = check_roots(&file, &check);
	datafile_close(&file);
	return err || !e->text[0] ? err : ERR_DAMAGED;
}

/* ---- What was there -------------------------------------------------------------------------- */

struct telling {
	struct datafile *file;
	struct lmdb_lost lost;
	void (*tell)(void *context, const struct lmdb_lost *lost);
	void *context;
	struct shape_view shape; /* of the bands that come, in shape_bytes; id 0: none yet */
	struct buf shape_bytes;
	size_t told, told_max;
};

static void tell_one(struct telling *t, const char *series)
{
	t->lost.series = series;
	t->told++;
	t->tell(t->context, &t->lost);
}

static int shape_entry(struct pages_walk *walk, struct slice key, struct slice value,
		       UNUSED uint64_t page)
{
	struct telling *t = walk->context;
	buf_clear(&t->shape_bytes);
	buf_append(&t->shape_bytes, key.data, key.len);
	buf_append(&t->shape_bytes, value.data, value.len);
	struct slice own_key = {t->shape_bytes.data, key.len};
	struct slice own_value = {t->shape_bytes.data + key.len, value.len};
	if (t->shape_bytes.failed || shape_parse(own_key, own_value, &t->shape))
		t->shape.id = 0;
	return ERR_CANCELLED;
}

static int datafile_walk(struct telling *t, enum db db, struct slice from, struct slice to,
			 int (*entry)(struct pages_walk *walk, struct slice key, struct slice value,
				      uint64_t page))
{
	struct pages_walk walk = {.pages = &t->file->pages,
				  .tree = t->file->trees[db],
				  .from = from,
				  .to = to,
				  .context = t,
				  .entry = entry};
	return t->file->found[db] ? pages_walk(&walk) : 0;
}

/* Reads the page of the shape, of which the leaf may have others before it. */
static int shape_at_or_after(struct pages_walk *walk, struct slice key, struct slice value,
			     uint64_t page)
{
	return slice_compare(key, walk->from) < 0 ? 0 : shape_entry(walk, key, value, page);
}

static unsigned shape_columns(struct telling *t, uint32_t id)
{
	uint8_t from[4], to[4];
	be32_put(from, id);
	be32_put(to, id + 1);
	if (t->shape.id != id) {
		t->shape.id = 0;
		(void)!datafile_walk(t, DB_SHAPES, (struct slice){(const char *)from, 4},
				     (struct slice){(const char *)to, 4}, shape_at_or_after);
	}
	return t->shape.id == id ? t->shape.count : 0;
}

void datafile_name_band(const struct shape_view *shape, const struct band_view *band,
			struct buf *out)
{
	for (unsigned i = 0; i < shape->count; i++)
		buf_printf(out, "%s%.*s", i ? "," : "", (int)shape->metric[i].len,
			   shape->metric[i].data);
	buf_printf(out, "{%.*s}", (int)band->tags_text.len, band->tags_text.data);
}

static int band_entry(struct pages_walk *walk, struct slice key, struct slice value,
		      UNUSED uint64_t page)
{
	struct telling *t = walk->context;
	struct band_view band;
	struct buf text;
	if (slice_compare(key, walk->from) < 0 || band_parse(key, value, &band) ||
	    !shape_columns(t, band.shape))
		return 0;
	if (slice_compare(key, walk->to) >= 0)
		return ERR_CANCELLED;
	if (t->told == t->told_max) {
		tell_one(t, "and others");
		return ERR_CANCELLED;
	}
	buf_init(&text, SERIES_TEXT_MAX_BYTES);
	datafile_name_band(&t->shape, &band, &text);
	(void)!buf_append(&text, "", 1);
	tell_one(t, text.failed ? "a series of a long name" : text.data);
	buf_release(&text);
	return 0;
}

/* The bands of the groups from `first` to `last`, both in one segment. */
static void tell_groups(struct telling *t, const struct group_id *first,
			const struct group_id *last)
{
	unsigned columns = shape_columns(t, first->shape), columns_last;
	uint32_t begin = columns ? first->group * group_bands(columns) : 0;
	columns_last = shape_columns(t, last->shape);
	uint32_t end = columns_last ? (last->group + 1) * group_bands(columns_last) : UINT32_MAX;
	uint8_t from[8], to[8];
	be32_put(from, first->shape);
	be32_put(from + 4, begin);
	be32_put(to, last->shape);
	be32_put(to + 4, end);
	(void)!datafile_walk(t, DB_BANDS, (struct slice){(const char *)from, 8},
			     (struct slice){(const char *)to, 8}, band_entry);
	if (!t->told)
		tell_one(t, "series whose names are lost");
}

static void segment_times(const struct segment_id *id, int64_t *from_ms, int64_t *to_ms)
{
	int64_t width_ms = schema_segment_ms(id->sheet.table, id->sheet.period_ms);
	if (__builtin_mul_overflow(id->segment, width_ms, from_ms) ||
	    __builtin_add_overflow(*from_ms, width_ms, to_ms)) {
		*from_ms = INT64_MIN;
		*to_ms = INT64_MAX;
	}
}

static void tell_extents(struct telling *t, const struct pages_loss *loss)
{
	struct group_id first = {.shape = 0}, last = {.shape = 0};
	int64_t first_ts_ms = INT64_MIN, ts_ms;
	uint32_t flush;
	bool has_first = !group_parse_key(loss->from, &first, &first_ts_ms, &flush);
	bool has_last = !group_parse_key(loss->to, &last, &ts_ms, &flush);
	const struct store_target *a = &first.segment.sheet, *b = &last.segment.sheet;
	int64_t ignored;
	if (has_first)
		t->lost.table = schema[a->table].name;
	if (has_first && has_last && segment_order(&first.segment, &last.segment) == 0) {
		segment_times(&first.segment, &t->lost.from_ms, &t->lost.to_ms);
		if (loss->one)
			t->lost.from_ms = first_ts_ms;
		tell_groups(t, &first, &last);
		return;
	}
	if (has_first && has_last && a->table == b->table && a->retention == b->retention &&
	    a->period_ms == b->period_ms) {
		segment_times(&first.segment, &t->lost.from_ms, &ignored);
		segment_times(&last.segment, &ignored, &t->lost.to_ms);
	} else {
		t->lost.table = NULL;
	}
	tell_one(t, NULL);
}

void datafile_tell_lost(struct datafile *file, enum db db, const struct pages_loss *loss,
			size_t told_max, void (*tell)(void *context, const struct lmdb_lost *lost),
			void *context)
{
	struct telling *t = mem_zalloc(sizeof(*t));
	buf_init(&t->shape_bytes, 2 * PAGE_VALUE_MAX_BYTES);
	t->file = file;
	t->told_max = told_max;
	t->tell = tell;
	t->context = context;
	t->lost = (struct lmdb_lost){.what = db_names[db],
				     .page = loss->page,
				     .from_ms = INT64_MIN,
				     .to_ms = INT64_MAX,
				     .why = loss->why};
	if (db == DB_EXTENTS) {
		tell_extents(t, loss);
	} else {
		if (db == DB_CELLS && loss->from.len && loss->to.len &&
		    loss->from.data[0] == loss->to.data[0] &&
		    (uint8_t)loss->from.data[0] < TABLE_COUNT)
			t->lost.table = schema[(uint8_t)loss->from.data[0]].name;
		tell_one(t, NULL);
	}
	buf_release(&t->shape_bytes);
	mem_free(t);
}
