/* A row in one of two shapes, told by its first byte. Packed: all values are integers of one type,
 * or doubles that are whole numbers, at one width each, so that writing and reading are loops
 * without a choice inside and one value is found without the others. Else one by one: varints, or
 * 8 bytes for other doubles, behind one type for all or a nibble of type for each. Packed is tried
 * first, and left where varints are a quarter shorter: one large number among small ones.
 *
 * Signed numbers are zigzagged, and whole doubles kept as signed numbers: most are small then. */
#include "store/lmdb/row.h"

#include "base/cursor.h"

/* The byte in front: the type of all values, or PACKED + 4 * kind + log2 of the bytes of each, or
 * that a nibble for each tells its type. */
enum {
	TYPE_F64_WHOLE = 4, /* a double that is a whole number: as a zigzag varint */
	PACKED = 0x10,
	PACKED_END = 0x1c,
	TYPES_MIXED = 0xff,
};

enum packed_kind { PACKED_I64, PACKED_U64, PACKED_WHOLE };

static inline bool is_packed(unsigned types)
{
	return types >= PACKED && types < PACKED_END;
}

static inline bool is_whole(uint64_t bits)
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

/* The values as numbers to be packed; false if they are not all of one type that can be. */
static bool to_numbers(const struct value *values, unsigned count, enum packed_kind *kind,
		       uint64_t *numbers)
{
	enum value_type type = values[0].type;
	unsigned others = 0;
	switch (type) {
	case VALUE_I64:
		*kind = PACKED_I64;
		for (unsigned i = 0; i < count; i++) {
			others |= values[i].type ^ type;
			numbers[i] = zigzag_encode((int64_t)values[i].bits);
		}
		return !others;
	case VALUE_U64:
		*kind = PACKED_U64;
		for (unsigned i = 0; i < count; i++) {
			others |= values[i].type ^ type;
			numbers[i] = values[i].bits;
		}
		return !others;
	case VALUE_F64:
		*kind = PACKED_WHOLE;
		for (unsigned i = 0; i < count; i++) {
			if (values[i].type != VALUE_F64 || !is_whole(values[i].bits))
				return false;
			numbers[i] = whole_number(values[i].bits);
		}
		return true;
	default:
		return false;
	}
}

static size_t varint_total(const uint64_t *numbers, unsigned count)
{
	size_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += (70 - (unsigned)__builtin_clzll(numbers[i] | 1)) / 7;
	return bytes;
}

/* Log2 of the bytes of each number, or 4: one large number among small ones takes varints. */
static unsigned packed_width(const uint64_t *numbers, unsigned count)
{
	uint64_t all = 0;
	for (unsigned i = 0; i < count; i++)
		all |= numbers[i];
	if (all <= UINT8_MAX)
		return 0;
	if (all <= UINT16_MAX)
		return 1;
	unsigned width = all <= UINT32_MAX ? 2 : 3;
	return varint_total(numbers, count) * 4 < ((size_t)count << width) * 3 ? 4 : width;
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
	return kind == PACKED_I64   ? (uint64_t)zigzag_decode(number)
	       : kind == PACKED_U64 ? number
				    : whole_bits(number);
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

static void get_packed(const uint8_t *p, unsigned code, unsigned count, uint64_t *bits)
{
	enum packed_kind kind = code / 4;
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
	if (kind == PACKED_I64) {
		for (unsigned i = 0; i < count; i++)
			bits[i] = (uint64_t)zigzag_decode(bits[i]);
	} else if (kind == PACKED_WHOLE) {
		for (unsigned i = 0; i < count; i++)
			bits[i] = whole_bits(bits[i]);
	}
}

/* ---- Value by value -------------------------------------------------------------------------- */

static unsigned stored_type(const struct value *value)
{
	return value->type == VALUE_F64 && is_whole(value->bits) ? TYPE_F64_WHOLE : value->type;
}

static uint8_t *put_value(uint8_t *p, unsigned type, uint64_t bits)
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
	unsigned type = stored_type(&values[0]);
	uint8_t *types = p++;
	*types = (uint8_t)type;
	unsigned i = 0;
	for (; i < count && stored_type(&values[i]) == type; i++)
		p = put_value(p, type, values[i].bits);
	if (i == count)
		return p;
	/* Not all of one type: a nibble each, then the values again. */
	p = types;
	*p++ = TYPES_MIXED;
	uint8_t *nibbles = p;
	memset(nibbles, 0, (count + 1) / 2);
	p += (count + 1) / 2;
	for (i = 0; i < count; i++) {
		type = stored_type(&values[i]);
		nibbles[i / 2] |= (uint8_t)(type << (i % 2 * 4));
		p = put_value(p, type, values[i].bits);
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
struct walk {
	struct cursor c;
	unsigned type;
	const uint8_t *nibbles;
};

static struct walk walk_begin(const uint8_t *bytes, size_t len, unsigned count)
{
	struct walk walk = {.c = cursor_of(bytes, len)};
	walk.type = cursor_u8(&walk.c);
	if (walk.type == TYPES_MIXED)
		walk.nibbles = cursor_take(&walk.c, (count + 1) / 2);
	return walk;
}

static struct value walk_next(struct walk *walk, unsigned at)
{
	unsigned type = walk->nibbles ? walk->nibbles[at / 2] >> (at % 2 * 4) & 0xf : walk->type;
	return get_value(&walk->c, type);
}

static int walk_end(const struct walk *walk)
{
	return walk->c.bad || cursor_left(&walk->c) ? ERR_DAMAGED : 0;
}

/* ---- Either ---------------------------------------------------------------------------------- */

uint8_t *row_put(uint8_t *to, const struct value *values, unsigned count)
{
	uint64_t numbers[ROW_VALUES_MAX];
	enum packed_kind kind;
	if (!to_numbers(values, count, &kind, numbers))
		return put_one_by_one(to, values, count);
	unsigned width = packed_width(numbers, count);
	if (width > 3)
		return put_one_by_one(to, values, count);
	*to = (uint8_t)(PACKED + 4 * (unsigned)kind + width);
	return put_packed(to + 1, width, numbers, count);
}

static bool packed_fits(const uint8_t *bytes, size_t len, unsigned count)
{
	return len == 1 + ((size_t)count << (bytes[0] - PACKED) % 4);
}

int row_get(const uint8_t *bytes, size_t len, unsigned count, uint64_t *bits, uint8_t *types)
{
	if (len && is_packed(bytes[0])) {
		unsigned code = bytes[0] - PACKED;
		if (!packed_fits(bytes, len, count))
			return ERR_DAMAGED;
		memset(types, packed_type(code / 4), count);
		get_packed(bytes + 1, code, count, bits);
		return 0;
	}
	struct walk walk = walk_begin(bytes, len, count);
	for (unsigned i = 0; i < count && !walk.c.bad; i++) {
		struct value value = walk_next(&walk, i);
		bits[i] = value.bits;
		types[i] = (uint8_t)value.type;
	}
	return walk_end(&walk);
}

int row_check(const uint8_t *bytes, size_t len, unsigned count)
{
	if (len && is_packed(bytes[0]))
		return packed_fits(bytes, len, count) ? 0 : ERR_DAMAGED;
	struct walk walk = walk_begin(bytes, len, count);
	for (unsigned i = 0; i < count && !walk.c.bad; i++)
		walk_next(&walk, i);
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
	struct walk walk = walk_begin(bytes, len, count);
	for (unsigned i = 0; i < at; i++)
		walk_next(&walk, i);
	return walk_next(&walk, at);
}
