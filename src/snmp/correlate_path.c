/* The names of rows: one function for each correlator. */
#include "snmp/correlate.h"
#include "wire/snmp_index.h"

struct naming_row {
	struct correlate_set *set;
	const struct correlate_naming *naming;
	size_t row;
	struct index_arcs arcs;
	struct correlate_path *path;
	bool apart; /* no other row that says so has the same path */
};

static int path_push(struct naming_row *r, struct slice part)
{
	if (!part.data)
		return ERR_LIMIT;
	if (part.len > POLL_PART_MAX_BYTES || r->path->count == POLL_PARTS_MAX) {
		correlate_note(&r->set->notes, TROUBLE_LIMIT,
			       "a name has more than %d bytes: " SHOWN, POLL_PART_MAX_BYTES,
			       SHOWN_OF(part));
		return ERR_NOT_FOUND;
	}
	/* A tag cannot be empty. */
	r->path->parts[r->path->count++] = part.len ? part : SLICE("-");
	return 0;
}

static int leave_out(struct naming_row *r, enum correlate_trouble trouble, const char *why)
{
	char shown[64];
	correlate_note(&r->set->notes, trouble, "index %s: %s",
		       correlate_index_shown(r->set->indices[r->row], shown), why);
	return ERR_NOT_FOUND;
}

static int push_index(struct naming_row *r)
{
	return path_push(r, index_dotted(&r->arcs, &r->set->arena));
}

int correlate_path_by_index(struct correlate_set *set, size_t row, struct correlate_path *path)
{
	struct index_arcs arcs;
	struct slice none = {"", 0}, dotted = {NULL, 0};
	struct slice last = path->count ? path->parts[path->count - 1] : none;
	if (index_read(set->indices[row], &arcs) == 0)
		dotted = index_dotted(&arcs, &set->arena);
	size_t len = last.len + 1 + dotted.len;
	if (len > POLL_PART_MAX_BYTES) {
		correlate_note(&set->notes, TROUBLE_LIMIT,
			       "a name with its index has more than %d bytes: " SHOWN,
			       POLL_PART_MAX_BYTES, SHOWN_OF(last));
		return ERR_NOT_FOUND;
	}
	char *text = dotted.data ? arena_alloc(&set->arena, len) : NULL;
	if (!text)
		return ERR_LIMIT;
	if (last.len)
		memcpy(text, last.data, last.len);
	text[last.len] = '#';
	memcpy(text + last.len + 1, dotted.data, dotted.len);
	path->count += path->count == 0;
	path->parts[path->count - 1] = (struct slice){text, len};
	return 0;
}

/* ---- Interfaces ------------------------------------------------------------------------------ */

/* The name that the index had before and has after. NULL: noted, or not wanted. */
static const struct if_name *path_name_of(struct naming_row *r, uint32_t index)
{
	const struct correlate_naming *naming = r->naming;
	const struct if_name *after = if_names_find_near(naming->after, index, &r->set->name_near);
	if (!after) {
		(void)leave_out(r, TROUBLE_UNNAMED, "the device has no ifName or ifDescr for it");
		return NULL;
	}
	const struct if_name *before = naming->steady || naming->before == naming->after
					       ? after
					       : if_names_find(naming->before, index);
	if (!before || !slice_equal(before->name, after->name)) {
		(void)leave_out(r, TROUBLE_RENAMED,
				"the device may have renumbered its interfaces meanwhile");
		return NULL;
	}
	return r->set->plan->skip_undescribed && !after->described ? NULL : after;
}

static int push_interface(struct naming_row *r, const struct if_name *name, struct slice text)
{
	r->path->count = 0;
	int err = text.len ? path_push(r, text) : 0;
	if (err || (text.len && !name->shared))
		return err;
	if (name->shared && text.len)
		correlate_note(&r->set->notes, TROUBLE_SHARED,
			       "several interfaces are called " SHOWN ": their indices tell them "
			       "apart",
			       SHOWN_OF(text));
	return correlate_path_by_index(r->set, r->row, r->path);
}

static int path_if_name(struct naming_row *r)
{
	const struct if_name *name = path_name_of(r, r->arcs.list[r->arcs.count - 1]);
	if (!name)
		return ERR_NOT_FOUND;
	/* Rows of one arc are of different interfaces, and those whose names nobody shares of
	 * different names. */
	r->apart = r->arcs.count == 1 && name->name.len && !name->shared;
	return push_interface(r, name, name->name);
}

static int path_inf_if_name(struct naming_row *r)
{
	const struct if_name *name = path_name_of(r, r->arcs.list[r->arcs.count - 1]);
	if (!name)
		return ERR_NOT_FOUND;
	struct slice text = name->name;
	const char *equals = text.len ? memchr(text.data, '=', text.len) : NULL;
	if (equals)
		text = (struct slice){equals + 1, (size_t)(text.data + text.len - equals - 1)};
	return push_interface(r, name, text);
}

static int path_jnx_cos(struct naming_row *r)
{
	struct slice queue;
	const struct if_name *name = path_name_of(r, r->arcs.list[0]);
	if (!name)
		return ERR_NOT_FOUND;
	int err = index_last_string(&r->arcs, 1, &r->set->arena, &queue);
	if (err == ERR_INVALID)
		return leave_out(r, TROUBLE_INDEX, "no queue in it");
	err = err ? err : push_interface(r, name, name->name);
	return err ? err : path_push(r, octets_text(queue, &r->set->arena));
}

/* ---- What stands in the index ---------------------------------------------------------------- */

/* JUNIPER-FIREWALL-MIB, jnxFWCounterType. */
static struct slice filter_type_text(uint32_t type, struct arena *arena)
{
	static const char *const types[] = {NULL,      "other",    "counter",
					    "policer", "hpolAggr", "hpolPrem"};
	if (type < ARRAY_LEN(types) && types[type])
		return slice_of(types[type]);
	const char *text = arena_printf(arena, "%u", type);
	return (struct slice){text, text ? strlen(text) : 0};
}

static int path_jnx_firewall(struct naming_row *r)
{
	struct arena *arena = &r->set->arena;
	struct slice filter, counter;
	size_t at = 0;
	int err = index_string(&r->arcs, &at, arena, &filter);
	err = err ? err : index_string(&r->arcs, &at, arena, &counter);
	if (err == ERR_INVALID || (!err && at + 1 != r->arcs.count))
		return leave_out(r, TROUBLE_INDEX, "it is not filter, counter and type");
	err = err ? err : path_push(r, filter_type_text(r->arcs.list[at], arena));
	err = err ? err : path_push(r, octets_text(filter, arena));
	return err ? err : path_push(r, octets_text(counter, arena));
}

static int path_alu_sap(struct naming_row *r)
{
	struct slice name;
	int err = index_sap_name(&r->arcs, &r->set->arena, &name);
	if (err == ERR_INVALID)
		return leave_out(r, TROUBLE_INDEX, "it is not service, port and encapsulation");
	return err ? err : path_push(r, name);
}

/* ---- What another column says ---------------------------------------------------------------- */

/* The cell as text: names may be numbers. data is NULL: there is none, or no room. */
static struct slice cell_name(struct naming_row *r, size_t row, size_t column)
{
	const struct correlate_cell *cell = correlate_cell(r->set, row, column);
	if (cell->type == CELL_TEXT)
		return correlate_cell_text(cell);
	const char *text = NULL;
	if (cell->type == CELL_U64)
		text = arena_printf(&r->set->arena, "%llu", (unsigned long long)cell->bits);
	else if (cell->type == CELL_I64)
		text = arena_printf(&r->set->arena, "%lld", (long long)cell->bits);
	return (struct slice){text, text ? strlen(text) : 0};
}

static int push_name(struct naming_row *r, size_t row, size_t column)
{
	if (column >= r->set->plan->count || row == SIZE_MAX)
		return leave_out(r, TROUBLE_UNNAMED, "the device has no name for it");
	struct slice name = cell_name(r, row, column);
	if (!name.data)
		return leave_out(r, TROUBLE_UNNAMED, "the device has no name for it");
	return name.len ? path_push(r, name) : correlate_path_by_index(r->set, r->row, r->path);
}

static int path_sentry(struct naming_row *r)
{
	struct slice name = r->arcs.count == 3 ? SLICE("outletID") : SLICE("tempHumidSensorID");
	if (r->arcs.count != 3 && r->arcs.count != 2)
		return leave_out(r, TROUBLE_INDEX, "neither an outlet (3 parts) nor a sensor (2)");
	return push_name(r, r->row, correlate_plan_find_name(r->set->plan, name));
}

/* cpmCPUTotalPhysicalIndex leads to entPhysicalName, which stands in rows of its own. */
static int path_cisco_cpu(struct naming_row *r)
{
	static const struct slice prefixes[] = {{"CPU_of_", 7}, {"CPU of ", 7}};
	const struct correlate_plan *plan = r->set->plan;
	size_t physical = correlate_plan_find_name(plan, SLICE("cpmCPUTotalPhysicalIndex"));
	uint8_t index[8];
	size_t row = SIZE_MAX;
	const struct correlate_cell *cell =
		physical < plan->count ? correlate_cell(r->set, r->row, physical) : NULL;
	if (cell && cell->type != CELL_NONE && cell->type != CELL_TEXT && cell->bits <= INT32_MAX) {
		size_t len = oid_put_arc(index, (uint32_t)cell->bits);
		row = correlate_set_find(r->set, (struct slice){(char *)index, len});
	}
	int err = push_name(r, row, correlate_plan_find_name(plan, SLICE("entPhysicalName")));
	struct slice *name = &r->path->parts[0];
	for (size_t i = 0; !err && i < ARRAY_LEN(prefixes); i++)
		if (name->len > prefixes[i].len &&
		    memcmp(name->data, prefixes[i].data, prefixes[i].len) == 0)
			*name = (struct slice){name->data + prefixes[i].len,
					       name->len - prefixes[i].len};
	return err;
}

static int path_generic(struct naming_row *r)
{
	const struct oidset *oidset = r->set->plan->oidset;
	struct slice name = oidset->correlate_oid ? oidset->correlate_oid->name : SLICE("");
	return push_name(r, r->row, correlate_plan_find_name(r->set->plan, name));
}

/* ---- Versioned rows -------------------------------------------------------------------------- */

static int path_versioned(struct naming_row *r)
{
	struct slice name;
	int err = push_index(r);
	switch (err ? OIDSET_KINDS : r->set->plan->oidset->kind) {
	case OIDSET_SAPS:
		return path_alu_sap(r);
	case OIDSET_LSPS:
		err = index_lsp_name(&r->arcs, &r->set->arena, &name);
		if (err == ERR_INVALID)
			return 0; /* not indexed by a name: the index has to do */
		return err ? err : path_push(r, name);
	default:
		return err;
	}
}

static int make_path(struct naming_row *r)
{
	switch (r->set->plan->kind) {
	case CORRELATOR_NONE:
		return path_versioned(r);
	case CORRELATOR_OID:
		return leave_out(r, TROUBLE_INDEX, "a row, where only scalars belong");
	case CORRELATOR_INDEX:
		return push_index(r);
	case CORRELATOR_IF_NAME:
		return path_if_name(r);
	case CORRELATOR_INF_IF_NAME:
		return path_inf_if_name(r);
	case CORRELATOR_JNX_FIREWALL:
		return path_jnx_firewall(r);
	case CORRELATOR_JNX_COS:
		return path_jnx_cos(r);
	case CORRELATOR_SENTRY:
		return path_sentry(r);
	case CORRELATOR_ALU_SAP:
		return path_alu_sap(r);
	case CORRELATOR_CISCO_CPU:
		return path_cisco_cpu(r);
	case CORRELATOR_GENERIC:
		return path_generic(r);
	}
	return ERR_NOT_FOUND;
}

int correlate_path(struct correlate_set *set, const struct correlate_naming *naming, size_t row,
		   struct correlate_path *path)
{
	struct naming_row r; /* not cleared: arcs take half a KB */
	r.set = set;
	r.naming = naming;
	r.row = row;
	r.path = path;
	r.apart = false;
	path->count = 0;
	if (index_read(set->indices[row], &r.arcs))
		return leave_out(&r, TROUBLE_INDEX, "it is no index");
	int err = make_path(&r);
	set->may_share |= !err && !r.apart;
	return err;
}
