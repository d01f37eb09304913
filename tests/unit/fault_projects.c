/* Projects and their keys, on a virtual clock. */
#include "fault_harness.h"

#include "fault/projects.h"

static struct harness h;
static struct fault_projects *projects;
static struct errbuf error;
static const struct fault_quota_limits unlimited;

static void open_projects(void)
{
	projects = fault_projects_new(h.store, &h.clock.clock, &unlimited);
	assert_int_equal(fault_projects_open(projects, &h.queue, &error), 0);
}

static int start(void **state)
{
	(void)state;
	harness_open(&h);
	error.text[0] = 0;
	open_projects();
	return 0;
}

static int end(void **state)
{
	(void)state;
	fault_projects_free(projects);
	harness_close(&h);
	return 0;
}

static struct fault_project project_of(uint64_t number)
{
	struct fault_project project;
	assert_true(fault_projects_find(projects, number, &project));
	return project;
}

static void the_first_project_is_there_and_stays(void **state)
{
	(void)state;
	struct fault_project first = project_of(1), none;
	assert_string_equal(first.tenant, "default");
	assert_int_equal(first.key_count, 1);
	assert_int_equal(strspn(first.keys[0], "0123456789abcdef"), 32);
	assert_false(fault_projects_find(projects, 0, &none));
	assert_false(fault_projects_find(projects, 2, &none));
	fault_projects_free(projects);
	open_projects();
	assert_string_equal(project_of(1).keys[0], first.keys[0]);
}

/* What cannot be written is not there; the server starts, and writes it at the next start. */
static void a_store_that_takes_no_writes(void **state)
{
	(void)state;
	struct clock_virtual clock;
	struct fault_project project;
	clock_virtual_init(&clock, T0_US);
	struct store *store = naive_open(&clock.clock);
	struct fault_projects *none = fault_projects_new(store, &clock.clock, &unlimited);
	naive_refuse_writes(store, ERR_FULL, 1);
	assert_int_equal(fault_projects_open(none, &h.queue, &error), 0);
	assert_false(fault_projects_find(none, 1, &project));
	naive_refuse_writes(store, ERR_FULL, 1);
	assert_int_equal(fault_projects_add(none, &h.queue, TEXT("shop"), &project, &error),
			 ERR_FULL);
	assert_true(error.text[0]);
	assert_int_equal(fault_projects_open(none, &h.queue, &error), 0);
	assert_true(fault_projects_find(none, 1, &project));
	assert_string_equal(project.tenant, "default");
	fault_projects_free(none);
	store_close(store);
}

/* Another cell is no reason not to start; those that can be read are there. */
static void a_cell_that_cannot_be_read(void **state)
{
	(void)state;
	static const uint8_t two[8] = {0, 0, 0, 0, 0, 0, 0, 2};
	const struct store_parts row = {{TEXT("project")}}, column = {{{(const char *)two, 8}}};
	struct store_write_cond *outcome;
	struct fault_project project;
	struct store_write *write = store_write_new(h.store, 1 << 16);
	assert_int_equal(store_cell_put_if(write, TABLE_FAULT_PROJECTS, &row, &column, 0,
					   TEXT("\1\3"), 0, &outcome),
			 0);
	assert_int_equal(store_write_wait(write, &h.queue), 0);
	store_write_free(write);
	fault_projects_free(projects);
	open_projects();
	assert_string_equal(project_of(1).tenant, "default");
	assert_false(fault_projects_find(projects, 2, &project));
	assert_int_equal(fault_projects_add_key(projects, &h.queue, 2, &project, &error),
			 ERR_DAMAGED);
	assert_string_equal(error.text, "project 2 is not changed: damaged data");
	/* Its number stays taken. */
	assert_int_equal(fault_projects_add(projects, &h.queue, TEXT("shop"), &project, &error), 0);
	assert_int_equal(project.number, 3);
}

static void projects_of_tenants(void **state)
{
	(void)state;
	struct fault_project project;
	size_t count;
	assert_int_equal(fault_projects_add(projects, &h.queue, TEXT("shop"), &project, &error), 0);
	assert_int_equal(project.number, 2);
	assert_int_equal(fault_projects_add(projects, &h.queue, TEXT("shop"), &project, &error),
			 ERR_EXISTS);
	assert_string_equal(error.text, "the tenant shop has project 2");
	error.text[0] = 0;
	assert_int_equal(fault_projects_add(projects, &h.queue, TEXT("a/b"), &project, &error),
			 ERR_INVALID);
	assert_string_equal(error.text, "name \"a/b\" is not 1 to 64 of A-Za-z0-9_.-");
	struct fault_project *list = fault_projects_copy(projects, &count);
	assert_int_equal(count, 2);
	assert_string_equal(list[1].tenant, "shop");
	mem_free(list);
}

/* Another process has no part of it in memory. */
static void two_processes_give_two_numbers(void **state)
{
	(void)state;
	struct fault_project project;
	struct fault_projects *other = fault_projects_new(h.store, &h.clock.clock, &unlimited);
	assert_int_equal(fault_projects_open(other, &h.queue, &error), 0);
	assert_int_equal(fault_projects_add(projects, &h.queue, TEXT("a"), &project, &error), 0);
	assert_int_equal(fault_projects_add(other, &h.queue, TEXT("b"), &project, &error), 0);
	assert_int_equal(project.number, 3);
	assert_int_equal(fault_projects_add(other, &h.queue, TEXT("a"), &project, &error),
			 ERR_EXISTS);
	assert_false(fault_projects_find(projects, 3, &project));
	assert_int_equal(fault_projects_load(projects, &h.queue, &error), 0);
	assert_string_equal(project_of(3).tenant, "b");
	fault_projects_free(other);
}

static void keys(void **state)
{
	(void)state;
	struct fault_project project = project_of(1);
	char first[FAULT_PROJECT_KEY_BYTES + 1], large[FAULT_PROJECT_KEY_BYTES + 1];
	memcpy(first, project.keys[0], sizeof(first));
	memcpy(large, first, sizeof(large));
	large[31] ^= 1;
	assert_true(fault_project_has_key(&project, slice_of(first)));
	assert_false(fault_project_has_key(&project, slice_of(large)));
	assert_false(fault_project_has_key(&project, (struct slice){first, 31}));
	assert_false(fault_project_has_key(&project, (struct slice){NULL, 0}));
	for (size_t i = 2; i <= FAULT_PROJECT_KEYS_MAX; i++) {
		assert_int_equal(fault_projects_add_key(projects, &h.queue, 1, &project, &error),
				 0);
		assert_int_equal(project.key_count, i);
	}
	assert_int_equal(fault_projects_add_key(projects, &h.queue, 1, &project, &error),
			 ERR_LIMIT);
	assert_string_equal(error.text, "project 1 has 16 keys already");
	assert_int_equal(
		fault_projects_remove_key(projects, &h.queue, 1, slice_of(first), &project, &error),
		0);
	assert_false(fault_project_has_key(&project, slice_of(first)));
	project = project_of(1);
	assert_int_equal(project.key_count, 15);
	assert_false(fault_project_has_key(&project, slice_of(first)));
	error.text[0] = 0;
	assert_int_equal(
		fault_projects_remove_key(projects, &h.queue, 1, slice_of(first), &project, &error),
		ERR_NOT_FOUND);
	error.text[0] = 0;
	assert_int_equal(fault_projects_add_key(projects, &h.queue, 9, &project, &error),
			 ERR_NOT_FOUND);
	assert_string_equal(error.text, "there is no project 9");
}

static void cells(void **state)
{
	(void)state;
	struct fault_project project = project_of(1), again;
	struct buf bytes;
	buf_init(&bytes, 4096);
	fault_project_encode(&project, &bytes);
	/* version, length and text of the tenant, count of keys, length and text of the key */
	assert_int_equal(bytes.len, 1 + 1 + 7 + 1 + 1 + 32);
	assert_int_equal(fault_project_decode(buf_slice(&bytes), &again), 0);
	assert_string_equal(again.tenant, "default");
	assert_string_equal(again.keys[0], project.keys[0]);
	for (size_t len = 0; len < bytes.len; len++)
		assert_int_equal(fault_project_decode((struct slice){bytes.data, len}, &again),
				 ERR_DAMAGED);
	bytes.data[0] = 2;
	assert_int_equal(fault_project_decode(buf_slice(&bytes), &again), ERR_VERSION);
	buf_release(&bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_project_is_there_and_stays),
		TEST(a_store_that_takes_no_writes),
		TEST(a_cell_that_cannot_be_read),
		TEST(projects_of_tenants),
		TEST(two_processes_give_two_numbers),
		TEST(keys),
		TEST(cells),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
