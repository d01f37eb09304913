/* The data file page by page, before LMDB is let near it. */
#include <unistd.h>

#include "store/lmdb/datafile.h"
#include "wire/timetext.h"

struct page_check {
	struct datafile file;
	void (*tell)(void *context, const struct lmdb_lost *lost);
	void *context;
	enum db db;
	const char *what; /* the tree, where it is no database */
};

static void tell_of_tree(struct page_check *check, const char *what, uint64_t page, const char *why)
{
	struct lmdb_lost lost = {what, page, NULL, NULL, INT64_MIN, INT64_MAX, why};
	check->tell(check->context, &lost);
}

static void check_tree_lost(void *context, const char *what, const struct pages_loss *loss)
{
	tell_of_tree(context, what, loss->page, loss->why);
}

static void check_free_lost(struct pages_walk *walk, const struct pages_loss *loss)
{
	tell_of_tree(walk->context, "the list of free pages", loss->page, loss->why);
}

/* Only the first of a loss: repair lists all. */
static void check_lost(struct pages_walk *walk, const struct pages_loss *loss)
{
	struct page_check *check = walk->context;
	datafile_tell_lost(&check->file, check->db, loss, 1, check->tell, check->context);
}

static void verify_check_meta_pages(struct page_check *check)
{
	const struct pages_meta *metas = check->file.pages.metas;
	bool both = !metas[0].fault && !metas[1].fault;
	for (unsigned n = 0; n < 2; n++) {
		if (metas[n].fault)
			tell_of_tree(check, "the meta pages", n, metas[n].fault);
	}
	uint64_t a = metas[0].transaction, b = metas[1].transaction;
	if (both && (a > b ? a - b : b - a) > 1)
		tell_of_tree(check, "the meta pages", a > b,
			     "the two are not of transactions one after the other");
}

static void check_counts(struct page_check *check, const struct pages_walk *walk)
{
	const struct pages_tree *said = &walk->tree, *seen = &walk->seen;
	if (!walk->losses && (said->branches != seen->branches || said->leaves != seen->leaves ||
			      said->overflows != seen->overflows || said->entries != seen->entries))
		tell_of_tree(check, db_names[check->db], said->root,
			     "its tree has other counts of pages or entries than it should: a page "
			     "of an earlier time, perhaps");
}

static int check_database(struct page_check *check, enum db db, uint32_t version)
{
	struct pages_walk walk = {.pages = &check->file.pages,
				  .tree = check->file.trees[db],
				  .owner = datafile_owner(db),
				  .context = check,
				  .lost = check_lost};
	check->db = db;
	if (!check->file.found[db] && version && !format_has(version, db))
		return 0;
	if (!check->file.found[db]) {
		tell_of_tree(check, db_names[db], 0, "there is no such database");
		return 0;
	}
	int err = pages_walk(&walk);
	check_counts(check, &walk);
	return err;
}

/* Where a page belongs to nothing, the tree or the list that had it is not what it was. */
static void check_rest(struct page_check *check)
{
	const struct pages *pages = &check->file.pages;
	uint64_t count = 0, first = 0;
	for (uint64_t page = pages->meta.last_page; page >= 2; page--) {
		if (pages->owners[page] == PAGES_NOBODY) {
			count++;
			first = page;
		}
	}
	if (count)
		tell_of_tree(check, "no tree", first,
			     "this page, the first of those, is neither used nor free");
}

static int check_all(struct page_check *check)
{
	struct pages *pages = &check->file.pages;
	uint32_t version = 0;
	size_t losses;
	verify_check_meta_pages(check);
	int err = pages_walk_free(pages, check, check_free_lost, &losses);
	if (!err && !losses && !pages_free_is_newest(pages))
		tell_of_tree(check, "the list of free pages", pages->meta.free.root,
			     "it is not that of the last commit");
	if (!err)
		err = datafile_find(&check->file, check_tree_lost, check);
	if (!err)
		err = datafile_format(&check->file, &version);
	for (int db = 0; db < DB_COUNT && !err; db++)
		err = check_database(check, (enum db)db, version);
	if (!err)
		check_rest(check);
	return err;
}

int lmdb_verify_pages(const struct lmdb_options *options,
		      void (*tell)(void *context, const struct lmdb_lost *lost), void *context,
		      uint64_t *checked, struct errbuf *e)
{
	struct page_check *check = mem_zalloc(sizeof(*check));
	char path[ENV_NAME_MAX_BYTES];
	struct env lock;
	*checked = 0;
	check->tell = tell;
	check->context = context;
	snprintf(path, sizeof(path), "%s/" ENV_FILE, options->path);
	int err = env_lock_shared(&lock, options, e);
	if (!err) {
		err = datafile_open(&check->file, path, e);
		if (err == ERR_DAMAGED) {
			tell_of_tree(check, "the meta pages", 0, e->text);
			err = 0;
		} else if (!err) {
			err = check_all(check);
			*checked = check->file.pages.meta.last_page + 1;
		}
		datafile_close(&check->file);
		env_close(&lock);
	}
	mem_free(check);
	return err;
}

/* ---- For people ------------------------------------------------------------------------------ */

static void append_time(char *to, size_t size, const char *word, int64_t ms)
{
	char text[TIME_PRINT_MAX_BYTES + 1];
	if (ms == INT64_MIN || ms == INT64_MAX)
		return;
	text[time_print(text, ms)] = 0;
	size_t used = strlen(to);
	snprintf(to + used, size - used, "%s%s", word, text);
}

void lmdb_lost_text(const struct lmdb_lost *lost, char to[LMDB_LOST_TEXT_BYTES])
{
	size_t used = 0, size = LMDB_LOST_TEXT_BYTES;
	if (lost->page)
		used = (size_t)snprintf(to, size, "page %llu of ", (unsigned long long)lost->page);
	used += (size_t)snprintf(to + used, size - used, "%s: %s", lost->what, lost->why);
	if (lost->table)
		used += (size_t)snprintf(to + used, size - used, "; table %s", lost->table);
	if (lost->series)
		snprintf(to + used, size - used, ", %.1200s", lost->series);
	append_time(to, size, ", from ", lost->from_ms);
	append_time(to, size, " to ", lost->to_ms);
}
