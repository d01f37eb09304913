/* Which addresses are internal: by the registries of IANA for special purposes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "notify/address.h"

static bool is_internal(const char *text)
{
	struct sockaddr_in four = {.sin_family = AF_INET};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
		return address_is_internal((const struct sockaddr *)&four, sizeof(four));
	assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
	return address_is_internal((const struct sockaddr *)&six, sizeof(six));
}

/* The first and the last of each network, where that is not on a byte. */
static void internal_ones(UNUSED void **state)
{
	static const char *const list[] = {"0.0.0.0",
					   "10.0.0.1",
					   "10.255.255.255",
					   "100.64.0.0",
					   "100.127.255.255",
					   "127.0.0.1",
					   "127.255.0.1",
					   "169.254.169.254",
					   "172.16.0.1",
					   "172.31.255.255",
					   "192.0.0.8",
					   "192.0.2.1",
					   "192.88.99.1",
					   "192.168.0.1",
					   "198.18.0.1",
					   "198.19.255.255",
					   "198.51.100.7",
					   "203.0.113.9",
					   "224.0.0.1",
					   "239.255.255.255",
					   "240.0.0.1",
					   "255.255.255.255",
					   "::",
					   "::1",
					   "::ffff:127.0.0.1",
					   "::ffff:10.1.2.3",
					   "64:ff9b::10.1.2.3",
					   "64:ff9b:1::1",
					   "100::1",
					   "2001::1",
					   "2001:1ff:ffff::1",
					   "2001:db8::1",
					   "2002:0a00:0001::1",
					   "2002:7f00:1::",
					   "3fff::1",
					   "3fff:fff::1",
					   "5f00::1",
					   "fc00::1",
					   "fdff::1",
					   "fe80::1",
					   "febf::1",
					   "fec0::1",
					   "ff02::1"};
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (!is_internal(list[i]))
			fail_msg("%s is not internal", list[i]);
}

static void public_ones(UNUSED void **state)
{
	static const char *const list[] = {
		"1.1.1.1",         "8.8.8.8",          "9.255.255.255",     "11.0.0.0",
		"100.63.255.255",  "100.128.0.0",      "126.1.1.1",         "128.0.0.1",
		"169.253.1.1",     "172.15.255.255",   "172.32.0.0",        "192.0.1.1",
		"192.167.1.1",     "198.17.255.255",   "198.20.0.0",        "223.255.255.255",
		"::ffff:8.8.8.8",  "64:ff9b::8.8.8.8", "2002:0808:0808::1", "2001:200::1",
		"2606:4700::1111", "2a00:1450::1",     "4000::1",           "fbff::1"};
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (is_internal(list[i]))
			fail_msg("%s is internal", list[i]);
}

static void others(UNUSED void **state)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct sockaddr_in four = {.sin_family = AF_INET};
	inet_pton(AF_INET, "8.8.8.8", &four.sin_addr);
	assert_true(address_is_internal((const struct sockaddr *)&local, sizeof(local)));
	assert_true(address_is_internal((const struct sockaddr *)&four, sizeof(four) - 1));
}

/* The loopback is there; of the two others (RFC 5737, RFC 3849) no machine has one. */
static void own_ones(UNUSED void **state)
{
	struct sockaddr_in four = {.sin_family = AF_INET};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	inet_pton(AF_INET, "127.0.0.1", &four.sin_addr);
	assert_true(address_is_own((const struct sockaddr *)&four));
	inet_pton(AF_INET, "192.0.2.1", &four.sin_addr);
	assert_false(address_is_own((const struct sockaddr *)&four));
	inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
	assert_false(address_is_own((const struct sockaddr *)&six));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(internal_ones),
					   cmocka_unit_test(public_ones),
					   cmocka_unit_test(own_ones), cmocka_unit_test(others)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
