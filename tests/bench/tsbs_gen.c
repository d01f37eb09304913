/* Line protocol in the shape of the TSBS `cpu-only` use case: one measurement,
 * 10 tags, 10 integer fields that walk at random in [0,100] by steps of N(0,1), rows by time, then
 * host. The same options give the same bytes.
 *
 *   tsbs_gen --hosts 1000 --points 2160 > cpu.lp
 *
 * --shape gauges writes 10 float fields instead, of 0 to 3 decimals and two of full precision, so
 * that a codec which lives on small integers has nothing to live on.
 *
 * It shares the machine with what it feeds: tags are rendered once, numbers come from tables. */
#include <getopt.h>
#include <math.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"

enum {
	FIELDS = 10,
	NORMALS = 1 << 16, /* quantiles of N(0,1), so that 16 random bits are one draw */
	INTEGER_MAX = 100,
	FIELD_TEXT_MAX_BYTES = 40,
	OUT_BYTES = 1 << 20,
};

enum shape { SHAPE_CPU, SHAPE_GAUGES };

struct options {
	enum shape shape;
	size_t hosts, points;
	uint64_t seed;
	int64_t start_s, interval_s;
};

struct generator {
	struct options options;
	struct random random;
	uint64_t random_bits; /* unused bits of the last draw */
	unsigned random_left;
	float *normals;
	double *walks;    /* by host, then field */
	struct buf tags;  /* `cpu,hostname=...` of all hosts */
	size_t *tags_end; /* by host */
	struct buf out;
};

static const char *const cpu_fields[FIELDS] = {
	"usage_user", "usage_system",  "usage_idle",  "usage_nice",  "usage_iowait",
	"usage_irq",  "usage_softirq", "usage_steal", "usage_guest", "usage_guest_nice",
};

/* -1: full precision. */
static const struct {
	const char *name;
	int decimals;
} gauge_fields[FIELDS] = {
	{"temperature", 1}, {"humidity", 0}, {"pressure", 2}, {"voltage", 3}, {"current", 3},
	{"power", 1},       {"flow", 2},     {"level", 2},    {"ratio", -1},  {"angle", -1},
};

/* Region and its datacenters, as TSBS has them. */
static const struct {
	const char *name;
	const char *zones; /* one letter each */
} regions[] = {
	{"us-east-1", "abce"},    {"us-west-1", "ab"},      {"us-west-2", "abc"},
	{"eu-west-1", "abc"},     {"eu-central-1", "ab"},   {"ap-southeast-1", "ab"},
	{"ap-southeast-2", "ab"}, {"ap-northeast-1", "ac"}, {"sa-east-1", "abc"},
};
static const char *const systems[] = {"Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"};
static const char *const archs[] = {"x64", "x86"};
static const char *const teams[] = {"SF", "NYC", "LON", "CHI"};
static const char *const environments[] = {"production", "staging", "test"};

#define PICK(random, list) ((list)[random_below(random, ARRAY_LEN(list))])

static unsigned draw16(struct generator *g)
{
	if (g->random_left == 0) {
		g->random_bits = random_next(&g->random);
		g->random_left = 4;
	}
	unsigned bits = (unsigned)(g->random_bits & 0xffff);
	g->random_bits >>= 16;
	g->random_left--;
	return bits;
}

/* The middle of each of NORMALS equal shares of the distribution, by bisection of its integral. */
static void fill_normals(float *normals)
{
	double low = -6;

	for (size_t i = 0; i < NORMALS / 2; i++) {
		double share = ((double)i + 0.5) / NORMALS, high = 0, from = low;
		while (high - from > 1e-7) {
			double middle = (from + high) / 2;
			if (0.5 * erfc(-middle / sqrt(2)) < share)
				from = middle;
			else
				high = middle;
		}
		low = from;
		normals[i] = (float)from;
		normals[NORMALS - 1 - i] = (float)-from;
	}
}

static void render_tags(struct generator *g, size_t host)
{
	struct random *r = &g->random;
	size_t region = random_below(r, ARRAY_LEN(regions));
	const char *zones = regions[region].zones;
	char zone = zones[random_below(r, strlen(zones))];

	buf_printf(&g->tags, "%s,hostname=host_%zu,region=%s,datacenter=%s%c,rack=%u",
		   g->options.shape == SHAPE_CPU ? "cpu" : "gauge", host, regions[region].name,
		   regions[region].name, zone, (unsigned)random_below(r, 100));
	buf_printf(&g->tags, ",os=%s,arch=%s,team=%s", PICK(r, systems), PICK(r, archs),
		   PICK(r, teams));
	buf_printf(&g->tags, ",service=%u,service_version=%u,service_environment=%s ",
		   (unsigned)random_below(r, 20), (unsigned)random_below(r, 2),
		   PICK(r, environments));
	g->tags_end[host] = g->tags.len;
}

static void generator_init(struct generator *g, const struct options *options)
{
	size_t walks = options->hosts * FIELDS;

	*g = (struct generator){.options = *options};
	random_init(&g->random, options->seed);
	g->normals = mem_alloc_array(NORMALS, sizeof(*g->normals));
	fill_normals(g->normals);
	buf_init(&g->tags, options->hosts * 512);
	g->tags_end = mem_alloc_array(options->hosts, sizeof(*g->tags_end));
	for (size_t host = 0; host < options->hosts; host++)
		render_tags(g, host);
	g->walks = mem_alloc_array(walks, sizeof(*g->walks));
	for (size_t i = 0; i < walks; i++)
		g->walks[i] = random_unit(&g->random) * INTEGER_MAX;
	buf_init(&g->out, 2 * OUT_BYTES);
}

static void generator_release(struct generator *g)
{
	mem_free(g->normals);
	mem_free(g->walks);
	mem_free(g->tags_end);
	buf_release(&g->tags);
	buf_release(&g->out);
}

static double walk_step(struct generator *g, double *walk)
{
	double value = *walk + (double)g->normals[draw16(g)];

	*walk = value < 0 ? 0 : value > INTEGER_MAX ? INTEGER_MAX : value;
	return *walk;
}

static char *put_text(char *at, const char *text)
{
	size_t len = strlen(text);
	memcpy(at, text, len);
	return at + len;
}

static char *put_unsigned(char *at, uint64_t number, unsigned digits_min)
{
	char digits[20];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while ((number /= 10) != 0 || n < digits_min);
	while (n)
		*at++ = digits[--n];
	return at;
}

static char *put_decimal(char *at, double value, int decimals)
{
	static const unsigned scales[] = {1, 10, 100, 1000};

	if (decimals < 0)
		return at + snprintf(at, FIELD_TEXT_MAX_BYTES, "%.17g", value / INTEGER_MAX);
	uint64_t scaled = (uint64_t)llround(value * scales[decimals]);
	at = put_unsigned(at, scaled / scales[decimals], 1);
	if (decimals == 0)
		return at;
	*at++ = '.';
	return put_unsigned(at, scaled % scales[decimals], (unsigned)decimals);
}

static char *put_field(struct generator *g, char *at, size_t field, double *walk)
{
	double value = walk_step(g, walk);

	if (g->options.shape == SHAPE_GAUGES) {
		at = put_text(at, gauge_fields[field].name);
		*at++ = '=';
		return put_decimal(at, value, gauge_fields[field].decimals);
	}
	at = put_text(at, cpu_fields[field]);
	*at++ = '=';
	at = put_unsigned(at, (uint64_t)value, 1);
	*at++ = 'i';
	return at;
}

static void put_row(struct generator *g, size_t host, struct slice time)
{
	size_t begin = host ? g->tags_end[host - 1] : 0, len = g->tags_end[host] - begin;
	char *start = buf_reserve(&g->out, len + FIELDS * FIELD_TEXT_MAX_BYTES * 2 + time.len);
	ASSERT(start);
	char *at = start;

	memcpy(at, g->tags.data + begin, len);
	at += len;
	for (size_t field = 0; field < FIELDS; field++) {
		if (field)
			*at++ = ',';
		at = put_field(g, at, field, &g->walks[host * FIELDS + field]);
	}
	memcpy(at, time.data, time.len);
	at += time.len;
	g->out.len += (size_t)(at - start);
}

static int flush(struct generator *g)
{
	bool ok = fwrite(g->out.data, 1, g->out.len, stdout) == g->out.len;
	buf_clear(&g->out);
	return ok ? 0 : ERR_FULL;
}

static int generate(struct generator *g)
{
	char time[40];

	for (size_t point = 0; point < g->options.points; point++) {
		int64_t at_s = g->options.start_s + (int64_t)point * g->options.interval_s;
		int n = snprintf(time, sizeof(time), " %lld000000000\n", (long long)at_s);
		for (size_t host = 0; host < g->options.hosts; host++) {
			put_row(g, host, (struct slice){time, (size_t)n});
			if (g->out.len >= OUT_BYTES && flush(g))
				return ERR_FULL;
		}
	}
	return flush(g) || fflush(stdout) ? ERR_FULL : 0;
}

static int usage(void)
{
	fputs("usage: tsbs_gen [--shape cpu|gauges] [--hosts N] [--points N] [--seed N]\n"
	      "                [--start EPOCH_S] [--interval SECONDS] > FILE\n",
	      stderr);
	return 2;
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"shape", required_argument, NULL, 's'},
		{"hosts", required_argument, NULL, 'h'},
		{"points", required_argument, NULL, 'p'},
		{"seed", required_argument, NULL, 'r'},
		{"start", required_argument, NULL, 't'},
		{"interval", required_argument, NULL, 'i'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		unsigned long long number = optarg ? strtoull(optarg, NULL, 10) : 0;
		switch (option) {
		case 's':
			options->shape = strcmp(optarg, "gauges") ? SHAPE_CPU : SHAPE_GAUGES;
			break;
		case 'h':
			options->hosts = (size_t)number;
			break;
		case 'p':
			options->points = (size_t)number;
			break;
		case 'r':
			options->seed = number;
			break;
		case 't':
			options->start_s = (int64_t)number;
			break;
		case 'i':
			options->interval_s = (int64_t)number;
			break;
		default:
			return ERR_INVALID;
		}
	}
	return options->hosts && options->points && optind == argc ? 0 : ERR_INVALID;
}

int main(int argc, char **argv)
{
	/* From 2016-01-01T00:00:00Z, 1000 hosts for 6 hours. */
	struct options options = {.hosts = 1000,
				  .points = 2160,
				  .seed = 123,
				  .start_s = 1451606400,
				  .interval_s = 10};
	struct generator generator;

	if (parse(argc, argv, &options))
		return usage();
	generator_init(&generator, &options);
	int err = generate(&generator);
	generator_release(&generator);
	if (err)
		fputs("tsbs_gen: cannot write to standard output\n", stderr);
	return err ? 1 : 0;
}
