/* Which stream, or which streams, a request is about. */
#ifndef API_STREAM_WHICH_H
#define API_STREAM_WHICH_H

#include "api/params.h"
#include "stream/tables.h"

/* One, by its address. */
struct which_stream {
	struct slice tenant, stream;
};

/* Rows of a route's table whose question has a `which`. */
#define WHICH_STREAM(question_)                                                                    \
	{"tenant", PARAM_TENANT,                                                                   \
	 offsetof(question_, which) + offsetof(struct which_stream, tenant),                       \
	 .help = "Whose stream."},                                                                 \
	{                                                                                          \
		"stream", PARAM_TEXT,                                                              \
			offsetof(question_, which) + offsetof(struct which_stream, stream),        \
			.missing = "GET /api/streams lists them", .help = "Its address."           \
	}

/* Copies its texts into the arena, so that they stay when the request is gone, and takes the
 * address apart. ERR_INVALID, with a sentence. */
int which_stream_keep(struct which_stream *which, struct arena *arena, struct stream_id *id,
		      struct errbuf *e) MUST_CHECK;

/* Some of a tenant, page by page. */
struct which_streams {
	struct slice tenant, token;
	struct stream_names names; /* NULL data: any */
	size_t limit;
};
enum { WHICH_STREAMS_LIMIT = 100, WHICH_STREAMS_LIMIT_MAX = 1000 };

#define WHICH_STREAMS_PARAM(question_, field_)                                                     \
	offsetof(question_, which) + offsetof(struct which_streams, field_)
#define WHICH_STREAMS(question_)                                                                   \
	{"tenant", PARAM_TENANT, WHICH_STREAMS_PARAM(question_, tenant),                           \
	 .help = "Whose streams."},                                                                \
		{"source", PARAM_TEXT, WHICH_STREAMS_PARAM(question_, names.source),               \
		 .help = "Only those of this host."},                                              \
		{"cluster", PARAM_TEXT, WHICH_STREAMS_PARAM(question_, names.cluster),             \
		 .help = "Only those of this cluster."},                                           \
		{"datatype", PARAM_TEXT, WHICH_STREAMS_PARAM(question_, names.datatype),           \
		 .help = "Only those of this datatype."},                                          \
		{"name", PARAM_TEXT, WHICH_STREAMS_PARAM(question_, names.name),                   \
		 .help = "Only those of this name."},                                              \
		{"limit",                                                                          \
		 PARAM_NUMBER,                                                                     \
		 WHICH_STREAMS_PARAM(question_, limit),                                            \
		 1,                                                                                \
		 WHICH_STREAMS_LIMIT_MAX,                                                          \
		 .help = "At most so many; 100."},                                                 \
	{                                                                                          \
		"token", PARAM_TEXT, WHICH_STREAMS_PARAM(question_, token),                        \
			.help = "Goes on where the last answer ended."                             \
	}

/* Likewise; *after is the one that the token names, where there is one. */
int which_streams_keep(struct which_streams *which, struct arena *arena, struct stream_id *after,
		       struct errbuf *e) MUST_CHECK;

#endif
