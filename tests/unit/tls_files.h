/* Certificates and keys for tests, made by openssl(1) in a directory of the test. */
#ifndef TESTS_UNIT_TLS_FILES_H
#define TESTS_UNIT_TLS_FILES_H

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

struct tls_files {
	char directory[32];
	char certificate[64], key[64]; /* of localhost, 127.0.0.1 and ::1, valid for 30 days */
};

/* Runs a command of the shell in the directory, in which it may write. */
static inline void tls_files_run(const struct tls_files *files, const char *command)
{
	char all[1000];
	snprintf(all, sizeof(all), "cd %s && { %s; } >said 2>&1 || { cat said >&2; false; }",
		 files->directory, command);
	assert_int_equal(system(all), 0);
}

static inline void tls_files_make(struct tls_files *files)
{
	snprintf(files->directory, sizeof(files->directory), "/tmp/granary-tls-XXXXXX");
	assert_non_null(mkdtemp(files->directory));
	snprintf(files->certificate, sizeof(files->certificate), "%s/cert.pem", files->directory);
	snprintf(files->key, sizeof(files->key), "%s/key.pem", files->directory);
	tls_files_run(files, "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
			     "-keyout key.pem -out cert.pem -days 30 -subj /CN=localhost "
			     "-addext subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1");
}

static inline void tls_files_remove(const struct tls_files *files)
{
	char command[64];
	snprintf(command, sizeof(command), "rm -r %s", files->directory);
	assert_int_equal(system(command), 0);
}

#endif
