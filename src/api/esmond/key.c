#include "api/esmond/key.h"

#include "api/esmond/name.h"
#include "wire/number.h"

int v2_key_type(struct slice text, enum v2_type *type, struct errbuf *e)
{
	static const char *const texts[] = {
		[TYPE_RAW_DATA] = "RawData", [TYPE_BASE_RATE] = "BaseRate", [TYPE_AGGS] = "Aggs"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (slice_equal(text, slice_of(texts[i]))) {
			*type = (enum v2_type)i;
			return 0;
		}
	}
	return errbuf_set(e, ERR_INVALID, "type \"" SHOWN "\" is none of RawData, BaseRate, Aggs",
			  SHOWN_OF(text));
}

/* An OIDSet by its name, or one whose series are stored under that. */
static const struct oidset *v2_key_find_oidset(const struct inventory_conf *conf, struct slice name)
{
	const struct oidset *oidset = inventory_conf_oidset(conf, name);
	return oidset ? oidset : inventory_conf_oidset_stored(conf, name);
}

static int v2_key_read_path(const struct slice *parts, size_t count, struct v2_target *target,
			    struct errbuf *e)
{
	size_t wanted = target->oid->scalar ? 0 : target->oidset->path_tag_count;
	if (count != wanted)
		return errbuf_set(
			e, ERR_INVALID,
			"rows of " SHOWN " in " SHOWN " have a path of %zu parts, not %zu",
			SHOWN_OF(target->oid->name), SHOWN_OF(target->oidset->name), wanted, count);
	target->path_count = count;
	for (size_t i = 0; i < count; i++)
		target->path[i] = parts[i];
	return 0;
}

int v2_key_read(const struct inventory *inventory, const struct slice *parts, size_t count,
		struct arena *arena, struct v2_key *key, struct errbuf *e)
{
	struct slice list[HTTP_SEGMENTS_MAX];
	uint64_t freq_ms;
	if (count < 5 || count > HTTP_SEGMENTS_MAX)
		return errbuf_set(e, ERR_INVALID,
				  "a path is namespace, device, oidset, oid, the parts of its row, "
				  "frequency in ms");
	for (size_t i = 0; i < count; i++) {
		if (v2_name_decode(parts[i], arena, &list[i]))
			return errbuf_set(e, ERR_LIMIT, "the paths take too much room");
	}
	struct slice freq = list[count - 1];
	if (!slice_equal(list[0], COUNTER_TENANT))
		return errbuf_set(e, ERR_INVALID, "there is no namespace \"" SHOWN "\": only snmp",
				  SHOWN_OF(list[0]));
	if (number_parse_u64(freq.data, freq.data + freq.len, &freq_ms) || !freq_ms ||
	    freq_ms > (uint64_t)COUNTER_PERIOD_MAX_MS)
		return errbuf_set(e, ERR_INVALID,
				  "\"" SHOWN "\" is not a frequency in milliseconds",
				  SHOWN_OF(freq));
	key->freq_ms = (int64_t)freq_ms;
	key->target = (struct v2_target){.device = inventory_stored_as(inventory, list[1]),
					 .oidset = v2_key_find_oidset(inventory->conf, list[2])};
	if (!key->target.oidset)
		return errbuf_set(e, ERR_INVALID, "there is no oidset \"" SHOWN "\"",
				  SHOWN_OF(list[2]));
	key->target.oid = oidset_oid(key->target.oidset, list[3]);
	if (!key->target.oid)
		return errbuf_set(e, ERR_INVALID, "oidset " SHOWN " has no OID \"" SHOWN "\"",
				  SHOWN_OF(list[2]), SHOWN_OF(list[3]));
	return v2_key_read_path(list + 4, count - 5, &key->target, e);
}

int v2_key_of_path(struct v2_answer *answer, struct v2_key *key, struct errbuf *e)
{
	const struct http_request *request = answer->call.request;
	struct slice list[HTTP_SEGMENTS_MAX];
	size_t count = 0;
	for (size_t i = 2; i < v2_part_count(request); i++)
		list[count++] = v2_part(request, i);
	int err = v2_key_type(v2_part(request, 1), &key->type, e);
	return err ? err : v2_key_read(answer->inventory, list, count, &answer->call.arena, key, e);
}

int v2_key_plan(const struct v2_answer *answer, const struct v2_key *key,
		struct v2_data_params *params, struct v2_plan *plan, struct errbuf *e)
{
	int64_t base_ms = key->target.oidset->frequency_ms;
	bool is_base = key->freq_ms == base_ms;
	params->has_agg = true;
	params->agg_ms = key->freq_ms;
	if (key->type == TYPE_AGGS ? is_base : !is_base)
		return errbuf_set(e, ERR_INVALID, "%lld is %s of " SHOWN, (long long)key->freq_ms,
				  is_base ? "the base frequency, not an aggregate,"
					  : "not the base frequency",
				  SHOWN_OF(key->target.oidset->name));
	if (key->type == TYPE_RAW_DATA && params->has_cf && params->cf != CF_RAW)
		return errbuf_set(e, ERR_INVALID, "cf %s is not of raw data",
				  v2_cf_text(params->cf));
	if (key->type == TYPE_BASE_RATE && params->cf == CF_RAW)
		return errbuf_set(e, ERR_INVALID, "cf raw is of RawData; growth is cf=delta");
	if (key->type == TYPE_RAW_DATA)
		params->cf = CF_RAW;
	return v2_plan_make(answer, &key->target, params, plan, e);
}
