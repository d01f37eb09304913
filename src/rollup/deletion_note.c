#include "rollup/deletion_note.h"

#include "wire/json.h"

enum { VERSION = 1 };

void deletion_note_put(const struct rollup_deletion_spec *spec, struct buf *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_write_object_begin(&json);
	json_put_i64(&json, "version", VERSION);
	json_put_string(&json, "tenant", spec->tenant);
	json_put_string(&json, "metric", spec->metric);
	json_put_strings(&json, "tags", spec->tags, spec->tag_count);
	json_put_i64(&json, "from", spec->from_ms);
	json_put_i64(&json, "to", spec->to_ms);
	json_put_bool(&json, "whole", spec->whole);
	json_put_string(&json, "by", spec->by);
	json_write_object_end(&json);
}

static int deletion_note_read_tags(const struct json *root, struct rollup_deletion_spec *spec,
				   struct errbuf *e)
{
	const struct json *tags = NULL;
	int err = json_get_array(root, "tags", &tags, e);
	for (const struct json *tag = err ? NULL : tags->first; tag; tag = tag->next) {
		if (tag->type != JSON_T_STRING || spec->tag_count == ROLLUP_DELETION_TAGS_MAX)
			return errbuf_set(e, ERR_INVALID,
					  "its tags are not the tags of a deletion");
		spec->tags[spec->tag_count++] = tag->text;
	}
	return err;
}

int deletion_note_read(struct slice text, struct arena *arena, struct rollup_deletion_spec *spec,
		       struct errbuf *e)
{
	struct json *root;
	int64_t version = 0;
	*spec = (struct rollup_deletion_spec){0};
	int err = json_parse(text, arena, &root, e);
	err = err ? err : json_get_i64(root, "version", &version, e);
	if (!err && version != VERSION)
		return errbuf_set(e, ERR_VERSION, "it is of a later program");
	err = err ? err : json_get_text(root, "tenant", &spec->tenant, e);
	err = err ? err : json_get_text(root, "metric", &spec->metric, e);
	err = err ? err : deletion_note_read_tags(root, spec, e);
	err = err ? err : json_get_i64(root, "from", &spec->from_ms, e);
	err = err ? err : json_get_i64(root, "to", &spec->to_ms, e);
	err = err ? err : json_get_bool(root, "whole", &spec->whole, e);
	return err ? err : json_get_text(root, "by", &spec->by, e);
}
