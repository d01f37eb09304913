#include "board/document.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/random.h"
#include "board/rules.h"
#include "wire/percent.h"

enum {
	BOARD_ADDRESS_MAX_BYTES = 4000,
	BOARD_SERIES_MAX = 200,
	BOARD_VARIABLES_MAX = 50,
	BOARD_VALUES_MAX = 1000,
};

#define BOARD_SIZE_MAX   100000
#define BOARD_NUMBER_MAX 1e300
#define BOARD_SECOND_MS  1000
#define BOARD_DAY_MS     86400000

/* ---- What there may be ----------------------------------------------------------------------- */

static const char *const board_units[] = {"",        "bytes", "bytes-decimal", "ops", "percent",
					  "generic", NULL};
static const char *const board_thresholds[] = {"up", "down", NULL};
static const char *const board_aligns[] = {"left", "center", "right", NULL};

static const struct board_rule board_lines_rules[] = {
	{"show", BOARD_FLAG},
	{"lineWidth", BOARD_NUMBER, 0, 1000},
	{"zero", BOARD_FLAG},
	{"steps", BOARD_FLAG},
	{NULL},
};

static const struct board_rule board_bars_rules[] = {
	{"show", BOARD_FLAG},
	{"lineWidth", BOARD_NUMBER, 0, 1000},
	{"barWidth", BOARD_NUMBER, 0, BOARD_NUMBER_MAX},
	{"align", BOARD_WORD, .words = board_aligns},
	{"horizontal", BOARD_FLAG},
	{NULL},
};

static const struct board_rule board_points_rules[] = {
	{"show", BOARD_FLAG},
	{"lineWidth", BOARD_NUMBER, 0, 1000},
	{"radius", BOARD_NUMBER, 0, 1000},
	{"symbol", BOARD_NAME, 0, 64},
	{NULL},
};

static const struct board_rule board_query_rules[] = {
	{"metricName", BOARD_NAME, 1, BOARD_ADDRESS_MAX_BYTES, .is_needed = true},
	{NULL},
};

static const struct board_rule board_series_rules[] = {
	{"url", BOARD_NAME, 0, BOARD_ADDRESS_MAX_BYTES},
	{"query", BOARD_QUERY, .within = board_query_rules},
	{"label", BOARD_NAME, 0, 1000},
	{"lines", BOARD_OBJECT, .within = board_lines_rules},
	{"bars", BOARD_OBJECT, .within = board_bars_rules},
	{"points", BOARD_OBJECT, .within = board_points_rules},
	{"xaxis", BOARD_WHOLE, 0, 16},
	{"yaxis", BOARD_WHOLE, 0, 16},
	{"clickable", BOARD_FLAG},
	{"hoverable", BOARD_FLAG},
	{"shadowSize", BOARD_NUMBER, 0, 1000},
	{"data", BOARD_LIST, 0, BOARD_TEXT_MAX_BYTES},
	{NULL},
};

/* The presets are those of Chukwa's constructor of a chart. Its types of charts are some of those
 * that may be drawn; further ones are for who draws to know. */
static const struct board_rule board_chart_rules[] = {
	{"id", BOARD_NAME, 1, BOARD_ID_MAX_BYTES},
	{"type", BOARD_VARIABLE, 1, 64, .preset = "\"TIME_SERIES\""},
	{"title", BOARD_NAME, 0, 1000, .preset = "\"Untitled Chart\""},
	{"series", BOARD_OBJECTS, 0, BOARD_SERIES_MAX, .within = board_series_rules},
	{"xLabelOn", BOARD_FLAG, .preset = "true"},
	{"yLabelOn", BOARD_FLAG, .preset = "true"},
	{"yRightLabelOn", BOARD_FLAG},
	{"width", BOARD_WHOLE, 0, BOARD_SIZE_MAX, .preset = "100"},
	{"height", BOARD_WHOLE, 0, BOARD_SIZE_MAX, .preset = "100"},
	{"xLabelRange", BOARD_TEXTS, 0, BOARD_VALUES_MAX},
	{"xLabelRangeHash", BOARD_OBJECT},
	{"legend", BOARD_FLAG, .preset = "true"},
	{"xLabel", BOARD_NAME, 0, 1000},
	{"yLabel", BOARD_NAME, 0, 1000},
	{"yRightLabel", BOARD_NAME, 0, 1000},
	{"min", BOARD_NUMBER, -BOARD_NUMBER_MAX, BOARD_NUMBER_MAX},
	{"max", BOARD_NUMBER, -BOARD_NUMBER_MAX, BOARD_NUMBER_MAX},
	{"userDefinedMin", BOARD_FLAG},
	{"userDefinedMax", BOARD_FLAG},
	{"yUnitType", BOARD_WORD, .words = board_units},
	{"icon", BOARD_NAME, 0, BOARD_ADDRESS_MAX_BYTES},
	{"bannerText", BOARD_TEXT, 0, BOARD_ADDRESS_MAX_BYTES},
	{"suffixText", BOARD_TEXT, 0, 1000},
	{"threshold", BOARD_WORD, .words = board_thresholds},
	{NULL},
};

static const struct board_rule board_widget_rules[] = {
	{"title", BOARD_NAME, 1, BOARD_ID_MAX_BYTES, .is_needed = true},
	{"src", BOARD_NAME, 0, BOARD_ADDRESS_MAX_BYTES},
	{"col", BOARD_WHOLE, 0, BOARD_SIZE_MAX},
	{"row", BOARD_WHOLE, 0, BOARD_SIZE_MAX},
	{"size_x", BOARD_WHOLE, 0, BOARD_SIZE_MAX},
	{"size_y", BOARD_WHOLE, 0, BOARD_SIZE_MAX},
	{"tokens", BOARD_TEXTS, 0, BOARD_VALUES_MAX},
	{NULL},
};

static const struct board_rule board_variable_rules[] = {
	{"name", BOARD_VARIABLE, 1, 64, .is_needed = true},
	{"label", BOARD_NAME, 0, 1000},
	{"value", BOARD_NAME, 0, 1000},
	{"values", BOARD_TEXTS, 0, BOARD_VALUES_MAX},
	{"group", BOARD_NAME, 1, 1000},
	{"tenant", BOARD_NAME, 1, 64},
	{"metric", BOARD_NAME, 1, 1000},
	{"tag", BOARD_NAME, 1, 1000},
	{NULL},
};

static const struct board_rule board_range_rules[] = {
	{"start", BOARD_TIME, .is_needed = true},
	{"end", BOARD_TIME},
	{NULL},
};

static const struct board_rule board_dashboard_rules[] = {
	{"id", BOARD_NAME, 1, BOARD_ID_MAX_BYTES},
	{"title", BOARD_NAME, 0, 1000},
	{"variables", BOARD_OBJECTS, 0, BOARD_VARIABLES_MAX, .within = board_variable_rules},
	{"range", BOARD_OBJECT, .within = board_range_rules},
	{"refresh", BOARD_DURATION, BOARD_SECOND_MS, BOARD_DAY_MS},
	{"grid", BOARD_OBJECTS, 0, BOARD_GRID_MAX, .within = board_widget_rules, .preset = "[]"},
	{NULL},
};

const struct board_kind_def board_kinds[BOARD_KINDS] = {
	[BOARD_CHART] = {"chart", "id", "chart_meta", 64 << 10, board_chart_rules},
	[BOARD_WIDGET] = {"widget", "title", "widget_meta", 64 << 10, board_widget_rules},
	[BOARD_DASHBOARD] = {"dashboard", "id", "dashboard_meta", BOARD_TEXT_MAX_BYTES,
			     board_dashboard_rules},
};

int board_series_check(const struct json *list, struct errbuf *e)
{
	static const struct board_rule rules[] = {
		{"series", BOARD_OBJECTS, 0, BOARD_SERIES_MAX, .within = board_series_rules},
		{NULL}};
	struct json series = *list;
	const struct json chart = {.type = JSON_T_OBJECT, .first = &series, .count = 1};
	series.key = slice_of(rules->name);
	series.next = NULL;
	return board_rules_check(rules, &chart, e);
}

/* Two variables of one name would have one value. */
static int board_document_check_variables(const struct json *tree, struct errbuf *e)
{
	const struct json *list = json_member(tree, "variables");
	for (const struct json *a = list ? list->first : NULL; a; a = a->next) {
		struct slice name = json_member(a, "name")->text;
		for (const struct json *b = list->first; b != a; b = b->next) {
			if (slice_equal(json_member(b, "name")->text, name))
				return errbuf_set(e, ERR_INVALID,
						  "variables has the name " SHOWN " twice",
						  SHOWN_OF(name));
		}
	}
	return 0;
}

/* How deep arrays and objects lie within each other. */
static size_t board_document_depth(const struct json *tree)
{
	size_t deepest = 0;
	if (tree->type != JSON_T_OBJECT && tree->type != JSON_T_ARRAY)
		return 0;
	for (const struct json *one = tree->first; one; one = one->next)
		deepest = larger_of(deepest, board_document_depth(one));
	return deepest + 1;
}

static int board_document_check(enum board_kind kind, const struct json *tree, struct slice id,
				struct errbuf *e)
{
	const struct board_rule *rules = board_kinds[kind].rules;
	const struct board_rule id_rules[] = {rules[0], {NULL}};
	const struct json path_id = {
		.type = JSON_T_STRING, .text = id, .key = slice_of(rules->name)};
	const struct json path = {
		.type = JSON_T_OBJECT, .first = (struct json *)&path_id, .count = 1};
	ASSERT(strcmp(rules->name, board_kinds[kind].id_member) == 0);
	if (tree->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "a %s is a JSON object", board_kinds[kind].name);
	if (board_document_depth(tree) > BOARD_DEPTH_MAX)
		return errbuf_set(e, ERR_INVALID, "arrays and objects nest more than %d deep",
				  BOARD_DEPTH_MAX);
	int err = board_rules_check(rules, tree, e);
	if (!err && id.data)
		err = board_rules_check(id_rules, &path, e);
	return err || kind != BOARD_DASHBOARD ? err : board_document_check_variables(tree, e);
}

/* ---- What is stored -------------------------------------------------------------------------- */

static void board_document_write(const struct board_kind_def *def, const struct json *tree,
				 struct slice id, struct json_writer *json)
{
	json_write_object_begin(json);
	json_put_string(json, def->id_member, id);
	for (const struct json *member = tree->first; member; member = member->next) {
		if (slice_equal(member->key, slice_of(def->id_member)))
			continue;
		json_write_key_slice(json, member->key);
		json_write_literally(json, member);
	}
	for (const struct board_rule *rule = def->rules; rule->name; rule++) {
		if (!rule->preset || json_member(tree, rule->name))
			continue;
		json_write_key(json, rule->name);
		json_write_raw(json, slice_of(rule->preset));
	}
	json_write_object_end(json);
}

static struct slice board_document_id(const struct board_kind_def *def, const struct json *tree,
				      struct slice id, struct arena *arena)
{
	const struct json *own = json_member(tree, def->id_member);
	if (own)
		return arena_copy(arena, own->text);
	if (id.data)
		return arena_copy(arena, id);
	char *lot = arena_printf(arena, "%016" PRIx64, random_system_seed());
	return lot ? slice_of(lot) : (struct slice){NULL, 0};
}

int board_document_make(enum board_kind kind, const struct json *tree, struct slice id,
			struct arena *arena, struct board_document *made, struct errbuf *e)
{
	const struct board_kind_def *def = &board_kinds[kind];
	struct json_writer json;
	struct buf text;
	int err = board_document_check(kind, tree, id, e);
	if (err)
		return err;
	*made = (struct board_document){kind, board_document_id(def, tree, id, arena), {NULL, 0}};
	buf_init(&text, def->max_bytes);
	json_writer_init(&json, &text);
	if (made->id.data)
		board_document_write(def, tree, made->id, &json);
	if (text.failed)
		err = errbuf_set(e, ERR_LIMIT, "the %s has more than %zu KB", def->name,
				 def->max_bytes >> 10);
	else
		made->text = arena_copy(arena, buf_slice(&text));
	buf_release(&text);
	if (!err && (!made->id.data || !made->text.data))
		err = errbuf_set(e, ERR_LIMIT, "the %s takes more memory than is allowed for",
				 def->name);
	return err;
}

int board_document_parse(enum board_kind kind, struct slice text, struct slice id,
			 struct arena *arena, struct board_document *made, struct errbuf *e)
{
	struct json *tree;
	int err = json_parse(text, arena, &tree, e);
	return err ? err : board_document_make(kind, tree, id, arena, made, e);
}

/* ---- What a document names ------------------------------------------------------------------- */

struct slice board_widget_chart(const struct json *widget, struct arena *arena)
{
	static const char *const starts[] = {"/hicc/v1/chart/draw/", "/hicc/v1/circles/draw/",
					     "/hicc/v1/tile/draw/", "/hicc/v1/piechart/draw/"};
	const struct json *src = json_member(widget, "src");
	struct slice id = {NULL, 0};
	for (size_t i = 0; src && src->type == JSON_T_STRING && i < ARRAY_LEN(starts); i++) {
		struct slice start = slice_of(starts[i]), rest = src->text;
		if (!slice_starts_with(rest, start))
			continue;
		rest = (struct slice){rest.data + start.len, 0};
		while (rest.data + rest.len < src->text.data + src->text.len &&
		       !strchr("/?#", rest.data[rest.len]))
			rest.len++;
		if (percent_decode(rest, false, arena, &id) || !id.len)
			return (struct slice){NULL, 0};
	}
	return id;
}

void board_tag(struct slice text, char tag[BOARD_TAG_BYTES])
{
	struct hash128 hash = hash128(text.data, text.len, 0);
	snprintf(tag, BOARD_TAG_BYTES, "\"%016" PRIx64 "%016" PRIx64 "\"", hash.high, hash.low);
}
