/* Walks of devices that send anything at all: what the client hands over is what somebody finds who
 * looks at every name by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "snmp/private.h"

enum { COLUMNS_MAX = 5, VARBINDS_MAX = 64, NAME_BYTES = 32, WALKS = 3000, REPLIES_MAX = 40 };

/* None of them begins another one. */
static const char *const roots[COLUMNS_MAX] = {
	"1.3.6.1.2.1.2.2.1.10",
	"1.3.6.1.2.1.2.2.1.16",
	"1.3.6.1.2.1.31.1.1.1.6",
	"1.3.6.1.4.1.2636.3.15.1",
	"1.3.7",
};

struct name {
	uint8_t bytes[NAME_BYTES];
	size_t len;
};

struct sent {
	size_t column; /* of those asked for */
	struct name name;
	struct snmp_value value;
};

static struct {
	struct snmp_port port;
	struct clock_virtual clock;
	struct snmp_client *client;
	struct snmp_login *login;
	struct snmp_device *device;
	struct loop_address address;
	uint8_t request[MESSAGE_MAX_BYTES];
	size_t request_len; /* 0: none waits for an answer */
	bool done;
	/* The walk as the test sees it. */
	size_t columns;
	struct name last[COLUMNS_MAX];
	bool ended[COLUMNS_MAX], scalar[COLUMNS_MAX], closing[COLUMNS_MAX];
	bool repeats_right; /* a second row stood where it belongs, behind scalars */
	/* Of the last reply: what should be handed over, and how much of it was. */
	struct sent expected[VARBINDS_MAX];
	size_t expected_count, came;
	uint32_t row;
	uint64_t trouble; /* one in so many names is odd */
	struct random random;
} rig;

static struct slice slice_of_name(const struct name *name)
{
	return (struct slice){(const char *)name->bytes, name->len};
}

static struct name name_of(const char *text)
{
	uint8_t memory[OID_MAX_BYTES];
	struct slice oid;
	struct name name;
	assert_int_equal(oid_parse(slice_of(text), memory, &oid, NULL), 0);
	memcpy(name.bytes, oid.data, oid.len);
	name.len = oid.len;
	return name;
}

/* ---- The client's side ----------------------------------------------------------------------- */

static size_t on_send(UNUSED struct snmp_port *port, const struct loop_outgoing *outgoing,
		      size_t count)
{
	assert_int_equal(count, 1);
	memcpy(rig.request, outgoing->bytes.data, outgoing->bytes.len);
	rig.request_len = outgoing->bytes.len;
	return 1;
}

static void on_wake(UNUSED struct snmp_port *port)
{
}

static void on_reply(UNUSED void *owner, const struct snmp_reply *reply)
{
	assert_int_equal(reply->count, rig.expected_count);
	for (size_t i = 0; i < reply->count; i++) {
		const struct snmp_cell *cell = &reply->cells[i];
		const struct sent *expected = &rig.expected[i];
		struct name name = name_of(roots[cell->column]);
		assert_int_equal(cell->column, expected->column);
		assert_true(slice_equal(cell->oid, slice_of_name(&expected->name)));
		assert_int_equal(cell->value.type, expected->value.type);
		assert_int_equal(cell->value.u64, expected->value.u64);
		/* Root and index are the name. */
		assert_int_equal(name.len + cell->index.len, cell->oid.len);
		assert_memory_equal(cell->oid.data, name.bytes, name.len);
		assert_memory_equal(cell->oid.data + name.len, cell->index.data, cell->index.len);
		if (i && cell->index.data == cell[-1].index.data)
			assert_true(slice_equal(cell->index, cell[-1].index));
	}
	rig.came += reply->count;
}

static void on_done(UNUSED void *owner, UNUSED const struct snmp_result *result)
{
	rig.done = true;
}

/* ---- The device's side ----------------------------------------------------------------------- */

static bool one_in(uint64_t n)
{
	return random_below(&rig.random, n) == 0;
}

static void append_index(struct name *name, uint32_t row)
{
	name->len += oid_put_arc(name->bytes + name->len, row);
	if (one_in(2 * rig.trouble))
		name->len += oid_put_arc(name->bytes + name->len, 1 + row % 3);
}

/* As a rule what belongs there. */
static void make_varbind(struct sent *sent, size_t column, uint32_t row)
{
	static const uint8_t types[] = {SNMP_COUNTER64, SNMP_COUNTER32, SNMP_TIMETICKS,
					SNMP_GAUGE32};
	size_t root = one_in(rig.trouble) ? random_below(&rig.random, COLUMNS_MAX) : column;
	uint32_t off = one_in(rig.trouble) ? (uint32_t)random_below(&rig.random, 4) : 0;
	*sent = (struct sent){.column = column, .name = name_of(roots[root])};
	bool ahead = row <= off || one_in(2);
	if (!one_in(2 * rig.trouble))
		append_index(&sent->name, ahead ? row + off : row - off);
	sent->value.type = types[random_below(&rig.random, ARRAY_LEN(types))];
	sent->value.u64 = random_next(&rig.random) >> (32 + random_below(&rig.random, 32));
	if (one_in(3 * rig.trouble))
		sent->value = (struct snmp_value){.type = SNMP_END_OF_MIB_VIEW};
}

/* What the walk makes of it: each column on its own, each name by itself. Scalars end with their
 * value. False: an end that is not believed, and nothing behind it is looked at. */
static bool expect(const struct sent *sent, bool ends_are_believed)
{
	size_t column = sent->column;
	struct name root = name_of(roots[column]);
	struct slice name = slice_of_name(&sent->name);
	if (rig.ended[column])
		return true;
	bool ended = sent->value.type == SNMP_END_OF_MIB_VIEW ||
		     oid_compare(name, slice_of_name(&rig.last[column])) <= 0 ||
		     !oid_has_prefix(name, slice_of_name(&root));
	if (ended && !ends_are_believed)
		return false;
	rig.ended[column] = ended || rig.scalar[column];
	if (!ended) {
		rig.last[column] = sent->name;
		rig.expected[rig.expected_count++] = *sent;
	}
	return true;
}

/* The value of a closing column counts only if the others have ended. */
static void take_closing_back(void)
{
	bool others_go_on = false;
	size_t kept = 0;
	for (size_t i = 0; i < rig.columns; i++)
		others_go_on |= !rig.ended[i] && !rig.closing[i];
	for (size_t i = 0; i < rig.expected_count; i++) {
		size_t column = rig.expected[i].column;
		if (!others_go_on || !rig.closing[column]) {
			rig.expected[kept++] = rig.expected[i];
			continue;
		}
		rig.ended[column] = false;
		rig.last[column] = name_of(roots[column]);
	}
	rig.expected_count = kept;
}

/* Which columns a request is about: those whose last names it has. */
static size_t read_request(size_t *columns, struct snmp_message *request)
{
	struct snmp_varbind varbind;
	const char *why;
	size_t count = 0;
	assert_int_equal(
		snmp_decode((struct slice){(char *)rig.request, rig.request_len}, request, &why),
		0);
	for (; snmp_next(&request->pdu.varbinds, &varbind); count++) {
		columns[count] = 0;
		while (!slice_equal(varbind.oid, slice_of_name(&rig.last[columns[count]])))
			assert_true(++columns[count] < rig.columns);
		assert_false(rig.ended[columns[count]]);
	}
	return count;
}

/* Scalars stand first and are asked for once. */
static size_t check_scalars(const struct snmp_pdu *request, const size_t *columns, size_t count)
{
	size_t scalars = 0;
	for (size_t i = 0; i < count; i++)
		scalars += rig.scalar[columns[i]];
	if (request->type == SNMP_GETBULK)
		assert_int_equal(request->error_status, scalars);
	else
		assert_int_equal(scalars, count);
	for (size_t i = 0; i < scalars; i++)
		assert_true(rig.scalar[columns[i]]);
	return scalars;
}

static void send_reply(const struct snmp_pdu *request, const struct sent *sent, size_t count)
{
	uint8_t memory[8192];
	struct ber_writer w = ber_writer_of(memory, sizeof(memory));
	const uint8_t *end = w.at;
	const struct snmp_pdu pdu = {.type = SNMP_RESPONSE, .request_id = request->request_id};
	for (size_t i = count; i-- > 0;)
		snmp_put_varbind(
			&w, &(struct snmp_varbind){slice_of_name(&sent[i].name), sent[i].value});
	snmp_put_pdu(&w, &pdu, end);
	snmp_put_message(&w, SNMP_V2C, SLICE("public"), end);
	assert_false(w.full);
	struct loop_datagram datagram = {.bytes = {(char *)w.at, (size_t)(end - w.at)},
					 .from = rig.address};
	snmp_client_receive(rig.client, &datagram, 1);
}

static void answer(void)
{
	struct sent sent[VARBINDS_MAX];
	size_t columns[COLUMNS_MAX], count = 0;
	struct snmp_message request;
	size_t asked = read_request(columns, &request);
	size_t scalars = check_scalars(&request.pdu, columns, asked), at = 0;
	size_t most = scalars + (asked - scalars) * (size_t)request.pdu.error_index;
	bool goes_on = true;
	if (one_in(4))
		most = 1 + random_below(&rig.random, most);
	rig.expected_count = 0;
	rig.request_len = 0;
	for (; count < most && count < VARBINDS_MAX; count++) {
		if (at == scalars)
			rig.row += !one_in(2 * rig.trouble);
		make_varbind(&sent[count], columns[at], rig.row);
		bool behind_scalars = scalars && count >= asked;
		size_t expected = rig.expected_count;
		goes_on = goes_on && expect(&sent[count], !behind_scalars || rig.repeats_right);
		rig.repeats_right |= behind_scalars && rig.expected_count > expected;
		at = at + 1 < asked ? at + 1 : scalars;
	}
	take_closing_back();
	size_t before = rig.came;
	clock_virtual_advance(&rig.clock, 5000);
	send_reply(&request.pdu, sent, count);
	assert_int_equal(rig.came - before, rig.expected_count);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void open_rig(void)
{
	const struct snmp_credentials credentials = {.version = SNMP_V2C,
						     .community = SLICE("public")};
	const struct snmp_device_options options = {.retries = 0};
	struct errbuf e;
	rig.port = (struct snmp_port){on_send, on_wake};
	clock_virtual_init(&rig.clock, 1700000000000000);
	rig.client = snmp_client_new(&rig.clock.clock, &rig.port, 0);
	assert_int_equal(snmp_login_new(&credentials, &rig.login, &e), 0);
	rig.address = (struct loop_address){.bytes = {127, 0, 0, 1}, .port = 161};
	rig.device = snmp_device_new(rig.client, &rig.address, rig.login, &options);
	random_init(&rig.random, 20261121);
}

static void close_rig(void)
{
	snmp_device_free(rig.device);
	snmp_login_release(rig.login);
	snmp_client_free(rig.client);
}

static void walk_once(void)
{
	static const struct snmp_events events = {on_reply, on_done};
	enum snmp_column_kind kinds[COLUMNS_MAX];
	struct slice oids[COLUMNS_MAX];
	struct snmp_operation *operation;
	rig.columns = 1 + random_below(&rig.random, COLUMNS_MAX);
	for (size_t i = 0; i < rig.columns; i++) {
		rig.last[i] = name_of(roots[i]);
		rig.ended[i] = false;
		rig.scalar[i] = one_in(4);
		rig.closing[i] = rig.scalar[i] && one_in(2);
		kinds[i] = rig.closing[i]  ? SNMP_COLUMN_CLOSING
			   : rig.scalar[i] ? SNMP_COLUMN_SCALAR
					   : SNMP_COLUMN_TABLE;
		oids[i] = slice_of_name(&rig.last[i]);
	}
	rig.row = (uint32_t)random_below(&rig.random, 300);
	rig.trouble = UINT64_C(10) << random_below(&rig.random, 8);
	rig.done = rig.repeats_right = false;
	assert_int_equal(snmp_walk(rig.device, oids, kinds, rig.columns, &events, NULL, &operation),
			 0);
	snmp_client_tick(rig.client);
	for (int i = 0; i < REPLIES_MAX && !rig.done; i++) {
		assert_true(rig.request_len > 0);
		answer();
	}
	if (!rig.done)
		snmp_cancel(operation);
}

static void names_are_looked_at_each_by_itself(void **state)
{
	(void)state;
	open_rig();
	for (int i = 0; i < WALKS; i++)
		walk_once();
	/* Neither nothing nor nearly nothing. */
	assert_true(rig.came > 20 * WALKS);
	close_rig();
}

enum { TABLE, CLOSING };

static size_t add_sent(struct sent *sent, size_t column, uint32_t row)
{
	*sent = (struct sent){.column = column, .name = name_of(roots[column])};
	sent->name.len += oid_put_arc(sent->name.bytes + sent->name.len, row);
	sent->value = (struct snmp_value){.type = SNMP_COUNTER64, .u64 = row};
	(void)expect(sent, true);
	return 1;
}

/* The closing scalar, if it is asked for, and rows of the table. */
static void answer_rows(uint32_t scalar, uint32_t from, uint32_t to)
{
	struct sent sent[VARBINDS_MAX];
	size_t columns[COLUMNS_MAX], count = 0;
	struct snmp_message request;
	size_t asked = read_request(columns, &request);
	rig.expected_count = 0;
	if (columns[0] == CLOSING)
		count += add_sent(&sent[count], CLOSING, scalar);
	for (uint32_t row = from; columns[asked - 1] == TABLE && row <= to; row++)
		count += add_sent(&sent[count], TABLE, row);
	take_closing_back();
	send_reply(&request.pdu, sent, count);
}

static void begin_table(void)
{
	static const struct snmp_events events = {on_reply, on_done};
	static const enum snmp_column_kind kinds[] = {SNMP_COLUMN_TABLE, SNMP_COLUMN_CLOSING};
	struct slice oids[2];
	rig.columns = 2;
	for (size_t i = 0; i < rig.columns; i++) {
		rig.last[i] = name_of(roots[i]);
		rig.ended[i] = false;
		rig.scalar[i] = rig.closing[i] = i == CLOSING;
		oids[i] = slice_of_name(&rig.last[i]);
	}
	rig.done = false;
	assert_int_equal(snmp_walk(rig.device, oids, kinds, 2, &events, NULL, NULL), 0);
	snmp_client_tick(rig.client);
}

/* The scalar's index is 9, and the table's row behind it 10: the next number, but not behind row
 * 19, where the table's column stands. */
static void a_row_that_counts_on_from_a_scalar_is_still_a_loop(void **state)
{
	(void)state;
	open_rig();
	begin_table(); /* so that its length is known, and the scalar asked for with the rows */
	answer_rows(0, 10, 29);
	answer_rows(0, 29, 29); /* the end, as a loop */
	answer_rows(0, 0, 0);
	assert_true(rig.done);
	begin_table();
	answer_rows(9, 10, 19);
	size_t came = rig.came;
	answer_rows(9, 10, 12);
	assert_int_equal(rig.came - came, 1);
	assert_true(rig.done);
	close_rig();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_that_counts_on_from_a_scalar_is_still_a_loop),
		cmocka_unit_test(names_are_looked_at_each_by_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
