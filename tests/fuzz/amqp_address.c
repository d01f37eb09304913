/* Addresses of brokers: any text is read or refused with a reason; what is read has texts that AMQP
 * can carry. */
#include "wire/amqp_address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct amqp_address address;
	const char *reason = NULL;
	struct arena arena;
	arena_init(&arena, 1 << 20);
	int err = amqp_address_parse((struct slice){(const char *)data, size}, &arena, &address,
				     &reason);
	ASSERT(!err || reason);
	if (!err) {
		const char *const texts[] = {address.host, address.vhost, address.user,
					     address.password};
		for (size_t i = 0; i < ARRAY_LEN(texts); i++)
			ASSERT(strlen(texts[i]) <= AMQP_TEXT_MAX_BYTES);
		ASSERT(*address.host && *address.vhost);
		ASSERT(address.port > 0 && address.port <= UINT16_MAX);
	}
	arena_release(&arena);
	return 0;
}
