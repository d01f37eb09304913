/* The keeper of the devices: reads them at the start, changes them one after the other.
 *
 * A change is checked against the snapshot of its time, written, and only when that is durable
 * becomes a snapshot of its own; so what anybody sees is on disk. Changes that come meanwhile wait
 * in a list with a bound. */
#include <pthread.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/grow.h"
#include "base/hash_set.h"
#include "base/log.h"
#include "base/owner.h"
#include "base/utf8.h"
#include "inventory/private.h"
#include "store/wait.h"

enum {
	WAITING_MAX = 64,
	/* All that can be said in one change: 100,000 devices of some hundred bytes. */
	WRITE_MAX_BYTES = 64 << 20,
};

struct inventory_keeper {
	struct inventory_options options;
	struct inventory_listener *listeners;
	struct inventory_change *first, *last; /* the first is at work */
	size_t waiting;
	pthread_mutex_t lock; /* guards the pointer `snapshot` */
	const struct inventory *snapshot;
};

static const struct slice keeper_row_kind = SLICE("device");

/* ---- Snapshots ------------------------------------------------------------------------------- */

const struct inventory *inventory_keeper_take(struct inventory_keeper *keeper)
{
	pthread_mutex_lock(&keeper->lock);
	const struct inventory *snapshot = keeper->snapshot;
	inventory_take(snapshot);
	pthread_mutex_unlock(&keeper->lock);
	return snapshot;
}

static void keeper_publish(struct inventory_keeper *keeper, const struct inventory *snapshot)
{
	pthread_mutex_lock(&keeper->lock);
	const struct inventory *before = keeper->snapshot;
	ASSERT(snapshot->number == before->number + 1);
	keeper->snapshot = snapshot;
	pthread_mutex_unlock(&keeper->lock);
	inventory_release(before);
	for (struct inventory_listener *l = keeper->listeners, *next; l; l = next) {
		next = l->next;
		l->changed(l);
	}
}

void inventory_keeper_listen(struct inventory_keeper *keeper, struct inventory_listener *listener)
{
	ASSERT(listener->changed);
	listener->next = keeper->listeners;
	keeper->listeners = listener;
}

void inventory_keeper_unlisten(struct inventory_keeper *keeper, struct inventory_listener *listener)
{
	for (struct inventory_listener **at = &keeper->listeners; *at; at = &(*at)->next) {
		if (*at == listener) {
			*at = listener->next;
			return;
		}
	}
}

/* A list of devices that is being made. */
struct device_list {
	const struct device **devices;
	size_t count;
};

static void device_list_release(struct device_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		device_release(list->devices[i]);
	mem_free(list->devices);
}

static int keeper_by_name(const void *left, const void *right)
{
	return slice_compare((*(const struct device *const *)left)->name,
			     (*(const struct device *const *)right)->name);
}

static const struct inventory *device_list_snapshot(struct inventory_keeper *keeper,
						    struct device_list *list, uint64_t number)
{
	if (list->count)
		qsort(list->devices, list->count, sizeof(*list->devices), keeper_by_name);
	return inventory_new(keeper->options.conf, list->devices, list->count, number);
}

/* ---- At the start --------------------------------------------------------------------------- */

struct keeper_load {
	uint32_t magic;
	struct inventory_keeper *keeper;
	struct device_list list;
	size_t room;
};

/* What cannot be read is named and left alone: a later version may know it. */
static int keeper_load_one(const struct store_cell *cell, void *owner)
{
	struct keeper_load *load = FROM_OWNER(keeper_load, owner);
	struct slice host, name = cell->column.part[0];
	struct device_spec spec;
	struct arena arena;
	struct errbuf e;
	uint16_t port;
	arena_init(&arena, DEVICE_MAX_BYTES);
	struct device *device = NULL;
	if (device_decode(name, cell->value, &arena, &spec) == 0 &&
	    device_spec_check(&spec, NULL, &host, &port, &e) == 0)
		device = device_new(&spec, host, port, load->keeper->options.conf, NULL);
	GROW(load->list.devices, load->room, load->list.count + 1);
	if (device)
		load->list.devices[load->list.count++] = device;
	else
		log_warn("inventory: the device " SHOWN " is stored in a way that cannot be read",
			 SHOWN_OF(name));
	arena_release(&arena);
	return 0;
}

int inventory_keeper_open(const struct inventory_options *options, struct inventory_keeper **opened,
			  struct errbuf *e)
{
	struct inventory_keeper *keeper = mem_zalloc(sizeof(*keeper));
	const struct store_parts row = {{keeper_row_kind}};
	struct keeper_load load = {.magic = MAGIC_OF(keeper_load), .keeper = keeper};
	struct task_queue queue;
	keeper->options = *options;
	inventory_conf_take(options->conf);
	pthread_mutex_init(&keeper->lock, NULL);
	task_queue_init(&queue);
	int err = store_row_wait(options->store, &queue, clock_wall_ms(options->clock),
				 TABLE_DEVICES, &row, keeper_load_one, &load, e);
	if (err)
		errbuf_prefix(e, err, "the devices could not be read");
	keeper->snapshot = device_list_snapshot(keeper, &load.list, 1);
	device_list_release(&load.list);
	task_queue_release(&queue);
	*opened = err ? NULL : keeper;
	if (err)
		inventory_keeper_free(keeper);
	return err;
}

bool inventory_keeper_idle(const struct inventory_keeper *keeper)
{
	return keeper->first == NULL;
}

void inventory_keeper_free(struct inventory_keeper *keeper)
{
	if (!keeper)
		return;
	ASSERT(inventory_keeper_idle(keeper));
	inventory_release(keeper->snapshot);
	inventory_conf_release(keeper->options.conf);
	pthread_mutex_destroy(&keeper->lock);
	mem_free(keeper);
}

/* ---- Changes: checking ---------------------------------------------------------------------- */

static int keeper_refuse(struct inventory_change *change, size_t fault, int err, const char *why)
{
	change->fault = fault;
	return device_refuse(&change->specs[fault], &change->error, err, "%s", why);
}

static int keeper_by_spec_name(const void *left, const void *right)
{
	const struct device_spec *a = *(const struct device_spec *const *)left;
	const struct device_spec *b = *(const struct device_spec *const *)right;
	int order = slice_compare(a->name, b->name);
	return order ? order : (a > b) - (a < b);
}

/* The specs by name; a name that stands twice is refused. */
static int keeper_sort_specs(struct inventory_change *change, const struct device_spec **sorted)
{
	size_t fault = SIZE_MAX;
	for (size_t i = 0; i < change->count; i++)
		sorted[i] = &change->specs[i];
	if (change->count)
		qsort(sorted, change->count, sizeof(*sorted), keeper_by_spec_name);
	for (size_t i = 1; i < change->count; i++) {
		size_t second = (size_t)(sorted[i] - change->specs);
		if (slice_equal(sorted[i - 1]->name, sorted[i]->name) && second < fault)
			fault = second;
	}
	return fault == SIZE_MAX ? 0 : keeper_refuse(change, fault, ERR_INVALID, "stands twice");
}

static int keeper_check_there(struct inventory_change *change, bool must_be)
{
	const struct inventory *snapshot = change->keeper->snapshot;
	for (size_t i = 0; i < change->count; i++) {
		bool there = inventory_device(snapshot, change->specs[i].name) != NULL;
		if (there && !must_be)
			return keeper_refuse(change, i, ERR_EXISTS, "is there already");
		if (!there && must_be)
			return keeper_refuse(change, i, ERR_NOT_FOUND, "does not exist");
	}
	if (!must_be && snapshot->device_count + change->count > INVENTORY_DEVICES_MAX)
		return errbuf_set(&change->error, ERR_LIMIT, "more than %d devices",
				  INVENTORY_DEVICES_MAX);
	return 0;
}

/* ---- Changes: names that series have -------------------------------------------------------- */

static struct hash128 keeper_hash_of_name(struct slice name)
{
	return hash128(name.data, name.len, 0);
}

/* NAME, or NAME~2, NAME~3 and so on: the first that is not in the set, which then has it. Made in
 * `text`. */
static struct slice keeper_take_free_name(struct hash_set *taken, struct slice name,
					  char text[INVENTORY_NAME_MAX_BYTES])
{
	char suffix[24] = "";
	for (size_t number = 2;; number++) {
		size_t suffix_len = strlen(suffix);
		size_t len = utf8_cut(name, INVENTORY_NAME_MAX_BYTES - suffix_len);
		struct slice made = {text, len + suffix_len};
		if (len)
			memcpy(text, name.data, len);
		memcpy(text + len, suffix, suffix_len);
		if (hash_set_add(taken, keeper_hash_of_name(made), SIZE_MAX))
			return made;
		snprintf(suffix, sizeof(suffix), "~%zu", number);
	}
}

static void keeper_note_stored(const struct inventory *snapshot, struct hash_set *taken)
{
	for (size_t i = 0; i < snapshot->device_count; i++)
		hash_set_add(taken, keeper_hash_of_name(device_stored_as(snapshot->devices[i])),
			     SIZE_MAX);
}

/* ---- Changes: the next snapshot -------------------------------------------------------------- */

/* What it names is what it named before, though the configuration may no longer have it: a device
 * with a problem can still be switched off. */
static bool keeper_names_as_before(const struct inventory_change *change,
				   const struct device *before, const struct device_spec *spec)
{
	if (change->op == INVENTORY_RENAME)
		return true;
	if (!before || before->oidset_name_count != spec->oidset_count ||
	    !slice_equal(before->credentials_name, spec->credentials) ||
	    !slice_equal(before->poller, spec->poller))
		return false;
	for (size_t i = 0; i < spec->oidset_count; i++) {
		if (!slice_equal(before->oidset_names[i], spec->oidsets[i]))
			return false;
	}
	return true;
}

/* `same`: the device that it is the next version of; NULL: a new one. */
static const struct device *keeper_make_device(struct inventory_change *change,
					       const struct device_spec *spec,
					       const struct device *same, struct slice stored_as)
{
	struct inventory_keeper *keeper = change->keeper;
	struct device_spec made = *spec;
	made.stored_as = stored_as;
	struct slice host = {NULL, 0};
	uint16_t port = 0;
	change->fault = (size_t)(spec - change->specs);
	if (change->fault >= change->count)
		change->fault = 0; /* the new name of the first */
	if (made.begin_ms == DEVICE_BEGIN_NOW)
		made.begin_ms = clock_wall_ms(keeper->options.clock);
	bool known = keeper_names_as_before(change, same, spec);
	bool named_again = !same || !slice_equal(same->name, spec->name);
	if (named_again && device_name_check_new(spec, &change->error))
		return NULL;
	if (device_spec_check(&made, known ? NULL : keeper->options.conf, &host, &port,
			      &change->error))
		return NULL;
	/* Another poller has not said anything of it yet. */
	bool same_poller = same && slice_equal(same->poller, made.poller);
	struct device *device = device_new(&made, host, port, keeper->options.conf,
					   same_poller ? same->state : NULL);
	if (!device)
		device_refuse(spec, &change->error, ERR_LIMIT, "is too long");
	return device;
}

/* Devices of the present snapshot but those that `sorted` names. */
static void keeper_keep_others(struct inventory_change *change,
			       const struct device_spec *const *sorted, struct device_list *list)
{
	const struct inventory *snapshot = change->keeper->snapshot;
	size_t at = 0;
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct device *device = snapshot->devices[i];
		while (at < change->count && slice_compare(sorted[at]->name, device->name) < 0)
			at++;
		if (at < change->count && slice_equal(sorted[at]->name, device->name))
			continue;
		device_take(device);
		list->devices[list->count++] = device;
	}
}

static int keeper_put_device(struct inventory_change *change, const struct device *device)
{
	const struct store_parts key = {.part = {keeper_row_kind}},
				 column = {.part = {device->name}};
	struct buf text;
	buf_init(&text, DEVICE_MAX_BYTES);
	device_encode(device, &text);
	int err = text.failed ? ERR_LIMIT
			      : store_cell_put(change->write, TABLE_DEVICES, &key, &column,
					       buf_slice(&text),
					       store_stamp(change->keeper->options.store), 0);
	buf_release(&text);
	return err ? errbuf_set(&change->error, err, "too much for one change") : 0;
}

static int keeper_delete_device(struct inventory_change *change, struct slice name)
{
	const struct store_parts key = {.part = {keeper_row_kind}}, column = {.part = {name}};
	int err = store_cell_delete(change->write, TABLE_DEVICES, &key, &column,
				    store_stamp(change->keeper->options.store));
	return err ? errbuf_set(&change->error, err, "too much for one change") : 0;
}

static int keeper_add_made(struct inventory_change *change, const struct device_spec *spec,
			   const struct device *same, struct slice stored_as,
			   struct device_list *list)
{
	const struct device *device = keeper_make_device(change, spec, same, stored_as);
	if (!device)
		return ERR_INVALID;
	list->devices[list->count++] = device;
	return keeper_put_device(change, device);
}

/* The data of a name that the device does not have any more, or that another has, stay whose they
 * are. */
static int keeper_fill_add(struct inventory_change *change, struct device_list *list)
{
	struct hash_set taken = {0};
	char text[INVENTORY_NAME_MAX_BYTES];
	int err = 0;
	keeper_note_stored(change->keeper->snapshot, &taken);
	for (size_t i = 0; i < change->count && !err; i++) {
		const struct device_spec *spec = &change->specs[i];
		err = keeper_add_made(change, spec, NULL,
				      keeper_take_free_name(&taken, spec->name, text), list);
	}
	hash_set_release(&taken);
	return err;
}

static int keeper_fill_change(struct inventory_change *change, struct device_list *list)
{
	int err = 0;
	for (size_t i = 0; i < change->count && !err; i++) {
		const struct device_spec *spec = &change->specs[i];
		const struct device *same = inventory_device(change->keeper->snapshot, spec->name);
		ASSERT(same); /* keeper_check_there */
		err = keeper_add_made(change, spec, same, device_stored_as(same), list);
	}
	return err;
}

static int keeper_fill_remove(struct inventory_change *change, UNUSED struct device_list *list)
{
	int err = 0;
	for (size_t i = 0; i < change->count && !err; i++)
		err = keeper_delete_device(change, change->specs[i].name);
	return err;
}

static int keeper_fill_rename(struct inventory_change *change, struct device_list *list)
{
	const struct inventory *snapshot = change->keeper->snapshot;
	struct arena arena;
	if (inventory_device(snapshot, change->to))
		return errbuf_set(&change->error, ERR_EXISTS, "device " SHOWN ": is there already",
				  SHOWN_OF(change->to));
	arena_init(&arena, DEVICE_MAX_BYTES);
	const struct device *same = inventory_device(snapshot, change->specs[0].name);
	ASSERT(same); /* keeper_check_there */
	struct device_spec spec = device_spec_of(same, &arena);
	spec.name = change->to;
	int err = keeper_add_made(change, &spec, same, device_stored_as(same), list);
	err = err ? err : keeper_delete_device(change, change->specs[0].name);
	arena_release(&arena);
	return err;
}

/* Each device is made again, so that the poller sees what has changed of its credentials. */
static int keeper_fill_renew(struct inventory_change *change, struct device_list *list)
{
	struct inventory_keeper *keeper = change->keeper;
	struct device_list before = *list; /* all of them */
	inventory_conf_take(change->conf);
	inventory_conf_release(keeper->options.conf);
	keeper->options.conf = change->conf;
	for (size_t i = 0; i < before.count; i++) {
		const struct device *same = before.devices[i];
		struct arena arena;
		arena_init(&arena, DEVICE_MAX_BYTES);
		struct device_spec spec = device_spec_of(same, &arena);
		struct device *made = device_new(&spec, same->address, same->port,
						 keeper->options.conf, same->state);
		ASSERT(made); /* some 20 KB at most */
		list->devices[i] = made;
		device_release(same);
		arena_release(&arena);
	}
	return 0;
}

static const struct {
	bool must_be; /* there; else it must not be */
	int (*fill)(struct inventory_change *change, struct device_list *list);
} ops[] = {
	[INVENTORY_ADD] = {false, keeper_fill_add},
	[INVENTORY_CHANGE] = {true, keeper_fill_change},
	[INVENTORY_RENAME] = {true, keeper_fill_rename},
	[INVENTORY_REMOVE] = {true, keeper_fill_remove},
	[INVENTORY_RENEW] = {true, keeper_fill_renew},
};

/* Makes the next snapshot and the write that makes it durable. */
static int keeper_prepare_change(struct inventory_change *change)
{
	struct inventory_keeper *keeper = change->keeper;
	const struct inventory *snapshot = keeper->snapshot;
	const struct device_spec **sorted = mem_alloc_array(change->count + 1, sizeof(*sorted));
	struct device_list list = {
		mem_alloc_array(snapshot->device_count + change->count + 1, sizeof(*list.devices)),
		0};
	int err = keeper_sort_specs(change, sorted);
	err = err ? err : keeper_check_there(change, ops[change->op].must_be);
	if (!err) {
		change->fault = change->count;
		keeper_keep_others(change, sorted, &list);
		err = ops[change->op].fill(change, &list);
	}
	ASSERT(list.count <= snapshot->device_count + change->count);
	if (!err) {
		change->fault = change->count;
		change->snapshot = device_list_snapshot(keeper, &list, snapshot->number + 1);
	}
	device_list_release(&list);
	mem_free(sorted);
	return err;
}

/* ---- Changes: one after the other ----------------------------------------------------------- */

static void keeper_begin_change(struct inventory_keeper *keeper);

/* `change` may be gone after this. */
static void keeper_finish_change(struct inventory_change *change, int err)
{
	struct inventory_keeper *keeper = change->keeper;
	const struct inventory *snapshot = change->snapshot;
	ASSERT(keeper->first == change && (err || snapshot));
	keeper->first = change->next;
	if (!keeper->first)
		keeper->last = NULL;
	keeper->waiting--;
	ASSERT(!keeper->first == !keeper->waiting);
	change->magic = 0;
	store_write_free(change->write);
	change->write = NULL;
	change->snapshot = NULL;
	if (err)
		inventory_release(snapshot);
	else
		keeper_publish(keeper, snapshot);
	change->done(change, err);
	keeper_begin_change(keeper);
}

static void keeper_change_written(struct store_write *write, int err)
{
	struct inventory_change *change = FROM_OWNER(inventory_change, write->owner);
	ASSERT(change->write == write);
	if (err)
		errbuf_set(&change->error, err, "it could not be stored: %s", err_text(err));
	keeper_finish_change(change, err);
}

static void keeper_run_change(struct task *task)
{
	struct inventory_change *change = CONTAINER_OF(task, struct inventory_change, task);
	struct inventory_keeper *keeper = change->keeper;
	change->write = store_write_new(keeper->options.store, WRITE_MAX_BYTES);
	change->write->executor = keeper->options.executor;
	change->write->done = keeper_change_written;
	change->write->owner = change;
	int err = keeper_prepare_change(change);
	if (!err && change->op != INVENTORY_RENEW) {
		err = store_write_submit(change->write);
		if (!err)
			return;
		errbuf_set(&change->error, err, "it could not be stored: %s", err_text(err));
	}
	keeper_finish_change(change, err);
}

/* The first of the list, from the executor. */
static void keeper_begin_change(struct inventory_keeper *keeper)
{
	struct executor *executor = keeper->options.executor;
	if (keeper->first)
		executor->post(executor, &keeper->first->task);
}

int inventory_keeper_change(struct inventory_keeper *keeper, struct inventory_change *change)
{
	ASSERT((unsigned)change->op < ARRAY_LEN(ops) && change->done);
	ASSERT(change->op != INVENTORY_RENAME || change->count == 1);
	ASSERT(change->op != INVENTORY_RENEW || (change->count == 0 && change->conf));
	if (keeper->waiting == WAITING_MAX)
		return ERR_BUSY;
	change->magic = MAGIC_OF(inventory_change);
	change->keeper = keeper;
	change->next = NULL;
	change->write = NULL;
	change->snapshot = NULL;
	change->error.text[0] = 0;
	change->fault = change->count;
	change->task.run = keeper_run_change;
	bool first = keeper->first == NULL;
	if (first)
		keeper->first = change;
	else
		keeper->last->next = change;
	keeper->last = change;
	keeper->waiting++;
	if (first)
		keeper_begin_change(keeper);
	return 0;
}
