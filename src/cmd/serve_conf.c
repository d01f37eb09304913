#include "cmd/serve_conf.h"

#include <strings.h>

#include "agent/adaptors.h"
#include "base/file.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "cmd/agent_runner.h"
#include "cmd/command.h"
#include "cmd/serve_faults.h"
#include "cmd/serve_listeners.h"
#include "cmd/serve_streams.h"
#include "conf/conf.h"
#include "http/http.h"
#include "inventory/inventory.h"
#include "loop/loop.h"
#include "rollup/site.h"

static int serve_conf_check_hosts(const struct conf *conf, struct errbuf *e)
{
	const struct conf_list *hosts = &conf->http_names;
	char where[512];
	for (size_t i = 0; i < hosts->count; i++) {
		if (!http_host_valid(slice_of(hosts->items[i])))
			return errbuf_set(
				e, ERR_INVALID,
				"%s: '%s' is neither a name nor an address, perhaps with "
				"a port, such as granary.example:8443",
				conf_where_item(conf, CONF_ID_http_names, i, where, sizeof(where)),
				hosts->items[i]);
	}
	return 0;
}

static int serve_conf_check_hicc(const struct conf *conf, struct errbuf *e)
{
	if (tenant_valid(slice_of(conf->hicc_tenant)))
		return 0;
	errbuf_set(e, ERR_INVALID, "\"%s\" cannot be the name of a tenant", conf->hicc_tenant);
	return conf_refuse(conf, CONF_ID_hicc_tenant, e);
}

/* A header that every client may send, such as Authorization, cannot name a user. */
static int serve_conf_check_proxy_user(const struct conf *conf, struct errbuf *e)
{
	static const char *const others[] = {"Authorization", "Cookie", "Host"};
	const char *name = conf->auth_proxy_user_header;
	bool is = http_header_name_valid(slice_of(name));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		is &= strcasecmp(name, others[i]) != 0;
	if (!*name || (is && conf->http_trusted_proxies.count))
		return 0;
	if (is)
		errbuf_set(e, ERR_INVALID,
			   "http.trusted_proxies names no proxy that could send \"%s\"", name);
	else
		errbuf_set(e, ERR_INVALID, "\"%s\" cannot be the header that names a user", name);
	return conf_refuse(conf, CONF_ID_auth_proxy_user_header, e);
}

/* A site is read for each use of it. */
static int serve_conf_check_rollups(const struct conf *conf, struct errbuf *e)
{
	struct rollup_site *site = mem_zalloc(sizeof(*site));
	int err = rollup_site_read(site, conf, files_real(), e);
	mem_free(site);
	return err;
}

int serve_conf_read(struct serve_conf *read, const struct command_args *args, struct errbuf *e)
{
	struct conf *conf = conf_new();
	*read = (struct serve_conf){.conf = conf};
	int err = conf_read(conf, files_real(), args->conf_argc, args->conf_argv, e);
	err = err ? err : inventory_conf_read(conf, files_real(), &read->inventory, e);
	err = err ? err : serve_conf_check_hosts(conf, e);
	err = err ? err : serve_addresses_read(conf, NULL, &read->addresses, e);
	err = err ? err : serve_listeners_check(conf, e);
	err = err ? err : serve_faults_check(conf, e);
	err = err ? err : serve_streams_read(conf, &read->datatypes, e);
	err = err ? err : serve_conf_check_hicc(conf, e);
	err = err ? err : serve_conf_check_proxy_user(conf, e);
	err = err ? err : agent_runner_read(conf, &read->adaptors, e);
	return err ? err : serve_conf_check_rollups(conf, e);
}

void serve_conf_set_log(const struct conf *conf)
{
	enum log_level level;
	enum log_format format;
	bool known = log_level_parse(conf->log_level, &level) &&
		     log_format_parse(conf->log_format, &format);
	ASSERT(known); /* the options' words are the log's */
	log_set_level(level);
	log_set_format(format);
}

void serve_conf_release(struct serve_conf *read)
{
	adaptors_free(read->adaptors);
	datatypes_free(read->datatypes);
	inventory_conf_release(read->inventory);
	serve_addresses_release(&read->addresses);
	conf_free(read->conf);
	*read = (struct serve_conf){.conf = NULL};
}
