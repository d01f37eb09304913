/* What it costs to find out who asks, on one core and without a socket:
 *
 *   auth_bench [credentials]
 *
 * So many credentials are there (1,000 unless told), and their tokens are shown in turn, as by
 * senders that share a server. Prints nanoseconds of CPU for one check: that of a request that
 * shows nothing and may read, which is what is paid in any case, and that of one that shows a
 * token. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "auth/auth.h"
#include "auth/token.h"
#include "base/mem.h"
#include "naive.h"
#include "store/wait.h"

enum { CREDENTIALS_PRESET = 1000, CHECKS = 1000000, HEADER_MAX_BYTES = 200 };

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double check_ns(struct auth *auth, char (*headers)[HEADER_MAX_BYTES], size_t count)
{
	static const struct http_route route = {
		.verb = VERB_GET, .path = "/api/query", .role = ROLE_READ, .reach = REACH_TENANT};
	static const struct loop_address peer = {.bytes = {192, 0, 2, 1}, .port = 1};
	struct http_guard *guard = auth_guard(auth);
	double begun = cpu_seconds();
	for (size_t i = 0; i < CHECKS; i++) {
		struct http_header header = {SLICE("authorization"), {NULL, 0}};
		struct http_request request = {.route = &route,
					       .peer = &peer,
					       .verb = VERB_GET,
					       .path = SLICE("/api/query"),
					       .target = SLICE("/api/query"),
					       .headers = &header,
					       .header_count = headers ? 1 : 0};
		struct errbuf why;
		bool shown = false;
		if (headers)
			header.value = slice_of(headers[i % count]);
		ASSERT(guard->admit(guard, &request, &shown, &why) == 0);
		guard->leave(guard, &request, 200);
	}
	return (cpu_seconds() - begun) * 1e9 / CHECKS;
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : CREDENTIALS_PRESET;
	char(*headers)[HEADER_MAX_BYTES] = mem_alloc_array(count, sizeof(*headers));
	struct task_queue queue;
	struct errbuf e = {""};
	struct store *store = naive_open(clock_real());
	struct auth *auth = auth_new(&(struct auth_options){.store = store,
							    .clock = clock_real(),
							    .polled_tenant = SLICE("snmp"),
							    .anonymous_reads = true});
	task_queue_init(&queue);
	ASSERT(!auth_load(auth, &queue, &e));
	for (size_t i = 0; i < count; i++) {
		struct credential_wish wish = {.roles = SLICE("admin"), .tenants = SLICE("*")};
		struct credential *made;
		char name[32], token[TOKEN_TEXT_BYTES + 1];
		snprintf(name, sizeof(name), "c%zu", i);
		ASSERT(!auth_create(auth, &queue, slice_of(name), &wish, token, &made, &e));
		credential_unref(made);
		snprintf(headers[i], sizeof(headers[i]), "Bearer %s", token);
	}
	double nothing = check_ns(auth, NULL, 0), token = check_ns(auth, headers, count);
	printf("{\"nothing_ns\": %.0f, \"token_ns\": %.0f}\n", nothing, token);
	auth_free(auth);
	store_close(store);
	task_queue_release(&queue);
	mem_free(headers);
	return 0;
}
