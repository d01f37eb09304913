/* TLS without sockets: a server's side that is fed with anything. By the first byte
 *
 *  - the rest comes instead of a handshake,
 *  - or after one, beside TLS,
 *  - or is what our client's side sends within TLS, in pieces, and the server's side has to read
 *    the same bytes and then the end. */
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/mem.h"
#include "loop/tls_private.h"

enum { WIRE_MAX_BYTES = 8 << 20 };

static struct {
	struct tls_context *for_server, *for_client;
	struct buf pem; /* the certificate and its key: what each file holds */
} fuzz;

static int one_file_read(UNUSED struct files *files, UNUSED const char *path,
			 UNUSED size_t max_bytes, struct buf *out)
{
	buf_clear(out);
	return buf_append(out, fuzz.pem.data, fuzz.pem.len);
}

static int one_file_mode(UNUSED struct files *files, UNUSED const char *path, unsigned *mode)
{
	*mode = 0600;
	return 0;
}

static void make_pem(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *one = X509_new();
	BIO *bio = BIO_new(BIO_s_mem());
	char *bytes;
	X509_set_version(one, 2);
	X509_gmtime_adj(X509_getm_notBefore(one), -3600);
	X509_gmtime_adj(X509_getm_notAfter(one), 86400 * 365);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(one), "CN", MBSTRING_ASC,
				   (const uint8_t *)"localhost", -1, -1, 0);
	X509_set_issuer_name(one, X509_get_subject_name(one));
	X509_set_pubkey(one, key);
	ASSERT(X509_sign(one, key, EVP_sha256()) && PEM_write_bio_X509(bio, one) &&
	       PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL));
	long len = BIO_get_mem_data(bio, &bytes);
	buf_init(&fuzz.pem, 65536);
	buf_append(&fuzz.pem, bytes, (size_t)len);
	BIO_free(bio);
	X509_free(one);
	EVP_PKEY_free(key);
}

static void make_contexts(void)
{
	static const struct tls_protocols protocols = {{"http/1.1"}, 1};
	struct files files = {.read = one_file_read, .mode = one_file_mode};
	struct errbuf e, warning;
	bool key_is_wrong;
	make_pem();
	int err = tls_context_for_server(&files, clock_real(), "", "", &protocols, &fuzz.for_server,
					 &key_is_wrong, &warning, &e);
	ASSERT(!err);
	err = tls_context_for_client(&files, "", &protocols, &fuzz.for_client, &e);
	ASSERT(!err);
}

struct end {
	struct tls tls;
	struct buf out;
};

static void end_init(struct end *end, struct tls_context *context)
{
	buf_init(&end->out, WIRE_MAX_BYTES);
	tls_init(&end->tls, &(struct loop_tls){context, "localhost", 0}, &end->out);
}

static void end_release(struct end *end)
{
	tls_release(&end->tls);
	buf_release(&end->out);
}

static void shake(struct end *server, struct end *client)
{
	bool worked;
	enum tls_result served = TLS_WANTS_INPUT, called = TLS_WANTS_INPUT;
	while (served != TLS_DONE || called != TLS_DONE) {
		if (called != TLS_DONE)
			called = tls_shake_hands(&client->tls, &worked);
		server->tls.in = buf_slice(&client->out);
		served = tls_shake_hands(&server->tls, &worked);
		ASSERT(!server->tls.in.len && served != TLS_FAILED && called != TLS_FAILED);
		buf_clear(&client->out);
		client->tls.in = buf_slice(&server->out);
		if (called == TLS_DONE)
			client->tls.in.len = 0; /* tickets */
		else
			called = tls_shake_hands(&client->tls, &worked);
		buf_clear(&server->out);
	}
}

/* Feeds in pieces; once it has failed, it stays so, with a reason. */
static void feed(struct end *server, struct slice bytes, size_t piece_bytes, bool is_open)
{
	char plain[100];
	bool worked, has_failed = false;
	while (bytes.len) {
		size_t len = bytes.len < piece_bytes ? bytes.len : piece_bytes;
		enum tls_result result;
		server->tls.in = (struct slice){bytes.data, len};
		bytes = (struct slice){bytes.data + len, bytes.len - len};
		do {
			result = is_open ? tls_read(&server->tls, plain, sizeof(plain), &len)
					 : tls_shake_hands(&server->tls, &worked);
			ASSERT(result != TLS_DONE); /* nobody without the keys comes so far */
			has_failed = has_failed || result == TLS_FAILED;
			ASSERT(has_failed == (result == TLS_FAILED));
			ASSERT(has_failed == (server->tls.why[0] != 0));
		} while (result == TLS_WANTS_INPUT && server->tls.in.len);
		if (has_failed)
			return;
	}
}

static void take(struct end *server, struct slice *expected, size_t max_bytes)
{
	char plain[20000];
	size_t len;
	while (tls_read(&server->tls, plain, max_bytes, &len) == TLS_DONE) {
		ASSERT(len <= max_bytes && len <= expected->len &&
		       !memcmp(plain, expected->data, len));
		*expected = (struct slice){expected->data + len, expected->len - len};
	}
}

static void talk(struct end *server, struct end *client, struct slice bytes, size_t piece_bytes)
{
	struct slice expected = bytes;
	size_t max_bytes = piece_bytes * 61;
	char plain[1];
	size_t len;
	while (bytes.len) {
		len = bytes.len < piece_bytes ? bytes.len : piece_bytes;
		enum tls_result written = tls_write(&client->tls, (struct slice){bytes.data, len});
		ASSERT(written == TLS_DONE);
		bytes = (struct slice){bytes.data + len, bytes.len - len};
	}
	tls_end(&client->tls);
	struct slice wire = buf_slice(&client->out);
	while (wire.len) {
		len = wire.len < 3 * piece_bytes ? wire.len : 3 * piece_bytes;
		server->tls.in = (struct slice){wire.data, len};
		wire = (struct slice){wire.data + len, wire.len - len};
		take(server, &expected, max_bytes);
	}
	ASSERT(!expected.len && tls_read(&server->tls, plain, 1, &len) == TLS_AT_END);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct end server, client;
	if (size < 2)
		return 0;
	if (!fuzz.for_server)
		make_contexts();
	struct slice bytes = {(const char *)data + 2, size - 2};
	size_t piece_bytes = 1 + (size_t)data[1];
	end_init(&server, fuzz.for_server);
	end_init(&client, fuzz.for_client);
	if (data[0] % 3)
		shake(&server, &client);
	if (data[0] % 3 == 2)
		talk(&server, &client, bytes, piece_bytes);
	else
		feed(&server, bytes, piece_bytes, data[0] % 3);
	end_release(&server);
	end_release(&client);
	return 0;
}
