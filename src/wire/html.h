/* Text on a page of HTML. What others chose is text there and nothing else: it is no markup, ends
 * no attribute, and obeys no command (base/visible.h). Pure. */
#ifndef WIRE_HTML_H
#define WIRE_HTML_H

#include "base/buf.h"

/* Also for an attribute in quotation marks. */
void html_put_text(struct buf *out, struct slice text);
/* A part of a path, or a value in a query (RFC 3986, 2.3); it needs no escaping for HTML then. */
void html_put_in_url(struct buf *out, struct slice text);

#endif
