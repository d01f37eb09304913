#include "notify/webhook.h"

#include "base/hash.h"

enum { WEBHOOK_HASH_SEED = 1, WEBHOOK_BROKER_MAX_BYTES = 16 << 10 };

void webhook_release(struct webhook *webhook)
{
	mem_free(webhook->url);
	mem_free(webhook->shown);
	arena_release(&webhook->broker_texts);
	mem_free(webhook->exchange);
	mem_free(webhook->key);
	mem_free(webhook->tenant);
	mem_free(webhook->environment);
	mem_free(webhook->level);
	*webhook = (struct webhook){.kind = -1};
}

/* The next word; len 0: there is none. */
static struct slice webhook_word(struct slice *rest)
{
	while (rest->len && *rest->data == ' ')
		*rest = (struct slice){rest->data + 1, rest->len - 1};
	size_t len = 0;
	while (len < rest->len && rest->data[len] != ' ')
		len++;
	struct slice word = {rest->data, len};
	*rest = (struct slice){rest->data + len, rest->len - len};
	return word;
}

static bool webhook_begins(struct slice text, const char *with, struct slice *rest)
{
	size_t len = strlen(with);
	if (text.len <= len || memcmp(text.data, with, len) != 0)
		return false;
	*rest = (struct slice){text.data + len, text.len - len};
	return true;
}

static int webhook_set_text(char **to, struct slice text)
{
	if (*to)
		return ERR_INVALID;
	*to = mem_copy_text(text);
	return 0;
}

/* The name of an exchange, or a routing key. */
static int webhook_set_name(char **to, struct slice text)
{
	return text.len <= AMQP_TEXT_MAX_BYTES ? webhook_set_text(to, text) : ERR_INVALID;
}

static int webhook_set_kind(struct webhook *webhook, struct slice text)
{
	for (int i = 0; fault_message_kinds[i]; i++) {
		if (!slice_equal(slice_of(fault_message_kinds[i]), text) || webhook->kind >= 0)
			continue;
		webhook->kind = i;
		return 0;
	}
	return ERR_INVALID;
}

static int webhook_set(struct webhook *webhook, struct slice word)
{
	struct slice text;
	bool publishes = webhook->way == WEBHOOK_PUBLISHES;
	if (publishes && webhook_begins(word, "exchange=", &text))
		return webhook_set_name(&webhook->exchange, text);
	if (publishes && webhook_begins(word, "key=", &text))
		return webhook_set_name(&webhook->key, text);
	if (webhook_begins(word, "tenant=", &text))
		return tenant_valid(text) ? webhook_set_text(&webhook->tenant, text) : ERR_INVALID;
	if (webhook_begins(word, "environment=", &text))
		return webhook_set_text(&webhook->environment, text);
	if (webhook_begins(word, "level=", &text))
		return webhook_set_text(&webhook->level, text);
	if (webhook_begins(word, "kind=", &text))
		return webhook_set_kind(webhook, text);
	return ERR_INVALID;
}

static bool webhook_is_url(struct slice word)
{
	struct slice rest;
	return webhook_begins(word, "https://", &rest) || webhook_begins(word, "http://", &rest);
}

static bool webhook_is_visible(struct slice word)
{
	for (size_t i = 0; i < word.len; i++)
		if ((unsigned char)word.data[i] <= ' ' || word.data[i] == 127)
			return false;
	return true;
}

bool webhook_is_mailbox(struct slice text)
{
	static const char marks[] = "!#$%&'*+-/=?^_`{|}~.";
	size_t ats = 0;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		bool known = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || strchr(marks, c) || c == '@';
		ats += c == '@';
		if (!c || !known)
			return false;
	}
	return ats == 1 && text.data[0] != '@' && text.data[text.len - 1] != '@';
}

/* Scheme, name and port. */
static char *webhook_show(struct slice url)
{
	const char *end = url.data + url.len;
	const char *name = (const char *)memmem(url.data, url.len, "://", 3) + 3, *at = name;
	for (const char *p = name; p < end && *p != '/' && *p != '?' && *p != '#'; p++)
		at = *p == '@' ? p + 1 : at;
	const char *stop = at;
	while (stop < end && *stop != '/' && *stop != '?' && *stop != '#')
		stop++;
	struct buf shown;
	buf_init(&shown, WEBHOOK_LINE_MAX_BYTES);
	buf_append(&shown, url.data, (size_t)(name - url.data));
	buf_append(&shown, at, (size_t)(stop - at));
	ASSERT(!shown.failed);
	char *text = mem_copy_text(buf_slice(&shown));
	buf_release(&shown);
	return text;
}

/* Who receives it. */
static int webhook_set_receiver(struct webhook *webhook, struct slice word, struct errbuf *e)
{
	struct slice rest;
	const char *reason;
	bool visible = webhook_is_visible(word);
	if (visible && webhook_begins(word, "amqp://", &rest)) {
		webhook->way = WEBHOOK_PUBLISHES;
		int err =
			amqp_address_parse(word, &webhook->broker_texts, &webhook->broker, &reason);
		ASSERT(err != ERR_LIMIT); /* a line is short */
		if (err)
			return errbuf_set(e, err, "%s", reason);
	} else if (visible && webhook_begins(word, "mailto:", &rest) && webhook_is_mailbox(rest)) {
		webhook->way = WEBHOOK_MAILS;
		webhook->url = mem_copy_text(rest);
	} else if (visible && webhook_is_url(word)) {
		webhook->way = WEBHOOK_POSTS;
		webhook->url = mem_copy_text(word);
	} else {
		return errbuf_set(e, ERR_INVALID,
				  "it does not begin with https:// or http:// and a name, with "
				  "amqp:// and a name, or with mailto: and an address");
	}
	webhook->shown = webhook->way == WEBHOOK_MAILS ? mem_copy_text(word) : webhook_show(word);
	return 0;
}

static int webhook_set_words(struct webhook *webhook, struct slice rest, struct errbuf *e)
{
	struct slice word;
	while ((word = webhook_word(&rest)).len) {
		if (!webhook_set(webhook, word))
			continue;
		return errbuf_set(e, ERR_INVALID,
				  "\"" SHOWN "\" behind the address is none of tenant=, "
				  "environment=, level= and kind=, or of exchange= and key= behind "
				  "amqp://, with a value, each once",
				  SHOWN_OF(word));
	}
	if (webhook->way == WEBHOOK_PUBLISHES && !webhook->exchange && !webhook->key)
		return errbuf_set(e, ERR_INVALID,
				  "neither exchange= nor key= stands behind the address");
	return 0;
}

int webhook_parse(struct slice line, struct webhook *webhook, struct errbuf *e)
{
	struct slice rest = line, word = webhook_word(&rest);
	*webhook = (struct webhook){.kind = -1};
	arena_init_small(&webhook->broker_texts, WEBHOOK_BROKER_MAX_BYTES);
	if (line.len > WEBHOOK_LINE_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "it has more than %d bytes",
				  WEBHOOK_LINE_MAX_BYTES);
	int err = webhook_set_receiver(webhook, word, e);
	err = err ? err : webhook_set_words(webhook, rest, e);
	if (err) {
		webhook_release(webhook);
		return err;
	}
	snprintf(webhook->name, sizeof(webhook->name), "%016llx",
		 (unsigned long long)hash64(line.data, line.len, WEBHOOK_HASH_SEED));
	return 0;
}

static bool webhook_is_text(const char *wanted, struct slice text)
{
	return !wanted || slice_equal(slice_of(wanted), text);
}

bool webhook_wants(const struct webhook *webhook, const struct fault_message *message)
{
	bool kind = webhook->kind < 0 || (int)message->kind == webhook->kind;
	bool of_group = message->group.len;
	return kind && !message->held_back &&
	       (!of_group || (webhook_is_text(webhook->environment, message->environment) &&
			      webhook_is_text(webhook->level, message->level)));
}
