/* Many SNMP agents in one process, so cheap that whoever asks them is what is measured: every
 * address of 127.0.0.0/8 is a device of its own, with one table of interfaces and ten counters of
 * each. The varbinds were encoded beforehand; a reply is copies of them with the values of the
 * moment put in.
 *
 *   canned_agent [--port 0] [--rows 48]
 *
 * Prints `{"port": N}` when it answers, and ends with standard input. GET, GETNEXT and GETBULK of
 * versions 1 and 2c, any community. Counters grow with time: octets some MB a second, with noise,
 * the others less; ifTableLastChange stands still. Bound to the interface lo. */
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "wire/oid.h"
#include "wire/snmp.h"

enum {
	BATCH = 64,
	DATAGRAM_BYTES = 2048,
	REPLY_BYTES_MAX = 1472, /* what fits into a frame of Ethernet */
	VARBIND_BYTES_MAX = 64,
	NAMES_MAX = 128, /* of one request */
	BUFFER_BYTES = 32 << 20,
	VALUE_BYTES_MAX = 8,
};

/* What a column holds. Rates are a millisecond's growth times 1024; the noise stays below the
 * growth of a second, so that nothing falls. A number has its bytes from the start on. */
struct column {
	const char *oid;
	uint8_t type;
	bool scalar;
	size_t value_bytes; /* 0: the interface's name */
	uint64_t base, rate, noise_mask;
};

/* In the order of a walk. */
static const struct column columns[] = {
	{"1.3.6.1.2.1.1.3", SNMP_TIMETICKS, true, 4, 1 << 28, 102, 0},
	{"1.3.6.1.2.1.2.2.1.14", SNMP_COUNTER32, false, 2, 1 << 9, 0, 0},
	{"1.3.6.1.2.1.2.2.1.20", SNMP_COUNTER32, false, 1, 3, 0, 0},
	{"1.3.6.1.2.1.31.1.1.1.1", SNMP_OCTETS, false, 0, 0, 0, 0},
	{"1.3.6.1.2.1.31.1.1.1.6", SNMP_COUNTER64, false, 6, UINT64_C(1) << 40, 5 << 20, 0xfffff},
	{"1.3.6.1.2.1.31.1.1.1.7", SNMP_COUNTER64, false, 5, UINT64_C(1) << 32, 5 << 10, 0x3ff},
	{"1.3.6.1.2.1.31.1.1.1.8", SNMP_COUNTER64, false, 4, 1 << 24, 11, 3},
	{"1.3.6.1.2.1.31.1.1.1.9", SNMP_COUNTER64, false, 4, 1 << 24, 2, 0},
	{"1.3.6.1.2.1.31.1.1.1.10", SNMP_COUNTER64, false, 6, UINT64_C(1) << 41, 7 << 20, 0xfffff},
	{"1.3.6.1.2.1.31.1.1.1.11", SNMP_COUNTER64, false, 5, UINT64_C(1) << 33, 7 << 10, 0x3ff},
	{"1.3.6.1.2.1.31.1.1.1.12", SNMP_COUNTER64, false, 4, 1 << 24, 11, 3},
	{"1.3.6.1.2.1.31.1.1.1.13", SNMP_COUNTER64, false, 4, 1 << 24, 2, 0},
	{"1.3.6.1.2.1.31.1.1.1.19", SNMP_TIMETICKS, false, 1, 0, 0, 0},
	{"1.3.6.1.2.1.31.1.5", SNMP_TIMETICKS, true, 1, 100, 0, 0},
};

/* One object: a varbind, encoded. */
struct object {
	uint8_t bytes[VARBIND_BYTES_MAX]; /* the value's are the last ones */
	uint8_t len;
	const struct column *column;
	struct slice oid; /* in `bytes` */
};

struct request {
	struct snmp_message message;
	size_t name_count;
	struct slice names[NAMES_MAX];
	uint32_t device; /* the address it was sent to */
};

static struct {
	size_t rows, count;
	struct object *objects; /* ascending */
	struct clock *clock;
	uint64_t now_ms; /* since the start */
	int64_t begun_ms;
	int fd;
} agent = {.rows = 48};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- What there is --------------------------------------------------------------------------- */

static void make_object(struct object *object, const struct column *column, uint32_t index)
{
	uint8_t memory[OID_MAX_BYTES];
	char name[VALUE_BYTES_MAX + 8];
	struct ber_writer w = ber_writer_of(object->bytes, sizeof(object->bytes));
	const uint8_t *end = w.at;
	struct slice oid;

	ASSERT(oid_parse(slice_of(column->oid), memory, &oid, NULL) == 0);
	oid.len += oid_put_arc(memory + oid.len, index);
	if (column->value_bytes) {
		ber_put_bytes(&w, "\0\0\0\0\0\0\0", column->value_bytes);
		ber_put_header(&w, column->type, end);
	} else {
		snprintf(name, sizeof(name), "xe-0/%u/%u", index / 24, index % 24);
		ber_put_octets(&w, column->type, slice_of(name));
	}
	ber_put_octets(&w, BER_OID, oid);
	const uint8_t *oid_end = w.at + 2 + oid.len;
	ber_put_header(&w, BER_SEQUENCE, end);
	ASSERT(!w.full);
	object->len = (uint8_t)(end - w.at);
	size_t oid_at = (size_t)(oid_end - w.at) - oid.len;
	memmove(object->bytes, w.at, object->len);
	object->oid = (struct slice){(char *)object->bytes + oid_at, oid.len};
	object->column = column;
}

static void make_objects(void)
{
	agent.objects = mem_zalloc(ARRAY_LEN(columns) * agent.rows * sizeof(*agent.objects));
	for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
		size_t rows = columns[c].scalar ? 1 : agent.rows;
		for (size_t row = 0; row < rows; row++)
			make_object(&agent.objects[agent.count++], &columns[c],
				    columns[c].scalar ? 0 : (uint32_t)row + 1);
	}
}

/* The first object behind the name, or the one of that name. */
static size_t find(struct slice name, bool behind)
{
	size_t low = 0, high = agent.count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = oid_compare(agent.objects[middle].oid, name);
		if (order < 0 || (behind && order == 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- Replies --------------------------------------------------------------------------------- */

static void put_value(uint8_t *end, const struct column *column, size_t object, uint32_t device)
{
	uint64_t at_ms = agent.now_ms + (uint64_t)(device & 0xffff) * 977;
	uint64_t noise = (agent.now_ms ^ (object * UINT64_C(0x9e3779b97f4a7c15) + device)) *
			 UINT64_C(0xd6e8feb86659fd93);
	uint64_t value =
		column->base + (column->rate * at_ms >> 10) + (noise >> 32 & column->noise_mask);

	for (size_t i = 1; i <= column->value_bytes; i++, value >>= 8)
		end[-(ptrdiff_t)i] = (uint8_t)value;
}

/* How many bytes it took; 0: it does not fit. */
static size_t put_object(uint8_t *at, const uint8_t *end, size_t place, uint32_t device)
{
	const struct object *object = &agent.objects[place];

	if (object->len > end - at)
		return 0;
	memcpy(at, object->bytes, object->len);
	put_value(at + object->len, object->column, place, device);
	return object->len;
}

/* A name without a value: the tag says why. */
static size_t put_absent(uint8_t *at, const uint8_t *end, struct slice name, uint8_t tag)
{
	uint8_t memory[VARBIND_BYTES_MAX];
	struct ber_writer w = ber_writer_of(memory, sizeof(memory));
	const uint8_t *last = w.at;

	ber_put_header(&w, tag, last);
	ber_put_octets(&w, BER_OID, name);
	ber_put_header(&w, BER_SEQUENCE, last);
	size_t len = (size_t)(last - w.at);
	if (w.full || (ptrdiff_t)len > end - at)
		return 0;
	memcpy(at, w.at, len);
	return len;
}

static uint8_t *answer_get(const struct request *request, uint8_t *at, const uint8_t *end)
{
	for (size_t i = 0; i < request->name_count; i++) {
		size_t place = find(request->names[i], false);
		bool there = place < agent.count &&
			     slice_equal(agent.objects[place].oid, request->names[i]);
		at += there ? put_object(at, end, place, request->device)
			    : put_absent(at, end, request->names[i], SNMP_NO_SUCH_INSTANCE);
	}
	return at;
}

static uint8_t *answer_next(const struct request *request, uint8_t *at, const uint8_t *end)
{
	const struct snmp_pdu *pdu = &request->message.pdu;
	size_t places[NAMES_MAX], len;
	bool bulk = pdu->type == SNMP_GETBULK;
	int32_t rows = bulk ? pdu->error_index : 1;
	size_t once = bulk ? (size_t)pdu->error_status : 0;

	for (size_t i = 0; i < request->name_count; i++)
		places[i] = find(request->names[i], true);
	for (int32_t row = 0; row < rows; row++) {
		for (size_t i = row ? once : 0; i < request->name_count; i++, at += len) {
			size_t place = places[i]++;
			len = place < agent.count ? put_object(at, end, place, request->device)
						  : put_absent(at, end, request->names[i],
							       SNMP_END_OF_MIB_VIEW);
			if (!len)
				return at;
		}
	}
	return at;
}

/* Lengths of two bytes all through, so that the header can be written first. */
static uint8_t *put_header(uint8_t *at, uint8_t tag, size_t len)
{
	at[0] = tag;
	at[1] = 0x82;
	at[2] = (uint8_t)(len >> 8);
	at[3] = (uint8_t)len;
	return at + 4;
}

/* The reply's length in `reply`. */
static size_t answer(const struct request *request, uint8_t reply[REPLY_BYTES_MAX])
{
	const struct snmp_message *message = &request->message;
	size_t community = message->community.len;
	size_t before_pdu = 4 + 3 + 2 + community, before_varbinds = before_pdu + 4 + 6 + 6 + 4;
	uint8_t *begin = reply + before_varbinds, *at = reply;
	const uint8_t *limit = reply + REPLY_BYTES_MAX;
	uint8_t *end = message->pdu.type == SNMP_GET ? answer_get(request, begin, limit)
						     : answer_next(request, begin, limit);
	size_t len = (size_t)(end - reply);

	at = put_header(at, BER_SEQUENCE, len - 4);
	memcpy(at, (uint8_t[]){BER_INTEGER, 1, (uint8_t)message->version}, 3);
	at[3] = BER_OCTETS;
	at[4] = (uint8_t)community;
	memcpy(at + 5, message->community.data, community);
	at = put_header(reply + before_pdu, SNMP_RESPONSE, len - before_pdu - 4);
	at[0] = BER_INTEGER;
	at[1] = 4;
	be32_put(at + 2, (uint32_t)message->pdu.request_id);
	memcpy(at + 6, "\x02\x01\0\x02\x01\0", 6);
	put_header(at + 12, BER_SEQUENCE, (size_t)(end - begin));
	return len;
}

static bool read_request(struct slice bytes, struct request *request)
{
	struct snmp_varbind varbind;
	const char *why;

	request->name_count = 0;
	if (snmp_decode(bytes, &request->message, &why) || request->message.community.len > 64)
		return false;
	while (request->name_count < NAMES_MAX &&
	       snmp_next(&request->message.pdu.varbinds, &varbind))
		request->names[request->name_count++] = varbind.oid;
	return !request->message.pdu.varbinds.bad;
}

/* ---- The socket ------------------------------------------------------------------------------ */

/* Replies leave from the address that was asked: it comes with the request and goes back with the
 * reply. */
struct datagram {
	struct sockaddr_in peer;
	uint8_t request[DATAGRAM_BYTES], reply[REPLY_BYTES_MAX];
	struct iovec piece;
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control;
};

static struct datagram datagrams[BATCH];

static struct in_pktinfo *packet_info(struct msghdr *header)
{
	return (struct in_pktinfo *)(void *)CMSG_DATA(CMSG_FIRSTHDR(header));
}

static void expect(struct mmsghdr *message, struct datagram *d)
{
	d->piece = (struct iovec){d->request, sizeof(d->request)};
	*message = (struct mmsghdr){.msg_hdr = {.msg_name = &d->peer,
						.msg_namelen = sizeof(d->peer),
						.msg_iov = &d->piece,
						.msg_iovlen = 1,
						.msg_control = d->control.bytes,
						.msg_controllen = sizeof(d->control.bytes)}};
}

/* Makes the request that came into its reply. */
static bool turn(struct mmsghdr *message, struct datagram *d)
{
	struct request request;
	struct slice bytes = {(char *)d->request, message->msg_len};

	if (!CMSG_FIRSTHDR(&message->msg_hdr) || !read_request(bytes, &request))
		return false;
	struct in_pktinfo *info = packet_info(&message->msg_hdr);
	request.device = ntohl(info->ipi_addr.s_addr);
	info->ipi_spec_dst = info->ipi_addr;
	info->ipi_ifindex = 0;
	d->piece = (struct iovec){d->reply, answer(&request, d->reply)};
	return true;
}

static void serve_some(void)
{
	struct mmsghdr messages[BATCH];
	unsigned kept = 0;

	for (size_t i = 0; i < BATCH; i++)
		expect(&messages[i], &datagrams[i]);
	int count = recvmmsg(agent.fd, messages, BATCH, MSG_DONTWAIT, NULL);
	agent.now_ms = (uint64_t)(clock_mono_ms(agent.clock) - agent.begun_ms);
	for (int i = 0; i < count; i++)
		if (turn(&messages[i], &datagrams[i]))
			messages[kept++] = messages[i];
	for (unsigned sent = 0; sent < kept;) {
		int some = sendmmsg(agent.fd, messages + sent, kept - sent, 0);
		sent += some > 0 ? (unsigned)some : 1;
	}
}

static uint16_t open_socket(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t len = sizeof(at);
	int on = 1, bytes = BUFFER_BYTES;

	agent.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* Only what comes over lo: the address is any, since every address is a device. */
	if (agent.fd < 0 || setsockopt(agent.fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3))
		die("canned_agent: lo");
	if (setsockopt(agent.fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) &&
	    setsockopt(agent.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)))
		die("canned_agent: receive buffer");
	if (setsockopt(agent.fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) ||
	    bind(agent.fd, (struct sockaddr *)&at, sizeof(at)) ||
	    getsockname(agent.fd, (struct sockaddr *)&at, &len))
		die("canned_agent: port");
	return ntohs(at.sin_port);
}

static void serve(void)
{
	struct pollfd waiting[] = {{agent.fd, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};

	while (!waiting[1].revents) {
		if (poll(waiting, 2, -1) < 0)
			die("canned_agent: poll");
		if (waiting[0].revents)
			serve_some();
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"port", required_argument, NULL, 'p'},
		{"rows", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	uint16_t port = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'p')
			port = (uint16_t)strtoul(optarg, NULL, 10);
		else if (option == 'r')
			agent.rows = strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	agent.clock = clock_real();
	agent.begun_ms = clock_mono_ms(agent.clock);
	make_objects();
	printf("{\"port\": %u}\n", open_socket(port));
	fflush(stdout);
	serve();
	mem_free(agent.objects);
	return 0;
}
