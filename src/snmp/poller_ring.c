#include "snmp/poller_ring.h"

#include "base/mem.h"

void ring_init(struct ring *ring, size_t messages_max, size_t bytes_max)
{
	*ring = (struct ring){.messages_max = messages_max, .bytes_max = bytes_max};
}

void ring_release(struct ring *ring)
{
	while (ring->first)
		ring_pop(ring);
}

void ring_pop(struct ring *ring)
{
	struct ring_message *message = ring->first;
	ASSERT(message);
	ring->first = message->next;
	if (!ring->first)
		ring->last = NULL;
	ring->messages--;
	ring->bytes -= sizeof(*message) + message->device.len + message->bytes.len;
	mem_free(message);
}

static struct ring_message *poller_ring_copy(const struct oidset *oidset, struct slice device,
					     struct slice bytes)
{
	struct ring_message *message = mem_alloc(sizeof(*message) + device.len + bytes.len);
	char *text = (char *)(message + 1);
	memcpy(text, device.data, device.len);
	memcpy(text + device.len, bytes.data, bytes.len);
	*message = (struct ring_message){
		.oidset = oidset,
		.device = {text, device.len},
		.bytes = {text + device.len, bytes.len},
	};
	return message;
}

size_t ring_push(struct ring *ring, const struct oidset *oidset, struct slice device,
		 struct slice bytes)
{
	size_t size = sizeof(struct ring_message) + device.len + bytes.len, dropped = 0;
	if (size > ring->bytes_max || ring->messages_max == 0)
		return 1;
	for (; ring->messages == ring->messages_max || ring->bytes + size > ring->bytes_max;
	     dropped++)
		ring_pop(ring);
	struct ring_message *message = poller_ring_copy(oidset, device, bytes);
	if (ring->last)
		ring->last->next = message;
	else
		ring->first = message;
	ring->last = message;
	ring->messages++;
	ring->bytes += size;
	return dropped;
}
