/* Contexts: certificates, keys, whom clients trust, and which versions and ciphers are spoken. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <pthread.h>

#include "base/mem.h"
#include "loop/tls_private.h"

enum { TICKET_KEYS_BYTES = 80, CHAIN_MAX = 16, AUTHORITIES_MAX = 10000 };

static const char tls_suites[] =
	"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
/* For 1.2: forward secrecy, and ciphers that encrypt and authenticate at once. */
static const char tls_ciphers[] = "ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20";
static const char tls_groups[] = "X25519:P-256:P-384";

/* Why OpenSSL has refused something, as it says itself. */
static const char *tls_openssl_reason(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());
	return reason ? reason : "OpenSSL does not say why";
}

/* ---- Files ----------------------------------------------------------------------------------- */

static int tls_read_file(struct files *files, const char *path, struct buf *bytes, struct errbuf *e)
{
	/* At once, so that nothing of a key is left where a smaller buffer was. */
	char *room = buf_reserve(bytes, TLS_FILE_MAX_BYTES);
	ASSERT(room);
	int err = files->read(files, path, TLS_FILE_MAX_BYTES, bytes);
	if (err == ERR_LIMIT)
		return errbuf_set(e, err, "%s: has more than %d bytes", path, TLS_FILE_MAX_BYTES);
	return err ? errbuf_set(e, err, "%s: %s", path, err_text(err)) : 0;
}

/* Whether the file ended where the next thing of PEM was looked for. */
static bool tls_is_file_over(void)
{
	unsigned long err = ERR_peek_last_error();
	return ERR_GET_LIB(err) == ERR_LIB_PEM && ERR_GET_REASON(err) == PEM_R_NO_START_LINE;
}

/* All certificates of a file, each given to `take`, which has it from then on. */
static int tls_each_certificate(struct files *files, const char *path, size_t max,
				int (*take)(SSL_CTX *ssl, X509 *one, size_t index), SSL_CTX *ssl,
				struct errbuf *e)
{
	struct buf bytes;
	size_t count = 0;
	bool taken = true;
	buf_init(&bytes, TLS_FILE_MAX_BYTES);
	int err = tls_read_file(files, path, &bytes, e);
	BIO *bio = err ? NULL : BIO_new_mem_buf(bytes.data, (int)bytes.len);
	ERR_clear_error();
	for (X509 *one; !err && taken && (one = PEM_read_bio_X509(bio, NULL, NULL, NULL));) {
		if (count == max) {
			X509_free(one);
			err = errbuf_set(e, ERR_LIMIT, "%s: holds more than %zu certificates", path,
					 max);
			break;
		}
		taken = take(ssl, one, count++);
	}
	if (!err && !taken)
		err = errbuf_set(e, ERR_INVALID, "%s: certificate %zu is refused: %s", path, count,
				 tls_openssl_reason());
	else if (!err && !tls_is_file_over())
		err = errbuf_set(e, ERR_INVALID, "%s: certificate %zu cannot be read: %s", path,
				 count + 1, tls_openssl_reason());
	else if (!err && !count)
		err = errbuf_set(e, ERR_INVALID, "%s: holds no certificate in PEM", path);
	BIO_free(bio);
	buf_release(&bytes);
	ERR_clear_error();
	return err;
}

/* Nobody is there to type one. */
static int tls_has_no_password(UNUSED char *to, UNUSED int size, UNUSED int writes, void *asked)
{
	*(bool *)asked = true;
	return -1;
}

static int tls_read_key(struct files *files, const char *path, EVP_PKEY **key, struct errbuf *e)
{
	struct buf bytes;
	bool is_encrypted = false;
	int err = file_check_secret(files, path, e);
	if (err)
		return err;
	buf_init(&bytes, TLS_FILE_MAX_BYTES);
	err = tls_read_file(files, path, &bytes, e);
	if (!err) {
		BIO *bio = BIO_new_mem_buf(bytes.data, (int)bytes.len);
		ERR_clear_error();
		*key = PEM_read_bio_PrivateKey(bio, NULL, tls_has_no_password, &is_encrypted);
		BIO_free(bio);
		if (!*key && is_encrypted)
			err = errbuf_set(e, ERR_INVALID,
					 "%s: the key is encrypted, and nobody is there to type "
					 "its password; write it without one: openssl pkey -in %s",
					 path, path);
		else if (!*key)
			err = errbuf_set(e, ERR_INVALID, "%s: holds no private key in PEM (%s)",
					 path, tls_openssl_reason());
	}
	OPENSSL_cleanse(bytes.data, bytes.cap);
	buf_release(&bytes);
	ERR_clear_error();
	return err;
}

/* ---- What both sides speak ------------------------------------------------------------------- */

static uint8_t tls_ticket_keys[TICKET_KEYS_BYTES];
static pthread_once_t tls_ticket_once = PTHREAD_ONCE_INIT;

static void tls_make_ticket_keys(void)
{
	ASSERT(RAND_priv_bytes(tls_ticket_keys, sizeof(tls_ticket_keys)) == 1);
}

static void tls_set_protocols(struct tls_context *context, const struct tls_protocols *protocols)
{
	ASSERT(protocols->count <= TLS_PROTOCOLS_MAX);
	for (size_t i = 0; i < protocols->count; i++) {
		size_t len = strlen(protocols->names[i]);
		ASSERT(len && len <= TLS_PROTOCOL_MAX_BYTES);
		context->protocols[context->protocols_len++] = (uint8_t)len;
		memcpy(context->protocols + context->protocols_len, protocols->names[i], len);
		context->protocols_len += (unsigned)len;
	}
}

static int tls_choose_protocol(UNUSED SSL *ssl, const uint8_t **chosen, uint8_t *chosen_len,
			       const uint8_t *offered, unsigned offered_len, void *owner)
{
	const struct tls_context *context = owner;
	int found =
		SSL_select_next_proto((uint8_t **)(uintptr_t)chosen, chosen_len, context->protocols,
				      context->protocols_len, offered, offered_len);
	return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static struct tls_context *tls_context_new(bool is_server, const struct tls_protocols *protocols)
{
	struct tls_context *context = mem_zalloc(sizeof(*context));
	SSL_CTX *ssl = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
	ASSERT(ssl);
	context->ssl = ssl;
	context->is_server = is_server;
	context->users = 1;
	tls_set_protocols(context, protocols);
	SSL_CTX_set_security_level(ssl, 2);
	ASSERT(SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) &&
	       SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) &&
	       SSL_CTX_set_ciphersuites(ssl, tls_suites) &&
	       SSL_CTX_set_cipher_list(ssl, tls_ciphers) &&
	       SSL_CTX_set1_groups_list(ssl, tls_groups));
	SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_PRIORITIZE_CHACHA);
	/* A connection that rests shall not hold the room for a record. */
	SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	/* Sessions live in tickets alone: here there is no table that may grow. */
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	if (is_server) {
		pthread_once(&tls_ticket_once, tls_make_ticket_keys);
		ASSERT(SSL_CTX_set_tlsext_ticket_keys(ssl, tls_ticket_keys, TICKET_KEYS_BYTES) &&
		       SSL_CTX_set_session_id_context(ssl, (const uint8_t *)"granary", 7));
		if (context->protocols_len)
			SSL_CTX_set_alpn_select_cb(ssl, tls_choose_protocol, context);
	} else if (context->protocols_len) {
		ASSERT(!SSL_CTX_set_alpn_protos(ssl, context->protocols, context->protocols_len));
	}
	return context;
}

void tls_context_hold(struct tls_context *context)
{
	if (context)
		context->users++;
}

void tls_context_release(struct tls_context *context)
{
	if (!context || --context->users)
		return;
	SSL_CTX_free(context->ssl);
	mem_free(context);
}

/* ---- The side that is called ----------------------------------------------------------------- */

static int tls_take_chain(SSL_CTX *ssl, X509 *one, size_t index)
{
	if (index && SSL_CTX_add0_chain_cert(ssl, one))
		return 1;
	int taken = !index && SSL_CTX_use_certificate(ssl, one);
	X509_free(one);
	return taken;
}

static void tls_warn_of_validity(const X509 *one, struct clock *clock, const char *path,
				 struct errbuf *warning)
{
	time_t now = (time_t)(clock_wall_ms(clock) / 1000);
	struct tm when;
	char text[32] = "a time that cannot be read";
	bool is_early = X509_cmp_time(X509_get0_notBefore(one), &now) > 0;
	bool is_over = X509_cmp_time(X509_get0_notAfter(one), &now) < 0;
	warning->text[0] = 0;
	if (!is_early && !is_over)
		return;
	if (ASN1_TIME_to_tm(is_early ? X509_get0_notBefore(one) : X509_get0_notAfter(one), &when))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &when);
	errbuf_set(warning, 0,
		   "%s: the certificate %s %s; clients that check it will refuse this server", path,
		   is_early ? "is valid only from" : "has expired:", text);
}

int tls_context_for_server(struct files *files, struct clock *clock, const char *certificate,
			   const char *key, const struct tls_protocols *protocols,
			   struct tls_context **out, bool *key_is_wrong, struct errbuf *warning,
			   struct errbuf *e)
{
	struct tls_context *context = tls_context_new(true, protocols);
	EVP_PKEY *private = NULL;
	int err = tls_each_certificate(files, certificate, CHAIN_MAX, tls_take_chain, context->ssl,
				       e);
	*key_is_wrong = !err; /* what can be wrong from here on */
	if (!err)
		err = tls_read_key(files, key, &private, e);
	/* Where it does not fit, using it would be no error: the certificate would go. */
	if (!err && !X509_check_private_key(SSL_CTX_get0_certificate(context->ssl), private))
		err = errbuf_set(e, ERR_INVALID,
				 "%s: the key does not fit the (first) certificate of %s", key,
				 certificate);
	if (!err && SSL_CTX_use_PrivateKey(context->ssl, private) != 1)
		err = errbuf_set(e, ERR_INVALID, "%s: the key is refused: %s", key,
				 tls_openssl_reason());
	EVP_PKEY_free(private);
	ERR_clear_error();
	if (err) {
		tls_context_release(context);
		return err;
	}
	tls_warn_of_validity(SSL_CTX_get0_certificate(context->ssl), clock, certificate, warning);
	*out = context;
	return 0;
}

/* ---- The side that calls --------------------------------------------------------------------- */

static int tls_take_authority(SSL_CTX *ssl, X509 *one, UNUSED size_t index)
{
	int taken = X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl), one);
	X509_free(one);
	return taken;
}

int tls_context_for_client(struct files *files, const char *authorities,
			   const struct tls_protocols *protocols, struct tls_context **out,
			   struct errbuf *e)
{
	struct tls_context *context = tls_context_new(false, protocols);
	int err = 0;
	SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER, NULL);
	if (authorities)
		err = tls_each_certificate(files, authorities, AUTHORITIES_MAX, tls_take_authority,
					   context->ssl, e);
	else if (!SSL_CTX_set_default_verify_paths(context->ssl))
		err = errbuf_set(e, ERR_INVALID,
				 "the certificates that this system trusts cannot be read: %s",
				 tls_openssl_reason());
	ERR_clear_error();
	if (err) {
		tls_context_release(context);
		return err;
	}
	*out = context;
	return 0;
}
