#include "base/base.h"

#include <errno.h>

void assert_fail(const char *cond, const char *file, int line)
{
	fprintf(stderr, "granary: %s:%d: assertion failed: %s\n", file, line, cond);
	fflush(stderr);
	abort();
}

static const struct {
	int err;
	const char *text;
} texts[] = {
	{ERR_BUSY, "busy: a queue is full"},    {ERR_RETRY, "not done, try again"},
	{ERR_UNKNOWN, "outcome unknown"},       {ERR_FULL, "no room"},
	{ERR_READ_ONLY, "read-only"},           {ERR_DAMAGED, "damaged data"},
	{ERR_LIMIT, "limit reached"},           {ERR_INVALID, "invalid"},
	{ERR_NOT_FOUND, "not found"},           {ERR_EXISTS, "exists already"},
	{ERR_TIMEOUT, "deadline passed"},       {ERR_CANCELLED, "cancelled"},
	{ERR_VERSION, "newer format"},          {ERR_LOCKED, "in use by another process"},
	{ERR_FAULT, "fault ordered by a test"}, {ERR_DENIED, "not allowed"},
};

const char *err_text(int err)
{
	if (err == 0)
		return "success";
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i].err == err)
			return texts[i].text;
	}
	return strerror(-err);
}

int errbuf_set(struct errbuf *e, int err, const char *fmt, ...)
{
	if (!e)
		return err;
	va_list args;
	va_start(args, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, args);
	va_end(args);
	return err;
}

int errbuf_prefix(struct errbuf *e, int err, const char *fmt, ...)
{
	if (!e)
		return err;
	struct errbuf rest = *e;
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(e->text, sizeof(e->text), fmt, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(e->text))
		snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", rest.text);
	return err;
}
