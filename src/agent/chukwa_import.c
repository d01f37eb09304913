/* Chukwa's agent writes a checkpoint NAME<N+1>, and then removes NAME<N>. Where both are there it
 * was stopped in between, and the higher one may be half written: so the lowest one counts. */
#include "agent/chukwa_import.h"

#include <limits.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/log.h"
#include "model/stream.h"
#include "wire/chukwa_agent.h"
#include "wire/chunk.h"
#include "wire/number.h"
#include "wire/syslog.h"

enum {
	CHUKWA_IMPORT_CHECKPOINTS_MAX = 16, /* that are tried */
	CHUKWA_IMPORT_NAMED_MAX = 10,       /* properties that are not known, in a line */
	CHUKWA_IMPORT_LINE_MAX_BYTES = 4096,
};

/* Where Chukwa's agent has them when its configuration does not say. */
#define CHUKWA_IMPORT_CONF             "chukwa-agent-conf.xml"
#define CHUKWA_IMPORT_INITIAL          "initial_adaptors"
#define CHUKWA_IMPORT_CHECKPOINT_NAMES "chukwa_checkpoint_"

void chukwa_import_init(struct chukwa_import *import)
{
	*import = (struct chukwa_import){.checkpoint = NULL};
	arena_init(&import->arena, CHUKWA_IMPORT_MAX_BYTES);
}

void chukwa_import_release(struct chukwa_import *import)
{
	arena_release(&import->arena);
}

static int chukwa_import_full(struct errbuf *e)
{
	return errbuf_set(e, ERR_LIMIT, "the files of Chukwa take more than %d MiB of memory",
			  CHUKWA_IMPORT_MAX_BYTES >> 20);
}

/* ---- chukwa-agent-conf.xml ------------------------------------------------------------------- */

static int chukwa_import_take_cluster(struct chukwa_import *import, struct slice value,
				      struct errbuf *e)
{
	struct slice cluster = chunk_tags_cluster(value);
	const struct stream_names names = {SLICE("source"), cluster, SLICE("datatype"),
					   SLICE("name")};
	int err = stream_names_check(&names, e);
	if (err)
		return err;
	import->cluster = arena_copy(&import->arena, cluster);
	return import->cluster.data ? 0 : chukwa_import_full(e);
}

/* An absolute path, without slashes at its end. */
static int chukwa_import_take_path(struct chukwa_import *import, struct slice value,
				   const char **path, struct errbuf *e)
{
	if (!value.len || value.data[0] != '/')
		return errbuf_set(e, ERR_INVALID, "'" SHOWN "' is not an absolute path",
				  SHOWN_OF(value));
	if (value.len >= PATH_MAX)
		return errbuf_set(e, ERR_INVALID, "the path has %zu bytes, more than %d", value.len,
				  PATH_MAX - 1);
	while (value.len > 1 && value.data[value.len - 1] == '/')
		value.len--;
	*path = arena_copy(&import->arena, value).data;
	return *path ? 0 : chukwa_import_full(e);
}

static int chukwa_import_take_directory(struct chukwa_import *import, struct slice value,
					struct errbuf *e)
{
	return chukwa_import_take_path(import, value, &import->checkpoint_directory, e);
}

static int chukwa_import_take_initial(struct chukwa_import *import, struct slice value,
				      struct errbuf *e)
{
	return chukwa_import_take_path(import, value, &import->initial_adaptors, e);
}

static int chukwa_import_take_name(struct chukwa_import *import, struct slice value,
				   struct errbuf *e)
{
	if (!value.len || value.len > NAME_MAX || memchr(value.data, '/', value.len))
		return errbuf_set(e, ERR_INVALID, "'" SHOWN "' is not the beginning of a name",
				  SHOWN_OF(value));
	import->checkpoint_name = arena_copy(&import->arena, value).data;
	return import->checkpoint_name ? 0 : chukwa_import_full(e);
}

static const struct chukwa_import_property {
	const char *name;
	int (*take)(struct chukwa_import *import, struct slice value, struct errbuf *e);
} chukwa_import_properties[] = {
	{"chukwaAgent.tags", chukwa_import_take_cluster},
	{"chukwaAgent.checkpoint.dir", chukwa_import_take_directory},
	{"chukwaAgent.checkpoint.name", chukwa_import_take_name},
	{"chukwaAgent.initial_adaptors", chukwa_import_take_initial},
};

static int chukwa_import_take(struct chukwa_import *import, const struct hadoop_conf *conf,
			      const struct chukwa_import_property *row, const char *file_name,
			      struct errbuf *e)
{
	const struct hadoop_property *property = hadoop_conf_find(conf, slice_of(row->name));
	if (!property)
		return 0;
	int err = memmem(property->value.data, property->value.len, "${", 2)
			  ? errbuf_set(e, ERR_INVALID,
				       "'" SHOWN "' has a ${...}, which only Chukwa's scripts can "
				       "replace; write what it stands for",
				       SHOWN_OF(property->value))
			  : row->take(import, property->value, e);
	return err ? errbuf_prefix(e, err, "%s:%u: %s", file_name, property->line, row->name) : 0;
}

static bool chukwa_import_knows(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(chukwa_import_properties); i++)
		if (slice_equal(name, slice_of(chukwa_import_properties[i].name)))
			return true;
	return false;
}

/* `syslog.adaptor.port.PORT.facility.NAME` */
static bool chukwa_import_is_facility(struct slice name, struct slice *port, unsigned *facility)
{
	static const struct slice front = SLICE("syslog.adaptor.port."),
				  middle = SLICE(".facility.");
	if (!slice_starts_with(name, front))
		return false;
	*port = (struct slice){name.data + front.len, name.len - front.len};
	const char *at = memmem(port->data, port->len, middle.data, middle.len);
	if (!at)
		return false;
	struct slice word = {at + middle.len, (size_t)(port->data + port->len - at) - middle.len};
	port->len = (size_t)(at - port->data);
	return syslog_facility_find(word, facility);
}

static bool chukwa_import_is_unknown(const struct hadoop_property *property)
{
	struct slice port;
	unsigned facility;
	return !chukwa_import_knows(property->name) &&
	       !chukwa_import_is_facility(property->name, &port, &facility);
}

static void chukwa_import_log_names(struct buf *names, const char *file_name)
{
	if (names->len)
		log_warn("%s: these properties change nothing here: %.*s", file_name,
			 (int)names->len, names->data);
	buf_clear(names);
}

/* All of them, so many in a line. */
static void chukwa_import_log_unknown(const struct hadoop_conf *conf, const char *file_name)
{
	struct buf names;
	size_t count = 0;
	buf_init(&names, CHUKWA_IMPORT_LINE_MAX_BYTES);
	for (const struct hadoop_property *p = conf->first; p; p = p->next) {
		if (!chukwa_import_is_unknown(p))
			continue;
		buf_printf(&names, "%s" SHOWN, names.len ? ", " : "", SHOWN_OF(p->name));
		if (++count % CHUKWA_IMPORT_NAMED_MAX == 0)
			chukwa_import_log_names(&names, file_name);
	}
	chukwa_import_log_names(&names, file_name);
	buf_release(&names);
}

int chukwa_import_conf(struct chukwa_import *import, const char *file_name, struct slice text,
		       struct errbuf *e)
{
	int err = hadoop_conf_parse(text, &import->arena, &import->conf, e);
	if (err)
		return errbuf_prefix(e, err, "%s", file_name);
	for (size_t i = 0; i < ARRAY_LEN(chukwa_import_properties) && !err; i++)
		err = chukwa_import_take(import, &import->conf, &chukwa_import_properties[i],
					 file_name, e);
	if (!err)
		chukwa_import_log_unknown(&import->conf, file_name);
	return err;
}

/* ---- Files ----------------------------------------------------------------------------------- */

struct chukwa_import_reader {
	struct files *files;
	const char *directory;
	struct adaptors *adaptors;
	struct chukwa_import *import;
	struct buf text; /* of the file that was read last */
	bool any;        /* one of the files was there */
	struct errbuf *e;
};

/* Reads one file. ERR_NOT_FOUND and others, with a sentence. */
static int chukwa_import_read(struct chukwa_import_reader *r, const char *path)
{
	buf_clear(&r->text);
	int err = r->files->read(r->files, path, CHUKWA_IMPORT_FILE_MAX_BYTES, &r->text);
	if (err == ERR_LIMIT)
		return errbuf_set(r->e, err, "%s has more than %d MiB", path,
				  CHUKWA_IMPORT_FILE_MAX_BYTES >> 20);
	if (err)
		return errbuf_set(r->e, err, "%s cannot be read: %s", path, err_text(err));
	r->any = true;
	return 0;
}

/* A file of the directory. NULL: the arena is full. */
static const char *chukwa_import_path(struct chukwa_import_reader *r, const char *name)
{
	return arena_printf(&r->import->arena, "%s/%s", r->directory, name);
}

static int chukwa_import_read_conf(struct chukwa_import_reader *r)
{
	const char *path = chukwa_import_path(r, CHUKWA_IMPORT_CONF);
	if (!path)
		return chukwa_import_full(r->e);
	int err = chukwa_import_read(r, path);
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err;
	return chukwa_import_conf(r->import, path, buf_slice(&r->text), r->e);
}

static int chukwa_import_add(struct chukwa_import_reader *r, const char *path, struct slice text)
{
	size_t before = r->adaptors->count;
	int err = adaptors_add_chukwa(r->adaptors, path, text, &r->import->skipped, r->e);
	r->import->added += r->adaptors->count - before;
	return err;
}

static int chukwa_import_read_initial(struct chukwa_import_reader *r)
{
	const char *path = r->import->initial_adaptors;
	bool named = path != NULL;
	if (!named)
		path = chukwa_import_path(r, CHUKWA_IMPORT_INITIAL);
	if (!path)
		return chukwa_import_full(r->e);
	int err = chukwa_import_read(r, path);
	if (err)
		return err == ERR_NOT_FOUND && !named ? 0 : err;
	return chukwa_import_add(r, path, buf_slice(&r->text));
}

/* ---- Checkpoints ----------------------------------------------------------------------------- */

struct chukwa_import_search {
	struct slice names; /* what they begin with */
	uint64_t from;      /* lower numbers were tried */
	uint64_t lowest;
	bool found;
};

/* NAME and a number that is written as Chukwa writes it. */
static void chukwa_import_see(void *owner, const char *name)
{
	struct chukwa_import_search *search = owner;
	struct slice rest = slice_of(name);
	uint64_t number;
	if (!slice_starts_with(rest, search->names))
		return;
	rest = (struct slice){rest.data + search->names.len, rest.len - search->names.len};
	if (!rest.len || !number_is_digit(rest.data[0]) || (rest.len > 1 && rest.data[0] == '0') ||
	    number_parse_u64(rest.data, rest.data + rest.len, &number) || number > INT64_MAX)
		return;
	if (number < search->from || (search->found && number > search->lowest))
		return;
	search->lowest = number;
	search->found = true;
}

/* A line counts when its end is there. */
static struct slice chukwa_import_whole_lines(struct chukwa_import_reader *r, const char *path)
{
	struct slice text = buf_slice(&r->text);
	const char *newline = text.len ? memrchr(text.data, '\n', text.len) : NULL;
	size_t whole = newline ? (size_t)(newline + 1 - text.data) : 0;
	if (whole < text.len) {
		log_warn("%s: its last line has no end, and is passed over", path);
		r->import->skipped++;
	}
	return (struct slice){text.data, whole};
}

/* Tries the one of the lowest number that was not tried. ERR_RETRY: it cannot be read.
 * ERR_NOT_FOUND: there is none. */
static int chukwa_import_try(struct chukwa_import_reader *r, const char *directory,
			     const char *names, uint64_t *from)
{
	struct chukwa_import_search search = {.names = slice_of(names), .from = *from};
	int err = r->files->list(r->files, directory, chukwa_import_see, &search);
	if (err && err != ERR_NOT_FOUND)
		return errbuf_set(r->e, err, "%s cannot be read: %s", directory, err_text(err));
	if (!search.found)
		return ERR_NOT_FOUND;
	const char *path = arena_printf(&r->import->arena, "%s/%s%llu", directory, names,
					(unsigned long long)search.lowest);
	if (!path)
		return chukwa_import_full(r->e);
	*from = search.lowest + 1;
	if (chukwa_import_read(r, path)) {
		log_warn("%s; the next checkpoint is tried", r->e->text);
		return ERR_RETRY;
	}
	r->import->checkpoint = path;
	return chukwa_import_add(r, path, chukwa_import_whole_lines(r, path));
}

static int chukwa_import_read_checkpoint(struct chukwa_import_reader *r)
{
	const struct chukwa_import *import = r->import;
	const char *directory =
		import->checkpoint_directory ? import->checkpoint_directory : r->directory;
	const char *names =
		import->checkpoint_name ? import->checkpoint_name : CHUKWA_IMPORT_CHECKPOINT_NAMES;
	uint64_t from = 0;
	int err = ERR_RETRY;
	for (int i = 0; i < CHUKWA_IMPORT_CHECKPOINTS_MAX && err == ERR_RETRY; i++)
		err = chukwa_import_try(r, directory, names, &from);
	/* Files that were followed would be sent from their beginning again. */
	if (from && !import->checkpoint && (err == ERR_NOT_FOUND || err == ERR_RETRY))
		return errbuf_set(r->e, ERR_INVALID, "none of the checkpoints in %s can be read",
				  directory);
	if (err != ERR_NOT_FOUND)
		return err;
	if (import->checkpoint_directory)
		log_warn("there is no checkpoint %s/%s<number>: files are followed from where "
			 "initial_adaptors says",
			 directory, names);
	return 0;
}

/* ---- Facilities of syslog -------------------------------------------------------------------- */

/* The adaptor's messages of a facility get a datatype of their own. */
static int chukwa_import_set_datatype(struct adaptors *adaptors, struct adaptor *adaptor,
				      unsigned facility, struct slice datatype, struct errbuf *e)
{
	struct adaptor checked = *adaptor;
	struct slice *datatypes =
		arena_zalloc(&adaptors->arena, SYSLOG_FACILITIES * sizeof(*datatypes));
	checked.datatype = arena_copy(&adaptors->arena, datatype);
	if (!datatypes || !checked.datatype.data)
		return adaptors_full(e);
	int err = adaptors_check_names(&checked, e);
	if (err)
		return err;
	if (adaptor->datatypes)
		memcpy(datatypes, adaptor->datatypes, SYSLOG_FACILITIES * sizeof(*datatypes));
	datatypes[facility] = checked.datatype;
	adaptor->datatypes = datatypes;
	return 0;
}

/* Sets the datatypes of syslog adaptors by the properties of the configuration. Only adaptors from
 * place `first` on came from Chukwa's files. */
static int chukwa_import_set_datatypes(struct chukwa_import_reader *r, size_t first)
{
	for (const struct hadoop_property *p = r->import->conf.first; p; p = p->next) {
		struct slice port;
		unsigned facility;
		if (!chukwa_import_is_facility(p->name, &port, &facility))
			continue;
		for (size_t i = first; i < r->adaptors->count; i++) {
			struct adaptor *adaptor = &r->adaptors->list[i];
			const char *colon = strrchr(adaptor->path.data, ':');
			if (adaptor->kind != ADAPTOR_SYSLOG ||
			    !slice_equal(slice_of(colon + 1), port))
				continue;
			int err = chukwa_import_set_datatype(r->adaptors, adaptor, facility,
							     p->value, r->e);
			if (err)
				return errbuf_prefix(r->e, err, CHUKWA_IMPORT_CONF ":%u: " SHOWN,
						     p->line, SHOWN_OF(p->name));
		}
	}
	return 0;
}

int chukwa_import(struct files *files, const char *directory, struct adaptors *adaptors,
		  struct chukwa_import *import, struct errbuf *e)
{
	struct errbuf own = {""};
	struct chukwa_import_reader r = {
		.files = files,
		.directory = directory,
		.adaptors = adaptors,
		.import = import,
		.e = e ? e : &own,
	};
	const size_t first = adaptors->count;
	buf_init(&r.text, CHUKWA_IMPORT_FILE_MAX_BYTES);
	int err = chukwa_import_read_conf(&r);
	err = err ? err : chukwa_import_read_checkpoint(&r);
	err = err ? err : chukwa_import_read_initial(&r);
	err = err ? err : chukwa_import_set_datatypes(&r, first);
	buf_release(&r.text);
	if (!err && !r.any)
		return errbuf_set(r.e, ERR_NOT_FOUND,
				  "%s has no file of Chukwa's agent: no " CHUKWA_IMPORT_CONF
				  ", no " CHUKWA_IMPORT_INITIAL ", no checkpoint",
				  directory);
	return err;
}
