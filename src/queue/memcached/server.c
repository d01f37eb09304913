#include "queue/memcached/server.h"

#include <libmemcached/memcached.h>
#include <stdio.h>

#include "base/mem.h"
#include "wire/number.h"

enum {
	KEY_BYTES = 128,  /* a queue's name has at most 64 */
	FLAG_INTEGER = 2, /* as esmond's client marks numbers */
};

struct server {
	memcached_st *mc;
	char queue[KEY_BYTES];
};

struct memcached_server_key {
	char text[KEY_BYTES + 32];
	size_t len;
};

static struct memcached_server_key memcached_server_key_of(const struct server *server,
							   const char *suffix)
{
	struct memcached_server_key key;
	key.len =
		(size_t)snprintf(key.text, sizeof(key.text), "_mcpq__%s_%s", server->queue, suffix);
	return key;
}

static struct memcached_server_key item_key(const struct server *server, uint64_t number)
{
	struct memcached_server_key key;
	key.len = (size_t)snprintf(key.text, sizeof(key.text), "_mcpq__%s_%llu", server->queue,
				   (unsigned long long)number);
	return key;
}

/* After an error the connection is in a state that nobody knows. */
static int memcached_server_answer(struct server *server, memcached_return_t got)
{
	if (got == MEMCACHED_SUCCESS)
		return 0;
	if (got == MEMCACHED_NOTFOUND)
		return ERR_NOT_FOUND;
	memcached_quit(server->mc);
	return ERR_RETRY;
}

static bool memcached_server_parse_address(struct slice address, char host[256], uint64_t *port)
{
	size_t colon = address.len;
	while (colon && address.data[colon - 1] != ':')
		colon--;
	if (colon < 2 || colon > 255)
		return false;
	memcpy(host, address.data, colon - 1);
	host[colon - 1] = 0;
	return number_parse_u64(address.data + colon, address.data + address.len, port) == 0 &&
	       *port >= 1 && *port <= 65535;
}

int server_open(struct slice address, const char *queue, struct server **server, struct errbuf *e)
{
	static const struct {
		memcached_behavior_t which;
		uint64_t value;
	} behaviours[] = {
		{MEMCACHED_BEHAVIOR_TCP_NODELAY, 1},
		{MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, SERVER_TIMEOUT_MS},
		{MEMCACHED_BEHAVIOR_POLL_TIMEOUT, SERVER_TIMEOUT_MS},
		{MEMCACHED_BEHAVIOR_SND_TIMEOUT, SERVER_TIMEOUT_MS * 1000},
		{MEMCACHED_BEHAVIOR_RCV_TIMEOUT, SERVER_TIMEOUT_MS * 1000},
		{MEMCACHED_BEHAVIOR_RETRY_TIMEOUT, 0},
		{MEMCACHED_BEHAVIOR_DEAD_TIMEOUT, 0},
	};
	char host[256];
	uint64_t port;
	if (!memcached_server_parse_address(address, host, &port))
		return errbuf_set(e, ERR_INVALID, "\"" SHOWN "\" is not HOST:PORT",
				  SHOWN_OF(address));
	struct server *s = mem_zalloc(sizeof(*s));
	snprintf(s->queue, sizeof(s->queue), "%s", queue);
	s->mc = memcached_create(NULL);
	ASSERT(s->mc);
	for (size_t i = 0; i < ARRAY_LEN(behaviours); i++)
		memcached_behavior_set(s->mc, behaviours[i].which, behaviours[i].value);
	memcached_server_add(s->mc, host, (in_port_t)port);
	*server = s;
	return 0;
}

void server_close(struct server *server)
{
	if (!server)
		return;
	memcached_free(server->mc);
	mem_free(server);
}

/* Memcached pads a counter that got shorter with blanks. */
static int get_counter(struct server *server, const char *suffix, uint64_t *value)
{
	struct memcached_server_key key = memcached_server_key_of(server, suffix);
	size_t len;
	uint32_t flags;
	memcached_return_t got;
	char *text = memcached_get(server->mc, key.text, key.len, &len, &flags, &got);
	int err = memcached_server_answer(server, got);
	if (err)
		return err;
	const char *end = text ? text + len : NULL;
	while (end > text && end[-1] == ' ')
		end--;
	err = text && number_parse_u64(text, end, value) == 0 ? 0 : ERR_NOT_FOUND;
	mem_free(text);
	return err;
}

int server_counters(struct server *server, struct memcached_counters *counters)
{
	*counters = (struct memcached_counters){0};
	int err = get_counter(server, "last_added", &counters->last_added);
	if (!err)
		err = get_counter(server, "last_read", &counters->last_read);
	counters->found = !err;
	return err == ERR_NOT_FOUND ? 0 : err;
}

static int make_counter(struct server *server, const char *suffix)
{
	struct memcached_server_key key = memcached_server_key_of(server, suffix);
	memcached_return_t got =
		memcached_add(server->mc, key.text, key.len, "0", 1, 0, FLAG_INTEGER);
	return got == MEMCACHED_NOTSTORED || got == MEMCACHED_DATA_EXISTS
		       ? 0
		       : memcached_server_answer(server, got);
}

int server_make_counters(struct server *server)
{
	int err = make_counter(server, "last_added");
	return err ? err : make_counter(server, "last_read");
}

int server_next_number(struct server *server, uint64_t *number)
{
	struct memcached_server_key key = memcached_server_key_of(server, "last_added");
	return memcached_server_answer(
		server, memcached_increment(server->mc, key.text, key.len, 1, number));
}

/* The library takes 32 bits at a time. */
int server_add_read(struct server *server, uint64_t by, uint64_t *last_read)
{
	struct memcached_server_key key = memcached_server_key_of(server, "last_read");
	ASSERT(by <= UINT32_MAX);
	return memcached_server_answer(server, memcached_increment(server->mc, key.text, key.len,
								   (uint32_t)by, last_read));
}

int server_set(struct server *server, uint64_t number, struct slice item)
{
	struct memcached_server_key key = item_key(server, number);
	return memcached_server_answer(
		server, memcached_set(server->mc, key.text, key.len, item.data, item.len, 0, 0));
}

static int fetch_all(struct server *server, const struct memcached_server_key *keys, uint64_t from,
		     size_t count, void (*each)(void *owner, uint64_t number, struct slice item),
		     void *owner)
{
	memcached_result_st result;
	memcached_return_t got = MEMCACHED_SUCCESS;
	memcached_result_create(server->mc, &result);
	while (memcached_fetch_result(server->mc, &result, &got)) {
		struct slice key = {memcached_result_key_value(&result),
				    memcached_result_key_length(&result)};
		for (size_t i = 0; i < count; i++)
			if (slice_equal(key, (struct slice){keys[i].text, keys[i].len}))
				each(owner, from + i,
				     (struct slice){memcached_result_value(&result),
						    memcached_result_length(&result)});
	}
	memcached_result_free(&result);
	bool whole = got == MEMCACHED_END || got == MEMCACHED_NOTFOUND || got == MEMCACHED_SUCCESS;
	return whole ? 0 : memcached_server_answer(server, got);
}

int server_get(struct server *server, uint64_t from, size_t count,
	       void (*each)(void *owner, uint64_t number, struct slice item), void *owner)
{
	struct memcached_server_key keys[SERVER_ITEMS_MAX];
	const char *texts[SERVER_ITEMS_MAX];
	size_t lengths[SERVER_ITEMS_MAX];
	ASSERT(count <= SERVER_ITEMS_MAX);
	for (size_t i = 0; i < count; i++) {
		keys[i] = item_key(server, from + i);
		texts[i] = keys[i].text;
		lengths[i] = keys[i].len;
	}
	int err =
		memcached_server_answer(server, memcached_mget(server->mc, texts, lengths, count));
	return err ? ERR_RETRY : fetch_all(server, keys, from, count, each, owner);
}

int server_delete(struct server *server, uint64_t number)
{
	struct memcached_server_key key = item_key(server, number);
	int err =
		memcached_server_answer(server, memcached_delete(server->mc, key.text, key.len, 0));
	return err == ERR_NOT_FOUND ? 0 : err;
}
