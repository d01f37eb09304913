/* The times of lines. Expected ms are from Python's datetime, the UTC time beside them; those of
 * zones from its zoneinfo (with fold=0, which is the same choice where clocks are changed). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "wire/calendar.h"
#include "wire/line_time.h"
#include "wire/tzif.h"

#define NEAR_MS INT64_C(1795963800000) /* 2026-11-29 14:50:00 */

struct line_case {
	const char *line;
	int64_t ms;
};

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, 4 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* NULL: the machine has no such file. */
static const struct zone *system_zone(const char *name)
{
	char path[256];
	struct buf bytes;
	struct errbuf e;
	struct zone *zone = arena_alloc(&arena, sizeof(*zone));
	snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", name);
	buf_init(&bytes, TZIF_MAX_BYTES);
	int err = files_real()->read(files_real(), path, TZIF_MAX_BYTES, &bytes);
	if (!err && zone_parse(buf_slice(&bytes), &arena, zone, &e) != 0)
		fail_msg("%s: %s", name, e.text);
	buf_release(&bytes);
	return err ? NULL : zone;
}

/* Berlin's by its rule alone, without any change in the past. */
static const struct zone berlin_rule = {
	.first_offset_s = 3600,
	.has_tail = true,
	.has_daylight = true,
	.standard_s = 3600,
	.daylight_s = 7200,
	.begins = {ZONE_WEEKDAY, 3, 5, 0, 7200},
	.ends = {ZONE_WEEKDAY, 10, 5, 0, 10800},
};

/* -1: none. */
static int64_t find(const char *line, int64_t near_ms, const struct zone *zone)
{
	struct line_time_context context = {.near_ms = near_ms, .zone = zone};
	int64_t ms = -1;
	if (line_time_find(slice_of(line), &context, &ms) != (ms >= 0))
		fail_msg("%s: true without a time, or false with one", line);
	return ms;
}

static void check(const char *line, int64_t near_ms, const struct zone *zone, int64_t expected_ms)
{
	int64_t ms = find(line, near_ms, zone);
	if (ms != expected_ms)
		fail_msg("%s: %lld, not %lld", line, (long long)ms, (long long)expected_ms);
}

static void check_cases(const struct line_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(cases[i].line, NEAR_MS, &zone_utc, cases[i].ms);
}

/* ---- Lines ---------------------------------------------------------------------------------- */

static const struct line_case rfc3339_cases[] = {
	{"2026-11-29T14:49:30Z", INT64_C(1795963770000)},                /* 2026-11-29 14:49:30 */
	{"2026-11-29T14:49:30Z host app: said", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"2026-11-29t14:49:30z", INT64_C(1795963770000)},                /* 2026-11-29 14:49:30 */
	{"2026-11-29T14:49:30.123456Z", INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"2026-11-29T14:49:30.1Z", INT64_C(1795963770100)},      /* 2026-11-29 14:49:30.100 */
	{"2026-11-29T14:49:30.98Z", INT64_C(1795963770980)},     /* 2026-11-29 14:49:30.980 */
	{"2026-11-29T14:49:30.999999999999999999999999999999999999999Z",
	 INT64_C(1795963770999)},                                  /* 2026-11-29 14:49:30.999 */
	{"2026-11-29T16:49:30+02:00", INT64_C(1795963770000)},     /* 2026-11-29 14:49:30 */
	{"2026-11-29T16:49:30+0200 said", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"2026-11-29T16:49:30+02", INT64_C(1795963770000)},        /* 2026-11-29 14:49:30 */
	{"2026-11-29T09:19:30.5-05:30", INT64_C(1795963770500)},   /* 2026-11-29 14:49:30.500 */
	{"2026-11-29T14:49:30+0000 host systemd[1]: Started",
	 INT64_C(1795963770000)},                                      /* 2026-11-29 14:49:30 */
	{"2026-11-30T00:49:30+10:00", INT64_C(1795963770000)},         /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30,123 INFO said", INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"2026-11-29 14:49:30,123 - root - INFO - said",
	 INT64_C(1795963770123)},                              /* 2026-11-29 14:49:30.123 */
	{"2026-11-29 14:49:30", INT64_C(1795963770000)},       /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30, said", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30. Said", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30: said", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30|said", INT64_C(1795963770000)},  /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30 status installed zlib",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"2026/11/29 14:49:30 [error] 12#12: *1 said",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"2026/11/29 14:49:30.123456 main.go:7: said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"2026-11-29 14:49:30.123 UTC [123] LOG:  said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"2026-11-29 14:49:30.123 GMT [123] LOG:  said",
	 INT64_C(1795963770123)},                                    /* 2026-11-29 14:49:30.123 */
	{"2026-11-29 16:49:30 +0200 said", INT64_C(1795963770000)},  /* 2026-11-29 14:49:30 */
	{"2026-11-29 16:49:30 +02:00 said", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30 +0000 UTC said", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"2026-11-29 16:49:30 UTC+0200 said", INT64_C(1795963770000)},  /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30Z", INT64_C(1795963770000)},               /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30 Z", INT64_C(1795963770000)},              /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30 -1 said", INT64_C(1795963770000)},        /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30 -05 said", INT64_C(1795963770000)},       /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30 -12345 said", INT64_C(1795963770000)},    /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30 -0100x said", INT64_C(1795963770000)},    /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30 - said", INT64_C(1795963770000)},         /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30-said", INT64_C(1795963770000)},           /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30CET said", INT64_C(1795963770000)},        /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30 Zebra", INT64_C(1795963770000)},          /* 2026-11-29 14:49:30 */
	{"2026-11-29 14:49:30 UTC2", INT64_C(1795963770000)},           /* 2026-11-29 14:49:30 */
	{"[2026-11-29 14:49:30] production.ERROR: said",
	 INT64_C(1795963770000)},                                    /* 2026-11-29 14:49:30 */
	{"[2026-11-29T14:49:30.123Z] said", INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"[2026-11-29 16:49:30 +0200] [12] [INFO] said",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"2026-11-29T14:49:30.123456789Z stdout F said",
	 INT64_C(1795963770123)},                               /* 2026-11-29 14:49:30.123 */
	{"20261129 14:49:30 said", INT64_C(1795963770000)},     /* 2026-11-29 14:49:30 */
	{"20261129T144930Z said", INT64_C(1795963770000)},      /* 2026-11-29 14:49:30 */
	{"20261129T164930.5+0200", INT64_C(1795963770500)},     /* 2026-11-29 14:49:30.500 */
	{"20261129T144930", INT64_C(1795963770000)},            /* 2026-11-29 14:49:30 */
	{"1970-01-01T00:00:00Z", INT64_C(0)},                   /* 1970-01-01 00:00:00 */
	{"9999-12-31T23:59:59.999Z", INT64_C(253402300799999)}, /* 9999-12-31 23:59:59.999 */
	{"2026-12-31T23:59:60Z", INT64_C(1798761600000)},       /* 2027-01-01 00:00:00 */
	{"2026-11-29T14:49:60.5Z", INT64_C(1795963800500)},     /* 2026-11-29 14:50:00.500 */
	{"2024-02-29T00:00:00Z", INT64_C(1709164800000)},       /* 2024-02-29 00:00:00 */
	{"2000-02-29T00:00:00Z", INT64_C(951782400000)},        /* 2000-02-29 00:00:00 */
};

static const struct line_case day_first_cases[] = {
	{"29 Nov 2026 14:49:30,123 INFO said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"29-Nov-2026 14:49:30.123 queries: info: said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"[29-Nov-2026 14:49:30 UTC] PHP Warning:  said",
	 INT64_C(1795963770000)},                                    /* 2026-11-29 14:49:30 */
	{"29/Nov/2026:14:49:30 +0000", INT64_C(1795963770000)},      /* 2026-11-29 14:49:30 */
	{"01 jan 2026 00:00:00", INT64_C(1767225600000)},            /* 2026-01-01 00:00:00 */
	{"01 FEB 2026 00:00:00", INT64_C(1769904000000)},            /* 2026-02-01 00:00:00 */
	{"01 Mar 2026 00:00:00", INT64_C(1772323200000)},            /* 2026-03-01 00:00:00 */
	{"01 Apr 2026 00:00:00", INT64_C(1775001600000)},            /* 2026-04-01 00:00:00 */
	{"01 May 2026 00:00:00", INT64_C(1777593600000)},            /* 2026-05-01 00:00:00 */
	{"01 Jun 2026 00:00:00", INT64_C(1780272000000)},            /* 2026-06-01 00:00:00 */
	{"01 Jul 2026 00:00:00", INT64_C(1782864000000)},            /* 2026-07-01 00:00:00 */
	{"01 Aug 2026 00:00:00", INT64_C(1785542400000)},            /* 2026-08-01 00:00:00 */
	{"01 Sep 2026 00:00:00", INT64_C(1788220800000)},            /* 2026-09-01 00:00:00 */
	{"01 Oct 2026 00:00:00", INT64_C(1790812800000)},            /* 2026-10-01 00:00:00 */
	{"01 Nov 2026 00:00:00", INT64_C(1793491200000)},            /* 2026-11-01 00:00:00 */
	{"01 Dec 2026 00:00:00", INT64_C(1796083200000)},            /* 2026-12-01 00:00:00 */
	{"Sun, 29 Nov 2026 16:49:30 +0200", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"1234:M 29 Nov 2026 14:49:30.123 * said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"1:C 29 Nov 2026 14:49:30.123 # said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"1234567:S 29 Nov 2026 14:49:30 * said", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
};

static const struct line_case month_first_cases[] = {
	{"Nov 29 14:49:30 host sshd[12]: said", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"Nov  9 14:49:30 host sshd[12]: said", INT64_C(1794235770000)}, /* 2026-11-09 14:49:30 */
	{"Nov 9 14:49:30 host", INT64_C(1794235770000)},                 /* 2026-11-09 14:49:30 */
	{"Nov 09 14:49:30 host", INT64_C(1794235770000)},                /* 2026-11-09 14:49:30 */
	{"Nov 29 14:49:30", INT64_C(1795963770000)},                     /* 2026-11-29 14:49:30 */
	{"Nov  9 14:49:30", INT64_C(1794235770000)},                     /* 2026-11-09 14:49:30 */
	{"Nov 29 14:49:30.123 host said", INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"Nov 29 2026 14:49:30: %ASA-6-302013: said",
	 INT64_C(1795963770000)},                              /* 2026-11-29 14:49:30 */
	{"Nov 29 2025 14:49:30 host", INT64_C(1764427770000)}, /* 2025-11-29 14:49:30 */
	{"Nov 29 14:49:30.123 UTC: %SYS-5-CONFIG_I: said",
	 INT64_C(1795963770123)},                                  /* 2026-11-29 14:49:30.123 */
	{"Nov 29 14:49:30 2025 said", INT64_C(1795963770000)},     /* 2026-11-29 14:49:30 */
	{"Sun Nov 29 14:49:30 2026", INT64_C(1795963770000)},      /* 2026-11-29 14:49:30 */
	{"Sat Nov 29 14:49:30 2025 said", INT64_C(1764427770000)}, /* 2025-11-29 14:49:30 */
	{"Mon Nov  9 14:49:30 2026", INT64_C(1794235770000)},      /* 2026-11-09 14:49:30 */
	{"Sun Nov 29 14:49:30.123456 2026 said",
	 INT64_C(1795963770123)},                                    /* 2026-11-29 14:49:30.123 */
	{"Sun Nov 29 14:49:30 2026 +2500", INT64_C(1795963770000)},  /* 2026-11-29 14:49:30 */
	{"Sun Nov 29 14:49:30 said", INT64_C(1795963770000)},        /* 2026-11-29 14:49:30 */
	{"Sun Nov 29 14:49:30 20250 said", INT64_C(1795963770000)},  /* 2026-11-29 14:49:30 */
	{"Sun Nov 29 14:49:30 2025x said", INT64_C(1795963770000)},  /* 2026-11-29 14:49:30 */
	{"Sat Nov 29 14:49:30 UTC 2025", INT64_C(1764427770000)},    /* 2025-11-29 14:49:30 */
	{"Sat Nov 29 14:49:30 CET 2025", INT64_C(1764427770000)},    /* 2025-11-29 14:49:30 */
	{"Sat Nov 29 14:49:30 ABCDEF 2025", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"Sat Nov 29 2025 16:49:30 GMT+0200 (EET)",
	 INT64_C(1764427770000)},                                   /* 2025-11-29 14:49:30 */
	{"Sat Nov 29 16:49:30 2025 +0200", INT64_C(1764427770000)}, /* 2025-11-29 14:49:30 */
	{"[Sun Nov 29 14:49:30.123456 2026] [core:error] [pid 12] said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"[Sun Nov 29 14:49:30 2026] [error] said",
	 INT64_C(1795963770000)},                                       /* 2026-11-29 14:49:30 */
	{"<13>Nov 29 14:49:30 host said", INT64_C(1795963770000)},      /* 2026-11-29 14:49:30 */
	{"<0>Nov  9 14:49:30 host said", INT64_C(1794235770000)},       /* 2026-11-09 14:49:30 */
	{"<191>Nov 29 14:49:30 host said", INT64_C(1795963770000)},     /* 2026-11-29 14:49:30 */
	{"<13>2026-11-29T14:49:30Z host said", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"<13>1 2026-11-29T16:49:30.123+02:00 host app - - - said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"I1129 14:49:30.123456       1 main.go:12] said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"W1129 14:49:30.123456 1 a.cc:1] said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"E1129 14:49:30.123456 1 a.cc:1] said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"F1129 14:49:30.123456 1 a.cc:1] said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"I20251129 14:49:30.123456 1 a.cc:1] said",
	 INT64_C(1764427770123)},                              /* 2025-11-29 14:49:30.123 */
	{"Wed Nov 25 14:49:30 2026", INT64_C(1795618170000)},  /* 2026-11-25 14:49:30 */
	{"Fri Feb 27 14:49:30 2026", INT64_C(1772203770000)},  /* 2026-02-27 14:49:30 */
	{"Feb 28 14:49:30 host said", INT64_C(1803826170000)}, /* 2027-02-28 14:49:30 */
};

static const struct line_case epoch_cases[] = {
	{"1700000000", INT64_C(1700000000000)},      /* 2023-11-14 22:13:20 */
	{"1700000000 said", INT64_C(1700000000000)}, /* 2023-11-14 22:13:20 */
	{"1700000000.123    456 10.0.0.1 TCP_MISS/200",
	 INT64_C(1700000000123)},                                     /* 2023-11-14 22:13:20.123 */
	{"1700000000.1239", INT64_C(1700000000123)},                  /* 2023-11-14 22:13:20.123 */
	{"1700000000.5,x", INT64_C(1700000000500)},                   /* 2023-11-14 22:13:20.500 */
	{"1700000000. said", INT64_C(1700000000000)},                 /* 2023-11-14 22:13:20 */
	{"1700000000,5", INT64_C(1700000000000)},                     /* 2023-11-14 22:13:20 */
	{"1700000000123", INT64_C(1700000000123)},                    /* 2023-11-14 22:13:20.123 */
	{"1700000000123.9 said", INT64_C(1700000000123)},             /* 2023-11-14 22:13:20.123 */
	{"1700000000123456 said", INT64_C(1700000000123)},            /* 2023-11-14 22:13:20.123 */
	{"1700000000123456789|said", INT64_C(1700000000123)},         /* 2023-11-14 22:13:20.123 */
	{"[1700000000] SERVICE ALERT: said", INT64_C(1700000000000)}, /* 2023-11-14 22:13:20 */
	{"[1700000000.123] said", INT64_C(1700000000123)},            /* 2023-11-14 22:13:20.123 */
	{"1000000000", INT64_C(1000000000000)},                       /* 2001-09-09 01:46:40 */
	{"9999999999", INT64_C(9999999999000)},                       /* 2286-11-20 17:46:39 */
	{"9999999999999999999", INT64_C(9999999999999)},              /* 2286-11-20 17:46:39.999 */
};

static const struct line_case clf_cases[] = {
	{"127.0.0.1 - frank [29/Nov/2026:14:49:30 +0000] \"GET / HTTP/1.0\" 200 23",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"::1 - - [29/Nov/2026:16:49:30 +0200] \"GET / HTTP/1.0\" 200 23",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"host:80 10.0.0.1 - - [29/Nov/2026:09:49:30 -0500] \"GET /",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"10.0.0.1:99 [29/Nov/2026:14:49:30.123] http-in said",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"[pid 12] a[0] [1/2] [32/Nov/2026:14:49:30 +0000] [29/Nov/2026:14:49:30 +0000] \"GET",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"[29/Nov/2026:14:49:30 +0000] 10.0.0.1 \"GET / HTTP/1.0\"",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
};

static const struct line_case json_cases[] = {
	{"{\"time\":\"2026-11-29T14:49:30.123Z\",\"level\":\"info\"}",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"{\"level\":\"info\",\"timestamp\":\"2026-11-29T14:49:30Z\"}",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{\"@timestamp\":\"2026-11-29T14:49:30.123Z\",\"@version\":\"1\"}",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"{\"level\":\"info\",\"ts\":1700000000.1234567,\"msg\":\"said\"}",
	 INT64_C(1700000000123)}, /* 2023-11-14 22:13:20.123 */
	{"{\"level\":30,\"time\":1700000000123,\"pid\":12}",
	 INT64_C(1700000000123)},                                 /* 2023-11-14 22:13:20.123 */
	{"{\"t\":1700000000123456}", INT64_C(1700000000123)},     /* 2023-11-14 22:13:20.123 */
	{"{\"ts\":1700000000123456789}", INT64_C(1700000000123)}, /* 2023-11-14 22:13:20.123 */
	{"{\"ts\":\"1700000000\"}", INT64_C(1700000000000)},      /* 2023-11-14 22:13:20 */
	{"{\"t\":\"2026-11-29T16:49:30+02:00\"}", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{\"date\":\"Sun Nov 29 14:49:30 2026\"}",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{ \"a\" : { \"time\" : \"2001-01-01T00:00:00Z\" } , \"time\" : \"2026-11-29 14:49:30\" }",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{\"a\":[{\"time\":\"2001-01-01T00:00:00Z\"}],\"time\":\"2026-11-29 14:49:30\"}",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{\"a\":\"}\",\"time\":\"2026-11-29 14:49:30\"}",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{\"a\":\"\\\"time\\\":\\\"2001-01-01T00:00:00Z\\\"\",\"time\":\"2026-11-29 14:49:30\"}",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{\"a\":\"\\\\\",\"time\":\"2026-11-29 14:49:30\"}",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{\"a\":\"time\",\"b\":\"2001-01-01T00:00:00Z\",\"ts\":\"2026-11-29 14:49:30\"}",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{\"t\":5,\"time\":\"2026-11-29 14:49:30\"}",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{\"log\":\"2001-01-01T00:00:00Z "
	 "said\\n\",\"stream\":\"stdout\",\"time\":\"2026-11-29T14:49:30.123456789Z\"}",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"{\"time\":\"2026-11-29 14:49:30\\n\"}", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"{\"ts\":1700000000", INT64_C(1700000000000)},                    /* 2023-11-14 22:13:20 */
};

static const struct line_case logfmt_cases[] = {
	{"time=\"2026-11-29T14:49:30Z\" level=info msg=\"said\"",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"time=2026-11-29T14:49:30.123Z level=info",
	 INT64_C(1795963770123)}, /* 2026-11-29 14:49:30.123 */
	{"ts=1700000000.123 caller=a.go:1 msg=said",
	 INT64_C(1700000000123)}, /* 2023-11-14 22:13:20.123 */
	{"t=2026-11-29T16:49:30+0200 lvl=info", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"level=info ts=2026-11-29T14:49:30Z msg=said",
	 INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"level=info msg=\"it \\\"said\\\" ts=1 a=b\" time=\"2026-11-29T14:49:30Z\"",
	 INT64_C(1795963770000)},                                        /* 2026-11-29 14:49:30 */
	{"ts=5 time=2026-11-29T14:49:30Z", INT64_C(1795963770000)},      /* 2026-11-29 14:49:30 */
	{"a=\"\" b= time=2026-11-29T14:49:30Z", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
};

static const struct line_case hdfs_cases[] = {
	{"081109 203615 148 INFO dfs.DataNode: said",
	 INT64_C(1226262975000)},                    /* 2008-11-09 20:36:15 */
	{"261129 144930 1", INT64_C(1795963770000)}, /* 2026-11-29 14:49:30 */
	{"991231 235960 1", INT64_C(4102444800000)}, /* 2100-01-01 00:00:00 */
};

static const char *const none_cases[] = {
	"",
	"x",
	"said nothing at all today",
	"    at org.apache.hadoop.hdfs.server.datanode.DataXceiver.run(DataXceiver.java:84)",
	"Traceback (most recent call last):",
	" 2026-11-29T14:49:30Z",
	"x2026-11-29T14:49:30Z",
	"2026-11-29",
	"2026-11-29T14:49",
	"2026-11-29T14:49Z",
	"2026-11-29T14:49:3",
	"2026-11-29T14:49:300Z",
	"2026-11-29T14:49:3xZ",
	"2026-11-29_14:49:30",
	"2026-11-29  14:49:30",
	"2026-11/29 14:49:30",
	"2026-11-29T14.49.30Z",
	"2026-11-29T144930Z",
	"2026-13-29T14:49:30Z",
	"2026-00-29T14:49:30Z",
	"2026-11-00T14:49:30Z",
	"2026-11-31T14:49:30Z",
	"2026-01-32T14:49:30Z",
	"2026-02-29T14:49:30Z",
	"2100-02-29T14:49:30Z",
	"2026-11-29T24:00:00Z",
	"2026-11-29T14:60:30Z",
	"2026-11-29T14:49:61Z",
	"2026-11-29T14:49:30+24:00",
	"2026-11-29T14:49:30+02:60",
	"2026-11-29T14:49:30+2:00",
	"2026-11-29T14:49:30+02:",
	"2026-11-29T14:49:30+020",
	"2026-11-29T14:49:30+02000",
	"2026-11-29T14:49:30+02:00x",
	"2026-11-29T14:49:30-5",
	"2026-11-29T14:49:30 UTC+5",
	"1969-12-31T23:59:59Z",
	"1969-12-31T23:00:00-05:00",
	"10000-01-01T00:00:00Z",
	"1970-01-01T00:00:00+00:01",
	"0001-01-01T00:00:00Z",
	"-2026-11-29T14:49:30Z",
	"12026-11-29T14:49:30Z",
	"202-611-29T14:49:30Z",
	"2O26-11-29T14:49:30Z",
	"20 6-11-29T14:49:30Z",
	"2026-1 -29T14:49:30Z",
	"202:-11-29T14:49:30Z",
	"2026-11-29T1/:49:30Z",
	"20261129",
	"20261129 144930",
	"20261129T14:49:30",
	"20261329 14:49:30",
	"20260229 14:49:30",
	"2026112 914:49:30",
	"20261129x144930",
	"29 Nov 2026",
	"29 Nov 2026 14:49",
	"29 Nov 2026 14:49:300",
	"29 Nov 26 14:49:30 x",
	"29 Now 2026 14:49:30",
	"31 Nov 2026 14:49:30",
	"00 Nov 2026 14:49:30",
	"29-Nov/2026 14:49:30",
	"29 Nov 2026T14:49:30",
	"9 Nov 2026 14:49:30 ",
	"29 Nov 1969 14:49:30",
	"29.Nov.2026 14:49:30",
	"x9 Nov 2026 14:49:30",
	"Nov 29",
	"Nov 29 14:49 host",
	"Nov 31 14:49:30 host",
	"Nov 0 14:49:30 host",
	"Nov  x 14:49:30 host",
	"November 29 14:49:30",
	"Nov29 14:49:30 host",
	"Nov   9 14:49:30 host",
	"Nov 129 14:49:30 host",
	"Nov 29  14:49:30 host",
	"Now 29 14:49:30 host",
	"Nov 29 24:49:30 host",
	"Nov 29 14:49:3 host",
	"Feb 30 14:49:30 host",
	"Nov 29T14:49:30 host",
	"Nov 29 1969 14:49:30 host",
	"Nov 29 226 14:49:30 host",
	"Nov-29 14:49:30 host",
	"Sun Nov-29 14:49:30 2026",
	"Sun Nov 29 14:49 2026",
	"Sun Nov 29 2026 24:49:30",
	"Sun Nov 29 2026 said so",
	"Nov 29 2026 said so",
	"Sun Now 29 14:49:30 2026",
	"Son Nov 29 14:49:30 2026",
	"Sunday Nov 29 14:49:30",
	"Sun  Nov 29 14:49:30 2026",
	"Sun,Nov 29 14:49:30 2026",
	"Sun Nov 29 14:49:30 1969",
	"Sun Nov 29 14:49:30 0000",
	"[Sun Feb 29 14:49:30.123456 2026] [x",
	"Sun, 29 Nov 2026",
	"<192>Nov 29 14:49:30 host",
	"<>Nov 29 14:49:30 host",
	"<0013>Nov 29 14:49:30 host",
	"<13Nov 29 14:49:30 host",
	"<13:Nov 29 14:49:30 host",
	"<13 2026-11-29T14:49:30Z",
	"< 13>Nov 29 14:49:30",
	"<13> Nov 29 14:49:30",
	"<13>1 - host app - - - said",
	"<13>1 Nov 29 14:49:30 host",
	"<13>2 2026-11-29T14:49:30Z",
	"<13>1  2026-11-29T14:49:30Z",
	"<13>",
	"<13>1 ",
	"<-1>Nov 29 14:49:30 host",
	"1",
	"170000000",
	"17000000000",
	"170000000012",
	"17000000001234",
	"170000000012345",
	"17000000001234567",
	"170000000012345678",
	"17000000001234567890",
	"0700000000",
	"0700000000123",
	"1700000000x",
	"1700000000s said",
	"1700000000.5x",
	"1700000000.5s",
	"1700000000123x",
	"-1700000000",
	"+1700000000",
	" 1700000000",
	"[1700000000x]",
	"[ 1700000000]",
	"1700000000e3",
	"x \"[29/Nov/2026:14:49:30 +0000]\"",
	"a \"b\" [29/Nov/2026:14:49:30 +0000]",
	"x [29/Now/2026:14:49:30 +0000]",
	"x [29/Nov/2026:24:49:30 +0000]",
	"x [30/Feb/2026:14:49:30 +0000]",
	"x [29/Nov/2026]",
	"x [29/11/2026:14:49:30 +0000]",
	"x [29/Nov/2026:14:49:30+9900]x",
	"x [2026-11-29 14:49:30]",
	"x [29 Nov 2026 14:49:30]",
	"x [29-Nov-2026 14:49:30]",
	"x [",
	" x [29",
	"x [29/",
	"x [29/N",
	"x [29/Nov/2026:14:49:3",
	"{}",
	"{\"time\":\"\"}",
	"{\"time\":",
	"{\"time\"",
	"{\"time",
	"{\"time\":null,\"b\":1}",
	"{\"time\":\"yesterday\"}",
	"{\"time\":170000000}",
	"{\"time\":\"2026-11-29\"}",
	"{\"a\":{\"time\":\"2026-11-29T14:49:30Z\"}}",
	"{\"a\":[{\"time\":\"2026-11-29T14:49:30Z\"}]}",
	"{\"times\":\"2026-11-29T14:49:30Z\"}",
	"{\"Time\":\"2026-11-29T14:49:30Z\"}",
	"{\"msg\":\"time:2026-11-29T14:49:30Z\"}",
	"{\"a\":\"\\\"time\\\":\\\"2026-11-29T14:49:30Z\\\"\"}",
	"{\"time\" \"2026-11-29T14:49:30Z\"}",
	"{\"time\"::1700000000}",
	"{\"time\":-1700000000}",
	"{\"ts\":1.7e9,\"a\":12345}",
	"{\"ts\":1.7000000001E9,\"a\":1}",
	"{}{\"time\":\"2026-11-29T14:49:30Z\"}",
	"{\"time\":2026-11-29T14:49:30Z}",
	"{\"a\":\"b\\\",\"time\":\"2026-11-29T14:49:30Z\"}",
	"{\"time\":\" 2026-11-29T14:49:30Z\"}",
	"{\"time\":\"2026-11-29T16:49:30\\u002b02:00\"}",
	"{\"time\":\"2026-02-29T14:49:30Z\"}",
	" time=2026-11-29T14:49:30Z",
	"xtime=2026-11-29T14:49:30Z",
	"time:2026-11-29T14:49:30Z",
	"time=yesterday",
	"time= 2026-11-29T14:49:30Z",
	"said ts=2026-11-29T14:49:30Z",
	"a=b said ts=2026-11-29T14:49:30Z",
	"a=b t=2026-11-29T14:49:30Z",
	"a=b  said=x",
	"a=\"b ts=1700000000",
	"a=\"b ts=1700000000 \"",
	"=b ts=1700000000",
	"a=b,ts=1700000000",
	"level=info msg=said",
	"time=",
	"ts=170000000",
	"type=SYSCALL msg=audit(1700000000.123:45): arch=c000003e",
	"I1129 14:49:30 said something",
	"I1129 14:49:30.x 12345678",
	"I1329 14:49:30.123456 1 a",
	"I1131 14:49:30.123456 1 a",
	"G1129 14:49:30.123456 1 a",
	"i1129 14:49:30.123456 1 a",
	"I1129  14:49:30.123456",
	"I112 14:49:30.123456 1 a",
	"I11290 14:49:30.123456 1 a",
	"I1129 24:49:30.123456 1 a",
	"I1129T14:49:30.123456 1 a",
	"I20261129T14:49:30.123456 1 a",
	"I20260229 14:49:30.123456 1",
	"I2026112 14:49:30.123456 1",
	"1234:M 29 Nov 2026",
	"1234: 29 Nov 2026 14:49:30.123",
	"1234:MM 29 Nov 2026 14:49:30.123",
	":M 29 Nov 2026 14:49:30.123",
	"1234:1 29 Nov 2026 14:49:30.123",
	"1234:M 2026-11-29 14:49:30",
	"1234:M 31 Nov 2026 14:49:30.123 *",
	"1234;M 29 Nov 2026 14:49:30.123",
	"1234:Mx29 Nov 2026 14:49:30.123",
	"081109 203615",
	"081109 203615x",
	"081309 203615 1",
	"081131 203615 1",
	"081100 203615 1",
	"080230 203615 1",
	"081109 243615 1",
	"081109 206015 1",
	"081109 203661 1",
	"0811091 203615 1",
	"081109 2036150 1",
	"08110 203615 1",
	"081109  203615 1",
	"081109 20361 51",
	"081109-203615 1",
	"08l109 203615 1",
};

static const struct {
	const struct line_case *cases;
	size_t count;
} forms[] = {
	{rfc3339_cases, ARRAY_LEN(rfc3339_cases)},
	{day_first_cases, ARRAY_LEN(day_first_cases)},
	{month_first_cases, ARRAY_LEN(month_first_cases)},
	{epoch_cases, ARRAY_LEN(epoch_cases)},
	{clf_cases, ARRAY_LEN(clf_cases)},
	{json_cases, ARRAY_LEN(json_cases)},
	{logfmt_cases, ARRAY_LEN(logfmt_cases)},
	{hdfs_cases, ARRAY_LEN(hdfs_cases)},
};

static void rfc_3339_and_its_relatives(void **state)
{
	(void)state;
	check_cases(rfc3339_cases, ARRAY_LEN(rfc3339_cases));
}

static void the_day_first(void **state)
{
	(void)state;
	check_cases(day_first_cases, ARRAY_LEN(day_first_cases));
}

static void the_month_first(void **state)
{
	(void)state;
	check_cases(month_first_cases, ARRAY_LEN(month_first_cases));
}

static void seconds_ms_us_and_ns(void **state)
{
	(void)state;
	check_cases(epoch_cases, ARRAY_LEN(epoch_cases));
}

static void common_log_format(void **state)
{
	(void)state;
	check_cases(clf_cases, ARRAY_LEN(clf_cases));
}

static void keys_of_json(void **state)
{
	(void)state;
	check_cases(json_cases, ARRAY_LEN(json_cases));
}

static void keys_of_logfmt(void **state)
{
	(void)state;
	check_cases(logfmt_cases, ARRAY_LEN(logfmt_cases));
}

static void six_digits_twice(void **state)
{
	(void)state;
	check_cases(hdfs_cases, ARRAY_LEN(hdfs_cases));
}

static void what_says_no_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(none_cases); i++)
		check(none_cases[i], NEAR_MS, &zone_utc, -1);
}

/* `before`, so many letters, `behind`. */
static int64_t find_behind(const char *before, size_t letters, const char *behind)
{
	char line[2048], fill[1500];
	memset(fill, 'x', sizeof(fill));
	snprintf(line, sizeof(line), "%s%.*s%s", before, (int)letters, fill, behind);
	return find(line, NEAR_MS, &zone_utc);
}

static void places_have_limits(void **state)
{
	(void)state;
	const char *clf = "[29/Nov/2026:14:49:30 +0000]", *json = "\",\"ts\":1700000000}",
		   *logfmt = " ts=1700000000";
	/* The bracket is byte 511, counted from 0, and 512. */
	assert_int_equal(find_behind("", 511, clf), NEAR_MS - 30000);
	assert_int_equal(find_behind("", 512, clf), -1);
	/* The key's closing quote is byte 1023, and 1024. */
	assert_int_equal(find_behind("{\"a\":\"", 1012, json), 1700000000000);
	assert_int_equal(find_behind("{\"a\":\"", 1013, json), -1);
	/* The key begins at byte 255, and 256. */
	assert_int_equal(find_behind("a=", 252, logfmt), 1700000000000);
	assert_int_equal(find_behind("a=", 253, logfmt), -1);
	assert_int_equal(find_behind("a=", 252, " time=1700000000"), 1700000000000);
	assert_int_equal(find_behind("a=\"", 250, "\" time=\"1700000000\""), 1700000000000);
	assert_int_equal(find_behind("a=\"", 251, "\" time=\"1700000000\""), -1);
	assert_int_equal(find_behind("a=b ", 1000, "=c ts=1700000000"), -1);
}

static void binary_junk_says_no_time(void **state)
{
	(void)state;
	struct random random;
	random_init(&random, 1126);
	struct line_time_context context = {.near_ms = NEAR_MS, .zone = &zone_utc};
	for (int i = 0; i < 20000; i++) {
		char bytes[64];
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)random_below(&random, 256);
		int64_t ms;
		assert_false(line_time_find((struct slice){bytes, sizeof(bytes)}, &context, &ms));
	}
}

/* ---- Years and zones ------------------------------------------------------------------------ */

static void the_nearest_year(void **state)
{
	(void)state;
	static const struct {
		int64_t near_ms;
		const char *line;
		int64_t ms;
	} cases[] = {
		/* 2027-01-01 00:00:10: 2026-12-31 23:59:59 */
		{INT64_C(1798761610000), "Dec 31 23:59:59", INT64_C(1798761599000)},
		/* 2026-12-31 23:59:50: 2027-01-01 00:00:01 */
		{INT64_C(1798761590000), "Jan  1 00:00:01", INT64_C(1798761601000)},
		/* 2026-12-31 23:59:50: 2027-01-01 00:00:01 */
		{INT64_C(1798761590000), "I0101 00:00:01.000000 1 a.cc:1] said",
		 INT64_C(1798761601000)},
		/* 2027-01-01 00:00:10: 2027-01-01 00:00:00 */
		{INT64_C(1798761610000), "Thu Dec 31 23:59:60 said", INT64_C(1798761600000)},
		/* 2026-07-01 00:00:00: 2026-01-01 00:00:00 */
		{INT64_C(1782864000000), "Jan  1 00:00:00", INT64_C(1767225600000)},
		/* 2026-07-01 00:00:00: 2025-12-31 00:00:00 */
		{INT64_C(1782864000000), "Dec 31 00:00:00", INT64_C(1767139200000)},
		/* 2026-07-02 12:00:00: 2026-01-01 00:00:00 */
		{INT64_C(1782993600000), "Jan  1 00:00:00", INT64_C(1767225600000)},
		/* 2026-07-02 12:00:01: 2027-01-01 00:00:00 */
		{INT64_C(1782993601000), "Jan  1 00:00:00", INT64_C(1798761600000)},
		/* 2028-02-29 00:00:00: 2028-02-29 12:00:00 */
		{INT64_C(1835395200000), "Feb 29 12:00:00", INT64_C(1835438400000)},
		/* 2026-11-29 14:50:00: 2028-02-29 14:49:30 */
		{INT64_C(1795963800000), "Feb 29 14:49:30", INT64_C(1835448570000)},
		/* 2026-01-15 00:00:00: 2024-02-29 00:00:00 */
		{INT64_C(1768435200000), "Feb 29 00:00:00", INT64_C(1709164800000)},
		/* 2100-02-28 00:00:00: 2096-02-29 00:00:00 */
		{INT64_C(4107456000000), "Feb 29 00:00:00", INT64_C(3981312000000)},
		/* 2100-03-01 00:00:00: 2104-02-29 00:00:00 */
		{INT64_C(4107542400000), "Feb 29 00:00:00", INT64_C(4233686400000)},
		/* 1970-01-01 00:00:00: 1970-12-31 23:59:59 */
		{INT64_C(0), "Dec 31 23:59:59", INT64_C(31535999000)},
		/* 1970-01-01 00:00:00: 1972-02-29 00:00:00 */
		{INT64_C(0), "Feb 29 00:00:00", INT64_C(68169600000)},
		/* 9999-12-31 23:59:59: 9999-01-01 00:00:00 */
		{INT64_C(253402300799000), "Jan  1 00:00:00", INT64_C(253370764800000)},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(cases[i].line, cases[i].near_ms, &zone_utc, cases[i].ms);
	check("Jan  1 00:00:00", INT64_MIN, &zone_utc, 0);
	/* 9999-12-31 */
	check("Dec 31 00:00:00", INT64_MAX, &zone_utc, INT64_C(253402214400000));
}

/* The first of all years of which none is nearer, for any date, received at any time and within
 * three days of the turn of a year. */
static void the_nearest_of_all_years(void **state)
{
	(void)state;
	const char *months = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const int64_t day_ms = 86400000;
	struct random random;
	random_init(&random, 1231);
	for (int i = 0; i < 20000; i++) {
		int64_t near_ms = (int64_t)random_below(&random, 140 * 365 * (uint64_t)day_ms);
		struct date turn = {1971 + (int64_t)random_below(&random, 140), 1, 1};
		if (i % 2)
			near_ms = days_of_date(turn) * day_ms - 3 * day_ms +
				  (int64_t)random_below(&random, 6 * (uint64_t)day_ms);
		int month = 1 + (int)random_below(&random, 12);
		int day = i % 10 == 0 && month == 2 ? 29 : 1 + (int)random_below(&random, 28);
		int64_t best_ms = INT64_MAX, expected_ms = -1;
		for (int year = 1970; year < 2130; year++) {
			int64_t ms = days_of_date((struct date){year, month, day}) * day_ms;
			if ((day == 29 && !leap_year(year)) || llabs(ms - near_ms) >= best_ms)
				continue;
			best_ms = llabs(ms - near_ms);
			expected_ms = ms;
		}
		char line[32];
		snprintf(line, sizeof(line), "%.3s %2d 00:00:00", months + 3 * (month - 1), day);
		check(line, near_ms, &zone_utc, expected_ms);
	}
}

/* At 2026-12-31 23:30:00 UTC the clocks of Berlin show 2027. */
static void the_year_of_the_zone(void **state)
{
	(void)state;
	const int64_t near_ms = INT64_C(1798759800000);
	check("Jan  1 00:29:59", near_ms, &berlin_rule, near_ms - 1000);
	check("Dec 31 23:59:59", near_ms, &berlin_rule, near_ms - 1801000);
	/* The tie of 2026-07-02 12:00 lies an hour earlier by UTC; in summer the clocks do not
	 * matter. */
	check("Jan  1 00:00:00", INT64_C(1782990000000), &berlin_rule, INT64_C(1767222000000));
	check("Jan  1 00:00:00", INT64_C(1782990001000), &berlin_rule, INT64_C(1798758000000));
}

static const struct zone_case {
	const char *zone, *line;
	int64_t ms;
} zone_cases[] = {
	{"Europe/Berlin", "2026-07-01 12:00:00", INT64_C(1782900000000)}, /* 2026-07-01 10:00:00 */
	{"Europe/Berlin", "2026-01-15 12:00:00", INT64_C(1768474800000)}, /* 2026-01-15 11:00:00 */
	{"Europe/Berlin", "2026-03-29 01:59:59", INT64_C(1774745999000)}, /* 2026-03-29 00:59:59 */
	{"Europe/Berlin", "2026-03-29 02:00:00", INT64_C(1774746000000)}, /* 2026-03-29 01:00:00 */
	{"Europe/Berlin", "2026-03-29 02:30:00", INT64_C(1774747800000)}, /* 2026-03-29 01:30:00 */
	{"Europe/Berlin", "2026-03-29 02:59:59", INT64_C(1774749599000)}, /* 2026-03-29 01:59:59 */
	{"Europe/Berlin", "2026-03-29 03:00:00", INT64_C(1774746000000)}, /* 2026-03-29 01:00:00 */
	{"Europe/Berlin", "2026-10-25 01:59:59", INT64_C(1792886399000)}, /* 2026-10-24 23:59:59 */
	{"Europe/Berlin", "2026-10-25 02:00:00", INT64_C(1792886400000)}, /* 2026-10-25 00:00:00 */
	{"Europe/Berlin", "2026-10-25 02:59:59", INT64_C(1792889999000)}, /* 2026-10-25 00:59:59 */
	{"Europe/Berlin", "2026-10-25 03:00:00", INT64_C(1792893600000)}, /* 2026-10-25 02:00:00 */
	{"Europe/Berlin", "1970-06-01 12:00:00", INT64_C(13086000000)},   /* 1970-06-01 11:00:00 */
	{"Europe/Berlin", "1980-04-06 02:30:00", INT64_C(323832600000)},  /* 1980-04-06 01:30:00 */
	{"Europe/Berlin", "2040-03-25 01:59:59", INT64_C(2216249999000)}, /* 2040-03-25 00:59:59 */
	{"Europe/Berlin", "2040-03-25 02:30:00", INT64_C(2216251800000)}, /* 2040-03-25 01:30:00 */
	{"Europe/Berlin", "2040-03-25 03:00:00", INT64_C(2216250000000)}, /* 2040-03-25 01:00:00 */
	{"Europe/Berlin", "2040-07-01 12:00:00", INT64_C(2224749600000)}, /* 2040-07-01 10:00:00 */
	{"Europe/Berlin", "2040-10-28 02:30:00", INT64_C(2234997000000)}, /* 2040-10-28 00:30:00 */
	{"Europe/Berlin", "2040-10-28 03:00:00", INT64_C(2235002400000)}, /* 2040-10-28 02:00:00 */
	{"Europe/Berlin", "2040-12-01 12:00:00", INT64_C(2237972400000)}, /* 2040-12-01 11:00:00 */
	{"America/New_York", "2026-03-08 02:30:00",
	 INT64_C(1772955000000)}, /* 2026-03-08 07:30:00 */
	{"America/New_York", "2026-11-01 00:59:59",
	 INT64_C(1793509199000)}, /* 2026-11-01 04:59:59 */
	{"America/New_York", "2026-11-01 01:30:00",
	 INT64_C(1793511000000)}, /* 2026-11-01 05:30:00 */
	{"America/New_York", "2026-11-01 02:00:00",
	 INT64_C(1793516400000)}, /* 2026-11-01 07:00:00 */
	{"America/New_York", "2026-12-31 23:59:59",
	 INT64_C(1798779599000)}, /* 2027-01-01 04:59:59 */
	{"Australia/Lord_Howe", "2026-04-05 01:29:59",
	 INT64_C(1775312999000)}, /* 2026-04-04 14:29:59 */
	{"Australia/Lord_Howe", "2026-04-05 01:30:00",
	 INT64_C(1775313000000)}, /* 2026-04-04 14:30:00 */
	{"Australia/Lord_Howe", "2026-04-05 02:00:00",
	 INT64_C(1775316600000)}, /* 2026-04-04 15:30:00 */
	{"Australia/Lord_Howe", "2026-10-04 02:15:00",
	 INT64_C(1791042300000)}, /* 2026-10-03 15:45:00 */
	{"Australia/Lord_Howe", "2026-10-04 02:30:00",
	 INT64_C(1791041400000)},                                        /* 2026-10-03 15:30:00 */
	{"Pacific/Apia", "2011-12-29 23:59:59", INT64_C(1325239199000)}, /* 2011-12-30 09:59:59 */
	{"Pacific/Apia", "2011-12-30 12:00:00", INT64_C(1325282400000)}, /* 2011-12-30 22:00:00 */
	{"Pacific/Apia", "2011-12-31 00:00:00", INT64_C(1325239200000)}, /* 2011-12-30 10:00:00 */
};

static void times_of_a_zone(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(zone_cases); i++) {
		const struct zone *zone = system_zone(zone_cases[i].zone);
		if (zone)
			check(zone_cases[i].line, NEAR_MS, zone, zone_cases[i].ms);
	}
}

/* Without the machine's files: the same from the rule, of years from 1996 on. */
static void times_of_a_rule(void **state)
{
	(void)state;
	size_t checked = 0;
	for (size_t i = 0; i < ARRAY_LEN(zone_cases); i++) {
		const struct zone_case *c = &zone_cases[i];
		if (strcmp(c->zone, "Europe/Berlin") != 0 || c->line[0] != '2')
			continue;
		check(c->line, NEAR_MS, &berlin_rule, c->ms);
		checked++;
	}
	assert_true(checked > 15);
}

static void an_offset_needs_no_zone(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"2026-11-29T14:49:30Z",
		"2026-11-29 14:49:30 UTC [1]",
		"1795963770",
		"2026-11-29 15:49:30+0100",
		"2026-11-29T14:49:30z",
		"Nov 29 14:49:30 UTC: said",
		"x - - [29/Nov/2026:14:49:30 +0000]",
	};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		check(lines[i], NEAR_MS, &berlin_rule, NEAR_MS - 30000);
	/* These only begin like the names of zones. */
	check("2026-11-29 15:49:30 Zebra", NEAR_MS, &berlin_rule, NEAR_MS - 30000);
	check("2026-11-29 15:49:30 UTC2", NEAR_MS, &berlin_rule, NEAR_MS - 30000);
	/* A host may be named so. */
	check("Nov 29 15:49:30 z sshd[1]: said", NEAR_MS, &berlin_rule, NEAR_MS - 30000);
	/* CET is not known, so it is the zone's time; it would have been 14:49:30 UTC. */
	check("2026-07-29 14:49:30 CET", NEAR_MS, &berlin_rule, INT64_C(1785329370000));
}

/* ---- What was read before ------------------------------------------------------------------- */

enum { LINES_MAX = 1000 };

static size_t all_lines(const char *lines[LINES_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		for (size_t k = 0; k < forms[i].count; k++)
			lines[count++] = forms[i].cases[k].line;
	for (size_t i = 0; i < ARRAY_LEN(none_cases); i++)
		lines[count++] = none_cases[i];
	for (size_t i = 0; i < ARRAY_LEN(zone_cases); i++)
		lines[count++] = zone_cases[i].line;
	assert_true(count <= LINES_MAX);
	return count;
}

static void check_as_fresh(struct slice line, struct line_time_context *used)
{
	int64_t ms = -1, fresh_ms = -1;
	struct line_time_context fresh = {.near_ms = used->near_ms, .zone = used->zone};
	bool found = line_time_find(line, used, &ms);
	if (line_time_find(line, &fresh, &fresh_ms) != found || ms != fresh_ms)
		fail_msg("%.*s: %lld, but %lld in a fresh context", (int)line.len, line.data,
			 (long long)ms, (long long)fresh_ms);
}

static void any_order_gives_the_same(void **state)
{
	(void)state;
	const char *lines[LINES_MAX];
	size_t count = all_lines(lines);
	struct random random;
	random_init(&random, 29);
	const struct zone *zones[] = {&zone_utc, &berlin_rule, system_zone("Europe/Berlin"),
				      system_zone("Pacific/Apia")};
	struct line_time_context used = {.near_ms = NEAR_MS, .zone = &berlin_rule};
	for (int i = 0; i < 200000; i++) {
		if (random_below(&random, 50) == 0) {
			const struct zone *zone = zones[random_below(&random, ARRAY_LEN(zones))];
			used.zone = zone ? zone : &zone_utc;
			used.near_ms = (int64_t)random_below(&random, UINT64_C(2000000000000));
		}
		check_as_fresh(slice_of(lines[random_below(&random, count)]), &used);
	}
}

/* Around the changes of clocks, a step of 10 minutes, in any order. */
static void any_order_of_local_times_gives_the_same(void **state)
{
	(void)state;
	static const char *const days[] = {"2026-03-28", "2026-03-29", "2026-03-30",
					   "2026-10-24", "2026-10-25", "2026-10-26",
					   "2011-12-29", "2011-12-31", "2040-03-25"};
	const struct zone *zones[] = {&berlin_rule, system_zone("Europe/Berlin"),
				      system_zone("Pacific/Apia")};
	struct random random;
	random_init(&random, 25);
	for (size_t z = 0; z < ARRAY_LEN(zones); z++) {
		struct line_time_context used = {.near_ms = NEAR_MS, .zone = zones[z]};
		for (int i = 0; zones[z] && i < 20000; i++) {
			char line[64];
			snprintf(line, sizeof(line), "%s %02d:%d0:00",
				 days[random_below(&random, ARRAY_LEN(days))],
				 (int)random_below(&random, 24), (int)random_below(&random, 6));
			check_as_fresh(slice_of(line), &used);
		}
	}
}

/* Each beginning of each line, in memory that ends there: the sanitizer sees a byte too far, and
 * without it the bytes behind would change the result. */
static void nothing_behind_the_end_is_read(void **state)
{
	(void)state;
	const char *lines[LINES_MAX];
	size_t count = all_lines(lines);
	for (size_t i = 0; i < count; i++) {
		for (size_t len = 1; len <= strlen(lines[i]); len++) {
			char *bytes = mem_alloc(len);
			memcpy(bytes, lines[i], len);
			struct line_time_context context = {.near_ms = NEAR_MS, .zone = &zone_utc};
			int64_t ms = -1, cut_ms = -1;
			bool found = line_time_find((struct slice){bytes, len}, &context, &ms);
			assert_int_equal(
				line_time_find((struct slice){lines[i], len}, &context, &cut_ms),
				found);
			assert_int_equal(ms, cut_ms);
			mem_free(bytes);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rfc_3339_and_its_relatives),
		cmocka_unit_test(the_day_first),
		cmocka_unit_test(the_month_first),
		cmocka_unit_test(seconds_ms_us_and_ns),
		cmocka_unit_test(common_log_format),
		cmocka_unit_test(keys_of_json),
		cmocka_unit_test(keys_of_logfmt),
		cmocka_unit_test(six_digits_twice),
		cmocka_unit_test(what_says_no_time),
		cmocka_unit_test(places_have_limits),
		cmocka_unit_test(binary_junk_says_no_time),
		cmocka_unit_test(the_nearest_year),
		cmocka_unit_test(the_nearest_of_all_years),
		cmocka_unit_test(the_year_of_the_zone),
		cmocka_unit_test(times_of_a_zone),
		cmocka_unit_test(times_of_a_rule),
		cmocka_unit_test(an_offset_needs_no_zone),
		cmocka_unit_test(any_order_gives_the_same),
		cmocka_unit_test(any_order_of_local_times_gives_the_same),
		cmocka_unit_test(nothing_behind_the_end_is_read),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
