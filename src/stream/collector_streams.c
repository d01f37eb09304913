/* The streams that the collector knows, in memory: some that were asked for last. What is forgotten
 * is read anew when it is asked for. */
#include "stream/collector_private.h"

enum {
	COLLECTOR_STREAMS_MAX = 50000,
	COLLECTOR_TENANTS_MAX = 10000,
	COLLECTOR_KNOWN_MAX = 64, /* incarnations of a stream */
	RECENT_MAX_BYTES = 128 << 20,
};

static struct hash128 collector_hash(const struct collector *collector, const struct stream_id *id)
{
	struct hash128 hash = hash128(id->tenant.data, id->tenant.len, collector->seed);
	const struct slice *names[] = {&id->names.source, &id->names.cluster, &id->names.datatype,
				       &id->names.name};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		hash = hash128(names[i]->data, names[i]->len,
			       hash.low ^ (hash.high + names[i]->len));
	return hash;
}

/* ---- The order in which they were asked for ---------------------------------------------------
 */

static void collector_unlink(struct collector *collector, struct collector_stream *stream)
{
	*(stream->newer ? &stream->newer->older : &collector->newest) = stream->older;
	*(stream->older ? &stream->older->newer : &collector->oldest) = stream->newer;
}

static void collector_link(struct collector *collector, struct collector_stream *stream)
{
	stream->newer = NULL;
	stream->older = collector->newest;
	*(stream->older ? &stream->older->newer : &collector->oldest) = stream;
	collector->newest = stream;
}

static void collector_forget_incarnations(struct collector *collector,
					  struct collector_stream *stream)
{
	while (stream->incarnations) {
		struct collector_incarnation *place = stream->incarnations;
		stream->incarnations = place->next;
		atomic_fetch_sub(&collector->recent_bytes, (int64_t)recent_bytes(&place->recent));
		recent_release(&place->recent);
		offsets_release(&place->held);
		mem_free(place);
	}
	stream->incarnation_count = 0;
	stream->present = stream->previous = NULL;
	stream->present_read = false;
}

void collector_settle(struct collector *collector, struct collector_stream *stream)
{
	if (stream->doubted || stream->incarnation_count > COLLECTOR_KNOWN_MAX)
		collector_forget_incarnations(collector, stream);
	stream->doubted = false;
	offsets_release(&stream->round);
}

static void collector_forget(struct collector *collector, struct collector_stream *stream)
{
	collector_unlink(collector, stream);
	hash_table_remove(&collector->streams, stream->hash);
	stream->tenant->streams--;
	collector_forget_incarnations(collector, stream);
	mem_free(stream->texts);
	mem_free(stream);
}

/* Those that nobody has had for longest, until so many are left, or all that are left are at work.
 */
static void collector_forget_idle(struct collector *collector, size_t left)
{
	struct collector_stream *stream = collector->oldest;
	while (stream && collector->streams.count > left) {
		struct collector_stream *newer = stream->newer;
		if (!stream->busy && !stream->waiting)
			collector_forget(collector, stream);
		stream = newer;
	}
}

void collector_forget_some(struct collector *collector)
{
	collector_forget_idle(collector, COLLECTOR_STREAMS_MAX);
}

/* A stream that is asked for again reads its incarnations anew, and their last records. */
void collector_forget_records(struct collector *collector)
{
	struct collector_stream *stream = collector->oldest;
	if (atomic_load(&collector->recent_bytes) <= RECENT_MAX_BYTES)
		return;
	for (; stream && atomic_load(&collector->recent_bytes) > RECENT_MAX_BYTES / 2;
	     stream = stream->newer)
		if (!stream->busy && !stream->waiting)
			collector_forget_incarnations(collector, stream);
}

void collector_remember(struct collector *collector, struct collector_incarnation *place,
			uint64_t hash)
{
	size_t before = recent_bytes(&place->recent);
	recent_add(&place->recent, hash);
	size_t after = recent_bytes(&place->recent);
	if (after != before)
		atomic_fetch_add(&collector->recent_bytes, (int64_t)after - (int64_t)before);
}

/* ---- Tenants --------------------------------------------------------------------------------- */

static void collector_free_tenant(struct collector_tenant *tenant)
{
	mem_free(tenant->text);
	mem_free(tenant);
}

/* Those none of whose streams are known now. Slots move when one is removed: each place is looked
 * at until its tenant stays. */
static void collector_forget_tenants(struct collector *collector)
{
	for (size_t at = 0; at < collector->tenants.slot_count;) {
		struct collector_slot *slot = hash_table_at(&collector->tenants, at);
		struct collector_tenant *tenant = slot ? slot->what : NULL;
		if (!tenant || tenant->streams) {
			at++;
			continue;
		}
		hash_table_remove(&collector->tenants, tenant->hash);
		collector_free_tenant(tenant);
	}
}

static struct collector_tenant *collector_find_tenant(struct collector *collector,
						      struct slice tenant)
{
	bool added;
	struct hash128 hash = hash128(tenant.data, tenant.len, collector->seed);
	struct collector_slot *slot = hash_table_find(&collector->tenants, hash);
	if (slot)
		return slot->what;
	if (collector->tenants.count == COLLECTOR_TENANTS_MAX) {
		collector_forget_idle(collector, collector->streams.count / 2);
		collector_forget_tenants(collector);
	}
	if (collector->tenants.count == COLLECTOR_TENANTS_MAX)
		return NULL;
	struct collector_tenant *made = mem_zalloc(sizeof(*made));
	made->text = mem_copy_text(tenant);
	made->tenant = (struct slice){made->text, tenant.len};
	made->hash = hash;
	slot = hash_table_add(&collector->tenants, hash, sizeof(*slot), &added);
	slot->what = made;
	return made;
}

void collector_forget_all(struct collector *collector)
{
	while (collector->newest)
		collector_forget(collector, collector->newest);
	hash_table_release(&collector->streams);
	for (size_t at = 0; at < collector->tenants.slot_count; at++) {
		struct collector_slot *slot = hash_table_at(&collector->tenants, at);
		if (!slot)
			continue;
		collector_free_tenant(slot->what);
	}
	hash_table_release(&collector->tenants);
}

/* ---- Finding --------------------------------------------------------------------------------- */

static struct slice collector_take_text(char **at, struct slice text)
{
	char *to = *at;
	if (text.len)
		memcpy(to, text.data, text.len);
	*at += text.len;
	return (struct slice){to, text.len};
}

static void collector_keep_names(struct collector_stream *stream, const struct stream_names *names)
{
	char *at = mem_alloc(names->source.len + names->cluster.len + names->datatype.len +
			     names->name.len + 1);
	stream->texts = at;
	stream->names.source = collector_take_text(&at, names->source);
	stream->names.cluster = collector_take_text(&at, names->cluster);
	stream->names.datatype = collector_take_text(&at, names->datatype);
	stream->names.name = collector_take_text(&at, names->name);
}

struct collector_stream *collector_known_stream(struct collector *collector,
						const struct stream_id *id)
{
	struct collector_slot *slot =
		hash_table_find(&collector->streams, collector_hash(collector, id));
	return slot ? slot->what : NULL;
}

struct collector_stream *collector_find_stream(struct collector *collector,
					       const struct stream_id *id)
{
	bool added;
	struct collector_stream *stream = collector_known_stream(collector, id);
	if (stream) {
		collector_unlink(collector, stream);
		collector_link(collector, stream);
		return stream;
	}
	struct collector_tenant *tenant = collector_find_tenant(collector, id->tenant);
	if (!tenant)
		return NULL;
	struct collector_stream *made = mem_zalloc(sizeof(*made));
	made->hash = collector_hash(collector, id);
	made->tenant = tenant;
	tenant->streams++;
	collector_keep_names(made, &id->names);
	struct collector_slot *slot =
		hash_table_add(&collector->streams, made->hash, sizeof(*slot), &added);
	slot->what = made;
	collector_link(collector, made);
	return made;
}

struct collector_incarnation *collector_appended(const struct collector_stream *stream)
{
	struct collector_incarnation *place = stream->incarnations;
	while (place && (!stream->appended || place->incarnation != stream->appended))
		place = place->next;
	return place;
}

struct collector_incarnation *collector_find_incarnation(struct collector_stream *stream,
							 uint64_t incarnation)
{
	struct collector_incarnation *place = stream->incarnations;
	while (place && place->incarnation != incarnation)
		place = place->next;
	if (place)
		return place;
	place = mem_zalloc(sizeof(*place));
	place->incarnation = incarnation;
	place->next = stream->incarnations;
	stream->incarnations = place;
	stream->incarnation_count++;
	return place;
}

struct stream_id collector_id_of(const struct collector_stream *stream,
				 const struct collector_incarnation *place)
{
	return (struct stream_id){.tenant = stream->tenant->tenant,
				  .names = stream->names,
				  .incarnation = place->incarnation};
}

/* ---- Rates ----------------------------------------------------------------------------------- */

bool collector_rate_take(struct collector_rate *rate, double units, double a_second, double burst_s,
			 int64_t now_ms)
{
	double most = a_second * burst_s;
	if (!rate->begun)
		*rate = (struct collector_rate){most, now_ms, true};
	if (now_ms > rate->at_ms)
		rate->left += (double)(now_ms - rate->at_ms) / 1000 * a_second;
	rate->at_ms = now_ms;
	if (rate->left > most)
		rate->left = most;
	if (rate->left <= 0)
		return false;
	rate->left -= units; /* it may be less than none then, so that what is large passes, too */
	return true;
}
