/* Adaptors of the section that are inlets (inlet.h). */
#include "agent/adaptors.h"
#include "conf/tree.h"

/* What a run prints is lines, or one record. */
static int adaptors_read_exec_records(struct adaptors_reader *r, const struct conf_node *node,
				      struct adaptor *adaptor)
{
	static const char *const words[] = {"lines", "escaped", NULL};
	const struct conf_node *member = conf_node_member(node, "records");
	size_t index = 0;
	int err = member ? conf_node_choice(member, "a kind of records", words, &index, r->e) : 0;
	adaptor->rule.records.kind = index ? RECORDS_ESCAPED : RECORDS_LINES;
	return err;
}

static int adaptors_read_times(struct adaptors_reader *r, const struct conf_node *node,
			       struct adaptor *adaptor)
{
	const struct conf_node *every = conf_node_member(node, "every");
	const struct conf_node *timeout = conf_node_member(node, "timeout");
	int err = 0;
	adaptor->every_ms = ADAPTOR_EVERY_MS;
	adaptor->timeout_ms = ADAPTOR_TIMEOUT_MS;
	if (every)
		err = conf_node_duration(every, ADAPTOR_EVERY_MIN_MS, ADAPTOR_EVERY_MAX_MS,
					 &adaptor->every_ms, r->e);
	if (!err && timeout)
		err = conf_node_duration(timeout, ADAPTOR_TIMEOUT_MIN_MS, ADAPTOR_EVERY_MAX_MS,
					 &adaptor->timeout_ms, r->e);
	return err;
}

static int adaptors_read_exec(struct adaptors_reader *r, const struct conf_node *node,
			      struct adaptor *adaptor)
{
	int err = adaptors_read_exec_records(r, node, adaptor);
	return err ? err : adaptors_read_times(r, node, adaptor);
}

int adaptors_read_inlet(struct adaptors_reader *r, const struct conf_node *node,
			const struct conf_node *place, struct adaptor *adaptor)
{
	int err = conf_node_text(place, 1, ADAPTOR_COMMAND_MAX_BYTES, &adaptor->path, r->e);
	err = err ? err : adaptors_read_datatype(r, node, adaptor);
	return err ? err : adaptors_read_exec(r, node, adaptor);
}
