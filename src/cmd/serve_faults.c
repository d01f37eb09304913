#include "cmd/serve_faults.h"

#include <stdio.h>

#include "base/random.h"
#include "conf/conf.h"
#include "fault/fault.h"
#include "ingest/fault_series.h"
#include "ingest/oops_amqp.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "notify/notify.h"

enum {
	READERS = 2,
	EVERY_MS = 1000,
	/* Of bodies; connections are fewer, unless they are configured to be very many. */
	BODIES_WAITING_MAX = 4096,
	PASSWORD_MAX_BYTES = 255,
	WEBHOOKS_FILE_MAX_BYTES = 256 << 10,
};

struct serve_faults {
	struct fault *fault;
	struct pool *pool;
	const char **words;     /* of masks */
	struct oops_amqp *amqp; /* NULL: no reports come by AMQP */
	char amqp_password[PASSWORD_MAX_BYTES + 1];
	struct webhook *webhooks;
	size_t webhook_count;
	char webhooks_secret[PASSWORD_MAX_BYTES + 1];
	struct notify *notify, *mail; /* NULL: there are no webhooks of that kind */
	struct executor *executor;
	size_t series_max;
	struct fault_series *series; /* NULL: not begun */
};

/* ---- Masks ----------------------------------------------------------------------------------- */

static bool serve_faults_is_word(const char *word)
{
	word += *word == '=';
	return *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789")];
}

static int serve_faults_check_words(const struct conf *conf, struct errbuf *e)
{
	const struct conf_list *list = &conf->fault_mask;
	for (size_t i = 0; i < list->count; i++) {
		if (serve_faults_is_word(list->items[i]))
			continue;
		errbuf_set(e, ERR_INVALID,
			   "\"%s\" is not of a-z and 0-9, perhaps after a =: names are compared "
			   "without case, - and _",
			   list->items[i]);
		return conf_refuse_item(conf, CONF_ID_fault_mask, i, e);
	}
	size_t most = FAULT_MASK_WORDS_MAX - fault_masks_preset.word_count;
	if (list->count <= most)
		return 0;
	errbuf_set(e, ERR_INVALID, "there are more than %zu words", most);
	return conf_refuse(conf, CONF_ID_fault_mask, e);
}

static struct fault_masks serve_faults_masks(const struct conf *conf, const char ***words)
{
	const struct fault_masks *preset = &fault_masks_preset;
	const struct conf_list *list = &conf->fault_mask;
	size_t count = preset->word_count + list->count;
	*words = mem_alloc_array(count, sizeof(**words));
	memcpy(*words, preset->words, preset->word_count * sizeof(**words));
	if (list->count)
		memcpy(*words + preset->word_count, list->items, list->count * sizeof(**words));
	return (struct fault_masks){*words, count};
}

/* ---- AMQP ------------------------------------------------------------------------------------ */

static int serve_faults_read_password(const struct conf *conf, char to[PASSWORD_MAX_BYTES + 1],
				      struct errbuf *e)
{
	const char *path = conf->fault_amqp_password_file;
	snprintf(to, PASSWORD_MAX_BYTES + 1, "guest"); /* the preset of RabbitMQ */
	int err = *path ? file_read_secret(files_real(), path, to, PASSWORD_MAX_BYTES + 1, e) : 0;
	return err ? conf_refuse(conf, CONF_ID_fault_amqp_password_file, e) : 0;
}

static int serve_faults_check_amqp(const struct conf *conf, struct errbuf *e)
{
	char password[PASSWORD_MAX_BYTES + 1];
	if (!tenant_valid(slice_of(conf->fault_amqp_tenant))) {
		errbuf_set(e, ERR_INVALID, "\"%s\" cannot be the name of a tenant",
			   conf->fault_amqp_tenant);
		return conf_refuse(conf, CONF_ID_fault_amqp_tenant, e);
	}
	return *conf->fault_amqp_host ? serve_faults_read_password(conf, password, e) : 0;
}

/* ---- Webhooks -------------------------------------------------------------------------------- */

static void serve_faults_free_webhooks(struct webhook *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		webhook_release(&list[i]);
	mem_free(list);
}

static size_t serve_faults_count_way(const struct webhook *list, size_t count, enum webhook_way way)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++)
		found += list[i].way == way;
	return found;
}

/* Lines but for empty ones and those that begin with `#`. */
static int serve_faults_take_webhooks(const char *path, struct slice text, struct webhook *list,
				      size_t *count, struct errbuf *e)
{
	struct errbuf why = {""};
	for (size_t number = 1; text.len; number++) {
		const char *end = memchr(text.data, '\n', text.len);
		size_t len = end ? (size_t)(end - text.data) : text.len;
		struct slice line = {text.data, len};
		line.len -= len && line.data[len - 1] == '\r';
		text = (struct slice){text.data + len + !!end, text.len - len - !!end};
		if (!line.len || *line.data == '#')
			continue;
		if (*count == NOTIFY_WEBHOOKS_MAX)
			return errbuf_set(e, ERR_LIMIT, "%s has more than %d webhooks", path,
					  NOTIFY_WEBHOOKS_MAX);
		int err = webhook_parse(line, &list[*count], &why);
		if (err)
			return errbuf_set(e, err, "line %zu of %s: %s", number, path, why.text);
		for (size_t i = 0; i < *count; i++)
			if (strcmp(list[i].name, list[*count].name) == 0) {
				webhook_release(&list[*count]);
				return errbuf_set(e, ERR_INVALID, "line %zu of %s is there already",
						  number, path);
			}
		if (serve_faults_count_way(list, ++*count, WEBHOOK_PUBLISHES) > NOTIFY_BROKERS_MAX)
			return errbuf_set(e, ERR_LIMIT, "%s has more than %d lines of amqp://",
					  path, NOTIFY_BROKERS_MAX);
	}
	return 0;
}

static int serve_faults_read_webhooks(const struct conf *conf, struct webhook **to, size_t *count,
				      struct errbuf *e)
{
	const char *path = conf->fault_webhooks_file;
	struct webhook *list = mem_zalloc(NOTIFY_WEBHOOKS_MAX * sizeof(*list));
	struct files *files = files_real();
	struct buf text;
	*count = 0;
	buf_init(&text, WEBHOOKS_FILE_MAX_BYTES);
	int err = file_check_secret(files, path, e);
	if (!err && (err = files->read(files, path, WEBHOOKS_FILE_MAX_BYTES, &text)) != 0)
		errbuf_set(e, err, "%s: %s", path, err_text(err));
	if (!err && text.len)
		err = serve_faults_take_webhooks(path, buf_slice(&text), list, count, e);
	buf_release(&text);
	*to = list;
	if (!err)
		return 0;
	serve_faults_free_webhooks(list, *count);
	*to = NULL;
	*count = 0;
	return conf_refuse(conf, CONF_ID_fault_webhooks_file, e);
}

static int serve_faults_read_webhooks_secret(const struct conf *conf,
					     char to[PASSWORD_MAX_BYTES + 1], struct errbuf *e)
{
	const char *path = conf->fault_webhooks_secret_file;
	int err = *path ? file_read_secret(files_real(), path, to, PASSWORD_MAX_BYTES + 1, e) : 0;
	return err ? conf_refuse(conf, CONF_ID_fault_webhooks_secret_file, e) : 0;
}

static int serve_faults_check_mail(const struct conf *conf, struct errbuf *e)
{
	const char *server = conf->fault_mail_server, *from = conf->fault_mail_from;
	if (strncmp(server, "smtp://", 7) != 0 && strncmp(server, "smtps://", 8) != 0) {
		errbuf_set(e, ERR_INVALID,
			   "there are mail addresses, and \"%s\" does not begin with smtp:// or "
			   "smtps://",
			   server);
		return conf_refuse(conf, CONF_ID_fault_mail_server, e);
	}
	if (webhook_is_mailbox(slice_of(from)))
		return 0;
	errbuf_set(e, ERR_INVALID, "\"%s\" is not a mail address", from);
	return conf_refuse(conf, CONF_ID_fault_mail_from, e);
}

static int serve_faults_check_webhooks(const struct conf *conf, struct errbuf *e)
{
	char secret[PASSWORD_MAX_BYTES + 1];
	struct webhook *list;
	size_t count;
	int err = serve_faults_read_webhooks_secret(conf, secret, e);
	if (err || !*conf->fault_webhooks_file)
		return err;
	err = serve_faults_read_webhooks(conf, &list, &count, e);
	if (err)
		return err;
	bool mails = serve_faults_count_way(list, count, WEBHOOK_MAILS) > 0;
	serve_faults_free_webhooks(list, count);
	return mails ? serve_faults_check_mail(conf, e) : 0;
}

static struct notify *serve_faults_start_notify(struct serve_faults *faults,
						const struct serve_faults_options *options,
						bool mails)
{
	return notify_start(&(struct notify_options){
		.fault = faults->fault,
		.executor = loop_executor(options->loop),
		.webhooks = faults->webhooks,
		.count = faults->webhook_count,
		.mails = mails,
		.internal = options->conf->fault_webhooks_internal,
		.secret = slice_of(faults->webhooks_secret),
		.mail_server = options->conf->fault_mail_server,
		.mail_from = options->conf->fault_mail_from,
	});
}

static int serve_faults_start_webhooks(struct serve_faults *faults,
				       const struct serve_faults_options *options, struct errbuf *e)
{
	const struct conf *conf = options->conf;
	if (!*conf->fault_webhooks_file)
		return 0;
	int err = serve_faults_read_webhooks_secret(conf, faults->webhooks_secret, e);
	err = err ? err
		  : serve_faults_read_webhooks(conf, &faults->webhooks, &faults->webhook_count, e);
	if (err)
		return err;
	size_t mails =
		serve_faults_count_way(faults->webhooks, faults->webhook_count, WEBHOOK_MAILS);
	if (faults->webhook_count > mails)
		faults->notify = serve_faults_start_notify(faults, options, false);
	if (mails)
		faults->mail = serve_faults_start_notify(faults, options, true);
	return 0;
}

int serve_faults_check(const struct conf *conf, struct errbuf *e)
{
	int err = serve_faults_check_words(conf, e);
	err = err ? err : serve_faults_check_amqp(conf, e);
	return err ? err : serve_faults_check_webhooks(conf, e);
}

static int serve_faults_open_amqp(struct serve_faults *faults,
				  const struct serve_faults_options *options, struct errbuf *e)
{
	const struct conf *conf = options->conf;
	const struct oops_amqp_options amqp = {
		.broker = {.host = conf->fault_amqp_host,
			   .port = (int)conf->fault_amqp_port,
			   .vhost = conf->fault_amqp_vhost,
			   .user = conf->fault_amqp_user,
			   .password = faults->amqp_password},
		.queue = conf->fault_amqp_queue,
		.prefetch = (size_t)conf->fault_amqp_prefetch,
		.tenant = slice_of(conf->fault_amqp_tenant),
		.report_max_bytes = (size_t)conf->fault_report_max_bytes,
		.fault = faults->fault,
		.store = options->store,
		.executor = loop_executor(options->loop),
	};
	if (!*conf->fault_amqp_host)
		return 0;
	int err = serve_faults_read_password(conf, faults->amqp_password, e);
	return err ? err : oops_amqp_new(&amqp, &faults->amqp, e);
}

/* ---- Life ------------------------------------------------------------------------------------ */

int serve_faults_open(const struct serve_faults_options *options, struct serve_faults **to,
		      struct errbuf *e)
{
	const struct conf *conf = options->conf;
	struct serve_faults *faults = mem_zalloc(sizeof(*faults));
	const struct fault_options fault = {
		.store = options->store,
		.clock = options->clock,
		.executor = loop_executor(options->loop),
		.session = options->session,
		.limits = {.list_max = (size_t)conf->fault_list_max,
			   .names_max = (size_t)conf->fault_names_max,
			   .groups_max = (size_t)conf->fault_groups_max},
		.masks = serve_faults_masks(conf, &faults->words),
		.skew_max_ms = conf->rollup_skew_max_ms,
		/* What is acknowledged, is acknowledged by then. */
		.write_max_ms = conf->query_timeout_ms,
		.every_ms = EVERY_MS,
		.collect = {.keep_us = conf->fault_keep_ms * 1000,
			    .bytes_max = (uint64_t)conf->fault_keep_bytes,
			    .newest = (size_t)conf->fault_keep_newest},
		.collect_every_ms = conf->fault_collect_every_ms,
		.messages_max = (uint64_t)conf->fault_messages_max,
		.messages_keep_ms = conf->fault_messages_keep_ms,
		.quotas = {.most = {[FAULT_MINUTE] = (uint64_t)conf->fault_quota_minute,
				    [FAULT_HOUR] = (uint64_t)conf->fault_quota_hour,
				    [FAULT_DAY] = (uint64_t)conf->fault_quota_day_bytes}},
		.seed = random_system_seed(),
	};
	int err = fault_open(&fault, &faults->fault, e);
	if (err) {
		mem_free(faults->words);
		mem_free(faults);
		*to = NULL;
		return err;
	}
	faults->executor = loop_executor(options->loop);
	faults->series_max = (size_t)conf->fault_series_max;
	faults->pool = pool_new(READERS, BODIES_WAITING_MAX, "reports");
	fault_start(faults->fault);
	*to = faults;
	err = serve_faults_start_webhooks(faults, options, e);
	return err ? err : serve_faults_open_amqp(faults, options, e);
}

void serve_faults_start(struct serve_faults *faults, struct ingest *ingest, struct catalog *catalog)
{
	faults->series = fault_series_start(
		&(struct fault_series_options){.fault = faults->fault,
					       .ingest = ingest,
					       .catalog = catalog,
					       .executor = faults->executor,
					       .series_max = faults->series_max});
	if (faults->amqp)
		oops_amqp_start(faults->amqp);
}

void serve_faults_stop_amqp(struct serve_faults *faults)
{
	if (faults)
		oops_amqp_stop(faults->amqp);
}

bool serve_faults_is_amqp_over(const struct serve_faults *faults)
{
	return !faults || oops_amqp_is_over(faults->amqp);
}

void serve_faults_tick(struct serve_faults *faults)
{
	if (faults)
		fault_tick(faults->fault);
}

void serve_faults_stop(struct serve_faults *faults)
{
	if (!faults)
		return;
	if (faults->notify)
		notify_stop(faults->notify);
	if (faults->mail)
		notify_stop(faults->mail);
	if (faults->series)
		fault_series_stop(faults->series);
	fault_stop(faults->fault);
}

bool serve_faults_are_over(const struct serve_faults *faults)
{
	return !faults || ((!faults->notify || notify_is_over(faults->notify)) &&
			   (!faults->mail || notify_is_over(faults->mail)) &&
			   (!faults->series || fault_series_is_over(faults->series)) &&
			   fault_is_over(faults->fault));
}

void serve_faults_free(struct serve_faults *faults)
{
	if (!faults)
		return;
	oops_amqp_free(faults->amqp);
	notify_free(faults->notify);
	notify_free(faults->mail);
	fault_series_free(faults->series);
	serve_faults_free_webhooks(faults->webhooks, faults->webhook_count);
	pool_close(faults->pool);
	fault_close(faults->fault);
	mem_free(faults->words);
	mem_free(faults);
}

void serve_faults_print_dsn(const struct serve_faults *faults, const char *address)
{
	struct fault_project project;
	if (!faults || !fault_projects_find(fault_projects_of(faults->fault), 1, &project) ||
	    !project.key_count)
		return;
	printf("\nSentry's clients send faults to the DSN http://%s@%s/%d\n", project.keys[0],
	       address, 1);
}

struct fault *serve_faults_fault(const struct serve_faults *faults)
{
	return faults ? faults->fault : NULL;
}

struct pool *serve_faults_pool(const struct serve_faults *faults)
{
	return faults ? faults->pool : NULL;
}

struct oops_amqp *serve_faults_amqp(const struct serve_faults *faults)
{
	return faults ? faults->amqp : NULL;
}
