#include "api/stream/which.h"

enum { WHICH_TEXT_MAX_BYTES = 2 * STREAM_ADDRESS_MAX_BYTES };

struct which_text {
	struct slice *text;
	const char *name;
};

static int which_keep_texts(struct arena *arena, const struct which_text *texts, size_t count,
			    struct errbuf *e)
{
	int err = 0;
	for (size_t i = 0; i < count && !err; i++)
		err = params_keep(arena, texts[i].text, texts[i].name, WHICH_TEXT_MAX_BYTES, e);
	return err;
}

int which_stream_keep(struct which_stream *which, struct arena *arena, struct stream_id *id,
		      struct errbuf *e)
{
	const struct which_text texts[] = {{&which->tenant, "tenant"}, {&which->stream, "stream"}};
	int err = which_keep_texts(arena, texts, ARRAY_LEN(texts), e);
	id->tenant = which->tenant;
	return err ? err
		   : stream_address_parse(which->stream, arena, &id->names, &id->incarnation, e);
}

int which_streams_keep(struct which_streams *which, struct arena *arena, struct stream_id *after,
		       struct errbuf *e)
{
	struct stream_names *names = &which->names;
	const struct which_text texts[] = {
		{&which->tenant, "tenant"},   {&names->source, "source"},
		{&names->cluster, "cluster"}, {&names->datatype, "datatype"},
		{&names->name, "name"},       {&which->token, "token"},
	};
	int err = which_keep_texts(arena, texts, ARRAY_LEN(texts), e);
	after->tenant = which->tenant;
	if (err || !which->token.data)
		return err;
	err = stream_address_parse(which->token, arena, &after->names, &after->incarnation, e);
	return err ? errbuf_prefix(e, err, "token") : 0;
}
