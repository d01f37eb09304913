/* One report, found as people write ids. */
#include <ctype.h>
#include <stdio.h>

#include "fault/fault.h"
#include "fault/sealed.h"
#include "store/wait.h"

enum {
	FORMS_MAX = 8,
	READ_MAX_BYTES = 4 << 20,
	PREFIX_LEN = 5,
};

static const char find_prefix[] = "OOPS-";

struct find_form {
	struct slice id;
	struct store_request *request;
	struct fault_parts key, from, to;
};

struct find {
	const struct fault_site *site;
	struct slice tenant;
	struct arena *arena;
	struct store_read *read;
	struct find_form forms[FORMS_MAX];
	size_t count;
	struct fault_run **run; /* the finder's */
};

/* ---- Forms of an id -------------------------------------------------------------------------- */

static int find_same(int c)
{
	return c;
}

static void find_add_form(struct find *find, const char *prefix, struct slice text,
			  int (*letter)(int))
{
	size_t prefix_len = strlen(prefix);
	char *id = arena_alloc(find->arena, prefix_len + text.len + 1);
	if (!id)
		return;
	memcpy(id, prefix, prefix_len);
	for (size_t i = 0; i < text.len; i++)
		id[prefix_len + i] = (char)letter((unsigned char)text.data[i]);
	struct slice form = {id, prefix_len + text.len};
	for (size_t i = 0; i < find->count; i++)
		if (slice_equal(find->forms[i].id, form))
			return;
	if (form.len && form.len <= FAULT_ID_MAX_BYTES)
		find->forms[find->count++].id = form;
}

static void find_add_forms(struct find *find, struct slice id)
{
	struct slice rest = id;
	bool prefixed = id.len > PREFIX_LEN;
	for (size_t i = 0; i < PREFIX_LEN && prefixed; i++)
		prefixed = toupper((unsigned char)id.data[i]) == find_prefix[i];
	if (prefixed)
		rest = (struct slice){id.data + PREFIX_LEN, id.len - PREFIX_LEN};
	find_add_form(find, "", id, find_same);
	find_add_form(find, find_prefix, rest, find_same);
	find_add_form(find, "", rest, find_same);
	find_add_form(find, find_prefix, rest, tolower);
	find_add_form(find, find_prefix, rest, toupper);
	find_add_form(find, "", rest, tolower);
	find_add_form(find, "", rest, toupper);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void find_begin_read(struct find *find)
{
	store_read_reset(find->read);
	find->read->now_ms = clock_wall_ms(find->site->clock);
}

static int find_wait(struct find *find, struct task_queue *queue, struct errbuf *e)
{
	int err = store_read_wait(find->read, queue);
	return err ? errbuf_set(e, err, "%s", store_read_sentence(find->read, err)) : 0;
}

static void find_ask(struct find *find)
{
	find_begin_read(find);
	for (size_t i = 0; i < find->count; i++) {
		struct find_form *form = &find->forms[i];
		fault_oops_key(&form->key, find->tenant, form->id);
		fault_oops_begin(&form->from, form->id);
		fault_oops_bound(&form->to, form->id, true);
		form->request = store_read_add(find->read, STORE_CELL_SCAN);
		ASSERT(form->request); /* some few in an empty arena */
		form->request->cell_scan = (struct store_cell_scan){
			.table = TABLE_OOPS,
			.key = form->key.parts,
			.from = form->from.parts,
			.to = form->to.parts,
			.limit = FAULT_LISTINGS_MAX + FAULT_BUG_ENTRIES_MAX,
		};
	}
}

/* The first arrival of an id. False: it has none. */
static bool find_first_arrival(const struct find_form *form, struct fault_listing *first,
			       size_t *conflict_count)
{
	bool any = false;
	*first = (struct fault_listing){0};
	*conflict_count = 0;
	for (size_t i = 0; i < form->request->cell_scan.count; i++) {
		struct fault_listing listing;
		if (!fault_listing_decode(&form->request->cell_scan.cells[i], &listing))
			continue;
		*conflict_count += any && (listing.digest.low != first->digest.low ||
					   listing.digest.high != first->digest.high);
		if (!any || fault_order_compare(&listing.order, &first->order) < 0)
			*first = listing;
		any = true;
	}
	return any;
}

static int find_keep_bugs(struct find *find, const struct find_form *form,
			  struct fault_found *found, struct errbuf *e)
{
	const struct store_cell_scan *scan = &form->request->cell_scan;
	int err = 0;
	found->bugs = arena_alloc(find->arena, (scan->count + 1) * sizeof(*found->bugs));
	for (size_t i = 0; i < scan->count && found->bugs && !err; i++) {
		struct fault_oops_bug *bug = &found->bugs[found->bug_count];
		if (!fault_oops_bug_decode(&scan->cells[i], bug))
			continue;
		err = fault_oops_bug_keep(bug, find->arena);
		found->bug_count++;
	}
	if (err || !found->bugs)
		return errbuf_set(e, ERR_LIMIT, "the report takes too much memory");
	return 0;
}

static int find_keep_facts(struct find *find, const struct fault_facts *facts,
			   struct fault_found *found, struct errbuf *e)
{
	found->facts = *facts;
	return fault_facts_keep(&found->facts, find->arena)
		       ? errbuf_set(e, ERR_LIMIT, "the report takes too much memory")
		       : 0;
}

static int find_say_damaged(const struct fault_found *found, int err, struct errbuf *e)
{
	return errbuf_set(e, err, "report " SHOWN " cannot be read: %s", SHOWN_OF(found->id),
			  err_text(err));
}

static int find_take(struct find *find, const struct store_cell *cell, struct fault_found *found,
		     struct errbuf *e)
{
	struct fault_arrival arrival;
	int err = fault_arrival_decode(cell->value, &arrival);
	if (!err && arrival.is_void)
		err = ERR_DAMAGED;
	err = err ? err : fault_body_unpack(&arrival, &found->body);
	return err ? find_say_damaged(found, err, e)
		   : find_keep_facts(find, &arrival.facts, found, e);
}

/* The run of a report, with its directory: the one that is kept, or it takes its place. */
static int find_read_run(struct find *find, const struct fault_sealed_site *from,
			 struct fault_place place, const struct fault_run_cell *cell,
			 struct errbuf *e)
{
	struct fault_run *kept = *find->run, *run = fault_run_new(place, cell);
	if (kept && fault_place_equal(kept->place, run->place) && kept->cell.name == cell->name) {
		fault_run_free(run);
		return 0;
	}
	fault_run_free(kept);
	*find->run = NULL;
	int err = fault_run_read_directory(from, run, e);
	if (err)
		fault_run_free(run);
	else
		*find->run = run;
	return err;
}

/* Its run is sealed. */
static int find_take_sealed(struct find *find, struct task_queue *queue,
			    const struct fault_run_cell *cell, struct fault_found *found,
			    struct errbuf *e)
{
	const struct fault_sealed_site from = {find->site, find->tenant, queue};
	uint64_t sequence = found->order.place.sequence;
	int err = find_read_run(find, &from, found->order.place, cell, e);
	if (err)
		return err;
	const struct fault_run *run = *find->run;
	size_t at = fault_segment_find(&run->segment, sequence);
	const struct fault_sealed *report = &run->segment.reports[at];
	struct buf bodies;
	if (at == run->segment.count || report->sequence != sequence)
		return errbuf_set(e, ERR_NOT_FOUND, "report " SHOWN " is there no more",
				  SHOWN_OF(found->id));
	buf_init(&bodies, FAULT_BODY_MAX_BYTES);
	err = fault_run_read_block(&from, run, report->block, &bodies, e);
	if (!err) {
		struct slice body = fault_sealed_body(report, &bodies);
		err = buf_append(&found->body, body.data, body.len);
		err = err ? err : find_keep_facts(find, &report->arrival.facts, found, e);
	}
	buf_release(&bodies);
	return err;
}

static int find_read_arrival(struct find *find, struct task_queue *queue, struct fault_found *found,
			     struct errbuf *e)
{
	struct fault_parts key, column;
	struct fault_run_question question;
	struct fault_run_cell cell;
	fault_arrivals_key(&key, find->tenant, found->order.place);
	fault_arrivals_column(&column, found->order.place.sequence);
	find_begin_read(find);
	fault_run_ask(&question, find->read, find->tenant, found->order.place);
	struct store_request *request = store_read_add(find->read, STORE_CELL_GET);
	ASSERT(request); /* among the first of an empty arena */
	request->cell_get = (struct store_cell_get){
		.table = TABLE_REPORT_ARRIVALS, .key = key.parts, .column = column.parts};
	int err = find_wait(find, queue, e);
	if (err)
		return err;
	err = fault_run_answer(&question, &cell);
	if (!err)
		return find_take_sealed(find, queue, &cell, found, e);
	if (!request->cell_get.found && err != ERR_NOT_FOUND)
		return find_say_damaged(found, err, e);
	if (!request->cell_get.found)
		return errbuf_set(e, ERR_NOT_FOUND, "report " SHOWN " is there no more",
				  SHOWN_OF(found->id));
	return find_take(find, &request->cell_get.cell, found, e);
}

static int find_see_attachment(const struct store_cell *cell, struct find *find,
			       struct fault_found *found)
{
	struct fault_attachment attachment;
	uint64_t number = fault_part_number(cell->column.part[2]);
	if (number >= FAULT_ATTACHMENTS_MAX || fault_attachment_decode(cell->value, &attachment))
		return 0;
	attachment.name = arena_copy(find->arena, attachment.name);
	attachment.type = arena_copy(find->arena, attachment.type);
	if (!attachment.name.data || !attachment.type.data)
		return ERR_LIMIT;
	while (found->attachment_count < number) /* those in between cannot be read */
		found->attachments[found->attachment_count++] =
			(struct fault_attachment){.name = SLICE(""), .type = SLICE("")};
	found->attachments[found->attachment_count++] = attachment;
	return 0;
}

static int find_read_attachments(struct find *find, struct task_queue *queue,
				 struct fault_found *found, struct errbuf *e)
{
	struct fault_parts key, from, to;
	uint64_t sequence = found->order.place.sequence;
	if (!found->facts.attachments)
		return 0;
	found->attachments =
		arena_alloc(find->arena, FAULT_ATTACHMENTS_MAX * sizeof(*found->attachments));
	if (!found->attachments)
		return errbuf_set(e, ERR_LIMIT, "the report takes too much memory");
	fault_arrivals_key(&key, find->tenant, found->order.place);
	fault_attachments_column(&from, sequence, FAULT_ATTACHMENT_HEAD, 0);
	fault_attachments_column(&to, sequence, FAULT_ATTACHMENT_CONTENT, 0);
	find_begin_read(find);
	struct store_request *request = store_read_add(find->read, STORE_CELL_SCAN);
	ASSERT(request); /* the first of an empty arena */
	request->cell_scan = (struct store_cell_scan){.table = TABLE_REPORT_ATTACHMENTS,
						      .key = key.parts,
						      .from = from.parts,
						      .to = to.parts,
						      .limit = FAULT_ATTACHMENTS_MAX};
	int err = find_wait(find, queue, e);
	for (size_t i = 0; i < request->cell_scan.count && !err; i++)
		err = find_see_attachment(&request->cell_scan.cells[i], find, found);
	return err;
}

static int find_report(struct find *find, struct task_queue *queue, struct slice id,
		       struct fault_found *found, struct errbuf *e)
{
	find_add_forms(find, id);
	find_ask(find);
	int err = find_wait(find, queue, e);
	if (err)
		return err;
	for (size_t i = 0; i < find->count; i++) {
		struct fault_listing first;
		if (!find_first_arrival(&find->forms[i], &first, &found->conflict_count))
			continue;
		found->id = find->forms[i].id;
		found->order = first.order;
		if (fault_listing_is_erased(&first))
			return errbuf_set(e, ERR_NOT_FOUND, "report " SHOWN " was removed",
					  SHOWN_OF(found->id));
		err = find_keep_bugs(find, &find->forms[i], found, e);
		err = err ? err : find_read_arrival(find, queue, found, e);
		return err ? err : find_read_attachments(find, queue, found, e);
	}
	return errbuf_set(e, ERR_NOT_FOUND, "there is no report " SHOWN, SHOWN_OF(id));
}

int fault_finder_read(struct fault_finder *finder, struct slice id, struct arena *arena,
		      struct fault_found *found, struct errbuf *e)
{
	struct find find = {.site = fault_site_of(finder->fault),
			    .tenant = finder->tenant,
			    .arena = arena,
			    .run = &finder->run};
	*found = (struct fault_found){.id = id};
	buf_init(&found->body, FAULT_BODY_MAX_BYTES);
	find.read = store_read_new(find.site->store, READ_MAX_BYTES);
	int err = find_report(&find, finder->queue, id, found, e);
	store_read_free(find.read);
	return err;
}

void fault_finder_release(struct fault_finder *finder)
{
	fault_run_free(finder->run);
	finder->run = NULL;
}

int fault_read_report(struct fault *fault, struct task_queue *queue, struct slice tenant,
		      struct slice id, struct arena *arena, struct fault_found *found,
		      struct errbuf *e)
{
	struct fault_finder finder = {.fault = fault, .queue = queue, .tenant = tenant};
	int err = fault_finder_read(&finder, id, arena, found, e);
	fault_finder_release(&finder);
	return err;
}

int fault_read_attachment(struct fault *fault, struct task_queue *queue, struct slice tenant,
			  const struct fault_found *found, uint64_t number, struct buf *content,
			  struct errbuf *e)
{
	struct find find = {.site = fault_site_of(fault), .tenant = tenant};
	struct fault_parts key, column;
	if (number >= found->attachment_count || !found->attachments[number].kept)
		return errbuf_set(e, ERR_NOT_FOUND,
				  "report " SHOWN " has no file %llu that was kept",
				  SHOWN_OF(found->id), (unsigned long long)number);
	find.read = store_read_new(find.site->store, READ_MAX_BYTES);
	fault_arrivals_key(&key, tenant, found->order.place);
	fault_attachments_column(&column, found->order.place.sequence, FAULT_ATTACHMENT_CONTENT,
				 number);
	find_begin_read(&find);
	struct store_request *request = store_read_add(find.read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	request->cell_get = (struct store_cell_get){
		.table = TABLE_REPORT_ATTACHMENTS, .key = key.parts, .column = column.parts};
	int err = find_wait(&find, queue, e);
	if (!err)
		err = request->cell_get.found
			      ? fault_attachment_unpack(request->cell_get.cell.value,
							found->attachments[number].bytes, content)
			      : ERR_DAMAGED;
	store_read_free(find.read);
	if (err && !e->text[0])
		errbuf_set(e, err, "file %llu of report " SHOWN " cannot be read: %s",
			   (unsigned long long)number, SHOWN_OF(found->id), err_text(err));
	return err;
}

/* ---- TimeUUID -------------------------------------------------------------------------------- */

/* 100 ns since 1582-10-15, of which 122,192,928,000,000,000 lie before 1970. */
void fault_time_uuid(const struct fault_order *order, char to[FAULT_UUID_TEXT_BYTES + 1])
{
	uint64_t ticks = (uint64_t)order->date_us * 10 + UINT64_C(0x01b21dd213814000);
	uint64_t writer = order->place.writer;
	snprintf(to, FAULT_UUID_TEXT_BYTES + 1, "%08x-%04x-%04x-%04x-%012llx",
		 (unsigned)(ticks & 0xffffffff), (unsigned)(ticks >> 32 & 0xffff),
		 (unsigned)(ticks >> 48 & 0x0fff) | 0x1000u,
		 (unsigned)(writer >> 50 & 0x3fff) | 0x8000u,
		 (unsigned long long)((writer & UINT64_C(0xffffffffffff)) |
				      UINT64_C(0x010000000000)));
}
