/* Which frames are not the application's, where the sender does not say so. */
#include "fault/group_private.h"

/* Parts of paths. */
static const struct slice foreign_paths[] = {
	SLICE("/site-packages/"), SLICE("/dist-packages/"), SLICE("/lib/python"),
	SLICE("/lib64/python"),   SLICE("<frozen "),        SLICE("node_modules/"),
	SLICE("node:"),           SLICE("internal/"),       SLICE("webpack/bootstrap"),
	SLICE("webpack/runtime"), SLICE("-extension://"),   SLICE("../sysdeps/"),
	SLICE("./nptl/"),         SLICE("./stdlib/"),       SLICE("./libio/"),
	SLICE("./malloc/"),       SLICE("./debug/"),        SLICE("./csu/"),
	SLICE("./assert/"),       SLICE("./signal/"),       SLICE("../nptl/"),
	SLICE("./elf/"),          SLICE("/usr/include/"),   SLICE("/rustc/"),
	SLICE("/go/pkg/mod/"),    SLICE("/lib/libc.so"),    SLICE("linux-gnu/"),
	SLICE("./string/"),       SLICE("compiler-rt/"),    SLICE("libsanitizer/"),
};

/* What a path begins with: where systems have their libraries. */
static const struct slice foreign_begins[] = {
	SLICE("/lib/"),   SLICE("/lib64/"), SLICE("/usr/lib/"),          SLICE("/usr/lib64/"),
	SLICE("raise.c"), SLICE("abort.c"), SLICE("/usr/local/go/src/"),
};

/* What the names of Java's modules, and those of Python that Sentry gives, begin with. */
static const struct slice foreign_modules[] = {
	SLICE("java."),
	SLICE("javax."),
	SLICE("jdk."),
	SLICE("sun."),
	SLICE("com.sun."),
	SLICE("jakarta."),
	SLICE("kotlin."),
	SLICE("kotlinx."),
	SLICE("scala."),
	SLICE("groovy."),
	SLICE("clojure."),
	SLICE("org.springframework."),
	SLICE("org.apache."),
	SLICE("org.hibernate."),
	SLICE("org.eclipse.jetty."),
	SLICE("io.netty."),
	SLICE("reactor."),
	SLICE("io.undertow."),
	SLICE("org.jboss."),
	SLICE("com.zaxxer."),
	SLICE("com.mysql."),
	SLICE("org.junit."),
	SLICE("org.postgresql."),
	SLICE("oracle.jdbc."),
	SLICE("com.google.common."),
	SLICE("com.fasterxml."),
	SLICE("android."),
	SLICE("androidx."),
	SLICE("com.android."),
	SLICE("dalvik."),
	SLICE("net.sf.cglib."),
	SLICE("net.bytebuddy."),
	SLICE("ch.qos.logback."),
	SLICE("org.slf4j."),
};

/* Functions of the C library that traces name without a place. */
static const struct slice foreign_functions[] = {
	SLICE("abort"),   SLICE("raise"),
	SLICE("gsignal"), SLICE("_start"),
	SLICE("clone"),   SLICE("start_thread"),
	SLICE("clone3"),  SLICE("__pthread_kill_implementation"),
};
static const struct slice foreign_function_begins[] = {SLICE("__libc_"), SLICE("__GI_"),
						       SLICE("__assert_"), SLICE("__interceptor_"),
						       SLICE("__asan_")};

static bool grouping_foreign_begins_any(struct slice text, const struct slice *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (grouping_begins(text, list[i]))
			return true;
	return false;
}

bool grouping_is_of_go(const struct grouping_frame *frame)
{
	struct slice end = SLICE(".go");
	return frame->module.len && frame->file.len > end.len &&
	       !memcmp(frame->file.data + frame->file.len - end.len, end.data, end.len);
}

/* By a file as -trimpath leaves it: the path of a package, which begins with the name of a host.
 * Those of Go's own library do not; those of other modules have a version. */
static bool grouping_foreign_is_go(const struct grouping_frame *frame)
{
	struct slice file = frame->file;
	if (!grouping_is_of_go(frame) || file.data[0] == '/' ||
	    slice_equal(frame->module, SLICE("main")))
		return false;
	struct slice host = grouping_part(file, 0, grouping_find(file, 0, SLICE("/")));
	return !memchr(host.data, '.', host.len) || grouping_find(file, 0, SLICE("@v")) < file.len;
}

bool grouping_is_foreign(const struct grouping_frame *frame)
{
	if (grouping_foreign_begins_any(frame->module, foreign_modules,
					ARRAY_LEN(foreign_modules)) ||
	    grouping_foreign_begins_any(frame->file, foreign_begins, ARRAY_LEN(foreign_begins)) ||
	    grouping_foreign_begins_any(frame->function, foreign_function_begins,
					ARRAY_LEN(foreign_function_begins)) ||
	    grouping_foreign_is_go(frame))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(foreign_paths); i++)
		if (grouping_find(frame->file, 0, foreign_paths[i]) < frame->file.len)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(foreign_functions); i++)
		if (slice_equal(frame->function, foreign_functions[i]))
			return true;
	return false;
}
