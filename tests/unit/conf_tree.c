#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/buf.h"
#include "conf/conf.h"
#include "conf/tree.h"

static struct errbuf e;
static struct arena arena;

static int setup(void **state)
{
	(void)state;
	e.text[0] = 0;
	arena_init(&arena, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static const struct conf_node *parse(const char *text)
{
	const struct conf_node *root = NULL;
	int err = conf_tree_parse("t.yml", slice_of(text), &arena, &root, &e);
	assert_string_equal(e.text, "");
	assert_int_equal(err, 0);
	return root;
}

static void assert_refused(struct slice text, const char *sentence)
{
	const struct conf_node *root;
	assert_int_equal(conf_tree_parse("t.yml", text, &arena, &root, &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

static void nodes_know_their_place(void **state)
{
	(void)state;
	const struct conf_node *root = parse("# nothing\n"
					     "a:\n"
					     "  b: [x, 'y']\n"
					     "  c:\n"
					     "    - d: 1\n");
	assert_int_equal(root->count, 1);
	const struct conf_node *a = conf_node_member(root, "a");
	const struct conf_node *b = conf_node_member(a, "b"), *c = conf_node_member(a, "c");
	assert_null(conf_node_member(a, "d"));
	assert_int_equal(a->line, 2);
	assert_int_equal(b->line, 3);
	assert_int_equal(b->type, CONF_NODE_LIST);
	assert_int_equal(b->count, 2);
	assert_string_equal(b->first->text.data, "x");
	assert_false(b->first->quoted);
	assert_true(b->first->next->quoted);
	const struct conf_node *d = conf_node_member(c->first, "d");
	assert_int_equal(d->line, 5);
	assert_int_equal(conf_node_refuse(d, &e, "is %d", 1), ERR_INVALID);
	assert_string_equal(e.text, "t.yml:5: a.c[0].d: is 1");
	assert_int_equal(conf_node_refuse(b->first->next, &e, "no"), ERR_INVALID);
	assert_string_equal(e.text, "t.yml:3: a.b[1]: no");
	assert_int_equal(conf_node_refuse(root, &e, "no"), ERR_INVALID);
	assert_string_equal(e.text, "t.yml:2: no");
}

static void what_could_grow_or_hide_is_refused(void **state)
{
	(void)state;
	assert_refused(SLICE("a: &x 1\n"), "t.yml:1: anchors are not supported");
	assert_refused(SLICE("a: 1\nb: *x\n"), "t.yml:2: aliases are not supported");
	assert_refused(SLICE("a: !!str 1\n"), "t.yml:1: tags are not supported");
	assert_refused(SLICE("a: !!map {}\n"), "t.yml:1: tags are not supported");
	assert_refused(SLICE("a: 1\n---\nb: 2\n"), "t.yml:2: a second document begins");
	assert_refused(SLICE("? [a, b]\n: 1\n"), "t.yml:1: a key must be a text");
	assert_refused(SLICE("a: \"x\\ny\"\n"), "t.yml:1: a text holds a control character");
	assert_refused(SLICE("a: |\n  x\n  y\n"), "t.yml:1: a text holds a control character");
	assert_refused(SLICE("a: \"x\\0y\"\n"), "t.yml:1: a text holds a control character");
	assert_refused(SLICE("a: 1\nb: 2\nc: {x: 1,\n  x: 2}\n"),
		       "t.yml:4: c.x: is given twice, first in line 3");
	assert_refused(SLICE("b: 1\na: 2\nb: 3\na: 4\n"),
		       "t.yml:3: b: is given twice, first in line 1");
}

/* 12 levels may be open at once. */
static void nesting_has_a_bound(void **state)
{
	(void)state;
	parse("[[[[[[[[[[[[x]]]]]]]]]]]]");
	assert_refused(SLICE("[[[[[[[[[[[[[x]]]]]]]]]]]]]"), "t.yml:1: nested too deeply");
}

static void a_full_arena_is_an_error(void **state)
{
	(void)state;
	struct buf text;
	const struct conf_node *root;
	buf_init(&text, 1 << 20);
	for (int i = 0; i < 20000; i++)
		buf_append_text(&text, "- a\n");
	assert_int_equal(conf_tree_parse("t.yml", buf_slice(&text), &arena, &root, &e), ERR_LIMIT);
	assert_string_equal(e.text, "t.yml: too large");
	buf_release(&text);
}

static void an_empty_file_is_an_empty_mapping(void **state)
{
	(void)state;
	const struct conf_node *root = parse("");
	assert_int_equal(root->type, CONF_NODE_MAP);
	assert_int_equal(root->count, 0);
	assert_int_equal(parse("# only this\n")->type, CONF_NODE_MAP);
}

static void values_are_read_by_their_kind(void **state)
{
	(void)state;
	const struct conf_node *root = parse("t: abc\nb: yes\ni: 12\nd: 5m\nn: ~\nq: '~'\nl: []\n");
	struct slice text;
	bool flag;
	int64_t number;
	assert_int_equal(conf_node_text(conf_node_member(root, "t"), 1, 3, &text, &e), 0);
	assert_string_equal(text.data, "abc");
	assert_int_equal(conf_node_text(conf_node_member(root, "t"), 1, 2, &text, &e), ERR_INVALID);
	assert_string_equal(e.text, "t.yml:1: t: 3 bytes are longer than the maximum of 2");
	assert_int_equal(conf_node_bool(conf_node_member(root, "b"), &flag, &e), 0);
	assert_true(flag);
	assert_int_equal(conf_node_bool(conf_node_member(root, "i"), &flag, &e), ERR_INVALID);
	assert_string_equal(e.text, "t.yml:3: i: takes true or false");
	assert_int_equal(conf_node_int(conf_node_member(root, "i"), 0, 12, &number, &e), 0);
	assert_int_equal(number, 12);
	assert_int_equal(conf_node_int(conf_node_member(root, "i"), 0, 11, &number, &e),
			 ERR_INVALID);
	assert_string_equal(e.text, "t.yml:3: i: '12' is not in the range of 0 to 11");
	assert_int_equal(conf_node_duration(conf_node_member(root, "d"), 0, 300000, &number, &e),
			 0);
	assert_int_equal(number, 300000);
	assert_int_equal(conf_node_duration(conf_node_member(root, "i"), 0, 1, &number, &e),
			 ERR_INVALID);
	assert_string_equal(e.text, "t.yml:3: i: '12' is not a duration such as 500ms, 10s, 5m, "
				    "2h or 7d");
	assert_true(conf_node_is_null(conf_node_member(root, "n")));
	assert_false(conf_node_is_null(conf_node_member(root, "q")));
	assert_int_equal(conf_node_text(conf_node_member(root, "n"), 1, 9, &text, &e), ERR_INVALID);
	assert_string_equal(e.text, "t.yml:5: n: has no value");
	assert_int_equal(conf_node_text(conf_node_member(root, "l"), 0, 9, &text, &e), ERR_INVALID);
	assert_string_equal(e.text, "t.yml:7: l: takes one value");
}

static void slips_are_named(void **state)
{
	(void)state;
	static const char *const words[] = {"IfName", "Index", NULL};
	static const char *const keys[] = {"frequency", "oids", NULL};
	const struct conf_node *root = parse("a: IfNmae\nb: Sentry\nc: [x]\nfrequncy: 1\n");
	size_t index;
	assert_int_equal(
		conf_node_choice(conf_node_member(root, "a"), "a correlator", words, &index, &e),
		ERR_INVALID);
	assert_string_equal(e.text,
			    "t.yml:1: a: 'IfNmae' is not a correlator; did you mean IfName?");
	assert_int_equal(
		conf_node_choice(conf_node_member(root, "b"), "a correlator", words, &index, &e),
		ERR_INVALID);
	assert_string_equal(e.text, "t.yml:2: b: 'Sentry' is not a correlator, which is one of "
				    "IfName, Index");
	assert_int_equal(
		conf_node_choice(conf_node_member(root, "c"), "a correlator", words, &index, &e),
		ERR_INVALID);
	assert_string_equal(e.text, "t.yml:3: c: takes the name of a correlator");
	assert_int_equal(conf_node_check_map(root, keys, &e), ERR_INVALID);
	assert_string_equal(e.text,
			    "t.yml:1: a: is not a known key, which is one of frequency, oids");
	assert_int_equal(conf_node_check_map(conf_node_member(root, "c"), keys, &e), ERR_INVALID);
	assert_string_equal(e.text, "t.yml:3: c: takes a mapping of frequency and others");
}

static void what_is_dumped_reads_as_the_same(void **state)
{
	(void)state;
	static const char *const text = "a: {b: [1, 'null', \"x: #\"], c: {}, d: []}\n"
					"\"k: 1\": [[a, {q: 'say \"hi\"'}], [b]]\n";
	struct buf first, second;
	buf_init(&first, 1 << 16);
	buf_init(&second, 1 << 16);
	conf_node_dump(parse(text), 0, &first);
	const struct conf_node *again;
	assert_int_equal(conf_tree_parse("d.yml", buf_slice(&first), &arena, &again, &e), 0);
	conf_node_dump(again, 0, &second);
	assert_true(slice_equal(buf_slice(&first), buf_slice(&second)));
	const struct conf_node *list = conf_node_member(conf_node_member(again, "a"), "b");
	assert_true(list->first->next->quoted);
	assert_string_equal(list->first->next->next->text.data, "x: #");
	const struct conf_node *k = conf_node_member(again, "k: 1");
	assert_string_equal(conf_node_member(k->first->first->next, "q")->text.data, "say \"hi\"");
	buf_release(&first);
	buf_release(&second);
}

/* ---- Sections of granary.yml ---------------------------------------------------------------- */

static void sections_stand_between_options(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(conf_read_yaml(conf, "g.yml",
					SLICE("data: /srv\n"
					      "oidsets:\n"
					      "  A: {frequency: 1s}\n"
					      "listen: 127.0.0.1:1\n"),
					&e),
			 0);
	assert_string_equal(conf->data, "/srv");
	assert_string_equal(conf->listen.items[0], "127.0.0.1:1");
	const struct conf_node *section = conf->sections[CONF_SECTION_OIDSETS];
	assert_non_null(section);
	assert_null(conf->sections[CONF_SECTION_OIDS]);
	assert_int_equal(conf_node_refuse(section->first->first, &e, "no"), ERR_INVALID);
	assert_string_equal(e.text, "g.yml:3: oidsets.A.frequency: no");
	conf_free(conf);
}

static void assert_file_refused(const char *text, const char *sentence)
{
	struct conf *conf = conf_new();
	assert_int_equal(conf_read_yaml(conf, "g.yml", slice_of(text), &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
	conf_free(conf);
}

static void sections_are_checked(void **state)
{
	(void)state;
	assert_file_refused("oidsets: 5\n",
			    "g.yml:1: oidsets: takes a mapping: a name, and what it "
			    "is");
	assert_file_refused("oidsets: [a]\n", "g.yml:1: oidsets: takes a mapping: a name, and what "
					      "it is");
	assert_file_refused("oidsets: {}\ndata: /x\noidsets: {}\n",
			    "g.yml:3: oidsets is given twice, first in line 1");
	assert_file_refused("oidset: {A: {}}\n",
			    "g.yml:1: oidset.A is not an option; did you mean oidsets?");
	assert_file_refused("oidset: {}\n",
			    "g.yml:1: oidset is not an option; did you mean oidsets?");
	assert_file_refused("store: {oidsets: {}}\n", "g.yml:1: store.oidsets is not an option");
	assert_file_refused("persist_queue: {a: *b}\n", "g.yml:1: aliases are not supported");
}

static void a_section_without_entries_is_none(void **state)
{
	(void)state;
	struct conf *conf = conf_new();
	assert_int_equal(conf_read_yaml(conf, "g.yml", SLICE("oidsets:\n#  A: {}\ndata: /x\n"), &e),
			 0);
	assert_null(conf->sections[CONF_SECTION_OIDSETS]);
	assert_string_equal(conf->data, "/x");
	conf_free(conf);
}

static void the_effective_configuration_has_sections(void **state)
{
	(void)state;
	struct conf *conf = conf_new(), *again = conf_new();
	struct buf text, other, changes;
	buf_init(&text, 1 << 20);
	buf_init(&other, 1 << 20);
	buf_init(&changes, 1 << 10);
	assert_int_equal(
		conf_read_yaml(conf, "g.yml", SLICE("oids: {x: {oid: 1.3, type: a}}\n"), &e), 0);
	conf_dump(conf, &text);
	assert_int_equal(conf_read_yaml(again, "g.yml", buf_slice(&text), &e), 0);
	conf_fixed_changes(conf, again, &changes);
	assert_int_equal(changes.len, 0);
	const struct conf_node *x = again->sections[CONF_SECTION_OIDS]->first;
	assert_string_equal(conf_node_member(x, "oid")->text.data, "1.3");
	again->sections[CONF_SECTION_OIDS] = NULL;
	conf_fixed_changes(conf, again, &changes);
	assert_true(slice_equal(buf_slice(&changes), SLICE("oids")));
	buf_clear(&changes);
	again->sections[CONF_SECTION_OIDS] = conf->sections[CONF_SECTION_OIDS];
	again->sections[CONF_SECTION_ADAPTORS] = x; /* which may change while an agent runs */
	conf_fixed_changes(conf, again, &changes);
	assert_int_equal(changes.len, 0);
	conf_help(&other);
	assert_non_null(memmem(other.data, other.len, "persist_queue:", 14));
	buf_release(&text);
	buf_release(&other);
	buf_release(&changes);
	conf_free(conf);
	conf_free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nodes_know_their_place, setup, teardown),
		cmocka_unit_test_setup_teardown(what_could_grow_or_hide_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(nesting_has_a_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_arena_is_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_file_is_an_empty_mapping, setup, teardown),
		cmocka_unit_test_setup_teardown(values_are_read_by_their_kind, setup, teardown),
		cmocka_unit_test_setup_teardown(slips_are_named, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_dumped_reads_as_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(sections_stand_between_options, setup, teardown),
		cmocka_unit_test_setup_teardown(sections_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(a_section_without_entries_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(the_effective_configuration_has_sections, setup,
						teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
