/* The section `datatypes` of a configuration: how the lines of a datatype are read, and what their
 * numbers become (doc/demux.md). A line of a datatype is a sample, or an event that is counted.
 *
 * Datatypes that are shipped (access, df, iostat, sar, top, vmstat, SystemMetrics) are texts of the
 * same form; who names one gets it, or what differs from it.
 *
 * Rules are immutable, and live until all who share them have let them go. A reader belongs to one
 * thread. */
#ifndef STREAM_DATATYPES_H
#define STREAM_DATATYPES_H

#include <stdatomic.h>

#include "wire/fields.h"

struct conf_node;

enum {
	DATATYPES_MAX = 1000,
	DATATYPES_MAX_BYTES = 16 << 20,
	DATATYPE_TAGS_MAX = 16,
	DATATYPE_VALUES_MAX = 64,
	DATATYPE_TEXTS_MAX = 16,
	DATATYPE_CONDITIONS_MAX = 8,
	DATATYPE_WORDS_MAX = 64, /* of a list of words */
	DATATYPE_UNIT_MAX_BYTES = 64,
	DATATYPE_SERIES_MAX = 50000, /* so that demux_state.h can name them in a cell */
	DATATYPE_SERIES = 1000,
	DATATYPE_MINUTE_TEXTS_MAX = 100000,
	DATATYPE_MINUTE_TEXTS = 600,
};

/* DATATYPE_UNREAD: `none` was said. */
enum datatype_kind { DATATYPE_UNREAD, DATATYPE_SAMPLES, DATATYPE_EVENTS };

/* A field by its name, and by its place where it is that of a pattern. */
struct datatype_field {
	struct slice name;
	size_t place; /* SIZE_MAX: it is looked for by its name */
};

struct datatype_tag {
	struct slice key;
	struct datatype_field field;
};

struct datatype_unit {
	struct slice field;
	struct slice unit;
	uint64_t scale; /* as fields_number takes it */
};

struct datatype_value {
	struct datatype_field field;
	struct datatype_unit unit;
	struct slice metric;        /* of samples */
	struct slice sum, min, max; /* metrics of events */
};

enum datatype_relation {
	DATATYPE_EQUAL,
	DATATYPE_NOT_EQUAL,
	DATATYPE_LESS,
	DATATYPE_AT_MOST,
	DATATYPE_MORE,
	DATATYPE_AT_LEAST,
};

struct datatype_condition {
	struct datatype_field field;
	enum datatype_relation relation;
	struct slice text;
	struct value number; /* VALUE_NONE: the text is none */
};

struct datatype {
	struct slice name;
	enum datatype_kind kind;
	struct fields_format format;
	const struct datatype_tag *tags;
	size_t tag_count;
	const struct datatype_value *values;
	size_t value_count;
	bool all_values; /* of samples: each field that is a number, no tag and not among `excepted`
			  */
	struct fields_words excepted;
	/* Fields of samples that may be texts. A number in such a field is a value. */
	const struct datatype_value *texts;
	size_t text_count;
	const struct datatype_unit *units;
	size_t unit_count;
	const struct datatype_condition *conditions; /* all must hold */
	size_t condition_count;
	struct slice prefix; /* of metrics, with its dot */
	struct slice count;  /* the metric of the number of events */
	size_t series_max;   /* of one stream */
	size_t texts_max;    /* of one stream, in a minute of its lines' time */
	uint64_t hash;       /* of all that is said of it: another one where a rule has changed */
};

struct datatypes {
	struct datatype *list;
	size_t count;
	/* Private. */
	size_t capacity;
	struct arena arena;
	_Atomic unsigned shares;
};

/* Reads the section, NULL: none is given. The section may go then. SystemMetrics, HostMetrics and
 * access are among them unless the section has them. ERR_INVALID with a sentence that names file
 * and line; ERR_LIMIT: the section is too large. */
int datatypes_read(const struct conf_node *section, struct datatypes **datatypes,
		   struct errbuf *e) MUST_CHECK;
/* The same rules for one more, who lets them go by datatypes_free. NULL: NULL. Any thread. */
struct datatypes *datatypes_share(struct datatypes *datatypes);
/* The last one who lets them go frees them. NULL: nothing happens. */
void datatypes_free(struct datatypes *datatypes);

/* NULL: lines of this datatype are not read, or there are no rules (NULL). */
const struct datatype *datatypes_find(const struct datatypes *datatypes, struct slice name);

/* ---- Lines ----------------------------------------------------------------------------------- */

enum datatype_result {
	DATATYPE_READ,
	DATATYPE_PASSED, /* a line of names, an empty one, or one that a condition leaves out */
	DATATYPE_NOT,    /* the rule does not read it: it is to be counted */
};

struct datatype_number {
	struct value value;  /* VALUE_NONE: the line has none */
	struct slice metric; /* of samples */
	struct slice unit;
};

struct datatype_text {
	struct slice metric, text;
};

/* All of it is valid until the next line. */
struct datatype_record {
	const struct slice *tags; /* as rule->tags; empty: the line has no such field */
	/* Numbers as in rule->values, then those of rule->texts; where all values are taken, as
	 * many as there are. */
	const struct datatype_number *numbers;
	size_t count;
	const struct datatype_text *texts; /* that are no numbers */
	size_t text_count;
	size_t refused; /* values that are there and no numbers, and what the line has too much of
			 */
};

struct datatype_reader {
	const struct datatype *rule;
	struct fields_reader fields; /* its state is that of the reader (fields_state_put) */
	/* Private. */
	struct slice tags[DATATYPE_TAGS_MAX];
	struct datatype_number *numbers;
	size_t capacity;
	struct datatype_text texts[DATATYPE_TEXTS_MAX];
	struct arena arena; /* metrics of all values */
};

void datatype_reader_init(struct datatype_reader *reader, const struct datatype *rule);
void datatype_reader_release(struct datatype_reader *reader);

/* One line without its newline. Text of tags is UTF-8 of at most TAG_VALUE_MAX_BYTES without
 * control characters: a line that has another one is not read. A value `-` is none. All tags
 * together may be longer than a series may have them (tags_sort_and_check). */
enum datatype_result datatype_read(struct datatype_reader *reader, struct slice line,
				   struct datatype_record *record);

/* Takes = != < <= > or >= off a text. False: it begins with none. */
bool datatype_take_relation(struct slice *rest, enum datatype_relation *relation);
/* Whether it holds between two that are in this order: <0, 0, >0. */
bool datatype_relation_holds(enum datatype_relation relation, int order);
/* `FIELD>=TEXT`; = != < <= > and >= compare numbers where both are some, and else = and != texts.
 * The text is copied. ERR_INVALID with a sentence; ERR_LIMIT: the arena is full. */
int datatype_condition_parse(const struct datatype *rule, struct slice text, struct arena *arena,
			     struct datatype_condition *condition, struct errbuf *e) MUST_CHECK;
/* Whether the line that was read last fits. A field that is not there fits nothing. */
bool datatype_condition_fits(const struct datatype_condition *condition,
			     const struct fields_reader *fields);

#endif
