#include "snmp/poller_net.h"

#include <netdb.h>
#include <sys/socket.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "loop/pool.h"

enum { RESOLVE_THREADS = 2, RESOLVE_QUEUE_MAX = 4096, PROBE_TIMEOUT_MS = 2000 };

/* Credentials made ready, for all devices that have them. */
struct net_login {
	const struct credentials *credentials;
	struct snmp_login *login;
	size_t references;
	struct net_login *next;
};

struct poller_net {
	struct poller_io io;
	struct poller_net_options options;
	struct snmp_client *client;
	struct pool *pool;
	struct net_login *logins;
	atomic_bool stopping;
};

struct poller_session {
	struct poller_net *net;
	struct net_login *login;
	struct loop_address address;
	struct snmp_device *device;
	struct snmp_device *probed; /* of one try a request; NULL: not needed now */
	size_t probes;              /* under way, all of `probed` */
};

struct poller_walk {
	struct poller_session *probes; /* NULL: it is no probe */
	const struct correlate_plan *plan;
	struct poller_walk_events events;
	void *owner;
	struct snmp_operation *operation;
};

/* ---- Logins ---------------------------------------------------------------------------------- */

static const enum snmp_level levels[] = {
	[LEVEL_NO_AUTH_NO_PRIV] = SNMP_NO_AUTH_NO_PRIV,
	[LEVEL_AUTH_NO_PRIV] = SNMP_AUTH_NO_PRIV,
	[LEVEL_AUTH_PRIV] = SNMP_AUTH_PRIV,
};

static int net_login_acquire(struct poller_net *net, const struct credentials *credentials,
			     struct net_login **login, struct errbuf *e)
{
	const struct snmp_credentials options = {
		.version = credentials->version,
		.community = credentials->community,
		.user = credentials->user,
		.context = credentials->context,
		.level = levels[credentials->level],
		.auth = credentials->auth,
		.priv = credentials->priv,
		.auth_password = credentials->auth_password,
		.priv_password = credentials->priv_password,
	};
	for (*login = net->logins; *login; *login = (*login)->next) {
		if ((*login)->credentials == credentials) {
			(*login)->references++;
			return 0;
		}
	}
	struct net_login *made = mem_zalloc(sizeof(*made));
	int err = snmp_login_new(&options, &made->login, e);
	if (err) {
		mem_free(made);
		return err;
	}
	made->credentials = credentials;
	made->references = 1;
	made->next = net->logins;
	*login = net->logins = made;
	return 0;
}

static void net_login_release(struct poller_net *net, struct net_login *login)
{
	struct net_login **at = &net->logins;
	if (--login->references)
		return;
	while (*at != login)
		at = &(*at)->next;
	*at = login->next;
	snmp_login_release(login->login);
	mem_free(login);
}

/* ---- Sessions -------------------------------------------------------------------------------- */

static struct snmp_device *net_device_new(const struct poller_session *session, bool probe)
{
	const struct poller_net_options *o = &session->net->options;
	const struct snmp_device_options options = {
		.in_flight_max = o->device_in_flight_max,
		.retries = probe ? 0 : o->tries - 1,
		.timeout_max_ms = o->timeout_max_ms,
		.timeout_start_ms = probe ? PROBE_TIMEOUT_MS : 0,
	};
	return snmp_device_new(session->net->client, &session->address, session->login->login,
			       &options);
}

static int session_new(struct poller_io *io, const struct loop_address *address,
		       const struct credentials *credentials, struct poller_session **out,
		       struct errbuf *e)
{
	struct poller_net *net = CONTAINER_OF(io, struct poller_net, io);
	struct net_login *login;
	int err = net_login_acquire(net, credentials, &login, e);
	if (err)
		return err;
	struct poller_session *session = mem_zalloc(sizeof(*session));
	session->net = net;
	session->login = login;
	session->address = *address;
	session->device = net_device_new(session, false);
	*out = session;
	return 0;
}

static void session_free(struct poller_io *io, struct poller_session *session)
{
	(void)io;
	snmp_device_free(session->device);
	snmp_device_free(session->probed);
	net_login_release(session->net, session->login);
	mem_free(session);
}

/* ---- Walks ----------------------------------------------------------------------------------- */

static void poller_net_on_foresee(const void *owner)
{
	const struct poller_walk *walk = owner;
	walk->events.foresee(walk->owner);
}

static void poller_net_on_reply(void *owner, const struct snmp_reply *reply)
{
	struct poller_walk *walk = owner;
	walk->events.reply(walk->owner, reply);
}

static const struct oid_def *find_cut(const struct poller_walk *walk,
				      const struct snmp_result *result)
{
	for (size_t i = 0; i < result->count; i++)
		if (result->ends[i] != SNMP_COLUMN_ENDED)
			return walk->plan->columns[i].def;
	return NULL;
}

static void net_walk_free(struct poller_walk *walk)
{
	if (walk->probes)
		walk->probes->probes--;
	mem_free(walk);
}

static void poller_net_on_done(void *owner, const struct snmp_result *result)
{
	struct poller_walk walk = *(struct poller_walk *)owner;
	net_walk_free(owner);
	walk.events.done(walk.owner, result->err, result->sentence,
			 result->err ? NULL : find_cut(&walk, result));
}

static enum snmp_column_kind kind_of(const struct correlate_column *column)
{
	if (!column->scalar)
		return SNMP_COLUMN_TABLE;
	return column->closing ? SNMP_COLUMN_CLOSING : SNMP_COLUMN_SCALAR;
}

static int walk_start(struct poller_io *io, struct poller_session *session,
		      const struct correlate_plan *plan, bool probe,
		      const struct poller_walk_events *events, void *owner,
		      struct poller_walk **out)
{
	static const struct snmp_events client_events = {poller_net_on_reply, poller_net_on_done,
							 poller_net_on_foresee};
	struct slice columns[CORRELATE_COLUMNS_MAX];
	enum snmp_column_kind kinds[CORRELATE_COLUMNS_MAX];
	(void)io;
	for (size_t i = 0; i < plan->count; i++) {
		columns[i] = plan->columns[i].def->ber;
		kinds[i] = kind_of(&plan->columns[i]);
	}
	if (probe && !session->probed)
		session->probed = net_device_new(session, true);
	/* The device is there. Other runs may still wait for their own probes, which would end with
	 * it. */
	if (!probe && !session->probes) {
		snmp_device_free(session->probed);
		session->probed = NULL;
	}
	struct poller_walk *walk = mem_alloc(sizeof(*walk));
	*walk = (struct poller_walk){probe ? session : NULL, plan, *events, owner, NULL};
	int err = snmp_walk(probe ? session->probed : session->device, columns, kinds, plan->count,
			    &client_events, walk, &walk->operation);
	if (err) {
		mem_free(walk);
		return err;
	}
	session->probes += probe;
	*out = walk;
	return 0;
}

static void walk_cancel(struct poller_io *io, struct poller_walk *walk)
{
	(void)io;
	snmp_cancel(walk->operation);
	net_walk_free(walk);
}

/* ---- Names of hosts -------------------------------------------------------------------------- */

struct name_lookup {
	struct task task; /* first of the pool, then of the loop */
	struct poller_net *net;
	poller_resolved_fn *resolved;
	void *owner;
	struct loop_address address;
	bool found;
	const char *why;
	char host[];
};

static void name_lookup_deliver(struct task *task)
{
	struct name_lookup *lookup = CONTAINER_OF(task, struct name_lookup, task);
	lookup->resolved(lookup->owner, lookup->found ? &lookup->address : NULL, lookup->why);
	mem_free(lookup);
}

/* The port stays: getaddrinfo was not asked for one. */
static bool copy_address(const struct addrinfo *info, struct loop_address *address)
{
	uint16_t port = address->port;
	if (info->ai_family != AF_INET && info->ai_family != AF_INET6)
		return false;
	*address = loop_address_of(info->ai_addr);
	address->port = port;
	return true;
}

/* On a thread of the pool. Several addresses: the one that the system puts first. */
static void name_lookup_run(struct task *task)
{
	struct name_lookup *lookup = CONTAINER_OF(task, struct name_lookup, task);
	const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_ADDRCONFIG};
	struct executor *executor = loop_executor(lookup->net->options.loop);
	struct addrinfo *list = NULL;
	int code = EAI_AGAIN;
	if (!atomic_load(&lookup->net->stopping))
		code = getaddrinfo(lookup->host, NULL, &hints, &list);
	lookup->why = code ? gai_strerror(code) : "its name has no address that could be used";
	for (const struct addrinfo *at = code ? NULL : list; at && !lookup->found; at = at->ai_next)
		lookup->found = copy_address(at, &lookup->address);
	if (!code)
		freeaddrinfo(list);
	lookup->task.run = name_lookup_deliver;
	executor->post(executor, &lookup->task);
}

static int poller_net_resolve(struct poller_io *io, struct slice host, uint16_t port,
			      poller_resolved_fn *resolved, void *owner)
{
	struct poller_net *net = CONTAINER_OF(io, struct poller_net, io);
	struct name_lookup *lookup = mem_zalloc(sizeof(*lookup) + host.len + 1);
	lookup->task.run = name_lookup_run;
	lookup->net = net;
	lookup->resolved = resolved;
	lookup->owner = owner;
	lookup->address.port = port;
	memcpy(lookup->host, host.data, host.len);
	int err = pool_submit(net->pool, &lookup->task);
	if (err)
		mem_free(lookup);
	return err;
}

/* ---- Life ------------------------------------------------------------------------------------ */

int poller_net_open(const struct poller_net_options *options, struct poller_net **out,
		    struct errbuf *e)
{
	const struct snmp_client_options client_options = {.in_flight_max = options->in_flight_max};
	struct poller_net *net = mem_zalloc(sizeof(*net));
	net->options = *options;
	net->io = (struct poller_io){session_new, session_free, walk_start, walk_cancel,
				     poller_net_resolve};
	int err = snmp_client_open(options->loop, options->clock, &client_options, &net->client, e);
	if (err) {
		mem_free(net);
		return err;
	}
	net->pool = pool_new(RESOLVE_THREADS, RESOLVE_QUEUE_MAX, "resolve");
	*out = net;
	return 0;
}

struct poller_io *poller_net_io(struct poller_net *net)
{
	return &net->io;
}

void poller_net_stop_resolving(struct poller_net *net)
{
	atomic_store(&net->stopping, true);
	pool_close(net->pool);
	net->pool = NULL;
}

void poller_net_close(struct poller_net *net)
{
	ASSERT(!net->pool && !net->logins);
	snmp_client_close(net->client);
	mem_free(net);
}
