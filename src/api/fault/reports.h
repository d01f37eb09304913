/* A report as lists show it. */
#ifndef API_FAULT_REPORTS_H
#define API_FAULT_REPORTS_H

#include "fault/book.h"
#include "wire/json.h"

/* An object: what a list knows of the report, without what it does not have. */
void reports_put_json(struct json_writer *json, const struct fault_listed *report);

#endif
