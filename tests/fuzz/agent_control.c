/* Commands for an agent: each has a reply of whole lines, and a start finds in the file what stood.
 */
#include "agent/adaptors.h"
#include "agent/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_MAX_BYTES = 8 << 20 };

static struct buf on_disk;

static int disk_read(struct files *files, const char *path, size_t max_bytes, struct buf *out)
{
	(void)files;
	(void)path;
	(void)max_bytes;
	return buf_append(out, on_disk.data, on_disk.len);
}

static int disk_replace(struct files *files, const char *path, struct slice bytes, unsigned mode)
{
	(void)files;
	(void)path;
	(void)mode;
	buf_clear(&on_disk);
	return buf_append(&on_disk, bytes.data, bytes.len);
}

static void agent_configure_not(struct control_agent *agent, struct adaptors **adaptors)
{
	(void)agent;
	adaptors_free(*adaptors);
	*adaptors = NULL;
}

static void agent_look_not(struct control_agent *agent, struct buf *out)
{
	(void)agent;
	(void)out;
}

static void agent_do_not(struct control_agent *agent)
{
	(void)agent;
}

static struct files disk = {.read = disk_read, .replace = disk_replace};
static struct control_agent agent = {agent_configure_not, agent_look_not, agent_do_not,
				     agent_do_not};

static void start(struct control *control)
{
	const struct control_options options = {
		.files = &disk, .agent = &agent, .path = "/control", .host = SLICE("host")};
	struct adaptors *base = adaptors_new();
	struct errbuf e = {""};
	control_init(control, &options);
	ASSERT(!control_load(control, &e));
	control_set_base(control, &base);
}

static void answer(struct control *control, struct slice line)
{
	struct buf out;
	buf_init(&out, CONTROL_REPLY_MAX_BYTES);
	bool open = control_answer(control, line, &out);
	ASSERT(!out.failed && (!open || out.len));
	ASSERT(!out.len || out.data[out.len - 1] == '\n');
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = {(const char *)data, size}, line;
	struct control control, again;
	buf_init(&on_disk, FILE_MAX_BYTES);
	start(&control);
	while (slice_take_text_line(&rest, &line))
		answer(&control, line);
	start(&again);
	ASSERT(control_count(&again) == control_count(&control));
	control_release(&control);
	control_release(&again);
	buf_release(&on_disk);
	return 0;
}
