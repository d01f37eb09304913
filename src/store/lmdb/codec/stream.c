#include "store/lmdb/codec/stream.h"

/* An exception's index takes at most this, since no stream is longer than 2^14. */
#define PATCH_GAP_BYTES 2

void stream_cost_init(struct stream_cost *cost, struct entropy_cost *entropy)
{
	memset(cost, 0, offsetof(struct stream_cost, widths));
	cost->entropy = entropy;
}

struct width_choice {
	unsigned width;
	uint32_t exceptions;
	size_t bytes; /* packed values and exceptions */
};

static size_t patches_bytes(const uint16_t *histogram, unsigned width, unsigned top)
{
	size_t bytes = 0;
	for (unsigned w = width + 1; w <= top; w++)
		bytes += histogram[w] * (PATCH_GAP_BYTES + (size_t)(w - width + 6) / 7);
	return bytes;
}

/* The width at which `count` values with these bit widths take the fewest bytes. Only widths that
 * occur are worth trying, and only while few values lie above. */
static struct width_choice choose_width(const uint16_t *histogram, unsigned top, size_t count)
{
	struct width_choice best = {top, 0, packed_bytes(count, top)};
	uint32_t above = 0;
	for (unsigned w = top; w-- > 0;) {
		above += histogram[w + 1];
		if (above > count / 4)
			break;
		if (!histogram[w] && w)
			continue;
		size_t bytes = packed_bytes(count, w) + patches_bytes(histogram, w, top);
		if (bytes < best.bytes)
			best = (struct width_choice){w, above, bytes};
	}
	return best;
}

void stream_cost_add(struct stream_cost *cost, const uint64_t *values, size_t count)
{
	uint16_t histogram[65] = {0};
	unsigned top = kernels->count_widths(values, count, histogram);
	struct width_choice best = choose_width(histogram, top, count);
	ASSERT(cost->minis < MINIS_MAX && count <= MINI_ROWS);
	for (unsigned w = 0; w <= top; w++)
		cost->histogram[w] = (uint16_t)(cost->histogram[w] + histogram[w]);
	cost->ragged |= cost->minis && cost->counts[cost->minis - 1] < MINI_ROWS;
	cost->widths[cost->minis] = (uint8_t)best.width;
	cost->counts[cost->minis++] = (uint8_t)count;
	cost->varied_bytes += (uint32_t)best.bytes + 1;
	cost->varied_exceptions += best.exceptions;
	cost->count += (uint32_t)count;
	if (top > cost->top)
		cost->top = (uint8_t)top;
	if (cost->entropy)
		entropy_cost_add(cost->entropy, values, count);
}

static size_t stream_form_bytes(size_t values_bytes, uint32_t exceptions)
{
	return 1 + values_bytes + (exceptions ? varint_bytes(exceptions) : 0);
}

/* Ragged mini-blocks each round up to a byte; full ones are whole bytes at any width. */
static size_t ragged_bytes(const struct stream_cost *cost, unsigned width)
{
	size_t bytes = 0;
	for (uint32_t m = 0; m < cost->minis; m++)
		bytes += packed_bytes(cost->counts[m], width);
	return bytes;
}

static struct stream_form packed_form(const struct stream_cost *cost)
{
	struct width_choice one = choose_width(cost->histogram, cost->top, cost->count);
	if (cost->ragged)
		one.bytes += ragged_bytes(cost, one.width) - packed_bytes(cost->count, one.width);
	struct stream_form uniform = {.width = (uint8_t)one.width,
				      .exceptions = one.exceptions,
				      .bytes = stream_form_bytes(one.bytes, one.exceptions)};
	struct stream_form varied = {
		.varied = true,
		.exceptions = cost->varied_exceptions,
		.bytes = stream_form_bytes(cost->varied_bytes, cost->varied_exceptions)};
	return uniform.bytes <= varied.bytes ? uniform : varied;
}

/* Packed values are read several times as fast: a coded stream must win by this. */
static bool wins(size_t coded, size_t packed)
{
	return coded + coded / 32 < packed;
}

struct stream_form stream_cost_form(const struct stream_cost *cost)
{
	struct stream_form packed = packed_form(cost);
	if (!cost->entropy || !cost->count)
		return packed;
	struct entropy_form coded = entropy_cost_form(cost->entropy);
	if (coded.bytes == SIZE_MAX || !wins(coded.bytes, packed.bytes))
		return packed;
	return (struct stream_form){
		.entropy = true, .width = coded.table, .bytes = 1 + coded.bytes};
}

static uint8_t form_code(const struct stream_cost *cost, const struct stream_form *form)
{
	if (form->entropy)
		return (uint8_t)((entropy_has_details(cost->entropy, form->width)
					  ? STREAM_FORM_ENTROPY_DETAILS
					  : STREAM_FORM_ENTROPY) +
				 form->width);
	if (form->varied)
		return form->exceptions ? STREAM_FORM_VARIED_EXCEPTIONS : STREAM_FORM_VARIED;
	return (uint8_t)(form->width + (form->exceptions ? STREAM_FORM_EXCEPTIONS : 0));
}

static unsigned mini_width(const struct stream_writer *writer, uint32_t mini)
{
	return writer->form.varied ? writer->cost->widths[mini] : writer->form.width;
}

void stream_write_begin(struct stream_writer *writer, const struct stream_cost *cost, uint8_t *to)
{
	writer->cost = cost;
	writer->form = stream_cost_form(cost);
	writer->mini = writer->index = writer->patch_next = 0;
	*to++ = form_code(cost, &writer->form);
	writer->packed = writer->patches = to;
	if (writer->form.entropy)
		return;
	if (writer->form.varied) {
		memcpy(to, cost->widths, cost->minis);
		to += cost->minis;
	}
	writer->packed = writer->patches = to;
	for (uint32_t m = 0; m < cost->minis; m++)
		writer->patches += packed_bytes(cost->counts[m], mini_width(writer, m));
	if (writer->form.exceptions)
		writer->patches += varint_put(writer->patches, writer->form.exceptions);
}

static void write_patches(struct stream_writer *writer, const uint64_t *values, size_t count,
			  unsigned width)
{
	for (size_t i = 0; i < count; i++) {
		if (values[i] <= low_mask(width))
			continue;
		uint32_t index = writer->index + (uint32_t)i;
		writer->patches += varint_put(writer->patches, index - writer->patch_next);
		writer->patches += varint_put(writer->patches, values[i] >> width);
		writer->patch_next = index + 1;
	}
}

static void write_packed(struct stream_writer *writer, const uint64_t *values, size_t count)
{
	unsigned width = mini_width(writer, writer->mini);
	kernels->pack(values, count, width, writer->packed);
	writer->packed += packed_bytes(count, width);
	if (writer->form.exceptions)
		write_patches(writer, values, count, width);
}

void stream_write(struct stream_writer *writer, const uint64_t *values, size_t count)
{
	if (!writer->form.entropy)
		write_packed(writer, values, count);
	else if (count)
		memcpy(writer->values + writer->index, values, count * sizeof(*values));
	writer->mini++;
	writer->index += (uint32_t)count;
}

uint8_t *stream_write_end(struct stream_writer *writer)
{
	ASSERT(writer->index == writer->cost->count && writer->mini == writer->cost->minis);
	if (writer->form.entropy)
		return entropy_write(writer->cost->entropy, writer->form.width, writer->values,
				     writer->packed);
	return writer->patches;
}

size_t mini_count(const uint8_t *presence, uint32_t rows, uint32_t mini)
{
	uint32_t from = mini * MINI_ROWS, to = from + MINI_ROWS < rows ? from + MINI_ROWS : rows;
	if (!presence)
		return to - from;
	/* Spare bits after the last row are 0 (checked where the bits are read). */
	uint64_t words[2] = {0, 0};
	memcpy(words, presence + from / 8, (to - from + 7) / 8);
	return (size_t)(__builtin_popcountll(words[0]) + __builtin_popcountll(words[1]));
}

static size_t read_packed_bytes(const struct stream_reader *reader, uint32_t rows,
				const uint8_t *presence)
{
	if (!reader->widths && !presence)
		return packed_bytes(rows, reader->width);
	size_t bytes = 0;
	for (uint32_t m = 0; m * MINI_ROWS < rows; m++)
		bytes += packed_bytes(mini_count(presence, rows, m),
				      reader->widths ? reader->widths[m] : reader->width);
	return bytes;
}

/* The next exception, or none with an index that no value has. */
static int next_patch(struct stream_reader *reader, uint32_t from)
{
	if (!reader->patches) {
		reader->patch_at = UINT32_MAX;
		return 0;
	}
	uint64_t gap = cursor_varint(&reader->cursor);
	reader->patch_high = cursor_varint(&reader->cursor);
	if (reader->cursor.bad || gap >= reader->count - from || !reader->patch_high)
		return ERR_DAMAGED;
	reader->patches--;
	reader->patch_at = from + (uint32_t)gap;
	return 0;
}

static int check_widths(const uint8_t *widths, uint32_t minis)
{
	for (uint32_t m = 0; widths && m < minis; m++) {
		if (widths[m] > 64)
			return ERR_DAMAGED;
	}
	return widths ? 0 : ERR_DAMAGED;
}

int stream_read_begin(struct stream_reader *reader, struct cursor c, uint32_t rows,
		      const uint8_t *presence, uint32_t count)
{
	uint8_t form = cursor_u8(&c);
	bool patched = form >= STREAM_FORM_EXCEPTIONS && form != STREAM_FORM_VARIED;
	uint32_t minis = (rows + MINI_ROWS - 1) / MINI_ROWS;
	*reader = (struct stream_reader){.form = form, .count = count, .readable_end = c.end};
	reader->cursor = c;
	if (form >= STREAM_FORM_ENTROPY)
		return c.bad || form >= STREAM_FORMS ? ERR_DAMAGED : 0;
	if (form >= STREAM_FORM_VARIED) {
		reader->widths = cursor_take(&c, minis);
		if (check_widths(reader->widths, minis))
			return ERR_DAMAGED;
	} else {
		reader->width = (uint8_t)(patched ? form - STREAM_FORM_EXCEPTIONS : form);
	}
	reader->packed = cursor_take(&c, read_packed_bytes(reader, rows, presence));
	uint64_t patches = patched ? cursor_varint(&c) : 0;
	if (c.bad || patches > count || (patched && !patches))
		return ERR_DAMAGED;
	reader->patches = (uint32_t)patches;
	reader->cursor = c;
	return next_patch(reader, 0);
}

static int apply_patches(struct stream_reader *reader, uint64_t *values, size_t count,
			 unsigned width)
{
	while (reader->patch_at < reader->index + count) {
		if (reader->patch_high > low_mask(64 - width))
			return ERR_DAMAGED;
		values[reader->patch_at - reader->index] |= reader->patch_high << width;
		if (next_patch(reader, reader->patch_at + 1))
			return ERR_DAMAGED;
	}
	return 0;
}

/* Eight values of any width are whole bytes: so many can be read on their own. */
enum { GROUP = 8 };

static int read_patched_group(struct stream_reader *reader, const struct pattern_codec *codec,
			      struct pattern_carry *carry, uint64_t *values, size_t count,
			      unsigned width)
{
	kernels->unpack(reader->packed, reader->readable_end, count, width, values);
	int err = apply_patches(reader, values, count, width);
	pattern_from_residuals(codec, carry, values, count);
	return err;
}

/* The groups up to the next exception at once, then the group that has it. */
static int stream_read(struct stream_reader *reader, const struct pattern_codec *codec,
		       struct pattern_carry *carry, uint64_t *values, size_t count)
{
	unsigned width = reader->widths ? reader->widths[reader->mini++] : reader->width;
	int err = 0;
	while (count && !err) {
		size_t part = reader->patch_at - reader->index;
		part = part >= count ? count : part / GROUP * GROUP;
		if (part) {
			kernels->unpack_patterns(codec, carry, reader->packed, reader->readable_end,
						 part, width, values);
		} else {
			part = count < GROUP ? count : GROUP;
			err = read_patched_group(reader, codec, carry, values, part, width);
		}
		reader->packed += packed_bytes(part, width);
		reader->index += (uint32_t)part;
		values += part;
		count -= part;
	}
	return err;
}

static int stream_read_end(const struct stream_reader *reader)
{
	bool all = reader->index == reader->count && reader->patch_at == UINT32_MAX;
	return all && cursor_left(&reader->cursor) == 0 ? 0 : ERR_DAMAGED;
}

bool stream_is_symbols(const struct stream_reader *reader)
{
	return reader->form >= STREAM_FORM_ENTROPY && reader->form < STREAM_FORM_ENTROPY_DETAILS;
}

int stream_read_pairs(const struct stream_reader *reader, uint8_t *pairs)
{
	return entropy_read_pairs(reader->cursor, reader->form - STREAM_FORM_ENTROPY, reader->count,
				  pairs);
}

int stream_read_all(struct stream_reader *reader, const struct pattern_codec *codec, uint32_t rows,
		    const uint8_t *presence, uint64_t *values)
{
	struct pattern_carry carry = pattern_begin(codec);
	if (reader->form >= STREAM_FORM_ENTROPY)
		return entropy_read(
			reader->cursor, (reader->form - STREAM_FORM_ENTROPY) % ENTROPY_TABLES,
			reader->form >= STREAM_FORM_ENTROPY_DETAILS, codec, reader->count, values);
	/* Full mini-blocks of one width follow each other without a seam. */
	if (!presence && !reader->widths) {
		if (stream_read(reader, codec, &carry, values, rows))
			return ERR_DAMAGED;
		return stream_read_end(reader);
	}
	for (uint32_t m = 0; m * MINI_ROWS < rows; m++) {
		size_t count = mini_count(presence, rows, m);
		if (stream_read(reader, codec, &carry, values, count))
			return ERR_DAMAGED;
		values += count;
	}
	return stream_read_end(reader);
}
