#include "cmd/import_source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/coding.h"

static int import_source_fail(const struct import_source *source, int err, struct errbuf *e)
{
	return errbuf_set(e, err, "%s: %s", source->name, err_text(err));
}

/* Fills `raw` up to its end, or that of the file. */
static int import_source_fill(struct import_source *source, struct errbuf *e)
{
	size_t len = 0;
	while (len < sizeof(source->raw)) {
		ssize_t n = read(source->fd, source->raw + len, sizeof(source->raw) - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return import_source_fail(source, -errno, e);
		if (n == 0)
			break;
		len += (size_t)n;
	}
	source->raw_bytes += len;
	source->in = (struct slice){source->raw, len};
	return 0;
}

static const struct coding *import_source_coding(const struct import_source *source)
{
	if (slice_starts_with(source->in, SLICE("\x1f\x8b")))
		return coding_find(SLICE("gzip"));
	if (slice_starts_with(source->in, SLICE("\x28\xb5\x2f\xfd")))
		return coding_find(SLICE("zstd"));
	return NULL;
}

int import_source_open(struct import_source *source, const char *path, struct errbuf *e)
{
	bool is_stdin = strcmp(path, "-") == 0;
	struct stat found;
	memset(source, 0, offsetof(struct import_source, raw));
	source->name = is_stdin ? "standard input" : path;
	source->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (source->fd < 0 || fstat(source->fd, &found))
		return import_source_fail(source, -errno, e);
	if (S_ISDIR(found.st_mode))
		return errbuf_set(e, ERR_INVALID, "%s is a directory", source->name);
	source->size_bytes = S_ISREG(found.st_mode) ? (uint64_t)found.st_size : 0;
	int err = import_source_fill(source, e);
	if (err)
		return err;
	const struct coding *coding = import_source_coding(source);
	if (coding) {
		source->decoder = body_decoder_new();
		body_decoder_allow_files(source->decoder);
		body_decoder_begin(source->decoder, coding);
	}
	source->ended = !source->in.len;
	return 0;
}

/* The next piece of what is packed. */
static int import_source_unpack(struct import_source *source, struct slice *piece, struct errbuf *e)
{
	const char *reason;
	int err = 0;
	*piece = (struct slice){NULL, 0};
	while (!err && !piece->len && !source->ended) {
		if (!source->in.len)
			err = import_source_fill(source, e);
		if (err)
			break;
		enum body_result result = body_decoder_next(source->decoder, &source->in,
							    !source->in.len, piece, &reason);
		if (result == BODY_BAD)
			err = errbuf_set(e, ERR_DAMAGED, "%s cannot be unpacked: %s", source->name,
					 reason);
		source->ended = result == BODY_END;
	}
	return err;
}

int import_source_read(struct import_source *source, struct buf *out, struct errbuf *e)
{
	struct slice piece = source->in;
	int err = 0;
	if (source->decoder) {
		err = import_source_unpack(source, &piece, e);
	} else if (!piece.len) {
		err = import_source_fill(source, e);
		piece = source->in;
		source->ended = !piece.len;
	}
	if (!source->decoder)
		source->in = (struct slice){NULL, 0};
	if (!err && piece.len && buf_append(out, piece.data, piece.len))
		err = errbuf_set(e, ERR_LIMIT, "%s does not fit into memory", source->name);
	return err;
}

void import_source_close(struct import_source *source)
{
	if (source->decoder)
		body_decoder_free(source->decoder);
	if (source->fd > STDIN_FILENO)
		close(source->fd);
}
