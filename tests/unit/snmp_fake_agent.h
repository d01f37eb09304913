/* An agent of a few lines for tests of the client: a table, GET, GETNEXT and GETBULK over it, and
 * what agents do wrong. */
#ifndef TESTS_UNIT_SNMP_FAKE_AGENT_H
#define TESTS_UNIT_SNMP_FAKE_AGENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/snmp.h"

enum { ROWS = 50, AGENT_MESSAGE_BYTES = 16 << 10 };

#define IF_DESCR   "1.3.6.1.2.1.2.2.1.2"
#define IF_IN      "1.3.6.1.2.1.2.2.1.10"
#define IF_OUT     "1.3.6.1.2.1.2.2.1.16"
#define SYS_UPTIME "1.3.6.1.2.1.1.3.0"

struct object {
	uint8_t memory[32];
	struct slice oid;
	struct snmp_value value;
};

enum mood { WELL, LOOPING, SILENT_ABOUT_WHICH, EMPTY, WRONG_NAMES, TOO_MANY, ALL_REPEATED };

struct agent {
	struct object objects[3 * ROWS + 1];
	size_t count;
	size_t varbinds_max; /* more is tooBig; 0: no limit */
	bool cuts;           /* GETBULK gives less instead */
	enum mood mood;
	uint8_t memory[AGENT_MESSAGE_BYTES];
};

static inline struct slice oid_of(const char *text, uint8_t memory[OID_MAX_BYTES])
{
	struct slice oid;
	assert_int_equal(oid_parse(slice_of(text), memory, &oid, NULL), 0);
	return oid;
}

static inline void add_object(struct agent *agent, const char *column, uint32_t index,
			      struct snmp_value value)
{
	struct object *object = &agent->objects[agent->count++];
	uint8_t memory[OID_MAX_BYTES];
	struct slice oid = oid_of(column, memory);
	memcpy(object->memory, oid.data, oid.len);
	size_t len = oid.len + (index ? oid_put_arc(object->memory + oid.len, index) : 0);
	object->oid = (struct slice){(char *)object->memory, len};
	object->value = value;
}

/* In the order of a walk: uptime, 50 descriptions, 50 counters in, 20 counters out. */
static inline void agent_fill(struct agent *agent)
{
	add_object(agent, SYS_UPTIME, 0, (struct snmp_value){SNMP_TIMETICKS, {.u64 = 77}});
	for (uint32_t i = 1; i <= ROWS; i++)
		add_object(agent, IF_DESCR, i * 100,
			   (struct snmp_value){SNMP_OCTETS, {.bytes = SLICE("xe-0/0/0")}});
	for (uint32_t i = 1; i <= ROWS; i++)
		add_object(agent, IF_IN, i * 100, (struct snmp_value){SNMP_COUNTER32, {.u64 = i}});
	for (uint32_t i = 1; i <= 20; i++)
		add_object(agent, IF_OUT, i * 100,
			   (struct snmp_value){SNMP_COUNTER32, {.u64 = 1000 * i}});
}

/* The first behind `oid`; NULL at the end. */
static inline const struct object *next_object(const struct agent *agent, struct slice oid)
{
	for (size_t i = 0; i < agent->count; i++)
		if (oid_compare(agent->objects[i].oid, oid) > 0)
			return &agent->objects[i];
	return NULL;
}

static inline struct snmp_varbind answer_one(const struct agent *agent, struct slice oid,
					     bool exact)
{
	for (size_t i = 0; exact && i < agent->count; i++)
		if (slice_equal(agent->objects[i].oid, oid))
			return (struct snmp_varbind){oid, agent->objects[i].value};
	if (exact)
		return (struct snmp_varbind){oid, {.type = SNMP_NO_SUCH_OBJECT}};
	const struct object *object = next_object(agent, oid);
	if (object && agent->mood == LOOPING && object->value.type == SNMP_COUNTER32)
		object = next_object(agent, SLICE("\x2b\x06\x01\x02\x01\x02\x02\x01\x0a"));
	if (!object)
		return (struct snmp_varbind){oid, {.type = SNMP_END_OF_MIB_VIEW}};
	return (struct snmp_varbind){object->oid, object->value};
}

static inline struct slice agent_encode(struct agent *agent, const struct snmp_message *request,
					struct snmp_varbind *varbinds, size_t count, int status,
					int index)
{
	struct ber_writer w = ber_writer_of(agent->memory, sizeof(agent->memory));
	const uint8_t *end = w.at;
	struct snmp_pdu pdu = {.type = SNMP_RESPONSE,
			       .request_id = request->pdu.request_id,
			       .error_status = status,
			       .error_index = index};
	for (size_t i = count; i-- > 0;)
		snmp_put_varbind(&w, &varbinds[i]);
	snmp_put_pdu(&w, &pdu, end);
	snmp_put_message(&w, request->version, request->community, end);
	assert_false(w.full);
	return (struct slice){(char *)w.at, (size_t)(end - w.at)};
}

/* What the agent says to this request. */
static inline struct slice agent_answer(struct agent *agent, struct slice bytes)
{
	static struct snmp_varbind out[4096], asked[512];
	struct snmp_message request;
	const char *why;
	size_t n = 0, count = 0;
	assert_int_equal(snmp_decode(bytes, &request, &why), 0);
	while (snmp_next(&request.pdu.varbinds, &asked[n]))
		n++;
	bool exact = request.pdu.type == SNMP_GET, bulk = request.pdu.type == SNMP_GETBULK;
	size_t rows = bulk ? (size_t)request.pdu.error_index : 1;
	size_t once = bulk && agent->mood != ALL_REPEATED ? (size_t)request.pdu.error_status : 0;
	if (agent->mood == EMPTY)
		return agent_encode(agent, &request, out, 0, 0, 0);
	for (size_t i = 0; i < once + (n - once) * rows; i++)
		out[count++] =
			answer_one(agent, i < n ? asked[i].oid : out[i - (n - once)].oid, exact);
	if (agent->varbinds_max && count > agent->varbinds_max) {
		if (!bulk || !agent->cuts)
			return agent_encode(agent, &request, asked, n, SNMP_TOO_BIG, 0);
		count = agent->varbinds_max;
	}
	for (size_t i = 0; request.version == SNMP_V1 && i < count; i++)
		if (out[i].value.type >= SNMP_NO_SUCH_OBJECT)
			return agent_encode(agent, &request, asked, n, SNMP_NO_SUCH_NAME,
					    agent->mood == SILENT_ABOUT_WHICH ? 0 : (int)i + 1);
	if (agent->mood == TOO_MANY)
		out[count++] = out[0];
	if (agent->mood == WRONG_NAMES)
		out[0].oid = SLICE("\x2b\x06\x01\x03");
	return agent_encode(agent, &request, out, count, 0, 0);
}

#endif
