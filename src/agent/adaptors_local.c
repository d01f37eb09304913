/* Logs of this machine, which `agent.local_logs` follows. Their places are those of Debian and its
 * like, and of widespread servers. Binary files (wtmp, btmp, lastlog) are not among them. */
#include "agent/adaptors.h"
#include "base/log.h"
#include "conf/tree.h"

enum { ADAPTORS_LOCAL_MAX_BYTES = 64 << 10 };

static const char adaptors_local[] =
	"system:\n"
	"  directory: /var/log\n"
	"  regex: '^/([^/]+[.]log|syslog|messages|secure|maillog|cron|debug)$'\n"
	"  datatype: system\n"
	"access:\n"
	"  directory: /var/log\n"
	"  regex: '^/(apache2|httpd|lighttpd|nginx)/[^/]*access[^/]*[._]log$'\n"
	"  datatype: access\n"
	"servers:\n"
	"  directory: /var/log\n"
	"  regex: '^/((apache2|httpd|lighttpd|nginx)/[^/]*error[^/]*[._]log|"
	"(apt|mariadb|mongodb|mysql|postgresql|rabbitmq|redis|squid|unattended-upgrades)/[^/"
	"]+[.]log|"
	"cups/[^/]+_log|exim4/[a-z]+log|samba/log[.][^/]+)$'\n"
	"  datatype: server\n";

static const char adaptors_local_journal[] = "journal:\n"
					     "  journal: local\n"
					     "  datatype: journal\n";

static int adaptors_read_local(bool has_journal, struct adaptors **local, struct errbuf *e)
{
	const struct conf_node *section;
	struct arena arena;
	arena_init(&arena, ADAPTORS_LOCAL_MAX_BYTES);
	const char *text = arena_printf(&arena, "%s%s", adaptors_local,
					has_journal ? adaptors_local_journal : "");
	ASSERT(text);
	int err = conf_tree_parse("agent.local_logs", slice_of(text), &arena, &section, e);
	err = err ? err : adaptors_read(section, local, e);
	/* Servers write to their directories: a link there leads to nothing that they may not read.
	 */
	for (size_t i = 0; !err && i < (*local)->count; i++)
		(*local)->list[i].rule.no_links = true;
	arena_release(&arena);
	return err;
}

static int adaptors_read_own_log(struct adaptors *local, struct slice path, struct errbuf *e)
{
	struct adaptor adaptor = {
		.kind = ADAPTOR_TAIL,
		.name = SLICE(ADAPTOR_OWN_LOG),
		.datatype = SLICE(ADAPTOR_OWN_LOG),
		.rule = {.records.kind = RECORDS_LINES, .rest_ms = ADAPTOR_WAIT_MS},
	};
	int err = adaptors_take_path(local, path, &adaptor.path, e);
	return err ? err : adaptors_add(local, &adaptor, e);
}

int adaptors_add_local(struct adaptors *adaptors, bool has_journal, struct slice own_log,
		       struct errbuf *e)
{
	struct adaptors *local = NULL;
	int err = adaptors_read_local(has_journal, &local, e);
	if (!err && own_log.len)
		err = adaptors_read_own_log(local, own_log, e);
	for (size_t i = 0; !err && i < local->count; i++) {
		const struct adaptor *adaptor = &local->list[i];
		if (adaptors_find_name(adaptors, adaptor->name) == adaptors->count &&
		    adaptors_find_same(adaptors, adaptor) == adaptors->count &&
		    adaptors_add(adaptors, adaptor, e))
			log_warn("agent.local_logs: %s", e->text);
	}
	if (err) {
		adaptors_free(local);
		return err;
	}
	ASSERT(!adaptors->base);
	adaptors->base = local; /* their texts lie there */
	return 0;
}
