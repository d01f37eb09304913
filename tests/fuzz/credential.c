/* Any bytes as the cell of a credential: what can be read is the same when it is written and read
 * again, and has a role and a tenant. The same bytes as what a client shows. */
#include "auth/auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_cell(struct slice value)
{
	struct credential *credential, *again;
	struct buf out, second;
	if (credential_decode(SLICE("name"), value, &credential))
		return;
	ASSERT(credential->caller.roles);
	ASSERT(credential->caller.all_tenants || credential->caller.tenant_count);
	buf_init(&out, CREDENTIAL_VALUE_MAX_BYTES);
	buf_init(&second, CREDENTIAL_VALUE_MAX_BYTES);
	credential_encode(credential, &out);
	ASSERT(!out.failed);
	int err = credential_decode(SLICE("name"), buf_slice(&out), &again);
	ASSERT(!err);
	credential_encode(again, &second);
	ASSERT(slice_equal(buf_slice(&out), buf_slice(&second)));
	buf_release(&out);
	buf_release(&second);
	credential_unref(credential);
	credential_unref(again);
}

/* Up to a zero the wish, and behind it what else is said. */
static void read_wish(struct slice text)
{
	struct credential_wish wish = {.roles = text, .tenants = text};
	struct credential *made;
	struct errbuf e;
	const char *zero = text.len ? memchr(text.data, 0, text.len) : NULL;
	if (zero) {
		wish.roles.len = (size_t)(zero - text.data);
		wish.tenants = (struct slice){zero + 1, text.len - wish.roles.len - 1};
	}
	if (!credential_make(SLICE("name"), &wish, 0, &made, &e)) {
		ASSERT(made->caller.roles);
		credential_unref(made);
	}
	if (!credential_read_expiry(text, 0, &wish, &e))
		ASSERT(!wish.expires || wish.expires_ms >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	uint64_t id;
	memcpy(bytes, data, size);
	read_cell((struct slice){bytes, size});
	read_wish((struct slice){bytes, size});
	if (token_read_id((struct slice){bytes, size}, &id))
		ASSERT(size == TOKEN_TEXT_BYTES);
	mem_free(bytes);
	return 0;
}
