#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/buf.h"
#include "conf/conf.h"
#include "inventory/inventory.h"

static struct errbuf e;

/* ---- Files that are only texts -------------------------------------------------------------- */

static const char *secrets, *set_file;
static unsigned secrets_mode;

static int fake_read(struct files *files, const char *path, size_t max_bytes, struct buf *out)
{
	(void)files;
	const char *text = strcmp(path, "secrets.yml") == 0 ? secrets
			   : strcmp(path, "sets.yml") == 0  ? set_file
							    : NULL;
	if (!text)
		return ERR_NOT_FOUND;
	return strlen(text) > max_bytes ? ERR_LIMIT : buf_append_text(out, text);
}

static int fake_mode(struct files *files, const char *path, unsigned *mode)
{
	(void)files;
	*mode = secrets_mode;
	return strcmp(path, "secrets.yml") == 0 ? 0 : ERR_NOT_FOUND;
}

static struct files fake = {.read = fake_read, .mode = fake_mode};

static int read_conf(const char *text, struct inventory_conf **made)
{
	struct conf *conf = conf_new();
	*made = NULL;
	e.text[0] = 0;
	int err = conf_read_yaml(conf, "granary.yml", slice_of(text), &e);
	err = err ? err : inventory_conf_read(conf, &fake, made, &e);
	conf_free(conf);
	return err;
}

static struct inventory_conf *made_of(const char *text)
{
	struct inventory_conf *made;
	int err = read_conf(text, &made);
	assert_string_equal(e.text, "");
	assert_int_equal(err, 0);
	return made;
}

static void assert_refused(const char *text, const char *sentence)
{
	struct inventory_conf *made;
	assert_int_not_equal(read_conf(text, &made), 0);
	assert_string_equal(e.text, sentence);
	assert_null(made);
}

static const struct oidset *set_of(const struct inventory_conf *conf, const char *name)
{
	const struct oidset *set = inventory_conf_oidset(conf, slice_of(name));
	assert_non_null(set);
	return set;
}

/* ---- What is shipped ------------------------------------------------------------------------ */

/* By hand from the fixture of E, with ifName in IfRefPoll, and the one for newcomers. */
static const struct {
	const char *name;
	int64_t frequency_ms;
	const char *kind, *correlator, *set_name;
	size_t oids, aggregates;
} shipped[] = {
	{"ALUErrors", 300000, "counters", "IfName", "Errors", 4, 2},
	{"ALUFastPollHC", 30000, "counters", "IfName", "FastPollHC", 3, 2},
	{"ALUIfRefPoll", 60000, "interfaces", "none", "ALUIfRefPoll", 10, 0},
	{"ALUSAPPoll", 11000, "counters", "ALUSAP", "ALUSAPPoll", 16, 3},
	{"ALUSAPRefPoll", 60000, "saps", "none", "ALUSAPRefPoll", 3, 0},
	{"CiscoCPU", 300000, "counters", "CiscoCPU", "CiscoCPU", 1, 0},
	{"Errors", 300000, "counters", "IfName", "Errors", 4, 2},
	{"FastPoll", 30000, "counters", "IfName", "FastPoll", 3, 2},
	{"FastPollHC", 30000, "counters", "IfName", "FastPollHC", 3, 2},
	{"IfRefPoll", 60000, "interfaces", "none", "IfRefPoll", 11, 0},
	{"IfXTable", 30000, "counters", "IfName", "IfXTable", 17, 2},
	{"InfFastPollHC", 30000, "counters", "InfIfName", "InfFastPollHC", 3, 0},
	{"InfIfRefPoll", 60000, "interfaces", "none", "InfIfRefPoll", 3, 0},
	{"JnxCOS", 30000, "counters", "JnxCOS", "JnxCOS", 4, 0},
	{"JnxFirewall", 60000, "counters", "JnxFirewall", "JnxFirewall", 1, 0},
	{"LSPOpStatus", 60000, "lsps", "none", "LSPOpStatus", 3, 0},
	{"SentryOutletRefPoll", 300000, "outlets", "none", "SentryOutletRefPoll", 4, 0},
	{"SentryPoll", 60000, "counters", "Sentry", "SentryPoll", 3, 0},
};

static void all_sets_of_the_document_are_shipped(void **state)
{
	(void)state;
	struct inventory_conf *conf = made_of("");
	assert_int_equal(conf->oidset_count, ARRAY_LEN(shipped));
	for (size_t i = 0; i < ARRAY_LEN(shipped); i++) {
		const struct oidset *set = conf->oidsets[i];
		assert_string_equal(set->name.data, shipped[i].name);
		assert_int_equal(set->frequency_ms, shipped[i].frequency_ms);
		assert_string_equal(oidset_kind_text(set->kind), shipped[i].kind);
		assert_string_equal(set->correlator->name, shipped[i].correlator);
		assert_string_equal(set->set_name.data, shipped[i].set_name);
		assert_int_equal(set->oid_count, shipped[i].oids);
		assert_int_equal(set->aggregate_count, shipped[i].aggregates);
		assert_true(set->shipped);
		assert_non_null(set->queue);
		assert_string_equal(set->queue->name.data, shipped[i].kind);
	}
	inventory_conf_release(conf);
}

static void oids_are_numbers_on_the_wire(void **state)
{
	(void)state;
	struct inventory_conf *conf = made_of("oids: {big: {oid: .2.999.4294967295.0.128, type: "
					      "Counter32}}\n");
	const struct oid_def *in = inventory_conf_oid(conf, SLICE("ifHCInOctets"));
	static const uint8_t in_ber[] = {0x2b, 6, 1, 2, 1, 31, 1, 1, 1, 6};
	assert_int_equal(in->ber.len, sizeof(in_ber));
	assert_memory_equal(in->ber.data, in_ber, sizeof(in_ber));
	assert_int_equal(in->type, OID_COUNTER64);
	assert_true(in->aggregate);
	assert_string_equal(in->endpoint_alias.data, "in");
	/* 1718 = 13 * 128 + 54 */
	static const uint8_t outlet_ber[] = {0x2b, 6, 1, 4, 1, 0x80 | 13, 54, 3, 2, 3, 1, 7};
	const struct oid_def *outlet = inventory_conf_oid(conf, SLICE("outletLoadValue"));
	assert_int_equal(outlet->ber.len, sizeof(outlet_ber));
	assert_memory_equal(outlet->ber.data, outlet_ber, sizeof(outlet_ber));
	/* X.690: 2.999 is 1079 = 8 * 128 + 55. */
	static const uint8_t big_ber[] = {0x88, 0x37, 0x8f, 0xff, 0xff, 0xff, 0x7f, 0, 0x81, 0};
	const struct oid_def *big = inventory_conf_oid(conf, SLICE("big"));
	assert_int_equal(big->ber.len, sizeof(big_ber));
	assert_memory_equal(big->ber.data, big_ber, sizeof(big_ber));
	assert_string_equal(big->oid.data, "2.999.4294967295.0.128");
	const struct oid_def *uptime = inventory_conf_oid(conf, SLICE("sysUpTime"));
	assert_true(uptime->scalar);
	assert_false(uptime->aggregate);
	assert_int_equal(uptime->endpoint_alias.len, 0);
	inventory_conf_release(conf);
}

static void correlators_bring_their_tags_and_oids(void **state)
{
	(void)state;
	struct inventory_conf *conf = made_of("oidsets:\n"
					      "  Own: {frequency: 60s, correlator: GenericOid, "
					      "correlate_oid: ifAlias, oids: [ifHCInOctets], "
					      "tags: [what]}\n"
					      "  Skip: {frequency: 60s, correlator: "
					      "IfNameCorrelator, oids: [ifHCInOctets], "
					      "skip_undescribed: true}\n");
	const struct oidset *set = set_of(conf, "JnxCOS");
	assert_int_equal(set->path_tag_count, 2);
	assert_string_equal(set->path_tags[0].data, "interface");
	assert_string_equal(set->path_tags[1].data, "queue");
	assert_int_equal(set->name_oid_count, 1);
	assert_string_equal(set->name_oids[0]->name.data, "ifName");
	set = set_of(conf, "CiscoCPU");
	assert_int_equal(set->name_oid_count, 2);
	set = set_of(conf, "Own");
	assert_string_equal(set->path_tags[0].data, "what");
	assert_string_equal(set->name_oids[0]->name.data, "ifAlias");
	assert_false(set->shipped);
	set = set_of(conf, "Skip");
	assert_int_equal(set->correlator->kind, CORRELATOR_IF_NAME);
	assert_int_equal(set->name_oid_count, 2);
	assert_string_equal(set->name_oids[1]->name.data, "ifAlias");
	inventory_conf_release(conf);
}

static void own_sets_take_the_place_of_shipped_ones(void **state)
{
	(void)state;
	set_file = "oids: {ifHCInOctets: {oid: 1.3.9, type: Counter64}}\n"
		   "oidsets: {Errors: {frequency: 60s, correlator: IfName, oids: [ifInErrors], "
		   "aggregates: [1d, 5m], ttl: 7d}}\n";
	struct inventory_conf *conf = made_of("snmp: {oidset_files: sets.yml}\n");
	assert_int_equal(conf->oidset_count, ARRAY_LEN(shipped));
	const struct oidset *set = set_of(conf, "Errors");
	assert_int_equal(set->frequency_ms, 60000);
	assert_int_equal(set->aggregates_ms[0], 300000);
	assert_int_equal(set->aggregates_ms[1], 86400000);
	assert_int_equal(set->ttl_ms, 604800000);
	/* It was to be stored as Errors, which is every 5 minutes no longer. */
	assert_string_equal(set_of(conf, "ALUErrors")->set_name.data, "ALUErrors");
	assert_string_equal(set_of(conf, "FastPollHC")->oids[1]->oid.data, "1.3.9");
	inventory_conf_release(conf);
	assert_refused(
		"snmp: {oidset_files: sets.yml}\n"
		"oidsets: {Errors: {frequency: 1s, correlator: IfName, oids: [ifInErrors]}}\n",
		"granary.yml:2: oidsets.Errors: is given twice, first in sets.yml:2");
}

/* ---- What is refused ------------------------------------------------------------------------ */

#define SET(members) "oidsets:\n  A: {" members "}\n"

/* Rates are made of 40 days at most: longer ones were taken, and no rates were there. */
static void an_aggregate_of_400_days_was_taken(void **state)
{
	(void)state;
	assert_refused(SET("frequency: 60s, correlator: Index, oids: [ifMtu], aggregates: [400d]"),
		       "granary.yml:2: oidsets.A.aggregates[0]: '400d' is not in the range of 1s "
		       "to 40d");
	assert_refused(SET("frequency: 60s, correlator: Index, oids: [ifMtu], aggregates: [961h]"),
		       "granary.yml:2: oidsets.A.aggregates[0]: '961h' is not in the range of 1s "
		       "to 40d");
	inventory_conf_release(made_of(
		SET("frequency: 60s, correlator: Index, oids: [ifMtu], aggregates: [40d]")));
}

/* Then no value of it had a series. */
static void one_tag_for_two_parts_of_a_path_was_taken(void **state)
{
	(void)state;
	assert_refused(SET("frequency: 60s, correlator: JnxCOS, oids: [jnxCosIfqQedBytes], tags: "
			   "[a, a]"),
		       "granary.yml:2: oidsets.A.tags[1]: the tag a stands twice");
}

static void bad_oidsets_are_refused(void **state)
{
	(void)state;
	assert_refused(SET("frequency: 60s, correlator: IfNmae, oids: [sysUpTime]"),
		       "granary.yml:2: oidsets.A.correlator: 'IfNmae' is not a correlator; did you "
		       "mean IfName?");
	assert_refused(SET("frequency: 60s, oids: [ifInErrors]"),
		       "granary.yml:2: oidsets.A: an OIDSet of counters needs a correlator, which "
		       "names its rows");
	assert_refused(SET("frequency: 60s, kind: interfaces, correlator: IfName, oids: [ifName]"),
		       "granary.yml:2: oidsets.A.correlator: an OIDSet of interfaces takes no "
		       "correlator");
	assert_refused(SET("frequency: 60s, kind: interfaces, oids: [ifMtu]"),
		       "granary.yml:2: oidsets.A.oids: an OIDSet of interfaces needs ifName or "
		       "ifDescr");
	assert_refused(SET("frequency: 60s, kind: lsps, oids: [ifMtu], aggregates: [1h]"),
		       "granary.yml:2: oidsets.A.aggregates: an OIDSet of lsps has nothing to "
		       "aggregate");
	assert_refused(SET("frequency: 60, correlator: Index, oids: [ifMtu]"),
		       "granary.yml:2: oidsets.A.frequency: '60' is not a duration such as 500ms, "
		       "10s, 5m, 2h or 7d");
	assert_refused(SET("frequency: 999ms, correlator: Index, oids: [ifMtu]"),
		       "granary.yml:2: oidsets.A.frequency: '999ms' is not in the range of 1s to "
		       "1d");
	assert_refused(SET("frequency: 60s, correlator: Index, oids: [ifMtuu]"),
		       "granary.yml:2: oidsets.A.oids[0]: 'ifMtuu' is not an OID that is known by "
		       "name; did you mean ifMtu?");
	assert_refused(SET("frequency: 60s, correlator: Index, oids: [ifMtu, ifType, ifMtu]"),
		       "granary.yml:2: oidsets.A.oids[2]: ifMtu stands twice");
	assert_refused(SET("frequency: 60s, correlator: Index, oids: []"),
		       "granary.yml:2: oidsets.A.oids: takes 1 to 256 names");
	assert_refused(SET("frequency: 60s, correlator: Oid, oids: [sysUpTime, ifMtu]"),
		       "granary.yml:2: oidsets.A.oids: ifMtu is no scalar, and so has no place "
		       "under correlator Oid");
	assert_refused(SET("frequency: 60s, correlator: Index, oids: [ifMtu], aggregates: [1m]"),
		       "granary.yml:2: oidsets.A.aggregates[0]: is not longer than the frequency");
	assert_refused(
		SET("frequency: 60s, correlator: Index, oids: [ifMtu], aggregates: [1h, 60m]"),
		"granary.yml:2: oidsets.A.aggregates[1]: stands twice");
	assert_refused(SET("frequency: 60s, correlator: Index, oids: [ifMtu], set_name: B"),
		       "granary.yml:2: oidsets.A.set_name: 'B' is not an OIDSet");
	assert_refused(SET("frequency: 60s, correlator: Index, oids: [ifMtu], tags: [a, b]"),
		       "granary.yml:2: oidsets.A.tags: correlator Index has paths of 1 parts");
	assert_refused(SET("frequency: 60s, correlator: Index, oids: [ifMtu], tags: [device]"),
		       "granary.yml:2: oidsets.A.tags[0]: every series has a tag device already");
	assert_refused(SET("frequency: 60s, correlator: GenericOid, oids: [ifMtu]"),
		       "granary.yml:2: oidsets.A: correlator GenericOid and correlate_oid go "
		       "together");
	assert_refused(
		SET("frequency: 60s, correlator: Index, oids: [ifMtu], skip_undescribed: yes"),
		"granary.yml:2: oidsets.A.skip_undescribed: the rows of Index are not "
		"interfaces");
	assert_refused(SET("frequency: 60s, correlator: Index"),
		       "granary.yml:2: oidsets.A: needs a frequency and oids");
	assert_refused("oidsets:\n  ' A': {}\n", "granary.yml:2: oidsets. A: a name has 1 to 255 "
						 "bytes, and no blank at its ends");
}

#define STORED_AS(set, members)                                                                    \
	"oidsets:\n  A: {set_name: " set ", " members "}\n  B: {set_name: Errors, frequency: 5m, " \
	"correlator: IfName, oids: [ifInErrors], aggregates: [1h, 1d]}\n"
#define REFUSED_AS(sentence) "granary.yml:2: oidsets.A.set_name: " sentence

/* FastPollHC: every 30 s, IfName, hours and days; its OIDs are sysUpTime and octets of 64 bits. */
static void what_is_stored_as_another_is_like_it(void **state)
{
	(void)state;
	struct inventory_conf *conf =
		made_of(STORED_AS("FastPollHC", "frequency: 30s, correlator: IfName, aggregates: "
						"[1h, 1d], oids: [ifHCInOctets, ifMtu]"));
	assert_ptr_equal(set_of(conf, "A")->stored_as, set_of(conf, "FastPollHC"));
	assert_ptr_equal(set_of(conf, "Errors")->stored_as, set_of(conf, "Errors"));
	inventory_conf_release(conf);

	assert_refused(STORED_AS("FastPollHC", "frequency: 60s, correlator: IfName, aggregates: "
					       "[1h, 1d], oids: [ifHCInOctets]"),
		       REFUSED_AS("A differs from FastPollHC in the frequency"));
	assert_refused(STORED_AS("FastPollHC", "frequency: 30s, correlator: IfName, aggregates: "
					       "[1h], oids: [ifHCInOctets]"),
		       REFUSED_AS("A differs from FastPollHC in the aggregates"));
	assert_refused(STORED_AS("FastPollHC", "frequency: 30s, correlator: Index, tags: [port], "
					       "aggregates: [1h, 1d], oids: [ifHCInOctets]"),
		       REFUSED_AS("A differs from FastPollHC in the tags of its paths"));
	assert_refused(STORED_AS("IfRefPoll", "frequency: 30s, correlator: IfName, "
					      "oids: [ifHCInOctets]"),
		       REFUSED_AS("A differs from IfRefPoll in its persister"));
	assert_refused(STORED_AS("FastPollHC", "frequency: 30s, correlator: IfName, aggregates: "
					       "[1h, 1d], oids: [ifHCInOctets, ifHCInUcastPkts]"),
		       REFUSED_AS("FastPollHC has no ifHCInUcastPkts, of which A makes rates"));
	assert_refused(STORED_AS("B", "frequency: 5m, correlator: IfName, aggregates: [1h, 1d], "
				      "oids: [ifInErrors]"),
		       REFUSED_AS("B is itself stored as Errors"));
}

#define OID(members) "oids:\n  x: {" members "}\n"
#define NO_OID(text)                                                                               \
	"granary.yml:2: oids.x.oid: '" text "' is not an OID such as 1.3.6.1.2.1.2.2.1.10"

static void bad_oids_are_refused(void **state)
{
	(void)state;
	assert_refused(OID("oid: 1.3.6.1.4294967296, type: Counter32"),
		       NO_OID("1.3.6.1.4294967296"));
	assert_refused(OID("oid: 1, type: Counter32"), NO_OID("1"));
	assert_refused(OID("oid: 3.1, type: Counter32"), NO_OID("3.1"));
	assert_refused(OID("oid: 1.40, type: Counter32"), NO_OID("1.40"));
	assert_refused(OID("oid: 1.3., type: Counter32"), NO_OID("1.3."));
	assert_refused(OID("oid: 1..3, type: Counter32"), NO_OID("1..3"));
	assert_refused(OID("oid: ifDescr, type: Counter32"), NO_OID("ifDescr"));
	assert_refused(OID("oid: 1.3.6.1.0, type: Counter32, scalar: true"),
		       "granary.yml:2: oids.x.oid: a scalar is named without the .0 of its "
		       "instance");
	assert_refused(OID("oid: 1.3.6, type: Counter63"),
		       "granary.yml:2: oids.x.type: 'Counter63' is not a type of SMI; did you mean "
		       "Counter64?");
	assert_refused(
		OID("oid: 1.3.6, type: Gauge32, aggregate: true"),
		"granary.yml:2: oids.x: only a Counter32 or Counter64 can be aggregated, not "
		"a Gauge32");
	assert_refused(OID("oid: 1.3.6"), "granary.yml:2: oids.x: needs an oid and a type");
	assert_refused(OID("oid: 1.3.6, typ: Gauge32"),
		       "granary.yml:2: oids.x.typ: is not a known key; did you mean type?");
}

/* Rates are made of 64 OIDs of an OIDSet at most. */
static void counters_of_an_oidset_are_bounded(void **state)
{
	(void)state;
	struct buf text;
	buf_init(&text, 1 << 20);
	for (int rated = 64; rated <= 65; rated++) {
		buf_clear(&text);
		buf_append_text(&text, "oids:\n");
		for (int i = 0; i < rated; i++)
			buf_printf(&text,
				   "  o%d: {oid: 1.3.6.%d, type: Counter64, aggregate: true}\n", i,
				   i + 1);
		buf_append_text(&text,
				"oidsets: {A: {frequency: 60s, correlator: Index, oids: [o0");
		for (int i = 1; i < rated; i++)
			buf_printf(&text, ", o%d", i);
		buf_append_text(&text, "]}}\n");
		buf_append_char(&text, 0);
		if (rated == 64)
			inventory_conf_release(made_of(text.data));
		else
			assert_refused(text.data,
				       "granary.yml:67: oidsets.A.oids[64]: is one more than the "
				       "64 OIDs of an OIDSet that rates are made of");
	}
	buf_release(&text);
}

/* ---- Queues --------------------------------------------------------------------------------- */

#define OTHER_KINDS                                                                                \
	"  i: {persister: interfaces, oidsets: ['*']}\n"                                           \
	"  s: {persister: saps, oidsets: ['*']}\n"                                                 \
	"  l: {persister: lsps, oidsets: ['*']}\n"                                                 \
	"  o: {persister: outlets, oidsets: ['*']}\n"

static void every_oidset_has_one_queue(void **state)
{
	(void)state;
	struct inventory_conf *conf =
		made_of("persist_queue:\n"
			"  rest: {persister: counters, workers: 4, oidsets: ['*']}\n"
			"  fast: {persister: counters, driver: memcached, server: 'h:1', oidsets: "
			"[FastPollHC, Errors]}\n" OTHER_KINDS);
	const struct queue_def *fast = inventory_conf_queue(conf, SLICE("fast"));
	assert_int_equal(fast->oidset_count, 4); /* with those that are stored as these two */
	assert_int_equal(fast->workers, 1);
	assert_int_equal(fast->driver, QUEUE_MEMCACHED);
	assert_string_equal(fast->server.data, "h:1");
	const struct queue_def *rest = inventory_conf_queue(conf, SLICE("rest"));
	assert_int_equal(rest->workers, 4);
	assert_int_equal(rest->driver, QUEUE_LOCAL);
	assert_int_equal(rest->oidset_count, 8); /* of 12 sets of counters */
	assert_ptr_equal(set_of(conf, "FastPollHC")->queue, fast);
	assert_ptr_equal(set_of(conf, "ALUFastPollHC")->queue, fast); /* stored as FastPollHC */
	assert_ptr_equal(set_of(conf, "FastPoll")->queue, rest);
	inventory_conf_release(conf);
	assert_refused("persist_queue:\n"
		       "  fast: {persister: counters, oidsets: [FastPollHC]}\n" OTHER_KINDS,
		       "granary.yml:1: persist_queue: no queue takes the OIDSet IfXTable; name it, "
		       "or give a queue of persister counters the OIDSets \"*\"");
	assert_refused("persist_queue: {a: {persister: counters, oidsets: [ALUErrors]}, "
		       "b: {persister: counters, oidsets: [\"*\"]}, "
		       "c: {persister: interfaces, oidsets: [\"*\"]}, "
		       "d: {persister: saps, oidsets: [\"*\"]}, "
		       "e: {persister: lsps, oidsets: [\"*\"]}, "
		       "f: {persister: outlets, oidsets: [\"*\"]}}\n",
		       "granary.yml:1: persist_queue: ALUErrors is stored as Errors, but the queue "
		       "of one is a and of the other b: it must be the same");
	assert_refused("persist_queue: {a: {persister: counters, oidsets: [Nope]}}\n",
		       "granary.yml:1: persist_queue.a.oidsets[0]: 'Nope' is not an OIDSet");
	assert_refused("persist_queue: {a: {persister: counters, oidsets: [FastPolHC]}}\n",
		       "granary.yml:1: persist_queue.a.oidsets[0]: 'FastPolHC' is not an OIDSet; "
		       "did you mean FastPollHC?");
	assert_refused(
		"persist_queue: {a: {persister: counters, oidsets: [Errors]}, "
		"b: {persister: counters, oidsets: [Errors]}}\n",
		"granary.yml:1: persist_queue.b.oidsets[0]: Errors is in the queue a already");
	assert_refused(
		"persist_queue: {a: {persister: saps, oidsets: [Errors]}}\n",
		"granary.yml:1: persist_queue.a.oidsets[0]: Errors is an OIDSet of counters, "
		"the persister of this queue is saps");
	assert_refused(
		"persist_queue: {a: {persister: counters, workers: 0, oidsets: []}}\n",
		"granary.yml:1: persist_queue.a.workers: '0' is not in the range of 1 to 64");
	assert_refused("persist_queue: {a: {persister: counters, server: 'h:1', oidsets: []}}\n",
		       "granary.yml:1: persist_queue.a.server: only the driver memcached has a "
		       "server");
	assert_refused("persist_queue: {a b: {persister: counters, oidsets: []}}\n",
		       "granary.yml:1: persist_queue.a b: the name of a queue is 1 to 64 letters, "
		       "digits, _, . or -");
}

/* ---- Secrets -------------------------------------------------------------------------------- */

#define WITH_SECRETS "snmp: {secrets_file: secrets.yml}\n"

static void credentials_are_read(void **state)
{
	(void)state;
	secrets_mode = 0600;
	secrets = "lab: {version: 2c, community: public}\n"
		  "old: {version: 1, community: 'a b'}\n"
		  "core: {version: 3, user: granary, auth: SHA-256, auth_password: '12345678', "
		  "priv: AES, priv_password: abcdefgh, context: c}\n"
		  "open: {version: 3, user: u}\n"
		  "less: {version: 3, user: u, auth: MD5, auth_password: abcdefgh, priv: DES, "
		  "priv_password: abcdefgh, level: authNoPriv}\n";
	struct inventory_conf *conf = made_of(WITH_SECRETS);
	assert_int_equal(conf->credentials_count, 6); /* with the shipped one */
	const struct credentials *core = inventory_conf_credentials(conf, SLICE("core"));
	assert_int_equal(core->version, SNMP_V3);
	assert_int_equal(core->level, LEVEL_AUTH_PRIV);
	assert_int_equal(core->auth, USM_AUTH_SHA256);
	assert_int_equal(core->priv, USM_PRIV_AES128);
	assert_string_equal(core->auth_password.data, "12345678");
	assert_string_equal(core->context.data, "c");
	assert_int_equal(inventory_conf_credentials(conf, SLICE("open"))->level,
			 LEVEL_NO_AUTH_NO_PRIV);
	assert_int_equal(inventory_conf_credentials(conf, SLICE("less"))->level,
			 LEVEL_AUTH_NO_PRIV);
	assert_int_equal(inventory_conf_credentials(conf, SLICE("lab"))->version, SNMP_V2C);
	assert_string_equal(inventory_conf_credentials(conf, SLICE("old"))->community.data, "a b");
	assert_null(inventory_conf_credentials(conf, SLICE("none")));
	assert_string_equal(inventory_conf_credentials(conf, SLICE("public"))->community.data,
			    "public");
	inventory_conf_release(conf);
}

static void a_secret_that_others_can_read_is_none(void **state)
{
	(void)state;
	secrets = "lab: {version: 2c, community: public}\n";
	static const unsigned bad[] = {0644, 0604, 0602, 0620, 0601, 0666};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char sentence[200];
		secrets_mode = bad[i];
		snprintf(sentence, sizeof(sentence),
			 "granary.yml:1: snmp.secrets_file: secrets.yml: holds secrets, but others "
			 "than its owner and group may read it, or others than its owner may write "
			 "it (mode %03o); chmod 600 it",
			 bad[i]);
		assert_refused(WITH_SECRETS, sentence);
	}
	secrets_mode = 0640;
	inventory_conf_release(made_of(WITH_SECRETS));
	assert_refused("snmp: {secrets_file: nowhere.yml}\n",
		       "granary.yml:1: snmp.secrets_file: nowhere.yml: not found");
}

static void assert_secret_refused(const char *text, const char *sentence)
{
	secrets_mode = 0600;
	secrets = text;
	assert_refused(WITH_SECRETS, sentence);
}

static void bad_credentials_are_refused_without_repeating_them(void **state)
{
	(void)state;
	assert_secret_refused("a: {community: x}\n",
			      "secrets.yml:1: a: needs a version: 1, 2c or 3");
	assert_secret_refused("a: {version: 2, community: x}\n",
			      "secrets.yml:1: a.version: '2' is not a version of SNMP, which is "
			      "one of 1, 2c, 3");
	assert_secret_refused("a: {version: 2c}\n",
			      "secrets.yml:1: a: versions 1 and 2c need a community");
	assert_secret_refused("a: {version: 2c, community: x, auth: MD5}\n",
			      "secrets.yml:1: a.auth: belongs to version 3");
	assert_secret_refused("a: {version: 3, community: x}\n",
			      "secrets.yml:1: a.community: version 3 has a user instead");
	assert_secret_refused("a: {version: 3}\n", "secrets.yml:1: a: version 3 needs a user");
	assert_secret_refused("a: {version: 3, user: u, auth: MD5}\n",
			      "secrets.yml:1: a: auth and auth_password go together");
	assert_secret_refused("a: {version: 3, user: u, auth: MD5,\n  auth_password: short77}\n",
			      "secrets.yml:2: a.auth_password: a password has at least 8 "
			      "characters");
	assert_secret_refused("a: {version: 3, user: u, auth: SHA-257, auth_password: abcdefgh}\n",
			      "secrets.yml:1: a.auth: 'SHA-257' is not an authentication protocol; "
			      "did you mean SHA-256?");
	assert_secret_refused("a: {version: 3, user: u, priv: AES, priv_password: abcdefgh}\n",
			      "secrets.yml:1: a: priv needs auth");
	assert_secret_refused("a: {version: 3, user: u, level: authPriv}\n",
			      "secrets.yml:1: a.level: authPriv needs auth");
	assert_secret_refused("a: {version: 2c, community: x}\na: {version: 2c, community: y}\n",
			      "secrets.yml:2: a: is given twice, first in line 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sets_of_the_document_are_shipped),
		cmocka_unit_test(oids_are_numbers_on_the_wire),
		cmocka_unit_test(correlators_bring_their_tags_and_oids),
		cmocka_unit_test(own_sets_take_the_place_of_shipped_ones),
		cmocka_unit_test(an_aggregate_of_400_days_was_taken),
		cmocka_unit_test(one_tag_for_two_parts_of_a_path_was_taken),
		cmocka_unit_test(bad_oidsets_are_refused),
		cmocka_unit_test(bad_oids_are_refused),
		cmocka_unit_test(what_is_stored_as_another_is_like_it),
		cmocka_unit_test(every_oidset_has_one_queue),
		cmocka_unit_test(counters_of_an_oidset_are_bounded),
		cmocka_unit_test(credentials_are_read),
		cmocka_unit_test(a_secret_that_others_can_read_is_none),
		cmocka_unit_test(bad_credentials_are_refused_without_repeating_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
