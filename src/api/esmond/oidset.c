/* /v2/oidset/ and /v2/oidsetmap/: what is polled, and how endpoints are called. */
#include "api/esmond/answer.h"
#include "api/esmond/esmond.h"
#include "api/esmond/params.h"
#include "api/esmond/path.h"

/* NULL: it has been refused. */
static struct v2_answer *answer_new(struct http_request *request, const char *part)
{
	struct errbuf e;
	if (v2_part_count(request) != 1 || !slice_equal(v2_part(request, 0), slice_of(part))) {
		v2_no_such_path(request);
		return NULL;
	}
	struct v2_answer *answer = mem_alloc(sizeof(*answer));
	v2_answer_init(answer, request, NULL, NULL);
	if (!v2_params_check(request, NULL, &e))
		return answer;
	api_call_fail(&answer->call, 400, "%s", e.text);
	return NULL;
}

static void v2_oidset_end(struct http_request *request)
{
	struct v2_answer *answer = answer_new(request, "oidset");
	if (!answer)
		return;
	const struct inventory_conf *conf = answer->inventory->conf;
	json_write_array_begin(&answer->call.json);
	for (size_t i = 0; i < conf->oidset_count; i++)
		json_write_string(&answer->call.json, conf->oidsets[i]->name);
	json_write_array_end(&answer->call.json);
	api_call_end(&answer->call);
}

const struct http_handler v2_oidset = V2_HANDLER(v2_oidset_end);

static void put_map(struct json_writer *json, const struct oidset *oidset)
{
	bool any = false;
	for (size_t i = 0; i < oidset->oid_count; i++) {
		const struct oid_def *oid = oidset->oids[i];
		if (!v2_is_endpoint(oidset, oid))
			continue;
		if (!any) {
			json_write_key_slice(json, oidset->name);
			json_write_object_begin(json);
		}
		any = true;
		json_write_key_slice(json, oid->endpoint_alias);
		json_write_string(json, oid->name);
	}
	if (any)
		json_write_object_end(json);
}

static void oidsetmap_end(struct http_request *request)
{
	struct v2_answer *answer = answer_new(request, "oidsetmap");
	if (!answer)
		return;
	const struct inventory_conf *conf = answer->inventory->conf;
	json_write_object_begin(&answer->call.json);
	for (size_t i = 0; i < conf->oidset_count; i++)
		put_map(&answer->call.json, conf->oidsets[i]);
	json_write_object_end(&answer->call.json);
	api_call_end(&answer->call);
}

const struct http_handler v2_oidsetmap = V2_HANDLER(oidsetmap_end);
