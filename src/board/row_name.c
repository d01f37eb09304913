#include "board/row_name.h"

static bool row_name_has(struct slice key)
{
	return !slice_equal(key, SLICE("host")) && !slice_equal(key, SLICE("cluster"));
}

struct slice row_name_source(struct tags tags)
{
	return tags_find(tags, SLICE("host"));
}

void row_name_put(struct slice metric, struct tags tags, struct buf *out)
{
	buf_append(out, metric.data, metric.len);
	for (size_t i = 0; i < tags.count; i++) {
		if (!row_name_has(tags.list[i].key))
			continue;
		buf_append_char(out, '.');
		buf_append(out, tags.list[i].value.data, tags.list[i].value.len);
	}
}

size_t row_name_split(struct slice name, struct row_name_split list[ROW_NAME_SPLITS_MAX])
{
	size_t count = 0;
	for (size_t len = name.len; len && count < ROW_NAME_SPLITS_MAX; len--) {
		bool whole = len == name.len;
		if (!whole && name.data[len] != '.')
			continue;
		if (len > METRIC_MAX_BYTES)
			continue;
		list[count++] = (struct row_name_split){
			.metric = {name.data, len},
			.rest = {name.data + len, name.len - len},
		};
	}
	return count;
}

bool row_name_rest_is(struct slice rest, struct tags tags)
{
	for (size_t i = 0; i < tags.count; i++) {
		struct slice value = tags.list[i].value;
		if (!row_name_has(tags.list[i].key))
			continue;
		if (!slice_starts_with(rest, SLICE(".")))
			return false;
		rest = (struct slice){rest.data + 1, rest.len - 1};
		if (!slice_starts_with(rest, value))
			return false;
		rest = (struct slice){rest.data + value.len, rest.len - value.len};
	}
	return !rest.len;
}
