/* clock: whether the server believes its clock, by which what is stored expires; and that it is
 * right (api/admin/clock.c). */
#include <string.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "wire/timetext.h"

struct client_clock_args {
	struct command_args line;
	const char *accept;
};

static void client_clock_add_time(struct text_table *table, int64_t ms)
{
	char text[TIME_PRINT_MAX_BYTES];
	text_table_add(table, (struct slice){text, time_print(text, ms / 1000 * 1000)});
}

static void client_clock_print(const struct command_args *args, const struct json *root,
			       UNUSED struct arena *arena)
{
	static const char *const titles[] = {"doubted", "shows", "expected", "stood"};
	struct text_table table;
	bool doubted = false;
	int err = json_get_bool(root, "doubted", &doubted, NULL);
	text_table_init(&table, ARRAY_LEN(titles), titles);
	text_table_add(&table, err ? SLICE("-") : doubted ? SLICE("yes") : SLICE("no"));
	client_clock_add_time(&table, client_i64(root, "shows"));
	client_clock_add_time(&table, client_i64(root, "expected"));
	text_table_addf(&table, "%lld", (long long)(client_i64(root, "stoodMs") / 1000));
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int client_clock_run(const struct command_args *args)
{
	const struct client_clock_args *clock =
		CONTAINER_OF(args, const struct client_clock_args, line);
	return client_show_route(args, clock->accept ? "POST" : NULL,
				 clock->accept ? "/api/clock/accept" : "/api/clock",
				 client_clock_print);
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_clock_args, field, __VA_ARGS__)
static const struct command_option client_clock_options[] = {
	ROW(choice, accept, NULL, "accept",
	    "says that the clock is right, as after a month in which the machine was off; what has "
	    "expired by it is removed then",
	    .choices = "accept"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

const struct command client_clock = {
	.name = "clock",
	.summary = "print whether the clock is believed, by which data expires; accept it",
	.about = "Prints whether the server believes the clock of its machine. What expires by a "
		 "wrong clock is gone for good. So after a jump, or a start at a time far from "
		 "that of the last commit, nothing expires until the clock has stood for a day, "
		 "or is back where it should be:\n"
		 "doubted\twhether that is so\n"
		 "shows\twhat the clock shows\n"
		 "expected\twhat it should show by what is known: the time of the last commit, "
		 "and what has passed since the start\n"
		 "stood\tfor how many seconds it has stood where it is\n",
	.examples = "granary clock\n"
		    "granary clock accept\n",
	COMMAND_TAKES(client_clock_options, client_clock_args),
	.run = client_clock_run,
};
