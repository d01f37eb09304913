/* Where HTTP is served: what the option `listen` may say, and who may not be listened to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/buf.h"
#include "cmd/serve_addresses.h"
#include "conf/conf.h"
#include "http/http.h"
#include "tls_files.h"

static struct errbuf e;
static struct serve_addresses addresses;

/* The configuration, which `addresses` point into. */
static struct conf *read_text(const char *text, const char *preset, int expected)
{
	struct conf *conf = conf_new();
	e.text[0] = 0;
	assert_int_equal(conf_read_yaml(conf, "granary.yml", slice_of(text), &e), 0);
	assert_int_equal(serve_addresses_read(conf, preset, &addresses, &e), expected);
	return conf;
}

static void assert_refused(const char *text, const char *sentence)
{
	struct conf *conf = read_text(text, NULL, ERR_INVALID);
	assert_non_null(strstr(e.text, sentence));
	conf_free(conf);
}

static void assert_one(const char *text, const char *preset, const char *printed)
{
	struct conf *conf = read_text(text, preset, 0);
	struct buf out;
	buf_init(&out, SERVE_ADDRESSES_TEXT_BYTES);
	serve_addresses_print(&addresses, &out);
	assert_int_equal(buf_append_char(&out, 0), 0);
	assert_string_equal(out.data, printed);
	buf_release(&out);
	conf_free(conf);
}

static void a_list_of_addresses_is_read(UNUSED void **state)
{
	assert_one("", NULL, "http://127.0.0.1:8470/");
	assert_one("", "127.0.0.1:1", "http://127.0.0.1:1/");
	assert_one("listen: '[::1]:2'", "127.0.0.1:1", "http://[::1]:2/");
	assert_one("listen: [localhost:1, 'unix:a b', plain:192.0.2.1:3, 'plain:[::]:4']", NULL,
		   "http://127.0.0.1:1/, unix:a b, http://192.0.2.1:3/, http://[::]:4/");
	assert_one("listen: 127.0.0.1:1,127.0.0.2:0\n", NULL,
		   "http://127.0.0.1:1/, http://127.0.0.2:0/");
}

static void what_is_no_address_is_refused(UNUSED void **state)
{
	char text[200];
	assert_refused("data: x\nlisten: 127.0.0.1\n",
		       "granary.yml:2: listen: address '127.0.0.1' has no port");
	assert_refused("listen:\n - 127.0.0.1:1\n - example.org:80\n",
		       "granary.yml:3: listen: address 'example.org:80'");
	assert_refused("listen: tls:127.0.0.1\n", "has no port");
	assert_refused("listen: http://127.0.0.1:1\n", "'http://127.0.0.1:1'");
	assert_refused("listen: plain:tls:127.0.0.1:1\n", "'tls:127.0.0.1:1'");
	assert_refused("listen: 'unix:'\n", "names no path");
	assert_refused("listen: []\n", "granary.yml:1: listen: names no address");
	assert_refused("listen: [127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3, 127.0.0.1:4, 127.0.0.1:5, "
		       "127.0.0.1:6, 127.0.0.1:7, 127.0.0.1:8, 127.0.0.1:9]",
		       "more than 8 addresses");
	snprintf(text, sizeof(text), "listen: unix:/%0*d\n", LOOP_PATH_MAX_BYTES - 1, 0);
	assert_refused(text, "at most 107 bytes");
	snprintf(text, sizeof(text), "listen: unix:/%0*d\n", LOOP_PATH_MAX_BYTES - 2, 0);
	conf_free(read_text(text, NULL, 0));
}

static void beyond_loopback_it_is_encrypted_or_said_so(UNUSED void **state)
{
	assert_refused("listen: [127.0.0.1:1, '0.0.0.0:8470']\n",
		       "granary.yml:1: listen: 0.0.0.0:8470 is reached from other machines");
	assert_refused("listen: 192.0.2.1:1\n", "tls:192.0.2.1:1 encrypts it");
	assert_refused("listen: '[::]:1'\n", "plain:[::]:1 does not");
	assert_refused("listen: '[::ffff:127.0.0.1]:1'\n", "is reached from other machines");
}

static void tls_needs_a_certificate_and_its_key(UNUSED void **state)
{
	assert_refused("listen: tls:127.0.0.1:1\n",
		       "granary.yml:1: listen: tls.certificate_file is not given");
	assert_refused("listen: tls:127.0.0.1:1\ntls.certificate_file: a.pem\n",
		       "granary.yml:1: listen: tls.key_file is not given");
	assert_refused("listen: tls:127.0.0.1:1\ntls.certificate_file: /nowhere\n"
		       "tls.key_file: b\n",
		       "granary.yml:2: tls.certificate_file: /nowhere");
}

static void what_is_wrong_with_the_key_is_said_of_its_option(UNUSED void **state)
{
	struct tls_files files;
	char text[500];
	tls_files_make(&files);
	snprintf(text, sizeof(text),
		 "listen: tls:127.0.0.1:1\ntls.certificate_file: %s\ntls.key_file: /nowhere\n",
		 files.certificate);
	assert_refused(text, "granary.yml:3: tls.key_file: /nowhere");
	tls_files_remove(&files);
}

static void nobody_is_asked_from_elsewhere_without_a_credential(UNUSED void **state)
{
	struct conf *conf = read_text("listen: [127.0.0.1:0, plain:0.0.0.0:0]", NULL, 0);
	assert_int_equal(serve_addresses_check_reach(&addresses, conf, "nobody is known", &e),
			 ERR_INVALID);
	assert_string_equal(e.text, "granary.yml:1: listen: 0.0.0.0:0 is reached from other "
				    "machines, but nobody is known");
	conf_free(conf);
}

static void networks_are_read(UNUSED void **state)
{
	struct conf *conf = conf_new();
	struct loop_networks networks;
	e.text[0] = 0;
	assert_int_equal(conf_read_yaml(conf, "granary.yml",
					SLICE("line_tcp.networks: [192.0.2.0/24, '2001:db8::1']\n"
					      "opentsdb:\n  networks:\n   - 10.0.0.0/8\n"
					      "   - 10.0.0.1/8\n"),
					&e),
			 0);
	assert_int_equal(serve_networks_read(conf, CONF_ID_line_tcp_networks, &networks, &e), 0);
	assert_int_equal(networks.count, 2);
	assert_int_equal(networks.list[0].bits, 24);
	assert_int_equal(networks.list[1].bits, 128);
	assert_int_equal(serve_networks_read(conf, CONF_ID_line_udp_networks, &networks, &e), 0);
	assert_int_equal(networks.count, 0);
	assert_int_equal(serve_networks_read(conf, CONF_ID_opentsdb_networks, &networks, &e),
			 ERR_INVALID);
	assert_non_null(strstr(e.text, "granary.yml:5: opentsdb.networks: '10.0.0.1/8'"));
	conf_free(conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_of_addresses_is_read),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(beyond_loopback_it_is_encrypted_or_said_so),
		cmocka_unit_test(tls_needs_a_certificate_and_its_key),
		cmocka_unit_test(what_is_wrong_with_the_key_is_said_of_its_option),
		cmocka_unit_test(nobody_is_asked_from_elsewhere_without_a_credential),
		cmocka_unit_test(networks_are_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
