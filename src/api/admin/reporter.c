#include "api/admin/reporter.h"

#include "base/utf8.h"
#include "inventory/inventory.h"

enum { REPORTER_NAME_SEGMENT = 2 }; /* of /api/pollers/NAME/inventory */

bool reporter_is_silent(int64_t heard_ms, int64_t now_ms)
{
	return !heard_ms || now_ms - heard_ms > REPORTER_SILENT_MS;
}

bool reporter_is_one_line(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		if ((uint8_t)text.data[i] < 0x20 || text.data[i] == 0x7f)
			return false;
	}
	return true;
}

/* A part of an URL's path that is nothing but dots is taken away by whoever sends it (RFC 3986,
 * 5.2.4). */
static bool reporter_is_name(struct slice name)
{
	return name.len && name.len <= INVENTORY_NAME_MAX_BYTES && utf8_is_valid(name) &&
	       reporter_is_one_line(name) && !slice_equal(name, SLICE(".")) &&
	       !slice_equal(name, SLICE(".."));
}

bool reporter_read_path(struct http_request *request, const char *what, struct slice *name)
{
	size_t count = REPORTER_NAME_SEGMENT + (what ? 2 : 1);
	*name = (struct slice){NULL, 0};
	if (request->segment_count != count ||
	    (what && !slice_equal(request->segments[count - 1], slice_of(what)))) {
		http_reply_error(request, 404, "there is nothing at this path");
		return false;
	}
	*name = request->segments[REPORTER_NAME_SEGMENT];
	if (reporter_is_name(*name))
		return true;
	http_reply_error(request, 400,
			 "\"" SHOWN "\" is no name: those have 1 to %d bytes of UTF-8 without "
			 "control characters, and are not . or ..",
			 SHOWN_OF(*name), INVENTORY_NAME_MAX_BYTES);
	return false;
}
