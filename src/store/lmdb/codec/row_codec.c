/* A row in one of three shapes, told by its first byte. Packed: all values are integers of one
 * type, or doubles that are whole numbers, at one width each, so that writing and reading are loops
 * without a choice inside and one value is found without the others. By field: each field of all
 * series in a shape of its own, since a field has much more in common with itself than with its
 * neighbours, and often is the same everywhere. Else one by one: varints, or 8 bytes for other
 * doubles, after one type for all or a nibble of type for each.
 *
 * Rows of one field are packed, or by field where that is a quarter shorter: one large number among
 * small ones. Rows of several are by field. What is neither integers nor whole doubles, or not of
 * one type (in a field), is one by one.
 *
 * Signed numbers are zigzagged, and whole doubles kept as signed numbers: most are small then. */
#include "store/lmdb/codec/row_codec.h"

#include "base/cursor.h"

/* The byte in front: the type of all values, or PACKED + 4 * kind + log2 of the bytes of each, or
 * that a nibble for each tells its type. */
enum {
	TYPE_F64_WHOLE = 4, /* a double that is a whole number: as a zigzag varint */
	PACKED = 0x10,
	PACKED_END = 0x1c,
	BY_FIELD = 0x20, /* + the number of fields; then each field: */
	BY_FIELD_END = BY_FIELD + TABLE_FIELDS_MAX,
	TYPES_MIXED = 0xff,
};

/* What stands before a field: 4 * kind + log2 of the bytes of each, with one of these. */
enum {
	FIELD_SAME = 0x10,  /* one number for all */
	FIELD_SIZED = 0x20, /* each of the bytes it needs, which are told by nibbles in front */
	FIELD_NONE = 0x30,  /* no value at all */
};

enum packed_kind {
	PACKED_I64,
	PACKED_U64,
	PACKED_WHOLE,
	PACKED_F64, /* as it is, in eight bytes; by field only */
};

static inline bool is_packed(unsigned types)
{
	return types >= PACKED && types < PACKED_END;
}

static inline bool row_codec_is_whole(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof(d));
	if (!(d > -0x1p53 && d < 0x1p53))
		return false;
	double back = (double)(int64_t)d;
	return memcmp(&back, &d, sizeof(d)) == 0;
}

static inline uint64_t whole_number(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof(d));
	return zigzag_encode((int64_t)d);
}

static inline uint64_t whole_bits(uint64_t number)
{
	double d = (double)zigzag_decode(number);
	uint64_t bits;
	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

/* ---- Packed ---------------------------------------------------------------------------------- */

/* Every `step`-th of the values, `count` of them, as numbers to be packed; false if they are not
 * all of one type that can be. */
static bool to_numbers(const struct value *values, unsigned step, unsigned count,
		       enum packed_kind *kind, uint64_t *numbers)
{
	enum value_type type = values[0].type;
	unsigned others = 0;
	switch (type) {
	case VALUE_I64:
		*kind = PACKED_I64;
		for (unsigned i = 0; i < count; i++, values += step) {
			others |= values->type ^ type;
			numbers[i] = zigzag_encode((int64_t)values->bits);
		}
		return !others;
	case VALUE_U64:
		*kind = PACKED_U64;
		for (unsigned i = 0; i < count; i++, values += step) {
			others |= values->type ^ type;
			numbers[i] = values->bits;
		}
		return !others;
	case VALUE_F64:
		*kind = PACKED_WHOLE;
		for (unsigned i = 0; i < count; i++, values += step) {
			if (values->type != VALUE_F64 || !row_codec_is_whole(values->bits))
				return false;
			numbers[i] = whole_number(values->bits);
		}
		return true;
	default:
		return false;
	}
}

static inline unsigned row_codec_number_bytes(uint64_t number)
{
	return (71 - (unsigned)__builtin_clzll(number | 1)) / 8 - !number; /* without a branch */
}

/* What numbers have in common, and how many bytes each shape of them would take. */
struct row_measure {
	bool same;
	unsigned width;                /* log2 of the bytes of each */
	size_t sized_bytes;            /* of nibbles and numbers; 0: is not the shorter one */
	uint8_t bytes[ROW_VALUES_MAX]; /* each needs; where sized_bytes is not 0 */
};

static void row_codec_measure(const uint64_t *numbers, unsigned count, bool wide,
			      struct row_measure *measure)
{
	uint64_t all = 0, others = 0;
	for (unsigned i = 0; i < count; i++) {
		all |= numbers[i];
		others |= numbers[i] ^ numbers[0];
	}
	measure->same = !others;
	measure->width = wide || all > UINT32_MAX ? 3
			 : all > UINT16_MAX       ? 2
			 : all > UINT8_MAX        ? 1
						  : 0;
	measure->sized_bytes = 0;
	if (measure->width < 2)
		return;
	size_t sized = (count + 1) / 2;
	for (unsigned i = 0; i < count; i++) {
		unsigned bytes = row_codec_number_bytes(numbers[i]);
		measure->bytes[i] = (uint8_t)bytes;
		sized += bytes;
	}
	if (sized * 4 < ((size_t)count << measure->width) * 3)
		measure->sized_bytes = sized;
}

static uint8_t *put_packed(uint8_t *p, unsigned width, const uint64_t *numbers, unsigned count)
{
	switch (width) {
	case 0:
		for (unsigned i = 0; i < count; i++)
			p[i] = (uint8_t)numbers[i];
		break;
	case 1:
		for (unsigned i = 0; i < count; i++) {
			uint16_t n = (uint16_t)numbers[i];
			memcpy(p + 2 * (size_t)i, &n, 2);
		}
		break;
	case 2:
		for (unsigned i = 0; i < count; i++) {
			uint32_t n = (uint32_t)numbers[i];
			memcpy(p + 4 * (size_t)i, &n, 4);
		}
		break;
	default:
		memcpy(p, numbers, 8 * (size_t)count);
	}
	return p + ((size_t)count << width);
}

static inline uint64_t packed_number(const uint8_t *p, unsigned width, unsigned at)
{
	uint16_t two;
	uint32_t four;
	uint64_t eight;
	switch (width) {
	case 0:
		return p[at];
	case 1:
		memcpy(&two, p + 2 * (size_t)at, 2);
		return two;
	case 2:
		memcpy(&four, p + 4 * (size_t)at, 4);
		return four;
	default:
		memcpy(&eight, p + 8 * (size_t)at, 8);
		return eight;
	}
}

static inline uint64_t packed_bits(enum packed_kind kind, uint64_t number)
{
	return kind == PACKED_I64     ? (uint64_t)zigzag_decode(number)
	       : kind == PACKED_WHOLE ? whole_bits(number)
				      : number;
}

static inline enum value_type packed_type(enum packed_kind kind)
{
	return kind == PACKED_I64 ? VALUE_I64 : kind == PACKED_U64 ? VALUE_U64 : VALUE_F64;
}

static inline void get_numbers(const uint8_t *p, unsigned width, unsigned count, uint64_t *numbers)
{
	for (unsigned i = 0; i < count; i++)
		numbers[i] = packed_number(p, width, i);
}

/* Numbers become what they stand for. */
static void numbers_to_bits(enum packed_kind kind, unsigned count, uint64_t *bits)
{
	if (kind == PACKED_I64) {
		for (unsigned i = 0; i < count; i++)
			bits[i] = (uint64_t)zigzag_decode(bits[i]);
	} else if (kind == PACKED_WHOLE) {
		for (unsigned i = 0; i < count; i++)
			bits[i] = whole_bits(bits[i]);
	}
}

static void get_packed(const uint8_t *p, unsigned code, unsigned count, uint64_t *bits)
{
	switch (code % 4) { /* a loop for each, without a choice inside */
	case 0:
		get_numbers(p, 0, count, bits);
		break;
	case 1:
		get_numbers(p, 1, count, bits);
		break;
	case 2:
		get_numbers(p, 2, count, bits);
		break;
	default:
		get_numbers(p, 3, count, bits);
	}
	numbers_to_bits(code / 4, count, bits);
}

/* ---- By field -------------------------------------------------------------------------------- */

/* Stores eight bytes for each number, of which the next one overwrites what is too much. */
static uint8_t *row_codec_put_sized(uint8_t *p, const uint64_t *numbers, unsigned count,
				    const struct row_measure *measure)
{
	uint8_t *nibbles = p;
	p += (count + 1) / 2;
	for (unsigned i = 0; i < count; i += 2) {
		bool pair = i + 1 < count;
		uint64_t second = pair ? numbers[i + 1] : 0;
		unsigned low = measure->bytes[i], high = pair ? measure->bytes[i + 1] : 0;
		*nibbles++ = (uint8_t)(low | high << 4);
		memcpy(p, &numbers[i], 8);
		memcpy(p + low, &second, 8);
		p += low + high;
	}
	return p;
}

static inline unsigned nibble_at(const uint8_t *nibbles, unsigned at)
{
	return nibbles[at / 2] >> (at % 2 * 4) & 0xf;
}

static inline uint64_t sized_number(const uint8_t *p, unsigned bytes, const uint8_t *end)
{
	static const uint64_t masks[] = {0,          0xff,         0xffff,         0xffffff,
					 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
					 UINT64_MAX};
	uint64_t number = 0;
	if (LIKELY(end - p >= 8))
		memcpy(&number, p, 8);
	else
		memcpy(&number, p, bytes);
	return number & masks[bytes];
}

static uint8_t *row_codec_put_numbers(uint8_t *p, enum packed_kind kind, const uint64_t *numbers,
				      unsigned count, const struct row_measure *measure)
{
	unsigned code = 4 * (unsigned)kind + measure->width;
	if (measure->same) {
		*p = (uint8_t)(FIELD_SAME + code);
		return put_packed(p + 1, measure->width, numbers, 1);
	}
	if (measure->sized_bytes) {
		*p = (uint8_t)(FIELD_SIZED + code);
		return row_codec_put_sized(p + 1, numbers, count, measure);
	}
	*p = (uint8_t)code;
	return put_packed(p + 1, measure->width, numbers, count);
}

/* The sum of so many nibbles; SIZE_MAX if one is greater than 8. */
static inline size_t sum_of_sizes(const uint8_t *nibbles, unsigned count)
{
	unsigned sum = 0, greater = 0;
	for (unsigned i = 0; i < (count + 1) / 2; i++) {
		unsigned both = i == count / 2 ? nibbles[i] & 0xfu : nibbles[i];
		sum += (both & 0xf) + (both >> 4);
		/* Beside the bit of 8 another one. */
		greater |= both >> 3 & (both | both >> 1 | both >> 2) & 0x11;
	}
	return greater ? SIZE_MAX : sum;
}

/* A field of `count` series: what stands before it, where its numbers are, where it ends. */
struct field {
	unsigned code, shape;
	const uint8_t *at, *end;
};

/* The field that begins at `p`; false if it does not end by `end`. */
static inline bool field_view(const uint8_t *p, const uint8_t *end, unsigned count,
			      struct field *field)
{
	size_t left = (size_t)(end - p), bytes;
	if (!left)
		return false;
	field->code = *p & 0xf;
	field->shape = *p & 0xf0;
	field->at = field->end = p + 1;
	if (field->shape == FIELD_NONE)
		return field->code == 0;
	if (field->shape > FIELD_NONE || (field->code / 4 == PACKED_F64 && field->code % 4 != 3))
		return false;
	bytes = (size_t)(field->shape == FIELD_SAME ? 1 : count) << field->code % 4;
	if (field->shape == FIELD_SIZED) {
		size_t nibbles = (count + 1) / 2;
		size_t sizes = nibbles < left ? sum_of_sizes(field->at, count) : SIZE_MAX;
		if (sizes == SIZE_MAX)
			return false;
		bytes = nibbles + sizes;
	}
	field->end = field->at + bytes;
	return bytes <= left - 1;
}

/* `end` is the row's: numbers of some bytes are loaded as eight where there are so many. */
static void field_bits(const struct field *field, const uint8_t *end, unsigned count,
		       uint64_t *bits)
{
	if (field->shape == FIELD_SAME || field->shape == FIELD_NONE) {
		uint64_t same = 0;
		if (field->shape == FIELD_SAME)
			get_packed(field->at, field->code, 1, &same);
		for (unsigned i = 0; i < count; i++)
			bits[i] = same;
	} else if (field->shape == FIELD_SIZED) {
		const uint8_t *p = field->at + (count + 1) / 2;
		for (unsigned i = 0; i < count; i++) {
			unsigned bytes = nibble_at(field->at, i);
			bits[i] = sized_number(p, bytes, end);
			p += bytes;
		}
		numbers_to_bits(field->code / 4, count, bits);
	} else {
		get_packed(field->at, field->code, count, bits);
	}
}

static uint64_t field_bits_at(const struct field *field, const uint8_t *end, unsigned count,
			      unsigned at)
{
	enum packed_kind kind = field->code / 4;
	const uint8_t *p = field->at + (count + 1) / 2;
	if (field->shape == FIELD_NONE)
		return 0;
	if (field->shape == FIELD_SAME)
		at = 0;
	if (field->shape != FIELD_SIZED)
		return packed_bits(kind, packed_number(field->at, field->code % 4, at));
	for (unsigned i = 0; i < at; i++)
		p += nibble_at(field->at, i);
	return packed_bits(kind, sized_number(p, nibble_at(field->at, at), end));
}

/* Every `step`-th of the values, `count` of them; NULL if they are not of one type. */
static uint8_t *row_codec_put_field(uint8_t *p, const struct value *values, unsigned step,
				    unsigned count)
{
	uint64_t numbers[ROW_VALUES_MAX];
	enum packed_kind kind;
	unsigned others = 0;
	struct row_measure measure;
	if (to_numbers(values, step, count, &kind, numbers)) {
		row_codec_measure(numbers, count, false, &measure);
		return row_codec_put_numbers(p, kind, numbers, count, &measure);
	}
	for (unsigned i = 0; i < count; i++) {
		others |= values[i * step].type ^ values->type;
		numbers[i] = values[i * step].bits;
	}
	if (others || (values->type != VALUE_F64 && values->type != VALUE_NONE))
		return NULL;
	if (values->type == VALUE_F64) {
		row_codec_measure(numbers, count, true, &measure);
		return row_codec_put_numbers(p, PACKED_F64, numbers, count, &measure);
	}
	*p = FIELD_NONE;
	return p + 1;
}

/* NULL if a field's values are not of one type. */
static uint8_t *put_by_field(uint8_t *p, const struct value *values, unsigned series,
			     unsigned fields, unsigned given)
{
	unsigned step = fields_count(given);
	*p++ = (uint8_t)(BY_FIELD + fields);
	for (unsigned f = 0; f < fields && p; f++) {
		if (given >> f & 1)
			p = row_codec_put_field(p, values++, step, series);
		else
			*p++ = FIELD_NONE;
	}
	return p;
}

static inline enum value_type field_type(const struct field *field)
{
	return field->shape == FIELD_NONE ? VALUE_NONE : packed_type(field->code / 4);
}

static inline bool is_by_field(unsigned types)
{
	return types > BY_FIELD && types <= BY_FIELD_END;
}

static int row_decode_by_field(const uint8_t *bytes, size_t len, unsigned count,
			       struct row_pieces *pieces)
{
	unsigned fields = bytes[0] - BY_FIELD, n = count / fields;
	const uint8_t *p = bytes + 1, *end = bytes + len;
	uint64_t *bits = pieces->bits;
	struct field field;
	pieces->count = 0;
	if (count % fields)
		return ERR_DAMAGED;
	for (unsigned f = 0; f < fields; f++, p = field.end) {
		if (!field_view(p, end, n, &field))
			return ERR_DAMAGED;
		if (field.shape == FIELD_NONE)
			continue;
		field_bits(&field, end, n, bits);
		pieces->list[pieces->count++] = (struct row_piece){
			(uint16_t)f, (uint16_t)fields, (uint16_t)n, (uint8_t)field_type(&field)};
		bits += n;
	}
	return p == end ? 0 : ERR_DAMAGED;
}

static int check_by_field(const uint8_t *bytes, size_t len, unsigned count)
{
	unsigned fields = bytes[0] - BY_FIELD;
	const uint8_t *p = bytes + 1, *end = bytes + len;
	struct field field;
	if (count % fields)
		return ERR_DAMAGED;
	for (unsigned f = 0; f < fields; f++, p = field.end) {
		if (!field_view(p, end, count / fields, &field))
			return ERR_DAMAGED;
	}
	return p == end ? 0 : ERR_DAMAGED;
}

static struct value by_field_value(const uint8_t *bytes, size_t len, unsigned count, unsigned at)
{
	unsigned fields = bytes[0] - BY_FIELD, n = count / fields;
	const uint8_t *p = bytes + 1, *end = bytes + len;
	struct field field;
	for (unsigned f = 0; f <= at % fields; f++, p = field.end) {
		bool sound = field_view(p, end, n, &field);
		ASSERT(sound);
	}
	return (struct value){field_bits_at(&field, end, n, at / fields), field_type(&field)};
}

/* ---- Value by value -------------------------------------------------------------------------- */

static unsigned row_codec_stored_type(const struct value *value)
{
	return value->type == VALUE_F64 && row_codec_is_whole(value->bits) ? TYPE_F64_WHOLE
									   : value->type;
}

static uint8_t *row_codec_put_value(uint8_t *p, unsigned type, uint64_t bits)
{
	switch (type) {
	case VALUE_F64:
		memcpy(p, &bits, 8);
		return p + 8;
	case VALUE_I64:
		return p + varint_put(p, zigzag_encode((int64_t)bits));
	case VALUE_U64:
		return p + varint_put(p, bits);
	case TYPE_F64_WHOLE:
		return p + varint_put(p, whole_number(bits));
	default:
		return p;
	}
}

static uint8_t *put_one_by_one(uint8_t *p, const struct value *values, unsigned count)
{
	unsigned type = row_codec_stored_type(&values[0]);
	uint8_t *types = p++;
	*types = (uint8_t)type;
	unsigned i = 0;
	for (; i < count && row_codec_stored_type(&values[i]) == type; i++)
		p = row_codec_put_value(p, type, values[i].bits);
	if (i == count)
		return p;
	/* Not all of one type: a nibble each, then the values again. */
	p = types;
	*p++ = TYPES_MIXED;
	uint8_t *nibbles = p;
	memset(nibbles, 0, (count + 1) / 2);
	p += (count + 1) / 2;
	for (i = 0; i < count; i++) {
		type = row_codec_stored_type(&values[i]);
		nibbles[i / 2] |= (uint8_t)(type << (i % 2 * 4));
		p = row_codec_put_value(p, type, values[i].bits);
	}
	return p;
}

static struct value get_value(struct cursor *c, unsigned type)
{
	switch (type) {
	case VALUE_F64:
		return (struct value){cursor_u64(c), VALUE_F64};
	case VALUE_I64:
		return value_i64(zigzag_decode(cursor_varint(c)));
	case VALUE_U64:
		return value_u64(cursor_varint(c));
	case TYPE_F64_WHOLE:
		return (struct value){whole_bits(cursor_varint(c)), VALUE_F64};
	default:
		c->bad |= type != VALUE_NONE;
		return (struct value){0, VALUE_NONE};
	}
}

/* Over the values of a row that is not packed, one after the other. */
struct row_walk {
	struct cursor c;
	unsigned type;
	const uint8_t *nibbles;
};

static struct row_walk row_walk_begin(const uint8_t *bytes, size_t len, unsigned count)
{
	struct row_walk walk = {.c = cursor_of(bytes, len)};
	walk.type = cursor_u8(&walk.c);
	if (walk.type == TYPES_MIXED)
		walk.nibbles = cursor_take(&walk.c, (count + 1) / 2);
	return walk;
}

static struct value row_walk_next(struct row_walk *walk, unsigned at)
{
	unsigned type = walk->nibbles ? walk->nibbles[at / 2] >> (at % 2 * 4) & 0xf : walk->type;
	return get_value(&walk->c, type);
}

static int walk_end(const struct row_walk *walk)
{
	return walk->c.bad || cursor_left(&walk->c) ? ERR_DAMAGED : 0;
}

/* ---- Either ---------------------------------------------------------------------------------- */

/* One field. */
static uint8_t *put_packed_row(uint8_t *p, const struct value *values, unsigned count)
{
	uint64_t numbers[ROW_VALUES_MAX];
	enum packed_kind kind;
	struct row_measure measure;
	if (!to_numbers(values, 1, count, &kind, numbers))
		return NULL;
	row_codec_measure(numbers, count, false, &measure);
	if (measure.sized_bytes) {
		*p = BY_FIELD + 1;
		return row_codec_put_numbers(p + 1, kind, numbers, count, &measure);
	}
	*p = (uint8_t)(PACKED + 4 * (unsigned)kind + measure.width);
	return put_packed(p + 1, measure.width, numbers, count);
}

/* With the fields that are not given. */
static uint8_t *put_all_one_by_one(uint8_t *to, const struct value *values, unsigned series,
				   unsigned fields, unsigned given)
{
	struct value all[ROW_VALUES_MAX];
	unsigned count = series * fields;
	if (given == (1u << fields) - 1)
		return put_one_by_one(to, values, count);
	for (unsigned i = 0; i < count; i++)
		all[i] = given >> i % fields & 1 ? *values++ : (struct value){.type = VALUE_NONE};
	return put_one_by_one(to, all, count);
}

uint8_t *row_put_fields(uint8_t *to, const struct value *values, unsigned series, unsigned fields,
			unsigned given)
{
	uint8_t *end = fields == 1 ? put_packed_row(to, values, series)
				   : put_by_field(to, values, series, fields, given);
	ASSERT(given && !(given >> fields));
	return end ? end : put_all_one_by_one(to, values, series, fields, given);
}

uint8_t *row_put(uint8_t *to, const struct value *values, unsigned count, unsigned fields)
{
	ASSERT(count % fields == 0);
	return row_put_fields(to, values, count / fields, fields, (1u << fields) - 1);
}

static bool packed_fits(const uint8_t *bytes, size_t len, unsigned count)
{
	return len == 1 + ((size_t)count << (bytes[0] - PACKED) % 4);
}

/* Neighbours of one type are a piece. */
static int row_decode_each(const uint8_t *bytes, size_t len, unsigned count,
			   struct row_pieces *pieces)
{
	struct row_walk walk = row_walk_begin(bytes, len, count);
	struct row_piece piece = {.step = 1};
	uint64_t *bits = pieces->bits;
	pieces->count = 0;
	for (unsigned i = 0; i < count && !walk.c.bad; i++) {
		struct value value = row_walk_next(&walk, i);
		if (!i || value.type != piece.type) {
			piece = (struct row_piece){(uint16_t)i, 1, 0, (uint8_t)value.type};
			pieces->count += value.type != VALUE_NONE;
		}
		if (value.type == VALUE_NONE)
			continue;
		piece.count++;
		pieces->list[pieces->count - 1] = piece;
		*bits++ = value.bits;
	}
	return walk_end(&walk);
}

int row_decode(const uint8_t *bytes, size_t len, unsigned count, struct row_pieces *pieces)
{
	if (len && is_by_field(bytes[0]))
		return row_decode_by_field(bytes, len, count, pieces);
	if (!len || !is_packed(bytes[0]))
		return row_decode_each(bytes, len, count, pieces);
	if (!packed_fits(bytes, len, count))
		return ERR_DAMAGED;
	unsigned code = bytes[0] - PACKED;
	get_packed(bytes + 1, code, count, pieces->bits);
	pieces->list[0] = (struct row_piece){0, 1, (uint16_t)count, (uint8_t)packed_type(code / 4)};
	pieces->count = 1;
	return 0;
}

int row_get(const uint8_t *bytes, size_t len, unsigned count, uint64_t *bits, uint8_t *types)
{
	struct row_pieces pieces;
	int err = row_decode(bytes, len, count, &pieces);
	if (err)
		return err;
	const uint64_t *from = pieces.bits;
	memset(bits, 0, count * sizeof(*bits));
	memset(types, VALUE_NONE, count);
	for (size_t p = 0; p < pieces.count; p++) {
		const struct row_piece *piece = &pieces.list[p];
		for (unsigned i = 0, c = piece->first; i < piece->count; i++, c += piece->step) {
			bits[c] = *from++;
			types[c] = piece->type;
		}
	}
	return 0;
}

int row_check(const uint8_t *bytes, size_t len, unsigned count)
{
	if (len && is_packed(bytes[0]))
		return packed_fits(bytes, len, count) ? 0 : ERR_DAMAGED;
	if (len && is_by_field(bytes[0]))
		return check_by_field(bytes, len, count);
	struct row_walk walk = row_walk_begin(bytes, len, count);
	for (unsigned i = 0; i < count && !walk.c.bad; i++)
		row_walk_next(&walk, i);
	return walk_end(&walk);
}

struct value row_value(const uint8_t *bytes, size_t len, unsigned count, unsigned at)
{
	if (is_packed(bytes[0])) {
		unsigned code = bytes[0] - PACKED;
		enum packed_kind kind = code / 4;
		uint64_t number = packed_number(bytes + 1, code % 4, at);
		return (struct value){packed_bits(kind, number), packed_type(kind)};
	}
	if (is_by_field(bytes[0]))
		return by_field_value(bytes, len, count, at);
	struct row_walk walk = row_walk_begin(bytes, len, count);
	for (unsigned i = 0; i < at; i++)
		row_walk_next(&walk, i);
	return row_walk_next(&walk, at);
}
