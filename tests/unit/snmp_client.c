/* The client on a virtual clock, above the agent of snmp_fake_agent.h. What it should do is
 * worked by hand from its table. */
#include "snmp_fake_agent.h"

#include <errno.h>

#include "snmp/private.h"

enum { SENT_MAX = 64 };

/* ---- The rig --------------------------------------------------------------------------------- */

struct rig {
	struct snmp_port port;
	struct clock_virtual clock;
	struct snmp_client *client;
	struct snmp_login *login;
	struct snmp_device *device;
	struct loop_address address;
	struct agent agent;
	uint8_t bytes[SENT_MAX][MESSAGE_MAX_BYTES];
	struct loop_outgoing sent[SENT_MAX];
	size_t sent_count, room; /* of the kernel */
	unsigned wakes;
	/* What the events said. */
	size_t cells, replies, done;
	uint64_t sum, ticks; /* of counters; of all uptimes */
	int64_t last_wall_ms;
	int err;
	char sentence[128];
	enum snmp_column_end ends[SNMP_COLUMNS_MAX];
	int errors[SNMP_COLUMNS_MAX];
	unsigned retries;
	uint8_t last_type;
	bool free_in_reply, cancel_in_reply, free_in_done;
	struct snmp_operation *op;
};

static size_t on_send(struct snmp_port *port, const struct loop_outgoing *outgoing, size_t count)
{
	struct rig *rig = CONTAINER_OF(port, struct rig, port);
	size_t taken = count < rig->room ? count : rig->room;
	for (size_t i = 0; i < taken; i++) {
		size_t at = rig->sent_count++ % SENT_MAX;
		memcpy(rig->bytes[at], outgoing[i].bytes.data, outgoing[i].bytes.len);
		rig->sent[at] = outgoing[i];
		rig->sent[at].bytes.data = (char *)rig->bytes[at];
	}
	rig->room -= taken;
	return taken;
}

static void on_wake(struct snmp_port *port)
{
	CONTAINER_OF(port, struct rig, port)->wakes++;
}

static void on_reply(void *owner, const struct snmp_reply *reply)
{
	struct rig *rig = owner;
	rig->replies++;
	rig->cells += reply->count;
	rig->last_wall_ms = reply->wall_ms;
	for (size_t i = 0; i < reply->count; i++) {
		rig->last_type = reply->cells[i].value.type;
		if (rig->last_type == SNMP_COUNTER32)
			rig->sum += reply->cells[i].value.u64;
		else if (rig->last_type == SNMP_TIMETICKS)
			rig->ticks += reply->cells[i].value.u64;
	}
	if (rig->cancel_in_reply)
		snmp_cancel(rig->op);
	if (rig->free_in_reply) {
		snmp_device_free(rig->device);
		rig->device = NULL;
	}
}

static void on_done(void *owner, const struct snmp_result *result)
{
	struct rig *rig = owner;
	rig->done++;
	rig->err = result->err;
	rig->retries = result->retries;
	snprintf(rig->sentence, sizeof(rig->sentence), "%s", result->sentence);
	memcpy(rig->ends, result->ends, result->count * sizeof(*result->ends));
	memcpy(rig->errors, result->errors, result->count * sizeof(*result->errors));
	if (rig->free_in_done) {
		snmp_device_free(rig->device);
		rig->device = NULL;
	}
}

static const struct snmp_events events = {on_reply, on_done};

static void make(struct rig *rig, enum snmp_version version, unsigned in_flight_max)
{
	const struct snmp_credentials credentials = {
		.version = version,
		.community = SLICE("public"),
		.user = SLICE("user"),
	};
	const struct snmp_device_options options = {.retries = 2, .timeout_start_ms = 1000};
	struct errbuf e;
	memset(rig, 0, sizeof(*rig));
	rig->port = (struct snmp_port){on_send, on_wake};
	rig->room = SIZE_MAX;
	clock_virtual_init(&rig->clock, 1700000000000000);
	rig->client = snmp_client_new(&rig->clock.clock, &rig->port, in_flight_max);
	assert_int_equal(snmp_login_new(&credentials, &rig->login, &e), 0);
	rig->address = (struct loop_address){.bytes = {127, 0, 0, 1}, .port = 161};
	rig->device = snmp_device_new(rig->client, &rig->address, rig->login, &options);
	agent_fill(&rig->agent);
}

static void drop(struct rig *rig)
{
	snmp_device_free(rig->device);
	snmp_login_release(rig->login);
	snmp_client_free(rig->client);
}

static void begin(struct rig *rig, bool walk, const char *const *texts, size_t count)
{
	static uint8_t memory[8][OID_MAX_BYTES];
	struct slice oids[8];
	for (size_t i = 0; i < count; i++)
		oids[i] = oid_of(texts[i], memory[i]);
	int err = walk ? snmp_walk(rig->device, oids, NULL, count, &events, rig, &rig->op)
		       : snmp_get(rig->device, oids, count, &events, rig, &rig->op);
	assert_int_equal(err, 0);
	assert_true(rig->wakes > 0);
	snmp_client_tick(rig->client);
}

static void give_from(struct rig *rig, struct slice bytes, struct loop_address from, bool cut)
{
	char *copy = mem_alloc(bytes.len ? bytes.len : 1);
	memcpy(copy, bytes.data, bytes.len);
	struct loop_datagram datagram = {{copy, bytes.len}, cut, from};
	snmp_client_receive(rig->client, &datagram, 1);
	mem_free(copy);
}

static void give(struct rig *rig, struct slice bytes)
{
	give_from(rig, bytes, rig->address, false);
}

static struct slice last_sent(const struct rig *rig)
{
	assert_true(rig->sent_count > 0);
	return rig->sent[(rig->sent_count - 1) % SENT_MAX].bytes;
}

static void pass(struct rig *rig, int64_t ms)
{
	for (; ms > 0; ms -= 10) {
		clock_virtual_advance(&rig->clock, 10000);
		snmp_client_tick(rig->client);
	}
}

/* Answers everything, each 5 ms after it was asked, until nothing more is asked. */
static void talk(struct rig *rig)
{
	for (size_t at = rig->sent_count - 1; at < rig->sent_count; at++) {
		clock_virtual_advance(&rig->clock, 5000);
		give(rig, agent_answer(&rig->agent, rig->sent[at % SENT_MAX].bytes));
		assert_true(at < 1000);
	}
}

static void set_up_walk(struct rig *rig, enum snmp_version version)
{
	static const char *const columns[] = {IF_DESCR, IF_IN, IF_OUT};
	make(rig, version, 0);
	begin(rig, true, columns, ARRAY_LEN(columns));
}

static void assert_whole_walk(const struct rig *rig)
{
	assert_int_equal(rig->done, 1);
	assert_int_equal(rig->err, 0);
	assert_int_equal(rig->cells, ROWS + ROWS + 20);
	/* 1 + ... + 50, and 1000 * (1 + ... + 20) */
	assert_int_equal(rig->sum, 1275 + 210000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig->ends[i], SNMP_COLUMN_ENDED);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static struct rig rig; /* one at a time */

static void a_get(void **state)
{
	static const char *const oids[] = {SYS_UPTIME, "1.3.6.1.2.1.1.99.0"};
	(void)state;
	make(&rig, SNMP_V2C, 0);
	begin(&rig, false, oids, 2);
	assert_int_equal(rig.sent_count, 1);
	talk(&rig);
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.err, 0);
	assert_int_equal(rig.cells, 2);
	assert_int_equal(rig.last_type, SNMP_NO_SUCH_OBJECT);
	assert_int_equal(rig.last_wall_ms, 1700000000005);
	assert_false(snmp_client_busy(rig.client));
	drop(&rig);
}

static void a_get_of_version_1_without_what_is_missing(void **state)
{
	static const char *const oids[] = {"1.3.6.1.2.1.1.99.0", SYS_UPTIME};
	(void)state;
	make(&rig, SNMP_V1, 0);
	begin(&rig, false, oids, 2);
	talk(&rig);
	assert_int_equal(rig.sent_count, 2);
	assert_int_equal(rig.cells, 2); /* noSuchObject, then uptime */
	assert_int_equal(rig.last_type, SNMP_TIMETICKS);
	assert_int_equal(rig.err, 0);
	drop(&rig);
	/* The same of an agent that does not say which one. */
	make(&rig, SNMP_V1, 0);
	rig.agent.mood = SILENT_ABOUT_WHICH;
	begin(&rig, false, oids, 2);
	talk(&rig);
	assert_int_equal(rig.sent_count, 3);
	assert_int_equal(rig.cells, 2);
	assert_int_equal(rig.err, 0);
	drop(&rig);
}

static void columns_of_unequal_length(void **state)
{
	(void)state;
	set_up_walk(&rig, SNMP_V2C);
	talk(&rig);
	assert_whole_walk(&rig);
	/* 32 varbinds at first: 10 rows of 3. */
	assert_in_range(rig.sent_count, 3, 8);
	drop(&rig);
}

static void the_same_by_version_1(void **state)
{
	(void)state;
	set_up_walk(&rig, SNMP_V1);
	talk(&rig);
	assert_whole_walk(&rig);
	/* One row a request; the end of OUT is the end of the MIB, and costs one more. */
	assert_in_range(rig.sent_count, ROWS + 1, ROWS + 3);
	drop(&rig);
}

static void replies_cut_anywhere(void **state)
{
	(void)state;
	for (size_t most = 1; most <= 40; most++) {
		set_up_walk(&rig, SNMP_V2C);
		rig.agent.varbinds_max = most;
		rig.agent.cuts = true;
		talk(&rig);
		assert_whole_walk(&rig);
		drop(&rig);
	}
}

static void too_big_is_halved(void **state)
{
	(void)state;
	for (size_t most = 1; most <= 40; most += 3) {
		struct snmp_device_view view;
		set_up_walk(&rig, SNMP_V2C);
		rig.agent.varbinds_max = most;
		talk(&rig);
		assert_whole_walk(&rig);
		snmp_device_view(rig.device, &view);
		assert_in_range(view.varbinds_max, 1, most < 32 ? most : 200);
		drop(&rig);
	}
}

static void names_that_do_not_increase_end_their_column(void **state)
{
	int64_t before = stat_get(STAT_snmp_loops);
	(void)state;
	set_up_walk(&rig, SNMP_V2C);
	rig.agent.mood = LOOPING;
	talk(&rig);
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.ends[0], SNMP_COLUMN_ENDED);
	assert_int_equal(rig.ends[1], SNMP_COLUMN_LOOPED);
	assert_true(stat_get(STAT_snmp_loops) > before);
	drop(&rig);
}

static void an_agent_that_gives_nothing(void **state)
{
	(void)state;
	set_up_walk(&rig, SNMP_V2C);
	rig.agent.mood = EMPTY;
	talk(&rig);
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.err, ERR_INVALID);
	assert_int_equal(rig.sent_count, IDLE_REPLIES_MAX);
	drop(&rig);
}

static void what_is_no_reply_is_counted_and_ignored(void **state)
{
	static const char *const oids[] = {SYS_UPTIME};
	uint8_t bytes[AGENT_MESSAGE_BYTES];
	(void)state;
	make(&rig, SNMP_V2C, 0);
	begin(&rig, false, oids, 1);
	struct slice good = agent_answer(&rig.agent, last_sent(&rig));
	struct loop_address other = rig.address;

	int64_t was = stat_get(STAT_snmp_ignored_source);
	other.port++;
	give_from(&rig, good, other, false);
	other = rig.address;
	other.bytes[3]++;
	give_from(&rig, good, other, false);
	assert_int_equal(stat_get(STAT_snmp_ignored_source), was + 2);

	was = stat_get(STAT_snmp_ignored_malformed);
	give_from(&rig, good, rig.address, true);
	for (size_t len = 0; len < good.len; len++)
		give(&rig, (struct slice){good.data, len});
	give(&rig, last_sent(&rig)); /* our own request */
	assert_int_equal(stat_get(STAT_snmp_ignored_malformed), was + 2 + (int64_t)good.len);

	/* The id is the first INTEGER of 4 bytes; the version is byte 4. */
	memcpy(bytes, good.data, good.len);
	size_t id_at = 0;
	while (memcmp(bytes + id_at, "\x02\x04", 2) != 0)
		id_at++;
	was = stat_get(STAT_snmp_ignored_late);
	bytes[id_at + 2] ^= 0x01; /* another generation */
	give(&rig, (struct slice){(char *)bytes, good.len});
	bytes[id_at + 2] ^= 0x01;
	bytes[id_at + 3] ^= 0x01; /* an attempt that was not made */
	give(&rig, (struct slice){(char *)bytes, good.len});
	bytes[id_at + 3] ^= 0x01;
	bytes[id_at + 5] ^= 0x01; /* another slot */
	give(&rig, (struct slice){(char *)bytes, good.len});
	bytes[id_at + 5] ^= 0x01;
	assert_int_equal(stat_get(STAT_snmp_ignored_late), was + 3);
	was = stat_get(STAT_snmp_ignored_id);
	bytes[id_at + 2] ^= 0x40; /* none of ours */
	give(&rig, (struct slice){(char *)bytes, good.len});
	bytes[id_at + 2] ^= 0x40;
	assert_int_equal(stat_get(STAT_snmp_ignored_id), was + 1);
	was = stat_get(STAT_snmp_ignored_version);
	bytes[4] = SNMP_V1;
	give(&rig, (struct slice){(char *)bytes, good.len});
	assert_int_equal(stat_get(STAT_snmp_ignored_version), was + 1);
	was = stat_get(STAT_snmp_ignored_content);
	rig.agent.mood = WRONG_NAMES;
	give(&rig, agent_answer(&rig.agent, last_sent(&rig)));
	rig.agent.mood = TOO_MANY;
	give(&rig, agent_answer(&rig.agent, last_sent(&rig)));
	assert_int_equal(stat_get(STAT_snmp_ignored_content), was + 2);

	assert_int_equal(rig.replies + rig.done, 0);
	rig.agent.mood = WELL;
	good = agent_answer(&rig.agent, last_sent(&rig));
	was = stat_get(STAT_snmp_ignored_late);
	give(&rig, good);
	give(&rig, good); /* twice */
	assert_int_equal(stat_get(STAT_snmp_ignored_late), was + 1);
	assert_int_equal(rig.replies, 1);
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.err, 0);
	drop(&rig);
}

static void silence_ends_after_the_retries(void **state)
{
	static const char *const oids[] = {SYS_UPTIME};
	int64_t was = stat_get(STAT_snmp_timeouts);
	(void)state;
	make(&rig, SNMP_V2C, 0);
	begin(&rig, false, oids, 1);
	pass(&rig, 990);
	assert_int_equal(rig.sent_count, 1);
	pass(&rig, 20); /* 1000 */
	assert_int_equal(rig.sent_count, 2);
	pass(&rig, 1980);
	assert_int_equal(rig.sent_count, 2);
	pass(&rig, 40); /* 3000: twice as long */
	assert_int_equal(rig.sent_count, 3);
	pass(&rig, 3900);
	assert_int_equal(rig.done, 0);
	pass(&rig, 200); /* 7000 */
	assert_int_equal(rig.sent_count, 3);
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.err, ERR_TIMEOUT);
	assert_int_equal(rig.retries, 2);
	assert_int_equal(stat_get(STAT_snmp_timeouts), was + 1);
	assert_false(snmp_client_busy(rig.client));
	drop(&rig);
}

/* The first attempt's reply comes when the second has been sent: it counts, and so does its time.
 */
static void a_reply_to_an_earlier_attempt(void **state)
{
	static const char *const oids[] = {SYS_UPTIME};
	struct snmp_device_view view;
	(void)state;
	make(&rig, SNMP_V2C, 0);
	begin(&rig, false, oids, 1);
	pass(&rig, 1500);
	assert_int_equal(rig.sent_count, 2);
	give(&rig, agent_answer(&rig.agent, rig.sent[0].bytes));
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.err, 0);
	snmp_device_view(rig.device, &view);
	assert_int_equal(view.rtt_ms, 1500);
	assert_int_equal(view.timeout_ms, 1500 + 4 * 750); /* RFC 6298 (2.2), (2.3) */
	int64_t was = stat_get(STAT_snmp_ignored_late);
	give(&rig, agent_answer(&rig.agent, rig.sent[1].bytes));
	assert_int_equal(stat_get(STAT_snmp_ignored_late), was + 1);
	drop(&rig);
}

/* 32 varbinds are asked for, then 16, then 8; all three are answered in the order of asking. */
static void time_outs_halve_the_request(void **state)
{
	struct snmp_device_view view;
	(void)state;
	set_up_walk(&rig, SNMP_V2C);
	pass(&rig, 1010);
	pass(&rig, 2010);
	assert_int_equal(rig.sent_count, 3);
	snmp_device_view(rig.device, &view);
	assert_int_equal(view.varbinds_max, 8);
	give(&rig, agent_answer(&rig.agent, rig.sent[0].bytes));
	assert_int_equal(rig.cells, 30);
	talk(&rig);
	assert_whole_walk(&rig);
	drop(&rig);
}

/* 45 counters make a reply of some 1,100 bytes, and a request of 900. */
/* How many varbinds the requests from the nth on ask for. */
static size_t asked_since(size_t first)
{
	size_t sum = 0;
	for (size_t at = first; at < rig.sent_count; at++) {
		struct snmp_message request;
		struct snmp_varbind varbind;
		const char *why;
		size_t names = 0, once;
		assert_int_equal(snmp_decode(rig.sent[at].bytes, &request, &why), 0);
		while (snmp_next(&request.pdu.varbinds, &varbind))
			names++;
		bool bulk = request.pdu.type == SNMP_GETBULK;
		once = bulk ? (size_t)request.pdu.error_status : names;
		sum += once + (names - once) * (size_t)request.pdu.error_index;
	}
	return sum;
}

static void begin_with_uptime(void)
{
	static const char *const columns[] = {IF_DESCR, "1.3.6.1.2.1.1.3", IF_IN, IF_OUT};
	static const enum snmp_column_kind kinds[] = {SNMP_COLUMN_TABLE, SNMP_COLUMN_SCALAR,
						      SNMP_COLUMN_TABLE, SNMP_COLUMN_TABLE};
	static uint8_t memory[ARRAY_LEN(columns)][OID_MAX_BYTES];
	struct slice oids[ARRAY_LEN(columns)];
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		oids[i] = oid_of(columns[i], memory[i]);
	assert_int_equal(
		snmp_walk(rig.device, oids, kinds, ARRAY_LEN(columns), &events, &rig, &rig.op), 0);
	snmp_client_tick(rig.client);
}

/* sysUpTime is asked for once, whatever else there is; also of an agent that repeats it. */
static void scalars_are_asked_for_once(void **state)
{
	(void)state;
	for (int repeats = 0; repeats < 2; repeats++) {
		make(&rig, SNMP_V2C, 0);
		rig.agent.mood = repeats ? ALL_REPEATED : WELL;
		begin_with_uptime();
		/* 32 varbinds: one, and 10 rows of three. */
		assert_int_equal(asked_since(0), 31);
		talk(&rig);
		assert_int_equal(rig.done, 1);
		assert_int_equal(rig.cells, 1 + ROWS + ROWS + 20);
		assert_int_equal(rig.sum, 1275 + 210000);
		for (int i = 0; i < 4; i++)
			assert_int_equal(rig.ends[i], SNMP_COLUMN_ENDED);
		drop(&rig);
	}
}

static void a_scalar_alone_brings_nothing_else(void **state)
{
	static const enum snmp_column_kind kinds[] = {SNMP_COLUMN_SCALAR};
	uint8_t memory[OID_MAX_BYTES];
	struct slice oid = oid_of("1.3.6.1.2.1.1.3", memory);
	(void)state;
	make(&rig, SNMP_V2C, 0);
	assert_int_equal(snmp_walk(rig.device, &oid, kinds, 1, &events, &rig, &rig.op), 0);
	snmp_client_tick(rig.client);
	assert_int_equal(asked_since(0), 1);
	talk(&rig);
	assert_int_equal(rig.sent_count, 1);
	assert_int_equal(rig.cells, 1);
	assert_int_equal(rig.done, 1);
	drop(&rig);
}

/* Of a table of 30 rows that was walked before, 31 are asked for. One that has grown since, or is
 * shorter, is walked whole all the same. */
static void the_end_of_a_table_is_known(void **state)
{
	static const char *const columns[] = {IF_IN};
	static const struct {
		size_t rows, sum, asked; /* 0: whatever it takes */
	} walks[] = {{30, 465, 0}, {30, 465, 31}, {ROWS, 1275, 0}, {10, 55, 0}, {10, 55, 11}};
	(void)state;
	make(&rig, SNMP_V2C, 0);
	for (size_t i = 0; i < ARRAY_LEN(walks); i++) {
		size_t before = rig.sent_count, cells = rig.cells;
		rig.sum = 0;
		rig.agent.count = 1 + ROWS + walks[i].rows; /* behind uptime and descriptions */
		begin(&rig, true, columns, 1);
		talk(&rig);
		assert_int_equal(rig.done, i + 1);
		assert_int_equal(rig.cells - cells, walks[i].rows);
		assert_int_equal(rig.sum, walks[i].sum);
		if (walks[i].asked)
			assert_int_equal(asked_since(before), walks[i].asked);
	}
	drop(&rig);
}

/* Uptime is how many requests the device was sent: a closing one is that of the last request. */
static void walk_with_closing(size_t rows)
{
	static const enum snmp_column_kind kinds[] = {SNMP_COLUMN_CLOSING, SNMP_COLUMN_TABLE};
	uint8_t memory[2][OID_MAX_BYTES];
	const struct slice oids[] = {oid_of("1.3.6.1.2.1.1.3", memory[0]),
				     oid_of(IF_IN, memory[1])};
	size_t done = rig.done, before = rig.sent_count;
	rig.cells = rig.sum = rig.ticks = 0;
	rig.agent.count = 1 + ROWS + rows;
	assert_int_equal(snmp_walk(rig.device, oids, kinds, 2, &events, &rig, &rig.op), 0);
	snmp_client_tick(rig.client);
	for (size_t at = before; at < rig.sent_count; at++) {
		rig.agent.objects[0].value.u64 = at + 1 - before;
		clock_virtual_advance(&rig.clock, 5000);
		give(&rig, agent_answer(&rig.agent, rig.sent[at % SENT_MAX].bytes));
	}
	assert_int_equal(rig.done - done, 1);
	assert_int_equal(rig.err, 0);
	assert_int_equal(rig.cells, 1 + rows);
	assert_int_equal(rig.sum, rows * (rows + 1) / 2);
	assert_int_equal(rig.ticks, rig.sent_count - before);
	assert_true(rig.ends[0] == SNMP_COLUMN_ENDED && rig.ends[1] == SNMP_COLUMN_ENDED);
}

static void what_closes_a_walk_is_said_when_all_else_was(void **state)
{
	(void)state;
	for (int repeats = 0; repeats < 2; repeats++) {
		for (int version = SNMP_V1; version <= SNMP_V2C; version++) {
			make(&rig, (enum snmp_version)version, 0);
			rig.agent.mood = repeats ? ALL_REPEATED : WELL;
			walk_with_closing(30);
			walk_with_closing(30);
			walk_with_closing(ROWS);
			walk_with_closing(20);
			walk_with_closing(1);
			walk_with_closing(2);
			drop(&rig);
		}
	}
}

/* 32 varbinds: the closing one, 30 rows, and one to see that these were all. */
static void what_closes_a_walk_comes_with_its_last_rows(void **state)
{
	(void)state;
	make(&rig, SNMP_V2C, 0);
	walk_with_closing(30);
	size_t before = rig.sent_count;
	walk_with_closing(30);
	assert_int_equal(rig.sent_count - before, 1);
	assert_int_equal(asked_since(before), 32);
	/* As the table has grown, it was too early. */
	walk_with_closing(ROWS);
	drop(&rig);
}

static void many_columns_take_turns(void **state)
{
	static char texts[SNMP_COLUMNS_MAX][40];
	static uint8_t memory[SNMP_COLUMNS_MAX][OID_MAX_BYTES];
	static struct slice oids[SNMP_COLUMNS_MAX];
	(void)state;
	make(&rig, SNMP_V2C, 0);
	for (int i = 0; i < SNMP_COLUMNS_MAX; i++) {
		/* 50 that are there, and others. */
		snprintf(texts[i], sizeof(texts[i]), IF_IN ".%d", (i + 1) * 100);
		oids[i] = oid_of(texts[i], memory[i]);
	}
	assert_int_equal(snmp_get(rig.device, oids, SNMP_COLUMNS_MAX, &events, &rig, NULL), 0);
	snmp_client_tick(rig.client);
	talk(&rig);
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.cells, SNMP_COLUMNS_MAX);
	assert_int_equal(rig.sum, 1275);
	for (size_t i = 0; i < rig.sent_count; i++)
		assert_in_range(rig.sent[i].bytes.len, 1, REQUEST_MAX_BYTES);
	drop(&rig);
}

/* The longest community and names as long as they may be: one a request, and it fits. */
static void the_longest_request(void **state)
{
	static char community[SNMP_COMMUNITY_MAX_BYTES];
	static uint8_t memory[OID_MAX_BYTES];
	struct snmp_credentials credentials = {.version = SNMP_V2C,
					       .community = {community, sizeof(community)}};
	struct slice oids[40];
	struct snmp_login *login;
	(void)state;
	make(&rig, SNMP_V2C, 0);
	snmp_device_free(rig.device);
	assert_int_equal(snmp_login_new(&credentials, &login, NULL), 0);
	rig.device = snmp_device_new(rig.client, &rig.address, login,
				     &(struct snmp_device_options){.retries = 0});
	snmp_login_release(login);
	size_t len = 1;
	memory[0] = 0x2b;
	while (len + 5 <= OID_MAX_BYTES - 5)
		len += oid_put_arc(memory + len, UINT32_MAX);
	for (size_t size = 1; size <= len; size += 5) {
		for (size_t i = 0; i < ARRAY_LEN(oids); i++)
			oids[i] = (struct slice){(char *)memory, size};
		struct snmp_operation *op;
		assert_int_equal(snmp_get(rig.device, oids, ARRAY_LEN(oids), &events, &rig, &op),
				 0);
		snmp_client_tick(rig.client);
		assert_in_range(last_sent(&rig).len, size, REQUEST_MAX_BYTES);
		snmp_cancel(op);
	}
	drop(&rig);
}

/* With seven retries not even one varbind is answered: the next operation asks as before. */
static void a_device_that_was_dead_is_not_taken_for_small(void **state)
{
	struct snmp_device_options options = {.retries = 7, .timeout_max_ms = 1000};
	struct snmp_device_view view;
	static const char *const columns[] = {IF_DESCR, IF_IN, IF_OUT};
	(void)state;
	make(&rig, SNMP_V2C, 0);
	snmp_device_free(rig.device);
	rig.device = snmp_device_new(rig.client, &rig.address, rig.login, &options);
	begin(&rig, true, columns, 3);
	pass(&rig, 7500);
	snmp_device_view(rig.device, &view);
	assert_int_equal(view.varbinds_max, 1);
	pass(&rig, 1000);
	assert_int_equal(rig.done, 1);
	snmp_device_view(rig.device, &view);
	assert_int_equal(view.varbinds_max, VARBINDS_START);
	drop(&rig);
}

static void what_the_kernel_does_not_take_goes_later(void **state)
{
	static const char *const oids[] = {SYS_UPTIME};
	(void)state;
	make(&rig, SNMP_V2C, 0);
	rig.room = 0;
	begin(&rig, false, oids, 1);
	assert_int_equal(rig.sent_count, 0);
	pass(&rig, 50);
	rig.room = SIZE_MAX;
	pass(&rig, 20);
	assert_int_equal(rig.sent_count, 1);
	talk(&rig);
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.retries, 0);
	drop(&rig);
}

/* Of two places, one dead device takes one; when it has missed its first time-out the place is
 * free again. The living one never waits. */
static void a_dead_device_delays_nobody(void **state)
{
	static const char *const oids[] = {SYS_UPTIME};
	struct snmp_device_options options = {.retries = 5, .in_flight_max = 1};
	uint8_t memory[OID_MAX_BYTES];
	struct slice oid = oid_of(SYS_UPTIME, memory);
	struct snmp_device *dead[3];
	(void)state;
	make(&rig, SNMP_V2C, 2);
	struct loop_address address = rig.address;
	for (size_t i = 0; i < ARRAY_LEN(dead); i++) {
		address.port++;
		dead[i] = snmp_device_new(rig.client, &address, rig.login, &options);
		assert_int_equal(snmp_get(dead[i], &oid, 1, &events, &rig, NULL), 0);
	}
	begin(&rig, false, oids, 1);
	assert_int_equal(rig.sent_count, 2); /* two of the dead */
	pass(&rig, 1010);
	/* Those two once more, the third and the living one. */
	assert_int_equal(rig.sent_count, 6);
	for (size_t i = 2; i < 6; i++)
		if (rig.sent[i].to.port == rig.address.port)
			give(&rig, agent_answer(&rig.agent, rig.sent[i].bytes));
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.err, 0);
	for (size_t i = 0; i < ARRAY_LEN(dead); i++)
		snmp_device_free(dead[i]);
	assert_int_equal(rig.done, 1); /* those end without a call */
	drop(&rig);
}

static void one_device_has_its_own_limit(void **state)
{
	static const char *const oids[] = {SYS_UPTIME};
	(void)state;
	make(&rig, SNMP_V2C, 0);
	for (int i = 0; i < 10; i++)
		begin(&rig, false, oids, 1);
	assert_int_equal(rig.sent_count, 2);
	for (size_t at = 0; at < rig.sent_count; at++)
		give(&rig, agent_answer(&rig.agent, rig.sent[at].bytes));
	assert_int_equal(rig.sent_count, 10);
	assert_int_equal(rig.done, 10);
	uint8_t memory[OID_MAX_BYTES];
	struct slice oid = oid_of(SYS_UPTIME, memory);
	for (int i = 0; i < SNMP_OPERATIONS_MAX; i++)
		assert_int_equal(snmp_get(rig.device, &oid, 1, &events, &rig, NULL), 0);
	assert_int_equal(snmp_get(rig.device, &oid, 1, &events, &rig, NULL), ERR_BUSY);
	assert_int_equal(snmp_get(rig.device, &oid, 0, &events, &rig, NULL), ERR_LIMIT);
	assert_int_equal(snmp_get(rig.device, &oid, SNMP_COLUMNS_MAX + 1, &events, &rig, NULL),
			 ERR_LIMIT);
	drop(&rig);
}

static void everything_may_be_done_in_an_event(void **state)
{
	static const char *const oids[] = {SYS_UPTIME};
	(void)state;
	set_up_walk(&rig, SNMP_V2C);
	rig.cancel_in_reply = true;
	talk(&rig);
	assert_int_equal(rig.replies, 1);
	assert_int_equal(rig.done, 0);
	assert_false(snmp_client_busy(rig.client));
	drop(&rig);
	set_up_walk(&rig, SNMP_V2C);
	rig.free_in_reply = true;
	talk(&rig);
	assert_int_equal(rig.replies, 1);
	assert_int_equal(rig.done, 0);
	drop(&rig);
	make(&rig, SNMP_V2C, 0);
	rig.free_in_done = true;
	begin(&rig, false, oids, 1);
	talk(&rig);
	assert_int_equal(rig.done, 1);
	drop(&rig);
	/* Version 3: discovery fails, and the first of three that waited frees the device. */
	make(&rig, SNMP_V3, 0);
	rig.free_in_done = true;
	for (int i = 0; i < 3; i++)
		begin(&rig, false, oids, 1);
	assert_int_equal(rig.sent_count, 1);
	pass(&rig, 8000);
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.err, ERR_TIMEOUT);
	drop(&rig);
}

static void credentials_that_cannot_be(void **state)
{
	static const struct snmp_credentials cases[] = {
		{.version = SNMP_V3,
		 .level = SNMP_AUTH_NO_PRIV,
		 .auth_password = SLICE("12345678")},
		{.version = SNMP_V3,
		 .level = SNMP_AUTH_NO_PRIV,
		 .auth = USM_AUTH_MD5,
		 .auth_password = SLICE("1234567")},
		{.version = SNMP_V3,
		 .level = SNMP_AUTH_PRIV,
		 .auth = USM_AUTH_MD5,
		 .auth_password = SLICE("12345678"),
		 .priv = USM_PRIV_DES},
		{.version = SNMP_V3,
		 .level = SNMP_AUTH_PRIV,
		 .auth = USM_AUTH_MD5,
		 .auth_password = SLICE("12345678"),
		 .priv_password = SLICE("12345678")},
		{.version = SNMP_V3, .user = SLICE("123456789012345678901234567890123")},
		{.version = SNMP_V3, .engine_id = SLICE("1234")},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct snmp_login *login;
		struct errbuf e = {""};
		assert_int_equal(snmp_login_new(&cases[i], &login, &e), ERR_INVALID);
		assert_true(e.text[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_get),
		cmocka_unit_test(a_get_of_version_1_without_what_is_missing),
		cmocka_unit_test(columns_of_unequal_length),
		cmocka_unit_test(the_same_by_version_1),
		cmocka_unit_test(replies_cut_anywhere),
		cmocka_unit_test(too_big_is_halved),
		cmocka_unit_test(names_that_do_not_increase_end_their_column),
		cmocka_unit_test(an_agent_that_gives_nothing),
		cmocka_unit_test(what_is_no_reply_is_counted_and_ignored),
		cmocka_unit_test(silence_ends_after_the_retries),
		cmocka_unit_test(a_reply_to_an_earlier_attempt),
		cmocka_unit_test(time_outs_halve_the_request),
		cmocka_unit_test(scalars_are_asked_for_once),
		cmocka_unit_test(a_scalar_alone_brings_nothing_else),
		cmocka_unit_test(the_end_of_a_table_is_known),
		cmocka_unit_test(what_closes_a_walk_is_said_when_all_else_was),
		cmocka_unit_test(what_closes_a_walk_comes_with_its_last_rows),
		cmocka_unit_test(many_columns_take_turns),
		cmocka_unit_test(the_longest_request),
		cmocka_unit_test(a_device_that_was_dead_is_not_taken_for_small),
		cmocka_unit_test(what_the_kernel_does_not_take_goes_later),
		cmocka_unit_test(a_dead_device_delays_nobody),
		cmocka_unit_test(one_device_has_its_own_limit),
		cmocka_unit_test(everything_may_be_done_in_an_event),
		cmocka_unit_test(credentials_that_cannot_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
