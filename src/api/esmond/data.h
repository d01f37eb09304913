/* The `data` of one counter: what is asked of it, checked against what is stored; and its points,
 * written into an answer.
 *
 * Embedded in its owner, whose answer's `advance` it takes from start to `ended`. */
#ifndef API_ESMOND_DATA_H
#define API_ESMOND_DATA_H

#include "api/esmond/fetch.h"
#include "api/esmond/points.h"

/* What becomes of the parameters of one OIDSet. */
struct v2_plan {
	bool raw;
	int64_t period_ms;
};

/* ERR_INVALID with a sentence: `agg`, `cf` or `calc` ask for what is not there, or for more points
 * than one answer may have. */
int v2_plan_make(const struct v2_answer *answer, const struct v2_target *target,
		 const struct v2_data_params *params, struct v2_plan *plan,
		 struct errbuf *e) MUST_CHECK;

struct v2_data {
	struct v2_fetch fetch; /* the target is the caller's to fill in */
	struct v2_points points;
	/* At the first piece, before anything is written: whether to go on. May be NULL. */
	bool (*found)(struct v2_data *data);
	/* Everything is written, or there is an error. Not called from within v2_data_start. */
	void (*ended)(struct v2_data *data, int err);

	/* Set before the start: nothing is written before v2_data_go_on, and `advance` is left to
	 * somebody else until then. */
	bool on_hold;

	/* private */
	size_t used;
	bool began, waiting;
};

/* Writes the array of points. */
void v2_data_start(struct v2_data *data, struct v2_answer *answer, const struct v2_plan *plan,
		   const struct v2_data_params *params);
void v2_data_go_on(struct v2_data *data);
void v2_data_release(struct v2_data *data);

/* For `ended`, where the points are the last member of the answer. */
void v2_data_end_answer(struct v2_data *data, int err);

/* "begin_time", "end_time", "agg", "cf", or those of calc. `agg` is said in the unit of the
 * times; 0: null. */
void v2_put_question(struct json_writer *json, const struct v2_data_params *params, int64_t agg_ms);

#endif
