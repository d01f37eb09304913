/* A pattern becomes a program of a few kinds of steps; a text is read once, with the set of all
 * places in the program where a match may stand at that character (Thompson, "Regular expression
 * search algorithm", 1968). Jumps are relative, so that a piece of program can be moved and copied.
 */
#include "wire/regex.h"

#include "base/mem.h"
#include "base/utf8.h"

enum step_kind {
	STEP_CHAR,
	STEP_ANY,
	STEP_CLASS,
	STEP_JUMP,
	STEP_SPLIT, /* goes on at both places */
	STEP_BEGIN,
	STEP_END,
	STEP_WORD_EDGE,
	STEP_NO_WORD_EDGE,
	STEP_MATCH,
};

struct regex_step {
	uint8_t kind;
	int16_t to, also;   /* jump, split: relative */
	uint32_t character; /* or which class */
};

struct regex_range {
	uint32_t low, high;
};

enum { MAPPED = 256 };

/* A map says it of the characters below MAPPED, in the other case and negated, too. Of the others
 * the ranges do, negated or not. */
struct regex_class {
	uint64_t map[MAPPED / 64];
	uint32_t first, count; /* ranges */
	bool negated;
};

/* ---- Characters ------------------------------------------------------------------------------ */

enum { NOT_UTF8 = 0x110000 };

/* The character at *p, which moves after it. */
static uint32_t regex_parse_char(const char **p, const char *end)
{
	const uint8_t *at = (const uint8_t *)*p;
	if (*at < 0x80) {
		++*p;
		return *at;
	}
	size_t len = utf8_length(at, (size_t)(end - *p));
	*p += len ? len : 1;
	return len ? utf8_code(at, len) : NOT_UTF8 + (uint32_t)*at;
}

static bool is_word(uint32_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static uint32_t other_case(uint32_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? c ^ 0x20 : c;
}

/* ---- Compiling ------------------------------------------------------------------------------- */

struct compiler {
	const char *p, *end;
	struct regex_step *steps;
	struct regex_range *ranges;
	struct regex_class *classes;
	size_t step_count, range_count, class_count;
	bool fold_case;
	unsigned depth;
	int err;
	const char *reason; /* why it is wrong; NULL while good */
};

static void regex_spoil(struct compiler *c, int err, const char *reason)
{
	if (!c->reason) {
		c->err = err;
		c->reason = reason;
	}
	c->p = c->end;
}

static bool next_is(const struct compiler *c, char wanted)
{
	return c->p < c->end && *c->p == wanted;
}

static bool regex_skip_char(struct compiler *c, char wanted)
{
	if (!next_is(c, wanted))
		return false;
	c->p++;
	return true;
}

/* Room for `count` steps at `at`; what stands there moves back. False: there is none. */
static bool regex_make_room(struct compiler *c, size_t at, size_t count)
{
	if (c->reason || c->step_count + count > REGEX_STEPS_MAX) {
		regex_spoil(c, ERR_LIMIT, "it is too long when its repetitions are written out");
		return false;
	}
	memmove(c->steps + at + count, c->steps + at, (c->step_count - at) * sizeof(*c->steps));
	c->step_count += count;
	return true;
}

static struct regex_step *regex_put(struct compiler *c, size_t at, enum step_kind kind)
{
	/* Where there is no room the answer is an error, and nobody looks at this one. */
	if (!regex_make_room(c, at, 1))
		return &c->steps[REGEX_STEPS_MAX];
	c->steps[at] = (struct regex_step){.kind = (uint8_t)kind};
	return &c->steps[at];
}

static void put_split(struct compiler *c, size_t at, ptrdiff_t to, ptrdiff_t also)
{
	struct regex_step *step = regex_put(c, at, STEP_SPLIT);
	step->to = (int16_t)to;
	step->also = (int16_t)also;
}

static void put_jump(struct compiler *c, size_t at, ptrdiff_t to)
{
	regex_put(c, at, STEP_JUMP)->to = (int16_t)to;
}

static void regex_add_range(struct compiler *c, uint32_t low, uint32_t high)
{
	if (c->range_count == REGEX_RANGES_MAX)
		regex_spoil(c, ERR_LIMIT, "its classes are too many");
	else
		c->ranges[c->range_count++] = (struct regex_range){low, high};
}

/* The ranges of \d, \w, \s; of the capital ones what lies between those. */
static void add_named_class(struct compiler *c, char name)
{
	static const struct regex_range digit[] = {{'0', '9'}};
	static const struct regex_range space[] = {{'\t', '\r'}, {' ', ' '}};
	static const struct regex_range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
	char lower = (char)(name | 0x20);
	const struct regex_range *list = lower == 'd' ? digit : lower == 's' ? space : word;
	size_t count = lower == 'd'   ? ARRAY_LEN(digit)
		       : lower == 's' ? ARRAY_LEN(space)
				      : ARRAY_LEN(word);
	uint32_t from = 0;
	for (size_t i = 0; i < count; i++) {
		if (name == lower)
			regex_add_range(c, list[i].low, list[i].high);
		else
			regex_add_range(c, from, list[i].low - 1);
		from = list[i].high + 1;
	}
	if (name != lower)
		regex_add_range(c, from, UINT32_MAX);
}

static bool is_named_class(char c)
{
	return c != 0 && strchr("dDwWsS", c) != NULL;
}

/* The character after a backslash that stands for one. */
static uint32_t regex_parse_escaped(struct compiler *c)
{
	static const char letters[] = "tnrfva", meant[] = "\t\n\r\f\v\a";
	if (c->p == c->end) {
		regex_spoil(c, ERR_INVALID, "it ends with a backslash");
		return 0;
	}
	uint32_t character = regex_parse_char(&c->p, c->end);
	const char *known = character && character < 0x80 ? strchr(letters, (int)character) : NULL;
	if (known)
		return (unsigned char)meant[known - letters];
	if (is_word(character) && character != '_')
		regex_spoil(c, ERR_INVALID,
			    "of a backslash and a letter or digit only \\d \\w \\s \\D \\W \\S "
			    "\\b \\B \\A \\Z \\t \\n \\r \\f \\v \\a are known");
	return character;
}

/* One character of a class, or a named class within it: then false. */
static bool regex_parse_class_char(struct compiler *c, uint32_t *character)
{
	if (!regex_skip_char(c, '\\')) {
		*character = regex_parse_char(&c->p, c->end);
		if (*character == '[' && next_is(c, ':'))
			regex_spoil(
				c, ERR_INVALID,
				"classes such as [:digit:] are not known, but \\d \\w \\s \\D \\W "
				"\\S are; the characters themselves are \\[:");
		return true;
	}
	if (c->p < c->end && is_named_class(*c->p)) {
		add_named_class(c, *c->p++);
		return false;
	}
	*character = regex_parse_escaped(c);
	return true;
}

static bool in_ranges(const struct regex_range *range, size_t count, uint32_t c)
{
	for (size_t i = 0; i < count; i++) {
		if (c >= range[i].low && c <= range[i].high)
			return true;
	}
	return false;
}

/* A class of all ranges since `first`. There is room: each class has a byte of the pattern, at
 * least. */
static void put_class(struct compiler *c, size_t first, bool negated)
{
	struct regex_class *class = &c->classes[c->class_count];
	size_t count = c->range_count - first;
	*class = (struct regex_class){
		.first = (uint32_t)first, .count = (uint32_t)count, .negated = negated};
	for (uint32_t i = 0; i < MAPPED; i++) {
		bool in = in_ranges(c->ranges + first, count, i) ||
			  (c->fold_case && in_ranges(c->ranges + first, count, other_case(i)));
		class->map[i / 64] |= (uint64_t)(in != negated) << i % 64;
	}
	regex_put(c, c->step_count, STEP_CLASS)->character = (uint32_t)c->class_count++;
}

static void compile_class(struct compiler *c)
{
	size_t first = c->range_count;
	bool negated = regex_skip_char(c, '^');
	bool any = false;
	while (c->p < c->end && (*c->p != ']' || !any)) {
		uint32_t low, high;
		any = true;
		if (!regex_parse_class_char(c, &low))
			continue;
		high = low;
		if (next_is(c, '-') && c->p + 1 < c->end && c->p[1] != ']') {
			c->p++;
			if (!regex_parse_class_char(c, &high))
				regex_spoil(c, ERR_INVALID, "a range ends with a class");
		}
		if (high < low)
			regex_spoil(c, ERR_INVALID, "a range is upside down");
		regex_add_range(c, low, high);
	}
	if (!regex_skip_char(c, ']'))
		regex_spoil(c, ERR_INVALID, "a [ has no ]");
	put_class(c, first, negated);
}

static void compile_either(struct compiler *c);

static void compile_group(struct compiler *c)
{
	if (regex_skip_char(c, '?') && !regex_skip_char(c, ':')) {
		regex_spoil(c, ERR_INVALID, "of groups with (? only (?: is known");
		return;
	}
	if (++c->depth > REGEX_DEPTH_MAX) {
		regex_spoil(c, ERR_LIMIT, "its groups are too deep");
		return;
	}
	compile_either(c);
	c->depth--;
	if (!regex_skip_char(c, ')'))
		regex_spoil(c, ERR_INVALID, "a ( has no )");
}

static void compile_backslash(struct compiler *c)
{
	static const char edges[] = "bBAZ";
	static const uint8_t kinds[] = {STEP_WORD_EDGE, STEP_NO_WORD_EDGE, STEP_BEGIN, STEP_END};
	char next = c->p < c->end ? *c->p : 0;
	const char *edge = next ? strchr(edges, next) : NULL;
	if (edge) {
		c->p++;
		regex_put(c, c->step_count, kinds[edge - edges]);
	} else if (is_named_class(next)) {
		size_t first = c->range_count;
		c->p++;
		add_named_class(c, next);
		put_class(c, first, false);
	} else {
		uint32_t character = regex_parse_escaped(c);
		regex_put(c, c->step_count, STEP_CHAR)->character = character;
	}
}

static void compile_atom(struct compiler *c)
{
	if (regex_skip_char(c, '('))
		compile_group(c);
	else if (regex_skip_char(c, '['))
		compile_class(c);
	else if (regex_skip_char(c, '\\'))
		compile_backslash(c);
	else if (regex_skip_char(c, '.'))
		regex_put(c, c->step_count, STEP_ANY);
	else if (regex_skip_char(c, '^'))
		regex_put(c, c->step_count, STEP_BEGIN);
	else if (regex_skip_char(c, '$'))
		regex_put(c, c->step_count, STEP_END);
	else if (next_is(c, '*') || next_is(c, '+') || next_is(c, '?'))
		regex_spoil(c, ERR_INVALID, "there is nothing to repeat");
	else
		regex_put(c, c->step_count, STEP_CHAR)->character = regex_parse_char(&c->p, c->end);
}

/* ---- Repetitions ----------------------------------------------------------------------------- */

enum { NO_MAXIMUM = -1 };

static int regex_parse_count(struct compiler *c)
{
	int number = 0;
	const char *start = c->p;
	while (c->p < c->end && *c->p >= '0' && *c->p <= '9' && number <= REGEX_REPEATS_MAX)
		number = number * 10 + (*c->p++ - '0');
	if (number > REGEX_REPEATS_MAX)
		regex_spoil(c, ERR_LIMIT, "it repeats more than 255 times");
	return c->p == start ? NO_MAXIMUM : number;
}

/* `{m}`, `{m,}`, `{,n}`, `{m,n}`; false, and nothing taken: the brace is a character. */
static bool regex_parse_braces(struct compiler *c, int *least, int *most)
{
	const char *start = c->p;
	if (!regex_skip_char(c, '{'))
		return false;
	*least = *most = regex_parse_count(c);
	bool comma = regex_skip_char(c, ',');
	if (comma)
		*most = regex_parse_count(c);
	if (!regex_skip_char(c, '}') || (*least == NO_MAXIMUM && (!comma || *most == NO_MAXIMUM))) {
		c->p = c->reason ? c->end : start;
		return false;
	}
	if (*least == NO_MAXIMUM)
		*least = 0;
	if (*most != NO_MAXIMUM && *most < *least)
		regex_spoil(c, ERR_INVALID, "a repetition has more at least than at most");
	return true;
}

static bool regex_parse_repetition(struct compiler *c, int *least, int *most)
{
	*least = 0;
	*most = NO_MAXIMUM;
	if (regex_skip_char(c, '*'))
		return true;
	if (regex_skip_char(c, '+')) {
		*least = 1;
		return true;
	}
	if (regex_skip_char(c, '?')) {
		*most = 1;
		return true;
	}
	return regex_parse_braces(c, least, most);
}

/* Appends the piece that `len` steps from `from` on are. */
static void copy_piece(struct compiler *c, const struct regex_step *piece, size_t len)
{
	size_t at = c->step_count;
	if (regex_make_room(c, at, len))
		memcpy(c->steps + at, piece, len * sizeof(*piece));
}

/* The last piece, from `start` on, as often as said: written out `least` times, then either once
 * more as a loop, or as often as is left, each with a way past all the rest. */
static void repeat(struct compiler *c, size_t start, int least, int most)
{
	struct regex_step piece[REGEX_STEPS_MAX];
	size_t len = c->step_count - start;
	memcpy(piece, c->steps + start, len * sizeof(*piece));
	c->step_count = start;
	for (int i = 0; i < least && !c->reason; i++)
		copy_piece(c, piece, len);
	if (most == NO_MAXIMUM) {
		put_split(c, c->step_count, 1, (ptrdiff_t)len + 2);
		copy_piece(c, piece, len);
		put_jump(c, c->step_count, -(ptrdiff_t)(len + 1));
	}
	for (int left = most - least; left > 0 && !c->reason; left--) {
		put_split(c, c->step_count, 1, (ptrdiff_t)(len + 1) * left);
		copy_piece(c, piece, len);
	}
}

static void compile_repeated(struct compiler *c)
{
	size_t start = c->step_count;
	int least, most;
	compile_atom(c);
	if (c->reason || !regex_parse_repetition(c, &least, &most))
		return;
	(void)regex_skip_char(c, '?'); /* lazy: another match perhaps, but not another answer */
	repeat(c, start, least, most);
	if (regex_parse_repetition(c, &least, &most))
		regex_spoil(c, ERR_INVALID, "a repetition is repeated");
}

/* ---- Alternatives ---------------------------------------------------------------------------- */

static void compile_row(struct compiler *c)
{
	while (c->p < c->end && *c->p != '|' && *c->p != ')')
		compile_repeated(c);
}

/* `a|b|c`: split a jump, split b jump, c. Each jump is told where the end is when that is known:
 * until then it holds the way back to the jump before it. */
static void compile_either(struct compiler *c)
{
	size_t start = c->step_count, last_jump = SIZE_MAX;
	compile_row(c);
	while (regex_skip_char(c, '|')) {
		size_t len = c->step_count - start;
		put_split(c, start, 1, (ptrdiff_t)len + 2);
		size_t jump = c->step_count;
		put_jump(c, jump, last_jump == SIZE_MAX ? 0 : (ptrdiff_t)(jump - last_jump));
		if (c->reason)
			return;
		last_jump = jump;
		start = c->step_count;
		compile_row(c);
	}
	while (last_jump != SIZE_MAX && !c->reason) {
		size_t back = (size_t)c->steps[last_jump].to;
		c->steps[last_jump].to = (int16_t)(c->step_count - last_jump);
		last_jump = back ? last_jump - back : SIZE_MAX;
	}
}

static void *regex_copy_part(struct arena *arena, const void *part, size_t bytes)
{
	void *kept = arena_alloc(arena, bytes + 1);
	if (kept)
		memcpy(kept, part, bytes);
	return kept;
}

int regex_compile(struct slice pattern, bool fold_case, struct arena *arena, struct regex *regex,
		  struct errbuf *e)
{
	struct compiler c = {
		.p = pattern.data, .end = pattern.data + pattern.len, .fold_case = fold_case};
	if (pattern.len > REGEX_MAX_BYTES)
		return errbuf_set(e, ERR_LIMIT, "the expression is longer than %d bytes",
				  REGEX_MAX_BYTES);
	/* Room for the largest; what is kept is as large as it must be. */
	struct regex_step steps[REGEX_STEPS_MAX + 1];
	struct regex_range ranges[REGEX_RANGES_MAX];
	struct regex_class classes[REGEX_MAX_BYTES];
	c.steps = steps;
	c.ranges = ranges;
	c.classes = classes;
	compile_either(&c);
	if (c.p < c.end)
		regex_spoil(&c, ERR_INVALID, "a ) has no (");
	regex_put(&c, c.step_count, STEP_MATCH);
	if (c.reason)
		return errbuf_set(e, c.err, "the expression \"" SHOWN "\" is not understood: %s",
				  SHOWN_OF(pattern), c.reason);
	*regex = (struct regex){
		.steps = regex_copy_part(arena, steps, c.step_count * sizeof(*steps)),
		.ranges = regex_copy_part(arena, ranges, c.range_count * sizeof(*ranges)),
		.classes = regex_copy_part(arena, classes, c.class_count * sizeof(*classes)),
		.step_count = c.step_count,
		.fold_case = fold_case,
	};
	if (!regex->steps || !regex->ranges || !regex->classes)
		return errbuf_set(e, ERR_LIMIT, "the expressions take too much room");
	return 0;
}

/* ---- Searching ------------------------------------------------------------------------------- */

/* Places in the program, each once: `place` lists them, and at[s] says where in the list step s is
 * if it is (so the list is emptied by its count alone). */
struct places {
	size_t count;
	uint16_t place[REGEX_STEPS_MAX], at[REGEX_STEPS_MAX];
};

/* Where in the text the search stands. */
struct stand {
	bool at_begin, at_end, word_before, word_after;
};

static bool regex_has_place(const struct places *places, size_t step)
{
	size_t at = places->at[step];
	return at < places->count && places->place[at] == step;
}

static void add_place(struct places *places, size_t step)
{
	if (regex_has_place(places, step))
		return;
	places->at[step] = (uint16_t)places->count;
	places->place[places->count++] = (uint16_t)step;
}

static bool holds(const struct regex_step *step, const struct stand *stand)
{
	switch ((enum step_kind)step->kind) {
	case STEP_BEGIN:
		return stand->at_begin;
	case STEP_END:
		return stand->at_end;
	case STEP_WORD_EDGE:
		return stand->word_before != stand->word_after;
	case STEP_NO_WORD_EDGE:
		return stand->word_before == stand->word_after;
	default:
		return false;
	}
}

/* Follows what needs no character: the list grows while it is walked. True: a match. */
static bool follow(const struct regex *regex, struct places *places, const struct stand *stand)
{
	for (size_t i = 0; i < places->count; i++) {
		size_t at = places->place[i];
		const struct regex_step *step = &regex->steps[at];
		if (step->kind == STEP_MATCH)
			return true;
		if (step->kind == STEP_JUMP || step->kind == STEP_SPLIT)
			add_place(places, (size_t)((ptrdiff_t)at + step->to));
		if (step->kind == STEP_SPLIT)
			add_place(places, (size_t)((ptrdiff_t)at + step->also));
		if (holds(step, stand))
			add_place(places, at + 1);
	}
	return false;
}

static bool in_class(const struct regex *regex, uint32_t which, uint32_t c, uint64_t *work)
{
	const struct regex_class *class = &regex->classes[which];
	if (c < MAPPED)
		return class->map[c / 64] >> c % 64 & 1;
	*work += class->count;
	return in_ranges(regex->ranges + class->first, class->count, c) != class->negated;
}

static bool takes(const struct regex *regex, const struct regex_step *step, uint32_t c,
		  uint64_t *work)
{
	switch ((enum step_kind)step->kind) {
	case STEP_CHAR:
		return step->character == c ||
		       (regex->fold_case && step->character == other_case(c));
	case STEP_ANY:
		return c != '\n';
	case STEP_CLASS:
		return in_class(regex, step->character, c, work);
	default:
		return false;
	}
}

static bool word_at(const char *p, const char *end)
{
	return p < end && is_word((unsigned char)*p);
}

bool regex_search_pausing(const struct regex *regex, struct slice text, uint64_t *work,
			  bool (*stops)(void *owner), void *owner)
{
	uint64_t pause = *work + REGEX_PAUSE_WORK;
	struct places sets[2];
	const char *p = text.data, *end = p + text.len;
	bool word_before = false;
	for (unsigned i = 0; i < 2; i++) {
		sets[i].count = 0;
		memset(sets[i].at, 0, regex->step_count * sizeof(*sets[i].at));
	}
	for (unsigned turn = 0;; turn ^= 1) {
		struct places *here = &sets[turn], *next = &sets[turn ^ 1];
		struct stand stand = {p == text.data, p == end, word_before, word_at(p, end)};
		add_place(here, 0); /* it may also begin here */
		bool found = follow(regex, here, &stand);
		*work += here->count;
		if (found || p == end)
			return found;
		if (*work >= pause) {
			if (stops && stops(owner))
				return false;
			pause = *work + REGEX_PAUSE_WORK;
		}
		uint32_t c = regex_parse_char(&p, end);
		word_before = is_word(c);
		next->count = 0;
		for (size_t i = 0; i < here->count; i++) {
			if (takes(regex, &regex->steps[here->place[i]], c, work))
				add_place(next, here->place[i] + 1u);
		}
	}
}

bool regex_search(const struct regex *regex, struct slice text, uint64_t *work)
{
	return regex_search_pausing(regex, text, work, NULL, NULL);
}
