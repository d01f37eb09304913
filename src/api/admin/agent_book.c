#include "api/admin/agent_book.h"

#include <stdlib.h>

#include "base/stats.h"

enum { AGENT_BOOK_HEAP_BYTES = 16 }; /* what the heap needs for each piece of memory */

const char *const adaptor_state_words[ADAPTOR_STATES + 1] = {
	"following", "behind", "waiting", "missing", "stopped", "done", NULL,
};

/* What becomes of an agent by a report, before anything is changed. */
struct agent_plan {
	struct agent_seen next; /* its adaptors are in `rows` */
	struct agent_plan_row *rows;
	struct adaptor_seen **dropped;
	size_t dropped_count;
};

struct agent_plan_row {
	struct adaptor_seen *adaptor;
	bool fresh; /* of the report; else the book has it */
};

/* ---- One agent ------------------------------------------------------------------------------- */

static size_t adaptor_seen_bytes(const struct adaptor_seen *a)
{
	return sizeof(*a) + a->name.len + a->kind.len + a->datatype.len + a->path.len +
	       a->error.len;
}

static size_t adaptor_seen_held_bytes(const struct adaptor_seen *a)
{
	return adaptor_seen_bytes(a) + AGENT_BOOK_HEAP_BYTES + sizeof(a);
}

/* One piece of memory with its texts behind it. */
static struct adaptor_seen *adaptor_seen_copy(const struct adaptor_seen *said)
{
	struct adaptor_seen *copy = mem_alloc(adaptor_seen_bytes(said));
	char *to = (char *)(copy + 1);
	*copy = *said;
	struct slice *texts[] = {&copy->name, &copy->kind, &copy->datatype, &copy->path,
				 &copy->error};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i]->len)
			memcpy(to, texts[i]->data, texts[i]->len);
		texts[i]->data = to;
		to += texts[i]->len;
	}
	return copy;
}

static size_t agent_seen_own_bytes(const struct agent_seen *a)
{
	return sizeof(*a) + sizeof(a) + a->name.len + a->version.len + a->collector.len +
	       a->problem.len + 6 * AGENT_BOOK_HEAP_BYTES;
}

static void agent_seen_free_texts(struct agent_seen *agent)
{
	mem_free_slice(agent->version);
	mem_free_slice(agent->collector);
	mem_free_slice(agent->problem);
}

static void agent_seen_free(struct agent_seen *agent)
{
	for (size_t i = 0; i < agent->count; i++)
		mem_free(agent->adaptors[i]);
	mem_free(agent->adaptors);
	agent_seen_free_texts(agent);
	mem_free_slice(agent->name);
	mem_free(agent);
}

size_t agent_seen_behind(const struct agent_seen *agent, struct slice name)
{
	size_t low = 0, high = agent->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (slice_compare(agent->adaptors[middle]->name, name) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- The book -------------------------------------------------------------------------------- */

struct agent_book *agent_book_new(void)
{
	return mem_zalloc(sizeof(struct agent_book));
}

void agent_book_free(struct agent_book *book)
{
	for (size_t i = 0; book && i < book->count; i++)
		agent_seen_free(book->agents[i]);
	if (book)
		mem_free(book->agents);
	mem_free(book);
}

size_t agent_book_behind(const struct agent_book *book, struct slice name)
{
	size_t low = 0, high = book->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (slice_compare(book->agents[middle]->name, name) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct agent_seen *agent_book_get(const struct agent_book *book, struct slice name)
{
	size_t behind = agent_book_behind(book, name);
	struct agent_seen *agent = behind ? book->agents[behind - 1] : NULL;
	return agent && slice_equal(agent->name, name) ? agent : NULL;
}

const struct agent_seen *agent_book_find(const struct agent_book *book, struct slice name)
{
	return agent_book_get(book, name);
}

static void agent_book_show(const struct agent_book *book)
{
	ASSERT(book->count <= AGENTS_MAX && book->held_bytes <= AGENT_BOOK_MAX_BYTES);
	stat_set(STAT_agents_known, (int64_t)book->count);
	stat_set(STAT_agents_bytes, (int64_t)book->held_bytes);
}

bool agent_book_forget(struct agent_book *book, struct slice name)
{
	struct agent_seen *agent = agent_book_get(book, name);
	if (!agent)
		return false;
	size_t behind = agent_book_behind(book, name);
	memmove(&book->agents[behind - 1], &book->agents[behind],
		(book->count - behind) * sizeof(*book->agents));
	book->count--;
	book->held_bytes -= agent->held_bytes;
	agent_seen_free(agent);
	agent_book_show(book);
	return true;
}

/* Forgets who was not heard of for AGENT_KEEP_MS, but not `reporter`. */
static void agent_book_make_room(struct agent_book *book, const struct agent_seen *reporter,
				 int64_t now_ms)
{
	size_t kept = 0;
	for (size_t i = 0; i < book->count; i++) {
		struct agent_seen *agent = book->agents[i];
		if (agent == reporter || now_ms - agent->heard_ms <= AGENT_KEEP_MS) {
			book->agents[kept++] = agent;
			continue;
		}
		book->held_bytes -= agent->held_bytes;
		agent_seen_free(agent);
	}
	stat_add(STAT_agents_forgotten, (int64_t)(book->count - kept));
	book->count = kept;
	agent_book_show(book);
}

/* ---- What a report changes ------------------------------------------------------------------- */

static int agent_plan_compare_names(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static int agent_plan_compare_adaptors(const void *a, const void *b)
{
	return slice_compare(((const struct adaptor_seen *)a)->name,
			     ((const struct adaptor_seen *)b)->name);
}

static int agent_plan_sort(struct agent_said *said, struct errbuf *e)
{
	if (said->gone_count)
		qsort(said->gone, said->gone_count, sizeof(*said->gone), agent_plan_compare_names);
	if (said->adaptor_count)
		qsort(said->adaptors, said->adaptor_count, sizeof(*said->adaptors),
		      agent_plan_compare_adaptors);
	for (size_t i = 1; i < said->adaptor_count; i++) {
		struct slice name = said->adaptors[i].name;
		if (slice_equal(said->adaptors[i - 1].name, name))
			return errbuf_set(e, ERR_INVALID,
					  "the adaptor \"" SHOWN "\" is named twice",
					  SHOWN_OF(name));
	}
	return 0;
}

static bool agent_plan_keeps(const struct agent_said *said, const struct adaptor_seen *adaptor)
{
	return !said->all &&
	       !(said->gone_count && bsearch(&adaptor->name, said->gone, said->gone_count,
					     sizeof(*said->gone), agent_plan_compare_names));
}

static void agent_plan_add(struct agent_plan *plan, struct adaptor_seen *adaptor, bool fresh)
{
	struct agent_seen *next = &plan->next;
	plan->rows[next->count++] = (struct agent_plan_row){adaptor, fresh};
	next->states[adaptor->state]++;
	next->held_bytes += adaptor_seen_held_bytes(adaptor);
	next->behind_bytes += smaller_of(adaptor->behind_bytes, INT64_MAX - next->behind_bytes);
}

/* Both lists are in order of name. If both have a name, the report counts. */
static void agent_plan_merge(struct agent_plan *plan, const struct agent_seen *before,
			     const struct agent_said *said)
{
	size_t old_count = before ? before->count : 0, old = 0, fresh = 0;
	while (old < old_count || fresh < said->adaptor_count) {
		struct adaptor_seen *a = old < old_count ? before->adaptors[old] : NULL;
		struct adaptor_seen *b =
			fresh < said->adaptor_count ? &said->adaptors[fresh] : NULL;
		int order = !a ? 1 : !b ? -1 : slice_compare(a->name, b->name);
		if (order < 0 && agent_plan_keeps(said, a))
			agent_plan_add(plan, a, false);
		else if (a && order <= 0)
			plan->dropped[plan->dropped_count++] = a;
		if (order >= 0)
			agent_plan_add(plan, b, true);
		old += order <= 0;
		fresh += order >= 0;
	}
}

static int agent_plan_make(struct agent_plan *plan, const struct agent_seen *before,
			   struct agent_said *said, struct slice name, struct arena *arena,
			   struct errbuf *e)
{
	size_t old_count = before ? before->count : 0;
	int err = agent_plan_sort(said, e);
	if (err)
		return err;
	plan->rows = arena_alloc(arena, (old_count + said->adaptor_count) * sizeof(*plan->rows));
	plan->dropped = arena_alloc(arena, old_count * sizeof(struct adaptor_seen *));
	if (!plan->rows || !plan->dropped)
		return errbuf_set(e, ERR_LIMIT, "the report is too long");
	plan->next = (struct agent_seen){
		.name = name,
		.version = said->version,
		.collector = said->collector,
		.problem = said->problem,
		.boot = said->boot,
	};
	plan->next.held_bytes = agent_seen_own_bytes(&plan->next);
	agent_plan_merge(plan, before, said);
	if (plan->next.count <= AGENT_ADAPTORS_MAX)
		return 0;
	return errbuf_set(e, ERR_LIMIT,
			  "the agent would have %zu adaptors; the server keeps what at most %d of "
			  "an agent do",
			  plan->next.count, AGENT_ADAPTORS_MAX);
}

static bool agent_book_fits(size_t count, size_t held_bytes, const struct agent_seen *before,
			    const struct agent_plan *plan, int parts)
{
	size_t others_bytes = held_bytes - (before ? before->held_bytes : 0);
	return (before || count < AGENTS_MAX / (size_t)parts) &&
	       others_bytes + plan->next.held_bytes <= AGENT_BOOK_MAX_BYTES / (size_t)parts;
}

/* Whether the agents of one tenant leave room for this one. Their names begin with the tenant's and
 * a slash, and so stand one behind the other. */
static bool agent_book_has_room_of_tenant(const struct agent_book *book, size_t of_tenant,
					  const struct agent_seen *before,
					  const struct agent_plan *plan)
{
	struct slice begins = {plan->next.name.data, of_tenant + 1};
	size_t count = 0, held_bytes = 0;
	for (size_t i = agent_book_behind(book, begins); i < book->count; i++) {
		const struct agent_seen *agent = book->agents[i];
		if (agent->name.len < begins.len ||
		    memcmp(agent->name.data, begins.data, begins.len) != 0)
			break;
		count++;
		held_bytes += agent->held_bytes;
	}
	return agent_book_fits(count, held_bytes, before, plan, AGENT_TENANT_PARTS);
}

static bool agent_book_has_room(const struct agent_book *book, const struct agent_seen *before,
				const struct agent_said *said, const struct agent_plan *plan)
{
	return agent_book_fits(book->count, book->held_bytes, before, plan, 1) &&
	       (!said->of_tenant ||
		agent_book_has_room_of_tenant(book, said->of_tenant, before, plan));
}

/* Notes it if this boot was there before the present one. */
static void agent_seen_note_boot(struct agent_seen *agent, uint64_t boot, int64_t now_ms)
{
	for (size_t i = 0; i < AGENT_BOOTS_BEFORE; i++)
		if (boot && boot != agent->boot && boot == agent->boots_before[i])
			agent->shared_ms = now_ms;
}

static void agent_seen_keep_boots(const struct agent_seen *agent, struct agent_seen *next)
{
	size_t count = 0;
	next->shared_ms = agent->shared_ms;
	next->told_ms = agent->told_ms;
	if (next->boot != agent->boot)
		next->boots_before[count++] = agent->boot;
	for (size_t i = 0; count < AGENT_BOOTS_BEFORE; i++)
		next->boots_before[count++] = agent->boots_before[i];
}

bool agent_book_tells_shared(struct agent_book *book, struct slice name, int64_t now_ms)
{
	struct agent_seen *agent = agent_book_get(book, name);
	if (!agent || agent->shared_ms != now_ms || now_ms - agent->told_ms < AGENT_TELL_MS)
		return false;
	agent->told_ms = now_ms;
	return true;
}

/* The agent's place in the book, made where it has none. */
static struct agent_seen *agent_book_add(struct agent_book *book, struct slice name)
{
	size_t behind = agent_book_behind(book, name);
	struct agent_seen *agent = mem_zalloc(sizeof(*agent));
	agent->name = mem_copy_slice(name);
	book->agents = mem_resize_array(book->agents, book->count + 1, sizeof(struct agent_seen *));
	memmove(&book->agents[behind + 1], &book->agents[behind],
		(book->count - behind) * sizeof(struct agent_seen *));
	book->agents[behind] = agent;
	book->count++;
	return agent;
}

static void agent_book_carry_out(struct agent_book *book, struct agent_seen *agent,
				 const struct agent_plan *plan, int64_t now_ms)
{
	struct agent_seen next = plan->next;
	next.name = agent->name;
	next.version = mem_copy_slice(next.version);
	next.collector = mem_copy_slice(next.collector);
	next.problem = mem_copy_slice(next.problem);
	next.heard_ms = now_ms;
	agent_seen_keep_boots(agent, &next);
	next.adaptors = mem_alloc_array(next.count, sizeof(struct adaptor_seen *));
	for (size_t i = 0; i < next.count; i++) {
		struct agent_plan_row *row = &plan->rows[i];
		next.adaptors[i] = row->fresh ? adaptor_seen_copy(row->adaptor) : row->adaptor;
	}
	for (size_t i = 0; i < plan->dropped_count; i++)
		mem_free(plan->dropped[i]);
	mem_free(agent->adaptors);
	agent_seen_free_texts(agent);
	book->held_bytes = book->held_bytes - agent->held_bytes + next.held_bytes;
	*agent = next;
}

int agent_book_take(struct agent_book *book, struct slice name, struct agent_said *said,
		    struct arena *arena, int64_t now_ms, struct errbuf *e)
{
	struct agent_seen *agent = agent_book_get(book, name);
	struct agent_plan plan = {.rows = NULL};
	if (agent)
		agent_seen_note_boot(agent, said->boot, now_ms);
	if (!said->all && agent && agent->shared_ms == now_ms && agent->boot != said->boot)
		return errbuf_set(e, ERR_RETRY,
				  "another agent reports under the name \"" SHOWN
				  "\", too: each needs an agent.name of its own; report all",
				  SHOWN_OF(name));
	if (!said->all && (!agent || agent->boot != said->boot))
		return errbuf_set(e, ERR_RETRY,
				  "the server knows nothing of this start of the agent \"" SHOWN
				  "\": report all",
				  SHOWN_OF(name));
	int err = agent_plan_make(&plan, agent, said, name, arena, e);
	if (err)
		return err;
	if (!agent_book_has_room(book, agent, said, &plan))
		agent_book_make_room(book, agent, now_ms);
	if (!agent_book_has_room(book, agent, said, &plan))
		return errbuf_set(e, ERR_FULL,
				  "the server keeps the reports of %d agents and %d MB at most, "
				  "and has %zu agents; DELETE /api/agents/NAME forgets one",
				  AGENTS_MAX, AGENT_BOOK_MAX_BYTES >> 20, book->count);
	agent_book_carry_out(book, agent ? agent : agent_book_add(book, name), &plan, now_ms);
	agent_book_show(book);
	return 0;
}
