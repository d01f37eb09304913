#include "lease/session_cell.h"

#include "wire/json.h"

enum { SESSION_CELL_VERSION = 1 };

static const char *const session_cell_roles[] = {"rollup", "share", "stream"};

void session_cell_put(const struct session_cell *cell, struct buf *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_write_object_begin(&json);
	json_put_i64(&json, "version", SESSION_CELL_VERSION);
	json_put_string(&json, "holder", cell->holder);
	json_put_string(&json, "name", cell->name);
	json_put_string(&json, "address", cell->address);
	json_write_key(&json, "roles");
	json_write_array_begin(&json);
	for (size_t i = 0; i < ARRAY_LEN(session_cell_roles); i++) {
		if (cell->roles >> i & 1)
			json_write_text(&json, session_cell_roles[i]);
	}
	json_write_array_end(&json);
	json_put_i64(&json, "at", cell->at_ms);
	json_put_i64(&json, "until", cell->until_ms);
	json_write_object_end(&json);
}

static int session_cell_read_roles(const struct json *root, struct session_cell *cell,
				   struct errbuf *e)
{
	const struct json *roles = NULL;
	int err = json_get_array(root, "roles", &roles, e);
	for (const struct json *role = err ? NULL : roles->first; role; role = role->next) {
		for (size_t i = 0; i < ARRAY_LEN(session_cell_roles); i++) {
			if (role->type == JSON_T_STRING &&
			    slice_equal(role->text, slice_of(session_cell_roles[i])))
				cell->roles |= 1u << i;
		}
	}
	return err;
}

int session_cell_read(struct slice text, struct arena *arena, struct session_cell *cell,
		      struct errbuf *e)
{
	struct json *root;
	int64_t version = 0;
	*cell = (struct session_cell){0};
	int err = json_parse(text, arena, &root, e);
	err = err ? err : json_get_i64(root, "version", &version, e);
	if (!err && version != SESSION_CELL_VERSION)
		return errbuf_set(e, ERR_VERSION, "it is of a later program");
	err = err ? err : json_get_text(root, "holder", &cell->holder, e);
	err = err ? err : json_get_text(root, "name", &cell->name, e);
	err = err ? err : json_get_text(root, "address", &cell->address, e);
	err = err ? err : session_cell_read_roles(root, cell, e);
	err = err ? err : json_get_i64(root, "at", &cell->at_ms, e);
	err = err ? err : json_get_i64(root, "until", &cell->until_ms, e);
	if (!err &&
	    (cell->at_ms < 0 || cell->at_ms > cell->until_ms || cell->until_ms > INT64_MAX / 2))
		err = errbuf_set(e, ERR_INVALID, "its times are out of range");
	return err;
}
