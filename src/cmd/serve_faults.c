#include "cmd/serve_faults.h"

#include <stdio.h>

#include "base/random.h"
#include "conf/conf.h"
#include "fault/fault.h"
#include "loop/loop.h"
#include "loop/pool.h"

enum {
	READERS = 2,
	EVERY_MS = 1000,
	/* Of bodies; connections are fewer, unless they are configured to be very many. */
	BODIES_WAITING_MAX = 4096,
};

struct serve_faults {
	struct fault *fault;
	struct pool *pool;
	const char **words; /* of masks */
};

/* ---- Masks ----------------------------------------------------------------------------------- */

static bool serve_faults_is_word(const char *word)
{
	word += *word == '=';
	return *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789")];
}

int serve_faults_check(const struct conf *conf, struct errbuf *e)
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
		.seed = random_system_seed(),
	};
	int err = fault_open(&fault, &faults->fault, e);
	if (err) {
		mem_free(faults->words);
		mem_free(faults);
		*to = NULL;
		return err;
	}
	faults->pool = pool_new(READERS, BODIES_WAITING_MAX, "reports");
	fault_start(faults->fault);
	*to = faults;
	return 0;
}

void serve_faults_tick(struct serve_faults *faults)
{
	if (faults)
		fault_tick(faults->fault);
}

void serve_faults_stop(struct serve_faults *faults)
{
	if (faults)
		fault_stop(faults->fault);
}

bool serve_faults_are_over(const struct serve_faults *faults)
{
	return !faults || fault_is_over(faults->fault);
}

void serve_faults_free(struct serve_faults *faults)
{
	if (!faults)
		return;
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
