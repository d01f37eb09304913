#include "cmd/local_agent.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "inventory/inventory.h"
#include "snmp/client.h"

static const char sys_name[] = "\x2b\x06\x01\x02\x01\x01\x05\x00"; /* 1.3.6.1.2.1.1.5.0 */

struct local_agent {
	struct inventory_keeper *keeper;
	struct snmp_client *client;
	struct snmp_device *device;
	struct device_spec spec;
	struct slice oidsets[2];
	struct inventory_change change;
	bool changing;
	char address[LOOP_ADDRESS_TEXT_BYTES], name[INVENTORY_NAME_MAX_BYTES + 1];
};

static void local_agent_on_changed(struct inventory_change *change, int err)
{
	struct local_agent *agent = change->owner;
	agent->changing = false;
	if (!err)
		log_info("the SNMP agent at %s answers: it is polled as device %s", agent->address,
			 agent->name);
	else if (err != ERR_EXISTS)
		log_warn("the agent of this machine cannot be added as device %s: %s", agent->name,
			 change->error.text[0] ? change->error.text : err_text(err));
}

static void local_agent_add_device(struct local_agent *agent)
{
	agent->oidsets[0] = SLICE("IfXTable");
	agent->oidsets[1] = SLICE("IfRefPoll");
	agent->spec = device_spec_preset();
	agent->spec.name = slice_of(agent->name);
	agent->spec.address = slice_of(agent->address);
	agent->spec.credentials = SLICE("public");
	agent->spec.oidsets = agent->oidsets;
	agent->spec.oidset_count = ARRAY_LEN(agent->oidsets);
	agent->change = (struct inventory_change){
		.op = INVENTORY_ADD,
		.specs = &agent->spec,
		.count = 1,
		.done = local_agent_on_changed,
		.owner = agent,
	};
	agent->changing = inventory_keeper_change(agent->keeper, &agent->change) == 0;
}

static void local_agent_on_reply(UNUSED void *owner, UNUSED const struct snmp_reply *reply)
{
}

static void local_agent_on_done(void *owner, const struct snmp_result *result)
{
	struct local_agent *agent = owner;
	if (result->err)
		log_info("no SNMP agent answers at %s: this machine's interfaces are not polled",
			 agent->address);
	else
		local_agent_add_device(agent);
}

static int local_agent_ask(struct local_agent *agent, struct loop *loop,
			   const struct loop_address *address, struct errbuf *e)
{
	static const struct snmp_events events = {local_agent_on_reply, local_agent_on_done};
	const struct snmp_credentials credentials = {.version = SNMP_V2C,
						     .community = SLICE("public")};
	const struct snmp_client_options client_options = {.in_flight_max = 1};
	const struct snmp_device_options device_options = {.retries = 1};
	const struct slice oid = {sys_name, sizeof(sys_name) - 1};
	struct snmp_login *login;
	int err = snmp_client_open(loop, clock_real(), &client_options, &agent->client, e);
	err = err ? err : snmp_login_new(&credentials, &login, e);
	if (err)
		return err;
	agent->device = snmp_device_new(agent->client, address, login, &device_options);
	snmp_login_release(login);
	return snmp_get(agent->device, &oid, 1, &events, agent, NULL);
}

int local_agent_open(struct loop *loop, struct inventory_keeper *keeper, const char *address,
		     const char *name, struct local_agent **agent, struct errbuf *e)
{
	struct loop_address parsed;
	int err = loop_address_parse(slice_of(address), &parsed, e);
	if (err)
		return err;
	struct local_agent *made = mem_zalloc(sizeof(*made));
	made->keeper = keeper;
	snprintf(made->address, sizeof(made->address), "%s", address);
	snprintf(made->name, sizeof(made->name), "%s", name);
	err = local_agent_ask(made, loop, &parsed, e);
	if (err)
		local_agent_close(made);
	else
		*agent = made;
	return err;
}

bool local_agent_busy(const struct local_agent *agent)
{
	return agent && agent->changing;
}

void local_agent_close(struct local_agent *agent)
{
	if (!agent)
		return;
	snmp_device_free(agent->device);
	snmp_client_close(agent->client);
	mem_free(agent);
}
