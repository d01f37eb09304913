/* Lists in pages: `limit` (20 where it is not given; 0: everything) and `offset`, and the `meta` of
 * the answer with the way to the page before and after. Pure. */
#ifndef API_ESMOND_PAGE_H
#define API_ESMOND_PAGE_H

#include "http/http.h"

struct json_writer;

enum { V2_PAGE_LIMIT = 20 };

struct v2_page {
	uint64_t limit, offset;
};

int v2_page_read(const struct http_request *request, struct v2_page *page,
		 struct errbuf *e) MUST_CHECK;

/* Whether the item of this number (from 0) is on the page. */
static inline bool v2_page_has(const struct v2_page *page, uint64_t index)
{
	return index >= page->offset && (!page->limit || index - page->offset < page->limit);
}

/* {"children":[...],"meta":{"limit":20,"offset":40,"total_count":50,"next":null,
 * "previous":"http://h/v2/...&offset=20"}}: `meta` is the last, since how many there are is known
 * when all have been looked at. What is on the page is written between the two. The links repeat
 * the other parameters; there is none past the last page or before the first. */
void v2_page_begin(struct json_writer *json);
void v2_page_end(const struct http_request *request, const struct v2_page *page, uint64_t total,
		 struct json_writer *json);

/* `http://HOST` as the client wrote it in its header, or nothing. */
void v2_host_write(const struct http_request *request, struct buf *out);

/* The path of the request as sent, without its parameters. */
struct slice v2_path_of(const struct http_request *request);

#endif
